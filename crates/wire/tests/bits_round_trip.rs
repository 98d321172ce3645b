//! Any sequence of values comes back from the bits it was written to, and any bytes read as some or none.

use muse_wire::bits::{BitError, BitReader, BitWriter, Width};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Item {
    Bits(u64, u32),
    Signed(i64, u32),
    RangedU64(u64, u64, u64),
    RangedI64(i64, i64, i64),
    Gamma(u64),
    Varint(u64, Width),
    Align,
    Bytes(Vec<u8>),
}

impl Item {
    fn write(&self, writer: &mut BitWriter) -> Result<(), BitError> {
        match self {
            Item::Bits(value, count) => writer.bits(*value, *count),
            Item::Signed(value, count) => writer.signed(*value, *count),
            Item::RangedU64(value, min, max) => writer.ranged_u64(*value, *min, *max),
            Item::RangedI64(value, min, max) => writer.ranged_i64(*value, *min, *max),
            Item::Gamma(value) => writer.gamma(*value),
            Item::Varint(value, width) => writer.varint(*value, *width),
            Item::Align => {
                writer.align();
                Ok(())
            }
            Item::Bytes(bytes) => writer.bytes(bytes),
        }
    }

    /// Reads the same kind of item and checks that it is the same.
    fn check(&self, reader: &mut BitReader) {
        match self {
            Item::Bits(value, count) => assert_eq!(reader.bits(*count), Ok(*value)),
            Item::Signed(value, count) => assert_eq!(reader.signed(*count), Ok(*value)),
            Item::RangedU64(value, min, max) => {
                assert_eq!(reader.ranged_u64(*min, *max), Ok(*value));
            }
            Item::RangedI64(value, min, max) => {
                assert_eq!(reader.ranged_i64(*min, *max), Ok(*value));
            }
            Item::Gamma(value) => assert_eq!(reader.gamma(), Ok(*value)),
            Item::Varint(value, width) => assert_eq!(reader.varint(*width), Ok(*value)),
            Item::Align => assert_eq!(reader.align(), Ok(())),
            Item::Bytes(bytes) => {
                let mut got = vec![0; bytes.len()];
                assert_eq!(reader.bytes(&mut got), Ok(()));
                assert_eq!(&got, bytes);
            }
        }
    }
}

/// Numbers of every magnitude alike.
fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn item() -> impl Strategy<Value = Item> {
    let three = [any_size(), any_size(), any_size()].prop_map(|mut three| {
        three.sort_unstable();
        three
    });
    let signed = [any::<i64>(), any::<i64>(), any::<i64>()].prop_map(|mut three| {
        three.sort_unstable();
        three
    });
    prop_oneof![
        any_size().prop_map(|value| Item::Bits(value, 64 - value.leading_zeros())),
        (any::<u32>(), 32u32..=64).prop_map(|(value, bits)| Item::Bits(value.into(), bits)),
        any::<i32>().prop_map(|value| Item::Signed(value.into(), 32)),
        three.prop_map(|[min, value, max]| Item::RangedU64(value, min, max)),
        signed.prop_map(|[min, value, max]| Item::RangedI64(value, min, max)),
        any_size().prop_map(Item::Gamma),
        any::<u16>().prop_map(|value| Item::Varint(value.into(), Width::Bits16)),
        any::<u32>().prop_map(|value| Item::Varint(value.into(), Width::Bits32)),
        any_size().prop_map(|value| Item::Varint(value, Width::Bits64)),
        Just(Item::Align),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Item::Bytes),
    ]
}

proptest! {
    #[test]
    fn any_sequence_round_trips(items in prop::collection::vec(item(), 0..40), room in 0usize..1_500) {
        let mut buffer = vec![0x55; room];
        let mut writer = BitWriter::new(&mut buffer);
        let mut written = 0;
        for item in &items {
            let before = writer.bit_len();
            if item.write(&mut writer).is_err() {
                prop_assert_eq!(writer.bit_len(), before);
                break;
            }
            written += 1;
        }
        let bits = writer.bit_len();
        let len = writer.finish();
        prop_assert_eq!(len as u64, bits.div_ceil(8));
        let mut reader = BitReader::new(&buffer[..len]);
        for item in &items[..written] {
            item.check(&mut reader);
        }
        prop_assert_eq!(reader.position(), bits);
        prop_assert_eq!(reader.finish(), Ok(()));
        prop_assert!(buffer[len..].iter().all(|&byte| byte == 0x55), "written past the end");
    }

    #[test]
    fn hostile_bytes_never_read_past_the_end(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        kinds in prop::collection::vec((0u8..6, 0u32..=70), 0..40),
    ) {
        let mut reader = BitReader::new(&bytes);
        for (kind, count) in kinds {
            let error = match kind {
                0 => reader.bits(count).err(),
                1 => reader.ranged_u64(3, 3 + u64::from(count)).err(),
                2 => reader.gamma().err(),
                3 => reader.varint(Width::Bits64).err(),
                4 => reader.align().err(),
                _ => reader.bytes(&mut vec![0; count as usize]).err(),
            };
            prop_assert!(reader.position() <= bytes.len() as u64 * 8);
            if error.is_some() {
                break;
            }
        }
    }
}
