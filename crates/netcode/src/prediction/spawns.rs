//! Spawns of a client's own steps: shown at once, the server's entities as soon as that tells of them, and faded out if it never does.
//!
//! Both sides give a spawn the same key, because both run the same rules with the same input: the tick, and how many the player had spawned before in it. A
//! step that is simulated again and names the same key means the same spawn. The server tells the player who fired, and nobody else, by which key it
//! knows the new entity.

use std::any::TypeId;

use muse_schema::{Blend, State};
use muse_wire::Duration;

use crate::world::KindId;
use crate::{EntityId, Tick};

/// The name of a spawn, the same on both sides: the tick in which a player's step spawned it, and its number among those of that step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpawnKey {
    /// The tick.
    pub tick: Tick,
    /// Its number among those that the player spawned in the tick, below [`SPAWNS_PER_STEP_MAX`].
    pub ordinal: u8,
}

/// An entity that a step spawns; see [`StepContext::spawn`](super::StepContext::spawn).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSpawn {
    pub(super) state: TypeId,
    pub(super) row: Vec<i32>,
}

impl NewSpawn {
    pub(super) fn new<S: State>(state: &S) -> Self {
        Self {
            state: TypeId::of::<S>(),
            row: state.to_row(),
        }
    }
}

/// A spawn of a player in a step, of a kind that there is.
#[derive(Clone, Debug)]
pub(crate) struct NamedSpawn {
    pub(crate) player: EntityId,
    pub(crate) key: SpawnKey,
    pub(crate) kind: KindId,
    pub(crate) row: Vec<i32>,
}

/// Something that the client's own steps spawned and that the server has not told of, to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnShown<S> {
    /// Its key, which stays when it is simulated again.
    pub key: SpawnKey,
    /// Its state. Of a kind that is [predicted](crate::KindOptions::predicted) where the rules have moved it by now, otherwise as it was spawned.
    pub state: S,
    /// The share of it that is there: 1, and less and less while it fades because the server does not know of it.
    pub share: f32,
}

/// The spawns that wait for the server, that fade, and that have become the server's a moment ago.
#[derive(Debug)]
pub(super) struct Spawns {
    entries: Vec<Entry>,
    /// Ticks after which a spawn that the server has not told of counts as denied.
    patience: u32,
    fade_seconds: f32,
    /// True if something that the rules moved was given up between two ticks, and is still in the scene.
    leftover: bool,
    /// Counted for names of entities that the server has not named.
    named: u32,
    pub(super) adopted: u64,
    pub(super) denied: u64,
    pub(super) left_out: u64,
}

/// A spawn.
#[derive(Debug)]
pub(crate) struct Entry {
    key: SpawnKey,
    kind: KindId,
    /// Its name in the scene: one of our own until the server's is known.
    entity: EntityId,
    /// The name that it had before the server's was known.
    provisional: EntityId,
    /// The state as it was spawned, or, if the rules move it and it was denied, as it was last.
    row: Vec<i32>,
    /// The state that was shown before it changed, and how much of the difference is left.
    before: Option<Vec<i32>>,
    difference: f32,
    fate: Fate,
    share: f32,
    age_seconds: f32,
    /// True if the rules move it, in the scene.
    moves: bool,
    /// Named again while ticks are simulated again.
    seen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The server has not told of it.
    Waiting,
    /// It is the server's.
    Adopted,
    /// A step that was simulated again did not name it, or the server has not told of it for too long.
    Denied,
}

