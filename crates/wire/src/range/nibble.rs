//! Sixteen symbols in one step: an adaptive distribution that is moved as a whole.

use super::{Decoder, Encoder};

/// Symbols 0 to 15, coded in one step rather than by one decision for each bit.
///
/// The model holds where each symbol's share of 32,768 parts begins and moves all borders towards the symbol that came:
/// by a quarter at first, by a 64th at last. No symbol's share ever falls below 32 of 32,768.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NibbleModel {
    /// The start of each symbol, the first always at 0, and the end of the last: at 2^15, which wraps.
    starts: [i16; SYMBOLS + 1],
    /// Symbols seen, up to [`COUNT_MAX`].
    count: u16,
}

impl NibbleModel {
    /// All symbols equally likely.
    pub const fn new() -> Self {
        let mut starts = [i16::MIN; SYMBOLS + 1];
        let mut symbol = 0;
        while symbol < SYMBOLS {
            starts[symbol] = (symbol << 15 >> 4) as i16;
            symbol += 1;
        }
        Self { starts, count: 0 }
    }

    /// Symbols get the rarer the larger they are, each three quarters as likely as the one before, as if learnt from
    /// a few.
    pub const fn falling() -> Self {
        let mut starts = [i16::MIN; SYMBOLS + 1];
        starts[0] = 0;
        let mut symbol = 1;
        let mut left = 32_768 - SYMBOLS as u32 * SHARE_MIN;
        let mut start = 0;
        while symbol < SYMBOLS {
            let share = left / 4;
            left -= share;
            start += share + SHARE_MIN;
            starts[symbol] = start as i16;
            symbol += 1;
        }
        Self { starts, count: 4 }
    }

    /// Encodes a symbol, of a larger number the low four bits, and learns from it.
    #[inline]
    pub fn encode(&mut self, encoder: &mut Encoder<'_>, symbol: u32) {
        let symbol = symbol as usize % SYMBOLS;
        let (start, size) = self.share(symbol);
        encoder.part(start, size);
        self.update(symbol);
    }

    /// Encodes a symbol, of a larger number the low four bits, behind it the low `bits` bits of `low`, at most 15, all equally
    /// likely. Cheaper than the two one after the other. It does not learn: see [`learn`](Self::learn).
    #[inline(always)]
    pub fn encode_with(&self, encoder: &mut Encoder<'_>, symbol: u32, low: u32, bits: u32) {
        let (start, size) = self.share(symbol as usize % SYMBOLS);
        encoder.part_and_even(start, size, low, bits);
    }

    /// Learns from a symbol that was coded without learning.
    #[inline(always)]
    pub fn learn(&mut self, symbol: u32) {
        self.update(symbol as usize % SYMBOLS);
    }

    /// Decodes what [`encode_with`](Self::encode_with) encoded, given as many `bits`: the symbol and the number behind it.
    #[inline]
    pub fn decode_with(&self, decoder: &mut Decoder<'_>, bits: u32) -> (u32, u32) {
        let symbol = self.symbol_at(decoder.next_part());
        let (start, size) = self.share(symbol);
        let low = decoder.take_part_and_even(start, size, bits);
        (symbol as u32, low)
    }

    /// Decodes a symbol and learns from it.
    #[inline]
    pub fn decode(&mut self, decoder: &mut Decoder<'_>) -> u32 {
        let symbol = self.symbol_at(decoder.next_part());
        let (start, size) = self.share(symbol);
        decoder.take_part(start, size);
        self.update(symbol);
        symbol as u32
    }

    /// Returns the symbol that a part belongs to.
    #[inline]
    fn symbol_at(&self, part: u32) -> usize {
        let part = part as i16;
        // Counting is quicker than searching: all borders are compared at once.
        let reached: i16 = self.starts[..SYMBOLS]
            .iter()
            .map(|&start| i16::from(start <= part))
            .sum();
        (reached as usize).saturating_sub(1) % SYMBOLS
    }

