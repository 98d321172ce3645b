//! CUBIC as RFC 9438 has it, the competitor: loss-based, not paced, without HyStart.

use muse_transport::congestion::{Ack, Controller, Loss};
use muse_wire::{Duration, Instant};

use crate::sim::PACKET;

/// Windows are in packets, as in the RFC.
#[derive(Debug)]
pub(crate) struct Cubic {
    window: f64,
    threshold: f64,
    window_max: f64,
    /// Start of the current congestion avoidance epoch.
    epoch: Option<Instant>,
    /// Time from the start of the epoch to the plateau.
    k: f64,
    /// Window that Reno would have.
    window_reno: f64,
    recovery_from: Option<Instant>,
}

impl Cubic {
    pub(crate) fn boxed() -> Box<dyn Controller> {
        Box::new(Self {
            window: 10.0,
            threshold: f64::INFINITY,
            window_max: 0.0,
            epoch: None,
            k: 0.0,
            window_reno: 0.0,
            recovery_from: None,
        })
    }

    fn avoid(&mut self, now: Instant, rtt: Duration) {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.k = ((self.window_max - self.window).max(0.0) / C).cbrt();
            self.window_max = self.window_max.max(self.window);
            self.window_reno = self.window;
            now
        });
        let elapsed = (now - epoch).as_secs_f64();
        let cubic = |t: f64| C * (t - self.k).powi(3) + self.window_max;
        let alpha = if self.window_reno >= self.window_max {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        self.window_reno += alpha / self.window;
        if cubic(elapsed) < self.window_reno {
            self.window = self.window.max(self.window_reno);
        } else {
            let target = cubic(elapsed + rtt.as_secs_f64()).clamp(self.window, 1.5 * self.window);
            self.window += (target - self.window) / self.window;
        }
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, _: Instant, _: usize, _: usize, _: bool) {}

    fn on_ack(&mut self, ack: &Ack) {
        if self.recovery_from.is_some_and(|from| ack.sent_at <= from) {
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.avoid(ack.now, ack.rtt_smoothed);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.recovery_from.is_some_and(|from| loss.sent_at <= from) {
            return;
        }
        self.recovery_from = Some(loss.now);
        self.epoch = None;
        // Fast convergence: release bandwidth when the plateau falls.
        self.window_max = if self.window < self.window_max {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.threshold = (self.window * BETA).max(2.0);
        self.window = if loss.persistent { 1.0 } else { self.threshold };
    }

    fn window(&self) -> usize {
        (self.window * PACKET as f64) as usize
    }

    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self, _: Instant) {}
}

const BETA: f64 = 0.7;
const C: f64 = 0.4;
