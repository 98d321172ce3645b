using System;
using System.Text;

namespace Muse
{
    /// <summary>The kind of an event.</summary>
    public enum EventKind : byte
    {
        Nothing = 0,
        /// <summary>A connection is made; the payload is the token's user data, the extra what the client said.</summary>
        Connected = 1,
        /// <summary>
        /// The server refused us: the reason is a <see cref="Refusal"/>, the payload its words. With <see cref="Refusal.Denied"/>, the code and the extra are what
        /// the server's application said; with <see cref="Refusal.Schema"/>, the extra has each difference on a line ("here" is the client).
        /// </summary>
        Refused = 2,
        /// <summary>Our attempt to connect got no answer.</summary>
        Unanswered = 3,
        Message = 4,
        /// <summary>A message sent with a receipt was delivered, lost or dropped.</summary>
        Receipt = 5,
        /// <summary>Nothing has been heard for a while; the connection is kept.</summary>
        Interrupted = 6,
        /// <summary>An interrupted connection is back; nothing reliable was lost.</summary>
        Resumed = 7,
        AddressChanged = 8,
        Closed = 9,
        /// <summary>
        /// A client asks to be let in, at a server with <see cref="ServerOptions.Asks"/>: account, payload and extra as with <see cref="Connected"/>, and its address.
        /// <see cref="MuseServer.Admit"/> and <see cref="MuseServer.Deny"/> decide, at once or later.
        /// </summary>
        Asking = 10,
        Other = 255,
    }

    /// <summary>The reason for which a connection ended.</summary>
    public enum CloseReason : byte
    {
        Other = 0,
        ByPeer = 1,
        ByUs = 2,
        Lost = 3,
        Protocol = 4,
        Replaced = 5,
        /// <summary>Nobody decided in time about a client that asked.</summary>
        Undecided = 6,
        /// <summary>One side acknowledged a packet that the other never sent.</summary>
        FalseAck = 7,
    }

    /// <summary>The reason for which a server refused a client.</summary>
    public enum Refusal : byte
    {
        Other = 0,
        Version = 1,
        /// <summary>Channels, or the lines in <see cref="Config.Shared"/>, are not the same on both sides.</summary>
        Schema = 2,
        Full = 3,
        TokenRequired = 4,
        TokenInvalid = 5,
        TokenExpired = 6,
        TokenUsed = 7,
        TokenWrongServer = 8,
        WrongKey = 9,
        /// <summary>The application on the server said no.</summary>
        Denied = 10,
        Busy = 11,
        Insecure = 12,
    }

    /// <summary>The fate of a message.</summary>
    public enum Outcome : byte
    {
        Delivered = 1,
        Lost = 2,
        Expired = 3,
    }

    /// <summary>
    /// Bytes in the library's memory. They may be read until the next event of the same endpoint is asked for; copy what is needed longer.
    /// </summary>
    public unsafe struct Payload
    {
        private readonly byte* start;

        /// <summary>Number of bytes.</summary>
        public readonly int Length;

        internal Payload(byte* start, UIntPtr length)
        {
            this.start = start;
            Length = (int)length;
        }

        private Payload(byte* start, int length)
        {
            this.start = start;
            Length = length;
        }

        /// <summary>The byte at `index`.</summary>
        public byte this[int index]
        {
            get
            {
                if ((uint)index >= (uint)Length) throw new IndexOutOfRangeException();
                return start[index];
            }
        }

        /// <summary>All bytes from `from` on.</summary>
        public Payload Slice(int from)
        {
            if ((uint)from > (uint)Length) throw new IndexOutOfRangeException();
            return new Payload(start + from, Length - from);
        }

        /// <summary>Copies everything to the front of `target` and says how much it was.</summary>
        public int CopyTo(byte[] target, int offset = 0)
        {
            if (target == null) throw new ArgumentNullException("target");
            if (offset < 0 || target.Length - offset < Length) throw new ArgumentException("the target is too short");
            if (Length > 0)
            {
                fixed (byte* place = &target[offset]) Buffer.MemoryCopy(start, place, Length, Length);
            }
            return Length;
        }

        /// <summary>A copy, which allocates.</summary>
        public byte[] ToArray()
        {
            var copy = new byte[Length];
            CopyTo(copy);
            return copy;
        }

        /// <summary>As text, which allocates.</summary>
        public string ToText() { return Encoding.UTF8.GetString(ToArray()); }

