//! Builds the packets that leave, from acknowledgements, control frames, parity and messages.

use std::net::SocketAddr;

use muse_wire::{Duration, Ecn, Instant, Transmit, log};

use super::active::ChannelSet;
use super::builder::{Layout, PacketBuilder};
use super::closing::State;
use super::path::ETHERNET;
use super::{Connection, Shared};
use crate::channel::send::Put;
use crate::packet::{self, HEADER_LEN, Header, emit};
use crate::sent::NewPacket;
use crate::timer::Timer;
use crate::traps;

/// Datagrams in one segmented transmit.
const SEGMENTS_MAX: usize = 64;
/// Bytes in one segmented transmit: what the kernel takes.
const TRAIN_MAX: usize = 65_000;
/// Bytes that a channel of weight 1 may send in its turn.
const QUANTUM: i64 = 64;
/// Acknowledgements that a sender asks for while a window of bytes leaves. With 16 the controller sees the queue too rarely
/// to share it fairly.
const ASKS_PER_WINDOW: usize = 64;
/// Full packets, less others, that make a stream press on the path: a retransmission now and then does not.
const PRESSURE_MAX: u8 = 8;
/// A stream counts as steady when it has not pressed for this long.
const CALM_AFTER: Duration = Duration::from_secs(2);
/// Span of its sending that a steady stream may have in flight.
const CALM_SPAN: Duration = Duration::from_millis(1_500);
/// Longest time that one packet may take to leave at the present rate.
const PACKET_TIME: Duration = Duration::from_millis(2);
/// Bytes of the frame that opens a parity: kind and length.
const PARITY_FRAME_HEAD: usize = 3;

/// The contents of the packet being built.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Messages, as far as they fit.
    data: bool,
    ping: bool,
    ack_now: bool,
    /// Exactly this size, filled up with padding.
    mtu_probe: Option<usize>,
    challenge: Option<[u8; 8]>,
    close: bool,
}

