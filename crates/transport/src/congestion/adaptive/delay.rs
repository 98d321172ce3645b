//! Measures the queue by round-trip times: its delay, how noisy the measure is, and when it was last empty.

use muse_wire::{Duration, Instant};

use super::filter::LeastOver;

/// The estimator. All its answers are in seconds, the unit of the control law.
#[derive(Debug)]
pub(super) struct Delay {
    /// The path without a queue, and when a sample last confirmed it.
    base: Duration,
    base_at: Instant,
    /// The share of a full packet that the packet that set the base lacked: a short packet passes the bottleneck sooner.
    base_lacks: f64,
    /// The least since the last drain, when it was, and whether it fell clearly just now.
    dip: Duration,
    dip_at: Instant,
    dip_fell: bool,
    /// The least over [`BASE_SPAN`], to fall back on when the base has not been seen for long.
    recent: LeastOver,
    /// The least of the last moments: the queue without the noise of single samples.
    standing: LeastOver,
    /// The longest sample of each of the last rounds.
    crests: [Duration; CRESTS],
    /// Range of the samples of the present moment, and its smoothed size: jitter that is no queue.
    block: Option<Block>,
    noise: f64,
    /// The time for which acks may have waited until they were read, lately.
    slack: Duration,
}

impl Delay {
    pub(super) fn new() -> Self {
        Self {
            base: Duration::MAX,
            base_at: Instant::ZERO,
            base_lacks: 0.0,
            dip: Duration::MAX,
            dip_at: Instant::ZERO,
            dip_fell: false,
            recent: LeastOver::new(),
            standing: LeastOver::new(),
            crests: [Duration::ZERO; CRESTS],
            block: None,
            noise: 0.0,
            slack: Duration::ZERO,
        }
    }

    /// True if the sample shows that the base was wrong.
    pub(super) fn sample(&mut self, now: Instant, sample: &Sample) -> bool {
        let &Sample {
            rtt,
            slack,
            smoothed,
            lacks,
            packet_time,
            service,
        } = sample;
        if lacks < LACKS_LITTLE && self.base_lacks >= LACKS_LITTLE {
            // The additional time of a full packet on the same empty path; without it this flow would see a queue where others see none.
            let longer = Duration::from_secs_f64(self.base_lacks * service.as_secs_f64());
            (self.base, self.base_lacks) = ((self.base + longer).min(rtt), lacks);
        }
        self.slack = slack.max(self.slack - self.slack / 8);
        let corrected = rtt < self.base - self.base / 64;
        if rtt <= self.base {
            (self.base, self.base_lacks) = (rtt, lacks);
        }
        if rtt <= self.base + (self.base / 64).max(service) {
            self.base_at = now;
        }
        if rtt <= self.dip {
            self.dip_fell |= self.dip < Duration::MAX && rtt < self.dip - self.dip / 64;
            (self.dip, self.dip_at) = (rtt, now);
        }
        self.recent.update(now, BASE_SPAN, rtt);
        let span = (smoothed / 2).min(STANDING_SPAN + Duration::from_secs_f64(2.0 * self.noise));
        self.standing.update(now, span, rtt);
        self.crests[0] = self.crests[0].max(rtt);
        let mut block = self.block.unwrap_or(Block::new(now, rtt));
        block.add(rtt);
        if now - block.since > span {
            self.noise += ((block.noise() - packet_time).max(0.0) - self.noise) / 8.0;
            block = Block::new(now, rtt);
        }
        self.block = Some(block);
        corrected
    }

    /// A round trip is over.
    pub(super) fn next_round(&mut self) {
        self.crests.rotate_right(1);
        self.crests[0] = self.standing.value();
    }

    pub(super) fn is_known(&self) -> bool {
        self.base < Duration::MAX
    }

    /// Round trip of the empty path.
    pub(super) fn base(&self) -> f64 {
        self.base.as_secs_f64()
    }

    /// Round trip now, without the noise of single samples.
    pub(super) fn standing(&self) -> f64 {
        self.standing.value().as_secs_f64().max(1e-6)
    }

