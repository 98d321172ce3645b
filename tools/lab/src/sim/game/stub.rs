//! The laboratory's little game: characters on a plane, who are told of what is near them and of nothing else.

use std::collections::{BTreeMap, BTreeSet};

use glam::Vec2;
use muse::session::PACKET_BYTES;
use muse_master_client::AccountId;
use muse_netcode::{Client, ClientId, EntityId, Server, SessionConfig, Tick};
use muse_wire::{Duration, Instant};

use super::Whom;
use crate::character::{Body, Rules, kinds, play};
use crate::crowd::Crowd;

/// The server's side.
pub(super) struct Hosted {
    server: Server<Rules>,
    crowd: Crowd,
    accounts: BTreeMap<ClientId, AccountId>,
    /// The entities that each player may see, from which tick on.
    interest: BTreeMap<AccountId, Vec<(Tick, BTreeSet<EntityId>)>>,
    random: fastrand::Rng,
}

impl Hosted {
    pub(super) fn new(now: Instant, seed: u64) -> Self {
        let (all, body) = kinds();
        let mut server = Server::new(session(), all, body, now);
        let crowd = Crowd::spawn(&mut server, BOTS, EDGE, seed % 1_000_000);
        Self {
            server,
            crowd,
            accounts: BTreeMap::new(),
            interest: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Tells each client of the entities within reach of its player.
    fn look_around(&mut self) {
        let kind = kinds().1;
        let world = self.server.world();
        let places: Vec<(EntityId, Vec2)> = world
            .entities()
            .filter_map(|entity| Some((entity, world.state(kind, entity)?.place())))
            .collect();
        // From the next tick on, for this one may have been told already.
        let since = world.tick().map_or(Tick(0), |tick| tick + 1);
        for (client, account) in &self.accounts {
            let own = self.server.player(*client);
            let Some((own, place)) = places.iter().find(|(entity, _)| Some(*entity) == own) else {
                continue;
            };
            let near = |other: &&(EntityId, Vec2)| other.1.distance(*place) < REACH;
            let seen: BTreeSet<EntityId> = places
                .iter()
                .filter(near)
                .map(|(entity, _)| *entity)
                .collect();
            let others = seen.iter().filter(|entity| *entity != own);
            self.server
                .set_interest(*client, others.map(|entity| (*entity, 1.0)));
            let changes = self.interest.entry(*account).or_default();
            if changes.last().is_none_or(|(_, last)| *last != seen) {
                changes.push((since, seen));
            }
            if changes.len() > CHANGES_MAX {
                changes.remove(0);
            }
        }
    }
}

impl super::Hosted for Hosted {
    fn join(&mut self, client: ClientId, account: AccountId) -> bool {
        let mut place = || (self.random.f32() - 0.5) * EDGE;
        let start = Body::at(place(), place());
        if self.server.join(client, &start).is_err() {
            return false;
        }
        self.accounts.insert(client, account);
        self.interest.remove(&account);
        self.look_around();
        true
    }

    fn leave(&mut self, client: ClientId) {
        self.accounts.remove(&client);
        if let Some(entity) = self.server.leave(client) {
            // It is the player's own, and was there.
            let _ = self.server.world_mut().despawn(entity);
        }
    }

    fn handle_packet(&mut self, now: Instant, client: ClientId, packet: &[u8]) {
        // Nonsense of hostile players is refused, and does no harm.
        let _ = self.server.handle_packet(now, client, packet);
    }

    fn handle_message(&mut self, _: ClientId, _: &[u8]) {}

    fn due(&self) -> Instant {
        self.server.poll_timeout()
    }

    fn tick(&mut self, now: Instant, send: &mut dyn FnMut(Whom, &[u8])) {
        let mut buffer = [0; PACKET_BYTES];
        while let Some(tick) = self.server.poll_tick(now, &mut Rules, |_, ()| ()) {
            self.crowd.step(&mut self.server, tick);
            if tick.0.is_multiple_of(INTEREST_TICKS) {
                self.look_around();
            }
            self.server.commit();
            while let Some((client, len)) = self.server.poll_packet(now, &mut buffer) {
                send(Whom::Packet(client), &buffer[..len]);
            }
        }
    }

    fn is_over(&self) -> bool {
        false
    }

    fn shows(&self, account: AccountId, entity: EntityId, tick: Tick) -> bool {
        // Unknown players were never told anything.
        let Some(changes) = self.interest.get(&account) else {
            return false;
        };
        let after = changes.partition_point(|(since, _)| *since <= tick);
        let set = after.checked_sub(1).and_then(|index| changes.get(index));
        set.is_none_or(|(_, set)| set.contains(&entity))
    }
}

/// A player's side.
pub(super) struct Played {
    client: Client<Rules>,
    account: AccountId,
}

impl Played {
    pub(super) fn new(local: Instant, account: AccountId) -> Self {
        let (all, body) = kinds();
        Self {
            client: Client::new(session(), all, body, Body::distance, local),
            account,
        }
    }
}

impl super::Played for Played {
    fn handle_packet(&mut self, local: Instant, packet: &[u8]) {
        // Late and doubled packets are refused, as they should be.
        let _ = self.client.handle_packet(local, &mut Rules, packet);
        while self.client.poll_update().is_some() {}
        while self.client.poll_event().is_some() {}
    }

    fn handle_message(&mut self, _: &[u8]) {}

    fn due(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    fn play(&mut self, local: Instant, send: &mut dyn FnMut(&mut [u8])) {
        let mut buffer = [0; PACKET_BYTES];
        let seed = self.account.0;
        let keys = |tick| play(seed, tick);
        while let Some(len) = self
            .client
            .poll_packet(local, &mut Rules, keys, &mut buffer)
        {
            send(&mut buffer[..len]);
        }
    }

    fn poll_message(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn sees(&self, look: &mut dyn FnMut(EntityId, Tick)) {
        let receiver = self.client.receiver();
        for entity in receiver.entities() {
            if let Some((tick, _)) = receiver.state(kinds().1, entity) {
                look(entity, tick);
            }
        }
    }
}

/// For both sides.
fn session() -> SessionConfig {
    SessionConfig::new(TICK).bytes_per_snapshot(900)
}

/// 25 ticks a second.
const TICK: Duration = Duration::from_millis(40);
const BOTS: u64 = 10;
/// Of the square in which everybody starts, in metres.
const EDGE: f32 = 120.0;
/// The distance at which players see others.
const REACH: f32 = 45.0;
const INTEREST_TICKS: u32 = 10;
/// Sets of visible entities that are remembered: ten seconds at least.
const CHANGES_MAX: usize = 64;
