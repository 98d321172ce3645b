use muse_schema::{Message, State};

#[derive(State, Clone)]
struct CurveWithoutVelocity {
    #[field(interpolate = hermite)]
    position: f32,
}

#[derive(State, Clone)]
struct UnknownVelocity {
    #[field(velocity = speed)]
    position: f32,
    velocity: f32,
}

#[derive(State, Clone)]
struct OtherVelocity {
    #[field(velocity = velocity)]
    position: [f32; 3],
    velocity: [f32; 2],
}

#[derive(State, Clone)]
struct UnknownOrder {
    #[field(predict = cubic)]
    position: f32,
}

#[derive(State, Clone)]
struct ExactPredicted {
    #[field(predict = linear)]
    position: f32,
}

#[derive(State, Clone)]
struct TextInterpolated {
    #[field(max = 4, interpolate = linear)]
    name: String,
}

#[derive(State, Clone)]
struct NotARotation {
    #[field(interpolate = rotation)]
    facing: [f32; 4],
}

#[derive(State, Clone)]
struct NegativeTolerance {
    #[field(tolerance = -1.0)]
    position: f32,
}

#[derive(State, Clone)]
struct ToleranceOfFlag {
    #[field(tolerance = 1.0)]
    alive: bool,
}

#[derive(Message)]
#[message(id = 1)]
struct PredictedMessage {
    #[field(predict = linear)]
    position: u8,
}

fn main() {}
