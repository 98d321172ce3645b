// A server and a client in one scene: put this component on an object and press play.
using System.Text;
using Muse;
using UnityEngine;

public sealed class Echo : MonoBehaviour
{
    private const ushort Say = 1;
    private const byte Ordered = (byte)Delivery.ReliableOrdered;

    private readonly MessageRouter onServer = new MessageRouter();
    private readonly MessageRouter onClient = new MessageRouter();
    private readonly MessageWriter writer = new MessageWriter();
    private MuseContext context;
    private MuseServer server;
    private MuseClient client;

    private void Start()
    {
        context = new MuseContext();
        Config config = Config.EveryMode(0x6563686F);
        byte[] key = context.NewKey(); // LoadOrCreateKey keeps it
        server = new MuseServer("127.0.0.1:0", config, new ServerOptions { Key = key }, context);
        client = new MuseClient(server.LocalAddress, config, new ConnectOptions { ServerKey = context.PublicKey(key) }, context);

        onServer.AddHandler(Say, (connection, channel, payload) =>
        {
            writer.Begin(Say);
            for (int index = 0; index < payload.Length; index++) writer.Write(payload[index]);
            writer.Send(server, connection, channel);
        });
        onClient.AddHandler(Say, (connection, channel, payload) => Debug.Log("heard: " + payload.ToText()));
        onClient.Connected += connection =>
        {
            byte[] words = Encoding.UTF8.GetBytes("hello");
            writer.Begin(Say).Write(words, 0, words.Length).Send(client, connection, Ordered);
        };
        onClient.Failed += (connection, why) => Debug.Log("not connected: " + why);
    }

    private void Update()
    {
        onServer.Tick(server);
        onClient.Tick(client);
    }

    private void OnDestroy() { context.Dispose(); }
}
