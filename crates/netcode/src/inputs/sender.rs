//! The client's side: which inputs go into a packet.

use std::collections::VecDeque;

use muse_schema::{BitWriter, EncodeError};

use super::report::MISS_SHARE_MAX;
use super::{INPUTS_PER_PACKET_MAX, Input, InputReport, packet};
use crate::Tick;
use crate::clock::PacketHeader;

/// Keeps the last inputs and writes them into packets, as many as the measured loss asks for.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::clock::PacketHeader;
/// use muse_netcode::inputs::{InputSender, Stamp};
/// use muse_schema::BitWriter;
/// let mut sender = InputSender::<u8>::new();
/// sender.push(Tick(7), 3);
/// let header = PacketHeader { number: 1, stamp: Stamp::default(), doubled: false };
/// let mut bytes = [0; 64];
/// let mut writer = BitWriter::new(&mut bytes);
/// sender.write(header, &mut writer)?;
/// assert_eq!(writer.finish(), 9);
/// # Ok::<(), muse_schema::EncodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct InputSender<I> {
    redundancy_min: usize,
    redundancy_max: usize,
    packet_ticks: usize,
    /// The newest first.
    inputs: VecDeque<I>,
    newest: Tick,
    redundancy: usize,
}

impl<I: Input> InputSender<I> {
    /// A sender without inputs.
    pub fn new() -> Self {
        Self {
            redundancy_min: 2,
            redundancy_max: 8,
            packet_ticks: 1,
            inputs: VecDeque::with_capacity(INPUTS_PER_PACKET_MAX),
            newest: Tick(0),
            // Until the first report: enough to survive a few losses in a row.
            redundancy: 3,
        }
    }

    /// Sets the fewest and the most earlier inputs sent along for each that is new. Default: 2 and 8, at most 14; one that equals its
    /// neighbour costs a bit.
    #[must_use]
    pub fn with_redundancy(mut self, min: usize, max: usize) -> Self {
        self.redundancy_min = min.min(INPUTS_PER_PACKET_MAX - 1);
        self.redundancy_max = max.clamp(self.redundancy_min, INPUTS_PER_PACKET_MAX - 1);
        self.redundancy = self
            .redundancy
            .clamp(self.redundancy_min, self.redundancy_max);
        self
    }

    /// Ticks from one packet to the next; see [`SessionConfig::packet_interval`](crate::SessionConfig::packet_interval), which sets it.
    pub(crate) fn with_packet_ticks(mut self, ticks: u32) -> Self {
        self.packet_ticks = (ticks as usize).clamp(1, INPUTS_PER_PACKET_MAX);
        self
    }

    /// Takes the input of the tick that is being simulated. Ticks may be skipped, but never go back.
    pub fn push(&mut self, tick: Tick, input: I) {
        if !self.inputs.is_empty() && tick != self.newest + 1 {
            if tick <= self.newest {
                return;
            }
            self.inputs.clear();
        }
        if self.inputs.len() == INPUTS_PER_PACKET_MAX {
            self.inputs.pop_back();
        }
        self.inputs.push_front(input);
        self.newest = tick;
    }

    /// Handles the server's report. An input sent along helps as long as its tick has not been simulated, which the loss
    /// decides: the clock waits for that many packets.
    pub fn handle_report(&mut self, report: &InputReport) {
        let loss = report.loss_share().min(0.5);
        let mut together = loss;
        let mut copies = 1;
        while together > MISS_SHARE_MAX && copies < INPUTS_PER_PACKET_MAX {
            together *= loss;
            copies += 1;
        }
        // One more than loss alone asks for: a packet that is merely late is made good, too.
        self.redundancy = copies.clamp(self.redundancy_min, self.redundancy_max);
    }

    /// Writes a packet with the newest input and those before it.
    pub fn write(
        &self,
        header: PacketHeader,
        writer: &mut BitWriter<'_>,
    ) -> Result<(), EncodeError> {
        let count = (self.redundancy + 1) * self.packet_ticks;
        let count = self.inputs.len().min(count);
        packet::write(
            header,
            self.newest.0 as u16,
            self.inputs.range(..count),
            writer,
        )
    }

    /// The inputs of the last packet are sent again from now on, as `again` says.
    pub fn handle_sent(&mut self, again: impl Fn(&I) -> I) {
        for input in self.inputs.iter_mut().take(self.packet_ticks) {
            *input = again(input);
        }
    }

    /// Returns the number of earlier inputs that go along with each new one.
    pub fn redundancy(&self) -> usize {
        self.redundancy
    }
}

impl<I: Input> Default for InputSender<I> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_follows_loss() {
        let mut sender = InputSender::<u8>::new();
        let mut redundancy = |loss| {
            sender.handle_report(&InputReport {
                loss,
                ..InputReport::default()
            });
            sender.redundancy()
        };
        assert_eq!(
            [0, 5, 13, 26, 128, 255].map(&mut redundancy),
            [2, 2, 3, 4, 8, 8]
        );
    }

    #[test]
    fn what_was_sent_is_sent_again_as_told() {
        let mut sender = InputSender::new().with_packet_ticks(2);
        for tick in 1..=4 {
            sender.push(Tick(tick), tick);
            if tick == 2 {
                sender.handle_sent(|input| input * 10);
            }
        }
        assert_eq!(sender.inputs, [4, 3, 20, 10]);
    }

    #[test]
    fn a_gap_in_the_ticks_begins_anew() {
        let mut sender = InputSender::new();
        for (tick, count) in [(5, 1), (6, 2), (6, 2), (4, 2), (9, 1), (10, 2)] {
            sender.push(Tick(tick), tick);
            assert_eq!(sender.inputs.len(), count, "{tick}");
        }
    }

    #[test]
    fn redundancy_stays_within_its_bounds() {
        let mut sender = InputSender::<u8>::new().with_redundancy(4, 5);
        let mut redundancy = |loss| {
            sender.handle_report(&InputReport {
                loss,
                ..InputReport::default()
            });
            sender.redundancy()
        };
        assert_eq!([0, 255].map(&mut redundancy), [4, 5]);
    }
}
