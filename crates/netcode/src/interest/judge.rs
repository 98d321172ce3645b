//! The relevance of an entity to an observer: awareness in every medium, and the rules beside it.

use glam::Vec3;

use super::adapters::{Scale, scaled};
use super::model::{Aspect, auras_touch};
use crate::EntityId;

use super::{Awareness, InterestCounts, Medium, Observer, Relevant, Slot};

/// One observer, judging entities.
pub(super) struct Judge<'a, F> {
    pub(super) observer: &'a Observer,
    pub(super) scales: &'a [Scale; Medium::COUNT],
    pub(super) counts: &'a mut InterestCounts,
    pub(super) visible: &'a mut F,
}

impl<F: FnMut(EntityId, Vec3, Medium) -> bool> Judge<'_, F> {
    /// Returns the relevance of an entity, if it has any; `reasons` why it may, besides being near.
    pub(super) fn relevance(
        &mut self,
        slot: &Slot,
        reasons: u32,
        old: Option<&Relevant>,
    ) -> Option<Relevant> {
        if !slot.is_open_to(self.observer, reasons & BY_PIN != 0) {
            return None;
        }
        let (mut product, mut weight, media) = self.perceive(slot, old.map_or(0, |old| old.media));
        if reasons & (BY_PIN | BY_RULE) != 0 {
            (product, weight) = (1.0, weight.max(1.0));
        } else if reasons & BY_SUBSCRIPTION != 0 {
            product = product.max(SUBSCRIPTION_WEIGHT);
            weight = weight.max(SUBSCRIPTION_WEIGHT);
        } else if media == 0 {
            return None;
        }
        Some(Relevant {
            entity: slot.entity,
            weight: weight * slot.presence.importance,
            awareness: Awareness::from_product(product),
            media,
            unseen: 0,
            fresh: old.is_none(),
        })
    }

    /// Awareness over all media: the largest product of focus and nimbus, the largest weight, and in which media.
    fn perceive(&mut self, slot: &Slot, held: u8) -> (f32, f32, u8) {
        let presence = &slot.presence;
        let offset = presence.position - self.observer.eye;
        let distance = offset.length();
        let there = Aspect::new(offset, distance, self.observer.facing);
        let back = Aspect::new(-offset, distance, presence.facing);
        let (mut product, mut weight, mut media) = (0.0f32, 0.0f32, 0);
        for number in 0..Medium::COUNT as u8 {
            // The mask says what is there without fetching it: bodies and scales lie on cache lines of their own.
            let medium = Medium::new(number).filter(|medium| slot.media & medium.bit() != 0);
            let Some(medium) = medium else {
                continue;
            };
            let number = medium.index();
            let (Some(sense), Some(body)) =
                (&self.observer.senses[number], &presence.bodies[number])
            else {
                continue;
            };
            let held = held & medium.bit() != 0;
            let (own, other) = (self.scales[number], slot.scale(medium));
            let auras = scaled(sense.aura, own.aura) + scaled(body.aura, other.aura);
            if !auras_touch(auras, distance, held) {
                continue;
            }
            let level = sense.focus.strength(there, held, own.focus)
                * body.nimbus.strength(back, held, other.nimbus);
            if level <= 0.0 || (sense.occluded && !self.can_see(slot, medium)) {
                continue;
            }
            product = product.max(level);
            weight = weight.max(level * sense.weight);
            media |= medium.bit();
        }
        (product, weight, media)
    }

    fn can_see(&mut self, slot: &Slot, medium: Medium) -> bool {
        self.counts.callbacks += 1;
        (self.visible)(slot.entity, slot.presence.position, medium)
    }
}

/// Reasons why an entity may be relevant wherever it is: it is the observer's own or was pinned by it,
pub(super) const BY_PIN: u32 = 1;
/// it is so to everybody,
pub(super) const BY_RULE: u32 = 2;
/// or the observer subscribed to its kind or region.
pub(super) const BY_SUBSCRIPTION: u32 = 4;
/// The weight of what is relevant by region or kind only.
const SUBSCRIPTION_WEIGHT: f32 = 0.5;
