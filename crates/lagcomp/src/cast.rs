//! Queries of the past: shots, projectiles and blows against everything that was there.

use glam::Vec3;

use super::admission::Moment;
use super::bound::Probe;
use super::pose::Pose;
use super::query::{Blow, Flight, Hit, Projectile, Scope, Shot};
use super::stance::Stance;
use super::track::Track;
use super::volume::HitVolume;
use super::{Admission, Rewind, find};
use muse_netcode::TickTime;

impl Rewind {
    /// The first thing that a shot hits, at the instant of its admission.
    pub fn hitscan(
        &self,
        admission: &Admission,
        shot: &Shot,
        scope: &mut impl Scope,
    ) -> Option<Hit> {
        let (start, end, radius) = self.line(admission, shot)?;
        let stop = scope.blocked(start, end).unwrap_or(1.0);
        let probe = Probe::new(start, end, radius);
        let moment = admission.moment;
        let way = Way {
            start,
            end,
            radius,
            stop,
        };
        let mut first: Option<Hit> = None;
        self.for_candidates(&probe, scope, |track, _| {
            let (stance, rewound) = self.stance_weighed(track, &moment)?;
            let hit = self.meet(track, (&stance, &stance), &way)?;
            if first.is_none_or(|known| hit.share < known.share) {
                let at = moment.at;
                first = Some(Hit { at, rewound, ..hit });
            }
            Some(())
        });
        first
    }

    /// Lets a projectile fly from the instant of its admission to the present, through what was there on the way. In
    /// each tick it moves straight relative to a target, which is exact but for targets that spin: off by an eighth of the
    /// way times the angle.
    pub fn launch(
        &self,
        admission: &Admission,
        projectile: &Projectile,
        scope: &mut impl Scope,
    ) -> Flight {
        self.fly_from(admission.moment, projectile, scope, true)
    }

    /// Lets a projectile fly on through the tick that was recorded last, in the present.
    pub fn fly(&self, projectile: &Projectile, scope: &mut impl Scope) -> Flight {
        let start = Moment::new(self.now.back(1).into());
        self.fly_from(start, projectile, scope, false)
    }

    /// Everything that a blow touches, at the instant of its admission, first touched first, each entity once; at most
    /// [`HITS_MAX`](Self::HITS_MAX). Replaces what is in `hits`.
    pub fn strike(
        &self,
        admission: &Admission,
        blow: &Blow,
        scope: &mut impl Scope,
        hits: &mut Vec<Hit>,
    ) {
        hits.clear();
        if !blow.is_sane() {
            return;
        }
        let (low, high) = (
            blow.from.0.midpoint(blow.to.1),
            blow.from.1.midpoint(blow.to.0),
        );
        let middle = low.midpoint(high);
        let corners = [blow.from.0, blow.from.1, blow.to.0, blow.to.1];
        let size = corners.map(|corner| corner.distance(middle));
        let size = size.into_iter().fold(blow.radius, f32::max) + blow.radius;
        let probe = Probe::new(middle, middle, size);
        self.for_candidates(&probe, scope, |track, scope| {
            let (stance, rewound) = self.stance_weighed(track, &admission.moment)?;
            if stance.pose.position.distance(middle) > size + stance.reach + SLACK {
                return None;
            }
            let hit = self.touch(track, &stance, blow)?;
            let seen = scope.blocked(middle, hit.point).is_none();
            let at = admission.moment.at;
            seen.then_some(())
                .map(|()| hits.push(Hit { at, rewound, ..hit }))
        });
        hits.sort_unstable_by(|a, b| {
            let share = a.share.total_cmp(&b.share);
            share.then(a.entity.cmp(&b.entity))
        });
        hits.truncate(Self::HITS_MAX);
    }

    /// The centres of an entity's volumes at an instant.
    pub(super) fn centres(
        &self,
        track: &Track,
        moment: &Moment,
        mut each: impl FnMut(Vec3),
    ) -> bool {
        let Some(stance) = self.stance(track, moment) else {
            return false;
        };
        for volume in &self.rigs[track.rig].volumes {
            each(volume_pose(track, &stance, volume).position);
        }
        true
    }

