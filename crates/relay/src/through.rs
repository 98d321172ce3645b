//! A link under a machine: the machine speaks to virtual and real addresses alike, and what it says takes the way that there is.

use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};

use super::link::Link;
use super::packet::{DATA_HEADER_LEN, LegId, PACKET_LEN_MAX, is_relay_packet};

/// A machine, and the link that it may be reached through. Both are used together as one machine.
///
/// A guest's endpoint connects to [`Link::host_address`]; a host's endpoint listens and finds its guests at virtual addresses. When
/// the link finds a direct way, the transport's own validation of addresses moves the connection there, and back.
///
/// ```
/// use muse_relay::{Limits, Link, LinkEvent, Relay, Relayed, RoomKey};
/// use muse_wire::{Datagram, Ecn, Instant, Machine};
/// # use muse_wire::Transmit;
/// # #[derive(Default)]
/// # struct Talker { to_say: Option<std::net::SocketAddr>, heard: Vec<u8> }
/// # impl Machine for Talker {
/// #     fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) { self.heard = datagram.payload.to_vec(); }
/// #     fn handle_timeout(&mut self, _: Instant) {}
/// #     fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
/// #         let to = self.to_say.take()?;
/// #         buffer[..5].copy_from_slice(b"hello");
/// #         Some(Transmit { to, len: 5, segment: None, ecn: Ecn::NotCapable })
/// #     }
/// #     fn poll_timeout(&mut self) -> Option<Instant> { None }
/// # }
/// let (at_relay, at_host, at_guest) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?, "192.0.2.3:3".parse()?);
/// let now = Instant::from_secs(1);
/// let key = RoomKey::new([7; 16]);
/// let mut relay = Relay::danger_open(now, Limits::default(), [1; 32]);
/// let mut host = Relayed::new(Talker::default(), Link::open(now, at_relay, key, [2; 32]).direct(false));
/// let mut guest = Relayed::new(Talker::default(), Link::join(now, at_relay, key.code(), [3; 32]).direct(false));
///
/// let mut buffer = [0; 2_000];
/// for round in 0..8 {
///     for (from, machine) in [(at_host, &mut host), (at_guest, &mut guest)] {
///         machine.handle_timeout(now);
///         while let Some(sent) = machine.poll_transmit(now, &mut buffer) {
///             relay.handle_datagram(now, Datagram { from, ecn: sent.ecn, payload: &mut buffer[..sent.len] });
///         }
///     }
///     while let Some(sent) = relay.poll_transmit(now, &mut buffer) {
///         let machine = if sent.to == at_host { &mut host } else { &mut guest };
///         machine.handle_datagram(now, Datagram { from: at_relay, ecn: sent.ecn, payload: &mut buffer[..sent.len] });
///     }
///     if let Some(LinkEvent::Joined { public }) = guest.link_mut().poll_event() {
///         assert_eq!(public, at_guest);
///         guest.machine_mut().to_say = Some(Link::host_address());
///     }
/// }
/// assert_eq!(host.machine().heard, b"hello");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug)]
pub struct Relayed<M> {
    machine: M,
    link: Link,
}

impl<M> Relayed<M> {
    /// Puts a link under a machine.
    pub fn new(machine: M, link: Link) -> Self {
        Self { machine, link }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine, to do something with.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The link, for its events.
    pub fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Both, to be used together.
    pub fn parts_mut(&mut self) -> (&mut M, &mut Link) {
        (&mut self.machine, &mut self.link)
    }

    fn through(&mut self) -> Through<'_, M> {
        Through {
            machine: &mut self.machine,
            link: &mut self.link,
        }
    }
}

impl<M: Machine> Machine for Relayed<M> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.through().handle_datagram(now, datagram);
    }

    fn prepare(&self, payload: &[u8]) {
        self.machine.prepare(forwarded(payload));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.through().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.through().poll_transmit(now, buffer)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.through().poll_timeout()
    }
}

/// The same as [`Relayed`], with machine and link kept elsewhere.
#[derive(Debug)]
pub struct Through<'a, M> {
    /// The machine that is carried.
    pub machine: &'a mut M,
    /// The link that carries it.
    pub link: &'a mut Link,
}

