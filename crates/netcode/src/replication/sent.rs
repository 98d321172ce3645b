//! The contents of packets that are neither acknowledged nor given up.

use std::collections::VecDeque;

/// The packets sent to one client, as far as an answer can still change anything.
#[derive(Debug, Default)]
pub(super) struct Sent {
    packets: VecDeque<Packet>,
    entries: VecDeque<Entry>,
    /// Number of the first of `entries` since the beginning.
    entries_start: u64,
    /// Number of the first of `packets`, and of the next packet.
    start: u32,
    /// All packets before this one are acknowledged or given up.
    settled: u32,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    tick: u32,
    entries_end: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Flying,
    Lost,
    Arrived,
}

/// Something that was in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Row { slot: u32, incarnation: u16 },
    Gone { slot: u32, incarnation: u16 },
    Event(u32),
}

impl Sent {
    /// The number of the next packet.
    pub(crate) fn next(&self) -> u32 {
        self.start.wrapping_add(self.packets.len() as u32)
    }

    /// Remembers a packet.
    pub(crate) fn push(&mut self, tick: u32, entries: &[Entry]) {
        self.entries.extend(entries);
        self.packets.push_back(Packet {
            tick,
            entries_end: self.entries_start + self.entries.len() as u64,
            fate: Fate::Flying,
        });
        while self.packets.len() > PACKETS_MAX || self.entries.len() > ENTRIES_MAX {
            self.forget_first();
        }
    }

    /// Forgets packets from before `tick`.
    pub(crate) fn forget_before(&mut self, tick: u32) {
        while self
            .packets
            .front()
            .is_some_and(|packet| packet.tick < tick)
        {
            self.forget_first();
        }
    }

    /// A packet has arrived: if that is news, its tick, and what was in it into `entries`.
    pub(crate) fn arrive(&mut self, number: u32, entries: &mut Vec<Entry>) -> Option<u32> {
        let index = number.wrapping_sub(self.start) as usize;
        let packet = self.packets.get_mut(index)?;
        if packet.fate == Fate::Arrived {
            return None;
        }
        packet.fate = Fate::Arrived;
        let tick = packet.tick;
        self.copy_entries(index, entries);
        Some(tick)
    }

    /// The next packet from before `tick` of which no answer came: its tick, and what was in it into `entries`.
    pub(crate) fn lose_before(&mut self, tick: u32, entries: &mut Vec<Entry>) -> Option<u32> {
        let mut index = self.settled.wrapping_sub(self.start) as usize;
        // Packets that were forgotten while unsettled count as settled.
        if index > self.packets.len() {
            index = 0;
        }
        while let Some(packet) = self.packets.get_mut(index) {
            if packet.tick >= tick {
                break;
            }
            index += 1;
            self.settled = self.start.wrapping_add(index as u32);
            if packet.fate == Fate::Flying {
                packet.fate = Fate::Lost;
                let tick = packet.tick;
                self.copy_entries(index - 1, entries);
                return Some(tick);
            }
        }
        None
    }

    fn copy_entries(&self, index: usize, entries: &mut Vec<Entry>) {
        let begin = match index.checked_sub(1) {
            Some(before) => self.packets[before].entries_end,
            None => self.entries_start,
        };
        let end = self.packets[index].entries_end;
        let range = (begin - self.entries_start) as usize..(end - self.entries_start) as usize;
        entries.clear();
        entries.extend(self.entries.range(range));
    }

    fn forget_first(&mut self) {
        if let Some(packet) = self.packets.pop_front() {
            let count = (packet.entries_end - self.entries_start) as usize;
            self.entries.drain(..count);
            self.entries_start = packet.entries_end;
            self.start = self.start.wrapping_add(1);
        }
    }
}

/// Packets remembered per client.
const PACKETS_MAX: usize = 4_096;
/// Rows remembered per client over all those packets.
const ENTRIES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_or_are_lost_once() {
        let mut sent = Sent::default();
        for tick in 0..5 {
            sent.push(tick, &[Entry::Event(tick), Entry::Event(100 + tick)]);
        }
        let mut entries = Vec::new();
        assert_eq!(sent.arrive(2, &mut entries), Some(2));
        assert_eq!(entries, [Entry::Event(2), Entry::Event(102)]);
        assert_eq!(sent.arrive(2, &mut entries), None);
        assert_eq!(sent.arrive(5, &mut entries), None);
        let mut lost = Vec::new();
        while let Some(tick) = sent.lose_before(4, &mut entries) {
            lost.push(tick);
        }
        assert_eq!(lost, [0, 1, 3]);
        // One given up too early arrives after all.
        assert_eq!(sent.arrive(0, &mut entries), Some(0));
        sent.forget_before(4);
        assert_eq!(sent.arrive(3, &mut entries), None);
        assert_eq!(sent.arrive(4, &mut entries), Some(4));
        assert_eq!(sent.next(), 5);
    }
}
