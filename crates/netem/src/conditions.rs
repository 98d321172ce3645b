//! The conditions of one direction of a link: the knobs of a [`Conditioner`](crate::Conditioner).
//!
//! Every knob is off by default. The exact definitions stand in `docs/netem.md`.

mod profiles;
mod text;

use muse_wire::{Duration, Instant};

pub use profiles::Profile;
pub use text::TextError;

/// The conditions of one direction of a link. The default is a perfect link: no delay, no loss, no limit.
///
/// ```
/// use muse_netem::{Conditions, Jitter};
/// use muse_wire::Duration;
/// let bad = Conditions::default()
///     .delay(Duration::from_millis(50))
///     .jitter(Jitter::Uniform(Duration::from_millis(10)))
///     .burst_loss(0.05, 4.0)
///     .rate(2_000_000);
/// assert_eq!(bad.rate_bits_per_second(), Some(2_000_000));
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Conditions {
    pub(crate) delay: Duration,
    pub(crate) jitter: Jitter,
    pub(crate) keep_order: bool,
    pub(crate) loss: f64,
    pub(crate) loss_correlation: f64,
    pub(crate) burst: Option<GilbertElliott>,
    pub(crate) duplicate: f64,
    pub(crate) duplicate_delay: Duration,
    pub(crate) hold_back: f64,
    pub(crate) hold_back_delay: Duration,
    pub(crate) corrupt: f64,
    pub(crate) corrupt_bits_max: u8,
    pub(crate) truncate: f64,
    pub(crate) rate: Option<u64>,
    pub(crate) queue: Queue,
    pub(crate) mark: Option<Duration>,
    pub(crate) mtu: Option<usize>,
    pub(crate) outages: Vec<(Instant, Instant)>,
}

impl Conditions {
    /// Most bits that one corruption flips.
    pub const CORRUPT_BITS_MAX: u8 = 32;

    /// Share of datagrams that vanish, each independently. Default: 0.
    pub fn loss(mut self, probability: f64) -> Self {
        self.loss = unit(probability);
        self.loss_correlation = 0.0;
        self
    }

    /// Loss where a datagram shares the fate of the one before it with probability `correlation`, and is otherwise lost
    /// with `probability`. Default: off.
    ///
    /// The share lost is exactly `probability`, fates `k` datagrams apart correlate by `correlation^k`, and a run of
    /// losses has the mean length `1 / ((1 - correlation) * (1 - probability))`. Replaces [`loss`](Self::loss).
    pub fn correlated_loss(mut self, probability: f64, correlation: f64) -> Self {
        self.loss = unit(probability);
        self.loss_correlation = unit(correlation);
        self
    }

    /// Losses in bursts: the share `mean_loss` of all datagrams is lost, in runs of `mean_burst` datagrams on average
    /// (Gilbert's model). Default: off. Comes on top of [`loss`](Self::loss).
    ///
    /// `mean_burst` is at least 1; `mean_loss` at most `mean_burst / (1 + mean_burst)`, the most that bursts of that
    /// length allow with at least one datagram between them.
    pub fn burst_loss(self, mean_loss: f64, mean_burst: f64) -> Self {
        self.gilbert_elliott(GilbertElliott::with_mean(mean_loss, mean_burst))
    }

    /// Losses by a chain of a good and a bad state, all four parameters given. Default: off. Comes on top of
    /// [`loss`](Self::loss).
    pub fn gilbert_elliott(mut self, chain: GilbertElliott) -> Self {
        self.burst = Some(chain);
        self
    }

    /// Share of datagrams that arrive twice, the copy `delay` after the original. Default: 0.
    pub fn duplicate(mut self, probability: f64, delay: Duration) -> Self {
        self.duplicate = unit(probability);
        self.duplicate_delay = delay;
        self
    }

    /// Share of datagrams held back by `extra`, so that those sent within that time overtake them. Default: 0.
    pub fn reorder(mut self, probability: f64, extra: Duration) -> Self {
        self.hold_back = unit(probability);
        self.hold_back_delay = extra;
        self
    }

    /// Share of datagrams in which 1 to `bits_max` different random bits are flipped. Default: 0.
    ///
    /// They arrive: unlike on a real path, no UDP checksum removes them first. `bits_max` is between 1 and
    /// [`CORRUPT_BITS_MAX`](Self::CORRUPT_BITS_MAX).
    pub fn corrupt(mut self, probability: f64, bits_max: u8) -> Self {
        self.corrupt = unit(probability);
        self.corrupt_bits_max = bits_max.clamp(1, Self::CORRUPT_BITS_MAX);
        self
    }

