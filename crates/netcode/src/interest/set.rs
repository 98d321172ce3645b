//! The entities that one client perceives, and the changes since the last update.

use crate::EntityId;

use super::model::Observer;

/// The entities that an observer perceives: the result of [`Interest::update`](super::Interest::update), in the order of the
/// entities' indices.
#[derive(Debug)]
pub struct InterestSet {
    pub(super) observer: Observer,
    pub(super) entries: Vec<Relevant>,
    /// The entries of the update before; kept for their memory.
    pub(super) before: Vec<Relevant>,
    pub(super) entered: Vec<EntityId>,
    pub(super) left: Vec<EntityId>,
}

impl InterestSet {
    pub(super) fn new(observer: Observer) -> Self {
        Self {
            observer,
            entries: Vec::new(),
            before: Vec::new(),
            entered: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Everything relevant, each with its weight.
    pub fn entries(&self) -> &[Relevant] {
        &self.entries
    }

    /// Returns the entities that the last update added.
    pub fn entered(&self) -> &[EntityId] {
        &self.entered
    }

    /// Returns the entities that the last update removed, entities that are gone among them.
    pub fn left(&self) -> &[EntityId] {
        &self.left
    }

    /// True if an entity is relevant.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.entry(entity).is_some()
    }

    /// Returns the entry of an entity, if it is relevant.
    pub fn entry(&self, entity: EntityId) -> Option<&Relevant> {
        let found = self
            .entries
            .binary_search_by_key(&entity.index(), |entry| entry.entity.index());
        let entry = &self.entries[found.ok()?];
        (entry.entity == entity).then_some(entry)
    }

    /// Keeps the `limit` entries that weigh most, in order. Of two that weigh the same, the one that was there before.
    pub(super) fn keep_heaviest(&mut self, limit: usize) {
        if self.entries.len() <= limit {
            return;
        }
        if limit > 0 {
            self.entries.select_nth_unstable_by(limit - 1, |a, b| {
                let weight = b.weight.total_cmp(&a.weight);
                let age = a.fresh.cmp(&b.fresh);
                weight
                    .then(age)
                    .then(a.entity.index().cmp(&b.entity.index()))
            });
        }
        self.entries.truncate(limit);
        self.entries
            .sort_unstable_by_key(|entry| entry.entity.index());
    }

    /// Finds what entered and left by walking both lists.
    pub(super) fn compare(&mut self) {
        self.entered.clear();
        self.left.clear();
        let mut before = self.before.iter().peekable();
        for entry in &self.entries {
            while let Some(old) = before.next_if(|old| old.entity.index() < entry.entity.index()) {
                self.left.push(old.entity);
            }
            match before.next_if(|old| old.entity.index() == entry.entity.index()) {
                Some(old) if old.entity == entry.entity => {}
                Some(old) => {
                    self.left.push(old.entity);
                    self.entered.push(entry.entity);
                }
                None => self.entered.push(entry.entity),
            }
        }
        self.left.extend(before.map(|old| old.entity));
    }
}

/// An entity that a client is told of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relevant {
    /// The entity.
    pub entity: EntityId,
    /// Its share in the priority: awareness times the importance of the entity; more than 0 unless that is.
    pub weight: f32,
    /// The observer's awareness of it.
    pub awareness: Awareness,
    /// The media in which it is perceived, as [`Medium::bit`](super::Medium::bit)s; 0 for what is relevant otherwise.
    pub media: u8,
    /// Updates since it was last perceived.
    pub(super) unseen: u8,
    /// Not in the set before.
    pub(super) fresh: bool,
}

/// A degree of awareness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Awareness {
    /// No longer perceived, but kept for a moment, so that it does not flicker.
    Lingering,
    /// Near the rim of focus or nimbus: below a third.
    Faint,
    /// In between.
    Partial,
    /// In the middle of both, or relevant by rule: two thirds and above.
    Full,
}

impl Awareness {
    /// From the product of focus and nimbus, both 0 to 1.
    pub(super) fn from_product(product: f32) -> Self {
        match product {
            full if full >= 2.0 / 3.0 => Self::Full,
            partial if partial >= 1.0 / 3.0 => Self::Partial,
            _ => Self::Faint,
        }
    }
}
