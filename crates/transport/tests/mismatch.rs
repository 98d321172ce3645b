//! A client and a server that do not share what they must: the client is told what differs.

#[path = "support/pair.rs"]
mod pair;

use muse_netem::Conditions;
use muse_transport::{
    ChannelConfig, Config, Connect, DESCRIPTION_LEN_MAX, Delivery, Endpoint, HandshakeLimits,
    Refusal, SeededEntropy, ServerOptions,
};
use muse_wire::{Duration, Instant};
use pair::{OwnedEvent, Pair, Side, server_key};

const LATENCY: Duration = Duration::from_millis(20);

fn config() -> Config {
    Config::new(0xD1FF).channel(ChannelConfig::new(Delivery::Sequenced))
}

/// A client and a server with these configs begin to connect.
fn meet(server: Config, client: Config, seed: u64) -> Pair {
    meet_with(server, client, seed, HandshakeLimits::default())
}

fn meet_with(server: Config, client: Config, seed: u64, limits: HandshakeLimits) -> Pair {
    let (key, public) = server_key(seed);
    let [server, client] = [(server, 1), (client, 2)].map(|(config, salt)| {
        let config = config.build().expect("sensible");
        Endpoint::new(config, SeededEntropy::danger_seeded(seed ^ salt))
    });
    let mut server = server;
    server.listen(ServerOptions::new(key).limits(limits));
    let mut pair = Pair::of(server, client, Connect::pinned(public), seed, None);
    let conditions = Conditions::default().delay(LATENCY);
    pair.simulation.network_mut().set_default(conditions);
    pair
}

/// The differences that the client was told, and when.
fn told(pair: &Pair) -> (Vec<String>, Instant) {
    let entry = pair.log.first().expect("told something");
    let OwnedEvent::Refused(Refusal::Schema {
        client,
        server,
        differences,
    }) = &entry.what
    else {
        unreachable!("another reason: {:?}", entry.what)
    };
    assert_ne!(client, server);
    let differences = differences.iter().map(ToString::to_string);
    (differences.collect(), entry.at)
}

fn assert_modest(pair: &Pair) {
    let stats = pair.simulation.network().stats(pair.nodes[1]);
    let (sent, received) = (stats.sent.payload_bytes, stats.received.payload_bytes);
    assert!(sent <= received, "{sent} bytes for {received}");
    assert_eq!(pair.node(Side::Server).pending(), 0);
    assert_eq!(pair.node(Side::Server).connections().count(), 0);
}

#[test]
fn everything_that_differs_is_named() {
    let server = config()
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .shared("1 Jump\n2 Say { text: text max 200 }\n")
        .shared("tick rate 60");
    let client = config()
        .channel(ChannelConfig::new(Delivery::ReliableUnordered))
        .shared("tick rate 50")
        .shared("2 Say { text: text max 100 }\n3 Shoot\n");
    let mut pair = meet(server, client, 1);
    pair.advance(Instant::from_secs(5));
    let (differences, at) = told(&pair);
    assert_eq!(
        differences,
        [
            "`1 Jump` only there",
            "`2 Say` differs: text: text max 100 here, text: text max 200 there",
            "`3 Shoot` only here",
            "`channel 1 reliable unordered` here, `channel 1 reliable ordered` there",
            "`tick rate 50` here, `tick rate 60` there",
        ]
    );
    assert_eq!(at, Instant::ZERO + LATENCY * 6, "three round trips");
    assert_modest(&pair);
}

/// A description of almost the greatest length; one line depends on `rate`.
fn long(rate: u32) -> String {
    let mut text = format!("tick rate {rate}\n");
    for id in 0.. {
        let line =
            format!("{id} Message {{ first: u32, second: text max 100, third: [f32; 3] }}\n");
        if text.len() + line.len() + 40 > DESCRIPTION_LEN_MAX {
            break;
        }
        text.push_str(&line);
    }
    text
}

#[test]
fn one_line_of_a_thousand_is_found_under_loss() {
    let (server, client) = (config().shared(&long(60)), config().shared(&long(50)));
    let mut found = 0;
    for seed in 0..20 {
        let mut pair = meet(server.clone(), client.clone(), seed);
        let conditions = Conditions::default().delay(LATENCY).loss(0.1);
        pair.simulation.network_mut().set_default(conditions);
        pair.advance(Instant::from_secs(15));
        let (differences, _) = told(&pair);
        assert!(differences.len() <= 1, "seed {seed}: {differences:?}");
        found += differences.len();
        assert_modest(&pair);
    }
    assert_eq!(found, 20, "within the time that a client asks");
}

#[test]
fn a_server_that_does_not_say_costs_three_seconds_and_the_refusal_remains() {
    let limits = HandshakeLimits::default().descriptions(1, 1);
    let (server, client) = (config().shared(&long(60)), config().shared(&long(50)));
    let mut pair = meet_with(server, client, 3, limits);
    pair.advance(Instant::from_secs(10));
    let (differences, at) = told(&pair);
    assert!(differences.is_empty(), "{differences:?}");
    assert_eq!(at, Instant::from_secs(3) + LATENCY * 4);
    let counters = pair.node(Side::Server).handshake_counters();
    let counters = counters.expect("it listens");
    assert!(
        counters.descriptions <= 4 && counters.replies_limited > 50,
        "{counters:?}"
    );
    assert_modest(&pair);
}
