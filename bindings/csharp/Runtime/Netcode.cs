using System;
using System.Text;

namespace Muse
{
    /// <summary>The task that a clock asks for.</summary>
    public enum Due : byte
    {
        Nothing = 0,
        /// <summary>Write a packet without an input.</summary>
        Probe = 1,
        /// <summary>Simulate the tick and write a packet with its input.</summary>
        Tick = 2,
        /// <summary>Write a packet once more.</summary>
        Copy = 3,
    }

    /// <summary>The origin of a player's input for a tick.</summary>
    public enum InputKind : byte
    {
        Received = 1,
        Repeated = 2,
        Missing = 3,
    }

    /// <summary>The origin of a shown state.</summary>
    public enum Source : byte
    {
        Nowhere = 0,
        Between = 1,
        First = 2,
        Beyond = 3,
        Stopped = 4,
    }

    /// <summary>Something in a context that is destroyed when it is disposed of.</summary>
    public abstract class Thing : IDisposable
    {
        protected readonly MuseContext context;
        protected ulong handle;

        protected Thing(MuseContext context)
        {
            if (context == null) throw new ArgumentNullException("context");
            this.context = context;
        }

        public void Dispose()
        {
            if (handle != 0 && context.Handle != IntPtr.Zero) Native.muse_destroy(context.Handle, handle);
            handle = 0;
        }
    }

    /// <summary>A client's clock, steered by the server's reports, and the packets with its inputs.</summary>
    public sealed unsafe class Clock : Thing
    {
        /// <summary>Longest input of a tick.</summary>
        public const int InputMax = 60;
        /// <summary>Room that every packet fits into.</summary>
        public const int PacketMax = 1024;

        public Clock(MuseContext context, ulong tickUs) : base(context)
        {
            context.Check(Native.muse_clock_new(context.Handle, tickUs, out handle));
        }

        /// <summary>A snapshot of `tick` arrived, with the report that <see cref="Inputs.Report"/> wrote at these bytes of it.</summary>
        public void Snapshot(ulong nowUs, uint tick, byte[] report, int offset, int count)
        {
            if (offset < 0 || count < 0 || report.Length - offset < count) throw new ArgumentOutOfRangeException("count");
            fixed (byte* start = report) context.Check(Native.muse_clock_snapshot(context.Handle, handle, nowUs, tick, start + offset, (UIntPtr)count));
        }

        /// <summary>Gives the next task that is due; each asks for a <see cref="Write"/>.</summary>
        public Due Poll(ulong nowUs, out uint tick)
        {
            byte due;
            Status status = Native.muse_clock_poll(context.Handle, handle, nowUs, out due, out tick);
            context.Check(status);
            return status == Status.Ok ? (Due)due : Due.Nothing;
        }

        /// <summary>Writes the packet that is due to `packet`; `input` is null unless a tick is. Says how long it is.</summary>
        public int Write(ulong nowUs, uint tick, byte[] input, int inputCount, byte[] packet)
        {
            if (input != null && (inputCount < 0 || inputCount > input.Length)) throw new ArgumentOutOfRangeException("inputCount");
            UIntPtr len;
            fixed (byte* from = input)
            fixed (byte* to = packet)
            {
                UIntPtr count = (UIntPtr)(input == null ? 0 : inputCount);
                context.Check(Native.muse_clock_write(context.Handle, handle, nowUs, tick, from, count, to, (UIntPtr)packet.Length, out len));
            }
            return (int)len;
        }

        /// <summary>The state of the clock, as of its last poll.</summary>
        public ClockState State
        {
            get
            {
                ClockState state;
                context.Check(Native.muse_clock_read(context.Handle, handle, out state));
                return state;
            }
        }
    }

    /// <summary>One client's inputs on the server.</summary>
    public sealed unsafe class Inputs : Thing
    {
        public Inputs(MuseContext context, ulong tickUs, uint nextTick) : base(context)
        {
            context.Check(Native.muse_inputs_new(context.Handle, tickUs, nextTick, out handle));
        }

        /// <summary>A packet of the client's clock arrived; false for one that is none.</summary>
        public bool Packet(ulong nowUs, byte[] packet, int count)
        {
            if (count < 0 || count > packet.Length) throw new ArgumentOutOfRangeException("count");
            fixed (byte* start = packet) return Native.muse_inputs_packet(context.Handle, handle, nowUs, start, (UIntPtr)count) == Status.Ok;
        }