    /// A shot as a segment in the world.
    fn line(&self, admission: &Admission, shot: &Shot) -> Option<(Vec3, Vec3, f32)> {
        let shot = shot.checked()?;
        let frame = match shot.platform {
            Some(platform) => {
                let track = find(&self.tracks, platform)?;
                self.stance(track, &self.under(&admission.moment))?.pose
            }
            None => Pose::IDENTITY,
        };
        let start = frame.point(shot.origin);
        let end = start + frame.rotation * shot.direction * shot.range;
        Some((start, end, shot.radius))
    }

    fn fly_from(
        &self,
        mut moment: Moment,
        projectile: &Projectile,
        scope: &mut impl Scope,
        weighed: bool,
    ) -> Flight {
        let mut flying = *projectile;
        let now = TickTime::from(self.now);
        for _ in 0..=self.config.ticks() {
            if moment.at >= now || !flying.is_sane() {
                break;
            }
            let next = TickTime::from(moment.at.tick + 1);
            let ticks = next.ticks() - moment.at.ticks();
            let seconds = ticks * self.config.tick.as_micros() as f64 / 1e6;
            let then = flying.after(seconds as f32);
            let after = Moment::tick(next.tick);
            let met = self.fly_step(&flying, then.position, (&moment, &after), scope, weighed);
            if let Some(met) = met {
                return met;
            }
            (flying, moment) = (then, after);
        }
        Flight::Flying(flying)
    }

    /// One step of a projectile, through targets that move in it, too.
    fn fly_step(
        &self,
        from: &Projectile,
        end: Vec3,
        moments: (&Moment, &Moment),
        scope: &mut impl Scope,
        weighed: bool,
    ) -> Option<Flight> {
        let stop = scope.blocked(from.position, end);
        let way = Way {
            start: from.position,
            end,
            radius: from.radius,
            stop: stop.unwrap_or(1.0),
        };
        let span = moments.1.at.ticks() - moments.0.at.ticks();
        let when =
            |share: f32| TickTime::from_ticks(moments.0.at.ticks() + span * f64::from(share));
        let mut first: Option<Hit> = None;
        let probe = Probe::new(way.start, way.end, way.radius);
        self.for_candidates(&probe, scope, |track, _| {
            let (stance, rewound) = if weighed {
                self.stance_weighed(track, moments.0)?
            } else {
                (self.stance(track, moments.0)?, false)
            };
            // A target that is not rewound because it has moved too far stands still in the present.
            let moving = rewound || !weighed;
            let later = moving.then(|| self.stance(track, moments.1)).flatten();
            let hit = self.meet(track, (&stance, &later.unwrap_or(stance)), &way)?;
            if first.is_none_or(|known| hit.share < known.share) {
                let at = when(hit.share);
                first = Some(Hit { at, rewound, ..hit });
            }
            Some(())
        });
        let blocked = stop.map(|share| Flight::Blocked {
            point: way.start.lerp(way.end, share),
            at: when(share),
        });
        first.map(Flight::Hit).or(blocked)
    }

    /// The nearest of an entity's volumes on a way; the entity moves from one stance to another meanwhile.
    fn meet(&self, track: &Track, stances: (&Stance, &Stance), way: &Way) -> Option<Hit> {
        let (before, after) = stances;
        let reach = before.reach.max(after.reach) + way.radius + SLACK;
        let start = way.start - before.pose.position;
        if distance_to_segment(start, way.end - after.pose.position) > reach {
            return None;
        }
        let mut nearest: Option<(f32, Vec3, &HitVolume)> = None;
        for volume in &self.rigs[track.rig].volumes {
            let pose = volume_pose(track, before, volume);
            let start = pose.inverse_point(way.start);
            let end = if core::ptr::eq(before, after) {
                pose.inverse_point(way.end)
            } else {
                volume_pose(track, after, volume).inverse_point(way.end)
            };
            let Some((share, normal)) = volume.volume.cast(start, end, way.radius) else {
                continue;
            };
            let nearer = nearest.is_none_or(|(known, _, _)| share < known);
            if share <= way.stop && nearer {
                nearest = Some((share, pose.rotation * normal, volume));
            }
        }
        nearest.map(|(share, normal, volume)| Hit {
            entity: track.entity,
            part: volume.part,
            share,
            point: way.start.lerp(way.end, share),
            normal,
            origin: way.start,
            at: TickTime::default(),
            rewound: false,
        })
    }

