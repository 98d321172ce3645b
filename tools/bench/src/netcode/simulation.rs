//! A server and its clients in one process and in virtual time: what clients get is compared with what the server had, and
//! what the clients answered is kept, so that the server's part can be run again alone.

use std::collections::VecDeque;

use anyhow::ensure;
use fastrand::Rng;
use muse_netcode::{
    Acknowledgement, ClientId, ClientView, EntityId, Kind, KindOptions, Kinds, Receiver, Tick,
    World,
};

use muse_schema::{RowWriter, State};

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

/// A server with its clients' views.
pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) views: Vec<ClientView>,
    kind: Kind<Body>,
    entities: Vec<EntityId>,
    setup: Setup,
}

/// All that a server needs to be run again: states by tick, answers by tick and client.
pub(crate) struct Script {
    states: Vec<Vec<Body>>,
    answers: Vec<Vec<Vec<u8>>>,
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

/// A client with its links.
struct Client {
    receiver: Receiver,
    /// Milliseconds one way.
    delay: u64,
    down: VecDeque<(u64, Vec<u8>)>,
    up: VecDeque<(u64, Vec<u8>)>,
}

impl Script {
    /// States of all entities at each tick, and no answers yet.
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
            answers: Vec::with_capacity(setup.ticks),
        }
    }

    pub(crate) fn ticks(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn answers(&self, tick: usize, client: usize) -> &[u8] {
        &self.answers[tick][client]
    }
}

impl Server {
    pub(crate) fn new(setup: Setup, script: &Script) -> anyhow::Result<Self> {
        let (kinds, kind) = kinds()?;
        let mut world = World::new(kinds);
        let entities = script.states[0]
            .iter()
            .map(|body| world.spawn(kind, body))
            .collect::<Result<_, _>>()?;
        let views = (0..setup.clients as u32)
            .map(|client| ClientView::new(&world, ClientId(client)))
            .collect();
        Ok(Self {
            world,
            views,
            kind,
            entities,
            setup,
        })
    }

    /// What is done once for all clients: states become those of the tick.
    pub(crate) fn share(&mut self, script: &Script, tick: usize) -> anyhow::Result<()> {
        for (entity, body) in self.entities.iter().zip(&script.states[tick]) {
            self.world.set(self.kind, *entity, body)?;
        }
        self.world.commit(Tick(tick as u32 + 1))?;
        Ok(())
    }

    /// What is done for a client: its answers are taken, its packets made. Says how many bytes that were.
    pub(crate) fn serve(
        &mut self,
        client: usize,
        tick: usize,
        answers: &[u8],
        mut send: impl FnMut(&[u8]),
    ) -> anyhow::Result<usize> {
        let view = &mut self.views[client];
        let mut rest = answers;
        while !rest.is_empty() {
            let len = view.handle_acknowledgement(rest)?;
            rest = &rest[len..];
        }
        let seconds = tick / TICKS_PER_SECOND as usize;
        if tick.is_multiple_of(TICKS_PER_SECOND as usize)
            && (tick == 0 || matches!(self.setup.interest, Interest::Nearly))
        {
            let seen = (0..self.entities.len())
                .filter(|&index| self.setup.sees(client, index, seconds))
                .map(|index| (self.entities[index], 1.0));
            view.set_interest(seen);
        }
        view.begin(&self.world, BUDGET);
        let mut buffer = [0; PACKET_BYTES];
        let mut sum = 0;
        while let Some(len) = view.poll_packet(&self.world, &mut buffer) {
            send(&buffer[..len]);
            sum += len;
        }
        Ok(sum)
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
    let mut server = Server::new(setup, &script)?;
    let mut clients = (0..setup.clients)
        .map(|number| Client::new(number, setup.clients))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut rng = Rng::with_seed(2);
    let mut traffic = Traffic::default();
    for tick in 0..setup.ticks {
        let now = tick as u64 * TICK_MS;
        server.share(&script, tick)?;
        let mut answers = Vec::with_capacity(setup.clients);
        for (number, client) in clients.iter_mut().enumerate() {
            client.run_until(now, &server, &script, &mut rng, &mut traffic)?;
            let answer = client.answers_until(now);
            let down = &mut client.down;
            let delay = client.delay;
            let is_warm = tick >= TICKS_WARM;
            let bytes = server.serve(number, tick, &answer, |packet| {
                traffic.packets += u64::from(is_warm);
                if rng.f32() >= LOSS {
                    down.push_back((now + delay, packet.to_vec()));
                }
            })?;
            if is_warm {
                let seconds = tick / TICKS_PER_SECOND as usize;
                traffic.bytes += bytes as u64;
                traffic.seen += setup.seen(number, seconds) as u64;
            }
            answers.push(answer);
        }
        script.answers.push(answers);
    }
    ensure!(traffic.rows_compared > 0, "no client decoded anything");
    Ok((script, traffic))
}

impl Client {
    /// Round trips are spread evenly from 20 to 160 ms.
    fn new(number: usize, count: usize) -> anyhow::Result<Self> {
        let round_trip = 20 + 140 * number as u64 / (count as u64 - 1).max(1);
        let mut receiver = Receiver::new(kinds()?.0);
        receiver.set_game(0);
        Ok(Self {
            receiver,
            delay: round_trip / 2,
            down: VecDeque::new(),
            up: VecDeque::new(),
        })
    }

