//! The connections of this master to players and game servers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use muse_master_client::messages::ToServer;
use muse_master_client::{AccountId, ServerId};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use crate::clock::SteadyClock;
use crate::sessions::{Admission, SessionId, Sessions};

/// The connections of this master.
#[derive(Debug)]
pub struct Hub {
    clock: SteadyClock,
    players: Mutex<Players>,
    servers: Mutex<FxHashMap<ServerId, ServerLink>>,
}

#[derive(Debug)]
struct Players {
    sessions: Sessions,
    senders: FxHashMap<SessionId, mpsc::Sender<Utf8Bytes>>,
}

/// A game server that is connected.
#[derive(Debug)]
struct ServerLink {
    /// The number of its connection, so that the end of an old one does not remove a newer one.
    link: u64,
    sender: mpsc::Sender<ToServer>,
}

/// The answer to a player's connection.
#[derive(Debug)]
pub enum Entered {
    /// A session, and what is to be sent over it.
    Admitted(SessionId, mpsc::Receiver<Utf8Bytes>),
    /// No room; come back after this many seconds.
    Full(u32),
}

impl Hub {
    /// A hub with room for this many players; game servers are not counted.
    pub fn new(players_max: usize) -> Self {
        Self {
            clock: SteadyClock::new(),
            players: Mutex::new(Players {
                sessions: Sessions::new(players_max),
                senders: FxHashMap::default(),
            }),
            servers: Mutex::new(FxHashMap::default()),
        }
    }

    /// Admits a player, if there is room, and closes their older connection, if there is one.
    pub fn enter(&self, account: AccountId) -> Entered {
        let mut players = lock(&self.players);
        match players.sessions.admit(self.clock.now(), account) {
            Admission::Admitted { session, replaced } => {
                if let Some(sender) = replaced.and_then(|old| players.senders.remove(&old)) {
                    // Without this the two devices would take turns for ever.
                    let _ = sender.try_send(Utf8Bytes::from_static(REPLACED));
                }
                let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
                players.senders.insert(session, sender);
                Entered::Admitted(session, receiver)
            }
            Admission::Full { retry_after } => {
                let seconds = retry_after.as_micros() / 1_000_000;
                Entered::Full(u32::try_from(seconds).unwrap_or(u32::MAX))
            }
        }
    }

    /// Something arrived over this session.
    pub fn heard(&self, session: SessionId) {
        lock(&self.players)
            .sessions
            .handle_heard(self.clock.now(), session);
    }

    /// The connection closed. Whose it was, unless a newer one took over.
    pub fn leave(&self, session: SessionId) -> Option<AccountId> {
        let mut players = lock(&self.players);
        players.senders.remove(&session);
        players.sessions.close(session)
    }

    /// Closes what has been silent too long: their tasks see that nobody can send to them any more.
    pub fn close_silent(&self) -> Vec<AccountId> {
        let mut players = lock(&self.players);
        let mut closed = Vec::new();
        while let Some((session, account)) = players.sessions.poll_silent(self.clock.now()) {
            players.senders.remove(&session);
            closed.push(account);
        }
        closed
    }

