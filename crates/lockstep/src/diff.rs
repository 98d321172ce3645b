//! Walks two encodings of one type side by side and names the fields that differ.
//!
//! An encoding has no names in it, but the type's description has ([`Type`]), so any state that derives
//! [`Schema`](muse_schema::Schema) can be compared field by field without further code in the game: a report says
//! `units[17].position.x`, not "byte 412".

use core::fmt;
use std::collections::BTreeSet;

use muse_schema::{BitReader, Field, LENGTH_MAX_DEFAULT, Options, Range, Type, bits_for};
use muse_wire::bits::{BitError, Width, zag_zig};

/// A field that differs between two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the field: `units[17].position.x`.
    pub path: String,
    /// Its value in the first state.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} here, {} there",
            self.path, self.ours, self.theirs
        )
    }
}

/// The first `limit` fields that differ between two encodings of `ty`, in order of declaration. Bytes that are no encoding
/// end the walk.
///
/// ```
/// use muse_lockstep::{differences, encode};
/// use muse_schema::Schema;
///
/// #[derive(Schema)]
/// struct World { units: Vec<Unit> }
/// #[derive(Schema)]
/// struct Unit { health: u16, at: [i32; 2] }
///
/// let (mut ours, mut theirs) = (Vec::new(), Vec::new());
/// encode(&World { units: vec![Unit { health: 9, at: [1, 2] }] }, &mut ours)?;
/// encode(&World { units: vec![Unit { health: 9, at: [1, 5] }] }, &mut theirs)?;
/// let found = differences(&World::TYPE, &ours, &theirs, 8);
/// assert_eq!(found[0].to_string(), "units[0].at[1]: 2 here, 5 there");
/// # Ok::<(), muse_schema::EncodeError>(())
/// ```
pub fn differences(ty: &Type, ours: &[u8], theirs: &[u8], limit: usize) -> Vec<Difference> {
    let ours = flatten(ty, ours);
    let theirs = flatten(ty, theirs);
    let paths = |leaves: &[(String, String)]| -> BTreeSet<String> {
        leaves.iter().map(|(path, _)| path.clone()).collect()
    };
    let (has, has_there) = (paths(&ours), paths(&theirs));
    let mut found = Vec::new();
    let (mut one, mut two) = (ours.iter().peekable(), theirs.iter().peekable());
    while found.len() < limit {
        let absent = || ABSENT.to_owned();
        // A part that one side lacks is passed over until both are in step again.
        let (path, here, there) = match (one.peek(), two.peek()) {
            (Some(a), b) if !has_there.contains(&a.0) || b.is_none() => (
                a.0.clone(),
                one.next().map_or_else(absent, |leaf| leaf.1.clone()),
                absent(),
            ),
            (a, Some(b)) if !has.contains(&b.0) || a.is_none() => (
                b.0.clone(),
                absent(),
                two.next().map_or_else(absent, |leaf| leaf.1.clone()),
            ),
            (Some(a), Some(b)) => {
                let both = (a.0.clone(), a.1.clone(), b.1.clone());
                one.next();
                two.next();
                both
            }
            _ => break,
        };
        if here != there {
            found.push(Difference {
                path,
                ours: here,
                theirs: there,
            });
        }
    }
    found
}

/// Every field of an encoding with its value, one to a line.
pub fn describe(ty: &Type, bytes: &[u8]) -> String {
    let line = |(path, value): (String, String)| format!("{path} = {value}\n");
    flatten(ty, bytes).into_iter().map(line).collect()
}

/// True if a type's encoding keeps every bit of its values: no float in it is rounded to steps. A state must be lossless, or players who
/// join are given another state than everybody else has.
///
/// ```
/// #[derive(muse_schema::Schema)]
/// struct Rounded { #[field(range = 0.0..=1.0, step = 0.01)] x: f32 }
/// use muse_schema::Schema;
/// assert!(muse_lockstep::is_lossless(&u32::TYPE) && !muse_lockstep::is_lossless(&Rounded::TYPE));
/// ```
pub fn is_lossless(ty: &Type) -> bool {
    let fields_are = |fields: &[Field]| {
        fields.iter().all(|field| {
            !matches!(field.options.range(), Range::Float { .. }) && is_lossless(&field.ty)
        })
    };
    match ty {
        Type::List(element) | Type::Optional(element) | Type::Array { element, .. } => {
            is_lossless(element)
        }
        Type::Tuple(parts) => parts.iter().all(is_lossless),
        Type::Struct { fields, .. } => fields_are(fields),
        Type::Enum { variants, .. } => variants.iter().all(|variant| fields_are(variant.fields)),
        _ => true,
    }
}

