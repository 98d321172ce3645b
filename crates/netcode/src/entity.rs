//! Names of entities, the same on the server and on every client.

/// An entity of the replicated world: an index, which is used again after the entity has gone, and a generation, which
/// tells the new one from the old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(u32);

impl EntityId {
    /// Entities that can exist at a time.
    pub const COUNT_MAX: u32 = 1 << INDEX_BITS;

    /// The entity of this index and generation, or `None` when either is too large.
    pub const fn new(index: u32, generation: u32) -> Option<Self> {
        if index < Self::COUNT_MAX && generation < GENERATIONS {
            Some(Self(generation << INDEX_BITS | index))
        } else {
            None
        }
    }

    /// From the number that [`bits`](Self::bits) gave; every number names some entity.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// As one number.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Its place, below [`COUNT_MAX`](Self::COUNT_MAX).
    pub const fn index(self) -> u32 {
        self.0 & (Self::COUNT_MAX - 1)
    }

    /// Returns how often the place has been used before, modulo 4,096.
    pub const fn generation(self) -> u32 {
        self.0 >> INDEX_BITS
    }

    /// The next entity at the same place.
    pub const fn next_generation(self) -> Self {
        Self(self.0.wrapping_add(Self::COUNT_MAX))
    }
}

const INDEX_BITS: u32 = 20;
const GENERATIONS: u32 = 1 << (u32::BITS - INDEX_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_come_round() {
        let last = EntityId::new(5, GENERATIONS - 1).expect("the last generation");
        assert_eq!(last.next_generation(), EntityId::new(5, 0).expect("small"));
        assert_eq!(EntityId::from_bits(last.bits()), last);
        assert_eq!(EntityId::new(EntityId::COUNT_MAX, 0), None);
        assert_eq!(EntityId::new(0, GENERATIONS), None);
    }
}
