//! The quality of the connection, for the player to see.

use muse_wire::{Duration, Instant};

/// Settings of a [`Quality`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityConfig {
    /// Round trip, jitter, and lost packets in thousandths.
    fair: (Duration, Duration, u16),
    poor: (Duration, Duration, u16),
    worse_after: Duration,
    better_after: Duration,
    frozen_after: Duration,
    reconnect_after: Duration,
    gone_after: Duration,
}

impl QualityConfig {
    /// Above any of these the connection is fair: a round trip, a mean change of the delay from one packet to the next, and lost
    /// packets in thousandths. Default: 100 ms, 15 ms and 20.
    pub fn fair_above(mut self, ping: Duration, jitter: Duration, loss_permille: u16) -> Self {
        self.fair = (ping, jitter, loss_permille);
        self
    }

    /// Above any of these the connection is poor. Default: 200 ms, 40 ms and 60.
    pub fn poor_above(mut self, ping: Duration, jitter: Duration, loss_permille: u16) -> Self {
        self.poor = (ping, jitter, loss_permille);
        self
    }

    /// Sets how long it has to be worse or better before the level changes, so that an icon does not flicker. Default: 1 s and
    /// 3 s.
    pub fn hold(mut self, worse_after: Duration, better_after: Duration) -> Self {
        self.worse_after = worse_after;
        self.better_after = better_after;
        self
    }
}

muse_wire::setters! { QualityConfig:
    /// After so long without a packet the game freezes. Default: 500 ms.
    frozen_after: Duration,
    /// After so long without a packet the client tries to connect again. Default: 3 s.
    reconnect_after: Duration,
    /// After so long without a packet it gives up. Default: 20 s.
    gone_after: Duration,
}

impl Default for QualityConfig {
    fn default() -> Self {
        Self {
            fair: (Duration::from_millis(100), Duration::from_millis(15), 20),
            poor: (Duration::from_millis(200), Duration::from_millis(40), 60),
            worse_after: Duration::from_secs(1),
            better_after: Duration::from_secs(3),
            frozen_after: Duration::from_millis(500),
            reconnect_after: Duration::from_secs(3),
            gone_after: Duration::from_secs(20),
        }
    }
}

/// Three levels for an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QualityLevel {
    /// Nothing to see.
    Good,
    /// It can be felt.
    Fair,
    /// It spoils the game.
    Poor,
}

/// The state of the connection, by how long the server has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    /// The server can be heard.
    Here,
    /// Silent at the moment: stop predicting, show that something is wrong.
    Frozen,
    /// Silent for a while: connect again.
    Reconnecting,
    /// Silent for too long: back to the menu.
    Gone,
}

/// Ping, loss and jitter of a connection, and what to make of them.
///
/// Feed it with [`handle_packet`](Self::handle_packet) and [`update`](Self::update) it once a frame.
///
/// ```
/// use muse_netcode::quality::{QualityLevel, Liveness, Quality, QualityConfig};
/// use muse_wire::{Duration, Instant};
/// let mut quality = Quality::new(QualityConfig::default(), Instant::ZERO);
/// quality.handle_packet(Instant::from_millis(40), Some(Duration::from_millis(30)));
/// quality.update(Instant::from_millis(100), Some(Duration::from_millis(60)), 0.0);
/// assert_eq!((quality.level(), quality.liveness()), (QualityLevel::Good, Liveness::Here));
/// quality.update(Instant::from_millis(1_000), None, 0.0);
/// assert_eq!(quality.liveness(), Liveness::Frozen);
/// ```
#[derive(Clone, Debug)]
pub struct Quality {
    config: QualityConfig,
    ping: Option<Duration>,
    loss: f64,
    jitter_micros: f64,
    last_delay: Option<Duration>,
    heard_at: Instant,
    level: QualityLevel,
    /// Since when the measurements have asked for another level.
    changing_since: Option<(QualityLevel, Instant)>,
    liveness: Liveness,
}

impl Quality {
    /// A connection that was made at `now`.
    pub fn new(config: QualityConfig, now: Instant) -> Self {
        Self {
            config,
            ping: None,
            loss: 0.0,
            jitter_micros: 0.0,
            last_delay: None,
            heard_at: now,
            level: QualityLevel::Good,
            changing_since: None,
            liveness: Liveness::Here,
        }
    }

    /// A packet arrived, after this delay if it is known (from any origin, since only its changes count).
    pub fn handle_packet(&mut self, now: Instant, delay: Option<Duration>) {
        self.heard_at = self.heard_at.max(now);
        if let (Some(delay), Some(last)) = (delay, self.last_delay) {
            let change = delay.abs_diff(last).as_micros() as f64;
            self.jitter_micros += (change - self.jitter_micros) * JITTER_WEIGHT;
        }
        self.last_delay = delay.or(self.last_delay);
    }

