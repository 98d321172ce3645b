//! The adaptive models of the range coder: bits, and symbols and integers made of them.
//!
//! A model starts out knowing nothing and learns fast at first, then more and more slowly, so that it serves a packet of
//! a few dozen values as well as a long stream.

use super::{Decoder, Encoder};

/// The probability that a decision is `true`: a quick and a slow estimate, the slow one weighing three times as much.
///
/// The n-th decision moves both by about 1/n, until the quick one stays at 1/32 and the slow one at 1/256. The first
/// follows a source that changes, the second is exact for one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitModel {
    quick: u16,
    slow: u16,
    /// Decisions seen, up to [`COUNT_MAX`].
    count: u8,
}

impl BitModel {
    /// Both outcomes equally likely.
    pub const fn new() -> Self {
        Self {
            quick: HALF,
            slow: HALF,
            count: 0,
        }
    }

    /// Starts with `true` at `probability` of 65,536 (kept away from the very ends), believed as if it had been learnt
    /// from `confidence` decisions.
    pub const fn with_probability(probability: u16, confidence: u8) -> Self {
        let probability = match probability {
            0..PROBABILITY_MIN => PROBABILITY_MIN,
            PROBABILITY_MAX.. => PROBABILITY_MAX,
            _ => probability,
        };
        let count = if confidence > COUNT_MAX {
            COUNT_MAX
        } else {
            confidence
        };
        Self {
            quick: probability,
            slow: probability,
            count,
        }
    }

    /// Returns the probability of `true`, of 65,536; never 0 and never all.
    #[inline]
    pub const fn probability(&self) -> u32 {
        (self.quick as u32 + 3 * self.slow as u32) / 4
    }

    /// Learns from a decision. The coder does this by itself.
    #[inline]
    pub const fn update(&mut self, bit: bool) {
        let rate = (self.count as u32 + 2).ilog2();
        let quick_rate = if rate < QUICK_RATE { rate } else { QUICK_RATE };
        self.count += (self.count < COUNT_MAX) as u8;
        self.quick = approach(self.quick, bit, quick_rate);
        self.slow = approach(self.slow, bit, rate);
    }
}

impl Default for BitModel {
    fn default() -> Self {
        Self::new()
    }
}

/// Symbols `0..SYMBOLS`, where `SYMBOLS` is a power of two, each by as many decisions as it has bits.
#[derive(Clone, Debug)]
pub struct TreeModel<const SYMBOLS: usize> {
    /// Node 1 is the root, nodes 2n and 2n + 1 follow node n; node 0 is not used.
    nodes: [BitModel; SYMBOLS],
}

impl<const SYMBOLS: usize> TreeModel<SYMBOLS> {
    const BITS: u32 = {
        assert!(
            SYMBOLS.is_power_of_two(),
            "the number of symbols must be a power of two"
        );
        SYMBOLS.ilog2()
    };

    /// All symbols equally likely.
    pub const fn new() -> Self {
        Self {
            nodes: [BitModel::new(); SYMBOLS],
        }
    }

    /// Encodes `symbol`; of a larger number only the low bits.
    #[inline]
    pub fn encode(&mut self, encoder: &mut Encoder<'_>, symbol: u32) {
        let mut node = 1;
        for shift in (0..Self::BITS).rev() {
            let bit = symbol >> shift & 1 != 0;
            encoder.bit(bit, &mut self.nodes[node]);
            node = node << 1 | usize::from(bit);
        }
    }

    /// Decodes a symbol.
    #[inline]
    pub fn decode(&mut self, decoder: &mut Decoder<'_>) -> u32 {
        let mut node = 1;
        for _ in 0..Self::BITS {
            node = node << 1 | usize::from(decoder.bit(&mut self.nodes[node]));
        }
        (node - SYMBOLS) as u32
    }
}

impl<const SYMBOLS: usize> Default for TreeModel<SYMBOLS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Numbers without sign, the smaller the more likely (Exp-Golomb with learnt probabilities).
///
/// The number of bits of `value + 1` is told by one decision per bit, then the two bits after the leading one by a small
/// tree; the rest are equally likely.
#[derive(Clone, Debug)]
pub struct UnsignedModel {
    /// Models of whether there is another bit, by how many there are already.
    more: [BitModel; 32],
    /// The two bits after the leading one, by the number of bits.
    head: [[BitModel; 4]; 33],
}

impl UnsignedModel {
    /// A model that knows nothing yet.
    pub const fn new() -> Self {
        Self {
            more: [BitModel::new(); 32],
            head: [[BitModel::new(); 4]; 33],
        }
    }

    /// Encodes `value`.
    #[inline]
    pub fn encode(&mut self, encoder: &mut Encoder<'_>, value: u32) {
        let successor = u64::from(value) + 1;
        let bits = successor.ilog2();
        for (index, more) in self.more.iter_mut().enumerate().take(bits as usize + 1) {
            encoder.bit((index as u32) < bits, more);
        }
        let mut node = 1;
        let head_bits = bits.min(HEAD_BITS);
        for index in 1..=head_bits {
            let bit = successor >> (bits - index) & 1 != 0;
            encoder.bit(bit, &mut self.head[bits as usize][node]);
            node = node << 1 | usize::from(bit);
        }
        // The leading bits are gone: 30 are left at most.
        encoder.even(successor as u32, bits - head_bits);
    }

