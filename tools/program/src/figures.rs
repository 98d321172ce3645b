//! The figures that `muse bots --figures` prints and that benchmarks and the laboratory read.

use serde::{Deserialize, Serialize};

/// Traffic and prediction of one bot in steady play.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PlayerFigures {
    /// Seconds of play that were counted.
    pub played_s: f64,
    /// Kilobits a second that were sent: UDP payload, encryption and everything included.
    pub up_kbit_s: f64,
    /// Kilobits a second that were received.
    pub down_kbit_s: f64,
    /// Datagrams a second that were received.
    pub datagrams_down_s: f64,
    /// Enemies alive, on average.
    pub enemies_mean: f64,
    /// The fewest enemies alive at any time.
    pub enemies_min: usize,
    /// Round-trip time at the end.
    pub rtt_ms: f32,
    /// Jumps of the clock.
    pub jumps: u64,
    /// States of the server that the bot had predicted differently.
    pub corrected: u64,
    /// States of the server that the bot had predicted exactly.
    pub confirmed: u64,
}
