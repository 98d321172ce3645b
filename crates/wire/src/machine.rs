//! The interface between a driver and a sans-IO core.

use std::net::SocketAddr;

use crate::{Duration, Instant};

/// A state machine that a driver runs over a datagram link.
///
/// The driver's loop is: give every datagram that arrived to [`handle_datagram`](Machine::handle_datagram); when
/// [`poll_timeout`](Machine::poll_timeout) has passed, call [`handle_timeout`](Machine::handle_timeout); then call
/// [`poll_transmit`](Machine::poll_transmit) until it returns `None`. `now` never goes backwards.
pub trait Machine {
    /// A datagram arrived. Its payload may be overwritten (decrypted in place). Never fails and never panics: what
    /// is not understood is counted and dropped.
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>);

    /// Datagrams of a batch are about to be handled, of which this is one: a machine with much state may touch what it
    /// will need, so that the memory behind several datagrams is fetched at once. Changes nothing.
    fn prepare(&self, payload: &[u8]) {
        let _ = payload;
    }

    /// The time given by [`poll_timeout`](Machine::poll_timeout) has come. Harmless when called early.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes what to send next into `buffer` and says where it goes, or `None` when there is nothing to send now.
    ///
    /// With a [`segment`](Transmit::segment) the bytes are several datagrams of that size for one destination, the last
    /// possibly shorter; that happens only when `buffer` is longer than one datagram of the link.
    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit>;

    /// Returns the time to call [`handle_timeout`](Machine::handle_timeout) next, if nothing else happens before.
    fn poll_timeout(&mut self) -> Option<Instant>;
}

/// A datagram that arrived.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The sender, as the network says; not proven.
    pub from: SocketAddr,
    /// Its congestion mark.
    pub ecn: Ecn,
    /// Its bytes.
    pub payload: &'a mut [u8],
}

/// A datagram, or several, to send: a description of the bytes that [`Machine::poll_transmit`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub to: SocketAddr,
    /// The number of bytes in the buffer, over all segments.
    pub len: usize,
    /// Size of each datagram when there are several; `None` for a single one.
    pub segment: Option<usize>,
    /// The congestion mark to send it with.
    pub ecn: Ecn,
}

impl Transmit {
    /// The datagrams in `buffer` that this transmit describes.
    pub fn datagrams<'a>(&self, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = &buffer[..self.len.min(buffer.len())];
        bytes.chunks(self.segment.unwrap_or(self.len).max(1))
    }
}

/// Explicit congestion notification, the two low bits of the IP traffic class (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotCapable,
    /// Capable, codepoint 1 (used by L4S).
    Capable1,
    /// Capable, codepoint 0.
    Capable0,
    /// A router on the way was congested.
    Congested,
}

impl Ecn {
    /// From the two low bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Congested,
        }
    }

    /// The two low bits of the traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::Congested => 3,
        }
    }
}

/// The properties of a link, so that a protocol above it leaves out what the link does already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Size of the largest datagram that surely passes, in bytes of payload.
    pub datagram_min: usize,
    /// Size of the largest datagram that may be tried.
    pub datagram_max: usize,
    /// The link itself encrypts and authenticates end to end.
    pub encrypted: bool,
    /// The link itself delivers everything in order; redundancy and congestion control above it are of no use.
    pub reliable: bool,
    /// Longest silence the link tolerates before it forgets us (a NAT's binding), to be kept open within.
    pub keep_alive: Duration,
}

impl Link {
    /// UDP over the internet: 1,200 bytes surely; by discovery 1,452 (an Ethernet frame with IPv6) or 8,952 (a jumbo
    /// frame of a local network).
    pub const UDP: Self = Self {
        datagram_min: 1_200,
        datagram_max: 8_952,
        encrypted: false,
        reliable: false,
        keep_alive: Duration::from_secs(15),
    };
}

impl Default for Link {
    fn default() -> Self {
        Self::UDP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transmit_is_cut_into_segments() {
        let transmit = Transmit {
            to: ([192, 0, 2, 1], 9_000).into(),
            len: 5,
            segment: Some(2),
            ecn: Ecn::NotCapable,
        };
        let parts: Vec<&[u8]> = transmit.datagrams(b"abcde...").collect();
        assert_eq!(parts, [&b"ab"[..], b"cd", b"e"]);
    }
}
