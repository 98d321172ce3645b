//! Whatever the range coder encodes it decodes, into no more bytes than the entropy asks for; and any bytes decode.

use muse_wire::range::{BitModel, Decoder, Encoder, SignedModel, TreeModel, UnsignedModel};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Item {
    Bit(bool, usize),
    Even(u32, u32),
    Tree(u32),
    Unsigned(u32),
    Signed(i32),
}

/// The models of one side.
#[derive(Default)]
struct Models {
    bits: [BitModel; 4],
    tree: TreeModel<32>,
    unsigned: UnsignedModel,
    signed: SignedModel,
}

impl Models {
    fn encode(&mut self, encoder: &mut Encoder, item: &Item) {
        match *item {
            Item::Bit(bit, context) => encoder.bit(bit, &mut self.bits[context]),
            Item::Even(value, count) => encoder.even(value, count),
            Item::Tree(symbol) => self.tree.encode(encoder, symbol),
            Item::Unsigned(value) => self.unsigned.encode(encoder, value),
            Item::Signed(value) => self.signed.encode(encoder, value),
        }
    }

    /// Decodes an item of the same kind.
    fn decode(&mut self, decoder: &mut Decoder, like: &Item) -> Item {
        match *like {
            Item::Bit(_, context) => Item::Bit(decoder.bit(&mut self.bits[context]), context),
            Item::Even(_, count) => Item::Even(decoder.even(count), count),
            Item::Tree(_) => Item::Tree(self.tree.decode(decoder)),
            Item::Unsigned(_) => Item::Unsigned(self.unsigned.decode(decoder)),
            Item::Signed(_) => Item::Signed(self.signed.decode(decoder)),
        }
    }
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (prop::bool::weighted(0.03), 0usize..4).prop_map(|(bit, context)| Item::Bit(bit, context)),
        (any::<u32>(), 1u32..=32)
            .prop_map(|(value, count)| Item::Even(value >> (32 - count), count)),
        (0u32..32).prop_map(Item::Tree),
        (any::<u32>(), 0u32..32).prop_map(|(value, shift)| Item::Unsigned(value >> shift)),
        (any::<i32>(), 0u32..32).prop_map(|(value, shift)| Item::Signed(value >> shift)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_sequence_round_trips(items in prop::collection::vec(item(), 0..300)) {
        let mut buffer = vec![0; 4_096];
        let mut encoder = Encoder::new(&mut buffer);
        let mut models = Models::default();
        for item in &items {
            models.encode(&mut encoder, item);
        }
        let len_max = encoder.len_max();
        let len = encoder.finish().expect("room for all");
        prop_assert!(len <= len_max);
        let mut decoder = Decoder::new(&buffer[..len]);
        let mut models = Models::default();
        for item in &items {
            let got = models.decode(&mut decoder, item);
            prop_assert_eq!(format!("{got:?}"), format!("{item:?}"));
        }
        prop_assert!(!decoder.is_overrun());
    }

    #[test]
    fn any_bytes_decode_to_something(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        kinds in prop::collection::vec(item(), 0..300),
    ) {
        let mut decoder = Decoder::new(&bytes);
        let mut models = Models::default();
        for kind in &kinds {
            if let Item::Tree(symbol) = models.decode(&mut decoder, kind) {
                prop_assert!(symbol < 32);
            }
        }
    }

    #[test]
    fn a_checkpoint_takes_back_what_came_after(
        kept in prop::collection::vec(item(), 0..60),
        taken_back in prop::collection::vec(item(), 0..60),
    ) {
        let encode = |undo: bool| {
            let mut buffer = vec![0; 2_048];
            let mut encoder = Encoder::new(&mut buffer);
            let mut models = Models::default();
            kept.iter().for_each(|item| models.encode(&mut encoder, item));
            if undo {
                let checkpoint = encoder.checkpoint();
                taken_back.iter().for_each(|item| models.encode(&mut encoder, item));
                encoder.restore(checkpoint);
            }
            let len = encoder.finish().expect("room for all");
            buffer.truncate(len);
            buffer
        };
        prop_assert_eq!(encode(true), encode(false));
    }
}

#[test]
fn skewed_bits_take_within_two_per_cent_of_their_entropy() {
    for probability in [0.5, 0.3, 0.1, 0.05, 0.02] {
        let mut random = fastrand::Rng::with_seed(7);
        let bits: Vec<bool> = (0..200_000).map(|_| random.f64() < probability).collect();
        let mut buffer = vec![0; 64_000];
        let mut encoder = Encoder::new(&mut buffer);
        let mut model = BitModel::new();
        for &bit in &bits {
            encoder.bit(bit, &mut model);
        }
        let len = encoder.finish().expect("room for all");
        // The entropy of what was drawn, not of what was meant to be.
        let ones = bits.iter().filter(|&&bit| bit).count() as f64 / bits.len() as f64;
        let entropy = -ones * ones.log2() - (1.0 - ones) * (1.0 - ones).log2();
        let ratio = len as f64 * 8.0 / (entropy * bits.len() as f64);
        println!("probability {probability}: {len} bytes, {ratio:.4} of the entropy");
        assert!(
            ratio < 1.02,
            "probability {probability}: {ratio:.4} of the entropy"
        );
    }
}

#[test]
fn skewed_symbols_take_within_two_per_cent_of_their_entropy() {
    // Symbol n with probability 2^-(n + 1).
    let mut random = fastrand::Rng::with_seed(8);
    let symbols: Vec<u32> = (0..100_000)
        .map(|_| random.u32(1..1 << 15).trailing_zeros())
        .collect();
    let mut counts = [0u32; 16];
    symbols
        .iter()
        .for_each(|&symbol| counts[symbol as usize] += 1);
    let total = symbols.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) * (total / f64::from(count)).log2())
        .sum();
    let mut buffer = vec![0; 64_000];
    let mut encoder = Encoder::new(&mut buffer);
    let (mut tree, mut unsigned) = (TreeModel::<16>::new(), UnsignedModel::new());
    symbols
        .iter()
        .for_each(|&symbol| tree.encode(&mut encoder, symbol));
    let tree_bits = encoder.finish().expect("room for all") as f64 * 8.0;
    let mut encoder = Encoder::new(&mut buffer);
    symbols
        .iter()
        .for_each(|&symbol| unsigned.encode(&mut encoder, symbol));
    let unsigned_bits = encoder.finish().expect("room for all") as f64 * 8.0;
    println!(
        "tree {:.4}, unsigned {:.4} of the entropy",
        tree_bits / entropy,
        unsigned_bits / entropy
    );
    assert!(tree_bits < 1.02 * entropy && unsigned_bits < 1.02 * entropy);
}
