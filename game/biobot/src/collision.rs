//! The obstacles of a body that moves: boxes and ramps that stand, boxes that move.
//!
//! A solid is what lies behind all its planes, and a body's hull moves against them as a point does against planes moved out by the hull
//! (as in Quake III). That takes products, sums and one division for each plane: the same bits on every machine, and a few dozen
//! nanoseconds for a solid. Against what stands upright the hull is a box, against slopes a capsule.

use glam::Vec3;

use crate::level::{Material, Side, Solid};
use crate::mover::STEP_HEIGHT;

/// Everything that never moves, ready for casts.
#[derive(Clone, Debug, Default)]
pub struct Collision {
    brushes: Vec<Brush>,
    /// The lowest corner of the grid, in cells.
    origin: [i32; 2],
    size: [i32; 2],
    /// For each cell, where its brushes begin in `members`; one more at the end.
    starts: Vec<u32>,
    members: Vec<u16>,
}

/// A convex solid.
#[derive(Clone, Copy, Debug)]
struct Brush {
    min: Vec3,
    max: Vec3,
    /// The slope of a ramp: outward normal and distance from the origin.
    slope: Option<(Vec3, f32)>,
    material: Material,
}

/// A box that moves, where it is at a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Its device.
    pub device: usize,
    /// The lowest corner.
    pub min: Vec3,
    /// The highest corner.
    pub max: Vec3,
    /// True if it carries robots that stand on it and pushes those in its way; doors do not.
    pub carries: bool,
    /// The only slot that passes through it.
    pub only: Option<u8>,
}

impl Body {
    /// True if a hull around `middle` is inside of it.
    pub fn overlaps(&self, middle: Vec3, half: Vec3) -> bool {
        middle.cmpgt(self.min - half).all() && middle.cmplt(self.max + half).all()
    }
}

/// The obstacle that a cast met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// The share of the way, 0 to 1.
    pub share: f32,
    /// The direction out of what was met.
    pub normal: Vec3,
    /// The moving device it is; `None` for what stands.
    pub device: Option<usize>,
    /// Its material.
    pub material: Material,
    /// The distance by which the hull was nearer than [`SKIN`] at the beginning: what grids have taken away, step by step.
    pub lack: f32,
    /// True if the hull was inside at the beginning.
    pub inside: bool,
}

/// A way of a hull.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    start: Vec3,
    delta: Vec3,
    half: Vec3,
    skin: f32,
}

impl Collision {
    /// For these solids.
    pub fn new(solids: &[Solid]) -> Self {
        let brushes: Vec<Brush> = solids.iter().map(Brush::new).collect();
        let mut low = [i32::MAX; 2];
        let mut high = [i32::MIN; 2];
        for brush in &brushes {
            let (from, to) = (cell(brush.min), cell(brush.max));
            for axis in 0..2 {
                low[axis] = low[axis].min(from[axis]);
                high[axis] = high[axis].max(to[axis]);
            }
        }
        if brushes.is_empty() {
            (low, high) = ([0; 2], [0; 2]);
        }
        let size = [high[0] - low[0] + 1, high[1] - low[1] + 1];
        let mut cells = vec![Vec::new(); (size[0] * size[1]) as usize];
        for (index, brush) in brushes.iter().enumerate() {
            let (from, to) = (cell(brush.min), cell(brush.max));
            for z in from[1]..=to[1] {
                for x in from[0]..=to[0] {
                    cells[((z - low[1]) * size[0] + x - low[0]) as usize].push(index as u16);
                }
            }
        }
        let mut starts = vec![0];
        let mut members = Vec::new();
        for cell in cells {
            members.extend(cell);
            starts.push(members.len() as u32);
        }
        Self {
            brushes,
            origin: low,
            size,
            starts,
            members,
        }
    }

    /// Moves a hull from `start` by `delta` until it meets something, among what stands and these bodies. A body that it is inside of at the beginning does
    /// not stop it.
    pub fn sweep(&self, start: Vec3, delta: Vec3, half: Vec3, bodies: &[Body]) -> Option<Contact> {
        let sweep = Sweep {
            start,
            delta,
            half,
            skin: SKIN,
        };
        self.cast(&sweep, bodies)
    }

