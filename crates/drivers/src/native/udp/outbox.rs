//! The datagrams that a machine wants to send, collected for a batch and kept while the socket is full.
//!
//! One buffer of fixed size holds the bytes of many transmits side by side, so that one system call can send to many
//! destinations. A transmit of several datagrams is a *train*; how much of it goes into one *message* to the kernel
//! depends on what the kernel takes, which may change while trains wait.

use std::net::SocketAddr;

use muse_wire::{Ecn, Instant, Machine};

/// The transmits that wait to be sent, oldest first.
#[derive(Debug)]
pub(super) struct Outbox {
    buffer: Vec<u8>,
    used: usize,
    trains: Vec<Train>,
    /// The number of `trains` that are sent already.
    head: usize,
}

/// The content of one entry of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) to: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: &'a [u8],
    /// The size of each datagram in it, when there are several.
    pub(super) segment: Option<usize>,
}

/// The amount that left the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        // Untouched pages of a zeroed vector cost no memory.
        let buffer = vec![0; BUFFER_BYTES];
        Self {
            buffer,
            used: 0,
            trains: Vec::with_capacity(BATCH_TRAINS),
            head: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.trains.len()
    }

    /// Takes transmits from the machine until a batch is full or the machine has no more; says whether it took any.
    /// Returns how many transmits could not go anywhere (port zero) beside it.
    pub(super) fn fill<M: Machine + ?Sized>(
        &mut self,
        now: Instant,
        machine: &mut M,
    ) -> (bool, usize) {
        debug_assert!(self.is_empty(), "an outbox is filled once it is empty");
        self.trains.clear();
        self.head = 0;
        self.used = 0;
        let mut unreachable = 0;
        while self.trains.len() < BATCH_TRAINS && unreachable < BATCH_TRAINS {
            let Some(room) = self.buffer.get_mut(self.used..self.used + TRAIN_BYTES_MAX) else {
                break;
            };
            let Some(transmit) = machine.poll_transmit(now, room) else {
                break;
            };
            if transmit.to.port() == 0 {
                // A spoofed sender may have port zero; the kernel's answer to it looks like a refused train.
                unreachable += 1;
                continue;
            }
            let len = transmit.len.min(TRAIN_BYTES_MAX);
            let segment = transmit.segment.unwrap_or(len).clamp(1, len.max(1));
            self.trains.push(Train {
                start: self.used,
                end: self.used + len,
                segment,
                to: transmit.to,
                ecn: transmit.ecn,
                whole: true,
            });
            self.used += len;
        }
        (!self.trains.is_empty() || unreachable > 0, unreachable)
    }

    /// Returns what to send next, in messages of at most `segments_max` datagrams each.
    pub(super) fn messages(&self, segments_max: usize) -> Messages<'_> {
        Messages {
            outbox: self,
            head: self.head,
            current: None,
            segments_max,
        }
    }

    /// Forgets the first `messages` messages, because they were sent or cannot be.
    pub(super) fn advance(&mut self, segments_max: usize, messages: usize) -> Taken {
        let mut taken = Taken::default();
        for _ in 0..messages {
            let Some(train) = self.trains.get_mut(self.head) else {
                break;
            };
            let bytes = train.message_bytes(segments_max);
            taken.bytes += bytes;
            taken.datagrams += if bytes <= train.segment {
                1
            } else {
                bytes.div_ceil(train.segment)
            };
            train.start += bytes;
            if train.start >= train.end {
                self.head += 1;
            }
        }
        taken
    }

    /// Sends the first train datagram by datagram from now on, because the kernel refused it as a whole.
    pub(super) fn split_first(&mut self) {
        if let Some(train) = self.trains.get_mut(self.head) {
            train.whole = false;
        }
    }
}

/// Walks over the messages that wait; see [`Outbox::messages`].
#[derive(Debug)]
pub(super) struct Messages<'a> {
    outbox: &'a Outbox,
    head: usize,
    /// The rest of the train at `head`, once part of it was handed out.
    current: Option<Train>,
    segments_max: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        let mut train = match self.current.take() {
            Some(train) => train,
            None => *self.outbox.trains.get(self.head)?,
        };
        let bytes = train.message_bytes(self.segments_max);
        let message = Message {
            to: train.to,
            ecn: train.ecn,
            bytes: &self.outbox.buffer[train.start..train.start + bytes],
            segment: (bytes > train.segment).then_some(train.segment),
        };
        train.start += bytes;
        if train.start >= train.end {
            self.head += 1;
        } else {
            self.current = Some(train);
        }
        Some(message)
    }
}

/// One transmit, or what is left of it: datagrams of `segment` bytes in `start..end`.
#[derive(Clone, Copy, Debug)]
struct Train {
    start: usize,
    end: usize,
    segment: usize,
    to: SocketAddr,
    ecn: Ecn,
    /// Several of its datagrams may go in one message.
    whole: bool,
}

