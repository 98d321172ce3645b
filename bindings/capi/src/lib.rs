//! Muse for C, and for every engine that can call C.
//!
//! A [`Muse`] owns everything that is made with it; what it owns is named by handles, numbers that are never used again, so that
//! a stale one is an error code and never a crash. There is no global state, no thread of the library's and no callback: the
//! caller polls. Each function catches panics at the border. `include/muse.h` is made of these files by cbindgen and holds
//! the rules of ownership and threads; the gate keeps it fresh.

mod clock;
mod config;
mod context;
mod endpoint;
mod event;
mod interpolation;
mod memory;
mod stats;
mod status;
mod token;

pub use clock::*;
pub use config::*;
pub use context::*;
pub use endpoint::*;
pub use event::*;
pub use interpolation::*;
pub use stats::*;
pub use status::*;
pub use token::*;
