//! Involuntary cuts: within the limit nothing reliable is lost and nothing comes twice; past it the peer is lost.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;

use fastrand::Rng;
use muse_netem::{Conditions, Jitter};
use muse_transport::token::{TokenGrant, TokenIssuer, TokenVerifier};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, Delivery, Endpoint, Event, Repair, SeededEntropy,
    ServerOptions,
};
use muse_wire::{Duration, Instant};
use pair::{OwnedEvent, Pair, Side, server_address, server_key};

const PROTOCOL: u64 = 0x7E57;
const CHANNELS: usize = 4;

fn config(rng: &mut Rng) -> Config {
    let all = Delivery::partially_reliable(20, 100).expect("a promise");
    let mut config = Config::new(PROTOCOL);
    let ordered = [
        Delivery::ReliableOrdered,
        Delivery::ReliableUnordered,
        all,
        Delivery::ReliableSequenced,
    ];
    for delivery in ordered {
        let repair = [Repair::Frugal, Repair::Balanced, Repair::Fast][rng.usize(..3)];
        config = config.channel(ChannelConfig::new(delivery).repair(repair));
    }
    config.build().expect("sensible")
}

fn connected(rng: &mut Rng, seed: u64) -> Pair {
    let mut pair = Pair::new(config(rng), seed);
    let conditions = Conditions::default()
        .delay(Duration::from_millis(rng.u64(1..100)))
        .jitter(Jitter::Uniform(Duration::from_millis(20)))
        .loss(rng.f64() * 0.1);
    pair.simulation.network_mut().set_default(conditions);
    pair.connect();
    pair
}

/// The direction of a cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Both,
    FromClient,
    FromServer,
}

/// Talks for a second, is cut off for `cut` while the talk goes on at 20 messages a second and channel, and talks on.
fn talk_through_a_cut(pair: &mut Pair, rng: &mut Rng, kind: Cut, cut: Duration) -> u32 {
    let tick = Duration::from_millis(50);
    let start = pair.now();
    let cut_at = start + Duration::from_millis(rng.u64(200..1_500));
    let heal_at = cut_at + cut;
    let end = heal_at + Duration::from_secs(3);
    let [client, server] = pair.nodes;
    let mut said = 0u32;
    let mut at = start;
    let mut phase = 0;
    while at < end {
        if phase == 0 && at >= cut_at {
            let network = pair.simulation.network_mut();
            match kind {
                Cut::Both => network.partition(client, server),
                Cut::FromClient => network.partition_one_way(client, server),
                Cut::FromServer => network.partition_one_way(server, client),
            }
            phase = 1;
        }
        if phase == 1 && at >= heal_at {
            pair.simulation.network_mut().heal_all();
            phase = 2;
        }
        for side in Side::BOTH {
            for channel in 0..CHANNELS as u8 {
                pair.send(side, channel, &said.to_le_bytes());
            }
        }
        said += 1;
        at += tick;
        pair.advance(at);
    }
    pair.run_until(end + Duration::from_secs(30), |pair| {
        Side::BOTH.iter().all(|&side| pair.queued(side) == 0)
    });
    pair.advance_for(Duration::from_secs(1));
    said
}

fn assert_all_arrived_once(pair: &Pair, said: u32, seed: u64) {
    for side in Side::BOTH {
        let heard = |channel| -> Vec<u32> {
            let number =
                |payload: &&[u8]| u32::from_le_bytes(*payload.first_chunk().expect("a number"));
            pair.received(side, channel).iter().map(number).collect()
        };
        let all: Vec<u32> = (0..said).collect();
        assert_eq!(heard(0), all, "seed {seed}: ordered, heard by {side:?}");
        let mut unordered = heard(1);
        unordered.sort_unstable();
        assert_eq!(unordered, all, "seed {seed}: unordered, heard by {side:?}");
        assert_eq!(
            heard(2),
            all,
            "seed {seed}: promised in full, heard by {side:?}"
        );
        let newest = heard(3);
        assert!(
            newest.is_sorted_by(|a, b| a < b),
            "seed {seed}: sequenced, heard by {side:?}"
        );
        assert_eq!(
            newest.last(),
            Some(&(said - 1)),
            "seed {seed}: sequenced, heard by {side:?}"
        );
    }
}

fn interruptions(pair: &Pair, side: Side) -> Vec<OwnedEvent> {
    let mut news = pair.news(side);
    news.retain(|what| *what != OwnedEvent::Connected);
    news
}