    /// Tells a player, if they are here. A connection that cannot take more is closed: its client comes back and reads what is.
    pub fn tell(&self, account: AccountId, message: String) {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return;
        };
        let sent = players
            .senders
            .get(&session)
            .map(|sender| sender.try_send(Utf8Bytes::from(message)));
        if matches!(sent, Some(Err(_))) {
            players.senders.remove(&session);
        }
    }

    /// Tells every player.
    pub fn tell_all(&self, message: &str) {
        let message = Utf8Bytes::from(message);
        let mut players = lock(&self.players);
        players
            .senders
            .retain(|_, sender| sender.try_send(message.clone()).is_ok());
    }

    /// Says last things to a player and closes their connection; false if they are not here.
    pub fn close(&self, account: AccountId, messages: &[String]) -> bool {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return false;
        };
        if let Some(sender) = players.senders.remove(&session) {
            for message in messages {
                let _ = sender.try_send(Utf8Bytes::from(message.as_str()));
            }
        }
        true
    }

    /// A player has connected to another master: their connection here is closed as the older one, and was never lost.
    pub fn hand_over(&self, account: AccountId) {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return;
        };
        if let Some(sender) = players.senders.remove(&session) {
            let _ = sender.try_send(Utf8Bytes::from_static(REPLACED));
        }
        players.sessions.close(session);
    }

    /// Returns connected players, at most `at_most`, in order of their numbers.
    pub fn online(&self, at_most: usize) -> Vec<AccountId> {
        let players = lock(&self.players);
        let mut online: Vec<AccountId> = players.sessions.accounts().collect();
        online.sort_unstable();
        online.truncate(at_most);
        online
    }

    /// Returns how many players there is room for.
    pub fn players_max(&self) -> usize {
        lock(&self.players).sessions.players_max()
    }

    /// Says a last thing to every player and closes all connections.
    pub fn close_all(&self, message: &str) {
        let mut players = lock(&self.players);
        for (_, sender) in players.senders.drain() {
            let _ = sender.try_send(Utf8Bytes::from(message));
        }
    }

    /// True if a player is here.
    pub fn is_online(&self, account: AccountId) -> bool {
        lock(&self.players).sessions.is_online(account)
    }

    /// Returns how many players are here.
    pub fn players(&self) -> usize {
        lock(&self.players).sessions.len()
    }

    /// Returns how many game servers are here.
    pub fn servers(&self) -> usize {
        lock(&self.servers).len()
    }

    /// A game server connected.
    pub fn link_server(&self, server: ServerId, link: u64) -> mpsc::Receiver<ToServer> {
        let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
        lock(&self.servers).insert(server, ServerLink { link, sender });
        receiver
    }

    /// Its connection closed. False if a newer one took over.
    pub fn unlink_server(&self, server: ServerId, link: u64) -> bool {
        let mut servers = lock(&self.servers);
        let current = servers.get(&server).is_some_and(|found| found.link == link);
        if current {
            servers.remove(&server);
        }
        current
    }

    /// True if a game server is connected.
    pub fn has_server(&self, server: ServerId) -> bool {
        lock(&self.servers).contains_key(&server)
    }

    /// Tells a game server, if it is here.
    pub fn tell_server(&self, server: ServerId, message: ToServer) {
        if let Some(link) = lock(&self.servers).get(&server) {
            // A server that does not read is found by its silence.
            let _ = link.sender.try_send(message);
        }
    }
}

/// A lock that a panic elsewhere does not close.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last message to the older of two connections of one account.
const REPLACED: &str = r#"{"type":"closing","come_back":false}"#;
/// Messages that wait for one connection.
const MESSAGES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use muse_master_client::messages::{FromMaster, decode};

    #[test]
    fn the_older_of_two_connections_is_told_not_to_come_back() {
        let hub = Hub::new(1);
        let Entered::Admitted(_, mut first) = hub.enter(AccountId(1)) else {
            unreachable!("there is room");
        };
        assert!(matches!(hub.enter(AccountId(1)), Entered::Admitted(..)));
        let last = first.try_recv().expect("told");
        let closing = FromMaster::Closing { come_back: false };
        assert_eq!(decode::<FromMaster>(&last).expect("a message"), closing);
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn a_player_who_is_handed_over_did_not_leave() {
        let hub = Hub::new(1);
        let Entered::Admitted(session, mut messages) = hub.enter(AccountId(1)) else {
            unreachable!("there is room");
        };
        hub.hand_over(AccountId(2));
        hub.hand_over(AccountId(1));
        assert_eq!(messages.try_recv().expect("told").as_str(), REPLACED);
        assert!(!hub.is_online(AccountId(1)));
        assert_eq!(hub.leave(session), None);
    }

    #[test]
    fn a_player_is_closed_with_last_words() {
        let hub = Hub::new(2);
        let Entered::Admitted(_, mut messages) = hub.enter(AccountId(1)) else {
            unreachable!("there is room");
        };
        assert!(!hub.close(AccountId(2), &[]));
        assert!(hub.close(AccountId(1), &["bye".to_owned()]));
        assert_eq!(messages.try_recv().expect("told").as_str(), "bye");
        assert!(matches!(
            messages.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
    }
}