    /// Judges again, with the round trip and the share of packets lost as they were measured last.
    pub fn update(&mut self, now: Instant, ping: Option<Duration>, loss: f64) {
        self.ping = ping.or(self.ping);
        self.loss = if loss.is_nan() {
            0.0
        } else {
            loss.clamp(0.0, 1.0)
        };
        let silence = now.saturating_since(self.heard_at);
        self.liveness = match silence {
            silence if silence >= self.config.gone_after => Liveness::Gone,
            silence if silence >= self.config.reconnect_after => Liveness::Reconnecting,
            silence if silence >= self.config.frozen_after => Liveness::Frozen,
            _ => Liveness::Here,
        };
        let measured = self.measured();
        if measured == self.level {
            self.changing_since = None;
            return;
        }
        let since = match self.changing_since {
            // Worse or better is what has to last; how much may vary meanwhile.
            Some((towards, since)) if (towards > self.level) == (measured > self.level) => since,
            _ => now,
        };
        self.changing_since = Some((measured, since));
        let hold = match measured > self.level {
            true => self.config.worse_after,
            false => self.config.better_after,
        };
        if now - since >= hold {
            self.level = measured;
            self.changing_since = None;
        }
    }

    /// The icon to show.
    pub fn level(&self) -> QualityLevel {
        self.level
    }

    /// Returns the state of the connection, by how long the server has been silent.
    pub fn liveness(&self) -> Liveness {
        self.liveness
    }

    /// The round trip.
    pub fn ping(&self) -> Option<Duration> {
        self.ping
    }

    /// Share of packets lost.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Mean change of the delay from one packet to the next.
    pub fn jitter(&self) -> Duration {
        Duration::from_micros(self.jitter_micros as u64)
    }

    fn measured(&self) -> QualityLevel {
        let above = |(ping, jitter, loss_permille): (Duration, Duration, u16)| {
            self.ping.is_some_and(|measured| measured > ping)
                || self.jitter() > jitter
                || self.loss * 1_000.0 > f64::from(loss_permille)
        };
        if self.liveness != Liveness::Here || above(self.config.poor) {
            QualityLevel::Poor
        } else if above(self.config.fair) {
            QualityLevel::Fair
        } else {
            QualityLevel::Good
        }
    }
}

/// Each change of the delay counts so much towards the mean.
const JITTER_WEIGHT: f64 = 1.0 / 32.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_mean_change_of_the_delay() {
        let mut quality = Quality::new(QualityConfig::default(), Instant::ZERO);
        for index in 0..400_u64 {
            let delay = Duration::from_millis(50 + index % 2 * 10);
            quality.handle_packet(Instant::from_millis(index * 20), Some(delay));
        }
        assert!(quality.jitter().abs_diff(Duration::from_millis(10)) < Duration::from_micros(50));
    }

    #[test]
    fn the_icon_does_not_flicker() {
        let mut quality = Quality::new(QualityConfig::default(), Instant::ZERO);
        let mut changes = Vec::new();
        for frame in 0..2_000_u64 {
            let now = Instant::from_millis(frame * 10);
            quality.handle_packet(now, None);
            // Bad for a moment every second, then bad for three seconds, then good.
            let bad = frame < 500 && frame % 100 < 20 || (500..800).contains(&frame);
            let ping = Duration::from_millis(if bad { 250 } else { 50 });
            let before = quality.level();
            quality.update(now, Some(ping), 0.0);
            if quality.level() != before {
                changes.push((frame, quality.level()));
            }
        }
        assert_eq!(
            changes,
            [(600, QualityLevel::Poor), (1_100, QualityLevel::Good)]
        );
    }

    #[test]
    fn silence_freezes_then_reconnects_then_gives_up() {
        let mut quality = Quality::new(QualityConfig::default(), Instant::ZERO);
        let mut liveness = |millis| {
            quality.update(Instant::from_millis(millis), None, 0.0);
            quality.liveness()
        };
        assert_eq!(liveness(499), Liveness::Here);
        assert_eq!(liveness(500), Liveness::Frozen);
        assert_eq!(liveness(3_000), Liveness::Reconnecting);
        assert_eq!(liveness(20_000), Liveness::Gone);
        quality.handle_packet(Instant::from_millis(20_001), None);
        quality.update(Instant::from_millis(20_002), None, 0.0);
        assert_eq!(quality.liveness(), Liveness::Here);
    }

    #[test]
    fn limits_are_those_of_the_config() {
        let millis = Duration::from_millis;
        let config = QualityConfig::default()
            .hold(Duration::ZERO, Duration::ZERO)
            .fair_above(millis(40), millis(40), 60)
            .poor_above(millis(80), millis(40), 60)
            .gone_after(Duration::from_secs(30));
        let mut quality = Quality::new(config, Instant::ZERO);
        let mut level = |ping| {
            quality.handle_packet(Instant::from_secs(1), None);
            quality.update(
                Instant::from_secs(1),
                Some(Duration::from_millis(ping)),
                0.0,
            );
            quality.level()
        };
        assert_eq!(
            [40, 41, 81].map(&mut level),
            [QualityLevel::Good, QualityLevel::Fair, QualityLevel::Poor]
        );
        quality.update(Instant::from_secs(30), None, 0.0);
        assert_eq!(quality.liveness(), Liveness::Reconnecting);
        quality.update(Instant::from_secs(31), None, 0.0);
        assert_eq!(quality.liveness(), Liveness::Gone);
    }
}
