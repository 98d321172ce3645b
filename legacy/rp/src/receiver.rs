//! The receiving half of a channel: in order, all of it or all but a promised share (Algorithms 3 and 4 of the thesis).

use std::collections::BTreeMap;

use muse_wire::partial::{PartialReceiver, Promise, Verdict};
use muse_wire::sequence::expand;

/// Puts what arrives in order and says what to acknowledge.
///
/// The rules of the partially reliable channel are those of [`PartialReceiver`], which the Muse transport shares. `T` is
/// what is kept for the application.
///
/// ```
/// use muse_rp::receiver::Receiver;
/// let mut receiver = Receiver::reliable(5, 0);
/// let mut delivered = Vec::new();
/// for number in [1, 3, 2] {
///     receiver.handle(number, 0, number, |arrived| delivered.push(arrived.sequence));
/// }
/// assert_eq!(delivered, [1, 2, 3]);
/// assert_eq!(receiver.ack(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Receiver<T> {
    window: u32,
    /// The last number accepted, with the wraps counted.
    last: u64,
    promise: Option<PartialReceiver>,
    buffered: BTreeMap<u64, Buffered<T>>,
    buffered_bytes: usize,
    counters: ReceiverCounters,
}

/// Something that may be given to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived<T> {
    /// Its number on the wire.
    pub sequence: u32,
    /// Number of messages just before it that are lost for good.
    pub skipped: u32,
    /// The item that was kept.
    pub item: T,
}

/// Counters of a [`Receiver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverCounters {
    /// Messages delivered.
    pub delivered: u64,
    /// Messages skipped, as the promise permits.
    pub skipped: u64,
    /// Messages that had to wait for an earlier one.
    pub buffered: u64,
    /// Duplicates, late arrivals, what was beyond the window or did not fit.
    pub dropped: u64,
}

#[derive(Clone, Debug)]
struct Buffered<T> {
    bytes: usize,
    item: T,
}

impl<T> Receiver<T> {
    /// A receiver of a reliable channel that has accepted everything up to `last`.
    pub fn reliable(window: u32, last: u32) -> Self {
        Self::new(window, last, None)
    }

    /// A receiver of a partially reliable channel whose first window begins after `last`.
    pub fn partial(promise: Promise, last: u32) -> Self {
        let first = FIRST_WRAP + u64::from(last) + 1;
        let receiver = PartialReceiver::new(promise, first);
        Self::new(promise.window(), last, Some(receiver))
    }

    fn new(window: u32, last: u32, promise: Option<PartialReceiver>) -> Self {
        Self {
            window,
            last: FIRST_WRAP + u64::from(last),
            promise,
            buffered: BTreeMap::new(),
            buffered_bytes: 0,
            counters: ReceiverCounters::default(),
        }
    }

    /// The message `sequence` of `bytes` bytes arrived; whatever can be given to the application now is, in order.
    pub fn handle(
        &mut self,
        sequence: u32,
        bytes: usize,
        item: T,
        mut deliver: impl FnMut(Arrived<T>),
    ) {
        let number = expand(u64::from(sequence), 32, self.last);
        let is_next = number == self.last + 1;
        if !is_next && self.buffered_bytes.saturating_add(bytes) > BUFFERED_BYTES_MAX {
            // As if the network had lost it.
            self.counters.dropped += 1;
            return;
        }
        match self.judge(number) {
            Verdict::Deliver { skipped } => self.accept(number, skipped, item, &mut deliver),
            Verdict::Buffer => {
                self.counters.buffered += 1;
                self.buffered_bytes += bytes;
                self.buffered.insert(number, Buffered { bytes, item });
                return;
            }
            Verdict::Drop => {
                self.counters.dropped += 1;
                return;
            }
        }
        while let Some((number, skipped)) = self.pop_ready() {
            if let Some(Buffered { bytes, item }) = self.buffered.remove(&number) {
                self.buffered_bytes -= bytes;
                self.accept(number, skipped, item, &mut deliver);
            }
        }
    }

    /// The last number accepted: what an acknowledgement carries.
    pub fn ack(&self) -> u32 {
        self.last as u32
    }

    /// The numbers that wait for an earlier one, in order.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.buffered.keys().map(|number| *number as u32)
    }

    /// The state of the promise; `None` on a reliable channel.
    pub fn promise(&self) -> Option<&PartialReceiver> {
        self.promise.as_ref()
    }

    /// Returns the counters.
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    fn judge(&mut self, number: u64) -> Verdict {
        if let Some(promise) = &mut self.promise {
            return promise.receive(number);
        }
        match number.checked_sub(self.last) {
            Some(1) => Verdict::Deliver { skipped: 0 },
            Some(2..) if number - self.last <= u64::from(self.window) => {
                match self.buffered.contains_key(&number) {
                    true => Verdict::Drop,
                    false => Verdict::Buffer,
                }
            }
            _ => Verdict::Drop,
        }
    }

    fn pop_ready(&mut self) -> Option<(u64, u32)> {
        if let Some(promise) = &mut self.promise {
            return promise.pop_ready().map(|ready| (ready.slot, ready.skipped));
        }
        let (&lowest, _) = self.buffered.first_key_value()?;
        (lowest == self.last + 1).then_some((lowest, 0))
    }

    fn accept(&mut self, number: u64, skipped: u32, item: T, deliver: &mut impl FnMut(Arrived<T>)) {
        self.last = number;
        self.counters.delivered += 1;
        self.counters.skipped += u64::from(skipped);
        deliver(Arrived {
            sequence: number as u32,
            skipped,
            item,
        });
    }
}

/// Numbers begin one wrap up, so that those before the first can be told from those after it.
const FIRST_WRAP: u64 = 1 << 32;
/// Most bytes that wait for an earlier message, per channel and direction.
pub const BUFFERED_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_as_good_as_lost() {
        let mut receiver = Receiver::reliable(10, u32::MAX);
        let mut delivered = Vec::new();
        receiver.handle(2, BUFFERED_BYTES_MAX, (), |arrived| {
            delivered.push(arrived.sequence);
        });
        receiver.handle(1, 1, (), |arrived| delivered.push(arrived.sequence));
        assert_eq!(receiver.waiting().collect::<Vec<_>>(), [2]);
        receiver.handle(0, usize::MAX, (), |arrived| {
            delivered.push(arrived.sequence);
        });
        receiver.handle(1, 1, (), |arrived| delivered.push(arrived.sequence));
        assert_eq!(delivered, [0, 1, 2]);
        assert_eq!(receiver.counters().dropped, 1);
    }
}
