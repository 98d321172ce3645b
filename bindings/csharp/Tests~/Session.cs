// The session of bindings/capi/examples/session in C#: prints the same lines as the client in Rust. Usage: Session.exe ADDRESS KEY
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using Muse;

internal static class Session
{
    private const uint Numbers = 200;
    private const uint After = 10;
    private const int Large = 1 << 20;
    private const byte Ordered = 4;

    private static int Main(string[] words)
    {
        if (words.Length != 2)
        {
            Console.Error.WriteLine("usage: Session.exe ADDRESS KEY");
            return 2;
        }
        try
        {
            using (var player = new Player(words[0], words[1], "first"))
            {
                player.SendNumbers();
                player.SendLarge();
                player.Cut();
                player.Client.Finish(player.Client.Connection, 7, "bye");
                player.Until("closed", () => player.Closed != null);
                Console.WriteLine("closed by us: " + Truth(player.Closed == CloseReason.ByUs));
            }
            using (var player = new Player(words[0], words[1], "second"))
            {
                player.Send(Ordered, new[] { (byte)'H' });
                player.Until("hello", () => player.Texts.Count > 0);
                player.PrintTexts();
                ulong message;
                byte[] number = Numbered(0);
                player.Client.SendWith(player.Client.Connection, Ordered, number, number.Length, Priority.Default, 0, true, out message);
                player.Until("receipt", () => player.Receipt != null);
                Console.WriteLine("receipt: delivered: " + Truth(player.Receipt == Outcome.Delivered));
                Console.WriteLine("done");
            }
            return 0;
        }
        catch (Exception error)
        {
            Console.Error.WriteLine("session: " + error.Message);
            return 1;
        }
    }

    private static string Truth(bool value) { return value ? "true" : "false"; }

    private static byte[] Numbered(uint number)
    {
        byte[] message = Enumerable.Repeat((byte)number, 24).ToArray();
        message[0] = (byte)'N';
        for (int index = 0; index < 4; index++) message[1 + index] = (byte)(number >> 8 * index);
        return message;
    }

    private static ulong Digest(Payload payload)
    {
        ulong hash = 0xCBF29CE484222325;
        for (int index = 0; index < payload.Length; index++) hash = unchecked((hash ^ payload[index]) * 0x100000001B3);
        return hash;
    }

    private sealed class Player : IDisposable
    {
        public readonly MuseClient Client;
        public CloseReason? Closed;
        public Outcome? Receipt;
        public readonly List<string> Texts = new List<string>();
        private readonly List<uint>[] echoes = Enumerable.Range(0, 6).Select(_ => new List<uint>()).ToArray();
        private readonly List<uint> after = new List<uint>();
        private bool connected, interrupted, resumed;
        private string large;

        public Player(string address, string key, string hello)
        {
            Config config = Config.EveryMode(0x6D7573650009);
            config.Shared = "large message 1048577 bytes\nsession rules 1";
            config.Channels[5].Percent = 80;
            config.KeepAliveUs = 100000;
            config.SilenceUs = 300000;
            config.ResumeWithinUs = 20000000;
            var context = new MuseContext();
            var options = new ConnectOptions { ServerKey = context.ParseKey(key), Hello = Encoding.UTF8.GetBytes(hello) };
            Client = new MuseClient(address, config, options, context);
            Until("connected", () => connected);
            Console.WriteLine("connected");
        }

        public void Dispose() { Client.Context.Dispose(); }

        public void Send(byte channel, byte[] payload)
        {
            Status status = Client.Send(channel, payload);
            if (status != Status.Ok) throw new Exception("send: " + status);
        }

        public void Until(string what, Func<bool> done)
        {
            Stopwatch watch = Stopwatch.StartNew();
            while (!done())
            {
                Turn();
                if (watch.Elapsed.TotalSeconds > 60) throw new Exception("waited too long: " + what);
            }
        }

