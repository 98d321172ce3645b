//! A map of fixed size that remembers what was written last.

use std::collections::BTreeMap;

/// Remembers at least the last `entries_max` keys, and twice as many at most. Strangers choose the keys, so it must not grow with them; forgetting all of the
/// older half at once needs neither a list by age nor a search. The maps are trees, which no choice of keys makes slow.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    entries_max: usize,
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
}

impl<K: Ord, V: Copy> Recent<K, V> {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self {
            entries_max,
            young: BTreeMap::new(),
            old: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.entries_max && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// Forgets what no longer matters.
    pub(crate) fn retain(&mut self, matters: impl Fn(&V) -> bool) {
        for half in [&mut self.young, &mut self.old] {
            half.retain(|_, value| matters(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_known_and_memory_is_bounded() {
        let mut recent = Recent::new(100);
        for key in 0..10_000 {
            recent.insert(key, key);
            assert_eq!(recent.get(&(key - 99).max(0)), Some((key - 99).max(0)));
            assert!(recent.young.len() + recent.old.len() <= 200);
        }
        assert_eq!(recent.get(&1), None);
        recent.insert(9_950, 0);
        assert_eq!(recent.get(&9_950), Some(0));
        recent.retain(|value| *value == 0);
        assert_eq!((recent.young.len(), recent.old.len()), (1, 0));
    }
}
