//! One direction of this client's link, made worse on purpose: the sliders of the net graph.

use std::collections::BTreeMap;

use muse::wire::{Duration, Ecn, Instant};
use muse_netem::{Conditioner, Conditions, Jitter, Packet};

/// Holds datagrams back, and loses some, as its [`Weather`] says.
#[derive(Debug)]
pub struct Conditioned {
    link: Conditioner,
    clear: bool,
    /// By time of arrival, then in the order they came.
    waiting: BTreeMap<(Instant, u64), Vec<u8>>,
    next: u64,
}

/// Conditions of a bad link, the same each way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weather {
    /// Milliseconds that everything takes longer.
    pub delay_ms: f32,
    /// Milliseconds that it may take longer still, each datagram its own.
    pub jitter_ms: f32,
    /// Share that is lost, 0 to 1.
    pub loss: f32,
}

impl Weather {
    /// Within what the sliders have; what is no number is nothing.
    pub fn new(delay_ms: f32, jitter_ms: f32, loss: f32) -> Self {
        let within = |value: f32, max: f32| {
            if value.is_finite() {
                value.clamp(0.0, max)
            } else {
                0.0
            }
        };
        Self {
            delay_ms: within(delay_ms, DELAY_MS_MAX),
            jitter_ms: within(jitter_ms, DELAY_MS_MAX),
            loss: within(loss, 1.0),
        }
    }

    fn conditions(self) -> Conditions {
        let milliseconds = |value: f32| Duration::from_micros((value * 1_000.0) as u64);
        Conditions::default()
            .delay(milliseconds(self.delay_ms))
            .jitter(Jitter::Uniform(milliseconds(self.jitter_ms)))
            .loss(f64::from(self.loss))
    }
}

impl Conditioned {
    /// A clear link, whose chances follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            link: Conditioner::new(Conditions::default(), seed),
            clear: true,
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    /// Changes the weather from now on; what is on its way arrives as it was going to.
    pub fn set(&mut self, now: Instant, weather: Weather) {
        self.clear = weather == Weather::default();
        self.link.set_conditions(now, weather.conditions());
    }

    /// A datagram enters.
    pub fn offer(&mut self, now: Instant, bytes: Vec<u8>) {
        if self.clear {
            self.wait(now, bytes);
            return;
        }
        let packet = Packet {
            payload_len: bytes.len(),
            headers_len: Packet::HEADERS_V4,
            ecn: Ecn::NotCapable,
        };
        let arrivals: Vec<Instant> = self
            .link
            .offer(now, packet)
            .arrivals()
            .map(|fate| fate.at)
            .collect();
        for at in arrivals {
            self.wait(at, bytes.clone());
        }
    }

    /// The next datagram that has arrived.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// When the next one arrives.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    fn wait(&mut self, at: Instant, bytes: Vec<u8>) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.insert((at, self.next), bytes);
            self.next += 1;
        }
    }
}

/// Longest delay of the sliders.
const DELAY_MS_MAX: f32 = 2_000.0;
/// Datagrams that may be on their way; further ones are lost.
const WAITING_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_link_passes_everything_at_once_and_in_order() {
        let mut link = Conditioned::new(1);
        let now = Instant::from_millis(5);
        for number in 0..10 {
            link.offer(now, vec![number]);
        }
        let passed: Vec<_> = std::iter::from_fn(|| link.poll(now)).collect();
        assert_eq!(
            passed,
            (0..10).map(|number| vec![number]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_sliders_delay_and_lose() {
        let mut link = Conditioned::new(1);
        link.set(Instant::ZERO, Weather::new(100.0, 20.0, 0.2));
        for _ in 0..1_000 {
            link.offer(Instant::ZERO, vec![1; 100]);
        }
        assert_eq!(link.poll(Instant::from_millis(99)), None);
        let arrived = std::iter::from_fn(|| link.poll(Instant::from_millis(120))).count();
        assert!((700..900).contains(&arrived), "{arrived} of 1,000");
        assert_eq!(link.poll_timeout(), None);
    }

    #[test]
    fn sliders_beyond_sense_are_brought_back() {
        let weather = Weather::new(f32::NAN, 1e9, -3.0);
        assert_eq!(
            weather,
            Weather {
                delay_ms: 0.0,
                jitter_ms: 2_000.0,
                loss: 0.0
            }
        );
    }
}
