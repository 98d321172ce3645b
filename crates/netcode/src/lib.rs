//! The netcode of a fast game, for any engine: bytes in, bytes out (NC-1 to NC-35).
//!
//! Nothing here knows sockets or the transport: packets are slices of bytes, and any link that carries datagrams will do.

pub mod clock;
pub mod coder;
mod entity;
pub mod extrapolation;
pub mod inputs;
pub mod interest;
pub mod interpolation;
pub mod prediction;
pub mod quality;
pub mod rewind;
pub mod scheduler;
pub mod smoothing;
mod tick;

pub use entity::EntityId;
pub use tick::{Tick, TickTime};
