using System;
using System.Text;

namespace Muse
{
    /// <summary>A call failed for a reason that the program should not go on from.</summary>
    public sealed class MuseException : Exception
    {
        /// <summary>The answer of the library.</summary>
        public Status Status { get; private set; }

        internal MuseException(Status status, string text) : base(text) { Status = status; }
    }

    /// <summary>
    /// Owns endpoints, clocks and everything else that is made with it. Calls with one context must not overlap: use one per thread. Disposing of
    /// it closes everything that was made with it.
    /// </summary>
    public sealed unsafe class MuseContext : IDisposable
    {
        internal IntPtr Handle { get; private set; }

        /// <summary>A context of its own.</summary>
        public MuseContext()
        {
            uint version = Native.muse_abi_version() >> 16;
            if (version != Native.AbiVersion)
            {
                throw new MuseException(Status.ErrorArgument, "libmuse has interface " + version + ", this package needs " + Native.AbiVersion);
            }
            Handle = Native.muse_new();
        }

        ~MuseContext() { Free(); }

        /// <summary>Closes everything that was made with this context; peers are told.</summary>
        public void Dispose()
        {
            Free();
            GC.SuppressFinalize(this);
        }

        /// <summary>A new private key for a server, 32 bytes; keep it in a safe place.</summary>
        public byte[] NewKey()
        {
            var key = new byte[32];
            fixed (byte* place = key) Check(Native.muse_key_new(Handle, place));
            return key;
        }

        /// <summary>The server's private key in this file, which is made if it is not there.</summary>
        public byte[] LoadOrCreateKey(string path)
        {
            var key = new byte[32];
            fixed (byte* place = key)
            fixed (byte* text = Text(path)) Check(Native.muse_key_load_or_create(Handle, text, place));
            return key;
        }

        /// <summary>The public key of a server's private key, which clients are told.</summary>
        public byte[] PublicKey(byte[] key)
        {
            RequireKey(key);
            var publicKey = new byte[32];
            fixed (byte* from = key)
            fixed (byte* place = publicKey) Check(Native.muse_key_public(Handle, from, place));
            return publicKey;
        }

        /// <summary>The public key that 64 hexadecimal digits stand for.</summary>
        public byte[] ParseKey(string digits)
        {
            var publicKey = new byte[32];
            fixed (byte* place = publicKey)
            fixed (byte* text = Text(digits)) Check(Native.muse_key_parse(Handle, text, place));
            return publicKey;
        }

        internal void Check(Status status)
        {
            if (status < 0) throw Failure(status);
        }

        internal MuseException Failure(Status status)
        {
            string text = null;
            UIntPtr len;
            var buffer = new byte[512];
            fixed (byte* place = buffer)
            {
                if (Handle != IntPtr.Zero && Native.muse_error_text(Handle, place, (UIntPtr)buffer.Length, out len) == Status.Ok)
                {
                    text = Encoding.UTF8.GetString(buffer, 0, (int)len);
                }
            }
            return new MuseException(status, status + (string.IsNullOrEmpty(text) ? "" : ": " + text));
        }

        internal static void RequireKey(byte[] key)
        {
            if (key == null || key.Length != 32) throw new ArgumentException("a key has 32 bytes");
        }

        /// <summary>A text as C wants it.</summary>
        internal static byte[] Text(string text)
        {
            if (text == null) throw new ArgumentNullException("text");
            var bytes = new byte[Encoding.UTF8.GetByteCount(text) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        private void Free()
        {
            if (Handle == IntPtr.Zero) return;
            Native.muse_free(Handle);
            Handle = IntPtr.Zero;
        }
    }
}
