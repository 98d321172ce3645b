//! One direction of a link, sans-IO: says when each offered datagram arrives, in how many copies and how damaged.
//!
//! The virtual [`Network`](crate::Network) and a proxy with real sockets use this same type, so that a condition means
//! the same in a simulation and on a wire.

mod counters;
mod fate;

use std::sync::Arc;

use fastrand::Rng;
use muse_wire::{Duration, Ecn, Instant};

use crate::math::{happens, lomax, standard_normal};
use crate::{Conditions, Jitter};

pub use counters::Counters;
pub use fate::{Cause, Damage, Fate, Fates, Packet};

/// One direction of a link.
///
/// Call [`offer`](Self::offer) for each datagram, with `now` never going backwards; deliver what it returns at the times
/// it says. The same conditions, seed and offers give the same answers on every platform.
///
/// A datagram passes in this order: outage, MTU, queue and rate, loss, damage, delay, hold-back, duplication. So what is
/// lost at random has used the link's rate before, and a copy has not.
///
/// ```
/// use muse_netem::{Conditioner, Conditions, Packet};
/// use muse_wire::{Duration, Ecn, Instant};
/// let conditions = Conditions::default().delay(Duration::from_millis(30)).rate(1_000_000);
/// let mut link = Conditioner::new(conditions, 7);
/// let to = "192.0.2.1:9000".parse().expect("an address");
/// let packet = Packet::new(to, 972, Ecn::NotCapable); // 1,000 bytes with the headers: 8 ms at 1 Mbit/s
/// let fates = link.offer(Instant::ZERO, packet);
/// assert_eq!(fates.arrivals().next().map(|fate| fate.at), Some(Instant::from_millis(38)));
/// ```
#[derive(Clone, Debug)]
pub struct Conditioner {
    conditions: Arc<Conditions>,
    rng: Rng,
    /// The time at which the link will have sent all it has accepted, in nanoseconds; finer than `Instant` so that rates are exact.
    busy_until_nanos: u64,
    last_lost: bool,
    burst_is_bad: bool,
    /// Latest arrival so far of what keeps its order.
    last_arrival: Instant,
    counters: Counters,
}

impl Conditioner {
    /// A link with these conditions, whose chances follow from `seed`.
    pub fn new(conditions: impl Into<Arc<Conditions>>, seed: u64) -> Self {
        let mut link = Self {
            conditions: Arc::default(),
            rng: Rng::with_seed(seed),
            busy_until_nanos: 0,
            last_lost: false,
            burst_is_bad: false,
            last_arrival: Instant::ZERO,
            counters: Counters::default(),
        };
        link.adopt(conditions.into());
        link
    }

    /// The conditions in force.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Changes the conditions from `now` on. What waits in the queue is sent at the new rate as far as later datagrams
    /// are concerned; arrivals already announced stay as they are.
    pub fn set_conditions(&mut self, now: Instant, conditions: impl Into<Arc<Conditions>>) {
        let conditions = conditions.into();
        let backlog = self.backlog_bytes(now);
        self.busy_until_nanos = match conditions.rate {
            Some(rate) => nanos(now).saturating_add(send_nanos(backlog, rate)),
            None => 0,
        };
        if conditions.burst != self.conditions.burst
            || conditions.loss != self.conditions.loss
            || conditions.loss_correlation != self.conditions.loss_correlation
        {
            self.adopt(conditions);
        } else {
            self.conditions = conditions;
        }
    }

    /// Decides the fate of a datagram that enters the link at `now`.
    pub fn offer(&mut self, now: Instant, packet: Packet) -> Fates {
        let ip_len = packet.ip_len();
        self.counters.offered += 1;
        self.counters.offered_ip_bytes += ip_len as u64;
        match self.pass(now, packet) {
            Ok(fates) => {
                self.counters.delivered += fates.arrivals().count() as u64;
                self.counters.delivered_ip_bytes += fates
                    .arrivals()
                    .map(|fate| {
                        (fate.damage.kept_len.unwrap_or(packet.payload_len) + packet.headers_len)
                            as u64
                    })
                    .sum::<u64>();
                fates
            }
            Err(cause) => {
                *self.counters.lost_mut(cause) += 1;
                Fates {
                    copies: [None, None],
                    lost: Some(cause),
                }
            }
        }
    }

