//! The form in which any carrier of texts can drive a link to the master: a thread with a socket, a browser's WebSocket, a simulation.

use muse_wire::Instant;

use crate::messages::{FromMaster, MessageError, ToServer, decode, encode};
use crate::{PlayerAction, PlayerLink, ServerAction, ServerLink};

/// A machine that talks to a master in texts.
///
/// A driver calls the `handle_*` methods when something happened, [`handle_timeout`](Self::handle_timeout) when
/// [`poll_timeout`](Self::poll_timeout) has come, and then drains [`poll_step`](Self::poll_step).
pub trait MasterMachine {
    /// Something to do that does not concern the connection to the master.
    type Command;

    /// Starts to connect.
    fn start(&mut self, now: Instant);
    /// Handles an open connection.
    fn handle_connected(&mut self, now: Instant);
    /// Handles a connection that closed or could not be opened.
    fn handle_lost(&mut self, now: Instant);
    /// Handles a text from the master. One that cannot be read changes nothing.
    fn handle_text(&mut self, now: Instant, text: &str) -> Result<(), MessageError>;
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the next thing to do.
    fn poll_step(&mut self) -> Option<MasterStep<Self::Command>>;
}

/// Something that a driver of a [`MasterMachine`] is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterStep<C> {
    /// Open the connection.
    Connect,
    /// Close it.
    Disconnect,
    /// Send this text.
    Send(String),
    /// Hand this to the game.
    Command(C),
}

macro_rules! machine {
    ($link:ty, $message:ty, $action:ident) => {
        impl MasterMachine for $link {
            type Command = $action;

            fn start(&mut self, now: Instant) {
                self.start(now);
            }

            fn handle_connected(&mut self, now: Instant) {
                self.handle_connected(now);
            }

            fn handle_lost(&mut self, now: Instant) {
                self.handle_lost(now);
            }

            fn handle_text(&mut self, now: Instant, text: &str) -> Result<(), MessageError> {
                self.handle_message(now, decode::<$message>(text)?);
                Ok(())
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.handle_timeout(now);
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.poll_timeout()
            }

            fn poll_step(&mut self) -> Option<MasterStep<$action>> {
                Some(match self.poll_action()? {
                    $action::Connect => MasterStep::Connect,
                    $action::Disconnect => MasterStep::Disconnect,
                    $action::Send(message) => MasterStep::Send(encode(&message)),
                    #[allow(unreachable_patterns, reason = "a server has no other actions")]
                    other => MasterStep::Command(other),
                })
            }
        }
    };
}

machine!(PlayerLink, FromMaster, PlayerAction);
machine!(ServerLink, ToServer, ServerAction);
