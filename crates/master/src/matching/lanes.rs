//! Lanes: tickets of the same hard preferences and party size, in order of waiting.

use std::collections::{BTreeMap, BTreeSet};

use muse_master_client::{Preferences, TicketId};
use muse_wire::Instant;
use rustc_hash::FxHashMap;

/// Hard preferences as numbers: what is compared thousands of times in a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Signature {
    pub(super) players: Option<u8>,
    /// Numbers of name and value, in order of the name's.
    choices: Vec<(u32, u32)>,
}

impl Signature {
    /// The preferences that it asks about, in order.
    fn names(&self) -> Vec<u32> {
        self.choices.iter().map(|(name, _)| *name).collect()
    }

    /// Both together, none if they contradict each other.
    pub(super) fn merged(&self, other: &Self) -> Option<Self> {
        if !self.fits(other) {
            return None;
        }
        let mut choices = [self.choices.as_slice(), other.choices.as_slice()].concat();
        choices.sort_unstable();
        choices.dedup();
        Some(Self {
            players: self.players.or(other.players),
            choices,
        })
    }

    /// True if everything that `other` chose is chosen here, numbers of players aside.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other
            .choices
            .iter()
            .all(|choice| self.choices.contains(choice))
    }

    /// True if neither contradicts the other.
    pub(super) fn fits(&self, other: &Self) -> bool {
        let players = match (self.players, other.players) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => true,
        };
        players && choices_fit(&self.choices, &other.choices)
    }
}

fn choices_fit(mut mine: &[(u32, u32)], mut theirs: &[(u32, u32)]) -> bool {
    while let (Some((a, rest_of_mine)), Some((b, rest_of_theirs))) =
        (mine.split_first(), theirs.split_first())
    {
        if a.0 == b.0 && a.1 != b.1 {
            return false;
        }
        if a.0 <= b.0 {
            mine = rest_of_mine;
        }
        if b.0 <= a.0 {
            theirs = rest_of_theirs;
        }
    }
    true
}

/// A place in the queue: since when, and who.
pub(super) type Place = (Instant, TicketId);

/// All lanes, and the order over all of them.
///
/// Lanes that ask about the same things (the same names, whatever the values) have one shape. A ticket fits into those lanes of a shape that
/// agree about any one thing that both ask about, and they are found by it: ten thousand rooms of one player each cost a look-up, not ten
/// thousand comparisons.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    shapes: BTreeMap<Vec<u32>, Shape>,
    order: BTreeSet<Place>,
}

/// The common part of a lane's tickets: hard preferences and party size.
type Key = (Signature, usize);

#[derive(Debug, Default)]
struct Shape {
    lanes: BTreeMap<Key, BTreeSet<Place>>,
    by_choice: FxHashMap<(u32, u32), BTreeSet<Key>>,
}

impl Lanes {
    pub(super) fn insert(&mut self, signature: Signature, size: usize, place: Place) {
        let shape = self.shapes.entry(signature.names()).or_default();
        let key = (signature, size);
        if !shape.lanes.contains_key(&key) {
            for choice in &key.0.choices {
                let lanes = shape.by_choice.entry(*choice).or_default();
                lanes.insert(key.clone());
            }
        }
        shape.lanes.entry(key).or_default().insert(place);
        self.order.insert(place);
    }

    pub(super) fn remove(&mut self, signature: &Signature, size: usize, place: Place) {
        self.order.remove(&place);
        let names = signature.names();
        let Some(shape) = self.shapes.get_mut(&names) else {
            return;
        };
        let key = (signature.clone(), size);
        let Some(lane) = shape.lanes.get_mut(&key) else {
            return;
        };
        lane.remove(&place);
        if !lane.is_empty() {
            return;
        }
        shape.lanes.remove(&key);
        for choice in &signature.choices {
            if let Some(lanes) = shape.by_choice.get_mut(choice) {
                lanes.remove(&key);
                if lanes.is_empty() {
                    shape.by_choice.remove(choice);
                }
            }
        }
        if shape.lanes.is_empty() {
            self.shapes.remove(&names);
        }
    }

