//! The keys with which connect tokens are signed: a new one each day, known to game servers a day before it signs.
//!
//! All masters share the list through the store and choose by the time, so that nobody has to tell anybody when a key changes. A game server learns the
//! current key and the next one with its match, which is enough for matches of a day.

use muse_transport::token::TokenIssuer;
use serde::{Deserialize, Serialize};

use crate::secrets::{hex, unhex};

/// The list, as the store keeps it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct TokenKeys {
    /// Oldest first; never empty.
    keys: Vec<TokenKey>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
struct TokenKey {
    id: u32,
    /// 32 bytes in hexadecimal.
    seed: String,
    /// From when it signs, seconds since 1970.
    from_s: u64,
}

impl TokenKeys {
    /// A list with one key, which signs from the beginning.
    pub(crate) fn new(seed: String) -> Self {
        let (id, from_s) = (1, 0);
        Self {
            keys: vec![TokenKey { id, seed, from_s }],
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let keys: Self = serde_json::from_str(text).ok()?;
        (!keys.keys.is_empty()).then_some(keys)
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }

    /// The list as it should be now: with a key for tomorrow, and without those whose tokens are long gone.
    pub(crate) fn kept_up(&self, now_s: u64, fresh: impl FnOnce() -> String) -> Self {
        let mut keys = self.keys.clone();
        let newest = keys.iter().map(|key| (key.from_s, key.id)).max();
        let (from_s, id) = newest.unwrap_or_default();
        if from_s <= now_s {
            keys.push(TokenKey {
                id: id.wrapping_add(1),
                seed: fresh(),
                from_s: now_s + PERIOD_S,
            });
        }
        let current = self.current(now_s);
        keys.retain(|key| key.from_s >= current);
        Self { keys }
    }

    /// Returns what signs now.
    pub(crate) fn issuer(&self, protocol_id: u64, now_s: u64) -> Option<TokenIssuer> {
        let current = self.current(now_s);
        let key = self.keys.iter().find(|key| key.from_s == current)?;
        let seed: [u8; 32] = unhex(&key.seed)?.try_into().ok()?;
        Some(TokenIssuer::from_bytes(protocol_id, key.id, &seed))
    }

    /// The public halves, for game servers.
    pub(crate) fn public(&self) -> Vec<(u32, String)> {
        let public = |key: &TokenKey| {
            let seed: [u8; 32] = unhex(&key.seed)?.try_into().ok()?;
            let issuer = TokenIssuer::from_bytes(0, key.id, &seed);
            Some((key.id, hex(&issuer.public_key())))
        };
        self.keys.iter().filter_map(public).collect()
    }

    /// Since when the current key signs.
    fn current(&self, now_s: u64) -> u64 {
        let begun = self.keys.iter().map(|key| key.from_s);
        begun.filter(|from_s| *from_s <= now_s).max().unwrap_or(0)
    }
}

/// Time for which a key signs.
const PERIOD_S: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(n: u8) -> impl FnOnce() -> String {
        move || hex(&[n; 32])
    }

    #[test]
    fn a_key_is_known_a_day_before_it_signs() {
        let first = TokenKeys::new(hex(&[1; 32]));
        let now = 1_000_000;
        let keys = first.kept_up(now, seed(2));
        assert_eq!(keys.public().len(), 2);
        assert_eq!(keys.issuer(7, now).map(|issuer| issuer.key_id()), Some(1));
        // Nothing changes until the second one signs.
        assert_eq!(keys.kept_up(now + PERIOD_S - 1, seed(9)), keys);
        let later = now + PERIOD_S;
        assert_eq!(keys.issuer(7, later).map(|issuer| issuer.key_id()), Some(2));
        let next = keys.kept_up(later, seed(3));
        let ids: Vec<u32> = next.public().iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [2, 3]);
        assert!(keys.public().contains(&next.public()[0]));
        assert_eq!(TokenKeys::parse(&next.to_text()), Some(next));
    }

    #[test]
    fn a_master_that_was_off_for_a_week_goes_on_with_what_it_has() {
        let keys = TokenKeys::new(hex(&[1; 32])).kept_up(1_000, seed(2));
        let now = 1_000 + 7 * PERIOD_S;
        let keys = keys.kept_up(now, seed(3));
        assert_eq!(keys.issuer(7, now).map(|issuer| issuer.key_id()), Some(2));
        assert_eq!(keys.public().len(), 2);
        assert_eq!(TokenKeys::parse("{\"keys\":[]}"), None);
    }
}
