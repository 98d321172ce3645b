//! One tick of the ball in rapier, in a world of what is near it, made for this tick and forgotten after it.

use glam::Vec3;
use rapier3d::prelude::{
    BroadPhaseBvh, CCDSolver, CoefficientCombineRule, ColliderBuilder, ColliderSet,
    ImpulseJointSet, IntegrationParameters, IslandManager, MultibodyJointSet, NarrowPhase,
    PhysicsPipeline, Pose, RigidBodyBuilder, RigidBodySet, SharedShape, SoftBodySet,
};

use crate::TICK_SECONDS;
use crate::level::{Level, Side, Solid};
use crate::mover::GRAVITY;
use crate::states::{BALL_RADIUS, ROBOT_HEIGHT, ROBOT_RADIUS};

/// The solids of a level, ready for the ball.
#[derive(Debug)]
pub(super) struct Physics {
    solids: Vec<Fixed>,
    /// The corners of everything that stands.
    min: Vec3,
    max: Vec3,
    parameters: IntegrationParameters,
}

/// Something that stands.
struct Fixed {
    shape: SharedShape,
    middle: Vec3,
    min: Vec3,
    max: Vec3,
}

/// The way of a robot in a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    from: Vec3,
    to: Vec3,
}

impl Push {
    /// From feet to feet. Only along the ground: who lands on the ball does not press it away under them.
    pub(super) fn new(before: Vec3, after: Vec3) -> Self {
        Self {
            from: before.with_y(after.y),
            to: after,
        }
    }

    /// Metres a second.
    pub(super) fn speed(&self) -> f32 {
        self.from.distance(self.to) / TICK_SECONDS
    }
}

impl Physics {
    pub(super) fn new(level: &Level) -> Self {
        let solids: Vec<Fixed> = level.solids.iter().map(Fixed::new).collect();
        let min = solids.iter().map(|solid| solid.min);
        let max = solids.iter().map(|solid| solid.max);
        let parameters = IntegrationParameters {
            dt: TICK_SECONDS,
            // Nothing is known of the tick before.
            warmstart_coefficient: 0.0,
            contact_recycling: false,
            // As far as the ball gets in a tick: it touches a wall and does not dive into it.
            normalized_prediction_distance: REACH,
            ..IntegrationParameters::default()
        };
        Self {
            min: min.reduce(Vec3::min).unwrap_or_default(),
            max: max.reduce(Vec3::max).unwrap_or_default(),
            solids,
            parameters,
        }
    }

    /// Returns where a ball is after a tick, how fast, and whether it touches the ground.
    pub(super) fn step(&self, at: Vec3, velocity: Vec3, pushes: &[Push]) -> (Vec3, Vec3, bool) {
        let mut bodies = RigidBodySet::new();
        let mut colliders = ColliderSet::new();
        let body = RigidBodyBuilder::dynamic()
            .translation(at)
            .linvel(velocity)
            .lock_rotations()
            .can_sleep(false);
        let ball = bodies.insert(body);
        let collider = ColliderBuilder::ball(BALL_RADIUS)
            .mass(1.0)
            .friction(0.0)
            .friction_combine_rule(CoefficientCombineRule::Min)
            .restitution(1.0)
            .restitution_combine_rule(CoefficientCombineRule::Min);
        colliders.insert_with_parent(collider, ball, &mut bodies);
        for solid in self.near(at) {
            let collider = ColliderBuilder::new(solid.shape.clone())
                .translation(solid.middle)
                .restitution(BOUNCE_WALL);
            colliders.insert(collider);
        }
        for push in pushes {
            let middle = Vec3::Y * (ROBOT_HEIGHT / 2.0);
            let body = RigidBodyBuilder::kinematic_position_based().translation(push.from + middle);
            let robot = bodies.insert(body);
            let half = ROBOT_HEIGHT / 2.0 - ROBOT_RADIUS;
            let collider = ColliderBuilder::capsule_y(half, ROBOT_RADIUS).restitution(BOUNCE_ROBOT);
            colliders.insert_with_parent(collider, robot, &mut bodies);
            if let Some(body) = bodies.get_mut(robot) {
                body.set_next_kinematic_translation(push.to + middle);
            }
        }
        PhysicsPipeline::new().step(
            Vec3::NEG_Y * GRAVITY,
            &self.parameters,
            &mut IslandManager::new(),
            &mut BroadPhaseBvh::default(),
            &mut NarrowPhase::new(),
            &mut bodies,
            &mut colliders,
            &mut ImpulseJointSet::new(),
            &mut MultibodyJointSet::new(),
            &mut SoftBodySet::new(),
            &mut CCDSolver::new(),
            &(),
            &(),
        );
        let (after, velocity) = bodies
            .get(ball)
            .map_or((at, velocity), |body| (body.translation(), body.linvel()));
        (after, velocity, self.supports(after))
    }

