//! Encodings of types: one derive gives a type an encoding, a description and a hash.
//!
//! [`Schema`] is for types inside messages, [`Message`] for messages themselves, which have an id as well. Both are
//! derived. The encoding is a string of bits without names or tags; `docs/schema.md` is its standard. Both sides
//! have to declare the same types, and the [`Registry`] lets them find out at connect, down to the field that differs.
//! [`State`] is for what is replicated, predicted and interpolated; see [below](#states).
//!
//! ```
//! use muse_schema::{Message, Schema};
//!
//! #[derive(Message, Debug, PartialEq)]
//! #[message(id = 7)]
//! struct Shot {
//!     shooter: u32,
//!     #[field(range = 0..=100)]
//!     damage: u8,
//!     #[field(max = 8)]
//!     hits: Vec<Position>,
//!     critical: bool,
//! }
//!
//! #[derive(Schema, Debug, PartialEq)]
//! struct Position {
//!     #[field(range = -500.0..=500.0, step = 0.01)]
//!     x: f32,
//!     #[field(range = -500.0..=500.0, step = 0.01)]
//!     y: f32,
//! }
//!
//! let shot = Shot { shooter: 9, damage: 80, hits: vec![Position { x: 1.5, y: -2.0 }], critical: true };
//! let mut bytes = Vec::new();
//! shot.encode(&mut bytes)?;
//! assert_eq!(bytes.len(), 7);
//! assert_eq!(Shot::decode(&bytes)?, shot);
//! assert_eq!(Shot::ID, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Attributes of fields
//! | attribute | on | meaning |
//! | --- | --- | --- |
//! | `fixed` | integers of 16 bits or more | always full width, for numbers that are rarely small |
//! | `range = MIN..=MAX` | integers | as many bits as the range needs; a value outside is an error |
//! | `range = MIN..=MAX, step = STEP` | floats | rounded to the nearest step; a value outside becomes the nearest inside |
//! | `angle = BITS` or `angle, step = STEP` | floats | an angle that wraps, in radians; of other units with the turn as `range = MIN..=MAX` |
//! | `rotation = BITS` | `[f32; 4]`, `glam::Quat` | a quaternion by its three smaller parts: 2 + 3 x BITS bits |
//! | `bits`, `bits = N` | unsigned integers, `[bool; N]` | a set of N bits |
//! | `max = N` | `String`, `Vec` | longest length; 65,535 by default |
//!
//! They reach through `Option`, arrays and `Vec` to what is inside; `max` stops at the first `Vec` or `String`.
//!
//! # States
//! A [`State`] is what an entity is at a tick: a row of integers, which netcode compares, predicts and codes. Its fields take
//! the same attributes, except that a value outside its range becomes the nearest inside, `fixed` makes no sense, and `max`
//! must be given. And these:
//!
//! | attribute | on | meaning |
//! | --- | --- | --- |
//! | `predict = hold`, `linear`, `quadratic` | numbers, angles, rotations | how it probably goes on from tick to tick; linear for floats with a step, angles and rotations, hold for the rest |
//! | `velocity = FIELD` | numbers | the field of the same type that is this one's change per second: rows are predicted by it, and beyond the last state the value goes on by it |
//! | `interpolate = none` | all | the old value until the new one is reached; so everything but floats |
//! | `interpolate = linear` | numbers, rotations | in a straight line; so floats |
//! | `interpolate = hermite` | floats | along the curve with the velocity declared |
//! | `interpolate = angle` | floats | the shorter way; so angles |
//! | `interpolate = rotation` | rotations | the shorter way at even speed; so rotations |
//! | `tolerance = DISTANCE` | numbers, angles, rotations (radians) | from where on a prediction was wrong; for arrays by distance in space. Without it any difference of the quantised value counts |
//!
//! A float without `range` is exact, to the bit. Interpolation and tolerance are no part of the description, as each side
//! may have its own.
//!
//! ```
//! use muse_schema::{Blend, State};
//!
//! #[derive(State, Clone, Debug, PartialEq)]
//! struct Player {
//!     #[field(range = -500.0..=500.0, step = 0.001, velocity = velocity, interpolate = hermite, tolerance = 0.05)]
//!     position: [f32; 3],
//!     #[field(range = -50.0..=50.0, step = 0.01)]
//!     velocity: [f32; 3],
//!     #[field(rotation = 10)]
//!     facing: [f32; 4],
//!     #[field(range = 0..=100)]
//!     health: u8,
//!     weapon: Option<Weapon>,
//! }
//!
//! #[derive(State, Clone, Debug, PartialEq)]
//! enum Weapon {
//!     Sword,
//!     Bow { arrows: u8 },
//! }
//!
//! let player = Player {
//!     position: [1.0004, 0.0, -2.5],
//!     velocity: [3.0, 0.0, 0.0],
//!     facing: [0.0, 0.0, 0.0, 1.0],
//!     health: 90,
//!     weapon: Some(Weapon::Bow { arrows: 7 }),
//! };
//! // What the other side gets.
//! let snapped = player.snapped();
//! assert_eq!(snapped.position, [1.0, 0.0, -2.5]);
//! assert_eq!(Player::from_row(&player.to_row())?, snapped);
//! assert!(!player.differs(&snapped), "less than the tolerance");
//! let later = Player { position: [1.3, 0.0, -2.5], ..player.clone() };
//! let between = player.blend(&later, Blend { share: 0.5, seconds: 0.1 });
//! assert!((between.position[0] - 1.15).abs() < 0.001);
//! # Ok::<(), muse_schema::DecodeError>(())
//! ```
//!
//! With the feature `glam`, its vectors and quaternions can be fields of messages and states.

