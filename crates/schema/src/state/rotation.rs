//! Rotations by the three smaller parts of a quaternion, and their interpolation.
//!
//! A unit quaternion and its negative are the same rotation, and its largest part follows from the others. So the index
//! of the largest travels and the others as integers: `half` of them make 1 / sqrt 2, which no other part exceeds. Zero
//! lies on the grid, so a body at rest stays at rest.
//!
//! Rounding the parts moves the implied largest one. Where two parts are nearly as large, the largest could then be
//! another one, and storing again would choose another row. A row therefore counts only if the implied largest part
//! is so by a margin ([`is_settled`]), far above what floats round away; `store` gives way by a step where it is not.

use crate::DecodeError;

/// Index of the largest part, then the others in the order x, y, z, w.
#[inline(always)]
pub(crate) fn store(parts: [f64; 4], bits: u32) -> [i32; 4] {
    let half = half(bits);
    let square = dot(parts, parts);
    // A value that is not a rotation becomes the identity.
    let (parts, scale) = if square > SQUARE_MIN && square < SQUARE_MAX {
        (
            parts,
            f64::from(half) * core::f64::consts::SQRT_2 / square.sqrt(),
        )
    } else {
        (IDENTITY, f64::from(half) * core::f64::consts::SQRT_2)
    };
    let steps = parts.map(|part| {
        let exact = part * scale;
        (exact + 0.5_f64.copysign(exact)) as i32
    });
    let sizes = steps.map(i32::abs);
    // Without branches, which would be guessed wrong half of the time; the first of equals.
    let (first, second) = (
        usize::from(sizes[1] > sizes[0]),
        2 + usize::from(sizes[3] > sizes[2]),
    );
    let later = sizes[2].max(sizes[3]) > sizes[0].max(sizes[1]);
    let largest = first + (second - first) * usize::from(later);
    let sign = steps[largest] >> 31 | 1;
    let mut smaller = OTHERS[largest].map(|index| sign * steps[index]);
    let most = { smaller }.map(i32::abs).into_iter().fold(0, i32::max);
    // With this much room the largest stays the largest, however the others were rounded.
    if sizes[largest] < most + ROOM {
        settle(largest, &mut smaller, half);
    }
    [largest as i32, smaller[0], smaller[1], smaller[2]]
}

/// The quaternion of a row.
#[inline(always)]
pub(crate) fn load(row: [i32; 4], bits: u32) -> Result<[f64; 4], DecodeError> {
    let half = half(bits);
    let [largest, smaller @ ..] = row;
    let in_range = |part: i32| -half - 1 <= part && part <= half;
    if !(0..4).contains(&largest) || !smaller.iter().all(|&part| in_range(part)) {
        return Err(DecodeError::OutOfRange);
    }
    let largest = largest as usize;
    if !is_settled(largest, smaller, half) {
        return Err(DecodeError::NotCanonical);
    }
    let unit = core::f64::consts::FRAC_1_SQRT_2 / f64::from(half);
    let mut parts = [0.0; 4];
    let whole = 2 * square(half);
    parts[largest] = (implied_square(smaller, half) as f64 / whole as f64).sqrt();
    for (index, part) in OTHERS[largest].into_iter().zip(smaller) {
        parts[index] = f64::from(part) * unit;
    }
    Ok(parts)
}

/// Between two rotations in a straight line, the shorter way.
#[inline]
pub(crate) fn nlerp(from: [f64; 4], to: [f64; 4], share: f64) -> [f64; 4] {
    let to = facing(from, to);
    let mixed = core::array::from_fn(|index| from[index] + (to[index] - from[index]) * share);
    normalized(mixed).unwrap_or(to)
}

/// Between two rotations at even speed, the shorter way; beyond the second the turn goes on.
///
/// Sines differ between platforms, halves do not: the way is halved until a straight line is as good.
pub(crate) fn slerp(from: [f64; 4], to: [f64; 4], share: f64) -> [f64; 4] {
    let (mut from, mut to) = (from, facing(from, to));
    let mut share = share.clamp(0.0, SHARE_MAX);
    if share > 1.0 {
        let turn = product(to, conjugate(from));
        while share > 1.0 {
            from = to;
            to = normalized(product(turn, to)).unwrap_or(to);
            share -= 1.0;
        }
    }
    for _ in 0..HALVINGS {
        let Some(middle) = normalized(core::array::from_fn(|index| from[index] + to[index])) else {
            break;
        };
        if share < 0.5 {
            to = middle;
            share *= 2.0;
        } else {
            from = middle;
            share = share * 2.0 - 1.0;
        }
    }
    nlerp(from, to, share)
}

