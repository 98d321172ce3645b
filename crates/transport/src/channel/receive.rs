//! The receiving half of a channel: what may be delivered, in which order, and what must wait.

use std::collections::VecDeque;

use muse_wire::partial::{PartialReceiver, Ready, Verdict};
use muse_wire::sequence::expand;

use super::assembly::Assembly;
use crate::config::{CHANNEL_WINDOW, CHANNEL_WINDOW_BYTES, Delivery};
use crate::packet::{Fragment, MESSAGE_NUMBER_FIRST, Malformed, MessageFrame};
use crate::stats::ChannelStats;

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
    /// What waits from `next` on, for the reliable modes.
    slots: VecDeque<Slot>,
    /// Bytes that wait.
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

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Empty,
    /// Delivered before its turn, or never to come.
    Settled,
    Waiting(Vec<u8>),
    Assembling(Box<Assembly>),
}

/// Where delivered messages go, and where buffers come from and return to.
pub(crate) trait Sink {
    /// Hands a message to the application.
    fn deliver(&mut self, payload: &[u8]);
    /// An empty buffer, reused if possible.
    fn buffer(&mut self) -> Vec<u8>;
    /// Takes a buffer back.
    fn recycle(&mut self, buffer: Vec<u8>);
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
            slots: VecDeque::new(),
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
    ) -> Result<(), Malformed> {
        if frame
            .fragment
            .is_some_and(|fragment| fragment.total as usize > self.message_max)
        {
            return Err(Malformed);
        }
        match self.delivery {
            Delivery::Unreliable | Delivery::Sequenced => self.receive_unreliable(frame, sink),
            Delivery::ReliableSequenced => self.receive_unreliable(frame, sink),
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
        let Some(index) = self.index(number_low)? else {
            return Ok(());
        };
        let slot = self.slot(index);
        if matches!(slot, Slot::Empty | Slot::Assembling(_)) {
            let before = std::mem::replace(slot, Slot::Settled);
            self.stats.messages_skipped += 1;
            self.release(before, sink);
        }
        self.drain(sink);
        Ok(())
    }

    /// What to tell the sender of a partially reliable channel with the next packet: the number expected and how many
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
            self.slots.shrink_to(0);
        }
    }

    /// The unreliable modes, and reliable sequenced: nothing waits for anything; the sender alone makes sure that the
    /// newest arrives.
    fn receive_unreliable(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Malformed> {
        let near = self.newest.unwrap_or(MESSAGE_NUMBER_FIRST);
        let number = frame.number_low.map(|low| expand(u64::from(low), 16, near));
        let stale = self.delivery != Delivery::Unreliable
            && number.is_some_and(|number| self.newest.is_some_and(|newest| number <= newest));
        if stale {
            self.stats.messages_late += 1;
            return Ok(());
        }
        let Some((fragment, number)) = frame.fragment.zip(number) else {
            self.newest = number.max(self.newest);
            self.count(frame.payload.len());
            sink.deliver(frame.payload);
            return Ok(());
        };
        let Some(position) = self.assembly(number, fragment) else {
            return Ok(());
        };
        let (_, assembly) = &mut self.assemblies[position];
        let before = assembly.held();
        assembly.insert(fragment, frame.payload);
        self.held += assembly.held() - before;
        if assembly.is_complete() {
            let (_, assembly) = self.assemblies.swap_remove(position);
            self.held -= assembly.held();
            self.newest = Some(number).max(self.newest);
            self.count(assembly.message().len());
            sink.deliver(assembly.message());
            self.remember(number);
            if self.delivery != Delivery::Unreliable {
                self.drop_stale_assemblies();
            }
        }
        Ok(())
    }

    /// Where the assembly of message `number` stands; a new one may push out the oldest.
    fn assembly(&mut self, number: u64, fragment: Fragment) -> Option<usize> {
        if let Some(position) = self.assemblies.iter().position(|(n, _)| *n == number) {
            return Some(position);
        }
        // A late fragment of a message that is complete, or too old to tell.
        if number < self.completed_floor || self.completed.contains(&number) {
            return None;
        }
        let limit = CHANNEL_WINDOW_BYTES + self.message_max;
        while self.assemblies.len() >= ASSEMBLIES_MAX
            || (self.held + fragment.total as usize > limit && !self.assemblies.is_empty())
        {
            let (oldest, _) = self
                .assemblies
                .iter()
                .enumerate()
                .min_by_key(|(_, (n, _))| *n)?;
            if self.assemblies[oldest].0 > number {
                return None;
            }
            let (_, gone) = self.assemblies.swap_remove(oldest);
            self.held -= gone.held();
            self.stats.messages_incomplete += 1;
        }
        self.assemblies
            .push((number, Assembly::new(fragment.total)));
        Some(self.assemblies.len() - 1)
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

    fn drop_stale_assemblies(&mut self) {
        let newest = self.newest;
        let mut held = self.held;
        let mut dropped = 0;
        self.assemblies.retain(|(number, assembly)| {
            let keep = newest.is_none_or(|newest| *number > newest);
            if !keep {
                held -= assembly.held();
                dropped += 1;
            }
            keep
        });
        self.held = held;
        self.stats.messages_incomplete += dropped;
    }

    fn receive_unordered(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(index) = self.index(number_low)? else {
            return Ok(());
        };
        match frame.fragment {
            None => {
                let slot = self.slot(index);
                if !matches!(slot, Slot::Empty) {
                    self.stats.messages_duplicate += 1;
                    return Ok(());
                }
                *slot = Slot::Settled;
                self.count(frame.payload.len());
                sink.deliver(frame.payload);
            }
            Some(fragment) => {
                if let Some(assembly) = self.assemble(index, fragment, frame.payload)? {
                    self.count(assembly.message().len());
                    sink.deliver(assembly.message());
                    *self.slot(index) = Slot::Settled;
                }
            }
        }
        while matches!(self.slots.front(), Some(Slot::Settled)) {
            self.slots.pop_front();
            self.next += 1;
        }
        Ok(())
    }

    fn receive_ordered(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(index) = self.index(number_low)? else {
            return Ok(());
        };
        if index == 0
            && frame.fragment.is_none()
            && matches!(self.slots.front(), None | Some(Slot::Empty))
        {
            // The common case: the next one, in one piece.
            self.slots.pop_front();
            self.next += 1;
            self.count(frame.payload.len());
            sink.deliver(frame.payload);
        } else {
            self.keep(index, frame, sink)?;
        }
        self.drain(sink);
        Ok(())
    }

    fn receive_partial(
        &mut self,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Malformed> {
        let number_low = frame.number_low.ok_or(Malformed)?;
        let Some(index) = self.index(number_low)? else {
            self.progress_repeats = PROGRESS_REPEATS;
            return Ok(());
        };
        if !self.keep(index, frame, sink)? {
            return Ok(());
        }
        self.progress_repeats = PROGRESS_REPEATS;
        let number = self.next + index as u64;
        let Some(partial) = &mut self.partial else {
            return Err(Malformed);
        };
        match partial.receive(number) {
            Verdict::Deliver { .. } => self.deliver_partial(number, sink),
            Verdict::Buffer => return Ok(()),
            Verdict::Drop => {
                let slot = std::mem::take(&mut self.slots[index]);
                self.release(slot, sink);
                return Ok(());
            }
        }
        while let Some(Ready { slot, .. }) = self
            .partial
            .as_mut()
            .and_then(|partial| partial.pop_ready())
        {
            self.deliver_partial(slot, sink);
        }
        Ok(())
    }

    /// Delivers message `number`; what is missing before it is lost.
    fn deliver_partial(&mut self, number: u64, sink: &mut impl Sink) {
        while self.next <= number {
            let slot = self.slots.pop_front().unwrap_or_default();
            if let (true, Slot::Waiting(payload)) = (self.next == number, &slot) {
                self.count(payload.len());
                sink.deliver(payload);
            } else {
                self.stats.messages_skipped += 1;
            }
            self.release(slot, sink);
            self.next += 1;
        }
    }

    /// Keeps a message until its turn; `true` when it is complete and new.
    fn keep(
        &mut self,
        index: usize,
        frame: &MessageFrame<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Malformed> {
        let message = match frame.fragment {
            None => {
                if !matches!(self.slot(index), Slot::Empty) {
                    self.stats.messages_duplicate += 1;
                    return Ok(false);
                }
                self.hold(frame.payload.len())?;
                let mut buffer = sink.buffer();
                buffer.extend_from_slice(frame.payload);
                buffer
            }
            Some(fragment) => match self.assemble(index, fragment, frame.payload)? {
                Some(assembly) => {
                    self.hold(assembly.message().len())?;
                    assembly.into_message()
                }
                None => return Ok(false),
            },
        };
        *self.slot(index) = Slot::Waiting(message);
        Ok(true)
    }

    /// Adds a fragment to the message at `index`; returns it when it is complete, with its slot empty.
    fn assemble(
        &mut self,
        index: usize,
        fragment: Fragment,
        payload: &[u8],
    ) -> Result<Option<Assembly>, Malformed> {
        let slot = self.slot(index);
        if matches!(slot, Slot::Empty) {
            *slot = Slot::Assembling(Box::new(Assembly::new(fragment.total)));
        }
        let Slot::Assembling(assembly) = slot else {
            return Ok(None);
        };
        let before = assembly.held();
        if !assembly.insert(fragment, payload) {
            return Err(Malformed);
        }
        let grown = assembly.held() - before;
        let complete = assembly.is_complete();
        self.hold(grown)?;
        if !complete {
            return Ok(None);
        }
        let Slot::Assembling(assembly) = std::mem::take(self.slot(index)) else {
            return Ok(None);
        };
        self.held -= assembly.held();
        Ok(Some(*assembly))
    }

    /// Counts memory; a sender that respects its windows never exceeds the limit.
    fn hold(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.held += bytes;
        if self.held > 2 * CHANNEL_WINDOW_BYTES + self.message_max {
            Err(Malformed)
        } else {
            Ok(())
        }
    }

    /// Delivers what is next and complete.
    fn drain(&mut self, sink: &mut impl Sink) {
        while matches!(self.slots.front(), Some(Slot::Waiting(_) | Slot::Settled)) {
            let Some(slot) = self.slots.pop_front() else {
                return;
            };
            self.next += 1;
            if let (Slot::Waiting(payload), true) = (&slot, self.delivery.is_ordered()) {
                self.count(payload.len());
                sink.deliver(payload);
            }
            self.release(slot, sink);
        }
    }

    /// Where message `number_low` stands; `None` when it is settled already.
    fn index(&mut self, number_low: u16) -> Result<Option<usize>, Malformed> {
        let number = expand(u64::from(number_low), 16, self.next);
        let Some(ahead) = number.checked_sub(self.next) else {
            self.stats.messages_duplicate += 1;
            return Ok(None);
        };
        if ahead >= 2 * CHANNEL_WINDOW {
            return Err(Malformed);
        }
        Ok(Some(ahead as usize))
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        &mut self.slots[index]
    }

    fn release(&mut self, slot: Slot, sink: &mut impl Sink) {
        match slot {
            Slot::Waiting(buffer) => {
                self.held -= buffer.len();
                sink.recycle(buffer);
            }
            Slot::Assembling(assembly) => self.held -= assembly.held(),
            Slot::Empty | Slot::Settled => {}
        }
    }

    fn count(&mut self, bytes: usize) {
        self.stats.messages_received += 1;
        self.stats.bytes_received += bytes as u64;
    }
}

#[cfg(test)]
mod tests;
