//! An adaptive binary range coder: it spends on each decision close to what its probability says.
//!
//! Netcode codes snapshots with it. It is written by hand, see `docs/decisions/0002-range-coder-by-hand.md`:
//! integers only, so every platform gives the same bytes, and no division on the way of an adaptive bit.
//!
//! [`Encoder`] and [`Decoder`] hold an interval of 64-bit numbers and cut it at each decision in the proportion of the
//! decision's probability. They have no carry: a byte leaves when both ends of the interval agree on it, and
//! in the rare case that they do not although the interval has become narrow, its upper part is given up. What is learnt
//! of probabilities stands in the [`model`]s, which the caller owns and which both sides must start and use alike.

pub mod model;
mod nibble;

pub use model::{BitModel, SignedModel, TreeModel, UnsignedModel};
pub use nibble::NibbleModel;

use thiserror::Error;

/// The encoder's buffer was too small for what was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("range coder ran out of room")]
pub struct OutOfRoom;

/// Encodes decisions into a byte slice.
///
/// Encoding never fails: what does not fit the buffer is noticed by [`finish`](Self::finish).
/// A [`checkpoint`](Self::checkpoint) taken earlier brings the encoder back to where it was.
///
/// ```
/// use muse_wire::range::{BitModel, Decoder, Encoder};
/// let mut buffer = [0; 64];
/// let mut encoder = Encoder::new(&mut buffer);
/// let mut rarely = BitModel::new();
/// for index in 0..800 {
///     encoder.bit(index % 100 == 99, &mut rarely);
/// }
/// let len = encoder.finish()?;
/// assert!(len < 14, "800 decisions, {len} bytes");
///
/// let mut decoder = Decoder::new(&buffer[..len]);
/// let mut rarely = BitModel::new();
/// assert!((0..800).all(|index| decoder.bit(&mut rarely) == (index % 100 == 99)));
/// # Ok::<(), muse_wire::range::OutOfRoom>(())
/// ```
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    state: Checkpoint,
}

/// The position of an [`Encoder`]. The models used since have to be restored by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    interval: Interval,
    /// Bytes that left, also those that found no room.
    len: usize,
}

