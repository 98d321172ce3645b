//! Priority accumulators under a byte budget: the order in which entities are sent when not everything fits.
//!
//! Each entity that has something to send gains priority in every tick by its weight, and loses it when it is sent. The
//! best that probably fit are chosen, then put in the order of their slots, because neighbours are cheap to name. What has
//! waited too long comes before everything else, and what was chosen but did not fit is first next time: nothing starves. Only the few that are to be in
//! every packet are in front of that order when it may be cut off.

/// The slots that have something to send in this tick, and the order of their turns.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Those not chosen yet: priority, inverted so that the best is smallest, above the slot.
    waiting: Vec<u64>,
    /// Those chosen, in their order; served up to `position`. [`BEHIND`] is set in those that come after the first ones.
    order: Vec<u32>,
    position: usize,
    /// The start of the order.
    rotation: u32,
    whole: u32,
    /// Bytes that a row took lately, times 256: with a baseline, and without.
    size: u32,
    size_whole: u32,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            order: Vec::new(),
            position: 0,
            rotation: 0,
            whole: 0,
            size: 8 * 256,
            size_whole: 32 * 256,
        }
    }
}

impl Plan {
    /// Begins a tick.
    pub(crate) fn clear(&mut self) {
        // The first that was chosen but not served is the first this time.
        let cut_off = self.order.get(self.position);
        self.rotation = cut_off.map_or(0, |slot| slot & !BEHIND);
        self.waiting.clear();
        self.order.clear();
        self.position = 0;
        self.whole = 0;
    }

    /// A slot wants its turn. Slots must come in order.
    #[inline]
    pub(crate) fn add(&mut self, slot: u32, priority: u32, urgency: Urgency, whole: bool) {
        let priority = priority >> 2
            | u32::from(urgency.is_overdue) << 31
            | u32::from(urgency.is_always) << ALWAYS_BIT;
        self.waiting
            .push(u64::from(!priority) << 32 | u64::from(slot));
        self.whole += u32::from(whole);
    }

    /// True if none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.position >= self.order.len() && self.waiting.is_empty()
    }

    /// Returns the slot whose turn it is when there are so many bytes.
    #[inline]
    pub(crate) fn peek(&mut self, bytes: usize) -> Option<u32> {
        if self.position >= self.order.len() {
            self.choose(bytes);
        }
        let next = self.order.get(self.position);
        next.map(|slot| slot & !BEHIND)
    }

    /// Notes that the entity that [`peek`](Self::peek) gave had its turn.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.position += 1;
    }

    /// Learns how many bytes rows take.
    pub(crate) fn learn(
        &mut self,
        bytes: usize,
        rows: usize,
        bytes_whole: usize,
        rows_whole: usize,
    ) {
        for (size, bytes, rows) in [
            (&mut self.size, bytes, rows),
            (&mut self.size_whole, bytes_whole, rows_whole),
        ] {
            if rows >= LEARN_ROWS {
                let found = (bytes * 256 / rows).min(SIZE_MAX) as u32;
                *size = (*size * 7 + found) / 8;
            }
        }
    }

    fn choose(&mut self, bytes: usize) {
        self.order.clear();
        self.position = 0;
        let count = self.waiting.len();
        if count == 0 {
            return;
        }
        let whole = u64::from(self.whole.min(count as u32));
        let demand =
            whole * u64::from(self.size_whole) + (count as u64 - whole) * u64::from(self.size);
        let supply = bytes as u64 * 256;
        let mut chosen = count;
        if demand > supply {
            chosen = ((count as u64 * supply / demand) as usize).clamp(1, count);
            if chosen < count {
                self.waiting.select_nth_unstable(chosen);
            }
        }
        // Where all of them fit for sure, the order of their slots costs least.
        let is_scarce = demand * 5 > supply * 4;
        let place = |entry: u64| {
            let is_always = !entry >> (32 + ALWAYS_BIT) & 1 == 1;
            entry as u32 | if is_scarce && !is_always { BEHIND } else { 0 }
        };
        self.order.extend(self.waiting.drain(..chosen).map(place));
        // Everything was in order already, unless only a part was chosen now or before.
        if !self.order.is_sorted() {
            self.order.sort_unstable();
        }
        let firsts = self.order.partition_point(|slot| slot & BEHIND == 0);
        for part in [0..firsts, firsts..chosen] {
            let part = &mut self.order[part];
            let begin = part.partition_point(|slot| slot & !BEHIND < self.rotation);
            part.rotate_left(begin);
        }
        self.whole -= self
            .whole
            .min((whole * chosen as u64 / count as u64) as u32);
    }
}

/// The reasons to send a slot before others, whatever their priorities.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Urgency {
    /// It has waited for too long: it is chosen before everything else.
    pub(crate) is_overdue: bool,
    /// It belongs into every packet: it is chosen next, and never the one that is cut off.
    pub(crate) is_always: bool,
}

/// The bit of a priority that says so.
const ALWAYS_BIT: u32 = 30;
/// Marks a slot in the order that is not among the first.
const BEHIND: u32 = 1 << 31;
/// Rows from which on their mean size counts.
const LEARN_ROWS: usize = 8;
const SIZE_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn served(plan: &mut Plan, bytes: usize, count: usize) -> Vec<u32> {
        let mut served = Vec::new();
        while served.len() < count
            && let Some(slot) = plan.peek(bytes)
        {
            served.push(slot);
            plan.pass();
        }
        served
    }

    #[test]
    fn everything_in_order_when_it_fits() {
        let mut plan = Plan::default();
        plan.clear();
        for slot in 0..10 {
            plan.add(slot, 100 - slot, Urgency::default(), false);
        }
        assert_eq!(served(&mut plan, 1_000, 100), (0..10).collect::<Vec<_>>());
        assert!(plan.is_empty());
    }

    #[test]
    fn the_best_when_it_does_not() {
        let mut plan = Plan::default();
        plan.clear();
        for slot in 0..10 {
            let urgency = Urgency {
                is_overdue: slot == 1,
                is_always: false,
            };
            plan.add(slot, slot * 8, urgency, false);
        }
        // Eight bytes each: four fit.
        assert_eq!(served(&mut plan, 32, 4), [1, 7, 8, 9]);
    }

    #[test]
    fn who_was_cut_off_is_first_next_time() {
        let mut plan = Plan::default();
        let mut waits = [0u32; 20];
        for _ in 0..200 {
            plan.clear();
            for slot in 0..20 {
                waits[slot as usize] += 1;
                plan.add(slot, waits[slot as usize], Urgency::default(), false);
            }
            // Ten seem to fit, but only seven do.
            for slot in served(&mut plan, 80, 7) {
                waits[slot as usize] = 0;
            }
            assert!(waits.iter().all(|wait| *wait <= 6), "{waits:?}");
        }
    }

    /// Ten of eight bytes seem to fit, and it turns out that eight do.
    #[test]
    fn what_belongs_into_every_packet_is_never_cut_off() {
        let mut plan = Plan::default();
        let mut waits = [0u32; 10];
        for _ in 0..200 {
            plan.clear();
            for slot in 0..10 {
                waits[slot as usize] += 1;
                let urgency = Urgency {
                    is_overdue: false,
                    is_always: slot == 3 || slot == 9,
                };
                plan.add(slot, waits[slot as usize] * 8, urgency, false);
            }
            let served = served(&mut plan, 80, 8);
            assert!(served[..2].contains(&3) && served[..2].contains(&9));
            for slot in served {
                waits[slot as usize] = 0;
            }
            assert!(waits.iter().all(|wait| *wait <= 2), "{waits:?}");
        }
    }
}
