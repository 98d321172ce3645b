//! Configuration and errors of rewind.

use muse_wire::Duration;

/// Settings of [`Rewind`](super::Rewind).
#[derive(Clone, Debug)]
pub struct RewindConfig {
    pub(super) tick: Duration,
    pub(super) limit: Duration,
    pub(super) margin: Duration,
    pub(super) tolerance: Duration,
    pub(super) interpolation_max: Duration,
    pub(super) displacement_max: f32,
    pub(super) platforms_now: bool,
    pub(super) entities_max: usize,
    pub(super) rigs_max: usize,
}

impl RewindConfig {
    /// Defaults for a game with this many ticks a second, 1 to 1,000.
    pub fn new(ticks_per_second: u32) -> Self {
        let rate = u64::from(ticks_per_second.clamp(1, 1_000));
        Self {
            tick: Duration::from_micros(1_000_000 / rate),
            limit: Duration::from_millis(250),
            margin: Duration::from_millis(350),
            tolerance: Duration::from_millis(25),
            interpolation_max: Duration::from_millis(150),
            displacement_max: 4.0,
            platforms_now: false,
            entities_max: 4_096,
            rigs_max: 256,
        }
    }

    /// Returns the number of ticks that are remembered: enough for limit and margin, and one on either side.
    pub fn ticks(&self) -> u32 {
        let span = (self.limit + self.margin).as_micros();
        (span.div_ceil(self.tick.as_micros()) + 2).min(TICKS_MAX) as u32
    }
}

muse_wire::setters! { RewindConfig:
    /// The oldest instant that a shot may be judged at; a shot that is older is judged in the present, and the shooter
    /// has to lead. Larger is fairer to shooters with slow links and less fair to those who are shot. Default: 250 ms.
    limit: Duration = limit.min(Duration::from_secs(1)),
    /// Sets how much longer the past is remembered: for hits that are contested. Default: 350 ms.
    margin: Duration = margin.min(Duration::from_secs(2)),
    /// Sets how far a shot's instant may lie from what the server expects. A cheater can choose within it; below the time between two frames honest players
    /// are refused. Default: 25 ms.
    tolerance: Duration,
    /// Longest delay, besides the round trip and the wait of its inputs, that a client is believed. Default: 150 ms.
    interpolation_max: Duration,
    /// A target that has moved further than this since the instant of the shot is judged where it is now: distance is
    /// speed times time, and nobody should be hit that far from where it is. On a platform only the way on the
    /// platform counts. Default: 4.
    displacement_max: f32 = displacement_max.max(0.0),
    /// Judges what stands on a platform where the platform is now, rather than where it was: for games whose clients predict platforms, and draw others on them
    /// where these are by now. Only the way on the platform is rewound then. Default: off.
    platforms_now: bool,
    /// Entities are refused when their index is not below this. Each costs 64 bytes, and 28 for every bone, times
    /// the ticks that are remembered. Default: 4,096.
    entities_max: usize,
}

/// The reason for which [`Rewind`](super::Rewind) refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// Not a number, more than a million, or a rotation that is none.
    #[error("a position beyond a million or not finite, or a rotation that is not one")]
    Pose,
    /// Smaller than a millimetre, larger than a kilometre, or more than 64 of them.
    #[error("a hit volume must measure 1 mm to 1 km, and a rig has at most 64")]
    Volume,
    /// Another number than the rig has.
    #[error("the number of bones is not that of the rig")]
    Bones,
    /// See [`RewindConfig::entities_max`].
    #[error("the index of the entity is beyond the limit of entities")]
    EntityLimit,
    /// More than 256 rigs.
    #[error("too many rigs")]
    RigLimit,
    /// A rig of another [`Rewind`](crate::Rewind).
    #[error("no such rig")]
    UnknownRig,
    /// It was never added, or is gone.
    #[error("no such entity")]
    UnknownEntity,
    /// Ticks only go forward.
    #[error("the tick is not after the one before")]
    Order,
}

/// At 1,000 ticks a second the longest past.
const TICKS_MAX: u64 = 3_002;
