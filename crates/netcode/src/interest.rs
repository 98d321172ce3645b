//! Interest management: which entities a client is told of, and how much each matters to it.
//!
//! The server places entities with a [`Presence`], clients look with an [`Observer`], and [`Interest::update`] gives a
//! [`InterestSet`]: every relevant entity with a weight for the priority, what entered and what left. In each [`Medium`] an
//! observer is aware of an entity when their auras touch, the entity is in the observer's focus and the observer in the
//! entity's nimbus; [`Adapter`]s change all three. Regions, kinds, always-relevant and pinned entities come on top, and
//! layers below: what shares no layer with the observer is never relevant, so a cheater cannot see it.
//!
//! The cost of an update grows with what is near and what is subscribed to, not with all entities ([`InterestCounts`]
//! shows it), and nothing is allocated once the lists have grown.

mod adapters;
mod config;
mod grid;
mod judge;
mod lists;
mod model;
mod set;

use glam::Vec3;

use crate::EntityId;
use adapters::{Scale, Site, scaled};
use grid::Grid;
use judge::{BY_PIN, BY_RULE, BY_SUBSCRIPTION, Judge};
use lists::Lists;
use model::unit;

pub use adapters::Adapter;
pub use config::{InterestConfig, InterestError};
pub use grid::{InterestCounts, Plane};
pub use model::{Extent, Medium, Observer, Presence};
pub use set::{Awareness, InterestSet, Relevant};

/// Finds the entities that are relevant to each observer. Call [`place`](Self::place), [`move_to`](Self::move_to) and [`look`](Self::look) for what
/// moved in a tick, then [`update`](Self::update) for each observer that gets a snapshot.
///
/// ```
/// use glam::Vec3;
/// use muse_netcode::EntityId;
/// use muse_netcode::interest::{Extent, Interest, InterestConfig, Medium, Observer, ObserverId, Presence};
///
/// let mut interest = Interest::new(InterestConfig::default());
/// let (near, far) = (EntityId::from_bits(1), EntityId::from_bits(2));
/// interest.place(near, Presence::new(Vec3::new(10.0, 0.0, 0.0)))?;
/// interest.place(far, Presence::new(Vec3::new(900.0, 0.0, 0.0)))?;
/// let player = ObserverId(0);
/// interest.observe(player, Observer::new(Vec3::ZERO).focus(Medium::SIGHT, Extent::sphere(100.0)))?;
///
/// let view = interest.update(player, |_, _, _| true)?;
/// assert!(view.contains(near) && !view.contains(far));
/// assert_eq!(view.entered(), [near]);
/// # Ok::<(), muse_netcode::interest::InterestError>(())
/// ```
#[derive(Debug)]
pub struct Interest {
    config: InterestConfig,
    grid: Grid,
    lists: Lists,
    /// By the index of the entity.
    slots: Vec<Option<Slot>>,
    views: Vec<Option<Box<InterestSet>>>,
    adapters: Vec<Option<Adapter>>,
    /// Entities that an adapter works on.
    adapted: Vec<u32>,
    /// Something moved since adapters were last applied.
    moved: bool,
    /// Entities that may be relevant, with the reason: the index in the high bits, `BY_*` in the low ones.
    candidates: Vec<u32>,
    counts: InterestCounts,
}

/// A client, or anyone else who perceives: a number below [`InterestConfig::observers_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObserverId(pub u32);

#[derive(Debug)]
struct Slot {
    entity: EntityId,
    presence: Presence,
    /// The media in which it can be perceived.
    media: u8,
    /// True if an adapter works on it; else the scales are all one.
    adapted: bool,
    scales: [Scale; Medium::COUNT],
}

impl Interest {
    /// An empty world.
    pub fn new(config: InterestConfig) -> Self {
        Self {
            grid: Grid::new(config.plane, config.cell, config.entities_max),
            lists: Lists::new(config.regions_max),
            slots: Vec::new(),
            views: Vec::new(),
            adapters: Vec::new(),
            adapted: Vec::new(),
            moved: false,
            candidates: Vec::new(),
            counts: InterestCounts::default(),
            config,
        }
    }

