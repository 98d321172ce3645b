//! The default controller: aims at a small queue, finds spare bandwidth, and turns competitive beside TCP (VC-9).

mod filter;

use muse_wire::{Duration, Instant};

use super::{Ack, Controller, Loss};
use filter::LeastOver;

/// Constants of the adaptive controller.
///
/// ```
/// use muse_transport::congestion::{AdaptiveConfig, Congestion};
/// use muse_wire::Instant;
/// let config = AdaptiveConfig::default().window_max(1 << 20);
/// assert!(Congestion::adaptive_with(config).build(1_200, Instant::ZERO).window() <= 1 << 20);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveConfig {
    window_max: usize,
}

impl Default for AdaptiveConfig {
    fn default() -> Self {
        Self {
            window_max: 16 << 20,
        }
    }
}

impl AdaptiveConfig {
    /// Most bytes in flight (16 MiB). It bounds the memory for what may have to be sent again.
    pub fn window_max(mut self, bytes: usize) -> Self {
        self.window_max = bytes;
        self
    }
}

/// The controller itself.
#[derive(Debug)]
pub(super) struct Adaptive {
    config: AdaptiveConfig,
    packet: f64,
    window: f64,
    slow_start: bool,
    rtt_min: LeastOver,
    rtt_standing: LeastOver,
}

impl Adaptive {
    pub(super) fn new(config: AdaptiveConfig, packet_size: usize, _now: Instant) -> Self {
        let packet = packet_size.max(1) as f64;
        Self {
            config,
            packet,
            window: (10.0 * packet).min(config.window_max as f64),
            slow_start: true,
            rtt_min: LeastOver::new(),
            rtt_standing: LeastOver::new(),
        }
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, _: Instant, _: usize, _: usize, _: bool) {}

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min.update(ack.now, Duration::from_secs(10), rtt);
            self.rtt_standing.update(ack.now, ack.rtt_smoothed / 2, rtt);
        }
        let queue = (self.rtt_standing.value() - self.rtt_min.value()).as_secs_f64();
        let rate = self.window / self.rtt_standing.value().as_secs_f64().max(1e-6);
        let step = 2.0 * self.packet * ack.bytes as f64 / self.window;
        if rate * queue <= 2.0 * self.packet {
            self.window += if self.slow_start {
                ack.bytes as f64
            } else {
                step
            };
        } else {
            self.slow_start = false;
            self.window -= step;
        }
        self.window = self.window.clamp(
            2.0 * self.packet,
            (self.config.window_max as f64).max(2.0 * self.packet),
        );
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.slow_start = false;
        if loss.persistent {
            self.window = 2.0 * self.packet;
        }
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn pacing_rate(&self) -> Option<u64> {
        let rtt = self.rtt_standing.value();
        (rtt < Duration::MAX).then(|| (2.0 * self.window / rtt.as_secs_f64().max(1e-6)) as u64)
    }

    fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, self.packet as usize, now);
    }
}
