use muse_schema::Schema;

#[derive(Schema)]
struct MaxOfNumber {
    #[field(max = 5)]
    value: u8,
}

#[derive(Schema)]
struct NoLength {
    #[field(max = 0)]
    value: String,
}

#[derive(Schema)]
struct FixedFloat {
    #[field(fixed)]
    value: f32,
}

#[derive(Schema)]
struct RangeOfText {
    #[field(range = 0..=5)]
    value: Option<String>,
}

#[derive(Schema)]
struct Misspelt {
    #[field(maximum = 5)]
    value: String,
}

fn main() {}
