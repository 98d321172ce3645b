//! The sending half of a channel: sliding window, cumulative acknowledgements, one timer.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::packet::{Flags, Packet};

/// Numbers messages, keeps them until they are acknowledged and says what to send next.
///
/// [`queue`](Self::queue) messages and call [`poll`](Self::poll) until it returns `None`; give it acknowledgements
/// ([`handle_ack`](Self::handle_ack)) and its [`timeout`](Self::timeout) ([`handle_timeout`](Self::handle_timeout)),
/// after each of which `poll` may have something again.
///
/// ```
/// use muse_rp::packet::Flags;
/// use muse_rp::sender::Sender;
/// use muse_wire::{Duration, Instant};
/// let mut sender = Sender::new(1, 41, Duration::from_millis(200));
/// sender.queue(Flags::DATA, 5, b"first".to_vec());
/// sender.queue(Flags::DATA, 5, b"second".to_vec());
/// assert_eq!(sender.poll(Instant::ZERO, 0).map(|packet| packet.sequence), Some(42));
/// assert_eq!(sender.poll(Instant::ZERO, 0), None, "the window is full");
/// sender.handle_ack(Instant::ZERO, 42);
/// assert_eq!(sender.poll(Instant::ZERO, 0).map(|packet| packet.sequence), Some(43));
/// ```
#[derive(Clone, Debug)]
pub struct Sender {
    window: u32,
    /// The last number that the peer has accepted.
    acked: u32,
    /// Sent and not acknowledged: the numbers just after `acked`, without a gap.
    in_flight: VecDeque<Message>,
    /// Not sent yet.
    waiting: VecDeque<Message>,
    duplicates: u32,
    interval: Duration,
    timer: Option<Instant>,
    /// Nothing is sent before.
    held_until: Option<Instant>,
    /// The oldest is to be sent again.
    resend: bool,
    /// Number of times the timer ran out since the peer last accepted something.
    timeouts: u32,
    /// Since when the oldest message under way has been the oldest.
    stalled_since: Option<Instant>,
    counters: SenderCounters,
}

/// Counters of a [`Sender`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderCounters {
    /// Messages sent for the first time.
    pub sent: u64,
    /// Messages sent again because the timer ran out.
    pub resent_by_timer: u64,
    /// Messages sent again after three duplicate acknowledgements.
    pub resent_by_duplicates: u64,
    /// Acknowledgements that moved the window.
    pub acks: u64,
    /// Acknowledgements of what was acknowledged already.
    pub acks_duplicate: u64,
    /// Acknowledgements of numbers long gone or never sent.
    pub acks_ignored: u64,
}

#[derive(Clone, Debug)]
struct Message {
    flags: Flags,
    kind: u16,
    /// The ack field it was first sent with: a repetition is the same datagram.
    ack: u32,
    payload: Vec<u8>,
}

impl Sender {
    /// A sender whose first message has the number after `acked`.
    pub fn new(window: u32, acked: u32, interval: Duration) -> Self {
        Self {
            window,
            acked,
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            duplicates: 0,
            interval,
            timer: None,
            held_until: None,
            resend: false,
            timeouts: 0,
            stalled_since: None,
            counters: SenderCounters::default(),
        }
    }

    /// Adds a message behind those that wait.
    pub fn queue(&mut self, flags: Flags, kind: u16, payload: Vec<u8>) {
        self.waiting.push_back(Message {
            flags,
            kind,
            ack: 0,
            payload,
        });
    }