#[test]
fn a_cut_within_the_limit_loses_nothing() {
    let mut long = 0;
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = connected(&mut rng, seed);
        let cut = Duration::from_millis(rng.u64(1_000..30_000));
        let kind = [Cut::Both, Cut::FromClient, Cut::FromServer][rng.usize(..3)];
        let said = talk_through_a_cut(&mut pair, &mut rng, kind, cut);
        assert_all_arrived_once(&pair, said, seed);
        for side in Side::BOTH {
            let news = interruptions(&pair, side);
            let deaf = match kind {
                Cut::Both => true,
                Cut::FromClient => side == Side::Server,
                Cut::FromServer => side == Side::Client,
            };
            // The connection counts as interrupted 6 s after the last packet.
            if deaf && cut > Duration::from_secs(7) {
                assert_eq!(
                    news,
                    [OwnedEvent::Interrupted, OwnedEvent::Resumed],
                    "seed {seed} {side:?}"
                );
                long += 1;
            } else if !deaf || cut < Duration::from_secs(4) {
                assert_eq!(news, [], "seed {seed} {side:?} {kind:?} {cut:?}");
            }
        }
    }
    assert!(long > 50, "{long}");
}

#[test]
fn a_resumed_connection_talks_again_within_two_seconds() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = connected(&mut rng, seed);
        let [client, server] = pair.nodes;
        pair.simulation
            .network_mut()
            .set_default(Conditions::default().delay(Duration::from_millis(30)));
        pair.simulation.network_mut().partition(client, server);
        pair.send(Side::Client, 0, b"in the dark");
        pair.advance_for(Duration::from_secs(20));
        pair.simulation.network_mut().heal_all();
        pair.advance_for(Duration::from_secs(2));
        assert_eq!(
            pair.received(Side::Server, 0),
            [b"in the dark"],
            "seed {seed}"
        );
    }
}

#[test]
fn a_cut_past_the_limit_loses_the_peer() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = connected(&mut rng, seed);
        let [client, server] = pair.nodes;
        pair.simulation.network_mut().partition(client, server);
        pair.send(Side::Client, 0, b"never");
        pair.advance_for(Duration::from_secs(40));
        pair.simulation.network_mut().heal_all();
        pair.advance_for(Duration::from_secs(10));
        for side in Side::BOTH {
            let end = [
                OwnedEvent::Interrupted,
                OwnedEvent::Closed(CloseReason::Lost),
            ];
            assert_eq!(interruptions(&pair, side), end, "seed {seed} {side:?}");
        }
        assert!(pair.received(Side::Server, 0).is_empty());
    }
}

#[test]
fn the_holder_of_a_token_who_comes_again_replaces_the_old_connection() {
    const UNIX_S: u64 = 1_800_000_000;
    let mut rng = Rng::with_seed(1);
    let config = config(&mut rng);
    let (key, public) = server_key(1);
    let issuer = TokenIssuer::from_bytes(PROTOCOL, 1, &[3; 32]);
    let grant = TokenGrant::new(42, public, server_address()).user_data(b"red team");
    let mut entropy = SeededEntropy::danger_seeded(2);
    let token = issuer.issue(&grant, UNIX_S, &mut entropy).expect("a token");
    let mut verifier = TokenVerifier::new();
    verifier.add_key(1, &issuer.public_key()).expect("a key");
    let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(3));
    server.set_unix_time(Instant::ZERO, UNIX_S);
    server.listen(ServerOptions::new(key).tokens(verifier));
    let client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(4));
    let mut pair = Pair::of(server, client, Connect::token(token.clone()), 1, None);
    pair.connect();
    let first = pair.connection(Side::Server);

    // The player's machine restarts elsewhere; the old process is gone.
    pair.simulation.detach(pair.nodes[0]);
    let mut again = Endpoint::new(config, SeededEntropy::danger_seeded(5));
    let now = pair.now();
    let connection = again
        .connect(now, server_address(), Connect::token(token))
        .expect("free");
    let address = SocketAddr::from(([203, 0, 113, 1], 5));
    let node = pair.simulation.add(address, again);
    let (mut buffer, mut server_saw, mut client_connected) = (Vec::new(), Vec::new(), false);
    let limit = now + Duration::from_secs(5);
    let server_node = pair.nodes[1];
    pair.simulation.run_until(limit, |simulation| {
        let now = simulation.now();
        while let Some(event) = simulation.node_mut(server_node).poll_event(&mut buffer) {
            server_saw.push(match event {
                Event::Connected {
                    connection,
                    account,
                    user_data,
                    ..
                } => {
                    assert_ne!(connection, first);
                    format!("connected {account} {}", String::from_utf8_lossy(user_data))
                }
                Event::Closed { connection, reason } => {
                    assert_eq!(connection, first);
                    format!("closed {reason:?}")
                }
                Event::Message { payload, .. } => String::from_utf8_lossy(payload).into_owned(),
                other => format!("{other:?}"),
            });
        }
        let client = simulation.node_mut(node);
        while let Some(event) = client.poll_event(&mut buffer) {
            assert!(matches!(event, Event::Connected { .. }), "{event:?}");
            client_connected = true;
            client.send(now, connection, 0, b"me again").expect("room");
        }
    });
    assert!(client_connected);
    server_saw.sort();
    assert_eq!(
        server_saw,
        ["closed Replaced", "connected 42 red team", "me again"]
    );
    assert_eq!(pair.simulation.node(server_node).connections().count(), 1);
}
