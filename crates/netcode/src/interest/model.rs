//! The spatial model of interaction: media, auras, focus and nimbus, and how aware an observer is.

use glam::{Vec2, Vec3};

use crate::EntityId;

/// A way of perceiving: sight, hearing, or one of the game's own. Every medium has its own auras, focus and nimbus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Medium(u8);

impl Medium {
    /// The number of media.
    pub const COUNT: usize = 4;
    /// Seeing.
    pub const SIGHT: Self = Self(0);
    /// Hearing.
    pub const HEARING: Self = Self(1);

    /// The medium of this number, or `None` at [`COUNT`](Self::COUNT) and above.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number, below [`COUNT`](Self::COUNT).
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its bit in [`Relevant::media`](super::Relevant::media).
    pub const fn bit(self) -> u8 {
        1 << self.0
    }
}

/// The shape of a focus or a nimbus: a sphere or a cone around its owner, strongest within [`full`](Self::full) and
/// fading to [`edge`](Self::edge) at its radius. It is entered at the radius and left a little further out, so that
/// nothing flickers at the rim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    radius: f32,
    leave: f32,
    full: f32,
    edge: f32,
    near: f32,
    cosine_enter: f32,
    cosine_leave: f32,
}

impl Extent {
    /// Everywhere, at full strength.
    pub const UNBOUNDED: Self = Self {
        radius: f32::INFINITY,
        leave: f32::INFINITY,
        full: f32::INFINITY,
        edge: 1.0,
        near: 0.0,
        cosine_enter: SPHERE,
        cosine_leave: SPHERE,
    };

    /// A sphere: entered at `radius`, left at 1.1 times as far, of full strength in the inner quarter and of a tenth
    /// at the rim. What is negative or not a number is 0.
    pub fn sphere(radius: f32) -> Self {
        let radius = length(radius);
        Self {
            radius,
            leave: radius * LEAVE_RATIO,
            full: radius * 0.25,
            edge: 0.1,
            ..Self::UNBOUNDED
        }
    }

    /// Leaves at this distance, at least the radius.
    pub fn leave(mut self, distance: f32) -> Self {
        self.leave = length(distance).max(self.radius);
        self
    }

    /// Full strength up to this distance, at most the radius.
    pub fn full(mut self, distance: f32) -> Self {
        self.full = length(distance).min(self.radius);
        self
    }

    /// Only within this angle (radians) of where the owner faces; it is left 0.15 radians further out. An owner that
    /// faces nowhere perceives all around.
    pub fn cone(mut self, half_angle: f32) -> Self {
        let angle = length(half_angle).min(core::f32::consts::PI);
        let cosine = |angle: f32| {
            if angle >= core::f32::consts::PI {
                SPHERE
            } else {
                Vec2::from_angle(angle).x
            }
        };
        self.cosine_enter = cosine(angle);
        self.cosine_leave = cosine(angle + CONE_LEAVE);
        self
    }

    /// Returns the radius at which it is entered.
    pub fn radius(&self) -> f32 {
        self.radius
    }

    /// Returns the radius at which it is left.
    pub fn leave_radius(&self) -> f32 {
        self.leave
    }

    /// Returns its strength at a distance and at an angle from where its owner faces, 0 outside. `held`: it was inside
    /// at the last update; `scale`: what adapters make of it.
    pub(super) fn strength(&self, at: Aspect, held: bool, scale: f32) -> f32 {
        let (limit, cosine) = if held {
            (self.leave, self.cosine_leave)
        } else {
            (self.radius, self.cosine_enter)
        };
        // Without the first test nothing times infinity would be everywhere.
        let outside = scale <= 0.0 || at.distance > limit * scale;
        if outside || (at.cosine < cosine && at.distance > self.near * scale) {
            return 0.0;
        }
        let (full, radius) = (self.full * scale, self.radius * scale);
        if at.distance <= full || radius == f32::INFINITY {
            return 1.0;
        }
        let share = ((at.distance - full) / (radius - full)).min(1.0);
        1.0 - share * (1.0 - self.edge)
    }
}

muse_wire::setters! { Extent:
    /// The strength at the rim, 0.01 to 1.
    edge: f32 = length(edge).clamp(0.01, 1.0),
    /// Within this distance the cone does not matter: one notices what is close behind.
    near: f32 = length(near),
}

/// The direction and distance of something as its counterpart sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aspect {
    pub(super) distance: f32,
    /// Of the angle between the way one faces and the way to the other; 1 for who faces nowhere.
    pub(super) cosine: f32,
}

impl Aspect {
    /// Describes something at `offset`, for an object that faces `facing` (a unit vector or zero).
    pub(super) fn new(offset: Vec3, distance: f32, facing: Vec3) -> Self {
        let cosine = if facing == Vec3::ZERO || distance == 0.0 {
            1.0
        } else {
            facing.dot(offset) / distance
        };
        Self { distance, cosine }
    }
}

