//! A server and its clients in one process and in virtual time: what clients get is compared with what the server had, and
//! what the clients answered is kept, so that the server's part can be run again alone.

use std::collections::VecDeque;

use anyhow::ensure;
use fastrand::Rng;
use muse::session::PACKET_BYTES;
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{
    Client, ClientId, EntityId, Kind, KindOptions, Kinds, Server, SessionConfig, Tick,
};
use muse_schema::{RowWriter, State};
use muse_wire::{Duration, Instant};

use crate::cubes::motion::{Body, Moving, TICKS_PER_SECOND};

/// The numbers of entities and clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) entities: usize,
    pub(crate) clients: usize,
    pub(crate) ticks: usize,
    pub(crate) interest: Interest,
}

/// The part of the world that a client sees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// All entities but every fiftieth, others for each client, and others again in each second.
    Nearly,
    /// So many neighbours, others for each client.
    Some(usize),
}

/// Rules without players: every client watches.
struct Watching;

impl Game for Watching {
    type Player = Body;
    type Input = bool;
    type Event = ();

    fn step(&mut self, _: &mut Body, _: &bool, _: &mut StepContext<'_, ()>) {}
}

/// The shipped server, which moves its entities as the script says.
pub(crate) struct Replication {
    game: Server<Watching>,
    kind: Kind<Body>,
    entities: Vec<EntityId>,
    has_clients: bool,
    setup: Setup,
}

/// All that a server needs to be run again: states by tick, and the clients' packets by tick.
pub(crate) struct Script {
    states: Vec<Vec<Body>>,
    packets: Vec<Vec<Packet>>,
}

/// A packet of a client, and when it arrives.
struct Packet {
    client: ClientId,
    at: u64,
    bytes: Vec<u8>,
}

/// Traffic over the links.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Sum of the entities that clients see over ticks and clients.
    pub(crate) seen: u64,
    pub(crate) rows_compared: u64,
    pub(crate) packets_refused: u64,
}

/// The shipped client with its links.
struct Watcher {
    game: Client<Watching>,
    /// Milliseconds one way.
    delay: u64,
    down: VecDeque<(u64, Vec<u8>)>,
    up: VecDeque<(u64, Vec<u8>)>,
}

impl Script {
    /// States of all entities at each tick, and no packets yet.
    fn new(setup: &Setup) -> Self {
        let mut rng = Rng::with_seed(1);
        let mut bodies: Vec<Moving> = (0..setup.entities).map(|_| Moving::new(&mut rng)).collect();
        let mut states = Vec::with_capacity(setup.ticks);
        for _ in 0..setup.ticks {
            for body in &mut bodies {
                body.step(&mut rng);
            }
            states.push(bodies.iter().map(|body| body.body.clone()).collect());
        }
        Self {
            states,
            packets: Vec::with_capacity(setup.ticks),
        }
    }

    pub(crate) fn ticks(&self) -> usize {
        self.states.len()
    }
}

impl Replication {
    /// A server with all clients of the setup, or with none.
    pub(crate) fn new(setup: Setup, script: &Script, with_clients: bool) -> anyhow::Result<Self> {
        let (kinds, kind) = kinds()?;
        let mut game = Server::new(session(), kinds, kind, Instant::ZERO);
        let entities = script.states[0]
            .iter()
            .map(|body| game.world_mut().spawn(kind, body))
            .collect::<Result<_, _>>()?;
        let clients = if with_clients { setup.clients } else { 0 };
        for client in 0..clients as u32 {
            game.watch(ClientId(client));
        }
        Ok(Self {
            game,
            kind,
            entities,
            has_clients: with_clients,
            setup,
        })
    }

    /// Runs a tick: takes the packets that have arrived, moves the entities, and gives every packet to `send`.
    pub(crate) fn tick(
        &mut self,
        script: &Script,
        tick: usize,
        mut send: impl FnMut(ClientId, &[u8]),
    ) -> anyhow::Result<()> {
        let now = at(tick as u64 * TICK_MS);
        let packets = script.packets.get(tick).into_iter().flatten();
        for packet in packets.filter(|_| self.has_clients) {
            let (client, bytes) = (packet.client, &packet.bytes);
            self.game.handle_packet(at(packet.at), client, bytes)?;
        }
        let due = self.game.poll_tick(now, &mut Watching, |_, ()| ());
        ensure!(due == Some(Tick(tick as u32)), "tick {tick} is not due");
        for (entity, body) in self.entities.iter().zip(&script.states[tick]) {
            self.game.world_mut().set(self.kind, *entity, body)?;
        }
        self.choose(tick);
        self.game.commit();
        let mut buffer = [0; PACKET_BYTES];
        while let Some((client, len)) = self.game.poll_packet(now, &mut buffer) {
            send(client, &buffer[..len]);
        }
        Ok(())
    }

    /// Says what each client sees, once a second.
    fn choose(&mut self, tick: usize) {
        let seconds = tick / TICKS_PER_SECOND as usize;
        let changes = tick == 0 || matches!(self.setup.interest, Interest::Nearly);
        if !tick.is_multiple_of(TICKS_PER_SECOND as usize) || !changes {
            return;
        }
        let clients: Vec<ClientId> = self.game.clients().collect();
        for client in clients {
            let number = client.0 as usize;
            let seen = (0..self.entities.len())
                .filter(|&index| self.setup.sees(number, index, seconds))
                .map(|index| (self.entities[index], 1.0));
            self.game.set_interest(client, seen);
        }
    }
}

