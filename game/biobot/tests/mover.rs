//! The mover keeps its promises, whatever it is asked for: never inside of anything, never through a wall, up slopes and steps, along
//! with what carries it.

use glam::{Vec2, Vec3};
use muse_biobot::Level;
use muse_biobot::collision::{Body, Collision, HULL, SKIN, grid};
use muse_biobot::level::{Material, Side, Solid};
use muse_biobot::mover::{Around, RUN_SPEED, Walker, Wish, step};

fn solid(min: [f32; 3], max: [f32; 3], rise: Option<Side>) -> Solid {
    Solid {
        note: String::new(),
        min,
        max,
        rise,
        material: Material::Concrete,
    }
}

fn floor() -> Solid {
    solid([-40.0, -1.0, -40.0], [40.0, 0.0, 40.0], None)
}

/// Feet on the grid, as states are after each step.
fn snap(walker: &mut Walker) {
    walker.feet = grid(walker.feet);
    let round = |value: f32| libm::roundf(value * 20.0) / 20.0;
    walker.velocity = Vec3::new(
        round(walker.velocity.x),
        round(walker.velocity.y),
        round(walker.velocity.z),
    );
}

fn standing_at(feet: Vec3) -> Walker {
    Walker {
        feet,
        velocity: Vec3::ZERO,
        standing: 0,
    }
}

fn run(walker: &mut Walker, way: Vec2, ticks: u32, collision: &Collision) {
    let around = Around {
        collision,
        bodies: &[],
        moved: &[],
    };
    for _ in 0..ticks {
        step(walker, Wish { way, jump: false }, &around);
        snap(walker);
    }
}

