// As much of Unity as the samples use, so that they compile where there is no Unity.
using System;

namespace UnityEngine
{
    public class MonoBehaviour { }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class SerializeField : Attribute { }

    public static class Debug
    {
        public static void Log(object message) { Console.WriteLine(message); }
    }

    public static class Time
    {
        public static float realtimeSinceStartup { get { return 0; } }
    }
}

namespace Unity.Netcode
{
    public sealed class NetworkManager { }

    public enum NetworkDelivery { Unreliable, UnreliableSequenced, Reliable, ReliableSequenced, ReliableFragmentedSequenced }

    public enum NetworkEvent { Data, Connect, Disconnect, TransportFailure, Nothing }

    public abstract class NetworkTransport : UnityEngine.MonoBehaviour
    {
        public abstract ulong ServerClientId { get; }
        public abstract void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery networkDelivery);
        public abstract NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime);
        public abstract bool StartClient();
        public abstract bool StartServer();
        public abstract void DisconnectRemoteClient(ulong clientId);
        public abstract void DisconnectLocalClient();
        public abstract ulong GetCurrentRtt(ulong clientId);
        public abstract void Shutdown();
        public abstract void Initialize(NetworkManager networkManager);
    }
}
