//! One server and one client over a virtual network, in virtual time, and what became of everything the player did and saw.
//!
//! Each side is a machine with `handle_datagram`, `wake` and `next_wake`, so that the same run can be made with other servers and clients.

use std::net::SocketAddr;

use muse_netcode::clock::{ClientClock, ClockConfig, Due};
use muse_netcode::inputs::{InputBuffer, InputBufferConfig, InputReport, InputSender};
use muse_netcode::interpolation::{Interpolated, InterpolationConfig, Playback};
use muse_netcode::prediction::{Predictor, Reconciled, StepContext, run_step};
use muse_netcode::scheduler::TickScheduler;
use muse_netcode::smoothing::SmoothingConfig;
use muse_netcode::{Tick, TickTime};
use muse_netem::{Conditions, Network};
use muse_schema::{BitReader, BitWriter, Options, Schema, State};
use muse_wire::{Duration, Ecn, Instant};

use super::character::{Body, Keys, Rules, play};

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
    pub packets_up_bytes: u64,
    pub rate_most: f64,
    pub jumps_heard: u64,
    pub jumps_cancelled: u64,
    pub tick_gaps: u64,
}

pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Nobody can run faster than this.
const SPEED_MAX: f64 = 18.0;

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
    let mut buffer = [0; 1_200];
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
        while let Some(len) = server.wake(now, &mut buffer) {
            network.send(now, server_at, client_at, Ecn::NotCapable, &buffer[..len]);
        }
        while let Some(len) = client.wake(now, &mut buffer, &server, &mut outcome) {
            network.send(now, client_at, server_at, Ecn::NotCapable, &buffer[..len]);
        }
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

/// The server: takes inputs, simulates, sends snapshots.
struct ServerSide {
    setup: Setup,
    scheduler: TickScheduler,
    buffer: InputBuffer<Keys>,
    player: Body,
    other: Body,
    /// Whether the input of each tick came in time.
    in_time: Vec<bool>,
    number: u16,
    /// Inputs received, missed, and their wait, at the end of the warm-up.
    at_start: Option<(u64, u64, u64)>,
}

impl ServerSide {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            scheduler: TickScheduler::new(TICK, Instant::ZERO),
            buffer: InputBuffer::new(InputBufferConfig::new(TICK), Tick(0)),
            player: Body::START,
            other: Body::START,
            in_time: Vec::new(),
            number: 0,
            at_start: None,
        }
    }

    fn handle_datagram(&mut self, now: Instant, payload: &[u8], outcome: &mut Outcome) {
        let (sent, payload) = strip_time(payload);
        if now >= Instant::ZERO + self.setup.warm_up {
            outcome.delays_up.push((now - sent).as_micros());
        }
        let result = self.buffer.handle_packet(now, &mut BitReader::new(payload));
        result.expect("the client sends inputs");
    }

    /// Simulates what is due and writes a snapshot; `None` when there is nothing more.
    fn wake(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if let Some((at, length)) = self.setup.hitch
            && (at..at + length).contains(&now)
        {
            return None;
        }
        loop {
            let due = self.scheduler.poll(now)?;
            self.buffer.handle_slip(due.slipped);
            if self.at_start.is_none() && now >= Instant::ZERO + self.setup.warm_up {
                self.at_start = Some(self.counts());
            }
            let taken = self.buffer.take(due.tick, due.due);
            self.in_time.push(taken.is_received());
            let mut heard = |_| ();
            let mut context = StepContext::new(due.tick, true, &mut heard);
            run_step(&mut Rules, &mut self.player, &taken.input(), &mut context);
            let keys = play(!self.setup.seed, due.tick);
            run_step(&mut Rules, &mut self.other, &keys, &mut context);
            if due.tick.0.is_multiple_of(self.setup.update_ticks) {
                let report = self.buffer.report(now, due.due);
                return Some(self.write(now, due.tick, &report, buffer));
            }
        }
    }

    fn write(
        &mut self,
        now: Instant,
        tick: Tick,
        report: &InputReport,
        buffer: &mut [u8],
    ) -> usize {
        self.number = self.number.wrapping_add(1);
        let mut writer = BitWriter::new(buffer);
        writer.bits(now.as_micros(), 64).expect("room");
        writer.bits(u64::from(self.number), 16).expect("room");
        writer.bits(u64::from(tick.0), 32).expect("room");
        report.write(&Options::NONE, &mut writer).expect("room");
        for body in [&self.player, &self.other] {
            for value in body.to_row() {
                writer.bits(u64::from(value as u32), 32).expect("room");
            }
        }
        writer.finish()
    }

    fn next_wake(&self) -> Instant {
        let due = self.scheduler.poll_timeout();
        match self.setup.hitch {
            Some((at, length)) if (at..at + length).contains(&due) => at + length,
            _ => due,
        }
    }

    fn counts(&self) -> (u64, u64, u64) {
        let counters = self.buffer.counters();
        let missed = counters.repeated + counters.missing;
        (counters.received, missed, counters.waited_micros)
    }

    fn finish(&mut self, outcome: &mut Outcome) {
        let (received, missed, waited) = self.at_start.unwrap_or_default();
        let (received_all, missed_all, waited_all) = self.counts();
        outcome.inputs_in_time = received_all - received;
        outcome.inputs_missed = missed_all - missed;
        outcome.input_waited_micros = waited_all - waited;
    }

    /// The true time in ticks of this server's match.
    fn true_ticks(&self, now: Instant) -> f64 {
        let next = f64::from(self.scheduler.next().0);
        let until = self.scheduler.poll_timeout().as_micros() as f64 - now.as_micros() as f64;
        next - until / TICK.as_micros() as f64
    }
}

