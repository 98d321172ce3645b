//! The datagrams that wait to be sent, in the order in which they came.
//!
//! Datagrams for one destination that follow each other and are equally long leave as one train, which the kernel segments; a
//! bulk sender's packets come that way. The memory is reused from batch to batch and stays in the cache.

use std::net::SocketAddr;

use muse_wire::{Ecn, Transmit};

#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The number of entries that have left.
    head: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    to: SocketAddr,
    start: u32,
    len: u32,
    ecn: Ecn,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            head: 0,
        }
    }

    /// Adds a datagram of two parts; `false` when too much waits.
    #[inline]
    pub(super) fn push(&mut self, to: SocketAddr, ecn: Ecn, head: &[u8], body: &[u8]) -> bool {
        let (start, len) = (self.bytes.len(), head.len() + body.len());
        if start + len > BYTES_MAX || self.entries.len() >= ENTRIES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(body);
        self.entries.push(Entry {
            to,
            start: start as u32,
            len: len as u32,
            ecn,
        });
        true
    }

    /// The next datagram or train, as far as `buffer` holds it. One that it could never hold is dropped.
    #[inline]
    pub(super) fn pop(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        loop {
            let Some(&first) = self.entries.get(self.head) else {
                self.bytes.clear();
                self.entries.clear();
                self.head = 0;
                return None;
            };
            self.head += 1;
            let mut len = first.len as usize;
            if len > buffer.len() {
                continue;
            }
            let mut count = 1;
            while let Some(next) = self.entries.get(self.head) {
                let fits = next.to == first.to
                    && next.ecn == first.ecn
                    && next.len <= first.len
                    && count < TRAIN_MAX
                    && len + next.len as usize <= buffer.len();
                if !fits {
                    break;
                }
                self.head += 1;
                count += 1;
                len += next.len as usize;
                if next.len < first.len {
                    break;
                }
            }
            let start = first.start as usize;
            buffer[..len].copy_from_slice(&self.bytes[start..start + len]);
            return Some(Transmit {
                to: first.to,
                len,
                segment: (count > 1).then_some(first.len as usize),
                ecn: first.ecn,
            });
        }
    }
}

/// Most bytes that wait: what one turn of a driver receives.
const BYTES_MAX: usize = 2 << 20;
const ENTRIES_MAX: usize = 8_192;
/// Most datagrams in a train: what kernels take.
const TRAIN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_leave_together_and_nothing_is_reordered() {
        let mut outbox = Outbox::new();
        let to = |port| SocketAddr::from(([192, 0, 2, 1], port));
        for (port, len) in [(1, 10), (1, 10), (1, 4), (1, 4), (2, 4), (1, 20)] {
            assert!(outbox.push(to(port), Ecn::NotCapable, &[len as u8], &vec![7; len - 1]));
        }
        let mut buffer = [0; 1_500];
        let mut seen = Vec::new();
        while let Some(transmit) = outbox.pop(&mut buffer) {
            let first: Vec<u8> = transmit.datagrams(&buffer).map(|bytes| bytes[0]).collect();
            seen.push((transmit.to.port(), first));
        }
        let expected = [
            (1, vec![10, 10, 4]),
            (1, vec![4]),
            (2, vec![4]),
            (1, vec![20]),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_small_buffer_gets_single_datagrams_and_too_long_ones_are_dropped() {
        let mut outbox = Outbox::new();
        let to = SocketAddr::from(([192, 0, 2, 1], 1));
        for len in [10, 10, 30, 10] {
            assert!(outbox.push(to, Ecn::NotCapable, &[], &vec![1; len]));
        }
        let mut lens = Vec::new();
        while let Some(transmit) = outbox.pop(&mut [0; 15]) {
            lens.push(transmit.len);
        }
        assert_eq!(lens, [10, 10, 10]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut outbox = Outbox::new();
        let to = SocketAddr::from(([192, 0, 2, 1], 1));
        let taken = (0..3_000).filter(|_| outbox.push(to, Ecn::NotCapable, &[0; 1_000], &[]));
        assert_eq!(taken.count(), BYTES_MAX / 1_000);
    }
}
