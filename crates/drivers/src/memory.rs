//! A link inside one process: two machines, two bounded queues.
//!
//! Offline play runs the same server and client as online play, without a socket; tests get a link that neither loses
//! nor reorders anything until it is full. The ends may live on different threads.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};

use crate::Driver;
use crate::beside::SideLink;

/// Makes both ends of an in-memory link. The addresses are only names by which the machines know each other.
///
/// ```
/// use muse_drivers::{Driver, memory_pair};
/// let [server, client] = ["10.0.0.1:7000", "10.0.0.2:1"].map(|text| text.parse().expect("an address"));
/// let (at_server, at_client) = memory_pair(server, client);
/// assert_eq!(at_server.local_addr()?, server);
/// assert_eq!(at_client.local_addr()?, client);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn memory_pair(first: SocketAddr, second: SocketAddr) -> (MemoryDriver, MemoryDriver) {
    let to_first = Arc::new(Mutex::new(Queue::default()));
    let to_second = Arc::new(Mutex::new(Queue::default()));
    (
        MemoryDriver::new(first, second, Arc::clone(&to_first), Arc::clone(&to_second)),
        MemoryDriver::new(second, first, to_second, to_first),
    )
}

/// One end of an in-memory link; see [`memory_pair`].
///
/// A queue holds at most [`QUEUE_DATAGRAMS_MAX`] datagrams and [`QUEUE_BYTES_MAX`] bytes; like a socket buffer it drops
/// what comes when it is full. Its buffers are reused: a steady stream allocates nothing.
#[derive(Debug)]
pub struct MemoryDriver {
    local: SocketAddr,
    remote: SocketAddr,
    incoming: Arc<Mutex<Queue>>,
    outgoing: Arc<Mutex<Queue>>,
    scratch: Vec<u8>,
    unreachable: u64,
}

impl MemoryDriver {
    fn new(
        local: SocketAddr,
        remote: SocketAddr,
        incoming: Arc<Mutex<Queue>>,
        outgoing: Arc<Mutex<Queue>>,
    ) -> Self {
        let scratch = vec![0; DATAGRAM_ROOM];
        Self {
            local,
            remote,
            incoming,
            outgoing,
            scratch,
            unreachable: 0,
        }
    }

    /// Datagrams from this end that were dropped because the other end's queue was full.
    pub fn dropped(&self) -> u64 {
        lock(&self.outgoing).dropped
    }

    /// Datagrams from this end that were addressed to anyone but the other end.
    pub fn unreachable(&self) -> u64 {
        self.unreachable
    }

    /// Sends a datagram to the other end: for a program that carries datagrams itself, such as a page with its WebTransport session.
    pub fn send(&mut self, datagram: &[u8]) {
        lock(&self.outgoing).push(datagram, Ecn::NotCapable);
    }

    /// Returns the next datagram of the other end, into `datagram`; false if there is none.
    pub fn receive_into(&mut self, datagram: &mut Vec<u8>) -> bool {
        let mut queue = lock(&self.incoming);
        let Some(packet) = queue.pop() else {
            return false;
        };
        datagram.clear();
        datagram.extend_from_slice(&packet.bytes);
        queue.recycle(packet.bytes);
        true
    }

    /// Returns the address of the other end.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    fn has_waiting(&self) -> bool {
        !lock(&self.incoming).waiting.is_empty()
    }

    /// True if the other end was dropped.
    fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.outgoing) == 1
    }
}

impl Driver for MemoryDriver {
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        // Only what waits at the start: two ends that answer each other on two threads must not keep a call going.
        let waiting = lock(&self.incoming).waiting.len();
        let mut count = 0;
        while count < waiting {
            let Some(mut packet) = lock(&self.incoming).pop() else {
                break;
            };
            let payload = packet.bytes.as_mut_slice();
            machine.handle_datagram(
                now,
                Datagram {
                    from: self.remote,
                    ecn: packet.ecn,
                    payload,
                },
            );
            lock(&self.incoming).recycle(packet.bytes);
            count += 1;
        }
        Ok(count)
    }

    fn flush<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        let mut count = 0;
        while count < FLUSH_DATAGRAMS_MAX {
            let Some(transmit) = machine.poll_transmit(now, &mut self.scratch) else {
                break;
            };
            let mut queue = lock(&self.outgoing);
            for bytes in transmit.datagrams(&self.scratch) {
                if transmit.to == self.remote {
                    queue.push(bytes, transmit.ecn);
                } else {
                    self.unreachable += 1;
                }
                count += 1;
            }
            // A transmit without bytes counts too, or a machine that repeats it would never let go.
            count += usize::from(transmit.len == 0);
        }
        Ok(count)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }
}

