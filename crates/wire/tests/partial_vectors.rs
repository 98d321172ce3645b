//! The receiver against traces of the algorithm: every arrival's acknowledgement, counters, buffer and deliveries.

use muse_wire::partial::{PartialReceiver, Promise, Verdict, losses_allowed};
use muse_wire::sequence::expand;
use serde_json::Value;

#[test]
fn every_trace_is_followed_step_by_step() {
    let vectors = vectors();
    let traces = vectors["partial"].as_array().expect("a list of traces");
    assert_eq!(traces.len(), 13);
    for trace in traces {
        let promise =
            Promise::new(number(&trace["window"]) as u32, percent(trace)).expect("a valid promise");
        assert_eq!(
            u64::from(promise.losses_allowed()),
            number(&trace["max_fails_exact_floor"])
        );
        let mut follower = Follower::new(promise, number(&trace["start_ack"]));
        let steps = trace["correct"].as_array().expect("a list of steps");
        assert_eq!(
            steps.len(),
            trace["arrivals"].as_array().map_or(0, Vec::len)
        );
        for step in steps {
            let got = follower.arrive(number(&step["arrive"]));
            assert_eq!(&got, step, "{}", trace["name"]);
        }
    }
}

#[test]
fn allowed_losses_are_the_exact_floor() {
    let vectors = vectors();
    let cases = vectors["losses_allowed"]
        .as_array()
        .expect("a list of cases");
    assert_eq!(cases.len(), 12);
    for case in cases {
        let got = losses_allowed(number(&case["window"]) as u32, percent(case));
        assert_eq!(
            u64::from(got),
            number(&case["exact_floor"]),
            "{}",
            case["name"]
        );
    }
}

/// Runs a receiver the way MUSE-RP does: 32-bit numbers outside, 64 bits inside.
struct Follower {
    receiver: PartialReceiver,
    buffer: Vec<u64>,
}

impl Follower {
    fn new(promise: Promise, start_ack: u64) -> Self {
        // One turn of the 32-bit space ahead, so that older numbers exist.
        let first_slot = (1 << 32) + start_ack + 1;
        Self {
            receiver: PartialReceiver::new(promise, first_slot),
            buffer: Vec::new(),
        }
    }

    /// The step in the form of the trace.
    fn arrive(&mut self, number: u64) -> Value {
        let slot = expand(number, 32, self.receiver.next_expected());
        let mut delivered = Vec::new();
        match self.receiver.receive(slot) {
            Verdict::Deliver { .. } => delivered.push(slot),
            Verdict::Buffer => self.buffer.push(slot),
            Verdict::Drop => {}
        }
        while let Some(ready) = self.receiver.pop_ready() {
            self.buffer.retain(|&buffered| buffered != ready.slot);
            delivered.push(ready.slot);
        }
        self.buffer.sort_unstable();
        assert!(
            self.buffer
                .iter()
                .all(|&slot| self.receiver.is_buffered(slot))
        );
        assert_eq!(self.buffer.len(), self.receiver.buffered_len() as usize);
        serde_json::json!({
            "arrive": number,
            "ack": low(self.receiver.next_expected() - 1),
            "count": self.receiver.counted_in_window(),
            "fails": self.receiver.skipped_in_window(),
            "buffer": self.buffer.iter().copied().map(low).collect::<Vec<_>>(),
            "delivered": delivered.into_iter().map(low).collect::<Vec<_>>(),
        })
    }
}

fn low(slot: u64) -> u64 {
    slot & u64::from(u32::MAX)
}

fn percent(case: &Value) -> u8 {
    number(&case["reliability_percent"]) as u8
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("data/partial.json")).expect("valid JSON")
}
