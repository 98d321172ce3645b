//! A networked game in two types: the [netcode] over a connection, for a game loop.
//!
//! Snapshots and inputs travel on one unreliable channel of the connection; the others are the game's own. What a
//! snapshot may weigh follows from what congestion control lets through.

use std::collections::BTreeMap;
use std::io;

use muse_netcode::prediction::Game;
use muse_netcode::{self as netcode, ClientId, EntityId, Tick};
use muse_schema::State;
use muse_transport::{CloseReason, ConnectionId, Event};
use muse_wire::{Duration, Instant};

use crate::{Client, Server};

/// What a [`GameServer`] tells the game.
#[derive(Debug)]
pub enum Happening<'a, E> {
    /// A client came: let it [`join`](muse_netcode::Server::join) or [`watch`](muse_netcode::Server::watch), or close its connection.
    Came {
        /// Its number in the game.
        client: ClientId,
        /// Who, by connect token; 0 without one.
        account: u64,
    },
    /// A client went; what becomes of its player is for the game to say.
    Went {
        /// Its number in the game.
        client: ClientId,
        /// What it played.
        player: Option<EntityId>,
        /// Why.
        reason: CloseReason,
    },
    /// The players have been simulated: now the rest of the world, before clients are told of it.
    Ticked(Tick),
    /// A player's step emitted something.
    Emitted(ClientId, E),
    /// Something else happened on the connection: a message on one of the game's own channels, for example.
    Other(Event<'a>),
}

/// A server over UDP. Call [`tick`](Self::tick) in a loop.
///
/// The example `predicted_player` is a complete game with it.
///
/// ```
/// use muse::game::{GameServer, Happening};
/// use muse::netcode::prediction::Game;
/// use muse::schema::State;
///
/// /// A turn of the loop: whoever comes plays, whoever goes takes the player along.
/// fn turn<G: Game>(server: &mut GameServer<G>, rules: &mut G) -> std::io::Result<()>
/// where
///     G::Player: State + Default,
/// {
///     server.tick(rules, |server, happening| match happening {
///         Happening::Came { client, .. } => {
///             let _ = server.game.join(client, &G::Player::default()); // a full world has no room
///         }
///         Happening::Went { player: Some(player), .. } => {
///             let _ = server.game.world_mut().despawn(player);
///         }
///         _ => {}
///     })
/// }
/// ```
pub struct GameServer<G: Game> {
    /// The connections.
    pub link: Server,
    /// The game.
    pub game: netcode::Server<G>,
    channel: u8,
    seats: BTreeMap<ClientId, ConnectionId>,
    buffer: Vec<u8>,
    packet: Vec<u8>,
}