    /// Returns how long a datagram offered at `now` would wait before it is sent.
    pub fn queue_delay(&self, now: Instant) -> Duration {
        Duration::from_micros(self.busy_until_nanos.saturating_sub(nanos(now)) / 1_000)
    }

    /// Bytes that wait at `now`, IP headers included, with what remains of the datagram being sent.
    pub fn backlog_bytes(&self, now: Instant) -> u64 {
        let Some(rate) = self.conditions.rate else {
            return 0;
        };
        let nanos = self.busy_until_nanos.saturating_sub(nanos(now));
        u64::try_from((u128::from(nanos) * u128::from(rate)).div_ceil(NANOS_PER_BYTE_AT_1))
            .unwrap_or(u64::MAX)
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes the conditions and starts their chains in their long-run state, so that the first datagrams are like all
    /// others.
    fn adopt(&mut self, conditions: Arc<Conditions>) {
        self.last_lost = happens(&mut self.rng, conditions.loss);
        self.burst_is_bad = conditions
            .burst
            .is_some_and(|chain| happens(&mut self.rng, chain.share_bad()));
        self.conditions = conditions;
    }

    fn pass(&mut self, now: Instant, packet: Packet) -> Result<Fates, Cause> {
        let conditions = Arc::clone(&self.conditions);
        if conditions.is_out(now) {
            return Err(Cause::Outage);
        }
        if conditions.mtu.is_some_and(|mtu| packet.ip_len() > mtu) {
            return Err(Cause::TooLarge);
        }
        let (sent_at, ecn) = self.enqueue(&conditions, now, packet)?;
        self.lose(&conditions)?;
        let damage = self.damage(&conditions, packet.payload_len);
        let mut at = sent_at + self.draw_delay(&conditions);
        if happens(&mut self.rng, conditions.hold_back) {
            self.counters.held_back += 1;
            at += conditions.hold_back_delay;
        } else {
            if conditions.keep_order {
                at = at.max(self.last_arrival);
            }
            self.last_arrival = self.last_arrival.max(at);
        }
        let first = Fate { at, ecn, damage };
        let copy = happens(&mut self.rng, conditions.duplicate).then(|| {
            self.counters.duplicated += 1;
            Fate {
                at: at + conditions.duplicate_delay,
                ..first
            }
        });
        Ok(Fates {
            copies: [Some(first), copy],
            lost: None,
        })
    }

    /// Returns the time at which the datagram has been sent, and its mark; or that the queue is full.
    fn enqueue(
        &mut self,
        conditions: &Conditions,
        now: Instant,
        packet: Packet,
    ) -> Result<(Instant, Ecn), Cause> {
        let Some(rate) = conditions.rate else {
            return Ok((now, packet.ecn));
        };
        let ip_len = packet.ip_len() as u64;
        let now_nanos = nanos(now);
        let wait_nanos = self.busy_until_nanos.saturating_sub(now_nanos);
        if wait_nanos > 0 {
            let backlog_after = self.backlog_bytes(now).saturating_add(ip_len);
            if conditions
                .queue_bytes()
                .is_some_and(|limit| backlog_after > limit)
            {
                return Err(Cause::QueueFull);
            }
        }
        let wait = Duration::from_micros(wait_nanos / 1_000);
        self.counters.queue_delay_max = self.counters.queue_delay_max.max(wait);
        let ecn = match (conditions.mark, packet.ecn) {
            (Some(threshold), Ecn::Capable0 | Ecn::Capable1) if wait >= threshold => {
                self.counters.marked += 1;
                Ecn::Congested
            }
            (_, ecn) => ecn,
        };
        self.busy_until_nanos = now_nanos
            .saturating_add(wait_nanos)
            .saturating_add(send_nanos(ip_len, rate));
        Ok((
            Instant::from_micros(self.busy_until_nanos.div_ceil(1_000)),
            ecn,
        ))
    }

    /// Draws both kinds of loss for every datagram, so that each chain sees all of them.
    fn lose(&mut self, conditions: &Conditions) -> Result<(), Cause> {
        if conditions.loss > 0.0 && !happens(&mut self.rng, conditions.loss_correlation) {
            self.last_lost = happens(&mut self.rng, conditions.loss);
        }
        let mut burst_lost = false;
        if let Some(chain) = conditions.burst {
            let turn = if self.burst_is_bad {
                chain.leave_bad
            } else {
                chain.enter_bad
            };
            self.burst_is_bad ^= happens(&mut self.rng, turn);
            let loss = if self.burst_is_bad {
                chain.loss_bad
            } else {
                chain.loss_good
            };
            burst_lost = happens(&mut self.rng, loss);
        }
        if conditions.loss > 0.0 && self.last_lost {
            return Err(Cause::Random);
        }
        if burst_lost {
            Err(Cause::Burst)
        } else {
            Ok(())
        }
    }

    fn damage(&mut self, conditions: &Conditions, payload_len: usize) -> Damage {
        let mut damage = Damage::default();
        if payload_len == 0 {
            return damage;
        }
        if happens(&mut self.rng, conditions.truncate) {
            self.counters.truncated += 1;
            // Not `usize`, whose draws differ between 32 and 64 bits.
            damage.kept_len = Some(self.rng.u64(..payload_len as u64) as usize);
        }
        if happens(&mut self.rng, conditions.corrupt) {
            self.counters.corrupted += 1;
            damage.flips = self.rng.u8(1..=conditions.corrupt_bits_max.max(1));
            damage.seed = self.rng.u64(..);
        }
        damage
    }

    fn draw_delay(&mut self, conditions: &Conditions) -> Duration {
        let delay = conditions.delay;
        delay
            + match conditions.jitter {
                Jitter::None => Duration::ZERO,
                Jitter::Uniform(max) => Duration::from_micros(self.rng.u64(..=max.as_micros())),
                Jitter::Around(spread) => {
                    let (delay, spread) = (delay.as_micros(), spread.as_micros());
                    let (least, most) =
                        (delay.saturating_sub(spread), delay.saturating_add(spread));
                    return Duration::from_micros(self.rng.u64(least..=most));
                }
                Jitter::Normal { mean, deviation } => {
                    let draw = (0..NORMAL_DRAWS_MAX)
                        .map(|_| {
                            mean.as_secs_f64()
                                + deviation.as_secs_f64() * standard_normal(&mut self.rng)
                        })
                        .find(|&draw| draw >= 0.0);
                    Duration::from_secs_f64(draw.unwrap_or(0.0))
                }
                Jitter::Pareto { scale, shape, max } => {
                    let draw = lomax(&mut self.rng, scale.as_secs_f64(), shape.max(0.1));
                    Duration::from_secs_f64(draw).min(max)
                }
            }
    }
}

fn nanos(instant: Instant) -> u64 {
    instant.as_micros().saturating_mul(1_000)
}

/// Nanoseconds to send so many bytes.
fn send_nanos(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * NANOS_PER_BYTE_AT_1 / u128::from(rate)).unwrap_or(u64::MAX)
}

/// Nanoseconds that a byte takes at one bit per second.
const NANOS_PER_BYTE_AT_1: u128 = 8_000_000_000;
/// Draws of a truncated normal distribution before zero is taken.
const NORMAL_DRAWS_MAX: usize = 16;
