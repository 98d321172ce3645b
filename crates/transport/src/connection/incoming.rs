//! Handles what arrives: packets, acknowledgements, frames.

use muse_wire::bytes::Reader;
use muse_wire::{Datagram, Duration, Ecn, Instant, log};

use super::closing::{CODE_FALSE_ACK, CODE_PROTOCOL};
use super::{Connection, Newcomer, Shared};
use crate::channel::receive::{Admission, ReceiveChannel, Sink};
use crate::config::Delivery;
use crate::congestion::{Ack, Loss};
use crate::event::{CloseReason, ConnectionId};
use crate::inbox::{Inbox, LEVEL_FIRST, Rare};
use crate::memory::{Budgets, Exhausted, Need};
use crate::packet::{
    ACK_DELAY_UNIT, AckBlock, Frame, HEADER_LEN, Header, Malformed, MessageFrame, parse_frame,
};
use crate::sent::{Fate, SentFrame, SentPacket};
use crate::timer::Timer;

/// Reliable packets after which an acknowledgement goes out without delay.
const ACK_EVERY: u32 = 16;
/// An acknowledgement that only informs (of unreliable messages) waits this many times longer.
pub(super) const ACK_LAZINESS: u64 = 5;
/// A missing packet concerns the sender for this many packets.
const GAP_RECENT: u64 = 8;
/// Packets of ours that the peer may not have heard of before we take our acknowledgements for lost.
const UNCONFIRMED_MAX: u64 = 4;
/// Buffers kept for messages that wait for their turn.
const POOL_MAX: usize = 64;
/// Largest buffer kept: one that holds a fragment, or a message that travels whole.
const BUFFER_KEPT_MAX: usize = 2 << 10;

/// The demands of a packet on us.
#[derive(Default)]
struct Demands {
    /// Something in it must arrive, so its sender waits for the acknowledgement.
    reliable: bool,
    /// Something in it is worth an acknowledgement in time.
    unreliable: bool,
    parity: bool,
    /// There was no room for something in it: it must not be acknowledged.
    refused: bool,
}

