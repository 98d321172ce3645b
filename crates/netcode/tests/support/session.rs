//! One server and one client over a virtual network, in virtual time, and what became of everything the player did and saw.
//!
//! Both are the shipped types: [`Server`], [`Client`] and [`Remotes`].

use std::net::SocketAddr;

use muse_netcode::inputs::InputCounters;
use muse_netcode::interpolation::InterpolationConfig;
use muse_netcode::prediction::{StepContext, run_step};
use muse_netcode::smoothing::SmoothingConfig;
use muse_netcode::{
    Client, ClientId, EntityId, Kind, KindOptions, Kinds, Remotes, Server, SessionConfig, Tick,
    TickTime,
};
use muse_netem::{Conditions, Network};
use muse_wire::{Duration, Ecn, Instant};

use super::character::{Body, Rules, play};

/// The conditions of a run besides the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub seed: u64,
    /// Ticks from one snapshot to the next.
    pub update_ticks: u32,
    /// Drift of the client's clock against true time.
    pub drift_ppm: i64,
    /// Frames a second at which the client draws.
    pub frames_per_second: u64,
    /// The client looks at network and clock in its frames only.
    pub bound_to_frames: bool,
    /// True time until which nothing is judged.
    pub warm_up: Duration,
    pub length: Duration,
    /// The server stands still for so long, at a time.
    pub hitch: Option<(Instant, Duration)>,
    /// From then on both ways take so long, without jitter.
    pub reroute: Option<(Instant, Duration)>,
}

impl Setup {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            update_ticks: 1 + (seed / 2 % 2) as u32,
            drift_ppm: (seed % 5) as i64 * 60 - 120,
            frames_per_second: [60, 75, 144][(seed % 3) as usize],
            bound_to_frames: false,
            warm_up: Duration::from_secs(3),
            length: Duration::from_secs(20),
            hitch: None,
            reroute: None,
        }
    }
}

/// The outcome of one run, from the end of the warm-up on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub inputs_in_time: u64,
    pub inputs_missed: u64,
    pub input_waited_micros: u64,
    /// Ticks about which a snapshot said something, those that had been predicted wrongly, and of those the ones that nothing explains.
    pub reconciled: u64,
    pub mispredicted: u64,
    pub wrong_without_cause: u64,
    pub frames: u64,
    pub underruns: u64,
    pub teleports: u64,
    /// Time from their mean arrival until states were shown, summed over frames.
    pub shown_behind_micros: i64,
    /// Error of the client's idea of the server's time, in 1/1000 tick, for each frame.
    pub clock_errors: Vec<u32>,
    /// Delays on the way to the server and to the client.
    pub delays_up: Vec<u64>,
    pub delays_down: Vec<u64>,
    pub packets_up: u64,
    pub rate_most: f64,
    pub tick_gaps: u64,
}

pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Nobody can run faster than this.
const SPEED_MAX: f64 = 18.0;
const PLAYER: ClientId = ClientId(1);

/// Runs a session.
pub(crate) fn run(setup: Setup, up: Conditions, down: Conditions) -> Outcome {
    let (server_at, client_at) = addresses();
    let mut network = Network::new(setup.seed);
    let (server_node, client_node) = (network.add_node(server_at), network.add_node(client_at));
    network.set_link(client_node, server_node, up.clone());
    network.set_link(server_node, client_node, down.clone());
    let mut reroute = setup.reroute;
    let mut outcome = Outcome::default();
    let mut server = ServerSide::new(setup);
    let mut client = ClientSide::new(setup);
    let end = Instant::ZERO + setup.length;
    let mut now = Instant::ZERO;
    while now < end {
        if let Some((_, delay)) = reroute.take_if(|(at, _)| *at <= now) {
            network.set_link(client_node, server_node, up.clone().delay(delay));
            network.set_link(server_node, client_node, down.clone().delay(delay));
        }
        while let Some(delivery) = network.poll_deliver(now) {
            if delivery.to == server_at {
                server.handle_datagram(now, delivery.payload, &mut outcome);
            } else if setup.bound_to_frames {
                client.waiting.push(delivery.payload.to_vec());
            } else {
                client.handle_datagram(now, delivery.payload, &server, &mut outcome);
            }
        }
        server.wake(now, |packet| {
            network.send(now, server_at, client_at, Ecn::NotCapable, packet);
        });
        client.wake(now, &server, &mut outcome, |packet| {
            network.send(now, client_at, server_at, Ecn::NotCapable, packet);
        });
        let next = server.next_wake().min(client.next_wake());
        now = network
            .next_delivery()
            .map_or(next, |at| at.min(next))
            .max(now + Duration::from_micros(1));
    }
    server.finish(&mut outcome);
    outcome.delays_down.append(&mut client.delays);
    outcome
}