/// All leaves of an encoding, as path and value.
fn flatten(ty: &Type, bytes: &[u8]) -> Vec<(String, String)> {
    let mut walk = Walk {
        reader: BitReader::new(bytes),
        path: String::new(),
        leaves: Vec::new(),
    };
    if walk.value(ty, &Options::NONE).is_err() {
        let path = core::mem::take(&mut walk.path);
        walk.leaf_at(path, "unreadable".to_owned());
    }
    walk.leaves
}

struct Walk<'a> {
    reader: BitReader<'a>,
    path: String,
    leaves: Vec<(String, String)>,
}

impl Walk<'_> {
    fn value(&mut self, ty: &Type, options: &Options) -> Result<(), BitError> {
        match ty {
            Type::Bool => {
                let value = self.reader.bool()?;
                self.leaf(value.to_string());
            }
            Type::Integer { bits, signed } => {
                let value = self.integer(*bits, *signed, options)?;
                self.leaf(value.to_string());
            }
            Type::Float { bits } => {
                let value = self.float(*bits, options)?;
                self.leaf(value);
            }
            Type::Text => {
                let mut bytes = vec![0; self.length(options)?];
                self.reader.bytes(&mut bytes)?;
                self.leaf(format!("{:?}", String::from_utf8_lossy(&bytes)));
            }
            Type::List(element) => {
                let len = self.length(options)?;
                self.leaf_at(format!("{}.len", self.path), len.to_string());
                let inside = without_max(options);
                for index in 0..len {
                    self.inside(&format!("[{index}]"), element, &inside)?;
                }
            }
            Type::Array { element, len } => {
                for index in 0..*len {
                    self.inside(&format!("[{index}]"), element, options)?;
                }
            }
            Type::Optional(inner) => match self.reader.bool()? {
                true => self.value(inner, options)?,
                false => self.leaf("none".to_owned()),
            },
            Type::Tuple(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    self.inside(&format!(".{index}"), part, &Options::NONE)?;
                }
            }
            Type::Struct { fields, .. } => self.fields(fields)?,
            Type::Enum { variants, .. } => {
                let last = variants.len().saturating_sub(1) as u64;
                let tag = self.reader.bits(bits_for(last))?;
                let variant = variants.get(tag as usize).ok_or(BitError::OutOfRange)?;
                self.leaf(variant.name.to_owned());
                self.fields(variant.fields)?;
            }
            _ => return Err(BitError::OutOfRange),
        }
        Ok(())
    }

    fn fields(&mut self, fields: &[Field]) -> Result<(), BitError> {
        for field in fields {
            let dot = if self.path.is_empty() { "" } else { "." };
            self.inside(&format!("{dot}{}", field.name), &field.ty, &field.options)?;
        }
        Ok(())
    }

    /// Walks a part with its name appended to the path. A path left behind by an error says where it happened.
    fn inside(&mut self, name: &str, ty: &Type, options: &Options) -> Result<(), BitError> {
        let len = self.path.len();
        self.path.push_str(name);
        self.value(ty, options)?;
        self.path.truncate(len);
        Ok(())
    }

    fn leaf(&mut self, value: String) {
        self.leaf_at(self.path.clone(), value);
    }

    fn leaf_at(&mut self, path: String, value: String) {
        self.leaves.push((path, value));
    }

    fn integer(&mut self, bits: u8, signed: bool, options: &Options) -> Result<i128, BitError> {
        if let Range::Integer { min, max } = options.range() {
            let span = (max - min) as u64;
            return Ok(min + i128::from(self.reader.bits(bits_for(span))?));
        }
        let width = match bits {
            _ if options.is_fixed() => None,
            16 => Some(Width::Bits16),
            32 => Some(Width::Bits32),
            64 => Some(Width::Bits64),
            _ => None,
        };
        let raw = match width {
            Some(width) => self.reader.varint(width)?,
            None => self.reader.bits(u32::from(bits))?,
        };
        Ok(match (signed, width) {
            (false, _) => i128::from(raw),
            (true, Some(_)) => i128::from(zag_zig(raw)),
            // Two's complement: the sign is moved to the top and back.
            (true, None) => {
                let shift = 64 - u32::from(bits);
                i128::from((raw << shift) as i64 >> shift)
            }
        })
    }

    /// A float with its bits: two that print alike may still differ.
    fn float(&mut self, bits: u8, options: &Options) -> Result<String, BitError> {
        if let Range::Float { min, max, step } = options.range() {
            let quotient = (max - min) / step;
            let near = quotient.round();
            let whole = (quotient - near).abs() <= quotient * 1e-9;
            let steps = if whole { near } else { quotient.ceil() };
            let index = self.reader.bits(bits_for(steps as u64))?;
            return Ok(format!("{}", min + index as f64 * step));
        }
        let raw = self.reader.bits(u32::from(bits))?;
        Ok(match bits {
            32 => format!("{:?} (0x{raw:08x})", f32::from_bits(raw as u32)),
            _ => format!("{:?} (0x{raw:016x})", f64::from_bits(raw)),
        })
    }

    fn length(&mut self, options: &Options) -> Result<usize, BitError> {
        let max = options.length_limit().unwrap_or(LENGTH_MAX_DEFAULT);
        let len = match max {
            0..=255 => self.reader.bits(bits_for(u64::from(max)))?,
            256..=65_535 => self.reader.varint(Width::Bits16)?,
            _ => self.reader.varint(Width::Bits32)?,
        };
        // A list longer than the remaining bits can hold is not walked, so bad bytes cost no memory.
        if len > u64::from(max) || len > self.reader.remaining() {
            return Err(BitError::OutOfRange);
        }
        Ok(len as usize)
    }
}