    /// Delay of the queue beyond what noise explains.
    pub(super) fn queue(&self) -> f64 {
        (self.standing() - self.base() - self.tolerance()).max(0.0)
    }

    /// Returns how much longer than the base a round trip may be and still count as one without a queue: for the noise, up to a
    /// total that no game feels and that clocks and schedulers cannot resolve, and for acks that waited to be read.
    fn tolerance(&self) -> f64 {
        (NOISE_SHARE * self.noise).max(TOTAL_FELT - self.base()) + self.slack.as_secs_f64()
    }

    /// True if the queue is empty, or nearly so beside its swing over the last rounds.
    pub(super) fn is_nearly_empty(&self) -> bool {
        self.queue() <= 0.25 * self.swing()
    }

    /// True if the queue is more than half full, as far as its recent swing tells.
    pub(super) fn is_high(&self) -> bool {
        self.queue() > 0.0 && self.standing() - self.base() > 0.5 * self.swing()
    }

    /// True if the queue fell to less than half of its height: another flow stepped back.
    pub(super) fn is_low(&self) -> bool {
        self.standing() - self.base() < 0.4 * self.swing()
    }

    /// Returns the height to which the queue rose in the last rounds.
    pub(super) fn swing(&self) -> f64 {
        let crest = self.crests.iter().copied().max().unwrap_or_default();
        crest.as_secs_f64() - self.base()
    }

    /// Time since a sample last confirmed the base.
    pub(super) fn base_age(&self, now: Instant) -> Duration {
        now - self.base_at
    }

    /// Takes a round trip as the path without a queue.
    pub(super) fn set_base(&mut self, now: Instant, base: Duration) {
        self.base = base;
        self.base_at = now;
    }

    /// The least round trip lately, whether the queue was empty or not.
    pub(super) fn recent(&self) -> Duration {
        self.recent.value()
    }

    /// Starts to look afresh for the least round trip.
    pub(super) fn forget_recent(&mut self) {
        self.recent = LeastOver::new();
        (self.dip, self.dip_fell) = (Duration::MAX, false);
    }

    /// Time since the least round trip since the last drain.
    pub(super) fn dip_age(&self, now: Instant) -> Duration {
        now - self.dip_at
    }

    /// True, once, if round trips have become clearly shorter than any since the last drain: another flow drains.
    pub(super) fn take_dip_fell(&mut self) -> bool {
        std::mem::take(&mut self.dip_fell)
    }
}

/// One round trip and what is to be known about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) rtt: Duration,
    /// The part of it that may be time in which nobody looked for the ack.
    pub(super) slack: Duration,
    pub(super) smoothed: Duration,
    /// The share of a full packet that the packet lacked, from 0 to 1.
    pub(super) lacks: f64,
    /// Seconds that one packet takes at the flow's rate: round trips step by that much without any noise.
    pub(super) packet_time: f64,
    /// The time it takes at the bottleneck: round trips that differ by less are the same.
    pub(super) service: Duration,
}

/// Samples of one moment, as long as [`STANDING_SPAN`] or longer.
#[derive(Clone, Copy, Debug)]
struct Block {
    since: Instant,
    first: Duration,
    last: Duration,
    low: Duration,
    high: Duration,
}

impl Block {
    fn new(since: Instant, rtt: Duration) -> Self {
        Self {
            since,
            first: rtt,
            last: rtt,
            low: rtt,
            high: rtt,
        }
    }

    fn add(&mut self, rtt: Duration) {
        self.last = rtt;
        self.low = self.low.min(rtt);
        self.high = self.high.max(rtt);
    }

    /// The range less the trend, which is a queue that fills or empties.
    fn noise(&self) -> f64 {
        ((self.high - self.low) - self.last.abs_diff(self.first)).as_secs_f64()
    }
}