fn addresses() -> (SocketAddr, SocketAddr) {
    (([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into())
}

fn kinds() -> (Kinds, Kind<Body>) {
    let mut kinds = Kinds::new();
    let body = kinds.register(KindOptions::new(1)).expect("the first");
    (kinds, body)
}

/// For bodies this fast half a second of silence is not yet a reason to jump.
fn session(setup: &Setup) -> SessionConfig {
    let smoothing = SmoothingConfig::default().snap_above(12.0);
    SessionConfig::new(TICK)
        .snapshot_interval(setup.update_ticks)
        .interpolation(InterpolationConfig::new(TICK).smoothing(smoothing))
}

/// The server, and another character that it moves.
struct ServerSide {
    setup: Setup,
    game: Server<Rules>,
    other: EntityId,
    /// True for each tick whose input came in time.
    in_time: Vec<bool>,
    /// The inputs until the end of the warm-up.
    at_start: Option<InputCounters>,
}

impl ServerSide {
    fn new(setup: Setup) -> Self {
        let (kinds, kind) = kinds();
        let mut game = Server::new(session(&setup), kinds, kind, Instant::ZERO);
        game.join(PLAYER, &Body::START).expect("room");
        let other = game.world_mut().spawn(kind, &Body::START);
        Self {
            setup,
            game,
            other: other.expect("room"),
            in_time: Vec::new(),
            at_start: None,
        }
    }

    fn handle_datagram(&mut self, now: Instant, payload: &[u8], outcome: &mut Outcome) {
        let (sent, payload) = strip_time(payload);
        if now >= Instant::ZERO + self.setup.warm_up {
            outcome.delays_up.push((now - sent).as_micros());
        }
        let result = self.game.handle_packet(now, PLAYER, payload);
        result.expect("the client sends inputs");
    }

    /// Simulates what is due and sends the snapshots.
    fn wake(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        if let Some((at, length)) = self.setup.hitch
            && (at..at + length).contains(&now)
        {
            return;
        }
        let mut buffer = timed_buffer(now);
        while let Some(tick) = self.game.poll_tick(now, &mut Rules, |_, _| ()) {
            if self.at_start.is_none() && now >= Instant::ZERO + self.setup.warm_up {
                self.at_start = Some(self.counters());
            }
            let taken = self.game.input(PLAYER).expect("it plays");
            self.in_time.push(taken.is_received());
            self.move_other(tick);
            self.game.commit();
            while let Some((_, len)) = self.game.poll_packet(now, &mut buffer[TIME_BYTES..]) {
                send(&buffer[..TIME_BYTES + len]);
            }
        }
    }

    fn move_other(&mut self, tick: Tick) {
        let (_, kind) = kinds();
        let world = self.game.world_mut();
        let mut body = world.state(kind, self.other).expect("it stays");
        let mut heard = |_| ();
        let mut context = StepContext::new(tick, true, &mut heard);
        let keys = play(!self.setup.seed, tick);
        run_step(&mut Rules, &mut body, &keys, &mut context);
        world.set(kind, self.other, &body).expect("it stays");
    }

    fn next_wake(&self) -> Instant {
        let due = self.game.poll_timeout();
        match self.setup.hitch {
            Some((at, length)) if (at..at + length).contains(&due) => at + length,
            _ => due,
        }
    }

    fn counters(&self) -> InputCounters {
        *self.game.input_counters(PLAYER).expect("it plays")
    }

    fn finish(&self, outcome: &mut Outcome) {
        let (before, all) = (self.at_start.unwrap_or_default(), self.counters());
        outcome.inputs_in_time = all.received - before.received;
        outcome.inputs_missed = all.repeated + all.missing - before.repeated - before.missing;
        outcome.input_waited_micros = all.waited_micros - before.waited_micros;
    }

    /// The true time in ticks of this server's match.
    fn true_ticks(&self, now: Instant) -> f64 {
        let next = self.in_time.len() as f64;
        let until = self.game.poll_timeout().as_micros() as f64 - now.as_micros() as f64;
        next - until / TICK.as_micros() as f64
    }
}

/// The client, which predicts its player and shows the other.
struct ClientSide {
    setup: Setup,
    game: Client<Rules>,
    remotes: Remotes<Body>,
    next_frame: Instant,
    shown: Option<Body>,
    confirmed: Option<Tick>,
    last_tick: Option<Tick>,
    delays: Vec<u64>,
    /// For runs bound to frames.
    waiting: Vec<Vec<u8>>,
}

impl ClientSide {
    fn new(setup: Setup) -> Self {
        let (kinds, kind) = kinds();
        let start = local(&setup, Instant::ZERO);
        let game = Client::new(session(&setup), kinds, kind, Body::distance, start);
        Self {
            setup,
            remotes: Remotes::new(kind, game.interpolation(), Body::distance),
            game,
            next_frame: Instant::from_micros(setup.seed % 16_000),
            shown: None,
            confirmed: None,
            last_tick: None,
            delays: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn handle_datagram(
        &mut self,
        now: Instant,
        payload: &[u8],
        server: &ServerSide,
        outcome: &mut Outcome,
    ) {
        let (sent, payload) = strip_time(payload);
        let judged = now >= Instant::ZERO + self.setup.warm_up;
        if judged {
            self.delays.push((now - sent).as_micros());
        }
        let before = self.game.prediction();
        let local = local(&self.setup, now);
        // One that came too late is of no use.
        if self.game.handle_packet(local, &mut Rules, payload).is_ok() {
            let after = self.game.prediction();
            if after.corrected > before.corrected {
                self.note_state(false, server, judged, outcome);
            } else if after.confirmed > before.confirmed {
                self.note_state(true, server, judged, outcome);
            }
        }
    }

    /// Notes that the server's newest state of the player had been predicted, or that it had not.
    fn note_state(
        &mut self,
        exact: bool,
        server: &ServerSide,
        judged: bool,
        outcome: &mut Outcome,
    ) {
        let tick = self.game.receiver().tick().expect("a snapshot has come");
        let Some(confirmed) = self.confirmed.replace(tick).filter(|_| judged) else {
            return;
        };
        let since = (confirmed.0 + 1) as usize..=tick.0 as usize;
        let explained = server.in_time[since].contains(&false);
        outcome.reconciled += 1;
        outcome.mispredicted += u64::from(!exact);
        outcome.wrong_without_cause += u64::from(!exact && !explained);
    }

    /// Plays the ticks that are due, and draws.
    fn wake(
        &mut self,
        now: Instant,
        server: &ServerSide,
        outcome: &mut Outcome,
        mut send: impl FnMut(&[u8]),
    ) {
        let is_frame = now >= self.next_frame;
        if self.setup.bound_to_frames && !is_frame {
            return;
        }
        for payload in std::mem::take(&mut self.waiting) {
            self.handle_datagram(now, &payload, server, outcome);
        }
        let local = local(&self.setup, now);
        let mut buffer = timed_buffer(now);
        let (seed, last) = (self.setup.seed, &mut self.last_tick);
        let mut input = |tick| {
            let gap = last.is_some_and(|last| tick != last + 1);
            outcome.tick_gaps += u64::from(gap);
            *last = Some(tick);
            play(seed, tick)
        };
        while let Some(len) = {
            let rest = &mut buffer[TIME_BYTES..];
            self.game.poll_packet(local, &mut Rules, &mut input, rest)
        } {
            outcome.packets_up += 1;
            send(&buffer[..TIME_BYTES + len]);
        }
        while self.game.poll_effect().is_some() {}
        let rate = self.game.clock().rate();
        outcome.rate_most = outcome.rate_most.max((rate - 1.0).abs());
        if is_frame {
            let micros = 1_000_000 / self.setup.frames_per_second;
            self.next_frame += Duration::from_micros(micros);
            self.draw(now, server, outcome);
        }
    }

    fn draw(&mut self, now: Instant, server: &ServerSide, outcome: &mut Outcome) {
        while let Some(update) = self.game.poll_update() {
            self.remotes.handle_update(&self.game, &update);
        }
        let shown = self.remotes.show(&self.game);
        let shown = shown
            .into_iter()
            .find(|(entity, _)| *entity == server.other);
        let (Some((_, shown)), Some(time)) = (shown, self.game.shown_time()) else {
            return;
        };
        let before = self.shown.replace(shown.state.clone());
        if now < Instant::ZERO + self.setup.warm_up {
            return;
        }
        let truth = server.true_ticks(now);
        outcome.frames += 1;
        outcome.underruns += u64::from(shown.source.is_underrun());
        let behind = (truth - time.ticks()) * TICK.as_micros() as f64;
        outcome.shown_behind_micros += behind as i64;
        let server_time = self.game.clock().server_time();
        let server_time = server_time.map_or(0.0, TickTime::ticks);
        outcome
            .clock_errors
            .push(((server_time - truth).abs() * 1_000.0) as u32);
        if let Some(before) = before {
            let seconds = 1.0 / self.setup.frames_per_second as f64;
            let moved = f64::from(shown.state.distance(&before));
            outcome.teleports += u64::from(moved > 2.0 * SPEED_MAX * seconds);
        }
    }

    fn next_wake(&self) -> Instant {
        if self.setup.bound_to_frames {
            return self.next_frame;
        }
        let due = self.game.poll_timeout();
        let due = due.map(|local| true_time(&self.setup, local));
        due.map_or(self.next_frame, |due| due.min(self.next_frame))
    }
}

/// The client's own clock: another origin, and a little faster or slower.
fn local(setup: &Setup, now: Instant) -> Instant {
    let micros = now.as_micros() as i64;
    let drift = micros * setup.drift_ppm / 1_000_000;
    Instant::from_micros((micros + drift) as u64 + 77_000_000 + setup.seed * 1_000)
}

fn true_time(setup: &Setup, local: Instant) -> Instant {
    let micros = (local.as_micros() - 77_000_000 - setup.seed * 1_000) as i64;
    let rate = 1_000_000 + setup.drift_ppm;
    Instant::from_micros((micros * 1_000_000 / rate + 1) as u64)
}

/// Room for a packet that begins with the true time of sending, which neither side looks at.
fn timed_buffer(now: Instant) -> [u8; TIME_BYTES + 1_200] {
    let mut buffer = [0; TIME_BYTES + 1_200];
    buffer[..TIME_BYTES].copy_from_slice(&now.as_micros().to_le_bytes());
    buffer
}

fn strip_time(payload: &[u8]) -> (Instant, &[u8]) {
    let (time, rest) = payload.split_at(TIME_BYTES);
    let micros = u64::from_le_bytes(time.try_into().expect("eight bytes"));
    (Instant::from_micros(micros), rest)
}

const TIME_BYTES: usize = 8;