        public void SendNumbers()
        {
            for (uint number = 0; number < Numbers; number++)
            {
                byte[] message = Numbered(number);
                for (byte channel = 0; channel < 6; channel++) Send(channel, message);
                Turn();
            }
            Until("echoes", EchoesAreComplete);
            Send(Ordered, new[] { (byte)'R' });
            Until("report", () => Texts.Count == 6);
            PrintTexts();
            Print("unreliable: none twice, most there", EachOnce(echoes[0]) && echoes[0].Count > Numbers / 2);
            Print("sequenced: ascending", Ascending(echoes[1]));
            Print("reliable unordered: " + echoes[2].Count + " of " + Numbers + ", each once", EachOnce(echoes[2]));
            Print("reliable sequenced: ascending up to " + echoes[3].Last(), Ascending(echoes[3]));
            Print("reliable ordered: " + echoes[4].Count + " of " + Numbers + " in order", InOrder(echoes[4], 0, Numbers));
            Print("partially reliable: ascending, as many as promised", Ascending(echoes[5]));
        }

        public void SendLarge()
        {
            var message = new byte[Large + 1];
            message[0] = (byte)'L';
            uint seed = 1;
            for (int index = 1; index <= Large; index++)
            {
                seed = unchecked(seed * 1664525 + 1013904223);
                message[index] = (byte)(seed >> 24);
            }
            Send(Ordered, message);
            Until("large", () => large != null);
            PrintTexts();
            Console.WriteLine("large: " + large);
        }

        public void Cut()
        {
            Send(Ordered, new[] { (byte)'C' });
            Until("interrupted", () => interrupted);
            Console.WriteLine("interrupted");
            for (uint number = Numbers; number < Numbers + After; number++) Send(Ordered, Numbered(number));
            Until("resumed", () => resumed);
            Console.WriteLine("resumed");
            Until("after", () => after.Count == After);
            Console.WriteLine("after the cut: " + After + " in order: " + Truth(InOrder(after, Numbers, After)));
        }

        public void PrintTexts()
        {
            foreach (string text in Texts) Console.WriteLine("server: " + text);
            Texts.Clear();
        }

        private void Turn()
        {
            Client.Wait(2000);
            Client.Poll();
            MuseEvent happened;
            while (Client.NextEvent(out happened)) Take(ref happened);
            Client.Flush();
        }

        private void Take(ref MuseEvent happened)
        {
            switch (happened.Kind)
            {
                case EventKind.Connected: connected = true; break;
                case EventKind.Interrupted: interrupted = true; break;
                case EventKind.Resumed: resumed = interrupted; break;
                case EventKind.Closed: Closed = (CloseReason)happened.Reason; break;
                case EventKind.Receipt: Receipt = (Outcome)happened.Reason; break;
                case EventKind.Message: TakeMessage(happened.Channel, happened.Payload); break;
                default: throw new Exception("an event that does not belong here: " + happened.Kind);
            }
        }

        private void TakeMessage(byte channel, Payload payload)
        {
            switch ((char)payload[0])
            {
                case 'T':
                    Texts.Add(payload.Slice(1).ToText());
                    break;
                case 'L':
                    large = payload.Length + " bytes, digest " + Digest(payload).ToString("x16");
                    break;
                case 'N':
                    uint number = payload.ReadUInt32(1);
                    (number >= Numbers ? after : echoes[channel]).Add(number);
                    break;
                default:
                    throw new Exception("a message that nobody sent");
            }
        }

        private bool EchoesAreComplete()
        {
            bool newest = echoes[3].Count > 0 && echoes[3].Last() == Numbers - 1;
            return echoes[2].Count >= Numbers && newest && echoes[4].Count >= Numbers && echoes[5].Count >= Numbers / 2;
        }

        private static void Print(string what, bool good) { Console.WriteLine("echo: " + what + ": " + (good ? "ok" : "broken")); }

        private static bool Ascending(List<uint> numbers) { return numbers.Zip(numbers.Skip(1), (one, two) => one < two).All(good => good); }

        private static bool EachOnce(List<uint> numbers) { return numbers.Distinct().Count() == numbers.Count; }

        private static bool InOrder(List<uint> numbers, uint from, uint count)
        {
            return numbers.SequenceEqual(Enumerable.Range((int)from, (int)count).Select(number => (uint)number));
        }
    }
}
