//! The instant of the past that is shown.

use muse_wire::{Duration, Instant};

use crate::clock::{Delays, Losses, Need, Steered};
use crate::{Tick, TickTime};

/// The instant at which a client shows others: as late as the arrival of snapshots asks for, and no later.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::interpolation::Playback;
/// use muse_wire::{Duration, Instant};
/// let mut playback = Playback::new(Duration::from_millis(20));
/// for number in 0..600 {
///     let now = Instant::from_millis(1_000 + u64::from(number) * 20);
///     playback.handle_snapshot(now, Tick(u32::from(number)), number);
///     playback.advance(now);
/// }
/// // On a perfect network, hardly more than the one interval that it takes to have a next state.
/// let behind = 599.0 - playback.time().expect("it runs").ticks();
/// assert!((1.0..1.3).contains(&behind));
/// ```
#[derive(Clone, Debug)]
pub struct Playback {
    tick: Duration,
    delays: Delays,
    losses: Losses,
    /// Arrival of the first snapshot less the time of its tick, in microseconds.
    reference: i64,
    newest: Option<(Tick, u16)>,
    newest_tick: Tick,
    interval_ticks: f64,
    lead: Option<i32>,
    since_lead: u32,
    clock: Option<Steered>,
    slipped: u16,
}

impl Playback {
    /// Makes a playback for ticks of this length, to which nothing has arrived yet.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick: tick.max(Duration::from_micros(100)),
            delays: Delays::new(),
            losses: Losses::new(),
            reference: 0,
            newest: None,
            newest_tick: Tick(0),
            interval_ticks: 1.0,
            lead: None,
            since_lead: 0,
            clock: None,
            slipped: 0,
        }
    }

    /// A packet with states of `tick` arrived; `number` counts the packets of the server to this client.
    pub fn handle_snapshot(&mut self, now: Instant, tick: Tick, number: u16) {
        self.losses.record(number);
        let arrival = now.as_micros().min(i64::MAX as u64) as i64;
        let delay = arrival.saturating_sub(i64::from(tick.0) * i64::from(self.tick_micros()));
        if self.newest.is_none() {
            self.reference = delay;
        }
        let delay = delay.saturating_sub(self.reference);
        self.delays
            .record(delay.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
        self.measure_interval(tick, number);
        self.newest_tick = self.newest_tick.max(tick);
        self.since_lead += 1;
        if self.since_lead >= LEAD_EVERY || self.lead.is_none() {
            self.since_lead = 0;
            self.lead = self.compute_lead();
        }
    }

    /// The server let go of so many ticks of time in all, as its [`InputReport`](crate::inputs::InputReport) says.
    pub fn handle_slipped(&mut self, slipped: u16) {
        let ticks = slipped.wrapping_sub(self.slipped) as i16;
        if ticks > 0 {
            self.slipped = slipped;
            self.delays
                .shift(i32::from(ticks).saturating_mul(self.tick_micros()));
            self.lead = self.compute_lead();
        }
    }

    /// Advances to `now`.
    pub fn advance(&mut self, now: Instant) {
        let Some(lead) = self.lead else {
            return;
        };
        let now_micros = now.as_micros().min(i64::MAX as u64) as i64;
        let micros = now_micros
            .saturating_sub(self.reference)
            .saturating_sub(i64::from(lead));
        let target = micros as f64 / f64::from(self.tick_micros());
        let usual = f64::from(lead.saturating_sub(self.delays.mean()))
            / f64::from(self.tick_micros())
            - self.interval_ticks;
        match &mut self.clock {
            Some(clock) => {
                let ahead = f64::from(self.newest_tick.0) - clock.position();
                // The brake may not hold it back for ever: once it is far behind, it has to catch up.
                let is_behind = target - clock.position() > self.interval_ticks * BRAKE_INTERVALS;
                let rate_max = match is_behind {
                    true => f64::INFINITY,
                    false => brake(ahead, usual),
                };
                clock.advance_at_most(now, target, rate_max);
            }
            None => {
                self.clock = Some(Steered::new(self.tick, DILATION_MAX, now, target));
            }
        }
    }

    /// The instant to show.
    pub fn time(&self) -> Option<TickTime> {
        self.clock
            .map(|clock| TickTime::from_ticks(clock.position()))
    }

    /// Returns how much later others are shown than their states arrive in the mean.
    pub fn delay(&self) -> Option<Duration> {
        let micros = self.lead?.saturating_sub(self.delays.mean());
        Some(Duration::from_micros(micros.max(0) as u64))
    }

    /// Returns how much longer than the mean the slowest of a hundred packets takes.
    pub fn jitter_p99(&self) -> Duration {
        Duration::from_micros((self.delays.quantile(0.99) - self.delays.mean()).max(0) as u64)
    }

    /// Ticks from one snapshot to the next.
    pub fn interval_ticks(&self) -> f64 {
        self.interval_ticks
    }

    /// Share of the server's packets that are lost.
    pub fn loss(&self) -> f64 {
        self.losses.share()
    }

    fn measure_interval(&mut self, tick: Tick, number: u16) {
        let Some((newest, newest_number)) = self.newest else {
            self.newest = Some((tick, number));
            return;
        };
        let (ticks, packets) = (tick - newest, number.wrapping_sub(newest_number) as i16);
        if packets <= 0 {
            return;
        }
        self.newest = Some((tick, number));
        // Only neighbours tell the interval; after a loss the gap is longer.
        if packets == 1 && ticks > 0 {
            let ticks = ticks.min(INTERVAL_TICKS_MAX) as f64;
            self.interval_ticks += (ticks - self.interval_ticks) * INTERVAL_WEIGHT;
        }
    }

    /// Returns how long after its tick a state is shown, counted as delays are.
    fn compute_lead(&self) -> Option<i32> {
        let interval = self.interval_ticks * f64::from(self.tick_micros());
        let required = self.delays.required(&Need {
            first: interval as i32,
            spacing: interval as i32,
            copies: COPIES,
            loss: self.losses.share(),
            miss_share_max: MISS_SHARE_MAX,
        })?;
        let reserve = (interval * RESERVE) as i32;
        let longest = (interval * INTERVALS_MAX) as i32;
        let limit = self.delays.quantile(0.99).saturating_add(longest);
        // Before anything is known of the network, the usual depth.
        let start = (interval * INTERVALS_START) as i32;
        let least = match self.delays.len() {
            0..DELAYS_MIN => self.delays.quantile(1.0).saturating_add(start),
            _ => i32::MIN,
        };
        Some(required.saturating_add(reserve).min(limit).max(least))
    }

    fn tick_micros(&self) -> i32 {
        self.tick.as_micros().min(1_000_000) as i32
    }
}