    /// Returns where somebody gets who is seen to walk straight from one place of their feet to another: over what a step climbs, and never through a wall or
    /// below the floor.
    pub fn reach(&self, from: Vec3, to: Vec3) -> Vec3 {
        let clear = HULL - Vec3::Y * (STEP_HEIGHT / 2.0);
        let raised = Vec3::Y * (HULL.y + STEP_HEIGHT / 2.0);
        let share = |contact: Option<Contact>| contact.map_or(1.0, |contact| contact.share);
        let way = to - from;
        let at = from + way * share(self.sweep(from + raised, way, clear, &[]));
        let step = Vec3::Y * STEP_HEIGHT;
        let floor = self.sweep(at + step + Vec3::Y * HULL.y, -step, HULL, &[]);
        at + step * (1.0 - share(floor))
    }

    /// Returns where the middle of a ball gets on the straight way from one point to another. Its size does not count: it rolls along floors and walls.
    pub fn roll(&self, from: Vec3, to: Vec3) -> Vec3 {
        let contact = self.ray(from, to, &[]);
        from.lerp(to, contact.map_or(1.0, |contact| contact.share))
    }

    /// Returns the first obstacle of a ray from one point to another.
    pub fn ray(&self, from: Vec3, to: Vec3, bodies: &[Body]) -> Option<Contact> {
        let sweep = Sweep {
            start: from,
            delta: to - from,
            half: Vec3::ZERO,
            skin: 0.0,
        };
        self.cast(&sweep, bodies)
    }

    /// True if nothing is between two points.
    pub fn sees(&self, from: Vec3, to: Vec3, bodies: &[Body]) -> bool {
        self.ray(from, to, bodies).is_none()
    }

    /// True if a hull around `middle` is inside of something that stands.
    pub fn overlaps(&self, middle: Vec3, half: Vec3) -> bool {
        let mut found = false;
        self.each(middle - half, middle + half, |brush| {
            found |= brush.depth(middle, half).is_some();
        });
        found
    }

    /// The shortest way out of what stands, for a hull that is inside; zero when it is not.
    pub fn way_out(&self, middle: Vec3, half: Vec3) -> Vec3 {
        let mut at = middle;
        for _ in 0..WAY_OUT_STEPS {
            let mut deepest: Option<Vec3> = None;
            self.each(at - half, at + half, |brush| {
                if let Some((depth, normal)) = brush.depth(at, half) {
                    let out = normal * (depth + SKIN);
                    if deepest.is_none_or(|other| other.length_squared() < out.length_squared()) {
                        deepest = Some(out);
                    }
                }
            });
            match deepest {
                Some(out) => at += out,
                None => break,
            }
        }
        at - middle
    }

    fn cast(&self, sweep: &Sweep, bodies: &[Body]) -> Option<Contact> {
        let end = sweep.start + sweep.delta;
        let (low, high) = (sweep.start.min(end), sweep.start.max(end));
        let reach = sweep.half + Vec3::splat(sweep.skin + SKIN);
        let (low, high) = (low - reach, high + reach);
        let mut best: Option<Contact> = None;
        self.each(low, high, |brush| {
            if brush.min.cmple(high).all() && brush.max.cmpge(low).all() {
                let contact = brush.sweep(sweep, None);
                best = nearer(best, contact);
            }
        });
        for body in bodies {
            if body.min.cmple(high).all() && body.max.cmpge(low).all() {
                let brush = Brush::of(body);
                let contact = brush.sweep(sweep, Some(body.device));
                best = nearer(best, contact.filter(|contact| !contact.inside));
            }
        }
        best
    }

    /// Everything whose cells touch a box; what touches several cells comes several times.
    fn each(&self, low: Vec3, high: Vec3, mut visit: impl FnMut(&Brush)) {
        let clamp = |value: i32, axis: usize| value.clamp(0, self.size[axis] - 1);
        if self.starts.len() < 2 {
            return;
        }
        let (from, to) = (cell(low), cell(high));
        let outside = |axis: usize| {
            to[axis] < self.origin[axis] || from[axis] >= self.origin[axis] + self.size[axis]
        };
        if outside(0) || outside(1) {
            return;
        }
        for z in clamp(from[1] - self.origin[1], 1)..=clamp(to[1] - self.origin[1], 1) {
            for x in clamp(from[0] - self.origin[0], 0)..=clamp(to[0] - self.origin[0], 0) {
                let at = (z * self.size[0] + x) as usize;
                let range = self.starts[at] as usize..self.starts[at + 1] as usize;
                for member in &self.members[range] {
                    visit(&self.brushes[usize::from(*member)]);
                }
            }
        }
    }
}

