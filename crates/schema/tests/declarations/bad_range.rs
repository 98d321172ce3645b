use muse_schema::{Message, Schema};

#[derive(Schema)]
struct Empty {
    #[field(range = 10..=5)]
    value: u8,
}

#[derive(Schema)]
struct HalfOpen {
    #[field(range = 0..5)]
    value: u8,
}

#[derive(Message)]
#[message(id = 1)]
struct BeyondItsType {
    #[field(range = 0..=256)]
    value: Vec<u8>,
}

const LOW: i32 = 5;

#[derive(Schema)]
struct EmptyByConstants {
    #[field(range = LOW..=LOW - 1)]
    value: i32,
}

fn main() {}
