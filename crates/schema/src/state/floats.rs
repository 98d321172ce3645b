//! Floats as columns: exact, in steps, as angles, and four of them as a rotation.

use super::{Blend, Interpolate, Property, RowReader, RowWriter, rotation};
use crate::{DecodeError, Options, Range, Type};

macro_rules! float {
    ($type:ident, $bits:literal) => {
        impl Property for $type {
            const TYPE: Type = Type::Float { bits: $bits };

            #[inline(always)]
            fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
                let (low, high) = stored(f64::from(*self), self.to_bits() as u64, options);
                row.put(low);
                if $bits == 64 && options.range == Range::Whole {
                    row.put(high);
                }
            }

            #[inline(always)]
            fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
                if options.range == Range::Whole {
                    let low = u64::from(row.take()? as u32);
                    let high = match $bits {
                        64 => u64::from(row.take()? as u32),
                        _ => 0,
                    };
                    return Ok($type::from_bits((high << 32 | low) as _));
                }
                let grid = &options.grid;
                let index = row.take_within(grid.low, grid.high)?;
                Ok(grid.value(index) as $type)
            }

            #[inline]
            fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
                let (from, share) = (f64::from(*self), f64::from(blend.share));
                match way(options) {
                    Interpolate::None => *blend.step(self, to),
                    Interpolate::Angle => {
                        let way = shortest(f64::from(*to) - from, options);
                        wrapped(from + way * share, options) as $type
                    }
                    _ => (from + (f64::from(*to) - from) * share) as $type,
                }
            }

            #[inline]
            fn distance_squared(&self, other: &Self, options: &Options) -> f32 {
                match way(options) {
                    Interpolate::Linear | Interpolate::Hermite => {
                        let apart = (*self - *other) as f32;
                        apart * apart
                    }
                    _ => 0.0,
                }
            }

            #[inline]
            fn hermite(
                &self,
                to: &Self,
                velocities: (&Self, &Self),
                options: &Options,
                blend: Blend,
            ) -> Self {
                let from = f64::from(*self);
                let seconds = f64::from(blend.seconds);
                let slopes = [*velocities.0, *velocities.1].map(|slope| f64::from(slope) * seconds);
                let angle = matches!(options.range, Range::Angle { .. });
                let mut way = f64::from(*to) - from;
                if angle {
                    way = shortest(way, options);
                }
                let value = from + curve(way, slopes, blend);
                (if angle {
                    wrapped(value, options)
                } else {
                    value
                }) as $type
            }

            #[inline]
            fn differs(&self, other: &Self, options: &Options) -> bool {
                match options.tolerance {
                    Some(tolerance) => {
                        let apart = distance(f64::from(*self), f64::from(*other), options);
                        is_beyond(apart.abs(), tolerance)
                    }
                    None => {
                        stored(f64::from(*self), self.to_bits() as u64, options)
                            != stored(f64::from(*other), other.to_bits() as u64, options)
                    }
                }
            }

            #[inline]
            fn store_array(items: &[Self], options: &Options, row: &mut RowWriter<'_>) {
                match (options.rotation, items) {
                    (Some(bits), &[x, y, z, w]) => {
                        let parts = [x, y, z, w].map(f64::from);
                        for part in rotation::store(parts, bits) {
                            row.put(part);
                        }
                    }
                    _ => items.iter().for_each(|item| item.store(options, row)),
                }
            }

            #[inline]
            fn load_array<const N: usize>(
                options: &Options,
                row: &mut RowReader<'_>,
            ) -> Result<[Self; N], DecodeError> {
                let mut items = [0.0; N];
                match options.rotation {
                    Some(bits) if N == 4 => {
                        let row = [row.take()?, row.take()?, row.take()?, row.take()?];
                        let parts = rotation::load(row, bits)?;
                        for (item, part) in items.iter_mut().zip(parts) {
                            *item = part as $type;
                        }
                    }
                    _ => {
                        for item in &mut items {
                            *item = Self::load(options, row)?;
                        }
                    }
                }
                Ok(items)
            }

            #[inline]
            fn blend_array<const N: usize>(
                from: &[Self; N],
                to: &[Self; N],
                options: &Options,
                blend: Blend,
            ) -> [Self; N] {
                if options.rotation.is_none() || N != 4 {
                    return core::array::from_fn(|at| from[at].blend(&to[at], options, blend));
                }
                let share = f64::from(blend.share);
                let (first, second) = (quaternion(from), quaternion(to));
                let parts = match options.interpolate {
                    Some(Interpolate::None) => return *blend.step(from, to),
                    Some(Interpolate::Linear) => rotation::nlerp(first, second, share),
                    _ => rotation::slerp(first, second, share),
                };
                core::array::from_fn(|index| parts[index] as $type)
            }

            #[inline]
            fn differs_array(items: &[Self], others: &[Self], options: &Options) -> bool {
                match (options.rotation, options.tolerance) {
                    (Some(bits), None) if items.len() == 4 => {
                        let (first, second) = (quaternion(items), quaternion(others));
                        rotation::store(first, bits) != rotation::store(second, bits)
                    }
                    (Some(_), Some(tolerance)) if items.len() == 4 => {
                        let apart = rotation::apart(quaternion(items), quaternion(others));
                        is_beyond(apart, tolerance)
                    }
                    (_, Some(tolerance)) => {
                        let squares = items.iter().zip(others).map(|(item, other)| {
                            let apart = distance(f64::from(*item), f64::from(*other), options);
                            apart * apart
                        });
                        is_beyond(squares.sum::<f64>(), tolerance * tolerance)
                    }
                    (_, None) => items
                        .iter()
                        .zip(others)
                        .any(|(item, other)| item.differs(other, options)),
                }
            }
        }
    };
}

