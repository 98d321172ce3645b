//! Shots, projectiles and blows against a scene of everything: spheres, capsules, boxes and bones, in the world and on
//! platforms that move and turn.

use fastrand::Rng;
use glam::Vec3;
use muse_lagcomp::{
    Admission, Blow, Claim, Flight, HitVolume, Part, Placement, Pose, Projectile, Rewind,
    RewindConfig, Rig, Shooter, Shot, Volume,
};
use muse_netcode::{EntityId, Tick, TickTime};
use muse_wire::Duration;

use super::plain::{Frame, closest, distance, first, mix, wide};
use super::{id, point, seeds, turn};

const TICKS: u32 = 90;
const PLATFORMS: u32 = 2;
const ENTITIES: u32 = 14;

/// A body as the test knows it.
struct Body {
    volumes: Vec<(Volume, Option<u8>, Pose)>,
    /// By tick: pose, platform, bones.
    past: Vec<(Pose, Option<EntityId>, Vec<Pose>)>,
}

struct Scene {
    rewind: Rewind,
    bodies: Vec<Body>,
}

impl Scene {
    /// `changing`: some step onto a platform from far away, in one tick.
    fn new(rng: &mut Rng, changing: bool) -> Self {
        let mut rewind = Rewind::new(RewindConfig::new(60).displacement_max(f32::INFINITY));
        let mut bodies = Vec::new();
        for index in 0..ENTITIES {
            let volumes = if index < PLATFORMS {
                Vec::new()
            } else {
                volumes(rng)
            };
            let hit_volumes: Vec<HitVolume> = volumes
                .iter()
                .enumerate()
                .map(|(part, (volume, bone, pose))| {
                    let hit = HitVolume::new(*volume).pose(*pose).part(Part(part as u16));
                    bone.map_or(hit, |bone| hit.bone(bone))
                })
                .collect();
            let rig = Rig::new(hit_volumes).expect("sane");
            let bones = rig.bones();
            let rig = rewind.add_rig(rig).expect("few");
            rewind.add(id(index), rig).expect("few");
            bodies.push(Body {
                volumes,
                past: past(rng, index, bones, changing),
            });
        }
        let mut scene = Self { rewind, bodies };
        for tick in 0..TICKS {
            scene.rewind.advance(Tick(tick)).expect("next");
            // Passengers before platforms: the order does not matter.
            for index in (0..ENTITIES).rev() {
                let (pose, platform, bones) = &scene.bodies[index as usize].past[tick as usize];
                let placement = Placement::new(*pose).bones(bones);
                let placement = match platform {
                    Some(platform) => placement.on(*platform),
                    None => placement,
                };
                scene.rewind.record(id(index), placement).expect("sane");
            }
        }
        scene
    }

    /// An instant of the last 240 ms, admitted.
    fn admit(&mut self, rng: &mut Rng) -> Admission {
        let age = rng.f64() * 14.0 + 0.2;
        let at = TickTime::from_ticks(f64::from(TICKS - 1) - age);
        let rtt = Duration::from_secs_f64(age / 60.0);
        let shooter = Shooter {
            rtt,
            ..Shooter::default()
        };
        self.rewind.admit(Claim::at(at), &shooter)
    }

    /// The entity's frame between two ticks, the platform under it included.
    fn frame(&self, index: usize, ticks: f64) -> Frame {
        let (tick, share) = (ticks.floor() as usize, ticks.fract());
        let past = &self.bodies[index].past;
        let (a, b) = (&past[tick], &past[(tick + 1).min(TICKS as usize - 1)]);
        if a.1 == b.1 {
            let own = Frame::new(&a.0).blend(&Frame::new(&b.0), share);
            return match a.1 {
                Some(platform) => self.frame(platform.index() as usize, ticks).then(&own),
                None => own,
            };
        }
        let world = |(pose, platform, _): &(Pose, Option<EntityId>, Vec<Pose>), at: f64| {
            let own = Frame::new(pose);
            platform.map_or(own, |platform| {
                self.frame(platform.index() as usize, at).then(&own)
            })
        };
        world(a, tick as f64).blend(&world(b, tick as f64 + 1.0), share)
    }

