use muse_schema::{Message, State};

#[derive(State, Clone)]
struct ThreeParts {
    #[field(rotation = 10)]
    facing: [f32; 3],
}

#[derive(State, Clone)]
struct TooFine {
    #[field(rotation = 20)]
    facing: [f32; 4],
}

#[derive(State, Clone)]
struct WithoutBits {
    #[field(rotation)]
    facing: [f32; 4],
}

#[derive(State, Clone)]
struct AngleWithoutSteps {
    #[field(angle)]
    yaw: f32,
}

#[derive(State, Clone)]
struct AngleOfInteger {
    #[field(angle = 8)]
    yaw: u8,
}

#[derive(State, Clone)]
struct AngleTooFine {
    #[field(angle = 30)]
    yaw: f32,
}

#[derive(State, Clone)]
struct BitsOfSigned {
    #[field(bits)]
    buttons: i8,
}

#[derive(State, Clone)]
struct TooManyBits {
    #[field(bits = 9)]
    buttons: u8,
}

#[derive(Message)]
#[message(id = 1)]
struct BitsOfFloat {
    #[field(bits)]
    value: f32,
}

fn main() {}
