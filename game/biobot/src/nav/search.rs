//! A* over the gates of a mesh.

use std::collections::BinaryHeap;

use glam::{Vec2, Vec3};

use super::{Mesh, flat};

/// The memory of a search; kept from one to the next, so that searching does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Search {
    nodes: Vec<Node>,
    open: BinaryHeap<Open>,
    run: u32,
    /// Gates looked at in the last search.
    pub looked_at: u32,
}

/// A gate gone through in one of its two directions.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    run: u32,
    cost: f32,
    at: Vec2,
    before: u32,
    closed: bool,
}

/// The least promising last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Open {
    estimate: f32,
    node: u32,
}

impl Eq for Open {}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other
            .estimate
            .total_cmp(&self.estimate)
            .then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A gate on a path, and the rectangle behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossed {
    pub gate: u16,
    pub into: u16,
}

impl Search {
    /// The gates to go through from one rectangle to another.
    pub(super) fn run(
        &mut self,
        mesh: &Mesh,
        (start, from): (u16, Vec3),
        (goal, to): (u16, Vec3),
    ) -> Option<Vec<Crossed>> {
        self.looked_at = 0;
        if start == goal {
            return Some(Vec::new());
        }
        self.run = self.run.wrapping_add(1);
        self.nodes.resize(mesh.gates.len() * 2, Node::default());
        self.open.clear();
        let (from, to) = (flat(from), flat(to));
        self.expand(mesh, start, (from, 0.0, NOBODY), to);
        while let Some(open) = self.open.pop() {
            let node = &mut self.nodes[open.node as usize];
            if node.closed {
                continue;
            }
            node.closed = true;
            let (at, cost) = (node.at, node.cost);
            let into = into(mesh, open.node);
            if into == goal {
                return Some(self.trace(mesh, open.node));
            }
            self.looked_at += 1;
            if self.looked_at >= GATES_LOOKED_AT_MAX {
                return None;
            }
            self.expand(mesh, into, (at, cost, open.node), to);
        }
        None
    }

    fn expand(&mut self, mesh: &Mesh, rectangle: u16, from: (Vec2, f32, u32), goal: Vec2) {
        let (point, so_far, before) = from;
        for number in &mesh.rectangles[usize::from(rectangle)].gates {
            let gate = &mesh.gates[usize::from(*number)];
            let side = u32::from(gate.sides[0] != rectangle);
            let index = u32::from(*number) * 2 + side;
            let (at, cost) = match gate.jump {
                true => {
                    let run_up = gate.ends[0].distance(point);
                    let leap = gate.ends[0].distance(gate.ends[1]);
                    (gate.ends[1], run_up + leap * 1.3 + JUMP_COST)
                }
                false => {
                    let at = through(gate.ends, point, goal);
                    (at, at.distance(point))
                }
            };
            let cost = so_far + cost;
            let node = &mut self.nodes[index as usize];
            if node.run == self.run && (node.closed || node.cost <= cost) {
                continue;
            }
            *node = Node {
                run: self.run,
                cost,
                at,
                before,
                closed: false,
            };
            self.open.push(Open {
                estimate: cost + at.distance(goal),
                node: index,
            });
        }
    }

    fn trace(&self, mesh: &Mesh, last: u32) -> Vec<Crossed> {
        let mut path = Vec::new();
        let mut at = last;
        while at != NOBODY {
            path.push(Crossed {
                gate: (at / 2) as u16,
                into: into(mesh, at),
            });
            at = self.nodes[at as usize].before;
        }
        path.reverse();
        path
    }
}

/// The rectangle that a node leads to.
fn into(mesh: &Mesh, node: u32) -> u16 {
    let gate = &mesh.gates[(node / 2) as usize];
    gate.sides[1 - (node % 2) as usize]
}

/// The point of a gate that is most on the way from one point to another.
fn through([a, b]: [Vec2; 2], from: Vec2, to: Vec2) -> Vec2 {
    let edge = b - a;
    let length = edge.length_squared();
    if length <= 0.0 {
        return a;
    }
    let across = Vec2::new(-edge.y, edge.x);
    let (before, behind) = (across.dot(from - a), across.dot(to - a));
    let way = before - behind;
    let crossing = match way.abs() > 1e-6 && before * behind <= 0.0 {
        true => from + (to - from) * (before / way),
        // Both are on the same side: the middle between their feet on the edge, nearer to whom is nearer.
        false => {
            let total = before.abs() + behind.abs();
            let share = if total > 1e-6 {
                before.abs() / total
            } else {
                0.5
            };
            from + (to - from) * share
        }
    };
    let along = (edge.dot(crossing - a) / length).clamp(0.0, 1.0);
    a + edge * along
}

const NOBODY: u32 = u32::MAX;
/// The cost of a jump besides its way, in metres.
const JUMP_COST: f32 = 1.5;
/// Gates that a search looks at before it gives up.
const GATES_LOOKED_AT_MAX: u32 = 4_096;
