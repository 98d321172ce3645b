//! Showing others between the states that have arrived: the instant to show, and the buffer of one entity's states.

use muse::netcode::interpolation::{Interpolated, InterpolationConfig, Playback, Shown, Source};
use muse::netcode::{Tick, TickTime};
use muse::schema::State;
use muse::{Duration, Instant};

use crate::clock::tick;
use crate::config::given;
use crate::context::{Muse, run};
use crate::memory;
use crate::status::MuseStatus;

/// The origin of a shown state.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseSource {
    /// From the states on either side.
    Between = 1,
    /// From the first state: it appeared later than the instant shown.
    First = 2,
    /// From the last two states: the next is overdue.
    Beyond = 3,
    /// From where it stopped: the next is overdue for too long.
    Stopped = 4,
}

/// Position, velocity and rotation of an entity.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MusePose {
    /// Position.
    pub position: [f32; 3],
    /// Velocity per second; used if the buffer was made with it.
    pub velocity: [f32; 3],
    /// Rotation as a quaternion x, y, z, w.
    pub rotation: [f32; 4],
}

/// The instant of the past that is shown, and the measurements behind it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MusePlaybackState {
    /// The instant to show, in ticks; less than 0 before the first snapshot.
    pub ticks: f64,
    /// Time by which others are shown later than their states arrive in the mean, in microseconds.
    pub delay_us: u64,
    /// Time that the slowest of a hundred packets takes longer than the mean, in microseconds.
    pub jitter_us: u64,
    /// Share of the snapshots that are lost.
    pub loss: f64,
    /// Ticks from one snapshot to the next.
    pub interval_ticks: f64,
}

/// A pose whose way is a straight line.
#[derive(State, Clone, Debug)]
pub(crate) struct Straight {
    position: [f32; 3],
    velocity: [f32; 3],
    #[field(rotation = 16, interpolate = rotation)]
    rotation: [f32; 4],
}

/// A pose whose way also has the velocity at both ends.
#[derive(State, Clone, Debug)]
pub(crate) struct Curved {
    #[field(interpolate = hermite, velocity = velocity)]
    position: [f32; 3],
    velocity: [f32; 3],
    #[field(rotation = 16, interpolate = rotation)]
    rotation: [f32; 4],
}

pub(crate) enum Interpolation {
    Straight(Interpolated<Straight>),
    Curved(Interpolated<Curved>),
}

/// Both have a pose's fields.
macro_rules! pose {
    ($state:ident) => {
        impl From<MusePose> for $state {
            fn from(pose: MusePose) -> Self {
                let (position, velocity, rotation) = (pose.position, pose.velocity, pose.rotation);
                Self {
                    position,
                    velocity,
                    rotation,
                }
            }
        }

        impl From<$state> for MusePose {
            fn from(state: $state) -> Self {
                let (position, velocity, rotation) =
                    (state.position, state.velocity, state.rotation);
                Self {
                    position,
                    velocity,
                    rotation,
                }
            }
        }
    };
}

pose!(Straight);
pose!(Curved);

/// Makes the clock by which a client shows others, one for all entities: as late as the arrival of snapshots asks for, and no later.
///
/// # Safety
/// `muse` is null or a living Muse; `playback` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_playback_new(
    muse: *mut Muse,
    tick_us: u64,
    playback: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(playback)?;
        place.put(inner.insert(Playback::new(tick(tick_us)?))?);
        Ok(())
    })
}

/// Handles a snapshot of `tick` that arrived at `now_us`; `number` counts the snapshots of the server to this client and wraps.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_playback_snapshot(
    muse: *mut Muse,
    playback: u64,
    now_us: u64,
    tick: u32,
    number: u16,
) -> MuseStatus {
    run!(muse, |inner| {
        let now = Instant::from_micros(now_us);
        inner
            .playback(playback)?
            .handle_snapshot(now, Tick(tick), number);
        Ok(())
    })
}