/// The client: keeps its clock, sends inputs, predicts its player and interpolates the other.
struct ClientSide {
    setup: Setup,
    clock: ClientClock,
    sender: InputSender<Keys>,
    predictor: Predictor<Rules>,
    playback: Playback,
    other: Interpolated<Body>,
    next_frame: Instant,
    shown: Option<(f64, Body)>,
    confirmed: Option<Tick>,
    last_tick: Option<Tick>,
    delays: Vec<u64>,
    /// For runs bound to frames.
    waiting: Vec<Vec<u8>>,
}

impl ClientSide {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            clock: ClientClock::new(ClockConfig::new(TICK)),
            sender: InputSender::new(),
            predictor: Predictor::new(),
            playback: Playback::new(TICK),
            other: Interpolated::new(interpolation(), Body::distance),
            next_frame: Instant::from_micros(setup.seed % 16_000),
            shown: None,
            confirmed: None,
            last_tick: None,
            delays: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// The client's own clock: another origin, and a little faster or slower.
    fn local(&self, now: Instant) -> Instant {
        let micros = now.as_micros() as i64;
        let drift = micros * self.setup.drift_ppm / 1_000_000;
        Instant::from_micros((micros + drift) as u64 + 77_000_000 + self.setup.seed * 1_000)
    }

    fn true_time(&self, local: Instant) -> Instant {
        let micros = (local.as_micros() - 77_000_000 - self.setup.seed * 1_000) as i64;
        let rate = 1_000_000 + self.setup.drift_ppm;
        Instant::from_micros((micros * 1_000_000 / rate + 1) as u64)
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
        let mut reader = BitReader::new(payload);
        let number = reader.bits(16).expect("a number") as u16;
        let tick = Tick(reader.bits(32).expect("a tick") as u32);
        let report = InputReport::read(&Options::NONE, &mut reader).expect("a report");
        let mut body = || {
            let row: Vec<i32> = (0..Body::width())
                .map(|_| reader.bits(32).expect("a column") as u32 as i32)
                .collect();
            Body::from_row(&row).expect("the server's row")
        };
        let (player, other) = (body(), body());
        let local = self.local(now);
        self.clock.handle_snapshot(local, tick, Some(&report));
        self.playback.handle_slipped(report.slipped);
        self.playback.handle_snapshot(local, tick, number);
        self.sender.handle_report(&report);
        self.other.handle_state(tick, other);
        self.reconcile(tick, &player, server, judged, outcome);
    }

