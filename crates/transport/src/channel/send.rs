//! The sending half of a channel: what waits, what is on its way, what must go again.
//!
//! Every message has a number. It stays here until it is *done*: acknowledged, expired, superseded, given up, or, on
//! the unreliable modes, sent. Its payload lies in a [`Store`], so that nothing is allocated per message.

mod stale;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muse_wire::bytes::Writer;
use muse_wire::partial::PartialSender;
use muse_wire::{Duration, Instant};

use super::store::Store;
use crate::config::{
    CHANNEL_WINDOW, CHANNEL_WINDOW_BYTES, ChannelConfig, Delivery, Priority, Repair,
};
use crate::event::{MessageId, Outcome, Receipt, SendError};
use crate::packet::{
    FRAGMENT_LEN, Fragment, LastMessage, MESSAGE_NUMBER_FIRST, MessageHead, WHOLE_MAX,
};
use crate::sent::SentFrame;
use crate::stats::ChannelStats;

/// The time that the second copy of a retransmission waits for a packet to travel in.
const COPY_WAIT: Duration = Duration::from_millis(25);
/// Deadline of a large message on an unreliable channel that has none: its lost fragments are repaired until then.
const LARGE_UNRELIABLE_DEADLINE: Duration = Duration::from_millis(500);

/// The sending half of one channel.
#[derive(Debug)]
pub(crate) struct SendChannel {
    id: u8,
    delivery: Delivery,
    pub(crate) repair: Repair,
    level: u8,
    pub(crate) weight: u8,
    queue_bytes: usize,
    queue_messages: usize,
    queue_age: Duration,
    /// Number of `messages[0]`.
    base: u64,
    messages: VecDeque<Outgoing>,
    store: Store,
    /// Messages not completely sent for the first time, by level; ordered modes use one queue.
    pending: [VecDeque<u64>; Priority::COUNT],
    /// The number of pending messages of each level.
    waiting: [u32; Priority::COUNT],
    /// Pieces to send again, by message and piece, and whether to send them twice. The oldest go first: the receiver may wait
    /// for them before all others, and have no room for those until they come.
    resend: BTreeMap<(u64, u16), bool>,
    /// The time since which something has been waiting to be sent again.
    resend_since: Instant,
    /// Second copies that wait for another packet.
    copies: VecDeque<Copy>,
    /// Expired messages that the receiver must not wait for.
    skips: BTreeSet<u64>,
    partial: Option<Box<PartialSender>>,
    deadline_next: Instant,
    /// Bytes this channel may still send in its turn.
    pub(crate) deficit: i64,
    pub(crate) stats: ChannelStats,
}

#[derive(Debug)]
struct Outgoing {
    start: u64,
    len: u32,
    level: u8,
    receipt: bool,
    done: bool,
    /// It expired and the receiver is not known to know: it keeps its place, so that the window counts it.
    skipping: bool,
    /// Some piece has been lost before.
    resent: bool,
    pieces: Pieces,
    queued_at: Instant,
    deadline: Instant,
}

#[derive(Debug)]
enum Pieces {
    /// Copies in flight.
    Whole(u8),
    Many(Box<Fragments>),
}

/// State of a message in several pieces.
#[derive(Debug)]
struct Fragments {
    /// Copies in flight of each piece; [`ACKED`] once acknowledged.
    copies: Vec<u8>,
    acked: usize,
    sent: usize,
}

const ACKED: u8 = u8::MAX;
/// Piece number of a message in one piece.
pub(crate) const WHOLE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Copy {
    number: u64,
    piece: u16,
    /// It must not travel in this packet: the first copy does.
    not_in: u64,
    by: Instant,
}

/// The outcome of an attempt to put a piece into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is in.
    Written,
    /// It does not fit into what is left of the packet.
    TooLong,
    /// Nothing to send, or nothing that may be sent now.
    Nothing,
}

impl SendChannel {
    pub(crate) fn new(id: u8, config: &ChannelConfig) -> Self {
        let partial = match config.delivery {
            Delivery::PartiallyReliable(promise) => {
                Some(Box::new(PartialSender::new(promise, MESSAGE_NUMBER_FIRST)))
            }
            _ => None,
        };
        Self {
            id,
            delivery: config.delivery,
            repair: config.repair,
            level: config.priority.level(),
            weight: config.weight,
            queue_bytes: config.queue_bytes,
            queue_messages: config.queue_messages,
            queue_age: config.queue_age,
            base: MESSAGE_NUMBER_FIRST,
            messages: VecDeque::new(),
            store: Store::default(),
            pending: Default::default(),
            waiting: [0; Priority::COUNT],
            resend: BTreeMap::new(),
            resend_since: Instant::ZERO,
            copies: VecDeque::new(),
            skips: BTreeSet::new(),
            partial,
            deadline_next: Instant::FAR_FUTURE,
            deficit: 0,
            stats: ChannelStats::default(),
        }
    }

