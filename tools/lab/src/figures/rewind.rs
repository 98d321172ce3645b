//! One shot, from above.

use glam::Vec2;
use muse_wire::Duration;

use super::shots;
use crate::plot::*;

pub(super) fn plot() -> Plot {
    let shots = shots::run(120, Duration::from_secs(30), 4);
    // The one that shows most: seen as a hit, while the target ran across.
    let across = |shot: &&shots::Judged| {
        let line = (shot.towards - shot.from).normalize_or_zero();
        (shot.present - shot.rewound).perp_dot(line).abs()
    };
    let shot = shots.iter().filter(|shot| shot.seen);
    let shot = shot.max_by(|a, b| across(a).total_cmp(&across(b)));
    let shot = shot.expect("some shots hit");
    let centre = (shot.drawn + shot.present) / 2.0;
    let [x, z] = [(centre.x, HALF.x), (centre.y, HALF.y)]
        .map(|(middle, half)| (f64::from(middle - half), f64::from(middle + half)));
    let panel = Panel::new(("x (m)", x.0, x.1), ("z (m)", z.0, z.1)).tall(323);
    let line = (shot.towards - shot.from).normalize_or_zero();
    let ray = clipped(shot.from, shot.towards + line * 20.0, centre);
    let trail = shot.trail.iter().copied().map(point);
    let age = shot.age.as_millis();
    Plot::new(
        "Rewind: one shot, seen from above",
        &format!(
            "Round trip 120 ms. The shooter sees the runner where it was and hits it there. The server gets the shot when the runner is elsewhere: it looks the past up, {age} ms ago, at \
             the instant that the shot names, and finds the runner where it was drawn. The world is not moved.",
        ),
    )
    .panel(
        panel
            .with("its last ticks", Grey, Specks, trail)
            .with("the shot", Red, Dashed, ray)
            .with("runner now, on the server", Blue, Line, circle(shot.present))
            .with("where the server looks", Green, Thick, circle(shot.rewound))
            .with("as the shooter saw it", Orange, Dashed, circle(shot.drawn)),
    )
}

fn point(place: Vec2) -> (f64, f64) {
    (f64::from(place.x), f64::from(place.y))
}

/// The part of a line that lies on the map around `centre`.
fn clipped(from: Vec2, to: Vec2, centre: Vec2) -> impl Iterator<Item = (f64, f64)> {
    let places = (0..=2_000).map(move |part| from + (to - from) * (part as f32 / 2_000.0));
    let inside = move |place: &Vec2| {
        let offset = (*place - centre).abs();
        offset.x <= HALF.x && offset.y <= HALF.y
    };
    places.filter(inside).map(point)
}

/// The outline of a body.
fn circle(centre: Vec2) -> impl Iterator<Item = (f64, f64)> {
    (0..=48).map(move |part| {
        let angle = part as f32 / 48.0 * core::f32::consts::TAU;
        point(centre + Vec2::from_angle(angle) * 0.4)
    })
}

/// Half of what the map shows.
const HALF: Vec2 = Vec2::new(3.3, 1.5);