impl Spawns {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            patience: 0,
            fade_seconds: 0.0,
            leftover: false,
            named: 0,
            adopted: 0,
            denied: 0,
            left_out: 0,
        }
    }

    pub(super) fn set_times(&mut self, patience_ticks: u32, fade: Duration) {
        self.patience = patience_ticks;
        self.fade_seconds = fade.as_secs_f64() as f32;
    }

    /// Another entity is played, or none: what is in the air fades.
    pub(super) fn deny_all(&mut self) {
        for index in 0..self.entries.len() {
            self.deny(index);
        }
    }

    /// A step of the own player spawned something. Returns the name of it in the scene; `None` if there are too many.
    pub(super) fn name(&mut self, new: &NamedSpawn, moves: bool) -> Option<EntityId> {
        let key = new.key;
        let same = |entry: &&mut Entry| entry.key == key && entry.kind == new.kind;
        if let Some(entry) = self.entries.iter_mut().find(same) {
            entry.seen = true;
            if entry.fate == Fate::Denied {
                // It happened after all.
                entry.fate = Fate::Waiting;
                entry.age_seconds = 0.0;
                self.denied -= 1;
            }
            if entry.fate == Fate::Waiting && !entry.moves && entry.row != new.row {
                let before = std::mem::replace(&mut entry.row, new.row.clone());
                entry.change_from(before);
            }
            return Some(entry.entity);
        }
        if self.entries.len() == SPAWNS_MAX {
            self.left_out += 1;
            return None;
        }
        let entity = self.provisional();
        self.entries.push(Entry {
            key,
            kind: new.kind,
            entity,
            provisional: entity,
            row: new.row.clone(),
            before: None,
            difference: 0.0,
            fate: Fate::Waiting,
            share: 1.0,
            age_seconds: 0.0,
            moves,
            seen: true,
        });
        Some(entity)
    }

    /// All ticks after this one are about to be simulated again.
    pub(super) fn begin_again(&mut self, base: Tick) {
        for entry in &mut self.entries {
            entry.seen = entry.key.tick <= base;
        }
    }

    /// Ends that: what was not named again is not there.
    pub(super) fn end_again(&mut self) {
        for index in 0..self.entries.len() {
            if !self.entries[index].seen && self.entries[index].fate == Fate::Waiting {
                self.deny(index);
            }
        }
    }

    /// True if something has no entity of the server.
    pub(super) fn is_waiting(&self) -> bool {
        self.entries.iter().any(|entry| entry.fate != Fate::Adopted)
    }

    /// The server knows a spawn as this entity. Returns the name that it had in the scene.
    pub(super) fn adopt(
        &mut self,
        key: SpawnKey,
        kind: KindId,
        entity: EntityId,
    ) -> Option<EntityId> {
        let waits = |entry: &&mut Entry| {
            entry.key == key && entry.kind == kind && entry.fate != Fate::Adopted
        };
        let entry = self.entries.iter_mut().find(waits)?;
        self.denied -= u64::from(entry.fate == Fate::Denied);
        self.adopted += 1;
        entry.fate = Fate::Adopted;
        entry.share = 1.0;
        let before = entry.row.clone();
        entry.change_from(before);
        Some(std::mem::replace(&mut entry.entity, entity))
    }

    /// The server has spoken about a tick. Returns whether that ends something that the rules move.
    pub(super) fn expire(&mut self, tick: Tick) -> bool {
        let mut ends = std::mem::take(&mut self.leftover);
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            let overdue = tick - entry.key.tick > i64::from(self.patience);
            if entry.fate == Fate::Waiting && overdue {
                ends |= entry.moves;
                self.deny(index);
            }
        }
        ends
    }

    /// Advances by this time; the server's states up to `base` are known.
    pub(super) fn advance(&mut self, seconds: f32, base: Option<Tick>) {
        let step = seconds / self.fade_seconds.max(f32::MIN_POSITIVE);
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            entry.age_seconds += seconds;
            entry.difference = (entry.difference - step).max(0.0);
            let towards = if entry.fate == Fate::Denied {
                -step
            } else {
                step
            };
            entry.share = (entry.share + towards).clamp(0.0, 1.0);
            if entry.fate == Fate::Waiting && entry.age_seconds > WAIT_SECONDS_MAX {
                self.leftover |= entry.moves;
                self.deny(index);
            }
        }
        self.entries.retain(|entry| match entry.fate {
            Fate::Waiting => true,
            Fate::Denied => entry.share > 0.0,
            // Until its step cannot be simulated again, for which it keeps its name.
            Fate::Adopted => {
                entry.difference > 0.0 || base.is_none_or(|base| base < entry.key.tick)
            }
        });
    }

    /// The spawns that have no entity of the server.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.fate != Fate::Adopted)
    }

    /// The spawn that an entity of the server was a moment ago.
    pub(super) fn of(&self, entity: EntityId) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.fate == Fate::Adopted && entry.entity == entity)
    }

    /// The spawns that the rules move and that were there at a tick, with their kinds.
    pub(super) fn moving_at(&self, tick: Tick) -> impl Iterator<Item = (EntityId, KindId)> + '_ {
        let moves = move |entry: &&Entry| {
            entry.moves && entry.fate == Fate::Waiting && entry.key.tick <= tick
        };
        let entries = self.entries.iter().filter(moves);
        entries.map(|entry| (entry.entity, entry.kind))
    }

    /// True if this is a name that the server has not given.
    pub(super) fn is_provisional(&self, entity: EntityId) -> bool {
        self.shown().any(|entry| entry.entity == entity)
    }

    /// Notes where everything is that the rules move, in case it is denied.
    pub(super) fn note_rows<'a>(&mut self, row: impl Fn(EntityId) -> Option<&'a [i32]>) {
        for entry in &mut self.entries {
            if entry.moves
                && entry.fate == Fate::Waiting
                && let Some(row) = row(entry.entity)
            {
                entry.row.clear();
                entry.row.extend_from_slice(row);
            }
        }
    }

    fn deny(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        if entry.fate == Fate::Waiting {
            entry.fate = Fate::Denied;
            self.denied += 1;
        }
    }

    /// A name from the far end of all indices, where the server's come last.
    fn provisional(&mut self) -> EntityId {
        self.named = self.named.wrapping_add(1);
        let (place, turn) = (self.named % PROVISIONAL, self.named / PROVISIONAL);
        let index = EntityId::COUNT_MAX - 1 - place;
        EntityId::from_bits(turn.wrapping_mul(EntityId::COUNT_MAX) | index)
    }
}