    /// Takes a message to send.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        payload: &[u8],
        options: Options,
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<MessageId, SendError> {
        // A message that is larger than the queue goes through alone: into an empty channel anything fits.
        let full = self.store.len() + payload.len() > self.queue_bytes && !self.messages.is_empty();
        if full || self.messages.len() >= self.queue_messages {
            self.stats.refused += 1;
            return Err(SendError::QueueFull {
                bytes: self.store.len(),
                messages: self.messages.len(),
            });
        }
        if options.deadline.is_some() && self.partial.is_some() {
            return Err(SendError::DeadlineOnPartial);
        }
        // After the checks: a message that is refused must not push out the one before it.
        if self.delivery == Delivery::ReliableSequenced {
            self.supersede(receipts);
        }
        let number = self.base + self.messages.len() as u64;
        let pieces = payload.len().div_ceil(FRAGMENT_LEN);
        let large = payload.len() > WHOLE_MAX;
        let mut deadline = options.deadline.unwrap_or(Instant::FAR_FUTURE);
        // Its lost fragments are sent again, which must end even if the application set no deadline.
        if large && !self.delivery.is_reliable() {
            deadline = deadline.min(now + LARGE_UNRELIABLE_DEADLINE);
        }
        let level = options.level.unwrap_or(self.level);
        self.messages.push_back(Outgoing {
            start: self.store.push(payload),
            len: payload.len() as u32,
            level,
            receipt: options.receipt,
            done: false,
            skipping: false,
            resent: false,
            pieces: if large {
                Pieces::Many(Box::new(Fragments {
                    copies: vec![0; pieces],
                    acked: 0,
                    sent: 0,
                }))
            } else {
                Pieces::Whole(0)
            },
            queued_at: now,
            deadline,
        });
        self.deadline_next = self.deadline_next.min(deadline);
        self.pending[self.queue_of(level)].push_back(number);
        self.waiting[usize::from(level)] += 1;
        self.stats.messages_sent += 1;
        self.stats.bytes_sent += payload.len() as u64;
        Ok(MessageId {
            channel: self.id,
            number,
        })
    }

    /// The most urgent level of what could be sent now.
    pub(crate) fn best_level(&mut self) -> Option<u8> {
        self.drop_done_resends();
        // Retransmissions first: the receiver's window moves on only with the oldest messages.
        if let Some((&(number, _), _)) = self.resend.first_key_value() {
            return self.message(number).map(|message| message.level);
        }
        self.next_fresh().map(|(level, ..)| level)
    }

