//! From solids to a mesh: what can be stood on, cut into rectangles, with gates and jumps between them.

use std::collections::BTreeMap;

use glam::{Vec2, Vec3};

use super::{Agent, CELL, Gate, Leap, Mesh, Plane, Rectangle, Span, center, column};
use crate::collision::Collision;
use crate::level::{Level, Side, Solid};
use crate::mover::{STEP_HEIGHT, WALKABLE};

pub(super) fn bake(level: &Level, agent: &Agent) -> Mesh {
    let mut mesh = Mesh::default();
    let surfaces = rasterise(level, agent, &mut mesh);
    cut(&mut mesh, &surfaces, level);
    connect(&mut mesh);
    if let Some(leap) = agent.jump {
        link(&mut mesh, level, agent, &leap);
    }
    for (index, gate) in mesh.gates.iter().enumerate() {
        mesh.rectangles[usize::from(gate.sides[0])]
            .gates
            .push(index as u16);
        if !gate.jump {
            mesh.rectangles[usize::from(gate.sides[1])]
                .gates
                .push(index as u16);
        }
    }
    mesh
}

/// Finds every cell that can be stood on. Says for each span on which solid.
fn rasterise(level: &Level, agent: &Agent, mesh: &mut Mesh) -> Vec<u16> {
    let mut low = [i32::MAX; 2];
    let mut high = [i32::MIN; 2];
    for solid in &level.solids {
        let (from, to) = (column(solid.min.into()), column(solid.max.into()));
        for axis in 0..2 {
            low[axis] = low[axis].min(from[axis]);
            high[axis] = high[axis].max(to[axis]);
        }
    }
    mesh.origin = low;
    mesh.size = [high[0] - low[0] + 1, high[1] - low[1] + 1];
    let mut columns: Vec<Vec<(f32, u16)>> =
        vec![Vec::new(); (mesh.size[0] * mesh.size[1]) as usize];
    for (index, solid) in level.solids.iter().enumerate() {
        let Some(plane) = top(solid) else {
            continue;
        };
        let (from, to) = (column(solid.min.into()), column(solid.max.into()));
        for z in from[1]..=to[1] {
            for x in from[0]..=to[0] {
                let at = center([x, z]);
                let inside = at.x > solid.min[0]
                    && at.x < solid.max[0]
                    && at.y > solid.min[2]
                    && at.y < solid.max[2];
                if inside && let Some(place) = mesh.index([x, z]) {
                    columns[place].push((plane.at(at), index as u16));
                }
            }
        }
    }
    let mut surfaces = Vec::new();
    mesh.starts.push(0);
    for (place, column) in columns.iter_mut().enumerate() {
        let (x, z) = (place as i32 % mesh.size[0], place as i32 / mesh.size[0]);
        let at = center([x + low[0], z + low[1]]);
        column.sort_by(|a, b| a.0.total_cmp(&b.0));
        for index in 0..column.len() {
            let (height, solid) = column[index];
            // What a little step covers is not stood on.
            let covered = column[index + 1..]
                .iter()
                .any(|(above, _)| above - height <= STEP_HEIGHT + 0.05);
            let feet = Vec3::new(at.x, height, at.y);
            if !covered && height > level.kill_below && fits(level.collision(), feet, agent) {
                mesh.spans.push(Span {
                    height,
                    rectangle: u16::MAX,
                });
                surfaces.push(solid);
            }
        }
        mesh.starts.push(mesh.spans.len() as u32);
    }
    surfaces
}

/// The upper side of a solid, if it can be walked on.
fn top(solid: &Solid) -> Option<Plane> {
    let (min, max) = (Vec3::from(solid.min), Vec3::from(solid.max));
    let size = max - min;
    let Some(side) = solid.rise else {
        return Some(Plane {
            base: max.y,
            slope: Vec2::ZERO,
        });
    };
    let (slope, length, foot) = match side {
        Side::PlusX => (Vec2::X, size.x, min.x),
        Side::MinusX => (Vec2::NEG_X, size.x, -max.x),
        Side::PlusZ => (Vec2::Y, size.z, min.z),
        Side::MinusZ => (Vec2::NEG_Y, size.z, -max.z),
    };
    let steep = size.y / length;
    let upright = 1.0 / libm::sqrtf(1.0 + steep * steep);
    (upright >= WALKABLE).then(|| Plane {
        base: min.y - foot * steep,
        slope: slope * steep,
    })
}

/// True if an agent can stand there: steps and slopes under its edge do not count.
fn fits(collision: &Collision, feet: Vec3, agent: &Agent) -> bool {
    let (middle, half) = hull(feet, agent);
    !collision.overlaps(middle, half)
}

