//! Messages: whatever decodes encodes to the same bytes, and descriptions of any content can be compared.

use muse_schema::{Message, Schema, State, diff};

use crate::{Bound, Target, no_setup};

/// Messages, rows and descriptions.
pub const TARGET: Target = Target {
    name: "schema",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 65_536,
        per_byte: 256,
    },
    steps: Bound {
        base: 20_000,
        per_byte: 400,
    },
};

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

#[derive(State, Clone)]
struct Body {
    #[field(range = -500.0..=500.0, step = 0.01)]
    position: [f32; 3],
    #[field(rotation = 4)]
    rotation: [f32; 4],
    #[field(angle, step = 1.0, range = 0.0..=360.0)]
    heading: f64,
    exact: (f32, f64),
    #[field(range = -5_000_000_000..=5_000_000_000)]
    wide: i64,
    #[field(bits = 5)]
    buttons: u8,
    #[field(max = 6)]
    name: Option<String>,
    #[field(max = 2)]
    held: Vec<Held>,
}

#[derive(State, Clone)]
enum Held {
    Nothing,
    Keys(#[field(max = 5)] Vec<u8>),
    Count { left: i8, right: u32 },
}

/// The bytes are taken as a message of two types, as a row of a state, and as two descriptions.
fn run(data: &[u8]) {
    check::<Everything>(data);
    check::<Actions>(data);
    check_row(data);
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

/// A row that loads is stored as the same row.
fn check_row(data: &[u8]) {
    let mut row: Vec<i32> = data
        .chunks_exact(4)
        .map(|chunk| i32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]))
        .collect();
    row.resize(Body::width(), 0);
    if let Ok(body) = Body::from_row(&row) {
        assert_eq!(body.to_row(), row);
    }
}