        public ushort ReadUInt16(int at) { return (ushort)(this[at] | this[at + 1] << 8); }

        public uint ReadUInt32(int at) { return ReadUInt16(at) | (uint)ReadUInt16(at + 2) << 16; }

        public ulong ReadUInt64(int at) { return ReadUInt32(at) | (ulong)ReadUInt32(at + 4) << 32; }

        public float ReadSingle(int at)
        {
            uint bits = ReadUInt32(at);
            return *(float*)&bits;
        }

        internal Status SendTo(IntPtr muse, ulong endpoint, ulong connection, byte channel)
        {
            return Native.muse_send(muse, endpoint, connection, channel, start, (UIntPtr)Length, null, null);
        }

#if NETSTANDARD2_1 || UNITY_2021_2_OR_NEWER
        /// <summary>The bytes where they are.</summary>
        public ReadOnlySpan<byte> AsSpan() { return new ReadOnlySpan<byte>(start, Length); }
#endif
    }

    /// <summary>One event. Which fields mean something depends on the kind.</summary>
    public struct MuseEvent
    {
        public EventKind Kind;
        public byte Channel;
        /// <summary>A <see cref="CloseReason"/>, an <see cref="Outcome"/> or a <see cref="Refusal"/>.</summary>
        public byte Reason;
        public uint Code;
        public ulong Connection;
        /// <summary>The account of a connect token; 0 without one.</summary>
        public ulong Account;
        public ulong Message;
        public Payload Payload;
        public Payload Extra;
        /// <summary>The peer's address as text, of a client that asks and of one whose address changed.</summary>
        public Payload Address;
    }

    /// <summary>
    /// A socket's worth of connections. One turn of a game loop: <see cref="Poll"/>, <see cref="NextEvent"/> until it is false, the game's step,
    /// <see cref="Flush"/>. Sending and receiving allocate nothing.
    /// </summary>
    public abstract unsafe class Endpoint : IDisposable
    {
        protected readonly MuseContext context;
        private readonly bool ownsContext;
        protected ulong handle;

        protected Endpoint(MuseContext context)
        {
            ownsContext = context == null;
            this.context = context ?? new MuseContext();
        }

        /// <summary>The context that the endpoint lives in.</summary>
        public MuseContext Context { get { return context; } }

        /// <summary>Receives what has arrived.</summary>
        public void Poll() { context.Check(Native.muse_poll(context.Handle, handle)); }

        /// <summary>Sends what is to be sent.</summary>
        public void Flush() { context.Check(Native.muse_flush(context.Handle, handle)); }

        /// <summary>Flushes and sleeps until something arrives or is due; whether something arrived.</summary>
        public bool Wait(ulong timeoutUs)
        {
            Status status = Native.muse_wait(context.Handle, handle, timeoutUs);
            context.Check(status);
            return status == Status.Ok;
        }

        /// <summary>Gives the next event; false when there is none. The payload is readable until the next call.</summary>
        public bool NextEvent(out MuseEvent happened)
        {
            Native.Event native;
            Status status = Native.muse_next_event(context.Handle, handle, &native);
            if (status != Status.Ok)
            {
                context.Check(status);
                happened = default(MuseEvent);
                return false;
            }
            happened.Kind = (EventKind)native.Kind;
            happened.Channel = native.Channel;
            happened.Reason = native.Reason;
            happened.Code = native.Code;
            happened.Connection = native.Connection;
            happened.Account = native.Account;
            happened.Message = native.Message;
            happened.Payload = new Payload(native.Payload, native.PayloadLen);
            happened.Extra = new Payload(native.Extra, native.ExtraLen);
            happened.Address = new Payload(native.Address, native.AddressLen);
            return true;
        }

        /// <summary>Sends a message. A full queue or a closed connection is an answer, not an exception.</summary>
        public Status Send(ulong connection, byte channel, byte[] payload, int offset, int count)
        {
            if (payload == null) throw new ArgumentNullException("payload");
            if (offset < 0 || count < 0 || payload.Length - offset < count) throw new ArgumentOutOfRangeException("count");
            fixed (byte* start = payload)
            {
                return Native.muse_send(context.Handle, handle, connection, channel, start + offset, (UIntPtr)count, null, null);
            }
        }

        /// <summary>Sends a message.</summary>
        public Status Send(ulong connection, byte channel, byte[] payload)
        {
            if (payload == null) throw new ArgumentNullException("payload");
            return Send(connection, channel, payload, 0, payload.Length);
        }