    /// The frame of one of the entity's volumes.
    fn volume(&self, index: usize, volume: usize, ticks: f64) -> Frame {
        let (tick, share) = (ticks.floor() as usize, ticks.fract());
        let (_, bone, pose) = self.bodies[index].volumes[volume];
        let past = &self.bodies[index].past;
        let (a, b) = (&past[tick].2, &past[(tick + 1).min(TICKS as usize - 1)].2);
        let frame = self.frame(index, ticks);
        let frame = bone.map_or(frame, |bone| {
            let bone = usize::from(bone);
            frame.then(&Frame::new(&a[bone]).blend(&Frame::new(&b[bone]), share))
        });
        frame.then(&Frame::new(&pose))
    }

    /// A point near a random body at an instant, to aim at.
    fn aim(&self, rng: &mut Rng, ticks: f64) -> Vec3 {
        let index = rng.u32(PLATFORMS..ENTITIES) as usize;
        let volume = rng.u32(0..self.bodies[index].volumes.len() as u32) as usize;
        let at = self.volume(index, volume, ticks).position;
        Vec3::from_array(at.map(|value| value as f32)) + point(rng, 1.6)
    }
}

fn volumes(rng: &mut Rng) -> Vec<(Volume, Option<u8>, Pose)> {
    let count = rng.u32(1..6);
    let size = |rng: &mut Rng| 0.1 + rng.f32() * 0.6;
    (0..count)
        .map(|_| {
            let volume = match rng.u8(0..3) {
                0 => Volume::Sphere { radius: size(rng) },
                1 => Volume::Capsule {
                    half_length: size(rng),
                    radius: size(rng),
                },
                _ => Volume::Box {
                    half: Vec3::new(size(rng), size(rng), size(rng)),
                },
            };
            let bone = rng.bool().then(|| rng.u8(0..4));
            let angle = rng.f32() * 3.0;
            let pose = Pose::new(point(rng, 1.5), turn(rng, angle));
            (volume, bone, pose)
        })
        .collect()
}

/// A body's frames at every tick: on a smooth path, in the world or on a platform; some bodies change over.
fn past(
    rng: &mut Rng,
    index: u32,
    bones: usize,
    changing: bool,
) -> Vec<(Pose, Option<EntityId>, Vec<Pose>)> {
    let rides = index >= PLATFORMS && rng.bool();
    let platform = id(rng.u32(0..PLATFORMS));
    let changes = rng.u32(0..2 * TICKS) * u32::from(changing);
    let size = if rides { 8.0 } else { 30.0 };
    let (start, speed) = (point(rng, size), point(rng, 20.0));
    let angle = rng.f32() * 3.0;
    let (facing, spin) = (turn(rng, angle), turn(rng, 0.05));
    let swing = point(rng, 0.3);
    let mut rotation = facing;
    (0..TICKS)
        .map(|tick| {
            let time = tick as f32 / 60.0;
            rotation = (spin * rotation).normalize();
            let wave = Vec3::Y * (time * 9.0).sin();
            let pose = Pose::new(start + speed * time + wave, rotation);
            let poses = (0..bones).map(|bone| {
                let phase = time * 11.0 + bone as f32;
                Pose::new(swing * phase.sin() * 2.0, turn_about(swing, phase.cos()))
            });
            let aboard = rides && tick >= changes;
            (pose, aboard.then_some(platform), poses.collect())
        })
        .collect()
}

fn turn_about(axis: Vec3, angle: f32) -> glam::Quat {
    glam::Quat::from_scaled_axis(axis.normalize_or_zero() * angle)
}

