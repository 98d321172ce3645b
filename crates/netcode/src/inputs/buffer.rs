//! The server's side: a few ticks of one client's inputs, and when the client should send them.

use muse_schema::BitReader;
use muse_wire::{Duration, Instant};

use super::report::{MISS_SHARE_MAX, STAMP_MICROS};
use super::{Heard, INPUTS_PER_PACKET_MAX, Input, InputError, InputReport, Stamp, packet};
use crate::Tick;
use crate::clock::{Delays, Drift, Losses, Need, PacketHeader, QUICK_SHARE};

/// Settings of an [`InputBuffer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputBufferConfig {
    tick: Duration,
    ahead_max: u32,
    repeat_max: u32,
    wait_max: f64,
    packet_ticks: u32,
}

impl InputBufferConfig {
    /// For ticks of this length.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick: tick.max(Duration::from_micros(100)),
            ahead_max: 32,
            repeat_max: 12,
            wait_max: 1.4,
            packet_ticks: 1,
        }
    }

    /// Limits the mean wait of inputs, in ticks, besides what the slowest of a hundred packets needs. Default: 1.4;
    /// less makes play more immediate, and more ticks go without their input when packets are lost.
    pub fn wait_max(mut self, ticks: f64) -> Self {
        self.wait_max = if ticks.is_nan() {
            1.4
        } else {
            ticks.clamp(0.0, 16.0)
        };
        self
    }

    /// Ticks whose inputs the client sends in one packet; see [`SessionConfig::packet_interval`](crate::SessionConfig::packet_interval), which
    /// sets it. Default: 1; a lost input is then repeated that much later.
    pub(crate) fn packet_ticks(mut self, ticks: u32) -> Self {
        self.packet_ticks = ticks.clamp(1, INPUTS_PER_PACKET_MAX as u32);
        self
    }
}

muse_wire::setters! { InputBufferConfig:
    /// Sets how many ticks ahead of the next one inputs are kept; those beyond are refused, and the client is told to slow down. Default:
    /// 32, at most 64; each costs the memory of an input.
    ahead_max: u32 = ahead_max.clamp(2, 64),
    /// Sets how many ticks in a row the last input is repeated before the player does nothing. Default: 12; more carries a
    /// runner over a longer gap, and over a cliff.
    repeat_max: u32,
}

/// A player's input for a tick, as far as the server knows.
#[derive(Clone, Debug, PartialEq)]
pub enum InputForTick<I> {
    /// Its input came in time.
    Received(I),
    /// It did not, so the last one counts once more.
    Repeated {
        /// The last input that came in time.
        input: I,
        /// The number of repetitions, this one included.
        times: u32,
    },
    /// None came for so long that nothing is assumed any more, or none came ever.
    Missing,
}

impl<I: Input> InputForTick<I> {
    /// Returns the input to simulate: the default, which does nothing, if it is missing.
    pub fn input(&self) -> I {
        match self {
            Self::Received(input) | Self::Repeated { input, .. } => input.clone(),
            Self::Missing => I::default(),
        }
    }

    /// True if it is what the player really did.
    pub fn is_received(&self) -> bool {
        matches!(self, Self::Received(_))
    }
}

/// Counts of one client's inputs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounters {
    /// Ticks whose input was there in time.
    pub received: u64,
    /// Ticks for which the last input was repeated.
    pub repeated: u64,
    /// Ticks for which nothing was known, after the first input had come.
    pub missing: u64,
    /// Inputs that came after their tick had been simulated without them.
    pub late: u64,
    /// Copies of inputs that had come already.
    pub duplicates: u64,
    /// Inputs for ticks too far ahead.
    pub too_early: u64,
    /// Packets that were no input packets, or for ticks out of reach.
    pub refused: u64,
    /// Time that inputs in time have waited for their tick, in microseconds.
    pub waited_micros: u64,
}

