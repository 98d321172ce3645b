//! Between two states each field moves as it declares, and a difference counts only beyond its tolerance.

use muse_schema::{Blend, State};

#[derive(State, Clone, Debug, PartialEq)]
struct Body {
    #[field(range = -100.0..=100.0, step = 0.01, velocity = velocity, interpolate = hermite, tolerance = 0.5)]
    position: [f64; 2],
    #[field(range = -50.0..=50.0, step = 0.01)]
    velocity: [f64; 2],
    #[field(range = -100.0..=100.0, step = 0.01)]
    straight: f64,
    #[field(range = -100.0..=100.0, step = 0.01, interpolate = none)]
    stepwise: f64,
    #[field(angle, step = 1.0, range = 0.0..=360.0, tolerance = 2.0)]
    heading: f64,
    #[field(interpolate = angle)]
    exact_angle: f64,
    #[field(rotation = 12, tolerance = 0.01)]
    rotation: [f64; 4],
    #[field(interpolate = linear, tolerance = 3)]
    count: u8,
    kind: u16,
    stance: Stance,
    #[field(max = 8)]
    name: String,
    #[field(max = 3)]
    trail: Vec<f32>,
    target: Option<f32>,
}

#[derive(State, Clone, Debug, PartialEq)]
enum Stance {
    Stand,
    Lean { by: f32 },
}

fn from() -> Body {
    Body {
        position: [0.0, 0.0],
        velocity: [10.0, 0.0],
        straight: 0.0,
        stepwise: 0.0,
        heading: 350.0,
        exact_angle: 3.0,
        rotation: [0.0, 0.0, 0.0, 1.0],
        count: 10,
        kind: 1,
        stance: Stance::Lean { by: 0.0 },
        name: "from".into(),
        trail: vec![0.0],
        target: Some(0.0),
    }
}

fn to() -> Body {
    let half = core::f64::consts::FRAC_1_SQRT_2;
    Body {
        position: [1.0, 4.0],
        velocity: [10.0, 0.0],
        straight: 2.0,
        stepwise: 2.0,
        heading: 20.0,
        exact_angle: -3.0,
        rotation: [0.0, half, 0.0, half],
        count: 20,
        kind: 2,
        stance: Stance::Lean { by: 1.0 },
        name: "to".into(),
        trail: vec![1.0],
        target: Some(2.0),
    }
}

fn at(share: f32) -> Body {
    from().blend(
        &to(),
        Blend {
            share,
            seconds: 0.1,
        },
    )
}

#[test]
fn each_field_moves_as_it_declares() {
    let middle = at(0.5);
    // The velocities fit the way in x, and bring y to rest at both ends.
    assert!((middle.position[0] - 0.5).abs() < 1e-6);
    assert!((middle.position[1] - 2.0).abs() < 1e-6);
    assert!((at(0.25).position[1] - 0.625).abs() < 1e-6);
    assert_eq!((middle.straight, middle.stepwise), (1.0, 0.0));
    assert_eq!(middle.heading, 5.0);
    assert!((middle.exact_angle.abs() - core::f64::consts::PI).abs() < 1e-9);
    // An eighth turn: the sine and cosine of its half.
    assert!((middle.rotation[1] - 0.382_683).abs() < 1e-5);
    assert!((middle.rotation[3] - 0.923_880).abs() < 1e-5);
    assert_eq!((middle.count, middle.kind), (15, 1));
    assert_eq!(middle.stance, Stance::Lean { by: 0.5 });
    assert_eq!(middle.name, "from");
    assert_eq!((middle.trail, middle.target), (vec![0.5], Some(1.0)));
}

#[test]
fn the_ends_are_the_states_themselves() {
    assert_eq!(at(0.0).to_row(), from().to_row());
    assert_eq!(at(1.0).to_row(), to().to_row());
}

#[test]
fn beyond_the_end_the_movement_goes_on() {
    let beyond = at(1.5);
    assert!((beyond.position[0] - 1.5).abs() < 1e-6);
    assert!((beyond.position[1] - 4.0).abs() < 1e-6);
    assert_eq!((beyond.straight, beyond.stepwise), (3.0, 2.0));
    assert_eq!(beyond.heading, 35.0);
    assert!((beyond.rotation[1] - 0.923_880).abs() < 1e-5);
    assert_eq!((beyond.count, beyond.kind), (25, 2));
    assert_eq!(at(100.0).count, 255);
}

#[test]
fn what_has_no_middle_changes_at_the_end() {
    let mut end = to();
    end.stance = Stance::Stand;
    end.trail = vec![];
    end.target = None;
    let blend = |share| {
        from().blend(
            &end,
            Blend {
                share,
                seconds: 0.1,
            },
        )
    };
    let (before, after) = (blend(0.99), blend(1.0));
    assert_eq!(
        (before.stance, before.trail, before.target),
        (from().stance, from().trail, from().target)
    );
    assert_eq!(
        (after.stance, after.trail, after.target),
        (Stance::Stand, vec![], None)
    );
}

#[test]
fn without_a_time_a_curve_is_a_line() {
    let blend = Blend {
        share: 0.25,
        seconds: 0.0,
    };
    assert_eq!(from().blend(&to(), blend).position, [0.25, 1.0]);
}

#[test]
fn tolerances_are_per_field() {
    let changed = |change: fn(&mut Body)| {
        let mut body = from();
        change(&mut body);
        from().differs(&body)
    };
    assert!(!changed(|_| {}));
    // By distance: 0.4 in both directions is more than 0.5.
    assert!(!changed(|body| body.position = [0.4, 0.2]));
    assert!(changed(|body| body.position = [0.4, 0.4]));
    assert!(changed(|body| body.position[0] = f64::NAN));
    // Without a tolerance, what the grid tells apart.
    assert!(!changed(|body| body.straight = 0.004));
    assert!(changed(|body| body.straight = 0.006));
    assert!(!changed(|body| body.heading = 348.5 + 720.0));
    assert!(changed(|body| body.heading = 347.0));
    assert!(!changed(|body| body.rotation = [0.0, 0.0, 0.004, -1.0]));
    assert!(changed(|body| body.rotation = [0.0, 0.0, 0.006, -1.0]));
    assert!(!changed(|body| body.count = 7));
    assert!(changed(|body| body.count = 6));
    assert!(changed(|body| body.stance = Stance::Stand));
    assert!(changed(|body| body.stance = Stance::Lean { by: 1e-9 }));
    assert!(changed(|body| body.target = None));
    assert!(changed(|body| body.trail.push(0.0)));
    assert!(!changed(|body| body.name = "from".into()));
    assert!(changed(|body| body.name = "other".into()));
}
