//! The client's clock: when to simulate which tick, and what time it is on the server.
//!
//! The client simulates a tick early enough that its input reaches the server before the server simulates the same tick, and no
//! earlier than that. How early is the server's to say: it sees every packet arrive, and answers with its *aim*, the reading of the
//! client's own clock at which a tick's input should have been sent. An aim is absolute, so a late answer leads to
//! no overshooting; the clock is steered to it by running up to a few percent faster or slower, and never jumps.

mod delays;
mod drift;
mod losses;
mod steered;

pub(crate) use delays::{Delays, Need};
pub(crate) use drift::Drift;
pub(crate) use losses::Losses;
pub(crate) use steered::Steered;

use muse_wire::{Duration, Instant};

use crate::inputs::{Heard, InputReport, Stamp};
use crate::{Tick, TickTime};

/// Settings of a [`ClientClock`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockConfig {
    tick: Duration,
    copies: bool,
}

impl ClockConfig {
    /// For ticks of this length, the same as the server's.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick: tick.max(Duration::from_micros(100)),
            copies: true,
        }
    }

    /// Allows inputs to be sent a second time half a tick later, while the server sees more loss than one copy in the
    /// next packet makes good. On by default; it doubles the packets sent, and saves up to a tick of delay.
    pub fn copies(mut self, allowed: bool) -> Self {
        self.copies = allowed;
        self
    }
}

/// The next thing to do, in the order of [`ClientClock::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send a packet without inputs: the way to the server is still being measured.
    Probe,
    /// Simulate this tick, and send its input.
    Tick(Tick),
    /// Send the inputs again.
    Copy,
}

/// The client's clock.
///
/// Call [`handle_snapshot`](Self::handle_snapshot) for each one that arrives; in each frame call [`advance`](Self::advance), then
/// [`poll`](Self::poll) until it returns `None`. Each [`Due`] asks for a packet, whose [`header`](Self::header) goes to
/// the [`InputSender`](crate::inputs::InputSender). [`poll_timeout`](Self::poll_timeout) says when the next one is due.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::clock::{ClientClock, ClockConfig, Due};
/// use muse_wire::{Duration, Instant};
/// let mut clock = ClientClock::new(ClockConfig::new(Duration::from_millis(20)));
/// let now = Instant::from_secs(1);
/// clock.handle_snapshot(now, Tick(500), None);
/// clock.advance(now);
/// assert_eq!(clock.poll(), Some(Due::Probe));
/// assert!(!clock.is_playing());
/// ```
#[derive(Clone, Debug)]
pub struct ClientClock {
    config: ClockConfig,
    /// Delays of snapshots, from `reference` on.
    delays: Delays,
    reference: i64,
    /// The tick named by the newest report, and when the server began it by our clock.
    server_at: Option<(Tick, i64)>,
    server: Option<Steered>,
    ping: Option<Duration>,
    /// The tick named by the newest aim, and when its input should have been sent.
    aim: Option<(Tick, Instant)>,
    play: Option<Steered>,
    now: Instant,
    probe_at: Instant,
    next: Tick,
    /// The time at which the packet of the last `Due` should have left.
    nominal: Instant,
    copy_at: Option<Instant>,
    copies_on: bool,
    number: u16,
    sent: [Option<(u16, Instant)>; SENT_MAX],
    newest_answered: Option<u16>,
    slipped: u16,
    skipped: u64,
}

impl ClientClock {
    /// A clock that knows nothing of its server yet.
    pub fn new(config: ClockConfig) -> Self {
        Self {
            config,
            delays: Delays::new(),
            reference: 0,
            server_at: None,
            server: None,
            ping: None,
            aim: None,
            play: None,
            now: Instant::ZERO,
            probe_at: Instant::ZERO,
            next: Tick(0),
            nominal: Instant::ZERO,
            copy_at: None,
            copies_on: false,
            number: 0,
            sent: [None; SENT_MAX],
            newest_answered: None,
            slipped: 0,
            skipped: 0,
        }
    }

