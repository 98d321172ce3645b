//! The server of a game: inputs in, a step for each player, snapshots out (NC-1, NC-2, NC-7, NC-12, NC-34, NC-35).
//!
//! It ties together what the other modules do, in the order of a tick: take inputs, simulate players, let the game do the rest,
//! commit the world, make packets. A game that wants another order uses the modules themselves.

use std::collections::BTreeMap;

use muse_schema::{BitReader, State};
use muse_wire::{Duration, Instant};

use super::format::{FromClient, ToClient};
use super::{PacketError, SessionConfig};
use crate::inputs::{InputBuffer, InputCounters, InputForTick};
use crate::prediction::{Step, StepContext, run_step};
use crate::replication::View;
use crate::rewind::Shooter;
use crate::scheduler::TickScheduler;
use crate::world::{ClientId, Kind, Kinds, World};
use crate::{EntityId, Tick, WorldError};

/// The server's side of a session with predicted players.
///
/// Call [`handle_packet`](Self::handle_packet) for what arrives, then [`poll_tick`](Self::poll_tick) until it returns `None`; after
/// each tick change [`world`](Self::world_mut) as the game wants and [`commit`](Self::commit); then
/// [`poll_packet`](Self::poll_packet) until `None`. [`Client`](super::Client) has an example of both sides.
#[derive(Debug)]
pub struct Server<G: Step> {
    config: SessionConfig,
    kind: Kind<G::State>,
    world: World,
    scheduler: TickScheduler,
    clients: BTreeMap<ClientId, Guest<G::Input>>,
    /// The tick that was simulated and is not committed.
    open: Option<(Tick, Instant)>,
    /// The committed tick whose packets are being polled, when it was due, and who comes next.
    sending: Option<(Instant, Option<ClientId>)>,
}

/// What the server has of one client.
#[derive(Debug)]
struct Guest<I> {
    inputs: InputBuffer<I>,
    taken: InputForTick<I>,
    view: View,
    /// The client's entity, and how often that has changed; the client is told until it says that it knows.
    player: Option<EntityId>,
    player_version: u8,
    player_known: bool,
    /// Whether the game decides what the client sees; otherwise it sees everything.
    interest_set: bool,
    interpolation: Duration,
    budget: usize,
    round: Round,
}

/// The packets of one tick to one client.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    packets: u8,
    number: u16,
}

