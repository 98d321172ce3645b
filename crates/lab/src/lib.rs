//! The laboratory: runs of the shipped netcode in virtual time, and pictures of what happened in them (the evaluation of
//! `docs/netcode.md`; NC-1 to NC-35).
//!
//! - [`stage`] puts a [`Server`](muse_netcode::Server) and any number of [`Client`](muse_netcode::Client)s onto a virtual network. Players
//!   follow from seeds, so a run is the same wherever and however often it is made.
//! - [`character`] is the little game that is played in them, and [`crowd`] its bots.
//! - [`figures`] makes one picture for each mechanism.
//! - [`plot`] draws them as SVG.
//!
//! Nothing here predicts, interpolates, extrapolates or rewinds: all of that is called in `muse_netcode`, so that what is shown is what
//! games get. A test holds it to that.
//!
//! `muse lab figures` writes all pictures to `docs/pictures`.

pub mod character;
pub mod crowd;
pub mod figures;
pub mod plot;
pub mod stage;

pub use figures::{Picture, pictures};

/// The page, so that its programs are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/netcode.md")]
struct Page;