impl<G: Game> GameServer<G>
where
    G::Player: State,
{
    /// Runs this game over these connections; `channel` is an unreliable one.
    pub fn new(link: Server, channel: u8, game: netcode::Server<G>) -> Self {
        Self {
            link,
            game,
            channel,
            seats: BTreeMap::new(),
            buffer: Vec::new(),
            packet: vec![0; PACKET_BYTES],
        }
    }

    /// Waits for something to do, at most until the next tick, and does it. Messages that nobody should send are dropped.
    pub fn tick(
        &mut self,
        rules: &mut G,
        handle: impl FnMut(&mut Self, Happening<'_, G::Event>),
    ) -> io::Result<()> {
        self.tick_within(Duration::from_secs(1), rules, handle)
    }

    /// As [`tick`](Self::tick), and waits for `frame` at most: for a program that has something else to do, such as the host's own
    /// [`Host`](muse_netcode::Host).
    pub fn tick_within(
        &mut self,
        frame: Duration,
        rules: &mut G,
        mut handle: impl FnMut(&mut Self, Happening<'_, G::Event>),
    ) -> io::Result<()> {
        let next = self.game.poll_timeout().saturating_since(self.link.now());
        self.link.wait(next.min(frame))?;
        self.link.poll()?;
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.link.poll_event(&mut buffer) {
            self.handle_event(event, &mut handle);
        }
        self.buffer = buffer;
        let now = self.link.now();
        let mut emitted = Vec::new();
        while let Some(tick) = {
            let emit = |client, event| emitted.push((client, event));
            self.game.poll_tick(now, rules, emit)
        } {
            for (client, event) in emitted.drain(..) {
                handle(self, Happening::Emitted(client, event));
            }
            handle(self, Happening::Ticked(tick));
        }
        self.send(now);
        self.link.flush()
    }

    /// The connection of a client.
    pub fn connection(&self, client: ClientId) -> Option<ConnectionId> {
        self.seats.get(&client).copied()
    }

    fn handle_event(
        &mut self,
        event: Event<'_>,
        handle: &mut impl FnMut(&mut Self, Happening<'_, G::Event>),
    ) {
        match event {
            Event::Connected {
                connection,
                account,
                ..
            } => {
                let client = seat(connection);
                self.seats.insert(client, connection);
                handle(self, Happening::Came { client, account });
            }
            Event::Closed { connection, reason } => {
                let client = seat(connection);
                self.seats.remove(&client);
                let player = self.game.leave(client);
                let went = Happening::Went {
                    client,
                    player,
                    reason,
                };
                handle(self, went);
            }
            Event::Message {
                connection,
                channel,
                payload,
            } if channel == self.channel => {
                let now = self.link.now();
                // A damaged packet is the sender's affair; the game's own counters know of it.
                let _ = self.game.handle_packet(now, seat(connection), payload);
            }
            other => handle(self, Happening::Other(other)),
        }
    }

    fn send(&mut self, now: Instant) {
        let interval = self.game.snapshot_interval();
        for (client, connection) in &self.seats {
            if let Some(budget) = self.link.budget(*connection) {
                let bytes = budget.this_tick(interval);
                self.game.set_budget(*client, bytes.max(SNAPSHOT_BYTES_MIN));
            }
        }
        self.game.commit();
        while let Some((client, len)) = self.game.poll_packet(now, &mut self.packet) {
            if let Some(connection) = self.seats.get(&client) {
                // What does not go is lost, as the network might have lost it.
                let _ = self
                    .link
                    .send(*connection, self.channel, &self.packet[..len]);
            }
        }
    }
}

/// A client over UDP. Call [`tick`](Self::tick) once a frame.
///
/// ```
/// use muse::game::GameClient;
/// use muse::netcode::prediction::Game;
/// use muse::schema::State;
///
/// /// A frame: what the player does goes to the server, and where the player is comes back, as predicted.
/// fn frame<G: Game>(client: &mut GameClient<G>, rules: &mut G, keys: G::Input) -> std::io::Result<Option<G::Player>>
/// where
///     G::Player: State,
///     G::Input: Clone,
/// {
///     client.tick(rules, |_tick| keys.clone(), |_, event| println!("{event:?}"))?;
///     Ok(client.game.shown_player())
/// }
/// ```
pub struct GameClient<G: Game> {
    /// The connection.
    pub link: Client,
    /// The game.
    pub game: netcode::Client<G>,
    channel: u8,
    buffer: Vec<u8>,
    packet: Vec<u8>,
}

impl<G: Game> GameClient<G>
where
    G::Player: State,
{
    /// Plays over this connection; `channel` is the server's.
    pub fn new(link: Client, channel: u8, game: netcode::Client<G>) -> Self {
        Self {
            link,
            game,
            channel,
            buffer: Vec::new(),
            packet: vec![0; PACKET_BYTES],
        }
    }

    /// Takes in what arrived, simulates what is due with the player's inputs, and sends them. Events of the connection go to `handle`.
    pub fn tick(
        &mut self,
        rules: &mut G,
        mut input: impl FnMut(Tick) -> G::Input,
        mut handle: impl FnMut(&mut Self, Event<'_>),
    ) -> io::Result<()> {
        self.link.poll()?;
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.link.poll_event(&mut buffer) {
            match event {
                Event::Message {
                    channel, payload, ..
                } if channel == self.channel => {
                    // One that came twice or too late is of no use; the receiver's counters know of it.
                    let _ = self.game.handle_packet(self.link.now(), rules, payload);
                }
                other => handle(self, other),
            }
        }
        self.buffer = buffer;
        let now = self.link.now();
        while let Some(len) = self
            .game
            .poll_packet(now, rules, &mut input, &mut self.packet)
        {
            let _ = self.link.send(self.channel, &self.packet[..len]);
        }
        self.link.flush()
    }

    /// Waits for something to do, for `frame` at most.
    pub fn wait(&mut self, frame: Duration) -> io::Result<bool> {
        let due = self.game.poll_timeout();
        let until = due.map_or(frame, |due| due.saturating_since(self.link.now()));
        self.link.wait(until.min(frame))
    }
}

/// A connection's place among the server's, which no other has at the same time.
fn seat(connection: ConnectionId) -> ClientId {
    ClientId(connection.to_bits() as u32)
}

/// Bytes that a snapshot may have however congested the path is: without any the client's clock would stop.
const SNAPSHOT_BYTES_MIN: usize = 256;
/// Bytes of a packet that fit into one datagram with everything around them.
const PACKET_BYTES: usize = 1_100;
