//! The Muse protocol, sans-IO: secure connections with every delivery mode.

pub mod congestion;
mod crypto;
mod handshake;
mod parity;
pub mod token;

pub use crypto::{Entropy, InvalidPublicKey, SeededEntropy, ServerKey, ServerPublicKey};
pub use handshake::{HandshakeCounters, HandshakeLimits, Refusal};
