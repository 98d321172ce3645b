//! A sender of unreliable messages alone whose whole flight is lost goes on as soon as the path does, and an idle one sends nothing for it.

#[path = "support/pair.rs"]
mod support;

use muse_netem::Conditions;
use muse_transport::{ChannelConfig, Config, ConnectionStats, Delivery};
use muse_wire::{Duration, Instant};
use support::{OwnedEvent, Pair, Side};

const FRAME: Duration = Duration::from_micros(16_667);
const DELAY: Duration = Duration::from_millis(30);
/// Longest time from the path's return to the next message: a probe time-out with the receiver's patience for unreliable
/// messages (five times the acknowledgement delay of 50 ms), a round trip for the answer, and half a one for the message.
const RECOVERY_MAX: Duration = Duration::from_millis(500);

fn connected(seed: u64) -> Pair {
    let config = Config::new(1).channel(ChannelConfig::new(Delivery::Unreliable));
    let mut pair = Pair::new(config.build().expect("legal"), seed);
    set_path(&mut pair, 0.0);
    pair.connect();
    pair
}

fn set_path(pair: &mut Pair, loss: f64) {
    let conditions = Conditions::default().delay(DELAY).loss(loss);
    pair.simulation.network_mut().set_default(conditions);
}

fn stats(pair: &Pair) -> ConnectionStats {
    let (node, connection) = (pair.node(Side::Server), pair.connection(Side::Server));
    node.stats(connection).expect("connected")
}

/// A game that sends so much in each frame.
fn play(pair: &mut Pair, messages: usize, frames: u32) {
    for _ in 0..frames {
        for _ in 0..messages {
            pair.send(Side::Server, 0, &[7; 1_000]);
        }
        pair.advance_for(FRAME);
    }
}

/// Loses everything until all that was on its way before has arrived and the window is full of what was lost.
fn lose_a_flight(pair: &mut Pair) {
    set_path(pair, 1.0);
    play(pair, 20, 30);
    let lost = stats(pair);
    assert!(lost.in_flight + lost.mtu > lost.window, "{lost:?}");
    set_path(pair, 0.0);
}

/// The first message that arrives after `since`.
fn next_delivery(pair: &Pair, since: Instant) -> Option<Instant> {
    let is_message = |what: &OwnedEvent| matches!(what, OwnedEvent::Message { .. });
    let mut later = pair.log.iter().filter(|entry| entry.at > since);
    later
        .find(|entry| is_message(&entry.what))
        .map(|entry| entry.at)
}

#[test]
fn a_stream_goes_on_soon_after_a_whole_flight_was_lost() {
    for seed in 1..=5 {
        let mut pair = connected(seed);
        play(&mut pair, 20, 120);
        lose_a_flight(&mut pair);
        let restored = pair.now();
        play(&mut pair, 20, 600);
        let next = next_delivery(&pair, restored).expect("it goes on");
        let outage = next - restored;
        assert!(outage <= RECOVERY_MAX, "seed {seed}: {outage:?}");
    }
}

#[test]
fn a_message_after_a_pause_does_not_wait_for_the_flight_that_was_lost_before() {
    for seed in 1..=5 {
        let mut pair = connected(seed);
        play(&mut pair, 20, 120);
        lose_a_flight(&mut pair);
        // What waits is too old by then, and nothing is left to send.
        pair.advance_for(Duration::from_millis(900));
        let asked = pair.now();
        pair.send(Side::Server, 0, b"still there?");
        pair.advance_for(Duration::from_secs(10));
        let next = next_delivery(&pair, asked).expect("it arrives");
        let wait = next - asked;
        assert!(
            wait <= DELAY + Duration::from_millis(2),
            "seed {seed}: {wait:?}"
        );
    }
}

#[test]
fn a_sender_with_nothing_to_send_does_not_probe_for_unreliable_messages() {
    let mut pair = connected(1);
    play(&mut pair, 20, 120);
    // The last frame of a stream is lost, with the window far from full.
    set_path(&mut pair, 1.0);
    play(&mut pair, 1, 1);
    set_path(&mut pair, 0.0);
    let before = stats(&pair);
    pair.advance_for(Duration::from_secs(20));
    let after = stats(&pair);
    // A ping each two seconds, from either side, and its acknowledgement.
    let sent = after.packets_sent - before.packets_sent;
    assert!(sent <= 20, "{sent} packets in 20 s");
}
