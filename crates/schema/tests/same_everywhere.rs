//! Rows, values and blends come out the same to the bit on every platform: the checksum below was taken on x86-64 and in WASM.

use muse_schema::{Blend, State, fnv1a};

#[derive(State, Clone)]
struct Body {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = velocity, interpolate = hermite)]
    position: [f32; 3],
    #[field(range = -50.0..=50.0, step = 0.01)]
    velocity: [f32; 3],
    #[field(rotation = 10)]
    rotation: [f32; 4],
    #[field(rotation = 15, interpolate = linear)]
    fine: [f64; 4],
    #[field(angle = 12)]
    yaw: f32,
    #[field(angle, step = 0.1, range = 0.0..=360.0)]
    heading: f64,
    #[field(interpolate = linear)]
    count: u16,
}

/// Of rows, snapped values and blends of pseudo-random states.
fn checksum() -> u64 {
    let mut random = 11u64;
    let mut draw = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let mut before: Option<Body> = None;
    let mut sum = 0;
    for _ in 0..10_000 {
        let body = Body {
            position: [draw() * 500.0, draw() * 500.0, draw() * 500.0],
            velocity: [draw() * 60.0, draw() * 60.0, draw()],
            rotation: [draw(), draw(), draw(), draw()],
            fine: [draw(), draw(), draw(), draw()].map(f64::from),
            yaw: draw() * 10.0,
            heading: f64::from(draw()) * 1000.0,
            count: (draw() * 30_000.0) as u16,
        };
        let mut bytes: Vec<u8> = body
            .to_row()
            .iter()
            .flat_map(|column| column.to_le_bytes())
            .collect();
        append(&body.snapped(), &mut bytes);
        if let Some(before) = &before {
            let blend = Blend {
                share: draw().abs() * 1.5,
                seconds: 0.05,
            };
            append(&before.snapped().blend(&body.snapped(), blend), &mut bytes);
        }
        before = Some(body);
        sum ^= fnv1a(&bytes).rotate_left(sum as u32 & 31);
    }
    sum
}

fn append(body: &Body, bytes: &mut Vec<u8>) {
    let singles = body
        .position
        .iter()
        .chain(&body.rotation)
        .chain([&body.yaw]);
    bytes.extend(singles.flat_map(|value| value.to_bits().to_le_bytes()));
    let doubles = body.fine.iter().chain([&body.heading]);
    bytes.extend(doubles.flat_map(|value| value.to_bits().to_le_bytes()));
    bytes.extend(body.count.to_le_bytes());
}

#[test]
fn the_checksum_is_that_of_every_platform() {
    assert_eq!(checksum(), 8956976053725172628);
}
