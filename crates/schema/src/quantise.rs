//! Floats in steps: a range and the distance between neighbours make a float an integer.
//!
//! Only additions, multiplications, divisions and roundings of 64-bit floats are used, which IEEE 754 defines to the last
//! bit, so all platforms agree.

/// Returns the number of steps from `min` to `max`, the last of them perhaps reaching beyond `max`.
pub(crate) const fn count(min: f64, max: f64, step: f64) -> u64 {
    let exact = (max - min) / step;
    let nearest = (exact + 0.5) as u64;
    let distance = exact - nearest as f64;
    // 20 / 0.01 is not quite 2,000: what is that near to a whole number is meant to be one.
    if distance.abs() <= exact * TOLERANCE {
        nearest
    } else {
        exact as u64 + 1
    }
}

/// The step nearest to `value`, which is a number.
pub(crate) fn index(value: f64, min: f64, max: f64, step: f64) -> u64 {
    // The cast takes what is below to zero.
    (((value - min) / step).round() as u64).min(count(min, max, step))
}

/// The value of a step.
pub(crate) fn value(index: u64, min: f64, step: f64) -> f64 {
    min + index as f64 * step
}

/// Stops the compiler when a range makes no sense for floats of `precision` bits.
///
/// # Panics
/// If it does not.
#[track_caller]
pub(crate) const fn check(min: f64, max: f64, step: f64, precision: u32) {
    assert!(
        min.is_finite() && max.is_finite(),
        "the range must be finite"
    );
    assert!(min < max, "the range is empty: write `range = MIN..=MAX`");
    assert!(
        step > 0.0 && step.is_finite(),
        "the step must be above zero"
    );
    let largest = if min.abs() > max.abs() {
        min.abs()
    } else {
        max.abs()
    };
    // A spare bit or two, so that each step survives being stored and rounded again.
    let finest = (1u64 << (precision - 2)) as f64;
    assert!(
        largest / step <= finest,
        "the step is too fine for the field's type: it has not enough bits"
    );
    assert!(
        (max - min) / step <= u32::MAX as f64,
        "the step is too fine: there may be 2^32 - 1 steps in the range"
    );
}

/// Stops the compiler when an angle makes no sense for floats of `precision` bits.
///
/// # Panics
/// If it does not.
#[track_caller]
pub(crate) const fn check_angle(min: f64, max: f64, count: u64, precision: u32) {
    assert!(
        2 <= count && count <= 1 << 31,
        "an angle has 2 to 2^31 steps: write `angle = BITS` or `angle, step = STEP`"
    );
    check(min, max, (max - min) / count as f64, precision);
}

/// Share of a step count by which a range may miss a whole number of steps.
const TOLERANCE: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_as_meant() {
        assert_eq!(count(-10.0, 10.0, 0.01), 2_000);
        assert_eq!(count(0.0, 1.0, 0.1), 10);
        assert_eq!(count(0.0, 1.0, 0.3), 4);
        assert_eq!(count(-500.0, 500.0, 0.001), 1_000_000);
        assert_eq!(count(0.0, 0.1, 1.0), 1);
    }

    #[test]
    fn values_outside_become_the_nearest_inside() {
        assert_eq!(index(-1e300, -1.0, 1.0, 0.5), 0);
        assert_eq!(index(f64::INFINITY, -1.0, 1.0, 0.5), 4);
        assert_eq!(index(0.26, -1.0, 1.0, 0.5), 3);
    }

    #[test]
    fn each_step_of_a_32_bit_float_survives_storing() {
        // The finest step that `check` lets pass.
        let (min, max) = (-500.0, 500.0);
        let step = 500.0 / (1u64 << 22) as f64;
        check(min, max, step, 24);
        let count = count(min, max, step);
        for index_before in (0..=count).step_by(997).chain([count]) {
            let stored = value(index_before, min, step) as f32;
            assert_eq!(index(f64::from(stored), min, max, step), index_before);
        }
    }
}