    /// Returns how many shapes there are: the least that looking for lanes costs.
    pub(super) fn shapes(&self) -> usize {
        self.shapes.len()
    }

    /// Lanes that may fit, with what their tickets have in common: all that do, and a few that do not.
    pub(super) fn near(
        &self,
        signature: &Signature,
    ) -> impl Iterator<Item = (&Signature, usize, &BTreeSet<Place>)> {
        let shapes = self.shapes.iter();
        let near = shapes.flat_map(move |(names, shape)| shape.near(names, signature));
        near.map(|((signature, size), lane)| (signature, *size, lane))
    }

    /// Everybody in order of waiting.
    pub(super) fn order(&self) -> &BTreeSet<Place> {
        &self.order
    }
}

impl Shape {
    fn near(
        &self,
        names: &[u32],
        signature: &Signature,
    ) -> impl Iterator<Item = (&Key, &BTreeSet<Place>)> {
        let lanes_of = |choice: &&(u32, u32)| self.by_choice.get(*choice).map_or(0, BTreeSet::len);
        let shared = signature.choices.iter();
        let shared = shared.filter(|(name, _)| names.binary_search(name).is_ok());
        // Of all things that both ask about, the one with the fewest lanes that agree.
        let (some, all) = match shared.min_by_key(lanes_of) {
            Some(choice) => (self.by_choice.get(choice), None),
            None => (None, Some(&self.lanes)),
        };
        let some = some.into_iter().flatten();
        some.filter_map(|key| self.lanes.get_key_value(key))
            .chain(all.into_iter().flatten())
    }
}

/// Numbers for words, which players choose: in a tree, as no choice makes that slow.
#[derive(Debug, Default)]
pub(super) struct Interner {
    words: BTreeMap<String, u32>,
}

impl Interner {
    /// The hard preferences as numbers.
    pub(super) fn signature(&mut self, preferences: &Preferences) -> Signature {
        let mut choices: Vec<(u32, u32)> = preferences
            .choices
            .iter()
            .map(|(name, value)| (self.word(name), self.word(value)))
            .collect();
        choices.sort_unstable();
        Signature {
            players: preferences.players,
            choices,
        }
    }

    /// Returns how many words it knows.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    fn word(&mut self, word: &str) -> u32 {
        if let Some(&known) = self.words.get(word) {
            return known;
        }
        let number = u32::try_from(self.words.len()).expect("rebuilt long before");
        self.words.insert(word.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_contradict_are_not_looked_at_and_none_is_left_out() {
        let (mut lanes, mut interner) = (Lanes::default(), Interner::default());
        let mut rng = fastrand::Rng::with_seed(1);
        let mut kept = Vec::new();
        for id in 0..2_000 {
            let mut preferences = Preferences::default().choice("room", &format!("{}", id % 1_000));
            if rng.bool() {
                preferences = preferences.choice("mode", ["a", "b"][usize::from(rng.bool())]);
            }
            if rng.u8(0..10) == 0 {
                preferences = Preferences::default().choice("mode", "a");
            }
            let signature = interner.signature(&preferences);
            let place = (Instant::from_secs(id), TicketId(id));
            lanes.insert(signature.clone(), 1, place);
            if rng.bool() {
                lanes.remove(&signature, 1, place);
            } else {
                kept.push((signature, place));
            }
        }
        for (signature, _) in &kept {
            let near: Vec<_> = lanes.near(signature).collect();
            let mut found: Vec<Place> = near
                .iter()
                .filter(|(lane, _, _)| signature.fits(lane))
                .flat_map(|(_, _, places)| places.iter().copied())
                .collect();
            let fits = kept.iter().filter(|(other, _)| signature.fits(other));
            let mut expected: Vec<Place> = fits.map(|(_, place)| *place).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
        let alone = interner.signature(&Preferences::default().choice("room", "1"));
        assert!(lanes.near(&alone).count() < 10);
        for (signature, place) in kept {
            lanes.remove(&signature, 1, place);
        }
        assert!(lanes.shapes.is_empty() && lanes.order.is_empty());
    }
}
