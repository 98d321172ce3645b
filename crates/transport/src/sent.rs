//! The packets that were sent and their contents: a ring of packets and a ring of their frames.
//!
//! Nothing here allocates once the rings have grown to what a connection keeps in flight.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::numbers::NumberSet;
use crate::packet::PACKET_NUMBER_FIRST;
use crate::traps::Traps;
use crate::work;

/// Most packets remembered; a sender that reaches it waits.
pub(crate) const SENT_MAX: usize = 16_384;
/// Packets a later one must be ahead before an earlier one counts as lost, to start with.
const PACKET_THRESHOLD_INITIAL: u64 = 3;
/// The limit to which reordering may raise the packet threshold.
const PACKET_THRESHOLD_MAX: u64 = 256;
/// Shortest tolerance for reordering.
const REORDER_MIN: Duration = Duration::from_millis(1);

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// In flight.
    Outstanding,
    /// Acknowledged, or nothing that needs an acknowledgement was in it.
    Settled,
    /// Taken as lost; remembered for a while, in case it was only late.
    Lost,
}

/// One packet sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) at: Instant,
    pub(crate) size: u32,
    pub(crate) fate: Fate,
    /// The sender had nothing more to say when this went out.
    pub(crate) app_limited: bool,
    /// It tried a larger size; its loss says nothing about congestion.
    pub(crate) mtu_probe: bool,
    /// Something in it must arrive.
    reliable: bool,
    /// The peer reconstructed its protected section.
    pub(crate) recovered: bool,
    /// Its frames have been given back to their channels.
    loss_handled: bool,
    /// First packet whose parity covers this one's section; 0 for none.
    pub(crate) covered_by: u64,
    frames_start: u64,
    frames_count: u32,
}

/// The kind of a frame in a packet, so that its fate can be told to the channel or part it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// Piece `piece` of message `number`.
    Message {
        channel: u8,
        receipt: bool,
        protected: bool,
        piece: u16,
        number: u64,
    },
    Skip {
        channel: u8,
        number: u64,
    },
}

impl SentFrame {
    /// The channel that it concerns.
    pub(crate) fn channel(self) -> u8 {
        match self {
            Self::Message { channel, .. } | Self::Skip { channel, .. } => channel,
        }
    }
}

/// The packets sent on one connection.
#[derive(Debug)]
pub(crate) struct SentPackets {
    base: u64,
    packets: VecDeque<SentPacket>,
    frames_base: u64,
    frames: VecDeque<SentFrame>,
    in_flight: usize,
    outstanding: usize,
    outstanding_reliable: usize,
    last_eliciting_at: Instant,
    last_reliable_at: Instant,
    /// Packets of which an acknowledgement would be news: in flight, or taken as lost.
    unsettled: NumberSet,
    /// Those of them that are taken as lost.
    lost: NumberSet,
    /// Those of them that the peer has reconstructed.
    recovered: NumberSet,
    /// Lost packets whose frames have not been given back to their channels.
    unhandled: NumberSet,
    /// Numbers that were left out.
    traps: Traps,
    acked_highest: Option<u64>,
    packet_threshold: u64,
    reorder_extra: Duration,
}

impl SentPacket {
    /// Returns the bytes that it adds to those in flight. A probe for a larger size adds nothing: it may be larger than the window, and
    /// would stop everything until it is known to be lost.
    fn in_flight(&self) -> usize {
        if self.mtu_probe {
            0
        } else {
            self.size as usize
        }
    }
    /// True if its loss has been told to the channels.
    pub(crate) fn is_loss_handled(&self) -> bool {
        self.loss_handled
    }
}

impl SentPackets {
    pub(crate) fn new() -> Self {
        Self {
            base: PACKET_NUMBER_FIRST,
            packets: VecDeque::new(),
            frames_base: 0,
            frames: VecDeque::new(),
            in_flight: 0,
            outstanding: 0,
            outstanding_reliable: 0,
            last_eliciting_at: Instant::ZERO,
            last_reliable_at: Instant::ZERO,
            unsettled: NumberSet::default(),
            lost: NumberSet::default(),
            recovered: NumberSet::default(),
            unhandled: NumberSet::default(),
            traps: Traps::default(),
            acked_highest: None,
            packet_threshold: PACKET_THRESHOLD_INITIAL,
            reorder_extra: Duration::ZERO,
        }
    }