impl Connection {
    /// A packet for this connection arrived. `false` when it was not authentic or not new.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        header: &Header,
        datagram: Datagram<'_>,
    ) -> bool {
        let Datagram {
            from,
            ecn,
            payload: datagram,
        } = datagram;
        let highest = self.received.highest();
        let number = header.number(highest);
        // Before decryption, because it is cheap: a replayed packet costs a look at the window and no cipher.
        if !self.received.is_new(number) {
            self.stats.packets_replayed += 1;
            return false;
        }
        let len = datagram.len();
        let (head, payload) = datagram.split_at_mut(HEADER_LEN);
        let Ok(plain) = self.keys.receive.open(number, header.phase, head, payload) else {
            return false;
        };
        // Only now: a forged packet must not take a number away from an authentic one.
        let out_of_order = self.received.record(now, number, ecn == Ecn::Congested);
        self.stats.packets_received += 1;
        self.stats.bytes_received += len as u64;
        log!(trace, connection = ?self.id, number, len, "received");
        self.on_heard(now, shared);
        // A late packet from the old address must not move the connection back there, so only the newest one counts.
        if from != self.remote && number > highest {
            self.on_other_address(now, shared, from, len);
        }
        let payload = &payload[..plain];
        if self
            .handle_payload(now, shared, number, header, payload, out_of_order)
            .is_err()
        {
            log!(debug, connection = ?self.id, number, "a packet breaks the protocol");
            // The packet was authentic, so the peer itself is at fault: nothing that it sends can be relied on any more.
            self.close(now, CODE_PROTOCOL, "protocol error", CloseReason::Protocol);
        }
        // After the payload, which may hold the response that proves the new address.
        self.adopt_candidate(now, shared, from);
        true
    }

    fn on_heard(&mut self, now: Instant, shared: &mut Shared) {
        // A server tells the application of a client with its first packet, not with the handshake: only that packet
        // proves that the client has the keys, and a recorded handshake alone opens nothing.
        if let Some(newcomer) = self
            .newcomer
            .as_mut()
            .filter(|newcomer| !newcomer.announced)
        {
            newcomer.announced = true;
            let Newcomer {
                account,
                user_data,
                hello,
                ..
            } = &**newcomer;
            shared.inbox.connected(self.id, *account, user_data, hello);
            self.timers
                .set(Timer::KeepAlive, now + self.config.keep_alive);
        }
        if self.state.carries_data() {
            self.timers.set(Timer::Silence, now + self.config.silence);
        }
        if self.interrupted {
            self.interrupted = false;
            self.probes.count = 0;
            self.set_probe_timer(now);
            shared.inbox.rare(self.id, LEVEL_FIRST, Rare::Resumed);
        }
    }

    fn handle_payload(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        number: u64,
        header: &Header,
        payload: &[u8],
        out_of_order: bool,
    ) -> Result<(), Malformed> {
        let mut reader = Reader::new(payload);
        if header.acks {
            // Taken out, since handling it needs the rest of `shared`; put back even after an error, for its memory.
            let mut block = std::mem::take(&mut shared.ack_block);
            let result = block.parse(&mut reader, self.sent.next_number() - 1);
            let honest = result.is_err() || self.handle_acks(now, shared, &block);
            shared.ack_block = block;
            result?;
            if !honest {
                self.on_false_ack(now);
            }
        }
        let mut demands = Demands::default();
        if header.section {
            self.on_section(shared, number, reader.rest(), &mut demands)?;
        } else {
            self.handle_frames(now, shared, number, reader, &mut demands)?;
        }
        // Unacknowledged, it counts as lost at the sender: which slows down and sends again what must arrive.
        if demands.refused {
            self.received.refuse(number);
            self.stats.packets_refused += 1;
        }
        self.redundancy
            .note_density(demands.reliable, demands.parity);
        self.note_ack_duty(now, header, &demands, out_of_order);
        self.close_if_finished(now);
        Ok(())
    }

    /// The peer acknowledged a number that no packet had.
    #[cold]
    #[inline(never)]
    fn on_false_ack(&mut self, now: Instant) {
        let text = "a packet was acknowledged that was never sent";
        self.close(now, CODE_FALSE_ACK, text, CloseReason::FalseAck);
    }

    fn note_ack_duty(
        &mut self,
        now: Instant,
        header: &Header,
        demands: &Demands,
        out_of_order: bool,
    ) {
        if !self.state.carries_data() {
            return;
        }
        // The sender waits for this: it probes, or has more to send than its window lets go.
        if header.ack_now {
            self.acks.at_once = true;
            let partial = self
                .receive
                .iter_mut()
                .flatten()
                .filter(|_| self.has_partial);
            for half in partial {
                half.repeat_progress();
            }
        }
        if demands.reliable && !demands.refused {
            self.acks.eliciting += 1;
            // While every packet has parity, a gap is most likely repaired by the next one: no need to alarm the sender yet.
            let hopeful = self.redundancy.is_dense();
            if self.acks.eliciting >= ACK_EVERY || (out_of_order && !hopeful) {
                self.acks.at_once = true;
            }
            let relaxed = self.redundancy.is_protected() && !self.received.has_gap(GAP_RECENT);
            let delay = if self.sent.unconfirmed() > UNCONFIRMED_MAX {
                // Our acknowledgements do not seem to arrive: say it more often.
                self.config.ack_delay / 2
            } else if relaxed {
                self.config.ack_delay * 2
            } else {
                self.config.ack_delay
            };
            self.timers.set_earlier(Timer::Ack, now + delay);
        } else if demands.unreliable {
            self.timers
                .set_earlier(Timer::Ack, now + self.config.ack_delay * ACK_LAZINESS);
        }
        // The next packets cannot bring back what is missing, so the sender should learn of it without delay.
        if demands.parity
            && self
                .redundancy
                .decoder
                .as_ref()
                .is_some_and(|decoder| decoder.is_stuck())
        {
            self.acks.at_once = true;
        }
    }

    fn handle_frames(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        number: u64,
        mut reader: Reader<'_>,
        demands: &mut Demands,
    ) -> Result<(), Malformed> {
        loop {
            let Some(frame) = parse_frame(&mut reader, |it| self.config.is_numbered(it))? else {
                return Ok(());
            };
            match frame {
                Frame::Message(message) => self.on_message(shared, &message, demands)?,
                Frame::Section(section) => {
                    return self.on_section(shared, number, section, demands);
                }
                Frame::Parity(body) => {
                    // Each costs as much as a long one, however short it is.
                    if demands.parity {
                        return Err(Malformed);
                    }
                    demands.parity = true;
                    demands.unreliable = true;
                    self.redundancy
                        .decoder()
                        .on_parity(number, body)
                        .map_err(|_| Malformed)?;
                    self.poll_recovered(shared)?;
                }
                // A ping carries nothing; being acknowledged is all it is for.
                Frame::Ping => demands.reliable = true,
                Frame::Close { code, text } => self.on_close(now, shared, code, text),
                Frame::PathChallenge(data) => self.path_response = Some(data),
                Frame::PathResponse(data) => self.on_path_response(data),
                Frame::Skip {
                    channel,
                    number_low,
                } => {
                    demands.reliable = true;
                    self.with_receiver(shared, channel, None, |half, sink| {
                        half.skip(number_low, sink)
                    })?;
                }
                Frame::Progress {
                    channel,
                    number_low,
                    skipped,
                } => {
                    let (id, inbox) = (self.id, &mut shared.inbox);
                    let half = self.send.get_mut(usize::from(channel)).ok_or(Malformed)?;
                    if let Some(half) = half {
                        // The report may free the window of a channel that waited for it, so that it has something to
                        // send again.
                        self.active.insert(usize::from(channel));
                        half.progress(number_low, u32::from(skipped), &mut |receipt| {
                            inbox.receipt(id, receipt)
                        });
                    }
                }
            }
        }
    }

    /// A protected section arrived: its messages, and what it lets parity bring back.
    fn on_section(
        &mut self,
        shared: &mut Shared,
        number: u64,
        section: &[u8],
        demands: &mut Demands,
    ) -> Result<(), Malformed> {
        self.redundancy.decoder().on_section(number, section);
        self.handle_section(shared, Reader::new(section), demands)?;
        self.poll_recovered(shared)
    }

    /// The frames of a protected section: messages only.
    fn handle_section(
        &mut self,
        shared: &mut Shared,
        mut reader: Reader<'_>,
        demands: &mut Demands,
    ) -> Result<(), Malformed> {
        loop {
            match parse_frame(&mut reader, |it| self.config.is_numbered(it))? {
                None => return Ok(()),
                Some(Frame::Message(message)) => self.on_message(shared, &message, demands)?,
                // Whatever parity brings back is handled a second time if the packet itself comes late; only messages
                // bear that.
                Some(_) => return Err(Malformed),
            }
        }
    }

    /// Handles what parity has brought back.
    fn poll_recovered(&mut self, shared: &mut Shared) -> Result<(), Malformed> {
        let mut section = std::mem::take(&mut shared.recovered);
        let mut result = Ok(());
        while let Some(number) = self.redundancy.decoder().poll_recovered(&mut section) {
            self.stats.packets_recovered += 1;
            let mut demands = Demands::default();
            result = self.handle_section(shared, Reader::new(&section), &mut demands);
            if result.is_err() {
                break;
            }
            // As with a packet: what there was no room for is not reported, so that it is sent again.
            if !demands.refused {
                self.received.record_recovered(number);
            }
        }
        shared.recovered = section;
        result
    }

    fn on_message(
        &mut self,
        shared: &mut Shared,
        message: &MessageFrame<'_>,
        demands: &mut Demands,
    ) -> Result<(), Malformed> {
        let config = self
            .config
            .channels
            .get(usize::from(message.channel))
            .ok_or(Malformed)?;
        // A fragment counts as reliable: the rest of its message is worthless without it.
        if config.delivery.is_reliable() || message.fragment.is_some() {
            demands.reliable = true;
        } else {
            demands.unreliable = true;
        }
        if !self.state.carries_data() {
            return Ok(());
        }
        // Ends, since every round but the last drops an unfinished message.
        loop {
            let priority = Some(message.priority);
            let mut exhausted = None;
            let admission =
                self.with_receiver(shared, message.channel, priority, |half, sink| {
                    let admission = half.receive(message, sink);
                    exhausted = sink.exhausted;
                    admission
                })?;
            if admission == Admission::Taken {
                return Ok(());
            }
            if !self.evict(shared)? {
                demands.refused = true;
                self.stats.pieces_refused += 1;
                shared.pieces_refused += u64::from(exhausted == Some(Exhausted::Endpoint));
                return Ok(());
            }
        }
    }

    /// Drops the oldest unfinished message that need not arrive; `false` when there is none.
    fn evict(&mut self, shared: &mut Shared) -> Result<bool, Malformed> {
        let halves = self.receive.iter().enumerate();
        let ages = halves.filter_map(|(channel, half)| {
            let began = half.as_ref()?.oldest_expendable()?;
            Some((began, channel))
        });
        let Some((_, channel)) = ages.min() else {
            return Ok(false);
        };
        self.stats.messages_evicted += 1;
        self.with_receiver(shared, channel as u8, None, |half, sink| {
            half.evict(sink);
            Ok(())
        })?;
        Ok(true)
    }

    fn with_receiver<T>(
        &mut self,
        shared: &mut Shared,
        channel: u8,
        priority: Option<u8>,
        act: impl FnOnce(&mut ReceiveChannel, &mut ToInbox<'_>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let config = self
            .config
            .channels
            .get(usize::from(channel))
            .ok_or(Malformed)?;
        // In a fixed order, the priority of a single message must not change anything.
        let free = matches!(
            config.delivery,
            Delivery::Unreliable | Delivery::ReliableUnordered
        );
        let level = match priority {
            Some(priority) if free => priority,
            _ => config.priority.level(),
        };
        let slot = self
            .receive
            .get_mut(usize::from(channel))
            .ok_or(Malformed)?;
        let limit = self.config.message_max;
        let half =
            slot.get_or_insert_with(|| Box::new(ReceiveChannel::new(config.delivery, limit)));
        let mut sink = ToInbox {
            inbox: &mut shared.inbox,
            pool: &mut shared.pool,
            connection: self.id,
            channel,
            level,
            budgets: self.budgets,
            reserve_holder: &mut self.reserve_holder,
            age: self.stats.packets_received,
            exhausted: None,
        };
        let result = act(half, &mut sink);
        if self.reserve_holder == Some(channel) && !half.is_assembling_next() {
            self.reserve_holder = None;
        }
        result
    }

    /// Returns false if the peer cannot have received what it acknowledges.
    fn handle_acks(&mut self, now: Instant, shared: &mut Shared, block: &AckBlock) -> bool {
        let newest = self.sent.get(block.newest).copied();
        let mut sample = None;
        // Only the newest packet gives a sample: for older ones nobody knows how long the peer held the acknowledgement
        // back.
        if let Some(packet) = newest.filter(|packet| packet.fate != Fate::Settled)
            && let Some(delay) = block.delay
        {
            let delay = Duration::from_micros(u64::from(delay) * ACK_DELAY_UNIT);
            self.rtt.sample(now, now.saturating_since(packet.at), delay);
            sample = Some(self.rtt.latest());
        }
        if let (Some(marks), Some(packet)) = (block.marks, newest)
            && marks != self.marks
        {
            self.marks = marks;
            self.controller.on_mark(now, packet.at);
        }
        // Runs go from the newest packet down: some that are missing, then some that arrived.
        let mut progress = false;
        let mut number = block.newest + 1;
        for run in &block.runs {
            // However long a run is, only the packets are visited for which it is news.
            let mut end = number;
            number -= run.missing;
            if run.recovered && self.sent.has_unsent(number, end) {
                return false;
            }
            while run.recovered
                && let Some(found) = self.sent.last_unrecovered(number, end)
            {
                end = found;
                progress |= self.on_packet_recovered(now, shared, found);
            }
            end = number;
            number -= run.arrived;
            if self.sent.has_unsent(number, end) {
                return false;
            }
            while let Some(found) = self.sent.last_unsettled(number, end) {
                end = found;
                let rtt = if found == block.newest { sample } else { None };
                progress |= self.on_packet_acked(now, shared, found, rtt);
            }
        }
        self.keys.send.handle_ack(block.newest);
        self.sent.set_acked_highest(block.newest);
        self.detect_losses(now, shared);
        // The peer answers again, so probes start over with the shortest time-out.
        if progress {
            self.probes.count = 0;
            self.set_probe_timer(now);
        }
        true
    }

    /// Returns whether it was news.
    fn on_packet_acked(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        number: u64,
        rtt: Option<Duration>,
    ) -> bool {
        let Some(packet) = self.sent.settle(now, number, self.rtt.smoothed()) else {
            return false;
        };
        if packet.mtu_probe && self.mtu.on_probe_acked(packet.size as usize) {
            log!(debug, connection = ?self.id, mtu = self.mtu.current(), "larger packets pass");
            self.controller.on_packet_size(self.mtu.current());
        }
        // A packet that was given up and arrived late has left the window already, and its loss has been told to the
        // controller.
        let was_lost = packet.fate == Fate::Lost;
        if was_lost {
            self.stats.packets_lost_spuriously += 1;
        } else {
            self.redundancy.resolve(false);
            self.bandwidth.count(now, packet.size);
            self.controller.on_ack(&Ack {
                now,
                sent_at: packet.at,
                bytes: packet.size as usize,
                rtt,
                rtt_slack: shared.looked_away,
                rtt_smoothed: self.rtt.smoothed(),
                in_flight: self.sent.in_flight(),
                app_limited: packet.app_limited,
            });
        }
        self.settle_frames(shared, &packet);
        true
    }

    /// The peer reconstructed the protected section of a packet that never arrived.
    fn on_packet_recovered(&mut self, now: Instant, shared: &mut Shared, number: u64) -> bool {
        let Some(packet) = self.sent.get(number).copied() else {
            return false;
        };
        if packet.fate == Fate::Settled || packet.recovered {
            return false;
        }
        self.stats.packets_recovered_by_peer += 1;
        // The packet itself is lost although its messages are not: the path dropped it, which congestion control must
        // know.
        if packet.fate == Fate::Outstanding {
            self.sent.set_lost(number);
            self.count_loss(now, &packet);
        }
        self.sent.set_recovered(number);
        self.settle_protected(shared, &packet);
        true
    }

    /// Looks for packets that must be taken as lost.
    pub(super) fn detect_losses(&mut self, now: Instant, shared: &mut Shared) {
        let patience = self.rtt.probe_timeout(self.config.ack_delay) * 2;
        self.sent.forget(now, patience);
        if self
            .sent
            .acked_highest()
            .is_none_or(|highest| highest < self.sent.oldest())
        {
            // Everything up to the newest acknowledged packet is settled.
            self.timers.stop(Timer::Loss);
            return;
        }
        let delay =
            self.sent
                .loss_delay(self.rtt.latest(), self.rtt.smoothed(), self.rtt.variance());
        let mut lost = std::mem::take(&mut shared.lost);
        lost.clear();
        let again = self.sent.detect_losses(now, delay, &mut lost);
        self.timers
            .set(Timer::Loss, again.unwrap_or(Instant::FAR_FUTURE));
        for &number in &lost {
            let Some(packet) = self.sent.get(number).copied() else {
                continue;
            };
            self.count_loss(now, &packet);
        }
        shared.lost = lost;
        self.resend_lost(now, shared);
        self.sent.forget(now, patience);
    }

    /// Gives the frames of lost packets back to their channels; a section that parity may still bring back waits for
    /// the news of that parity.
    fn resend_lost(&mut self, now: Instant, shared: &mut Shared) {
        let patience = self.rtt.smoothed() + self.config.ack_delay * 2 + self.rtt.variance() * 2;
        let acked = self.sent.acked_highest().unwrap_or(0);
        let hold = self.redundancy.is_fast();
        let mut look_again = Instant::FAR_FUTURE;
        let mut from = self.sent.oldest();
        while let Some((number, packet)) = self.sent.next_unhandled_loss(from) {
            from = number + 1;
            let until = packet.at + patience;
            // Its parity is under way and probably makes the retransmission needless; not waited for longer than that
            // parity could take.
            if hold && packet.covered_by > acked && until > now {
                look_again = look_again.min(until);
                continue;
            }
            self.sent.set_loss_handled(number);
            self.lose_frames(now, shared, &packet);
        }
        self.timers.set_earlier(Timer::Loss, look_again);
    }

    fn count_loss(&mut self, now: Instant, packet: &SentPacket) {
        // A lost probe says that the packet was too large, not that the path is full.
        if packet.mtu_probe {
            self.mtu.on_probe_lost(packet.size as usize);
            return;
        }
        self.stats.packets_lost += 1;
        log!(trace, connection = ?self.id, size = packet.size, window = self.controller.window(), "lost");
        self.redundancy.resolve(true);
        self.controller.on_loss(&Loss {
            now,
            sent_at: packet.at,
            bytes: packet.size as usize,
            in_flight: self.sent.in_flight(),
            persistent: self.probes.count >= super::PROBES_PERSISTENT,
        });
    }

    fn settle_frames(&mut self, shared: &mut Shared, packet: &SentPacket) {
        let (id, inbox) = (self.id, &mut shared.inbox);
        let told_lost = packet.is_loss_handled();
        let mut index = 0;
        while let Some(frame) = self.sent.frame(packet, index) {
            index += 1;
            let channel = frame.channel();
            let Some(half) = self.send[usize::from(channel)].as_mut() else {
                continue;
            };
            match frame {
                SentFrame::Message {
                    receipt,
                    piece,
                    number,
                    ..
                } => {
                    // A channel that remembers its messages tells each end once; of others the loss may have been told.
                    let news = !told_lost || !half.is_fire_and_forget(piece);
                    half.acked(number, piece, &mut |told| {
                        if receipt && news {
                            inbox.receipt(id, told);
                        }
                    });
                }
                SentFrame::Skip { number, .. } => half.skip_acked(number),
            }
        }
    }

    fn settle_protected(&mut self, shared: &mut Shared, packet: &SentPacket) {
        let (id, inbox) = (self.id, &mut shared.inbox);
        let mut index = 0;
        while let Some(frame) = self.sent.frame(packet, index) {
            index += 1;
            if let SentFrame::Message {
                channel,
                piece,
                number,
                protected: true,
                ..
            } = frame
                && let Some(half) = self.send[usize::from(channel)].as_mut()
            {
                half.acked(number, piece, &mut |told| inbox.receipt(id, told));
            }
        }
    }

    fn lose_frames(&mut self, now: Instant, shared: &mut Shared, packet: &SentPacket) {
        let (id, inbox) = (self.id, &mut shared.inbox);
        let sparse = self.redundancy.is_sparse();
        let mut index = 0;
        while let Some(frame) = self.sent.frame(packet, index) {
            index += 1;
            match frame {
                SentFrame::Message {
                    channel,
                    receipt,
                    piece,
                    number,
                    ..
                } => {
                    self.active.insert(usize::from(channel));
                    if let Some(half) = self.send[usize::from(channel)].as_mut() {
                        half.lost(now, number, piece, sparse, &mut |told| {
                            if receipt {
                                inbox.receipt(id, told);
                            }
                        });
                    }
                }
                SentFrame::Skip { channel, number } => {
                    self.active.insert(usize::from(channel));
                    if let Some(half) = self.send[usize::from(channel)].as_mut() {
                        half.skip_lost(number);
                    }
                }
            }
        }
    }
}

