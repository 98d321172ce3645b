//! The ticks whose states a client is known to have been sent.

use crate::Tick;

/// The last 64 ticks of which a client acknowledged a snapshot: the only ones between which it can have shown others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgedTicks {
    newest: Tick,
    /// Bit `n` stands for the tick `n` before the newest.
    bits: u64,
}

impl AcknowledgedTicks {
    /// Adds a tick; in any order.
    pub fn insert(&mut self, tick: Tick) {
        let ahead = tick - self.newest;
        if ahead > 0 || self.bits == 0 {
            let by = u32::try_from(ahead).unwrap_or(u32::MAX);
            self.bits = self.bits.checked_shl(by).unwrap_or(0) | 1;
            self.newest = tick;
        } else if let Some(bit) = self.bit(tick) {
            self.bits |= 1 << bit;
        }
    }

    /// Returns whether both ticks were acknowledged, and none between them.
    pub fn are_neighbours(&self, from: Tick, to: Tick) -> bool {
        let (Some(older), Some(newer)) = (self.bit(from), self.bit(to)) else {
            return false;
        };
        if older <= newer || self.bits >> newer & 1 == 0 {
            return false;
        }
        // The next older one of those that were acknowledged.
        let rest = self.bits >> newer >> 1;
        rest != 0 && rest.trailing_zeros() + 1 == older - newer
    }

    fn bit(&self, tick: Tick) -> Option<u32> {
        let back = self.newest - tick;
        u32::try_from(back).ok().filter(|back| *back < u64::BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_a_plain_list() {
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..200 {
            let (mut ticks, mut list) = (AcknowledgedTicks::default(), Vec::new());
            let start = rng.u32(..1_000);
            for _ in 0..rng.u32(1..60) {
                let tick = start + rng.u32(..90);
                ticks.insert(Tick(tick));
                list.push(tick);
            }
            list.sort_unstable();
            list.dedup();
            let newest = *list.last().expect("not empty");
            list.retain(|tick| newest - tick < 64);
            for from in start.saturating_sub(2)..start + 92 {
                for to in start.saturating_sub(2)..start + 92 {
                    let expected = list.windows(2).any(|pair| pair == [from, to]);
                    // An older one may have come after the newer that pushed it out.
                    let found = ticks.are_neighbours(Tick(from), Tick(to));
                    assert_eq!(found, expected, "{from} {to} {list:?}");
                }
            }
        }
    }
}