    /// Marks ECN-capable datagrams as congested when they wait in the queue for `threshold` or longer. Default: never.
    pub fn mark_congestion(mut self, threshold: Duration) -> Self {
        self.mark = Some(threshold);
        self
    }

    /// Everything sent from `from` until just before `until` is lost. Default: none; each call adds one.
    pub fn outage(mut self, from: Instant, until: Instant) -> Self {
        if from < until {
            self.outages.push((from, until));
        }
        self
    }

    /// The rate, if there is one.
    pub fn rate_bits_per_second(&self) -> Option<u64> {
        self.rate
    }

    /// Time from the end of sending to the arrival, before jitter.
    pub fn one_way_delay(&self) -> Duration {
        self.delay
    }

    /// Returns the kind of jitter.
    pub fn jitter_kind(&self) -> Jitter {
        self.jitter
    }

    /// Share of datagrams lost in the long run, at random and in bursts together.
    pub fn loss_share(&self) -> f64 {
        match self.burst.map_or(0.0, |chain| chain.mean_loss()) {
            // Not by the formula, which would change the last bits of what was asked for.
            0.0 => self.loss,
            burst if self.loss == 0.0 => burst,
            burst => 1.0 - (1.0 - self.loss) * (1.0 - burst),
        }
    }

    /// Mean length of the bursts that losses come in; 1 where they are independent.
    pub fn burst_length(&self) -> f64 {
        match self.burst {
            Some(chain) if chain.leave_bad > 0.0 => 1.0 / chain.leave_bad,
            _ => 1.0,
        }
    }

    /// Share of datagrams that arrive twice.
    pub fn duplicate_share(&self) -> f64 {
        self.duplicate
    }

    /// Share of datagrams held back.
    pub fn reorder_share(&self) -> f64 {
        self.hold_back
    }

    /// Share of datagrams with flipped bits.
    pub fn corrupt_share(&self) -> f64 {
        self.corrupt
    }

    /// Returns the limit of what waits for the rate.
    pub fn queue_limit(&self) -> Queue {
        self.queue
    }

    /// Bytes that wait for the rate at most; `None` where there is no rate.
    pub fn queue_bytes(&self) -> Option<u64> {
        let rate = self.rate?;
        Some(match self.queue {
            Queue::Bytes(bytes) => bytes,
            Queue::Time(time) => {
                let bits = u128::from(rate) * u128::from(time.as_micros()) / 1_000_000;
                u64::try_from(bits / 8).unwrap_or(u64::MAX)
            }
        })
    }

    /// Removes the limit of [`rate`](Self::rate).
    pub fn unlimited(mut self) -> Self {
        self.rate = None;
        self
    }

    /// Forgets outages that are over at `now`, so that a long run with many of them stays small.
    pub fn forget_outages(mut self, now: Instant) -> Self {
        self.outages.retain(|&(_, until)| until > now);
        self
    }

    /// Ends all outages.
    pub fn without_outages(mut self) -> Self {
        self.outages.clear();
        self
    }

    /// The same for a reliable byte stream whose pieces are offered one by one: its delay, jitter, rate and outages in order. Nothing of
    /// it is lost, copied or damaged, and its sender must itself wait while [`queue_bytes`](Self::queue_bytes) are waiting.
    pub fn for_streams(&self) -> Self {
        Self {
            delay: self.delay,
            jitter: self.jitter,
            keep_order: true,
            rate: self.rate,
            queue: Queue::Bytes(u64::MAX),
            ..Self::default()
        }
    }

    /// True if the link is down at `now`.
    pub fn is_out(&self, now: Instant) -> bool {
        self.outages
            .iter()
            .any(|&(from, until)| from <= now && now < until)
    }
}

