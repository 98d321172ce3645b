//! Tickets: who waits for a match, since when, and for what.

use muse_master_client::{AccountId, MatchId, Preferences, TicketId};
use muse_wire::Instant;
use serde::{Deserialize, Serialize};

/// One player, or a party that stays together, in a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// Its name.
    pub id: TicketId,
    /// The players who wait; the first one leads.
    pub party: Vec<Member>,
    /// Their preferences.
    pub preferences: Preferences,
    /// Since when; kept over changes, disconnects and matches that were called off.
    #[serde(with = "micros")]
    pub since: Instant,
    /// Number of matches of this ticket that were called off before they began.
    pub attempts: u8,
}

impl Ticket {
    /// The party's mean rating.
    pub fn rating(&self) -> f64 {
        let sum: f64 = self.party.iter().map(|member| member.rating).sum();
        sum / self.party.len().max(1) as f64
    }

    /// True if this player is in the party.
    pub fn has(&self, account: AccountId) -> bool {
        self.party.iter().any(|member| member.account == account)
    }
}

/// A player in a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The player.
    pub account: AccountId,
    /// Their rating when the ticket was made.
    pub rating: f64,
}

/// Seats of a running match that others may take; served before everybody else.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// The match that has the seats.
    pub match_id: MatchId,
    /// Number of open seats.
    pub seats: u8,
    /// The preferences by which it is played.
    pub preferences: Preferences,
    /// The region where it is played, if that is known.
    pub region: Option<String>,
    /// The mean rating of those who play.
    pub rating: f64,
    /// Since when the seats are open.
    pub since: Instant,
    /// Players who do not get one: they gave up a seat of this match.
    pub without: Vec<AccountId>,
}

/// The meaning of *play* for a player who may already be in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// Enters the queue.
    Enter,
    /// Changes the preferences and keeps the place.
    Update,
    /// Leaves, because nothing changed.
    Leave,
    /// Stays as it is.
    Stay,
}

impl Play {
    /// *Play* with these preferences; who `insists` never leaves.
    pub fn pressed(current: Option<&Preferences>, asked: &Preferences, insists: bool) -> Self {
        match current {
            None => Self::Enter,
            Some(current) if current != asked => Self::Update,
            Some(_) if insists => Self::Stay,
            Some(_) => Self::Leave,
        }
    }
}

/// A time as microseconds, between masters.
mod micros {
    use muse_wire::Instant;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Instant, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(at.as_micros())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        u64::deserialize(from).map(Instant::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn play_again_updates_or_leaves() {
        let (any, two) = (Preferences::default(), Preferences::default().players(2));
        assert_eq!(Play::pressed(None, &any, false), Play::Enter);
        assert_eq!(Play::pressed(Some(&any), &two, false), Play::Update);
        assert_eq!(Play::pressed(Some(&two), &two, false), Play::Leave);
        assert_eq!(Play::pressed(Some(&two), &two, true), Play::Stay);
    }
}
