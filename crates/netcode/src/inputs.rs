//! Inputs of players, on their way to the server.
//!
//! A packet carries the input of the newest tick and some before it, each coded against its neighbour, so that a lost packet costs
//! nothing if the next one comes in time ([`InputSender`]). The server keeps a few ticks of each client's inputs and takes one a
//! tick ([`InputBuffer`]); when one is missing it repeats the last, and the game can see that ([`InputForTick`]). The buffer
//! measures how packets arrive and reports to the client when to send ([`InputReport`]), so that the wait in it is as short as loss and
//! jitter allow. [`Sampled`] holds several inputs in one tick for games that read the mouse in each frame.

mod buffer;
mod packet;
mod report;
mod sampled;
mod sender;

pub use buffer::{InputBuffer, InputBufferConfig, InputCounters, InputForTick};
pub use packet::InputError;
pub(crate) use report::Heard;
pub use report::{InputReport, Stamp};
pub use sampled::Sampled;
pub use sender::InputSender;

use muse_schema::Schema;

/// The input of a player for one tick: any type with a schema, whose default is to do nothing.
pub trait Input: Schema + Clone + PartialEq + Default {}

impl<T: Schema + Clone + PartialEq + Default> Input for T {}

/// Longest encoding of one input, in bytes.
pub const INPUT_BYTES_MAX: usize = 64;
/// Most inputs in one packet.
pub const INPUTS_PER_PACKET_MAX: usize = 15;