impl<'a> Encoder<'a> {
    /// An encoder at the front of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            state: Checkpoint {
                interval: Interval::WHOLE,
                len: 0,
            },
        }
    }

    /// Most bytes that [`finish`](Self::finish) can come to if nothing else is encoded.
    pub const fn len_max(&self) -> usize {
        self.state.len.saturating_add(STATE_BYTES)
    }

    /// Returns the position of the encoder, for [`restore`](Self::restore).
    pub const fn checkpoint(&self) -> Checkpoint {
        self.state
    }

    /// Takes back everything encoded since `checkpoint` was taken from this encoder.
    pub const fn restore(&mut self, checkpoint: Checkpoint) {
        self.state = checkpoint;
    }

    /// Encodes a decision and lets its model learn from it.
    #[inline]
    pub fn bit(&mut self, bit: bool, model: &mut BitModel) {
        let bound = self.state.interval.bound(model.probability());
        self.state.interval.choose(bit, bound);
        model.update(bit);
        self.shift();
    }

    /// Encodes a decision that is `true` with `probability` of 65,536, which the caller estimated: 1 to 65,535.
    #[inline]
    pub fn bit_at(&mut self, bit: bool, probability: u16) {
        let bound = self.state.interval.bound(u32::from(probability.max(1)));
        self.state.interval.choose(bit, bound);
        self.shift();
    }

    /// Encodes one of several outcomes that share 32,768 parts between them: the one that has the `size` parts from
    /// `start` on. What reaches past the end, or is empty, is moved inside.
    #[inline]
    pub fn part(&mut self, start: u32, size: u32) {
        self.state.interval.take_parts(start, size);
        self.shift();
    }

    /// A part, as [`part`](Self::part) but from a model that keeps the rules, and `bits` bits of `value`, at most 15, in one step.
    #[inline(always)]
    fn part_and_even(&mut self, start: u32, size: u32, value: u32, bits: u32) {
        let bits = bits % EVEN_BITS;
        let interval = &mut self.state.interval;
        interval.take_legal_parts(start, size);
        interval.take_part(u64::from(value) & ((1 << bits) - 1), bits);
        self.shift();
    }

    /// Encodes the low `count` bits of `value`, 0 to 32, all equally likely. Higher bits are ignored.
    #[inline]
    pub fn even(&mut self, value: u32, count: u32) {
        let mut rest = count.min(32);
        while rest > 0 {
            let part = rest.min(EVEN_BITS);
            rest -= part;
            let digit = (value >> rest) & ((1 << part) - 1);
            self.state.interval.take_part(u64::from(digit), part);
            self.shift();
        }
    }

    /// Writes what is left, 0 to 8 bytes, and says how many bytes there are in all.
    pub fn finish(mut self) -> Result<usize, OutOfRoom> {
        let Interval { low, width } = self.state.interval;
        let last = low + (width - 1);
        // The number in the interval with the most zeros at its end, which the decoder supplies by itself.
        for bytes in 0..=STATE_BYTES {
            let zeros = u64::MAX.checked_shr(bytes as u32 * 8).unwrap_or(0);
            let Some(value) = low.checked_add(zeros).map(|value| value & !zeros) else {
                continue;
            };
            if value <= last {
                for byte in &value.to_be_bytes()[..bytes] {
                    self.push(*byte);
                }
                break;
            }
        }
        if self.state.len > self.buffer.len() {
            Err(OutOfRoom)
        } else {
            Ok(self.state.len)
        }
    }

    #[inline(always)]
    fn shift(&mut self) {
        if self.state.interval.width < WIDTH_NARROW {
            self.shift_narrow();
        }
    }

    /// Writes the bytes that are settled. Rarely and several at once, because when they are and how many can't be predicted.
    #[inline]
    fn shift_narrow(&mut self) {
        let low = self.state.interval.low;
        let bytes = self.state.interval.shift_settled();
        let len = self.state.len;
        match self.buffer.get_mut(len..).and_then(<[u8]>::first_chunk_mut) {
            // Those that are not settled yet are written over later.
            Some(room) => *room = low.to_be_bytes(),
            None => {
                for (index, byte) in low.to_be_bytes().into_iter().enumerate().take(bytes) {
                    if let Some(slot) = self.buffer.get_mut(len.saturating_add(index)) {
                        *slot = byte;
                    }
                }
            }
        }
        self.state.len = len.saturating_add(bytes);
        if self.state.interval.width < WIDTH_MIN {
            self.state.interval.cut();
            self.shift_narrow();
        }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.buffer.get_mut(self.state.len) {
            *slot = byte;
        }
        self.state.len = self.state.len.saturating_add(1);
    }
}

