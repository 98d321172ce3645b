//! The connections by the connect token they began with, so that its holder can come back.
//!
//! The holder who comes back gets a connection of their own, the successor. The session goes on until the successor has
//! shown that it has the keys; only then does the old connection give way. Connections are named by their id, which is
//! never used again, so that an entry cannot come to mean somebody else's.

use muse_wire::keyed::{Keyed, KeyedMap};

use crate::event::ConnectionId;
use crate::token::TokenId;

/// The sessions that began with a token and have not ended.
#[derive(Debug)]
pub(super) struct Sessions {
    of: KeyedMap<TokenId, Session>,
}

#[derive(Debug)]
struct Session {
    current: ConnectionId,
    /// The holder came back and has not sent a packet yet.
    successor: Option<ConnectionId>,
}

impl Sessions {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            of: KeyedMap::with_hasher(keyed),
        }
    }

    /// The connection that the holder of `token` has.
    pub(super) fn current(&self, token: &TokenId) -> Option<ConnectionId> {
        self.of.get(token).map(|session| session.current)
    }

    /// `connection` was accepted with `token`. Returns an earlier successor, which nobody waits for any more.
    pub(super) fn begin(
        &mut self,
        token: TokenId,
        connection: ConnectionId,
    ) -> Option<ConnectionId> {
        match self.of.get_mut(&token) {
            Some(session) => session.successor.replace(connection),
            None => {
                let session = Session {
                    current: connection,
                    successor: None,
                };
                self.of.insert(token, session);
                None
            }
        }
    }

    /// The first packet of `connection` arrived. Returns the connection that it replaces.
    pub(super) fn confirm(
        &mut self,
        token: &TokenId,
        connection: ConnectionId,
    ) -> Option<ConnectionId> {
        let session = self.of.get_mut(token)?;
        // Another one came after it: it is too late.
        if session.successor != Some(connection) {
            return None;
        }
        session.successor = None;
        Some(std::mem::replace(&mut session.current, connection))
    }

    /// `connection` is gone, and with it the session unless it has a successor.
    pub(super) fn end(&mut self, token: &TokenId, connection: ConnectionId) {
        let Some(session) = self.of.get_mut(token) else {
            return;
        };
        if session.successor == Some(connection) {
            session.successor = None;
        } else if session.current == connection {
            match session.successor.take() {
                Some(successor) => session.current = successor,
                None => drop(self.of.remove(token)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lasts_as_long_as_its_session() {
        let token = TokenId::from_bytes([7; 16]);
        let [first, second, third] = [1, 2, 3].map(|index| ConnectionId::new(index, 1));
        let mut sessions = Sessions::new(Keyed::new([1; 16]));
        assert_eq!(sessions.begin(token, first), None);
        assert_eq!(sessions.begin(token, second), None);
        assert_eq!(sessions.begin(token, third), Some(second));
        sessions.end(&token, second);
        assert_eq!(sessions.confirm(&token, second), None, "it came too late");
        assert_eq!(sessions.confirm(&token, third), Some(first));
        sessions.end(&token, first);
        assert_eq!(sessions.current(&token), Some(third));
        assert_eq!(sessions.begin(token, second), None);
        sessions.end(&token, third);
        assert_eq!(sessions.current(&token), Some(second));
        sessions.end(&token, second);
        assert_eq!(sessions.current(&token), None);
        assert!(sessions.of.is_empty());
    }
}
