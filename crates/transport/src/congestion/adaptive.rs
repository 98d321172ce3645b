//! The default controller: aims at a small queue, finds spare bandwidth, and turns competitive beside TCP (VC-9).
//!
//! In *calm* waters it follows Copa (Arun and Balakrishnan, NSDI 2018): the flow wants about two packets of its own in
//! the queue, so it aims at the rate `2 packets / queue delay`; flows that meet in one queue see the same delay, aim at the same
//! rate and share fairly, and the queue empties every few round trips. When it no longer does although this flow has
//! stepped back, somebody fills it: the flow *competes* with CUBIC's window until the queue empties again.
//! Every few seconds without a glimpse of the empty path it *drains*: sends little for a round trip, to learn whether
//! the queue is its own.
//!
//! Differences from Copa: round trips below 5 ms and measured jitter are no queue; CUBIC's growth instead of a variable target; the
//! drain; losses count only if a smaller window avoids them; and a window that the application does not use is not changed.

mod compete;
mod delay;
mod filter;
mod losses;

use muse_wire::{Duration, Instant};

use super::{Ack, Controller, Loss};
use compete::{BETA, Compete};
use delay::{BASE_SPAN, Delay};
use filter::LeastOver;
use losses::{Losses, Verdict};

/// Constants of the adaptive controller.
///
/// ```
/// use muse_transport::congestion::{AdaptiveConfig, Congestion};
/// use muse_wire::Instant;
/// let config = AdaptiveConfig::default().window_max(1 << 20).rate_floor(64_000);
/// assert!(Congestion::adaptive_with(config).build(1_200, Instant::ZERO).window() <= 1 << 20);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveConfig {
    window_max: usize,
    window_initial: u32,
    rate_floor: u32,
    queue_packets: u32,
}

impl Default for AdaptiveConfig {
    fn default() -> Self {
        Self { window_max: 16 << 20, window_initial: 10, rate_floor: 32_000, queue_packets: 2 }
    }
}

impl AdaptiveConfig {
    /// Most bytes in flight (16 MiB). It bounds the memory for what may have to be sent again; never less than two packets.
    pub fn window_max(mut self, bytes: usize) -> Self {
        self.window_max = bytes;
        self
    }

    /// Packets in flight before anything is known about the path (10). More starts faster and may overflow a short queue.
    pub fn window_initial(mut self, packets: u32) -> Self {
        self.window_initial = packets.max(2);
        self
    }

    /// Bytes per second below which losses alone never push the flow (32,000): what a game cannot do without. Delay
    /// still can. A high floor adds to the congestion of a thin link that drops instead of queueing.
    pub fn rate_floor(mut self, bytes_per_second: u32) -> Self {
        self.rate_floor = bytes_per_second;
        self
    }

    /// Packets that the flow wants to have waiting in the bottleneck's queue (2). More holds a larger share beside others and on
    /// jittery paths, and delays everybody.
    pub fn queue_packets(mut self, packets: u32) -> Self {
        self.queue_packets = packets.max(1);
        self
    }
}

/// The controller itself.
#[derive(Debug)]
pub(super) struct Adaptive {
    config: AdaptiveConfig,
    packet: f64,
    window: f64,
    mode: Mode,
    delay: Delay,
    losses: Losses,
    /// The round ends when a packet sent after this is acknowledged.
    round_from: Instant,
    /// What a packet takes at the bottleneck: the least time between acks of packets in a row. And the row so far.
    service: LeastOver,
    row: (Instant, usize),
    /// Rounds since the queue was last nearly empty.
    rounds_full: u32,
    /// How many of those are suspicious.
    rounds_patience: u32,
    /// The window when it last was.
    window_empty: f64,
    /// Losses forbid more than this while calm; it rises again as long as they do not return.
    ceiling: f64,
    /// No second cut for packets sent before this.
    recovery_from: Instant,
    /// Most bytes in flight in this round.
    used: usize,
    /// Window and time at which the flow last stopped competing: where to go on if that was a mistake.
    competed: (f64, Instant),
    /// Rounds in a row in which the queue was nearly empty, and whether it was in this one.
    rounds_empty: u32,
    seen_empty: bool,
    /// The base turned out shorter in this round or drain: what looked like an empty queue was none.
    base_corrected: bool,
    /// When the last drain ended, and the least round trip of all since the base was last seen.
    drained_at: Instant,
    least_drained: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Doubling each round trip until a queue shows.
    Start,
    /// Copa's default mode: steps of `velocity` in one direction.
    Calm { velocity: f64, rising: bool, rounds: u32, window_before: f64 },
    Compete(Compete),
    Drain(Drain),
}

