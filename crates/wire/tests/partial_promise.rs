//! The promise of partial reliability: whatever the network does, delivery is in order, no aligned window loses more
//! than its share, and a sender that gives up slots never leaves the receiver waiting.

use std::collections::BTreeSet;

use muse_wire::partial::{PartialReceiver, PartialSender, Promise, Verdict};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_arrivals_keep_order_and_promise(
        window in 1u32..80,
        percent in 0u8..=100,
        arrivals in prop::collection::vec(0u64..400, 0..600),
    ) {
        let mut checked = Checked::new(window, percent);
        for slot in arrivals {
            checked.arrive(slot);
        }
    }

    #[test]
    fn a_lossy_shuffled_stream_keeps_order_and_promise(
        window in 1u32..200,
        percent in 0u8..=100,
        loss_percent in 0u32..60,
        shuffle in 1usize..40,
        seed: u64,
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut slots: Vec<u64> = (0..600).filter(|_| random.u32(0..100) >= loss_percent).collect();
        for chunk in slots.chunks_mut(shuffle) {
            random.shuffle(chunk);
        }
        let mut checked = Checked::new(window, percent);
        for slot in slots {
            checked.arrive(slot);
        }
    }

    #[test]
    fn a_sender_that_gives_up_never_stalls_the_receiver(
        window in 1u32..60,
        percent in 0u8..=100,
        loss_percent in 0u32..60,
        delay_max in 1u64..30,
        seed: u64,
    ) {
        let stalled = Simulation::new(window, percent, loss_percent, delay_max, seed).run();
        prop_assert_eq!(stalled, None);
    }
}

/// A receiver with checks around it.
struct Checked {
    receiver: PartialReceiver,
    arrived: BTreeSet<u64>,
    delivered: Vec<u64>,
    skipped: u64,
}

impl Checked {
    fn new(window: u32, percent: u8) -> Self {
        let promise = Promise::new(window, percent).expect("a valid promise");
        Self {
            receiver: PartialReceiver::new(promise, 0),
            arrived: BTreeSet::new(),
            delivered: Vec::new(),
            skipped: 0,
        }
    }

    fn arrive(&mut self, slot: u64) {
        self.arrived.insert(slot);
        if let Verdict::Deliver { skipped } = self.receiver.receive(slot) {
            self.deliver(slot, skipped);
        }
        while let Some(ready) = self.receiver.pop_ready() {
            self.deliver(ready.slot, ready.skipped);
        }
        assert!(self.receiver.buffered_len() < self.receiver.promise().window());
        let window = u64::from(self.receiver.promise().window());
        let next = self.receiver.next_expected();
        assert_eq!(
            u64::from(self.receiver.counted_in_window()),
            next % window,
            "aligned"
        );
        // One arrival settles slots of two windows at most.
        for start in [
            (next / window).saturating_sub(1) * window,
            next / window * window,
        ] {
            let end = next.min(start + window);
            let delivered = self
                .delivered
                .iter()
                .filter(|slot| (start..end).contains(slot));
            let lost = end - start - delivered.count() as u64;
            let losses_max = u64::from(self.receiver.promise().losses_allowed());
            assert!(lost <= losses_max, "{lost} of {start}..{end} lost");
        }
    }

    fn deliver(&mut self, slot: u64, skipped: u32) {
        assert!(self.arrived.contains(&slot), "{slot} never arrived");
        let expected = self.delivered.last().map_or(0, |last| last + 1);
        assert_eq!(
            slot - expected,
            u64::from(skipped),
            "{slot} after {expected}"
        );
        self.delivered.push(slot);
        self.skipped += u64::from(skipped);
        assert_eq!(self.receiver.next_expected(), slot + 1);
    }
}

/// Both ends over a network that delays and loses messages and reports.
struct Simulation {
    sender: PartialSender,
    receiver: Checked,
    random: fastrand::Rng,
    loss_percent: u32,
    delay_max: u64,
    /// Arrival time and slot.
    messages: BTreeSet<(u64, u64)>,
    /// Arrival time and report.
    reports: BTreeSet<(u64, u64, u32)>,
    /// When a slot was last sent, by slot; the sender's retransmission timer.
    sent: Vec<u64>,
}

impl Simulation {
    fn new(window: u32, percent: u8, loss_percent: u32, delay_max: u64, seed: u64) -> Self {
        let promise = Promise::new(window, percent).expect("a valid promise");
        Self {
            sender: PartialSender::new(promise, 0),
            receiver: Checked::new(window, percent),
            random: fastrand::Rng::with_seed(seed),
            loss_percent,
            delay_max,
            messages: BTreeSet::new(),
            reports: BTreeSet::new(),
            sent: Vec::new(),
        }
    }

    /// The slot that the receiver still waits for when the time is up, if any.
    fn run(mut self) -> Option<u64> {
        for now in 0..TIME_MAX {
            self.receive(now);
            self.retransmit(now);
            // The last slot is never given up, so the receiver always has something to reach for.
            while self.sent.len() < SLOTS && self.sender.may_send(self.sent.len() as u64) {
                self.sent.push(now);
                self.transmit(now, self.sent.len() as u64 - 1);
            }
            if self.receiver.receiver.next_expected() == SLOTS as u64 {
                return None;
            }
        }
        Some(self.receiver.receiver.next_expected())
    }

    fn receive(&mut self, now: u64) {
        while let Some(&(time, slot)) = self.messages.first()
            && time <= now
        {
            self.messages.pop_first();
            self.receiver.arrive(slot);
        }
        let receiver = &self.receiver.receiver;
        let report = (receiver.next_expected(), receiver.skipped_in_window());
        if let Some(delay) = self.delay() {
            self.reports.insert((now + delay, report.0, report.1));
        }
        while let Some(&(time, next_expected, skipped)) = self.reports.first()
            && time <= now
        {
            self.reports.pop_first();
            self.sender.handle_progress(next_expected, skipped);
            while let Some(slot) = self.sender.poll_revoked() {
                self.transmit(now, slot);
                self.sent[slot as usize] = now;
            }
        }
    }

    /// Messages that have not been settled for a while are given up where possible and sent again where not.
    fn retransmit(&mut self, now: u64) {
        for slot in self.sender.next_expected()..self.sent.len() as u64 {
            if now - self.sent[slot as usize] < 2 * self.delay_max + 1 {
                continue;
            }
            if slot + 1 < SLOTS as u64 && self.sender.give_up(slot) {
                continue;
            }
            self.sent[slot as usize] = now;
            self.transmit(now, slot);
        }
    }

    fn transmit(&mut self, now: u64, slot: u64) {
        if let Some(delay) = self.delay() {
            self.messages.insert((now + delay, slot));
        }
    }

    fn delay(&mut self) -> Option<u64> {
        let lost = self.random.u32(0..100) < self.loss_percent;
        (!lost).then(|| self.random.u64(1..=self.delay_max))
    }
}

const SLOTS: usize = 150;
const TIME_MAX: u64 = 200_000;
