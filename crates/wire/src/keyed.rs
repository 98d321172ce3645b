//! Maps whose keys strangers choose: hashed with a secret, so that nobody can make keys collide and a look-up slow.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// A map with keys that others choose: addresses, codes, names of attempts, tokens.
pub type KeyedMap<K, V> = HashMap<K, V, Keyed>;

/// A set of values that others choose.
pub type KeyedSet<K> = HashSet<K, Keyed>;

/// Makes hashers that begin with a secret.
///
/// ```
/// use muse_wire::keyed::{Keyed, KeyedMap};
/// let secret = [7; 16]; // programs take it from the operating system
/// let mut rooms = KeyedMap::with_hasher(Keyed::new(secret));
/// rooms.insert("a code that a stranger chose", 1);
/// assert_eq!(rooms.len(), 1);
/// ```
#[derive(Clone)]
pub struct Keyed([u8; 16]);

impl Keyed {
    /// Hashes with this secret.
    pub fn new(secret: [u8; 16]) -> Self {
        Self(secret)
    }
}

impl BuildHasher for Keyed {
    type Hasher = DefaultHasher;

    /// SipHash, whose state is unknown to others once it has taken the secret in.
    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher
    }
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_collide_for_one_secret_do_not_for_another() {
        let (one, other) = (Keyed::new([1; 16]), Keyed::new([2; 16]));
        assert_eq!(one.hash_one([7; 16]), one.clone().hash_one([7; 16]));
        // What an attacker would gather who knew the first secret: names whose hashes end alike.
        let names = (0..1_u128 << 16).map(u128::to_le_bytes);
        let bad: Vec<_> = names.filter(|name| one.hash_one(name) % 256 == 0).collect();
        assert!(bad.len() > 200);
        let mut cells = [0; 256];
        for name in &bad {
            cells[(other.hash_one(name) % 256) as usize] += 1;
        }
        assert!(cells.iter().all(|count| *count < 12), "{cells:?}");
    }
}
