//! The bits of an input packet.
//!
//! ```text
//! number 16, stamp 24, doubled 1, count 4, then if count > 0:
//! low half of the newest tick 16, the newest input, the one before it, ...
//! input: same as its neighbour 1; else its encoding's length in nibbles (gamma), then each nibble: 0, or 1 and the nibble
//! exclusive-or'ed with the neighbour's. The first one's neighbour is the default input.
//! ```

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options};
use thiserror::Error;

use super::{INPUT_BYTES_MAX, INPUTS_PER_PACKET_MAX, Input, Stamp};
use crate::clock::PacketHeader;
use muse_schema::Schema;

/// The reason for which an input packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputError {
    /// The bits are not an input packet.
    #[error("malformed input packet: {0}")]
    Malformed(#[from] DecodeError),
    /// Its ticks are too far from those that the server is about to simulate.
    #[error("inputs for ticks out of reach")]
    OutOfReach,
}

/// The encoding of one input, in nibbles.
#[derive(Clone, Copy)]
struct Encoded {
    nibbles: [u8; NIBBLES_MAX],
    len: usize,
}

impl Encoded {
    fn of<I: Input>(input: &I) -> Result<Self, EncodeError> {
        let mut bytes = [0; INPUT_BYTES_MAX];
        let mut writer = BitWriter::new(&mut bytes);
        input.write(&Options::NONE, &mut writer)?;
        let len = (writer.bit_len() as usize).div_ceil(4);
        writer.finish();
        let nibbles = std::array::from_fn(|index| bytes[index / 2] >> (index % 2 * 4) & 15);
        Ok(Self { nibbles, len })
    }

    fn decode<I: Input>(&self) -> Result<I, DecodeError> {
        let mut bytes = [0; INPUT_BYTES_MAX];
        for (index, nibble) in self.nibbles.iter().enumerate().take(self.len) {
            bytes[index / 2] |= nibble << (index % 2 * 4);
        }
        let mut reader = BitReader::new(&bytes[..self.len.div_ceil(2)]);
        let input = I::read(&Options::NONE, &mut reader)?;
        reader.finish().map_err(|_| DecodeError::Trailing)?;
        Ok(input)
    }

    fn write(&self, neighbour: &Self, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        let same = self.len == neighbour.len && self.nibbles == neighbour.nibbles;
        writer.bool(same)?;
        if same {
            return Ok(());
        }
        writer.gamma(self.len as u64)?;
        for (nibble, other) in self.nibbles.iter().zip(&neighbour.nibbles).take(self.len) {
            writer.bool(nibble != other)?;
            if nibble != other {
                writer.bits(u64::from(nibble ^ other), 4)?;
            }
        }
        Ok(())
    }

    fn read(neighbour: &Self, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        if reader.bool()? {
            return Ok(*neighbour);
        }
        let len = reader.gamma()?;
        if len > NIBBLES_MAX as u64 {
            return Err(DecodeError::OutOfRange);
        }
        let mut encoded = Self {
            nibbles: [0; NIBBLES_MAX],
            len: len as usize,
        };
        for index in 0..encoded.len {
            encoded.nibbles[index] = neighbour.nibbles[index];
            if reader.bool()? {
                encoded.nibbles[index] ^= reader.bits(4)? as u8;
            }
        }
        Ok(encoded)
    }
}

/// Writes a packet with `inputs`, the newest first, of which the first is for the tick with these low bits.
pub(super) fn write<'a, I: Input + 'a>(
    header: PacketHeader,
    tick_low: u16,
    inputs: impl ExactSizeIterator<Item = &'a I>,
    writer: &mut BitWriter<'_>,
) -> Result<(), EncodeError> {
    writer.bits(u64::from(header.number), 16)?;
    header.stamp.write(&Options::NONE, writer)?;
    writer.bool(header.doubled)?;
    let count = inputs.len().min(INPUTS_PER_PACKET_MAX);
    writer.bits(count as u64, 4)?;
    if count == 0 {
        return Ok(());
    }
    writer.bits(u64::from(tick_low), 16)?;
    // The newest is coded against doing nothing, the others against their neighbours: no packet depends on another.
    let mut neighbour = Encoded::of(&I::default())?;
    for input in inputs.take(count) {
        let encoded = Encoded::of(input)?;
        encoded.write(&neighbour, writer)?;
        neighbour = encoded;
    }
    Ok(())
}

/// Reads a packet; its inputs go to `inputs`, the newest first. Gives the low bits of the newest's tick.
pub(super) fn read<I: Input>(
    reader: &mut BitReader<'_>,
    inputs: &mut Vec<I>,
) -> Result<(PacketHeader, u16), DecodeError> {
    inputs.clear();
    let header = PacketHeader {
        number: reader.bits(16)? as u16,
        stamp: Stamp::read(&Options::NONE, reader)?,
        doubled: reader.bool()?,
    };
    let count = reader.bits(4)?;
    if count == 0 {
        return Ok((header, 0));
    }
    let tick_low = reader.bits(16)? as u16;
    // A default that cannot be encoded is a mistake of the declaration, which no packet can make worse.
    let mut neighbour = Encoded::of(&I::default()).map_err(|_| DecodeError::OutOfRange)?;
    for _ in 0..count {
        neighbour = Encoded::read(&neighbour, reader)?;
        inputs.push(neighbour.decode()?);
    }
    Ok((header, tick_low))
}

const NIBBLES_MAX: usize = 2 * INPUT_BYTES_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Schema, Clone, Debug, PartialEq, Default)]
    struct Keys {
        #[field(range = -180.0..=180.0, step = 0.01)]
        yaw: f32,
        forward: bool,
        fire: bool,
        #[field(max = 4)]
        words: Vec<u16>,
    }

    fn header() -> PacketHeader {
        PacketHeader {
            number: 9,
            stamp: Stamp::default(),
            doubled: true,
        }
    }

    #[test]
    fn packets_come_back_and_repetition_is_nearly_free() {
        let keys = |yaw: f32, words: &[u16]| Keys {
            yaw,
            forward: true,
            fire: false,
            words: words.to_vec(),
        };
        let mut bytes = [0; 1_200];
        let mut size = |inputs: &[Keys]| {
            let mut writer = BitWriter::new(&mut bytes);
            write(header(), 77, inputs.iter(), &mut writer).expect("room");
            let bits = writer.bit_len();
            let len = writer.finish();
            let mut read_back = Vec::new();
            let mut reader = BitReader::new(&bytes[..len]);
            let read = read(&mut reader, &mut read_back).expect("valid");
            assert_eq!((read, &read_back[..]), ((header(), 77), inputs));
            bits
        };
        let one = size(&[keys(10.0, &[])]);
        assert_eq!(size(&vec![keys(10.0, &[]); 8]), one + 7);
        assert!(size(&[keys(10.0, &[]), keys(10.02, &[])]) < one + 25);
        size(&[
            keys(10.0, &[1, 2]),
            keys(-10.0, &[]),
            Keys::default(),
            keys(1.0, &[3]),
        ]);
    }

    #[test]
    fn garbage_is_refused_or_read_but_never_more_than_that() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut inputs: Vec<Keys> = Vec::new();
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut bytes = [0; 40];
            random.fill(&mut bytes);
            let len = random.u32(0..40) as usize;
            let read = read(&mut BitReader::new(&bytes[..len]), &mut inputs);
            refused += u32::from(read.is_err());
            assert!(inputs.len() <= INPUTS_PER_PACKET_MAX);
        }
        assert!(refused > 10_000);
    }
}
