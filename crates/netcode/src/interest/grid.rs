//! A spatial hash in levels: what makes itself felt far is kept in coarse cells, what is only felt nearby in fine ones.
//!
//! An observer looks into the fine cells around it and into the coarse ones far away, so that the cost grows with what
//! can be perceived, not with everything within the range of the loudest. Cells are lists threaded through one
//! table; nothing is allocated when things move.

use glam::Vec3;

/// The coordinates that make the cells, by the axis that is up. Distances are always measured in three dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plane {
    /// Cells are columns along y.
    #[default]
    Xz,
    /// Cells are columns along z.
    Xy,
    /// Cells are cubes: for games in space. An observer looks into many more of them.
    Xyz,
}

/// Counts of the work done, to compare costs without a clock. Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterestCounts {
    /// Updates of observers.
    pub updates: u64,
    /// Cells looked into.
    pub cells: u64,
    /// Entities found in them and measured.
    pub measured: u64,
    /// Entities whose awareness was computed.
    pub judged: u64,
    /// Calls of the visibility callback.
    pub callbacks: u64,
}

#[derive(Debug)]
pub(super) struct Grid {
    plane: Plane,
    /// Edge of the cells of each level.
    cells: [f32; LEVELS],
    /// The entities of each level, in no order.
    members: [Vec<u32>; LEVELS],
    /// First entity of each bucket; several cells may share one.
    heads: Vec<u32>,
    /// By the index of the entity.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    position: Vec3,
    /// The distance from which it can be perceived.
    reach: f32,
    cell: [i32; 3],
    next: u32,
    previous: u32,
    /// Its place among the members of the level.
    member: u32,
    level: u8,
}

impl Grid {
    /// Cells of at least `cell`; about one bucket for each of `entities`.
    pub(super) fn new(plane: Plane, cell: f32, entities: usize) -> Self {
        let buckets = entities.clamp(256, 1 << 16).next_power_of_two();
        let mut cells = [cell; LEVELS];
        for (level, edge) in cells.iter_mut().enumerate().take(UNBOUNDED) {
            *edge = cell * (1u32 << level) as f32;
        }
        Self {
            plane,
            cells,
            members: Default::default(),
            heads: vec![NONE; buckets],
            links: Vec::new(),
        }
    }

    /// Puts an entity at a place, or moves it there. What has no reach is taken out.
    pub(super) fn place(&mut self, index: u32, position: Vec3, reach: f32) {
        let at = index as usize;
        if at >= self.links.len() {
            self.links.resize(at + 1, Link::OUTSIDE);
        }
        if reach <= 0.0 {
            self.remove(index);
            return;
        }
        let level = self.level(reach);
        let cell = self.cell(level, position);
        let link = &mut self.links[at];
        let moved = usize::from(link.level) != level || link.cell != cell;
        link.position = position;
        link.reach = reach;
        if moved {
            self.remove(index);
            self.insert(index, level, cell);
        }
    }

    /// Takes an entity out, if it is there.
    pub(super) fn remove(&mut self, index: u32) {
        let Some(&link) = self.links.get(index as usize) else {
            return;
        };
        let level = usize::from(link.level);
        if level >= LEVELS {
            return;
        }
        if link.previous == NONE {
            let bucket = self.bucket(level, link.cell);
            self.heads[bucket] = link.next;
        } else {
            self.links[link.previous as usize].next = link.next;
        }
        if link.next != NONE {
            self.links[link.next as usize].previous = link.previous;
        }
        let members = &mut self.members[level];
        members.swap_remove(link.member as usize);
        if let Some(&moved) = members.get(link.member as usize) {
            self.links[moved as usize].member = link.member;
        }
        self.links[index as usize].level = Link::OUTSIDE.level;
    }

    /// Calls `found` for every entity within `radius` that can be perceived from that far, in no order.
    pub(super) fn perceived(
        &self,
        centre: Vec3,
        radius: f32,
        counts: &mut InterestCounts,
        mut found: impl FnMut(u32),
    ) {
        for level in 0..LEVELS {
            let bound = if level == UNBOUNDED {
                f32::INFINITY
            } else {
                self.cells[level]
            };
            let near = radius.min(bound);
            self.walk(level, centre, near, counts, |index, link, square| {
                let reach = near.min(link.reach);
                if square <= reach * reach * SLACK {
                    found(index);
                }
            });
        }
    }

    /// Calls `found` for every entity within `radius`, in no order.
    pub(super) fn within(
        &self,
        centre: Vec3,
        radius: f32,
        counts: &mut InterestCounts,
        mut found: impl FnMut(u32),
    ) {
        for level in 0..LEVELS {
            self.walk(level, centre, radius, counts, |index, _, square| {
                if square <= radius * radius {
                    found(index);
                }
            });
        }
    }

