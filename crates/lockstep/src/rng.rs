//! Chance that is part of the state.

use muse_schema::Schema;

/// A random number generator to keep in the game's state: it is saved, rolled back, compared and sent with it, so every machine draws
/// the same numbers (SplitMix64).
///
/// ```
/// let mut rng = muse_lockstep::Rng::new(42);
/// let rolled = rng.clone().below(6);
/// assert_eq!(rng.below(6), rolled);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Rng {
    #[field(fixed)]
    state: u64,
}

impl Rng {
    /// From a seed that all machines have.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// 64 random bits.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    }

    /// A number below `limit`, all equally likely to within 2^-32; 0 if there is none.
    #[inline]
    pub const fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * limit as u64) >> 32) as u32
    }

    /// A number from `min` to `max`, both included.
    #[inline]
    pub const fn range(&mut self, min: i32, max: i32) -> i32 {
        let span = max.abs_diff(min).saturating_add(1);
        min.wrapping_add_unsigned(self.below(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_draws_the_numbers_of_the_standard() {
        let mut rng = Rng::new(1_234_567);
        // The reference values of SplitMix64.
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn ranges_are_kept_and_reached() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 7];
        for _ in 0..1_000 {
            let drawn = rng.range(-3, 3);
            seen[(drawn + 3) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
    }
}