/// The attributes that reach into a list: its length was for the list itself.
fn without_max(options: &Options) -> Options {
    let inside = match options.range() {
        Range::Integer { min, max } => Options::NONE.integer_range(min, max),
        Range::Float { min, max, step } => Options::NONE.float_range(min, max, step),
        _ => Options::NONE,
    };
    if options.is_fixed() {
        inside.fixed()
    } else {
        inside
    }
}

const ABSENT: &str = "absent";

#[cfg(test)]
mod tests {
    use muse_schema::Schema;

    use super::*;
    use crate::game::encode;

    #[derive(Clone, Schema)]
    struct Everything {
        flag: bool,
        small: u8,
        minus: i8,
        wide: i64,
        #[field(fixed)]
        fixed: i32,
        #[field(range = -5..=5)]
        ranged: i16,
        exact: f32,
        double: f64,
        name: String,
        #[field(max = 4)]
        list: Vec<Part>,
        array: [u16; 3],
        maybe: Option<u32>,
        pair: (u8, bool),
    }

    #[derive(Clone, Schema)]
    enum Part {
        Nothing,
        Wheel { spokes: u16 },
    }

    fn everything() -> Everything {
        Everything {
            flag: true,
            small: 200,
            minus: -3,
            wide: -5_000_000_000,
            fixed: -7,
            ranged: -5,
            exact: 0.1,
            double: -2.5,
            name: "Ada".to_owned(),
            list: vec![Part::Nothing, Part::Wheel { spokes: 12 }],
            array: [1, 2, 300],
            maybe: Some(9),
            pair: (4, false),
        }
    }

    fn bytes(value: &Everything) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(value, &mut bytes).expect("it encodes");
        bytes
    }

    #[test]
    fn every_kind_of_field_is_read() {
        let text = describe(&Everything::TYPE, &bytes(&everything()));
        let expected = "flag = true\nsmall = 200\nminus = -3\nwide = -5000000000\nfixed = -7\nranged = -5\n\
            exact = 0.1 (0x3dcccccd)\ndouble = -2.5 (0xc004000000000000)\nname = \"Ada\"\nlist.len = 2\n\
            list[0] = Nothing\nlist[1] = Wheel\nlist[1].spokes = 12\narray[0] = 1\narray[1] = 2\narray[2] = 300\n\
            maybe = 9\npair.0 = 4\npair.1 = false\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn one_changed_field_is_the_one_named() {
        let first = everything();
        let mut second = first.clone();
        second.list[1] = Part::Wheel { spokes: 13 };
        let found = differences(&Everything::TYPE, &bytes(&first), &bytes(&second), 8);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "list[1].spokes: 12 here, 13 there");
    }

    #[test]
    fn what_only_one_side_has_is_named_as_absent() {
        let first = everything();
        let mut second = first.clone();
        second.list.push(Part::Nothing);
        second.pair.0 = 5;
        let found = differences(&Everything::TYPE, &bytes(&first), &bytes(&second), 8);
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = [
            "list.len: 2 here, 3 there",
            "list[2]: absent here, Nothing there",
            "pair.0: 4 here, 5 there",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn bad_bytes_end_the_walk() {
        let found = differences(&Everything::TYPE, &bytes(&everything()), &[1, 2], 100);
        assert!(
            found
                .iter()
                .any(|difference| difference.theirs == "unreadable")
        );
    }
}
