//! Any value of any supported type comes back, and any bytes decode to a value that encodes to the same bytes or to an
//! error.

use muse_schema::{BitReader, DecodeError, Message, Options, Schema};
use proptest::prelude::*;

#[derive(Message, Clone, Debug, PartialEq)]
#[message(id = 1)]
struct Everything {
    flags: (bool, bool, bool),
    small: (u8, i8),
    numbers: (u16, i16, u32, i32, u64, i64),
    #[field(fixed)]
    fixed: [u32; 3],
    #[field(fixed)]
    fixed_signed: i64,
    floats: (f32, f64),
    #[field(range = -10..=90)]
    ranged: i32,
    #[field(range = 0..=u64::MAX)]
    whole_range: u64,
    #[field(range = -10.0..=10.0, step = 0.01)]
    stepped: Vec<f32>,
    #[field(range = 0.0..=1.0, step = 0.3)]
    uneven: Option<f64>,
    name: String,
    #[field(max = 5)]
    short: Option<Vec<String>>,
    #[field(max = 100_000)]
    blob: Vec<u8>,
    #[field(range = 0..=3)]
    tiny: Vec<u8>,
    actions: Vec<Action>,
    nested: Option<Pair<u8, Pair<Unit, bool>>>,
}

#[derive(Schema, Clone, Debug, PartialEq)]
enum Action {
    Stand,
    Move { dx: i8, dy: i8 },
    Say(String),
    Throw(#[field(range = 0..=4)] u8, Option<u32>),
    Wait {},
}

#[derive(Schema, Clone, Debug, PartialEq)]
struct Pair<A, B>(A, B);

#[derive(Schema, Clone, Debug, PartialEq)]
struct Unit;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Stand),
        any::<(i8, i8)>().prop_map(|(dx, dy)| Action::Move { dx, dy }),
        ".{0,20}".prop_map(Action::Say),
        (0u8..=4, any::<Option<u32>>()).prop_map(|(what, at)| Action::Throw(what, at)),
        Just(Action::Wait {}),
    ]
}

/// A value on the grid of `step`, so that it comes back exactly.
fn stepped() -> impl Strategy<Value = f32> {
    (0u32..=2_000).prop_map(|index| (-10.0 + f64::from(index) * 0.01) as f32)
}

prop_compose! {
    fn everything()(
        flags: (bool, bool, bool),
        small: (u8, i8),
        numbers: (u16, i16, u32, i32, u64, i64),
        (fixed, fixed_signed) in any::<([u32; 3], i64)>(),
        floats: (f32, f64),
        ranged in -10..=90,
        whole_range: u64,
        stepped in prop::collection::vec(stepped(), 0..20),
        uneven in prop::option::of((0u32..=4).prop_map(|index| f64::from(index) * 0.3)),
        (name, short) in (".{0,40}", prop::option::of(prop::collection::vec(".{0,9}", 0..=5))),
        (blob, tiny) in (
            prop::collection::vec(any::<u8>(), 0..500),
            prop::collection::vec(0u8..=3, 0..20),
        ),
        (actions, nested) in (
            prop::collection::vec(action(), 0..10),
            prop::option::of(any::<(u8, bool)>().prop_map(|(a, b)| Pair(a, Pair(Unit, b)))),
        ),
    ) -> Everything {
        Everything {
            flags, small, numbers, fixed, fixed_signed, floats, ranged, whole_range, stepped, uneven,
            name, short, blob, tiny, actions, nested,
        }
    }
}

proptest! {
    #[test]
    fn any_value_comes_back(value in everything()) {
        let mut bytes = vec![7];
        value.encode(&mut bytes).expect("a value within its limits");
        prop_assert_eq!(bytes[0], 7, "appended");
        prop_assert_eq!(Everything::decode(&bytes[1..]), Ok(value.clone()));
        let bits = bytes[1..].len() as u64 * 8;
        prop_assert!(Everything::bits_min(&Options::NONE) <= bits);
        for len in 1..bytes.len() {
            prop_assert!(Everything::decode(&bytes[1..len]).is_err(), "cut to {}", len);
        }
        bytes.push(0);
        prop_assert_eq!(Everything::decode(&bytes[1..]), Err(DecodeError::Trailing));
    }

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(
        bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..300),
    ) {
        if let Ok(value) = Everything::decode(&bytes) {
            let mut again = Vec::new();
            value.encode(&mut again).expect("it was decoded");
            prop_assert_eq!(&again, &bytes);
        }
        // Whole messages are rare in random bytes; actions are not.
        let mut reader = BitReader::new(&bytes);
        let mut actions = Vec::new();
        while let Ok(action) = Action::read(&Options::NONE, &mut reader) {
            actions.push(action);
            if reader.remaining() == 0 || actions.len() == 300 {
                break;
            }
        }
        prop_assert!(actions.len() <= bytes.len() * 8);
    }

    #[test]
    fn damaged_messages_never_panic(value in everything(), flips in prop::collection::vec(any::<u32>(), 1..8)) {
        let mut bytes = Vec::new();
        value.encode(&mut bytes).expect("a value within its limits");
        for flip in flips {
            let bit = flip as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(value) = Everything::decode(&bytes) {
            let mut again = Vec::new();
            value.encode(&mut again).expect("it was decoded");
            prop_assert_eq!(again, bytes);
        }
    }
}
