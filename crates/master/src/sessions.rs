//! Sessions of the players who are connected: admission, keep-alive, silence.
//!
//! A keep-alive costs one store of a time. Silence is found by a queue of checks in order of time, one per session, so that 15,000
//! sessions cost 1,500 checks a second and no timer is ever moved.

use std::collections::VecDeque;

use muse_master_client::AccountId;
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;

use crate::pauses::Pauses;

/// The sessions of one master.
///
/// ```
/// use muse_master::sessions::{Admission, Sessions};
/// use muse_master_client::AccountId;
/// use muse_wire::Instant;
/// let mut sessions = Sessions::new(1);
/// assert!(matches!(sessions.admit(Instant::ZERO, AccountId(1)), Admission::Admitted { .. }));
/// assert!(matches!(sessions.admit(Instant::ZERO, AccountId(2)), Admission::Full { .. }));
/// ```
#[derive(Debug)]
pub struct Sessions {
    players_max: usize,
    open: FxHashMap<SessionId, Session>,
    by_account: FxHashMap<AccountId, SessionId>,
    checks: VecDeque<(Instant, SessionId)>,
    pauses: Pauses,
    next: u64,
}

/// One connection of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

/// The answer to a player who wants to come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Welcome; a session of the same account that was still open is closed by it.
    Admitted {
        /// The new session.
        session: SessionId,
        /// The session that it takes over from.
        replaced: Option<SessionId>,
    },
    /// No room.
    Full {
        /// Time to wait before trying again.
        retry_after: Duration,
    },
}

#[derive(Debug)]
struct Session {
    account: AccountId,
    heard: Instant,
}

impl Sessions {
    /// No sessions yet, and room for `players_max` players. Game servers are not counted.
    pub fn new(players_max: usize) -> Self {
        Self {
            players_max,
            open: FxHashMap::default(),
            by_account: FxHashMap::default(),
            checks: VecDeque::new(),
            pauses: Pauses::default(),
            next: 1,
        }
    }

    /// Returns how many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// True if nobody is here.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// True if this account has a session here.
    pub fn is_online(&self, account: AccountId) -> bool {
        self.by_account.contains_key(&account)
    }

    /// The account's session.
    pub fn session_of(&self, account: AccountId) -> Option<SessionId> {
        self.by_account.get(&account).copied()
    }

    /// Everybody who is here, in no particular order.
    pub fn accounts(&self) -> impl Iterator<Item = AccountId> {
        self.by_account.keys().copied()
    }

    /// Returns how many there is room for.
    pub fn players_max(&self) -> usize {
        self.players_max
    }

    /// Admits a player, if there is room. One who takes over from their own older session needs none.
    pub fn admit(&mut self, now: Instant, account: AccountId) -> Admission {
        let replaced = self.by_account.get(&account).copied();
        if replaced.is_none() && self.open.len() >= self.players_max {
            return Admission::Full {
                retry_after: RETRY_AFTER,
            };
        }
        if let Some(old) = replaced {
            self.open.remove(&old);
        }
        self.pauses.start(now);
        let session = SessionId(self.next);
        self.next += 1;
        let heard = now;
        self.open.insert(session, Session { account, heard });
        self.by_account.insert(account, session);
        self.checks.push_back((now + SILENCE, session));
        Admission::Admitted { session, replaced }
    }

    /// Something arrived from this session.
    pub fn handle_heard(&mut self, now: Instant, session: SessionId) {
        if let Some(session) = self.open.get_mut(&session) {
            session.heard = now;
        }
    }

    /// The connection closed. Returns whose it was, unless a newer one took over.
    pub fn close(&mut self, session: SessionId) -> Option<AccountId> {
        let account = self.open.remove(&session)?.account;
        self.by_account.remove(&account);
        Some(account)
    }

    /// Returns when to call [`poll_silent`](Self::poll_silent).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pauses.poll_timeout()
    }

    /// The next session that has been silent for 10 seconds; it is closed by this. A master that was paused has heard nobody: then all of
    /// them have their full time again.
    pub fn poll_silent(&mut self, now: Instant) -> Option<(SessionId, AccountId)> {
        if self.pauses.tick(now).is_some() {
            for session in self.open.values_mut() {
                session.heard = now;
            }
        }
        while let Some(&(at, id)) = self.checks.front() {
            if at > now {
                break;
            }
            self.checks.pop_front();
            let Some(session) = self.open.get(&id) else {
                continue;
            };
            if now - session.heard >= SILENCE {
                return self.close(id).map(|account| (id, account));
            }
            self.checks.push_back((session.heard + SILENCE, id));
        }
        if self.open.is_empty() {
            self.pauses.stop();
        }
        None
    }
}

/// Silence after which a session is closed.
pub const SILENCE: Duration = Duration::from_secs(10);
/// Time after which a player who found no room is told to come back.
pub const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Players admitted by default.
pub const PLAYERS_MAX_DEFAULT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(sessions: &mut Sessions, now: Instant, account: u64) -> SessionId {
        match sessions.admit(now, AccountId(account)) {
            Admission::Admitted { session, .. } => session,
            Admission::Full { .. } => unreachable!("there is room"),
        }
    }

    #[test]
    fn ten_seconds_of_silence_close_a_session_and_a_keep_alive_prevents_it() {
        let mut sessions = Sessions::new(10);
        let silent = admitted(&mut sessions, Instant::ZERO, 1);
        let alive = admitted(&mut sessions, Instant::ZERO, 2);
        let mut closed = Vec::new();
        for second in 1..=30 {
            let now = Instant::from_secs(second);
            sessions.handle_heard(now, alive);
            while let Some((session, _)) = sessions.poll_silent(now) {
                closed.push((second, session));
            }
        }
        assert_eq!(closed, [(10, silent)]);
        assert!(sessions.is_online(AccountId(2)) && !sessions.is_online(AccountId(1)));
    }

    #[test]
    fn after_a_pause_of_the_master_everybody_has_ten_seconds_again() {
        for pause in [12, 3_600] {
            let mut sessions = Sessions::new(10);
            let silent = admitted(&mut sessions, Instant::ZERO, 1);
            let alive = admitted(&mut sessions, Instant::ZERO, 2);
            assert_eq!(sessions.poll_silent(Instant::from_secs(1)), None);
            // Messages that arrived meanwhile are read after the first tick.
            let mut closed = Vec::new();
            for second in 1 + pause..30 + pause {
                let now = Instant::from_secs(second);
                while let Some((session, _)) = sessions.poll_silent(now) {
                    closed.push((second, session));
                }
                sessions.handle_heard(now, alive);
            }
            assert_eq!(closed, [(11 + pause, silent)]);
        }
    }

    #[test]
    fn a_second_connection_takes_over_even_when_full() {
        let mut sessions = Sessions::new(1);
        let first = admitted(&mut sessions, Instant::ZERO, 1);
        let second = sessions.admit(Instant::ZERO, AccountId(1));
        assert!(matches!(second, Admission::Admitted { replaced: Some(old), .. } if old == first));
        assert_eq!(sessions.close(first), None);
        assert_eq!(sessions.len(), 1);
        assert!(sessions.is_online(AccountId(1)));
    }

    #[test]
    fn checks_do_not_pile_up() {
        let mut sessions = Sessions::new(10);
        let session = admitted(&mut sessions, Instant::ZERO, 1);
        for tenth in 0..10_000 {
            let now = Instant::from_millis(tenth * 100);
            sessions.handle_heard(now, session);
            assert_eq!(sessions.poll_silent(now), None);
        }
        assert_eq!(sessions.checks.len(), 1);
    }
}
