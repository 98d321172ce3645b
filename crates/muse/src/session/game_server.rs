//! The game on a server's connections: clients in, ticks, snapshots out.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use muse_netcode::prediction::Game;
use muse_netcode::{ClientId, EntityId, Server, Tick, WorldError};
use muse_schema::State;
use muse_transport::Endpoint;
use muse_wire::Instant;

use super::{ServerEvent, ServerSession};

/// The simulation that the clients of a [`ServerSession`] play. It is a [`Server`] too, for everything that is not about connections.
///
/// A turn: give each event of the session to [`handle_event`](Self::handle_event), call [`tick`](Self::tick) until there is none, and then
/// [`send_snapshots`](Self::send_snapshots).
///
/// ```
/// use muse::prelude::*;
/// use muse::session::{GameServerSession, ServerSession};
/// use muse::{Endpoint, Instant};
///
/// /// Everything that a server has to do by now, on whatever link its endpoint has.
/// fn turn<G: Game<Player: State + Default>>(
///     now: Instant,
///     endpoint: &mut Endpoint,
///     session: &mut ServerSession,
///     game: &mut GameServerSession<G>,
///     rules: &mut G,
/// ) -> muse::Result<()> {
///     let mut buffer = Vec::new();
///     while let Some(event) = endpoint.poll_event(&mut buffer) {
///         let event = session.handle_event(now, endpoint, event);
///         match event.and_then(|event| game.handle_event(now, event)) {
///             Some(Joined(client)) => {
///                 game.spawn(client, &G::Player::default())?;
///             }
///             Some(Left(client, _reason)) => game.despawn(client)?,
///             _ => {}
///         }
///     }
///     while let Some((_tick, _events)) = game.tick(now, rules) {}
///     game.send_snapshots(now, endpoint, session);
///     Ok(())
/// }
/// ```
pub struct GameServerSession<G: Game> {
    game: Server<G>,
    /// The players of clients, also of those that are gone and may come back.
    players: BTreeMap<ClientId, EntityId>,
    refused: u64,
}

impl<G: Game> GameServerSession<G>
where
    G::Player: State,
{
    /// Starts without clients.
    pub fn new(game: Server<G>) -> Self {
        Self {
            game,
            players: BTreeMap::new(),
            refused: 0,
        }
    }

    /// Takes an event of the session: a client that joins watches, or plays on if its player is still there ([`ServerEvent::Returned`]); one that leaves is
    /// forgotten, and its player stays. Returns what is left for the game to handle.
    pub fn handle_event<'a>(
        &mut self,
        now: Instant,
        event: ServerEvent<'a, G::Event>,
    ) -> Option<ServerEvent<'a, G::Event>> {
        Some(match event {
            ServerEvent::Packet(client, packet) => {
                // A damaged packet is the sender's affair.
                let taken = self.game.handle_packet(now, client, packet);
                self.refused += u64::from(taken.is_err());
                return None;
            }
            ServerEvent::Joined(client) => self.join(client),
            ServerEvent::Left(client, reason) => {
                self.game.leave(client);
                ServerEvent::Left(client, reason)
            }
            event => event,
        })
    }

    /// Simulates the next tick if it is time. Returns it with the events that players' steps emitted; change the world now, before clients are told of it.
    #[expect(
        clippy::type_complexity,
        reason = "a tick and what happened in it, taken apart at once"
    )]
    pub fn tick(
        &mut self,
        now: Instant,
        rules: &mut G,
    ) -> Option<(Tick, Vec<(ClientId, G::Event)>)> {
        let mut emitted = Vec::new();
        let emit = |client, event| emitted.push((client, event));
        let tick = self.game.poll_tick(now, rules, emit)?;
        Some((tick, emitted))
    }

    /// Ends the tick that was simulated, and sends every client its snapshot with as many bytes as congestion control lets through.
    pub fn send_snapshots(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        session: &mut ServerSession,
    ) {
        self.set_budgets(now, endpoint, session);
        self.game.commit();
        self.send_packets(now, endpoint, session);
    }

    /// Limits the snapshots of ticks that are committed from now on to what congestion control lets through;
    /// [`send_snapshots`](Self::send_snapshots) does it.
    pub fn set_budgets(&mut self, now: Instant, endpoint: &mut Endpoint, session: &ServerSession) {
        let interval = self.game.snapshot_interval();
        for client in session.clients() {
            if let Some(bytes) = session.snapshot_budget(now, endpoint, client, interval) {
                self.game.set_budget(client, bytes);
            }
        }
    }

    /// Sends the snapshots of the tick that was committed; [`send_snapshots`](Self::send_snapshots) does it.
    pub fn send_packets(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        session: &mut ServerSession,
    ) {
        session.send_packets(now, endpoint, |packet| self.game.poll_packet(now, packet));
    }

    /// Gives a client a player in this state, in place of the one that it had.
    pub fn spawn(&mut self, client: ClientId, player: &G::Player) -> Result<EntityId, WorldError> {
        self.despawn(client)?;
        let entity = self.game.join(client, player)?;
        self.players.insert(client, entity);
        Ok(entity)
    }

    /// Takes a client's player out of the world, if it has one. A client that is still connected goes on watching.
    pub fn despawn(&mut self, client: ClientId) -> Result<(), WorldError> {
        if let Some(entity) = self.players.remove(&client) {
            self.game.set_player(client, None);
            self.game.world_mut().despawn(entity)?;
        }
        Ok(())
    }

    /// Returns the players that [`spawn`](Self::spawn) made, also of clients that are gone and may come back.
    pub const fn players(&self) -> &BTreeMap<ClientId, EntityId> {
        &self.players
    }

    /// Returns the number of clients' packets that were refused: damaged, or of clients that are gone.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Lets a client watch, or play on if its player is still there.
    fn join(&mut self, client: ClientId) -> ServerEvent<'static, G::Event> {
        // One whose connection was replaced is still known to the simulation.
        let known = self.players.get(&client).copied();
        let known = known.or_else(|| self.game.player(client));
        self.game.watch(client);
        match known.filter(|player| self.game.world().contains(*player)) {
            Some(player) => {
                self.game.set_player(client, Some(player));
                ServerEvent::Returned(client)
            }
            None => ServerEvent::Joined(client),
        }
    }
}

impl<G: Game> Deref for GameServerSession<G> {
    type Target = Server<G>;

    fn deref(&self) -> &Server<G> {
        &self.game
    }
}

impl<G: Game> DerefMut for GameServerSession<G> {
    fn deref_mut(&mut self) -> &mut Server<G> {
        &mut self.game
    }
}