/// Sending little, to see what the queue does without this flow.
#[derive(Clone, Copy, Debug)]
struct Drain {
    from: Origin,
    /// When little was in flight for the first time.
    low_at: Option<Instant>,
    /// The window before, and the part of it that was not in the queue.
    resume: f64,
    share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Start,
    Calm,
    Compete,
}

impl Adaptive {
    pub(super) fn new(config: AdaptiveConfig, packet_size: usize, now: Instant) -> Self {
        let packet = packet_size.max(1) as f64;
        let mut controller = Self {
            config,
            packet,
            window: f64::from(config.window_initial) * packet,
            mode: Mode::Start,
            delay: Delay::new(),
            losses: Losses::new(),
            round_from: now,
            service: LeastOver::new(),
            row: (now, 0),
            rounds_full: 0,
            rounds_patience: FULL_ROUNDS,
            window_empty: 0.0,
            ceiling: f64::INFINITY,
            recovery_from: now,
            used: 0,
            competed: (0.0, now),
            rounds_empty: 0,
            seen_empty: false,
            base_corrected: false,
            drained_at: now,
            least_drained: Duration::MAX,
        };
        controller.bound();
        controller.window_empty = controller.window;
        controller
    }

    /// Copa's rule: is the rate below what the delay of the queue allows?
    fn is_below_target(&self) -> bool {
        let own = self.window / self.delay.standing() * self.delay.queue();
        own <= self.queue_wanted()
    }

    /// Whether the queue holds no more than calm flows leave in it.
    fn is_nearly_empty(&self) -> bool {
        let few_packets = (QUEUE_CALM_PACKETS * self.service.value().as_secs_f64()).min(QUEUE_CALM_MAX);
        self.delay.is_nearly_empty() || self.delay.queue() <= few_packets
    }

    fn time_row(&mut self, ack: &Ack) {
        let (since, bytes) = self.row;
        let bytes = bytes.saturating_add(ack.bytes);
        self.row.1 = bytes;
        if bytes as f64 >= ROW_PACKETS * self.packet {
            let packets = bytes as f64 / self.packet;
            let time = Duration::from_secs_f64((ack.now - since).as_secs_f64() / packets);
            self.service.update(ack.now, SERVICE_SPAN, time);
            self.row = (ack.now, 0);
        }
    }

    fn queue_wanted(&self) -> f64 {
        let packets = f64::from(self.config.queue_packets).max(0.5 * (self.window / self.packet).sqrt());
        packets * self.packet
    }

    fn step(&mut self, ack: &Ack) {
        let may_grow = !ack.app_limited && self.used as f64 >= 0.5 * self.window;
        let may_shrink = self.used as f64 >= 0.5 * self.window;
        let bytes = ack.bytes as f64;
        match &mut self.mode {
            Mode::Start => {
                if !self.is_below_target() {
                    // The search overshot; what it put into the queue would mislead both this flow and those beside it.
                    self.drain(ack.now);
                } else if may_grow {
                    self.window += bytes;
                }
            }
            Mode::Calm { .. } => {
                self.step_calm(bytes, may_grow, may_shrink);
                self.window = self.window.min(self.ceiling);
            }
            Mode::Compete(compete) => {
                if may_grow {
                    let rtt = self.delay.standing();
                    let packets = bytes / self.packet;
                    self.window = compete.grow(ack.now, self.window / self.packet, packets, rtt) * self.packet;
                }
            }
            Mode::Drain(_) => self.step_drain(ack),
        }
    }

    fn calm(&self, rising: bool) -> Mode {
        Mode::Calm { velocity: 1.0, rising, rounds: 0, window_before: self.window }
    }

    fn step_calm(&mut self, bytes: f64, may_grow: bool, may_shrink: bool) {
        let up = self.is_below_target();
        let wanted = self.queue_wanted();
        let Mode::Calm { velocity, rising, rounds, .. } = &mut self.mode else { return };
        if up != *rising {
            // The direction turned: small steps again.
            (*velocity, *rising, *rounds) = (1.0, up, 0);
        }
        let change = (*velocity * wanted / self.window).min(0.2) * bytes;
        if up && may_grow {
            self.window += change;
        } else if !up && may_shrink {
            self.window -= change;
        }
    }

