//! The movement of a bot: along the mesh, over jumps, on and off what moves, and never into a pit on purpose.

use glam::{Vec2, Vec3};
use muse::netcode::Tick;

use crate::collision::Body;
use crate::level::Level;
use crate::nav::{Search, Size, Waypoint};
use crate::states::Robot;

/// The terrain it walks on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terrain<'a> {
    pub level: &'a Level,
    pub bodies: &'a [Body],
}

/// The direction to go now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drive {
    /// Of length 1, or zero to stand.
    pub way: Vec2,
    pub jump: bool,
}

/// The way that a bot has in mind.
#[derive(Clone, Debug, Default)]
pub(super) struct Legs {
    path: Vec<Waypoint>,
    goal: Option<Vec3>,
    search: Search,
    search_at: u32,
    leaping: bool,
    last: Vec3,
    last_at: u32,
    wiggle_until: u32,
    wiggle: Vec2,
}

impl Legs {
    /// It is somewhere else now.
    pub(super) fn forget(&mut self) {
        self.path.clear();
        self.goal = None;
        self.leaping = false;
    }

    pub(super) const fn is_jumping(&self) -> bool {
        self.leaping
    }

    pub(super) fn drive(
        &mut self,
        robot: &Robot,
        goal: Vec3,
        near: f32,
        tick: Tick,
        terrain: &Terrain<'_>,
        rng: &mut fastrand::Rng,
    ) -> Drive {
        let feet = robot.feet();
        let off = goal - feet;
        if flat(off).length() <= near && off.y.abs() < 1.5 && robot.standing != 0 {
            self.forget();
            return Drive::default();
        }
        if let Some(drive) = self.unstick(robot, tick, terrain, rng) {
            return drive;
        }
        self.plan(robot, goal, tick, terrain);
        let Some(next) = self.next(robot) else {
            return self.straight(robot, goal, terrain);
        };
        match next.jump {
            true => self.leap(robot, next.at, terrain),
            false => self.walk(robot, next.at, terrain),
        }
    }

    /// A path over the mesh, when there is none to this goal; from where one cannot walk by the mesh there is none.
    fn plan(&mut self, robot: &Robot, goal: Vec3, tick: Tick, terrain: &Terrain<'_>) {
        let moved = self.goal.is_none_or(|known| known.distance(goal) > 0.6);
        let lost = self.path.is_empty();
        if !(moved || lost) || tick.0 < self.search_at || robot.standing == 0 || self.leaping {
            return;
        }
        self.search_at = tick.0 + SEARCH_TICKS;
        self.goal = Some(goal);
        self.path.clear();
        let mesh = terrain.level.mesh(Size::Robot);
        let on_mesh = robot.standing == 1;
        let reachable = mesh
            .nearest(goal)
            .is_some_and(|at| flat(at - goal).length() < 1.6 && (at.y - goal.y).abs() < 1.5);
        if on_mesh && reachable {
            let path = mesh.path(robot.feet(), goal, &mut self.search);
            self.path = path.unwrap_or_default();
        }
    }

    /// The next point of the path, having passed those that are near.
    fn next(&mut self, robot: &Robot) -> Option<Waypoint> {
        let feet = robot.feet();
        while let Some(next) = self.path.first().copied() {
            let off = next.at - feet;
            let far = flat(off).length();
            let radius = if next.jump { 0.9 } else { 0.4 };
            let stands = robot.standing != 0;
            if far < radius && off.y.abs() < 0.6 && stands {
                self.path.remove(0);
                self.leaping = false;
                continue;
            }
            // It came down beside where it wanted to.
            if self.leaping && stands && off.y > 1.3 {
                self.forget();
                return None;
            }
            return Some(next);
        }
        None
    }

    fn walk(&mut self, robot: &Robot, to: Vec3, terrain: &Terrain<'_>) -> Drive {
        let way = flat(to - robot.feet()).normalize_or_zero();
        let safe = robot.standing == 0 || terrain.is_safe(robot, way);
        if !safe {
            // The mesh says that there is ground; what is not there yet, or no more, is waited for.
            self.path.clear();
            return Drive::default();
        }
        Drive { way, jump: false }
    }

    /// Over a gap from its edge, up a step at once.
    fn leap(&mut self, robot: &Robot, to: Vec3, terrain: &Terrain<'_>) -> Drive {
        let off = to - robot.feet();
        let way = flat(off).normalize_or_zero();
        let grounded = robot.standing != 0;
        let up = off.y > 0.3;
        let down = off.y < -0.4 && flat(off).length() < 1.8;
        let edge = !terrain.is_safe(robot, way);
        self.leaping = true;
        // In the air over the place where it wants to be it goes no farther.
        let over = !grounded && flat(off).length() < 0.25;
        let ready = flat(robot.velocity.into()).dot(way) > 2.5 || up;
        let jump = grounded && !robot.jump_held && !down && ready && (up || edge);
        // From a standstill at the very edge there is no room to run up.
        let stuck = grounded && edge && !up && !down && !ready;
        Drive {
            way: if over || (stuck && robot.jump_held) {
                Vec2::ZERO
            } else {
                way
            },
            jump: jump || (stuck && !robot.jump_held),
        }
    }

    /// Without a path: straight there, as far as there is ground.
    fn straight(&mut self, robot: &Robot, goal: Vec3, terrain: &Terrain<'_>) -> Drive {
        self.leaping = false;
        let way = flat(goal - robot.feet()).normalize_or_zero();
        if robot.standing != 0 && !terrain.is_safe(robot, way) {
            return Drive::default();
        }
        Drive { way, jump: false }
    }

    /// Tries something else when it has not come on for a while.
    fn unstick(
        &mut self,
        robot: &Robot,
        tick: Tick,
        terrain: &Terrain<'_>,
        rng: &mut fastrand::Rng,
    ) -> Option<Drive> {
        let feet = robot.feet();
        if self.last.distance(feet) > 0.4 || robot.standing >= 2 {
            (self.last, self.last_at) = (feet, tick.0);
        }
        if tick.0 >= self.last_at + STUCK_TICKS {
            self.forget();
            (self.last, self.last_at) = (feet, tick.0);
            self.wiggle_until = tick.0 + 12;
            let angle = rng.f32() * std::f32::consts::TAU;
            self.wiggle = Vec2::new(libm::cosf(angle), libm::sinf(angle));
        }
        if tick.0 < self.wiggle_until && terrain.is_safe(robot, self.wiggle) {
            return Some(Drive {
                way: self.wiggle,
                jump: false,
            });
        }
        None
    }
}

impl Terrain<'_> {
    /// True if there is ground a step ahead.
    pub(super) fn is_safe(&self, robot: &Robot, way: Vec2) -> bool {
        let ahead = Vec3::new(way.x, 0.0, way.y) * STEP_AHEAD;
        let half = Vec3::new(0.25, 0.05, 0.25);
        let start = robot.feet() + ahead + Vec3::Y * 0.6;
        let collision = self.level.collision();
        let down = Vec3::NEG_Y * (0.6 + DROP);
        collision.overlaps(start, half) || collision.sweep(start, down, half, self.bodies).is_some()
    }
}

fn flat(vector: Vec3) -> Vec2 {
    Vec2::new(vector.x, vector.z)
}

/// Ticks between two searches.
const SEARCH_TICKS: u32 = 10;
/// Ticks without getting anywhere.
const STUCK_TICKS: u32 = 200;
const STEP_AHEAD: f32 = 0.6;
/// The depth that a bot steps down without a second thought.
const DROP: f32 = 1.6;
