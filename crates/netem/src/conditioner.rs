//! One direction of a link, sans-IO: says when each offered datagram arrives, in how many copies and how damaged.
//!
//! The virtual [`Network`](crate::Network) and a proxy with real sockets use this same type, so that a condition means
//! the same in a simulation and on a wire.

use std::net::SocketAddr;
use std::sync::Arc;

use fastrand::Rng;
use muse_wire::{Duration, Ecn, Instant};

use crate::math::{happens, lomax, standard_normal};
use crate::{Conditions, Jitter, Queue};

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
    /// When the link will have sent all it has accepted, in nanoseconds; finer than `Instant` so that rates are exact.
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

    /// What becomes of a datagram that enters the link at `now`.
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

    /// How long a datagram offered at `now` would wait before it is sent.
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

    /// What has passed so far.
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
        let mut at = sent_at + conditions.delay + self.draw_jitter(conditions.jitter);
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

    /// When the datagram has been sent, and its mark; or that the queue is full.
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
            let limit = match conditions.queue {
                Queue::Bytes(bytes) => bytes,
                Queue::Time(time) => {
                    let bits = u128::from(rate) * u128::from(time.as_micros()) / 1_000_000;
                    u64::try_from(bits / 8).unwrap_or(u64::MAX)
                }
            };
            if backlog_after > limit {
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
            damage.kept_len = Some(self.rng.usize(..payload_len));
        }
        if happens(&mut self.rng, conditions.corrupt) {
            self.counters.corrupted += 1;
            damage.flips = self.rng.u8(1..=conditions.corrupt_bits_max.max(1));
            damage.seed = self.rng.u64(..);
        }
        damage
    }

    fn draw_jitter(&mut self, jitter: Jitter) -> Duration {
        match jitter {
            Jitter::None => Duration::ZERO,
            Jitter::Uniform(max) => Duration::from_micros(self.rng.u64(..=max.as_micros())),
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

/// A datagram as a link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes of UDP payload.
    pub payload_len: usize,
    /// Bytes of IP and UDP headers.
    pub headers_len: usize,
    /// Its congestion mark.
    pub ecn: Ecn,
}

impl Packet {
    /// IPv4 and UDP headers.
    pub const HEADERS_V4: usize = 28;
    /// IPv6 and UDP headers.
    pub const HEADERS_V6: usize = 48;

    /// A datagram with this much payload, with the headers that the kind of address asks for.
    pub fn new(to: SocketAddr, payload_len: usize, ecn: Ecn) -> Self {
        let headers_len = if to.is_ipv4() {
            Self::HEADERS_V4
        } else {
            Self::HEADERS_V6
        };
        Self {
            payload_len,
            headers_len,
            ecn,
        }
    }

    /// Bytes of the whole IP packet.
    pub fn ip_len(&self) -> usize {
        self.payload_len.saturating_add(self.headers_len)
    }
}

/// What becomes of one offered datagram: it is lost, or arrives once or twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fates {
    copies: [Option<Fate>; 2],
    lost: Option<Cause>,
}

impl Fates {
    /// The arrivals: none, one, or two. They are not sorted by time.
    pub fn arrivals(&self) -> impl Iterator<Item = Fate> + use<> {
        self.copies.into_iter().flatten()
    }

    /// Why nothing arrives.
    pub fn lost(&self) -> Option<Cause> {
        self.lost
    }
}

/// One arrival of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fate {
    /// When it arrives.
    pub at: Instant,
    /// The congestion mark it arrives with.
    pub ecn: Ecn,
    /// What happened to its bytes.
    pub damage: Damage,
}

/// What happened to a datagram's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Damage {
    kept_len: Option<usize>,
    flips: u8,
    seed: u64,
}

impl Damage {
    /// Whether the bytes arrive as they were sent.
    pub fn is_none(&self) -> bool {
        self.kept_len.is_none() && self.flips == 0
    }

    /// Flips the bits and returns the length to keep.
    ///
    /// ```
    /// use muse_netem::Damage;
    /// let mut payload = *b"intact";
    /// assert_eq!(Damage::default().apply(&mut payload), 6);
    /// assert_eq!(&payload, b"intact");
    /// ```
    pub fn apply(&self, payload: &mut [u8]) -> usize {
        let len = self.kept_len.unwrap_or(payload.len()).min(payload.len());
        let bits = len * 8;
        let flips = usize::from(self.flips)
            .min(bits)
            .min(usize::from(Conditions::CORRUPT_BITS_MAX));
        let mut rng = Rng::with_seed(self.seed);
        let mut chosen = [usize::MAX; Conditions::CORRUPT_BITS_MAX as usize];
        for index in 0..flips {
            // All different, or two flips would undo each other.
            let mut bit = rng.usize(..bits);
            while chosen[..index].contains(&bit) {
                bit = (bit + 1) % bits;
            }
            chosen[index] = bit;
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        len
    }
}

/// Why a datagram was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Independent or correlated loss.
    Random,
    /// The bad state of a burst.
    Burst,
    /// The queue before the link was full.
    QueueFull,
    /// Larger than the MTU.
    TooLarge,
    /// The link was down.
    Outage,
    /// Its sender and its receiver were cut off from each other.
    Partition,
    /// Nobody has the address it was sent to.
    NoSuchAddress,
    /// A NAT had no mapping for it, or did not let it in.
    Filtered,
}

/// What has passed through a conditioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams offered.
    pub offered: u64,
    /// Arrivals, copies included.
    pub delivered: u64,
    /// Lost by independent or correlated loss.
    pub lost_random: u64,
    /// Lost in bursts.
    pub lost_burst: u64,
    /// Lost because the queue was full.
    pub lost_queue: u64,
    /// Lost because they were larger than the MTU.
    pub lost_mtu: u64,
    /// Lost in outages.
    pub lost_outage: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Datagrams with flipped bits.
    pub corrupted: u64,
    /// Datagrams cut short.
    pub truncated: u64,
    /// Datagrams held back by explicit reordering.
    pub held_back: u64,
    /// Datagrams marked as congested.
    pub marked: u64,
    /// Bytes offered, headers included.
    pub offered_ip_bytes: u64,
    /// Bytes that arrive, headers and copies included.
    pub delivered_ip_bytes: u64,
    /// Longest time that an accepted datagram waited before it was sent.
    pub queue_delay_max: Duration,
}

impl Counters {
    /// Datagrams lost, whatever the cause.
    pub fn lost(&self) -> u64 {
        self.lost_random + self.lost_burst + self.lost_queue + self.lost_mtu + self.lost_outage
    }

    fn lost_mut(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Burst => &mut self.lost_burst,
            Cause::QueueFull => &mut self.lost_queue,
            Cause::TooLarge => &mut self.lost_mtu,
            Cause::Outage => &mut self.lost_outage,
            _ => &mut self.lost_random,
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
