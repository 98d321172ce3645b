//! Rooms at a relay: how a server opens one, and how clients come by its invitation.

#[cfg(not(target_arch = "wasm32"))]
pub(super) use native::{Room, join, join_by_code};

use muse_drivers::relay::{Invitation, LinkEvent, Refusal, ShortCode};
use muse_transport::ServerPublicKey;
use thiserror::Error;

use crate::{Join, Server};

impl Server {
    /// Returns the invitation to the server's room at a relay, for a server that has one: a link that holds everything.
    pub fn invitation(&self) -> Option<Invitation> {
        self.room.map(|room| room.invitation)
    }

    /// Returns the short code of the server's room at a relay, for a server that has one: all that a friend types, with a game that knows the relay
    /// ([`Join::room`]).
    pub fn short_code(&self) -> Option<ShortCode> {
        self.room.map(|room| room.code)
    }
}

/// The two ways to tell somebody where a room is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRoom {
    pub(crate) invitation: Invitation,
    pub(crate) code: ShortCode,
}

impl OpenRoom {
    /// The line that says everything.
    pub(crate) fn line(&self) -> String {
        self.invitation.to_string()
    }
}

impl From<&Invitation> for Join {
    fn from(invitation: &Invitation) -> Self {
        Self::to(&invitation.to_string())
    }
}

/// The reason for which a server has no room at its relay. Nobody can come by its code meanwhile; the address, and clients that talk directly, are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RoomLoss {
    /// The relay does not answer. A room that was open is asked for again by itself until it is; one that never was is not.
    #[error("the relay does not answer: is it running, and can its UDP port be reached?")]
    Unanswered,
    /// The relay opens no room for this server, which does not ask again.
    #[error("{0}")]
    Refused(Refusal),
}

impl RoomLoss {
    /// Returns the loss that an event of a host's link to its relay means, for a server with a driver of its own.
    pub fn from_link(event: &LinkEvent) -> Option<Self> {
        match event {
            LinkEvent::Unanswered => Some(Self::Unanswered),
            LinkEvent::Refused(reason) => Some(Self::Refused(*reason)),
            _ => None,
        }
    }
}

/// Returns the invitation that a text is, if it is one.
pub(super) fn invitation(text: &str) -> Option<Invitation> {
    text.parse().ok()
}

