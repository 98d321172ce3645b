//! `Remotes` shows bodies where they really were at the time it claims to show: on every network and under a byte budget, above all when they
//! land and rest. `muse lab run --bars` judges more seeds, and by an oracle too.

use muse_lab::truth::{Motion, run};

/// Metres from the truth, in 99 of 100 frames.
fn p99_max(place: &str) -> f32 {
    match place {
        // For a third of a second nothing arrives: bodies go on, and come back from further away.
        "bursts" => 0.3,
        // Most bodies that move wait for their turn longer than others are shown late.
        "crowd" | "crowd_5_percent" => 0.06,
        _ => 0.05,
    }
}

#[test]
fn bodies_are_shown_where_they_were() {
    let cells = run(2, 30, 2);
    assert_eq!(cells.len() % Motion::ALL.len(), 0);
    for mut cell in cells {
        println!("{}", cell.line());
        let (place, motion) = (cell.place, cell.motion.name());
        let errors = &mut cell.errors;
        assert!(
            errors.all.len() > 5_000,
            "{place}, {motion}: nobody is shown"
        );
        let p99 = errors.all.at(0.99);
        assert!(p99 <= p99_max(place), "{place}, {motion}: {p99} m");
        let at_rest = errors.worst_at_rest;
        assert!(at_rest <= 0.01, "{place}, {motion}: {at_rest} m at rest");
        assert_eq!(errors.below_floor, 0, "{place}, {motion}: below the floor");
    }
}
