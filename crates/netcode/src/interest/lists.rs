//! The entities that are always relevant, of a kind, or in a region: lists that name their members
//! directly, so that nobody searches for them.

use std::collections::BTreeMap;

use super::model::{KINDS_MAX, Presence};

/// The lists; every entity is on at most one of each sort.
#[derive(Debug)]
pub(super) struct Lists {
    always: Vec<u32>,
    kinds: Vec<Vec<u32>>,
    /// Looked up by name, never walked.
    regions: BTreeMap<u32, Vec<u32>>,
    regions_max: usize,
    /// By the index of the entity: its place in each list.
    places: Vec<Places>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Places {
    always: u32,
    kind: u32,
    region: u32,
}

impl Lists {
    pub(super) fn new(regions_max: usize) -> Self {
        Self {
            always: Vec::new(),
            kinds: vec![Vec::new(); KINDS_MAX],
            regions: BTreeMap::new(),
            regions_max,
            places: Vec::new(),
        }
    }

    pub(super) fn always(&self) -> &[u32] {
        &self.always
    }

    pub(super) fn kind(&self, kind: u16) -> &[u32] {
        self.kinds.get(usize::from(kind)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn region(&self, region: u32) -> &[u32] {
        self.regions.get(&region).map_or(&[], Vec::as_slice)
    }

    /// True if the region of an entity is known or can be added. Regions that emptied are kept for their memory until
    /// their place is needed.
    pub(super) fn has_room(&mut self, region: Option<u32>) -> bool {
        let Some(region) = region else {
            return true;
        };
        if self.regions.contains_key(&region) {
            return true;
        }
        if self.regions.len() >= self.regions_max {
            self.regions.retain(|_, members| !members.is_empty());
        }
        self.regions.len() < self.regions_max
    }

    /// Puts an entity on the lists it belongs to.
    pub(super) fn insert(&mut self, index: u32, presence: &Presence) {
        if index as usize >= self.places.len() {
            self.places.resize(index as usize + 1, Places::default());
        }
        let places = &mut self.places[index as usize];
        if presence.always {
            places.always = push(&mut self.always, index);
        }
        if let Some(list) = self.kinds.get_mut(usize::from(presence.kind)) {
            places.kind = push(list, index);
        }
        if let Some(region) = presence.region {
            places.region = push(self.regions.entry(region).or_default(), index);
        }
    }

    /// Takes an entity off the lists that it was put on with the same presence.
    pub(super) fn remove(&mut self, index: u32, presence: &Presence) {
        let places = self.places[index as usize];
        if presence.always
            && let Some(moved) = take(&mut self.always, places.always)
        {
            self.places[moved as usize].always = places.always;
        }
        if let Some(list) = self.kinds.get_mut(usize::from(presence.kind))
            && let Some(moved) = take(list, places.kind)
        {
            self.places[moved as usize].kind = places.kind;
        }
        let Some(region) = presence.region else {
            return;
        };
        let Some(list) = self.regions.get_mut(&region) else {
            return;
        };
        if let Some(moved) = take(list, places.region) {
            self.places[moved as usize].region = places.region;
        }
    }
}

/// Adds a member and says where it stands.
fn push(list: &mut Vec<u32>, index: u32) -> u32 {
    list.push(index);
    list.len() as u32 - 1
}

/// Takes the member at a place out; the last one, which is returned, takes the place.
fn take(list: &mut Vec<u32>, place: u32) -> Option<u32> {
    list.swap_remove(place as usize);
    list.get(place as usize).copied()
}