    /// Takes packets as they arrive. The answer goes out with the next input, of which there are sixty a second.
    fn run_until(
        &mut self,
        now: u64,
        server: &Server,
        script: &Script,
        rng: &mut Rng,
        traffic: &mut Traffic,
    ) -> anyhow::Result<()> {
        // Before it has heard anything it says which game it has.
        if now == 0 {
            self.answer(0, rng)?;
        }
        while let Some((arrival, packet)) = next_until(&mut self.down, now) {
            traffic.packets_refused += u64::from(self.receiver.handle_packet(&packet).is_err());
            let is_last = self.down.front().is_none_or(|(due, _)| *due > arrival);
            if is_last {
                self.compare(server, script, traffic)?;
                self.answer(arrival.div_ceil(INPUT_MS) * INPUT_MS, rng)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, now: u64, rng: &mut Rng) -> anyhow::Result<()> {
        let mut buffer = [0; Acknowledgement::LEN_MAX];
        let len = self.receiver.emit_acknowledgement(&mut buffer)?;
        if rng.f32() >= LOSS || now == 0 {
            self.up
                .push_back((now + self.delay, buffer[..len].to_vec()));
        }
        Ok(())
    }

    fn answers_until(&mut self, now: u64) -> Vec<u8> {
        let mut answers = Vec::new();
        while let Some((_, answer)) = next_until(&mut self.up, now) {
            answers.extend(answer);
        }
        answers
    }

    /// Every state that is new must be what the server had.
    fn compare(
        &mut self,
        server: &Server,
        script: &Script,
        traffic: &mut Traffic,
    ) -> anyhow::Result<()> {
        while self.receiver.poll_update().is_some() {}
        let kind = server.kind.id();
        let mut truth = [0; 10];
        for (index, entity) in server.entities.iter().enumerate() {
            if let Some((tick, row)) = self.receiver.row(kind, *entity)
                && Some(tick) == self.receiver.tick()
            {
                let body = &script.states[tick.0 as usize - 1][index];
                body.store(&mut RowWriter::new(&mut truth));
                ensure!(truth == row, "{entity:?} of {tick:?} was decoded wrongly");
                traffic.rows_compared += 1;
            }
        }
        Ok(())
    }
}

/// The next that has arrived by now, and when it did.
fn next_until(link: &mut VecDeque<(u64, Vec<u8>)>, now: u64) -> Option<(u64, Vec<u8>)> {
    let is_due = link.front().is_some_and(|(due, _)| *due <= now);
    is_due.then(|| link.pop_front()).flatten()
}

fn kinds() -> anyhow::Result<(Kinds, Kind<Body>)> {
    let mut kinds = Kinds::new().with_tick_rate(TICKS_PER_SECOND);
    let kind = kinds.register(KindOptions::new(1))?;
    Ok((kinds, kind))
}

const TICK_MS: u64 = 50;
const INPUT_MS: u64 = 16;
const LOSS: f32 = 0.02;
/// Room for a snapshot in a datagram.
const PACKET_BYTES: usize = 1_200;
/// More than is ever needed in a tick.
const BUDGET: usize = 1 << 20;
/// Ticks until every client has joined.
pub(crate) const TICKS_WARM: usize = 20;
