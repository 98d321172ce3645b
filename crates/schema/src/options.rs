//! Attributes of a field, and the check that they fit its type.

use crate::state::grid::Grid;
use crate::{Interpolate, Predict, Type, quantise};

/// Longest `String` and `Vec` unless the field says `max`.
pub const LENGTH_MAX_DEFAULT: u32 = 65_535;

/// The attributes of a field, from `#[field(...)]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub(crate) fixed: bool,
    pub(crate) max: Option<u32>,
    pub(crate) range: Range,
    pub(crate) rotation: Option<u32>,
    pub(crate) bits: Option<u32>,
    pub(crate) predict: Option<Predict>,
    pub(crate) velocity: Option<&'static str>,
    pub(crate) interpolate: Option<Interpolate>,
    pub(crate) tolerance: Option<f64>,
    /// The grid that follows from the range of floats, worked out once.
    pub(crate) grid: Grid,
}

/// The numbers that a field can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Range {
    /// All of its type.
    Whole,
    /// Integers from `min` to `max`, both included.
    Integer {
        /// The smallest.
        min: i128,
        /// The largest.
        max: i128,
    },
    /// Multiples of `step` above `min`, up to the first that is not below `max`.
    Float {
        /// The smallest.
        min: f64,
        /// The largest, or up to a step less.
        max: f64,
        /// The distance between neighbours.
        step: f64,
    },
    /// Angles in so many steps to a turn, multiples of a step from `min` on.
    Angle {
        /// The start of the turn.
        min: f64,
        /// The end of it, which is the same direction.
        max: f64,
        /// Steps to the turn.
        count: u64,
    },
}

/// The kind of a type at the bottom, below `Option`, arrays and `Vec`: it decides which attributes make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leaf {
    /// An integer.
    Integer {
        /// The smallest of its type.
        min: i128,
        /// The largest of its type.
        max: i128,
    },
    /// A float with so many bits of precision.
    Float {
        /// Bits of the significand, the implied one included.
        precision: u32,
    },
    /// Anything else: takes no `fixed`, `range` or `step`.
    Other,
}

impl Options {
    /// No attributes.
    pub const NONE: Self = Self {
        fixed: false,
        max: None,
        range: Range::Whole,
        rotation: None,
        bits: None,
        predict: None,
        velocity: None,
        interpolate: None,
        tolerance: None,
        grid: Grid::NONE,
    };

    /// `fixed`
    pub const fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// `range = min..=max` of integers
    pub const fn integer_range(mut self, min: i128, max: i128) -> Self {
        self.range = Range::Integer { min, max };
        self
    }

    /// `range = min..=max, step = step` of floats
    pub const fn float_range(mut self, min: f64, max: f64, step: f64) -> Self {
        self.range = Range::Float { min, max, step };
        self.grid = Grid::of_range(min, max, step);
        self
    }

    /// `angle = bits, range = min..=max`: 2^bits steps to a turn
    pub const fn angle(mut self, bits: u32, min: f64, max: f64) -> Self {
        let count = 1 << if bits < 63 { bits } else { 63 };
        self.range = Range::Angle { min, max, count };
        self.grid = Grid::of_angle(min, max, count);
        self
    }

    /// `angle, step = step, range = min..=max`: as many steps to a turn as fit, so that a step may be a little smaller
    pub const fn angle_step(mut self, step: f64, min: f64, max: f64) -> Self {
        let count = quantise::count(min, max, step);
        self.range = Range::Angle { min, max, count };
        self.grid = Grid::of_angle(min, max, count);
        self
    }

    /// True if `fixed` was given.
    pub const fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Returns the range from `range` and `step`.
    pub const fn range(&self) -> Range {
        self.range
    }

    /// Returns the length from `max`.
    pub const fn length_limit(&self) -> Option<u32> {
        self.max
    }

    /// Stops the compiler when the attributes make no sense for a type; the derive calls it in a constant.
    ///
    /// # Panics
    /// If they do not, with the reason.
    #[doc(hidden)]
    #[expect(
        clippy::panic,
        reason = "the compiler evaluates it, and a panic is its error message"
    )]
    // The compiler then points at the field, not here.
    #[track_caller]
    pub const fn check(&self, leaf: Leaf, takes_max: bool, ty: &Type) {
        self.check_sets(ty);
        match self.max {
            Some(_) if !takes_max => panic!("`max` is for String and Vec"),
            Some(0) => panic!("`max` must be at least 1"),
            _ => {}
        }
        match (self.range, leaf) {
            (Range::Whole, Leaf::Integer { .. }) => {}
            (Range::Whole, _) => assert!(!self.fixed, "`fixed` is for integers"),
            (Range::Integer { .. }, Leaf::Float { .. }) => {
                panic!("a range of floats needs a step: `range = MIN..=MAX, step = STEP`")
            }
            (
                Range::Integer { min, max },
                Leaf::Integer {
                    min: least,
                    max: most,
                },
            ) => {
                assert!(min <= max, "the range is empty: write `range = MIN..=MAX`");
                assert!(
                    least <= min && max <= most,
                    "the range reaches beyond the field's type"
                );
                assert!(!self.fixed, "`fixed` and `range` exclude each other");
            }
            (Range::Float { min, max, step }, Leaf::Float { precision }) => {
                quantise::check(min, max, step, precision);
                assert!(!self.fixed, "`fixed` is for integers");
            }
            (Range::Float { .. }, Leaf::Integer { .. }) => panic!("`step` is for floats"),
            (Range::Angle { min, max, count }, Leaf::Float { precision }) => {
                quantise::check_angle(min, max, count, precision);
                assert!(!self.fixed, "`fixed` is for integers");
            }
            (Range::Angle { .. }, _) => panic!("`angle` is for floats: f32, f64"),
            (_, Leaf::Other) => panic!("`range` is for integers and floats"),
        }
    }

    /// The options for what is inside a `Vec`: the length was for the `Vec` itself.
    pub(crate) const fn inside(&self) -> Self {
        Self { max: None, ..*self }
    }

    /// Longest `String` or `Vec` of a state, where it must be declared.
    pub(crate) const fn state_max(&self) -> u32 {
        match self.max {
            Some(max) => max,
            None => 0,
        }
    }

    /// Longest `String` or `Vec` of a message.
    pub(crate) fn length_max(&self) -> u32 {
        self.max.unwrap_or(LENGTH_MAX_DEFAULT)
    }
}

muse_wire::setters! { const Options:
    /// `max = max`
    max: u32 = Some(max),

    /// `rotation = bits`: a quaternion by its three smaller parts of so many bits
    rotation: u32 = Some(rotation),

    /// `bits = count`: a set of so many bits
    bits: u32 = Some(bits),

    /// `predict = order`
    predict: Predict = Some(predict),

    /// `velocity = field`: the field of the same struct that is this one's change per second
    velocity: &'static str = Some(velocity),

    /// `interpolate = way`
    interpolate: Interpolate = Some(interpolate),

    /// `tolerance = distance`
    tolerance: f64 = Some(tolerance),
}
