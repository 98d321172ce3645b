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

    /// Whether everything that `other` chose is chosen here, numbers of players aside.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other
            .choices
            .iter()
            .all(|choice| self.choices.contains(choice))
    }

    /// Whether neither contradicts the other.
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
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<(Signature, usize), BTreeSet<Place>>,
    order: BTreeSet<Place>,
}

impl Lanes {
    pub(super) fn insert(&mut self, signature: Signature, size: usize, place: Place) {
        self.lanes
            .entry((signature, size))
            .or_default()
            .insert(place);
        self.order.insert(place);
    }

    pub(super) fn remove(&mut self, signature: &Signature, size: usize, place: Place) {
        let key = (signature.clone(), size);
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.remove(&place);
            if lane.is_empty() {
                self.lanes.remove(&key);
            }
        }
        self.order.remove(&place);
    }

    /// Lanes that are not empty, with what their tickets have in common.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (&Signature, usize, &BTreeSet<Place>)> {
        self.lanes
            .iter()
            .map(|((signature, size), lane)| (signature, *size, lane))
    }

    /// Everybody in order of waiting.
    pub(super) fn order(&self) -> &BTreeSet<Place> {
        &self.order
    }
}

/// Numbers for words.
#[derive(Debug, Default)]
pub(super) struct Interner {
    words: FxHashMap<String, u32>,
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

    /// How many words it knows.
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
