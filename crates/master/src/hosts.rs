//! The rights of a game server: it speaks only for the match that a master gave it, and for the seats of that match.
//!
//! Nothing here asks the store or a socket. The connection of a server keeps its [`HostRights`], and asks them before anything that it says is passed on;
//! [`Seats`] are compared with a result wherever one is acted upon.

use std::collections::BTreeSet;

use muse_master_client::messages::{MatchResult, ServerRefusal};
use muse_master_client::{AccountId, MatchId};
use muse_wire::Instant;

use crate::director::StoredMatch;
use crate::secrets::{ENROL_LIFE, Enrolment};

/// The match for which one connection of a game server may speak.
///
/// It is learnt from the assignment that goes over this connection, from a claim whose proof is right, or from the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRights {
    match_id: Option<MatchId>,
}

impl HostRights {
    /// Returns the match.
    pub fn match_id(&self) -> Option<MatchId> {
        self.match_id
    }

    /// A master gave this match to this server. The first one stays: a server has one match.
    pub fn grant(&mut self, match_id: MatchId) {
        self.match_id.get_or_insert(match_id);
    }

    /// The store knows whose this match is: it is this server's if it is recorded so.
    pub fn handle_stored(&mut self, stored: Option<&StoredMatch>) {
        if let Some(stored) = stored.filter(|stored| stored.server.is_some()) {
            self.grant(stored.match_id);
        }
    }

    /// Refuses a report or a result of any other match.
    pub fn check_match(&self, match_id: MatchId) -> Result<(), ServerRefusal> {
        match self.match_id == Some(match_id) {
            true => Ok(()),
            false => Err(ServerRefusal::OtherMatch { match_id }),
        }
    }
}

/// Everybody whom a game server may name.
#[derive(Clone, Copy, Debug)]
pub struct Seats<'a> {
    /// Players who have a seat.
    pub players: &'a [AccountId],
    /// Players who gave theirs up.
    pub left: &'a [AccountId],
}

impl Seats<'_> {
    /// Refuses a result of another match, and one that names somebody twice or somebody who never had a seat.
    pub fn check_result(
        &self,
        match_id: MatchId,
        result: &MatchResult,
    ) -> Result<(), ServerRefusal> {
        if result.match_id != match_id {
            let match_id = result.match_id;
            return Err(ServerRefusal::OtherMatch { match_id });
        }
        let mut named = BTreeSet::new();
        for player in &result.players {
            let account = player.account;
            if !self.players.contains(&account) && !self.left.contains(&account) {
                return Err(ServerRefusal::NoSeat { account });
            }
            if !named.insert(account) {
                return Err(ServerRefusal::NamedTwice { account });
            }
        }
        Ok(())
    }

    /// Refuses to let a server read or write what is kept of somebody who has no seat. A player who left may be in another match by now, which
    /// is then the only one that speaks for them: `seated_in` is where they have a seat.
    pub fn check_player(
        &self,
        account: AccountId,
        seated_in: Option<MatchId>,
    ) -> Result<(), ServerRefusal> {
        let is_seated = self.players.contains(&account);
        let has_left = self.left.contains(&account) && seated_in.is_none();
        match is_seated || has_left {
            true => Ok(()),
            false => Err(ServerRefusal::NoSeat { account }),
        }
    }
}

/// The store's knowledge of a game server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStanding {
    /// It has not registered, or is forgotten: it was not seen for a day.
    Unknown,
    /// It has registered.
    Known,
    /// Its process or pod has ended.
    Gone {
        /// The time when that was noticed.
        since: Instant,
    },
}

impl ServerStanding {
    /// True if a credential still holds: a new server has [`ENROL_LIFE`] to register, and one that is gone is gone. A cluster may give the
    /// name of one that is gone to another, which then has a newer credential.
    pub fn admits(self, enrolment: Enrolment, now: Instant) -> bool {
        let is_fresh = now < enrolment.issued + ENROL_LIFE;
        match self {
            Self::Known => true,
            Self::Unknown => is_fresh,
            Self::Gone { since } => is_fresh && enrolment.issued > since,
        }
    }
}

/// The outcome of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// It may get a match, or has one.
    Registered,
    /// Its match is over, so that it gets no other.
    Over,
    /// A server with another public key has registered with this credential.
    OtherKey,
}