/// Returns the key of the host that wrote an invitation.
pub(super) fn host_key(invitation: &Invitation) -> ServerPublicKey {
    ServerPublicKey::from_bytes(invitation.host_key)
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    //! The part that needs sockets.

    use muse_drivers::{ClientDriver, EndpointDriver, RoomOptions};
    use muse_netcode::prediction::Game;
    use muse_schema::State;
    use muse_transport::token::ConnectToken;
    use muse_transport::{Config, Connect};

    use super::super::Target;
    use super::*;
    use crate::{GameServer, Listen, Result, ServerEvent};

    /// The room that a server is to open.
    #[derive(Debug, Default)]
    pub(crate) struct Room {
        relay: Option<String>,
        options: RoomOptions,
    }

    impl Listen {
        /// Opens a room at a relay (host and port) besides, so that players behind routers can come by an invitation.
        /// [`ServerEvent::RoomOpened`] says when it is open, [`ServerEvent::RoomLost`] why it is not.
        pub fn room(mut self, relay: &str) -> Self {
            self.room.relay = Some(relay.to_owned());
            self
        }

        /// Shows this token to the relay of its [room](Self::room), for a relay that opens rooms for holders of its master's tokens alone. The master gives it to
        /// signed-in players (`docs/relay-v2.md`).
        pub fn room_token(mut self, token: ConnectToken) -> Self {
            self.room.options = self.room.options.token(token);
            self
        }

        /// Looks for no direct ways to the guests of its [room](Self::room): they never learn the host's address, nor the host theirs, and everything
        /// goes through the relay. Costs the way over the relay, and its bandwidth.
        pub fn relay_only(mut self) -> Self {
            self.room.options = self.room.options.relay_only();
            self
        }
    }

    impl Join {
        /// Goes to the room at `relay` (host and port) that has this short code, such as `KWXPTR-7Q4M`. The host's key is learned by the code; the relay can neither
        /// read nor guess it.
        pub fn room(relay: &str, code: &str) -> Self {
            Self::new(Target::Room(relay.to_owned(), code.to_owned()))
        }

        /// Looks for no direct way to the host of a room: the host never learns the player's address, nor the player the host's, and everything goes
        /// through the relay. It is enough if one of the two wants it. Without a room there is no other way than the direct one, and
        /// connecting fails.
        pub fn relay_only(mut self) -> Self {
            self.relay_only = true;
            self
        }
    }

    impl Room {
        /// Opens the room, if one is wanted.
        pub(crate) fn open(
            self,
            link: &mut EndpointDriver,
            key: ServerPublicKey,
        ) -> Result<Option<OpenRoom>> {
            let Some(relay) = self.relay else {
                return Ok(None);
            };
            let code = link
                .open_room_with(&*relay, self.options)
                .map_err(named(&relay))?;
            let at = link.relay().expect("it has just been opened");
            let invitation = Invitation {
                relay: at.relay(),
                code: code.room(),
                host_key: *key.as_bytes(),
            };
            Ok(Some(OpenRoom { invitation, code }))
        }
    }

    impl Server {
        /// Tells a server without a game what became of its room.
        pub(crate) fn handle_room(
            &mut self,
            handle: &mut impl FnMut(&mut Self, ServerEvent<'_>) -> Result<()>,
        ) -> Result<()> {
            while let Some(event) = self.poll_room() {
                handle(self, event)?;
            }
            Ok(())
        }

        /// Returns the next event of the room at the relay.
        pub(crate) fn poll_room<E>(&mut self) -> Option<ServerEvent<'static, E>> {
            loop {
                let event = self.link.poll_relay_event()?;
                if let Some(loss) = RoomLoss::from_link(&event) {
                    return Some(ServerEvent::RoomLost(loss));
                }
                if let LinkEvent::Opened { .. } = event
                    && let (Some(link), Some(room)) = (self.link.relay(), &mut self.room)
                {
                    room.invitation.relay = link.relay();
                    return Some(ServerEvent::RoomOpened(room.code));
                }
            }
        }
    }

    impl<G: Game> GameServer<G>
    where
        G::Player: State,
    {
        /// Opens a room at a relay, for players behind routers; [`ServerEvent::RoomOpened`] has the code that friends type.
        pub fn room(relay: &str, rules: G) -> Result<Self> {
            Self::listen(Listen::at("[::]:0").room(relay), rules)
        }
    }

    /// Begins to connect to the host that wrote an invitation.
    pub(crate) fn join(
        it: &Invitation,
        relay_only: bool,
        config: Config,
        how: Connect,
    ) -> Result<ClientDriver> {
        let (relay, code) = (it.relay, it.code);
        Ok(ClientDriver::join(
            relay,
            code,
            options(relay_only),
            config,
            how,
        )?)
    }

    /// Begins to connect to the host of the room with this short code.
    pub(crate) fn join_by_code(
        (relay, code): (&str, &str),
        relay_only: bool,
        config: Config,
        how: Connect,
    ) -> Result<ClientDriver> {
        let invalid = |error| {
            let text = format!("{code:?}: {error}");
            std::io::Error::new(std::io::ErrorKind::InvalidInput, text)
        };
        let code: ShortCode = code.parse().map_err(invalid)?;
        let joined = ClientDriver::join_by_code(relay, code, options(relay_only), config, how);
        Ok(joined.map_err(named(relay))?)
    }

    fn options(relay_only: bool) -> RoomOptions {
        match relay_only {
            true => RoomOptions::default().relay_only(),
            false => RoomOptions::default(),
        }
    }

    /// Says which relay it was that could not be looked up or reached.
    fn named(relay: &str) -> impl Fn(std::io::Error) -> std::io::Error + '_ {
        move |error| std::io::Error::new(error.kind(), format!("the relay {relay}: {error}"))
    }
}
