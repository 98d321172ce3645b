//! Counters say what happened: of a channel, of the handshakes of a server, of datagrams that nobody can use.

use muse_netem::{Network, Simulation};
use muse_transport::{
    ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions,
};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

#[test]
fn a_message_and_its_handshake_are_counted_once() {
    let channel = ChannelConfig::new(Delivery::ReliableUnordered);
    let config = Config::new(1).channel(channel).build().expect("legal");
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
    let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
    let address = ([192, 0, 2, 2], 2).into();
    let connection = client
        .connect(Instant::ZERO, address, Connect::pinned(key.public()))
        .expect("room for one");
    let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
    server.listen(ServerOptions::new(key));
    let mut simulation = Simulation::new(Network::new(1));
    let here = simulation.add(([192, 0, 2, 1], 2).into(), client);
    let there = simulation.add(address, server);
    simulation.run_for(Duration::from_millis(200));
    for node in [here, there] {
        while simulation
            .node_mut(node)
            .poll_event(&mut Vec::new())
            .is_some()
        {}
    }
    let now = simulation.now();
    simulation
        .node_mut(here)
        .send(now, connection, 0, b"hello")
        .expect("connected");
    simulation.run_for(Duration::from_millis(200));

    let (client, server) = (simulation.node(here), simulation.node(there));
    let sent = client.channel_stats(connection, 0).expect("connected");
    assert_eq!(
        (sent.messages_sent, sent.bytes_sent, sent.pieces_resent),
        (1, 5, 0)
    );
    let peer = server.connections().next().expect("the client");
    let received = server.channel_stats(peer, 0).expect("connected");
    assert_eq!(received.messages_received, 1);
    let handshakes = server.handshake_counters().expect("it listens");
    assert_eq!(
        (handshakes.hellos, handshakes.cookies, handshakes.accepted),
        (1, 1, 1)
    );
    assert_eq!(client.handshake_counters(), None);
}

#[test]
fn a_datagram_of_another_protocol_is_counted_and_dropped() {
    let channel = ChannelConfig::new(Delivery::Sequenced);
    let config = Config::new(1).channel(channel).build().expect("legal");
    let mut endpoint = Endpoint::new(config, SeededEntropy::danger_seeded(1));
    let mut payload = *b"GET / HTTP/1.1";
    let datagram = Datagram {
        from: ([203, 0, 113, 5], 80).into(),
        ecn: Ecn::NotCapable,
        payload: &mut payload,
    };
    endpoint.handle_datagram(Instant::ZERO, datagram);
    assert_eq!(endpoint.counters().datagrams_unknown, 1);
}