    /// A snapshot arrived that the server made at the beginning of `tick`, with its report on our inputs.
    pub fn handle_snapshot(&mut self, now: Instant, tick: Tick, report: Option<&InputReport>) {
        let arrival = micros(now);
        let delay = arrival.saturating_sub(self.tick_time(tick));
        if self.server.is_none() {
            self.reference = delay;
            // Better than nothing: the way here is still taken as no time at all.
            let position = f64::from(tick.0);
            let server = Steered::new(self.config.tick, SERVER_DILATION_MAX, now, position);
            self.server = Some(server);
            self.server_at = Some((tick, arrival));
            self.probe_at = now;
        }
        if let Some(report) = report {
            // Before the delay is recorded: the time that the server let go is no delay of the network.
            self.handle_slip(report.slipped);
        }
        let delay = delay.saturating_sub(self.reference);
        self.delays
            .record(delay.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
        if let Some(report) = report {
            self.handle_report(now, tick, report);
        }
    }

    /// Advances the clock to `now`.
    pub fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        let tick_micros = self.tick_micros();
        let local = micros(now);
        if let (Some(server), Some((tick, at))) = (&mut self.server, self.server_at) {
            let target = f64::from(tick.0) + local.saturating_sub(at) as f64 / tick_micros;
            // Nobody plays by this clock before the first inputs are sent.
            match self.play {
                None => server.set(now, target),
                Some(_) => server.advance(now, target),
            }
        }
        let Some((aimed, at)) = self.aim else {
            return;
        };
        let since = local as f64 - at.as_micros() as f64;
        let target = f64::from(aimed.0) + since / tick_micros;
        if let Some(play) = &mut self.play {
            play.advance(now, target);
            let behind = play.position() - f64::from(self.next.0);
            // After a long pause the server has gone on without these inputs anyway; simulating them all would only make
            // the pause longer.
            if behind > f64::from(CATCH_UP_MAX) {
                let skip = behind as u32 - CATCH_UP_MAX;
                self.next = self.next + skip;
                self.skipped += u64::from(skip);
            }
        } else {
            let play = Steered::new(self.config.tick, DILATION_MAX, now, target);
            self.next = Tick(target.max(0.0) as u32) + 1;
            self.play = Some(play);
        }
    }

    /// Returns the next thing to do by the time of the last [`advance`](Self::advance).
    pub fn poll(&mut self) -> Option<Due> {
        let Some(play) = &self.play else {
            if self.server.is_none() || self.now < self.probe_at {
                return None;
            }
            self.nominal = self.now;
            self.probe_at = self.now + self.config.tick;
            return Some(Due::Probe);
        };
        // The copy of an earlier tick comes before the next tick.
        if let Some(at) = self.copy_at
            && at <= self.now
        {
            self.copy_at = None;
            self.nominal = at;
            return Some(Due::Copy);
        }
        if play.position() < f64::from(self.next.0) {
            return None;
        }
        let tick = self.next;
        self.next = tick + 1;
        // Measured by when it should have left, not by when the program got round to it: a frame's jitter is no jitter
        // of the network.
        self.nominal = play.time_of(f64::from(tick.0)).min(self.now);
        let half = f64::from(tick.0) + 0.5;
        self.copy_at = (self.copies_on && self.config.copies).then(|| play.time_of(half));
        Some(Due::Tick(tick))
    }

