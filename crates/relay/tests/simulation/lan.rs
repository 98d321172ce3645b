//! A host and a player on one local network find each other, and connect without any relay.

use std::net::SocketAddr;

use muse_relay::lan::{Advert, Announcer, Finder, PORT};
use muse_transport::{
    ChannelConfig, Config, Connect, Delivery, Endpoint, Event, SeededEntropy, ServerKey,
    ServerOptions, ServerPublicKey,
};
use muse_wire::{Datagram, Ecn, Instant, Machine};

/// Gives everything that `from` has to say to `to`.
fn carry(from: &mut impl Machine, at: SocketAddr, to: &mut impl Machine) -> usize {
    let mut buffer = [0; 2_000];
    let mut count = 0;
    while let Some(sent) = from.poll_transmit(Instant::ZERO, &mut buffer) {
        let payload = &mut buffer[..sent.len];
        let datagram = Datagram {
            from: at,
            ecn: Ecn::NotCapable,
            payload,
        };
        to.handle_datagram(Instant::ZERO, datagram);
        count += 1;
    }
    count
}

#[test]
fn what_was_found_can_be_connected_to() {
    let config = || {
        Config::new(7)
            .channel(ChannelConfig::new(Delivery::ReliableOrdered))
            .build()
            .expect("a valid config")
    };
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
    let advert = Advert {
        protocol: 7,
        port: 9_000,
        host_key: *key.public().as_bytes(),
        name: "Anna's game".to_owned(),
    };
    let mut announcer = Announcer::new(Instant::ZERO, advert);
    let mut finder = Finder::new(Instant::ZERO, 7, 42);
    let (here, beacon) = (
        SocketAddr::from(([192, 168, 1, 2], 50_000)),
        SocketAddr::from(([192, 168, 1, 3], PORT)),
    );
    assert_eq!(
        carry(&mut finder, here, &mut announcer),
        2,
        "group and broadcast"
    );
    assert_eq!(carry(&mut announcer, beacon, &mut finder), 2);
    assert_eq!(finder.hosts().len(), 1, "found once");
    let found = &finder.hosts()[0];
    assert_eq!(found.advert.name, "Anna's game");

    let mut host = Endpoint::new(config(), SeededEntropy::danger_seeded(2));
    host.listen(ServerOptions::new(key));
    let mut player = Endpoint::new(config(), SeededEntropy::danger_seeded(3));
    let pinned = Connect::pinned(ServerPublicKey::from_bytes(found.advert.host_key));
    player
        .connect(Instant::ZERO, found.address, pinned)
        .expect("the endpoint is empty");
    for _ in 0..4 {
        carry(&mut player, here, &mut host);
        carry(&mut host, found.address, &mut player);
    }
    let mut buffer = Vec::new();
    let event = player.poll_event(&mut buffer);
    assert!(matches!(event, Some(Event::Connected { .. })), "{event:?}");
}
