//! Fiedler's binary congestion avoidance: a good mode, a bad mode, and a growing reluctance to leave the bad one.
//!
//! Conditions are bad while the smoothed round-trip time is above a threshold. Its two rates are fixed, so it never floods
//! a link that carries the good one; it suits games that send the same stream to everybody.

use muse_wire::{Duration, Instant, log};

use super::fixed::window_for;
use super::{Ack, Controller, Loss, Pacer};

/// Constants of the binary controller; the defaults are Fiedler's.
#[derive(Clone, Copy, Debug)]
pub struct BinaryConfig {
    good: u32,
    bad: u32,
    packet_size: u32,
    threshold: Duration,
    recovery_min: Duration,
    recovery_max: Duration,
    patience: Duration,
}

impl Default for BinaryConfig {
    fn default() -> Self {
        Self {
            good: 30,
            bad: 10,
            packet_size: 256,
            threshold: Duration::from_millis(250),
            recovery_min: Duration::from_secs(1),
            recovery_max: Duration::from_secs(60),
            patience: Duration::from_secs(10),
        }
    }
}

impl BinaryConfig {
    /// Packets per second in the good and in the bad mode (30 and 10). More costs bandwidth in either.
    pub fn packets_per_second(mut self, good: u32, bad: u32) -> Self {
        self.good = good;
        self.bad = bad;
        self
    }

    /// Bounds of the time that conditions must stay good before the good mode returns (1 s, where it starts, and 60 s).
    pub fn recovery(mut self, min: Duration, max: Duration) -> Self {
        self.recovery_min = min;
        self.recovery_max = max.max(min);
        self
    }
}

muse_wire::setters! { BinaryConfig:
    /// Bytes in a packet (256), which turn the packet rates into byte rates. Shorter packets count as if they were as long, longer ones
    /// by their length.
    packet_size: u32,

    /// Conditions are bad while the smoothed RTT is above this (250 ms). A lower one reacts to distance, not to congestion.
    threshold: Duration,

    /// A good mode shorter than this (10 s) doubles the recovery time; each such span spent in it halves it.
    patience: Duration = patience.max(Duration::from_micros(1)),
}

/// The controller itself.
#[derive(Debug)]
pub(super) struct Binary {
    config: BinaryConfig,
    mode: Mode,
    /// The time for which conditions must be good before the mode is: Fiedler's *t*.
    recovery: Duration,
    conditions_bad: bool,
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// `shortened_at`: when the recovery time was last shortened, or `since`.
    Good {
        since: Instant,
        shortened_at: Instant,
    },
    /// `good_since`: when conditions became good, if they are.
    Bad { good_since: Option<Instant> },
}

impl Binary {
    pub(super) fn new(config: BinaryConfig, now: Instant) -> Self {
        Self {
            config,
            mode: Mode::Good {
                since: now,
                shortened_at: now,
            },
            recovery: config.recovery_min,
            conditions_bad: false,
        }
    }

    fn rate(&self) -> u64 {
        let packets = match self.mode {
            Mode::Good { .. } => self.config.good,
            Mode::Bad { .. } => self.config.bad,
        };
        (u64::from(packets) * u64::from(self.config.packet_size)).max(1)
    }

    fn update(&mut self, now: Instant) {
        match self.mode {
            Mode::Good {
                since,
                shortened_at,
            } => {
                // Time in good mode counts up to now even if the condition that ends it is noticed only now.
                let mut shortened_at = shortened_at;
                while self.recovery > self.config.recovery_min
                    && now - shortened_at >= self.config.patience
                {
                    self.recovery = (self.recovery / 2).max(self.config.recovery_min);
                    shortened_at += self.config.patience;
                }
                self.mode = Mode::Good {
                    since,
                    shortened_at,
                };
                if self.conditions_bad {
                    if now - since < self.config.patience {
                        self.recovery = (self.recovery * 2).min(self.config.recovery_max);
                    }
                    log!(debug, recovery = ?self.recovery, "conditions are bad: lower rate");
                    self.mode = Mode::Bad { good_since: None };
                }
            }
            Mode::Bad { .. } if self.conditions_bad => self.mode = Mode::Bad { good_since: None },
            Mode::Bad { good_since: None } => {
                self.mode = Mode::Bad {
                    good_since: Some(now),
                }
            }
            Mode::Bad {
                good_since: Some(good_since),
            } => {
                if now - good_since >= self.recovery {
                    log!(debug, "conditions are good again: full rate");
                    self.mode = Mode::Good {
                        since: now,
                        shortened_at: now,
                    };
                }
            }
        }
    }
}

impl Controller for Binary {
    fn on_sent(&mut self, now: Instant, _: usize, _: usize, _: bool) {
        self.update(now);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.conditions_bad = ack.rtt_smoothed > self.config.threshold;
        self.update(ack.now);
    }

    fn on_loss(&mut self, loss: &Loss) {
        // A path from which nothing returns has no round-trip time to compare; it is certainly not good.
        if loss.persistent {
            self.conditions_bad = true;
        }
        self.update(loss.now);
    }