    /// True if there is nothing to send, allowed or not: a quick look.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting == [0; Priority::COUNT]
            && self.resend.is_empty()
            && self.copies.is_empty()
            && self.skips.is_empty()
    }

    /// True if the next piece is sent again.
    pub(crate) fn next_is_resend(&mut self) -> bool {
        self.drop_done_resends();
        !self.resend.is_empty()
    }

    /// Returns since when resends have been waiting, if nothing but resends could be sent now.
    pub(crate) fn only_resends_since(&self) -> Option<Instant> {
        (!self.resend.is_empty() && self.next_fresh().is_none()).then_some(self.resend_since)
    }

    /// Puts the most urgent piece into the packet being built.
    pub(crate) fn put(&mut self, packet: &mut PacketSpace<'_, '_>) -> Put {
        self.drop_done_resends();
        let (number, piece, again, twice) =
            if let Some((&(number, piece), &twice)) = self.resend.first_key_value() {
                (number, piece, true, twice)
            } else {
                let Some((_, number, piece)) = self.next_fresh() else {
                    return Put::Nothing;
                };
                (number, piece, false, false)
            };
        // Nothing has changed yet, so that a piece that does not fit is offered again to the next packet.
        if !self.write(number, piece, packet) {
            return Put::TooLong;
        }
        if again {
            self.resend.pop_first();
            self.stats.pieces_resent += 1;
        } else {
            self.advance_pending(number);
        }
        if twice {
            self.copies.push_back(Copy {
                number,
                piece,
                not_in: packet.number,
                by: packet.now + COPY_WAIT,
            });
        }
        self.free_done();
        Put::Written
    }

    /// Puts a waiting second copy into a packet that goes out anyway, or, when it has waited enough, into one of its own.
    pub(crate) fn put_copy(&mut self, packet: &mut PacketSpace<'_, '_>) -> Put {
        if self.copy_due().is_none() {
            return Put::Nothing;
        }
        let Some(&copy) = self
            .copies
            .front()
            // Two copies in one packet would be lost together.
            .filter(|copy| copy.not_in != packet.number)
        else {
            return Put::Nothing;
        };
        if !self.write(copy.number, copy.piece, packet) {
            return Put::TooLong;
        }
        self.copies.pop_front();
        self.stats.pieces_copied += 1;
        Put::Written
    }

    /// Returns the time at which the oldest second copy has waited enough.
    pub(crate) fn copy_due(&mut self) -> Option<Instant> {
        while let Some(&copy) = self.copies.front() {
            if self
                .message(copy.number)
                .is_some_and(|message| !message.is_done(copy.piece))
            {
                return Some(copy.by);
            }
            self.copies.pop_front();
        }
        None
    }

    /// The next expired message that the receiver must be told of, if it is within the receiver's window.
    pub(crate) fn next_skip(&mut self) -> Option<u64> {
        if self.has_skips() {
            self.skips.pop_first()
        } else {
            None
        }
    }

    pub(crate) fn has_skips(&self) -> bool {
        self.skips
            .first()
            .is_some_and(|&number| number < self.base + CHANNEL_WINDOW)
    }

    /// A packet with this skip was lost, or it did not fit into one.
    pub(crate) fn skip_lost(&mut self, number: u64) {
        if self.message(number).is_some_and(|message| message.skipping) {
            self.skips.insert(number);
        }
    }

    /// The receiver knows that it must not wait for this message.
    pub(crate) fn skip_acked(&mut self, number: u64) {
        if let Some(message) = self.message_mut(number) {
            message.skipping = false;
            // It may be in the queue once more, because an earlier packet with it was taken as lost.
            self.skips.remove(&number);
            self.free_done();
        }
    }

    /// A piece arrived.
    pub(crate) fn acked(&mut self, number: u64, piece: u16, receipts: &mut impl FnMut(Receipt)) {
        let delivered = Receipt::new(self.id, number, Outcome::Delivered);
        // Such a message left `messages` when it was sent, so there is nothing else to update.
        if self.is_fire_and_forget(piece) {
            receipts(delivered);
            return;
        }
        let Some(message) = self.message_mut(number) else {
            return;
        };
        if message.done {
            return;
        }
        let complete = match &mut message.pieces {
            Pieces::Whole(_) => true,
            Pieces::Many(fragments) => fragments.ack(piece),
        };
        if complete {
            message.done = true;
            if message.receipt {
                receipts(delivered);
            }
            if message.is_waiting() {
                self.stop_waiting(number);
            }
            self.free_done();
        }
    }

    /// A packet with this piece is taken as lost: it goes again if the channel still wants it. `parity_sparse` says that
    /// parity is too rare at present to count on.
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        number: u64,
        piece: u16,
        parity_sparse: bool,
        receipts: &mut impl FnMut(Receipt),
    ) {
        let unprotected = self.repair == Repair::Frugal || parity_sparse;
        if self.is_fire_and_forget(piece) {
            receipts(Receipt::new(self.id, number, Outcome::Lost));
            return;
        }
        let Some(message) = self.message_mut(number) else {
            return;
        };
        // It has arrived, or another copy is still in flight, whose fate decides.
        if message.is_done(piece) || !message.drop_copy(piece) {
            return;
        }
        // Without parity, or with little, every retransmission goes twice; otherwise only what was lost again.
        let twice = unprotected || message.resent;
        message.resent = true;
        if let Some(partial) = &mut self.partial
            && (partial.is_given_up(number) || partial.give_up(number))
        {
            return;
        }
        // Counted from the first that waits, so that later losses do not put off a retransmission that waits for
        // company.
        if self.resend.is_empty() {
            self.resend_since = now;
        }
        *self.resend.entry((number, piece)).or_default() |= twice;
    }

    /// Sends a piece again although it is not known to be lost: nothing has been heard for a while.
    pub(crate) fn probe(&mut self, number: u64, piece: u16) -> bool {
        let wanted = self.delivery.is_reliable()
            && self
                .message(number)
                .is_some_and(|message| !message.is_done(piece))
            && !self.resend.contains_key(&(number, piece));
        if wanted {
            self.resend.insert((number, piece), false);
        }
        wanted
    }

    /// Sends again the oldest message that was given up: nothing has been heard for a while, so that may be what the
    /// receiver waits for, as no later message makes it go on.
    pub(crate) fn probe_given_up(&mut self) {
        if !self.awaits_progress() {
            return;
        }
        let Some(partial) = &self.partial else { return };
        let oldest = self
            .messages
            .iter()
            .zip(self.base..)
            .find(|(message, _)| !message.done);
        let Some((message, number)) = oldest.filter(|(_, number)| partial.is_given_up(*number))
        else {
            return;
        };
        for piece in message.lost_pieces() {
            self.resend.entry((number, piece)).or_default();
        }
    }

    /// The receiver of a partially reliable channel has settled everything below `next`.
    pub(crate) fn progress(
        &mut self,
        next_low: u16,
        skipped: u32,
        receipts: &mut impl FnMut(Receipt),
    ) {
        let end = self.base + self.messages.len() as u64;
        let Some(partial) = &mut self.partial else {
            return;
        };
        let next = muse_wire::sequence::expand(u64::from(next_low), 16, partial.next_expected());
        // It claims messages that were never sent.
        if next > end {
            return;
        }
        partial.handle_progress(next, skipped);
        while let Some(number) = partial.poll_revoked() {
            // One that was given up may have arrived late, and is not here any more.
            let index = number
                .checked_sub(self.base)
                .and_then(|index| usize::try_from(index).ok());
            let Some(message) = index.and_then(|index| self.messages.get(index)) else {
                continue;
            };
            for piece in message.lost_pieces() {
                self.resend.entry((number, piece)).or_default();
            }
        }
        let settled = usize::try_from(next.saturating_sub(self.base)).unwrap_or(usize::MAX);
        for (index, message) in self.messages.iter_mut().take(settled).enumerate() {
            if !message.done {
                message.done = true;
                if message.receipt {
                    receipts(Receipt::new(
                        self.id,
                        self.base + index as u64,
                        Outcome::Lost,
                    ));
                }
            }
        }
        self.free_done();
    }

    /// True if a partially reliable sender waits for a report of the receiver.
    pub(crate) fn awaits_progress(&self) -> bool {
        self.partial.as_ref().is_some_and(|partial| {
            let end = self.base + self.messages.len() as u64;
            partial.next_expected() < end && self.resend.is_empty()
        })
    }

    /// Returns the time at which the next deadline passes.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline_next
    }

    /// Drops what has expired.
    pub(crate) fn expire(&mut self, now: Instant, receipts: &mut impl FnMut(Receipt)) {
        if self.deadline_next > now {
            return;
        }
        let must_skip = matches!(
            self.delivery,
            Delivery::ReliableOrdered | Delivery::ReliableUnordered
        );
        let mut next = Instant::FAR_FUTURE;
        for index in 0..self.messages.len() {
            let message = &mut self.messages[index];
            if message.done || message.deadline > now {
                if !message.done {
                    next = next.min(message.deadline);
                }
                continue;
            }
            let number = self.base + index as u64;
            message.done = true;
            self.stats.messages_expired += 1;
            if message.receipt {
                receipts(Receipt::new(self.id, number, Outcome::Expired));
            }
            if message.is_waiting() {
                self.stop_waiting(number);
            }
            // A receiver of the other modes does not wait for a message, and need not be told that it will not come.
            if must_skip {
                self.messages[index].skipping = true;
                self.skips.insert(number);
            }
        }
        self.deadline_next = next;
        self.free_done();
    }

    /// Everything that must arrive has arrived.
    pub(crate) fn is_settled(&self) -> bool {
        self.messages.is_empty()
    }

    /// Bytes and messages that wait to be sent or acknowledged.
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.store.len(), self.messages.len())
    }

    /// Gives back memory that an idle channel does not need.
    pub(crate) fn shrink(&mut self) {
        if self.messages.is_empty() {
            self.store.shrink();
            self.messages.shrink_to(8);
            for pending in &mut self.pending {
                pending.shrink_to(8);
            }
        }
    }

    /// True if nothing but a receipt is kept of a piece once it is sent.
    pub(crate) fn is_fire_and_forget(&self, piece: u16) -> bool {
        piece == WHOLE && !self.delivery.is_reliable()
    }

    fn supersede(&mut self, receipts: &mut impl FnMut(Receipt)) {
        // Only the newest matters: everything before it is done with.
        for index in 0..self.messages.len() {
            let message = &mut self.messages[index];
            if message.done {
                continue;
            }
            message.done = true;
            self.stats.messages_superseded += 1;
            let number = self.base + index as u64;
            if message.receipt {
                receipts(Receipt::new(self.id, number, Outcome::Expired));
            }
            if message.is_waiting() {
                self.stop_waiting(number);
            }
        }
        self.free_done();
    }

    /// Returns the pending queue of a level: ordered modes keep one.
    fn queue_of(&self, level: u8) -> usize {
        if self.delivery.is_ordered() {
            0
        } else {
            usize::from(level)
        }
    }

    /// The most urgent piece never sent that may be sent now, and its level: an ordered channel is as urgent as the most
    /// urgent of what waits in it. A level that is out of the window leaves its turn to those below, for only they can
    /// move the window.
    fn next_fresh(&self) -> Option<(u8, u64, u16)> {
        for level in 0..Priority::COUNT {
            if self.waiting[level] > 0
                && let Some((number, piece)) = self.next_pending(level)
            {
                return Some((level as u8, number, piece));
            }
        }
        None
    }

    /// The next piece never sent, if the receiver has room for it.
    fn next_pending(&self, level: usize) -> Option<(u64, u16)> {
        let number = *self.pending[self.queue_of(level as u8)].front()?;
        let message = self.message(number)?;
        let end = message.start + u64::from(message.len);
        let first = self.messages.front()?.start;
        // The receiver keeps what arrives before its turn, so the distance to the oldest unfinished message is bounded,
        // in messages and bytes; that oldest one itself may always go.
        let in_window = !self.delivery.is_reliable()
            || number == self.base
            || (number < self.base + CHANNEL_WINDOW && end - first <= CHANNEL_WINDOW_BYTES as u64);
        let in_reach = self
            .partial
            .as_ref()
            .is_none_or(|partial| partial.may_send(number));
        if !in_window || !in_reach {
            return None;
        }
        let piece = match &message.pieces {
            Pieces::Whole(_) => WHOLE,
            Pieces::Many(fragments) => fragments.sent as u16,
        };
        Some((number, piece))
    }

    /// The piece of a pending message has been sent.
    fn advance_pending(&mut self, number: u64) {
        let keep = self.delivery.is_reliable();
        let Some(message) = self.message_mut(number) else {
            return;
        };
        let complete = match &mut message.pieces {
            Pieces::Whole(_) => {
                // An unreliable message in one piece is not kept: its payload is freed at once.
                message.done = !keep;
                true
            }
            Pieces::Many(fragments) => {
                fragments.sent += 1;
                fragments.sent == fragments.copies.len()
            }
        };
        if complete {
            self.stop_waiting(number);
        }
    }

    fn stop_waiting(&mut self, number: u64) {
        let Some(message) = self.message(number) else {
            return;
        };
        let level = message.level;
        let queue = &mut self.pending[if self.delivery.is_ordered() {
            0
        } else {
            usize::from(level)
        }];
        // Numbers in a queue ascend; nearly always it is the first.
        let position = if queue.front() == Some(&number) {
            Some(0)
        } else {
            queue.binary_search(&number).ok()
        };
        if let Some(position) = position {
            queue.remove(position);
            self.waiting[usize::from(level)] -= 1;
        }
    }

    /// Writes one piece; `false` when it does not fit.
    fn write(&mut self, number: u64, piece: u16, packet: &mut PacketSpace<'_, '_>) -> bool {
        let numbered = self.delivery.is_numbered();
        let id = self.id;
        let Some(message) = self.message(number) else {
            return false;
        };
        let large = piece != WHOLE;
        let offset = if large {
            usize::from(piece) * FRAGMENT_LEN
        } else {
            0
        };
        let len = (message.len as usize)
            .saturating_sub(offset)
            .min(FRAGMENT_LEN);
        let head = MessageHead {
            channel: id,
            priority: message.level,
            number_low: (numbered || large).then_some(number as u16),
            fragment: large.then_some(Fragment {
                index: u32::from(piece),
                total: message.len,
            }),
            len,
        };
        if head.frame_len() > packet.writer.remaining() {
            return false;
        }
        let frame = packet.writer.len();
        let at = message.start + offset as u64;
        let receipt = message.receipt;
        let written = head.emit(packet.writer).is_ok();
        let payload = packet.writer.len();
        if !written || self.store.copy(at, len, packet.writer).is_err() {
            packet.writer.truncate(frame);
            return false;
        }
        *packet.last = Some(LastMessage {
            frame,
            payload,
            len,
        });
        // Of what is sent once and forgotten only a receipt need be told later.
        if receipt || !self.is_fire_and_forget(piece) {
            packet.frames.push(SentFrame::Message {
                channel: id,
                receipt,
                protected: packet.protected,
                piece,
                number,
            });
        }
        if let Some(message) = self.message_mut(number) {
            message.add_copy(piece);
        }
        true
    }

    fn drop_done_resends(&mut self) {
        while let Some((&(number, piece), _)) = self.resend.first_key_value() {
            if self
                .message(number)
                .is_some_and(|message| !message.is_done(piece))
            {
                return;
            }
            self.resend.pop_first();
        }
    }

    fn free_done(&mut self) {
        // Only from the front, because the store is a ring: one unfinished message keeps the memory of those behind it.
        let is_free = |message: &Outgoing| message.done && !message.skipping;
        if !self.messages.front().is_some_and(is_free) {
            return;
        }
        while self.messages.front().is_some_and(is_free) {
            self.messages.pop_front();
            self.base += 1;
        }
        let until = self
            .messages
            .front()
            .map_or(self.store.end(), |message| message.start);
        self.store.free_until(until);
    }

    fn message(&self, number: u64) -> Option<&Outgoing> {
        self.messages
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn message_mut(&mut self, number: u64) -> Option<&mut Outgoing> {
        self.messages
            .get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }
}

