//! Pulling a path taut: from the gates it goes through to the few points where it turns.

use glam::{Vec2, Vec3};

use super::search::Crossed;
use super::{Mesh, Waypoint, flat};

/// The turning points of the shortest way through the gates.
pub(super) fn taut(
    mesh: &Mesh,
    from: Vec3,
    to: Vec3,
    start: u16,
    crossed: &[Crossed],
) -> Vec<Waypoint> {
    let mut path = Vec::new();
    let mut at = flat(from);
    let mut stretch: Vec<(Crossed, [Vec2; 2])> = Vec::new();
    let mut rectangle = start;
    for step in crossed {
        let gate = &mesh.gates[usize::from(step.gate)];
        if gate.jump {
            walk(mesh, (rectangle, at), gate.ends[0], &stretch, &mut path);
            stretch.clear();
            at = gate.ends[1];
            rectangle = step.into;
            path.push(Waypoint {
                at: raised(mesh, rectangle, at),
                jump: true,
            });
        } else {
            stretch.push((*step, gate.ends));
        }
    }
    walk(mesh, (rectangle, at), flat(to), &stretch, &mut path);
    path
}

/// One stretch on foot.
fn walk(
    mesh: &Mesh,
    (rectangle, from): (u16, Vec2),
    to: Vec2,
    stretch: &[(Crossed, [Vec2; 2])],
    path: &mut Vec<Waypoint>,
) {
    let mut gates: Vec<[Vec2; 2]> = Vec::with_capacity(stretch.len() + 1);
    for (step, [a, b]) in stretch {
        // Left and right as seen by who goes through: gates lie along an axis, and their second side is farther along the other.
        let across = if a.x == b.x { Vec2::X } else { Vec2::Y };
        let second = mesh.gates[usize::from(step.gate)].sides[1] == step.into;
        let ahead = if second { across } else { -across };
        let left_first = cross(ahead, *a - *b) >= 0.0;
        gates.push(if left_first { [*a, *b] } else { [*b, *a] });
    }
    gates.push([to, to]);
    let mut apex = from;
    let (mut left, mut right) = (gates[0][0], gates[0][1]);
    let (mut left_at, mut right_at) = (0, 0);
    let mut index = 1;
    let mut turns = 0;
    let mut push = |point: Vec2, gate: usize| {
        let behind = match gate {
            0 => rectangle,
            gate => stretch.get(gate - 1).map_or(rectangle, |step| step.0.into),
        };
        path.push(Waypoint {
            at: raised(mesh, behind, point),
            jump: false,
        });
    };
    while index < gates.len() && turns < TURNS_MAX {
        let [next_left, next_right] = gates[index];
        if cross(right - apex, next_right - apex) >= 0.0 {
            if same(apex, right) || cross(left - apex, next_right - apex) < 0.0 {
                (right, right_at) = (next_right, index);
            } else {
                push(left, left_at);
                turns += 1;
                apex = left;
                index = left_at + 1;
                (right, right_at) = (apex, left_at);
                continue;
            }
        }
        if cross(left - apex, next_left - apex) <= 0.0 {
            if same(apex, left) || cross(right - apex, next_left - apex) > 0.0 {
                (left, left_at) = (next_left, index);
            } else {
                push(right, right_at);
                turns += 1;
                apex = right;
                index = right_at + 1;
                (left, left_at) = (apex, right_at);
                continue;
            }
        }
        index += 1;
    }
    push(to, stretch.len());
}

fn raised(mesh: &Mesh, rectangle: u16, at: Vec2) -> Vec3 {
    let piece = &mesh.rectangles[usize::from(rectangle)];
    Vec3::new(at.x, piece.plane.at(at), at.y)
}

fn cross(a: Vec2, b: Vec2) -> f32 {
    a.x * b.y - a.y * b.x
}

fn same(a: Vec2, b: Vec2) -> bool {
    a.distance_squared(b) < 1e-6
}

/// More turns no path has.
const TURNS_MAX: usize = 512;