#[cfg(test)]
mod tests {
    use super::*;
    use muse_master_client::messages::{Outcome, PlayerResult};
    use muse_master_client::{Preferences, ServerId};
    use muse_wire::Duration;

    const MATCH: MatchId = MatchId(7);

    fn accounts<const N: usize>(numbers: [u64; N]) -> [AccountId; N] {
        numbers.map(AccountId)
    }

    fn result(match_id: MatchId, players: &[u64]) -> MatchResult {
        let player = |&n: &u64| PlayerResult {
            account: AccountId(n),
            points: 1,
            team: None,
        };
        MatchResult {
            match_id,
            outcome: Outcome::Finished,
            players: players.iter().map(player).collect(),
        }
    }

    #[test]
    fn a_result_names_those_who_have_or_had_a_seat_and_each_once() {
        let (players, left) = (accounts([1, 2]), accounts([3]));
        let seats = Seats {
            players: &players,
            left: &left,
        };
        let check = |players: &[u64]| seats.check_result(MATCH, &result(MATCH, players));
        assert_eq!(check(&[1, 2, 3]), Ok(()));
        assert_eq!(check(&[2]), Ok(()));
        let account = AccountId(9);
        assert_eq!(check(&[1, 9, 2]), Err(ServerRefusal::NoSeat { account }));
        let account = AccountId(1);
        assert_eq!(
            check(&[1, 2, 1]),
            Err(ServerRefusal::NamedTwice { account })
        );
        let match_id = MatchId(8);
        assert_eq!(
            seats.check_result(MATCH, &result(match_id, &[1])),
            Err(ServerRefusal::OtherMatch { match_id })
        );
    }

    #[test]
    fn a_player_who_left_for_another_match_is_that_ones_to_speak_for() {
        let (players, left) = (accounts([1]), accounts([3]));
        let seats = Seats {
            players: &players,
            left: &left,
        };
        let refused = |account| Err(ServerRefusal::NoSeat { account });
        assert_eq!(seats.check_player(AccountId(1), Some(MATCH)), Ok(()));
        assert_eq!(seats.check_player(AccountId(3), None), Ok(()));
        let elsewhere = seats.check_player(AccountId(3), Some(MatchId(8)));
        assert_eq!(elsewhere, refused(AccountId(3)));
        let stranger = seats.check_player(AccountId(9), None);
        assert_eq!(stranger, refused(AccountId(9)));
    }

    #[test]
    fn a_server_speaks_for_the_one_match_that_it_was_given() {
        let stored = |server: Option<u64>| StoredMatch {
            match_id: MATCH,
            preferences: Preferences::default(),
            bots: 0,
            players: Vec::new(),
            left: Vec::new(),
            server: server.map(ServerId),
            running: false,
        };
        let mut rights = HostRights::default();
        let match_id = MATCH;
        let refused = Err(ServerRefusal::OtherMatch { match_id });
        assert_eq!(rights.check_match(MATCH), refused);
        // A match that is nobody's yet is not this server's for the asking.
        rights.handle_stored(None);
        rights.handle_stored(Some(&stored(None)));
        assert_eq!(rights.check_match(MATCH), refused);
        rights.handle_stored(Some(&stored(Some(5))));
        assert_eq!(rights.check_match(MATCH), Ok(()));
        rights.grant(MatchId(8));
        let match_id = MatchId(8);
        let refused = Err(ServerRefusal::OtherMatch { match_id });
        assert_eq!(rights.check_match(MatchId(8)), refused);
    }

    #[test]
    fn a_credential_expires_unused_and_ends_with_its_server() {
        let issued = Instant::from_secs(1_000);
        let server = ServerId(5);
        let enrolment = Enrolment { server, issued };
        let late = issued + ENROL_LIFE;
        let early = late - Duration::from_secs(1);
        assert!(ServerStanding::Unknown.admits(enrolment, early));
        assert!(!ServerStanding::Unknown.admits(enrolment, late));
        assert!(ServerStanding::Known.admits(enrolment, late));
        let gone = |seconds| ServerStanding::Gone {
            since: Instant::from_secs(seconds),
        };
        assert!(!gone(1_001).admits(enrolment, Instant::from_secs(1_002)));
        // Another of the same name, in a cluster.
        assert!(gone(999).admits(enrolment, early));
        assert!(!gone(999).admits(enrolment, late));
    }
}
