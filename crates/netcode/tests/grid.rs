//! The grid: inputs, clock, prediction and interpolation on every kind of network, with their delays bounded.
//!
//! `cargo test -p muse-netcode --test grid -- --nocapture` prints every cell. `MUSE_SEEDS` runs more than 1,000 seeds.

#[path = "support/cells.rs"]
mod cells;
#[path = "support/character.rs"]
mod character;
#[path = "support/session.rs"]
mod session;

/// Seeds that all parts together run by default.
const SEEDS_DEFAULT: u64 = 1_000;

#[test]
fn the_grid_holds_at_40_ms() {
    hold(40);
}

#[test]
fn the_grid_holds_at_100_ms() {
    hold(100);
}

#[test]
fn the_grid_holds_at_160_ms() {
    hold(160);
}

#[test]
fn the_grid_holds_at_320_ms() {
    hold(320);
}

fn hold(round_trip_ms: u64) {
    let given = std::env::var("MUSE_SEEDS").ok();
    let seeds = given
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(SEEDS_DEFAULT);
    let measured = cells::run_all(round_trip_ms, seeds / 4);
    cells::print(&measured);
    let broken = cells::broken(&measured);
    assert!(
        broken.is_empty(),
        "bars not held:\n  {}",
        broken.join("\n  ")
    );
}