    /// Returns the time at which [`poll`](Self::poll) has something next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.play {
            Some(play) => {
                // Rounded up, so that it is due when the time has come.
                let tick = play.time_of(f64::from(self.next.0)) + Duration::from_micros(1);
                Some(self.copy_at.map_or(tick, |copy| copy.min(tick)))
            }
            None => self.server.map(|_| self.probe_at),
        }
    }

    /// The header of the packet that the last [`Due`] asked for, which is sent at `now`.
    pub fn header(&mut self, now: Instant) -> PacketHeader {
        self.number = self.number.wrapping_add(1);
        self.sent[self.number as usize % SENT_MAX] = Some((self.number, now));
        PacketHeader {
            number: self.number,
            stamp: Stamp::of(self.nominal),
            doubled: self.copies_on && self.config.copies,
        }
    }

    /// True once ticks are simulated; before that the way to the server is measured.
    pub fn is_playing(&self) -> bool {
        self.play.is_some()
    }

    /// Returns the estimated time on the server.
    pub fn server_time(&self) -> Option<TickTime> {
        let position = self.server?.position();
        Some(TickTime::from_ticks(position))
    }

    /// The instant that is being played: the last tick simulated, and how far it is to the next. For drawing between two ticks.
    pub fn play_time(&self) -> Option<TickTime> {
        Some(TickTime::from_ticks(self.play?.position()))
    }

    /// Returns how far ahead of the server the client plays.
    pub fn ahead(&self) -> Option<Duration> {
        let ticks = self.play?.position() - self.server?.position();
        Some(Duration::from_secs_f64(
            ticks * self.config.tick.as_secs_f64(),
        ))
    }

    /// Speed of the clock against time; 1 when it is where it should be.
    pub fn rate(&self) -> f64 {
        self.play.map_or(1.0, |play| play.rate())
    }

    /// The mean of the last round trips, without the time that the server held its answer.
    pub fn round_trip(&self) -> Option<Duration> {
        self.ping
    }

    /// Ticks that were never simulated because the program stood still for too long.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn handle_slip(&mut self, slipped: u16) {
        let slip = slipped.wrapping_sub(self.slipped) as i16;
        if slip > 0 {
            self.slipped = slipped;
            let tick = self.config.tick.as_micros().min(1_000_000) as i32;
            self.delays.shift(i32::from(slip).saturating_mul(tick));
        }
    }

    fn handle_report(&mut self, now: Instant, tick: Tick, report: &InputReport) {
        if let Some(heard) = report.heard {
            self.measure_round_trip(now, heard);
        }
        self.copies_on = report.asks_for_copies();
        // A late report aims at a past that is over.
        let newest = self.aim.is_none_or(|(newest, _)| tick >= newest);
        let Some(aim) = report.aim.filter(|_| newest) else {
            return;
        };
        let aim = aim.near(now);
        self.aim = Some((tick, aim));
        // A quick packet sent at the one instant reaches the server as the tick begins, a quick one sent then arrives at the
        // other; the beginning is in the middle, if both ways are alike.
        let sent = micros(aim).saturating_add(micros(Instant::ZERO + report.spare()));
        let quick = i64::from(self.delays.quantile(QUICK_SHARE));
        let arrival = self
            .tick_time(tick)
            .saturating_add(self.reference)
            .saturating_add(quick);
        self.server_at = Some((tick, sent + (arrival - sent) / 2));
    }

    fn measure_round_trip(&mut self, now: Instant, heard: Heard) {
        let newer = |newest: u16| heard.packet.wrapping_sub(newest) as i16 > 0;
        let Some((number, sent)) = self.sent[heard.packet as usize % SENT_MAX] else {
            return;
        };
        // Its place was taken by a later packet, or a later one has been answered: each counts once.
        if number != heard.packet || !self.newest_answered.is_none_or(newer) {
            return;
        }
        self.newest_answered = Some(number);
        let round_trip = (now.saturating_since(sent) - heard.held()).min(ROUND_TRIP_MAX);
        self.ping = Some(match self.ping {
            Some(ping) => (ping * 15 + round_trip) / 16,
            None => round_trip,
        });
    }

    /// Returns the time at which a tick begins if the first began at zero, in microseconds.
    fn tick_time(&self, tick: Tick) -> i64 {
        i64::from(tick.0) * self.config.tick.as_micros() as i64
    }

    fn tick_micros(&self) -> f64 {
        self.config.tick.as_micros() as f64
    }
}

/// The beginning of a packet from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Counts packets, so that loss can be measured and an answer can name one.
    pub number: u16,
    /// The time at which the packet should have left, by the client's clock.
    pub stamp: Stamp,
    /// Two packets are sent in each tick.
    pub doubled: bool,
}

/// An instant as a number that can be subtracted from.
fn micros(instant: Instant) -> i64 {
    instant.as_micros().min(i64::MAX as u64 / 4) as i64
}

/// Quick packets are those of the quickest tenth: nothing was in their way, so they tell the distance.
pub(crate) const QUICK_SHARE: f64 = 0.1;
/// The clock runs faster or slower than time by no more than this: less is smoother, more follows a changing network sooner.
const DILATION_MAX: f64 = 0.05;
/// Ticks that are simulated at once after the program stood still; those before are skipped.
const CATCH_UP_MAX: u32 = 25;
/// Longest round trip counted.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(10);
/// Packets whose time of sending is remembered: 5 s at 50 a second.
const SENT_MAX: usize = 256;
/// The most that the estimate of the server's time is stretched while somebody plays; nothing is simulated by it.
const SERVER_DILATION_MAX: f64 = 0.1;