    /// Puts an entity into the world, or changes everything about it. An older generation at the same index is gone.
    pub fn place(&mut self, entity: EntityId, presence: Presence) -> Result<(), InterestError> {
        check(presence.position)?;
        let at = entity.index() as usize;
        if at >= self.config.entities_max {
            return Err(InterestError::EntityLimit);
        }
        if !self.lists.has_room(presence.region) {
            return Err(InterestError::RegionLimit);
        }
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        // Lists name their members by index, so the old entry has to go before the new one comes.
        if let Some(old) = &self.slots[at] {
            self.lists.remove(entity.index(), &old.presence);
        }
        self.lists.insert(entity.index(), &presence);
        let bodies = presence.bodies.iter().enumerate();
        let media = bodies.fold(0, |media, (number, body)| {
            media | u8::from(body.is_some()) << number
        });
        self.slots[at] = Some(Slot {
            entity,
            presence,
            media,
            adapted: false,
            scales: [Scale::ONE; Medium::COUNT],
        });
        self.locate(entity.index());
        Ok(())
    }

    /// Moves an entity, and turns it for a nimbus that is a cone.
    pub fn move_to(
        &mut self,
        entity: EntityId,
        position: Vec3,
        facing: Vec3,
    ) -> Result<(), InterestError> {
        check(position)?;
        let slot = find_mut(&mut self.slots, entity).ok_or(InterestError::UnknownEntity)?;
        slot.presence.position = position;
        slot.presence.facing = unit(facing);
        self.locate(entity.index());
        Ok(())
    }

    /// Removes an entity; views lose it at their next update. False when it was not there.
    pub fn remove(&mut self, entity: EntityId) -> bool {
        if find(&self.slots, entity).is_none() {
            return false;
        }
        if let Some(slot) = self.slots[entity.index() as usize].take() {
            self.lists.remove(entity.index(), &slot.presence);
        }
        self.grid.remove(entity.index());
        self.moved = true;
        true
    }

    /// Adds an observer, or changes everything about it but what it perceives until the next update.
    pub fn observe(&mut self, id: ObserverId, observer: Observer) -> Result<(), InterestError> {
        check(observer.eye)?;
        let at = id.0 as usize;
        if at >= self.config.observers_max {
            return Err(InterestError::ObserverLimit);
        }
        if at >= self.views.len() {
            self.views.resize_with(at + 1, || None);
        }
        match &mut self.views[at] {
            Some(view) => view.observer = observer,
            empty => *empty = Some(Box::new(InterestSet::new(observer))),
        }
        Ok(())
    }

    /// Moves and turns an observer.
    pub fn look(&mut self, id: ObserverId, eye: Vec3, facing: Vec3) -> Result<(), InterestError> {
        check(eye)?;
        let view = self.views.get_mut(id.0 as usize);
        let view = view
            .and_then(Option::as_mut)
            .ok_or(InterestError::UnknownObserver)?;
        view.observer.eye = eye;
        view.observer.facing = unit(facing);
        Ok(())
    }

    /// Removes an observer. False when it was not there.
    pub fn forget(&mut self, id: ObserverId) -> bool {
        let view = self.views.get_mut(id.0 as usize);
        view.and_then(Option::take).is_some()
    }

    /// Sets the adapter of this number (below [`InterestConfig::adapters_max`]), or takes it away.
    pub fn adapt(&mut self, number: u16, adapter: Option<Adapter>) -> Result<(), InterestError> {
        let at = usize::from(number);
        if at >= self.config.adapters_max {
            return Err(InterestError::AdapterLimit);
        }
        if let Some(Site::Area(centre, _)) = adapter.map(|adapter| adapter.site) {
            check(centre)?;
        }
        if at >= self.adapters.len() {
            self.adapters.resize(at + 1, None);
        }
        self.adapters[at] = adapter;
        self.moved = true;
        Ok(())
    }

