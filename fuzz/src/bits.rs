//! Bit readers and writers: what is read from any bytes writes the same bits again.

use arbitrary::{Arbitrary, Unstructured};
use muse_wire::bits::{BitError, BitReader, BitWriter, Width};

use crate::{Bound, Target, no_setup};

/// Bits in and out.
pub const TARGET: Target = Target {
    name: "bits",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 16,
    },
    steps: Bound {
        base: 10_000,
        per_byte: 100,
    },
};

#[derive(Arbitrary, Clone, Copy)]
enum Step {
    Bits(u8),
    Signed(u8),
    RangedU64(u64, u64),
    RangedI64(i64, i64),
    Gamma,
    Varint16,
    Varint32,
    Varint64,
    Align,
    Bytes(u8),
}

/// The first half of the bytes chooses what to read from the second.
fn run(data: &[u8]) {
    let (choices, bytes) = data.split_at(data.len() / 2);
    let mut choices = Unstructured::new(choices);
    let mut buffer = vec![0; bytes.len()];
    let mut reader = BitReader::new(bytes);
    let mut writer = BitWriter::new(&mut buffer);
    while let Ok(step) = Step::arbitrary(&mut choices) {
        let before = reader.position();
        if copy(step, &mut reader, &mut writer).is_err() || choices.is_empty() {
            break;
        }
        assert!(reader.position() >= before && reader.position() <= bytes.len() as u64 * 8);
        assert_eq!(reader.position(), writer.bit_len());
    }
    let bits = writer.bit_len();
    let len = writer.finish();
    let (mut one, mut other) = (BitReader::new(bytes), BitReader::new(&buffer[..len]));
    for start in (0..bits).step_by(64) {
        let count = (bits - start).min(64) as u32;
        assert_eq!(one.bits(count), other.bits(count));
    }
}

/// Reads one value and writes it; what could be read fits.
fn copy(step: Step, reader: &mut BitReader, writer: &mut BitWriter) -> Result<(), BitError> {
    let written = match step {
        Step::Bits(count) => writer.bits(reader.bits(count.into())?, count.into()),
        Step::Signed(count) => writer.signed(reader.signed(count.into())?, count.into()),
        Step::RangedU64(min, max) => writer.ranged_u64(reader.ranged_u64(min, max)?, min, max),
        Step::RangedI64(min, max) => writer.ranged_i64(reader.ranged_i64(min, max)?, min, max),
        Step::Gamma => writer.gamma(reader.gamma()?),
        Step::Varint16 => writer.varint(reader.varint(Width::Bits16)?, Width::Bits16),
        Step::Varint32 => writer.varint(reader.varint(Width::Bits32)?, Width::Bits32),
        Step::Varint64 => writer.varint(reader.varint(Width::Bits64)?, Width::Bits64),
        Step::Align => {
            reader.align()?;
            writer.align();
            Ok(())
        }
        Step::Bytes(len) => {
            let mut bytes = vec![0; len.into()];
            reader.bytes(&mut bytes)?;
            writer.bytes(&bytes)
        }
    };
    assert_eq!(written, Ok(()));
    Ok(())
}