    /// True if a ball there touches ground.
    pub(super) fn supports(&self, at: Vec3) -> bool {
        let touches = |solid: &Fixed| {
            let to = solid.nearest(at) - at;
            let far = to.length();
            far < BALL_RADIUS + GROUND && to.y < -far * GROUND_STEEP
        };
        self.near(at).any(touches)
    }

    /// The way out of what stands, for a ball that is inside.
    pub(super) fn way_out(&self, at: Vec3) -> Vec3 {
        let mut middle = at;
        for _ in 0..WAY_OUT_STEPS {
            let mut deepest = (GRID, Vec3::ZERO);
            for solid in self.near(middle) {
                let (inside, out) = solid.out(middle);
                if inside > deepest.0 {
                    deepest = (inside, out * inside);
                }
            }
            if deepest.1 == Vec3::ZERO {
                break;
            }
            middle += deepest.1;
        }
        middle - at
    }

    /// True if a ball there is between the outermost walls.
    pub(super) fn contains(&self, at: Vec3) -> bool {
        at.cmpge(self.min).all() && at.cmple(self.max).all()
    }

    fn near(&self, at: Vec3) -> impl Iterator<Item = &Fixed> {
        let reach = Vec3::splat(BALL_RADIUS + REACH);
        let (low, high) = (at - reach, at + reach);
        let meets = move |solid: &&Fixed| solid.min.cmple(high).all() && solid.max.cmpge(low).all();
        self.solids.iter().filter(meets)
    }
}

impl Fixed {
    fn new(solid: &Solid) -> Self {
        let (min, max) = (Vec3::from(solid.min), Vec3::from(solid.max));
        let (middle, half) = ((min + max) * 0.5, (max - min) * 0.5);
        let wedge = solid.rise.and_then(|side| wedge(half, side));
        Self {
            shape: wedge.unwrap_or_else(|| SharedShape::cuboid(half.x, half.y, half.z)),
            middle,
            min,
            max,
        }
    }

    /// The point of its surface or inside that is nearest to another.
    fn nearest(&self, at: Vec3) -> Vec3 {
        let pose = Pose::from_translation(self.middle);
        self.shape.project_point(&pose, at, true).point
    }

    /// Returns the depth of a ball inside of it, and the direction out.
    fn out(&self, at: Vec3) -> (f32, Vec3) {
        let pose = Pose::from_translation(self.middle);
        let surface = self.shape.project_point(&pose, at, false);
        let way = at - surface.point;
        let far = way.length();
        if far < 1e-5 {
            return (BALL_RADIUS, Vec3::Y);
        }
        match surface.is_inside {
            true => (BALL_RADIUS + far, -way / far),
            false => (BALL_RADIUS - far, way / far),
        }
    }
}

impl std::fmt::Debug for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fixed")
            .field("min", &self.min)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

/// A ramp: the corners of a box without those above its low side.
fn wedge(half: Vec3, rise: Side) -> Option<SharedShape> {
    let low = match rise {
        Side::PlusX => Vec3::NEG_X,
        Side::MinusX => Vec3::X,
        Side::PlusZ => Vec3::NEG_Z,
        Side::MinusZ => Vec3::Z,
    };
    let mut corners = Vec::with_capacity(6);
    for x in [-1.0, 1.0] {
        for y in [-1.0, 1.0] {
            for z in [-1.0, 1.0] {
                let corner = Vec3::new(x, y, z);
                if y < 0.0 || corner.dot(low) < 0.0 {
                    corners.push(corner * half);
                }
            }
        }
    }
    SharedShape::convex_hull(&corners)
}

/// Share of its speed with which the ball comes back from a wall.
const BOUNCE_WALL: f32 = 0.6;
/// The same from a robot that stands still.
pub(super) const BOUNCE_ROBOT: f32 = 0.25;
/// As far as the ball gets in a tick.
const REACH: f32 = 0.7;
/// The gap within which it touches the ground.
const GROUND: f32 = 0.02;
/// The cosine of the steepest ground.
const GROUND_STEEP: f32 = 0.7;
/// It may be as deep inside of something as its grid is coarse.
const GRID: f32 = 0.002;
const WAY_OUT_STEPS: usize = 4;
