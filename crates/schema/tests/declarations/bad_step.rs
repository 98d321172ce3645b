use muse_schema::Schema;

#[derive(Schema)]
struct Zero {
    #[field(range = 0.0..=1.0, step = 0.0)]
    value: f32,
}

#[derive(Schema)]
struct Missing {
    #[field(range = -1.0..=1.0)]
    value: f32,
}

#[derive(Schema)]
struct WithoutRange {
    #[field(step = 0.1)]
    value: f32,
}

#[derive(Schema)]
struct TooFine {
    #[field(range = -1000.0..=1000.0, step = 0.0001)]
    value: f32,
}

#[derive(Schema)]
struct OfIntegers {
    #[field(range = 0..=10, step = 1)]
    value: u8,
}

fn main() {}
