//! The effects of handling something: small datagrams to send, events for the application, counters.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_wire::{Duration, Instant};

use crate::packet::{CHANNEL_INFO_LEN, HEADER_LEN, Packet};
use crate::{Channel, Event, HostStats};

/// Collects what connections cause.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    outgoing: [VecDeque<Small>; 2],
    /// Acknowledgements that wait, in the order of their times.
    delayed: VecDeque<(Instant, Channel, Small)>,
    ack_delay: Duration,
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
    pub(crate) fn new(ack_delay: Duration) -> Self {
        Self {
            ack_delay,
            ..Self::default()
        }
    }

    /// Has a datagram sent that carries nothing of the application.
    pub(crate) fn send(&mut self, channel: Channel, to: SocketAddr, packet: &Packet<'_>) {
        if let Some(small) = Small::new(to, packet) {
            self.push(channel, small);
        }
    }

    /// Has an acknowledgement sent after so many of the usual delays.
    pub(crate) fn send_ack(
        &mut self,
        now: Instant,
        delays: u64,
        channel: Channel,
        to: SocketAddr,
        packet: &Packet<'_>,
    ) {
        let Some(small) = Small::new(to, packet) else {
            return;
        };
        if self.ack_delay.is_zero() {
            self.push(channel, small);
        } else if self.delayed.len() < OUTGOING_MAX {
            let at = now + self.ack_delay * delays;
            // Nearly always the last one.
            let place = self.delayed.partition_point(|(other, ..)| *other <= at);
            self.delayed.insert(place, (at, channel, small));
        } else {
            self.stats.overflowed += 1;
        }
    }

    /// Lets go of the acknowledgements whose time has come.
    pub(crate) fn release(&mut self, now: Instant) {
        while self.timeout().is_some_and(|at| at <= now)
            && let Some((_, channel, small)) = self.delayed.pop_front()
        {
            self.push(channel, small);
        }
    }

    /// When [`release`](Self::release) is due.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.delayed.front().map(|(at, ..)| *at)
    }

    fn push(&mut self, channel: Channel, small: Small) {
        let queue = &mut self.outgoing[channel.index()];
        match queue.len() < OUTGOING_MAX {
            true => queue.push_back(small),
            false => self.stats.overflowed += 1,
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

    /// True if the application does not take its events.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.events.len() >= EVENTS_MAX
    }
}

impl Small {
    /// `None` if it is too long, which none of them is.
    fn new(to: SocketAddr, packet: &Packet<'_>) -> Option<Self> {
        let mut bytes = [0; SMALL_MAX];
        let len = packet.emit(&mut bytes).ok()?;
        Some(Self { to, len, bytes })
    }
}

/// The longest is an INIT.
const SMALL_MAX: usize = HEADER_LEN + CHANNEL_INFO_LEN;
/// Most that wait per socket.
const OUTGOING_MAX: usize = 16_384;
/// With so many events waiting no message is accepted; a window more may come of one that fills a gap.
const EVENTS_MAX: usize = 16_384;
