//! Navigation of enemies and bots: a navigation mesh for each size of agent, and A* over it.
//!
//! A [`Mesh`] is baked from the level's solids when it is first asked for: what an agent of a size can stand on is cut into rectangles,
//! each on one surface; where two touch there is a gate to walk through, and where a jump leads from one to another there is a link.
//! [`Mesh::path`] searches the gates and pulls the path taut. Everything is sums, products and square roots, in the order of the level:
//! the same path on every machine. Why by hand: `docs/decisions/0011-navigation-mesh-by-hand.md`.

mod bake;
mod funnel;
mod search;

use glam::{Vec2, Vec3};

use crate::level::Level;
pub use search::Search;

/// The size of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 1.2 m around, climbs no steps worth the name and never jumps.
    Tank,
    /// 0.4 m around, jumps high and far.
    Cat,
    /// A player's robot: jumps as the rules let it.
    Robot,
}

/// The needs and abilities of an agent.
#[derive(Clone, Copy, Debug)]
struct Agent {
    radius: f32,
    height: f32,
    jump: Option<Leap>,
}

/// The jump of an agent.
#[derive(Clone, Copy, Debug)]
struct Leap {
    up: f32,
    down: f32,
    across: f32,
}

impl Size {
    const fn agent(self) -> Agent {
        match self {
            Self::Tank => Agent {
                radius: 1.2,
                height: 2.4,
                jump: None,
            },
            Self::Cat => Agent {
                radius: 0.4,
                height: 1.0,
                jump: Some(Leap {
                    up: 2.4,
                    down: 6.0,
                    across: 5.0,
                }),
            },
            Self::Robot => Agent {
                radius: 0.4,
                height: 1.8,
                jump: Some(Leap {
                    up: 1.15,
                    down: 5.5,
                    across: 3.2,
                }),
            },
        }
    }
}

/// A point of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// Feet.
    pub at: Vec3,
    /// True if one jumps there from the point before.
    pub jump: bool,
}

/// The navigation mesh of a size of agent.
///
/// ```
/// use glam::Vec3;
/// use muse_biobot::Level;
/// use muse_biobot::nav::{Search, Size};
/// let level = Level::arena();
/// let mesh = level.mesh(Size::Cat);
/// let mut search = Search::default();
/// let path = mesh.path(Vec3::new(-25.0, 2.5, -25.0), Vec3::new(0.0, 3.0, 0.0), &mut search);
/// let path = path.expect("the towers of the arena can be reached");
/// assert!(path.last().expect("it leads somewhere").at.distance(Vec3::new(0.0, 3.0, 0.0)) < 0.5);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Mesh {
    /// The lowest corner of the grid, in cells.
    origin: [i32; 2],
    size: [i32; 2],
    /// For each column of the grid, where its spans begin; one more at the end.
    starts: Vec<u32>,
    spans: Vec<Span>,
    rectangles: Vec<Rectangle>,
    gates: Vec<Gate>,
}

/// A cell that can be stood on.
#[derive(Clone, Copy, Debug)]
struct Span {
    height: f32,
    rectangle: u16,
}

/// A convex piece of the mesh, on one surface.
#[derive(Clone, Debug, Default)]
struct Rectangle {
    plane: Plane,
    /// The gates that lead from here.
    gates: Vec<u16>,
}

/// Height as a function of the place.
#[derive(Clone, Copy, Debug, Default)]
struct Plane {
    base: f32,
    slope: Vec2,
}

impl Plane {
    fn at(&self, flat: Vec2) -> f32 {
        self.base + self.slope.dot(flat)
    }
}

/// A way from one rectangle to another.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// Walked in both directions; a jump leads from the first to the second.
    sides: [u16; 2],
    /// The ends of the common edge; of a jump, from where and to where.
    ends: [Vec2; 2],
    jump: bool,
}

impl Mesh {
    /// Bakes the mesh of a level.
    pub(crate) fn bake(level: &Level, size: Size) -> Self {
        bake::bake(level, &size.agent())
    }

    /// Returns the number of its pieces.
    pub fn rectangles(&self) -> usize {
        self.rectangles.len()
    }

    /// Returns the number of its jumps.
    pub fn jumps(&self) -> usize {
        self.gates.iter().filter(|gate| gate.jump).count()
    }

    /// The nearest point of the mesh, if one is near: feet on the ground.
    pub fn nearest(&self, point: Vec3) -> Option<Vec3> {
        self.locate(point).map(|(_, at)| at)
    }