float!(f32, 32);
float!(f64, 64);

/// The columns of a float: one, or two for a pattern of 64 bits.
#[inline(always)]
fn stored(value: f64, pattern: u64, options: &Options) -> (i32, i32) {
    match options.range {
        Range::Float { .. } => (options.grid.index(value), 0),
        Range::Angle { .. } => (options.grid.index_wrapped(value), 0),
        _ => (pattern as i32, (pattern >> 32) as i32),
    }
}

/// Returns the interpolation of a float: linear by default, the shorter way for angles.
#[inline]
fn way(options: &Options) -> Interpolate {
    match (options.interpolate, options.range) {
        (Some(way), _) => way,
        (None, Range::Angle { .. }) => Interpolate::Angle,
        _ => Interpolate::Linear,
    }
}

/// Returns the distance between two values, angles the shorter way.
#[inline]
fn distance(value: f64, other: f64, options: &Options) -> f64 {
    match options.range {
        Range::Angle { .. } => shortest(value - other, options),
        _ => value - other,
    }
}

/// True if the distance exceeds the tolerance. A value that is not a number differs from everything.
#[inline]
fn is_beyond(distance: f64, tolerance: f64) -> bool {
    distance.is_nan() || distance > tolerance
}

/// Beginning and size of the turn; radians where an exact float is interpolated as an angle.
#[inline]
fn turn(options: &Options) -> (f64, f64) {
    match options.range {
        Range::Angle { min, max, .. } => (min, max - min),
        _ => (-core::f64::consts::PI, core::f64::consts::TAU),
    }
}

/// The same turn the shorter way round.
#[inline]
fn shortest(way: f64, options: &Options) -> f64 {
    let (_, turn) = turn(options);
    let turns = way / turn;
    way - turn * ((turns + 0.5_f64.copysign(turns)) as i64) as f64
}

/// The same direction within the declared turn.
#[inline]
fn wrapped(angle: f64, options: &Options) -> f64 {
    let (min, turn) = turn(options);
    let turns = (angle - min) / turn;
    let towards_zero = turns as i64;
    let whole = towards_zero.saturating_sub(i64::from(towards_zero as f64 > turns));
    angle - turn * whole as f64
}

