//! The check that the attributes of a state's field fit its type, which the compiler makes.

use super::{Interpolate, Predict};
use crate::{Options, Range, Type, quantise};

/// Most columns of a state.
pub(crate) const COLUMNS_MAX: usize = 4_096;
/// Longest text or list of a state; each has room for that much in every row.
pub(crate) const LENGTH_MAX: u32 = 1_024;

impl Options {
    /// Stops the compiler when the attributes make no sense for a field of a state; the derive calls it in a constant.
    /// With the field that is named as velocity, if there is one.
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
    pub const fn check_state(&self, ty: &Type, velocity: Option<(&Type, &Options)>) {
        assert!(
            !self.fixed,
            "`fixed` is for messages; in a state every integer has its full width unless `range` makes it smaller"
        );
        check_lengths(ty, self);
        let leaf = bottom(ty, self);
        match (self.range, leaf) {
            (Range::Whole, _) => {}
            (Range::Integer { min, max }, Leaf::Integer { bits, signed }) => {
                let (least, most) = bounds(bits, signed);
                assert!(min <= max, "the range is empty: write `range = MIN..=MAX`");
                assert!(
                    least <= min && max <= most,
                    "the range reaches beyond the field's type"
                );
            }
            (Range::Integer { .. }, Leaf::Float { .. }) => {
                panic!("a range of floats needs a step: `range = MIN..=MAX, step = STEP`")
            }
            (Range::Float { min, max, step }, Leaf::Float { precision }) => {
                quantise::check(min, max, step, precision);
            }
            (Range::Float { .. }, Leaf::Integer { .. }) => panic!("`step` is for floats"),
            (Range::Angle { min, max, count }, Leaf::Float { precision }) => {
                quantise::check_angle(min, max, count, precision);
            }
            (Range::Angle { .. }, _) => panic!("`angle` is for floats: f32, f64"),
            _ => panic!("`range` is for integers and floats"),
        }
        self.check_sets(ty);
        self.check_movement(leaf);
        if let Some((other, options)) = velocity {
            assert!(
                number(bottom(other, options)),
                "the field named by `velocity` must hold integers or floats"
            );
            assert!(
                ty.width(self) == other.width(options),
                "the field named by `velocity` must have as many numbers as this one, and both or neither a step"
            );
        }
    }

    /// `rotation` and `bits`.
    #[track_caller]
    pub(crate) const fn check_sets(&self, ty: &Type) {
        let leaf = bottom(ty, self);
        if let Some(bits) = self.rotation {
            assert!(
                matches!(leaf, Leaf::Rotation),
                "`rotation` is for quaternions: [f32; 4] in the order x, y, z, w, or glam::Quat"
            );
            assert!(
                2 <= bits && bits <= 16,
                "`rotation = BITS` is the bits of each of three parts: 2 to 16"
            );
        }
        if let Some(count) = self.bits {
            assert!(
                matches!(leaf, Leaf::Bools | Leaf::Integer { signed: false, .. }),
                "`bits` is for integers without sign and arrays of bool"
            );
            assert!(
                matches!(self.range, Range::Whole),
                "`bits` and `range` exclude each other"
            );
            if let Leaf::Integer { bits, .. } = leaf {
                assert!(
                    1 <= count && count <= bits as u32,
                    "`bits = COUNT` is from 1 to the bits of the field's type"
                );
            }
        }
    }

