//! Interpolation: any order of arrival gives the same path, Hermite follows curves, gaps are closed without a jump.

use muse_netcode::interpolation::{Interpolated, InterpolationConfig, Source};
use muse_netcode::smoothing::SmoothingConfig;
use muse_netcode::{Tick, TickTime};
use muse_schema::State;
use muse_wire::Duration;

const TICK: Duration = Duration::from_millis(20);

#[derive(State, Clone, Debug, PartialEq)]
struct Curved {
    #[field(range = -100.0..=100.0, step = 0.0001, interpolate = hermite, velocity = velocity)]
    position: [f32; 2],
    #[field(range = -100.0..=100.0, step = 0.0001)]
    velocity: [f32; 2],
}

#[derive(State, Clone, Debug, PartialEq)]
struct Straight {
    #[field(range = -100.0..=100.0, step = 0.0001)]
    position: [f32; 2],
}

/// A circle of radius 5, once in 4 s.
fn circle(ticks: f64) -> ([f32; 2], [f32; 2]) {
    let rate = std::f64::consts::TAU / 4.0;
    let (sin, cos) = (rate * ticks * TICK.as_secs_f64()).sin_cos();
    let speed = 5.0 * rate;
    (
        [5.0 * cos, 5.0 * sin].map(|x| x as f32),
        [-speed * sin, speed * cos].map(|x| x as f32),
    )
}

fn apart(a: [f32; 2], b: [f32; 2]) -> f32 {
    ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt()
}

fn curved(ticks: u32) -> Curved {
    let (position, velocity) = circle(f64::from(ticks));
    Curved { position, velocity }
}

fn straight(ticks: u32) -> Straight {
    Straight {
        position: circle(f64::from(ticks)).0,
    }
}

#[test]
fn hermite_follows_curves_that_straight_lines_cut() {
    let config = InterpolationConfig::new(TICK);
    let mut hermite = Interpolated::new(config, |a: &Curved, b: &Curved| {
        apart(a.position, b.position)
    });
    let mut linear = Interpolated::new(config, |a: &Straight, b: &Straight| {
        apart(a.position, b.position)
    });
    let (mut hermite_error, mut linear_error) = (0.0_f32, 0.0_f32);
    for tick in 0..200 {
        if tick % 5 == 0 {
            hermite.handle_state(Tick(tick), curved(tick));
            linear.handle_state(Tick(tick), straight(tick));
        }
        let ticks = f64::from(tick) - 10.0;
        if ticks >= 0.0 {
            let (truth, _) = circle(ticks);
            let shown = hermite.show(TickTime::from_ticks(ticks)).expect("states");
            assert_eq!(shown.source, Source::Between);
            hermite_error = hermite_error.max(apart(shown.state.position, truth));
            let shown = linear.show(TickTime::from_ticks(ticks)).expect("states");
            linear_error = linear_error.max(apart(shown.state.position, truth));
        }
    }
    assert!(linear_error > 0.01, "{linear_error}");
    assert!(
        hermite_error < linear_error / 50.0,
        "{hermite_error} against {linear_error}"
    );
}

#[test]
fn the_order_of_arrival_does_not_matter() {
    let config = InterpolationConfig::new(TICK);
    let distance = |a: &Straight, b: &Straight| apart(a.position, b.position);
    let mut random = fastrand::Rng::with_seed(4);
    let mut in_order = Interpolated::new(config, distance);
    let mut shuffled = Interpolated::new(config, distance);
    let mut ticks: Vec<u32> = (0..20).collect();
    ticks
        .iter()
        .for_each(|&tick| assert!(in_order.handle_state(Tick(tick), straight(tick))));
    random.shuffle(&mut ticks);
    ticks
        .iter()
        .for_each(|&tick| assert!(shuffled.handle_state(Tick(tick), straight(tick))));
    assert!(!shuffled.handle_state(Tick(5), straight(5)), "it is known");
    for quarter in 0..76 {
        let time = TickTime::from_ticks(f64::from(quarter) / 4.0);
        assert_eq!(in_order.show(time), shuffled.show(time));
    }
    assert!(!shuffled.handle_state(Tick(3), straight(3)), "it is over");
}