impl Entry {
    pub(crate) const fn key(&self) -> SpawnKey {
        self.key
    }

    pub(crate) const fn kind(&self) -> KindId {
        self.kind
    }

    pub(crate) const fn provisional(&self) -> EntityId {
        self.provisional
    }

    pub(crate) const fn share(&self) -> f32 {
        self.share
    }

    /// True if the rules move it and it is in the scene.
    pub(crate) fn is_simulated(&self) -> bool {
        self.moves && self.fate == Fate::Waiting
    }

    /// The state as it was spawned, or last, moved over from the one before.
    pub(crate) fn state<S: State>(&self) -> Option<S> {
        self.blended(&self.row)
    }

    /// A state on the way from the one that was shown before.
    pub(crate) fn blended<S: State>(&self, row: &[i32]) -> Option<S> {
        let state = S::from_row(row).ok()?;
        let before = self.before.as_ref().filter(|_| self.difference > 0.0);
        let Some(before) = before.and_then(|before| S::from_row(before).ok()) else {
            return Some(state);
        };
        let blend = Blend {
            share: self.difference,
            seconds: 0.0,
        };
        Some(state.blend(&before, blend))
    }

    fn change_from(&mut self, before: Vec<i32>) {
        // While most of an earlier difference is left, that is where it is shown.
        if self.difference < 0.5 {
            self.before = Some(before);
        }
        self.difference = 1.0;
    }
}

