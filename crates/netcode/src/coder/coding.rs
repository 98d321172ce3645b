//! One description of a row for both directions: what an encoder is told and a decoder finds out.

use super::RowError;
use super::models::NumberModel;
use muse_wire::range::{BitModel, Decoder, Encoder, NibbleModel};

/// An encoder or a decoder. Every method takes what to encode, which a decoder ignores, and returns what was coded.
///
/// So that the two sides cannot drift apart, all that depends on a row is written once, over this trait.
pub(super) trait Coding {
    /// True if it finds out what the row is, so that bounds have to be checked.
    const DECODES: bool;
    /// A decision that is `true` with a probability of 65,536.
    fn bit(&mut self, bit: bool, probability: u16) -> bool;
    /// A decision that a model follows.
    fn adaptive(&mut self, bit: bool, model: &mut BitModel) -> bool;
    /// The same, if it `learns`; if not, the model stays as it is.
    #[inline(always)]
    fn followed(&mut self, bit: bool, model: &mut BitModel, learns: bool) -> bool {
        if learns {
            self.adaptive(bit, model)
        } else {
            self.bit(bit, model.probability() as u16)
        }
    }
    /// A number of 0 to 15.
    fn nibble(&mut self, symbol: u32, model: &mut NibbleModel) -> u32;
    /// A [`folded`] difference. Small ones take one step; of larger ones the low bits are left to chance.
    fn number(
        &mut self,
        model: &mut NumberModel,
        learns: bool,
        folded: u32,
    ) -> Result<u32, RowError>;
    /// A number of so many bits, at most 32, all equally likely.
    fn even(&mut self, value: u32, bits: u32) -> u32;
}

impl Coding for Encoder<'_> {
    const DECODES: bool = false;

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

    #[inline(always)]
    fn number(
        &mut self,
        model: &mut NumberModel,
        learns: bool,
        folded: u32,
    ) -> Result<u32, RowError> {
        let low_bits = model.low_bits();
        let head = folded >> low_bits;
        if head >= ESCAPE {
            encode_large(self, model, learns, folded);
            return Ok(folded);
        }
        model.head.encode_with(self, head, folded, low_bits);
        if learns {
            model.head.learn(head);
            model.learn(folded);
        }
        Ok(folded)
    }

    #[inline]
    fn even(&mut self, value: u32, bits: u32) -> u32 {
        self.even(value, bits);
        value & ((1u64 << bits.min(u32::BITS)) - 1) as u32
    }
}

impl Coding for Decoder<'_> {
    const DECODES: bool = true;

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

    #[inline(always)]
    fn number(&mut self, model: &mut NumberModel, learns: bool, _: u32) -> Result<u32, RowError> {
        let low_bits = model.low_bits();
        let (head, low) = model.head.decode_with(self, low_bits);
        let mut folded = head << low_bits | low;
        if head == ESCAPE {
            let large = u64::from(ESCAPE) + u64::from(decode_large(self));
            folded = u32::try_from(large << low_bits | u64::from(low))
                .map_err(|_| RowError::OutOfRange)?;
        }
        if learns {
            model.head.learn(head);
            model.learn(folded);
        }
        Ok(folded)
    }

    #[inline]
    fn even(&mut self, _: u32, bits: u32) -> u32 {
        self.even(bits)
    }
}

/// A difference with its sign in the lowest bit, so that small ones are small.
#[inline(always)]
pub(super) const fn folded(difference: i32) -> u32 {
    (difference << 1 ^ difference >> 31) as u32
}

/// The difference that was folded.
#[inline(always)]
pub(super) const fn unfolded(folded: u32) -> i32 {
    (folded >> 1) as i32 ^ -((folded & 1) as i32)
}

/// A number that is too large for one step: by how much, in as many bits as that takes.
#[cold]
fn encode_large(encoder: &mut Encoder<'_>, model: &mut NumberModel, learns: bool, folded: u32) {
    let low_bits = model.low_bits();
    model.head.encode_with(encoder, ESCAPE, folded, low_bits);
    let rest = (folded >> low_bits) - ESCAPE;
    let bits = u32::BITS - rest.leading_zeros();
    encoder.even(bits, LARGE_BITS);
    encoder.even(rest, bits);
    if learns {
        model.head.learn(ESCAPE);
        model.learn(folded);
    }
}

#[cold]
fn decode_large(decoder: &mut Decoder<'_>) -> u32 {
    let bits = decoder.even(LARGE_BITS).min(u32::BITS);
    decoder.even(bits)
}

/// The largest number of one step, and what larger ones begin with.
const ESCAPE: u32 = 15;
/// Bits in which the number of a large number's bits is told.
const LARGE_BITS: u32 = 6;
