use muse_schema::State;

#[derive(State, Clone)]
struct NoRoom {
    name: String,
}

#[derive(State, Clone)]
struct ListOfLists {
    #[field(max = 4)]
    names: Vec<String>,
}

#[derive(State, Clone)]
struct TooLong {
    #[field(max = 100_000)]
    blob: Vec<u8>,
}

#[derive(State, Clone)]
struct TooWide {
    #[field(max = 1_000)]
    points: Vec<[f32; 5]>,
}

#[derive(State, Clone)]
struct Fixed {
    #[field(fixed)]
    number: u16,
}

#[derive(State, Clone)]
struct NoStep {
    #[field(range = 0..=10)]
    number: f32,
}

#[derive(State, Clone)]
struct Foreign {
    at: std::time::Duration,
}

#[derive(State, Clone)]
struct Misspelt {
    #[field(precision = 5)]
    value: f32,
}

fn main() {}