/// Makes a link between two endpoints of which at least one is in this process, with addresses that no other link has.
pub fn link() -> (MemoryDriver, MemoryDriver) {
    memory_pair(address(1), address(0))
}

/// The links of one endpoint to peers in the same process.
#[derive(Debug, Default)]
pub(crate) struct MemoryEnds {
    ends: Vec<MemoryDriver>,
    /// Number of links so far: each has an address of its own.
    count: u32,
}

impl MemoryEnds {
    /// Adds a link and returns its other end.
    pub(crate) fn add(&mut self) -> MemoryDriver {
        self.count += 1;
        let (near, far) = memory_pair(address(0), address(self.count));
        self.ends.push(near);
        far
    }

    /// Adds a link whose other end is elsewhere.
    pub(crate) fn attach(&mut self, end: MemoryDriver) {
        self.ends.push(end);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.ends.iter().any(MemoryDriver::has_waiting)
    }

    pub(crate) fn receive(&mut self, now: Instant, machine: &mut impl Machine) -> io::Result<()> {
        for end in &mut self.ends {
            end.receive(now, machine)?;
        }
        // What a peer said last has been heard, so an end without another one is of no more use.
        self.ends.retain(|end| !end.is_abandoned());
        Ok(())
    }
}

impl SideLink for MemoryEnds {
    const OFFERS_MAX: usize = FLUSH_DATAGRAMS_MAX;

    fn owns(&self, address: SocketAddr) -> bool {
        is_memory_address(address)
    }

    fn offer(&self, transmit: &Transmit, buffer: &[u8]) -> bool {
        if !is_memory_address(transmit.to) {
            return false;
        }
        // One whose end is gone has not noticed yet.
        if let Some(end) = self.ends.iter().find(|end| end.remote == transmit.to) {
            let mut queue = lock(&end.outgoing);
            for bytes in transmit.datagrams(buffer) {
                queue.push(bytes, transmit.ecn);
            }
        }
        true
    }
}

/// Lets a machine without a socket send: what it says to peers in the same process has been taken out before.
pub(crate) fn flush_nowhere(now: Instant, machine: &mut impl Machine) -> usize {
    let mut buffer = vec![0; DATAGRAM_ROOM];
    let mut count = 0;
    while count < FLUSH_DATAGRAMS_MAX && machine.poll_transmit(now, &mut buffer).is_some() {
        count += 1;
    }
    count
}

/// The address of an end: a number in `fd6d:756d::/32`, which no other link uses.
fn address(number: u32) -> SocketAddr {
    let bits = u128::from(PREFIX) << 96 | u128::from(number);
    SocketAddr::from((Ipv6Addr::from_bits(bits), PORT))
}

pub(crate) fn is_memory_address(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if (ip.to_bits() >> 96) as u32 == PREFIX)
}

/// Most datagrams that wait in one direction.
pub const QUEUE_DATAGRAMS_MAX: usize = 4_096;
/// Most bytes that wait in one direction.
pub const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Most datagrams that one flush takes from a machine.
const FLUSH_DATAGRAMS_MAX: usize = 2 * QUEUE_DATAGRAMS_MAX;
/// Room for one transmit: several datagrams at once, as with segmentation on a socket.
const DATAGRAM_ROOM: usize = 16 << 10;
const PREFIX: u32 = 0xFD6D_756D;
/// Stands for nothing; an address has to have one.
const PORT: u16 = 1;

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Packet>,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    bytes: usize,
    dropped: u64,
}

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    ecn: Ecn,
}

