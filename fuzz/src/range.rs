//! The range coder: any items round-trip, and any bytes decode without a panic.

use arbitrary::{Arbitrary, Unstructured};
use muse_wire::range::{BitModel, Decoder, Encoder, SignedModel, TreeModel, UnsignedModel};

use crate::{Bound, Target, no_setup};

/// Items and bytes.
pub const TARGET: Target = Target {
    name: "range",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 100,
    },
    steps: Bound {
        base: 20_000,
        per_byte: 400,
    },
};

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Item {
    Bit(bool, u8),
    /// A value and how many bits it is shifted down, to have small ones as well.
    Even(u32, u8),
    Tree(u8),
    Unsigned(u32, u8),
    Signed(i32, u8),
}

#[derive(Default)]
struct Models {
    bits: [BitModel; 4],
    tree: TreeModel<32>,
    unsigned: UnsignedModel,
    signed: SignedModel,
}

impl Models {
    fn encode(&mut self, encoder: &mut Encoder, item: Item) {
        match item {
            Item::Bit(bit, context) => encoder.bit(bit, &mut self.bits[context as usize % 4]),
            Item::Even(value, count) => encoder.even(value, u32::from(count)),
            Item::Tree(symbol) => self.tree.encode(encoder, symbol.into()),
            Item::Unsigned(value, shift) => self.unsigned.encode(encoder, value >> (shift % 32)),
            Item::Signed(value, shift) => self.signed.encode(encoder, value >> (shift % 32)),
        }
    }

    /// Decodes an item of this kind, and says whether it is this one.
    fn decode(&mut self, decoder: &mut Decoder, item: Item) -> bool {
        match item {
            Item::Bit(bit, context) => decoder.bit(&mut self.bits[context as usize % 4]) == bit,
            Item::Even(value, count) => {
                let ones = u32::MAX
                    .checked_shr(32 - u32::from(count).min(32))
                    .unwrap_or(0);
                decoder.even(u32::from(count)) == value & ones
            }
            Item::Tree(symbol) => self.tree.decode(decoder) == u32::from(symbol % 32),
            Item::Unsigned(value, shift) => self.unsigned.decode(decoder) == value >> (shift % 32),
            Item::Signed(value, shift) => self.signed.decode(decoder) == value >> (shift % 32),
        }
    }
}

/// The bytes choose items to encode, and are decoded themselves as well.
fn run(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let mut items = Vec::new();
    while !choices.is_empty()
        && let Ok(item) = Item::arbitrary(&mut choices)
    {
        items.push(item);
    }
    // An item is at most 36 decisions of at most 16 bits and 32 even bits, whatever the models have learnt.
    let mut buffer = vec![0; items.len() * 100 + 8];
    let mut encoder = Encoder::new(&mut buffer);
    let mut models = Models::default();
    for &item in &items {
        models.encode(&mut encoder, item);
    }
    let len_max = encoder.len_max();
    let len = encoder.finish().expect("the buffer is large enough");
    assert!(len <= len_max);
    let mut decoder = Decoder::new(&buffer[..len]);
    let mut models = Models::default();
    assert!(
        items.iter().all(|&item| models.decode(&mut decoder, item)),
        "{items:?}"
    );
    assert!(!decoder.is_overrun());

    let mut decoder = Decoder::new(data);
    let mut models = Models::default();
    for &item in &items {
        models.decode(&mut decoder, item);
    }
}