fn hull(feet: Vec3, agent: &Agent) -> (Vec3, Vec3) {
    let lifted = STEP_HEIGHT + 0.01;
    let half = Vec3::new(agent.radius, (agent.height - lifted) / 2.0, agent.radius);
    (feet + Vec3::Y * (lifted + half.y), half)
}

/// Cuts what can be stood on into rectangles of cells, each on one solid: as long as they get, row by row.
fn cut(mesh: &mut Mesh, surfaces: &[u16], level: &Level) {
    let [width, depth] = mesh.size;
    let find = |mesh: &Mesh, x: i32, z: i32, solid: u16| -> Option<usize> {
        let index = mesh.index([x + mesh.origin[0], z + mesh.origin[1]])?;
        let mut range = mesh.starts[index] as usize..mesh.starts[index + 1] as usize;
        range.find(|span| surfaces[*span] == solid && mesh.spans[*span].rectangle == u16::MAX)
    };
    for z in 0..depth {
        for x in 0..width {
            let index = (z * width + x) as usize;
            let here = mesh.starts[index] as usize..mesh.starts[index + 1] as usize;
            for (span, solid) in here.clone().zip(&surfaces[here]) {
                if mesh.spans[span].rectangle != u16::MAX || mesh.rectangles.len() >= PIECES_MAX {
                    continue;
                }
                let solid = *solid;
                let mut right = x;
                while right - x < SIDE_MAX && find(mesh, right + 1, z, solid).is_some() {
                    right += 1;
                }
                let mut last = z;
                while last - z < SIDE_MAX
                    && (x..=right).all(|x| find(mesh, x, last + 1, solid).is_some())
                {
                    last += 1;
                }
                let number = mesh.rectangles.len() as u16;
                for z in z..=last {
                    for x in x..=right {
                        if let Some(found) = find(mesh, x, z, solid) {
                            mesh.spans[found].rectangle = number;
                        }
                    }
                }
                mesh.rectangles.push(Rectangle {
                    plane: top(&level.solids[usize::from(solid)]).unwrap_or_default(),
                    gates: Vec::new(),
                });
            }
        }
    }
}

/// Gates where cells of two rectangles touch, and a step leads from one to the other.
fn connect(mesh: &mut Mesh) {
    let mut touching: BTreeMap<(u16, u16, usize, i32), Vec<i32>> = BTreeMap::new();
    for z in 0..mesh.size[1] {
        for x in 0..mesh.size[0] {
            let cell = [x + mesh.origin[0], z + mesh.origin[1]];
            for (axis, next) in [[cell[0] + 1, cell[1]], [cell[0], cell[1] + 1]]
                .into_iter()
                .enumerate()
            {
                for a in mesh.spans_of(cell) {
                    for b in mesh.spans_of(next) {
                        if a.rectangle != b.rectangle && steps(mesh, a, b, cell, next) {
                            let key = (a.rectangle, b.rectangle, axis, cell[axis]);
                            touching.entry(key).or_default().push(cell[1 - axis]);
                        }
                    }
                }
            }
        }
    }
    for ((a, b, axis, line), mut cells) in touching {
        cells.sort_unstable();
        let mut first = 0;
        for index in 0..cells.len() {
            let ends = index + 1 == cells.len() || cells[index + 1] != cells[index] + 1;
            if !ends {
                continue;
            }
            let edge = (line + 1) as f32 * CELL;
            let end = |cell: i32| {
                let along = (cell as f32 + 0.5) * CELL;
                match axis {
                    0 => Vec2::new(edge, along),
                    _ => Vec2::new(along, edge),
                }
            };
            if mesh.gates.len() < GATES_MAX {
                mesh.gates.push(Gate {
                    sides: [a, b],
                    ends: [end(cells[first]), end(cells[index])],
                    jump: false,
                });
            }
            first = index + 1;
        }
    }
}

/// True if one walks from a cell to its neighbour: the surfaces are within a step of each other where they meet.
fn steps(mesh: &Mesh, a: &Span, b: &Span, from: [i32; 2], to: [i32; 2]) -> bool {
    if a.rectangle == u16::MAX || b.rectangle == u16::MAX {
        return false;
    }
    let edge = (center(from) + center(to)) * 0.5;
    let height = |span: &Span| mesh.rectangles[usize::from(span.rectangle)].plane.at(edge);
    (height(a) - height(b)).abs() <= STEP_HEIGHT
}

