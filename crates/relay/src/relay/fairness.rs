//! Fair shares: what a guest may send beside others, and a room beside other rooms.
//!
//! Two things are limited: a room's packets and bytes, and the bytes that leave the relay in all. Each is divided among those who are
//! active, and whoever stays within their share always gets through. What is left goes to those who want more, up to a guest's own
//! limit. So a guest that floods its room takes nothing from the others there, nor a room from other rooms.
//!
//! To keep that promise without queues, half of what a bucket holds is for datagrams within a share: others pass only while more than
//! that is left. A guest's share fills half of its room's bucket at most, a room's share half of the relay's, so that all
//! shares together find what they need, even if all come at once.

use muse_wire::rate::{Rate, TokenBucket};
use muse_wire::{Duration, Instant};

use super::super::limits::Limits;

/// The limits, the relay's own bucket, and the number of active rooms.
#[derive(Debug)]
pub(super) struct Fairness {
    packets_per_second: u32,
    bytes_per_second: u32,
    room: Rates,
    guest: Rates,
    burst: Duration,
    egress_per_second: u32,
    egress_rate: Rate,
    egress: TokenBucket,
    rooms: Activity,
}

/// The allowances of a room.
#[derive(Debug)]
pub(super) struct RoomMeter {
    all: Meter,
    /// Its share of what leaves the relay.
    egress: TokenBucket,
    guests: Activity,
    active: Active,
}

/// The allowances of a guest, for both directions together.
#[derive(Debug)]
pub(super) struct GuestMeter {
    all: Meter,
    /// Its share of its room.
    share: Meter,
    active: Active,
}

impl Fairness {
    pub(super) fn new(now: Instant, limits: &Limits) -> Self {
        let burst = Duration::from_millis(u64::from(limits.burst_ms));
        // Twice a room's burst, as a room's share fills half of it.
        let egress_rate = bytes_over(limits.egress_bytes_per_second, burst * 2);
        Self {
            packets_per_second: limits.packets_per_second,
            bytes_per_second: limits.bytes_per_second,
            room: Rates::over(limits.packets_per_second, limits.bytes_per_second, burst),
            guest: Rates::over(
                limits.guest_packets_per_second,
                limits.guest_bytes_per_second,
                burst,
            ),
            burst,
            egress_per_second: limits.egress_bytes_per_second,
            egress_rate,
            egress: TokenBucket::full(now, egress_rate),
            rooms: Activity::default(),
        }
    }

    pub(super) fn room(&self, now: Instant) -> RoomMeter {
        let egress = bytes_over(self.egress_per_second, self.burst);
        RoomMeter {
            all: Meter::full(now, &self.room),
            egress: TokenBucket::full(now, egress),
            guests: Activity::default(),
            active: Active::default(),
        }
    }

    pub(super) fn guest(&self, now: Instant) -> GuestMeter {
        GuestMeter {
            all: Meter::full(now, &self.guest),
            share: Meter::full(now, &self.room),
            active: Active::default(),
        }
    }

    /// True if a datagram between a guest and its host may pass, which is then counted.
    #[inline]
    pub(super) fn admit(
        &mut self,
        now: Instant,
        room: &mut RoomMeter,
        guest: &mut GuestMeter,
        len: usize,
    ) -> bool {
        let len = len as u64;
        let room_egress = self.egress_per_second / self.rooms.note(now, &mut room.active);
        let guests = room.guests.note(now, &mut guest.active);
        let share = Rates::over(
            self.packets_per_second / guests,
            self.bytes_per_second.min(room_egress) / guests,
            self.burst / 2,
        );
        if !guest.all.has(now, &self.guest, len) {
            return false;
        }
        let within = guest.share.has(now, &share, len)
            && room.all.has(now, &self.room, len)
            && self.egress.has(now, self.egress_rate, len);
        if within {
            guest.share.take(len);
        } else if !self.has_spare(now, room, room_egress, len) {
            return false;
        }
        guest.all.take(len);
        room.all.take(len);
        room.egress.take(len);
        self.egress.take(len);
        true
    }

    /// True if others leave enough for a datagram beyond its guest's share.
    fn has_spare(&mut self, now: Instant, room: &mut RoomMeter, egress: u32, len: u64) -> bool {
        let share = bytes_over(egress, self.burst);
        let within = has_spare(&mut room.egress, now, share, len)
            && self.egress.has(now, self.egress_rate, len);
        room.all.has_spare(now, &self.room, len)
            && (within || has_spare(&mut self.egress, now, self.egress_rate, len))
    }

    /// True if a packet of a guest for the relay itself may be answered.
    pub(super) fn admit_guest(&mut self, now: Instant, guest: &mut GuestMeter, len: usize) -> bool {
        guest.all.admit(now, &self.guest, len)
    }

