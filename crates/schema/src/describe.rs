//! The description of a type: data that prints as one line and hashes to one number.
//!
//! The line is the canonical form. Two types have the same hash when their lines are the same, so a mismatch can always
//! be shown by comparing lines. `docs/schema.md` defines the line.

use core::fmt;

use crate::{Options, Predict, Range, Template, fnv1a};

/// A message from outside: its id and its type.
///
/// ```
/// use muse_schema::Message;
/// #[derive(Message)]
/// #[message(id = 3)]
/// struct Hello {
///     #[field(max = 32)]
///     name: String,
///     color: [u8; 3],
/// }
/// assert_eq!(Hello::DESCRIPTOR.to_string(), "3 Hello { name: text max 32, color: [u8; 3] }");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descriptor {
    /// The message's id.
    pub id: u16,
    /// The message's type, a [`Type::Struct`] or [`Type::Enum`].
    pub ty: Type,
}

impl Descriptor {
    /// The name of the type.
    pub const fn name(&self) -> &'static str {
        match self.ty {
            Type::Struct { name, .. } | Type::Enum { name, .. } => name,
            _ => "",
        }
    }

    /// [`fnv1a`] of the line that the descriptor prints as.
    pub fn hash(&self) -> u64 {
        fnv1a(self.to_string().as_bytes())
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.ty)
    }
}

/// A type from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// `bool`
    Bool,
    /// `u8` to `i64`
    Integer {
        /// 8, 16, 32 or 64.
        bits: u8,
        /// True if it has a sign.
        signed: bool,
    },
    /// `f32`, `f64`
    Float {
        /// 32 or 64.
        bits: u8,
    },
    /// `String`
    Text,
    /// `Vec`
    List(&'static Type),
    /// An array.
    Array {
        /// The type of its elements.
        element: &'static Type,
        /// The number of elements.
        len: usize,
    },
    /// `Option`
    Optional(&'static Type),
    /// A tuple.
    Tuple(&'static [Type]),
    /// A struct of any form.
    Struct {
        /// Its name.
        name: &'static str,
        /// Its fields, in order.
        fields: &'static [Field],
    },
    /// An enum.
    Enum {
        /// Its name.
        name: &'static str,
        /// Its variants, in order; their position is their tag.
        variants: &'static [Variant],
    },
    /// Columns of a state that is written by hand.
    Opaque {
        /// Its name.
        name: &'static str,
        /// Its columns, in order.
        columns: &'static [Template],
    },
}

/// A field of a struct or variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Its name, or its position in a tuple struct.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Its attributes.
    pub options: Options,
}

/// A variant of an enum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

impl Type {
    /// [`fnv1a`] of the line that the type prints as.
    pub fn hash(&self) -> u64 {
        fnv1a(self.to_string().as_bytes())
    }

    /// Returns the number of bits of a set: `bits` without a count.
    #[doc(hidden)]
    pub const fn bits_all(&self) -> u32 {
        match self {
            Self::Integer { bits, .. } => *bits as u32,
            Self::Array { element, len } => match element {
                Self::Bool => *len as u32,
                _ => element.bits_all(),
            },
            Self::Optional(inner) | Self::List(inner) => inner.bits_all(),
            _ => 0,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Integer {
                bits,
                signed: false,
            } => write!(f, "u{bits}"),
            Self::Integer { bits, signed: true } => write!(f, "i{bits}"),
            Self::Float { bits } => write!(f, "f{bits}"),
            Self::Text => f.write_str("text"),
            Self::List(element) => write!(f, "[{element}]"),
            Self::Array { element, len } => write!(f, "[{element}; {len}]"),
            Self::Optional(inner) => write!(f, "{inner}?"),
            Self::Tuple(parts) => list(f, "(", parts, ")"),
            Self::Struct { name, fields } => {
                f.write_str(name)?;
                list(f, " { ", fields, " }")
            }
            Self::Enum { name, variants } => {
                f.write_str(name)?;
                list(f, " < ", variants, " >")
            }
            Self::Opaque { name, columns } => {
                f.write_str(name)?;
                list(f, " | ", columns, " |")
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.name, self.ty, self.options)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        list(f, " { ", self.fields, " }")
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fixed {
            f.write_str(" fixed")?;
        }
        if let Some(max) = self.max {
            write!(f, " max {max}")?;
        }
        match self.range {
            Range::Whole => {}
            Range::Integer { min, max } => write!(f, " range {min}..={max}")?,
            // The shortest digits that read back as the same number: the same on all platforms.
            Range::Float { min, max, step } => write!(f, " range {min}..={max} step {step}")?,
            Range::Angle { min, max, count } => write!(f, " angle {min}..={max} steps {count}")?,
        }
        if let Some(bits) = self.rotation {
            write!(f, " rotation {bits}")?;
        }
        if let Some(bits) = self.bits {
            write!(f, " bits {bits}")?;
        }
        match self.predict {
            None => {}
            Some(Predict::Hold) => f.write_str(" predict hold")?,
            Some(Predict::Linear) => f.write_str(" predict linear")?,
            Some(Predict::Quadratic) => f.write_str(" predict quadratic")?,
        }
        // Interpolation and tolerance are each side's own affair.
        self.velocity
            .map_or(Ok(()), |field| write!(f, " velocity {field}"))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.name.is_empty() { "" } else { ": " };
        let Self { name, min, max, .. } = self;
        write!(f, "{name}{separator}{:?} {min}..={max}", self.kind)
    }
}

/// Writes `items` between brackets; nothing of either when there are none.
fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    close: &str,
) -> fmt::Result {
    if items.is_empty() {
        return if open == "(" {
            f.write_str("()")
        } else {
            Ok(())
        };
    }
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    f.write_str(close)
}
