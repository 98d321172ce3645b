//! The store of messages that wait: a ring of bytes, filled at the back, freed at the front.

use std::collections::VecDeque;

use muse_wire::bytes::{EndOfBytes, Writer};

/// Capacity that an idle channel keeps.
const IDLE_CAPACITY: usize = 1_024;

/// Bytes addressed by their position since the start of the connection.
#[derive(Debug, Default)]
pub(crate) struct Store {
    bytes: VecDeque<u8>,
    start: u64,
}

impl Store {
    /// Appends `payload` and returns its position.
    pub(crate) fn push(&mut self, payload: &[u8]) -> u64 {
        let at = self.start + self.bytes.len() as u64;
        self.bytes.extend(payload);
        at
    }

    /// The position after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes `len` bytes from position `at`.
    pub(crate) fn copy(
        &self,
        at: u64,
        len: usize,
        writer: &mut Writer<'_>,
    ) -> Result<(), EndOfBytes> {
        let from = usize::try_from(at.checked_sub(self.start).ok_or(EndOfBytes)?)
            .map_err(|_| EndOfBytes)?;
        let (front, back) = self.bytes.as_slices();
        if let Some(whole) = front.get(from..from + len) {
            return writer.slice(whole);
        }
        if from >= front.len() {
            let from = from - front.len();
            return writer.slice(back.get(from..from + len).ok_or(EndOfBytes)?);
        }
        let (head, rest) = (&front[from..], len - (front.len() - from));
        writer.slice(head)?;
        writer.slice(back.get(..rest).ok_or(EndOfBytes)?)
    }

    /// Forgets everything before position `at`.
    pub(crate) fn free_until(&mut self, at: u64) {
        let gone = usize::try_from(at.saturating_sub(self.start))
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        if gone == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..gone);
        }
        self.start += gone as u64;
    }

    /// Gives back memory that an idle channel does not need.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.bytes.shrink_to(IDLE_CAPACITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_stay_valid_while_the_ring_turns() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut store = Store::default();
        let mut held: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
        for _ in 0..2_000 {
            let payload: Vec<u8> = (0..rng.usize(..300)).map(|_| rng.u8(..)).collect();
            held.push_back((store.push(&payload), payload));
            if held.len() > 20 {
                held.pop_front();
                store.free_until(held[0].0);
            }
            for (at, payload) in &held {
                let mut buffer = [0; 300];
                let mut writer = Writer::new(&mut buffer);
                store.copy(*at, payload.len(), &mut writer).expect("held");
                assert_eq!(writer.written(), payload);
            }
        }
        assert_eq!(store.len() as u64, store.end() - held[0].0);
        assert!(
            store.copy(0, 1, &mut Writer::new(&mut [0; 8])).is_err(),
            "freed"
        );
    }
}