    /// Measures everything in the cells that a sphere touches: the index, the link, the square of the distance.
    fn walk(
        &self,
        level: usize,
        centre: Vec3,
        radius: f32,
        counts: &mut InterestCounts,
        mut measured: impl FnMut(u32, &Link, f32),
    ) {
        let members = &self.members[level];
        if members.is_empty() {
            return;
        }
        let mut measure = |index: u32, link: &Link| {
            counts.measured += 1;
            measured(index, link, link.position.distance_squared(centre));
        };
        // Rounding must not put a cell out of reach that holds something just within.
        let wide = radius + (radius + centre.abs().max_element()) * 1e-6;
        let low = self.cell(level, centre - Vec3::splat(wide));
        let high = self.cell(level, centre + Vec3::splat(wide));
        let side = |axis: usize| i64::from(high[axis]) - i64::from(low[axis]) + 1;
        let cells = side(0).saturating_mul(side(1)).saturating_mul(side(2));
        if cells > members.len() as i64 {
            for &index in members {
                measure(index, &self.links[index as usize]);
            }
            return;
        }
        for x in low[0]..=high[0] {
            for y in low[1]..=high[1] {
                for z in low[2]..=high[2] {
                    counts.cells += 1;
                    let mut index = self.heads[self.bucket(level, [x, y, z])];
                    while index != NONE {
                        let link = &self.links[index as usize];
                        if link.cell == [x, y, z] && usize::from(link.level) == level {
                            measure(index, link);
                        }
                        index = link.next;
                    }
                }
            }
        }
    }

    fn insert(&mut self, index: u32, level: usize, cell: [i32; 3]) {
        let bucket = self.bucket(level, cell);
        let next = self.heads[bucket];
        if next != NONE {
            self.links[next as usize].previous = index;
        }
        self.heads[bucket] = index;
        let member = self.members[level].len() as u32;
        self.members[level].push(index);
        let link = &mut self.links[index as usize];
        link.cell = cell;
        link.next = next;
        link.previous = NONE;
        link.member = member;
        link.level = level as u8;
    }

    /// The finest level whose cells are as large as the reach.
    fn level(&self, reach: f32) -> usize {
        let fits = |edge: &f32| reach <= *edge;
        self.cells[..UNBOUNDED]
            .iter()
            .position(fits)
            .unwrap_or(UNBOUNDED)
    }

    fn cell(&self, level: usize, position: Vec3) -> [i32; 3] {
        let scaled = position / self.cells[level];
        // The conversion stops at the ends of the range, for query bounds as for places.
        let [x, y, z] = scaled.floor().to_array().map(|value| value as i32);
        match self.plane {
            Plane::Xz => [x, 0, z],
            Plane::Xy => [x, y, 0],
            Plane::Xyz => [x, y, z],
        }
    }

    fn bucket(&self, level: usize, cell: [i32; 3]) -> usize {
        let mut hash = level as u64;
        for part in cell {
            hash = (hash ^ u64::from(part as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        (hash >> 16) as usize & (self.heads.len() - 1)
    }
}

impl Link {
    const OUTSIDE: Self = Self {
        position: Vec3::ZERO,
        reach: 0.0,
        cell: [0; 3],
        next: NONE,
        previous: NONE,
        member: 0,
        level: LEVELS as u8,
    };
}

/// Levels with cells of 1, 2, 4 ... times the smallest, and one for what can be perceived from anywhere.
const LEVELS: usize = 9;
const UNBOUNDED: usize = LEVELS - 1;
const NONE: u32 = u32::MAX;
/// The square of a distance and the square of a reach round differently; what is close is judged exactly later.
const SLACK: f32 = 1.0 + 1e-5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_scan_finds() {
        for seed in 0..40 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let plane = [Plane::Xz, Plane::Xy, Plane::Xyz][seed as usize % 3];
            let mut grid = Grid::new(plane, 8.0, 300);
            let mut all = vec![None; 300];
            for _ in 0..2_000 {
                let index = rng.u32(0..300);
                if rng.u8(0..6) == 0 {
                    grid.remove(index);
                    all[index as usize] = None;
                } else {
                    let coordinate = |rng: &mut fastrand::Rng| (rng.f32() - 0.5) * 400.0;
                    let position = Vec3::from_array(std::array::from_fn(|_| coordinate(&mut rng)));
                    let reach = [2.0, 30.0, 500.0, 1e6, f32::INFINITY][rng.u32(0..5) as usize];
                    grid.place(index, position, reach);
                    all[index as usize] = Some((position, reach));
                }
            }
            for radius in [0.0, 5.0, 60.0, 1e9, f32::INFINITY] {
                let centre = Vec3::new(rng.f32() * 100.0, 0.0, rng.f32() * 100.0);
                let mut found = Vec::new();
                grid.perceived(centre, radius, &mut InterestCounts::default(), |index| {
                    found.push(index);
                });
                found.sort_unstable();
                let inside = |(position, reach): (Vec3, f32)| {
                    let limit = radius.min(reach);
                    position.distance_squared(centre) <= limit * limit * SLACK
                };
                let expected: Vec<u32> = (0..300)
                    .filter(|&index| all[index as usize].is_some_and(inside))
                    .collect();
                assert_eq!(found, expected, "seed {seed}, radius {radius}");
            }
        }
    }
}