    /// Computes what an observer perceives now. `visible` is asked whether walls let through what is at a position, for media that care
    /// ([`Observer::occluded`]) and only for what would be perceived without them.
    pub fn update(
        &mut self,
        id: ObserverId,
        visible: impl FnMut(EntityId, Vec3, Medium) -> bool,
    ) -> Result<&InterestSet, InterestError> {
        if self.view(id).is_none() {
            return Err(InterestError::UnknownObserver);
        }
        self.apply_adapters();
        let place = &mut self.views[id.0 as usize];
        // Taken out while the rest of the world is read, and put back below.
        let mut view = place.take().ok_or(InterestError::UnknownObserver)?;
        let scales = self.observer_scales(&view.observer);
        self.gather(&view.observer, &scales);
        self.merge(&mut view, &scales, visible);
        view.keep_heaviest(self.config.visible_max);
        view.compare();
        self.counts.updates += 1;
        Ok(self.views[id.0 as usize].insert(view))
    }

    /// Returns the result of an observer's last update.
    pub fn view(&self, id: ObserverId) -> Option<&InterestSet> {
        self.views.get(id.0 as usize)?.as_deref()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> InterestCounts {
        self.counts
    }

    /// Puts an entity into the cell where it belongs.
    fn locate(&mut self, index: u32) {
        if let Some(slot) = &self.slots[index as usize] {
            let reach = slot.reach();
            self.grid.place(index, slot.presence.position, reach);
        }
        self.moved = true;
    }

    /// Recomputes the effect of adapters on every entity, when anything has moved.
    fn apply_adapters(&mut self) {
        let none = self.adapters.iter().all(Option::is_none);
        if !self.moved || (none && self.adapted.is_empty()) {
            return;
        }
        self.moved = false;
        // First everything as it would be without adapters, so that effects do not pile up from update to update.
        for &index in &self.adapted {
            if let Some(slot) = &mut self.slots[index as usize] {
                slot.scales = [Scale::ONE; Medium::COUNT];
                slot.adapted = false;
            }
        }
        let before = self.adapted.len();
        for adapter in self.adapters.iter().flatten() {
            let first = self.adapted.len();
            match site(adapter, &self.slots) {
                Some((centre, Some(reach))) => {
                    let adapted = &mut self.adapted;
                    self.grid.within(centre, reach, &mut self.counts, |index| {
                        adapted.push(index);
                    });
                }
                Some((_, None)) => {
                    if let Site::Held(entity) = adapter.site {
                        self.adapted.push(entity.index());
                    }
                }
                None => {}
            }
            for &index in &self.adapted[first..] {
                if let Some(slot) = &mut self.slots[index as usize] {
                    let scale = &mut slot.scales[adapter.medium.index()];
                    *scale = scale.times(adapter.scale);
                    slot.adapted = true;
                }
            }
        }
        for &index in &self.adapted {
            if let Some(slot) = &self.slots[index as usize] {
                // Those of before are among them: their reach is the usual one again.
                self.grid.place(index, slot.presence.position, slot.reach());
            }
        }
        self.adapted.drain(..before);
        self.adapted.sort_unstable();
        self.adapted.dedup();
    }

    /// Returns the effect of adapters on an observer.
    fn observer_scales(&self, observer: &Observer) -> [Scale; Medium::COUNT] {
        let mut scales = [Scale::ONE; Medium::COUNT];
        for adapter in self.adapters.iter().flatten() {
            let works = match site(adapter, &self.slots) {
                Some((centre, Some(reach))) => centre.distance(observer.eye) <= reach,
                Some((_, None)) => observer.body.map(Site::Held) == Some(adapter.site),
                None => false,
            };
            if works {
                let scale = &mut scales[adapter.medium.index()];
                *scale = scale.times(adapter.scale);
            }
        }
        scales
    }

    /// Collects everything that may be relevant, each entity once, in order of the index.
    fn gather(&mut self, observer: &Observer, scales: &[Scale; Medium::COUNT]) {
        let candidates = &mut self.candidates;
        candidates.clear();
        // Index and reasons in one number: sorting them brings the reasons of an entity together.
        let mut add = |index: u32, reason: u32| candidates.push(index << REASON_BITS | reason);
        let pinned = observer.pinned.iter().chain(&observer.body);
        for entity in pinned.filter(|entity| find(&self.slots, **entity).is_some()) {
            add(entity.index(), BY_PIN);
        }
        for &index in self.lists.always() {
            add(index, BY_RULE);
        }
        let kinds = observer.kinds.iter().flat_map(|kind| self.lists.kind(kind));
        let regions = observer.regions.iter();
        let regions = regions.flat_map(|region| self.lists.region(*region));
        for &index in kinds.chain(regions) {
            add(index, BY_SUBSCRIPTION);
        }
        let range = observer
            .senses
            .iter()
            .zip(scales)
            .fold(0.0f32, |range, (sense, scale)| {
                let leave = sense.map_or(0.0, |sense| sense.focus.leave_radius());
                range.max(scaled(leave, scale.focus))
            });
        if range > 0.0 {
            self.grid
                .perceived(observer.eye, range, &mut self.counts, |index| add(index, 0));
        }
        candidates.sort_unstable();
        candidates.dedup_by(|later, kept| {
            let same = *later >> REASON_BITS == *kept >> REASON_BITS;
            if same {
                *kept |= *later;
            }
            same
        });
    }

    /// Judges every candidate, with what was relevant before at its side.
    fn merge(
        &mut self,
        view: &mut InterestSet,
        scales: &[Scale; Medium::COUNT],
        mut visible: impl FnMut(EntityId, Vec3, Medium) -> bool,
    ) {
        core::mem::swap(&mut view.entries, &mut view.before);
        view.entries.clear();
        let (observer, before) = (&view.observer, &view.before);
        let linger = self.config.linger;
        let mut before = before.iter().peekable();
        for &candidate in &self.candidates {
            let (index, reasons) = (candidate >> REASON_BITS, candidate & REASONS);
            while let Some(old) = before.next_if(|old| old.entity.index() < index) {
                let kept = old.linger(observer, &self.slots, linger);
                view.entries.extend(kept);
            }
            let Some(slot) = &self.slots[index as usize] else {
                continue;
            };
            let old = before.next_if(|old| old.entity.index() == index);
            // Another generation at the same index is another entity.
            let old = old.filter(|old| old.entity == slot.entity);
            self.counts.judged += 1;
            let mut judge = Judge {
                observer,
                scales,
                counts: &mut self.counts,
                visible: &mut visible,
            };
            let found = judge.relevance(slot, reasons, old);
            let kept = || old.and_then(|old| old.linger(observer, &self.slots, linger));
            view.entries.extend(found.or_else(kept));
        }
        for old in before {
            let kept = old.linger(observer, &self.slots, linger);
            view.entries.extend(kept);
        }
    }
}

impl Slot {
    /// Returns the distance from which it can be perceived by any means. Never quite nothing while it has a nimbus at all, so that adapters
    /// find it again.
    fn reach(&self) -> f32 {
        let bodies = self.presence.bodies.iter().zip(&self.scales);
        bodies.fold(0.0, |reach, (body, scale)| {
            body.map_or(reach, |body| {
                let leave = scaled(body.nimbus.leave_radius(), scale.nimbus);
                reach.max(leave).max(f32::MIN_POSITIVE)
            })
        })
    }