    fn next_round(&mut self, now: Instant, app_limited: bool) {
        self.delay.next_round();
        self.rounds_full = self.rounds_full.saturating_add(1);
        match self.losses.next_round() {
            Some(Verdict::Overflow) if self.used as f64 >= 0.5 * self.window => {
                self.cut_for_loss(now);
                self.ceiling = self.window;
            }
            Some(Verdict::Trial) if self.used as f64 >= 0.5 * self.window => self.cut_for_loss(now),
            _ => {
                let step = CEILING_STEP * self.packet * self.delay.standing();
                self.ceiling += (CEILING_GROWTH * (self.ceiling - TINY_PACKETS * self.packet)).max(step);
            }
        }
        let own_queue = self.window / self.delay.standing() * self.delay.queue();
        if let Mode::Calm { velocity, rising, rounds, window_before } = &mut self.mode {
            let went_up = self.window > *window_before;
            *window_before = self.window;
            if went_up == *rising {
                *rounds += 1;
                if *rounds >= 3 {
                    *velocity = (*velocity * 2.0).min(1e6);
                }
            } else {
                (*velocity, *rounds) = (1.0, 0);
            }
            if self.rounds_full > self.rounds_patience && own_queue <= 1.5 * self.queue_wanted() {
                self.drain(now);
            }
        }
        self.rounds_empty = if self.seen_empty && !self.base_corrected { self.rounds_empty + 1 } else { 0 };
        self.seen_empty = false;
        if !matches!(self.mode, Mode::Drain(_)) {
            self.base_corrected = false;
        }
        if matches!(self.mode, Mode::Compete(_)) && self.rounds_empty >= FULL_ROUNDS {
            self.competed = (self.window, now);
            self.mode = self.calm(true);
        }
        let interval = match self.mode {
            Mode::Compete(_) if self.delay.is_low() => DRAIN_INTERVAL / 2,
            Mode::Compete(_) => DRAIN_INTERVAL.max(Duration::from_secs_f64(20.0 * self.delay.standing())),
            _ => BASE_SPAN,
        };
        if self.delay.base_age(now).min(now - self.drained_at) > interval {
            if app_limited || (self.used as f64) < 0.5 * self.window {
                // A flow that leaves its window unused adds little to the queue: what it saw is as good as a drain.
                if self.delay.base_age(now) > BASE_SPAN {
                    let recent = self.delay.recent();
                    self.delay.set_base(now, recent);
                }
            } else {
                self.drain(now);
            }
        }
        self.release_unused(app_limited);
        self.used = 0;
    }

    fn compete(&mut self, now: Instant, resume: f64) {
        let (window, at) = self.competed;
        let known = if now - at < COMPETED_SPAN { window } else { 0.0 };
        let before = known.max(self.window_empty);
        self.window = resume.max(BETA * before);
        let compete = Compete::new(now, self.window / self.packet, before / self.packet);
        self.mode = Mode::Compete(if known > 0.0 { compete.knowing_the_limit() } else { compete });
        self.rounds_empty = 0;
    }

    fn drain(&mut self, now: Instant) {
        let from = match self.mode {
            Mode::Start => Origin::Start,
            Mode::Calm { .. } => Origin::Calm,
            Mode::Compete(_) => {
                self.competed = (self.window, now);
                Origin::Compete
            }
            Mode::Drain(_) => return,
        };
        let resume = self.window;
        let share = self.window * (self.delay.base() / self.delay.standing()).min(1.0);
        self.delay.forget_recent();
        self.base_corrected = false;
        self.window = 0.5 * share;
        self.mode = Mode::Drain(Drain { from, low_at: None, resume, share });
    }

    fn step_drain(&mut self, ack: &Ack) {
        let Mode::Drain(drain) = &mut self.mode else { return };
        let Some(since) = drain.low_at else {
            if ack.in_flight as f64 <= self.window.max(2.0 * self.packet) {
                drain.low_at = Some(ack.now);
            }
            return;
        };
        if ack.sent_at > since + Duration::from_secs_f64(0.5 * self.delay.base()) {
            let drain = *drain;
            self.end_drain(ack.now, drain);
        }
    }

    fn end_drain(&mut self, now: Instant, drain: Drain) {
        self.drained_at = now;
        let low = self.delay.recent();
        let empty = self.is_nearly_empty();
        self.least_drained = self.least_drained.min(low);
        if self.delay.base_age(now) > BASE_BELIEVED {
            self.delay.set_base(now, self.least_drained);
        }
        if self.delay.base_age(now) < BASE_SPAN {
            self.least_drained = Duration::MAX;
        }
        // While competing, a base that turned out shorter says that the queue was never seen empty, so it need not be now.
        let misled = drain.from == Origin::Compete && self.base_corrected;
        if drain.from == Origin::Start || (empty && !misled) {
            self.window = drain.share;
            self.rounds_full = 0;
            self.rounds_patience = (self.rounds_patience * 2).min(FULL_ROUNDS_MAX);
            self.mode = self.calm(true);
        } else {
            self.compete(now, drain.resume);
        }
    }

    /// A window that is not used proves nothing; let go of what is far beyond the use.
    fn release_unused(&mut self, app_limited: bool) {
        let keep = (2.0 * self.used as f64).max(f64::from(self.config.window_initial) * self.packet);
        if app_limited && self.window > keep {
            self.window -= (self.window - keep) / 8.0;
        }
    }

