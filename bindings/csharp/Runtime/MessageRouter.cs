using System;
using System.Collections.Generic;

namespace Muse
{
    /// <summary>Takes one message of a type: who sent it, on which channel, and its bytes behind the type.</summary>
    public delegate void MessageHandler(ulong connection, byte channel, Payload payload);

    /// <summary>Decides about a client that asks, at once or later: who it is stands in the event.</summary>
    public delegate void AskingHandler(ref MuseEvent asking);

    /// <summary>
    /// A handler per message type, as MUSE-RP had: a message is its type in two bytes (little-endian, the same place in which Rust's typed messages
    /// have their id) and its content. Finding the handler and writing the type allocate nothing.
    /// </summary>
    public sealed class MessageRouter
    {
        private readonly Dictionary<ushort, MessageHandler> handlers = new Dictionary<ushort, MessageHandler>();

        /// <summary>Messages that nobody wanted, or that were too short to have a type.</summary>
        public ulong Unhandled { get; private set; }

        /// <summary>A connection was made.</summary>
        public event Action<ulong> Connected;
        /// <summary>A connection is over, and why.</summary>
        public event Action<ulong, CloseReason> Closed;
        /// <summary>Our attempt to connect failed, and why.</summary>
        public event Action<ulong, string> Failed;
        /// <summary>Nothing has been heard for a while (true), or the peer is back (false).</summary>
        public event Action<ulong, bool> Interrupted;
        /// <summary>A client asks to be let in, at a server with <see cref="ServerOptions.Asks"/>.</summary>
        public event AskingHandler Asking;

        /// <summary>Gives messages of a type to a handler from now on; one per type.</summary>
        public void AddHandler(ushort type, MessageHandler handler)
        {
            if (handler == null) throw new ArgumentNullException("handler");
            handlers.Add(type, handler);
        }

        /// <summary>No longer takes messages of a type.</summary>
        public bool RemoveHandler(ushort type) { return handlers.Remove(type); }

        /// <summary>One turn of a game loop: receives what arrived, calls the handlers, sends what is to be sent.</summary>
        public void Tick(Endpoint endpoint)
        {
            endpoint.Poll();
            MuseEvent happened;
            while (endpoint.NextEvent(out happened)) Dispatch(ref happened);
            endpoint.Flush();
        }

        /// <summary>Calls the handler of one event.</summary>
        public void Dispatch(ref MuseEvent happened)
        {
            switch (happened.Kind)
            {
                case EventKind.Message:
                    MessageHandler handler;
                    if (happened.Payload.Length >= 2 && handlers.TryGetValue(happened.Payload.ReadUInt16(0), out handler))
                    {
                        handler(happened.Connection, happened.Channel, happened.Payload.Slice(2));
                    }
                    else
                    {
                        Unhandled++;
                    }
                    break;
                case EventKind.Connected:
                    if (Connected != null) Connected(happened.Connection);
                    break;
                case EventKind.Closed:
                    if (Closed != null) Closed(happened.Connection, (CloseReason)happened.Reason);
                    break;
                case EventKind.Asking:
                    if (Asking != null) Asking(ref happened);
                    break;
                case EventKind.Refused:
                    if (Failed != null) Failed(happened.Connection, happened.Payload.ToText());
                    break;
                case EventKind.Unanswered:
                    if (Failed != null) Failed(happened.Connection, "no answer");
                    break;
                case EventKind.Interrupted:
                case EventKind.Resumed:
                    if (Interrupted != null) Interrupted(happened.Connection, happened.Kind == EventKind.Interrupted);
                    break;
            }
        }
    }

    /// <summary>Writes a message into a buffer that is used again and again. `Begin` starts a message with its type.</summary>
    public sealed class MessageWriter
    {
        /// <summary>The bytes written so far are at its front.</summary>
        public byte[] Buffer { get; private set; }
        /// <summary>Number of bytes written.</summary>
        public int Length { get; private set; }

        /// <summary>A writer whose buffer grows beyond `capacity` only if a message needs it.</summary>
        public MessageWriter(int capacity = 1024) { Buffer = new byte[Math.Max(capacity, 16)]; }

        /// <summary>Begins a message of this type.</summary>
        public MessageWriter Begin(ushort type)
        {
            Length = 0;
            return Write(type);
        }

        public MessageWriter Write(byte value)
        {
            Reserve(1);
            Buffer[Length++] = value;
            return this;
        }

        public MessageWriter Write(ushort value) { return Write((byte)value).Write((byte)(value >> 8)); }

        public MessageWriter Write(uint value) { return Write((ushort)value).Write((ushort)(value >> 16)); }

        public MessageWriter Write(ulong value) { return Write((uint)value).Write((uint)(value >> 32)); }

        public unsafe MessageWriter Write(float value) { return Write(*(uint*)&value); }

        public MessageWriter Write(byte[] bytes, int offset, int count)
        {
            Reserve(count);
            System.Buffer.BlockCopy(bytes, offset, Buffer, Length, count);
            Length += count;
            return this;
        }

        /// <summary>Sends what was written.</summary>
        public Status Send(Endpoint endpoint, ulong connection, byte channel)
        {
            return endpoint.Send(connection, channel, Buffer, 0, Length);
        }

        private void Reserve(int count)
        {
            if (Buffer.Length - Length >= count) return;
            var larger = new byte[Math.Max(Buffer.Length * 2, Length + count)];
            System.Buffer.BlockCopy(Buffer, 0, larger, 0, Length);
            Buffer = larger;
        }
    }
}
