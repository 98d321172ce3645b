//! The server of a game: inputs in, a step for each player, snapshots out.
//!
//! It ties together what the other modules do, in the order of a tick: take inputs, simulate players, let the game do the rest,
//! commit the world, make packets. A game that wants another order uses the modules themselves.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use muse_schema::{BitWriter, Options, Schema, State};
use muse_wire::{Duration, Instant, log};

use super::delayed::Delayed;
use super::guest::{Guest, PLAYER_WEIGHT};
use super::{PacketError, SessionConfig};
use crate::inputs::{InputCounters, InputForTick};
use crate::prediction::{Candidate, Game, NamedSpawn, Scene, SpawnKey};
use crate::replication::ClientView;
use crate::scheduler::TickScheduler;
use crate::world::{ClientId, INPUT_BYTES_MAX, Kind, KindId, Kinds, World};
use crate::{EntityId, Shooter, Tick, WorldError};

/// The server's side of a session with predicted players.
///
/// Call [`handle_packet`](Self::handle_packet) for what arrives, then [`poll_tick`](Self::poll_tick) until it returns `None`; after
/// each tick change [`world`](Self::world_mut) as the game wants and [`commit`](Self::commit); then
/// [`poll_packet`](Self::poll_packet) until `None`. [`Client`](super::Client) has an example of both sides.
///
/// ```
/// use muse_netcode::Tick;
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/runner.in"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let now = Instant::ZERO;
/// # let mut server = server(now);
/// let player = server.join(ClientId(1), &Runner { x: 2.0 })?;
/// server.watch(ClientId(2));
/// assert_eq!(server.poll_tick(now, &mut Rules, |_, ()| ()), Some(Tick(0)));
/// // The game's own changes: here a runner is out.
/// server.world_mut().despawn(player)?;
/// server.commit();
/// assert!(!server.world().contains(player));
/// // Every client gets a packet.
/// let (mut buffer, mut told) = ([0; 1_200], Vec::new());
/// while let Some((client, _len)) = server.poll_packet(now, &mut buffer) {
///     told.push(client);
/// }
/// assert_eq!(told, [ClientId(1), ClientId(2)]);
/// assert_eq!(server.poll_timeout(), Instant::from_millis(20));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server<G: Game> {
    config: SessionConfig,
    kind: Kind<G::Player>,
    world: World,
    scheduler: TickScheduler,
    clients: BTreeMap<ClientId, Guest<G::Input>>,
    scene: Scene<G>,
    /// The clients of players, in the order of their entities.
    played: Vec<(EntityId, ClientId)>,
    /// The scene's entities while it is made.
    joining: Vec<(EntityId, KindId, Option<ClientId>)>,
    /// The entities that players' steps spawned in the last tick.
    spawned: Vec<Spawned>,
    /// The tick that was simulated and is not committed.
    open: Option<(Tick, Instant)>,
    /// The next client whose packets of the committed tick are polled.
    sending: Option<ClientId>,
    /// The world of a while ago, for spectators.
    delayed: Option<Box<Delayed>>,
    tells_inputs: bool,
}

