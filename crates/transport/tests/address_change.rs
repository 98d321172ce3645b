//! The peer's address: it may change without loss, and nobody else can change it.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, NatKind, Stage};
use muse_transport::{ChannelConfig, Config, Delivery, Repair};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};
use pair::{Entry, OwnedEvent, Pair, Side, client_address, server_address};

fn config() -> Config {
    Config::new(0xADD2)
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .channel(ChannelConfig::new(Delivery::ReliableUnordered).repair(Repair::Fast))
        .channel(ChannelConfig::new(Delivery::Sequenced))
        .build()
        .expect("sensible")
}

fn wan(loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(30))
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(loss)
}

fn attacker() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 66], 666))
}

/// A datagram that passed the network.
#[derive(Clone, Debug)]
struct Seen {
    at: Instant,
    stage: Stage,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

type Tape = Arc<Mutex<Vec<Seen>>>;

/// Records everything from now on.
fn tap(pair: &mut Pair) -> Tape {
    let tape = Tape::default();
    let writer = Arc::clone(&tape);
    pair.simulation.network_mut().set_tap(move |sighting| {
        writer.lock().expect("one thread").push(Seen {
            at: sighting.at,
            stage: sighting.stage,
            from: sighting.from,
            to: sighting.to,
            payload: sighting.payload.to_vec(),
        });
    });
    tape
}

/// Until `proven`, the server never sent `address` more bytes than had come from there.
fn assert_not_amplified(tape: &Tape, address: SocketAddr, proven: Instant) -> (usize, usize) {
    let (mut came, mut went) = (0, 0);
    for seen in tape
        .lock()
        .expect("one thread")
        .iter()
        .filter(|seen| seen.at < proven)
    {
        if seen.stage == Stage::Delivered && seen.from == address && seen.to == server_address() {
            came += seen.payload.len();
        }
        if seen.stage == Stage::Sent && seen.from == server_address() && seen.to == address {
            went += seen.payload.len();
            assert!(went <= came, "{went} bytes to {address} for {came}");
        }
    }
    (came, went)
}

/// Both sides say something every 20 ms.
fn talk(pair: &mut Pair, rounds: u32, said: &mut u32) {
    for _ in 0..rounds {
        for side in Side::BOTH {
            for channel in 0..3 {
                pair.send(side, channel, &said.to_le_bytes());
            }
        }
        *said += 1;
        pair.advance_for(Duration::from_millis(20));
    }
}

fn assert_all_arrived(pair: &Pair, said: u32, context: &str) {
    for side in Side::BOTH {
        for channel in 0..2 {
            let number =
                |payload: &&[u8]| u32::from_le_bytes(*payload.first_chunk().expect("a number"));
            let mut heard: Vec<u32> = pair.received(side, channel).iter().map(number).collect();
            if channel == 1 {
                heard.sort_unstable();
            }
            assert_eq!(
                heard,
                (0..said).collect::<Vec<_>>(),
                "{context}: {side:?} on {channel}"
            );
        }
    }
}

fn changes(pair: &Pair) -> Vec<&Entry> {
    let is_change = |entry: &&Entry| matches!(entry.what, OwnedEvent::AddressChanged(_));
    pair.log.iter().filter(is_change).collect()
}

#[test]
fn a_new_address_in_midstream_loses_nothing() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = Pair::new(config(), seed);
        pair.simulation
            .network_mut()
            .set_default(wan(rng.f64() * 0.2));
        pair.connect();
        let tape = tap(&mut pair);
        let mut said = 0;
        talk(&mut pair, rng.u32(5..50), &mut said);
        let new = SocketAddr::from(([192, 0, 2 + rng.u8(..2), 1], 4_321));
        pair.simulation
            .network_mut()
            .readdress(client_address(), new);
        talk(&mut pair, 100, &mut said);
        pair.advance_for(Duration::from_secs(5));
        assert_all_arrived(&pair, said, &format!("seed {seed}"));
        let changes = changes(&pair);
        assert_eq!(changes.len(), 1, "seed {seed}");
        assert_eq!(
            (changes[0].side, &changes[0].what),
            (Side::Server, &OwnedEvent::AddressChanged(new))
        );
        assert_not_amplified(&tape, new, changes[0].at);
        assert_eq!(
            pair.news(Side::Client),
            [OwnedEvent::Connected],
            "seed {seed}: the client notices nothing"
        );
    }
}