/// Closer than this to a hit or a miss, single precision may decide.
const DOUBT: f64 = 2e-3;
/// Limbs here swing by up to 0.3 radians in a tick, in which a projectile moves by two metres relative to them; straight
/// ways are off by an eighth of the product.
const SPIN: f64 = 0.08;

#[test]
fn shots_hit_what_was_seen() {
    let (mut hits, mut misses, mut doubts) = (0, 0, 0);
    for seed in 0..seeds(30) {
        let mut rng = Rng::with_seed(seed);
        let mut scene = Scene::new(&mut rng, true);
        for _ in 0..60 {
            let admission = scene.admit(&mut rng);
            let ticks = admission.at().ticks();
            let radius = if rng.bool() { 0.0 } else { rng.f32() * 0.3 };
            let target = scene.aim(&mut rng, ticks);
            let origin = target + point(&mut rng, 60.0);
            let range = 20.0 + rng.f32() * 60.0;
            let shot = Shot::new(origin, target - origin)
                .range(range)
                .radius(radius);
            let found = scene.rewind.hitscan(&admission, &shot, &mut ());
            let end = origin + (target - origin).normalize() * range;
            let (start, end) = (wide(origin), wide(end));
            let mut doubt = false;
            // Share of the way, entity, part.
            let mut nearest: Option<(f64, usize, usize)> = None;
            for index in PLATFORMS as usize..ENTITIES as usize {
                for volume in 0..scene.bodies[index].volumes.len() {
                    let frame = scene.volume(index, volume, ticks);
                    let shape = scene.bodies[index].volumes[volume].0;
                    let at =
                        |share: f64| distance(&shape, frame.inverse_point(mix(start, end, share)));
                    let (share, least) = closest(at);
                    let radius = f64::from(radius);
                    doubt |= (least - radius).abs() < DOUBT;
                    if least < radius {
                        let share = first(at, share, radius);
                        let near = nearest.map(|(known, _, _)| known - share);
                        doubt |= near.is_some_and(|near| near.abs() * f64::from(range) < DOUBT);
                        if near.is_none_or(|near| near > 0.0) {
                            nearest = Some((share, index, volume));
                        }
                    }
                }
            }
            if doubt {
                doubts += 1;
                continue;
            }
            match (found, nearest) {
                (None, None) => misses += 1,
                (Some(hit), Some((share, index, part))) => {
                    assert_eq!(hit.entity, id(index as u32), "seed {seed}");
                    assert_eq!(hit.part, Part(part as u16), "seed {seed}");
                    let off = (f64::from(hit.share) - share).abs() * f64::from(range);
                    assert!(off < 0.02, "seed {seed}: {off}");
                    assert!(hit.rewound && hit.at == admission.at());
                    hits += 1;
                }
                (found, expected) => {
                    unreachable!("seed {seed}: {found:?} instead of {expected:?}");
                }
            }
        }
    }
    println!("{hits} hits, {misses} misses, {doubts} in doubt");
    assert!(hits > 300 && misses > 100 && doubts * 20 < hits + misses);
}

