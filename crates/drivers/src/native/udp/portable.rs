//! Datagrams through `quinn-udp`: Windows, macOS and the rest, one system call per destination.
//!
//! Compiled on Linux too, where [`UdpOptions::portable`](super::UdpOptions::portable) selects it: sandboxes need it,
//! and its tests run on real sockets.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::time::Duration;

use muse_wire::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use super::address;
use super::backend::{Batch, Sink};
use super::options::UdpOptions;
use super::outbox::Outbox;

/// The socket's state for `quinn-udp`, and the buffers that it fills.
#[derive(Debug)]
pub(super) struct Portable {
    state: UdpSocketState,
    slots: Vec<u8>,
    slot_bytes: usize,
    ecn: bool,
    ipv6: bool,
}

impl Portable {
    pub(super) fn new(socket: &UdpSocket, options: &UdpOptions) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(socket))?;
        // One datagram of any size, or as many full ones as the platform coalesces.
        let slot_bytes = SLOT_BYTES_MIN.max(state.gro_segments() * SEGMENT_BYTES);
        Ok(Self {
            state,
            slots: vec![0; slot_bytes * BATCH_SIZE],
            slot_bytes,
            ecn: options.ecn,
            ipv6: socket.local_addr()?.is_ipv6(),
        })
    }

    /// Most datagrams that the platform takes in one train.
    pub(super) fn segments_max(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        sink: &mut impl Sink,
    ) -> io::Result<Batch> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let count = {
            let mut free = self.slots.chunks_exact_mut(self.slot_bytes);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(free.next().unwrap_or_default()));
            self.state
                .recv(UdpSockRef::from(socket), &mut slices, &mut metas)?
        };
        let mut batch = Batch {
            full: count == BATCH_SIZE,
            ..Batch::default()
        };
        for (meta, slot) in metas[..count]
            .iter()
            .zip(self.slots.chunks_exact_mut(self.slot_bytes))
        {
            let Some(bytes) = slot.get_mut(..meta.len) else {
                batch.truncated += 1;
                continue;
            };
            let mark = meta.ecn.map_or(0, |mark| mark as u8);
            batch.hand_over(
                address::normal(meta.addr),
                if self.ecn {
                    Ecn::from_bits(mark)
                } else {
                    Ecn::NotCapable
                },
                bytes,
                meta.stride,
                sink,
            );
        }
        Ok(batch)
    }

    /// Sends the first waiting message; quinn-udp has no call for several destinations.
    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        outbox: &Outbox,
        segments_max: usize,
    ) -> io::Result<usize> {
        let Some(message) = outbox.messages(segments_max).next() else {
            return Ok(0);
        };
        let transmit = Transmit {
            destination: address::for_socket(message.to, self.ipv6),
            ecn: if self.ecn {
                EcnCodepoint::from_bits(message.ecn.bits())
            } else {
                None
            },
            contents: message.bytes,
            segment_size: message.segment,
            src_ip: None,
        };
        self.state
            .try_send(UdpSockRef::from(socket), &transmit)
            .map(|()| 1)
    }
}

/// Waits until a datagram can be read, without a call that only some platforms have.
pub(super) fn wait(socket: &UdpSocket, timeout: Duration) -> io::Result<bool> {
    socket.set_nonblocking(false)?;
    let peeked = socket
        .set_read_timeout(Some(timeout.max(TIMEOUT_MIN)))
        .and_then(|()| socket.peek_from(&mut [0; 1]));
    socket.set_nonblocking(true)?;
    match peeked {
        Err(error) if would_block(&error) => Ok(false),
        // Read it or not: a peek that fails because the datagram is longer than its buffer, or because of an
        // ICMP error, is something for `receive` to see.
        Ok(_) | Err(_) => Ok(true),
    }
}

fn would_block(error: &io::Error) -> bool {
    // Platforms differ in which of the two a read time-out is; a signal ends the wait as well.
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The largest datagram.
const SLOT_BYTES_MIN: usize = 65_536;
/// A coalesced datagram is a full Ethernet frame at most.
const SEGMENT_BYTES: usize = 1_500;
/// Zero would mean to wait for ever.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
