//! Logistic mixing: several estimates of one decision become one, weighted by how right each has been.
//!
//! The method is that of context-mixing compressors (Mahoney's PAQ): estimates are added as log odds, and the weights
//! descend along the gradient of the coding cost. Integers only, so that all platforms agree on every bit.

use super::coding::Coding;

/// The state of the mixer: counters of decisions, found by context, and the weights of the contexts.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    /// Lines of [`LINE`] counters; a context owns a line, shared with those of the same hash.
    counters: Box<[Counter]>,
    weights: Box<[[i32; INPUTS_MAX]]>,
    /// Sets of weights, once there are any.
    sets: usize,
    /// True if anything was learnt since the last reset.
    is_used: bool,
}

/// An estimate of how often a decision was `true`, in one context.
#[derive(Clone, Copy, Debug)]
struct Counter {
    /// Of 65,536.
    probability: u16,
    count: u16,
}

/// One line of counters for each of several contexts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<const N: usize>([u32; N]);

impl<const N: usize> Lines<N> {
    /// The lines of contexts that are told apart by number and value.
    #[inline]
    pub(super) fn new(seed: u32, values: [u32; N]) -> Self {
        let mut lines = [0; N];
        for (index, (line, value)) in lines.iter_mut().zip(values).enumerate() {
            *line = hash(u64::from(value) << 32 | u64::from(seed) << 8 | index as u64);
        }
        Self(lines)
    }

    /// Other lines for the same contexts and a further value.
    #[inline]
    pub(super) fn with(&self, value: u32) -> Self {
        Self(
            self.0
                .map(|line| hash(u64::from(line) << 8 | u64::from(value) << 48 | 0xA5)),
        )
    }
}

impl Mixer {
    /// A mixer with so many sets of weights, which knows nothing. It takes memory when it is first used: kinds whose rows
    /// all change never do.
    pub(super) fn new(sets: usize) -> Self {
        Self {
            counters: Box::default(),
            weights: Box::default(),
            sets,
            is_used: false,
        }
    }

    /// Takes the memory, unless there is some already.
    #[cold]
    fn prepare(&mut self) {
        if self.counters.is_empty() {
            self.counters = vec![Counter::NEW; LINES * LINE].into_boxed_slice();
            self.weights = vec![[WEIGHT_START; INPUTS_MAX]; self.sets].into_boxed_slice();
        }
        self.is_used = true;
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.counters) + size_of_val(&*self.weights)
    }

    pub(super) fn reset(&mut self) {
        if self.is_used {
            self.counters.fill(Counter::NEW);
            self.weights.fill([WEIGHT_START; INPUTS_MAX]);
            self.is_used = false;
        }
    }

    /// Becomes a copy of another mixer of the same kind.
    pub(super) fn copy_from(&mut self, other: &Self) {
        if other.is_used {
            self.prepare();
            self.counters.copy_from_slice(&other.counters);
            self.weights.copy_from_slice(&other.weights);
        } else {
            self.reset();
        }
    }

    /// Codes a decision: counter `node` of each line, weighted by set `set`.
    #[inline]
    pub(super) fn bit<C: Coding, const N: usize>(
        &mut self,
        coding: &mut C,
        bit: bool,
        lines: &Lines<N>,
        node: usize,
        set: usize,
    ) -> bool {
        if !self.is_used {
            self.prepare();
        }
        let weights = &mut self.weights[set];
        let mut odds = [0; N];
        let mut sum = 0i64;
        for index in 0..N {
            let counter = self.counters[lines.0[index] as usize * LINE + node % LINE];
            let trust = TRUST[usize::from(counter.count).min(TRUST.len() - 1)];
            odds[index] = (i32::from(STRETCH[usize::from(counter.probability >> 4)]) * trust) >> 8;
            sum += i64::from(odds[index]) * i64::from(weights[index]);
        }
        let probability = squash((sum >> WEIGHT_BITS) as i32);
        let bit = coding.bit(bit, probability);

        let error = (i32::from(bit) * 65_535 - i32::from(probability)) >> 2;
        for index in 0..N {
            let step = (odds[index] * error + (1 << (LEARN_SHIFT - 1))) >> LEARN_SHIFT;
            weights[index] = (weights[index] + step).clamp(-WEIGHT_MAX, WEIGHT_MAX);
            self.counters[lines.0[index] as usize * LINE + node % LINE].update(bit);
        }
        bit
    }
}

