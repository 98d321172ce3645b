using System;
using System.Collections.Generic;

namespace Muse
{
    /// <summary>The kinds of events of <see cref="NetworkTransport.PollEvent"/>.</summary>
    public enum NetworkEvent
    {
        Nothing,
        Connect,
        Data,
        Disconnect,
        TransportFailure,
    }

    /// <summary>
    /// Muse in the shape that Unity's high-level libraries expect of a transport: start, send to a client, poll, disconnect. Client 0 is the
    /// server. Payloads are segments of one buffer that is used again and again: read them before the next poll.
    /// </summary>
    public sealed class NetworkTransport : IDisposable
    {
        /// <summary>The number by which a client knows its server.</summary>
        public const ulong ServerClientId = 0;

        private readonly Config config;
        private readonly Dictionary<ulong, ulong> clientOf = new Dictionary<ulong, ulong>();
        private readonly Dictionary<ulong, ulong> connectionOf = new Dictionary<ulong, ulong>();
        private Endpoint endpoint;
        private byte[] buffer = new byte[2048];
        private ulong nextClient = 1;
        private bool polled;

        /// <summary>A transport with one channel of each delivery mode.</summary>
        public NetworkTransport(ulong protocol) : this(Config.EveryMode(protocol)) { }

        /// <summary>A transport with channels of one's own; <see cref="Send"/> takes their number.</summary>
        public NetworkTransport(Config config) { this.config = config; }

        /// <summary>The endpoint below, while started.</summary>
        public Endpoint Endpoint { get { return endpoint; } }

        /// <summary>Why the last connection ended or was refused, in words; empty before.</summary>
        public string DisconnectReason { get; private set; } = "";

        /// <summary>Listens; the key is a server's private one.</summary>
        public void StartServer(string address, byte[] key)
        {
            Shutdown();
            endpoint = new MuseServer(address, config, new ServerOptions { Key = key });
        }

        /// <summary>Begins to connect.</summary>
        public void StartClient(string address, ConnectOptions options)
        {
            Shutdown();
            var client = new MuseClient(address, config, options);
            endpoint = client;
            Remember(ServerClientId, client.Connection);
        }

        /// <summary>Sends to a client, or to the server with <see cref="ServerClientId"/>. A full queue is an answer, not an exception.</summary>
        public Status Send(ulong clientId, ArraySegment<byte> payload, byte channel)
        {
            ulong connection;
            if (endpoint == null || !connectionOf.TryGetValue(clientId, out connection)) return Status.ErrorNoConnection;
            return endpoint.Send(connection, channel, payload.Array, payload.Offset, payload.Count);
        }

        /// <summary>
        /// Gives the next event. The first call of a tick receives what arrived; call until <see cref="NetworkEvent.Nothing"/>, which also sends
        /// what is to be sent.
        /// </summary>
        public NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload)
        {
            clientId = 0;
            payload = new ArraySegment<byte>(buffer, 0, 0);
            if (endpoint == null) return NetworkEvent.Nothing;
            if (!polled)
            {
                endpoint.Poll();
                polled = true;
            }
            MuseEvent happened;
            while (endpoint.NextEvent(out happened))
            {
                NetworkEvent result = Translate(ref happened, ref clientId, ref payload);
                if (result != NetworkEvent.Nothing) return result;
            }
            polled = false;
            endpoint.Flush();
            return NetworkEvent.Nothing;
        }

        /// <summary>Lets go of a client once what was sent to it has arrived.</summary>
        public void DisconnectRemoteClient(ulong clientId)
        {
            ulong connection;
            if (endpoint != null && connectionOf.TryGetValue(clientId, out connection)) endpoint.Finish(connection);
        }

        /// <summary>Leaves the server.</summary>
        public void DisconnectLocalClient() { DisconnectRemoteClient(ServerClientId); }

        /// <summary>The round-trip time to a client in milliseconds.</summary>
        public ulong GetCurrentRtt(ulong clientId)
        {
            ulong connection;
            ConnectionStats stats;
            if (endpoint == null || !connectionOf.TryGetValue(clientId, out connection) || !endpoint.TryStats(connection, out stats)) return 0;
            return stats.RttUs / 1000;
        }

        /// <summary>Closes everything.</summary>
        public void Shutdown()
        {
            if (endpoint != null) endpoint.Dispose();
            endpoint = null;
            polled = false;
            clientOf.Clear();
            connectionOf.Clear();
        }

        public void Dispose() { Shutdown(); }

        private NetworkEvent Translate(ref MuseEvent happened, ref ulong clientId, ref ArraySegment<byte> payload)
        {
            bool known = clientOf.TryGetValue(happened.Connection, out clientId);
            switch (happened.Kind)
            {
                case EventKind.Connected:
                    if (!known) clientId = Remember(nextClient++, happened.Connection);
                    return NetworkEvent.Connect;
                case EventKind.Message:
                    if (!known) return NetworkEvent.Nothing;
                    if (buffer.Length < happened.Payload.Length) buffer = new byte[happened.Payload.Length];
                    payload = new ArraySegment<byte>(buffer, 0, happened.Payload.CopyTo(buffer));
                    return NetworkEvent.Data;
                case EventKind.Closed:
                case EventKind.Refused:
                case EventKind.Unanswered:
                    if (!known) return NetworkEvent.Nothing;
                    DisconnectReason = ReasonOf(ref happened);
                    clientOf.Remove(happened.Connection);
                    connectionOf.Remove(clientId);
                    return NetworkEvent.Disconnect;
                default:
                    return NetworkEvent.Nothing;
            }
        }

        private static string ReasonOf(ref MuseEvent happened)
        {
            if (happened.Payload.Length > 0) return happened.Payload.ToText();
            return happened.Kind == EventKind.Closed ? ((CloseReason)happened.Reason).ToString() : "no answer";
        }

        private ulong Remember(ulong client, ulong connection)
        {
            clientOf[connection] = client;
            connectionOf[client] = connection;
            return client;
        }
    }
}