/// The angle between two rotations in radians, near enough for small ones (a hundredth less at half a radian).
#[inline]
pub(crate) fn apart(first: [f64; 4], second: [f64; 4]) -> f64 {
    let second = facing(first, second);
    let difference: [f64; 4] = core::array::from_fn(|index| first[index] - second[index]);
    2.0 * dot(difference, difference).sqrt()
}

/// True if the largest part that the others imply is the first largest of all by a margin.
#[inline]
fn is_settled(largest: usize, smaller: [i32; 3], half: i32) -> bool {
    let implied_square = implied_square(smaller, half) as f64;
    let admits = |place: usize| {
        let least = f64::from(smaller[place].abs()) + AHEAD[largest][place];
        implied_square >= least * least.abs()
    };
    admits(0) & admits(1) & admits(2)
}

/// Square of the largest part, in steps; below zero if the others are too large for a rotation.
#[inline]
fn implied_square(smaller: [i32; 3], half: i32) -> i64 {
    let [a, b, c] = smaller.map(square);
    2 * square(half) - (a + b + c)
}

#[inline]
fn square(part: i32) -> i64 {
    i64::from(part) * i64::from(part)
}

/// Takes single steps off the largest of the smaller parts until the implied largest part is larger.
#[cold]
fn settle(largest: usize, smaller: &mut [i32; 3], half: i32) {
    while !is_settled(largest, *smaller, half) {
        let most = (1..3).fold(0, |best, index| {
            if smaller[index].abs() > smaller[best].abs() {
                index
            } else {
                best
            }
        });
        smaller[most] -= smaller[most].signum();
    }
}

/// Steps from 0 to 1 / sqrt 2.
#[inline(always)]
const fn half(bits: u32) -> i32 {
    (1 << (bits - 1)) - 1
}

/// `to` or its negative, whichever is nearer.
#[inline]
fn facing(from: [f64; 4], to: [f64; 4]) -> [f64; 4] {
    if dot(from, to) < 0.0 {
        to.map(|part| -part)
    } else {
        to
    }
}

#[inline]
fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

#[inline]
fn normalized(parts: [f64; 4]) -> Option<[f64; 4]> {
    let square = dot(parts, parts);
    if square > SQUARE_MIN && square < SQUARE_MAX {
        let scale = 1.0 / square.sqrt();
        Some(parts.map(|part| part * scale))
    } else {
        None
    }
}

fn conjugate([x, y, z, w]: [f64; 4]) -> [f64; 4] {
    [-x, -y, -z, w]
}

/// First `b`, then `a`.
fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    ]
}

