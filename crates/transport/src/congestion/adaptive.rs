//! The default controller: aims at a small queue, finds spare bandwidth, and turns competitive beside TCP.
//!
//! In *calm* waters it follows Copa (Arun and Balakrishnan, NSDI 2018): the flow wants about two packets of its own in
//! the queue, so it aims at the rate `2 packets / queue delay`; flows that meet in one queue see the same delay, aim at the same
//! rate and share fairly, and the queue empties every few round trips. When it no longer does although this flow has
//! stepped back, somebody fills it: the flow *competes* with CUBIC's window until the queue empties again.
//! Every few seconds without a glimpse of the empty path it *drains*: sends little for a round trip, to learn whether
//! the queue is its own.
//!
//! While calm it drains as well, together with the other flows, so that all know the empty path (docs/decisions/0014).
//!
//! Differences from Copa: round trips below 5 ms and measured jitter are no queue; CUBIC's growth instead of a variable target; the
//! drain; losses count only if a smaller window avoids them; and a window that the application does not use is not changed.

mod calm;
mod compete;
mod config;
mod delay;
mod filter;
mod losses;
mod service;
#[cfg(test)]
mod tests;

use muse_wire::{Duration, Instant, log};

use super::{Ack, Controller, Loss};
use calm::Calm;
use compete::{BETA, Compete};
pub use config::AdaptiveConfig;
use delay::{BASE_SPAN, Delay, Sample};
use losses::{Losses, Verdict};
use service::Service;

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
    service: Service,
    /// Rounds since the queue was last nearly empty.
    rounds_full: u32,
    /// The number of those that are suspicious.
    rounds_patience: u32,
    /// The window when it last was.
    window_empty: f64,
    /// Losses forbid more than this while calm; it rises again as long as they do not return.
    ceiling: f64,
    /// The window before the last cut that may have been a mistake.
    window_blamed: f64,
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
    /// The time at which the last drain ended, and the least round trip of all since the base was last seen.
    drained_at: Instant,
    least_drained: Duration,
    /// The time from the last dip of the round trip to the next drain while calm: often at first, because a flow that comes late has never seen
    /// the empty path.
    drain_interval: Duration,
    /// Drains in a row that did not empty the queue.
    drains_in_vain: u32,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Doubling each round trip until a queue shows.
    Start,
    Calm(Calm),
    Compete(Compete),
    Drain(Drain),
}

