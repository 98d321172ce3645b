//! The packets that were decoded, for the acknowledgement.

use std::collections::VecDeque;

use crate::snapshot::{Acknowledgement, WORDS, widen};

/// The last packets.
#[derive(Debug, Default)]
pub(super) struct Window {
    newest: Option<u32>,
    /// Bit `i` of word `w`: `newest - 1 - 64 w - i`.
    bits: [u64; WORDS],
    /// The first packet of each of the last ticks.
    ticks: VecDeque<(u32, u32)>,
}

impl Window {
    /// The whole number of a packet.
    pub(crate) fn number(&self, low: u16) -> u32 {
        widen(low, self.newest.unwrap_or(0))
    }

    /// True if the packet is new and not too old to tell.
    pub(crate) fn admits(&self, number: u32) -> bool {
        let Some(newest) = self.newest else {
            return true;
        };
        let behind = newest.wrapping_sub(number);
        if behind.cast_signed() < 0 {
            return true;
        }
        let Some(bit) = behind.checked_sub(1) else {
            return false;
        };
        self.bits
            .get(bit as usize / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 0)
    }

    /// The packet, which is [admitted](Self::admits), was decoded.
    pub(crate) fn insert(&mut self, number: u32, tick: u32) {
        let Some(newest) = self.newest else {
            self.newest = Some(number);
            self.note_tick(number, tick);
            return;
        };
        let ahead = number.wrapping_sub(newest);
        if ahead.cast_signed() > 0 {
            self.shift(ahead);
            self.newest = Some(number);
            self.note_tick(number, tick);
        } else {
            let bit = newest.wrapping_sub(number).wrapping_sub(1);
            if let Some(word) = self.bits.get_mut(bit as usize / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    /// Returns the acknowledgement of the packets of the last ticks.
    pub(crate) fn answer(&self, game: u32, restart: Option<u16>) -> Acknowledgement {
        let mut received = self.bits;
        let newest = self.newest.unwrap_or(0);
        let cover = self
            .ticks
            .front()
            .map_or(0, |(_, number)| newest.wrapping_sub(*number));
        for (word, bits) in (0u32..).zip(&mut received) {
            let wanted = cover.saturating_sub(word * 64).min(64);
            *bits &= u64::MAX.checked_shr(64 - wanted).unwrap_or(0);
        }
        Acknowledgement {
            game,
            newest: self.newest.map(|newest| newest as u16),
            received,
            restart,
        }
    }

    fn note_tick(&mut self, number: u32, tick: u32) {
        if self.ticks.back().is_some_and(|(last, _)| *last >= tick) {
            return;
        }
        self.ticks.push_back((tick, number));
        while self.ticks.len() > TICKS {
            self.ticks.pop_front();
        }
    }

    /// Makes room for newer packets; the former newest becomes a bit.
    fn shift(&mut self, by: u32) {
        let get = |bits: &[u64; WORDS], index: i64| {
            usize::try_from(index)
                .ok()
                .and_then(|index| bits.get(index))
                .copied()
                .unwrap_or(0)
        };
        let before = self.bits;
        let (words, rest) = (i64::from(by / 64), by % 64);
        for (index, word) in (0i64..).zip(&mut self.bits) {
            let low = get(&before, index - words);
            let carry = get(&before, index - words - 1);
            *word = low << rest | carry.checked_shr(64 - rest).unwrap_or(0);
        }
        let bit = by - 1;
        if let Some(word) = self.bits.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }
}

/// The answer covers packets of so many ticks that had any: as many answers may be lost in a row.
const TICKS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_remembers_what_a_set_does() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut window = Window::default();
        let mut seen = std::collections::BTreeSet::new();
        let mut newest = 0u32;
        for step in 0..20_000u32 {
            let jump = if step % 500 == 0 { 700 } else { 6 };
            let number = (newest + random.u32(0..jump)).saturating_sub(random.u32(0..100));
            let known = window.admits(number);
            let near = newest < number + 64 * WORDS as u32;
            if near {
                assert_eq!(known, !seen.contains(&number), "{number} at {newest}");
            }
            if known {
                window.insert(number, number / 4);
                seen.insert(number);
                newest = newest.max(number);
            }
        }
        let answer = window.answer(0, None);
        assert_eq!(answer.newest, Some(newest as u16));
        for bit in 0..32 {
            let told = answer.received[0] >> bit & 1 == 1;
            assert_eq!(told, seen.contains(&(newest - 1 - bit)));
        }
    }
}
