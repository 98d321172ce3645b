//! An entity at an instant between two ticks, in the world: blended from its past, with the platform under it.

use super::admission::Moment;
use super::pose::Pose;
use super::track::{Frame, Track};
use super::{PLATFORMS_MAX, Rewind, find};
use muse_netcode::{EntityId, Tick};

/// An entity at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stance {
    /// In the world.
    pub(super) pose: Pose,
    /// On a platform: which, and where on it.
    platform: Option<(EntityId, Pose)>,
    /// The ticks between which bones are blended, and how far.
    from: Tick,
    to: Tick,
    share: f32,
    /// The reach of its volumes.
    pub(super) reach: f32,
}

impl Stance {
    /// A bone, relative to the entity.
    pub(super) fn bone(&self, track: &Track, bone: u8) -> Pose {
        let at = |tick| track.bones(tick).get(usize::from(bone)).copied();
        let from = at(self.from).unwrap_or(Pose::IDENTITY);
        match at(self.to) {
            Some(to) if self.share > 0.0 => from.blend(&to, self.share),
            _ => from,
        }
    }

    /// Returns the distance between two stances of an entity: on the platform, if it is the same one.
    fn distance(&self, other: &Self) -> f32 {
        match (self.platform, other.platform) {
            (Some((here, a)), Some((there, b))) if here == there => a.position.distance(b.position),
            _ => self.pose.position.distance(other.pose.position),
        }
    }
}

impl Rewind {
    /// An entity at an instant; `None` when it was not there.
    pub(super) fn stance(&self, track: &Track, moment: &Moment) -> Option<Stance> {
        self.stance_within(track, moment, 0)
    }

    /// The same, unless the entity has moved so far since that it is judged in the present; and whether it was rewound.
    pub(super) fn stance_weighed(&self, track: &Track, moment: &Moment) -> Option<(Stance, bool)> {
        let then = self.stance(track, moment)?;
        if moment.from == self.now {
            return Some((then, false));
        }
        let present = self.stance(track, &Moment::tick(self.now));
        match present {
            Some(now) if then.distance(&now) > self.config.displacement_max => Some((now, false)),
            _ => Some((then, true)),
        }
    }

    fn stance_within(&self, track: &Track, moment: &Moment, depth: u32) -> Option<Stance> {
        let from = self.remembered(track, moment.from)?;
        let to = self
            .remembered(track, moment.to)
            .filter(|_| moment.share > 0.0 && track.is_continuous(moment.from, moment.to));
        let Some(to) = to else {
            // The last tick before it was gone, or appeared elsewhere.
            let pose = self.placed(from, depth)?;
            return Some(Stance {
                pose,
                platform: from.platform.map(|platform| (platform, from.pose)),
                from: moment.from,
                to: moment.from,
                share: 0.0,
                reach: from.reach,
            });
        };
        let (pose, platform) = if from.platform == to.platform {
            let own = from.pose.blend(&to.pose, moment.share);
            match from.platform {
                Some(platform) if depth < PLATFORMS_MAX => {
                    let under = find(&self.tracks, platform)?;
                    let under = self.stance_within(under, &self.under(moment), depth + 1)?;
                    (under.pose.then(own), Some((platform, own)))
                }
                Some(_) => return None,
                None => (own, None),
            }
        } else {
            let (a, b) = (self.placed(from, depth)?, self.placed(to, depth)?);
            (a.blend(&b, moment.share), None)
        };
        Some(Stance {
            pose,
            platform,
            from: moment.from,
            to: moment.to,
            share: moment.share,
            reach: from.reach.max(to.reach),
        })
    }

    /// Returns the pose of a frame in the world.
    fn placed(&self, frame: &Frame, depth: u32) -> Option<Pose> {
        let Some(platform) = frame.platform else {
            return Some(frame.pose);
        };
        if depth >= PLATFORMS_MAX {
            return None;
        }
        let under = find(&self.tracks, platform)?;
        let moment = self.under(&Moment::tick(frame.tick));
        let under = self.stance_within(under, &moment, depth + 1)?;
        Some(under.pose.then(frame.pose))
    }

    /// The instant of the platform under something at this one.
    pub(super) fn under(&self, moment: &Moment) -> Moment {
        match self.config.platforms_now {
            true => Moment::tick(self.now),
            false => *moment,
        }
    }

    /// A frame that is neither in the future nor too long ago.
    fn remembered<'a>(&self, track: &'a Track, tick: Tick) -> Option<&'a Frame> {
        let oldest = self.now.back(self.config.ticks() - 1);
        track
            .frame(tick)
            .filter(|frame| (oldest..=self.now).contains(&frame.tick))
    }
}
