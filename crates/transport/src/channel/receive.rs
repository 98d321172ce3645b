//! The receiving half of a channel: what may be delivered, in which order, and what must wait.

use std::collections::VecDeque;

use muse_wire::partial::{PartialReceiver, Ready, Verdict};
use muse_wire::sequence::expand;
use rustc_hash::FxHashMap;

use super::assembly::{Assembly, Fit};
use crate::config::{CHANNEL_WINDOW, Delivery};
use crate::memory::{ASSEMBLY_OVERHEAD, Need, cost};
use crate::numbers::NumberSet;
use crate::packet::{Fragment, MESSAGE_NUMBER_FIRST, Malformed, MessageFrame};
use crate::stats::ChannelStats;
use crate::work;

/// Large messages that an unreliable channel puts together at once; the oldest makes room.
const ASSEMBLIES_MAX: usize = 8;
/// Large unreliable messages remembered after delivery.
const COMPLETED_MAX: usize = 32;
/// Packets in which a report of a partially reliable channel is repeated.
const PROGRESS_REPEATS: u8 = 3;

/// The receiving half of one channel.
#[derive(Debug)]
pub(crate) struct ReceiveChannel {
    delivery: Delivery,
    message_max: usize,
    /// The number expected next: everything older is settled.
    next: u64,
    /// Newest number delivered, for the sequenced modes.
    newest: Option<u64>,
    /// Numbers from `next` on that have arrived at least in part, for the reliable modes. Those that are not in `slots`
    /// are settled: delivered before their turn, or never to come.
    arrived: NumberSet,
    /// Messages that wait for their turn or for fragments.
    slots: FxHashMap<u64, Slot>,
    /// Memory that counts.
    held: usize,
    assemblies: Vec<(u64, Assembly)>,
    /// Large unreliable messages delivered of late, so that fragments sent twice do not deliver them twice.
    completed: VecDeque<u64>,
    /// Large messages below this are too old to tell whether they were delivered.
    completed_floor: u64,
    partial: Option<Box<PartialReceiver>>,
    progress_repeats: u8,
    pub(crate) stats: ChannelStats,
}

#[derive(Debug)]
enum Slot {
    Whole(Vec<u8>),
    Fragments(Box<Assembly>),
}

impl Slot {
    fn is_complete(&self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Fragments(assembly) => assembly.is_complete(),
        }
    }
}

/// The answer to a frame: there was room for it, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Admission {
    /// It was delivered, kept, or not needed.
    Taken,
    /// It changed nothing, and must not be acknowledged.
    Refused,
}

/// The fate of a message that has to wait, or of a fragment of one.
enum Kept {
    /// It is complete now.
    Complete,
    /// Fragments are missing, or it was there already.
    Nothing,
    Refused,
}

/// The receiver of delivered messages, which also limits what may be kept and lends the buffers.
pub(crate) trait Sink {
    /// True if there is room for `bytes` more.
    fn admit(&mut self, bytes: usize, need: Need) -> bool;
    /// Counts memory that is kept.
    fn hold(&mut self, bytes: usize);
    /// Counts memory that is not kept any more.
    fn free(&mut self, bytes: usize);
    /// Hands a message of `len` bytes to the application, piece by piece. Counts its memory.
    fn deliver<'p>(&mut self, len: usize, pieces: impl Iterator<Item = &'p [u8]>);
    /// An empty buffer, reused if possible.
    fn buffer(&mut self) -> Vec<u8>;
    /// Takes a buffer back.
    fn recycle(&mut self, buffer: Vec<u8>);
    /// A number that grows with time.
    fn age(&self) -> u64;
}

impl ReceiveChannel {
    pub(crate) fn new(delivery: Delivery, message_max: usize) -> Self {
        let partial = match delivery {
            Delivery::PartiallyReliable(promise) => Some(Box::new(PartialReceiver::new(
                promise,
                MESSAGE_NUMBER_FIRST,
            ))),
            _ => None,
        };
        Self {
            delivery,
            message_max,
            next: MESSAGE_NUMBER_FIRST,
            newest: None,
            arrived: NumberSet::default(),
            slots: FxHashMap::default(),
            held: 0,
            assemblies: Vec::new(),
            completed: VecDeque::new(),
            completed_floor: 0,
            partial,
            progress_repeats: 0,
            stats: ChannelStats::default(),
        }
    }