/// The other three parts.
const OTHERS: [[usize; 3]; 4] = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]];
/// The distance by which the largest part has to be ahead of each of the others, in steps. Among equals the first is the largest, so of
/// those before it, it has to be so after rounding.
const AHEAD: [[f64; 3]; 4] = [
    [-0.5 + MARGIN, -0.5 + MARGIN, -0.5 + MARGIN],
    [0.5 + MARGIN, -0.5 + MARGIN, -0.5 + MARGIN],
    [0.5 + MARGIN, 0.5 + MARGIN, -0.5 + MARGIN],
    [0.5 + MARGIN, 0.5 + MARGIN, 0.5 + MARGIN],
];
const IDENTITY: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
/// Squares of lengths outside of these are not rotations.
const SQUARE_MIN: f64 = 1e-12;
const SQUARE_MAX: f64 = 1e12;
/// In steps: an `f32` of 16 bits in a part rounds away a hundredth.
const MARGIN: f64 = 1.0 / 16.0;
/// In steps: the rounding of three parts by half a step each takes less than that from the fourth.
const ROOM: i32 = 3;
/// A half turn of a body is a quarter turn of its quaternion: after three halvings the line is off by a few
/// ten-thousandths of a radian at most.
const HALVINGS: usize = 3;
/// Further than that nothing is foretold.
const SHARE_MAX: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random rotations, many of them near those where two, three or four parts are equal.
    fn rotations(count: u32) -> impl Iterator<Item = [f64; 4]> {
        let mut random = 7u64;
        let mut draw = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..count).filter_map(move |index| {
            let center = CENTERS[index as usize % CENTERS.len()];
            let spread = [1.0, 0.1, 1e-2, 1e-3, 1e-4, 0.0][index as usize / 7 % 6];
            normalized(center.map(|part| part + spread * draw()))
        })
    }

    const CENTERS: [[f64; 4]; 7] = [
        [0.0; 4],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 1.0],
        [1.0, 0.0, -1.0, 0.0],
        [1.0, -1.0, 1.0, 0.0],
        [1.0, 1.0, -1.0, 1.0],
        [-0.5, 0.5, 0.5, -0.5],
    ];

    #[test]
    fn every_row_that_loads_is_stored_as_itself() {
        for bits in 2..=6 {
            let bound = 1 << (bits - 1);
            let mut legal = 0;
            for index in 0..4 << (3 * bits) {
                let part = |place: u32| (index >> (place * bits) & (2 * bound - 1)) - bound;
                let row = [index >> (3 * bits), part(0), part(1), part(2)];
                let Ok(parts) = load(row, bits) else { continue };
                legal += 1;
                assert_eq!(store(parts, bits), row, "{bits} bits");
                let rounded = parts.map(|part| f64::from(part as f32));
                assert_eq!(store(rounded, bits), row, "{bits} bits as f32");
            }
            assert!(legal >= 1 << (3 * bits - 2), "{bits} bits: only {legal}");
        }
    }

    #[test]
    fn what_is_stored_loads_and_is_near() {
        for bits in 2..=16 {
            let step = core::f64::consts::FRAC_1_SQRT_2 / f64::from(half(bits));
            for parts in rotations(20_000) {
                let row = store(parts, bits);
                let loaded = load(row, bits).expect("stored rows can be loaded");
                let rounded = loaded.map(|part| f64::from(part as f32));
                assert_eq!(store(loaded, bits), row, "{bits} bits");
                assert_eq!(store(rounded, bits), row, "{bits} bits as f32");
                assert!((dot(loaded, loaded) - 1.0).abs() < 1e-12);
                // Three parts off by half a step each, the fourth by what that makes, and room for giving way.
                let apart = apart(parts, loaded);
                assert!(apart < 4.5 * step, "{bits} bits: {} steps", apart / step);
            }
        }
    }

    #[test]
    fn quarter_turns_are_exact() {
        let root = core::f64::consts::FRAC_1_SQRT_2;
        for parts in [
            [0.0, 0.0, 0.0, 1.0],
            [0.0, root, 0.0, root],
            [root, 0.0, -root, 0.0],
        ] {
            let loaded = load(store(parts, 9), 9).expect("just stored");
            assert!(apart(parts, loaded) < 1e-9, "{loaded:?}");
        }
    }

    #[test]
    fn what_is_no_rotation_is_none() {
        for parts in [[0.0; 4], [f64::NAN; 4], [f64::INFINITY, 0.0, 0.0, 1.0]] {
            assert_eq!(store(parts, 10), [3, 0, 0, 0]);
        }
    }

    #[test]
    fn slerp_is_even_and_goes_on() {
        // A quarter turn about y, in angles of the quaternion.
        let turn = |angle: f64| [0.0, angle.sin(), 0.0, angle.cos()];
        let quarter = core::f64::consts::FRAC_PI_4;
        for share in [0.0, 0.1, 0.25, 0.5, 0.77, 1.0, 1.3, 2.0, 3.6] {
            for to in [turn(quarter), turn(quarter).map(|part| -part)] {
                let blended = slerp(turn(0.0), to, share);
                let off = apart(blended, turn(quarter * share));
                assert!(off < 5e-5, "{share}: {off}");
            }
        }
        let line = nlerp(turn(0.0), turn(0.02), 0.3);
        assert!(apart(line, turn(0.006)) < 1e-6);
    }
}