/// The perceivable side of an entity: its place, and in each medium the extent in which it can be perceived.
#[derive(Clone, Debug, PartialEq)]
pub struct Presence {
    pub(super) position: Vec3,
    pub(super) facing: Vec3,
    pub(super) kind: u16,
    pub(super) layers: u32,
    pub(super) region: Option<u32>,
    pub(super) importance: f32,
    pub(super) always: bool,
    pub(super) bodies: [Option<Body>; Medium::COUNT],
}

impl Presence {
    /// Something that can be seen from anywhere within the observer's focus, of kind 0, on all layers.
    pub fn new(position: Vec3) -> Self {
        let mut bodies = [None; Medium::COUNT];
        bodies[Medium::SIGHT.index()] = Some(Body {
            aura: f32::INFINITY,
            nimbus: Extent::UNBOUNDED,
        });
        Self {
            position,
            facing: Vec3::ZERO,
            kind: 0,
            layers: u32::MAX,
            region: None,
            importance: 1.0,
            always: false,
            bodies,
        }
    }

    /// Sets the extent in which it can be perceived in a medium. Default: everywhere by sight, not at all otherwise.
    pub fn nimbus(mut self, medium: Medium, nimbus: Extent) -> Self {
        let aura = self.bodies[medium.index()].map_or(f32::INFINITY, |body| body.aura);
        self.bodies[medium.index()] = Some(Body { aura, nimbus });
        self
    }

    /// Limits how far it can interact at all in a medium in which it has a nimbus. Default: without bounds.
    pub fn aura(mut self, medium: Medium, radius: f32) -> Self {
        if let Some(body) = &mut self.bodies[medium.index()] {
            body.aura = length(radius);
        }
        self
    }

    /// Cannot be perceived in this medium.
    pub fn without(mut self, medium: Medium) -> Self {
        self.bodies[medium.index()] = None;
        self
    }
}

muse_wire::setters! { Presence:
    /// Sets the direction it faces, for a nimbus that is a cone. Default: nowhere.
    facing: Vec3 = unit(facing),
    /// Its kind, below 256, for subscriptions. Default: 0.
    kind: u16,
    /// The layers it is on: only observers that share one can perceive it, by whatever means. Default: all.
    layers: u32,
    /// The region it belongs to; observers that subscribe to it perceive it at any distance. Default: none.
    region: u32 = Some(region),
    /// A factor of its priority, 0 to 1,000. Default: 1.
    importance: f32 = length(importance).min(1_000.0),
    /// Relevant to every observer that shares a layer, wherever it is (Tribes' *ghost always*). Default: no.
    always: bool,
}

/// An entity in one medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Body {
    pub(super) aura: f32,
    pub(super) nimbus: Extent,
}

/// The perceiving side: a client's eye and ear, what it subscribes to and what it is always told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Observer {
    pub(super) eye: Vec3,
    pub(super) facing: Vec3,
    pub(super) layers: u32,
    pub(super) body: Option<EntityId>,
    pub(super) senses: [Option<Sense>; Medium::COUNT],
    pub(super) kinds: Kinds,
    pub(super) kinds_refused: Kinds,
    pub(super) regions: Vec<u32>,
    pub(super) pinned: Vec<EntityId>,
}

impl Observer {
    /// Regions an observer can subscribe to.
    pub const REGIONS_MAX: usize = 64;
    /// Entities that can be pinned.
    pub const PINNED_MAX: usize = 256;

    /// Someone who perceives nothing yet, on all layers.
    pub fn new(eye: Vec3) -> Self {
        Self {
            eye,
            facing: Vec3::ZERO,
            layers: u32::MAX,
            body: None,
            senses: [None; Medium::COUNT],
            kinds: Kinds::default(),
            kinds_refused: Kinds::default(),
            regions: Vec::new(),
            pinned: Vec::new(),
        }
    }

    /// Sets how far it perceives in a medium. The cost of an update grows with what lies within. Default: not at all.
    pub fn focus(mut self, medium: Medium, focus: Extent) -> Self {
        let before = self.senses[medium.index()];
        self.senses[medium.index()] = Some(Sense {
            focus,
            ..before.unwrap_or(Sense::new(focus))
        });
        self
    }

    /// Limits how far it can interact at all in a medium in which it has a focus. Default: without bounds.
    pub fn aura(mut self, medium: Medium, radius: f32) -> Self {
        if let Some(sense) = &mut self.senses[medium.index()] {
            sense.aura = length(radius);
        }
        self
    }

    /// Sets the weight of awareness in a medium in the priority. Default: 1.
    pub fn weight(mut self, medium: Medium, weight: f32) -> Self {
        if let Some(sense) = &mut self.senses[medium.index()] {
            sense.weight = length(weight).min(1_000.0);
        }
        self
    }

