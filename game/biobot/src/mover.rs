//! The character mover: runs, jumps, climbs slopes and steps, rides what moves.
//!
//! Everything is sums and products of what both sides have, on the grid of [`Robot`](crate::Robot): the same bits everywhere. A jump is an
//! action of its own: who is thrown up by a ramp or a lift has not jumped.

use glam::{Vec2, Vec3};

use crate::collision::{Body, Collision, Contact, HULL, SKIN};

/// Someone who moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walker {
    /// Its feet.
    pub feet: Vec3,
    /// Metres a second, without what carries it.
    pub velocity: Vec3,
    /// 0 in the air, 1 on the ground, 2 + n on the device n.
    pub standing: u8,
}

/// The input of a walker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wish {
    /// The direction and speed, as a share of the speed of running: at most of length 1. In the world: x and z.
    pub way: Vec2,
    /// True if it jumps now.
    pub jump: bool,
}

/// The obstacles of a walker.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The parts that never move.
    pub collision: &'a Collision,
    /// The bodies that move, at the end of the tick.
    pub bodies: &'a [Body],
    /// The distance that each of those has moved in this tick.
    pub moved: &'a [Vec3],
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// It jumped.
    pub jumped: bool,
    /// It came down, that fast.
    pub landed: Option<f32>,
}

/// One tick of someone.
///
/// ```
/// use glam::{Vec2, Vec3};
/// use muse_biobot::Level;
/// use muse_biobot::mover::{Around, Walker, Wish, step};
/// let level = Level::arena();
/// let around = Around { collision: level.collision(), bodies: &[], moved: &[] };
/// let start: Vec3 = level.spawns[0].at.into();
/// let mut walker = Walker { feet: start, velocity: Vec3::ZERO, standing: 0 };
/// for _ in 0..50 {
///     step(&mut walker, Wish { way: Vec2::new(0.0, 0.0), jump: false }, &around);
/// }
/// assert_eq!(walker.standing, 1);
/// ```
pub fn step(walker: &mut Walker, wish: Wish, around: &Around<'_>) -> Moved {
    let mut happened = Moved::default();
    carry(walker, around);
    let grounded = walker.standing > 0;
    accelerate(walker, wish.way, grounded);
    if grounded {
        walker.velocity.y = 0.0;
    }
    let jumps = wish.jump && grounded;
    if jumps {
        walker.velocity.y = JUMP_SPEED + lifted(walker, around);
        walker.standing = 0;
        happened.jumped = true;
    } else if !grounded {
        walker.velocity.y = (walker.velocity.y - GRAVITY * DT).max(-FALL_MAX);
    }
    let falling = walker.velocity.y;
    let mut mover = Mover {
        at: walker.feet + Vec3::Y * HULL.y,
        velocity: walker.velocity,
        around,
    };
    if grounded && !jumps {
        mover.walk();
    } else {
        mover.slide(DT, false);
    }
    let ground = mover.find_ground(grounded && !jumps);
    walker.feet = mover.at - Vec3::Y * HULL.y;
    walker.velocity = mover.velocity;
    match ground {
        Some(contact) => {
            walker.standing = contact
                .device
                .map_or(1, |device| (device + 2).min(255) as u8);
            walker.velocity.y = 0.0;
            if !grounded {
                happened.landed = Some(-falling);
            }
        }
        None => walker.standing = 0,
    }
    happened
}

/// Moves along with what it stands on, and out of the way of what pushes.
fn carry(walker: &mut Walker, around: &Around<'_>) {
    let mut at = walker.feet + Vec3::Y * HULL.y;
    let carrier = usize::from(walker.standing).checked_sub(2);
    let carried = around
        .bodies
        .iter()
        .zip(around.moved)
        .find(|(body, _)| Some(body.device) == carrier);
    if let Some((_, moved)) = carried
        && *moved != Vec3::ZERO
    {
        // What carries it is no obstacle; what stands is.
        let stopped = around.collision.sweep(at, *moved, HULL, &[]);
        at += *moved * stopped.map_or(1.0, |contact| contact.share);
    }
    for (body, _) in around.bodies.iter().zip(around.moved) {
        if body.carries && body.overlaps(at, HULL) {
            at = pushed(at, body, around.collision);
        }
    }
    if around.collision.overlaps(at, HULL) {
        at += around.collision.way_out(at, HULL);
    }
    walker.feet = at - Vec3::Y * HULL.y;
}

