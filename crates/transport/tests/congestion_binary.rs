//! Fiedler's two modes through a whole connection: the rate of packets follows a change of mode at once, in both directions, whatever
//! the size of the packets.

#[path = "support/pair.rs"]
mod support;

use muse_netem::Conditions;
use muse_transport::congestion::Congestion;
use muse_transport::{ChannelConfig, Config, ConnectionStats, Delivery};
use muse_wire::{Duration, Instant};
use support::{Pair, Side};

const GOOD: u64 = 30;
const BAD: u64 = 10;
const PACKET: u64 = 256;
const THRESHOLD: Duration = Duration::from_millis(250);
const STEP: Duration = Duration::from_millis(10);

/// A server that sends a message in every step, more than either mode lets through.
struct Stream {
    pair: Pair,
    message: Vec<u8>,
}

impl Stream {
    fn new(delivery: Delivery, message: usize, seed: u64) -> Self {
        let config = Config::new(1)
            .channel(ChannelConfig::new(delivery))
            .congestion(Congestion::binary())
            .build()
            .expect("legal");
        let mut stream = Self {
            pair: Pair::new(config, seed),
            message: vec![7; message],
        };
        stream.round_trip(40);
        stream.pair.connect();
        stream
    }

    fn round_trip(&mut self, millis: u64) {
        let conditions = Conditions::default().delay(Duration::from_millis(millis / 2));
        self.pair.simulation.network_mut().set_default(conditions);
    }

    fn step(&mut self) {
        let message = std::mem::take(&mut self.message);
        self.pair.send(Side::Server, 0, &message);
        self.message = message;
        self.pair.advance_for(STEP);
    }

    fn stats(&self) -> ConnectionStats {
        let connection = self.pair.connection(Side::Server);
        let stats = self.pair.node(Side::Server).stats(connection);
        stats.expect("connected")
    }

    /// Packets and bytes that leave in the next second.
    fn second(&mut self) -> (u64, u64) {
        let before = self.stats();
        for _ in 0..100 {
            self.step();
        }
        let after = self.stats();
        (
            after.packets_sent - before.packets_sent,
            after.bytes_sent - before.bytes_sent,
        )
    }

    /// Steps until conditions are bad, or good again; returns when.
    fn until(&mut self, bad: bool) -> Instant {
        let limit = self.pair.now() + Duration::from_secs(10);
        while (self.stats().rtt > THRESHOLD) != bad {
            assert!(self.pair.now() < limit, "conditions do not change");
            self.step();
        }
        self.pair.now()
    }
}

/// Checks a second's packets and bytes; a packet that leaves with an empty bucket may be a full one. A reliable stream repays in the bad mode what it
/// spent on probes, which wait for nothing.
fn check(what: &str, (packets, bytes): (u64, u64), mode: u64, small: bool) {
    assert!(packets <= mode + 2, "{what}: {packets} packets, not {mode}");
    assert!(
        bytes <= mode * PACKET + 1_500,
        "{what}: {bytes} bytes, not {}",
        mode * PACKET
    );
    if mode == BAD && what.starts_with("reliable") {
        return;
    }
    if small {
        assert!(packets + 2 >= mode, "{what}: {packets} packets, not {mode}");
    } else {
        assert!(bytes + 1_500 >= mode * PACKET, "{what}: {bytes} bytes");
    }
}

#[test]
fn the_rate_follows_the_mode_at_once() {
    for (delivery, message, seed) in [
        (Delivery::Unreliable, 8, 1),
        (Delivery::Sequenced, 1, 2),
        (Delivery::ReliableOrdered, 8, 3),
        (Delivery::Unreliable, 200, 4),
        (Delivery::ReliableOrdered, 200, 5),
    ] {
        let what = |when: &str| format!("{delivery}, {message} bytes, {when}");
        let small = message < 100;
        let mut stream = Stream::new(delivery, message, seed);
        for _ in 0..12 {
            stream.second();
            let second = stream.second();
            check(&what("good"), second, GOOD, small);
        }
        stream.round_trip(600);
        stream.until(true);
        for when in ["bad", "a second later", "two seconds later"] {
            let second = stream.second();
            check(&what(when), second, BAD, small);
        }
        stream.round_trip(40);
        let good_from = stream.until(false);
        // Good lasted longer than ten seconds, so a second of good conditions is enough.
        let second = stream.second();
        check(&what("recovering"), second, BAD, small);
        assert!(stream.pair.now() - good_from <= Duration::from_millis(1_000));
        for _ in 0..15 {
            stream.step();
        }
        for when in ["good again", "a second after that"] {
            let second = stream.second();
            check(&what(when), second, GOOD, small);
        }
        // This good time was short: the next recovery takes two seconds.
        stream.round_trip(600);
        stream.until(true);
        let second = stream.second();
        check(&what("bad again"), second, BAD, small);
        stream.round_trip(40);
        stream.until(false);
        for when in ["recovering", "still recovering"] {
            let second = stream.second();
            check(&what(when), second, BAD, small);
        }
        for _ in 0..15 {
            stream.step();
        }
        let second = stream.second();
        check(&what("good for the third time"), second, GOOD, small);
    }
}
