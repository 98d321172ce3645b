//! Bodies of the fuzz targets: each takes bytes, drives one part of Muse with them and asserts what must hold, and what it may cost.

pub mod biobot_messages;
pub mod biobot_replay;
pub mod bits;
pub mod capi;
pub mod cost;
pub mod description;
pub mod handshake;
pub mod hostile_peer;
pub mod lockstep;
pub mod master_messages;
pub mod netcode_inputs;
pub mod operations;
pub mod packet;
pub mod partial;
pub mod range;
pub mod relay_v1_operations;
pub mod relay_v1_packet;
pub mod relay_v2_code;
pub mod relay_v2_operations;
pub mod relay_v2_packet;
pub mod relay_v2_rooms;
pub mod replay;
pub mod rp_host;
pub mod rp_packet;
pub mod schema;
pub mod session;
pub mod snapshot;
pub mod token;
pub mod web_link;

pub use cost::{Bound, Cost, Target};

/// All targets; each has a binary under `fuzz_targets/` and a corpus under `corpus/`.
pub const TARGETS: &[&Target] = &[
    &biobot_messages::TARGET,
    &biobot_replay::TARGET,
    &bits::TARGET,
    &capi::TARGET,
    &description::TARGET,
    &handshake::TARGET,
    &hostile_peer::TARGET,
    &lockstep::TARGET,
    &master_messages::TARGET,
    &netcode_inputs::TARGET,
    &operations::TARGET,
    &packet::TARGET,
    &partial::TARGET,
    &range::TARGET,
    &relay_v1_operations::TARGET,
    &relay_v1_packet::TARGET,
    &relay_v2_code::TARGET,
    &relay_v2_operations::TARGET,
    &relay_v2_packet::TARGET,
    &relay_v2_rooms::TARGET,
    &replay::TARGET,
    &rp_host::TARGET,
    &rp_packet::TARGET,
    &schema::TARGET,
    &session::TARGET,
    &snapshot::TARGET,
    &token::TARGET,
    &web_link::TARGET,
];

/// Prepares nothing.
pub fn no_setup() {}
