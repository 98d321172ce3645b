//! The older states that a row is coded with. For most rows of a packet these are of the same ticks, so they are looked for once.

use super::slots::Slot;
use crate::coder::References;
use crate::snapshot::coding::Ages;
use crate::world::{KindId, NEVER, Object, World};

/// The states that the last row was coded with, for rows that are coded with those of the same ticks.
#[derive(Default)]
pub(super) struct Pattern<'a> {
    /// The facts that decide about it; nothing before the first row.
    key: Option<Key>,
    /// All rows of the kind at the ticks of the references, the last ones repeated if there are fewer.
    rows: [&'a [i32]; References::COUNT_MAX],
    width: usize,
    /// Ticks from each reference to the one before, as packets tell them.
    steps: Ages,
    ages: Ages,
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    kind: KindId,
    baseline: u32,
    read: u32,
    known: u64,
}

impl<'a> Pattern<'a> {
    /// The states to code this tick's with: the baseline and older ones that the client has acknowledged, as far as both
    /// sides still have them.
    #[inline]
    pub(super) fn references(
        &mut self,
        world: &'a World,
        slot: &Slot,
        object: &Object,
        tick: u32,
    ) -> (Ages, References<'a>) {
        let history = world.kinds().history();
        // The client keeps a state for so long after it got another.
        let kept = slot.after == NEVER || tick - slot.after <= history;
        if slot.baseline == NEVER || slot.baseline < object.since || !kept {
            return NONE;
        }
        // Only those count that have been of this kind, and are remembered.
        let reach = history
            .saturating_sub(tick - slot.baseline)
            .min(slot.baseline - object.since + 1);
        let key = Key {
            kind: object.kind,
            baseline: slot.baseline,
            read: slot.read,
            known: slot.known & u64::MAX.checked_shr(64 - reach.min(64)).unwrap_or(0),
        };
        if self.key != Some(key) {
            self.find(world, key, tick);
        }
        let start = object.row as usize * self.width;
        let row = |index: usize| self.rows[index].get(start..start + self.width);
        let (Some(newest), Some(near), Some(middle), Some(far)) = (row(0), row(1), row(2), row(3))
        else {
            return NONE;
        };
        if self.count == 0 {
            return NONE;
        }
        let rows = [newest, near, middle, far];
        (
            self.steps,
            References::from_parts(rows, self.ages, self.count),
        )
    }

    #[inline(never)]
    fn find(&mut self, world: &'a World, key: Key, tick: u32) {
        *self = Self {
            key: Some(key),
            width: world.kinds().at(key.kind.place()).coder.width(),
            ..Self::default()
        };
        let mut last = 0;
        let mut next = Some((0, key.read));
        while let Some((back, read)) = next
            && let Some(rows) = world.rows(key.kind, read)
        {
            self.rows[self.count..].fill(rows);
            self.ages[self.count] = tick - key.baseline + back;
            self.steps[self.count] = if self.count == 0 {
                self.ages[0]
            } else {
                back - last
            };
            last = back;
            next = REFERENCES_APART.get(self.count).and_then(|apart| {
                let rest = key.known & u64::MAX.checked_shl(last + apart).unwrap_or(0);
                let back = rest.trailing_zeros();
                (back < 64).then(|| (back, key.baseline - back))
            });
            self.count += 1;
        }
    }
}

const NONE: (Ages, References<'static>) = ([0; References::COUNT_MAX], References::new());
/// The least number of ticks from each further reference to the one before it: the first tells the speed, the others how it
/// changes.
const REFERENCES_APART: [u32; References::COUNT_MAX - 1] = [1, 2, 3];
