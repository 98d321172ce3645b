//! Measures how long the bottleneck takes for one packet.

use muse_wire::{Duration, Instant};

use super::filter::LeastOver;

/// The least time between acks of packets in a row. A flow's own rate says little when others have the larger share, but packets
/// of a burst wait behind each other and leave the bottleneck at its rate.
#[derive(Debug)]
pub(super) struct Service {
    least: LeastOver,
    /// The start of the current row, the time of its newest ack, and its bytes so far.
    since: Instant,
    last: Instant,
    bytes: usize,
}

impl Service {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            least: LeastOver::new(),
            since: now,
            last: now,
            bytes: 0,
        }
    }

    pub(super) fn acked(&mut self, now: Instant, bytes: usize, packet: f64) {
        let packets = self.bytes as f64 / packet;
        // Acks that come together belong to one row: their time began with the ones before.
        if now > self.last && packets >= ROW_PACKETS {
            let time = Duration::from_secs_f64((self.last - self.since).as_secs_f64() / packets);
            self.least.update(now, SPAN, time);
            (self.since, self.bytes) = (self.last, 0);
        }
        self.last = now;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Seconds per packet.
    pub(super) fn time(&self) -> f64 {
        self.least.value().as_secs_f64()
    }
}

/// Packets of a row whose acks are timed together: fewer would measure the noise of single acks.
const ROW_PACKETS: f64 = 4.0;
/// The time for which the shortest time is remembered.
const SPAN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_reveals_the_rate_of_the_bottleneck() {
        let mut service = Service::new(Instant::ZERO);
        let mut now = Instant::from_secs(1);
        for packet in 0..40 {
            // Eight packets in a row at 1 ms each, then the flow's own slow pace.
            now += Duration::from_millis(if packet < 8 { 1 } else { 20 });
            service.acked(now, 1_200, 1_200.0);
        }
        assert!((service.time() - 0.001).abs() < 1e-6, "{}", service.time());
    }

    #[test]
    fn acks_that_come_together_are_not_infinitely_fast() {
        let mut service = Service::new(Instant::ZERO);
        for tick in 1..20 {
            for _ in 0..16 {
                service.acked(Instant::from_millis(16 * tick), 1_200, 1_200.0);
            }
        }
        assert!((service.time() - 0.001).abs() < 1e-6, "{}", service.time());
    }
}