    /// The height of the ground under a point that is on the mesh, within a step or so.
    pub fn ground(&self, point: Vec3) -> Option<f32> {
        let span = self.span_at(column(point), point.y, UNDER)?;
        let plane = &self.rectangles[usize::from(span.rectangle)].plane;
        Some(plane.at(flat(point)))
    }

    /// A path from one point to another, taut, without the point it begins at; `None` where no way leads.
    pub fn path(&self, from: Vec3, to: Vec3, search: &mut Search) -> Option<Vec<Waypoint>> {
        let (start, from) = self.locate(from)?;
        let (goal, to) = self.locate(to)?;
        let crossed = search.run(self, (start, from), (goal, to))?;
        Some(funnel::taut(self, from, to, start, &crossed))
    }

    /// A point of the mesh near another, drawn by chance.
    pub fn somewhere_near(
        &self,
        point: Vec3,
        radius: f32,
        rng: &mut fastrand::Rng,
    ) -> Option<Vec3> {
        let offset = Vec3::new(rng.f32() * 2.0 - 1.0, 0.0, rng.f32() * 2.0 - 1.0) * radius;
        let wanted = point + offset;
        let span = self.span_at(column(wanted), point.y, SEARCH_HEIGHT)?;
        let plane = &self.rectangles[usize::from(span.rectangle)].plane;
        Some(wanted.with_y(plane.at(flat(wanted))))
    }

    fn locate(&self, point: Vec3) -> Option<(u16, Vec3)> {
        let middle = column(point);
        let mut best: Option<(f32, u16, Vec3)> = None;
        for ring in 0..=SEARCH_CELLS {
            for cell in around(middle, ring) {
                let Some(span) = self.span_at(cell, point.y, SEARCH_HEIGHT) else {
                    continue;
                };
                let rectangle = &self.rectangles[usize::from(span.rectangle)];
                let at = match ring {
                    0 => flat(point),
                    _ => flat(point).clamp(center(cell) - INSIDE, center(cell) + INSIDE),
                };
                let at = Vec3::new(at.x, rectangle.plane.at(at), at.y);
                let far = at.distance_squared(point);
                if best.is_none_or(|(least, _, _)| far < least) {
                    best = Some((far, span.rectangle, at));
                }
            }
            if best.is_some() {
                break;
            }
        }
        best.map(|(_, rectangle, at)| (rectangle, at))
    }

    /// The span of a column whose height is nearest.
    fn span_at(&self, cell: [i32; 2], height: f32, within: f32) -> Option<Span> {
        let spans = self.spans_of(cell);
        let mut best: Option<(f32, Span)> = None;
        for span in spans {
            let far = (span.height - height).abs();
            let known = span.rectangle != u16::MAX;
            if known && far <= within && best.is_none_or(|(least, _)| far < least) {
                best = Some((far, *span));
            }
        }
        best.map(|(_, span)| span)
    }

    fn spans_of(&self, cell: [i32; 2]) -> &[Span] {
        match self.index(cell) {
            Some(index) => {
                &self.spans[self.starts[index] as usize..self.starts[index + 1] as usize]
            }
            None => &[],
        }
    }

    fn index(&self, cell: [i32; 2]) -> Option<usize> {
        let (x, z) = (cell[0] - self.origin[0], cell[1] - self.origin[1]);
        let inside = x >= 0 && z >= 0 && x < self.size[0] && z < self.size[1];
        inside.then(|| (z * self.size[0] + x) as usize)
    }
}

/// The cells of a square ring around one.
fn around(middle: [i32; 2], ring: i32) -> impl Iterator<Item = [i32; 2]> {
    let line = -ring..=ring;
    line.clone().flat_map(move |z| {
        let whole = z.abs() == ring;
        line.clone()
            .filter(move |x| whole || x.abs() == ring)
            .map(move |x| [middle[0] + x, middle[1] + z])
    })
}

fn flat(point: Vec3) -> Vec2 {
    Vec2::new(point.x, point.z)
}

fn column(point: Vec3) -> [i32; 2] {
    let floor = |value: f32| libm::floorf(value / CELL) as i32;
    [floor(point.x), floor(point.z)]
}

fn center(cell: [i32; 2]) -> Vec2 {
    Vec2::new(cell[0] as f32 + 0.5, cell[1] as f32 + 0.5) * CELL
}