#[test]
fn a_nat_that_forgets_loses_nothing() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = Pair::with_nat(config(), seed, Some(NatKind::Symmetric));
        pair.simulation
            .network_mut()
            .set_default(wan(rng.f64() * 0.2));
        pair.connect();
        let nat = pair.nat.expect("there is one");
        let mut said = 0;
        for _ in 0..5 {
            talk(&mut pair, rng.u32(20..60), &mut said);
            pair.simulation.network_mut().rebind(nat);
        }
        talk(&mut pair, 100, &mut said);
        pair.advance_for(Duration::from_secs(5));
        assert_all_arrived(&pair, said, &format!("seed {seed}"));
    }
}

#[test]
fn a_silent_client_is_found_at_its_new_address() {
    for seed in 0..20 {
        let mut pair = Pair::new(config(), seed);
        pair.simulation.network_mut().set_default(wan(0.0));
        pair.connect();
        pair.advance_for(Duration::from_secs(10));
        let tape = tap(&mut pair);
        let new = SocketAddr::from(([192, 0, 2, 1], 4_321));
        pair.simulation
            .network_mut()
            .readdress(client_address(), new);
        let moved_at = pair.now();
        let found = pair.run_until(moved_at + Duration::from_secs(20), |pair| {
            !changes(pair).is_empty()
        });
        assert!(found, "seed {seed}: {:?}", pair.log);
        let proven = pair.now();
        assert_not_amplified(&tape, new, proven);
        // A keep-alive every 2 s is all that the client says, then it asks again.
        let took = proven - moved_at;
        assert!(took < Duration::from_secs(4), "seed {seed}: {took:?}");
        pair.send(Side::Server, 0, b"there you are");
        pair.advance_for(Duration::from_secs(1));
        assert_eq!(pair.received(Side::Client, 0), [b"there you are"]);
    }
}

#[test]
fn a_client_that_says_little_is_found_at_its_new_address() {
    for seed in 0..20 {
        let mut pair = Pair::new(config(), seed);
        pair.simulation.network_mut().set_default(wan(0.0));
        pair.connect();
        let tape = tap(&mut pair);
        let new = SocketAddr::from(([192, 0, 2, 1], 4_321));
        pair.simulation
            .network_mut()
            .readdress(client_address(), new);
        // Each packet is shorter than a challenge, and comes after the challenge before it was given up.
        let found = (0..8).any(|_| {
            pair.send(Side::Client, 2, b"x");
            let until = pair.now() + Duration::from_millis(1_500);
            pair.run_until(until, |pair| !changes(pair).is_empty())
        });
        assert!(found, "seed {seed}: {:?}", pair.log);
        assert_not_amplified(&tape, new, pair.now());
    }
}

/// The use that an attacker makes of the client's packets, all of which they see.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Attack {
    /// Sends them again from another address, after they have arrived.
    Replay,
    /// Sends them from another address, so that they arrive before the originals.
    Race,
    /// As `Race`, and forwards the server's answers to the client in the server's name, so that the client answers the
    /// challenge for the attacker. (An attacker who forwards everything both ways, faster than the network, is a part of
    /// the path, and may as well be its address.)
    RaceAndPassOn,
}

fn under_attack(attack: Attack, seed: u64) -> (Pair, Tape, u32) {
    let mut pair = Pair::new(config(), seed);
    let [client, server] = pair.nodes;
    let network = pair.simulation.network_mut();
    network.set_links(client, server, wan(0.05));
    pair.connect();
    let tape = tap(&mut pair);
    let mut said = 0;
    let mut read = 0;
    let mut rng = Rng::with_seed(seed);
    let mut waits = 0;
    for _ in 0..100 {
        talk(&mut pair, 1, &mut said);
        waits = u32::saturating_sub(waits, 1);
        let seen: Vec<Seen> = tape.lock().expect("one thread")[read..].to_vec();
        read += seen.len();
        let now = pair.now();
        for seen in seen {
            let network = pair.simulation.network_mut();
            let to_server = seen.from == client_address() && seen.to == server_address();
            let wanted = if attack == Attack::Replay {
                Stage::Delivered
            } else {
                Stage::Sent
            };
            if to_server && seen.stage == wanted && waits == 0 && rng.u8(..3) == 0 {
                network.send(
                    now,
                    attacker(),
                    server_address(),
                    Ecn::NotCapable,
                    &seen.payload,
                );
            }
            let for_him = seen.to == attacker() && seen.stage == Stage::Sent;
            if for_him && attack == Attack::RaceAndPassOn {
                network.send(
                    now,
                    server_address(),
                    client_address(),
                    Ecn::NotCapable,
                    &seen.payload,
                );
                waits = 10;
            }
        }
    }
    pair.advance_for(Duration::from_secs(5));
    (pair, tape, said)
}

