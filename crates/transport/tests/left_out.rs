//! Numbers that are left out, to catch peers that acknowledge what they have not received, are no packets: nobody counts them as sent or
//! lost.

#[path = "support/pair.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use muse_netem::{Conditions, Jitter};
use muse_transport::{ChannelConfig, Config, Delivery};
use muse_wire::{Duration, sequence::expand};
use support::{Pair, Side};

/// Both sides send 60 messages a second on every kind of channel. Returns the packet numbers that the server used.
fn play(conditions: Conditions, seed: u64, span: Duration) -> (Pair, BTreeSet<u64>) {
    let deliveries = [
        Delivery::Unreliable,
        Delivery::ReliableOrdered,
        Delivery::partially_reliable(50, 80).expect("sensible"),
    ];
    let config = deliveries
        .into_iter()
        .fold(Config::new(1), |config, delivery| {
            config.channel(ChannelConfig::new(delivery))
        });
    let mut pair = Pair::new(config.build().expect("legal"), seed);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let tap = Arc::clone(&seen);
    let network = pair.simulation.network_mut();
    network.set_default(conditions);
    network.set_tap(move |sighting| {
        let packet = sighting.payload;
        if sighting.from == support::server_address() && packet[0] & 0x80 != 0 {
            let mut seen = tap.lock().expect("one thread");
            let highest = seen.last().copied().unwrap_or(65_279);
            let low = u64::from(u16::from_le_bytes([packet[5], packet[6]]));
            seen.insert(expand(low, 16, highest));
        }
    });
    pair.connect();
    let end = pair.now() + span;
    while pair.now() < end {
        for side in Side::BOTH {
            for channel in 0..deliveries.len() as u8 {
                pair.send(side, channel, &[1; 40]);
            }
        }
        pair.advance_for(Duration::from_micros(16_667));
    }
    pair.advance_for(Duration::from_secs(3));
    let seen = seen.lock().expect("one thread").clone();
    (pair, seen)
}

#[test]
fn a_perfect_path_loses_nothing_although_numbers_are_missing() {
    let conditions = Conditions::default()
        .delay(Duration::from_millis(20))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .keep_order(true);
    let (pair, numbers) = play(conditions, 1, Duration::from_secs(120));
    let (first, last) = (numbers.first().copied(), numbers.last().copied());
    let span = last.zip(first).map_or(0, |(last, first)| last - first + 1);
    let left_out = span - numbers.len() as u64;
    assert!((6..30).contains(&left_out), "{left_out} of {span}");
    let expected = 60 * 120;
    for side in Side::BOTH {
        let connection = pair.connection(side);
        let stats = pair.node(side).stats(connection).expect("still there");
        assert_eq!(stats.packets_lost, 0, "{side:?}");
        assert!(stats.loss < 1e-6, "{side:?}: {}", stats.loss);
        assert_eq!(stats.packets_recovered, 0);
        let reliable = pair.node(side).channel_stats(connection, 1);
        assert_eq!(reliable.expect("a channel").pieces_resent, 0);
        for channel in 0..3 {
            let received = pair.received(side, channel).len();
            assert!(received >= expected, "channel {channel}: {received}");
        }
    }
    let server = pair.node(Side::Server).stats(pair.connection(Side::Server));
    let sent = server.expect("still there").packets_sent;
    assert_eq!(sent, numbers.len() as u64, "a number left out is no packet");
}

#[test]
fn what_is_counted_as_lost_was_lost() {
    for seed in 0..4 {
        let conditions = Conditions::default()
            .delay(Duration::from_millis(20))
            .loss(0.005);
        let (pair, _) = play(conditions, seed, Duration::from_secs(120));
        let stats = pair.node(Side::Server).stats(pair.connection(Side::Server));
        let stats = stats.expect("still there");
        let [client, server] = pair.nodes;
        let network = pair.simulation.network();
        let lost = network.link_counters(server, client).expect("used").lost();
        let counted = stats.packets_lost - stats.packets_lost_spuriously;
        // Packets that ask for no acknowledgement are not missed, and the handshake's are none of the connection's.
        assert!(counted <= lost, "seed {seed}: {counted} of {lost}");
        assert!(counted + 3 >= lost, "seed {seed}: {counted} of {lost}");
    }
}
