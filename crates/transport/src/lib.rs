//! The Muse protocol, sans-IO: secure connections with every delivery mode.

pub mod congestion;
mod crypto;

pub use crypto::{Entropy, SeededEntropy};