    fn cut_for_loss(&mut self, now: Instant) {
        self.recovery_from = now;
        let before = self.window;
        match self.mode {
            Mode::Compete(compete) => {
                let (next, window) = compete.after_overflow(now, self.window / self.packet);
                self.mode = Mode::Compete(next);
                self.window = window * self.packet;
            }
            Mode::Drain(_) => {}
            Mode::Start | Mode::Calm { .. } => {
                self.window *= CALM_CUT;
                self.mode = self.calm(false);
            }
        }
        let rtt = if self.delay.is_known() { self.delay.standing() } else { 0.1 };
        let floor = 2.0 * f64::from(self.config.rate_floor) * rtt;
        self.window = self.window.max(floor.min(before));
    }

    /// A window of a few packets is too coarse a measure; then the pace is what limits the flow.
    fn is_tiny(&self) -> bool {
        self.window < TINY_PACKETS * self.packet && matches!(self.mode, Mode::Calm { .. })
    }

    fn bound(&mut self) {
        let min = if self.is_tiny() { self.packet } else { 2.0 * self.packet };
        self.window = self.window.clamp(min, (self.config.window_max as f64).max(min));
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, _: Instant, _: usize, in_flight: usize, _: bool) {
        self.used = self.used.max(in_flight);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let packet_time = self.packet / self.window * self.delay.standing();
            if self.delay.sample(ack.now, rtt, ack.rtt_smoothed, packet_time) {
                self.base_corrected = true;
            }
        }
        if !self.delay.is_known() {
            return;
        }
        self.losses.acked();
        self.time_row(ack);
        self.used = self.used.max(ack.in_flight.saturating_add(ack.bytes));
        if self.is_nearly_empty() {
            self.rounds_full = 0;
            self.rounds_patience = FULL_ROUNDS;
            self.window_empty = self.window;
            self.seen_empty = true;
        }
        self.step(ack);
        if ack.sent_at >= self.round_from {
            self.round_from = ack.now;
            self.next_round(ack.now, ack.app_limited);
        }
        self.bound();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.losses.lost(self.delay.is_high());
        if loss.persistent {
            let now = loss.now;
            self.cut_for_loss(now);
            self.window = self.window.min(f64::from(self.config.window_initial) * self.packet);
        } else if matches!(self.mode, Mode::Compete(_)) && loss.sent_at > self.recovery_from && self.delay.is_high() {
            self.cut_for_loss(loss.now);
        }
        self.bound();
    }

    fn on_mark(&mut self, now: Instant, sent_at: Instant) {
        if sent_at > self.recovery_from {
            self.cut_for_loss(now);
            self.bound();
        }
    }

    fn on_packet_size(&mut self, bytes: usize) {
        self.packet = bytes.max(1) as f64;
        self.bound();
    }

    fn window(&self) -> usize {
        let spare = if self.is_tiny() { self.packet } else { 0.0 };
        (self.window + spare).min((self.config.window_max as f64).max(2.0 * self.packet)) as usize
    }

    fn pacing_rate(&self) -> Option<u64> {
        let gain = if self.is_tiny() { 1.0 } else { PACING_GAIN };
        self.delay.is_known().then(|| (gain * self.window / self.delay.standing()) as u64)
    }

    fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, self.packet as usize, now);
    }
}

/// Above one, so that the window limits the flow and the pace only spreads it.
const PACING_GAIN: f64 = 2.0;
const TINY_PACKETS: f64 = 8.0;
/// Rounds in which the queue must not have emptied before the flow competes.
const FULL_ROUNDS: u32 = 5;
/// The same after drains that found nobody.
const FULL_ROUNDS_MAX: u32 = 40;
/// What an overflow leaves of the window while calm.
const CALM_CUT: f64 = 0.7;
/// How the ceiling rises while losses do not blame the window: in each round by a share of what exceeds a tiny window, or else
/// by so many packets per second.
const CEILING_GROWTH: f64 = 0.02;
const CEILING_STEP: f64 = 0.2;
/// Packets, at the rate of the bottleneck, and seconds that may wait in a queue that counts as nearly empty.
const QUEUE_CALM_PACKETS: f64 = 5.0;
const QUEUE_CALM_MAX: f64 = 0.05;
/// Packets of a row whose acks are timed, and how long the shortest time is remembered.
const ROW_PACKETS: f64 = 4.0;
const SERVICE_SPAN: Duration = Duration::from_secs(60);
/// How long a base is believed that drains do not confirm.
const BASE_BELIEVED: Duration = Duration::from_secs(30);
/// How long the window of an earlier competition is remembered.
const COMPETED_SPAN: Duration = Duration::from_secs(30);
/// While competing, how often to look whether the queue is the flow's own.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);
