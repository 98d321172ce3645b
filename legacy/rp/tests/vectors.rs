//! The recorded datagrams and traces of the original (`tests/data/muse-rp.json`). Where it is wrong, the column `correct` or
//! `exact_floor` binds.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod vectors;
}

use muse_rp::packet::{ChannelInfo, Flags, HEADER_LEN, Meaning, Packet};
use muse_rp::receiver::Receiver;
use muse_rp::sender::Sender;
use muse_wire::partial::{Promise, losses_allowed};
use muse_wire::{Duration, Instant};
use serde_json::Value;
use support::vectors::{bytes, of_kind, text, u32_of};

#[test]
fn datagrams_are_read_and_written_byte_for_byte() {
    let messages = of_kind("message");
    assert_eq!(messages.len(), 35);
    for vector in messages {
        let name = text(&vector["name"]);
        let datagram = bytes(&vector["hex"]);
        let fields = &vector["fields"];
        let packet = Packet::parse(&datagram).expect(name);
        assert_eq!(packet.sequence, u32_of(&fields["seq"]), "{name}");
        assert_eq!(packet.ack, u32_of(&fields["ack"]), "{name}");
        assert_eq!(
            u32::from(packet.flags.0),
            u32_of(&fields["flags"]),
            "{name}"
        );
        assert_eq!(u32::from(packet.kind), u32_of(&fields["type"]), "{name}");
        assert_eq!(packet.payload, bytes(&fields["payload"]), "{name}");
        let mut written = [0; 64];
        let len = packet.emit(&mut written).expect(name);
        assert_eq!(written[..len], datagram, "{name}");
        if packet.flags.meaning() == Meaning::Init && datagram.len() > HEADER_LEN {
            let info = ChannelInfo::parse(packet.payload).expect(name);
            assert_eq!(info.bytes(), packet.payload, "{name}");
        }
    }
}

#[test]
fn partial_receivers_follow_the_correct_traces() {
    let traces = of_kind("partial_trace");
    assert_eq!(traces.len(), 13);
    for trace in traces {
        let name = text(&trace["name"]);
        let window = u32_of(&trace["window"]);
        let percent = u32_of(&trace["reliability_percent"]) as u8;
        let promise = Promise::new(window, percent).expect(name);
        assert_eq!(
            promise.losses_allowed(),
            u32_of(&trace["max_fails_exact_floor"])
        );
        let mut receiver = Receiver::partial(promise, u32_of(&trace["start_ack"]));
        let steps = trace["correct"].as_array().expect(name);
        assert_eq!(steps.len(), trace["arrivals"].as_array().expect(name).len());
        for step in steps {
            follow(name, &mut receiver, step);
            let state = receiver.promise().expect("a partial one");
            let counts = (state.counted_in_window(), state.skipped_in_window());
            let expected = (u32_of(&step["count"]), u32_of(&step["fails"]));
            assert_eq!(counts, expected, "{name}: {step}");
        }
    }
}

#[test]
fn reliable_receivers_follow_the_traces() {
    let traces = of_kind("reliable_trace");
    assert_eq!(traces.len(), 4);
    for trace in traces {
        let name = text(&trace["name"]);
        let (window, last) = (u32_of(&trace["window"]), u32_of(&trace["start_ack"]));
        let mut receiver = Receiver::reliable(window, last);
        for step in trace["csharp"].as_array().expect(name) {
            follow(name, &mut receiver, step);
        }
    }
}

/// One arrival: what it delivers, what is acknowledged, what waits.
fn follow(name: &str, receiver: &mut Receiver<()>, step: &Value) {
    let mut delivered = Vec::new();
    receiver.handle(u32_of(&step["arrive"]), 1, (), |arrived| {
        delivered.push(arrived.sequence);
    });
    assert_eq!(delivered, numbers(&step["delivered"]), "{name}: {step}");
    assert_eq!(receiver.ack(), u32_of(&step["ack"]), "{name}: {step}");
    let waiting: Vec<u32> = receiver.waiting().collect();
    assert_eq!(waiting, numbers(&step["buffer"]), "{name}: {step}");
}

#[test]
fn losses_allowed_are_the_exact_floor() {
    let vectors = of_kind("max_fails");
    assert_eq!(vectors.len(), 12);
    for vector in vectors {
        let percent = u32_of(&vector["reliability_percent"]) as u8;
        let allowed = losses_allowed(u32_of(&vector["window"]), percent);
        assert_eq!(allowed, u32_of(&vector["exact_floor"]), "{vector}");
    }
}

#[test]
fn senders_follow_the_traces() {
    let traces = of_kind("sender_trace");
    assert_eq!(traces.len(), 2);
    for trace in traces {
        let name = text(&trace["name"]);
        let interval = Duration::from_secs(1);
        let mut sender = Sender::new(
            u32_of(&trace["window"]),
            u32_of(&trace["recognised"]),
            interval,
        );
        for event in trace["events"].as_array().expect(name) {
            let words: Vec<&str> = text(&event["on"]).split_whitespace().collect();
            match words[..] {
                ["send"] => queue(&mut sender, u32_of(&trace["queued"])),
                ["send", count] => queue(&mut sender, count.parse().expect("a number")),
                ["ack", number, ..] => {
                    sender.handle_ack(Instant::ZERO, number.parse().expect("a number"));
                }
                // The ack field of data is not even shown to the sender.
                ["DATA", ..] => (),
                _ => panic!("{name}: {event}"),
            }
            let sent = std::iter::from_fn(|| {
                let packet = sender.poll(Instant::ZERO, 0)?;
                Some(packet.sequence)
            });
            let sent: Vec<u32> = sent.collect();
            assert_eq!(sent, numbers(&event["sent"]), "{name}: {event}");
        }
    }
}

fn queue(sender: &mut Sender, count: u32) {
    for _ in 0..count {
        sender.queue(Flags::DATA, 1, Vec::new());
    }
}

fn numbers(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .expect("an array")
        .iter()
        .map(u32_of)
        .collect()
}
