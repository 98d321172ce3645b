//! Biobot: two robots that escaped an AI, everyone against everyone, and two teams with a ball. The sample game of Muse.
//!
//! The simulation is here, whole and without IO: the same code runs on the server, in the browser, in bots and in tests. [`Stage`] is the
//! server's side of a match, [`Player`] a client's, [`Practice`] both in one program. Begin with [`Rules`], which is what both
//! sides run.

pub mod ball;
pub mod bots;
pub mod cheats;
pub mod collision;
mod command;
pub mod enemies;
pub mod level;
pub mod messages;
mod movement;
pub mod mover;
pub mod nav;
pub mod net;
pub mod player;
mod practice;
pub mod replay;
mod rules;
pub mod stage;
mod states;
#[cfg(feature = "table")]
pub mod table;
pub mod weapons;

pub use command::{Command, Place};
pub use level::{Level, LevelError};
pub use messages::{FromPlayer, ToPlayer};
pub use movement::Movement;
pub use player::Player;
pub use practice::Practice;
pub use rules::{Effect, Rules, Surroundings};
pub use stage::{Audience, Outcome, Profile, Stage, StageConfig};
pub use states::{
    AIM_TICKS, BALL_RADIUS, Ball, Bolt, Device, EYE_HEIGHT, Enemy, HEALTH_MAX, KindIds, Mode,
    Phase, ROBOT_HEIGHT, ROBOT_RADIUS, Robot, Round, SLOTS_MAX, Species, Stance, kinds, kinds_of,
    team_of,
};

use muse::netcode::SessionConfig;
use muse::netcode::clock::ClockConfig;
use muse::netcode::inputs::InputBufferConfig;
use muse::netcode::interpolation::InterpolationConfig;
use muse::netcode::quality::QualityConfig;
use muse::netcode::smoothing::SmoothingConfig;
use muse::schema::{Schema, State, fnv1a};
use muse::wire::Duration;

/// Length of a tick: 50 a second.
pub const TICK: Duration = Duration::from_millis(20);
/// The same in seconds.
pub const TICK_SECONDS: f32 = 0.02;
/// Ticks of a second.
pub const TICKS_PER_SECOND: u32 = 50;
/// Ticks from one snapshot to the next: 25 a second.
pub const SNAPSHOT_TICKS: u32 = 2;
/// Ticks from one packet of a player to the next: 25 a second.
pub const PACKET_TICKS: u32 = 2;
/// The protocol id of this game at the transport: `biob`.
pub const PROTOCOL: u32 = 0x6269_6f62;
/// Longest message that either side takes, in bytes: packets of a session have up to 4,096, messages up to 1,024. Recordings do not travel.
pub const MESSAGE_MAX: usize = 8 << 10;
/// Memory that received messages of one player may take.
pub const CONNECTION_MEMORY: usize = 256 << 10;
/// Memory that received messages of all players may take.
pub const ENDPOINT_MEMORY: usize = 16 << 20;

/// Returns everything that both sides must share, a line each: messages, states, rules and the levels that come with the game. The transport
/// compares it at connect, so that a player with another version is told so rather than left to wait.
pub fn description() -> String {
    let types = [
        ("message player", <FromPlayer as Schema>::TYPE),
        ("message server", <ToPlayer as Schema>::TYPE),
        ("input type", <Command as Schema>::TYPE),
        ("state robot", <Robot as State>::TYPE),
        ("state enemy", <Enemy as State>::TYPE),
        ("state device", <Device as State>::TYPE),
        ("state bolt", <Bolt as State>::TYPE),
        ("state round", <Round as State>::TYPE),
        ("state ball", <Ball as State>::TYPE),
    ];
    let mut text = format!("biobot version {}\n", messages::VERSION);
    for (name, kind) in types {
        text += &format!("{name} {kind}\n");
    }
    for (number, level) in level::BUILT_IN.iter().enumerate() {
        text += &format!("level {number} {:016x}\n", fnv1a(level.as_bytes()));
    }
    text
}

/// Settings of the netcode, the same on both sides.
pub fn session_config() -> SessionConfig {
    // Slow enough that nobody is seen to dash, and quick enough that who has landed soon stands where they are.
    let smoothing = SmoothingConfig::default()
        .time(Duration::from_millis(60))
        .speed(5.0)
        .snap_above(4.0);
    SessionConfig::new(TICK)
        .snapshot_interval(SNAPSHOT_TICKS)
        .bytes_per_snapshot(4_096)
        // What a transport adds to a datagram is as much as the inputs of a tick, so two ticks share one; twice the packets would not fit
        // into what a player may send.
        .packet_interval(PACKET_TICKS)
        .clock(ClockConfig::new(TICK).copies(false))
        // Long enough for the next packet to make good one that is lost.
        .inputs(InputBufferConfig::new(TICK).wait_max(2.4))
        .interpolation(InterpolationConfig::new(TICK).smoothing(smoothing))
        .quality(QualityConfig::default().gone_after(Duration::from_secs(10)))
}
