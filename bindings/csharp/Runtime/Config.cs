using System;

namespace Muse
{
    /// <summary>The delivery mode of a channel.</summary>
    public enum Delivery : byte
    {
        /// <summary>At most once, in any order.</summary>
        Unreliable = 0,
        /// <summary>At most once, never older than what was delivered before.</summary>
        Sequenced = 1,
        /// <summary>Exactly once, in any order, as soon as it arrives.</summary>
        ReliableUnordered = 2,
        /// <summary>The newest surely arrives, older ones may be skipped.</summary>
        ReliableSequenced = 3,
        /// <summary>Exactly once, in the order sent.</summary>
        ReliableOrdered = 4,
        /// <summary>In order, and of each window of messages at least a promised share arrives.</summary>
        PartiallyReliable = 5,
    }

    /// <summary>The price that a reliable channel pays for low latency under loss.</summary>
    public enum Repair : byte
    {
        Balanced = 0,
        Frugal = 1,
        Fast = 2,
    }

    /// <summary>The urgency of a message.</summary>
    public enum Priority : byte
    {
        Default = 0,
        Urgent = 1,
        High = 2,
        Normal = 3,
        Low = 4,
    }

    /// <summary>One channel; zero is the default of every field.</summary>
    public struct ChannelConfig
    {
        public Delivery Delivery;
        public Repair Repair;
        public Priority Priority;
        /// <summary>Share of the bandwidth beside channels of the same priority.</summary>
        public byte Weight;
        /// <summary>Partially reliable: messages in a window, and how many of a hundred arrive at least.</summary>
        public ushort Window;
        public byte Percent;
        public uint QueueBytes;
        public uint QueueMessages;

        public ChannelConfig(Delivery delivery) : this() { Delivery = delivery; }
    }

    /// <summary>The settings that both sides of a connection agree on, and limits; zero is the default of every field. Times are microseconds.</summary>
    public sealed class Config
    {
        /// <summary>A number that other games do not use.</summary>
        public ulong Protocol;
        /// <summary>
        /// Everything else that both sides must share, a line for each thing ("7 Say { text: text max 100 }\ntick rate 50"). A client that differs is refused
        /// and told the lines that do (<see cref="Refusal.Schema"/>). The order of lines does not matter; anybody can read them.
        /// </summary>
        public string Shared = "";
        /// <summary>The channels, numbered from 0; the same on both sides.</summary>
        public ChannelConfig[] Channels = new ChannelConfig[0];
        public ulong MessageMax;
        public ulong AckDelayUs;
        public ulong KeepAliveUs;
        public ulong SilenceUs;
        public ulong ResumeWithinUs;
        public ulong ConnectionsMax;
        public ulong FixedRate;

        /// <summary>One channel of each mode, in the order of <see cref="Delivery"/>; nine of ten of the partially reliable arrive.</summary>
        public static Config EveryMode(ulong protocol)
        {
            var channels = new ChannelConfig[6];
            for (byte mode = 0; mode < channels.Length; mode++) channels[mode] = new ChannelConfig((Delivery)mode);
            channels[5].Window = 10;
            channels[5].Percent = 90;
            return new Config { Protocol = protocol, Channels = channels };
        }

        internal Native.Channel[] NativeChannels()
        {
            // One more than there are, so that `fixed` has something to point to.
            var channels = new Native.Channel[Channels.Length + 1];
            for (int index = 0; index < Channels.Length; index++)
            {
                ChannelConfig channel = Channels[index];
                channels[index] = new Native.Channel
                {
                    Delivery = (byte)channel.Delivery,
                    Repair = (byte)channel.Repair,
                    Priority = (byte)channel.Priority,
                    Weight = channel.Weight,
                    Window = channel.Window,
                    Percent = channel.Percent,
                    QueueBytes = channel.QueueBytes,
                    QueueMessages = channel.QueueMessages,
                };
            }
            return channels;
        }

        internal unsafe Native.Config ToNative(Native.Channel* channels, byte* shared)
        {
            return new Native.Config
            {
                Protocol = Protocol,
                Shared = shared,
                Channels = channels,
                ChannelCount = (UIntPtr)Channels.Length,
                MessageMax = MessageMax,
                AckDelayUs = AckDelayUs,
                KeepAliveUs = KeepAliveUs,
                SilenceUs = SilenceUs,
                ResumeWithinUs = ResumeWithinUs,
                ConnectionsMax = ConnectionsMax,
                FixedRate = FixedRate,
            };
        }
    }

    /// <summary>The server that a client trusts, and what it tells it at once.</summary>
    public sealed class ConnectOptions
    {
        /// <summary>The server's public key. Without it and without a token nothing can be trusted.</summary>
        public byte[] ServerKey;
        /// <summary>A connect token, which names the server's key.</summary>
        public string Token;
        /// <summary>Neither encryption nor authentication: anyone on the way can read and forge everything.</summary>
        public bool DangerInsecure;
        /// <summary>Bytes that reach the server with the connection, at most 256.</summary>
        public byte[] Hello;
        /// <summary>Gives up after this time; 0 for 10 s.</summary>
        public ulong TimeoutUs;
    }

    /// <summary>A server's key, and which clients it lets in.</summary>
    public sealed class ServerOptions
    {
        /// <summary>The server's private key, from <see cref="MuseContext.NewKey"/> or <see cref="MuseContext.LoadOrCreateKey"/>.</summary>
        public byte[] Key;
        /// <summary>Public keys of issuers by number. With any, only holders of a connect token get in.</summary>
        public System.Collections.Generic.Dictionary<uint, byte[]> TokenKeys = new System.Collections.Generic.Dictionary<uint, byte[]>();
        /// <summary>Also lets in clients without encryption.</summary>
        public bool DangerAllowInsecure;
        /// <summary>Asks about each client before it is in: <see cref="EventKind.Asking"/>, which <see cref="MuseServer.Admit"/> or <see cref="MuseServer.Deny"/> answers.</summary>
        public bool Asks;
        /// <summary>Clients that may wait for a decision at once; 0 for 1,024. Further ones are refused as by a busy server.</summary>
        public uint PendingMax;
        /// <summary>Time for a decision, at most 300 s; 0 for 30 s. Afterwards the client is refused as by a busy server.</summary>
        public ulong DecisionTimeoutUs;
    }
}
