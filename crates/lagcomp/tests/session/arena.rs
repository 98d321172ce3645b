//! A match over a virtual network in virtual time: one server, its clients, their clocks and screens.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use glam::Vec3;
use muse_lagcomp::{Except, Hits, RewindConfig, Shot, Verdict};
use muse_netcode::interpolation::Source;
use muse_netcode::{ClientId, EntityId, Remotes, SessionConfig, Tick, TickTime};
use muse_netem::{Conditions, Network, NodeId};
use muse_wire::{Duration, Ecn, Instant};

use crate::game::{
    Client, Fire, Keys, Player, RADIUS, Rules, Server, config, distance, kinds, rig, wander,
};

/// Everything there is.
pub(crate) struct Arena {
    pub(crate) now: Instant,
    pub(crate) server: Server,
    pub(crate) hits: Hits<Player>,
    pub(crate) seats: Vec<Seat>,
    pub(crate) bots: Vec<EntityId>,
    /// By client and tick: whether its input came in time, and what became of its shot.
    pub(crate) in_time: BTreeMap<(ClientId, Tick), bool>,
    pub(crate) verdicts: BTreeMap<(ClientId, Tick), Judged>,
    /// The server stands still until then.
    pub(crate) hitch_until: Instant,
    limit: Duration,
    network: Network,
    node: NodeId,
    seed: u64,
}

/// A client, and what its player sees and does.
pub(crate) struct Seat {
    pub(crate) id: ClientId,
    pub(crate) game: Client,
    pub(crate) others: Remotes<Player>,
    /// The entities on the screen.
    pub(crate) screen: Vec<(EntityId, Player)>,
    pub(crate) shots: BTreeMap<Tick, Seen>,
    pub(crate) shoots: bool,
    /// Frames drawn, entities shown in them, and those without a state to interpolate to.
    pub(crate) frames: u64,
    pub(crate) drawn: u64,
    pub(crate) underruns: u64,
    pub(crate) corrected_without_cause: u64,
    pub(crate) bytes_received: u64,
    confirmed: Option<Tick>,
    pending: Option<(Fire, TickTime)>,
    address: SocketAddr,
    next_frame: Instant,
    frame: Duration,
    drift_ppm: i64,
    rng: fastrand::Rng,
}

/// A shot as the server judged it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) hit: Option<EntityId>,
    pub(crate) rewound: bool,
    pub(crate) verdict: Verdict,
}

/// A shot as its shooter saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) fired_at: Instant,
    /// The entity in the way of the ray on the screen.
    pub(crate) target: Option<EntityId>,
    /// The age of the picture that was shown, counted back from its tick.
    pub(crate) age_ticks: f64,
}

impl Arena {
    pub(crate) fn new(seed: u64, config: SessionConfig) -> Self {
        let (kinds, player) = kinds();
        let mut network = Network::new(seed);
        let node = network.add_node(SERVER.into());
        let limit = Duration::from_millis(250);
        let arena = Self {
            now: Instant::ZERO,
            server: Server::new(config, kinds, player, Instant::ZERO),
            hits: Hits::new(RewindConfig::new(50), player, rig(), Player::pose).expect("one rig"),
            limit,
            seats: Vec::new(),
            bots: Vec::new(),
            in_time: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            hitch_until: Instant::ZERO,
            network,
            node,
            seed,
        };
        arena.rewind_limit(limit)
    }

    /// Sets how far back shots are judged.
    pub(crate) fn rewind_limit(mut self, limit: Duration) -> Self {
        let (_, player) = kinds();
        // Slow links also have long delays of interpolation, and targets move further in that time.
        let config = RewindConfig::new(50).limit(limit).displacement_max(8.0);
        let config = config.interpolation_max(limit);
        self.hits = Hits::new(config, player, rig(), Player::pose).expect("one rig");
        self.limit = limit;
        self
    }

    /// Bodies that the server moves.
    pub(crate) fn add_bots(&mut self, count: u32) {
        let (_, kind) = kinds();
        for bot in 0..count {
            let start = home(bot);
            let entity = self
                .server
                .world_mut()
                .spawn(kind, &Player::at(start.x, start.z));
            self.bots.push(entity.expect("room"));
        }
    }

    /// A client that has joined or watches already. Gives its index.
    pub(crate) fn connect(&mut self, id: ClientId, conditions: &Conditions) -> usize {
        let address = SocketAddr::from(([10, 0, 0, id.0 as u8], 5_000));
        let node = self.network.add_node(address);
        self.network.set_links(self.node, node, conditions.clone());
        let (kinds, kind) = kinds();
        let seed = self.seed + u64::from(id.0) * 7;
        let fps = [60, 75, 144][(seed % 3) as usize];
        let drift_ppm = (seed % 5) as i64 * 60 - 120;
        let local = local(self.now, drift_ppm);
        let game = Client::new(config(), kinds, kind, distance, local);
        self.seats.push(Seat {
            id,
            others: Remotes::new(kind, game.interpolation(), distance),
            game,
            screen: Vec::new(),
            shots: BTreeMap::new(),
            shoots: false,
            frames: 0,
            drawn: 0,
            underruns: 0,
            corrected_without_cause: 0,
            bytes_received: 0,
            confirmed: None,
            pending: None,
            address,
            next_frame: self.now + Duration::from_micros(seed * 777 % 16_000),
            frame: Duration::from_micros(1_000_000 / fps),
            drift_ppm,
            rng: fastrand::Rng::with_seed(seed),
        });
        self.seats.len() - 1
    }

