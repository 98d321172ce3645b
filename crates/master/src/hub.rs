//! The connections of this master to players and game servers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use muse_master_client::messages::ToServer;
use muse_master_client::{AccountId, ServerId};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use crate::clock::SteadyClock;
use crate::secrets::SignInId;
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
    open: FxHashMap<SessionId, OpenSession>,
}

/// A session that may be talked to.
#[derive(Debug)]
struct OpenSession {
    /// The sign-in whose token opened it.
    sign_in: SignInId,
    sender: mpsc::Sender<Utf8Bytes>,
}

impl Players {
    /// Says last things over a session and closes it: its task finds that nobody can send to it any more.
    fn shut(&mut self, session: SessionId, messages: &[&str]) {
        if let Some(open) = self.open.remove(&session) {
            for message in messages {
                let _ = open.sender.try_send(Utf8Bytes::from(*message));
            }
        }
    }
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
                open: FxHashMap::default(),
            }),
            servers: Mutex::new(FxHashMap::default()),
        }
    }

    /// Admits a player, if there is room, and closes their older connection, if there is one. `sign_in` is that of the token which they showed.
    pub fn enter(&self, account: AccountId, sign_in: SignInId) -> Entered {
        let mut players = lock(&self.players);
        match players.sessions.admit(self.clock.now(), account) {
            Admission::Admitted { session, replaced } => {
                if let Some(old) = replaced {
                    // Without this the two devices would take turns for ever.
                    players.shut(old, &[REPLACED]);
                }
                let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
                players
                    .open
                    .insert(session, OpenSession { sign_in, sender });
                Entered::Admitted(session, receiver)
            }
            Admission::Full { retry_after } => {
                let seconds = retry_after.as_micros() / 1_000_000;
                Entered::Full(u32::try_from(seconds).unwrap_or(u32::MAX))
            }
        }
    }

    /// Something arrived over this session. False if it is closed, and nothing that arrives over it counts.
    pub fn heard(&self, session: SessionId) -> bool {
        let mut players = lock(&self.players);
        players.sessions.handle_heard(self.clock.now(), session);
        players.open.contains_key(&session)
    }

    /// The connection closed. Whose it was, unless a newer one took over.
    pub fn leave(&self, session: SessionId) -> Option<AccountId> {
        let mut players = lock(&self.players);
        players.open.remove(&session);
        players.sessions.close(session)
    }

    /// Closes what has been silent too long: their tasks see that nobody can send to them any more.
    pub fn close_silent(&self) -> Vec<AccountId> {
        let mut players = lock(&self.players);
        let mut closed = Vec::new();
        while let Some((session, account)) = players.sessions.poll_silent(self.clock.now()) {
            players.open.remove(&session);
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
            .open
            .get(&session)
            .map(|open| open.sender.try_send(Utf8Bytes::from(message)));
        if matches!(sent, Some(Err(_))) {
            players.open.remove(&session);
        }
    }

    /// Tells every player.
    pub fn tell_all(&self, message: &str) {
        let message = Utf8Bytes::from(message);
        let mut players = lock(&self.players);
        players
            .open
            .retain(|_, open| open.sender.try_send(message.clone()).is_ok());
    }

    /// Says last things to a player and closes their connection; false if they are not here.
    pub fn close(&self, account: AccountId, messages: &[&str]) -> bool {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return false;
        };
        players.shut(session, messages);
        true
    }

    /// Says last things to a player and closes their connection, unless it was opened with a token of this sign-in.
    pub fn revoke(&self, account: AccountId, keeps: SignInId, messages: &[&str]) {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return;
        };
        let open = players.open.get(&session);
        if open.is_some_and(|open| open.sign_in != keeps) {
            players.shut(session, messages);
        }
    }

    /// A player has connected to another master: their connection here is closed as the older one, and was never lost.
    pub fn hand_over(&self, account: AccountId) {
        let mut players = lock(&self.players);
        let Some(session) = players.sessions.session_of(account) else {
            return;
        };
        players.shut(session, &[REPLACED]);
        players.sessions.close(session);
    }

    /// Says last things over a session and closes it.
    pub fn end(&self, session: SessionId, messages: &[&str]) {
        lock(&self.players).shut(session, messages);
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
        for (_, open) in players.open.drain() {
            let _ = open.sender.try_send(Utf8Bytes::from(message));
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

    /// Closes the connection of a game server, so that it looks for another master.
    pub fn release_server(&self, server: ServerId) {
        if let Some(link) = lock(&self.servers).get_mut(&server) {
            // The task of the connection finds that nobody can send to it any more, and ends as if the server had gone.
            (link.sender, _) = mpsc::channel(1);
        }
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
        let Entered::Admitted(_, mut first) = hub.enter(AccountId(1), SignInId(1)) else {
            unreachable!("there is room");
        };
        let second = hub.enter(AccountId(1), SignInId(2));
        assert!(matches!(second, Entered::Admitted(..)));
        let last = first.try_recv().expect("told");
        let closing = FromMaster::Closing { come_back: false };
        assert_eq!(decode::<FromMaster>(&last).expect("a message"), closing);
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn a_player_who_is_handed_over_did_not_leave() {
        let hub = Hub::new(1);
        let Entered::Admitted(session, mut messages) = hub.enter(AccountId(1), SignInId(1)) else {
            unreachable!("there is room");
        };
        hub.hand_over(AccountId(2));
        hub.hand_over(AccountId(1));
        assert_eq!(messages.try_recv().expect("told").as_str(), REPLACED);
        assert!(!hub.is_online(AccountId(1)));
        assert_eq!(hub.leave(session), None);
    }

    #[test]
    fn a_game_server_that_is_let_go_is_unlinked_by_its_own_task() {
        let hub = Hub::new(1);
        let mut messages = hub.link_server(ServerId(7), 1);
        hub.release_server(ServerId(8));
        assert!(matches!(
            messages.try_recv(),
            Err(mpsc::error::TryRecvError::Empty)
        ));
        hub.release_server(ServerId(7));
        assert!(matches!(
            messages.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
        assert!(hub.unlink_server(ServerId(7), 1));
    }

    #[test]
    fn a_player_is_closed_with_last_words() {
        let hub = Hub::new(2);
        let Entered::Admitted(session, mut messages) = hub.enter(AccountId(1), SignInId(1)) else {
            unreachable!("there is room");
        };
        assert!(!hub.close(AccountId(2), &[]) && hub.heard(session));
        assert!(hub.close(AccountId(1), &["bye"]) && !hub.heard(session));
        assert_eq!(messages.try_recv().expect("told").as_str(), "bye");
        assert!(matches!(
            messages.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
    }

    #[test]
    fn what_is_revoked_is_closed_but_for_one_sign_in() {
        let hub = Hub::new(2);
        let Entered::Admitted(session, mut messages) = hub.enter(AccountId(1), SignInId(7)) else {
            unreachable!("there is room");
        };
        hub.revoke(AccountId(2), SignInId::NONE, &["bye"]);
        hub.revoke(AccountId(1), SignInId(7), &["bye"]);
        assert!(messages.try_recv().is_err() && hub.heard(session));
        hub.revoke(AccountId(1), SignInId(8), &["bye"]);
        assert_eq!(messages.try_recv().expect("told").as_str(), "bye");
        // What still arrives is not listened to.
        assert!(!hub.heard(session));
        assert_eq!(hub.leave(session), Some(AccountId(1)));
    }
}