/// Sending little, to see what the queue does without this flow.
#[derive(Clone, Copy, Debug)]
struct Drain {
    from: Origin,
    /// The time at which little was in flight for the first time.
    low_at: Option<Instant>,
    /// The window before, and the part of it that was not in the queue.
    resume: f64,
    share: f64,
    /// The time for which little is to be in flight: others that drain too must have the time to.
    hold: Duration,
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
            service: Service::new(now),
            rounds_full: 0,
            rounds_patience: FULL_ROUNDS,
            window_empty: 0.0,
            ceiling: f64::INFINITY,
            window_blamed: 0.0,
            recovery_from: now,
            used: 0,
            competed: (0.0, now),
            rounds_empty: 0,
            seen_empty: false,
            base_corrected: false,
            drained_at: now,
            least_drained: Duration::MAX,
            drain_interval: CALM_DRAIN_FIRST,
            drains_in_vain: 0,
        };
        controller.bound();
        controller.window_empty = controller.window;
        controller
    }

    /// Copa's rule: is the rate below what the delay of the queue allows?
    fn is_below_target(&self) -> bool {
        self.own_queue() <= self.queue_wanted()
    }

    /// Bytes of this flow that wait in the queue.
    fn own_queue(&self) -> f64 {
        self.window / self.delay.standing() * self.delay.queue()
    }

    /// True if the queue holds no more than calm flows leave in it.
    fn is_nearly_empty(&self) -> bool {
        let few_packets = (QUEUE_CALM_PACKETS * self.service.time()).min(QUEUE_CALM_MAX);
        self.delay.is_nearly_empty() || self.delay.queue() <= few_packets
    }

    fn queue_wanted(&self) -> f64 {
        // By the rate, not by the window: else a flow from afar would want more of the queue than one from nearby.
        let rate = self.window / self.packet / self.delay.standing();
        let packets = f64::from(self.config.queue_packets).max(0.5 * (rate * QUEUE_SPAN).sqrt());
        packets * self.packet
    }

    /// True if the flow fills its window; if not, neither delay nor loss says anything about it.
    fn is_used(&self) -> bool {
        self.used as f64 >= 0.5 * self.window
    }

    fn step(&mut self, ack: &Ack) {
        let up = self.is_below_target();
        let wanted = self.queue_wanted();
        // A window that was not filled has not been tested, so it must not grow; delay that others cause must not shrink
        // it.
        let may_grow = !ack.app_limited && self.is_used();
        let may_shrink = self.is_used();
        let bytes = ack.bytes as f64;
        match &mut self.mode {
            Mode::Start if up && may_grow => self.window += bytes,
            // The search overshot; what it put into the queue would mislead this flow and those beside it.
            Mode::Start if !up && may_grow => self.drain(ack.now),
            Mode::Start if !up => self.mode = self.calm(false),
            Mode::Start => {}
            Mode::Calm(calm) => {
                let small = SMALL_PACKETS * self.packet;
                let change = calm.step(up, self.window, wanted, bytes, small);
                if up && may_grow {
                    self.window = (self.window + change).min(self.ceiling.max(self.window));
                } else if !up && may_shrink {
                    self.window -= change;
                }
            }
            Mode::Compete(compete) if may_grow => {
                let (window, packets) = (self.window / self.packet, bytes / self.packet);
                self.window =
                    compete.grow(ack.now, window, packets, self.delay.standing()) * self.packet;
            }
            Mode::Compete(_) => {}
            Mode::Drain(_) => self.step_drain(ack),
        }
    }

    fn calm(&self, rising: bool) -> Mode {
        Mode::Calm(Calm::new(self.window, rising))
    }

    fn next_round(&mut self, now: Instant, app_limited: bool) {
        self.delay.next_round();
        self.judge_losses(now);
        self.rounds_full = self.rounds_full.saturating_add(1);
        self.rounds_empty = match self.seen_empty && !self.base_corrected {
            true => self.rounds_empty.saturating_add(1),
            false => 0,
        };
        self.seen_empty = false;
        if !matches!(self.mode, Mode::Drain(_)) {
            self.base_corrected = false;
        }
        let window = self.window;
        match &mut self.mode {
            Mode::Calm(calm) => calm.next_round(window),
            // Nobody else fills the queue any more. A single empty round would prove nothing.
            Mode::Compete(_) if self.rounds_empty >= FULL_ROUNDS => {
                self.competed = (window, now);
                self.mode = self.calm(true);
            }
            _ => {}
        }
        if app_limited || !self.is_used() {
            // A flow that leaves its window unused adds little to the queue: its samples are as good as a drain's.
            if self.delay.base_age(now) > BASE_SPAN {
                let recent = self.delay.recent();
                self.delay.set_base(now, recent);
            }
        } else if self.is_drain_due(now) {
            self.drain(now);
        }
        self.release_unused(app_limited);
        self.used = 0;
    }

    fn judge_losses(&mut self, now: Instant) {
        match self.losses.next_round() {
            Some(Verdict::Overflow) if self.is_used() => {
                self.window_blamed = self.window;
                // A long queue shows in the delay before it overflows; only a short one needs a ceiling.
                let is_short = self.delay.swing() < SHORT_QUEUE_PACKETS * self.service.time();
                self.cut_for_loss(now);
                self.ceiling = if is_short { self.window } else { f64::INFINITY };
            }
            Some(Verdict::Trial) if self.is_used() => {
                self.window_blamed = self.window;
                self.cut_for_loss(now);
            }
            // The path loses packets whatever the window is: back to the window before the cut.
            Some(Verdict::Mistaken) => {
                self.ceiling = f64::INFINITY;
                if matches!(self.mode, Mode::Calm(_)) {
                    self.window = self.window.max(self.window_blamed);
                }
            }
            _ => {
                let step = CEILING_STEP * self.packet * self.delay.standing();
                let beyond_tiny = self.ceiling - TINY_PACKETS * self.packet;
                self.ceiling += (CEILING_GROWTH * beyond_tiny).max(step);
            }
        }
    }

    /// True if it is time to see what the queue does without this flow.
    fn is_drain_due(&self, now: Instant) -> bool {
        let Mode::Compete(_) = self.mode else {
            // The queue does not empty although hardly anything in it is this flow's.
            let suspicious = matches!(self.mode, Mode::Calm(_))
                && self.rounds_full > self.rounds_patience
                && self.own_queue() <= 1.5 * self.queue_wanted();
            return suspicious || self.delay.dip_age(now) > self.drain_interval;
        };
        // Somebody stepped back, perhaps to drain; drains at the same time see more.
        let interval = match self.delay.is_low() {
            true => DRAIN_INTERVAL / 2,
            false => DRAIN_INTERVAL.max(Duration::from_secs_f64(20.0 * self.delay.standing())),
        };
        self.delay.base_age(now).min(now - self.drained_at) > interval
    }

    /// Joins another flow's drain: only together do they see the empty path, and all agree what it is. The lowest dip is seen
    /// by all at one time, so that the next drains begin together.
    fn join_drain(&mut self, ack: &Ack) {
        if self.delay.take_dip_fell()
            && matches!(self.mode, Mode::Calm(_))
            && !ack.app_limited
            && self.is_used()
            && ack.now - self.drained_at > CALM_DRAIN_FIRST
        {
            self.drain(ack.now);
        }
    }

    fn compete(&mut self, now: Instant, resume: f64) {
        let (window, at) = self.competed;
        let known = if now - at < COMPETED_SPAN {
            window
        } else {
            0.0
        };
        // Continue where it left off, if that is not long ago; otherwise from the last window that left the queue empty.
        let before = known.max(self.window_empty);
        self.window = resume.max(BETA * before);
        let compete = Compete::new(now, self.window / self.packet, before / self.packet);
        self.mode = Mode::Compete(if known > 0.0 {
            compete.knowing_the_limit()
        } else {
            compete
        });
        self.rounds_empty = 0;
    }

    fn drain(&mut self, now: Instant) {
        let from = match self.mode {
            Mode::Start => Origin::Start,
            Mode::Calm(_) => {
                self.drain_interval = (self.drain_interval * 2).min(CALM_DRAIN_INTERVAL);
                Origin::Calm
            }
            Mode::Compete(_) => {
                self.competed = (self.window, now);
                Origin::Compete
            }
            Mode::Drain(_) => return,
        };
        let resume = self.window;
        let share = self.window * (self.delay.base() / self.delay.standing()).min(1.0);
        let hold = self.delay.standing().min(2.0 * self.delay.base());
        // Only samples of the drain itself may say how short the queue has become.
        self.delay.forget_recent();
        self.base_corrected = false;
        // Half of what fits on the path without a queue, so that the queue surely empties.
        self.window = 0.5 * share;
        self.mode = Mode::Drain(Drain {
            from,
            low_at: None,
            resume,
            share,
            hold: Duration::from_secs_f64(hold),
        });
    }

    fn step_drain(&mut self, ack: &Ack) {
        let Mode::Drain(drain) = &mut self.mode else {
            return;
        };
        let Some(since) = drain.low_at else {
            if ack.in_flight as f64 <= self.window.max(self.packet) {
                drain.low_at = Some(ack.now);
            }
            return;
        };
        // By when the packet was sent: only those sent into the emptied queue tell what it is like.
        if ack.sent_at > since + drain.hold {
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
            self.drains_in_vain = 0;
            self.mode = self.calm(true);
        } else if drain.from == Origin::Calm && self.drains_in_vain == 0 {
            // Once may be a flow that has just come. It saw the dip, and knows the path better the next time.
            self.drains_in_vain = 1;
            self.window = drain.resume;
            self.rounds_full = 0;
            self.mode = self.calm(true);
        } else {
            self.drains_in_vain = 0;
            self.compete(now, drain.resume);
        }
    }

    /// A window that is not used proves nothing; let go of what is far beyond the use.
    fn release_unused(&mut self, app_limited: bool) {
        let keep =
            (2.0 * self.used as f64).max(f64::from(self.config.window_initial) * self.packet);
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
            Mode::Start | Mode::Calm(_) => {
                self.window *= CALM_CUT;
                self.mode = self.calm(false);
            }
        }
        self.window = self.window.max(self.window_floor().min(before));
        log!(debug, before, window = self.window, mode = ?self.mode, "loss or mark: smaller window");
    }

    /// The window below which losses alone do not push the flow: two round trips at the rate floor, for what is lost stays in flight
    /// until it is noticed.
    fn window_floor(&self) -> f64 {
        let rtt = if self.delay.is_known() {
            self.delay.standing()
        } else {
            RTT_UNKNOWN
        };
        (2.0 * f64::from(self.config.rate_floor) * rtt).max(2.0 * self.packet)
    }

    /// A window of a few packets is too coarse a measure; then the pace is what limits the flow.
    fn is_tiny(&self) -> bool {
        self.window < TINY_PACKETS * self.packet && matches!(self.mode, Mode::Calm(_))
    }

    fn bound(&mut self) {
        let min = match self.mode {
            // Two packets are more than the share of a flow on a thin path, and would stay in the queue.
            Mode::Drain(_) => self.packet,
            _ if self.is_tiny() => self.packet,
            _ => 2.0 * self.packet,
        };
        self.window = self
            .window
            .clamp(min, (self.config.window_max as f64).max(min));
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, _: Instant, _: usize, in_flight: usize, _: bool) {
        self.used = self.used.max(in_flight);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let service = Duration::from_secs_f64(self.service.time()).min(SERVICE_MAX);
            let sample = Sample {
                rtt,
                slack: ack.rtt_slack,
                smoothed: ack.rtt_smoothed,
                lacks: 1.0 - ack.bytes as f64 / self.packet,
                packet_time: self.packet / self.window * self.delay.standing(),
                service,
            };
            if self.delay.sample(ack.now, &sample) {
                self.base_corrected = true;
            }
        }
        if !self.delay.is_known() {
            return;
        }
        self.losses.acked();
        self.service.acked(ack.now, ack.bytes, self.packet);
        self.used = self.used.max(ack.in_flight.saturating_add(ack.bytes));
        if self.is_nearly_empty() {
            self.rounds_full = 0;
            self.rounds_patience = FULL_ROUNDS;
            self.window_empty = self.window;
            self.seen_empty = true;
        }
        self.step(ack);
        self.join_drain(ack);
        if ack.sent_at >= self.round_from {
            self.round_from = ack.now;
            self.next_round(ack.now, ack.app_limited);
        }
        self.bound();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.losses.lost(self.delay.is_high());
        // One cut for all packets of a window that was too large.
        if loss.sent_at < self.recovery_from {
            return;
        }
        // Nothing gets through: what was known of the path may not hold any more.
        if loss.persistent {
            self.cut_for_loss(loss.now);
            self.window = self.window.min(self.window_floor());
            self.mode = Mode::Start;
        } else if matches!(self.mode, Mode::Compete(_)) && self.delay.is_high() {
            self.cut_for_loss(loss.now);
        }
        self.bound();
    }

    fn on_mark(&mut self, now: Instant, sent_at: Instant) {
        // Routers mark instead of dropping; once for each window, as with losses.
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
        self.delay
            .is_known()
            .then(|| (gain * self.window / self.delay.standing()) as u64)
    }

    fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, self.packet as usize, now);
    }
}

