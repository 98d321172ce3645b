//! Rotations as the three smaller parts of a quaternion: the same rotation seen from another largest part, and how a
//! rotation goes on.

/// A quaternion in integers of a common length.
pub(super) type Quaternion = [i64; 4];

/// The scale of the parts of a rotation's columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// `min + max` of a part: twice the value that stands for 0.
    middle: i64,
    /// `max - min`: half a unit's length by the root of two.
    span: i64,
    /// Steps of a quaternion's number per half step of a part.
    fine: i64,
}

impl Scale {
    pub(super) fn new(min: i32, max: i32) -> Self {
        let span = i64::from(max) - i64::from(min);
        Self {
            middle: i64::from(max) + i64::from(min),
            span,
            // Enough for rounding not to matter, and products still fit.
            fine: (8_192 / span.max(1)).max(1),
        }
    }

    /// The square of every quaternion's length.
    pub(super) fn norm(&self) -> i64 {
        2 * (self.span * self.fine).pow(2)
    }

    /// The quaternion of a row's four columns: which part is the largest, then the others.
    pub(super) fn quaternion(&self, columns: &[i32]) -> Quaternion {
        let largest = (columns[0] & 3) as usize;
        let mut rest = self.norm();
        let mut quaternion = [0; 4];
        let mut parts = columns[1..4].iter();
        for (index, number) in quaternion.iter_mut().enumerate() {
            if index != largest
                && let Some(&part) = parts.next()
            {
                let limit = self.span * self.fine;
                *number = ((2 * i64::from(part) - self.middle) * self.fine).clamp(-limit, limit);
                rest -= *number * *number;
            }
        }
        quaternion[largest] = root(rest.max(0));
        quaternion
    }

    /// The three parts if `largest` is left out.
    pub(super) fn parts(&self, quaternion: &Quaternion, largest: usize) -> [i32; 3] {
        let largest = largest & 3;
        let sign = if quaternion[largest] < 0 { -1 } else { 1 };
        let mut parts = [0; 3];
        let others = (0..4).filter(|&index| index != largest);
        for (part, index) in parts.iter_mut().zip(others) {
            let number =
                (quaternion[index] * sign).clamp(-self.span * self.fine, self.span * self.fine);
            let twice = self.middle * self.fine + number;
            *part = (twice + self.fine).div_euclid(2 * self.fine) as i32;
        }
        parts
    }

    /// Continues a rotation that turns on evenly from `older` through `newer`: `factor` in 2^-16 is how far it goes beyond
    /// `newer` in relation to the way between the two.
    ///
    /// With the angle between them a, this is newer * cos(f a) + (newer * cos a - older) * sin(f a) / sin a, the two functions
    /// of f by their first terms, which is exact for f = 1.
    pub(super) fn continued(
        &self,
        newer: &Quaternion,
        older: &Quaternion,
        factor: i64,
    ) -> Quaternion {
        let norm = self.norm();
        let dot: i64 = newer.iter().zip(older).map(|(a, b)| a * b).sum();
        // A quaternion and its negative are the same rotation.
        let sign = if dot < 0 { -1 } else { 1 };
        let dot = dot * sign;
        let factor = factor.clamp(0, 32 << 16) >> 8;
        let squared = (factor * factor) >> 8;
        let mut continued = [0; 4];
        for (index, number) in continued.iter_mut().enumerate() {
            let along = newer[index] * dot / norm;
            let away = along - sign * older[index];
            let bent = (squared * (newer[index] - along)) >> 8;
            *number = newer[index] - bent + ((factor * away) >> 8);
        }
        continued
    }
}

/// The square root of a whole number below 2^52, rounded down. Processors have it for fractions, IEEE 754 rounds it alike everywhere, and what
/// lies just below a whole root is far enough from it to be told apart.
#[inline]
fn root(square: i64) -> i64 {
    (square as f64).sqrt() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact() {
        for root_before in (0..1 << 26).step_by(997).chain([1, 2, 3, (1 << 26) - 1]) {
            let square = root_before * root_before;
            assert_eq!(root(square), root_before);
            assert_eq!(root(square + 2 * root_before), root_before);
        }
    }

    fn columns(angle: f64, scale_max: i32) -> [i32; 4] {
        let quaternion = [(angle / 2.0).sin(), 0.0, 0.0, (angle / 2.0).cos()];
        let largest = if quaternion[0].abs() > quaternion[3].abs() {
            0
        } else {
            3
        };
        let sign = quaternion[largest].signum();
        let mut row = [largest as i32, 0, 0, 0];
        let others = (0..4).filter(|&index| index != largest);
        for (place, index) in row[1..].iter_mut().zip(others) {
            let part = quaternion[index] * sign * std::f64::consts::SQRT_2;
            *place = ((part + 1.0) / 2.0 * f64::from(scale_max)).round() as i32;
        }
        row
    }

    #[test]
    fn an_even_turn_goes_on_also_where_the_largest_part_changes() {
        let scale = Scale::new(0, 1_023);
        for step in 0..40 {
            let angle = f64::from(step) * 0.15;
            let [older, newer, next] = [0.0, 0.2, 0.4].map(|more| columns(angle + more, 1_023));
            let found = scale.continued(
                &scale.quaternion(&newer),
                &scale.quaternion(&older),
                1 << 16,
            );
            let parts = scale.parts(&found, next[0] as usize);
            for (part, expected) in parts.iter().zip(&next[1..]) {
                assert!(
                    part.abs_diff(*expected) <= 3,
                    "{step}: {parts:?}, not {next:?}"
                );
            }
        }
    }

    #[test]
    fn parts_survive_the_way_through_a_quaternion() {
        for max in [3, 511, 1_023, 65_535, (1 << 20) - 1] {
            let scale = Scale::new(0, max);
            let row = [1, max / 2, max / 3, max / 5 * 4];
            assert_eq!(scale.parts(&scale.quaternion(&row), 1), row[1..]);
        }
    }
}
