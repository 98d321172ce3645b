//! Vocabulary of Muse, shared by every other crate.
//!
//! Cores in Muse are *sans-IO*: they own no socket, thread or clock. What they exchange with the outside is named
//! here: [`Instant`] and [`Duration`] for time, [`Datagram`] and [`Transmit`] for bytes, and [`Machine`] for
//! the order in which a driver calls them. The rest is what wire formats are made of: [`bytes`] and
//! [`bits`] readers that cannot read past the end, modular [`sequence`] numbers, an adaptive binary
//! [`range`] coder, and the [`partial`] reliability receiver that MUSE-RP and the transport share. Limits are made of [`rate`]s and of
//! parts of addresses ([`net`]); maps with keys that strangers choose are [`keyed`]. Machines say what they do with [`log!`], behind the feature `tracing`.
//!
//! ```
//! use muse_wire::{Duration, Instant};
//! let start = Instant::from_millis(10);
//! assert_eq!(start + Duration::from_millis(5) - start, Duration::from_micros(5_000));
//! ```

pub mod bits;
pub mod bytes;
pub mod keyed;
pub mod log;
pub mod machine;
mod named;
pub mod net;
pub mod partial;
pub mod range;
pub mod rate;
pub mod sequence;
mod setters;
pub mod time;

pub use machine::{Datagram, Ecn, Link, Machine, Transmit};
pub use time::{Duration, Instant};
