//! One description of a row for both directions: what an encoder is told and a decoder finds out.

use muse_wire::range::{BitModel, Decoder, Encoder, NibbleModel};

/// An encoder or a decoder. Every method takes what to encode, which a decoder ignores, and returns what was coded.
///
/// So that the two sides cannot drift apart, all that depends on a row is written once, over this trait.
pub(super) trait Coding {
    /// A decision that is `true` with a probability of 65,536.
    fn bit(&mut self, bit: bool, probability: u16) -> bool;
    /// A decision that a model follows.
    fn adaptive(&mut self, bit: bool, model: &mut BitModel) -> bool;
    /// A number of 0 to 15.
    fn nibble(&mut self, symbol: u32, model: &mut NibbleModel) -> u32;
    /// A number of so many bits, at most 32, all equally likely.
    fn even(&mut self, value: u32, bits: u32) -> u32;
}

impl Coding for Encoder<'_> {
    #[inline]
    fn bit(&mut self, bit: bool, probability: u16) -> bool {
        self.bit_at(bit, probability);
        bit
    }

    #[inline]
    fn adaptive(&mut self, bit: bool, model: &mut BitModel) -> bool {
        self.bit(bit, model);
        bit
    }

    #[inline]
    fn nibble(&mut self, symbol: u32, model: &mut NibbleModel) -> u32 {
        model.encode(self, symbol);
        symbol
    }

    #[inline]
    fn even(&mut self, value: u32, bits: u32) -> u32 {
        self.even(value, bits);
        value & ((1u64 << bits.min(u32::BITS)) - 1) as u32
    }
}

impl Coding for Decoder<'_> {
    #[inline]
    fn bit(&mut self, _: bool, probability: u16) -> bool {
        self.bit_at(probability)
    }

    #[inline]
    fn adaptive(&mut self, _: bool, model: &mut BitModel) -> bool {
        self.bit(model)
    }

    #[inline]
    fn nibble(&mut self, _: u32, model: &mut NibbleModel) -> u32 {
        model.decode(self)
    }

    #[inline]
    fn even(&mut self, _: u32, bits: u32) -> u32 {
        self.even(bits)
    }
}