impl Train {
    #[inline]
    fn message_bytes(&self, segments_max: usize) -> usize {
        let left = self.end - self.start;
        if left <= self.segment {
            return left;
        }
        let segments = if self.whole { segments_max.max(1) } else { 1 };
        left.min(self.segment * segments)
    }
}

/// Most transmits in one batch: enough that the fixed cost of a system call vanishes, few enough for the second cache.
pub(super) const BATCH_TRAINS: usize = 128;
/// Longest train: the largest UDP payload over IPv4, less room for IPv6's longer header.
pub(super) const TRAIN_BYTES_MAX: usize = 65_487;
/// Four trains, or a full batch of single datagrams of 1,452 bytes with room for a train behind.
const BUFFER_BYTES: usize = 4 * TRAIN_BYTES_MAX;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use muse_wire::{Datagram, Transmit};

    use super::*;

    struct Script(VecDeque<(usize, Option<usize>)>);

    impl Machine for Script {
        fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
            let (len, segment) = self.0.pop_front()?;
            let end = len.min(buffer.len());
            buffer[..end]
                .iter_mut()
                .enumerate()
                .for_each(|(index, byte)| *byte = index as u8);
            let to = SocketAddr::from(([127, 0, 0, 1], 9));
            Some(Transmit {
                to,
                len,
                segment,
                ecn: Ecn::NotCapable,
            })
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }

    fn filled(transmits: &[(usize, Option<usize>)]) -> Outbox {
        let mut outbox = Outbox::new();
        outbox.fill(
            Instant::ZERO,
            &mut Script(transmits.iter().copied().collect()),
        );
        outbox
    }

    fn shape(outbox: &Outbox, segments_max: usize) -> Vec<(usize, Option<usize>)> {
        outbox
            .messages(segments_max)
            .map(|message| (message.bytes.len(), message.segment))
            .collect()
    }

    #[test]
    fn trains_are_cut_to_what_the_kernel_takes() {
        let outbox = filled(&[(10, None), (25, Some(10)), (30, Some(30)), (0, None)]);
        let whole = [(10, None), (25, Some(10)), (30, None), (0, None)];
        assert_eq!(shape(&outbox, 64), whole);
        let pairs = [(10, None), (20, Some(10)), (5, None), (30, None), (0, None)];
        assert_eq!(shape(&outbox, 2), pairs);
        let single = [
            (10, None),
            (10, None),
            (10, None),
            (5, None),
            (30, None),
            (0, None),
        ];
        assert_eq!(shape(&outbox, 1), single);
    }

    #[test]
    fn advancing_drops_exactly_the_messages_sent() {
        for segments_max in [1, 2, 3, 64] {
            let mut outbox = filled(&[(10, None), (95, Some(10)), (0, None), (3, Some(1))]);
            let all: Vec<Vec<u8>> = outbox
                .messages(segments_max)
                .map(|message| message.bytes.to_vec())
                .collect();
            let mut total = Taken::default();
            for index in 0..all.len() {
                let first = outbox
                    .messages(segments_max)
                    .next()
                    .map(|message| message.bytes.to_vec());
                assert_eq!(first.as_ref(), all.get(index));
                let taken = outbox.advance(segments_max, 1);
                total.datagrams += taken.datagrams;
                total.bytes += taken.bytes;
            }
            assert!(outbox.is_empty());
            assert_eq!(
                total,
                Taken {
                    datagrams: 1 + 10 + 1 + 3,
                    bytes: 108
                }
            );
            assert_eq!(outbox.advance(segments_max, 5), Taken::default());
        }
    }

    #[test]
    fn only_the_refused_train_is_split() {
        let mut outbox = filled(&[(20, Some(10)), (20, Some(10))]);
        outbox.split_first();
        assert_eq!(shape(&outbox, 64), [(10, None), (10, None), (20, Some(10))]);
    }

    #[test]
    fn a_batch_is_bounded_in_count_and_bytes_and_lengths_that_lie_are_cut() {
        let mut many = Script((0..1_000).map(|_| (64, None)).collect());
        let mut outbox = Outbox::new();
        assert_eq!(outbox.fill(Instant::ZERO, &mut many), (true, 0));
        assert_eq!(outbox.messages(64).count(), BATCH_TRAINS);
        let long = filled(&[(TRAIN_BYTES_MAX, Some(1_452)); 10]);
        assert_eq!(long.messages(64).count(), 4);
        let lying = filled(&[(usize::MAX, Some(0)), (5, Some(usize::MAX))]);
        assert_eq!(lying.messages(1).count(), TRAIN_BYTES_MAX + 1);
    }
}