impl<G: Game> Server<G>
where
    G::Player: State,
{
    /// Makes a server whose tick 0 is at `now`, without players. `kind` is the kind of players.
    pub fn new(config: SessionConfig, kinds: Kinds, kind: Kind<G::Player>, now: Instant) -> Self {
        let kinds = kinds.with_tick_rate(config.tick_rate());
        let world = World::new(kinds);
        let delay = config.spectator_delay.as_micros() / config.tick.as_micros().max(1);
        Self {
            kind,
            tells_inputs: world.tells_inputs(kind.id()),
            scheduler: TickScheduler::new(config.tick, now, config.catch_up_max),
            clients: BTreeMap::new(),
            scene: Scene::new(Arc::clone(world.kinds()), kind),
            played: Vec::new(),
            joining: Vec::new(),
            spawned: Vec::new(),
            open: None,
            sending: None,
            delayed: (delay > 0).then(|| Box::new(Delayed::new(&world, delay as u32))),
            world,
            config,
        }
    }

    /// The world.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The world, to change it after a tick.
    pub const fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Adds a client, with a player of its own in this state. Returns that player's entity.
    pub fn join(&mut self, client: ClientId, state: &G::Player) -> Result<EntityId, WorldError> {
        let entity = self.world.spawn(self.kind, state)?;
        self.world.set_owner(entity, Some(client))?;
        self.watch(client);
        self.set_player(client, Some(entity));
        log!(debug, ?client, ?entity, "a client joined");
        Ok(entity)
    }

    /// Adds a client that only watches, and sees what happens as players do.
    pub fn watch(&mut self, client: ClientId) {
        let next = self.scheduler.next();
        let guest = Guest::new(&self.config, &self.world, client, next);
        self.clients.insert(client, guest);
    }

    /// Adds a client that watches what happened [`SessionConfig::spectator_delay`] ago, and so can tell no player what the player
    /// should not know. Nothing newer leaves the server for it.
    ///
    /// # Errors
    /// [`WorldError::NoDelay`] without such a delay.
    pub fn watch_delayed(&mut self, client: ClientId) -> Result<(), WorldError> {
        let delayed = self.delayed.as_ref().ok_or(WorldError::NoDelay)?;
        let next = self.scheduler.next().back(delayed.ticks());
        let mut guest = Guest::new(&self.config, delayed.world(), client, next);
        guest.is_delayed = true;
        self.clients.insert(client, guest);
        Ok(())
    }

    /// Marks a client as part of this program: its packets are polled with [`poll_packet_to`](Self::poll_packet_to), and
    /// [`poll_packet`](Self::poll_packet) leaves them out. [`LocalClient`](super::LocalClient) does this.
    pub fn set_local(&mut self, client: ClientId) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.is_local = true;
        }
    }

    /// Removes a client. Its player stays where it is until the game despawns it, and is returned.
    pub fn leave(&mut self, client: ClientId) -> Option<EntityId> {
        log!(debug, ?client, "a client left");
        self.clients.remove(&client)?.player
    }

    /// Gives a client another entity to play, or none; it must be of the players' kind.
    pub fn set_player(&mut self, client: ClientId, entity: Option<EntityId>) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.set_player(entity);
        }
    }

    /// Returns the entity that a client plays.
    pub fn player(&self, client: ClientId) -> Option<EntityId> {
        self.clients.get(&client)?.player
    }

    /// Returns the clients, in the order of their ids.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.clients.keys().copied()
    }

    /// Sets the entities that a client may see from now on, with weights (see [`ClientView::set_interest`]); a client for which this is never called sees
    /// everything. Its own player is always among it.
    pub fn set_interest(
        &mut self,
        client: ClientId,
        interest: impl IntoIterator<Item = (EntityId, f32)>,
    ) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.interest_set = true;
            let own = guest.player;
            let others = interest
                .into_iter()
                // Its own player is put in front with a weight of its own, and must not be there twice.
                .filter(|(entity, _)| Some(*entity) != own);
            guest.view.set_interest(
                own.map(|own| (own, PLAYER_WEIGHT))
                    .into_iter()
                    .chain(others),
            );
        }
    }

    /// Limits the bytes of a snapshot to this client, from the transport's congestion control; never more than
    /// [`SessionConfig::bytes_per_snapshot`].
    pub fn set_budget(&mut self, client: ClientId, bytes: usize) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.budget = bytes.min(self.config.bytes_per_snapshot);
        }
    }

    /// Returns the time from one snapshot to the next.
    pub fn snapshot_interval(&self) -> Duration {
        self.config.tick * u64::from(self.config.snapshot_interval)
    }

    /// Returns the client's side of replication: to emit events to it alone, and for its counters.
    pub fn view_mut(&mut self, client: ClientId) -> Option<(&World, &mut ClientView)> {
        let guest = self.clients.get_mut(&client)?;
        Some((&self.world, &mut guest.view))
    }

    /// Returns the input that was taken for the client in the tick that is being simulated.
    pub fn input(&self, client: ClientId) -> Option<&InputForTick<G::Input>> {
        Some(&self.clients.get(&client)?.taken)
    }

    /// Returns the counts of the client's inputs so far.
    pub fn input_counters(&self, client: ClientId) -> Option<&InputCounters> {
        Some(self.clients.get(&client)?.inputs.counters())
    }

    /// Returns the measured rate of the client's clock against the server's and how often it has been measured, for games that want to know
    /// which clients run too fast.
    pub fn clock_rate(&self, client: ClientId) -> Option<(f64, u64)> {
        Some(self.clients.get(&client)?.inputs.clock_rate())
    }

    /// Returns the mean round trip to the client; `None` before the first answer.
    pub fn round_trip(&self, client: ClientId) -> Option<Duration> {
        self.clients.get(&client)?.round_trip()
    }

    /// Returns what the server knows of a client that fires: its round trip, finer than ticks, the wait of its inputs and its own delay.
    pub fn shooter(&self, client: ClientId) -> Option<Shooter> {
        Some(self.clients.get(&client)?.shooter(self.config.tick))
    }

    /// Handles a packet of a client.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        client: ClientId,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let guest = self
            .clients
            .get_mut(&client)
            .ok_or(PacketError::UnknownClient)?;
        guest.handle_packet(now, bytes)
    }

    /// Begins the next tick if it is time: takes every client's input and runs the rules for the players and what they are
    /// simulated with. Commits the tick before if the
    /// game has not.
    pub fn poll_tick(
        &mut self,
        now: Instant,
        rules: &mut G,
        mut emitted: impl FnMut(ClientId, G::Event),
    ) -> Option<Tick> {
        // A game that changes nothing by itself need not call it.
        self.commit();
        let due = self.scheduler.poll(now)?;
        let past = self.delayed.as_ref().map_or(0, |delayed| delayed.ticks());
        self.played.clear();
        for (client, guest) in &mut self.clients {
            // The match stood still for so long; the next report says so, and clients shift their clocks.
            guest.inputs.handle_slip(due.slipped);
            let tick = match guest.is_delayed {
                true => due.tick.back(past),
                false => due.tick,
            };
            guest.take(tick, due.due);
            self.played
                .extend(guest.player.map(|player| (player, *client)));
        }
        self.set_scene();
        // A server simulates each tick once.
        self.scene.step(rules, due.tick, true);
        self.scene.write_back(&mut self.world);
        self.make_spawns();
        for (player, event) in self.scene.drain_events() {
            let found = self
                .played
                .binary_search_by_key(&player, |(entity, _)| *entity);
            if let Ok(found) = found {
                emitted(self.played[found].1, event);
            }
        }
        if self.tells_inputs {
            self.tell_inputs();
        }
        if G::PREDICTED_MAX > 0 {
            self.find_predicted(rules);
        }
        self.open = Some((due.tick, due.due));
        Some(due.tick)
    }

    /// Returns the entities that the players' steps spawned in the tick that was simulated last, in the order of players. The game may change or despawn them before
    /// it [commits](Self::commit): who fired sees one that is despawned fade.
    pub fn spawned(&self) -> &[Spawned] {
        &self.spawned
    }

    /// Makes entities of what the steps of the tick spawned.
    fn make_spawns(&mut self) {
        self.spawned.clear();
        for new in self.scene.take_spawns() {
            let NamedSpawn { key, kind, .. } = new;
            let found = self
                .played
                .binary_search_by_key(&new.player, |(entity, _)| *entity);
            let Some((_, client)) = found.ok().and_then(|found| self.played.get(found)) else {
                continue;
            };
            let made = self.world.spawn_keyed(kind, &new.row, *client, key);
            // A world that is full has no room for it, and whoever fired sees it fade.
            if let Ok(entity) = made {
                self.spawned.push(Spawned {
                    client: *client,
                    entity,
                    kind,
                    key,
                });
            }
        }
    }

    /// Puts players with their inputs, and what they are simulated with, into the scene: in the order of entities, which is the same on every machine.
    fn set_scene(&mut self) {
        self.played.sort_unstable();
        self.played.dedup_by_key(|(entity, _)| *entity);
        self.joining.clear();
        let players = self.played.iter();
        self.joining
            .extend(players.map(|(entity, client)| (*entity, self.kind.id(), Some(*client))));
        for kind in self.world.kinds().predicted(self.kind.id()) {
            let others = self.world.entities_of(kind);
            self.joining
                .extend(others.map(|entity| (entity, kind, None)));
        }
        self.joining.sort_unstable_by_key(|(entity, ..)| *entity);
        self.scene.clear();
        for (entity, kind, client) in &self.joining {
            let Some(row) = self.world.row(*kind, *entity) else {
                continue;
            };
            let guest = client.and_then(|client| self.clients.get(&client));
            let input = guest.map(|guest| guest.taken.input());
            self.scene.add(*entity, *kind, row, input);
        }
    }

    /// Tells everyone who sees a player what it does, to predict it by that.
    fn tell_inputs(&mut self) {
        for (player, client) in &self.played {
            if let Some(guest) = self.clients.get(client) {
                let input = G::shared(&guest.taken.input());
                tell_input(&mut self.world, *player, &input);
            }
        }
    }

    /// Finds out what each client predicts, which is then in each of its snapshots.
    fn find_predicted(&mut self, rules: &G) {
        let kinds = self.world.kinds();
        for (player, client) in &self.played {
            let Some(own) = self.scene.player(*player) else {
                continue;
            };
            let members = self.scene.members().iter();
            let others = members.filter(|member| member.entity != *player);
            let predicted = others.filter(|member| {
                let candidate = Candidate {
                    kinds,
                    entity: member.entity,
                    kind: member.kind,
                    row: self.scene.row_of(member),
                };
                rules.predicts(&own, &candidate).is_some()
            });
            if let Some(guest) = self.clients.get_mut(client) {
                guest
                    .view
                    .set_predicted(predicted.map(|member| member.entity));
            }
        }
    }

    /// Ends a tick: clients will be told the world as it is now.
    pub fn commit(&mut self) {
        let Some((tick, due)) = self.open.take() else {
            return;
        };
        // Ticks only grow, which is all that could be wrong.
        let _ = self.world.commit(tick);
        // After the commit, of which it takes note, and before any view is begun, which may be one of the past.
        if let Some(delayed) = &mut self.delayed {
            delayed.handle_commit(&self.world, tick);
        }
        if tick.0 % self.config.snapshot_interval == 0 {
            for guest in self.clients.values_mut() {
                guest.begin(seen(&self.world, &self.delayed, guest), due);
            }
            self.sending = self.clients.keys().next().copied();
        }
    }

    /// Writes the next packet to the front of `buffer` and says whose it is and how long; `None` when there is none.
    pub fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(ClientId, usize)> {
        loop {
            let client = self.sending?;
            if let Some(guest) = self.clients.get_mut(&client)
                && !guest.is_local
                && let world = seen(&self.world, &self.delayed, guest)
                && let Some(len) = guest.poll_packet(world, now, buffer)
            {
                return Some((client, len));
            }
            // By id and not by position, since clients may come and go between two calls.
            let after = (Bound::Excluded(client), Bound::Unbounded);
            let following = self.clients.range(after).next();
            self.sending = following.map(|(client, _)| *client);
        }
    }

    /// Writes the next packet of the last committed tick to this client alone, which is in this program
    /// ([`set_local`](Self::set_local)).
    pub fn poll_packet_to(
        &mut self,
        now: Instant,
        client: ClientId,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let guest = self.clients.get_mut(&client)?;
        let world = seen(&self.world, &self.delayed, guest);
        guest.poll_packet(world, now, buffer)
    }

    /// Returns the time at which [`poll_tick`](Self::poll_tick) has something next.
    pub fn poll_timeout(&self) -> Instant {
        self.scheduler.poll_timeout()
    }

    /// Returns the ticks of time that the server let go because it could not keep up.
    pub fn slipped(&self) -> u64 {
        self.scheduler.slipped()
    }
}

/// An entity that a player's step spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// The client whose player did; it owns the entity.
    pub client: ClientId,
    /// The entity.
    pub entity: EntityId,
    /// Its kind.
    pub kind: KindId,
    /// The key by which the client knows it.
    pub key: SpawnKey,
}

/// The world that a client sees.
fn seen<'a, I>(world: &'a World, delayed: &'a Option<Box<Delayed>>, guest: &Guest<I>) -> &'a World {
    match delayed {
        Some(delayed) if guest.is_delayed => delayed.world(),
        _ => world,
    }
}

/// Tells the input of a player to everyone who sees it, to predict it by that. An input that is too long is not told.
fn tell_input<I: Schema>(world: &mut World, player: EntityId, input: &I) {
    let mut bytes = [0; INPUT_BYTES_MAX];
    let mut writer = BitWriter::new(&mut bytes);
    if input.write(&Options::NONE, &mut writer).is_ok() {
        let len = writer.finish();
        // The player is there, and the input is not too long.
        let _ = world.set_input(player, &bytes[..len]);
    }
}
