//! The exchange on a hostile network, by seed, and against packets that someone changed or made up.

use std::collections::BTreeMap;

use super::*;

/// Packets on their way, by arrival; loses, repeats, delays and corrupts.
struct Network {
    random: fastrand::Rng,
    on_the_way: BTreeMap<(Instant, u64), (bool, Vec<u8>)>,
    sent: u64,
}

impl Network {
    fn send(&mut self, now: Instant, to_server: bool, packet: &[u8]) {
        if self.random.u8(..100) < 30 {
            return;
        }
        for _ in 0..=u8::from(self.random.u8(..100) < 20) {
            let mut packet = packet.to_vec();
            if self.random.u8(..100) < 15 {
                let index = self.random.usize(..packet.len());
                packet[index] ^= self.random.u8(1..);
            }
            let arrival = now + Duration::from_micros(self.random.u64(..400_000));
            self.sent += 1;
            self.on_the_way
                .insert((arrival, self.sent), (to_server, packet));
        }
    }
}

fn over_a_hostile_network(trust: Trust, insecure: bool, seed: u64) -> bool {
    let mut server = Server::new(|config| {
        config.verifier = Some(verifier());
        config.danger_insecure = insecure;
    });
    let mut client = connecting(trust, seed);
    let mut network = Network {
        random: fastrand::Rng::with_seed(seed),
        on_the_way: BTreeMap::new(),
        sent: 0,
    };
    let mut now = Instant::ZERO;
    let mut buffer = [0; HANDSHAKE_LEN_MAX];
    loop {
        while let Some(len) = client.poll_transmit(now, &mut buffer) {
            network.send(now, true, &buffer[..len]);
        }
        let timer = client
            .poll_timeout()
            .expect("an unfinished attempt has a timer");
        let arrival = network
            .on_the_way
            .keys()
            .next()
            .map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        now = timer.min(arrival);
        if timer <= arrival {
            match client.handle_timeout(now) {
                Progress::Continue => continue,
                Progress::TimedOut => return false,
                _ => panic!("a timer decides nothing else"),
            }
        }
        let (_, (to_server, packet)) = network
            .on_the_way
            .pop_first()
            .expect("the arrival that is due");
        if to_server {
            if let Some(reply) = server.handle(now, client_address(), &packet) {
                network.send(now, false, &reply);
            }
            continue;
        }
        match client.handle(now, &packet) {
            Progress::Continue | Progress::Waiting => {}
            Progress::Established(mut established) => {
                assert_eq!(
                    server.connections.len(),
                    1,
                    "repeated Connects are one connection"
                );
                assert_keys_agree(&mut established.keys, &mut server.connections[0].keys);
                assert_eq!(established.remote_connection_id, SERVER_ID);
                return true;
            }
            Progress::Refused(refusal) => panic!("seed {seed}: refused: {refusal}"),
            Progress::TimedOut => panic!("a packet is no timer"),
        }
    }
}

#[test]
fn loss_repetition_reordering_and_corruption_delay_at_most() {
    let mut established = 0;
    for seed in 0..400 {
        let (trust, insecure) = match seed % 3 {
            0 => (pinned(), false),
            1 => (Trust::Token(token(seed)), false),
            _ => (Trust::DangerInsecure(None), true),
        };
        established += u32::from(over_a_hostile_network(trust, insecure, seed));
    }
    assert!(
        established >= 396,
        "{established} of 400 within ten seconds"
    );
}

/// A whole exchange, recorded: Hello, Cookie, Connect, Accept.
fn recorded(server: &mut Server, client: &mut Connecting) -> [Vec<u8>; 4] {
    let hello = transmit(client, Instant::ZERO);
    let cookie = server
        .handle(Instant::ZERO, client_address(), &hello)
        .expect("a cookie");
    client.handle(Instant::ZERO, &cookie);
    let connect = transmit(client, Instant::ZERO);
    let accept = server
        .handle(Instant::ZERO, client_address(), &connect)
        .expect("an Accept");
    [hello, cookie, connect, accept]
}

