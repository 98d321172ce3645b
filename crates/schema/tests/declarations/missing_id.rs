use muse_schema::Message;

#[derive(Message)]
struct Jump {
    height: f32,
}

fn main() {}
