// Muse as the transport of Unity's Netcode for GameObjects: add it beside the NetworkManager and choose it there.
using System;
using Muse;
using Unity.Netcode;
using UnityEngine;

public sealed class MuseUnityTransport : Unity.Netcode.NetworkTransport
{
    [SerializeField] private string address = "127.0.0.1:7777";
    [SerializeField] private string serverKey = "";
    [SerializeField] private string keyFile = "server.key";

    private readonly Muse.NetworkTransport transport = new Muse.NetworkTransport(0x6E676F);

    public override ulong ServerClientId { get { return Muse.NetworkTransport.ServerClientId; } }

    public override void Initialize(NetworkManager networkManager) { }

    public override bool StartServer()
    {
        using (var context = new MuseContext())
        {
            byte[] key = context.LoadOrCreateKey(keyFile);
            Debug.Log("clients connect with key " + BitConverter.ToString(context.PublicKey(key)).Replace("-", "").ToLowerInvariant());
            transport.StartServer(address, key);
        }
        return true;
    }

    public override bool StartClient()
    {
        using (var context = new MuseContext())
        {
            transport.StartClient(address, new ConnectOptions { ServerKey = context.ParseKey(serverKey) });
        }
        return true;
    }

    public override void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery networkDelivery)
    {
        Status status = transport.Send(clientId, payload, (byte)DeliveryOf(networkDelivery));
        if (status != Status.Ok) Debug.Log("not sent to " + clientId + ": " + status);
    }

    public override Unity.Netcode.NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime)
    {
        receiveTime = Time.realtimeSinceStartup;
        switch (transport.PollEvent(out clientId, out payload))
        {
            case Muse.NetworkEvent.Connect: return Unity.Netcode.NetworkEvent.Connect;
            case Muse.NetworkEvent.Data: return Unity.Netcode.NetworkEvent.Data;
            case Muse.NetworkEvent.Disconnect: return Unity.Netcode.NetworkEvent.Disconnect;
            case Muse.NetworkEvent.TransportFailure: return Unity.Netcode.NetworkEvent.TransportFailure;
            default: return Unity.Netcode.NetworkEvent.Nothing;
        }
    }

    public override void DisconnectRemoteClient(ulong clientId) { transport.DisconnectRemoteClient(clientId); }

    public override void DisconnectLocalClient() { transport.DisconnectLocalClient(); }

    public override ulong GetCurrentRtt(ulong clientId) { return transport.GetCurrentRtt(clientId); }

    public override void Shutdown() { transport.Shutdown(); }

    private static Delivery DeliveryOf(NetworkDelivery delivery)
    {
        switch (delivery)
        {
            case NetworkDelivery.Unreliable: return Delivery.Unreliable;
            case NetworkDelivery.UnreliableSequenced: return Delivery.Sequenced;
            case NetworkDelivery.Reliable: return Delivery.ReliableUnordered;
            default: return Delivery.ReliableOrdered;
        }
    }
}
