//! Who is connected to this master: players and game servers, and how to reach them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use muse_master_client::messages::ToServer;
use muse_master_client::{AccountId, ServerId};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use crate::clock;
use crate::sessions::{Admission, SessionId, Sessions};

/// The connections of this master.
#[derive(Debug)]
pub struct Hub {
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
    /// Which of its connections, so that the end of an old one does not remove a newer one.
    link: u64,
    sender: mpsc::Sender<ToServer>,
}

/// What a player's connection got.
#[derive(Debug)]
pub enum Entered {
    /// A session, and what is to be sent over it.
    Admitted(SessionId, mpsc::Receiver<Utf8Bytes>),
    /// No room; come again after so many seconds.
    Full(u32),
}

impl Hub {
    /// Room for so many players; game servers are not counted (OA-1).
    pub fn new(players_max: usize) -> Self {
        Self {
            players: Mutex::new(Players {
                sessions: Sessions::new(players_max),
                senders: FxHashMap::default(),
            }),
            servers: Mutex::new(FxHashMap::default()),
        }
    }

    /// A player comes. His older connection, if there is one, is closed.
    pub fn enter(&self, account: AccountId) -> Entered {
        let mut players = lock(&self.players);
        match players.sessions.admit(clock::now(), account) {
            Admission::Admitted { session, replaced } => {
                if let Some(old) = replaced {
                    players.senders.remove(&old);
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
            .handle_heard(clock::now(), session);
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
        while let Some((session, account)) = players.sessions.poll_silent(clock::now()) {
            players.senders.remove(&session);
            closed.push(account);
        }
        closed
    }

    /// Tells a player, if he is here. A connection that cannot take more is closed: its client comes back and reads what is.
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

    /// Says a last thing to every player and closes all connections.
    pub fn close_all(&self, message: &str) {
        let mut players = lock(&self.players);
        for (_, sender) in players.senders.drain() {
            let _ = sender.try_send(Utf8Bytes::from(message));
        }
    }

    /// Whether a player is here.
    pub fn is_online(&self, account: AccountId) -> bool {
        lock(&self.players).sessions.is_online(account)
    }

    /// How many players are here.
    pub fn players(&self) -> usize {
        lock(&self.players).sessions.len()
    }

    /// How many game servers are here.
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

    /// Whether a game server is connected.
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

/// Messages that wait for one connection.
const MESSAGES_MAX: usize = 64;