#[test]
fn a_gap_is_bridged_stopped_and_closed_without_a_jump() {
    let smoothing = SmoothingConfig::default().snap_above(20.0);
    let config = InterpolationConfig::new(TICK)
        .beyond_max(Duration::from_millis(100))
        .smoothing(smoothing);
    let mut body = Interpolated::new(config, |a: &Straight, b: &Straight| {
        apart(a.position, b.position)
    });
    let mut last: Option<[f32; 2]> = None;
    let mut sources = Vec::new();
    for step in 0..800 {
        let ticks = f64::from(step) / 4.0;
        // Nothing comes between ticks 50 and 70.
        if step % 4 == 0 && !(50..70).contains(&(step / 4)) {
            body.handle_state(Tick(step / 4), straight(step / 4));
        }
        let shown = body
            .show(TickTime::from_ticks(ticks - 2.0))
            .expect("states");
        if let Some(last) = last {
            // 7.9 units a second are 0.04 in a quarter of a tick.
            assert!(
                apart(last, shown.state.position) < 0.09,
                "a jump at {ticks}"
            );
        }
        last = Some(shown.state.position);
        if sources.last() != Some(&shown.source) {
            sources.push(shown.source);
        }
    }
    let expected = [
        Source::Between,
        Source::Beyond,
        Source::Stopped,
        Source::Between,
    ];
    assert_eq!(sources, expected);
    let (truth, _) = circle(197.75);
    assert!(apart(last.expect("shown"), truth) < 0.02);
    assert_eq!(body.snaps(), 0);
}

/// A runner at 10 units a second turns back at a wall at 5 while nothing arrives: on the screen it waits at the wall.
#[test]
fn what_is_overdue_stops_at_a_wall_and_goes_on_without_a_jump() {
    let config = InterpolationConfig::new(TICK);
    let mut body = Interpolated::new(config, |a: &Straight, b: &Straight| {
        apart(a.position, b.position)
    });
    let at = |tick: u32| {
        let x = tick as f32 * 0.2;
        Straight {
            position: [if x > 5.0 { 10.0 - x } else { x }, 0.0],
        }
    };
    let (mut last, mut furthest, mut beyond) = (None, 0.0_f32, 0);
    for step in 0..200 {
        if step % 4 == 0 && !(24..34).contains(&(step / 4)) {
            body.handle_state(Tick(step / 4), at(step / 4));
        }
        let time = TickTime::from_ticks(f64::from(step) / 4.0 - 2.0);
        let stop = |_: &Straight, ahead: Straight| Straight {
            position: ahead.position.map(|x| x.min(5.0)),
        };
        let shown = body.show_within(time, stop).expect("states");
        beyond += u32::from(shown.source == Source::Beyond);
        let x = shown.state.position[0];
        furthest = furthest.max(x);
        if let Some(last) = last {
            let step: f32 = x - last;
            assert!(step.abs() < 0.15, "a jump from {last} to {x}");
        }
        last = Some(x);
    }
    assert!(beyond > 20, "{beyond}");
    assert!(furthest <= 5.0 && furthest > 4.9, "{furthest}");
}

/// A runner at 10 units a second went round a post, from 3 to 3.1, of which only the states on either side tell: on the screen it waits at the post.
#[test]
fn what_is_held_between_two_states_goes_on_without_a_jump() {
    let config = InterpolationConfig::new(TICK);
    let mut body = Interpolated::new(config, |a: &Straight, b: &Straight| {
        apart(a.position, b.position)
    });
    let mut arrived = (0..11).chain(22..70).peekable();
    let stop = |from: &Straight, ahead: Straight| {
        let [from, [x, y]] = [from.position, ahead.position];
        let x = if from[0] <= 3.0 {
            x.min(3.0)
        } else {
            x.max(3.1)
        };
        Straight { position: [x, y] }
    };
    let (mut last, mut held) = (None, 0);
    for step in 0..200 {
        while let Some(tick) = arrived.next_if(|tick| *tick <= step / 4 + 12) {
            let position = [tick as f32 * 0.2, 0.0];
            body.handle_state(Tick(tick), Straight { position });
        }
        let time = TickTime::from_ticks(f64::from(step) / 4.0);
        let x = body.show_within(time, stop).expect("states").state.position[0];
        held += u32::from(x == 3.0);
        if let Some(last) = last {
            let step: f32 = x - last;
            assert!((0.0..0.25).contains(&step), "a jump from {last} to {x}");
        }
        last = Some(x);
    }
    assert!(held > 20, "{held}");
    assert!(last.expect("shown") > 9.9);
}
