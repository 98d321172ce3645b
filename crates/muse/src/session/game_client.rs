//! The game on a client's connection: snapshots in, inputs out.

use std::ops::{Deref, DerefMut};

use muse_netcode::prediction::Game;
use muse_netcode::{Client, Tick};
use muse_schema::State;
use muse_transport::Endpoint;
use muse_wire::Instant;

use super::{ClientEvent, ClientSession};

/// The player's side of a game on a [`ClientSession`]. It is a [`Client`] too, for everything that is not about the connection.
///
/// A turn: give each event of the session to [`handle_event`](Self::handle_event), then call [`send_packet`](Self::send_packet) until nothing more is due.
pub struct GameClientSession<G: Game> {
    game: Client<G>,
}

impl<G: Game> GameClientSession<G>
where
    G::Player: State,
{
    /// Starts before the server has been heard.
    pub const fn new(game: Client<G>) -> Self {
        Self { game }
    }

    /// Takes an event of the session: the server's packets are the simulation's. Returns what is left for the game to handle.
    pub fn handle_event<'a>(
        &mut self,
        now: Instant,
        rules: &mut G,
        event: ClientEvent<'a>,
    ) -> Option<ClientEvent<'a>> {
        let ClientEvent::Packet(packet) = event else {
            return Some(event);
        };
        // One that came twice or too late is of no use; the receiver's counters know of it. Another schema cannot come here: it was compared at
        // connect.
        let _ = self.game.handle_packet(now, rules, packet);
        None
    }

    /// Simulates what is due with the player's inputs, and sends a packet with these. Returns its length; `None` when nothing more is due.
    pub fn send_packet(
        &mut self,
        now: Instant,
        rules: &mut G,
        endpoint: &mut Endpoint,
        session: &mut ClientSession,
        input: impl FnMut(Tick) -> G::Input,
    ) -> Option<usize> {
        session.send_next_packet(now, endpoint, |packet| {
            self.game.poll_packet(now, rules, input, packet)
        })
    }
}

impl<G: Game> Deref for GameClientSession<G> {
    type Target = Client<G>;

    fn deref(&self) -> &Client<G> {
        &self.game
    }
}

impl<G: Game> DerefMut for GameClientSession<G> {
    fn deref_mut(&mut self) -> &mut Client<G> {
        &mut self.game
    }
}