impl Brush {
    fn new(solid: &Solid) -> Self {
        let (min, max) = (Vec3::from(solid.min), Vec3::from(solid.max));
        let size = max - min;
        let slope = solid.rise.map(|side| {
            let (flat, length, at) = match side {
                Side::PlusX => (Vec3::NEG_X, size.x, min),
                Side::MinusX => (Vec3::X, size.x, Vec3::new(max.x, min.y, min.z)),
                Side::PlusZ => (Vec3::NEG_Z, size.z, min),
                Side::MinusZ => (Vec3::Z, size.z, Vec3::new(min.x, min.y, max.z)),
            };
            let normal = (flat * size.y + Vec3::Y * length).normalize();
            (normal, normal.dot(at))
        });
        Self {
            min,
            max,
            slope,
            material: solid.material,
        }
    }

    fn of(body: &Body) -> Self {
        Self {
            min: body.min,
            max: body.max,
            slope: None,
            material: Material::Metal,
        }
    }

    /// The planes, moved out by a hull: outward normal and distance.
    fn planes(&self, half: Vec3) -> impl Iterator<Item = (Vec3, f32)> {
        let (low, high) = (self.min - half, self.max + half);
        let upright = [
            (Vec3::X, high.x),
            (Vec3::NEG_X, -low.x),
            (Vec3::Y, high.y),
            (Vec3::NEG_Y, -low.y),
            (Vec3::Z, high.z),
            (Vec3::NEG_Z, -low.z),
        ];
        let slope = self.slope.map(|(normal, distance)| {
            // A capsule: its radius, and half of the line within it.
            let round = half.x + (half.y - half.x).max(0.0) * normal.y.abs();
            (normal, distance + round)
        });
        upright.into_iter().chain(slope)
    }

    fn sweep(&self, sweep: &Sweep, device: Option<usize>) -> Option<Contact> {
        let mut enter = -1.0_f32;
        let mut leave = 1.0_f32;
        let mut normal = Vec3::ZERO;
        let mut inside = true;
        let mut lack = 0.0;
        for (out, distance) in self.planes(sweep.half) {
            let before = out.dot(sweep.start) - distance;
            let after = before + out.dot(sweep.delta);
            inside &= before <= 0.0;
            if before > 0.0 && (after >= sweep.skin || after >= before) {
                return None;
            }
            if before <= 0.0 && after <= 0.0 {
                continue;
            }
            let way = before - after;
            if way > 0.0 {
                let share = ((before - sweep.skin) / way).max(0.0);
                if share > enter {
                    (enter, normal) = (share, out);
                    lack = (sweep.skin - before).clamp(0.0, sweep.skin);
                }
            } else {
                leave = leave.min((before + sweep.skin) / way);
            }
        }
        let contact = |share, normal, inside| Contact {
            share,
            normal,
            device,
            material: self.material,
            lack,
            inside,
        };
        if inside {
            let (_, out) = self.depth(sweep.start, sweep.half)?;
            // The way out is free.
            return (out.dot(sweep.delta) <= 0.0).then(|| contact(0.0, out, true));
        }
        (enter > -1.0 && enter < leave).then(|| contact(enter.min(1.0), normal, false))
    }

    /// Returns how deep a hull is inside, and the shortest way out.
    fn depth(&self, middle: Vec3, half: Vec3) -> Option<(f32, Vec3)> {
        let mut best: Option<(f32, Vec3)> = None;
        for (out, distance) in self.planes(half) {
            let depth = distance - out.dot(middle);
            if depth <= 0.0 {
                return None;
            }
            if best.is_none_or(|(least, _)| depth < least) {
                best = Some((depth, out));
            }
        }
        best
    }
}

fn nearer(best: Option<Contact>, contact: Option<Contact>) -> Option<Contact> {
    match (best, contact) {
        (Some(best), Some(contact)) if contact.share < best.share => Some(contact),
        (None, contact) => contact,
        (best, _) => best,
    }
}

fn cell(point: Vec3) -> [i32; 2] {
    let floor = |value: f32| libm::floorf(value / CELL) as i32;
    [floor(point.x), floor(point.z)]
}

/// The nearest point of the grid of robots' positions.
pub fn grid(point: Vec3) -> Vec3 {
    let round = |value: f32| libm::roundf(value * 512.0) / 512.0;
    Vec3::new(round(point.x), round(point.y), round(point.z))
}

/// Half the size of a robot's hull.
pub const HULL: Vec3 = Vec3::new(0.4, 0.9, 0.4);
/// Distance that hulls keep from everything; more than what the grid of positions can take away.
pub const SKIN: f32 = 0.01;
/// Edge of a cell.
const CELL: f32 = 4.0;
const WAY_OUT_STEPS: usize = 8;