    fn pacer(&self, _: usize) -> Pacer {
        // The modes are rates of packets, whatever their size; and a burst worth seconds would hide a change of mode for as long.
        let packet = self.config.packet_size as usize;
        Pacer::with_burst(packet * BURST_PACKETS, Duration::ZERO).packet_min(packet)
    }

    fn window(&self) -> usize {
        window_for(self.rate())
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate())
    }

    fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, now);
    }
}

/// Packets that may leave at once: a tick that came a little early need not wait.
const BURST_PACKETS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Option<u64> = Some(30 * 256);
    const BAD: Option<u64> = Some(10 * 256);

    /// Acks every 100 ms with one smoothed RTT until `until_s`.
    fn run(binary: &mut Binary, now_ms: &mut u64, until_ms: u64, rtt_ms: u64) {
        while *now_ms < until_ms {
            *now_ms += 100;
            binary.on_ack(&Ack {
                now: Instant::from_millis(*now_ms),
                sent_at: Instant::from_millis(now_ms.saturating_sub(rtt_ms)),
                bytes: 256,
                rtt: Some(Duration::from_millis(rtt_ms)),
                rtt_slack: Duration::ZERO,
                rtt_smoothed: Duration::from_millis(rtt_ms),
                in_flight: 0,
                app_limited: false,
            });
        }
    }

    #[test]
    fn turns_bad_at_once_and_good_after_the_recovery_time() {
        let mut binary = Binary::new(BinaryConfig::default(), Instant::ZERO);
        let mut now = 0;
        run(&mut binary, &mut now, 20_000, 250);
        assert_eq!(binary.pacing_rate(), GOOD, "the threshold itself is good");
        run(&mut binary, &mut now, 20_100, 251);
        assert_eq!(binary.pacing_rate(), BAD);
        // Good lasted longer than 10 s, so the recovery time is still 1 s, counted from the first good sample.
        run(&mut binary, &mut now, 21_100, 100);
        assert_eq!(binary.pacing_rate(), BAD);
        run(&mut binary, &mut now, 21_200, 100);
        assert_eq!(binary.pacing_rate(), GOOD);
    }

    #[test]
    fn a_short_good_time_doubles_the_recovery_up_to_a_minute() {
        let mut binary = Binary::new(BinaryConfig::default(), Instant::ZERO);
        let mut now = 0;
        for expected_s in [2, 4, 8, 16, 32, 60, 60] {
            let bad_at = now + 100;
            run(&mut binary, &mut now, bad_at, 400);
            assert_eq!(binary.recovery, Duration::from_secs(expected_s));
            let recovered = now + 100 + expected_s * 1_000;
            run(&mut binary, &mut now, recovered - 100, 50);
            assert_eq!(binary.pacing_rate(), BAD);
            run(&mut binary, &mut now, recovered, 50);
            assert_eq!(binary.pacing_rate(), GOOD);
        }
    }

    #[test]
    fn every_ten_good_seconds_halve_the_recovery_down_to_a_second() {
        let mut binary = Binary::new(BinaryConfig::default(), Instant::ZERO);
        binary.recovery = Duration::from_secs(8);
        let mut now = 0;
        for (until_s, expected_s) in [(9, 8), (11, 4), (21, 2), (31, 1), (61, 1)] {
            run(&mut binary, &mut now, until_s * 1_000, 50);
            assert_eq!(
                binary.recovery,
                Duration::from_secs(expected_s),
                "after {until_s} s"
            );
        }
    }

    #[test]
    fn bad_samples_restart_the_recovery() {
        let mut binary = Binary::new(BinaryConfig::default(), Instant::ZERO);
        let mut now = 15_000;
        run(&mut binary, &mut now, 15_100, 400);
        run(&mut binary, &mut now, 15_900, 50);
        run(&mut binary, &mut now, 16_000, 400);
        run(&mut binary, &mut now, 16_900, 50);
        assert_eq!(binary.pacing_rate(), BAD);
    }

    #[test]
    fn a_dead_path_is_bad() {
        let mut binary = Binary::new(BinaryConfig::default(), Instant::ZERO);
        let now = Instant::from_secs(5);
        binary.on_loss(&Loss {
            now,
            sent_at: Instant::ZERO,
            bytes: 256,
            in_flight: 0,
            persistent: false,
        });
        assert_eq!(binary.pacing_rate(), GOOD, "single losses do not count");
        binary.on_loss(&Loss {
            now,
            sent_at: Instant::ZERO,
            bytes: 256,
            in_flight: 0,
            persistent: true,
        });
        assert_eq!(binary.pacing_rate(), BAD);
    }

    #[test]
    fn the_rate_is_packets_times_their_size() {
        let config = BinaryConfig::default()
            .packets_per_second(60, 20)
            .packet_size(512);
        let binary = Binary::new(config, Instant::ZERO);
        assert_eq!(binary.pacing_rate(), Some(60 * 512));
    }
}
