//! The report of a role at the end of a run.

use serde::{Deserialize, Serialize};

/// The result line of one role. Fields that a role has nothing to say about are zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Unreliable messages that the library accepted.
    pub unreliable_sent: u64,
    /// Reliable messages that the library accepted.
    pub reliable_sent: u64,
    /// Unreliable messages that arrived; with an echo, those that came back.
    pub unreliable_received: u64,
    /// Reliable messages that arrived; with an echo, those that came back.
    pub reliable_received: u64,
    /// Reliable messages that came out of order or twice.
    pub disordered: u64,
    /// Seconds from the first message to the last.
    pub seconds: f64,
    /// W1: round-trip times of the echoes. W3 and W4: latency from send call to receive callback.
    pub latency_ms: LatencySummary,
}

/// A distribution of times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Median.
    pub p50: f32,
    /// 95th percentile.
    pub p95: f32,
    /// 99th percentile.
    pub p99: f32,
    /// Largest.
    pub max: f32,
}