    fn reconcile(
        &mut self,
        tick: Tick,
        player: &Body,
        server: &ServerSide,
        judged: bool,
        outcome: &mut Outcome,
    ) {
        let exact = self.predictor.state_at(tick) == Some(player);
        let result = self.predictor.reconcile(&mut Rules, tick, player);
        let Some(confirmed) = self.confirmed else {
            self.confirmed = Some(tick);
            return;
        };
        if matches!(result, Reconciled::Outdated) {
            return;
        }
        self.confirmed = Some(tick);
        if !judged {
            return;
        }
        let since = (confirmed.0 + 1) as usize..=tick.0 as usize;
        let explained = server.in_time[since].contains(&false);
        outcome.reconciled += 1;
        outcome.mispredicted += u64::from(!exact);
        outcome.wrong_without_cause += u64::from(!exact && !explained);
    }

    fn wake(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        server: &ServerSide,
        outcome: &mut Outcome,
    ) -> Option<usize> {
        if now >= self.next_frame {
            for payload in std::mem::take(&mut self.waiting) {
                self.handle_datagram(now, &payload, server, outcome);
            }
            self.draw(now, server, outcome);
            let micros = 1_000_000 / self.setup.frames_per_second;
            self.next_frame += Duration::from_micros(micros);
        } else if self.setup.bound_to_frames
            && self.next_frame - now
                < Duration::from_micros(1_000_000 / self.setup.frames_per_second)
        {
            return None;
        }
        let local = self.local(now);
        self.clock.advance(local);
        outcome.rate_most = outcome.rate_most.max((self.clock.rate() - 1.0).abs());
        let due = self.clock.poll()?;
        if let Due::Tick(tick) = due {
            let gap = self.last_tick.is_some_and(|last| tick != last + 1);
            outcome.tick_gaps += u64::from(gap);
            self.last_tick = Some(tick);
            let keys = play(self.setup.seed, tick);
            self.sender.push(tick, keys.clone());
            self.predictor.predict(&mut Rules, tick, keys);
        }
        while let Some(effect) = self.predictor.poll_effect() {
            use muse_netcode::prediction::EffectChange::{Cancelled, Emitted};
            outcome.jumps_heard += u64::from(effect.change == Emitted);
            outcome.jumps_cancelled += u64::from(effect.change == Cancelled);
        }
        let mut writer = BitWriter::new(buffer);
        writer.bits(now.as_micros(), 64).expect("room");
        let header = self.clock.header(local);
        self.sender.write(header, &mut writer).expect("room");
        let len = writer.finish();
        outcome.packets_up += 1;
        outcome.packets_up_bytes += len as u64 - 8;
        Some(len)
    }

    fn draw(&mut self, now: Instant, server: &ServerSide, outcome: &mut Outcome) {
        let local = self.local(now);
        self.clock.advance(local);
        self.playback.advance(local);
        let Some(time) = self.playback.time() else {
            return;
        };
        let Some(shown) = self.other.show(time) else {
            return;
        };
        let before = self.shown.replace((time.ticks(), shown.state.clone()));
        if now < Instant::ZERO + self.setup.warm_up {
            return;
        }
        let truth = server.true_ticks(now);
        outcome.frames += 1;
        outcome.underruns += u64::from(shown.source.is_underrun());
        let behind = (truth - time.ticks()) * TICK.as_micros() as f64;
        outcome.shown_behind_micros += behind as i64;
        let server_time = self.clock.server_time().map_or(0.0, TickTime::ticks);
        outcome
            .clock_errors
            .push(((server_time - truth).abs() * 1_000.0) as u32);
        if let Some((_, before)) = before {
            let seconds = 1.0 / self.setup.frames_per_second as f64;
            let moved = f64::from(shown.state.distance(&before));
            outcome.teleports += u64::from(moved > 2.0 * SPEED_MAX * seconds);
        }
    }

    fn next_wake(&self) -> Instant {
        if self.setup.bound_to_frames {
            return self.next_frame;
        }
        let clock = self.clock.poll_timeout().map(|local| self.true_time(local));
        clock.map_or(self.next_frame, |clock| clock.min(self.next_frame))
    }
}

/// For bodies this fast half a second of silence is not yet a reason to jump.
fn interpolation() -> InterpolationConfig {
    InterpolationConfig::new(TICK).smoothing(SmoothingConfig::default().snap_above(12.0))
}

/// Packets begin with the true time of sending, which neither side looks at.
fn strip_time(payload: &[u8]) -> (Instant, &[u8]) {
    let (time, rest) = payload.split_at(8);
    let micros = u64::from_le_bytes(time.try_into().expect("eight bytes"));
    (Instant::from_micros(micros), rest)
}