/// Above one, so that the window limits the flow and the pace only spreads it.
const PACING_GAIN: f64 = 2.0;
const TINY_PACKETS: f64 = 8.0;
/// Seconds of sending whose packets' root is the queue that a fast flow wants.
const QUEUE_SPAN: f64 = 0.05;
/// Windows below this rise by the same and fall by a share.
const SMALL_PACKETS: f64 = 5.0;
/// A queue of fewer packets overflows before the delay shows that it is long.
const SHORT_QUEUE_PACKETS: f64 = 8.0;
/// Rounds in which the queue must not have emptied before the flow competes.
const FULL_ROUNDS: u32 = 5;
/// The same after drains that found nobody.
const FULL_ROUNDS_MAX: u32 = 40;
/// The share of the window that an overflow leaves while calm.
const CALM_CUT: f64 = 0.7;
/// The rise of the ceiling while losses do not blame the window: in each round by a share of what exceeds a tiny window, or else
/// by so many packets per second.
const CEILING_GROWTH: f64 = 0.02;
const CEILING_STEP: f64 = 0.2;
/// Packets, at the rate of the bottleneck, and seconds that may wait in a queue that counts as nearly empty.
const QUEUE_CALM_PACKETS: f64 = 7.0;
const QUEUE_CALM_MAX: f64 = 0.07;
/// A bottleneck slower than one packet in this time is not believed.
const SERVICE_MAX: Duration = Duration::from_millis(10);
/// Seconds, before the first sample.
const RTT_UNKNOWN: f64 = 0.1;
/// The time for which a base is believed that drains do not confirm.
const BASE_BELIEVED: Duration = Duration::from_secs(30);
/// The time for which the window of an earlier competition is remembered.
const COMPETED_SPAN: Duration = Duration::from_secs(30);
/// The time from the last dip of the round trip to the drain of a calm flow, in the long run and at first.
const CALM_DRAIN_INTERVAL: Duration = Duration::from_secs(5);
const CALM_DRAIN_FIRST: Duration = Duration::from_secs(1);
/// While competing, how often to look whether the queue is the flow's own.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);