/// Jumps from the edges of rectangles to others, and those that the level names.
fn link(mesh: &mut Mesh, level: &Level, agent: &Agent, leap: &Leap) {
    let mut taken: BTreeMap<(u16, u16, usize), Vec<[i32; 2]>> = BTreeMap::new();
    for z in 0..mesh.size[1] {
        for x in 0..mesh.size[0] {
            let cell = [x + mesh.origin[0], z + mesh.origin[1]];
            for index in 0..mesh.spans_of(cell).len() {
                let span = mesh.spans_of(cell)[index];
                for (turn, way) in WAYS.into_iter().enumerate() {
                    let Some((landing, to)) = leap_from(mesh, &span, cell, way, leap) else {
                        continue;
                    };
                    let known = taken
                        .entry((span.rectangle, to.rectangle, turn))
                        .or_default();
                    let near = |other: &[i32; 2]| {
                        (other[0] - cell[0]).abs() + (other[1] - cell[1]).abs() < LINK_CELLS
                    };
                    if known.iter().any(near) || mesh.gates.len() >= GATES_MAX {
                        continue;
                    }
                    let (from_flat, to_flat) = (center(cell), center(landing));
                    let from = Vec3::new(from_flat.x, span.height, from_flat.y);
                    let end = Vec3::new(to_flat.x, to.height, to_flat.y);
                    if is_free(level.collision(), from, end, agent) {
                        known.push(cell);
                        mesh.gates.push(Gate {
                            sides: [span.rectangle, to.rectangle],
                            ends: [from_flat, to_flat],
                            jump: true,
                        });
                    }
                }
            }
        }
    }
    for named in &level.jump_links {
        let there = (Vec3::from(named.from), Vec3::from(named.to));
        let back = (there.1, there.0);
        for (from, to) in [Some(there), named.both.then_some(back)]
            .into_iter()
            .flatten()
        {
            let rise = to.y - from.y;
            let able =
                rise <= leap.up && -rise <= leap.down && from.distance(to) <= leap.across + 1.0;
            let (Some((a, from)), Some((b, to))) = (mesh.locate(from), mesh.locate(to)) else {
                continue;
            };
            if able && a != b && mesh.gates.len() < GATES_MAX {
                mesh.gates.push(Gate {
                    sides: [a, b],
                    ends: [super::flat(from), super::flat(to)],
                    jump: true,
                });
            }
        }
    }
}

/// Returns the end of a jump from the edge of a rectangle: the first cell in a direction that is something else.
fn leap_from(
    mesh: &Mesh,
    span: &Span,
    cell: [i32; 2],
    way: [i32; 2],
    leap: &Leap,
) -> Option<([i32; 2], Span)> {
    let ahead = |cells: i32| [cell[0] + way[0] * cells, cell[1] + way[1] * cells];
    if span.rectangle == u16::MAX {
        return None;
    }
    let walks =
        |next: &Span| next.rectangle == span.rectangle || steps(mesh, span, next, cell, ahead(1));
    if mesh.spans_of(ahead(1)).iter().any(walks) {
        return None;
    }
    let most = (leap.across / CELL) as i32;
    for cells in 1..=most {
        let landing = ahead(cells);
        let reached = mesh.spans_of(landing).iter().find(|to| {
            let rise = to.height - span.height;
            // The higher, the shorter.
            let across = leap.across * (1.0 - (rise.max(0.0) / leap.up) * 0.3);
            to.rectangle != u16::MAX
                && to.rectangle != span.rectangle
                && rise <= leap.up
                && -rise <= leap.down
                && cells as f32 * CELL <= across
        });
        if let Some(to) = reached {
            return Some((landing, *to));
        }
    }
    None
}

/// True if nothing is in the way of a jump: up, across and down.
fn is_free(collision: &Collision, from: Vec3, to: Vec3, agent: &Agent) -> bool {
    let (start, half) = hull(from, agent);
    let (end, _) = hull(to, agent);
    let top = start.y.max(end.y) + 0.2;
    let way = [start, start.with_y(top), end.with_y(top), end];
    way.windows(2).all(|leg| {
        collision
            .sweep(leg[0], leg[1] - leg[0], half, &[])
            .is_none()
    })
}

const WAYS: [[i32; 2]; 4] = [[1, 0], [-1, 0], [0, 1], [0, -1]];
/// Cells between two jumps from one rectangle to another.
const LINK_CELLS: i32 = 4;
const PIECES_MAX: usize = 8_192;
const GATES_MAX: usize = 32_768;
/// Longest side of a rectangle in cells.
const SIDE_MAX: i32 = 64;