    /// Lets time pass. `each_tick` is the rest of the game's rules.
    pub(crate) fn run(&mut self, length: Duration, mut each_tick: impl FnMut(&mut Server, Tick)) {
        let end = self.now + length;
        while self.now < end {
            let now = self.now;
            self.deliver();
            if now >= self.hitch_until {
                self.serve(&mut each_tick);
            }
            for index in 0..self.seats.len() {
                self.play(index);
            }
            let mut next = self.server.poll_timeout().max(self.hitch_until);
            for seat in &self.seats {
                next = next.min(seat.next_wake());
            }
            let next = self.network.next_delivery().map_or(next, |at| at.min(next));
            self.now = next.max(now + Duration::from_micros(1));
        }
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            if delivery.to == SocketAddr::from(SERVER) {
                let from = delivery.from;
                if let Some(seat) = self.seats.iter().find(|seat| seat.address == from) {
                    let result = self
                        .server
                        .handle_packet(self.now, seat.id, delivery.payload);
                    // Clients that left still send for a while.
                    let _ = result;
                }
            } else if let Some(seat) = self
                .seats
                .iter_mut()
                .find(|seat| seat.address == delivery.to)
            {
                seat.handle_packet(self.now, delivery.payload, &self.in_time);
            }
        }
    }

    fn serve(&mut self, each_tick: &mut impl FnMut(&mut Server, Tick)) {
        let (_, kind) = kinds();
        while let Some(tick) = self.server.poll_tick(self.now, &mut Rules, |_, _| ()) {
            for (number, bot) in (0..).zip(&self.bots) {
                let Some(mut state) = self.server.world().state(kind, *bot) else {
                    continue;
                };
                let keys = wander(self.seed ^ u64::from(number), tick, &state, home(number));
                let mut ignore = |_| ();
                let mut context =
                    muse_netcode::prediction::StepContext::new(tick, true, &mut ignore);
                muse_netcode::prediction::run_step(&mut Rules, &mut state, &keys, &mut context);
                let result = self.server.world_mut().set(kind, *bot, &state);
                result.expect("the bot is there");
            }
            each_tick(&mut self.server, tick);
            self.judge(tick);
            self.server.commit();
            let mut buffer = [0; 1_200];
            while let Some((client, len)) = self.server.poll_packet(self.now, &mut buffer) {
                if let Some(seat) = self.seats.iter().find(|seat| seat.id == client) {
                    let to = seat.address;
                    let (from, payload) = (SERVER.into(), &buffer[..len]);
                    self.network
                        .send(self.now, from, to, Ecn::NotCapable, payload);
                }
            }
        }
    }

    /// The shots of a tick.
    fn judge(&mut self, tick: Tick) {
        let (_, kind) = kinds();
        self.hits
            .record(self.server.world(), tick)
            .expect("sane poses");
        let clients: Vec<ClientId> = self.server.clients().collect();
        for client in clients {
            let Some(taken) = self.server.input(client) else {
                continue;
            };
            self.in_time.insert((client, tick), taken.is_received());
            let Some(fire) = taken.input().fire.filter(|_| taken.is_received()) else {
                continue;
            };
            let Some(own) = self.server.player(client) else {
                continue;
            };
            let state = self.server.world().state(kind, own).expect("it plays");
            let admission = self
                .hits
                .admit(&self.server, client, fire.claim)
                .expect("it is here");
            let shot = Shot::new(state.place(), fire.direction()).range(RANGE);
            let hit = self
                .hits
                .rewind()
                .hitscan(&admission, &shot, &mut Except(own));
            assert!(admission.age() <= self.limit, "{admission:?}");
            let judged = Judged {
                hit: hit.map(|hit| hit.entity),
                rewound: hit.is_some_and(|hit| hit.rewound),
                verdict: admission.verdict(),
            };
            self.verdicts.insert((client, tick), judged);
        }
    }

    fn play(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        if self.now < seat.next_wake() {
            return;
        }
        let local = local(self.now, seat.drift_ppm);
        let mut buffer = [0; 1_200];
        loop {
            let mut fired = None;
            let own = seat.game.predicted().cloned().unwrap_or_default();
            let (id, seed) = (seat.id, self.seed + u64::from(seat.id.0));
            let pending = &mut seat.pending;
            let input = |tick: Tick| {
                let fire = pending.take();
                fired = fire.map(|(fire, shown)| (tick, fire, shown));
                let fire = fire.map(|(fire, _)| fire);
                let keys = wander(seed, tick, &own, home(id.0));
                Keys { fire, ..keys }
            };
            let Some(len) = seat.game.poll_packet(local, &mut Rules, input, &mut buffer) else {
                break;
            };
            if let Some((tick, fire, shown)) = fired {
                seat.see_shot(self.now, tick, &fire, shown);
            }
            let (from, to) = (seat.address, SERVER.into());
            self.network
                .send(self.now, from, to, Ecn::NotCapable, &buffer[..len]);
        }
        if self.now >= seat.next_frame {
            seat.next_frame += seat.frame;
            seat.draw();
        }
    }
}