/// The options of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) level: Option<u8>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) receipt: bool,
}

/// The packet being built, as a channel sees it.
pub(crate) struct PacketSpace<'a, 'b> {
    pub(crate) number: u64,
    pub(crate) now: Instant,
    /// The piece goes into the section that parity protects.
    pub(crate) protected: bool,
    pub(crate) writer: &'a mut Writer<'b>,
    pub(crate) frames: &'a mut Vec<SentFrame>,
    pub(crate) last: &'a mut Option<LastMessage>,
}

impl Outgoing {
    /// Not completely sent for the first time.
    fn is_waiting(&self) -> bool {
        match &self.pieces {
            Pieces::Whole(copies) => *copies == 0,
            Pieces::Many(fragments) => fragments.sent < fragments.copies.len(),
        }
    }

    fn is_done(&self, piece: u16) -> bool {
        self.done
            || match &self.pieces {
                Pieces::Whole(_) => false,
                Pieces::Many(fragments) => fragments
                    .copies
                    .get(usize::from(piece))
                    .is_none_or(|&c| c == ACKED),
            }
    }

    /// The pieces that were sent and of which no copy is in flight.
    fn lost_pieces(&self) -> impl Iterator<Item = u16> + '_ {
        let (whole, many) = match &self.pieces {
            Pieces::Whole(copies) => ((*copies == 0).then_some(WHOLE), None),
            Pieces::Many(fragments) => (None, Some(&fragments.copies[..fragments.sent])),
        };
        let many = many
            .into_iter()
            .flatten()
            .enumerate()
            .filter(|(_, copies)| **copies == 0);
        whole.into_iter().chain(many.map(|(index, _)| index as u16))
    }

    fn add_copy(&mut self, piece: u16) {
        let copies = match &mut self.pieces {
            Pieces::Whole(copies) => Some(copies),
            Pieces::Many(fragments) => fragments.copies.get_mut(usize::from(piece)),
        };
        if let Some(copies) = copies
            // One less than `ACKED`, which means something else.
            && *copies < ACKED - 1
        {
            *copies += 1;
        }
    }

    /// One copy less in flight; `true` when none is left.
    fn drop_copy(&mut self, piece: u16) -> bool {
        let copies = match &mut self.pieces {
            Pieces::Whole(copies) => Some(copies),
            Pieces::Many(fragments) => fragments.copies.get_mut(usize::from(piece)),
        };
        copies.is_some_and(|copies| {
            *copies = copies.saturating_sub(1);
            *copies == 0
        })
    }
}

impl Fragments {
    /// `true` when every piece has arrived.
    fn ack(&mut self, piece: u16) -> bool {
        if let Some(copies) = self.copies.get_mut(usize::from(piece))
            && *copies != ACKED
        {
            *copies = ACKED;
            self.acked += 1;
        }
        self.acked == self.copies.len()
    }
}

#[cfg(test)]
mod tests;
