// The promises of the wrapper, tried with mono: connections, tokens, admission, handlers, the transport shape, clock, interpolation, and errors.
using System;
using System.Collections.Generic;
using System.Text;
using Muse;

internal static class Api
{
    private static int passed, failed;

    private static int Main()
    {
        foreach (Action test in new Action[] { HandlersByType, TransportShape, Tokens, Admission, SharedLines, ClockAndInputs, Shown, Mistakes })
        {
            try
            {
                test();
            }
            catch (Exception error)
            {
                Check(false, test.Method.Name + ": " + error);
            }
        }
        Console.WriteLine("csharp: {0} passed, {1} failed", passed, failed);
        return failed == 0 ? 0 : 1;
    }

    private static void Check(bool good, string what)
    {
        if (good) passed++;
        else
        {
            failed++;
            Console.WriteLine("  FAIL  " + what);
        }
    }

    private static MuseServer Listen(MuseContext context, Config config, out byte[] publicKey)
    {
        byte[] key = context.NewKey();
        publicKey = context.PublicKey(key);
        return new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = key }, context);
    }

    private static void HandlersByType()
    {
        using (var context = new MuseContext())
        {
            Config config = Config.EveryMode(1);
            byte[] publicKey;
            MuseServer server = Listen(context, config, out publicKey);
            var client = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = publicKey }, context);
            var here = new MessageRouter();
            var there = new MessageRouter();
            var writer = new MessageWriter();
            var heard = new List<string>();
            bool connected = false;
            here.Connected += _ => connected = true;
            there.AddHandler(300, (connection, channel, payload) => heard.Add("chat " + channel + " " + payload.ToText()));
            there.AddHandler(301, (connection, channel, payload) => heard.Add("move " + payload.ReadSingle(0) + " " + payload.ReadUInt16(4)));
            Turn(() => connected, () => { there.Tick(server); here.Tick(client); });
            byte[] words = Encoding.UTF8.GetBytes("hello");
            Check(writer.Begin(300).Write(words, 0, words.Length).Send(client, client.Connection, 4) == Status.Ok, "sent");
            writer.Begin(301).Write(2.5f).Write((ushort)7).Send(client, client.Connection, 4);
            writer.Begin(302).Send(client, client.Connection, 4);
            Turn(() => there.Unhandled == 1, () => { here.Tick(client); there.Tick(server); });
            Check(heard.Count == 2 && heard[0] == "chat 4 hello" && heard[1] == "move 2.5 7", string.Join(",", heard.ToArray()));
            ConnectionStats stats;
            Check(client.TryStats(client.Connection, out stats) && stats.PacketsSent > 0 && !stats.IsInterrupted, "statistics");
            ChannelStats channelStats;
            Check(client.TryChannelStats(client.Connection, 4, out channelStats) && channelStats.MessagesSent == 3, "of a channel");
            Budget budget;
            Check(client.TryBudget(client.Connection, 20000, out budget) && budget.ThisTick > 0, "budget");
            CloseReason? closed = null;
            here.Closed += (_, reason) => closed = reason;
            foreach (ulong connection in new[] { client.Connection }) client.Close(connection, 3, "enough");
            Turn(() => closed != null, () => { here.Tick(client); there.Tick(server); });
            Check(closed == CloseReason.ByUs, "closed");
        }
    }

    private static void TransportShape()
    {
        using (var server = new NetworkTransport(9))
        using (var client = new NetworkTransport(9))
        using (var context = new MuseContext())
        {
            byte[] key = context.NewKey();
            server.StartServer("127.0.0.1:0", key);
            client.StartClient(server.Endpoint.LocalAddress, new ConnectOptions { ServerKey = context.PublicKey(key) });
            ulong peer = 0, id;
            bool connected = false;
            string heard = null;
            ArraySegment<byte> payload;
            Turn(() => heard != null, () =>
            {
                NetworkEvent happened;
                while ((happened = client.PollEvent(out id, out payload)) != NetworkEvent.Nothing)
                {
                    connected |= happened == NetworkEvent.Connect && id == NetworkTransport.ServerClientId;
                    if (happened == NetworkEvent.Data) heard = Encoding.UTF8.GetString(payload.Array, payload.Offset, payload.Count);
                }
                while ((happened = server.PollEvent(out id, out payload)) != NetworkEvent.Nothing)
                {
                    if (happened != NetworkEvent.Connect) continue;
                    peer = id;
                    server.Send(peer, new ArraySegment<byte>(Encoding.UTF8.GetBytes("welcome")), (byte)Delivery.ReliableOrdered);
                }
            });
            Check(connected && heard == "welcome" && peer == 1, "the transport's shape: " + heard);
            Check(server.GetCurrentRtt(peer) < 1000 && server.GetCurrentRtt(99) == 0, "round trip");
            Check(server.Send(99, new ArraySegment<byte>(new byte[1]), 0) == Status.ErrorNoConnection, "nobody there");
            server.DisconnectRemoteClient(peer);
            bool gone = false;
            Turn(() => gone, () =>
            {
                while (server.PollEvent(out id, out payload) != NetworkEvent.Nothing) { }
                NetworkEvent happened;
                while ((happened = client.PollEvent(out id, out payload)) != NetworkEvent.Nothing) gone |= happened == NetworkEvent.Disconnect;
            });
            Check(gone, "disconnected");
        }
    }

    private static void Tokens()
    {
        using (var context = new MuseContext())
        {
            Config config = Config.EveryMode(5);
            var issuer = new TokenIssuer(context, 5, 2);
            byte[] key = context.NewKey();
            var options = new ServerOptions { Key = key };
            options.TokenKeys.Add(2, issuer.PublicKey);
            var server = new MuseServer("127.0.0.1:0", config, options, context);
            string token = issuer.Issue(42, context.PublicKey(key), server.LocalAddress, Encoding.UTF8.GetBytes("blue"));
            var client = new MuseClient(server.LocalAddress, config, new ConnectOptions { Token = token }, context);
            ulong account = 0;
            string data = null;
            Turn(() => data != null, () =>
            {
                client.Poll();
                client.Flush();
                server.Poll();
                MuseEvent happened;
                while (server.NextEvent(out happened))
                {
                    if (happened.Kind != EventKind.Connected) continue;
                    account = happened.Account;
                    data = happened.Payload.ToText();
                }
                server.Flush();
            });
            Check(account == 42 && data == "blue", "the token's account and data");
            Throws(Status.ErrorToken, () => new MuseClient(server.LocalAddress, config, new ConnectOptions { Token = "nonsense" }, context));
        }
    }

    private static void Admission()
    {
        using (var context = new MuseContext())
        {
            Config config = Config.EveryMode(6);
            byte[] key = context.NewKey();
            var server = new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = key, Asks = true, PendingMax = 8, DecisionTimeoutUs = 20000000 }, context);
            var eve = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = context.PublicKey(key), Hello = Encoding.UTF8.GetBytes("Eve") }, context);
            var ada = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = context.PublicKey(key), Hello = Encoding.UTF8.GetBytes("Ada") }, context);
            var desk = new MessageRouter();
            var asked = new List<string>();
            ulong admitted = 0, denied = 0;
            desk.Asking += (ref MuseEvent asking) =>
            {
                string name = asking.Extra.ToText();
                asked.Add(name + " " + asking.Address.ToText().StartsWith("127.0.0.1:"));
                if (name == "Ada") Check(server.Admit(admitted = asking.Connection) == Status.Ok, "admitted");
                else Check(server.Deny(denied = asking.Connection, 7, "banned until Monday") == Status.Ok, "denied");
            };
            bool connected = false;
            string why = null, words = null;
            Turn(() => connected && why != null, () =>
            {
                desk.Tick(server);
                MuseEvent happened;
                ada.Poll();
                while (ada.NextEvent(out happened)) connected |= happened.Kind == EventKind.Connected;
                ada.Flush();
                eve.Poll();
                while (eve.NextEvent(out happened))
                {
                    why = happened.Kind + " " + (Refusal)happened.Reason + " " + happened.Code + " " + happened.Extra.ToText();
                    words = happened.Payload.ToText();
                }
                eve.Flush();
            });
            asked.Sort();
            Check(string.Join(",", asked.ToArray()) == "Ada True,Eve True", string.Join(",", asked.ToArray()));
            Check(why == "Refused Denied 7 banned until Monday", why);
            Check(words != null && words.EndsWith("banned until Monday (code 7)"), words);
            Check(server.Admit(denied) == Status.ErrorNoConnection && server.Deny(admitted, 1, "") == Status.ErrorNoConnection, "decided once");
        }
    }

    private static void SharedLines()
    {
        using (var context = new MuseContext())
        {
            Config older = Config.EveryMode(7), newer = Config.EveryMode(7);
            older.Shared = "7 Say { text: text max 100 }\ntick rate 50";
            newer.Shared = "tick rate 50\n7 Say { text: text max 200 }";
            byte[] publicKey;
            MuseServer server = Listen(context, newer, out publicKey);
            using (var client = new NetworkTransport(older))
            {
                client.StartClient(server.LocalAddress, new ConnectOptions { ServerKey = publicKey });
                bool over = false;
                ulong id;
                ArraySegment<byte> payload;
                Turn(() => over, () =>
                {
                    server.Poll();
                    server.Flush();
                    NetworkEvent happened;
                    while ((happened = client.PollEvent(out id, out payload)) != NetworkEvent.Nothing) over |= happened == NetworkEvent.Disconnect;
                });
                Check(client.DisconnectReason.EndsWith("`7 Say` differs: text: text max 100 here, text: text max 200 there"), client.DisconnectReason);
            }
            Refusal? refusal = null;
            string lines = null;
            var old = new MuseClient(server.LocalAddress, older, new ConnectOptions { ServerKey = publicKey }, context);
            Turn(() => refusal != null, () =>
            {
                server.Poll();
                server.Flush();
                old.Poll();
                MuseEvent happened;
                while (old.NextEvent(out happened))
                {
                    refusal = (Refusal)happened.Reason;
                    lines = happened.Extra.ToText();
                }
                old.Flush();
            });
            Check(refusal == Refusal.Schema && lines == "`7 Say` differs: text: text max 100 here, text: text max 200 there", lines);
        }
    }

    private static void ClockAndInputs()
    {
        const ulong tickUs = 20000;
        using (var context = new MuseContext())
        {
            var clock = new Clock(context, tickUs);
            var inputs = new Inputs(context, tickUs, 1);
            byte[] packet = new byte[Clock.PacketMax], input = new byte[Clock.InputMax], report = new byte[32];
            int received = 0, taken = 0;
            for (ulong now = tickUs; now < 4000000; now += 1000)
            {
                uint tick;
                Due due;
                while ((due = clock.Poll(now, out tick)) != Due.Nothing)
                {
                    int len = clock.Write(now, tick, due == Due.Tick ? new[] { (byte)tick } : null, 1, packet);
                    Check(inputs.Packet(now, packet, len), "a packet of the clock");
                }
                if (now % tickUs != 0) continue;
                int count;
                uint serverTick = (uint)(now / tickUs);
                InputKind kind = inputs.Take(serverTick, now, input, out count);
                taken += now > 2000000 ? 1 : 0;
                received += now > 2000000 && kind == InputKind.Received && count == 1 && input[0] == (byte)serverTick ? 1 : 0;
                int reported = inputs.Report(now, now, report);
                clock.Snapshot(now, serverTick, report, 0, reported);
            }
            Check(taken > 90 && received == taken, received + " of " + taken);
            Check(clock.State.PlayTicks > 0 && clock.State.Rate > 0.9, "the clock plays");
        }
    }

    private static void Shown()
    {
        using (var context = new MuseContext())
        {
            var playback = new Playback(context, 20000);
            var body = new Interpolation(context, 20000);
            PlaybackState state;
            Check(!playback.Advance(0, out state), "nothing before the first snapshot");
            for (uint number = 0; number < 300; number++)
            {
                playback.Snapshot(1000000 + number * 20000UL, number, (ushort)number);
                playback.Advance(1000000 + number * 20000UL, out state);
            }
            Check(299 - state.Ticks > 1 && 299 - state.Ticks < 1.5, "behind by " + (299 - state.Ticks));
            var pose = new Pose { PositionX = 1, RotationW = 1 };
            Check(body.Push(10, ref pose), "the first state");
            pose.PositionX = 3;
            Check(body.Push(14, ref pose) && !body.Push(14, ref pose), "the second, once");
            Check(body.Show(11, out pose) == Source.Between && pose.PositionX == 1.5f, "between " + pose.PositionX);
        }
    }

    private static void Mistakes()
    {
        var context = new MuseContext();
        var config = new Config { Protocol = 1 };
        Throws(Status.ErrorConfig, () => new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = context.NewKey() }, context));
        config.Channels = new[] { new ChannelConfig(Delivery.ReliableOrdered) };
        var server = new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = context.NewKey() }, context);
        Check(server.Send(77, 0, new byte[1]) == Status.ErrorNoConnection, "nobody there");
        server.Dispose();
        Throws(Status.ErrorStale, () => server.Poll());
        Throws(Status.ErrorArgument, () => context.ParseKey("xyz"));
        context.Dispose();
        context.Dispose();
        Throws(Status.ErrorNull, () => context.NewKey());
    }

    private static void Throws(Status status, Action action)
    {
        try
        {
            action();
            Check(false, "no exception, " + status + " was expected");
        }
        catch (MuseException error)
        {
            Check(error.Status == status, error.Message);
        }
    }

    private static void Turn(Func<bool> done, Action turn)
    {
        var watch = System.Diagnostics.Stopwatch.StartNew();
        while (!done() && watch.Elapsed.TotalSeconds < 20) turn();
        Check(done(), "it happened in time");
    }
}
