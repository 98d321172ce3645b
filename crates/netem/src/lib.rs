//! Seeded network conditioner and virtual network in virtual time.
//!
//! - [`Conditions`] say what one direction of a link does to datagrams; a [`Conditioner`] does it, sans-IO.
//! - [`Network`] joins any number of nodes by such links, shared pipes and NATs.
//!
//! `docs/netem.md` defines every knob exactly.

mod conditioner;
mod conditions;
mod math;
mod network;

pub use conditioner::{Cause, Conditioner, Counters, Damage, Fate, Fates, Packet};
pub use conditions::{Conditions, GilbertElliott, Jitter, Queue};
pub use network::{
    Delivery, NatId, NatKind, Network, NodeId, NodeStats, PipeId, Sighting, Stage, Traffic,
    Unrouted,
};