// The derive names this crate from outside, also in this crate's own tests.
extern crate self as muse_schema;

mod containers;
mod describe;
mod difference;
mod error;
mod hash;
mod options;
mod primitives;
mod quantise;
mod registry;
mod state;
#[cfg(feature = "glam")]
mod vectors;

pub use describe::{Descriptor, Field, Type, Variant};
pub use difference::{Difference, diff};
pub use error::{DecodeError, EncodeError};
pub use hash::fnv1a;
pub use muse_schema_derive::{Message, Schema, State};
pub use options::{LENGTH_MAX_DEFAULT, Leaf, Options, Range};
pub use registry::{Registry, RegistryError};
pub use state::{
    Blend, Column, ColumnKind, Columns, Guard, Interpolate, Predict, Property, RowReader,
    RowWriter, State, Template,
};

/// The bit reader and writer that encodings are made of.
pub use muse_wire::bits::{BitReader, BitWriter, bits_for};

/// Largest message that [`Message::encode`] makes, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A type that can be part of a message. Derive it.
///
/// By hand it is needed for types of other crates only; pass `options` on to the parts, then `range` and `step` work
/// for them, too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema, so it cannot travel in a message",
    label = "this type cannot be encoded",
    note = "for a type of your own write `#[derive(Schema)]` above it",
    note = "ready-made are bool, integers of 8 to 64 bits, f32, f64, String, Vec, Option, arrays and tuples; \
            instead of usize use u32 or u64"
)]
pub trait Schema: Sized {
    /// The description of the type. A type that contains itself cannot be described, so it cannot travel;
    /// this also bounds how deep decoding goes.
    const TYPE: Type;

    /// The kind of this type at the bottom, which decides the attributes that a field may have.
    const LEAF: Leaf = Leaf::Other;

    /// True if the attribute `max` applies to this type.
    const TAKES_MAX: bool = false;

    /// The fewest bits that any value takes.
    fn bits_min(options: &Options) -> u64;

    /// Appends the value.
    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError>;

    /// Reads a value.
    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError>;

    /// Appends many values; bytes have a faster way.
    #[doc(hidden)]
    fn write_slice(
        items: &[Self],
        options: &Options,
        writer: &mut BitWriter<'_>,
    ) -> Result<(), EncodeError> {
        items
            .iter()
            .try_for_each(|item| item.write(options, writer))
    }

    /// Reads an array; quaternions are more than their floats.
    #[doc(hidden)]
    fn read_array<const N: usize>(
        options: &Options,
        reader: &mut BitReader<'_>,
    ) -> Result<[Self; N], DecodeError> {
        try_array(|| Self::read(options, reader))
    }

    /// Reads `len` values to the end of `items`, where room may have been made; bytes have a faster way.
    #[doc(hidden)]
    fn read_into(
        items: &mut Vec<Self>,
        len: usize,
        options: &Options,
        reader: &mut BitReader<'_>,
    ) -> Result<(), DecodeError> {
        for _ in 0..len {
            items.push(Self::read(options, reader)?);
        }
        Ok(())
    }
}

/// Makes an array of what a call gives for each element, until one fails.
#[inline]
fn try_array<T, const N: usize>(
    mut read: impl FnMut() -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let mut failure = None;
    let items: [Option<T>; N] = core::array::from_fn(|_| {
        if failure.is_some() {
            return None;
        }
        read().map_err(|error| failure = Some(error)).ok()
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(items.map(|item| item.expect("without a failure every element was read"))),
    }
}

/// A [`Schema`] with an id: what is sent and received. Derive it, with `#[message(id = N)]` above the type.
///
/// The id is not part of the encoding: the carrier of messages writes it in front.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not a message",
    note = "write `#[derive(Message)]` and `#[message(id = N)]` above it, with an id that no other message has"
)]
pub trait Message: Schema {
    /// The number that tells this message from the others of the game.
    const ID: u16;

    /// Id and description.
    const DESCRIPTOR: Descriptor = Descriptor {
        id: Self::ID,
        ty: Self::TYPE,
    };

    /// Appends the encoding to `bytes`, at most [`MESSAGE_BYTES_MAX`]. Allocates only if `bytes` is too small for it,
    /// and leaves it as it was on error.
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = bytes.len();
        // Doubling until it fits: the size is not known before, and a reused `bytes` soon has the capacity.
        let mut room = ENCODE_ROOM;
        loop {
            bytes.resize(start + room, 0);
            let result = self.encode_to(&mut bytes[start..]);
            let len = *result.as_ref().unwrap_or(&0);
            bytes.truncate(start + len);
            match result {
                Ok(_) => return Ok(()),
                Err(EncodeError::Full) if room < MESSAGE_BYTES_MAX => room *= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Encodes to the front of `buffer` and says how many bytes it took.
    fn encode_to(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = BitWriter::new(buffer);
        self.write(&Options::NONE, &mut writer)?;
        Ok(writer.finish())
    }

    /// Decodes exactly `bytes`. Never panics, and allocates no more than the declared limits and the bytes at hand
    /// justify.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = BitReader::new(bytes);
        let message = Self::read(&Options::NONE, &mut reader)?;
        reader.finish().map_err(|_| DecodeError::Trailing)?;
        Ok(message)
    }
}

/// Bytes that [`Message::encode`] tries first; it doubles up to exactly [`MESSAGE_BYTES_MAX`].
const ENCODE_ROOM: usize = 128;