/// Decodes what an [`Encoder`] wrote, given the same models in the same order.
///
/// The end of the bytes is not an error: zeros follow, because the encoder leaves zeros at the end away. So decoding
/// goes on for ever and never panics; the caller knows how much there is to decode, and
/// [`is_overrun`](Self::is_overrun) tells when it has gone surely too far. Damaged bytes decode to other
/// values, not to errors: protect them outside.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    interval: Interval,
    code: u64,
    /// Bytes read after the end.
    padding: u32,
}

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`, all of them.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            rest: bytes,
            interval: Interval::WHOLE,
            code: 0,
            padding: 0,
        };
        for _ in 0..STATE_BYTES {
            decoder.pull();
        }
        decoder
    }

    /// True if more has been decoded than the encoder can have written.
    pub const fn is_overrun(&self) -> bool {
        self.padding > STATE_BYTES as u32
    }

    /// Decodes a decision and lets its model learn from it.
    #[inline]
    pub fn bit(&mut self, model: &mut BitModel) -> bool {
        let bound = self.interval.bound(model.probability());
        let bit = self.code.wrapping_sub(self.interval.low) < bound;
        self.interval.choose(bit, bound);
        model.update(bit);
        self.shift();
        bit
    }

    /// Decodes a decision that is `true` with `probability` of 65,536: what the encoder was given.
    #[inline]
    pub fn bit_at(&mut self, probability: u16) -> bool {
        let bound = self.interval.bound(u32::from(probability.max(1)));
        let bit = self.code.wrapping_sub(self.interval.low) < bound;
        self.interval.choose(bit, bound);
        self.shift();
        bit
    }

    /// Returns which of the 32,768 parts comes next. [`take_part`](Self::take_part) has to follow, with the outcome that holds it.
    #[inline]
    pub fn next_part(&self) -> u32 {
        let offset = self.code.wrapping_sub(self.interval.low);
        // The last part is a little wider, and hostile bytes may lie outside of all.
        (offset / (self.interval.width >> PART_BITS)).min((1 << PART_BITS) - 1) as u32
    }

    /// Takes the outcome that has the `size` parts from `start` on, as [`Encoder::part`] did.
    #[inline]
    pub fn take_part(&mut self, start: u32, size: u32) {
        self.interval.take_parts(start, size);
        self.shift();
    }

    /// Takes what [`Encoder::part_and_even`] encoded and gives the number behind the part.
    #[inline]
    fn take_part_and_even(&mut self, start: u32, size: u32, bits: u32) -> u32 {
        let bits = bits % EVEN_BITS;
        self.interval.take_legal_parts(start, size);
        let mut digit = 0;
        if bits > 0 {
            let offset = self.code.wrapping_sub(self.interval.low);
            // The last part is a little wider, and hostile bytes may lie outside of all.
            digit = (offset / (self.interval.width >> bits)).min((1 << bits) - 1);
            self.interval.take_part(digit, bits);
        }
        self.shift();
        digit as u32
    }

    /// Decodes `count` bits, 0 to 32, that are all equally likely.
    #[inline]
    pub fn even(&mut self, count: u32) -> u32 {
        let mut rest = count.min(32);
        let mut value = 0;
        while rest > 0 {
            let part = rest.min(EVEN_BITS);
            rest -= part;
            let offset = self.code.wrapping_sub(self.interval.low);
            // The last part is a little wider, and hostile bytes may lie outside of all.
            let digit = (offset / (self.interval.width >> part)).min((1 << part) - 1);
            self.interval.take_part(digit, part);
            self.shift();
            value = value << part | digit as u32;
        }
        value
    }

    #[inline(always)]
    fn shift(&mut self) {
        if self.interval.width < WIDTH_NARROW {
            self.shift_narrow();
        }
    }

    #[inline]
    fn shift_narrow(&mut self) {
        for _ in 0..self.interval.shift_settled() {
            self.pull();
        }
        if self.interval.width < WIDTH_MIN {
            self.interval.cut();
            self.shift_narrow();
        }
    }

    #[inline]
    fn pull(&mut self) {
        let byte = match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                *first
            }
            [] => {
                self.padding = self.padding.saturating_add(1);
                0
            }
        };
        self.code = self.code << 8 | u64::from(byte);
    }
}

/// The numbers `low..low + width`, which never reach past 2^64. Between decisions `width` is at least [`WIDTH_MIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    low: u64,
    width: u64,
}

impl Interval {
    const WHOLE: Self = Self {
        low: 0,
        width: u64::MAX,
    };

    /// The part of the width that a decision of this probability (of 65,536) gets; neither nothing nor everything.
    #[inline]
    const fn bound(self, probability: u32) -> u64 {
        (self.width >> PROBABILITY_BITS) * probability as u64
    }

    /// Keeps the lower part, up to `bound`, for `true` and the rest for `false`.
    #[inline]
    const fn choose(&mut self, bit: bool, bound: u64) {
        // Without a branch, because the bit is hard to predict.
        let mask = (bit as u64).wrapping_neg();
        self.low += bound & !mask;
        self.width = (bound & mask) | ((self.width - bound) & !mask);
    }

    /// Keeps part `digit` of 2^`count` equal ones.
    #[inline]
    const fn take_part(&mut self, digit: u64, count: u32) {
        let part = self.width >> count;
        self.low += part * digit;
        self.width = part;
    }

    /// Keeps `size` of 2^15 equal parts, from `start` on.
    #[inline]
    const fn take_parts(&mut self, start: u32, size: u32) {
        let part = self.width >> PART_BITS;
        let start = start & ((1 << PART_BITS) - 1);
        let room = (1 << PART_BITS) - start;
        let size = if size == 0 {
            1
        } else if size > room {
            room
        } else {
            size
        };
        self.low += part * start as u64;
        self.width = part * size as u64;
    }

    /// As [`take_parts`](Self::take_parts), for parts that exist: at least one, and none beyond the last.
    #[inline]
    const fn take_legal_parts(&mut self, start: u32, size: u32) {
        let part = self.width >> PART_BITS;
        self.low += part * start as u64;
        self.width = part * size as u64;
    }

    /// Drops the leading bytes that are the same for all numbers of the interval, and says how many.
    #[inline(always)]
    const fn shift_settled(&mut self) -> usize {
        let last = self.low + (self.width - 1);
        // The width has its say because as many numbers as whole bytes hold must fit, too.
        let bytes = (self.low ^ last | self.width).leading_zeros() / 8;
        self.low <<= bytes * 8;
        self.width <<= bytes * 8;
        bytes as usize
    }

