//! Functions of `f32` that give the same bits everywhere.
//!
//! `+ - * /` and `sqrt` of IEEE 754 are exact to the last bit on every platform that Rust runs on, as long as nothing is contracted
//! (Rust does not) and not-a-number is kept out of the state. `sin`, `cos` and the like come from the platform's library and
//! differ: these do not.

/// Sine, to within 2e-6 for angles within a few hundred turns.
///
/// ```
/// use muse_lockstep::strict;
/// assert_eq!(strict::sin(0.5).to_bits(), 0x3ef5_7744);
/// ```
pub fn sin(angle: f32) -> f32 {
    let (quarter, rest) = reduce(angle);
    match quarter {
        0 => sin_near(rest),
        1 => cos_near(rest),
        2 => -sin_near(rest),
        _ => -cos_near(rest),
    }
}

/// Cosine, as [`sin`].
pub fn cos(angle: f32) -> f32 {
    let (quarter, rest) = reduce(angle);
    match quarter {
        0 => cos_near(rest),
        1 => -sin_near(rest),
        2 => -cos_near(rest),
        _ => sin_near(rest),
    }
}

/// The angle of a vector, to within 2e-6; 0 for the vector (0, 0).
pub fn atan2(y: f32, x: f32) -> f32 {
    let (larger, smaller) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if larger == 0.0 {
        return 0.0;
    }
    let mut angle = atan_near(smaller / larger);
    if y.abs() > x.abs() {
        angle = QUARTER - angle;
    }
    if x < 0.0 {
        angle = 2.0 * QUARTER - angle;
    }
    if y < 0.0 { -angle } else { angle }
}

/// The value on a grid of 1/65,536, with zero for what is not a number: after it, two machines that came close have the same.
pub fn snap(value: f32) -> f32 {
    let steps = f64::from(value) * 65_536.0;
    (steps.round() as i64 as f64 / 65_536.0) as f32
}

/// Splits an angle into quarter turns and the rest within an eighth of a turn.
fn reduce(angle: f32) -> (u8, f32) {
    // In 64 bits, so that the subtraction loses nothing that 32 bits can show.
    let quarters = (f64::from(angle) / (f64::from(QUARTER))).round();
    let rest = f64::from(angle) - quarters * std::f64::consts::FRAC_PI_2;
    ((quarters as i64 & 3) as u8, rest as f32)
}

fn sin_near(x: f32) -> f32 {
    let square = x * x;
    x + x * square * (-1.666_665_5e-1 + square * (8.332_16e-3 + square * -1.951_528_3e-4))
}

fn cos_near(x: f32) -> f32 {
    let square = x * x;
    1.0 - 0.5 * square
        + square * square * (4.166_664_6e-2 + square * (-1.388_731_6e-3 + square * 2.443_315_7e-5))
}

/// For 0 to 1, by way of the tangent of half the angle.
fn atan_near(x: f32) -> f32 {
    let half = x / (1.0 + (1.0 + x * x).sqrt());
    let square = half * half;
    let series = 1.0
        + square
            * (-3.333_333e-1
                + square * (1.999_355e-1 + square * (-1.419_889e-1 + square * 9.5e-2)));
    2.0 * half * series
}

const QUARTER: f32 = std::f32::consts::FRAC_PI_2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    #[test]
    fn they_are_close_to_the_truth() {
        for step in -2_000..2_000 {
            let angle = step as f32 * 0.037;
            assert!((sin(angle) - angle.sin()).abs() < 3e-6, "sin {angle}");
            assert!((cos(angle) - angle.cos()).abs() < 3e-6, "cos {angle}");
            let (y, x) = (angle.sin() * 3.0, angle.cos() * 3.0);
            let error = (atan2(y, x) - y.atan2(x)).abs();
            assert!(error < 2e-5, "atan2 {angle}: {error}");
        }
        assert_eq!(snap(f32::NAN), 0.0);
        assert_eq!(snap(0.5), 0.5);
    }

    #[test]
    fn their_bits_are_those_of_every_machine() {
        let mut bytes = Vec::new();
        for step in -5_000i16..5_000 {
            let angle = f32::from(step) / 64.0;
            bytes.extend(sin(angle).to_bits().to_le_bytes());
            bytes.extend(cos(angle).to_bits().to_le_bytes());
            bytes.extend(atan2(angle, 3.0).to_bits().to_le_bytes());
        }
        assert_eq!(checksum(&bytes), 10_674_649_035_245_062_821);
    }
}
