//! The cost of strangers: replies, operations and memory have limits that hold.

use super::*;

#[test]
fn a_flood_of_hellos_gets_no_more_than_the_allowed_replies() {
    let limits = HandshakeLimits::default().replies(1_000, 50);
    let mut server = Server::new(|config| config.limits = limits);
    let hello = transmit(&mut connecting(pinned(), 1), Instant::ZERO);
    let mut replies = 0;
    for packet in 0..100_000_u32 {
        let now = Instant::from_micros(u64::from(packet) * 10);
        let from = SocketAddr::new(
            std::net::Ipv4Addr::from(packet.wrapping_mul(2_654_435_761)).into(),
            1_000,
        );
        replies += u32::from(server.handle(now, from, &hello).is_some());
    }
    assert!(
        (1_000..=1_051).contains(&replies),
        "{replies} in one second"
    );
    let counters = server.listener.counters();
    assert_eq!(counters.hellos, 100_000);
    assert_eq!(counters.replies_limited, 100_000 - u64::from(replies));
    assert!(server.accepts.is_empty() && server.connections.is_empty());
}

#[test]
fn forged_connects_reach_no_cryptography_with_public_keys() {
    let mut server = Server::new(|config| {
        config.verifier = Some(verifier());
        config.limits = HandshakeLimits::default().operations(1, 8);
    });
    let mut client = connecting(Trust::Token(token(1)), 1);
    let mut cookie = [0; 64];
    let len = packet::emit_cookie(PROTOCOL, &client.client_random(), &[0; 20], &mut cookie)
        .expect("fits");
    client.handle(Instant::ZERO, &cookie[..len]);
    let forged = transmit(&mut client, Instant::ZERO);
    for port in 1..5_000 {
        let from = SocketAddr::new(client_address().ip(), port);
        server.handle(Instant::ZERO, from, &forged);
    }
    assert_eq!(server.listener.counters().cookies_invalid, 4_999);
    assert_eq!(server.listener.counters().operations_limited, 0);
    let mut real = connecting(Trust::Token(token(2)), 2);
    established(run_at(&mut real, &mut server, after_ms(1_000)));
}

#[test]
fn operations_with_public_keys_stay_within_their_budget() {
    // Eight at once, 100 a second: a handshake takes four.
    let limits = HandshakeLimits::default().operations(100, 8);
    let mut server = Server::new(|config| config.limits = limits);
    let mut clients: Vec<Connecting> = (0..40).map(|seed| connecting(pinned(), seed)).collect();
    let mut connects = Vec::new();
    for (port, client) in (1..).zip(&mut clients) {
        let from = SocketAddr::new(client_address().ip(), port);
        let hello = transmit(client, Instant::ZERO);
        let cookie = server
            .handle(Instant::ZERO, from, &hello)
            .expect("a cookie");
        client.handle(Instant::ZERO, &cookie);
        connects.push((from, transmit(client, Instant::ZERO)));
    }
    for (from, connect) in &connects {
        server.handle(Instant::ZERO, *from, connect);
    }
    assert_eq!(server.connections.len(), 2);
    assert_eq!(server.listener.counters().operations_limited, 38);
    for millis in (10..=1_000).step_by(10) {
        for (from, connect) in &connects {
            server.handle(after_ms(millis), *from, connect);
        }
    }
    assert_eq!(
        server.connections.len(),
        2 + 25,
        "one second is worth 25 handshakes"
    );
}

#[test]
fn the_operations_of_forged_tokens_are_counted_too() {
    let mut server = Server::new(|config| {
        config.verifier = Some(verifier());
        config.limits = HandshakeLimits::default().operations(1, 10);
    });
    let forger = TokenIssuer::from_bytes(PROTOCOL, 1, &[0x99; 32]);
    let mut refusals = 0;
    for seed in 0..30 {
        let mut entropy = SeededEntropy::danger_seeded(seed);
        let forged = forger
            .issue(&grant(), UNIX_NOW_S, &mut entropy)
            .expect("within the limits");
        let mut client = connecting(Trust::Token(Box::new(forged)), seed);
        let hello = transmit(&mut client, Instant::ZERO);
        let cookie = server
            .handle(Instant::ZERO, client_address(), &hello)
            .expect("a cookie");
        client.handle(Instant::ZERO, &cookie);
        let connect = transmit(&mut client, Instant::ZERO);
        refusals += u32::from(
            server
                .handle(Instant::ZERO, client_address(), &connect)
                .is_some(),
        );
    }
    assert_eq!(refusals, 10, "ten signatures were checked, twenty were not");
    assert_eq!(server.listener.counters().operations_limited, 20);
}

#[test]
fn one_address_cannot_take_all() {
    let limits = HandshakeLimits::default().per_address(1, 3);
    let mut server = Server::new(|config| config.limits = limits);
    let mut knock = |from: SocketAddr, seed: u64| {
        let mut client = connecting(pinned(), seed);
        let hello = transmit(&mut client, Instant::ZERO);
        let cookie = server
            .handle(Instant::ZERO, from, &hello)
            .expect("a cookie");
        client.handle(Instant::ZERO, &cookie);
        let connect = transmit(&mut client, Instant::ZERO);
        let reply = server.handle(Instant::ZERO, from, &connect);
        reply.is_some_and(|reply| {
            matches!(
                client.handle(Instant::ZERO, &reply),
                Progress::Established(_)
            )
        })
    };
    let greedy = (0..20)
        .filter(|seed| knock(SocketAddr::new(client_address().ip(), 5_000), *seed))
        .count();
    assert_eq!(greedy, 3);
    assert!(knock(address("198.51.100.9:5000"), 100));
    assert_eq!(server.listener.counters().prefix_limited, 17);
}
