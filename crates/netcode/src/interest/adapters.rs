//! Adapters: objects that change the aura, focus and nimbus of others, as a microphone or binoculars do.

use glam::Vec3;

use super::model::{Medium, length};
use crate::EntityId;

/// An object that changes how far others perceive and are perceived in one medium. Several multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapter {
    pub(super) medium: Medium,
    pub(super) site: Site,
    pub(super) scale: Scale,
}

impl Adapter {
    /// Works on the entity that holds it, and on the observer whose body that is.
    pub fn held_by(entity: EntityId, medium: Medium) -> Self {
        Self {
            medium,
            site: Site::Held(entity),
            scale: Scale::ONE,
        }
    }

    /// Works on everything within `reach` of a place (a room that echoes, fog).
    pub fn area(centre: Vec3, reach: f32, medium: Medium) -> Self {
        Self {
            medium,
            site: Site::Area(centre, length(reach)),
            scale: Scale::ONE,
        }
    }

    /// Works on everything within `reach` of an entity, and moves with it (a jammer).
    pub fn around(entity: EntityId, reach: f32, medium: Medium) -> Self {
        Self {
            medium,
            site: Site::Around(entity, length(reach)),
            scale: Scale::ONE,
        }
    }

    /// A factor of the aura, 0 to 1,000. Default: 1.
    pub fn aura(mut self, factor: f32) -> Self {
        self.scale.aura = length(factor).min(Scale::MAX);
        self
    }

    /// A factor of the focus, 0 to 1,000. Default: 1.
    pub fn focus(mut self, factor: f32) -> Self {
        self.scale.focus = length(factor).min(Scale::MAX);
        self
    }

    /// A factor of the nimbus, 0 to 1,000. Default: 1.
    pub fn nimbus(mut self, factor: f32) -> Self {
        self.scale.nimbus = length(factor).min(Scale::MAX);
        self
    }
}

/// The place where an adapter works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Site {
    Held(EntityId),
    Area(Vec3, f32),
    Around(EntityId, f32),
}

/// The effect of adapters on one object in one medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) aura: f32,
    pub(super) focus: f32,
    pub(super) nimbus: f32,
}

impl Scale {
    pub(super) const ONE: Self = Self {
        aura: 1.0,
        focus: 1.0,
        nimbus: 1.0,
    };
    /// The largest factor, for one adapter and for all together.
    const MAX: f32 = 1_000.0;

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            aura: (self.aura * other.aura).min(Self::MAX),
            focus: (self.focus * other.focus).min(Self::MAX),
            nimbus: (self.nimbus * other.nimbus).min(Self::MAX),
        }
    }
}

/// A radius and what adapters make of it; no times infinity is nothing.
pub(super) fn scaled(radius: f32, factor: f32) -> f32 {
    if factor <= 0.0 { 0.0 } else { radius * factor }
}