        /// <summary>Sends a message with a priority, a deadline (by <see cref="NowUs"/>, 0 for none) or a receipt, whose number it tells.</summary>
        public Status SendWith(ulong connection, byte channel, byte[] payload, int count, Priority priority, ulong deadlineUs, bool receipt, out ulong message)
        {
            if (payload == null) throw new ArgumentNullException("payload");
            if (count < 0 || payload.Length < count) throw new ArgumentOutOfRangeException("count");
            var options = new Native.SendOptions { DeadlineUs = deadlineUs, Priority = (byte)priority, Receipt = (byte)(receipt ? 1 : 0) };
            ulong number = 0;
            Status status;
            fixed (byte* start = payload)
            {
                status = Native.muse_send(context.Handle, handle, connection, channel, start, (UIntPtr)count, &options, &number);
            }
            message = number;
            return status;
        }

        /// <summary>Sends back what is still in the library's memory, without a copy in between.</summary>
        public Status Send(ulong connection, byte channel, Payload payload)
        {
            return payload.SendTo(context.Handle, handle, connection, channel);
        }

#if NETSTANDARD2_1 || UNITY_2021_2_OR_NEWER
        /// <summary>Sends a message.</summary>
        public Status Send(ulong connection, byte channel, ReadOnlySpan<byte> payload)
        {
            fixed (byte* start = payload)
            {
                return Native.muse_send(context.Handle, handle, connection, channel, start, (UIntPtr)payload.Length, null, null);
            }
        }
#endif

        /// <summary>Sends a message to every connection and says how many took it.</summary>
        public int Broadcast(byte channel, byte[] payload, int count)
        {
            if (payload == null) throw new ArgumentNullException("payload");
            if (count < 0 || payload.Length < count) throw new ArgumentOutOfRangeException("count");
            UIntPtr sent;
            fixed (byte* start = payload)
            {
                context.Check(Native.muse_broadcast(context.Handle, handle, channel, start, (UIntPtr)count, out sent));
            }
            return (int)sent;
        }

        /// <summary>Closes a connection at once and tells the peer why.</summary>
        public void Close(ulong connection, ushort code = 0, string text = "")
        {
            fixed (byte* words = MuseContext.Text(text)) context.Check(Native.muse_close(context.Handle, handle, connection, code, words));
        }

        /// <summary>Closes a connection once everything reliable has arrived.</summary>
        public void Finish(ulong connection, ushort code = 0, string text = "")
        {
            fixed (byte* words = MuseContext.Text(text)) context.Check(Native.muse_finish(context.Handle, handle, connection, code, words));
        }

        /// <summary>The endpoint's time in microseconds, of its last poll or flush.</summary>
        public ulong NowUs
        {
            get
            {
                ulong now;
                context.Check(Native.muse_now(context.Handle, handle, out now));
                return now;
            }
        }

        /// <summary>State and counters of a connection; false when there is none.</summary>
        public bool TryStats(ulong connection, out ConnectionStats stats)
        {
            return Native.muse_stats(context.Handle, handle, connection, out stats) == Status.Ok;
        }

        /// <summary>Counters of one channel of a connection; false when there is none.</summary>
        public bool TryChannelStats(ulong connection, byte channel, out ChannelStats stats)
        {
            return Native.muse_channel_stats(context.Handle, handle, connection, channel, out stats) == Status.Ok;
        }

        /// <summary>The bytes that a connection may send, now and in ticks of this length; false when there is none.</summary>
        public bool TryBudget(ulong connection, ulong tickUs, out Budget budget)
        {
            return Native.muse_budget(context.Handle, handle, connection, tickUs, out budget) == Status.Ok;
        }

        /// <summary>The socket's own address.</summary>
        public string LocalAddress
        {
            get
            {
                var buffer = new byte[64];
                UIntPtr len;
                fixed (byte* place = buffer) context.Check(Native.muse_local_address(context.Handle, handle, place, (UIntPtr)buffer.Length, out len));
                return Encoding.UTF8.GetString(buffer, 0, (int)len);
            }
        }

        /// <summary>Appends the secrets of connections made from now on to a file, for an analyser. Whoever has them can read everything, so a file that others can read is refused.</summary>
        public void DangerKeyLog(string path)
        {
            fixed (byte* text = MuseContext.Text(path)) context.Check(Native.muse_danger_key_log(context.Handle, handle, text));
        }