impl Setup {
    fn sees(&self, client: usize, index: usize, seconds: usize) -> bool {
        match self.interest {
            Interest::Nearly => !(index + client * 7 + seconds * 11).is_multiple_of(50),
            Interest::Some(count) => {
                let apart = self.entities / self.clients.max(1);
                (index + self.entities - client * apart) % self.entities < count
            }
        }
    }

    fn seen(&self, client: usize, seconds: usize) -> usize {
        (0..self.entities)
            .filter(|&index| self.sees(client, index, seconds))
            .count()
    }
}

/// Runs everything, compares every state that a client decodes, and keeps what is needed to run the server alone.
pub(crate) fn simulate(setup: Setup) -> anyhow::Result<(Script, Traffic)> {
    let mut script = Script::new(&setup);
    let mut server = Replication::new(setup, &script, true)?;
    let mut clients = (0..setup.clients)
        .map(|number| Watcher::new(number, setup.clients))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut rng = Rng::with_seed(2);
    let mut traffic = Traffic::default();
    for tick in 0..setup.ticks {
        let now = tick as u64 * TICK_MS;
        let mut packets = Vec::new();
        for (number, client) in (0..).zip(&mut clients) {
            client.run_until(now, &server, &script, &mut rng, &mut traffic)?;
            while let Some((at, bytes)) = next_until(&mut client.up, now) {
                let client = ClientId(number);
                packets.push(Packet { client, at, bytes });
            }
        }
        script.packets.push(packets);
        let is_warm = tick >= TICKS_WARM;
        server.tick(&script, tick, |client, packet| {
            if is_warm {
                traffic.packets += 1;
                traffic.bytes += packet.len() as u64;
            }
            let client = &mut clients[client.0 as usize];
            if rng.f32() >= LOSS {
                let arrival = now + client.delay;
                client.down.push_back((arrival, packet.to_vec()));
            }
        })?;
        if is_warm {
            let seconds = tick / TICKS_PER_SECOND as usize;
            let seen = (0..setup.clients).map(|number| setup.seen(number, seconds) as u64);
            traffic.seen += seen.sum::<u64>();
        }
    }
    ensure!(traffic.rows_compared > 0, "no client decoded anything");
    Ok((script, traffic))
}

impl Watcher {
    /// Round trips are spread evenly from 20 to 160 ms.
    fn new(number: usize, count: usize) -> anyhow::Result<Self> {
        let round_trip = 20 + 140 * number as u64 / (count as u64 - 1).max(1);
        let (kinds, kind) = kinds()?;
        Ok(Self {
            game: Client::new(session(), kinds, kind, |_, _| 0.0, Instant::ZERO),
            delay: round_trip / 2,
            down: VecDeque::new(),
            up: VecDeque::new(),
        })
    }

    /// Lives through the milliseconds since the last tick: takes packets as they arrive, and answers as the client's clock says.
    fn run_until(
        &mut self,
        now: u64,
        server: &Replication,
        script: &Script,
        rng: &mut Rng,
        traffic: &mut Traffic,
    ) -> anyhow::Result<()> {
        let mut buffer = [0; PACKET_BYTES];
        for now in now.saturating_sub(TICK_MS - 1)..=now {
            let mut is_told = false;
            while let Some((_, packet)) = next_until(&mut self.down, now) {
                let taken = self.game.handle_packet(at(now), &mut Watching, &packet);
                traffic.packets_refused += u64::from(taken.is_err());
                is_told = true;
            }
            if is_told {
                self.compare(server, script, traffic)?;
            }
            while let Some(len) =
                self.game
                    .poll_packet(at(now), &mut Watching, |_| false, &mut buffer)
            {
                if rng.f32() >= LOSS {
                    let arrival = now + self.delay;
                    self.up.push_back((arrival, buffer[..len].to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Every state that is new must be what the server had.
    fn compare(
        &mut self,
        server: &Replication,
        script: &Script,
        traffic: &mut Traffic,
    ) -> anyhow::Result<()> {
        while self.game.poll_update().is_some() {}
        let (kind, receiver) = (server.kind.id(), self.game.receiver());
        let mut truth = [0; 10];
        for (index, entity) in server.entities.iter().enumerate() {
            if let Some((tick, row)) = receiver.row(kind, *entity)
                && Some(tick) == receiver.tick()
            {
                let body = &script.states[tick.0 as usize][index];
                body.store(&mut RowWriter::new(&mut truth));
                ensure!(truth == row, "{entity:?} of {tick:?} was decoded wrongly");
                traffic.rows_compared += 1;
            }
        }
        Ok(())
    }
}

/// Returns the next that has arrived by now, and when it did.
fn next_until(link: &mut VecDeque<(u64, Vec<u8>)>, now: u64) -> Option<(u64, Vec<u8>)> {
    let is_due = link.front().is_some_and(|(due, _)| *due <= now);
    is_due.then(|| link.pop_front()).flatten()
}

fn kinds() -> anyhow::Result<(Kinds, Kind<Body>)> {
    let mut kinds = Kinds::new();
    let kind = kinds.register(KindOptions::new(1))?;
    Ok((kinds, kind))
}

/// With more room in a snapshot than is ever needed.
fn session() -> SessionConfig {
    SessionConfig::new(Duration::from_millis(TICK_MS)).bytes_per_snapshot(1 << 20)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

const TICK_MS: u64 = 50;
const LOSS: f32 = 0.02;
/// Ticks until every client has joined.
pub(crate) const TICKS_WARM: usize = 20;
