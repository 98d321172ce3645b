//! The window beside flows that fill the queue: CUBIC's growth (RFC 9438), so that neither side starves the other.

use muse_wire::Instant;

/// One epoch of growth; windows in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compete {
    since: Instant,
    /// The window at which the queue last overflowed: there growth flattens.
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
        // Fast convergence: when the limit falls, another flow has come; leave it some more.
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

/// The share of the window that remains after an overflow.
pub(super) const BETA: f64 = 0.8;
const C: f64 = 0.8;
/// Growth per round trip while searching.
const SEARCH: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;
    use muse_wire::Duration;

    /// A second of acks at a round trip of 100 ms.
    fn second(compete: &mut Compete, from: Instant, mut window: f64) -> f64 {
        for step in 0..10 {
            let packets = window;
            window = compete.grow(
                from + Duration::from_millis(100 * step),
                window,
                packets,
                0.1,
            );
        }
        window
    }

    #[test]
    fn searches_fast_until_the_first_overflow_and_flattens_at_the_plateau_after_it() {
        let start = Instant::from_secs(10);
        let mut compete = Compete::new(start, 10.0, 10.0);
        let found = second(&mut compete, start, 10.0);
        assert!(found > 1_000.0, "doubles each round trip: {found}");
        let (mut next, cut) = compete.after_overflow(start, 1_000.0);
        assert_eq!(cut, 800.0);
        let mut window = cut;
        for step in 0..6 {
            window = second(&mut next, start + Duration::from_secs(step), window);
        }
        assert!((900.0..1_100.0).contains(&window), "{window}");
    }

    #[test]
    fn a_lower_overflow_lowers_the_plateau_further() {
        let start = Instant::ZERO;
        let (first, _) = Compete::new(start, 100.0, 100.0).after_overflow(start, 100.0);
        let (second, _) = first.after_overflow(start, 80.0);
        assert!(second.plateau < 80.0);
    }
}