    /// Makes walls matter in a medium: the visibility callback is asked. Costs one call for each entity that is
    /// in focus. Default: no.
    pub fn occluded(mut self, medium: Medium, occluded: bool) -> Self {
        if let Some(sense) = &mut self.senses[medium.index()] {
            sense.occluded = occluded;
        }
        self
    }

    /// Everything of a kind (below 256) is relevant, at any distance.
    pub fn subscribe_kind(mut self, kind: u16) -> Self {
        self.kinds.insert(kind);
        self
    }

    /// Nothing of a kind (below 256) is relevant, unless pinned.
    pub fn refuse_kind(mut self, kind: u16) -> Self {
        self.kinds_refused.insert(kind);
        self
    }

    /// Everything in a region is relevant, at any distance. Beyond [`REGIONS_MAX`](Self::REGIONS_MAX) it is ignored.
    pub fn subscribe_region(mut self, region: u32) -> Self {
        if self.regions.len() < Self::REGIONS_MAX && !self.regions.contains(&region) {
            self.regions.push(region);
        }
        self
    }

    /// This entity is relevant wherever it is (a team mate). Beyond [`PINNED_MAX`](Self::PINNED_MAX) it is ignored.
    pub fn pin(mut self, entity: EntityId) -> Self {
        if self.pinned.len() < Self::PINNED_MAX && !self.pinned.contains(&entity) {
            self.pinned.push(entity);
        }
        self
    }
}

muse_wire::setters! { Observer:
    /// Sets the direction it faces, for cones. Default: nowhere.
    facing: Vec3 = unit(facing),
    /// The layers it perceives. Default: all.
    layers: u32,
    /// Its own entity: always relevant, and adapters held by it work on the observer. Default: none.
    body: EntityId = Some(body),
}

/// An observer in one medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sense {
    pub(super) aura: f32,
    pub(super) focus: Extent,
    pub(super) weight: f32,
    pub(super) occluded: bool,
}

impl Sense {
    fn new(focus: Extent) -> Self {
        Self {
            aura: f32::INFINITY,
            focus,
            weight: 1.0,
            occluded: false,
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds([u64; KINDS_MAX / 64]);

impl Kinds {
    fn insert(&mut self, kind: u16) {
        if let Some(word) = self.0.get_mut(usize::from(kind) / 64) {
            *word |= 1 << (kind % 64);
        }
    }

    pub(super) fn contains(&self, kind: u16) -> bool {
        let word = self.0.get(usize::from(kind) / 64);
        word.is_some_and(|word| word >> (kind % 64) & 1 == 1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let words = self.0.iter().enumerate();
        words.flat_map(|(index, word)| {
            let mut rest = *word;
            core::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some((index * 64) as u16 + bit as u16)
            })
        })
    }
}

/// A distance or a factor: what is negative or not a number is 0.
pub(super) fn length(value: f32) -> f32 {
    value.max(0.0)
}

/// The direction of a vector; zero for one that has none.
pub(super) fn unit(direction: Vec3) -> Vec3 {
    if direction.is_finite() {
        direction.normalize_or_zero()
    } else {
        Vec3::ZERO
    }
}

/// True if the auras of two touch.
pub(super) fn auras_touch(sum: f32, distance: f32, held: bool) -> bool {
    distance <= if held { sum * LEAVE_RATIO } else { sum }
}

/// Kinds that can be told apart.
pub(super) const KINDS_MAX: usize = 256;
/// The leaving radius in relation to the entering radius, unless set.
const LEAVE_RATIO: f32 = 1.1;
/// The same for the angle of a cone, in radians.
const CONE_LEAVE: f32 = 0.15;
/// Below every cosine, and their rounding.
const SPHERE: f32 = -2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_fades_and_is_kept_a_little_longer() {
        let extent = Extent::sphere(100.0).full(20.0).edge(0.2).leave(120.0);
        let at = |distance, held| {
            let aspect = Aspect {
                distance,
                cosine: -1.0,
            };
            extent.strength(aspect, held, 1.0)
        };
        assert_eq!(at(20.0, false), 1.0);
        assert!((at(60.0, false) - 0.6).abs() < 1e-6);
        assert!((at(100.0, false) - 0.2).abs() < 1e-6);
        assert_eq!(at(110.0, false), 0.0);
        assert!((at(110.0, true) - 0.2).abs() < 1e-6);
        assert_eq!(at(121.0, true), 0.0);
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(Extent::sphere(f32::NAN).radius(), 0.0);
        assert_eq!(Extent::sphere(-3.0).leave_radius(), 0.0);
        assert_eq!(unit(Vec3::splat(f32::INFINITY)), Vec3::ZERO);
        assert_eq!(unit(Vec3::splat(f32::NAN)), Vec3::ZERO);
        let mut kinds = Kinds::default();
        for kind in [0, 63, 64, 255, 256, u16::MAX] {
            kinds.insert(kind);
        }
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert!(!kinds.contains(u16::MAX));
    }
}
