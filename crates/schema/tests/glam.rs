//! Vectors and quaternions of glam travel as arrays of floats do.
#![cfg(feature = "glam")]

use glam::{Quat, Vec2, Vec3};
use muse_schema::{Blend, Columns, Message, Schema, State};

#[derive(State, Schema, Clone, Debug, PartialEq)]
struct Body {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = velocity, interpolate = hermite, tolerance = 0.01)]
    position: Vec3,
    #[field(range = -50.0..=50.0, step = 0.01)]
    velocity: Vec3,
    #[field(rotation = 10)]
    rotation: Quat,
    aim: Vec2,
}

#[derive(State, Clone, Debug, PartialEq)]
struct Plain {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = velocity, interpolate = hermite, tolerance = 0.01)]
    position: [f32; 3],
    #[field(range = -50.0..=50.0, step = 0.01)]
    velocity: [f32; 3],
    #[field(rotation = 10)]
    rotation: [f32; 4],
    aim: [f32; 2],
}

#[derive(Message, Clone, Debug, PartialEq)]
#[message(id = 1)]
struct Spawn {
    body: Body,
}

fn body() -> Body {
    Body {
        position: Vec3::new(1.0, -2.5, 77.123),
        velocity: Vec3::new(0.0, 3.0, -4.0),
        rotation: Quat::from_xyzw(0.0, 0.6, 0.0, 0.8),
        aim: Vec2::new(0.1, 0.2),
    }
}

#[test]
fn rows_are_those_of_arrays() {
    let plain = Plain {
        position: body().position.to_array(),
        velocity: body().velocity.to_array(),
        rotation: body().rotation.to_array(),
        aim: body().aim.to_array(),
    };
    assert_eq!(body().to_row(), plain.to_row());
    let (columns, others) = (Columns::of::<Body>(), Columns::of::<Plain>());
    assert_eq!(columns, others);
    assert_eq!(columns[2].velocity, Some(5));
    let snapped = body().snapped();
    assert_eq!(snapped.to_row(), body().to_row());
    assert!(snapped.rotation.is_normalized());
    let blend = Blend {
        share: 0.3,
        seconds: 0.1,
    };
    let later = Body {
        position: Vec3::ZERO,
        rotation: Quat::IDENTITY,
        ..body()
    };
    let plain_later = Plain {
        position: [0.0; 3],
        rotation: [0.0, 0.0, 0.0, 1.0],
        ..plain.clone()
    };
    let (blended, expected) = (
        body().blend(&later, blend),
        plain.blend(&plain_later, blend),
    );
    assert_eq!(blended.position.to_array(), expected.position);
    assert_eq!(blended.rotation.to_array(), expected.rotation);
    assert!(body().differs(&later) && !body().differs(&body()));
}

#[test]
fn messages_hold_them_too() {
    let spawn = Spawn {
        body: body().snapped(),
    };
    let mut bytes = Vec::new();
    spawn.encode(&mut bytes).expect("within the ranges");
    let decoded = Spawn::decode(&bytes).expect("just encoded");
    assert_eq!(decoded.body.rotation, spawn.body.rotation);
    assert_eq!(decoded.body.aim, spawn.body.aim);
    assert!(decoded.body.position.distance(spawn.body.position) < 1e-4);
}
