//! A client in the program of its server: listen server and offline play.

use muse_schema::State;
use muse_wire::Instant;

use super::{Client, PacketError, Server};
use crate::Tick;
use crate::prediction::Game;
use crate::world::ClientId;

/// The player at the server's own machine. It is a client like any other, whose packets go through memory; alone it is the offline
/// game.
///
/// ```
/// use muse_netcode::LocalClient;
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/runner.in"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (mut server, client) = (server(Instant::ZERO), client(Instant::ZERO));
/// server.join(ClientId(0), &Runner { x: 0.0 })?;
/// let mut local = LocalClient::new(&mut server, ClientId(0), client);
/// for milli in 0..2_000 {
///     let now = Instant::from_millis(milli);
///     while server.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
///     server.commit();
///     local.tick(now, &mut server, &mut Rules, |_| true)?;
/// }
/// assert!(local.game.predicted().expect("it plays").x > 8.0);
/// # Ok(())
/// # }
/// ```
pub struct LocalClient<G: Game> {
    /// Its client.
    pub game: Client<G>,
    id: ClientId,
    buffer: Vec<u8>,
}

impl<G: Game> LocalClient<G>
where
    G::Player: State,
{
    /// Makes a local client of the client with this id, which has joined the server before.
    pub fn new(server: &mut Server<G>, id: ClientId, game: Client<G>) -> Self {
        server.set_local(id);
        Self {
            game,
            id,
            buffer: vec![0; MEMORY_PACKET_BYTES],
        }
    }

    /// Returns its client id.
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// Takes what the server has committed, simulates what is due with the player's inputs, and hands them over. Once a frame, and
    /// after every commit.
    pub fn tick(
        &mut self,
        now: Instant,
        server: &mut Server<G>,
        rules: &mut G,
        mut input: impl FnMut(Tick) -> G::Input,
    ) -> Result<(), PacketError> {
        while let Some(len) = server.poll_packet_to(now, self.id, &mut self.buffer) {
            self.game.handle_packet(now, rules, &self.buffer[..len])?;
        }
        while let Some(len) = self
            .game
            .poll_packet(now, rules, &mut input, &mut self.buffer)
        {
            server.handle_packet(now, self.id, &self.buffer[..len])?;
        }
        Ok(())
    }
}

/// Bytes of a packet through memory: the largest state fits.
const MEMORY_PACKET_BYTES: usize = 4_096;
