//! Partial reliability: any operations at both ends keep order and promise.

use arbitrary::{Arbitrary, Unstructured};
use muse_wire::partial::{PartialReceiver, PartialSender, Promise, Verdict};

use crate::{Bound, Target, no_setup};

/// Operations on partial reliability.
pub const TARGET: Target = Target {
    name: "partial",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 16,
    },
    steps: Bound {
        base: 10_000,
        per_byte: 200,
    },
};

#[derive(Arbitrary)]
enum Operation {
    /// A slot this far from the expected one arrives.
    Arrive(i8),
    /// Any slot at all arrives.
    ArriveAnywhere(u64),
    /// The sender wants to give up a slot this far from the expected one.
    GiveUp(u8),
    /// The receiver's report arrives.
    Report,
    /// A report that the receiver never made arrives at a second sender, which must survive it.
    Lie(u64, u32),
}

/// The bytes choose a promise, the first slot and operations.
fn run(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let Ok((window, percent, first)) = <(u8, u8, u64)>::arbitrary(&mut choices) else {
        return;
    };
    let Ok(promise) = Promise::new(u32::from(window), percent % 101) else {
        return;
    };
    let mut ends = Ends {
        receiver: PartialReceiver::new(promise, first),
        sender: PartialSender::new(promise, first),
        deceived: PartialSender::new(promise, first),
        first,
        next: first,
        lost_in_window: 0,
    };
    while !choices.is_empty()
        && let Ok(operation) = Operation::arbitrary(&mut choices)
    {
        ends.step(operation);
    }
}

struct Ends {
    receiver: PartialReceiver,
    sender: PartialSender,
    deceived: PartialSender,
    first: u64,
    /// The slot after the last delivered.
    next: u64,
    lost_in_window: u64,
}

impl Ends {
    fn step(&mut self, operation: Operation) {
        match operation {
            Operation::Arrive(offset) => {
                self.arrive(self.next.saturating_add_signed(offset.into()));
            }
            Operation::ArriveAnywhere(slot) => self.arrive(slot),
            Operation::GiveUp(offset) => {
                let slot = self.sender.next_expected().saturating_add(offset.into());
                let permitted = self.sender.may_give_up(slot);
                assert_eq!(self.sender.give_up(slot), permitted);
                assert!(
                    !permitted || (self.sender.is_given_up(slot) && self.sender.may_send(slot))
                );
            }
            Operation::Report => {
                let skipped = self.receiver.skipped_in_window();
                self.sender
                    .handle_progress(self.receiver.next_expected(), skipped);
                while let Some(slot) = self.sender.poll_revoked() {
                    assert!(!self.sender.is_given_up(slot) && self.sender.may_send(slot));
                }
                assert_eq!(self.sender.next_expected(), self.receiver.next_expected());
            }
            Operation::Lie(next_expected, skipped) => {
                self.deceived.handle_progress(next_expected, skipped);
                self.deceived.give_up(next_expected.saturating_add(1));
                while self.deceived.poll_revoked().is_some() {}
            }
        }
    }

    fn arrive(&mut self, slot: u64) {
        match self.receiver.receive(slot) {
            Verdict::Deliver { skipped } => self.deliver(slot, skipped),
            Verdict::Buffer => assert!(self.receiver.is_buffered(slot)),
            Verdict::Drop => {}
        }
        while let Some(ready) = self.receiver.pop_ready() {
            self.deliver(ready.slot, ready.skipped);
        }
        assert!(self.receiver.buffered_len() < self.receiver.promise().window());
    }

    /// Counts the losses of aligned windows by itself.
    fn deliver(&mut self, slot: u64, skipped: u32) {
        assert_eq!(slot - self.next, u64::from(skipped));
        let promise = self.receiver.promise();
        for lost in self.next..slot {
            self.start_window(lost);
            self.lost_in_window += 1;
            assert!(self.lost_in_window <= u64::from(promise.losses_allowed()));
        }
        self.start_window(slot);
        self.next = slot + 1;
        assert_eq!(self.receiver.next_expected(), self.next);
    }

    fn start_window(&mut self, slot: u64) {
        if (slot - self.first).is_multiple_of(self.receiver.promise().window().into()) {
            self.lost_in_window = 0;
        }
    }
}
