//! Lag compensation: hits are judged by what the shooter saw, without moving the world.
//!
//! Each tick the server [`record`](Rewind::record)s where everything was that can be hit. A shot carries the instant that its
//! shooter saw; [`Rewind::admit`] bounds it by what the server knows of that client, and
//! [`hitscan`](Rewind::hitscan), [`launch`](Rewind::launch) and [`strike`](Rewind::strike) look up the past at that
//! instant, between two ticks. What stands on a platform is kept relative to it, and the platform is rewound, too.
//! [`Hits`] does all of it for a session's players. [`Contests`] lets who was hit behind cover object. Any entity can be rewound: players, dummies, doors.

mod admission;
mod bound;
mod cast;
mod config;
mod contest;
mod hits;
mod pose;
mod query;
mod stance;
mod track;
mod volume;

use admission::{Moment, admit};
use bound::Bound;
use muse_netcode::{EntityId, Tick};
use track::{Frame, Sweep, Track};

pub use admission::{Admission, Verdict};
pub use config::{RewindConfig, RewindError};
pub use contest::{ContestError, ContestId, Contests};
pub use hits::Hits;
/// A shot's claim and its client, as netcode carries and knows them.
pub use muse_netcode::{Claim, Shooter};
pub use pose::Pose;
pub use query::{Blow, Except, Flight, Hit, Part, Projectile, Scope, Shot};
pub use volume::{HitVolume, Rig, Volume};

/// The recent past of everything that can be hit.
///
/// Each tick: [`advance`](Self::advance), [`record`](Self::record) every entity that is there, then judge the shots
/// of the tick. Queries change nothing.
///
/// ```
/// use glam::Vec3;
/// use muse_lagcomp::{Claim, Except, HitVolume, Placement, Pose, Rewind, RewindConfig, Rig, Shooter, Shot, Volume};
/// use muse_netcode::{EntityId, Tick, TickTime};
/// use muse_wire::Duration;
///
/// let mut rewind = Rewind::new(RewindConfig::new(50));
/// let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Capsule { half_length: 0.6, radius: 0.3 })])?)?;
/// let (shooter, target) = (EntityId::from_bits(1), EntityId::from_bits(2));
/// rewind.add(target, rig)?;
/// for tick in 100..=110 {
///     rewind.advance(Tick(tick))?;
///     // Running to the right at 10 m/s.
///     let place = Vec3::new(tick as f32 * 0.2, 0.0, 20.0);
///     rewind.record(target, Placement::new(Pose::at(place)))?;
/// }
/// // Fired at what was there at tick 105 and a half; the client is 60 ms away and shows others 30 ms late.
/// let known = Shooter { rtt: Duration::from_millis(60), interpolation: Duration::from_millis(30), ..Shooter::default() };
/// let admission = rewind.admit(Claim::at(TickTime::from_ticks(105.5)), &known);
/// let shot = Shot::new(Vec3::new(105.5 * 0.2, 0.0, 0.0), Vec3::Z);
/// let hit = rewind.hitscan(&admission, &shot, &mut Except(shooter)).expect("it was there");
/// assert_eq!(hit.entity, target);
/// # Ok::<(), muse_lagcomp::RewindError>(())
/// ```
#[derive(Debug)]
pub struct Rewind {
    config: RewindConfig,
    now: Tick,
    started: bool,
    rigs: Vec<Rig>,
    /// By the index of the entity.
    tracks: Vec<Option<Box<Track>>>,
    /// The same order, dense, for the broad phase.
    bounds: Vec<Broad>,
    retired: Vec<u32>,
}

/// The broad phase's knowledge of an entity.
#[derive(Clone, Copy, Debug)]
enum Broad {
    /// Within a box.
    Box(Bound),
    /// It stood on a platform: the box follows from the platform's.
    Carried,
}

/// The volumes of a sort of entity, as [`Rewind::add_rig`] knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RigId(usize);

/// The place of an entity in a tick.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    pose: Pose,
    platform: Option<EntityId>,
    bones: &'a [Pose],
    jumped: bool,
}