/// Edge of a cell.
const CELL: f32 = 0.5;
/// From the middle of a cell to where it is still inside, whatever is rounded.
const INSIDE: Vec2 = Vec2::splat(CELL * 0.45);
/// The distance from the mesh within which a point is found on it: cells sideways, metres up and down.
const SEARCH_CELLS: i32 = 4;
const SEARCH_HEIGHT: f32 = 1.6;
/// The distance from a walker to its ground.
const UNDER: f32 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    fn length(from: Vec3, path: &[Waypoint]) -> f32 {
        let mut at = from;
        let mut sum = 0.0;
        for point in path {
            sum += point.at.distance(at);
            at = point.at;
        }
        sum
    }

    #[test]
    fn a_path_over_free_ground_is_straight() {
        let level = Level::arena();
        let mesh = level.mesh(Size::Robot);
        let (from, to) = (Vec3::new(-28.0, 0.0, -3.0), Vec3::new(-18.0, 0.0, 2.0));
        let path = mesh
            .path(from, to, &mut Search::default())
            .expect("free ground");
        assert!(length(from, &path) < from.distance(to) * 1.03, "{path:?}");
        assert!(path.iter().all(|point| !point.jump));
    }

    #[test]
    fn a_path_never_leaves_the_mesh() {
        let level = Level::arena();
        let mesh = level.mesh(Size::Robot);
        let mut rng = fastrand::Rng::with_seed(3);
        let mut search = Search::default();
        let mut found = 0;
        for _ in 0..200 {
            let mut point = || {
                let (x, z) = (rng.f32() * 56.0 - 28.0, rng.f32() * 56.0 - 28.0);
                mesh.nearest(Vec3::new(x, 0.0, z))
            };
            let (Some(from), Some(to)) = (point(), point()) else {
                continue;
            };
            let Some(path) = mesh.path(from, to, &mut search) else {
                continue;
            };
            found += 1;
            let mut at = from;
            for step in path {
                let pieces = (step.at.distance(at) / 0.2) as u32 + 1;
                let start = at;
                for piece in 1..=pieces {
                    let point = start
                        .lerp(step.at, piece as f32 / pieces as f32)
                        .with_y(at.y);
                    let near = mesh.nearest(point);
                    let on = near.filter(|near| flat(*near - point).length() < 0.1);
                    assert!(step.jump || on.is_some(), "{from} to {to}: {point}");
                    at = on.unwrap_or(point);
                }
                at = step.at;
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn tanks_do_not_pass_where_cats_do_and_do_not_jump() {
        let level = Level::escape();
        let mut search = Search::default();
        // Between two pillars of the tanks' arena is a way of 1.4 m.
        let (west, east) = (Vec3::new(58.0, 0.0, -89.3), Vec3::new(62.0, 0.0, -89.3));
        let cat = level.mesh(Size::Cat).path(west, east, &mut search);
        assert!(cat.is_some_and(|path| length(west, &path) < 5.0));
        let tank = level.mesh(Size::Tank);
        assert_eq!(tank.ground(west), None, "no tank stands there");
        assert_eq!(tank.jumps(), 0);
        let (from, to) = (Vec3::new(55.0, 0.0, -98.0), Vec3::new(86.0, 0.0, -98.0));
        assert!(tank.path(from, to, &mut search).is_some());
    }

    #[test]
    fn cats_jump_on_platforms_and_robots_over_the_gap() {
        let level = Level::escape();
        let mut search = Search::default();
        let (floor, top) = (Vec3::new(20.0, 0.0, -98.0), Vec3::new(32.0, 3.2, -106.0));
        let path = level.mesh(Size::Cat).path(floor, top, &mut search);
        let path = path.expect("cats get everywhere");
        assert!(path.iter().any(|point| point.jump));
        assert!(path.last().expect("it ends").at.distance(top) < 0.5);
        let (before, behind) = (Vec3::new(0.0, 0.0, 5.0), Vec3::new(0.0, 0.0, -12.0));
        let robot = level.mesh(Size::Robot).path(before, behind, &mut search);
        let jumps = robot.map_or(0, |path| path.iter().filter(|point| point.jump).count());
        assert!(jumps >= 2, "the barrier and the gap: {jumps}");
        let tank = level.mesh(Size::Tank).path(before, behind, &mut search);
        assert_eq!(tank, None);
    }
}