    #[inline]
    fn share(&self, symbol: usize) -> (u32, u32) {
        let start = self.starts[symbol] as u16;
        let end = self.starts[symbol + 1] as u16;
        (u32::from(start), u32::from(end.wrapping_sub(start)))
    }

    #[inline(always)]
    fn update(&mut self, symbol: usize) {
        let rate = RATES[usize::from(self.count / COUNT_STEP) % RATES.len()];
        self.count += u16::from(self.count < COUNT_MAX);
        // Differences of less than 2^15 fit 16 bits, and the upper half of a product is one instruction for many: all
        // borders move at once.
        // By halves, because compilers see through loops of eight.
        let goals = &GOALS[symbol];
        let mut starts = self.starts;
        for half in [0, SYMBOLS / 2] {
            let mut ways = [0; SYMBOLS / 2];
            for (index, way) in ways.iter_mut().enumerate() {
                *way = goals[half + index].wrapping_sub(starts[half + index]);
            }
            for way in &mut ways {
                *way = ((i32::from(*way) * i32::from(rate)) >> 16) as i16;
            }
            for (index, way) in ways.into_iter().enumerate() {
                starts[half + index] = starts[half + index].wrapping_add(way);
            }
        }
        self.starts = starts;
    }
}

impl Default for NibbleModel {
    fn default() -> Self {
        Self::new()
    }
}

const SYMBOLS: usize = 16;
/// Smallest share of a symbol, of 32,768: rounding keeps borders from coming closer than half of it.
const SHARE_MIN: u32 = 32;
/// The starts of symbols if one had all but the smallest share of every other, by that one.
static GOALS: [[i16; SYMBOLS]; SYMBOLS] = {
    let wide = (32_767 - SYMBOLS as u32 * SHARE_MIN) as i16;
    let mut goals = [[0; SYMBOLS]; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let mut index = 0;
        while index < SYMBOLS {
            let floor = (index as u32 * SHARE_MIN) as i16;
            goals[symbol][index] = floor + if index > symbol { wide } else { 0 };
            index += 1;
        }
        symbol += 1;
    }
    goals
};
/// By how much borders move, of 65,536, by how many symbols have been seen, in steps of [`COUNT_STEP`].
const RATES: [i16; 16] = [
    16_384, 10_923, 8_192, 6_554, 5_461, 4_681, 4_096, 3_641, 3_277, 2_979, 2_731, 2_521, 2_341,
    2_048, 1_638, 1_024,
];
const COUNT_STEP: u16 = 4;
const COUNT_MAX: u16 = COUNT_STEP * (RATES.len() as u16 - 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_keeps_a_share() {
        for constant in 0..16 {
            for mut model in [NibbleModel::new(), NibbleModel::falling()] {
                for _ in 0..10_000 {
                    model.update(constant);
                    let total: u32 = (0..16).map(|symbol| model.share(symbol).1).sum();
                    assert_eq!(total, 32_768);
                    assert!((0..16).all(|symbol| model.share(symbol).1 >= 1));
                }
                assert!(model.share(constant).1 > 30_000, "{constant}: {model:?}");
            }
        }
    }

    #[test]
    fn symbols_in_any_order_survive() {
        let mut rng = fastrand::Rng::with_seed(11);
        let symbols: Vec<u32> = (0..5_000)
            .map(|index| rng.u32(0..16) & rng.u32(0..16) & (index / 1_000 + 11))
            .collect();
        let mut buffer = vec![0; 8_192];
        let mut encoder = Encoder::new(&mut buffer);
        let mut model = NibbleModel::falling();
        for &symbol in &symbols {
            model.encode(&mut encoder, symbol);
        }
        let len = encoder.finish().expect("room for all");
        assert!(len < 2_000, "{len}");
        let mut decoder = Decoder::new(&buffer[..len]);
        let mut model = NibbleModel::falling();
        for &symbol in &symbols {
            assert_eq!(model.decode(&mut decoder), symbol);
        }
    }
}
