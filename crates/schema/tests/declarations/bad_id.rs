use muse_schema::Message;

#[derive(Message)]
#[message(id = 70_000)]
struct TooLarge;

#[derive(Message)]
#[message(id = 1, id = 2)]
struct Twice;

#[derive(Message)]
#[message(number = 1)]
struct Misspelt;

fn main() {}