impl Connection {
    /// Writes the next packet, or several for the same peer if `buffer` has room, and says where they go.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        // First, because it goes to another address and cannot be part of a train.
        if let Some(transmit) = self.poll_challenge(now, shared, buffer) {
            return Some(transmit);
        }
        self.drained = false;
        let rate = self.controller.pacing_rate();
        let mut len = 0;
        let mut segment = 0;
        for _ in 0..SEGMENTS_MAX {
            let limit = if len == 0 {
                self.packet_size(rate)
            } else {
                segment
            };
            let Some(plan) = self.plan(now, shared, rate) else {
                self.drained = true;
                break;
            };
            let limit = match plan.mtu_probe {
                // A probe is longer than the packets before it; a train allows only a shorter last one.
                Some(_) if len > 0 => break,
                Some(size) if size > buffer.len() => {
                    self.mtu.limit_to(buffer.len());
                    continue;
                }
                Some(size) => size,
                None => limit,
            };
            let room = buffer.len() - len;
            if room < limit || (len > 0 && len + limit > TRAIN_MAX) {
                break;
            }
            // One acknowledgement block serves the whole train: its packets must be of one size.
            if len == 0 {
                shared.acks = self.received.fill(now, &mut shared.ack_block);
            }
            let written = self.build(now, shared, plan, &mut buffer[len..len + limit]);
            if written == 0 {
                break;
            }
            if len == 0 {
                segment = written;
            }
            len += written;
            // Only the last of a train may be shorter, and a small packet is not worth a train.
            if written < segment || plan.mtu_probe.is_some() || plan.close {
                break;
            }
        }
        self.after_transmit(now);
        if len == 0 {
            return None;
        }
        let segment = (len > segment).then_some(segment);
        Some(Transmit {
            to: self.remote,
            len,
            segment,
            ecn: self.ecn(),
        })
    }

    /// A challenge to a new address goes there, and only as many bytes as came from there.
    fn poll_challenge(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let candidate = self
            .candidate
            .as_mut()
            .filter(|candidate| candidate.pending)?;
        let room = candidate
            .received
            .saturating_sub(candidate.sent)
            .min(self.mtu.current());
        // A quiet peer's first packets may be shorter than a challenge: then it waits for more of them.
        if room < CHALLENGE_ROOM || buffer.len() < room {
            return None;
        }
        candidate.pending = false;
        candidate.tries += 1;
        let (to, challenge) = (candidate.address, candidate.challenge);
        let plan = Plan {
            challenge: Some(challenge),
            ack_now: true,
            ..Plan::default()
        };
        shared.acks = self.received.fill(now, &mut shared.ack_block);
        let len = self.build(now, shared, plan, &mut buffer[..room]);
        if let Some(candidate) = &mut self.candidate {
            candidate.sent += len;
        }
        (len > 0).then_some(Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    /// Returns the contents of the next packet, if there should be one now.
    fn plan(&mut self, now: Instant, shared: &mut Shared, rate: Option<u64>) -> Option<Plan> {
        match &self.state {
            State::Open | State::Finishing { .. } => {}
            State::Closing { pending, .. } | State::Draining { pending } => {
                return pending.then_some(Plan {
                    close: true,
                    ..Plan::default()
                });
            }
            State::Dead => return None,
        }
        // A probe for a larger packet goes alone: its loss must cost nothing but itself.
        if let Some(size) = self
            .mtu
            .probe(now)
            .filter(|&size| size <= worthwhile_size(rate))
        {
            return Some(Plan {
                mtu_probe: Some(size),
                ping: true,
                ack_now: true,
                ..Plan::default()
            });
        }
        // Before anything is chosen to leave, a probe's contents too.
        if let Some(held_at) = self.held_at {
            self.drop_stale(now, shared, held_at);
        }
        // Probes ignore window and pacer: when all acknowledgements are lost, nothing else gets the connection going
        // again.
        let probing = self.probes.pending > 0;
        let wants_data = self.wants_to_send(now);
        if probing {
            let ping = !wants_data;
            return Some(Plan {
                data: true,
                ping,
                ack_now: true,
                ..Plan::default()
            });
        }
        self.window_blocks = false;
        if !wants_data {
            self.held_at = None;
        } else if self.may_send(now, rate) {
            // With the ping, because it may turn out that nothing else fits.
            return Some(Plan {
                data: true,
                ping: self.ping,
                ..Plan::default()
            });
        } else {
            self.held_at = Some(now);
            self.drop_stale(now, shared, now);
        }
        // Acknowledgements are never held back by the window, or both sides could wait for each other.
        let bare = self.acks.at_once || self.ping || self.path_response.is_some();
        bare.then_some(Plan {
            ping: self.ping,
            ..Plan::default()
        })
    }

    /// True if a channel has something that may go now, or redundancy is due.
    fn wants_to_send(&mut self, now: Instant) -> bool {
        let mut wait = Instant::FAR_FUTURE;
        let mut from = 0;
        while let Some(channel) = self.active.next(from) {
            from = channel + 1;
            let Some(half) = self.send[channel].as_mut().filter(|half| !half.is_quiet()) else {
                self.active.remove(channel);
                continue;
            };
            if half.has_skips() || half.copy_due().is_some_and(|due| due <= now) {
                return true;
            }
            if half.best_level().is_none() {
                continue;
            }
            // A retransmission waits a moment for the company of new messages if those leave in a steady rhythm: a
            // packet of its own costs more.
            match half
                .only_resends_since()
                .and_then(|since| self.rhythm.company(since))
            {
                Some(expected) if expected > now => wait = wait.min(expected),
                _ => return true,
            }
        }
        self.timers.set_earlier(Timer::Redundancy, wait);
        self.redundancy.due && self.redundancy.wanted().is_some()
    }

    /// The largest packet to send at this pace: a jumbo frame on a slow link would hold up everything behind it.
    fn packet_size(&self, rate: Option<u64>) -> usize {
        self.mtu.current().min(worthwhile_size(rate))
    }

    /// Returns what a steady stream that never fills its packets may have in flight: as much as it sends in [`CALM_SPAN`]. It
    /// does not press on the path, and must not fall silent because a burst of losses took the acknowledgements.
    fn calm_window(&self, now: Instant) -> usize {
        if now.saturating_since(self.pressed_at) < CALM_AFTER {
            return 0;
        }
        let bytes = self.bandwidth.rate.saturating_mul(CALM_SPAN.as_micros()) / 1_000_000;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// True if congestion control lets a packet go.
    fn may_send(&mut self, now: Instant, rate: Option<u64>) -> bool {
        let size = self.packet_size(rate);
        let window = self.controller.window().max(self.calm_window(now));
        // With nothing in flight one packet may always go, however small the window: otherwise no acknowledgement could
        // open it.
        let in_flight = self.sent.in_flight();
        // The ring of sent packets bounds memory; acknowledgements and losses make room in it.
        if in_flight > 0 && in_flight + size > window || self.sent.is_full() {
            self.window_blocks = true;
            return false;
        }
        if self.pacer.available(now, rate) == 0 {
            self.timers
                .set(Timer::Pace, self.pacer.next_release(now, 1));
            return false;
        }
        true
    }

    /// Builds and seals one packet of at most `buffer.len()` bytes; returns its length, 0 if nothing came of it.
    fn build(&mut self, now: Instant, shared: &mut Shared, plan: Plan, buffer: &mut [u8]) -> usize {
        let number = self.sent.next_number();
        let tag = self.keys.send.tag_len();
        let room = buffer.len() - HEADER_LEN - tag;
        let acks = shared.acks;
        let body = &mut buffer[HEADER_LEN..HEADER_LEN + room];
        let (section, frames) = (&mut shared.section, &mut shared.frames);
        let mut packet = PacketBuilder::new(now, number, body, section, frames);
        if acks && !packet.acks(&shared.ack_block) || !self.write_control(&plan, &mut packet) {
            return 0;
        }
        if plan.data {
            self.write_redundancy(&mut packet, &mut shared.parity);
            self.write_messages(&mut packet);
        }
        let wanted_acks = acks && (self.acks.at_once || self.acks.eliciting > 0);
        if !packet.is_eliciting()
            && !plan.close
            && !plan.ack_now
            && !wanted_acks
            && self.path_response.is_none()
        {
            return 0;
        }
        let (layout, plain) = packet.finish(plan.mtu_probe.is_some());
        let ack_now = plan.ack_now || self.asks_for_ack(&layout, plain + tag + HEADER_LEN);
        let header = Header {
            phase: self.keys.send.phase(),
            acks,
            ack_now,
            section: layout.is_section_only(),
            connection: self.remote_id,
            number_low: number as u16,
        }
        .emit();
        buffer[..HEADER_LEN].copy_from_slice(&header);
        let sealed = self
            .keys
            .send
            .seal(number, &header, &mut buffer[HEADER_LEN..], plain);
        let size = HEADER_LEN + sealed;
        log!(trace, connection = ?self.id, number, len = size, "sent");
        self.record(now, number, size, &plan, &layout, shared);
        size
    }

    /// True if a packet of `size` bytes asks for an acknowledgement: a sender that has more to send does so many times per
    /// window, because the peer may otherwise wait for packets that the window does not allow.
    fn asks_for_ack(&mut self, layout: &Layout, size: usize) -> bool {
        if !layout.full {
            self.acks.unasked = 0;
            return false;
        }
        self.acks.unasked += size;
        let asks = self.acks.unasked * ASKS_PER_WINDOW >= self.controller.window();
        if asks {
            self.acks.unasked = 0;
        }
        asks
    }

    /// Writes control frames; `false` when they do not fit.
    fn write_control(&mut self, plan: &Plan, packet: &mut PacketBuilder<'_>) -> bool {
        if plan.close {
            let (code, text) = match &self.state {
                State::Closing { code, text, .. } => (*code, text.as_bytes()),
                _ => (0, &b""[..]),
            };
            return packet.frame(|writer| emit::close(writer, code, text));
        }
        if let Some(challenge) = plan.challenge {
            packet.elicit(false);
            return packet.frame(|writer| emit::path_challenge(writer, challenge));
        }
        if let Some(data) = self.path_response
            && !packet.frame(|writer| emit::path_response(writer, data))
        {
            return false;
        }
        if plan.ping {
            packet.elicit(plan.mtu_probe.is_none());
            if !packet.frame(emit::ping) {
                return false;
            }
        }
        if plan.mtu_probe.is_some() {
            return true;
        }
        for (channel, half) in self
            .receive
            .iter_mut()
            .enumerate()
            .filter(|_| self.has_partial)
        {
            let Some(half) = half.as_mut().filter(|half| half.has_progress()) else {
                continue;
            };
            if let Some((next, skipped)) = half.progress()
                && !packet.frame(|writer| emit::progress(writer, channel as u8, next, skipped))
            {
                half.repeat_progress();
                return true;
            }
        }
        if plan.data {
            self.write_skips(packet);
        }
        true
    }

    fn write_skips(&mut self, packet: &mut PacketBuilder<'_>) {
        let mut from = 0;
        while let Some(channel) = self.active.next(from) {
            from = channel + 1;
            let Some(half) = self.send[channel].as_mut() else {
                continue;
            };
            while let Some(number) = half.next_skip() {
                if !packet.skip(channel as u8, number) {
                    half.skip_lost(number);
                    return;
                }
            }
        }
    }

    /// Puts a parity frame into the packet when one is due and enough room is left for messages.
    fn write_redundancy(&mut self, packet: &mut PacketBuilder<'_>, parity: &mut Vec<u8>) {
        let Some(len) = self.redundancy.wanted() else {
            return;
        };
        let (needed, room) = (len + PARITY_FRAME_HEAD, packet.room());
        if needed > room {
            // Packets have become smaller since its sections were sent: it must not hold up anything else.
            self.redundancy.due = false;
            return;
        }
        if !self.redundancy.due && needed > room / 2 {
            return;
        }
        parity.resize(len, 0);
        let (sent, number) = (&mut self.sent, packet.number);
        let written = self
            .redundancy
            .emit(number, parity, |covered| sent.cover(covered, number));
        let Some(written) = written else { return };
        if packet.frame(|writer| emit::parity(writer, &parity[..written])) {
            packet.elicit(false);
            self.stats.parities_sent += 1;
            self.stats.parity_bytes_sent += written as u64;
        }
    }

    /// Fills the packet with messages: the most urgent first, then by weight, then what is only a second copy.
    fn write_messages(&mut self, packet: &mut PacketBuilder<'_>) {
        let protecting = self.redundancy.is_active();
        let mut skipped = ChannelSet::default();
        while let Some(channel) = self.next_channel(&skipped) {
            let Some(half) = self.send[channel].as_mut() else {
                skipped.insert(channel);
                continue;
            };
            let config = &self.config.channels[channel];
            match packet.put(half, config, protecting, false) {
                (Put::Written, spent) => half.deficit -= spent as i64,
                (Put::TooLong, _) => {
                    packet.set_full();
                    skipped.insert(channel);
                }
                (Put::Nothing, _) => skipped.insert(channel),
            }
        }
        let mut from = 0;
        while let Some(channel) = self.active.next(from) {
            from = channel + 1;
            let Some(half) = self.send[channel].as_mut() else {
                continue;
            };
            let config = &self.config.channels[channel];
            while half.copy_due().is_some() {
                if packet.put(half, config, false, true).0 != Put::Written {
                    break;
                }
            }
        }
    }

    /// The channel whose turn it is, leaving out those in `skipped`.
    fn next_channel(&mut self, skipped: &ChannelSet) -> Option<usize> {
        let mut best: Option<(u8, usize)> = None;
        let mut rivals = 0;
        // From the one whose turn it is to the last, then from the first.
        let mut from = self.turn;
        let mut wrapped = false;
        loop {
            let Some(channel) = self.active.next(from) else {
                if wrapped {
                    break;
                }
                (from, wrapped) = (0, true);
                continue;
            };
            if wrapped && channel >= self.turn {
                break;
            }
            from = channel + 1;
            if skipped.contains(channel) {
                continue;
            }
            let Some(half) = self.send[channel].as_mut().filter(|half| !half.is_quiet()) else {
                continue;
            };
            let Some(level) = half.best_level() else {
                continue;
            };
            match best {
                Some((least, _)) if level > least => {}
                Some((least, _)) if level == least => rivals += 1,
                _ => {
                    best = Some((level, channel));
                    rivals = 0;
                }
            }
        }
        let (_, channel) = best?;
        if rivals > 0 {
            let half = self.send[channel].as_mut()?;
            if half.deficit <= 0 {
                // Its turn is over once what it earned is spent; it earns again and the next one is asked first.
                half.deficit = (half.deficit + QUANTUM * i64::from(half.weight)).min(QUANTUM * 256);
                self.turn = (channel + 1) % self.send.len();
            } else {
                self.turn = channel;
            }
        }
        Some(channel)
    }

    /// Remembers what was sent.
    fn record(
        &mut self,
        now: Instant,
        number: u64,
        size: usize,
        plan: &Plan,
        layout: &Layout,
        shared: &mut Shared,
    ) {
        let app_limited = !layout.full;
        self.sent.push(
            NewPacket {
                at: now,
                size: size as u32,
                eliciting: layout.eliciting,
                app_limited,
                mtu_probe: plan.mtu_probe.is_some(),
                reliable: layout.reliable,
            },
            &shared.frames,
        );
        self.trap_in -= 1;
        if self.trap_in == 0 {
            self.set_trap(shared);
        }
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += size as u64;
        if layout.eliciting {
            self.controller
                .on_sent(now, size, self.sent.in_flight(), app_limited);
            self.pacer.consume(size);
        }
        if layout.fresh {
            self.rhythm.beat(now);
        }
        if layout.section > 0 {
            let wait_until =
                self.redundancy
                    .push(now, number, &shared.section[..layout.section], layout.level);
            // While packets follow each other, parity travels in them; the timer is for the end of a burst.
            self.timers.set(Timer::Redundancy, wait_until);
        }
        if layout.full {
            self.pressure = (self.pressure + 1).min(PRESSURE_MAX);
            if self.pressure == PRESSURE_MAX {
                self.pressed_at = now;
            }
            self.mtu.want_larger();
        } else if layout.eliciting {
            self.pressure = self.pressure.saturating_sub(1);
        }
        if plan.mtu_probe.is_some() {
            self.mtu.on_probe_sent();
        }
        if plan.close {
            self.on_close_sent(now);
        }
        if plan.challenge.is_some() {
            // It goes to an address that may not be the peer's: what the peer waits for is still due.
            return;
        }
        self.acks.eliciting = 0;
        self.acks.at_once = false;
        self.timers.stop(Timer::Ack);
        self.ping = false;
        self.path_response = None;
        self.probes.pending = self.probes.pending.saturating_sub(1);
    }

    /// Leaves out the next packet number.
    #[cold]
    #[inline(never)]
    fn set_trap(&mut self, shared: &mut Shared) {
        self.sent.set_trap();
        self.trap_in = traps::draw_distance(&mut *shared.entropy);
    }

    fn on_close_sent(&mut self, now: Instant) {
        let timeout = self.rtt.probe_timeout(self.config.ack_delay);
        match &mut self.state {
            State::Closing { pending, tries, .. } => {
                *pending = false;
                // The close may be lost: it is repeated a few times until the peer answers with one of its own.
                *tries -= 1;
                self.timers.set(Timer::Path, now + timeout);
            }
            State::Draining { pending } => *pending = false,
            _ => {}
        }
    }

    /// Sets the timers that follow from what was just sent.
    fn after_transmit(&mut self, now: Instant) {
        if !self.state.carries_data() {
            return;
        }
        let interval = if self.interrupted {
            self.config.keep_alive.min(super::PROBE_INTERVAL_MAX)
        } else {
            self.config.keep_alive
        };
        self.timers.set(Timer::KeepAlive, now + interval);
        self.set_probe_timer(now);
        let mut from = 0;
        while let Some(channel) = self.active.next(from) {
            from = channel + 1;
            let due = self.send[channel].as_mut().and_then(|half| half.copy_due());
            // Frames that are due but held back go with the next packet that acknowledgements or the pacer allow.
            if let Some(due) = due.filter(|&due| due > now) {
                self.timers.set_earlier(Timer::Redundancy, due);
            }
        }
    }

    fn ecn(&self) -> Ecn {
        if self.config.link.reliable {
            Ecn::NotCapable
        } else {
            Ecn::Capable0
        }
    }

    /// True if the peer is reached at `address`.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.remote == address
    }
}

/// Bytes that leave within [`PACKET_TIME`] at this pace, and no less than an Ethernet frame.
fn worthwhile_size(rate: Option<u64>) -> usize {
    let bytes = rate
        .unwrap_or(u64::MAX)
        .saturating_mul(PACKET_TIME.as_micros())
        / 1_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX).max(ETHERNET)
}

/// Bytes of a packet with a challenge and an acknowledgement of everything of late.
const CHALLENGE_ROOM: usize = HEADER_LEN + packet::ACK_BLOCK_MAX / 4 + 9 + 16;
