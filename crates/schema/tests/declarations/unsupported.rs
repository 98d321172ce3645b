use muse_schema::{Message, Schema};
use std::collections::HashMap;

struct Plain;

#[derive(Message)]
#[message(id = 1)]
struct Unsupported {
    size: usize,
    scores: HashMap<u8, u32>,
    plain: Vec<Plain>,
}

#[derive(Schema)]
enum Never {}

#[derive(Schema)]
union Either {
    a: u8,
    b: i8,
}

#[derive(Schema)]
struct Borrowed<'a> {
    name: &'a str,
}

#[derive(Message)]
#[message(id = 2)]
struct Generic<T>(T);

fn main() {}