/// Out of a body by the shortest way that is free; where none is, it stays, and can walk out.
fn pushed(at: Vec3, body: &Body, collision: &Collision) -> Vec3 {
    let (low, high) = (body.min - HULL, body.max + HULL);
    let mut ways = [
        Vec3::new(low.x - at.x - SKIN, 0.0, 0.0),
        Vec3::new(high.x - at.x + SKIN, 0.0, 0.0),
        Vec3::new(0.0, high.y - at.y + SKIN, 0.0),
        Vec3::new(0.0, 0.0, low.z - at.z - SKIN),
        Vec3::new(0.0, 0.0, high.z - at.z + SKIN),
    ];
    ways.sort_by(|a, b| a.length_squared().total_cmp(&b.length_squared()));
    let free = ways
        .into_iter()
        .find(|way| !collision.overlaps(at + *way, HULL));
    free.map_or(at, |way| at + way)
}

/// Returns what a jump gains from what lifts.
fn lifted(walker: &Walker, around: &Around<'_>) -> f32 {
    let carrier = usize::from(walker.standing).checked_sub(2);
    let mut all = around.bodies.iter().zip(around.moved);
    let found = all.find(|(body, _)| Some(body.device) == carrier);
    found.map_or(0.0, |(_, moved)| (moved.y / DT).max(0.0))
}

fn accelerate(walker: &mut Walker, way: Vec2, grounded: bool) {
    let way = if way.length_squared() > 1.0 {
        way.normalize()
    } else {
        way
    };
    let wanted = way * RUN_SPEED;
    let flat = Vec2::new(walker.velocity.x, walker.velocity.z);
    let change = wanted - flat;
    let most = DT
        * if grounded {
            ACCELERATION_GROUND
        } else {
            ACCELERATION_AIR
        };
    let far = change.length();
    let flat = if far <= most {
        wanted
    } else {
        flat + change * (most / far)
    };
    walker.velocity.x = flat.x;
    walker.velocity.z = flat.y;
}

/// A hull on its way through a tick.
struct Mover<'a> {
    at: Vec3,
    velocity: Vec3,
    around: &'a Around<'a>,
}