/// Returns how far along `way` the curve is that starts and ends with these slopes (per whole way). Before its start it goes straight on; beyond its end it
/// bends for a while as it did between.
#[inline]
fn curve(way: f64, slopes: [f64; 2], blend: Blend) -> f64 {
    let t = f64::from(blend.share);
    if blend.seconds <= 0.0 {
        way * t
    } else if t < 0.0 {
        slopes[0] * t
    } else if t > 1.0 {
        let (beyond, bend) = (t - 1.0, slopes[1] - slopes[0]);
        let bent = match is_sharp(slopes, blend) {
            true => 0.0,
            false => beyond.min(BENT_MAX),
        };
        way + slopes[1] * beyond + bend * bent * (beyond - bent / 2.0)
    } else if let Some((at, corner)) = corner(way, slopes, blend) {
        match t < at {
            true => corner * t / at,
            false if at < 1.0 => corner + (way - corner) * (t - at) / (1.0 - at),
            false => way,
        }
    } else {
        let slopes = tamed(way, slopes);
        let (t2, t3) = (t * t, t * t * t);
        (t3 - 2.0 * t2 + t) * slopes[0] + (3.0 * t2 - 2.0 * t3) * way + (t3 - t2) * slopes[1]
    }
}

/// True if a value turned at once, as a ball does at a wall and a player who stops, lands or leaps. A cubic is nearer to what turns slowly, and as far off what
/// does not as two straight lines are off a curve.
#[inline]
fn is_sharp(slopes: [f64; 2], blend: Blend) -> bool {
    let fastest = slopes[0].abs().max(slopes[1].abs());
    fastest * f64::from(blend.seconds) < (slopes[1] - slopes[0]).abs() * SHARP_SECONDS
}

/// Returns the share and the place at which a value turned at once: where the straight lines from both ends meet. `None` if they do not, or if it did not.
#[inline]
fn corner(way: f64, slopes: [f64; 2], blend: Blend) -> Option<(f64, f64)> {
    if !is_sharp(slopes, blend) {
        return None;
    }
    match (way - slopes[1]) / (slopes[0] - slopes[1]) {
        at if (0.0..1.0).contains(&at) => Some((at, slopes[0] * at)),
        // Gravity pulls it a little further than its speed says.
        at if (-SLACK..0.0).contains(&at) => Some((0.0, 0.0)),
        at if (1.0..=1.0 + SLACK).contains(&at) => Some((1.0, way)),
        _ => None,
    }
}

/// Limits slopes so that the curve stays between its ends where nothing suggests that the value left them.
///
/// A body that falls, lands and rests between two states has a steep slope at the first and none at the second: the cubic would dip below the
/// floor. While both slopes agree with the way, at most three times the way keeps it monotone (Fritsch and Carlson). Slopes of opposite
/// signs belong to a turn, such as the top of a jump, and stay as they are.
#[inline]
fn tamed(way: f64, slopes: [f64; 2]) -> [f64; 2] {
    let agree = slopes[0] * slopes[1] >= 0.0 && slopes[0] * way >= 0.0 && slopes[1] * way >= 0.0;
    if !agree {
        return slopes;
    }
    let steepest = 3.0 * way.abs();
    slopes.map(|slope| slope.clamp(-steepest, steepest))
}

/// The time within which something that turned at once would have lost its speed.
const SHARP_SECONDS: f64 = 0.05;
/// Share of the way by which the lines may miss it.
const SLACK: f64 = 0.1;
/// Whole ways beyond the end for which a curve goes on to bend: what accelerates has enough speed some time.
const BENT_MAX: f64 = 3.0;

/// Four floats as parts of a quaternion.
#[inline]
fn quaternion<T: Copy>(items: &[T]) -> [f64; 4]
where
    f64: From<T>,
{
    core::array::from_fn(|index| items.get(index).map_or(0.0, |item| f64::from(*item)))
}