        /// <summary>Takes the input of a tick that was due at this time; `input` has at least <see cref="Clock.InputMax"/> bytes.</summary>
        public InputKind Take(uint tick, ulong dueUs, byte[] input, out int count)
        {
            UIntPtr len;
            byte kind;
            fixed (byte* place = input) context.Check(Native.muse_inputs_take(context.Handle, handle, tick, dueUs, place, (UIntPtr)input.Length, out len, out kind));
            count = (int)len;
            return (InputKind)kind;
        }

        /// <summary>Writes the report for the client in the snapshot of the tick that was due at this time, and says how long it is.</summary>
        public int Report(ulong nowUs, ulong dueUs, byte[] report)
        {
            UIntPtr len;
            fixed (byte* place = report) context.Check(Native.muse_inputs_report(context.Handle, handle, nowUs, dueUs, place, (UIntPtr)report.Length, out len));
            return (int)len;
        }
    }

    /// <summary>The instant of the past at which others are shown: as late as the arrival of snapshots asks for, and no later.</summary>
    public sealed class Playback : Thing
    {
        public Playback(MuseContext context, ulong tickUs) : base(context)
        {
            context.Check(Native.muse_playback_new(context.Handle, tickUs, out handle));
        }

        /// <summary>A snapshot of `tick` arrived; `number` counts them and wraps.</summary>
        public void Snapshot(ulong nowUs, uint tick, ushort number)
        {
            context.Check(Native.muse_playback_snapshot(context.Handle, handle, nowUs, tick, number));
        }

        /// <summary>Lets the time until now pass; false before the first snapshot.</summary>
        public bool Advance(ulong nowUs, out PlaybackState state)
        {
            Status status = Native.muse_playback_advance(context.Handle, handle, nowUs, out state);
            context.Check(status);
            return status == Status.Ok;
        }
    }

    /// <summary>The last states of one entity, and the way between them.</summary>
    public sealed class Interpolation : Thing
    {
        /// <summary>With `useVelocity` along the curve that has the velocities, else in straight lines.</summary>
        public Interpolation(MuseContext context, ulong tickUs, bool useVelocity = false, ulong beyondMaxUs = 0) : base(context)
        {
            context.Check(Native.muse_interpolation_new(context.Handle, tickUs, (byte)(useVelocity ? 1 : 0), beyondMaxUs, out handle));
        }

        /// <summary>A state arrived, in any order; false when it is of no use any more.</summary>
        public bool Push(uint tick, ref Pose pose)
        {
            Status status = Native.muse_interpolation_push(context.Handle, handle, tick, ref pose);
            context.Check(status);
            return status == Status.Ok;
        }

        /// <summary>Gives the pose to draw at the instant that <see cref="Playback"/> tells.</summary>
        public Source Show(double ticks, out Pose pose)
        {
            byte source;
            Status status = Native.muse_interpolation_show(context.Handle, handle, ticks, out pose, out source);
            context.Check(status);
            return status == Status.Ok ? (Source)source : Source.Nowhere;
        }
    }

    /// <summary>Makes connect tokens, on a master server.</summary>
    public sealed unsafe class TokenIssuer : Thing
    {
        /// <summary>With a seed of 32 secret bytes, or with a new key that is kept nowhere.</summary>
        public TokenIssuer(MuseContext context, ulong protocol, uint keyId, byte[] seed = null) : base(context)
        {
            if (seed != null) MuseContext.RequireKey(seed);
            fixed (byte* start = seed) context.Check(Native.muse_issuer_new(context.Handle, protocol, keyId, start, out handle));
        }

        /// <summary>The public key, which servers are told with the key's number.</summary>
        public byte[] PublicKey
        {
            get
            {
                var key = new byte[32];
                fixed (byte* place = key) context.Check(Native.muse_issuer_public_key(context.Handle, handle, place));
                return key;
            }
        }

        /// <summary>A token that lets `account` into the server with this public key, as text. Treat it like a password.</summary>
        public string Issue(ulong account, byte[] serverKey, string serverAddress, byte[] userData = null, ulong lifetimeS = 0)
        {
            MuseContext.RequireKey(serverKey);
            var text = new byte[1024];
            var grant = new Native.Grant { Account = account, LifetimeS = lifetimeS };
            for (int index = 0; index < 32; index++) grant.ServerKey[index] = serverKey[index];
            UIntPtr len;
            fixed (byte* address = MuseContext.Text(serverAddress))
            fixed (byte* data = userData)
            fixed (byte* place = text)
            {
                grant.ServerAddress = address;
                grant.UserData = data;
                grant.UserDataLen = (UIntPtr)(userData == null ? 0 : userData.Length);
                context.Check(Native.muse_issue(context.Handle, handle, &grant, place, (UIntPtr)text.Length, out len));
            }
            return Encoding.UTF8.GetString(text, 0, (int)len);
        }
    }
}
