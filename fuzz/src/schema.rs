//! Messages: whatever decodes encodes to the same bytes, and descriptions of any content can be compared.

use muse_schema::{Message, Schema, diff};

#[derive(Message, Debug)]
#[message(id = 1)]
struct Everything {
    flags: (bool, bool),
    small: (u8, i8),
    numbers: (u16, i16, u32, i32, u64, i64),
    #[field(fixed)]
    fixed: [i32; 2],
    floats: (f32, f64),
    #[field(range = -10..=90)]
    ranged: Option<i32>,
    #[field(range = -10.0..=10.0, step = 0.01)]
    stepped: Vec<f32>,
    #[field(range = 0.0..=1.0, step = 0.3)]
    uneven: f64,
    name: String,
    #[field(max = 5)]
    short: Option<Vec<String>>,
    blob: Vec<u8>,
    actions: Vec<Action>,
    wide: Vec<Option<[u64; 16]>>,
}

#[derive(Schema, Debug)]
enum Action {
    Stand,
    Move { dx: i8, dy: i8 },
    Say(String),
    Throw(#[field(range = 0..=4)] u8, Option<u32>),
    Many(Vec<Vec<bool>>),
}

#[derive(Message, Debug)]
#[message(id = 2)]
struct Actions {
    actions: Vec<Action>,
}

/// The bytes are taken as a message of two types, and as two descriptions.
pub fn run(data: &[u8]) {
    check::<Everything>(data);
    check::<Actions>(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let (here, there) = text.split_once('\0').unwrap_or((text, ""));
        assert_eq!(diff(here, there).len(), diff(there, here).len());
        assert!(diff(here, here).is_empty());
    }
}

fn check<M: Message>(data: &[u8]) {
    let Ok(message) = M::decode(data) else { return };
    let mut again = Vec::new();
    message
        .encode(&mut again)
        .expect("what was decoded is within its limits");
    assert_eq!(again, data);
}