    /// The number of the oldest packet remembered, or of the next one.
    pub(crate) fn oldest(&self) -> u64 {
        self.base
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// True if anything that must arrive waits for an acknowledgement.
    pub(crate) fn has_reliable_outstanding(&self) -> bool {
        self.outstanding_reliable > 0
    }

    /// Returns the time at which the newest packet was sent that the peer acknowledges.
    pub(crate) fn last_eliciting_at(&self) -> Instant {
        self.last_eliciting_at
    }

    /// Returns the time at which the newest packet with something that must arrive was sent.
    pub(crate) fn last_reliable_at(&self) -> Instant {
        self.last_reliable_at
    }

    /// The newest number acknowledged.
    pub(crate) fn acked_highest(&self) -> Option<u64> {
        self.acked_highest
    }

    /// Returns the number of packets sent after the newest that the peer has acknowledged.
    pub(crate) fn unconfirmed(&self) -> u64 {
        let acked = self.acked_highest.unwrap_or(PACKET_NUMBER_FIRST - 1);
        self.distance(acked, self.next_number() - 1)
    }

    /// Leaves out the next number: no packet will ever have it.
    pub(crate) fn set_trap(&mut self) {
        self.traps.insert(self.next_number());
        let nothing = NewPacket {
            at: Instant::ZERO,
            size: 0,
            eliciting: false,
            app_limited: true,
            mtu_probe: false,
            reliable: false,
        };
        self.push(nothing, &[]);
    }

    /// True if one of `from..to` was never sent, so that nobody can have received it: it was left out, or comes before the first.
    #[inline]
    pub(crate) fn has_unsent(&self, from: u64, to: u64) -> bool {
        (from < to && from < PACKET_NUMBER_FIRST) || self.traps.any_in(from, to)
    }

    /// The number of packets sent after `earlier` up to `later`.
    fn distance(&self, earlier: u64, later: u64) -> u64 {
        later - earlier - self.traps.count_in(earlier + 1, later + 1)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() >= SENT_MAX
    }

    /// Records a packet that carried `frames`; one that is not `eliciting` needs no acknowledgement.
    pub(crate) fn push(&mut self, packet: NewPacket, frames: &[SentFrame]) {
        let frames_start = self.frames_base + self.frames.len() as u64;
        self.frames.extend(frames);
        let fate = if packet.eliciting {
            Fate::Outstanding
        } else {
            Fate::Settled
        };
        if packet.eliciting {
            self.outstanding += 1;
        }
        if packet.reliable {
            self.outstanding_reliable += 1;
            self.last_reliable_at = packet.at;
        }
        let record = SentPacket {
            at: packet.at,
            size: packet.size,
            fate,
            app_limited: packet.app_limited,
            mtu_probe: packet.mtu_probe,
            reliable: packet.reliable,
            recovered: false,
            loss_handled: false,
            covered_by: 0,
            frames_start,
            frames_count: frames.len() as u32,
        };
        if packet.eliciting {
            self.in_flight += record.in_flight();
            self.last_eliciting_at = packet.at;
            self.unsettled.insert(self.next_number());
        }
        self.packets.push_back(record);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        work::step();
        self.packets
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Says that a parity in packet `carrier` covers the section of packet `number`.
    pub(crate) fn cover(&mut self, number: u64, carrier: u64) {
        if let Some(packet) = self.get_mut(number)
            // The first parity counts: waiting for a later one too would only delay the retransmission.
            && packet.covered_by == 0
        {
            packet.covered_by = carrier;
        }
    }

    /// The frames of a packet, by position.
    pub(crate) fn frame(&self, packet: &SentPacket, index: u32) -> Option<SentFrame> {
        if index >= packet.frames_count {
            return None;
        }
        let position = (packet.frames_start + u64::from(index)).checked_sub(self.frames_base)?;
        self.frames.get(usize::try_from(position).ok()?).copied()
    }

    /// Settles packet `number` as arrived. Returns it as it was when this is news.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        number: u64,
        smoothed: Duration,
    ) -> Option<SentPacket> {
        let acked_highest = self.acked_highest;
        let packet = self.get_mut(number)?;
        let before = *packet;
        if before.fate == Fate::Settled {
            return None;
        }
        packet.fate = Fate::Settled;
        self.unsettled.remove(number);
        // A packet taken as lost left the bytes in flight then, and must not be subtracted twice.
        if before.fate == Fate::Outstanding {
            self.in_flight -= before.in_flight();
            self.outstanding -= 1;
            self.outstanding_reliable -= usize::from(before.reliable);
        } else {
            self.unhandled.remove(number);
            self.lost.remove(number);
            // Taken as lost, but only late: be more patient with this path from now on.
            let late = now.saturating_since(before.at + smoothed);
            self.reorder_extra = self.reorder_extra.max(late.min(smoothed));
        }
        // An old packet that arrives after newer ones shows how much the path reorders: be at least that patient from
        // now on.
        if let Some(highest) = acked_highest
            && number < highest
        {
            let distance = self.distance(number, highest);
            self.packet_threshold = self
                .packet_threshold
                .max(distance + 1)
                .min(PACKET_THRESHOLD_MAX);
        }
        Some(before)
    }

    /// Takes an outstanding packet as lost; returns it when it was outstanding.
    pub(crate) fn set_lost(&mut self, number: u64) -> Option<SentPacket> {
        let packet = self
            .get_mut(number)
            .filter(|packet| packet.fate == Fate::Outstanding)?;
        packet.fate = Fate::Lost;
        let packet = *packet;
        self.in_flight -= packet.in_flight();
        self.outstanding -= 1;
        self.outstanding_reliable -= usize::from(packet.reliable);
        self.lost.insert(number);
        self.unhandled.insert(number);
        Some(packet)
    }

    /// The peer reconstructed the packet's protected section.
    pub(crate) fn set_recovered(&mut self, number: u64) {
        if let Some(packet) = self.get_mut(number) {
            packet.recovered = true;
            self.recovered.insert(number);
        }
    }

    /// The newest packet in `from..to` of which an acknowledgement would be news.
    pub(crate) fn last_unsettled(&self, from: u64, to: u64) -> Option<u64> {
        self.unsettled.last_in(from, to)
    }

    /// The newest packet in `from..to` whose reconstruction would be news.
    pub(crate) fn last_unrecovered(&self, from: u64, to: u64) -> Option<u64> {
        self.unsettled.last_without(&self.recovered, from, to)
    }

    /// The next lost packet from `number` on whose frames have not been given back to their channels.
    pub(crate) fn next_unhandled_loss(&self, number: u64) -> Option<(u64, SentPacket)> {
        let found = self.unhandled.first_in(number, self.next_number())?;
        Some((found, *self.get(found)?))
    }

    /// The frames of a lost packet have been given back.
    pub(crate) fn set_loss_handled(&mut self, number: u64) {
        if let Some(packet) = self.get_mut(number).filter(|packet| !packet.loss_handled) {
            packet.loss_handled = true;
            self.unhandled.remove(number);
        }
    }

    /// Remembers the newest number of an acknowledgement block, once its packets are settled.
    pub(crate) fn set_acked_highest(&mut self, number: u64) {
        if self.acked_highest.is_none_or(|highest| number > highest) {
            self.acked_highest = Some(number);
            // The patience learnt from late packets fades, so that one bad moment does not slow down repairs for ever.
            self.reorder_extra = self.reorder_extra - self.reorder_extra / 256;
        }
    }

    /// Returns how long after sending a packet counts as lost, once a later one has been acknowledged.
    pub(crate) fn loss_delay(
        &self,
        latest: Duration,
        smoothed: Duration,
        variance: Duration,
    ) -> Duration {
        // Jitter counts up to a quarter of the round trip; beyond that, waiting would cost more than a needless
        // retransmission.
        let tolerance = (variance * 2)
            .min(smoothed / 4)
            .max(self.reorder_extra)
            .max(REORDER_MIN);
        latest.max(smoothed) + tolerance
    }

    /// Finds the packets that must be taken as lost, puts their numbers into `lost`, and says when to look again.
    pub(crate) fn detect_losses(
        &mut self,
        now: Instant,
        loss_delay: Duration,
        lost: &mut Vec<u64>,
    ) -> Option<Instant> {
        let highest = self.acked_highest?;
        let mut look_again = None;
        let mut from = self.base;
        while let Some(number) = self.next_in_flight(from, highest) {
            from = number + 1;
            let at = self.get(number)?.at;
            let lost_at = at + loss_delay;
            // Either is enough: so many newer packets have arrived, or the time for it is over.
            if lost_at <= now || self.distance(number, highest) >= self.packet_threshold {
                self.set_lost(number);
                lost.push(number);
            } else if look_again.is_none_or(|at| lost_at < at) {
                look_again = Some(lost_at);
            }
        }
        look_again
    }

    /// Forgets the oldest packets: those settled, and those lost longer than `patience` ago.
    pub(crate) fn forget(&mut self, now: Instant, patience: Duration) {
        while let Some(packet) = self.packets.front() {
            match packet.fate {
                Fate::Outstanding => break,
                Fate::Lost if !packet.loss_handled => break,
                // Kept for a while, so that a late acknowledgement shows that the loss was none; not once memory runs
                // short.
                Fate::Lost if packet.at + patience > now && self.packets.len() < SENT_MAX / 2 => {
                    break;
                }
                Fate::Lost | Fate::Settled => {}
            }
            let frames_end = packet.frames_start + u64::from(packet.frames_count);
            let gone = usize::try_from(frames_end - self.frames_base).unwrap_or(usize::MAX);
            self.frames.drain(..gone.min(self.frames.len()));
            self.frames_base = frames_end;
            self.packets.pop_front();
            self.base += 1;
        }
        let base = self.base;
        for set in self.sets() {
            set.advance(base);
        }
    }

    /// The oldest outstanding packet with something that must arrive.
    pub(crate) fn oldest_reliable(&self) -> Option<u64> {
        let mut from = self.base;
        while let Some(number) = self.next_in_flight(from, self.next_number()) {
            if self.get(number)?.reliable {
                return Some(number);
            }
            from = number + 1;
        }
        None
    }

    /// Reads the newest packet, to have it in the cache.
    pub(crate) fn touch(&self) -> u64 {
        self.packets
            .back()
            .map_or(0, |packet| packet.at.as_micros())
    }

    /// Gives back memory that an idle connection does not need.
    pub(crate) fn shrink(&mut self) {
        if self.packets.is_empty() {
            self.packets.shrink_to(0);
            self.frames.shrink_to(0);
            self.sets().into_iter().for_each(NumberSet::shrink);
        }
    }

    /// The oldest packet in `from..to` that is in flight.
    fn next_in_flight(&self, from: u64, to: u64) -> Option<u64> {
        self.unsettled.first_without(&self.lost, from, to)
    }

    fn sets(&mut self) -> [&mut NumberSet; 4] {
        [
            &mut self.unsettled,
            &mut self.lost,
            &mut self.recovered,
            &mut self.unhandled,
        ]
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut SentPacket> {
        work::step();
        self.packets
            .get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }
}

/// A packet about to be recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPacket {
    pub(crate) at: Instant,
    pub(crate) size: u32,
    pub(crate) eliciting: bool,
    pub(crate) app_limited: bool,
    pub(crate) mtu_probe: bool,
    /// Something in it must arrive; implies eliciting.
    pub(crate) reliable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = PACKET_NUMBER_FIRST;
    const RTT: Duration = Duration::from_millis(100);

    fn sent(count: u64, gap_ms: u64) -> SentPackets {
        let mut sent = SentPackets::new();
        for i in 0..count {
            let frame = SentFrame::Message {
                channel: 0,
                receipt: false,
                protected: false,
                piece: 0,
                number: i,
            };
            sent.push(
                NewPacket {
                    at: Instant::from_millis(i * gap_ms),
                    size: 100,
                    eliciting: true,
                    app_limited: true,
                    mtu_probe: false,
                    reliable: true,
                },
                &[frame],
            );
        }
        sent
    }

    #[test]
    fn a_hole_is_lost_after_three_packets() {
        let mut sent = sent(5, 1);
        let now = Instant::from_millis(50);
        for number in [FIRST + 1, FIRST + 2] {
            assert!(sent.settle(now, number, RTT).is_some());
        }
        sent.set_acked_highest(FIRST + 2);
        let mut lost = Vec::new();
        let again = sent.detect_losses(now, RTT, &mut lost);
        assert_eq!((lost.len(), again), (0, Some(Instant::from_millis(100))));
        sent.settle(now, FIRST + 3, RTT);
        sent.set_acked_highest(FIRST + 3);
        sent.detect_losses(now, RTT, &mut lost);
        assert_eq!(lost, [FIRST]);
        assert_eq!(sent.in_flight(), 100);
    }

    #[test]
    fn a_hole_is_lost_after_a_round_trip() {
        let mut sent = sent(2, 17);
        sent.settle(Instant::from_millis(117), FIRST + 1, RTT);
        sent.set_acked_highest(FIRST + 1);
        let mut lost = Vec::new();
        sent.detect_losses(
            Instant::from_millis(117),
            Duration::from_millis(107),
            &mut lost,
        );
        assert_eq!(lost, [FIRST]);
    }

    #[test]
    fn a_late_packet_makes_the_sender_patient() {
        let mut sent = sent(10, 1);
        let now = Instant::from_millis(150);
        for number in FIRST + 1..FIRST + 8 {
            sent.settle(now, number, RTT);
        }
        sent.set_acked_highest(FIRST + 7);
        let before = sent.loss_delay(RTT, RTT, Duration::ZERO);
        let mut lost = Vec::new();
        sent.detect_losses(now, before, &mut lost);
        assert_eq!(lost, [FIRST]);
        let packet = sent.settle(now, FIRST, RTT).expect("news");
        assert_eq!(packet.fate, Fate::Lost);
        assert!(sent.loss_delay(RTT, RTT, Duration::ZERO) > before);
        assert_eq!(sent.packet_threshold, 8);
        assert!(sent.settle(now, FIRST, RTT).is_none(), "news only once");
    }

    #[test]
    fn a_number_that_was_left_out_is_no_packet() {
        let mut sent = sent(1, 1);
        sent.set_trap();
        for _ in 0..4 {
            let packet = NewPacket {
                at: Instant::from_millis(1),
                size: 100,
                eliciting: true,
                app_limited: true,
                mtu_probe: false,
                reliable: true,
            };
            sent.push(packet, &[]);
        }
        assert_eq!((sent.in_flight(), sent.unconfirmed()), (500, 5));
        assert!(sent.has_unsent(FIRST + 1, FIRST + 2) && !sent.has_unsent(FIRST + 2, u64::MAX));
        assert!(sent.has_unsent(FIRST - 1, FIRST) && !sent.has_unsent(FIRST, FIRST + 1));
        assert!(!sent.has_unsent(FIRST - 1, FIRST - 1), "names nothing");
        let now = Instant::from_millis(50);
        let mut lost = Vec::new();
        for number in [FIRST + 2, FIRST + 3] {
            assert!(sent.settle(now, number, RTT).is_some());
            sent.set_acked_highest(number);
            sent.detect_losses(now, RTT, &mut lost);
        }
        assert_eq!(lost, [], "two packets after it have arrived");
        sent.settle(now, FIRST + 4, RTT);
        sent.set_acked_highest(FIRST + 4);
        sent.detect_losses(now, RTT, &mut lost);
        assert_eq!(lost, [FIRST], "three have, and only a packet can be lost");
        assert!(sent.settle(now, FIRST + 1, RTT).is_none());
        assert_eq!((sent.in_flight(), sent.unconfirmed()), (100, 1));
    }

    #[test]
    fn memory_follows_what_is_in_flight() {
        let mut sent = sent(4, 1);
        for number in [FIRST, FIRST + 1, FIRST + 3] {
            sent.settle(Instant::ZERO, number, RTT);
        }
        sent.forget(Instant::ZERO, RTT);
        assert_eq!(
            (sent.base, sent.packets.len(), sent.frames.len()),
            (FIRST + 2, 2, 2)
        );
        let packet = *sent.get(FIRST + 2).expect("still there");
        let frame = sent.frame(&packet, 0).expect("its frame");
        assert_eq!(
            frame,
            SentFrame::Message {
                channel: 0,
                receipt: false,
                protected: false,
                piece: 0,
                number: 2
            }
        );
        assert_eq!(sent.frame(&packet, 1), None);
        sent.settle(Instant::ZERO, FIRST + 2, RTT);
        sent.forget(Instant::ZERO, RTT);
        assert_eq!((sent.packets.len(), sent.frames.len()), (0, 0));
        assert_eq!(sent.next_number(), FIRST + 4);
    }
}