impl Mover<'_> {
    /// On the ground: as far as it gets, or further over a step.
    fn walk(&mut self) {
        let (start, velocity) = (self.at, self.velocity);
        let blocked = self.slide(DT, true);
        if !blocked {
            return;
        }
        let (low, low_velocity) = (self.at, self.velocity);
        self.at = start;
        self.velocity = velocity;
        let up = self.advance(Vec3::Y * STEP_HEIGHT);
        self.slide(DT, true);
        let contact = self.sweep(Vec3::NEG_Y * (up + SKIN));
        let Some(contact) = contact.filter(|contact| contact.normal.y >= WALKABLE) else {
            (self.at, self.velocity) = (low, low_velocity);
            return;
        };
        self.at -= Vec3::Y * ((up + SKIN) * contact.share);
        if flat_distance(self.at, start) <= flat_distance(low, start) + 1e-4 {
            (self.at, self.velocity) = (low, low_velocity);
        }
    }

    /// Moves for so many seconds, along whatever it meets. Says whether something that cannot be walked on was in the way.
    fn slide(&mut self, seconds: f32, grounded: bool) -> bool {
        let mut left = seconds;
        let mut planes = [Vec3::ZERO; PLANES_MAX];
        let mut blocked = false;
        let wanted = self.velocity;
        for count in 0..PLANES_MAX {
            let Some(contact) = self.sweep(self.velocity * left) else {
                self.at += self.velocity * left;
                return blocked;
            };
            self.at += self.velocity * (left * contact.share);
            left -= left * contact.share;
            self.restore(&contact);
            planes[count] = contact.normal;
            let slope = grounded && contact.normal.y >= WALKABLE;
            blocked |= contact.normal.y < WALKABLE;
            if slope {
                // Up a slope as fast as on the flat.
                let flat = contact.normal.x * self.velocity.x + contact.normal.z * self.velocity.z;
                self.velocity.y = -flat / contact.normal.y + 1e-4;
            } else {
                self.velocity = clipped(self.velocity, &planes[..=count]);
            }
            if self.velocity.dot(wanted) <= 0.0 && !slope {
                self.velocity = Vec3::new(0.0, self.velocity.y.min(0.0), 0.0);
                if grounded {
                    break;
                }
            }
        }
        blocked
    }

    /// Keeps the distance that rounding to the grid takes away little by little.
    fn restore(&mut self, contact: &Contact) {
        let kept = self.at + contact.normal * contact.lack;
        if contact.lack > 0.0 && !self.around.collision.overlaps(kept, HULL) {
            self.at = kept;
        }
    }

    /// Straight, as far as it gets. Says how far, upwards.
    fn advance(&mut self, delta: Vec3) -> f32 {
        let share = self.sweep(delta).map_or(1.0, |contact| contact.share);
        self.at += delta * share;
        delta.length() * share
    }

    /// Finds the ground that it stands on, having come down to it.
    fn find_ground(&mut self, was_grounded: bool) -> Option<Contact> {
        if self.velocity.y > RISING && !was_grounded {
            return None;
        }
        // Down slopes and steps who walks stays on the ground.
        let depth = if was_grounded {
            STEP_HEIGHT
        } else {
            GROUND_DEPTH
        };
        let contact = self.sweep(Vec3::NEG_Y * depth)?;
        if contact.normal.y < WALKABLE || contact.inside {
            return None;
        }
        self.at -= Vec3::Y * (depth * contact.share);
        self.restore(&contact);
        Some(contact)
    }

    fn sweep(&self, delta: Vec3) -> Option<Contact> {
        let around = self.around;
        around.collision.sweep(self.at, delta, HULL, around.bodies)
    }
}

/// A velocity that leads into none of these planes: along one, along the edge of two, or none.
fn clipped(velocity: Vec3, planes: &[Vec3]) -> Vec3 {
    let along = |velocity: Vec3, plane: Vec3| velocity - plane * velocity.dot(plane);
    let into = |velocity: Vec3| planes.iter().any(|plane| velocity.dot(*plane) < -1e-4);
    for plane in planes.iter().rev() {
        let slid = along(velocity, *plane);
        if !into(slid) {
            return slid;
        }
    }
    if let [.., first, second] = planes {
        let edge = first.cross(*second);
        if let Some(edge) = edge.try_normalize() {
            let slid = edge * velocity.dot(edge);
            if !into(slid) {
                return slid;
            }
        }
    }
    Vec3::ZERO
}

fn flat_distance(a: Vec3, b: Vec3) -> f32 {
    Vec2::new(a.x - b.x, a.z - b.z).length_squared()
}

/// Seconds of a tick.
const DT: f32 = crate::TICK_SECONDS;
/// Metres a second of running.
pub const RUN_SPEED: f32 = 6.0;
/// Metres a second squared.
pub const GRAVITY: f32 = 20.0;
/// A jump of 1.3 m: the square root of 2 x 20 x 1.3, less what the first tick without gravity gives.
pub const JUMP_SPEED: f32 = 7.03;
/// The steepest slope that can be walked on: the cosine of 46 degrees.
pub const WALKABLE: f32 = 0.694_6;
/// The highest step.
pub const STEP_HEIGHT: f32 = 0.35;
/// Fastest fall.
pub const FALL_MAX: f32 = 40.0;
const ACCELERATION_GROUND: f32 = 70.0;
const ACCELERATION_AIR: f32 = 22.0;
const GROUND_DEPTH: f32 = 0.03;
/// A walker that rises faster than this stands on nothing.
const RISING: f32 = 0.1;
const PLANES_MAX: usize = 5;
