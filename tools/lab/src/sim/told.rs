//! The settings of a simulation, and its report.

use std::fmt;

use muse_wire::{Duration, Instant};

use super::aid::PARTS;
use super::game::Game;

/// The settings of a simulation.
///
/// ```
/// use muse_lab::sim::{Sim, SimConfig};
/// use muse_wire::Duration;
/// let config = SimConfig::new(3).players(8).length(Duration::from_secs(20));
/// let told = Sim::new(config).run().expect("every promise is kept");
/// assert!(told.matches > 0 && told.messages > 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SimConfig {
    pub(super) seed: u64,
    pub(super) players: u32,
    pub(super) length: Duration,
    pub(super) troubles: bool,
    pub(super) game: Game,
    pub(super) planted_one_in: Option<u32>,
    pub(super) stopwatch: Option<fn() -> std::time::Duration>,
}

impl SimConfig {
    /// 100 players for two minutes, with troubles. Everything follows from the seed.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            players: 100,
            length: Duration::from_secs(120),
            troubles: true,
            game: Game::Stub,
            planted_one_in: None,
            stopwatch: None,
        }
    }

    /// A clock, by which [`Told::spent`] is measured. Default: none, so that a simulation reports the same every time.
    pub const fn stopwatch(mut self, clock: fn() -> std::time::Duration) -> Self {
        self.stopwatch = Some(clock);
        self
    }

    /// Plants a bug: one of so many reliable messages is lost between the transport and the game. Default: none.
    pub const fn plant(mut self, one_in: u32) -> Self {
        self.planted_one_in = Some(one_in);
        self
    }
}

muse_wire::setters! { const SimConfig:
    /// Sets the number of players. Default: 100; time grows with them.
    players: u32 = if players < 2 { 2 } else { players },

    /// For how long, besides two minutes of quiet at the end in which everybody comes to rest. Default: two minutes.
    length: Duration,

    /// Sets whether anything goes wrong at all. Default: it does.
    troubles: bool,

    /// Sets the game. Default: a stub; Biobot takes several times as long.
    game: Game,
}

/// The report of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Virtual time.
    pub time: Duration,
    /// Virtual time that players spent in matches, all together.
    pub played: Duration,
    /// Matches made.
    pub matches: u64,
    /// Messages that arrived on channels that promise something.
    pub messages: u64,
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Those among them that came to the relay.
    pub relayed: u64,
    /// Crashes of players' programs, of game servers, of masters and of the relay.
    pub crashes: [u64; 4],
    /// Outages of links.
    pub outages: u64,
    /// Changes of address.
    pub address_changes: u64,
    /// Forged, damaged and repeated datagrams.
    pub forged: u64,
    /// The time of each part in the steps that were measured: see [`PARTS`].
    pub spent: [std::time::Duration; PARTS.len()],
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Fails again with it.
    pub seed: u64,
    /// When.
    pub at: Instant,
    /// Which.
    pub what: String,
    /// The events before it.
    pub trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trace {
            writeln!(f, "  {line}")?;
        }
        let (seed, at, what) = (self.seed, self.at.as_secs_f64(), &self.what);
        write!(f, "seed {seed} fails at {at:.3} s: {what}")
    }
}
