//! The errors on the way to bits and back.

use muse_wire::bits::BitError;
use thiserror::Error;

/// The reason for which a value could not be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too small.
    #[error("no room left for the message")]
    Full,
    /// An integer is outside the range declared for it.
    #[error("integer outside its declared range")]
    OutOfRange,
    /// A float with a declared range is not a number.
    #[error("not a number, where a range is declared")]
    NotANumber,
    /// A string or list is longer than declared.
    #[error("length {len} above the limit of {max}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The limit declared for the field.
        max: u32,
    },
    /// A list has elements that take no bits at all, so that its length could not be trusted.
    #[error("list of elements without content")]
    EmptyElements,
}

impl From<BitError> for EncodeError {
    fn from(error: BitError) -> Self {
        match error {
            BitError::End => Self::Full,
            _ => Self::OutOfRange,
        }
    }
}

/// The reason for which bytes are not an encoding of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("message cut short")]
    End,
    /// A number is outside the range declared for it.
    #[error("number outside its declared range")]
    OutOfRange,
    /// A number is written in a longer form than necessary.
    #[error("not the canonical encoding")]
    NotCanonical,
    /// A string or list is longer than declared.
    #[error("length {len} above the limit of {max}")]
    TooLong {
        /// Its length.
        len: u64,
        /// The limit declared for the field.
        max: u32,
    },
    /// An enum has no such variant.
    #[error("{name} has no variant {tag}")]
    UnknownVariant {
        /// The enum.
        name: &'static str,
        /// The number of the variant that was read.
        tag: u64,
    },
    /// A string is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A list has elements that take no bits at all, so that its length cannot be trusted.
    #[error("list of elements without content")]
    EmptyElements,
    /// There are bytes after the message, or the bits that fill the last byte are not zero.
    #[error("bytes left over after the message")]
    Trailing,
}

impl From<BitError> for DecodeError {
    fn from(error: BitError) -> Self {
        match error {
            BitError::End => Self::End,
            BitError::NotCanonical => Self::NotCanonical,
            _ => Self::OutOfRange,
        }
    }
}