/// Entities that a player can spawn in a step; what is beyond is not spawned, on either side.
pub const SPAWNS_PER_STEP_MAX: usize = 16;
/// Spawns of a client's own that are shown at once and wait for the server, or fade; what is beyond appears when the server tells of it.
pub const SPAWNS_MAX: usize = 64;
/// Names for spawns before one is used again with another generation; more than can be there at a time.
const PROVISIONAL: u32 = 4 * SPAWNS_MAX as u32;
/// Longest time that a spawn waits for a server that is not heard.
const WAIT_SECONDS_MAX: f32 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Kind, KindOptions, Kinds};

    #[derive(State, Clone, Debug, PartialEq)]
    struct Bullet(u16);

    fn spawn(kind: Kind<Bullet>, key: SpawnKey, place: u16) -> NamedSpawn {
        NamedSpawn {
            player: EntityId::from_bits(1),
            key,
            kind: kind.id(),
            row: Bullet(place).to_row(),
        }
    }

    fn key(tick: u32, ordinal: u8) -> SpawnKey {
        let tick = Tick(tick);
        SpawnKey { tick, ordinal }
    }

    #[test]
    fn there_is_a_limit_and_names_do_not_meet() {
        let mut kinds = Kinds::new();
        let kind = kinds.register(KindOptions::new(1)).expect("new");
        let mut spawns = Spawns::new();
        spawns.set_times(5, Duration::from_millis(100));
        for round in 0..50 {
            let base = round * 100;
            let name = |spawns: &mut Spawns, number: u32| {
                let key = key(base + number / 16, (number % 16) as u8);
                spawns.name(&spawn(kind, key, 1), false)
            };
            let mut names: Vec<_> = (0..SPAWNS_MAX as u32)
                .filter_map(|number| name(&mut spawns, number))
                .collect();
            assert_eq!(name(&mut spawns, SPAWNS_MAX as u32), None);
            assert_eq!(spawns.left_out, u64::from(round) + 1);
            assert!(name(&mut spawns, 3).is_some(), "one that is there already");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), SPAWNS_MAX);
            assert!(
                !spawns.expire(Tick(base + 5)),
                "the rules move none of them"
            );
            let waiting = |spawns: &Spawns| spawns.shown().filter(|it| it.share() == 1.0).count();
            spawns.advance(0.05, Some(Tick(base)));
            assert_eq!(waiting(&spawns), SPAWNS_MAX, "none has waited for too long");
            spawns.expire(Tick(base + 9));
            spawns.advance(0.05, Some(Tick(base)));
            assert_eq!(waiting(&spawns), 0);
            spawns.advance(0.06, Some(Tick(base)));
            assert_eq!(spawns.shown().count(), 0);
        }
        assert_eq!(spawns.denied, 50 * SPAWNS_MAX as u64);
    }

    #[test]
    fn what_is_named_again_is_the_same_and_moves_over() {
        let mut kinds = Kinds::new();
        let kind = kinds.register(KindOptions::new(1)).expect("new");
        let mut spawns = Spawns::new();
        spawns.set_times(5, Duration::from_millis(100));
        let first = spawns.name(&spawn(kind, key(7, 0), 1_000), false);
        spawns.begin_again(Tick(4));
        assert_eq!(spawns.name(&spawn(kind, key(7, 0), 2_000), false), first);
        spawns.end_again();
        let place = |spawns: &Spawns| {
            let bullet = spawns.shown().next().and_then(Entry::state::<Bullet>);
            bullet.expect("it is there").0
        };
        assert_eq!(place(&spawns), 1_000, "where it was");
        spawns.advance(0.1, Some(Tick(4)));
        assert_eq!(place(&spawns), 2_000);
        // A correction makes it undone, and another one done.
        spawns.begin_again(Tick(5));
        spawns.end_again();
        spawns.advance(0.05, Some(Tick(5)));
        let share = |spawns: &Spawns| spawns.shown().next().map(Entry::share);
        assert!(share(&spawns).is_some_and(|share| share < 0.6));
        spawns.begin_again(Tick(6));
        assert_eq!(spawns.name(&spawn(kind, key(7, 0), 2_000), false), first);
        spawns.end_again();
        spawns.advance(0.06, Some(Tick(6)));
        assert_eq!((share(&spawns), spawns.denied), (Some(1.0), 0));
        // The server's takes its place, once.
        let entity = EntityId::from_bits(12);
        assert_eq!(spawns.adopt(key(7, 0), kind.id(), entity), first);
        assert_eq!(spawns.adopt(key(7, 0), kind.id(), entity), None);
        assert_eq!((spawns.shown().count(), spawns.adopted), (0, 1));
        assert!(spawns.of(entity).is_some());
        spawns.advance(0.2, Some(Tick(7)));
        assert!(spawns.of(entity).is_none(), "it is like all others by now");
    }
}
