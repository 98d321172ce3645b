//! The answer of every function: a status, and words for the last error.

use std::borrow::Cow;
use std::ffi::c_char;
use std::io;

use muse::transport::{AdmissionError, SendError};

/// The answer of a function. Errors are less than zero, and `muse_error_text` has the words for the last one.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseStatus {
    /// Done.
    Ok = 0,
    /// There is nothing now: no event, nothing due, nothing to show.
    None = 1,
    /// A pointer that has to point somewhere is null.
    ErrorNull = -1,
    /// The handle names nothing: it was destroyed, belongs to another Muse, or is of another kind.
    ErrorStale = -2,
    /// The buffer is too short; the length that is needed has been told, and nothing was lost.
    ErrorShortBuffer = -3,
    /// An argument is out of its range, or a text is not UTF-8.
    ErrorArgument = -4,
    /// Another thread is in a call with the same Muse.
    ErrorBusy = -5,
    /// The library failed; this Muse can only be freed now.
    ErrorPanic = -6,
    /// The socket or a file failed.
    ErrorIo = -7,
    /// The connection was closed or never existed, or nobody waits for a decision there.
    ErrorNoConnection = -8,
    /// The connection has no such channel.
    ErrorNoChannel = -9,
    /// Too much waits on the channel already: send less, or later.
    ErrorQueueFull = -10,
    /// The message is longer than the config allows.
    ErrorTooLong = -11,
    /// The connection is about to close.
    ErrorClosing = -12,
    /// The config makes no sense; the text says why.
    ErrorConfig = -13,
    /// The text is no connect token, the grant goes beyond a limit, or the token of a client to admit is no longer good.
    ErrorToken = -14,
    /// The packet is not what this function reads.
    ErrorMalformed = -15,
    /// There are as many things as a Muse holds.
    ErrorFull = -16,
}

/// The meaning of a status in a few words, for any number. Never null; the text belongs to the library and lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn muse_status_text(status: i32) -> *const c_char {
    let text = match status {
        0 => c"ok",
        1 => c"nothing now",
        -1 => c"a pointer is null",
        -2 => c"the handle names nothing",
        -3 => c"the buffer is too short",
        -4 => c"an argument is out of its range",
        -5 => c"another thread is using this Muse",
        -6 => c"the library failed",
        -7 => c"the socket or a file failed",
        -8 => c"no such connection",
        -9 => c"no such channel",
        -10 => c"the channel's queue is full",
        -11 => c"the message is too long",
        -12 => c"the connection is closing",
        -13 => c"the config makes no sense",
        -14 => c"not a connect token",
        -15 => c"not a packet of this kind",
        -16 => c"too many things",
        _ => c"no status of this library",
    };
    text.as_ptr()
}

/// A status with its words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: MuseStatus,
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(status: MuseStatus, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    pub(crate) fn argument(text: &'static str) -> Self {
        Self::new(MuseStatus::ErrorArgument, text)
    }

    /// Puts an error's own words behind a status, for `map_err`.
    pub(crate) fn of<E: ToString>(status: MuseStatus) -> impl FnOnce(E) -> Self {
        move |error| Self::new(status, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::InvalidInput => MuseStatus::ErrorConfig,
            _ => MuseStatus::ErrorIo,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SendError> for Failure {
    /// Without words of its own where it can be frequent: a full queue is an everyday answer and should cost nothing.
    fn from(error: SendError) -> Self {
        let (status, text) = match error {
            SendError::NoConnection => (MuseStatus::ErrorNoConnection, "no such connection"),
            SendError::NoChannel { .. } => (MuseStatus::ErrorNoChannel, "no such channel"),
            SendError::QueueFull { .. } => {
                (MuseStatus::ErrorQueueFull, "the channel's queue is full")
            }
            SendError::TooLong { .. } => {
                (MuseStatus::ErrorTooLong, "longer than the config allows")
            }
            SendError::DeadlineOnPartial => (
                MuseStatus::ErrorArgument,
                "a message on a partially reliable channel cannot have a deadline",
            ),
            SendError::Closing => (MuseStatus::ErrorClosing, "the connection is closing"),
            other => return Self::new(MuseStatus::ErrorArgument, other.to_string()),
        };
        Self::new(status, text)
    }
}

impl From<AdmissionError> for Failure {
    fn from(error: AdmissionError) -> Self {
        let status = match error {
            AdmissionError::NotAsking => MuseStatus::ErrorNoConnection,
            _ => MuseStatus::ErrorToken,
        };
        Self::new(status, error.to_string())
    }
}

impl From<()> for MuseStatus {
    fn from((): ()) -> Self {
        Self::Ok
    }
}

impl From<bool> for MuseStatus {
    /// False is [`None`](Self::None): nothing came, nothing is due, nothing is of use.
    fn from(something: bool) -> Self {
        if something { Self::Ok } else { Self::None }
    }
}