impl Seat {
    fn handle_packet(
        &mut self,
        now: Instant,
        payload: &[u8],
        in_time: &BTreeMap<(ClientId, Tick), bool>,
    ) {
        self.bytes_received += payload.len() as u64;
        let local = local(now, self.drift_ppm);
        let before = self.game.prediction().corrected;
        // Duplicates are refused.
        if self.game.handle_packet(local, &mut Rules, payload).is_err() {
            return;
        }
        let tick = self.game.receiver().tick().unwrap_or_default();
        let corrected = self.game.prediction().corrected > before;
        if let Some(confirmed) = self.confirmed
            && corrected
        {
            let mut since = (confirmed.0 + 1..=tick.0).map(|tick| (self.id, Tick(tick)));
            let explained = since.any(|key| in_time.get(&key) == Some(&false));
            self.corrected_without_cause += u64::from(!explained);
        }
        self.confirmed = self.confirmed.max(Some(tick));
    }

    fn next_wake(&self) -> Instant {
        let due = self
            .game
            .poll_timeout()
            .map(|at| unlocal(at, self.drift_ppm));
        due.map_or(self.next_frame, |due| due.min(self.next_frame))
    }

    fn draw(&mut self) {
        while let Some(update) = self.game.poll_update() {
            self.others.handle_update(&self.game, &update);
        }
        self.screen.clear();
        for (entity, shown) in self.others.show(&self.game) {
            self.drawn += 1;
            self.underruns += u64::from(matches!(shown.source, Source::Beyond | Source::Stopped));
            self.screen.push((entity, shown.state));
        }
        self.frames += 1;
        // Once decided, the aim follows what is shown until the input is asked for.
        if self.shoots && (self.pending.is_some() || self.rng.u8(..12) == 0) {
            self.aim();
        }
    }

    /// Pulls the trigger at something on the screen, more or less well aimed.
    fn aim(&mut self) {
        let (Some(claim), Some(own)) = (self.game.claim(), self.game.predicted()) else {
            return;
        };
        let shown = self.game.shown_time().unwrap_or_default();
        if self.screen.is_empty() {
            return;
        }
        let target = self.rng.u32(..self.screen.len() as u32) as usize;
        let way = self.screen[target].1.place() - own.place();
        let error = (self.rng.f32() - 0.5) * 4.0 * RADIUS / way.length().max(1.0);
        let yaw = way.x.atan2(way.z) + error;
        self.pending = Some((Fire { claim, yaw }, shown));
    }

    /// Notes whom the shot hits by what is on the screen.
    fn see_shot(&mut self, now: Instant, tick: Tick, fire: &Fire, shown: TickTime) {
        let Some(own) = self.game.predicted() else {
            return;
        };
        let (origin, direction) = (own.place(), fire.direction());
        let along = |player: &Player| ray(origin, direction, player.place());
        let hits = self
            .screen
            .iter()
            .filter_map(|(entity, player)| Some((along(player)?, *entity)));
        let nearest = hits.min_by(|a, b| a.0.total_cmp(&b.0));
        let seen = Seen {
            fired_at: now,
            target: nearest.map(|(_, entity)| entity),
            age_ticks: f64::from(tick.0) - shown.ticks(),
        };
        self.shots.insert(tick, seen);
    }
}

/// Distance along a ray at which a sphere of the players' size begins.
fn ray(origin: Vec3, direction: Vec3, centre: Vec3) -> Option<f32> {
    let to = centre - origin;
    let along = to.dot(direction);
    let apart = to.length_squared() - along * along;
    let half = RADIUS * RADIUS - apart;
    if half < 0.0 {
        return None;
    }
    let (enters, leaves) = (along - half.sqrt(), along + half.sqrt());
    (leaves >= 0.0 && enters <= RANGE).then_some(enters.max(0.0))
}

/// Around where a player or bot stays.
fn home(number: u32) -> Vec3 {
    let angle = number as f32 * 2.4;
    Vec3::new(angle.sin(), 0.0, angle.cos()) * (10.0 + number as f32)
}

/// A client's own clock: another origin, and a little faster or slower.
fn local(now: Instant, drift_ppm: i64) -> Instant {
    let micros = now.as_micros() as i64;
    Instant::from_micros((micros + micros * drift_ppm / 1_000_000) as u64 + ORIGIN)
}

fn unlocal(local: Instant, drift_ppm: i64) -> Instant {
    let micros = local.as_micros().saturating_sub(ORIGIN) as i64;
    Instant::from_micros((micros * 1_000_000 / (1_000_000 + drift_ppm) + 1) as u64)
}

const ORIGIN: u64 = 77_000_000;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 1);
const RANGE: f32 = 100.0;
