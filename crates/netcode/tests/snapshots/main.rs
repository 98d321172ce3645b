//! Server and clients over networks that lose, duplicate, delay and reorder: what the client has is what the server had.
//! `MUSE_SEEDS` runs more seeds, `MUSE_SEED` a single one.

mod budget;
mod exactness;
mod game;
mod hostile;
mod lossy;
mod modes;
mod simulation;

/// Seeds to try.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    match number("MUSE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MUSE_SEEDS").unwrap_or(default),
    }
}
