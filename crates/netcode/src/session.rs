//! A whole session in two types: [`Server`] and [`Client`], with everything between them in this crate's own packets.
//!
//! They hold no socket and no thread: bytes in, bytes out, over any link that carries datagrams. Dedicated server, listen
//! server, offline over memory, spectator and late join are the same two types, wired differently.

mod client;
mod delayed;
mod format;
mod ghost;
mod guest;
mod local;
mod remotes;
mod round_trips;
mod server;
mod spawns;

pub use client::Client;
pub use local::LocalClient;
pub use remotes::Remotes;
pub use server::{Server, Spawned};

use muse_wire::Duration;
use thiserror::Error;

use crate::clock::ClockConfig;
use crate::inputs::{InputBufferConfig, InputError};
use crate::interpolation::InterpolationConfig;
use crate::quality::QualityConfig;
use crate::receiver::Refused;
use crate::replication::PACKET_BYTES_MIN;
use crate::smoothing::SmoothingConfig;
use crate::snapshot::FormatError;

/// Settings of a session. Both sides must have the same tick; the rest is each side's own.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    tick: Duration,
    snapshot_interval: u32,
    packet_interval: u32,
    bytes_per_snapshot: usize,
    catch_up_max: u32,
    inputs: InputBufferConfig,
    clock: ClockConfig,
    interpolation: InterpolationConfig,
    smoothing: SmoothingConfig,
    quality: QualityConfig,
    spectator_delay: Duration,
    spawn_patience: Duration,
    spawn_fade: Duration,
}

impl SessionConfig {
    /// Makes the settings for ticks of this length.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick,
            snapshot_interval: 1,
            packet_interval: 1,
            bytes_per_snapshot: 16_384,
            catch_up_max: 5,
            inputs: InputBufferConfig::new(tick),
            clock: ClockConfig::new(tick),
            interpolation: InterpolationConfig::new(tick),
            smoothing: SmoothingConfig::default(),
            quality: QualityConfig::default(),
            spectator_delay: Duration::ZERO,
            spawn_patience: Duration::from_millis(100),
            spawn_fade: Duration::from_millis(150),
        }
    }

    /// The length of a tick.
    pub const fn tick(&self) -> Duration {
        self.tick
    }

    /// Ticks a second.
    pub(crate) fn tick_rate(&self) -> f64 {
        1e6 / self.tick.as_micros().max(1) as f64
    }
}

muse_wire::setters! { SessionConfig:
    /// Sets how long after it happened [`Server::watch_delayed`] shows the world, up to ten minutes. Default: none; costs the server
    /// a second world and a note of everything that changes in the meantime.
    spectator_delay: Duration = spectator_delay.min(SPECTATOR_DELAY_MAX),
    /// Sets how long after a tick's state has come the client still waits to be told of what its own player spawned in that tick, before it fades. Default:
    /// 100 ms; longer forgives more loss, and shows for longer what the server denied.
    spawn_patience: Duration,
    /// Sets how long it fades, and how long what the server knows differently takes to get to its place. Default: 150 ms.
    spawn_fade: Duration,
    /// Sets the ticks from one snapshot to the next. Default: 1; more saves bytes, and shows others that much later.
    snapshot_interval: u32 = snapshot_interval.max(1),
    /// Sets the ticks from one packet of a client to the next, 1 to 7, on both sides the same: each carries the inputs of so many ticks. Default:
    /// 1; more saves bytes where a datagram costs more than what is in it, and inputs wait for each other. What is lost is made
    /// good by the packet after it, which comes that much later: servers ask for inputs earlier when there is loss.
    packet_interval: u32 = packet_interval.clamp(1, PACKET_INTERVAL_MAX),
    /// Limits the bytes of a snapshot; [`Server::set_budget`] can say less. Default: 16,384; a smaller number spreads
    /// a late join over more ticks. At least 64, below which nothing would fit.
    bytes_per_snapshot: usize = bytes_per_snapshot.max(PACKET_BYTES_MIN),
    /// Limits the ticks that a server which fell behind simulates at once; time beyond that is let go, so that slow steps never cause more
    /// steps. Default: 5; more keeps the clock of the match after longer hitches, and makes each of them longer.
    catch_up_max: u32 = catch_up_max.max(1),
    /// Sets how the server buffers inputs.
    inputs: InputBufferConfig,
    /// Sets how the client's clock is steered.
    clock: ClockConfig,
    /// Sets how others are shown.
    interpolation: InterpolationConfig,
    /// Sets how the client's own player comes back after a correction.
    smoothing: SmoothingConfig,
    /// Sets what counts as a good connection.
    quality: QualityConfig,
}

/// Most ticks of inputs that wait for each other: two packets' worth has to fit into one.
const PACKET_INTERVAL_MAX: u32 = 7;
/// Longest delay of spectators.
const SPECTATOR_DELAY_MAX: Duration = Duration::from_secs(600);

/// The reason for which a packet was refused. Its sender is at fault, or the network; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// No such client has joined.
    #[error("the packet is of a client that has not joined")]
    UnknownClient,
    /// Its header is damaged.
    #[error("the packet's header is damaged")]
    Header,
    /// Its acknowledgement is damaged.
    #[error("the acknowledgement: {0}")]
    Acknowledgement(#[from] FormatError),
    /// Its inputs are damaged.
    #[error("the inputs: {0}")]
    Inputs(#[from] InputError),
    /// The snapshot in it was refused.
    #[error(transparent)]
    Snapshot(#[from] Refused),
}
