//! Entities that a client made ahead of the server, matched with the server's.

use crate::Tick;

/// The name of a spawn on both sides before the server has given it an id: the tick, and the number of the player's in that tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpawnKey {
    /// The tick whose step spawned it.
    pub tick: Tick,
    /// 0 for the first of that tick.
    pub ordinal: u8,
}

/// The client's own spawns that the server has not confirmed. `H` is what the game knows them by.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::prediction::{PredictedSpawns, SpawnKey};
/// let mut spawns = PredictedSpawns::new(8);
/// let (rocket, mine) = (SpawnKey { tick: Tick(5), ordinal: 0 }, SpawnKey { tick: Tick(6), ordinal: 0 });
/// assert!(spawns.predict(rocket, "rocket") && spawns.predict(mine, "mine"));
/// // Simulated again, it is still the same rocket.
/// assert!(!spawns.predict(rocket, "rocket"));
/// // The server's rocket arrives: the game goes on with its own. The mine was never laid.
/// assert_eq!(spawns.handle_spawn(rocket), Some("rocket"));
/// assert_eq!(spawns.poll_cancelled(Tick(20)), Some("mine"));
/// ```
#[derive(Clone, Debug)]
pub struct PredictedSpawns<H> {
    pending: Vec<(SpawnKey, H)>,
    grace: u32,
}

impl<H> PredictedSpawns<H> {
    /// Most spawns that wait for the server; more are not predicted.
    pub const PENDING_MAX: usize = 256;

    /// A spawn counts as refused when the server has said so many ticks more than its own without it: a spawn may travel in a
    /// later packet than the state. 8 suits 50 ticks a second.
    pub fn new(grace_ticks: u32) -> Self {
        Self {
            pending: Vec::with_capacity(Self::PENDING_MAX),
            grace: grace_ticks,
        }
    }

    /// A step spawned something. Whether it is new, so that the game has to make it.
    pub fn predict(&mut self, key: SpawnKey, handle: H) -> bool {
        let known = self.pending.iter().any(|(other, _)| *other == key);
        if known || self.pending.len() == Self::PENDING_MAX {
            return false;
        }
        self.pending.push((key, handle));
        true
    }

    /// The server spawned something for this player: the game's own, if it was predicted.
    pub fn handle_spawn(&mut self, key: SpawnKey) -> Option<H> {
        let place = self.pending.iter().position(|(other, _)| *other == key)?;
        Some(self.pending.remove(place).1)
    }

    /// A spawn that the server refused, now that it has spoken about `confirmed`; to be removed from the game.
    pub fn poll_cancelled(&mut self, confirmed: Tick) -> Option<H> {
        let refused = |(key, _): &(SpawnKey, H)| confirmed - key.tick > i64::from(self.grace);
        let place = self.pending.iter().position(refused)?;
        Some(self.pending.remove(place).1)
    }

    /// Those that wait for the server.
    pub fn pending(&self) -> impl Iterator<Item = &(SpawnKey, H)> {
        self.pending.iter()
    }
}
