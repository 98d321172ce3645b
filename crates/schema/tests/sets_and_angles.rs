//! Angles, rotations and sets of bits in messages: the same attributes as in states, and the same values.

use muse_schema::{DecodeError, EncodeError, Message, State};
use proptest::prelude::*;

#[derive(Message, Clone, Debug, PartialEq)]
#[message(id = 1)]
struct Input {
    #[field(angle = 16)]
    yaw: f32,
    #[field(angle, step = 1.0, range = 0.0..=360.0)]
    heading: Vec<f64>,
    #[field(rotation = 10)]
    aim: [f32; 4],
    #[field(rotation = 5, max = 4)]
    bones: Vec<[f64; 4]>,
    #[field(bits = 5)]
    buttons: u8,
    #[field(bits)]
    set: u64,
    #[field(bits)]
    keys: [bool; 9],
}

/// The same fields as a state.
#[derive(State, Clone, Debug, PartialEq)]
struct Held {
    #[field(angle = 16)]
    yaw: f32,
    #[field(rotation = 10)]
    aim: [f32; 4],
}

fn input() -> Input {
    Input {
        yaw: 3.0,
        heading: vec![-1.0, 719.4],
        aim: [0.0, 0.6, 0.0, -0.8],
        bones: vec![[1.0, 1.0, 1.0, 1.0]],
        buttons: 0b10101,
        set: 1 << 63,
        keys: [true, false, true, false, true, false, true, false, true],
    }
}

#[test]
fn what_comes_back_is_what_a_state_would_have() {
    let mut bytes = Vec::new();
    input().encode(&mut bytes).expect("numbers");
    // 16, 6 + 2 * 9, 32, 3 + 17, 5, 64 and 9 bits.
    assert_eq!(bytes.len(), 170usize.div_ceil(8));
    let decoded = Input::decode(&bytes).expect("just encoded");
    let held = Held {
        yaw: 3.0,
        aim: input().aim,
    };
    assert_eq!((decoded.yaw, decoded.aim), {
        let snapped = held.snapped();
        (snapped.yaw, snapped.aim)
    });
    assert_eq!(decoded.heading, [359.0, 359.0]);
    assert_eq!(
        (decoded.buttons, decoded.set, decoded.keys),
        (0b10101, 1 << 63, input().keys)
    );
}

#[test]
fn what_does_not_fit_is_not_encoded() {
    let mut bytes = Vec::new();
    let many = Input {
        buttons: 32,
        ..input()
    };
    assert_eq!(many.encode(&mut bytes), Err(EncodeError::OutOfRange));
    let lost = Input {
        aim: [f32::NAN, 0.0, 0.0, 1.0],
        ..input()
    };
    assert_eq!(lost.encode(&mut bytes), Err(EncodeError::NotANumber));
    let spun = Input {
        yaw: f32::NAN,
        ..input()
    };
    assert_eq!(spun.encode(&mut bytes), Err(EncodeError::NotANumber));
}

#[test]
fn a_row_that_no_rotation_has_is_refused() {
    // Yaw and headings are 0 and none; then all bits of the rotation are set.
    let mut bytes = vec![0; 20];
    bytes[2] = 0b1100_0000;
    bytes[3..7].fill(0xFF);
    assert_eq!(Input::decode(&bytes), Err(DecodeError::NotCanonical));
}

proptest! {
    #[test]
    fn what_decodes_encodes_to_the_same_bytes(
        bytes in prop::collection::vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 17..40),
    ) {
        if let Ok(input) = Input::decode(&bytes) {
            let mut again = Vec::new();
            input.encode(&mut again).expect("it was decoded");
            prop_assert_eq!(again, bytes);
        }
    }
}