impl<G: Step> Server<G>
where
    G::State: State,
{
    /// A server whose tick 0 is at `now`, without players. `kind` is what players are.
    pub fn new(config: SessionConfig, kinds: Kinds, kind: Kind<G::State>, now: Instant) -> Self {
        Self {
            kind,
            world: World::new(kinds),
            scheduler: TickScheduler::new(config.tick, now).catch_up_max(config.catch_up_max),
            clients: BTreeMap::new(),
            open: None,
            sending: None,
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

    /// A client comes, with a player of its own in this state.
    pub fn join(&mut self, client: ClientId, state: &G::State) -> Result<EntityId, WorldError> {
        let entity = self.world.spawn(self.kind, state)?;
        self.world.set_owner(entity, Some(client))?;
        self.watch(client);
        self.set_player(client, Some(entity));
        Ok(entity)
    }

    /// A client comes who only watches.
    pub fn watch(&mut self, client: ClientId) {
        let next = self.scheduler.next();
        let guest = Guest {
            inputs: InputBuffer::new(self.config.inputs, next),
            taken: InputForTick::Missing,
            view: View::new(&self.world, client),
            player: None,
            player_version: 0,
            player_known: false,
            interest_set: false,
            interpolation: Duration::ZERO,
            budget: self.config.bytes_per_snapshot,
            round: Round::default(),
        };
        self.clients.insert(client, guest);
    }

    /// A client goes; its player stays where it is until the game despawns it. Says which that is.
    pub fn leave(&mut self, client: ClientId) -> Option<EntityId> {
        self.clients.remove(&client)?.player
    }

    /// Gives a client another entity to play, or none; it must be of the players' kind.
    pub fn set_player(&mut self, client: ClientId, entity: Option<EntityId>) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.player = entity;
            guest.player_version = guest.player_version.wrapping_add(1);
            guest.player_known = false;
            guest.view.set_player(entity);
        }
    }

    /// The entity that a client plays.
    pub fn player(&self, client: ClientId) -> Option<EntityId> {
        self.clients.get(&client)?.player
    }

    /// The clients, in the order of their numbers.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.clients.keys().copied()
    }

    /// What a client may see from now on, with weights (see [`View::set_interest`]); a client for which this is never called sees
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
                .filter(|(entity, _)| Some(*entity) != own);
            guest.view.set_interest(
                own.map(|own| (own, PLAYER_WEIGHT))
                    .into_iter()
                    .chain(others),
            );
        }
    }

    /// Bytes that a snapshot to this client may have, from the transport's congestion control; never more than
    /// [`SessionConfig::bytes_per_snapshot`].
    pub fn set_budget(&mut self, client: ClientId, bytes: usize) {
        if let Some(guest) = self.clients.get_mut(&client) {
            guest.budget = bytes.min(self.config.bytes_per_snapshot);
        }
    }

    /// The time from one snapshot to the next.
    pub fn snapshot_interval(&self) -> Duration {
        self.config.tick * u64::from(self.config.snapshot_interval)
    }

    /// The client's side of replication: to emit events to it alone, and for its counters.
    pub fn view_mut(&mut self, client: ClientId) -> Option<(&World, &mut View)> {
        let guest = self.clients.get_mut(&client)?;
        Some((&self.world, &mut guest.view))
    }

    /// What was taken for the client in the tick that is being simulated.
    pub fn input(&self, client: ClientId) -> Option<&InputForTick<G::Input>> {
        Some(&self.clients.get(&client)?.taken)
    }

    /// How the client's inputs have come so far.
    pub fn input_counters(&self, client: ClientId) -> Option<&InputCounters> {
        Some(self.clients.get(&client)?.inputs.counters())
    }

    /// What is known of a client that fires, to admit its shot by [`Rewind::admit`](crate::rewind::Rewind::admit).
    pub fn shooter(&self, client: ClientId) -> Option<Shooter> {
        let guest = self.clients.get(&client)?;
        let rtt = self.config.tick.as_secs_f64() * f64::from(guest.view.delay_ticks());
        Some(Shooter {
            rtt: Duration::from_secs_f64(rtt),
            jitter: guest.inputs.jitter_p99(),
            interpolation: guest.interpolation,
            buffered: self.config.tick,
        })
    }

    /// A packet of a client arrived.
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
        let (header, rest) = FromClient::parse(bytes)?;
        guest.player_known |= header.player_version == guest.player_version;
        guest.interpolation = header.interpolation();
        let len = guest.view.handle_acknowledgement(rest)?;
        let rest = rest.get(len..).unwrap_or_default();
        guest.inputs.handle_packet(now, &mut BitReader::new(rest))?;
        Ok(())
    }

    /// Begins the next tick if it is time: takes every client's input and runs the rules for its player. Commits the tick before if the
    /// game has not.
    pub fn poll_tick(
        &mut self,
        now: Instant,
        rules: &mut G,
        mut raised: impl FnMut(ClientId, G::Event),
    ) -> Option<Tick> {
        self.commit();
        let due = self.scheduler.poll(now)?;
        for (client, guest) in &mut self.clients {
            guest.inputs.handle_slip(due.slipped);
            guest.taken = guest.inputs.take(due.tick, due.due);
            let Some(player) = guest.player else {
                continue;
            };
            let Some(mut state) = self.world.state(self.kind, player) else {
                continue;
            };
            let raise = &mut |event| raised(*client, event);
            let mut context = StepContext::new(due.tick, true, raise);
            run_step(rules, &mut state, &guest.taken.input(), &mut context);
            // It was read from there, so it is there.
            let _ = self.world.set(self.kind, player, &state);
        }
        self.open = Some((due.tick, due.due));
        Some(due.tick)
    }

    /// Ends a tick: what the world is like now is what clients will be told of it.
    pub fn commit(&mut self) {
        let Some((tick, due)) = self.open.take() else {
            return;
        };
        // Ticks only grow, which is all that could be wrong.
        let _ = self.world.commit(tick);
        if tick.0 % self.config.snapshot_interval == 0 {
            for guest in self.clients.values_mut() {
                if !guest.interest_set {
                    let player = guest.player;
                    let weight = |entity| match Some(entity) == player {
                        true => PLAYER_WEIGHT,
                        false => 1.0,
                    };
                    let everything = self.world.entities().map(|entity| (entity, weight(entity)));
                    guest.view.set_interest(everything);
                }
                guest.view.begin(&self.world, guest.budget);
                guest.round.packets = 0;
                guest.round.number = guest.round.number.wrapping_add(1);
            }
            let first = self.clients.keys().next().copied();
            self.sending = Some((due, first));
        }
    }

    /// Writes the next packet to the front of `buffer` and says whose it is and how long; `None` when there is none.
    pub fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(ClientId, usize)> {
        loop {
            let (due, next) = self.sending?;
            let Some(client) = next else {
                self.sending = None;
                return None;
            };
            if let Some(guest) = self.clients.get_mut(&client)
                && let Some(len) = guest.poll_packet(&self.world, now, due, buffer)
            {
                return Some((client, len));
            }
            let after = (
                std::ops::Bound::Excluded(client),
                std::ops::Bound::Unbounded,
            );
            let following = self.clients.range(after).next().map(|(client, _)| *client);
            self.sending = Some((due, following));
        }
    }

    /// When [`poll_tick`](Self::poll_tick) has something next.
    pub fn poll_timeout(&self) -> Instant {
        self.scheduler.poll_timeout()
    }

    /// Ticks of time that the server let go because it could not keep up.
    pub fn slipped(&self) -> u64 {
        self.scheduler.slipped()
    }
}

impl<I: crate::inputs::Input> Guest<I> {
    fn poll_packet(
        &mut self,
        world: &World,
        now: Instant,
        due: Instant,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let first = self.round.packets == 0;
        let mut header = ToClient {
            packets: 0,
            report: first.then(|| (self.round.number, self.inputs.report(now, due))),
            player: (first && !self.player_known).then_some((self.player_version, self.player)),
        };
        // The count of the packets is at the front, and known when the last is made.
        let start = header.emit(buffer).ok()?;
        let len = self.view.poll_packet(world, buffer.get_mut(start..)?)?;
        self.round.packets = self.round.packets.saturating_add(1);
        if self.view.is_round_whole() {
            header.packets = self.round.packets;
            header.emit(buffer).ok()?;
        }
        Some(start + len)
    }
}

/// How much more urgent than others a client's own player is.
const PLAYER_WEIGHT: f32 = 16.0;