    /// The first of an entity's volumes that a blow touches.
    fn touch(&self, track: &Track, stance: &Stance, blow: &Blow) -> Option<Hit> {
        let steps = blow.steps();
        for step in 0..=steps {
            let share = step as f32 / steps as f32;
            let (hilt, tip) = blow.at(share);
            for volume in &self.rigs[track.rig].volumes {
                let pose = volume_pose(track, stance, volume);
                let (base, end) = (pose.inverse_point(hilt), pose.inverse_point(tip));
                let near = distance_to_segment(base, end) <= volume.volume.reach() + blow.radius;
                if !near || !volume.volume.touches(base, end, blow.radius) {
                    continue;
                }
                return Some(Hit {
                    entity: track.entity,
                    part: volume.part,
                    share,
                    point: closest_on_segment(hilt, tip, pose.position),
                    normal: Vec3::ZERO,
                    origin: hilt,
                    at: TickTime::default(),
                    rewound: false,
                });
            }
        }
        None
    }

    /// Calls `each` for everything whose recent past a probe touches; only these are rewound.
    fn for_candidates<S: Scope>(
        &self,
        probe: &Probe,
        scope: &mut S,
        mut each: impl FnMut(&Track, &mut S) -> Option<()>,
    ) {
        for (index, track) in self.tracks.iter().enumerate() {
            if !probe.touches(&self.bound(index, 0)) {
                continue;
            }
            if let Some(track) = track
                && scope.includes(track.entity)
            {
                let _ = each(track, scope);
            }
        }
    }

    /// Hits that one query returns.
    pub const HITS_MAX: usize = 64;
}

/// The way of a shot or of a projectile in a step, in the world.
struct Way {
    start: Vec3,
    end: Vec3,
    radius: f32,
    /// The share at which the world stops it.
    stop: f32,
}

/// Returns the pose of a volume in the world.
fn volume_pose(track: &Track, stance: &Stance, volume: &HitVolume) -> Pose {
    match volume.bone {
        Some(bone) => stance
            .pose
            .then(stance.bone(track, bone).then(volume.offset)),
        None => stance.pose.then(volume.offset),
    }
}

/// Distance of the origin from a segment.
fn distance_to_segment(start: Vec3, end: Vec3) -> f32 {
    closest_on_segment(start, end, Vec3::ZERO).length()
}

fn closest_on_segment(start: Vec3, end: Vec3, point: Vec3) -> Vec3 {
    let way = end - start;
    let square = way.length_squared();
    if square <= 0.0 {
        return start;
    }
    start + way * ((point - start).dot(way) / square).clamp(0.0, 1.0)
}

/// The error that rounding may add to a distance: coordinates in the thousands, and entities that turn between two ticks.
const SLACK: f32 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Placement, RewindConfig, Rig, Volume};
    use muse_netcode::{EntityId, Tick};

    /// Of a thousand entities only those near the line are rewound.
    #[test]
    fn only_what_a_shot_comes_near_is_rewound() {
        let mut rewind = Rewind::new(RewindConfig::new(60));
        let sphere = HitVolume::new(Volume::Sphere { radius: 0.5 });
        let rig = rewind
            .add_rig(Rig::new([sphere]).expect("sane"))
            .expect("first");
        let id = |index| EntityId::new(index, 0).expect("small");
        for index in 0..1_000 {
            rewind.add(id(index), rig).expect("within the limit");
        }
        for tick in 0..60 {
            rewind.advance(Tick(tick)).expect("next");
            for index in 0..1_000 {
                let (row, column) = (index / 32, index % 32);
                let x = column as f32 * 20.0 + tick as f32 * 0.1;
                let pose = Pose::at(Vec3::new(x, 0.0, row as f32 * 20.0));
                rewind
                    .record(id(index), Placement::new(pose))
                    .expect("sane");
            }
        }
        let mut candidates = 0;
        let probe = Probe::new(
            Vec3::new(-5.0, 0.0, 100.0),
            Vec3::new(700.0, 0.0, 100.0),
            0.0,
        );
        rewind.for_candidates(&probe, &mut (), |_, ()| {
            candidates += 1;
            Some(())
        });
        assert_eq!(candidates, 32);
    }
}
