//! Two players who meet at a relay, over every pair of ten kinds of networks, in virtual time.
//!
//! The machines are those that ship: the relay, the links of a host and a guest, the short code, the transport's handshake and its channels. [`Kind`] says what a player
//! is behind, [`Pair`] who is behind what, [`Meeting`] lets them meet and play, and [`Trouble`] is what may happen to the way between them.

mod kind;
mod place;
mod player;
mod trial;

pub use kind::{Kind, TABLE, Way};
pub use place::Pair;
pub use trial::{Gap, Meeting, Met, Trouble};
