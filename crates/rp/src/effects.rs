//! What handling something leaves behind: small datagrams to be sent, events for the application, counters.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::packet::{CHANNEL_INFO_LEN, HEADER_LEN, Packet};
use crate::{Channel, Event, HostStats};

/// Where connections put what they cause.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    outgoing: [VecDeque<Small>; 2],
    pub(crate) events: VecDeque<Event>,
    pub(crate) stats: HostStats,
}

/// A datagram that is not repeated by a channel: acknowledgements, pings, INIT1, END.
#[derive(Debug)]
struct Small {
    to: SocketAddr,
    len: usize,
    bytes: [u8; SMALL_MAX],
}

impl Effects {
    /// Has a datagram sent that carries nothing of the application.
    pub(crate) fn send(&mut self, channel: Channel, to: SocketAddr, packet: &Packet<'_>) {
        let queue = &mut self.outgoing[channel.index()];
        let mut bytes = [0; SMALL_MAX];
        match packet.emit(&mut bytes) {
            Ok(len) if queue.len() < OUTGOING_MAX => queue.push_back(Small { to, len, bytes }),
            _ => self.stats.overflowed += 1,
        }
    }

    /// Writes the next such datagram into `buffer`. Those that do not fit are lost.
    pub(crate) fn poll(
        &mut self,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        while let Some(small) = self.outgoing[channel.index()].pop_front() {
            if let Some(target) = buffer.get_mut(..small.len) {
                target.copy_from_slice(&small.bytes[..small.len]);
                return Some((small.to, small.len));
            }
            self.stats.overflowed += 1;
        }
        None
    }

    /// Whether the application leaves its events lying.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.events.len() >= EVENTS_MAX
    }
}

/// The longest is an INIT.
const SMALL_MAX: usize = HEADER_LEN + CHANNEL_INFO_LEN;
/// Most that wait per socket.
const OUTGOING_MAX: usize = 16_384;
/// With so many events waiting no message is accepted; a window more may come of one that fills a gap.
const EVENTS_MAX: usize = 16_384;
