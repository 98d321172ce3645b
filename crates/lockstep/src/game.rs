//! The rules of a game: its state, one step, and the guess of a missing input.

use core::fmt::Debug;

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema};

use crate::frame::{Frame, Seat};

/// A deterministic game: the state and its step. The same state and the same inputs give the same state, on every machine.
///
/// Derive [`Schema`] for the state. Its encoding is what checksums are taken of, what travels to those who join, and what a
/// report of a desynchronisation names fields by. So no field may be rounded (`step`): [`is_lossless`](crate::is_lossless) tells.
///
/// `Clone::clone_from` is called once a frame. A state of plain fields and arrays is copied as memory; for a state with
/// `Vec`s write `clone_from` by hand, field by field, and it takes no memory either.
///
/// ```
/// use muse_lockstep::{DeterministicGame, Step};
/// use muse_schema::Schema;
///
/// #[derive(Clone, Schema)]
/// struct Race {
///     metres: [u32; 2],
/// }
///
/// impl DeterministicGame for Race {
///     type Input = bool;
///     type Event = &'static str;
///
///     fn step(&mut self, step: &mut Step<'_, Self>) {
///         for (seat, metres) in self.metres.iter_mut().enumerate() {
///             *metres += u32::from(step.input(seat) == Some(&true));
///             if *metres == 100 {
///                 step.emit("finish");
///             }
///         }
///     }
/// }
/// ```
pub trait DeterministicGame: Clone + Schema {
    /// A player's input in a frame. In rollback what is held (buttons, sticks); in lockstep the commands of a turn.
    type Input: Schema + Clone + PartialEq + Default + Debug;
    /// Something that a step emits, for sounds, effects and scores. `()` if nothing needs to be told.
    type Event: Clone + PartialEq + Debug;

    /// Runs one step. Reads nothing but the state and the inputs.
    fn step(&mut self, step: &mut Step<'_, Self>);

    /// Predicts an input that has not arrived, `age` frames (from 1) after the last known one. It also replaces the
    /// input of a player who is late ([`Late::Repeat`](crate::Late::Repeat)), so it must be as deterministic as a step.
    /// By default the last input again; a game of commands returns none.
    fn predict(last: &Self::Input, age: u32) -> Self::Input {
        let _ = age;
        last.clone()
    }

    /// The input `lost` came too late and another stood in for it; `next` is the player's next one. A game of commands puts
    /// the lost ones in front. By default they are forgotten, as is right for what is held.
    fn carry_over(lost: &Self::Input, next: &mut Self::Input) {
        let _ = (lost, next);
    }

    /// Returns a checksum of the state. By default one of its encoding, for which `scratch` is used.
    fn checksum(&self, scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        // A state that cannot be encoded has the checksum of what could not be.
        let _ = encode(self, scratch);
        crate::checksum::checksum(scratch)
    }
}

/// The inputs of a step, and the events that it emits.
#[derive(Debug)]
pub struct Step<'a, G: DeterministicGame> {
    frame: Frame,
    inputs: &'a [Option<G::Input>],
    events: &'a mut Vec<G::Event>,
}

impl<'a, G: DeterministicGame> Step<'a, G> {
    /// A step of this frame. `inputs` has one entry per seat, `None` where nobody sits.
    pub fn new(
        frame: Frame,
        inputs: &'a [Option<G::Input>],
        events: &'a mut Vec<G::Event>,
    ) -> Self {
        Self {
            frame,
            inputs,
            events,
        }
    }

    /// The frame (rollback) or turn (lockstep).
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// Returns the input of the player in this seat; `None` when nobody sits there (any more).
    #[inline]
    pub fn input(&self, seat: usize) -> Option<&'a G::Input> {
        self.inputs.get(seat)?.as_ref()
    }

    /// Returns the players who are there, in order of seats.
    pub fn players(&self) -> impl Iterator<Item = (Seat, &'a G::Input)> + use<'a, G> {
        let with_seat = |(index, input): (usize, &'a Option<G::Input>)| {
            input.as_ref().map(|input| (Seat(index as u8), input))
        };
        self.inputs.iter().enumerate().filter_map(with_seat)
    }

    /// Emits an event.
    #[inline]
    pub fn emit(&mut self, event: G::Event) {
        if self.events.len() < EVENTS_PER_FRAME_MAX {
            self.events.push(event);
        }
    }
}

/// Appends the encoding of a value to `bytes`.
pub fn encode(value: &impl Schema, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = bytes.len();
    let mut room = bytes.capacity().saturating_sub(start).max(ENCODE_ROOM);
    loop {
        bytes.resize(start + room, 0);
        let mut writer = BitWriter::new(&mut bytes[start..]);
        match value.write(&Options::NONE, &mut writer) {
            Ok(()) => {
                let len = writer.finish();
                bytes.truncate(start + len);
                return Ok(());
            }
            Err(EncodeError::Full) if room < STATE_BYTES_LIMIT => {
                bytes.truncate(start);
                room *= 2;
            }
            Err(error) => {
                bytes.truncate(start);
                return Err(error);
            }
        }
    }
}

/// Decodes exactly `bytes`.
pub fn decode<T: Schema>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = BitReader::new(bytes);
    let value = T::read(&Options::NONE, &mut reader)?;
    reader.finish().map_err(|_| DecodeError::Trailing)?;
    Ok(value)
}

/// Events of one frame that are kept; more are dropped, on every machine alike.
pub const EVENTS_PER_FRAME_MAX: usize = 256;
/// Largest encoding of a state.
pub const STATE_BYTES_LIMIT: usize = 16 * 1024 * 1024;
const ENCODE_ROOM: usize = 256;