    /// A message or a piece of one arrived. An error means that the peer broke the protocol.
    pub(crate) fn receive(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<Admission, Malformed> {
        // Before any memory is allocated, because the total is only a claim of the peer.
        if frame
            .fragment
            .is_some_and(|fragment| fragment.total as usize > self.message_max)
        {
            return Err(Malformed);
        }
        match self.delivery {
            Delivery::Unreliable | Delivery::Sequenced | Delivery::ReliableSequenced => {
                Ok(self.receive_unreliable(frame, sink))
            }
            Delivery::ReliableUnordered => self.receive_unordered(frame, sink),
            Delivery::ReliableOrdered => self.receive_ordered(frame, sink),
            Delivery::PartiallyReliable(_) => self.receive_partial(frame, sink),
        }
    }

    /// A message will never come.
    pub(crate) fn skip(&mut self, number_low: u16, sink: &mut impl Sink) -> Result<(), Malformed> {
        if !matches!(
            self.delivery,
            Delivery::ReliableOrdered | Delivery::ReliableUnordered
        ) {
            return Err(Malformed);
        }
        let Some(number) = self.number(number_low)? else {
            return Ok(());
        };
        let unfinished = self
            .slots
            .get(&number)
            .is_some_and(|slot| !slot.is_complete());
        // A message that is complete and waits for its turn is delivered nevertheless.
        if unfinished || !self.arrived.contains(number) {
            self.stats.messages_skipped += 1;
            self.arrived.insert(number);
            if let Some(slot) = self.slots.remove(&number) {
                self.release(slot, sink);
            }
        }
        self.drain(sink);
        Ok(())
    }

    /// Memory that counts for what waits here.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// True if the message that the channel waits for is here in part.
    pub(crate) fn is_assembling_next(&self) -> bool {
        match self.delivery {
            Delivery::ReliableSequenced => !self.assemblies.is_empty(),
            _ => self.slots.contains_key(&self.next),
        }
    }

    /// Returns the time at which the oldest unfinished message began that may be given up.
    pub(crate) fn oldest_expendable(&self) -> Option<u64> {
        self.expendable()
            .map(|(_, (_, assembly))| assembly.began())
            .min()
    }

    /// Gives up the oldest unfinished message that may be.
    pub(crate) fn evict(&mut self, sink: &mut impl Sink) {
        let oldest = self
            .expendable()
            .min_by_key(|(_, (_, assembly))| assembly.began())
            .map(|(position, _)| position);
        if let Some(position) = oldest {
            self.give_up(position, sink);
        }
    }

    /// Returns what to tell the sender of a partially reliable channel with the next packet: the number expected and how many
    /// of its window were skipped.
    pub(crate) fn progress(&mut self) -> Option<(u64, u16)> {
        if self.progress_repeats == 0 {
            return None;
        }
        self.progress_repeats -= 1;
        let partial = self.partial.as_ref()?;
        Some((partial.next_expected(), partial.skipped_in_window() as u16))
    }

    /// The sender asks for a report.
    pub(crate) fn repeat_progress(&mut self) {
        if self.partial.is_some() {
            self.progress_repeats = self.progress_repeats.max(1);
        }
    }

    pub(crate) fn has_progress(&self) -> bool {
        self.progress_repeats > 0
    }

    /// Gives back memory that an idle channel does not need.
    pub(crate) fn shrink(&mut self) {
        if self.slots.is_empty() {
            self.slots.shrink_to_fit();
            self.arrived.shrink();
        }
    }

    /// The unreliable modes, and reliable sequenced: nothing waits for anything; the sender alone makes sure that the
    /// newest arrives.
    fn receive_unreliable(&mut self, frame: &MessageFrame<'_>, sink: &mut impl Sink) -> Admission {
        let near = self.newest.unwrap_or(MESSAGE_NUMBER_FIRST);
        let number = frame.number_low.map(|low| expand(u64::from(low), 16, near));
        // The sequenced modes never go back: what is older than the last delivered message is of no use any more.
        let stale = self.delivery != Delivery::Unreliable
            && number.is_some_and(|number| self.newest.is_some_and(|newest| number <= newest));
        if stale {
            self.stats.messages_late += 1;
            return Admission::Taken;
        }
        let Some((fragment, number)) = frame.fragment.zip(number) else {
            let need = self.need_of_newest(number);
            if !sink.admit(cost(frame.payload.len()), need) {
                return Admission::Refused;
            }
            self.newest = number.max(self.newest);
            self.deliver_whole(frame.payload, sink);
            return Admission::Taken;
        };
        let position = match self.assembly(number, fragment, frame.payload.len(), sink) {
            Ok(position) => position,
            Err(admission) => return admission,
        };
        self.hold(cost(frame.payload.len()), sink);
        let (_, assembly) = &mut self.assemblies[position];
        assembly.insert(fragment, filled(frame.payload, sink));
        if assembly.is_complete() {
            let (_, assembly) = self.assemblies.swap_remove(position);
            self.newest = Some(number).max(self.newest);
            self.deliver_assembly(assembly, sink);
            self.remember(number);
            // Older messages that are still incomplete would be stale when they are complete.
            if self.delivery != Delivery::Unreliable {
                self.drop_stale_assemblies(sink);
            }
        }
        Admission::Taken
    }

    /// Finds the assembly of message `number` that a new fragment goes into; a new one may push out the oldest.
    /// An error says what became of a fragment that goes nowhere.
    fn assembly(
        &mut self,
        number: u64,
        fragment: Fragment,
        len: usize,
        sink: &mut impl Sink,
    ) -> Result<usize, Admission> {
        let need = self.need_of_newest(Some(number));
        if let Some(position) = self.assemblies.iter().position(|(n, _)| *n == number) {
            return match self.assemblies[position].1.fit(fragment) {
                Fit::New if sink.admit(cost(len), need) => Ok(position),
                Fit::New => Err(Admission::Refused),
                Fit::Foreign | Fit::Duplicate => Err(Admission::Taken),
            };
        }
        // A late fragment of a message that is complete, or too old to tell.
        if number < self.completed_floor || self.completed.contains(&number) {
            return Err(Admission::Taken);
        }
        if !sink.admit(ASSEMBLY_OVERHEAD + cost(len), need) {
            return Err(Admission::Refused);
        }
        while self.assemblies.len() >= ASSEMBLIES_MAX {
            let numbers = self.assemblies.iter().map(|(number, _)| *number);
            match numbers.enumerate().min_by_key(|(_, number)| *number) {
                Some((oldest, least)) if least < number => self.give_up(oldest, sink),
                _ => return Err(Admission::Taken),
            }
        }
        self.hold(ASSEMBLY_OVERHEAD, sink);
        self.assemblies
            .push((number, Assembly::new(fragment.total, sink.age())));
        Ok(self.assemblies.len() - 1)
    }

    /// On a reliable sequenced channel the newest message must arrive; nothing else of these modes must.
    fn need_of_newest(&self, number: Option<u64>) -> Need {
        let newest = self.assemblies.iter().map(|(number, _)| *number).max();
        if self.delivery == Delivery::ReliableSequenced && number >= newest {
            Need::Next
        } else {
            Need::Ordinary
        }
    }

    /// The unfinished messages that may be given up, with their positions.
    fn expendable(&self) -> impl Iterator<Item = (usize, &(u64, Assembly))> {
        let newest = match self.delivery {
            Delivery::ReliableSequenced => self.assemblies.iter().map(|(n, _)| *n).max(),
            _ => None,
        };
        let assemblies = self.assemblies.iter().enumerate();
        assemblies.filter(move |(_, (number, _))| Some(*number) != newest)
    }

    /// Drops an unfinished message.
    fn give_up(&mut self, position: usize, sink: &mut impl Sink) {
        let (_, assembly) = self.assemblies.swap_remove(position);
        self.stats.messages_incomplete += 1;
        self.drop_assembly(assembly, sink);
    }

    /// Remembers that a large message was delivered; when there are too many, the lowest number goes, and nothing below it
    /// is taken any more.
    fn remember(&mut self, number: u64) {
        if self.completed.len() == COMPLETED_MAX
            && let Some(lowest) = (0..COMPLETED_MAX).min_by_key(|&index| self.completed[index])
            && let Some(gone) = self.completed.swap_remove_back(lowest)
        {
            self.completed_floor = self.completed_floor.max(gone + 1);
        }
        self.completed.push_back(number);
    }

    fn drop_stale_assemblies(&mut self, sink: &mut impl Sink) {
        let newest = self.newest;
        let is_stale = |(number, _): &(u64, Assembly)| Some(*number) <= newest;
        while let Some(position) = self.assemblies.iter().position(is_stale) {
            self.give_up(position, sink);
        }
    }

    fn receive_unordered(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<Admission, Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(number) = self.number(number_low)? else {
            return Ok(Admission::Taken);
        };
        match frame.fragment {
            None => {
                if self.arrived.contains(number) {
                    self.stats.messages_duplicate += 1;
                    return Ok(Admission::Taken);
                }
                if !sink.admit(cost(frame.payload.len()), self.need(number)) {
                    return Ok(Admission::Refused);
                }
                // The usual case leaves the set alone.
                if number == self.next {
                    self.next += 1;
                } else {
                    self.arrived.insert(number);
                }
                self.deliver_whole(frame.payload, sink);
            }
            Some(fragment) => match self.assemble(number, fragment, frame.payload, sink)? {
                Kept::Refused => return Ok(Admission::Refused),
                Kept::Nothing => {}
                Kept::Complete => self.deliver_slot(number, sink),
            },
        }
        self.drain(sink);
        Ok(Admission::Taken)
    }

    fn receive_ordered(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<Admission, Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(number) = self.number(number_low)? else {
            return Ok(Admission::Taken);
        };
        if number == self.next && frame.fragment.is_none() && !self.arrived.contains(number) {
            // The common case: the next one, in one piece.
            if !sink.admit(cost(frame.payload.len()), Need::Next) {
                return Ok(Admission::Refused);
            }
            self.next += 1;
            self.deliver_whole(frame.payload, sink);
        } else if let Kept::Refused = self.keep(number, frame, sink)? {
            return Ok(Admission::Refused);
        }
        self.drain(sink);
        Ok(Admission::Taken)
    }

    fn receive_partial(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<Admission, Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(number) = self.number(number_low)? else {
            // The sender repeats what is settled, so it has not heard our report.
            self.progress_repeats = PROGRESS_REPEATS;
            return Ok(Admission::Taken);
        };
        match self.keep(number, frame, sink)? {
            Kept::Refused => return Ok(Admission::Refused),
            Kept::Nothing => return Ok(Admission::Taken),
            Kept::Complete => self.progress_repeats = PROGRESS_REPEATS,
        }
        let Some(partial) = &mut self.partial else {
            return Err(Malformed);
        };
        match partial.receive(number) {
            Verdict::Deliver { .. } => self.deliver_partial(number, sink),
            Verdict::Buffer => return Ok(Admission::Taken),
            Verdict::Drop => {
                self.arrived.remove(number);
                if let Some(slot) = self.slots.remove(&number) {
                    self.release(slot, sink);
                }
                return Ok(Admission::Taken);
            }
        }
        while let Some(Ready { slot, .. }) = self
            .partial
            .as_mut()
            .and_then(|partial| partial.pop_ready())
        {
            self.deliver_partial(slot, sink);
        }
        Ok(Admission::Taken)
    }

    /// Delivers message `number`; what is missing before it is lost.
    fn deliver_partial(&mut self, number: u64, sink: &mut impl Sink) {
        self.stats.messages_skipped += number - self.next;
        while let Some(unfinished) = self.arrived.first_in(self.next, number) {
            self.next = unfinished + 1;
            if let Some(slot) = self.slots.remove(&unfinished) {
                self.release(slot, sink);
            }
        }
        self.deliver_slot(number, sink);
        self.next = number + 1;
        self.arrived.advance(self.next);
    }

    /// Keeps a message until its turn.
    fn keep(
        &mut self,
        number: u64,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<Kept, Malformed> {
        if let Some(fragment) = frame.fragment {
            return self.assemble(number, fragment, frame.payload, sink);
        }
        if self.arrived.contains(number) {
            self.stats.messages_duplicate += 1;
            return Ok(Kept::Nothing);
        }
        let bytes = cost(frame.payload.len());
        if !sink.admit(bytes, self.need(number)) {
            return Ok(Kept::Refused);
        }
        self.hold(bytes, sink);
        self.arrived.insert(number);
        let buffer = filled(frame.payload, sink);
        self.slots.insert(number, Slot::Whole(buffer));
        Ok(Kept::Complete)
    }

    /// Adds a fragment to message `number`.
    fn assemble(
        &mut self,
        number: u64,
        fragment: Fragment,
        payload: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Kept, Malformed> {
        let need = self.need(number);
        let mut bytes = cost(payload.len());
        match self.slots.get(&number) {
            Some(Slot::Fragments(assembly)) => match assembly.fit(fragment) {
                Fit::Foreign => return Err(Malformed),
                Fit::Duplicate => return Ok(Kept::Nothing),
                Fit::New => {}
            },
            // It is settled, or came in one piece.
            Some(Slot::Whole(_)) => return Ok(Kept::Nothing),
            None if self.arrived.contains(number) => return Ok(Kept::Nothing),
            None => bytes += ASSEMBLY_OVERHEAD,
        }
        if !sink.admit(bytes, need) {
            return Ok(Kept::Refused);
        }
        self.hold(bytes, sink);
        self.arrived.insert(number);
        let slot = self.slots.entry(number).or_insert_with(|| {
            Slot::Fragments(Box::new(Assembly::new(fragment.total, sink.age())))
        });
        let Slot::Fragments(assembly) = slot else {
            return Ok(Kept::Nothing);
        };
        assembly.insert(fragment, filled(payload, sink));
        Ok(if assembly.is_complete() {
            Kept::Complete
        } else {
            Kept::Nothing
        })
    }

    /// Returns the importance of message `number` of a reliable mode.
    fn need(&self, number: u64) -> Need {
        if number == self.next {
            Need::Next
        } else {
            Need::Ordinary
        }
    }

    /// Delivers what is next and complete.
    fn drain(&mut self, sink: &mut impl Sink) {
        while self.arrived.contains(self.next) {
            work::step();
            let slot = self.slots.get(&self.next);
            // A number without a slot is settled: delivered before its turn, or skipped.
            if slot.is_some_and(|slot| !slot.is_complete()) {
                break;
            }
            self.deliver_slot(self.next, sink);
            self.next += 1;
        }
        self.arrived.advance(self.next);
    }

    /// The number that `number_low` stands for; `None` when it is settled already.
    fn number(&mut self, number_low: u16) -> Result<Option<u64>, Malformed> {
        let number = expand(u64::from(number_low), 16, self.next);
        let Some(ahead) = number.checked_sub(self.next) else {
            self.stats.messages_duplicate += 1;
            return Ok(None);
        };
        // An honest sender stays within one window of what it knows to have arrived; twice that leaves room for what we
        // know and it does not.
        if ahead >= 2 * CHANNEL_WINDOW {
            return Err(Malformed);
        }
        Ok(Some(number))
    }

    fn deliver_whole(&mut self, payload: &[u8], sink: &mut impl Sink) {
        self.count(payload.len());
        sink.deliver(payload.len(), std::iter::once(payload));
    }

    /// Delivers the message that waits under `number`, if there is one; its number counts as settled from now on.
    fn deliver_slot(&mut self, number: u64, sink: &mut impl Sink) {
        match self.slots.remove(&number) {
            Some(Slot::Whole(buffer)) => {
                self.free(cost(buffer.len()), sink);
                self.deliver_whole(&buffer, sink);
                sink.recycle(buffer);
            }
            Some(Slot::Fragments(assembly)) => self.deliver_assembly(*assembly, sink),
            None => {}
        }
    }

    fn deliver_assembly(&mut self, mut assembly: Assembly, sink: &mut impl Sink) {
        self.free(assembly.held(), sink);
        self.count(assembly.len());
        sink.deliver(assembly.len(), assembly.fragments());
        assembly
            .into_buffers()
            .for_each(|buffer| sink.recycle(buffer));
    }

    /// Drops what waited.
    fn release(&mut self, slot: Slot, sink: &mut impl Sink) {
        match slot {
            Slot::Whole(buffer) => {
                self.free(cost(buffer.len()), sink);
                sink.recycle(buffer);
            }
            Slot::Fragments(assembly) => self.drop_assembly(*assembly, sink),
        }
    }

    fn drop_assembly(&mut self, assembly: Assembly, sink: &mut impl Sink) {
        self.free(assembly.held(), sink);
        assembly
            .into_buffers()
            .for_each(|buffer| sink.recycle(buffer));
    }

    fn hold(&mut self, bytes: usize, sink: &mut impl Sink) {
        self.held += bytes;
        sink.hold(bytes);
    }

    fn free(&mut self, bytes: usize, sink: &mut impl Sink) {
        self.held -= bytes;
        sink.free(bytes);
    }

    fn count(&mut self, bytes: usize) {
        self.stats.messages_received += 1;
        self.stats.bytes_received += bytes as u64;
    }
}

/// A buffer with a copy of `payload`.
fn filled(payload: &[u8], sink: &mut impl Sink) -> Vec<u8> {
    let mut buffer = sink.buffer();
    buffer.extend_from_slice(payload);
    buffer
}

#[cfg(test)]
mod tests;
