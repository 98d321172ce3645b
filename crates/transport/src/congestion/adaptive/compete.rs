//! The window beside flows that fill the queue: CUBIC's growth (RFC 9438), so that neither side starves the other.

use muse_wire::Instant;

/// One epoch of growth; windows in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compete {
    since: Instant,
    /// Where growth flattens: the window at which the queue last overflowed.
    plateau: f64,
    /// Seconds from the start to the plateau.
    rise: f64,
    /// The window that Reno would have reached.
    reno: f64,
    /// Until the first overflow nothing is known about the limit: grow fast, as TCP does when it starts.
    searching: bool,
}

impl Compete {
    /// Starts from `window`, expecting the limit at `plateau`.
    pub(super) fn new(now: Instant, window: f64, plateau: f64) -> Self {
        let plateau = plateau.max(window);
        Self {
            since: now,
            plateau,
            rise: ((plateau - window) / C).cbrt(),
            reno: window,
            searching: true,
        }
    }

    /// The same without a search for the limit.
    pub(super) fn knowing_the_limit(self) -> Self {
        Self {
            searching: false,
            ..self
        }
    }

    /// The window after `packets` more were acknowledged, which took `rtt` seconds.
    pub(super) fn grow(&mut self, now: Instant, window: f64, packets: f64, rtt: f64) -> f64 {
        if self.searching {
            return window + SEARCH * packets;
        }
        let alpha = 1.0;
        self.reno += alpha * packets / window;
        let at = (now - self.since).as_secs_f64() + rtt - self.rise;
        let target = (C * at.powi(3) + self.plateau).clamp(window, 1.5 * window);
        (window + (target - window) * packets / window).max(self.reno)
    }

    /// The epoch after an overflow at `window`, and the window that it starts with.
    pub(super) fn after_overflow(&self, now: Instant, window: f64) -> (Self, f64) {
        // Fast convergence: when the limit falls, somebody else has come; leave him some more.
        let plateau = if window < self.plateau {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        };
        let window = BETA * window;
        (
            Self {
                searching: false,
                ..Self::new(now, window, plateau)
            },
            window,
        )
    }
}

/// What remains of the window after an overflow.
pub(super) const BETA: f64 = 0.8;
const C: f64 = 0.8;
/// Growth per round trip while searching.
const SEARCH: f64 = 1.0;