impl<'a> Placement<'a> {
    /// In the world.
    pub fn new(pose: Pose) -> Self {
        Self {
            pose,
            platform: None,
            bones: &[],
            jumped: false,
        }
    }

    /// The pose is relative to a platform, which is recorded as an entity of its own.
    pub fn on(mut self, platform: EntityId) -> Self {
        self.platform = Some(platform);
        self
    }

    /// The poses of the bones, relative to the entity; as many as the rig has.
    pub fn bones(mut self, bones: &'a [Pose]) -> Self {
        self.bones = bones;
        self
    }

    /// It did not move here but appeared here; it was never in between.
    pub fn jumped(mut self) -> Self {
        self.jumped = true;
        self
    }
}

impl Rewind {
    /// Without any past.
    pub fn new(config: RewindConfig) -> Self {
        Self {
            config,
            now: Tick(0),
            started: false,
            rigs: Vec::new(),
            tracks: Vec::new(),
            bounds: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// Makes a set of volumes known.
    pub fn add_rig(&mut self, rig: Rig) -> Result<RigId, RewindError> {
        if self.rigs.len() >= self.config.rigs_max {
            return Err(RewindError::RigLimit);
        }
        self.rigs.push(rig);
        Ok(RigId(self.rigs.len() - 1))
    }

    /// Adds an entity, without a past. What was at the same index before is forgotten.
    pub fn add(&mut self, entity: EntityId, rig: RigId) -> Result<(), RewindError> {
        let at = entity.index() as usize;
        if at >= self.config.entities_max {
            return Err(RewindError::EntityLimit);
        }
        let bones = self.rigs.get(rig.0).ok_or(RewindError::UnknownRig)?.bones;
        if at >= self.tracks.len() {
            self.tracks.resize_with(at + 1, || None);
            self.bounds.resize(at + 1, Broad::Box(Bound::EMPTY));
        }
        let ticks = self.config.ticks() as usize;
        self.tracks[at] = Some(Box::new(Track::new(entity, rig.0, bones, ticks)));
        self.bounds[at] = Broad::Box(Bound::EMPTY);
        self.retired.retain(|index| *index != entity.index());
        Ok(())
    }

    /// An entity has left the game. What it was can still be hit by those who saw it, until it is too long ago. False
    /// when it was not there.
    pub fn retire(&mut self, entity: EntityId) -> bool {
        let Some(track) = find_mut(&mut self.tracks, entity) else {
            return false;
        };
        if !track.retired {
            track.retired = true;
            self.retired.push(entity.index());
        }
        true
    }

    /// The next tick begins.
    pub fn advance(&mut self, tick: Tick) -> Result<(), RewindError> {
        if self.started && tick <= self.now {
            return Err(RewindError::Order);
        }
        (self.now, self.started) = (tick, true);
        let (tracks, bounds) = (&mut self.tracks, &mut self.bounds);
        self.retired.retain(|&index| {
            let track = &mut tracks[index as usize];
            let over = track.as_ref().is_none_or(|track| track.is_over(tick));
            if over {
                *track = None;
                bounds[index as usize] = Broad::Box(Bound::EMPTY);
            }
            !over
        });
        Ok(())
    }

    /// Records the place of an entity in this tick. An entity that is not recorded in a tick is not there in it.
    pub fn record(
        &mut self,
        entity: EntityId,
        placement: Placement<'_>,
    ) -> Result<(), RewindError> {
        let pose = placement.pose.checked().ok_or(RewindError::Pose)?;
        if placement.bones.iter().any(|bone| bone.checked().is_none()) {
            return Err(RewindError::Pose);
        }
        if let Some(platform) = placement.platform {
            let known = find(&self.tracks, platform).is_some() && platform != entity;
            known.then_some(()).ok_or(RewindError::UnknownEntity)?;
        }
        let track = find_mut(&mut self.tracks, entity).ok_or(RewindError::UnknownEntity)?;
        let rig = &self.rigs[track.rig];
        if placement.bones.len() != rig.bones || track.retired {
            return Err(RewindError::Bones);
        }
        let frame = Frame {
            tick: self.now,
            pose,
            platform: placement.platform,
            reach: rig.reach(placement.bones),
            jumped: placement.jumped,
        };
        // Everything has been checked by now: a refused placement leaves the past as it was.
        track.record(frame, placement.bones);
        self.bounds[entity.index() as usize] = broad(track.sweeps());
        Ok(())
    }

    /// The tick that is being recorded.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// Returns how far back anything is remembered, in ticks.
    pub fn ticks(&self) -> u32 {
        self.config.ticks()
    }

    /// The instant at which a client's shot is judged: what it claims, as far as that is plausible for a client of
    /// which this is known, and the present when it is longer ago than the limit.
    pub fn admit(&self, claim: Claim, shooter: &Shooter) -> Admission {
        admit(&self.config, self.now, claim, shooter)
    }

    /// The present, for those who see it as it is: bots, and a player on the server itself.
    pub fn present(&self) -> Admission {
        Admission {
            moment: Moment::tick(self.now),
            age: muse_wire::Duration::ZERO,
            verdict: Verdict::Present,
        }
    }

    /// Returns the pose of an entity in the world at the instant of an admission. `None` when it was not there.
    pub fn pose(&self, entity: EntityId, admission: &Admission) -> Option<Pose> {
        let track = find(&self.tracks, entity)?;
        Some(self.stance(track, &admission.moment)?.pose)
    }

    /// A box around everything an entity was in the time that is remembered.
    fn bound(&self, index: usize, depth: u32) -> Bound {
        match self.bounds[index] {
            Broad::Box(bound) => bound,
            Broad::Carried => self.tracks[index].as_ref().map_or(Bound::EMPTY, |track| {
                let sweeps = track.sweeps().iter();
                sweeps.fold(Bound::EMPTY, |bound, sweep| {
                    bound.union(self.sweep_bound(sweep, depth))
                })
            }),
        }
    }

    fn sweep_bound(&self, sweep: &Sweep, depth: u32) -> Bound {
        // Platforms that stand on each other in a circle end here as well.
        if sweep.anywhere || depth >= PLATFORMS_MAX {
            return Bound::ANYWHERE;
        }
        let own = Bound {
            low: sweep.low,
            high: sweep.high,
        };
        let platforms = sweep.platforms.iter().flatten();
        let all = platforms.fold(own, |bound, (platform, distance)| {
            // Within that distance of the platform however it turns; around its volumes, which is more than enough.
            let known = find(&self.tracks, *platform).is_some();
            let under = if known {
                self.bound(platform.index() as usize, depth + 1)
            } else {
                Bound::EMPTY
            };
            bound.union(under.grown(*distance))
        });
        all.grown(sweep.reach)
    }
}

/// The box of an entity that never stood on a platform, or that it did.
fn broad(sweeps: &[Sweep; 2]) -> Broad {
    let carried = |sweep: &Sweep| sweep.anywhere || sweep.platforms[0].is_some();
    if sweeps.iter().any(carried) {
        return Broad::Carried;
    }
    let bounds = sweeps.iter().map(|sweep| {
        Bound {
            low: sweep.low,
            high: sweep.high,
        }
        .grown(sweep.reach)
    });
    Broad::Box(bounds.fold(Bound::EMPTY, Bound::union))
}

fn find(tracks: &[Option<Box<Track>>], entity: EntityId) -> Option<&Track> {
    let track = tracks.get(entity.index() as usize)?.as_deref();
    track.filter(|track| track.entity == entity)
}

fn find_mut(tracks: &mut [Option<Box<Track>>], entity: EntityId) -> Option<&mut Track> {
    let track = tracks.get_mut(entity.index() as usize)?.as_deref_mut();
    track.filter(|track| track.entity == entity)
}

/// The depth to which platforms may stand on platforms.
const PLATFORMS_MAX: u32 = 4;