/// Delivers messages of one channel into the inbox.
struct ToInbox<'a> {
    inbox: &'a mut Inbox,
    pool: &'a mut Vec<Vec<u8>>,
    connection: ConnectionId,
    channel: u8,
    level: u8,
    budgets: Budgets,
    /// The channel that takes from the connection's reserve.
    reserve_holder: &'a mut Option<u8>,
    age: u64,
    /// The budget for which something was refused.
    exhausted: Option<Exhausted>,
}

impl Sink for ToInbox<'_> {
    fn admit(&mut self, bytes: usize, need: Need) -> bool {
        match self
            .inbox
            .ledger
            .room(&self.budgets, self.connection, bytes)
        {
            Ok(false) => true,
            // One channel at a time: two that share the reserve could each wait for what the other has taken.
            Ok(true)
                if need == Need::Next && self.reserve_holder.is_none_or(|c| c == self.channel) =>
            {
                *self.reserve_holder = Some(self.channel);
                true
            }
            Ok(true) => {
                self.exhausted = Some(Exhausted::Connection);
                false
            }
            Err(exhausted) => {
                self.exhausted = Some(exhausted);
                false
            }
        }
    }

    fn hold(&mut self, bytes: usize) {
        self.inbox.ledger.hold(self.connection, bytes);
    }

    fn free(&mut self, bytes: usize) {
        self.inbox.ledger.free(self.connection, bytes);
    }

    fn deliver<'p>(&mut self, len: usize, pieces: impl Iterator<Item = &'p [u8]>) {
        self.inbox
            .message(self.connection, self.channel, self.level, len, pieces);
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.pool.len() < POOL_MAX && buffer.capacity() <= BUFFER_KEPT_MAX {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    fn age(&self) -> u64 {
        self.age
    }
}

impl super::Bandwidth {
    fn count(&mut self, now: Instant, bytes: u32) {
        self.bytes += u64::from(bytes);
        let span = now.saturating_since(self.since).as_micros();
        if span >= 1_000_000 {
            self.rate = self.bytes * 1_000_000 / span;
            self.bytes = 0;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests;
