//! The recent past of one entity: a ring of poses, one for each tick, and a bound around all of them.

use glam::Vec3;

use super::pose::Pose;
use muse_netcode::{EntityId, Tick};

/// The past of an entity, at the ticks that are remembered.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) entity: EntityId,
    pub(super) rig: usize,
    /// Gone from the game; its past can still be hit.
    pub(super) retired: bool,
    /// By tick, modulo their number.
    frames: Box<[Option<Frame>]>,
    /// The bones of each frame.
    bones: Box<[Pose]>,
    bones_each: usize,
    /// Bounds of the present stretch of ticks and of the one before; a stretch is as long as the ring.
    sweeps: [Sweep; 2],
    stretch: u32,
}

/// An entity at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) tick: Tick,
    /// In the world, or relative to the platform.
    pub(super) pose: Pose,
    pub(super) platform: Option<EntityId>,
    /// The reach of its volumes from its origin.
    pub(super) reach: f32,
    /// It did not come here from where it was a tick before.
    pub(super) jumped: bool,
}

/// A bound around some frames, whatever the rotations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// Around the origins of frames that stand in the world; empty when there are none.
    pub(super) low: Vec3,
    pub(super) high: Vec3,
    /// The farthest that volumes reached from the origin.
    pub(super) reach: f32,
    /// Platforms it stood on, and how far from their origins.
    pub(super) platforms: [Option<(EntityId, f32)>; 2],
    /// It stood on more platforms than that.
    pub(super) anywhere: bool,
}

impl Track {
    pub(super) fn new(entity: EntityId, rig: usize, bones: usize, ticks: usize) -> Self {
        Self {
            entity,
            rig,
            retired: false,
            frames: vec![None; ticks].into(),
            bones: vec![Pose::IDENTITY; ticks * bones].into(),
            bones_each: bones,
            sweeps: [Sweep::EMPTY; 2],
            stretch: 0,
        }
    }

    pub(super) fn record(&mut self, frame: Frame, bones: &[Pose]) {
        let at = self.place(frame.tick);
        self.frames[at] = Some(frame);
        let first = at * self.bones_each;
        self.bones[first..first + self.bones_each].copy_from_slice(bones);
        let stretch = frame.tick.0 / self.frames.len() as u32;
        if stretch != self.stretch {
            let follows = stretch == self.stretch + 1;
            self.sweeps[1] = if follows {
                self.sweeps[0]
            } else {
                Sweep::EMPTY
            };
            self.sweeps[0] = Sweep::EMPTY;
            self.stretch = stretch;
        }
        self.sweeps[0].include(&frame);
    }

    /// Returns the frame of a tick, if the entity was there and that is remembered.
    pub(super) fn frame(&self, tick: Tick) -> Option<&Frame> {
        let frame = self.frames[self.place(tick)].as_ref();
        frame.filter(|frame| frame.tick == tick)
    }

    /// The bones at a tick for which there is a frame.
    pub(super) fn bones(&self, tick: Tick) -> &[Pose] {
        let first = self.place(tick) * self.bones_each;
        &self.bones[first..first + self.bones_each]
    }

    /// True if it moved without interruption after one tick and until another.
    pub(super) fn is_continuous(&self, after: Tick, until: Tick) -> bool {
        (after.0.saturating_add(1)..=until.0)
            .take(self.frames.len())
            .all(|tick| self.frame(Tick(tick)).is_none_or(|frame| !frame.jumped))
    }

    pub(super) fn sweeps(&self) -> &[Sweep; 2] {
        &self.sweeps
    }

    /// True if nothing of it is remembered at a tick any more.
    pub(super) fn is_over(&self, now: Tick) -> bool {
        let oldest = now.back(self.frames.len() as u32 - 1);
        !self
            .frames
            .iter()
            .flatten()
            .any(|frame| frame.tick >= oldest)
    }

    fn place(&self, tick: Tick) -> usize {
        tick.0 as usize % self.frames.len()
    }
}

impl Sweep {
    const EMPTY: Self = Self {
        low: Vec3::INFINITY,
        high: Vec3::NEG_INFINITY,
        reach: 0.0,
        platforms: [None; 2],
        anywhere: false,
    };

    fn include(&mut self, frame: &Frame) {
        self.reach = self.reach.max(frame.reach);
        let Some(platform) = frame.platform else {
            self.low = self.low.min(frame.pose.position);
            self.high = self.high.max(frame.pose.position);
            return;
        };
        let distance = frame.pose.position.length();
        for place in &mut self.platforms {
            match place {
                Some((known, far)) if *known == platform => {
                    *far = far.max(distance);
                    return;
                }
                Some(_) => {}
                None => {
                    *place = Some((platform, distance));
                    return;
                }
            }
        }
        self.anywhere = true;
    }
}
