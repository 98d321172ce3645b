//! The server of a game: connections in, ticks, snapshots out.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use muse_netcode::prediction::Game;
use muse_netcode::{self as netcode, ClientId, EntityId, Kind};
use muse_schema::State;
use muse_wire::Duration;

use crate::session::{PACKET_BYTES, ServerEvent};
use crate::{Error, Listen, Protocol, Result, Server};

/// A server that simulates a game for its clients. Call [`tick`](Self::tick) in a loop.
///
/// It is a [`Server`] too: messages, clients and the address are found there. The start page `docs/guide/start-game.md` is a
/// complete game with it.
///
/// ```
/// use muse::prelude::*;
///
/// /// A turn of the loop: every client plays, and takes the player along when it leaves.
/// fn turn<G: Game<Player: State + Default>>(server: &mut GameServer<G>) -> muse::Result<()> {
///     server.tick(|game, event| match event {
///         ServerEvent::Joined(client) => game.spawn(client, G::Player::default()),
///         ServerEvent::Left(client, _reason) => game.despawn(client),
///         _ => Ok(()),
///     })
/// }
/// ```
pub struct GameServer<G: Game> {
    pub(crate) server: Server,
    game: netcode::Server<G>,
    rules: G,
    kind: Kind<G::Player>,
    /// The players of clients, also of those that are gone and may come back.
    players: BTreeMap<ClientId, EntityId>,
    packet: Vec<u8>,
    /// The master that gave this server its match.
    #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
    pub(crate) hosting: Option<Box<crate::master::Hosting>>,
}

