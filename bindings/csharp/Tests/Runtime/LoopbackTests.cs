// Runs in Unity's test runner: the native library is found, and a message goes there and back. The programs in Tests~ test the rest, without Unity.
#if UNITY_INCLUDE_TESTS
using System.Diagnostics;
using System.Text;
using NUnit.Framework;

namespace Muse.Tests
{
    public sealed class LoopbackTests
    {
        [Test]
        public void AMessageGoesThereAndBack()
        {
            using (var context = new MuseContext())
            {
                Config config = Config.EveryMode(1);
                byte[] key = context.NewKey();
                var server = new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = key }, context);
                var client = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = context.PublicKey(key) }, context);
                string heard = null;
                Stopwatch watch = Stopwatch.StartNew();
                while (heard == null && watch.Elapsed.TotalSeconds < 10)
                {
                    MuseEvent happened;
                    client.Poll();
                    while (client.NextEvent(out happened))
                    {
                        if (happened.Kind == EventKind.Connected) client.Send((byte)Delivery.ReliableOrdered, Encoding.UTF8.GetBytes("hello"));
                        if (happened.Kind == EventKind.Message) heard = happened.Payload.ToText();
                    }
                    client.Flush();
                    server.Poll();
                    while (server.NextEvent(out happened))
                    {
                        if (happened.Kind == EventKind.Message) server.Send(happened.Connection, happened.Channel, happened.Payload);
                    }
                    server.Flush();
                }
                Assert.AreEqual("hello", heard);
            }
        }
    }
}
#endif
