//! The laboratory: runs of the shipped netcode in virtual time, and pictures of what happened in them (the evaluation of
//! `docs/netcode.md`).
//!
//! - [`stage`] puts a [`Server`](muse_netcode::Server) and any number of [`Client`](muse_netcode::Client)s onto a virtual network. Players
//!   follow from seeds, so a run is the same wherever and however often it is made.
//! - [`character`] is the little game that is played in them, and [`crowd`] its bots.
//! - [`figures`] makes one picture for each mechanism.
//! - [`plot`] draws them as SVG.
//! - [`recording`] is what players' hands did, [`arena`] a match that is measured, [`grid`] the prototype's grid of networks over it, [`report`] a
//!   run as a page, [`compare`] two runs side by side, [`measurements`] what is written down of one, [`ab`] the prototype's beta
//!   test as experiments.
//! - [`truth`] compares what is shown with where bodies were.
//! - [`meet`] lets two players meet at a relay, over every pair of ten kinds of networks.
//! - [`sim`] is the whole system, with everything that goes wrong.
//!
//! Nothing here predicts, interpolates, extrapolates or rewinds: all of that is called in `muse_netcode`, so that what is shown is what
//! games get. A test holds it to that.
//!
//! [`command`] is `muse lab` on the command line; `muse lab figures` writes all pictures to `docs/pictures`.

pub mod ab;
pub mod arena;
pub mod character;
#[allow(
    clippy::disallowed_methods,
    reason = "commands measure how long runs take and drive real sockets; the runs have virtual time alone"
)]
pub mod command;
pub mod compare;
pub mod crowd;
pub mod figures;
pub mod grid;
pub mod measurements;
pub mod meet;
pub mod plot;
pub mod recording;
pub mod report;
mod sides;
pub mod sim;
pub mod stage;
pub mod truth;