impl<G: Game> GameServer<G>
where
    G::Player: State,
{
    /// Listens for players of this game.
    pub fn listen(listen: impl Into<Listen>, rules: G) -> Result<Self> {
        Self::listen_with(listen, Protocol::default(), rules)
    }

    /// Listens for players of this game, with messages and kinds of entities besides.
    pub fn listen_with(listen: impl Into<Listen>, protocol: Protocol, rules: G) -> Result<Self> {
        let protocol = protocol.for_game::<G>();
        let kind = protocol.player_kind::<G>()?;
        let server = Server::listen(listen, protocol)?;
        let game = server.protocol().game_server(server.now())?;
        Ok(Self {
            server,
            game,
            rules,
            kind,
            players: BTreeMap::new(),
            packet: vec![0; PACKET_BYTES],
            #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
            hosting: None,
        })
    }

    /// Waits for something to do, at most until the next tick, and does it: receives inputs and messages, simulates the players,
    /// sends snapshots.
    pub fn tick(
        &mut self,
        handle: impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        self.tick_within(Duration::from_secs(1), handle)
    }

    /// As [`tick`](Self::tick), and waits for `wait` at most: for a program that has something else to do.
    pub fn tick_within(
        &mut self,
        wait: Duration,
        mut handle: impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        let next = self.game.poll_timeout().saturating_since(self.server.now());
        self.server.receive(next.min(wait))?;
        let mut buffer = self.server.take_buffer();
        let handled = self.handle_events(&mut buffer, &mut handle);
        self.server.keep_buffer(buffer);
        handled?;
        #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
        self.turn_host(&mut handle)?;
        self.simulate(&mut handle)?;
        self.send_snapshots();
        self.server.flush()
    }

    /// Gives a client a player in this state; it sees and predicts it from the next snapshot on.
    pub fn spawn(&mut self, client: ClientId, player: G::Player) -> Result<()> {
        self.despawn(client)?;
        let entity = self.game.join(client, &player)?;
        self.players.insert(client, entity);
        Ok(())
    }

    /// Takes a client's player out of the world, if it has one. A client that is still connected goes on watching.
    pub fn despawn(&mut self, client: ClientId) -> Result<()> {
        if let Some(entity) = self.players.remove(&client) {
            self.game.set_player(client, None);
            self.game.world_mut().despawn(entity)?;
        }
        Ok(())
    }

    /// Returns the state of a client's player; `None` if it has none.
    pub fn player(&self, client: ClientId) -> Option<G::Player> {
        self.game.world().state(self.kind, self.entity(client)?)
    }

    /// Returns every client with a player, and its state.
    pub fn players(&self) -> impl Iterator<Item = (ClientId, G::Player)> + '_ {
        let players = self.players.iter();
        players.filter_map(|(client, entity)| {
            Some((*client, self.game.world().state(self.kind, *entity)?))
        })
    }

    /// Puts a client's player into another state, as the rules of the whole world want it: after a hit, for example.
    pub fn set_player(&mut self, client: ClientId, player: &G::Player) -> Result<()> {
        let entity = self.entity(client).ok_or(Error::NoSuchClient(client))?;
        Ok(self.game.world_mut().set(self.kind, entity, player)?)
    }

    /// Returns the entity of a client's player; `None` if it has none.
    pub fn entity(&self, client: ClientId) -> Option<EntityId> {
        self.players.get(&client).copied()
    }

    /// Returns the rules.
    pub fn rules(&mut self) -> &mut G {
        &mut self.rules
    }

    /// Returns the world, to read and change what is not a player.
    pub fn world(&mut self) -> &mut netcode::World {
        self.game.world_mut()
    }

    /// Returns the kind of entities that the protocol declares for this type; `None` if it declares none.
    pub fn kind<S: State>(&self) -> Option<Kind<S>> {
        self.server.protocol().kinds().of::<S>()
    }

    /// Returns the simulation below, for everything that is not here: interest, spectators, claims.
    pub fn netcode(&mut self) -> &mut netcode::Server<G> {
        &mut self.game
    }

    fn handle_events(
        &mut self,
        buffer: &mut Vec<u8>,
        handle: &mut impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        while let Some(event) = self.server.poll_event(buffer) {
            let Some(event) = self.server.interpret(event) else {
                continue;
            };
            match event {
                ServerEvent::Packet(client, packet) => {
                    let now = self.server.now();
                    // A damaged packet is the sender's affair; the game's own counters know of it.
                    let _ = self.game.handle_packet(now, client, packet);
                }
                #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
                ServerEvent::Joined(client) if !self.has_seat_for(client) => {}
                ServerEvent::Joined(client) => {
                    let event = self.join(client);
                    handle(self, event)?;
                }
                #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
                ServerEvent::Left(client, _) if !self.keep_seat(client) => {}
                ServerEvent::Left(client, reason) => {
                    self.game.leave(client);
                    handle(self, ServerEvent::Left(client, reason))?;
                }
                event => handle(self, event)?,
            }
        }
        Ok(())
    }

    /// Lets a client watch, or play on if its player is still there.
    fn join(&mut self, client: ClientId) -> ServerEvent<'static, G::Event> {
        self.game.watch(client);
        match self.players.get(&client) {
            Some(player) if self.game.world().contains(*player) => {
                self.game.set_player(client, Some(*player));
                ServerEvent::Returned(client)
            }
            _ => ServerEvent::Joined(client),
        }
    }

    fn simulate(
        &mut self,
        handle: &mut impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        let now = self.server.now();
        let mut emitted = Vec::new();
        while let Some(tick) = {
            let emit = |client, event| emitted.push((client, event));
            self.game.poll_tick(now, &mut self.rules, emit)
        } {
            for (client, event) in emitted.drain(..) {
                handle(self, ServerEvent::Emitted(client, event))?;
            }
            handle(self, ServerEvent::TickFinished(tick))?;
        }
        Ok(())
    }

    fn send_snapshots(&mut self) {
        let now = self.server.now();
        let (link, session) = self.server.connections();
        let endpoint = link.endpoint_mut();
        session.send_snapshots(now, endpoint, &mut self.game, &mut self.packet);
    }
}

impl<G: Game> Deref for GameServer<G> {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl<G: Game> DerefMut for GameServer<G> {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}