#[test]
fn projectiles_fly_through_the_past() {
    let (mut hits, mut misses) = (0, 0);
    for seed in 0..seeds(20) {
        let mut rng = Rng::with_seed(seed);
        let mut scene = Scene::new(&mut rng, false);
        for _ in 0..25 {
            let admission = scene.admit(&mut rng);
            let start = admission.at().ticks();
            let span = f64::from(TICKS - 1) - start;
            let passed = start + span * rng.f64();
            let target = scene.aim(&mut rng, passed);
            // It arrives there at that time, but for what hits it before.
            let time = ((passed - start) / 60.0).max(0.01) as f32;
            let gravity = Vec3::new(0.0, -9.81, 0.0);
            let away = point(&mut rng, 2.0).normalize_or_zero();
            let position = target + away * time * (10.0 + rng.f32() * 50.0);
            let projectile = Projectile {
                position,
                velocity: (target - position) / time - gravity * time * 0.5,
                acceleration: gravity,
                radius: rng.f32() * 0.2,
            };
            let flight = scene.rewind.launch(&admission, &projectile, &mut ());
            let mut least = f64::INFINITY;
            let samples = 60 * (span.ceil() as u32);
            for sample in 0..=samples {
                let ticks = start + span * f64::from(sample) / f64::from(samples);
                let time = (ticks - start) / 60.0;
                let place = std::array::from_fn(|axis| {
                    f64::from(projectile.position[axis])
                        + f64::from(projectile.velocity[axis]) * time
                        + f64::from(projectile.acceleration[axis]) * time * time / 2.0
                });
                for index in PLATFORMS as usize..ENTITIES as usize {
                    for volume in 0..scene.bodies[index].volumes.len() {
                        let frame = scene.volume(index, volume, ticks);
                        let shape = scene.bodies[index].volumes[volume].0;
                        let off = distance(&shape, frame.inverse_point(place));
                        least = least.min(off - f64::from(projectile.radius));
                    }
                }
            }
            match flight {
                Flight::Hit(hit) => {
                    assert!(least < SPIN, "seed {seed}: hit {hit:?} at {least}");
                    hits += 1;
                }
                Flight::Flying(then) => {
                    assert!(least > -SPIN, "seed {seed}: passed through, {least}");
                    let time = (span / 60.0) as f32;
                    let fallen = projectile.velocity.y - 9.81 * time;
                    assert!((then.velocity.y - fallen).abs() < 1e-2);
                    misses += 1;
                }
                Flight::Blocked { .. } => unreachable!("there is no wall"),
            }
        }
    }
    println!("{hits} hits, {misses} misses");
    assert!(hits > 60 && misses > 60, "{hits} {misses}");
}

#[test]
fn blows_touch_what_was_near() {
    let (mut touched, mut missed) = (0, 0);
    let mut hits = Vec::new();
    for seed in 0..seeds(20) {
        let mut rng = Rng::with_seed(seed);
        let mut scene = Scene::new(&mut rng, false);
        for _ in 0..25 {
            let admission = scene.admit(&mut rng);
            let ticks = admission.at().ticks();
            let hilt = scene.aim(&mut rng, ticks) + point(&mut rng, 2.0);
            let blow = Blow {
                from: (hilt, hilt + point(&mut rng, 2.0)),
                to: (hilt + point(&mut rng, 0.4), hilt + point(&mut rng, 2.0)),
                radius: 0.05 + rng.f32() * 0.1,
            };
            scene.rewind.strike(&admission, &blow, &mut (), &mut hits);
            for index in PLATFORMS as usize..ENTITIES as usize {
                let mut least = f64::INFINITY;
                for volume in 0..scene.bodies[index].volumes.len() {
                    let frame = scene.volume(index, volume, ticks);
                    let shape = scene.bodies[index].volumes[volume].0;
                    for step in 0..=200 {
                        let share = f64::from(step) / 200.0;
                        let ends = [(blow.from.0, blow.to.0), (blow.from.1, blow.to.1)];
                        let [base, tip] =
                            ends.map(|(a, b)| frame.inverse_point(mix(wide(a), wide(b), share)));
                        // Along the blade the distance is convex; a few points bound it well.
                        for along in 0..=20 {
                            let at = mix(base, tip, f64::from(along) / 20.0);
                            least = least.min(distance(&shape, at));
                        }
                    }
                }
                let least = least - f64::from(blow.radius);
                let found = hits.iter().any(|hit| hit.entity == id(index as u32));
                if found {
                    assert!(least < 0.08, "seed {seed}: {index} was {least} away");
                    touched += 1;
                } else {
                    assert!(least > -0.03, "seed {seed}: {index} was {least} in");
                    missed += 1;
                }
            }
        }
    }
    println!("{touched} touched, {missed} missed");
    assert!(touched > 100 && missed > 1_000, "{touched} {missed}");
}