/// One client's inputs on the server.
///
/// Give it each packet with [`handle_packet`](Self::handle_packet), [`take`](Self::take) one input in each tick, and send the
/// [`report`](Self::report) with each snapshot. Nothing a client sends makes it panic, allocate, or keep more than
/// [`ahead_max`](InputBufferConfig::ahead_max) inputs.
///
/// The rule when the buffer runs too full: it holds what is in reach and refuses the rest, and the report's aim slows
/// the client's clock until the wait is what loss and jitter ask for. Inputs belong to their tick, so none is skipped or hurried.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::inputs::{InputBuffer, InputBufferConfig, InputForTick};
/// use muse_wire::{Duration, Instant};
/// let mut buffer = InputBuffer::<u8>::new(InputBufferConfig::new(Duration::from_millis(20)), Tick(0));
/// assert_eq!(buffer.take(Tick(0), Instant::ZERO), InputForTick::Missing);
/// ```
#[derive(Clone, Debug)]
pub struct InputBuffer<I> {
    config: InputBufferConfig,
    slots: Vec<Option<Slot<I>>>,
    next: Tick,
    /// The time at which the tick before `next` was due.
    last_due: Instant,
    last: Option<I>,
    repeated: u32,
    /// Bit `n` is set while tick `next - 1 - n` went without its input.
    missed_bits: u64,
    scratch: Vec<I>,
    delays: Delays,
    /// Distance of the clocks that delays are counted from.
    reference: Option<Stamp>,
    losses: Losses,
    drift: Drift,
    heard: Option<(u16, Instant)>,
    copies: u32,
    doubled: bool,
    lead: Option<i32>,
    /// Packets since the lead was computed.
    since_lead: u32,
    margins: [i32; MARGINS],
    slipped: u16,
    counters: InputCounters,
}

#[derive(Clone, Debug)]
struct Slot<I> {
    tick: Tick,
    input: I,
    arrived: Instant,
}

impl<I: Input> InputBuffer<I> {
    /// An empty buffer, of a server that simulates `next` next.
    pub fn new(config: InputBufferConfig, next: Tick) -> Self {
        Self {
            config,
            slots: (0..SLOTS).map(|_| None).collect(),
            next,
            last_due: Instant::ZERO,
            last: None,
            repeated: 0,
            missed_bits: 0,
            scratch: Vec::with_capacity(INPUTS_PER_PACKET_MAX),
            delays: Delays::new(),
            reference: None,
            losses: Losses::new(),
            drift: Drift::new(),
            heard: None,
            copies: 1,
            doubled: false,
            lead: None,
            since_lead: 0,
            margins: [i32::MAX; MARGINS],
            slipped: 0,
            counters: InputCounters::default(),
        }
    }

