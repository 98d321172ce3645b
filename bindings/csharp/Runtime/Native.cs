// The functions and structures of muse.h, field by field. Nothing here allocates or decides anything.
using System;
using System.Runtime.InteropServices;

namespace Muse
{
    /// <summary>The answer of every call; errors are below zero.</summary>
    public enum Status
    {
        Ok = 0,
        /// <summary>There is nothing now.</summary>
        None = 1,
        ErrorNull = -1,
        /// <summary>The object was disposed of.</summary>
        ErrorStale = -2,
        ErrorShortBuffer = -3,
        ErrorArgument = -4,
        /// <summary>Another thread is using the same context.</summary>
        ErrorBusy = -5,
        ErrorPanic = -6,
        ErrorIo = -7,
        ErrorNoConnection = -8,
        ErrorNoChannel = -9,
        /// <summary>Too much waits on the channel already: send less, or later.</summary>
        ErrorQueueFull = -10,
        ErrorTooLong = -11,
        ErrorClosing = -12,
        ErrorConfig = -13,
        ErrorToken = -14,
        ErrorMalformed = -15,
        ErrorFull = -16,
    }

    /// <summary>State and counters of a connection; times are microseconds.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ConnectionStats
    {
        public ulong RttUs;
        public ulong RttMinUs;
        public ulong JitterUs;
        /// <summary>Share of packets lost of late, 0 to 1.</summary>
        public double Loss;
        public ulong Bandwidth;
        public ulong InFlight;
        public ulong Window;
        public ulong Mtu;
        public ulong PacketsSent;
        public ulong BytesSent;
        public ulong PacketsReceived;
        public ulong BytesReceived;
        public ulong PacketsLost;
        public ulong PacketsRecovered;
        public ulong AddressChanges;
        public ulong Interruptions;
        private ulong interrupted;

        /// <summary>True while nothing is heard of the peer.</summary>
        public bool IsInterrupted { get { return (interrupted & 1) != 0; } }
    }

    /// <summary>Counters of one channel of a connection, both directions.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ChannelStats
    {
        public ulong MessagesSent;
        public ulong BytesSent;
        public ulong Refused;
        public ulong PiecesResent;
        public ulong MessagesExpired;
        public ulong MessagesReceived;
        public ulong BytesReceived;
        public ulong MessagesDuplicate;
        public ulong MessagesLate;
        public ulong MessagesSkipped;
        public ulong QueuedBytes;
        public ulong QueuedMessages;
    }

    /// <summary>The bytes that a connection may send.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Budget
    {
        public ulong AtOnce;
        public ulong ThisTick;
        /// <summary>Bytes a second in the long run; 0 when nothing limits them.</summary>
        public ulong Rate;
    }

    /// <summary>Position, velocity and rotation of an entity.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Pose
    {
        public float PositionX, PositionY, PositionZ;
        public float VelocityX, VelocityY, VelocityZ;
        public float RotationX, RotationY, RotationZ, RotationW;
    }

    /// <summary>The instant of the past that is shown, and the measurements behind it.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct PlaybackState
    {
        /// <summary>The instant to show, in ticks; below 0 before the first snapshot.</summary>
        public double Ticks;
        public ulong DelayUs;
        public ulong JitterUs;
        public double Loss;
        public double IntervalTicks;
    }

    /// <summary>The state of a clock.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ClockState
    {
        /// <summary>The server's time in ticks; below 0 before the first snapshot.</summary>
        public double ServerTicks;
        /// <summary>The instant that is being played, in ticks; below 0 before it plays.</summary>
        public double PlayTicks;
        public double Rate;
        public ulong AheadUs;
        public ulong RoundTripUs;
        public ulong Skipped;
    }

    internal static unsafe class Native
    {
#if UNITY_IOS && !UNITY_EDITOR
        private const string Library = "__Internal";
#else
        private const string Library = "muse";
#endif
        internal const uint AbiVersion = 2;

