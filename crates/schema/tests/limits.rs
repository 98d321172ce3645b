//! Lengths and ranges hold in both directions, and a length that lies costs no memory.

use muse_schema::{DecodeError, EncodeError, Message, Schema};

#[derive(Message, Debug, PartialEq)]
#[message(id = 1)]
struct Limited {
    #[field(max = 3)]
    short: Vec<u32>,
    #[field(range = 10..=12)]
    number: u8,
    #[field(range = -1.0..=1.0, step = 0.25)]
    float: f32,
}

#[derive(Message, Debug, PartialEq)]
#[message(id = 2)]
struct Long {
    #[field(max = 4_000_000_000)]
    blob: Vec<u8>,
}

#[derive(Message, Debug, PartialEq)]
#[message(id = 3)]
struct Wide {
    wide: Vec<Option<[u64; 64]>>,
}

#[derive(Message, Debug, PartialEq)]
#[message(id = 4)]
struct Hollow {
    units: Vec<Unit>,
}

#[derive(Schema, Debug, PartialEq)]
struct Unit;

fn limited() -> Limited {
    Limited {
        short: vec![1],
        number: 11,
        float: 0.5,
    }
}

fn encode(message: &impl Message) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = vec![1, 2, 3];
    let result = message.encode(&mut bytes);
    assert_eq!(bytes[..3], [1, 2, 3], "what was there stays");
    assert!(
        result.is_ok() || bytes.len() == 3,
        "nothing is left of a failure"
    );
    result.map(|()| bytes.split_off(3))
}

#[test]
fn values_outside_their_declaration_are_not_encoded() {
    let too_long = Limited {
        short: vec![0; 4],
        ..limited()
    };
    assert_eq!(
        encode(&too_long),
        Err(EncodeError::TooLong { len: 4, max: 3 })
    );
    assert_eq!(
        encode(&Limited {
            number: 9,
            ..limited()
        }),
        Err(EncodeError::OutOfRange)
    );
    assert_eq!(
        encode(&Limited {
            float: f32::NAN,
            ..limited()
        }),
        Err(EncodeError::NotANumber)
    );
    assert_eq!(
        encode(&Hollow { units: vec![Unit] }),
        Err(EncodeError::EmptyElements)
    );
    assert!(encode(&Hollow { units: vec![] }).is_ok());
}

#[test]
fn floats_are_rounded_to_a_step_within_the_range() {
    for (given, got) in [
        (0.3, 0.25),
        (0.4, 0.5),
        (7.0, 1.0),
        (f32::NEG_INFINITY, -1.0),
    ] {
        let bytes = encode(&Limited {
            float: given,
            ..limited()
        })
        .expect("a number");
        assert_eq!(
            Limited::decode(&bytes).expect("just encoded").float,
            got,
            "{given}"
        );
    }
}

#[test]
fn numbers_outside_their_declaration_are_not_decoded() {
    // Two bits of length: 0. Two bits of number: 3, of 0 to 2.
    assert_eq!(Limited::decode(&[0b1100]), Err(DecodeError::OutOfRange));
    // Four bits of float: 15, of 0 to 8.
    assert_eq!(
        Limited::decode(&[0b1111_0000]),
        Err(DecodeError::OutOfRange)
    );
    assert_eq!(
        Limited::decode(&[0b0000_0000]).map(|limited| limited.float),
        Ok(-1.0)
    );
    assert_eq!(Limited::decode(&[]), Err(DecodeError::End));
    assert_eq!(Limited::decode(&[0, 0]), Err(DecodeError::Trailing));
}

#[test]
fn a_false_length_is_refused_before_memory_is_taken() {
    // A prefix of 7 (eight groups of four) and a length of nearly four thousand million.
    let length = 3_999_999_999u64 << 3 | 7;
    let bytes = length.to_le_bytes();
    assert_eq!(Long::decode(&bytes), Err(DecodeError::End));
    let above = 0xFFFF_FFFFu64 << 3 | 7;
    let error = DecodeError::TooLong {
        len: 0xFFFF_FFFF,
        max: 4_000_000_000,
    };
    assert_eq!(Long::decode(&above.to_le_bytes()), Err(error));
    // 65,535 elements of a bit each that are not there.
    assert_eq!(Wide::decode(&[0xFF; 5]), Err(DecodeError::End));
    // One element of a type without content.
    assert_eq!(Hollow::decode(&[1 << 2]), Err(DecodeError::EmptyElements));
}

#[test]
fn large_messages_grow_the_buffer_and_small_buffers_are_full() {
    let long = Long {
        blob: vec![9; 1_000_000],
    };
    let bytes = encode(&long).expect("below the limit of a message");
    assert_eq!(bytes.len(), 1_000_003);
    assert_eq!(Long::decode(&bytes), Ok(long));
    assert_eq!(limited().encode_to(&mut [0; 1]), Err(EncodeError::Full));
    let huge = Long {
        blob: vec![9; muse_schema::MESSAGE_BYTES_MAX],
    };
    assert_eq!(encode(&huge), Err(EncodeError::Full));
}