impl<M: Machine> Machine for Through<'_, M> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Datagram { from, ecn, payload } = datagram;
        if !is_relay_packet(payload) {
            self.link.handle_direct(now, from);
            let datagram = Datagram { from, ecn, payload };
            return self.machine.handle_datagram(now, datagram);
        }
        let Some(leg) = LegId::of_data(payload) else {
            return self.link.handle_packet(now, from, payload);
        };
        if let Some(from) = self.link.handle_forwarded(now, from, leg) {
            let payload = &mut payload[DATA_HEADER_LEN..];
            if is_relay_packet(payload) {
                return self.link.handle_content(now, leg, payload);
            }
            // Handshakes are answered where they come from.
            let from = match is_data(payload) {
                true => self.link.name_of(from),
                false => from,
            };
            self.machine
                .handle_datagram(now, Datagram { from, ecn, payload });
        }
    }

    fn prepare(&self, payload: &[u8]) {
        self.machine.prepare(forwarded(payload));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.link.poll_timeout().is_some_and(|due| due <= now) {
            self.link.handle_timeout(now);
        }
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if buffer.len() < PACKET_LEN_MAX {
            return None;
        }
        if let Some((to, packet)) = self.link.poll_packet() {
            let room = buffer.first_chunk_mut().expect("it is long enough");
            let len = packet.emit(room);
            return Some(Transmit {
                to,
                len,
                segment: None,
                ecn: Ecn::NotCapable,
            });
        }
        if let Some((leg, packet)) = self.link.poll_content() {
            let (header, rest) = buffer.split_at_mut(DATA_HEADER_LEN);
            header.copy_from_slice(&leg.data_header());
            let room = rest.first_chunk_mut().expect("it is long enough");
            return Some(Transmit {
                to: self.link.relay(),
                len: DATA_HEADER_LEN + packet.emit(room),
                segment: None,
                ecn: Ecn::NotCapable,
            });
        }
        if self.link.is_waiting() {
            return None;
        }
        if let Some((transmit, leg)) = self.link.poll_mirrored(buffer)
            && let Some(wrapped) = wrap(buffer, transmit, leg)
        {
            let to = self.link.relay();
            return Some(Transmit { to, ..wrapped });
        }
        // The headers of a whole train must fit behind what the machine writes.
        let headers = DATA_HEADER_LEN * (buffer.len() / SEGMENT_TYPICAL + 1);
        let room = buffer.len() - headers;
        loop {
            let transmit = self.machine.poll_transmit(now, &mut buffer[..room])?;
            let first = buffer.first().copied().unwrap_or(0);
            match self.link.route(transmit.to, first) {
                None => continue,
                Some((to, None)) => {
                    let transmit = Transmit { to, ..transmit };
                    let bytes = &buffer[..transmit.len];
                    self.link.on_direct(now, &transmit, bytes);
                    return Some(transmit);
                }
                Some((to, Some(leg))) => {
                    if let Some(wrapped) = wrap(buffer, transmit, leg) {
                        return Some(Transmit { to, ..wrapped });
                    }
                }
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        if self.link.is_waiting() {
            // The machine has something to say and may not: only the link changes that, and lets it see its own deadlines by the way.
            return self.link.poll_timeout();
        }
        let due = self.machine.poll_timeout();
        match (due, self.link.poll_timeout()) {
            (Some(machine), Some(link)) => Some(machine.min(link)),
            (machine, link) => machine.or(link),
        }
    }
}

/// Puts a header in front of each datagram, from the last to the first, so that nothing is overwritten. `None` when they do not fit,
/// which a train of tiny datagrams might not.
fn wrap(buffer: &mut [u8], transmit: Transmit, leg: LegId) -> Option<Transmit> {
    let segment = transmit.segment.unwrap_or(transmit.len).max(1);
    let count = transmit.len.div_ceil(segment).max(1);
    let len = transmit.len + count * DATA_HEADER_LEN;
    if len > buffer.len() {
        return None;
    }
    for index in (0..count).rev() {
        let (start, end) = (index * segment, ((index + 1) * segment).min(transmit.len));
        let shifted = start + index * DATA_HEADER_LEN;
        buffer.copy_within(start..end, shifted + DATA_HEADER_LEN);
        buffer[shifted..shifted + DATA_HEADER_LEN].copy_from_slice(&leg.data_header());
    }
    Some(Transmit {
        len,
        segment: transmit.segment.map(|segment| segment + DATA_HEADER_LEN),
        ..transmit
    })
}

/// True if a datagram of the transport is no handshake.
fn is_data(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| first & 0x80 != 0)
}

/// Returns the content of a datagram, whether or not it came through a relay.
fn forwarded(payload: &[u8]) -> &[u8] {
    match LegId::of_data(payload) {
        Some(_) => &payload[DATA_HEADER_LEN..],
        None => payload,
    }
}

/// Trains have segments of at least this size on average, else they go as far as the buffer allows.
const SEGMENT_TYPICAL: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_datagram_of_a_train_gets_its_header() {
        let leg = LegId::from_bits(0x00AB_CDEF);
        for (len, segment) in [(10, None), (25, Some(10)), (30, Some(10)), (1, Some(1))] {
            let mut buffer = vec![0; 200];
            for (index, byte) in buffer.iter_mut().enumerate().take(len) {
                *byte = index as u8;
            }
            let transmit = Transmit {
                to: Link::host_address(),
                len,
                segment,
                ecn: Ecn::NotCapable,
            };
            let wrapped = wrap(&mut buffer, transmit, leg).expect("it fits");
            let mut content = Vec::new();
            for datagram in wrapped.datagrams(&buffer) {
                assert_eq!(LegId::of_data(datagram), Some(leg));
                content.extend_from_slice(forwarded(datagram));
            }
            let expected: Vec<u8> = (0..len).map(|index| index as u8).collect();
            assert_eq!(content, expected);
        }
        let tiny = Transmit {
            to: Link::host_address(),
            len: 150,
            segment: Some(1),
            ecn: Ecn::NotCapable,
        };
        assert_eq!(wrap(&mut [0; 200], tiny, leg), None);
    }
}