    /// Returns the packet to send now. `ack` is the last number accepted in the other direction, for the field that nobody reads.
    pub fn poll(&mut self, now: Instant, ack: u32) -> Option<Packet<'_>> {
        if std::mem::take(&mut self.resend) && !self.in_flight.is_empty() {
            self.timer = Some(now + self.interval);
            return self.packet(0);
        }
        if !self.may_send() {
            return None;
        }
        let mut message = self.waiting.pop_front()?;
        message.ack = ack;
        self.in_flight.push_back(message);
        self.counters.sent += 1;
        self.timer.get_or_insert(now + self.interval);
        self.stalled_since.get_or_insert(now);
        self.packet(self.in_flight.len() - 1)
    }

    /// True if [`poll`](Self::poll) has something to send.
    pub fn has_something(&self) -> bool {
        self.resend || (self.may_send() && !self.waiting.is_empty())
    }

    /// The peer says that it has accepted everything up to `ack`.
    pub fn handle_ack(&mut self, now: Instant, ack: u32) {
        let ahead = ack.wrapping_sub(self.acked);
        if ahead == 0 {
            self.handle_duplicate();
        } else if ahead <= self.window && ahead as usize <= self.in_flight.len() {
            self.in_flight.drain(..ahead as usize);
            self.acked = ack;
            self.duplicates = 0;
            self.timeouts = 0;
            self.resend = false;
            self.counters.acks += 1;
            let has_more = !self.in_flight.is_empty();
            self.timer = has_more.then(|| now + self.interval);
            self.stalled_since = has_more.then_some(now);
        } else {
            self.counters.acks_ignored += 1;
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn timeout(&self) -> Option<Instant> {
        self.held_until.or(self.timer)
    }

    /// Keeps back whatever is queued until then.
    pub fn hold(&mut self, until: Instant) {
        self.held_until = Some(until);
    }

    /// Has the oldest message sent again if its time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.held_until.is_some_and(|until| until > now) {
            return;
        }
        self.held_until = None;
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = Some(now + self.interval);
            self.timeouts = self.timeouts.saturating_add(1);
            self.resend = true;
            self.counters.resent_by_timer += 1;
        }
    }

    /// Starts over after another number, as if nothing had been sent: what was under way goes out again, with new numbers.
    pub(crate) fn renumber(&mut self, acked: u32) {
        self.acked = acked;
        while let Some(message) = self.in_flight.pop_back() {
            self.waiting.push_front(message);
        }
        self.duplicates = 0;
        self.timeouts = 0;
        self.resend = false;
        self.timer = None;
        self.stalled_since = None;
    }

    /// Forgets INITs that are not acknowledged.
    pub(crate) fn drop_init(&mut self) {
        for queue in [&mut self.in_flight, &mut self.waiting] {
            queue.retain(|message| message.flags != Flags::INIT);
        }
    }

    /// Sets how long to wait for an acknowledgement, from the next time that the timer is started.
    pub fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Number of times the timer ran out since the peer last accepted something.
    pub fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts
    }

    /// Since when messages are under way and the peer has accepted none of them; `None` while none is.
    pub fn stalled_since(&self) -> Option<Instant> {
        self.stalled_since
    }

    /// The last number that was sent, or would be just before the first.
    pub fn last_sent(&self) -> u32 {
        self.acked.wrapping_add(self.in_flight.len() as u32)
    }

    /// The last number that the peer has accepted.
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// Messages that are not acknowledged yet, sent or not.
    pub fn unacknowledged(&self) -> usize {
        self.in_flight.len() + self.waiting.len()
    }

    /// Returns the counters.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Every third duplicate has the oldest sent again.
    fn handle_duplicate(&mut self) {
        self.counters.acks_duplicate += 1;
        if self.in_flight.is_empty() {
            return;
        }
        self.duplicates += 1;
        if self.duplicates == DUPLICATES_FOR_RESEND {
            self.duplicates = 0;
            self.resend = true;
            self.counters.resent_by_duplicates += 1;
        }
    }

    /// An INIT travels alone: what follows it could otherwise be skipped to by a partially reliable receiver, which would
    /// then never learn that it is connected.
    fn may_send(&self) -> bool {
        let alone = self
            .in_flight
            .front()
            .is_some_and(|oldest| oldest.flags == Flags::INIT);
        !alone && self.held_until.is_none() && self.in_flight.len() < self.window as usize
    }

    fn packet(&self, index: usize) -> Option<Packet<'_>> {
        let message = self.in_flight.get(index)?;
        Some(Packet {
            sequence: self.acked.wrapping_add(1).wrapping_add(index as u32),
            ack: message.ack,
            flags: message.flags,
            kind: message.kind,
            payload: &message.payload,
        })
    }
}

const DUPLICATES_FOR_RESEND: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(sender: &mut Sender, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| sender.poll(now, 9).map(|packet| packet.sequence)).collect()
    }

    fn sender(window: u32, messages: u32) -> Sender {
        let mut sender = Sender::new(window, u32::MAX - 1, Duration::from_millis(200));
        for _ in 0..messages {
            sender.queue(Flags::DATA, 1, Vec::new());
        }
        sender
    }

    #[test]
    fn the_timer_resends_the_oldest_without_backing_off() {
        let mut sender = sender(3, 3);
        assert_eq!(sequences(&mut sender, Instant::ZERO), [u32::MAX, 0, 1]);
        for round in 1..5 {
            let at = Instant::from_millis(200 * round);
            assert_eq!(sender.timeout(), Some(at));
            sender.handle_timeout(at - Duration::from_micros(1));
            assert!(!sender.has_something());
            sender.handle_timeout(at);
            assert_eq!(sequences(&mut sender, at), [u32::MAX]);
            assert_eq!(sender.timeouts_in_a_row(), round as u32);
            assert_eq!(sender.stalled_since(), Some(Instant::ZERO));
        }
        sender.handle_ack(Instant::from_secs(1), 0);
        assert_eq!(sender.timeouts_in_a_row(), 0);
        assert_eq!(sender.timeout(), Some(Instant::from_millis(1_200)));
        assert_eq!(sender.stalled_since(), Some(Instant::from_secs(1)));
        sender.handle_ack(Instant::from_secs(1), 1);
        assert_eq!((sender.timeout(), sender.unacknowledged()), (None, 0));
        assert_eq!(sender.stalled_since(), None);
    }

    #[test]
    fn acknowledgements_of_what_was_never_sent_are_ignored() {
        let mut sender = sender(1_000, 2);
        sequences(&mut sender, Instant::ZERO);
        for ack in [2, 500, u32::MAX - 2, 1 << 31] {
            sender.handle_ack(Instant::ZERO, ack);
        }
        assert_eq!(sender.acked(), u32::MAX - 1);
        assert_eq!(sender.counters().acks_ignored, 4);
    }

    #[test]
    fn an_init_travels_alone_and_repetitions_are_the_same_datagram() {
        let mut sender = Sender::new(10, 5, Duration::from_secs(1));
        sender.queue(Flags::INIT, 0, vec![1]);
        sender.queue(Flags::DATA, 1, vec![2]);
        let first = sender.poll(Instant::ZERO, 77).map(|packet| packet.ack);
        assert_eq!((first, sender.poll(Instant::ZERO, 78)), (Some(77), None));
        sender.handle_timeout(Instant::from_secs(1));
        let again = sender.poll(Instant::from_secs(1), 99);
        assert_eq!(
            again.map(|packet| (packet.sequence, packet.ack)),
            Some((6, 77))
        );
        sender.handle_ack(Instant::from_secs(1), 6);
        assert_eq!(sequences(&mut sender, Instant::from_secs(1)), [7]);
    }
}