impl Counter {
    const NEW: Self = Self {
        probability: 1 << 15,
        count: 0,
    };

    /// Moves towards what came: by 2/3 at first, then by less and less.
    #[inline]
    fn update(&mut self, bit: bool) {
        let goal = i32::from(bit) * 65_535;
        let step =
            (goal - i32::from(self.probability)) * RATES[usize::from(self.count) % RATES.len()];
        let moved = i32::from(self.probability) + (step >> RATE_BITS);
        self.probability = moved.clamp(16, 65_519) as u16;
        self.count += u16::from(self.count < COUNT_MAX);
    }
}

#[inline]
fn hash(value: u64) -> u32 {
    let mixed = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> (64 - LINE_BITS)) as u32
}

/// The probability, of 65,536, of log odds in 1/256: 65,536 / (1 + e^-odds), between points half a unit apart in a
/// straight line.
#[inline]
const fn squash(odds: i32) -> u16 {
    let odds = if odds < -ODDS_MAX {
        -ODDS_MAX
    } else if odds > ODDS_MAX - 1 {
        ODDS_MAX - 1
    } else {
        odds
    } + ODDS_MAX;
    let (point, rest) = ((odds >> 7) as usize, odds & 127);
    ((SQUASH[point] as i32 * (128 - rest) + SQUASH[point + 1] as i32 * rest) >> 7) as u16
}

/// The inverse of [`squash`], for probabilities of 4,096.
static STRETCH: [i16; 4096] = {
    let mut table = [0; 4096];
    let mut odds = -ODDS_MAX;
    let mut index = 0;
    while index < 4096 {
        while odds < ODDS_MAX - 1 && (squash(odds) as i32) < index * 16 + 8 {
            odds += 1;
        }
        table[index as usize] = odds as i16;
        index += 1;
    }
    table
};

/// 65,536 / (1 + e^-x) for x from -11 to 11 in halves, never 0 and never all.
const SQUASH: [u16; 45] = [
    16, 16, 16, 16, 16, 16, 22, 36, 60, 98, 162, 267, 439, 720, 1179, 1921, 3108, 4971, 7812,
    11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816,
    65097, 65269, 65374, 65438, 65476, 65500, 65514, 65520, 65520, 65520, 65520, 65520, 65520,
];
/// Largest log odds, in 1/256.
const ODDS_MAX: i32 = 11 * 256;
/// Counters of a line: 64 bytes.
pub(super) const LINE: usize = 16;
const LINE_BITS: u32 = 12;
const LINES: usize = 1 << LINE_BITS;
/// Most contexts of a decision.
pub(super) const INPUTS_MAX: usize = 12;
/// Fraction bits of a weight.
const WEIGHT_BITS: u32 = 16;
const WEIGHT_START: i32 = 19_661;
const WEIGHT_MAX: i32 = 1 << 20;
/// The rate at which weights learn: larger is slower.
const LEARN_SHIFT: u32 = 13;
/// The trust in a counter, of 256, by the number of decisions it has seen.
const TRUST: [i32; 16] = [
    0, 90, 140, 175, 200, 215, 225, 232, 238, 242, 245, 248, 250, 252, 254, 256,
];
const COUNT_MAX: u16 = 60;
const RATE_BITS: u32 = 14;
/// 2 / (2n + 3), by what a counter has seen.
const RATES: [i32; COUNT_MAX as usize + 1] = {
    let mut rates = [0; COUNT_MAX as usize + 1];
    let mut count = 0;
    while count < rates.len() {
        rates[count] = (2 << RATE_BITS) / (2 * count as i32 + 3);
        count += 1;
    }
    rates
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretch_undoes_squash() {
        for index in 4..4092 {
            let back = i32::from(squash(i32::from(STRETCH[index as usize])));
            assert!((back - index * 16 - 8).abs() <= 72, "{index}: {back}");
        }
        assert!(STRETCH.is_sorted());
    }

    #[test]
    fn no_decision_becomes_impossible() {
        for odds in [i32::MIN, -3_000, 0, 3_000, i32::MAX] {
            assert!((1..=65_535).contains(&squash(odds)));
        }
    }
}