#[test]
fn an_attacker_with_captured_packets_does_not_steal_the_connection() {
    for attack in [Attack::Replay, Attack::Race, Attack::RaceAndPassOn] {
        let (mut tried, mut answered) = (0, 0);
        for seed in 0..10 {
            let (pair, tape, said) = under_attack(attack, seed);
            let context = format!("{attack:?} seed {seed}");
            assert!(changes(&pair).is_empty(), "{context}: {:?}", changes(&pair));
            assert_all_arrived(&pair, said, &context);
            let remote = pair
                .node(Side::Server)
                .remote(pair.connection(Side::Server));
            assert_eq!(remote, Some(client_address()), "{context}");
            let (came, went) = assert_not_amplified(&tape, attacker(), Instant::FAR_FUTURE);
            tried += came;
            answered += went;
        }
        assert!(tried > 5_000, "{attack:?}: the attacker tried");
        assert_eq!(
            answered > 0,
            attack != Attack::Replay,
            "{attack:?}: a replay is not even answered"
        );
    }
}

/// Talks for two seconds; with `noise`, forged, replayed, damaged and oversized packets arrive all the time.
fn talk_in_noise(seed: u64, noise: bool) -> (u64, u64) {
    let mut pair = Pair::new(config(), seed);
    let [client, server] = pair.nodes;
    pair.simulation
        .network_mut()
        .set_links(client, server, wan(0.1));
    pair.connect();
    let tape = tap(&mut pair);
    let mut rng = Rng::with_seed(seed);
    let (mut said, mut injected) = (0, 0);
    for _ in 0..100 {
        talk(&mut pair, 1, &mut said);
        if !noise {
            continue;
        }
        let delivered: Vec<Seen> = {
            let tape = tape.lock().expect("one thread");
            tape.iter()
                .filter(|seen| seen.stage == Stage::Delivered)
                .cloned()
                .collect()
        };
        let now = pair.now();
        for _ in 0..10 {
            let Some(seen) = rng.choice(&delivered) else {
                continue;
            };
            let mut payload = spoil(&mut rng, seen.payload.clone());
            let from = if rng.bool() { seen.from } else { attacker() };
            // Handed over directly, so that the links between the two do not notice.
            let side = if seen.to == server_address() {
                Side::Server
            } else {
                Side::Client
            };
            let datagram = Datagram {
                from,
                ecn: Ecn::NotCapable,
                payload: &mut payload,
            };
            pair.node_mut(side).handle_datagram(now, datagram);
            injected += 1;
        }
    }
    pair.advance_for(Duration::from_secs(5));
    assert_all_arrived(&pair, said, &format!("seed {seed}"));
    (pair.trace(), injected)
}

/// Makes a packet one that must not be accepted; unchanged, it is a replay.
fn spoil(rng: &mut Rng, mut payload: Vec<u8>) -> Vec<u8> {
    match rng.u8(..6) {
        0 => {}
        1 => {
            let at = rng.usize(..payload.len());
            payload[at] ^= 1 << rng.u8(..8);
        }
        2 => payload.truncate(rng.usize(..payload.len())),
        3 => payload.extend(std::iter::repeat_with(|| rng.u8(..)).take(1_000)),
        4 => payload.resize(60_000, 0),
        _ => rng.fill(&mut payload[7..]),
    }
    payload
}

#[test]
fn what_is_not_authentic_changes_nothing() {
    for seed in 0..20 {
        let (quiet, _) = talk_in_noise(seed, false);
        let (noisy, injected) = talk_in_noise(seed, true);
        assert_eq!(quiet, noisy, "seed {seed}");
        assert!(injected > 500);
    }
}