impl Queue {
    fn push(&mut self, datagram: &[u8], ecn: Ecn) {
        let full = self.waiting.len() >= QUEUE_DATAGRAMS_MAX;
        if full || self.bytes + datagram.len() > QUEUE_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(datagram);
        self.bytes += bytes.len();
        self.waiting.push_back(Packet { bytes, ecn });
    }

    fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.bytes.len();
        Some(packet)
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        self.spare.push(bytes);
    }
}

/// A machine that panicked on the other thread leaves whole datagrams behind: the queue stays usable.
fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use muse_wire::Transmit;

    use super::*;

    /// Sends `left` transmits of 300 bytes in segments of 100, and remembers what came.
    struct Node {
        to: SocketAddr,
        left: usize,
        received: Vec<(SocketAddr, Ecn, Vec<u8>)>,
    }

    impl Node {
        fn new(to: SocketAddr, left: usize) -> Self {
            Self {
                to,
                left,
                received: Vec::new(),
            }
        }
    }

    impl Machine for Node {
        fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
            self.received
                .push((datagram.from, datagram.ecn, datagram.payload.to_vec()));
        }

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
            self.left = self.left.checked_sub(1)?;
            buffer[..250].fill(self.left as u8);
            Some(Transmit {
                to: self.to,
                len: 250,
                segment: Some(100),
                ecn: Ecn::Capable0,
            })
        }

        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }

    fn addresses() -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::from(([10, 0, 0, 1], 7_000)),
            SocketAddr::from(([10, 0, 0, 2], 1)),
        )
    }

    #[test]
    fn segments_arrive_as_datagrams_with_address_and_mark() -> io::Result<()> {
        let (a, b) = addresses();
        let (mut at_a, mut at_b) = memory_pair(a, b);
        let (mut sender, mut receiver) = (Node::new(b, 2), Node::new(a, 0));
        assert_eq!(at_a.flush(Instant::ZERO, &mut sender)?, 6);
        assert_eq!(at_b.receive(Instant::ZERO, &mut receiver)?, 6);
        let lengths: Vec<usize> = receiver
            .received
            .iter()
            .map(|(_, _, bytes)| bytes.len())
            .collect();
        assert_eq!(lengths, [100, 100, 50, 100, 100, 50]);
        assert!(
            receiver
                .received
                .iter()
                .all(|(from, ecn, _)| *from == a && *ecn == Ecn::Capable0)
        );
        assert_eq!(at_b.receive(Instant::ZERO, &mut receiver)?, 0);
        Ok(())
    }

    #[test]
    fn a_full_queue_drops_and_counts_and_reuses_its_buffers() -> io::Result<()> {
        let (a, b) = addresses();
        let (mut at_a, mut at_b) = memory_pair(a, b);
        let (mut sender, mut receiver) = (Node::new(b, 2_000), Node::new(a, 0));
        assert_eq!(at_a.flush(Instant::ZERO, &mut sender)?, 6_000);
        assert_eq!(
            at_b.receive(Instant::ZERO, &mut receiver)?,
            QUEUE_DATAGRAMS_MAX
        );
        assert_eq!(at_a.dropped(), 6_000 - QUEUE_DATAGRAMS_MAX as u64);
        assert_eq!(lock(&at_b.incoming).bytes, 0);
        assert_eq!(lock(&at_b.incoming).spare.len(), QUEUE_DATAGRAMS_MAX);
        sender.left = 1;
        at_a.flush(Instant::ZERO, &mut sender)?;
        assert_eq!(lock(&at_b.incoming).spare.len(), QUEUE_DATAGRAMS_MAX - 3);
        Ok(())
    }

    #[test]
    fn a_machine_that_never_stops_is_bounded_and_strangers_are_unreachable() -> io::Result<()> {
        let (a, b) = addresses();
        let (mut at_a, _at_b) = memory_pair(a, b);
        let mut endless = Node::new(a, usize::MAX);
        let count = at_a.flush(Instant::ZERO, &mut endless)?;
        assert!((FLUSH_DATAGRAMS_MAX..FLUSH_DATAGRAMS_MAX + 3).contains(&count));
        assert_eq!(at_a.unreachable(), count as u64);
        Ok(())
    }
}