#[test]
fn any_changed_byte_of_an_accept_is_noticed_and_the_real_one_still_counts() {
    for insecure in [false, true] {
        let mut server = Server::new(|config| config.danger_insecure = insecure);
        let trust = if insecure {
            Trust::DangerInsecure(None)
        } else {
            pinned()
        };
        let mut client = connecting(trust, 1);
        let [_, cookie, _, accept] = recorded(&mut server, &mut client);
        for (index, honest) in (0..accept.len()).flat_map(|index| [(index, true), (index, false)]) {
            let mut changed = accept.clone();
            changed[index] ^= 0x10;
            if !honest {
                repair(&mut changed);
            }
            let ignored = matches!(client.handle(Instant::ZERO, &changed), Progress::Continue);
            assert!(ignored || changed == accept, "byte {index}");
            if changed == accept {
                client = connecting(
                    if insecure {
                        Trust::DangerInsecure(None)
                    } else {
                        pinned()
                    },
                    1,
                );
                client.handle(Instant::ZERO, &cookie);
            }
        }
        let mut established = established(client.handle(Instant::ZERO, &accept));
        assert_keys_agree(&mut established.keys, &mut server.connections[0].keys);
    }
}

#[test]
fn a_changed_connect_gives_no_connection_that_the_client_would_join() {
    let mut client = connecting(pinned(), 1);
    let [_, _, connect, _] = recorded(&mut Server::new(|_| {}), &mut client);
    let (mut requests, mut reached_padding) = (0, false);
    for index in 0..connect.len() - 8 {
        // A server with the same secrets that has not seen this attempt.
        let mut server = Server::new(|_| {});
        let mut changed = connect.clone();
        changed[index] ^= 1;
        let reply = server.handle(Instant::ZERO, client_address(), &changed);
        assert!(reply.is_none(), "byte {index}: the checksum");
        repair(&mut changed);
        let reply = server.handle(Instant::ZERO, client_address(), &changed);
        requests += server.listener.counters().connects;
        let joined = reply.is_some_and(|reply| match client.handle(Instant::ZERO, &reply) {
            Progress::Established(_) => true,
            Progress::Refused(_) => {
                client.finished = false;
                false
            }
            Progress::Continue | Progress::Waiting | Progress::TimedOut => false,
        });
        // Padding is bound to nothing, so changing it changes nothing.
        assert!(!joined || connect[index] == 0, "byte {index}");
        if joined {
            reached_padding = true;
            break;
        }
    }
    assert!(
        requests > 100 && reached_padding,
        "{requests} Connects were looked at"
    );
}

#[test]
fn a_connect_replayed_after_its_connection_began_is_nobody() {
    for trust in [pinned(), Trust::Token(token(1))] {
        let mut server = Server::new(|config| config.verifier = Some(verifier()));
        let [_, _, connect, _] = recorded(&mut server, &mut connecting(trust, 1));
        // The client has shown that it has the keys, so the endpoint forgets the Accept; the session lives.
        server.accepts.clear();
        for millis in (0..=10_000).step_by(50) {
            assert!(
                server
                    .handle(after_ms(millis), client_address(), &connect)
                    .is_none()
            );
        }
        assert_eq!(server.connections.len(), 1);
        assert_eq!(server.listener.counters().replayed, 201);
        let late = server
            .handle(after_ms(10_001), client_address(), &connect)
            .expect("a cookie");
        assert_eq!(late[0], 2, "now the cookie is too old");
    }
}

#[test]
fn a_connect_replayed_from_elsewhere_only_gets_a_cookie() {
    let mut server = Server::new(|_| {});
    let [_, _, connect, _] = recorded(&mut server, &mut connecting(pinned(), 1));
    let elsewhere = address("198.51.100.66:40000");
    let reply = server
        .handle(Instant::ZERO, elsewhere, &connect)
        .expect("a cookie");
    assert_eq!(reply[0], 2);
    assert_eq!(server.connections.len(), 1);
    assert_eq!(server.listener.counters().cookies_invalid, 1);
}

#[test]
fn a_stale_cookie_is_replaced_on_the_way() {
    let mut server = Server::new(|_| {});
    let mut client = connecting(pinned(), 1);
    let hello = transmit(&mut client, Instant::ZERO);
    let cookie = server
        .handle(Instant::ZERO, client_address(), &hello)
        .expect("a cookie");
    // The server restarts; its secret is another one.
    let mut server = Server::new(|_| {});
    server.listener = Listener::new(
        ListenerConfig {
            protocol_id: PROTOCOL,
            schema_hash: SCHEMA,
            description: "1 Jump\n".into(),
            key: server_key(),
            verifier: None,
            token_required: false,
            danger_insecure: false,
            limits: HandshakeLimits::default(),
            shard: Shard::ALONE,
            cookie_secret: None,
        },
        &mut SeededEntropy::danger_seeded(78),
    );
    client.handle(Instant::ZERO, &cookie);
    established(run(&mut client, &mut server));
    assert!(server.listener.counters().cookies_invalid >= 1);
}