    /// `predict`, `velocity`, `interpolate` and `tolerance`.
    #[track_caller]
    const fn check_movement(&self, leaf: Leaf) {
        let float = matches!(leaf, Leaf::Float { .. });
        let exact = float && matches!(self.range, Range::Whole);
        let number = number(leaf) && self.bits.is_none();
        let rotation = matches!(leaf, Leaf::Rotation);
        match self.predict {
            None | Some(Predict::Hold) => {}
            Some(_) => {
                assert!(
                    !exact,
                    "a float as it is cannot be predicted: write `range = MIN..=MAX, step = STEP`"
                );
                assert!(
                    number || rotation,
                    "`predict` is for integers, floats with a step, angles and rotations"
                );
            }
        }
        assert!(
            self.velocity.is_none() || number,
            "`velocity` is for integers and floats"
        );
        match self.interpolate {
            None | Some(Interpolate::None) => {}
            Some(Interpolate::Linear) => assert!(
                number || rotation,
                "`interpolate = linear` is for integers, floats and rotations"
            ),
            Some(Interpolate::Hermite) => assert!(
                float,
                "`interpolate = hermite` is for floats; rotations have `interpolate = rotation`"
            ),
            Some(Interpolate::Angle) => {
                assert!(float, "`interpolate = angle` is for floats");
            }
            Some(Interpolate::Rotation) => assert!(
                rotation,
                "`interpolate = rotation` is for quaternions: add `rotation = BITS`"
            ),
        }
        if let Some(tolerance) = self.tolerance {
            assert!(
                number || rotation,
                "`tolerance` is for integers, floats, angles and rotations"
            );
            assert!(
                tolerance >= 0.0 && tolerance.is_finite(),
                "the tolerance is a distance, 0 or more"
            );
        }
    }
}

/// The kind of a type at the bottom, for its attributes.
#[derive(Clone, Copy)]
enum Leaf {
    Integer { bits: u8, signed: bool },
    Float { precision: u32 },
    Rotation,
    Bools,
    Other,
}

const fn number(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Integer { .. } | Leaf::Float { .. })
}

/// Below `Option`, arrays and lists.
const fn bottom(ty: &Type, options: &Options) -> Leaf {
    match ty {
        Type::Integer { bits, signed } => Leaf::Integer {
            bits: *bits,
            signed: *signed,
        },
        Type::Float { bits: 32 } => Leaf::Float {
            precision: f32::MANTISSA_DIGITS,
        },
        Type::Float { .. } => Leaf::Float {
            precision: f64::MANTISSA_DIGITS,
        },
        Type::Array { element, len } => match element {
            Type::Float { .. } if options.rotation.is_some() && *len == 4 => Leaf::Rotation,
            Type::Bool => Leaf::Bools,
            _ => bottom(element, options),
        },
        Type::Optional(inner) | Type::List(inner) => bottom(inner, options),
        _ => Leaf::Other,
    }
}

/// Every text and list needs a `max`, which reaches the outermost only.
#[track_caller]
const fn check_lengths(ty: &Type, options: &Options) {
    match ty {
        Type::Text | Type::List(_) => {
            assert!(
                options.max.is_some(),
                "a String or Vec in a state needs its room: write `#[field(max = N)]`; lists of lists have none"
            );
            let max = options.state_max();
            assert!(1 <= max, "`max` must be at least 1");
            assert!(
                max <= LENGTH_MAX,
                "`max` may be 1,024 in a state: every row has room for it; send more in messages"
            );
            if let Type::List(element) = ty
                && !element.is_packed(options)
            {
                check_inside(element, &options.inside());
            }
        }
        Type::Array { element, .. } => check_lengths(element, options),
        Type::Optional(inner) => check_lengths(inner, options),
        _ => {
            assert!(options.max.is_none(), "`max` is for String and Vec");
            check_inside(ty, options);
        }
    }
}

/// Checks that what is inside of lists and tuples has its room, too.
#[track_caller]
const fn check_inside(ty: &Type, options: &Options) {
    match ty {
        Type::Tuple(parts) => {
            let mut index = 0;
            while index < parts.len() {
                check_lengths(&parts[index], &Options::NONE);
                index += 1;
            }
        }
        Type::Text | Type::List(_) | Type::Array { .. } | Type::Optional(_) => {
            check_lengths(ty, options);
        }
        _ => {}
    }
}

impl Type {
    /// Stops the compiler when a state is too large; the derive calls it in a constant.
    ///
    /// # Panics
    /// If it is.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check_width(&self) {
        assert!(
            self.width(&Options::NONE) <= COLUMNS_MAX,
            "a state may have 4,096 columns: shorten its texts and lists (`max = N`), or split it"
        );
    }
}

pub(super) const fn bounds(bits: u8, signed: bool) -> (i128, i128) {
    if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}