    /// Gives up what lies beyond the border that the interval lies across: it is narrow, and no byte of it is settled.
    #[cold]
    const fn cut(&mut self) {
        self.width = (1 << TOP_SHIFT) - (self.low & ((1 << TOP_SHIFT) - 1));
    }
}

/// Bytes of the interval's numbers.
const STATE_BYTES: usize = 8;
/// The lowest bit of the top byte of the interval's numbers.
const TOP_SHIFT: u32 = 56;
/// Below this width bytes leave that are settled: once in about 28 bits of output.
const WIDTH_NARROW: u64 = 1 << 36;
/// No interval is left narrower than this, so that probabilities of 16 bits can always be told apart.
const WIDTH_MIN: u64 = 1 << 32;
/// Bits of a probability.
const PROBABILITY_BITS: u32 = 16;
/// Outcomes of more than two kinds share 2^15 parts.
const PART_BITS: u32 = 15;
/// Most bits that are coded in one step as equally likely.
const EVEN_BITS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_no_bytes() {
        assert_eq!(Encoder::new(&mut []).finish(), Ok(0));
        let mut decoder = Decoder::new(&[]);
        assert!(!decoder.is_overrun());
        for _ in 0..100 {
            decoder.even(32);
        }
        assert!(decoder.is_overrun());
    }

    #[test]
    fn a_full_buffer_is_noticed_at_the_end_and_a_checkpoint_undoes_it() {
        let mut buffer = [0; 3];
        let mut encoder = Encoder::new(&mut buffer);
        encoder.even(0xABCDEF, 24);
        let checkpoint = encoder.checkpoint();
        encoder.even(u32::MAX, 32);
        encoder.even(u32::MAX, 32);
        assert!(encoder.len_max() > 3);
        encoder.restore(checkpoint);
        assert_eq!(encoder.finish(), Ok(3));
        assert_eq!(Decoder::new(&buffer).even(24), 0xABCDEF);

        let mut encoder = Encoder::new(&mut buffer);
        encoder.even(u32::MAX, 32);
        assert_eq!(encoder.finish(), Err(OutOfRoom));
    }

    #[test]
    fn an_interval_across_a_border_is_cut_and_stays_wide_enough() {
        let border = 0x42 << TOP_SHIFT;
        let mut interval = Interval {
            low: border - 5,
            width: 1_000,
        };
        assert_eq!(interval.shift_settled(), 0);
        interval.cut();
        // All that is left lies below the border.
        assert_eq!(interval.low.wrapping_add(interval.width), border);
        assert_eq!(interval.shift_settled(), 7);
        assert!(interval.width >= WIDTH_MIN);
        assert_eq!(interval.low.wrapping_add(interval.width), 0);
    }

    #[test]
    fn an_interval_of_whole_bytes_keeps_its_width() {
        let mut interval = Interval {
            low: 0xE5FF_FFFF_FFFF_FF00,
            width: 0x100,
        };
        assert_eq!(interval.shift_settled(), 6);
        assert_eq!(interval.width, 1 << TOP_SHIFT);
    }

    #[test]
    fn the_bytes_are_the_same_for_ever() {
        let mut buffer = [0; 64];
        let mut encoder = Encoder::new(&mut buffer);
        let (mut bit, mut tree) = (BitModel::new(), TreeModel::<16>::new());
        let (mut unsigned, mut signed) = (UnsignedModel::new(), SignedModel::new());
        // Long enough for the quick and the slow estimate to part.
        for index in 0..60 {
            encoder.bit(index % 7 == 0, &mut bit);
        }
        for index in 0..12u32 {
            encoder.bit(index % 5 == 0, &mut bit);
            tree.encode(&mut encoder, index % 7);
            unsigned.encode(&mut encoder, index * index * 100);
            signed.encode(&mut encoder, index as i32 * 3 - 10);
            encoder.even(index, 4);
        }
        let len = encoder.finish().expect("room for all");
        let hex: String = buffer[..len]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, GOLDEN);
    }

    /// Recorded when the format was settled; a change breaks every snapshot on the wire.
    const GOLDEN: &str = concat!(
        "782adfdb928c484ebfd532c2dd3428b9d25c6b9b6f6bd3085daa9a06d174be79fa",
        "727fab6da30478dc5ca007ff80356852c5b8"
    );
}