#[test]
fn answers_to_another_attempt_mean_nothing() {
    let mut server = Server::new(|_| {});
    let [_, cookie, _, accept] = recorded(&mut server, &mut connecting(pinned(), 1));
    let mut other = connecting(pinned(), 2);
    transmit(&mut other, Instant::ZERO);
    assert!(matches!(
        other.handle(Instant::ZERO, &cookie),
        Progress::Continue
    ));
    assert_eq!(other.cookie_at, None);
    assert!(matches!(
        other.handle(Instant::ZERO, &accept),
        Progress::Continue
    ));
    server.decision = Some(Refusal::Full);
    let mut refused_client = connecting(pinned(), 3);
    let [_, _, _, refuse] = recorded(&mut server, &mut refused_client);
    assert!(matches!(
        other.handle(Instant::ZERO, &refuse),
        Progress::Continue
    ));
    assert_eq!(
        refused(refused_client.handle(Instant::ZERO, &refuse)),
        Refusal::Full
    );
    assert!(
        matches!(
            refused_client.handle(Instant::ZERO, &accept),
            Progress::Continue
        ),
        "the end is the end"
    );
}

/// `Server::handle` asserts that no reply is longer than its question.
#[test]
fn whatever_arrives_the_answer_is_no_longer_and_nothing_panics() {
    let mut random = fastrand::Rng::with_seed(6);
    let new_server = || {
        Server::new(|config| {
            config.verifier = Some(verifier());
            config.danger_insecure = true;
        })
    };
    let mut server = new_server();
    let mut client = connecting(Trust::Token(token(1)), 1);
    let exchange = recorded(&mut server, &mut client);
    let (mut replies, mut established, mut accepted) = (0, 0, 0);
    for round in 0..60_000_u64 {
        if round % 100 == 0 {
            accepted += server.listener.counters().accepted;
            server = new_server();
        }
        let mut packet = exchange[random.usize(..4)].clone();
        match random.u8(..4) {
            0 => packet.truncate(random.usize(..=packet.len())),
            1 => packet.extend((0..random.usize(..300)).map(|_| 0x5a)),
            2 => packet = (0..random.usize(..1_300)).map(|_| random.u8(..)).collect(),
            _ => {}
        }
        for _ in 0..random.usize(..4) {
            if !packet.is_empty() {
                let index = random.usize(..packet.len().min(90));
                packet[index] = random.u8(..);
            }
        }
        if packet.len() >= 17 && random.bool() {
            packet[1..9].copy_from_slice(&PROTOCOL.to_le_bytes());
            repair(&mut packet);
        }
        let now = Instant::from_micros(round * 100);
        replies += u32::from(server.handle(now, client_address(), &packet).is_some());
        established += u32::from(matches!(
            client.handle(now, &packet),
            Progress::Established(_)
        ));
    }
    assert_eq!(established, 1, "the real Accept, once");
    assert!(
        replies > 5_000 && accepted > 300,
        "{replies} replies, {accepted} accepted: to all depths"
    );
}

#[test]
fn a_recorded_connect_is_of_no_use_with_a_fresh_cookie() {
    let mut server = Server::new(|config| config.verifier = Some(verifier()));
    let [_, _, connect, _] = recorded(&mut server, &mut connecting(Trust::Token(token(1)), 1));
    server.accepts.clear();
    // Much later someone on the path sends it again in the client's name, and reads the answer.
    let now = after_ms(60_000);
    let cookie = server
        .handle(now, client_address(), &connect)
        .expect("a cookie");
    let mut patched = connect.clone();
    patched[27..47].copy_from_slice(&cookie[25..45]);
    repair(&mut patched);
    let reply = server
        .handle(now, client_address(), &patched)
        .expect("a refusal");
    assert_eq!((reply[0], server.connections.len()), (5, 1));
}

#[test]
fn an_accept_of_an_exchange_before_the_newest_cookie_still_counts() {
    let mut server = Server::new(|_| {});
    let mut client = connecting(pinned(), 1);
    let [hello, _, _, accept] = recorded(&mut server, &mut client);
    let later = after_ms(1_500);
    let another = server
        .handle(later, client_address(), &hello)
        .expect("a cookie for the late Hello");
    client.handle(later, &another);
    let mut established = established(client.handle(later, &accept));
    assert_keys_agree(&mut established.keys, &mut server.connections[0].keys);
}