    /// A packet arrived, of which `reader` is at the first bit of the inputs.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        reader: &mut BitReader<'_>,
    ) -> Result<(), InputError> {
        let mut inputs = std::mem::take(&mut self.scratch);
        let result = match packet::read(reader, &mut inputs) {
            Ok((header, tick_low)) => {
                self.measure(now, header, inputs.len());
                self.store(now, tick_low, &mut inputs)
            }
            Err(error) => Err(error.into()),
        };
        inputs.clear();
        self.scratch = inputs;
        self.counters.refused += u64::from(result.is_err());
        result
    }

    /// The input to simulate `tick` with, which was due at `due`. Ticks are taken in order; those left out are passed over.
    pub fn take(&mut self, tick: Tick, due: Instant) -> InputForTick<I> {
        let passed = (tick - self.next).clamp(0, i64::from(u32::MAX)) as u32;
        // One bit for each of the last 64 ticks that went without its input, to tell late inputs from duplicates.
        self.missed_bits = self.missed_bits.checked_shl(passed + 1).unwrap_or(0);
        self.next = tick + 1;
        self.last_due = due;
        let slot = &mut self.slots[Self::slot(tick)];
        if let Some(Slot { input, arrived, .. }) = slot.take_if(|slot| slot.tick == tick) {
            let waited = due.saturating_since(arrived);
            self.margins[tick.0 as usize % MARGINS] = waited.as_micros().min(MARGIN_MAX) as i32;
            self.counters.received += 1;
            self.counters.waited_micros += waited.as_micros();
            self.repeated = 0;
            self.last = Some(input.clone());
            return InputForTick::Received(input);
        }
        self.missed_bits |= 1;
        self.margins[tick.0 as usize % MARGINS] = i32::MAX;
        self.repeated = self.repeated.saturating_add(1);
        match &self.last {
            Some(input) if self.repeated <= self.config.repeat_max => {
                self.counters.repeated += 1;
                let (input, times) = (input.clone(), self.repeated);
                InputForTick::Repeated { input, times }
            }
            last => {
                // Before the first input nothing is missing: the client is still measuring its way here.
                self.counters.missing += u64::from(last.is_some());
                InputForTick::Missing
            }
        }
    }

    /// Returns the report for the client at `now`, in the snapshot of `tick`, whose time by the server's schedule is `due`.
    pub fn report(&mut self, now: Instant, due: Instant) -> InputReport {
        let heard = self.heard.map(|(packet, at)| Heard {
            packet,
            held: (now.saturating_since(at).as_micros() / STAMP_MICROS).min(u64::from(u16::MAX))
                as u16,
        });
        let eighth = (self.tick_micros() / 8).max(1);
        let tightest = self.margins.iter().copied().min().unwrap_or(0);
        let missed = self.counters.repeated.wrapping_add(self.counters.missing);
        InputReport {
            heard,
            aim: self.aim(due),
            spare: self.spare(),
            margin: (tightest / eighth).clamp(-128, 127) as i8,
            loss: (self.losses.share() * 255.0).round() as u8,
            missed: missed as u8,
            slipped: self.slipped,
        }
    }

    /// The server fell behind its schedule by so many ticks and gave them up; clients will be told.
    pub fn handle_slip(&mut self, ticks: u32) {
        self.slipped = self.slipped.wrapping_add(ticks as u16);
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> &InputCounters {
        &self.counters
    }

    /// Inputs that wait.
    pub fn depth(&self) -> usize {
        self.slots
            .iter()
            .flatten()
            .filter(|slot| slot.tick >= self.next)
            .count()
    }

    /// Share of the client's packets that are lost.
    pub fn loss(&self) -> f64 {
        self.losses.share()
    }

    /// Returns the rate of the client's clock, and how often it has been measured: seconds of its clock in one of ours, by its last
    /// packets; 1 before anything is known.
    pub fn clock_rate(&self) -> (f64, u64) {
        (self.drift.rate(), self.drift.spans())
    }

    fn measure(&mut self, now: Instant, header: PacketHeader, inputs: usize) {
        let received = self.losses.received();
        let newest = self.losses.record(header.number);
        // A duplicate of the network would count a delay that is none of the path's.
        if self.losses.received() == received && !newest {
            return;
        }
        if newest {
            self.heard = Some((header.number, now));
            self.doubled = header.doubled;
            self.copies = inputs.max(1) as u32;
        }
        let distance = Stamp::of(now).distance(header.stamp);
        let reference = *self.reference.get_or_insert(distance);
        let delay = distance.since(reference);
        self.delays.record(delay);
        self.drift.record(now, delay);
        self.since_lead += 1;
        // Seldom when much is known: then a few packets more change little.
        let every = LEAD_EVERY.max(self.delays.len() as u32 / 32);
        if self.since_lead >= every && self.delays.len() >= DELAYS_MIN {
            self.since_lead = 0;
            self.lead = self.compute_lead();
        }
    }

    /// Returns how long before its tick is due an input should be sent, counted as delays are.
    fn compute_lead(&self) -> Option<i32> {
        let tick = self.tick_micros();
        let halves = if self.doubled { 2 } else { 1 };
        let packet_ticks = self.config.packet_ticks;
        // The first input of a packet waits for the others.
        let waits = tick * (packet_ticks as i32 - 1);
        let required = self.delays.required(&Need {
            first: waits,
            spacing: tick * packet_ticks as i32 / halves,
            copies: (self.copies / packet_ticks).max(1) * halves as u32,
            loss: self.losses.share(),
            miss_share_max: MISS_SHARE_MAX,
        })?;
        let reserve = (f64::from(tick) * RESERVE) as i32;
        let wait_max = (f64::from(tick) * self.config.wait_max) as i32;
        // However much is lost, everybody's play is not delayed without bounds for it.
        let limit = self.delays.quantile(0.99).saturating_add(wait_max + waits);
        Some(required.saturating_add(reserve).min(limit))
    }

    fn aim(&self, due: Instant) -> Option<Stamp> {
        let (lead, reference) = (self.lead?, self.reference?);
        Some(Stamp::of(due).distance(reference).minus(lead))
    }

    /// In stamps, how much longer the lead is than what the quickest tenth of the packets needs.
    fn spare(&self) -> u16 {
        let quick = self.delays.quantile(QUICK_SHARE);
        let micros = self
            .lead
            .map_or(0, |lead| lead.saturating_sub(quick).max(0));
        (micros as u64 / STAMP_MICROS).min(u64::from(u16::MAX)) as u16
    }

    fn store(
        &mut self,
        now: Instant,
        tick_low: u16,
        inputs: &mut Vec<I>,
    ) -> Result<(), InputError> {
        if inputs.is_empty() {
            return Ok(());
        }
        // The tick with these low bits that is nearest to the next one.
        let ahead = tick_low.wrapping_sub(self.next.0 as u16) as i16;
        let newest = i64::from(self.next.0) + i64::from(ahead);
        let reach = i64::from(self.config.ahead_max);
        // Ticks before the first, or far beyond what a clock could be wrong by: no honest client sends them.
        if newest < i64::from(inputs.len() as u32) - 1 || ahead as i64 > 2 * reach {
            self.counters.too_early += inputs.len() as u64;
            return Err(InputError::OutOfReach);
        }
        for (back, input) in inputs.drain(..).enumerate() {
            let tick = Tick(u32::try_from(newest - back as i64).unwrap_or(0));
            let ahead = tick - self.next;
            // The slots are a ring: what is further ahead would take the place of an input that is due sooner.
            if ahead >= reach {
                self.counters.too_early += 1;
                continue;
            }
            if ahead < 0 {
                let place = (-ahead - 1).min(64) as u32;
                let bit = 1_u64.checked_shl(place).unwrap_or(0);
                let is_late = self.missed_bits & bit != 0;
                self.missed_bits &= !bit;
                self.counters.late += u64::from(is_late);
                self.counters.duplicates += u64::from(!is_late);
                if is_late {
                    let due = self.last_due - self.config.tick * u64::from(place);
                    let late = now.saturating_since(due).as_micros().min(MARGIN_MAX);
                    self.margins[tick.0 as usize % MARGINS] = -(late as i32);
                }
                continue;
            }
            // The first input for a tick counts: a client must not change its mind once it has seen more.
            let slot = &mut self.slots[Self::slot(tick)];
            if slot.as_ref().is_some_and(|slot| slot.tick == tick) {
                self.counters.duplicates += 1;
            } else {
                *slot = Some(Slot {
                    tick,
                    input,
                    arrived: now,
                });
            }
        }
        Ok(())
    }

    fn slot(tick: Tick) -> usize {
        tick.0 as usize % SLOTS
    }

    fn tick_micros(&self) -> i32 {
        self.config.tick.as_micros().min(1_000_000) as i32
    }
}

/// Ticks that have a place in the buffer.
const SLOTS: usize = 64;
/// Ticks whose margins the report looks at.
const MARGINS: usize = 64;
/// Ticks by which inputs are asked for earlier than measurements say; it covers what the last packets did not show.
const RESERVE: f64 = 0.2;
const MARGIN_MAX: u64 = 1_000_000;
/// Packets after which the lead is computed again, at least.
const LEAD_EVERY: u32 = 4;
/// Packets measured before a client is told when to send.
const DELAYS_MIN: usize = 12;