    /// Returns the effect of adapters on it in a medium.
    fn scale(&self, medium: Medium) -> Scale {
        if self.adapted {
            self.scales[medium.index()]
        } else {
            Scale::ONE
        }
    }

    /// True if an observer may be told of it at all.
    fn is_open_to(&self, observer: &Observer, pinned: bool) -> bool {
        let refused = observer.kinds_refused.contains(self.presence.kind);
        self.presence.layers & observer.layers != 0 && (pinned || !refused)
    }
}

impl Relevant {
    /// Itself once more, for what is no longer perceived but not yet forgotten.
    fn linger(&self, observer: &Observer, slots: &[Option<Slot>], updates: u8) -> Option<Self> {
        let slot = find(slots, self.entity)?;
        let stays = self.unseen < updates && slot.is_open_to(observer, false);
        stays.then_some(Self {
            awareness: Awareness::Lingering,
            media: 0,
            unseen: self.unseen + 1,
            fresh: false,
            ..*self
        })
    }
}

fn find(slots: &[Option<Slot>], entity: EntityId) -> Option<&Slot> {
    let slot = slots.get(entity.index() as usize)?.as_ref();
    slot.filter(|slot| slot.entity == entity)
}

fn find_mut(slots: &mut [Option<Slot>], entity: EntityId) -> Option<&mut Slot> {
    let slot = slots.get_mut(entity.index() as usize)?.as_mut();
    slot.filter(|slot| slot.entity == entity)
}

/// Returns the place of an adapter and how far it works, `None` for its holder alone. Nowhere when its entity is gone.
fn site(adapter: &Adapter, slots: &[Option<Slot>]) -> Option<(Vec3, Option<f32>)> {
    match adapter.site {
        Site::Area(centre, reach) => Some((centre, Some(reach))),
        Site::Around(entity, reach) => {
            find(slots, entity).map(|slot| (slot.presence.position, Some(reach)))
        }
        Site::Held(entity) => find(slots, entity).map(|slot| (slot.presence.position, None)),
    }
}

fn check(position: Vec3) -> Result<(), InterestError> {
    // False for what is not a number, too.
    let fits = |value: f32| value.abs() <= COORDINATE_MAX;
    if position.to_array().into_iter().all(fits) {
        Ok(())
    } else {
        Err(InterestError::Position)
    }
}

/// Squares of distances stay far from infinity.
const COORDINATE_MAX: f32 = 1e9;
/// Low bits of a candidate that say why it may be relevant; the index of an entity fits above them.
const REASON_BITS: u32 = 12;
const REASONS: u32 = (1 << REASON_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything moves in circles; after two rounds no list grows any more.
    #[test]
    fn nothing_is_allocated_once_the_lists_have_grown() {
        let mut interest = Interest::new(InterestConfig::default());
        let id = |index| EntityId::new(index, 0).expect("small");
        for index in 0..500 {
            let presence = Presence::new(Vec3::ZERO).region(index % 7);
            interest.place(id(index), presence).expect("sane");
        }
        let observer = Observer::new(Vec3::new(150.0, 0.0, 0.0))
            .subscribe_region(3)
            .focus(Medium::SIGHT, Extent::sphere(80.0));
        interest.observe(ObserverId(0), observer).expect("sane");
        let adapter = Adapter::around(id(0), 20.0, Medium::SIGHT).nimbus(0.5);
        interest.adapt(0, Some(adapter)).expect("within the limit");
        let mut capacities = Vec::new();
        let mut changes = 0;
        for tick in 0..300u32 {
            for index in 0..500 {
                let angle = (tick % 100) as f32 * 0.0628 + index as f32;
                let circle = glam::Vec2::from_angle(angle) * 150.0;
                let position = Vec3::new(circle.x + index as f32 * 0.2, 0.0, circle.y);
                interest
                    .move_to(id(index), position, Vec3::X)
                    .expect("it is there");
            }
            let view = interest
                .update(ObserverId(0), |_, _, _| true)
                .expect("known");
            changes += view.entered().len() + view.left().len();
            let (entered, left) = (view.entered.capacity(), view.left.capacity());
            let entries = view.entries.capacity() + view.before.capacity();
            let lists = interest.candidates.capacity() + interest.adapted.capacity();
            capacities.push([entered, left, entries, lists]);
        }
        assert!(changes > 1_000, "{changes}");
        assert!(capacities[200..].iter().all(|now| *now == capacities[200]));
    }
}
