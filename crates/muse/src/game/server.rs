//! The server of a game: connections in, ticks, snapshots out.

use std::ops::{Deref, DerefMut};

use muse_netcode::prediction::Game;
use muse_netcode::{self as netcode, ClientId, EntityId, Kind};
use muse_schema::State;
use muse_wire::Duration;

use crate::session::{GameServerSession, ServerEvent};
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
    game: GameServerSession<G>,
    rules: G,
    kind: Kind<G::Player>,
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
            game: GameServerSession::new(game),
            rules,
            kind,
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
        let mut buffer = self.server.connections().0.take_buffer();
        let handled = self.handle_events(&mut buffer, &mut handle);
        self.server.connections().0.keep_buffer(buffer);
        handled?;
        #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
        self.turn_host(&mut handle)?;
        self.simulate(&mut handle)?;
        let now = self.server.now();
        let (link, session) = self.server.connections();
        self.game.send_snapshots(now, link.endpoint_mut(), session);
        self.server.flush()
    }

    /// Gives a client a player in this state; it sees and predicts it from the next snapshot on.
    pub fn spawn(&mut self, client: ClientId, player: G::Player) -> Result<()> {
        self.game.spawn(client, &player)?;
        Ok(())
    }

    /// Takes a client's player out of the world, if it has one. A client that is still connected goes on watching.
    pub fn despawn(&mut self, client: ClientId) -> Result<()> {
        Ok(self.game.despawn(client)?)
    }

    /// Returns the state of a client's player; `None` if it has none.
    pub fn player(&self, client: ClientId) -> Option<G::Player> {
        self.game.world().state(self.kind, self.entity(client)?)
    }

    /// Returns every client with a player, and its state.
    pub fn players(&self) -> impl Iterator<Item = (ClientId, G::Player)> + '_ {
        let players = self.game.players().iter();
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
        self.game.players().get(&client).copied()
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
            #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
            if !self.is_for_game(&event) {
                continue;
            }
            if let Some(event) = self.game.handle_event(self.server.now(), event) {
                handle(self, event)?;
            }
        }
        #[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
        while let Some(event) = self.server.poll_room() {
            handle(self, event)?;
        }
        Ok(())
    }

    fn simulate(
        &mut self,
        handle: &mut impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        let now = self.server.now();
        while let Some((tick, emitted)) = self.game.tick(now, &mut self.rules) {
            for (client, event) in emitted {
                handle(self, ServerEvent::Emitted(client, event))?;
            }
            handle(self, ServerEvent::TickFinished(tick))?;
        }
        Ok(())
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