        [StructLayout(LayoutKind.Sequential)]
        internal struct Channel
        {
            public byte Delivery, Repair, Priority, Weight;
            public ushort Window;
            public byte Percent, Reserved;
            public uint QueueBytes, QueueMessages;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Config
        {
            public ulong Protocol;
            public byte* Shared;
            public Channel* Channels;
            public UIntPtr ChannelCount;
            public ulong MessageMax, AckDelayUs, KeepAliveUs, SilenceUs, ResumeWithinUs, ConnectionsMax, FixedRate;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Connect
        {
            public ulong Trust;
            public byte* ServerKey;
            public byte* Token;
            public byte* Hello;
            public UIntPtr HelloLen;
            public ulong TimeoutUs;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct TokenKey
        {
            public uint KeyId;
            public fixed byte PublicKey[32];
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct ServerOptions
        {
            public byte* Key;
            public TokenKey* TokenKeys;
            public UIntPtr TokenKeyCount;
            public byte DangerAllowInsecure, Asks;
            public ushort Reserved;
            public uint PendingMax;
            public ulong DecisionTimeoutUs;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct SendOptions
        {
            public ulong DeadlineUs;
            public byte Priority, Receipt;
            public fixed byte Reserved[6];
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Event
        {
            public byte Kind, Channel, Reason, Reserved;
            public uint Code;
            public ulong Connection, Account, Message;
            public byte* Payload;
            public UIntPtr PayloadLen;
            public byte* Extra;
            public UIntPtr ExtraLen;
            public byte* Address;
            public UIntPtr AddressLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Grant
        {
            public ulong Account, LifetimeS;
            public fixed byte ServerKey[32];
            public byte* ServerAddress;
            public byte* UserData;
            public UIntPtr UserDataLen;
        }

        [DllImport(Library)] internal static extern uint muse_abi_version();
        [DllImport(Library)] internal static extern byte* muse_status_text(int status);
        [DllImport(Library)] internal static extern IntPtr muse_new();
        [DllImport(Library)] internal static extern void muse_free(IntPtr muse);
        [DllImport(Library)] internal static extern Status muse_destroy(IntPtr muse, ulong handle);
        [DllImport(Library)] internal static extern Status muse_error_text(IntPtr muse, byte* buffer, UIntPtr capacity, out UIntPtr len);

        [DllImport(Library)] internal static extern Status muse_server_new(IntPtr muse, byte* address, Config* config, ServerOptions* options, out ulong endpoint);
        [DllImport(Library)] internal static extern Status muse_client_new(IntPtr muse, byte* address, Config* config, Connect* connect, out ulong endpoint, out ulong connection);
        [DllImport(Library)] internal static extern Status muse_poll(IntPtr muse, ulong endpoint);
        [DllImport(Library)] internal static extern Status muse_flush(IntPtr muse, ulong endpoint);
        [DllImport(Library)] internal static extern Status muse_wait(IntPtr muse, ulong endpoint, ulong timeoutUs);
        [DllImport(Library)] internal static extern Status muse_next_event(IntPtr muse, ulong endpoint, Event* happened);
        [DllImport(Library)] internal static extern Status muse_send(IntPtr muse, ulong endpoint, ulong connection, byte channel, byte* payload, UIntPtr len, SendOptions* options, ulong* message);
        [DllImport(Library)] internal static extern Status muse_broadcast(IntPtr muse, ulong endpoint, byte channel, byte* payload, UIntPtr len, out UIntPtr sent);
        [DllImport(Library)] internal static extern Status muse_close(IntPtr muse, ulong endpoint, ulong connection, ushort code, byte* text);
        [DllImport(Library)] internal static extern Status muse_finish(IntPtr muse, ulong endpoint, ulong connection, ushort code, byte* text);
        [DllImport(Library)] internal static extern Status muse_admit(IntPtr muse, ulong endpoint, ulong connection);
        [DllImport(Library)] internal static extern Status muse_deny(IntPtr muse, ulong endpoint, ulong connection, ushort code, byte* text);
        [DllImport(Library)] internal static extern Status muse_now(IntPtr muse, ulong endpoint, out ulong nowUs);
        [DllImport(Library)] internal static extern Status muse_budget(IntPtr muse, ulong endpoint, ulong connection, ulong tickUs, out Budget budget);
        [DllImport(Library)] internal static extern Status muse_local_address(IntPtr muse, ulong endpoint, byte* buffer, UIntPtr capacity, out UIntPtr len);
        [DllImport(Library)] internal static extern Status muse_danger_key_log(IntPtr muse, ulong endpoint, byte* path);
        [DllImport(Library)] internal static extern Status muse_stats(IntPtr muse, ulong endpoint, ulong connection, out ConnectionStats stats);
        [DllImport(Library)] internal static extern Status muse_channel_stats(IntPtr muse, ulong endpoint, ulong connection, byte channel, out ChannelStats stats);

        [DllImport(Library)] internal static extern Status muse_key_new(IntPtr muse, byte* key);
        [DllImport(Library)] internal static extern Status muse_key_load_or_create(IntPtr muse, byte* path, byte* key);
        [DllImport(Library)] internal static extern Status muse_key_public(IntPtr muse, byte* key, byte* publicKey);
        [DllImport(Library)] internal static extern Status muse_key_parse(IntPtr muse, byte* text, byte* publicKey);
        [DllImport(Library)] internal static extern Status muse_issuer_new(IntPtr muse, ulong protocol, uint keyId, byte* seed, out ulong issuer);
        [DllImport(Library)] internal static extern Status muse_issuer_public_key(IntPtr muse, ulong issuer, byte* publicKey);
        [DllImport(Library)] internal static extern Status muse_issue(IntPtr muse, ulong issuer, Grant* grant, byte* buffer, UIntPtr capacity, out UIntPtr len);

        [DllImport(Library)] internal static extern Status muse_clock_new(IntPtr muse, ulong tickUs, out ulong clock);
        [DllImport(Library)] internal static extern Status muse_clock_snapshot(IntPtr muse, ulong clock, ulong nowUs, uint tick, byte* report, UIntPtr len);
        [DllImport(Library)] internal static extern Status muse_clock_poll(IntPtr muse, ulong clock, ulong nowUs, out byte due, out uint tick);
        [DllImport(Library)] internal static extern Status muse_clock_write(IntPtr muse, ulong clock, ulong nowUs, uint tick, byte* input, UIntPtr inputLen, byte* buffer, UIntPtr capacity, out UIntPtr len);
        [DllImport(Library)] internal static extern Status muse_clock_read(IntPtr muse, ulong clock, out ClockState state);
        [DllImport(Library)] internal static extern Status muse_inputs_new(IntPtr muse, ulong tickUs, uint nextTick, out ulong inputs);
        [DllImport(Library)] internal static extern Status muse_inputs_packet(IntPtr muse, ulong inputs, ulong nowUs, byte* packet, UIntPtr len);
        [DllImport(Library)] internal static extern Status muse_inputs_take(IntPtr muse, ulong inputs, uint tick, ulong dueUs, byte* buffer, UIntPtr capacity, out UIntPtr len, out byte kind);
        [DllImport(Library)] internal static extern Status muse_inputs_report(IntPtr muse, ulong inputs, ulong nowUs, ulong dueUs, byte* buffer, UIntPtr capacity, out UIntPtr len);
        [DllImport(Library)] internal static extern Status muse_playback_new(IntPtr muse, ulong tickUs, out ulong playback);
        [DllImport(Library)] internal static extern Status muse_playback_snapshot(IntPtr muse, ulong playback, ulong nowUs, uint tick, ushort number);
        [DllImport(Library)] internal static extern Status muse_playback_advance(IntPtr muse, ulong playback, ulong nowUs, out PlaybackState state);
        [DllImport(Library)] internal static extern Status muse_interpolation_new(IntPtr muse, ulong tickUs, byte useVelocity, ulong beyondMaxUs, out ulong interpolation);
        [DllImport(Library)] internal static extern Status muse_interpolation_push(IntPtr muse, ulong interpolation, uint tick, ref Pose pose);
        [DllImport(Library)] internal static extern Status muse_interpolation_show(IntPtr muse, ulong interpolation, double ticks, out Pose pose, out byte source);
    }
}