/// The highest rate while the newest state is so many ticks `ahead` of what is shown. When the next ones are overdue, what is left is
/// shown more slowly, so that it lasts until they come: less than half of what is there in the usual case is too little.
fn brake(ahead: f64, usual: f64) -> f64 {
    let enough = usual / 2.0;
    if ahead >= enough || ahead <= 0.0 {
        return f64::INFINITY;
    }
    1.0 - BRAKE * (1.0 - ahead / enough)
}

/// The longest delay, in intervals between snapshots, besides what the slowest of a hundred packets needs: 1 is the least that has
/// something to interpolate to, 2 outlasts one lost snapshot.
const INTERVALS_MAX: f64 = 1.85;
/// The delay before anything is known of the network.
const INTERVALS_START: f64 = 2.0;
/// Others are shown faster or slower than time by no more than this.
const DILATION_MAX: f64 = 0.05;
/// Share of time in which there may be nothing to interpolate to, as far as the longest delay allows.
const MISS_SHARE_MAX: f64 = 0.0004;
/// The slow-down while the last of what is there is shown, as a share of time.
const BRAKE: f64 = 0.3;
/// The distance that it may fall behind by that, in intervals.
const BRAKE_INTERVALS: f64 = 0.5;
/// Later snapshots that will do when the next is lost.
const COPIES: u32 = 4;
/// The time that is added to what measurements say, in intervals.
const RESERVE: f64 = 0.1;
const LEAD_EVERY: u32 = 4;
const DELAYS_MIN: usize = 16;
const INTERVAL_TICKS_MAX: i64 = 64;
const INTERVAL_WEIGHT: f64 = 0.125;
