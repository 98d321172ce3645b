//! The tokens that have been used: bounded, and never forgetful.

use std::collections::BTreeSet;

use super::TokenId;

/// Used tokens that have not expired.
///
/// When full it refuses further tokens rather than forget one: forgetting would let a token be used twice.
#[derive(Debug)]
pub(super) struct ReplayCache {
    /// Ordered by expiry, so that the oldest leave first.
    used: BTreeSet<(u64, TokenId)>,
    limit: usize,
}

/// There is no room to remember another token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl ReplayCache {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            used: BTreeSet::new(),
            limit,
        }
    }

    /// True if the token that expires then has been used. Expired tokens are refused for that reason alone.
    pub(super) fn contains(&self, expires_s: u64, id: TokenId) -> bool {
        self.used.contains(&(expires_s, id))
    }

    /// Remembers a token; forgets a few that have expired.
    pub(super) fn insert(
        &mut self,
        unix_now_s: u64,
        expires_s: u64,
        id: TokenId,
    ) -> Result<(), Full> {
        for _ in 0..FORGET_PER_INSERT {
            match self.used.first() {
                Some((expired, _)) if *expired < unix_now_s => self.used.pop_first(),
                _ => break,
            };
        }
        if self.used.len() >= self.limit {
            return Err(Full);
        }
        self.used.insert((expires_s, id));
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.used.len()
    }
}

/// More than one, so that the cache shrinks; few, so that the work is bounded.
const FORGET_PER_INSERT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_refuses_and_expiry_makes_room() {
        let mut cache = ReplayCache::new(3);
        let id = |number: u8| TokenId([number; 16]);
        for number in 0..3 {
            assert_eq!(
                cache.insert(100, 110 + u64::from(number), id(number)),
                Ok(())
            );
        }
        assert_eq!(
            cache.insert(110, 200, id(9)),
            Err(Full),
            "the first is still valid in its last second"
        );
        assert!(cache.contains(110, id(0)));
        assert_eq!(cache.insert(111, 200, id(9)), Ok(()));
        assert!(!cache.contains(110, id(0)));
        assert_eq!(cache.len(), 3);
    }
}