/// Lets the time until `now_us` pass and tells the instant to show. MUSE_STATUS_NONE before the first snapshot.
///
/// # Safety
/// `muse` is null or a living Muse; `state` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_playback_advance(
    muse: *mut Muse,
    playback: u64,
    now_us: u64,
    state: *mut MusePlaybackState,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(state)?;
        let playback = inner.playback(playback)?;
        playback.advance(Instant::from_micros(now_us));
        let time = playback.time();
        place.put(MusePlaybackState {
            ticks: time.map_or(-1.0, TickTime::ticks),
            delay_us: playback.delay().map_or(0, Duration::as_micros),
            jitter_us: playback.jitter_p99().as_micros(),
            loss: playback.loss(),
            interval_ticks: playback.interval_ticks(),
        });
        Ok(time.is_some())
    })
}

/// Makes a buffer for the states of one entity. With `use_velocity` it is shown along the curve that has its velocities, else in straight lines.
/// `beyond_max_us` is the time that it goes on after its last state; 0 for 250 ms.
///
/// # Safety
/// `muse` is null or a living Muse; `interpolation` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_interpolation_new(
    muse: *mut Muse,
    tick_us: u64,
    use_velocity: u8,
    beyond_max_us: u64,
    interpolation: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(interpolation)?;
        let config = InterpolationConfig::new(tick(tick_us)?);
        let beyond_max = Duration::from_micros(beyond_max_us);
        let config = given(config, beyond_max, InterpolationConfig::beyond_max);
        let interpolation = match use_velocity {
            0 => Interpolation::Straight(Interpolated::new(config, |a, b| {
                distance(a.position, b.position)
            })),
            _ => Interpolation::Curved(Interpolated::new(config, |a, b| {
                distance(a.position, b.position)
            })),
        };
        place.put(inner.insert(interpolation)?);
        Ok(())
    })
}

/// Handles a state of `tick`; in any order, and again does no harm. MUSE_STATUS_NONE when it is of no use any more.
///
/// # Safety
/// `muse` is null or a living Muse; `pose` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_interpolation_push(
    muse: *mut Muse,
    interpolation: u64,
    tick: u32,
    pose: *const MusePose,
) -> MuseStatus {
    run!(muse, |inner| {
        let pose = *memory::read(pose)?;
        Ok(match inner.interpolation(interpolation)? {
            Interpolation::Straight(states) => states.handle_state(Tick(tick), pose.into()),
            Interpolation::Curved(states) => states.handle_state(Tick(tick), pose.into()),
        })
    })
}

/// Gives the pose to draw at `ticks`, the instant that `muse_playback_advance` told; it never goes back. `source` gets a MuseSource. MUSE_STATUS_NONE
/// before the first state.
///
/// # Safety
/// `muse` is null or a living Muse; `pose` and `source` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_interpolation_show(
    muse: *mut Muse,
    interpolation: u64,
    ticks: f64,
    pose: *mut MusePose,
    source: *mut u8,
) -> MuseStatus {
    run!(muse, |inner| {
        let (pose, source) = (memory::place(pose)?, memory::place(source)?);
        let time = TickTime::from_ticks(ticks);
        let shown = match inner.interpolation(interpolation)? {
            Interpolation::Straight(states) => states.show(time).map(parts),
            Interpolation::Curved(states) => states.show(time).map(parts),
        };
        let Some((shown, from)) = shown else {
            return Ok(false);
        };
        pose.put(shown);
        source.put(match from {
            // Only a session predicts, and this interface has none.
            Source::Between | Source::Predicted => MuseSource::Between,
            Source::First => MuseSource::First,
            Source::Beyond => MuseSource::Beyond,
            Source::Stopped => MuseSource::Stopped,
        } as u8);
        Ok(true)
    })
}

fn parts<S: Into<MusePose>>(shown: Shown<S>) -> (MusePose, Source) {
    (shown.state.into(), shown.source)
}

fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    let square: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    square.sqrt()
}