muse_wire::setters! { Conditions:
    /// Time from the end of sending to the arrival, for every datagram. Default: zero.
    delay: Duration,

    /// Random delay on top of [`delay`](Self::delay), drawn for each datagram. Default: none.
    ///
    /// Datagrams overtake each other when a later one draws a shorter delay, unless [`keep_order`](Self::keep_order) is
    /// set.
    jitter: Jitter,

    /// Makes jitter keep the order: a datagram then never arrives before an earlier one. Default: `false`.
    ///
    /// Keeping the order lengthens delays, as a late datagram holds up its followers. What
    /// [`reorder`](Self::reorder) holds back and the copies of [`duplicate`](Self::duplicate) are exempt.
    keep_order: bool,

    /// Share of datagrams that arrive cut short, to a length drawn from zero to one less than theirs. Default: 0.
    truncate: f64 = unit(truncate),

    /// Rate of the link in bits per second, IP and UDP headers included. Default: unlimited. Zero is taken as one.
    ///
    /// A datagram takes its size divided by the rate to be sent, and waits in the [`queue`](Self::queue) before.
    rate: u64 = Some(rate.max(1)),

    /// Limits what waits before a link with a [`rate`](Self::rate); what comes beyond is lost (drop-tail). Default:
    /// 100 ms.
    queue: Queue,

    /// Largest IP packet in bytes, headers included; larger ones vanish silently. Default: unlimited.
    mtu: usize = Some(mtu),
}

/// The random delay of each datagram.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// Anything from zero to this, equally likely.
    Uniform(Duration),
    /// The delay itself varies: anything from this much less to this much more, equally likely, and never less than nothing.
    Around(Duration),
    /// Normally distributed with this mean and standard deviation; negative draws are drawn again.
    Normal {
        /// Mean before the negative part is cut off.
        mean: Duration,
        /// Standard deviation before the negative part is cut off.
        deviation: Duration,
    },
    /// A long tail: `scale * (U^(-1/shape) - 1)` with `U` uniform, at most `max`. The median is
    /// `scale * (2^(1/shape) - 1)`, the mean without the cut `scale / (shape - 1)`.
    Pareto {
        /// Stretches the distribution.
        scale: Duration,
        /// The steepness of the tail; smaller is longer. Below 0.1 is taken as 0.1.
        shape: f64,
        /// Longest delay.
        max: Duration,
    },
}

/// The limit of what waits for a link with a rate. An idle link takes any datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// At most this many bytes, IP headers included, what remains of the datagram being sent included.
    Bytes(u64),
    /// At most what the link sends in this time.
    Time(Duration),
}

impl Default for Queue {
    fn default() -> Self {
        Self::Time(Duration::from_millis(100))
    }
}

/// A chain of a good and a bad state that moves once per datagram (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability to go from good to bad, before a datagram.
    pub enter_bad: f64,
    /// Probability to go from bad to good, before a datagram.
    pub leave_bad: f64,
    /// Share lost in the good state.
    pub loss_good: f64,
    /// Share lost in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Gilbert's model (everything is lost in the bad state, nothing in the good one) with this share lost in runs of
    /// this mean length: `leave_bad = 1 / mean_burst`, `enter_bad = leave_bad * mean_loss / (1 - mean_loss)`.
    pub fn with_mean(mean_loss: f64, mean_burst: f64) -> Self {
        let burst = mean_burst.max(1.0);
        let loss = unit(mean_loss).min(burst / (1.0 + burst));
        let leave_bad = 1.0 / burst;
        let enter_bad = unit(leave_bad * loss / (1.0 - loss));
        Self {
            enter_bad,
            leave_bad,
            loss_good: 0.0,
            loss_bad: 1.0,
        }
    }

    /// Share of time in the bad state.
    pub fn share_bad(&self) -> f64 {
        let sum = self.enter_bad + self.leave_bad;
        if sum > 0.0 { self.enter_bad / sum } else { 0.0 }
    }

    /// Share of datagrams lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

/// A probability: clamped to 0..=1, not-a-number taken as zero.
fn unit(probability: f64) -> f64 {
    if probability.is_nan() {
        0.0
    } else {
        probability.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_parameters_give_the_asked_mean() {
        for (loss, burst) in [(0.05, 4.0), (0.3, 1.0), (0.5, 2.0), (0.01, 20.0)] {
            let chain = GilbertElliott::with_mean(loss, burst);
            assert!((chain.mean_loss() - loss).abs() < 1e-12, "{loss} {burst}");
            assert!((1.0 / chain.leave_bad - burst).abs() < 1e-12);
        }
        assert!((GilbertElliott::with_mean(0.9, 1.0).mean_loss() - 0.5).abs() < 1e-12);
        assert!(GilbertElliott::with_mean(f64::NAN, f64::NAN).mean_loss() == 0.0);
    }

    #[test]
    fn outages_include_their_start_and_not_their_end() {
        let conditions = Conditions::default().outage(Instant::from_secs(1), Instant::from_secs(2));
        let out = [999_999, 1_000_000, 1_999_999, 2_000_000]
            .map(|micros| conditions.is_out(Instant::from_micros(micros)));
        assert_eq!(out, [false, true, true, false]);
    }
}
