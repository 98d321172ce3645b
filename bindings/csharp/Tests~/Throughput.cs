// Messages a second through the wrapper, both ways, and what the collector has to do for them. Usage: Throughput.exe [SECONDS [MESSAGES_PER_SECOND]]
//
// A server and a client in one process over loopback. The client sends messages of 32 bytes with a type, the server's handler sends each back, and
// the client's handler counts it. The first second is warm-up; after it nothing may be allocated. The rate is a bar only if one is given: it depends on the
// machine.
using System;
using System.Diagnostics;
using Muse;

internal static class Throughput
{
    private const int Batch = 500;
    private const int InFlightMax = 4000;

    private static int Main(string[] words)
    {
        double seconds = words.Length > 0 ? double.Parse(words[0]) : 3;
        double rateMin = words.Length > 1 ? double.Parse(words[1]) : 1;
        var config = new Config { Protocol = 0x7468726F, Channels = new[] { new ChannelConfig(Delivery.ReliableUnordered) } };
        using (var context = new MuseContext())
        {
            byte[] key = context.NewKey();
            var server = new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = key }, context);
            var client = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = context.PublicKey(key) }, context);
            return Run(server, client, seconds, rateMin);
        }
    }

    private static int Run(MuseServer server, MuseClient client, double seconds, double rateMin)
    {
        var here = new MessageRouter();
        var there = new MessageRouter();
        var writer = new MessageWriter();
        var answer = new MessageWriter();
        ulong sent = 0, received = 0, wrong = 0;
        bool connected = false;
        here.Connected += _ => connected = true;
        here.AddHandler(8, (connection, channel, payload) =>
        {
            wrong += payload.Length == 30 && payload.ReadUInt64(0) < sent ? 0UL : 1UL;
            received++;
        });
        there.AddHandler(7, (connection, channel, payload) =>
        {
            answer.Begin(8);
            for (int at = 0; at + 8 <= payload.Length; at += 8) answer.Write(payload.ReadUInt64(at));
            while (answer.Length < 32) answer.Write((byte)0);
            answer.Send(server, connection, channel);
        });
        var watch = Stopwatch.StartNew();
        long from = -1, memory = 0;
        int collections = 0;
        ulong receivedFrom = 0;
        while (from < 0 || watch.ElapsedMilliseconds - from < seconds * 1000)
        {
            if (from < 0 && watch.ElapsedMilliseconds > 1000 && connected)
            {
                from = watch.ElapsedMilliseconds;
                memory = GC.GetTotalMemory(true);
                collections = GC.CollectionCount(0);
                receivedFrom = received;
            }
            if (watch.ElapsedMilliseconds > 20000 + seconds * 1000) break;
            for (int index = 0; connected && index < Batch && sent - received < InFlightMax; index++)
            {
                writer.Begin(7).Write(sent).Write(0UL).Write(0UL);
                while (writer.Length < 32) writer.Write((byte)0);
                if (writer.Send(client, client.Connection, 0) != Status.Ok) break;
                sent++;
            }
            client.Flush();
            there.Tick(server);
            here.Tick(client);
        }
        int collected = GC.CollectionCount(0) - collections;
        long grown = GC.GetTotalMemory(false) - memory;
        double elapsed = (watch.ElapsedMilliseconds - from) / 1000.0;
        double rate = (received - receivedFrom) / elapsed;
        Console.WriteLine("throughput: {0:0} messages/s there and back ({1} in {2:0.0} s), {3} bytes of garbage, {4} collections",
            rate, received - receivedFrom, elapsed, grown, collected);
        bool good = wrong == 0 && rate >= rateMin && collected == 0 && grown < 65536;
        Console.WriteLine("csharp-throughput: {0} passed, {1} failed", good ? 1 : 0, good ? 0 : 1);
        return good ? 0 : 1;
    }
}