    /// Decodes a value.
    #[inline]
    pub fn decode(&mut self, decoder: &mut Decoder<'_>) -> u32 {
        let mut bits = 0;
        while bits < 32 && decoder.bit(&mut self.more[bits as usize]) {
            bits += 1;
        }
        let mut node = 1;
        let head_bits = bits.min(HEAD_BITS);
        for _ in 0..head_bits {
            node = node << 1 | usize::from(decoder.bit(&mut self.head[bits as usize][node]));
        }
        let tail_bits = bits - head_bits;
        let successor = (node as u64) << tail_bits | u64::from(decoder.even(tail_bits));
        // 33 bits only for 2^32; hostile bytes may say more.
        u32::try_from(successor - 1).unwrap_or(u32::MAX)
    }
}

impl Default for UnsignedModel {
    fn default() -> Self {
        Self::new()
    }
}

/// Numbers with sign, the nearer to zero the more likely: the size, then, unless it is zero, the sign.
#[derive(Clone, Debug)]
pub struct SignedModel {
    size: UnsignedModel,
    negative: BitModel,
}

impl SignedModel {
    /// A model that knows nothing yet.
    pub const fn new() -> Self {
        Self {
            size: UnsignedModel::new(),
            negative: BitModel::new(),
        }
    }

    /// Encodes `value`.
    #[inline]
    pub fn encode(&mut self, encoder: &mut Encoder<'_>, value: i32) {
        self.size.encode(encoder, value.unsigned_abs());
        if value != 0 {
            encoder.bit(value < 0, &mut self.negative);
        }
    }

    /// Decodes a value.
    #[inline]
    pub fn decode(&mut self, decoder: &mut Decoder<'_>) -> i32 {
        let size = self.size.decode(decoder);
        let negative = size != 0 && decoder.bit(&mut self.negative);
        // Wraps for hostile bytes only, and for the smallest number as it should.
        if negative {
            size.wrapping_neg() as i32
        } else {
            size as i32
        }
    }
}

impl Default for SignedModel {
    fn default() -> Self {
        Self::new()
    }
}

/// Moves `estimate` towards 65,535 or 0 by a 2^`rate`-th of the distance, rounded down, so that it never arrives.
///
/// Without a branch, because the bit is hard to predict: an arithmetic shift rounds towards negative infinity, and moving
/// the lower goal up by 2^`rate` - 1 turns that into rounding towards the estimate.
#[inline]
const fn approach(estimate: u16, bit: bool, rate: u32) -> u16 {
    let low_goal = (1 << rate) - 1;
    let goal = low_goal + (u16::MAX as i32 - low_goal) * bit as i32;
    (estimate as i32 + ((goal - estimate as i32) >> rate)) as u16
}

const HALF: u16 = 1 << 15;
/// The final rate of the quick estimate: it moves by a 32nd.
const QUICK_RATE: u32 = 5;
/// Decisions after which the slow estimate moves by a 256th.
const COUNT_MAX: u8 = 254;
/// Ends of what may be given to [`BitModel::with_probability`].
const PROBABILITY_MIN: u16 = 32;
const PROBABILITY_MAX: u16 = u16::MAX - PROBABILITY_MIN;
/// Bits after the leading one that are learnt.
const HEAD_BITS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_decision_ever_becomes_impossible() {
        for start in [
            BitModel::new(),
            BitModel::with_probability(0, 0),
            BitModel::with_probability(u16::MAX, 255),
        ] {
            for bit in [false, true] {
                let mut model = start;
                for _ in 0..100_000 {
                    model.update(bit);
                    assert!((1..=65_535).contains(&model.probability()));
                }
                let mean = model.probability();
                assert!(
                    if bit { mean > 65_300 } else { mean < 230 },
                    "{mean} after so many {bit}"
                );
            }
        }
    }

    #[test]
    fn the_first_decisions_weigh_most() {
        let mut model = BitModel::new();
        model.update(true);
        assert!(model.probability() > 49_000);
        let mut confident = BitModel::with_probability(HALF, 100);
        confident.update(true);
        assert!(confident.probability() < 34_000);
    }

    #[test]
    fn integers_round_trip_at_every_edge() {
        let edges: Vec<u32> = (0..=32u32)
            .flat_map(|bits| [-1i64, 0, 1].map(|near| (1i64 << bits) + near))
            .filter_map(|value| u32::try_from(value).ok())
            .collect();
        let mut buffer = vec![0; 4_096];
        let mut encoder = Encoder::new(&mut buffer);
        let (mut unsigned, mut signed) = (UnsignedModel::new(), SignedModel::new());
        for &edge in &edges {
            unsigned.encode(&mut encoder, edge);
            signed.encode(&mut encoder, edge as i32);
        }
        let len = encoder.finish().expect("room for all");
        let mut decoder = Decoder::new(&buffer[..len]);
        let (mut unsigned, mut signed) = (UnsignedModel::new(), SignedModel::new());
        for &edge in &edges {
            assert_eq!(unsigned.decode(&mut decoder), edge);
            assert_eq!(signed.decode(&mut decoder), edge as i32);
        }
        assert!(!decoder.is_overrun());
    }
}