/// The time for which an unconfirmed base is believed.
pub(super) const BASE_SPAN: Duration = Duration::from_secs(10);
/// Over this span the least round trip is the standing one, and over a longer one where there is jitter. The same for all flows, near
/// or far: else the flow from afar, with the longer span, would see the shorter queue and take what the other leaves.
const STANDING_SPAN: Duration = Duration::from_millis(10);
/// A packet that lacks less than this is a full one.
const LACKS_LITTLE: f64 = 0.25;
/// Rounds over which the swing of the queue is taken.
const CRESTS: usize = 4;
/// Share of the measured noise that counts as no queue.
const NOISE_SHARE: f64 = 1.5;
/// Round trips up to 5 ms are never held against the queue.
const TOTAL_FELT: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rtt: Duration, lacks: f64) -> Sample {
        Sample {
            rtt,
            slack: Duration::ZERO,
            smoothed: rtt,
            lacks,
            packet_time: 0.0,
            service: Duration::ZERO,
        }
    }

    fn feed(delay: &mut Delay, from_ms: u64, count: u64, rtt_us: impl Fn(u64) -> u64) {
        for step in 0..count {
            let rtt = Duration::from_micros(rtt_us(step));
            delay.sample(Instant::from_millis(from_ms + step), &sample(rtt, 0.0));
            if step % 50 == 0 {
                delay.next_round();
            }
        }
    }

    #[test]
    fn a_longer_round_trip_is_a_queue() {
        let mut delay = Delay::new();
        feed(&mut delay, 0, 500, |_| 50_000);
        assert_eq!(delay.queue(), 0.0);
        feed(&mut delay, 500, 100, |_| 80_000);
        assert!((delay.queue() - 0.03).abs() < 1e-6, "{}", delay.queue());
        assert!(delay.is_high() && !delay.is_nearly_empty());
    }

    #[test]
    fn short_round_trips_have_no_queue() {
        let mut delay = Delay::new();
        feed(
            &mut delay,
            0,
            500,
            |step| if step < 100 { 100 } else { 4_900 },
        );
        assert_eq!(delay.queue(), 0.0);
    }

    #[test]
    fn jitter_is_tolerated_once_it_is_known() {
        let mut delay = Delay::new();
        // Ten milliseconds of jitter whose least sample is rarely seen.
        feed(&mut delay, 0, 2_000, |step| {
            50_000
                + if step == 0 {
                    0
                } else {
                    3_000 + step * 7_919 % 7_000
                }
        });
        assert!(delay.queue() < 0.001, "{}", delay.queue());
    }

    #[test]
    fn the_base_ages_until_it_is_seen_again() {
        let mut delay = Delay::new();
        feed(&mut delay, 0, 100, |_| 50_000);
        feed(&mut delay, 100, 900, |_| 70_000);
        assert_eq!(
            delay.base_age(Instant::from_millis(999)),
            Duration::from_millis(900)
        );
        delay.set_base(Instant::from_secs(1), Duration::from_millis(70));
        assert_eq!(delay.base_age(Instant::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn a_base_set_by_a_short_packet_is_raised_for_full_ones() {
        let mut delay = Delay::new();
        let short = sample(Duration::from_millis(20), 0.9);
        delay.sample(Instant::from_millis(1), &short);
        let full = Sample {
            service: Duration::from_millis(10),
            ..sample(Duration::from_millis(30), 0.0)
        };
        delay.sample(Instant::from_millis(2), &full);
        assert!((delay.base() - 0.029).abs() < 1e-6, "{}", delay.base());
    }

    #[test]
    fn a_dip_falls_once_until_the_next_drain() {
        let mut delay = Delay::new();
        feed(&mut delay, 0, 100, |_| 50_000);
        assert!(!delay.take_dip_fell());
        feed(&mut delay, 100, 100, |_| 40_000);
        assert!(delay.take_dip_fell());
        assert!(!delay.take_dip_fell());
        delay.forget_recent();
        feed(&mut delay, 200, 100, |_| 40_000);
        assert!(
            !delay.take_dip_fell(),
            "the first after a drain says nothing"
        );
        assert_eq!(delay.dip_age(Instant::from_millis(299)), Duration::ZERO);
    }
}