fn seeds() -> u64 {
    let asked = std::env::var("MUSE_SEEDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(24)
}

#[test]
fn a_hull_is_never_inside_of_anything() {
    for level in [Level::escape(), Level::arena()] {
        for seed in 0..seeds() {
            let mut rng = fastrand::Rng::with_seed(seed);
            let spawn = level.spawns[rng.u32(..) as usize % level.spawns.len()];
            let mut walker = standing_at(spawn.at.into());
            let around = Around {
                collision: level.collision(),
                bodies: &[],
                moved: &[],
            };
            let mut way = Vec2::ZERO;
            for tick in 0..1_500 {
                if tick % 20 == 0 {
                    way = Vec2::new(rng.f32() * 2.0 - 1.0, rng.f32() * 2.0 - 1.0);
                }
                let jump = rng.u32(..20) == 0;
                let before = walker.feet;
                step(&mut walker, Wish { way, jump }, &around);
                snap(&mut walker);
                let middle = walker.feet + Vec3::Y * HULL.y;
                assert!(
                    !level.collision().overlaps(middle, HULL),
                    "{}: seed {seed}, tick {tick}: inside at {middle}, from {before}, {walker:?}, {way}",
                    level.name
                );
                let far = (walker.feet - before).length();
                assert!(far < 1.0, "seed {seed}, tick {tick}: a jump of {far} m");
                let thin = HULL - Vec3::splat(0.1);
                let way = walker.feet - before;
                let through = level
                    .collision()
                    .ray(before + Vec3::Y * HULL.y, middle, &[]);
                assert!(
                    through.is_none(),
                    "seed {seed}: through a wall by {way} {thin}"
                );
                if walker.feet.y < level.kill_below {
                    walker = standing_at(spawn.at.into());
                }
            }
        }
    }
}

#[test]
fn walls_stop_and_are_slid_along() {
    let wall = solid([2.0, 0.0, -40.0], [3.0, 4.0, 40.0], None);
    let collision = Collision::new(&[floor(), wall]);
    let mut walker = standing_at(Vec3::new(0.0, SKIN, 0.0));
    run(&mut walker, Vec2::new(1.0, -1.0), 100, &collision);
    let to_wall = 2.0 - HULL.x - walker.feet.x;
    assert!((0.0..0.03).contains(&to_wall), "{to_wall} m to the wall");
    // Along the wall it keeps its part of the speed.
    assert!(walker.feet.z < -7.0, "only {} m along", walker.feet.z);
}

#[test]
fn the_speed_of_running_is_kept() {
    let collision = Collision::new(&[floor()]);
    let mut walker = standing_at(Vec3::new(-30.0, SKIN, 0.0));
    run(&mut walker, Vec2::X, 50, &collision);
    let start = walker.feet.x;
    run(&mut walker, Vec2::new(5.0, 0.0), 200, &collision);
    let speed = (walker.feet.x - start) / 4.0;
    assert!((speed - RUN_SPEED).abs() < 0.05, "{speed} m/s");
}

#[test]
fn a_jump_is_as_high_as_it_should_be_and_happens_once() {
    let collision = Collision::new(&[floor()]);
    let around = Around {
        collision: &collision,
        bodies: &[],
        moved: &[],
    };
    let mut walker = standing_at(Vec3::new(0.0, SKIN, 0.0));
    run(&mut walker, Vec2::ZERO, 5, &collision);
    let ground = walker.feet.y;
    let wish = Wish {
        way: Vec2::ZERO,
        jump: true,
    };
    let mut highest = 0.0_f32;
    let mut jumps = 0;
    for tick in 0..60 {
        // Asked for in the air, too.
        let wish = Wish {
            jump: tick < 30,
            ..wish
        };
        jumps += u32::from(step(&mut walker, wish, &around).jumped);
        snap(&mut walker);
        highest = highest.max(walker.feet.y - ground);
    }
    assert_eq!(jumps, 1);
    assert!((1.25..1.36).contains(&highest), "{highest} m");
    assert_eq!(walker.standing, 1);
}

#[test]
fn slopes_up_to_46_degrees_are_walked_and_steeper_ones_are_not() {
    for (height, climbs) in [
        (2.0, true),
        (3.9, true),
        (4.1, true),
        (4.6, false),
        (8.0, false),
    ] {
        let ramp = solid([2.0, 0.0, -3.0], [6.0, height, 3.0], Some(Side::PlusX));
        let top = solid([6.0, 0.0, -3.0], [30.0, height, 3.0], None);
        let collision = Collision::new(&[floor(), ramp, top]);
        let mut walker = standing_at(Vec3::new(0.0, SKIN, 0.0));
        run(&mut walker, Vec2::X, 120, &collision);
        let up = walker.feet.y > height - 0.1;
        assert_eq!(up, climbs, "{height} m in 4: at {}", walker.feet);
        if climbs {
            // And down again without leaving the ground.
            let around = Around {
                collision: &collision,
                bodies: &[],
                moved: &[],
            };
            let way = Vec2::NEG_X;
            for tick in 0..140 {
                step(&mut walker, Wish { way, jump: false }, &around);
                snap(&mut walker);
                assert_ne!(walker.standing, 0, "{height}: in the air at tick {tick}");
            }
            assert!(walker.feet.y < 0.05, "{height}: at {}", walker.feet);
        }
    }
}

#[test]
fn low_steps_are_climbed_and_high_ones_are_not() {
    for (height, climbs) in [(0.2, true), (0.33, true), (0.4, false), (1.0, false)] {
        let block = solid([2.0, 0.0, -3.0], [10.0, height, 3.0], None);
        let collision = Collision::new(&[floor(), block]);
        let mut walker = standing_at(Vec3::new(0.0, SKIN, 0.0));
        run(&mut walker, Vec2::X, 60, &collision);
        assert_eq!(
            walker.feet.y > height - 0.05,
            climbs,
            "{height}: {}",
            walker.feet
        );
    }
}

#[test]
fn who_stands_on_something_is_carried_exactly() {
    let collision = Collision::new(&[floor()]);
    let size = Vec3::new(2.0, 0.2, 2.0);
    let place = |tick: u32| {
        let turn = tick as f32 * 0.02;
        grid(Vec3::new(
            libm::sinf(turn) * 6.0,
            3.0 + libm::cosf(turn) * 2.0,
            turn,
        ))
    };
    let body = |tick: u32| Body {
        device: 5,
        min: place(tick) - size,
        max: place(tick) + size,
        carries: true,
        only: None,
    };
    let mut walker = standing_at(place(0) + Vec3::Y * (size.y + 0.05));
    let mut apart: Option<Vec3> = None;
    for tick in 1..600 {
        let around = Around {
            collision: &collision,
            bodies: &[body(tick)],
            moved: &[place(tick) - place(tick - 1)],
        };
        step(&mut walker, Wish::default(), &around);
        snap(&mut walker);
        if tick > 20 {
            assert_eq!(walker.standing, 7, "tick {tick}: not on it");
            let now = walker.feet - place(tick);
            let moved = apart.map_or(0.0, |before| (now - before).length());
            assert!(moved < 1e-4, "tick {tick}: slid by {moved}");
            apart = Some(now);
        }
    }
}

#[test]
fn what_moves_pushes_and_doors_block() {
    let collision = Collision::new(&[floor()]);
    let wall = |at: f32, carries: bool| Body {
        device: 1,
        min: Vec3::new(at, 0.0, -2.0),
        max: Vec3::new(at + 1.0, 3.0, 2.0),
        carries,
        only: None,
    };
    // A platform that comes nearer by 2 m/s.
    let mut walker = standing_at(Vec3::new(2.0, SKIN, 0.0));
    for tick in 1..100_u32 {
        let at = tick as f32 * 0.04;
        let around = Around {
            collision: &collision,
            bodies: &[wall(at, true)],
            moved: &[Vec3::X * 0.04],
        };
        step(&mut walker, Wish::default(), &around);
        snap(&mut walker);
        let inside = around.bodies[0].overlaps(walker.feet + Vec3::Y * HULL.y, HULL);
        assert!(!inside, "tick {tick}");
    }
    assert!(walker.feet.x > 5.0, "pushed to {}", walker.feet.x);
    // A door stands in the way.
    let mut walker = standing_at(Vec3::new(-3.0, SKIN, 0.0));
    let around = Around {
        collision: &collision,
        bodies: &[wall(0.0, false)],
        moved: &[Vec3::ZERO],
    };
    let way = Vec2::X;
    for _ in 0..100 {
        step(&mut walker, Wish { way, jump: false }, &around);
        snap(&mut walker);
    }
    assert!(
        walker.feet.x < -HULL.x,
        "through the door to {}",
        walker.feet.x
    );
}
