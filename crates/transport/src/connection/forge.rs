//! Packets that no honest peer sends, under the keys of a real connection: what the suite of hostile clients and the fuzzers attack with.

use muse_wire::Instant;
use muse_wire::bytes::{EndOfBytes, Writer};

use super::Connection;
use crate::packet::{
    ACK_RUNS_MAX, AckBlock, AckRun, FRAGMENT_LEN, Fragment, HEADER_LEN, Header, MessageHead,
    PACKET_NUMBER_FIRST, emit,
};
use crate::received::WINDOW;
use crate::sent::NewPacket;

/// A packet that no honest peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// The last fragment of a message of so many bytes, of which nothing else ever comes.
    LastFragment {
        /// A channel of any delivery.
        channel: u8,
        /// Low bits of the message's number.
        number: u16,
        /// Length of the message that it claims to end.
        total: u32,
    },
    /// As many empty messages as a packet holds, on a channel that is not numbered.
    EmptyMessages {
        /// The channel.
        channel: u8,
    },
    /// An acknowledgement in as many runs as fit that calls everything ever sent recovered: also what was left out, which gives it away.
    Recovered,
    /// The same, but only of what arrived, as long as that is remembered: nothing in it is false but that it was missing before.
    RecoveredArrived,
    /// As many path challenges as a packet holds.
    PathChallenges,
}

impl Connection {
    /// Writes a forged packet with the next number into `buffer`, which holds a datagram, and returns its length.
    pub(crate) fn forge(
        &mut self,
        now: Instant,
        forgery: Forgery,
        buffer: &mut [u8],
    ) -> Result<usize, EndOfBytes> {
        let acks = matches!(forgery, Forgery::Recovered | Forgery::RecoveredArrived);
        if acks && self.received.highest() < PACKET_NUMBER_FIRST {
            // Nothing has arrived yet of which anything could be said.
            return Err(EndOfBytes);
        }
        let number = self.sent.next_number();
        let tag = self.keys.send.tag_len();
        let room = buffer.len() - HEADER_LEN - tag;
        let mut writer = Writer::new(&mut buffer[HEADER_LEN..HEADER_LEN + room]);
        self.write_forgery(forgery, &mut writer)?;
        let plain = writer.len();
        let header = Header {
            phase: self.keys.send.phase(),
            acks,
            ack_now: false,
            section: false,
            connection: self.remote_id,
            number_low: number as u16,
        }
        .emit();
        buffer[..HEADER_LEN].copy_from_slice(&header);
        let body = &mut buffer[HEADER_LEN..];
        let size = HEADER_LEN + self.keys.send.seal(number, &header, body, plain);
        let packet = NewPacket {
            at: now,
            size: size as u32,
            eliciting: false,
            app_limited: true,
            mtu_probe: false,
            reliable: false,
        };
        self.sent.push(packet, &[]);
        Ok(size)
    }

    fn write_forgery(&self, forgery: Forgery, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        match forgery {
            Forgery::LastFragment {
                channel,
                number,
                total,
            } => {
                let index = (total - 1) / FRAGMENT_LEN as u32;
                let len = total as usize - index as usize * FRAGMENT_LEN;
                let head = MessageHead {
                    channel,
                    priority: 0,
                    number_low: Some(number),
                    fragment: Some(Fragment { index, total }),
                    len,
                };
                head.emit(writer)?;
                writer.slice(&[0; FRAGMENT_LEN][..len])
            }
            Forgery::EmptyMessages { channel } => {
                let head = MessageHead {
                    channel,
                    priority: 0,
                    number_low: None,
                    fragment: None,
                    len: 0,
                };
                while writer.remaining() >= head.frame_len() {
                    head.emit(writer)?;
                }
                Ok(())
            }
            Forgery::Recovered => self.recover_everything().emit(writer),
            Forgery::RecoveredArrived => self.recover_arrived().emit(writer),
            Forgery::PathChallenges => {
                while writer.remaining() > 8 {
                    emit::path_challenge(writer, [7; 8])?;
                }
                Ok(())
            }
        }
    }

    fn recover_everything(&self) -> AckBlock {
        let mut block = self.newest_alone();
        let all = block.newest - PACKET_NUMBER_FIRST;
        let each = all.div_ceil(ACK_RUNS_MAX as u64).max(1);
        let runs = (0..all / each).map(|_| AckRun {
            missing: each,
            recovered: true,
            arrived: 0,
        });
        block.runs.extend(runs);
        block
    }

    fn recover_arrived(&self) -> AckBlock {
        let mut block = self.newest_alone();
        let oldest = (block.newest + 1).saturating_sub(WINDOW);
        let mut number = block.newest;
        while number > oldest.max(PACKET_NUMBER_FIRST) && block.runs.len() < ACK_RUNS_MAX {
            let recovered = self.received.has_arrived(number - 1);
            let mut missing = 0;
            while missing < WINDOW / ACK_RUNS_MAX as u64
                && number > oldest.max(PACKET_NUMBER_FIRST)
                && self.received.has_arrived(number - 1) == recovered
            {
                number -= 1;
                missing += 1;
            }
            block.runs.push(AckRun {
                missing,
                recovered,
                arrived: 0,
            });
        }
        block
    }

    /// The newest packet has arrived; nothing is said of others.
    fn newest_alone(&self) -> AckBlock {
        AckBlock {
            newest: self.received.highest(),
            runs: vec![AckRun {
                missing: 0,
                recovered: false,
                arrived: 1,
            }],
            ..AckBlock::default()
        }
    }
}
