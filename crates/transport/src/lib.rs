//! The Muse protocol, sans-IO: secure connections with every delivery mode.

pub mod congestion;
mod crypto;
mod parity;

pub use crypto::{Entropy, SeededEntropy};