    /// True if a packet of a host for the relay itself may be answered.
    pub(super) fn admit_host(&mut self, now: Instant, room: &mut RoomMeter, len: usize) -> bool {
        room.all.admit(now, &self.room, len)
    }

    /// Counts a packet of the relay's own.
    pub(super) fn count(&mut self, len: usize) {
        self.egress.take(len as u64);
    }
}

/// An allowance in packets and bytes.
#[derive(Clone, Copy, Debug)]
struct Meter {
    packets: TokenBucket,
    bytes: TokenBucket,
}

/// The rates that a meter goes by.
#[derive(Clone, Copy, Debug)]
struct Rates {
    packets: Rate,
    bytes: Rate,
}

impl Rates {
    fn over(packets: u32, bytes: u32, window: Duration) -> Self {
        Self {
            packets: Rate::over(packets, window),
            bytes: bytes_over(bytes, window),
        }
    }
}

impl Meter {
    fn full(now: Instant, rates: &Rates) -> Self {
        Self {
            packets: TokenBucket::full(now, rates.packets),
            bytes: TokenBucket::full(now, rates.bytes),
        }
    }

    #[inline]
    fn has(&mut self, now: Instant, rates: &Rates, len: u64) -> bool {
        self.packets.has(now, rates.packets, 1) && self.bytes.has(now, rates.bytes, len)
    }

    #[inline]
    fn has_spare(&mut self, now: Instant, rates: &Rates, len: u64) -> bool {
        has_spare(&mut self.packets, now, rates.packets, 1)
            && has_spare(&mut self.bytes, now, rates.bytes, len)
    }

    #[inline]
    fn take(&mut self, len: u64) {
        self.packets.take(1);
        self.bytes.take(len);
    }

    fn admit(&mut self, now: Instant, rates: &Rates, len: usize) -> bool {
        let passes = self.has(now, rates, len as u64);
        if passes {
            self.take(len as u64);
        }
        passes
    }
}

/// True if `amount` may pass and leave the half for those within their share.
#[inline]
fn has_spare(bucket: &mut TokenBucket, now: Instant, rate: Rate, amount: u64) -> bool {
    bucket.has(now, rate, amount + rate.burst() / 2)
}

/// A rate in bytes, at which one datagram always passes after a pause.
fn bytes_over(per_second: u32, window: Duration) -> Rate {
    let burst = u64::from(per_second) * window.as_micros() / 1_000_000;
    let burst = burst.clamp(DATAGRAM_LEN, u64::from(u32::MAX));
    Rate::new(per_second, burst as u32)
}

/// The number of those who were active within the last second or two.
#[derive(Debug, Default)]
struct Activity {
    second: u32,
    now: u32,
    before: u32,
}

/// The second in which somebody was active last.
#[derive(Debug, Default)]
struct Active(Option<u32>);

impl Activity {
    /// Counts `who` and returns how many are active, at least one.
    #[inline]
    fn note(&mut self, now: Instant, who: &mut Active) -> u32 {
        let second = (now.as_micros() / 1_000_000) as u32;
        if second != self.second {
            let follows = second == self.second.wrapping_add(1);
            self.before = if follows { self.now } else { 0 };
            self.now = 0;
            self.second = second;
        }
        if who.0 != Some(second) {
            who.0 = Some(second);
            self.now = self.now.saturating_add(1);
        }
        self.now.max(self.before)
    }
}

/// Longest datagram that is promised to pass: what networks carry in one piece.
const DATAGRAM_LEN: u64 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_stops_at_whichever_limit_comes_first() {
        let rates = Rates::over(10, 3_000, Duration::from_secs(1));
        let mut meter = Meter::full(Instant::ZERO, &rates);
        let small = (0..20).filter(|_| meter.admit(Instant::ZERO, &rates, 10));
        assert_eq!(small.count(), 10);
        let mut meter = Meter::full(Instant::ZERO, &rates);
        let large = (0..20).filter(|_| meter.admit(Instant::ZERO, &rates, 900));
        assert_eq!(large.count(), 3);
        let later = Instant::from_millis(200);
        assert!(meter.admit(later, &rates, 900));
        assert!(!meter.admit(later, &rates, 1));
    }

    #[test]
    fn the_active_are_counted_once_and_for_two_seconds_at_most() {
        let mut activity = Activity::default();
        let mut who: Vec<Active> = (0..5).map(|_| Active::default()).collect();
        for _ in 0..3 {
            for one in &mut who {
                activity.note(Instant::from_millis(100), one);
            }
        }
        let at = |ms| Instant::from_millis(ms);
        assert_eq!(activity.note(at(999), &mut who[0]), 5);
        assert_eq!(activity.note(at(1_999), &mut who[0]), 5);
        assert_eq!(activity.note(at(2_000), &mut who[0]), 1);
        assert_eq!(activity.note(at(9_000), &mut who[1]), 1);
        assert_eq!(activity.note(at(9_000), &mut who[2]), 2);
    }
}