        /// <summary>Closes every connection and the socket.</summary>
        public virtual void Dispose()
        {
            if (handle == 0) return;
            // A context that was disposed of has closed everything already.
            if (context.Handle != IntPtr.Zero) Native.muse_destroy(context.Handle, handle);
            handle = 0;
            if (ownsContext) context.Dispose();
        }
    }

    /// <summary>A server.</summary>
    public sealed unsafe class MuseServer : Endpoint
    {
        /// <summary>Listens at an address such as "[::]:7000", in a context of its own unless one is given.</summary>
        public MuseServer(string address, Config config, ServerOptions options, MuseContext context = null) : base(context)
        {
            MuseContext.RequireKey(options.Key);
            var keys = new Native.TokenKey[options.TokenKeys.Count + 1];
            int count = 0;
            foreach (var pair in options.TokenKeys)
            {
                MuseContext.RequireKey(pair.Value);
                keys[count].KeyId = pair.Key;
                fixed (byte* place = keys[count].PublicKey)
                {
                    for (int index = 0; index < 32; index++) place[index] = pair.Value[index];
                }
                count++;
            }
            fixed (byte* text = MuseContext.Text(address))
            fixed (byte* key = options.Key)
            fixed (Native.TokenKey* trusted = keys)
            fixed (Native.Channel* channels = config.NativeChannels())
            fixed (byte* shared = MuseContext.Text(config.Shared ?? ""))
            {
                Native.Config native = config.ToNative(channels, shared);
                var server = new Native.ServerOptions
                {
                    Key = key,
                    TokenKeys = trusted,
                    TokenKeyCount = (UIntPtr)count,
                    DangerAllowInsecure = (byte)(options.DangerAllowInsecure ? 1 : 0),
                    Asks = (byte)(options.Asks ? 1 : 0),
                    PendingMax = options.PendingMax,
                    DecisionTimeoutUs = options.DecisionTimeoutUs,
                };
                this.context.Check(Native.muse_server_new(this.context.Handle, text, &native, &server, out handle));
            }
        }

        /// <summary>Lets a client in that asks. One that no longer asks is an answer (<see cref="Status.ErrorNoConnection"/>), not an exception.</summary>
        public Status Admit(ulong connection) { return Native.muse_admit(context.Handle, handle, connection); }

        /// <summary>Refuses a client that asks, which reads the code and the first 128 bytes of the text.</summary>
        public Status Deny(ulong connection, ushort code, string text)
        {
            fixed (byte* words = MuseContext.Text(text)) return Native.muse_deny(context.Handle, handle, connection, code, words);
        }
    }

    /// <summary>A client: one connection to one server.</summary>
    public sealed unsafe class MuseClient : Endpoint
    {
        /// <summary>The id of the connection, which events carry.</summary>
        public readonly ulong Connection;

        /// <summary>Begins to connect; an event says how it went. In a context of its own unless one is given.</summary>
        public MuseClient(string address, Config config, ConnectOptions options, MuseContext context = null) : base(context)
        {
            byte[] nothing = new byte[1];
            byte[] hello = options.Hello ?? nothing;
            if (options.Token == null && !options.DangerInsecure) MuseContext.RequireKey(options.ServerKey);
            fixed (byte* text = MuseContext.Text(address))
            fixed (byte* key = options.ServerKey ?? nothing)
            fixed (byte* token = MuseContext.Text(options.Token ?? ""))
            fixed (byte* said = hello.Length == 0 ? nothing : hello)
            fixed (Native.Channel* channels = config.NativeChannels())
            fixed (byte* shared = MuseContext.Text(config.Shared ?? ""))
            {
                Native.Config native = config.ToNative(channels, shared);
                var connect = new Native.Connect
                {
                    Trust = options.DangerInsecure ? 2UL : options.Token != null ? 1UL : 0UL,
                    ServerKey = key,
                    Token = token,
                    Hello = said,
                    HelloLen = (UIntPtr)(options.Hello == null ? 0 : options.Hello.Length),
                    TimeoutUs = options.TimeoutUs,
                };
                this.context.Check(Native.muse_client_new(this.context.Handle, text, &native, &connect, out handle, out Connection));
            }
        }

        /// <summary>Sends a message to the server.</summary>
        public Status Send(byte channel, byte[] payload) { return Send(Connection, channel, payload); }
    }
}
