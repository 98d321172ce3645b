//! A UDP socket of the proxy: batches in, trains of equal datagrams out.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration as SystemDuration, SystemTime};

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use muse_wire::{Duration, Ecn};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

/// A datagram that arrived.
pub(super) struct Arrived<'a> {
    pub(super) from: SocketAddr,
    /// The address it was sent to, where the system says so.
    pub(super) local_ip: Option<IpAddr>,
    pub(super) ecn: Ecn,
    /// Time since the system received it.
    pub(super) age: Duration,
    pub(super) payload: &'a mut [u8],
}

/// Tells whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// Nothing is left.
    No,
    /// Others should have their turn first.
    Perhaps,
}

/// Buffers that datagrams are received into: one set for all ports.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    meta: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_SIZE * BUFFER_BYTES],
            meta: [RecvMeta::default(); BATCH_SIZE],
        }
    }
}

impl Port {
    /// Listens at `address`.
    pub(super) fn bind(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let socket = super::sockets::udp(address)?;
        Self::register(UdpSocket::from_std(socket), registry, token)
    }

    /// A new socket for talking to `server` alone.
    pub(super) fn towards(
        server: SocketAddr,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = super::sockets::udp(SocketAddr::new(any, 0))?;
        // Elsewhere a socket that is connected does not take messages with an address.
        if cfg!(target_os = "linux") {
            socket.connect(server)?;
        }
        Self::register(UdpSocket::from_std(socket), registry, token)
    }

    fn register(mut socket: UdpSocket, registry: &Registry, token: Token) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        registry.register(&mut socket, token, Interest::READABLE)?;
        Ok(Self {
            local: socket.local_addr()?,
            state,
            socket,
        })
    }

    pub(super) fn deregister(mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.socket)
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Bytes of receive buffer that the system granted.
    pub(super) fn receive_buffer(&self) -> io::Result<usize> {
        self.state.recv_buffer_size((&self.socket).into())
    }

    /// Hands everything that has arrived to `handle`, up to a limit.
    pub(super) fn receive(
        &self,
        buffers: &mut Buffers,
        mut handle: impl FnMut(Arrived<'_>),
    ) -> io::Result<More> {
        for _ in 0..BATCHES_MAX {
            let count = {
                let mut rest = buffers.bytes.chunks_mut(BUFFER_BYTES);
                let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                    std::array::from_fn(|_| IoSliceMut::new(rest.next().unwrap_or_default()));
                let meta = &mut buffers.meta;
                let outcome = self.socket.try_io(|| {
                    self.state
                        .recv((&self.socket).into(), &mut slices, meta.as_mut_slice())
                });
                match outcome {
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(More::No),
                    Err(error) => return Err(error),
                }
            };
            let clock = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            for (meta, buffer) in buffers.meta[..count]
                .iter()
                .zip(buffers.bytes.chunks_mut(BUFFER_BYTES))
            {
                hand_over(meta, clock, &mut buffer[..meta.len], &mut handle);
            }
        }
        Ok(More::Perhaps)
    }

    /// Sends a train. Returns how many of its datagrams the system refused.
    pub(super) fn send(&self, train: &Train) -> u64 {
        let mut refused = 0;
        let step = match train.count {
            // Trains are as long as the system takes them.
            2.. => train.segment * self.state.max_gso_segments().max(1),
            _ => train.bytes.len().max(1),
        };
        if train.bytes.is_empty() {
            return u64::from(self.transmit(train, &[], None).is_err());
        }
        for part in train.bytes.chunks(step) {
            let segment = (part.len() > train.segment).then_some(train.segment);
            if self.transmit(train, part, segment).is_ok() {
                continue;
            }
            // Datagrams that cannot go as a train go one by one.
            refused += part
                .chunks(train.segment)
                .filter(|one| segment.is_none() || self.transmit(train, one, None).is_err())
                .count() as u64;
        }
        refused
    }

    fn transmit(&self, train: &Train, contents: &[u8], segment: Option<usize>) -> io::Result<()> {
        let transmit = Transmit {
            destination: train.to,
            ecn: EcnCodepoint::from_bits(train.ecn.bits()),
            contents,
            segment_size: segment,
            src_ip: train.from_ip,
        };
        let send = || self.state.try_send((&self.socket).into(), &transmit);
        match self.socket.try_io(send) {
            // The report of an earlier datagram's fate, which leaves this one unsent.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.socket.try_io(send),
            outcome => outcome,
        }
    }
}

fn hand_over(
    meta: &RecvMeta,
    clock: SystemDuration,
    bytes: &mut [u8],
    handle: &mut impl FnMut(Arrived<'_>),
) {
    let age = meta.timestamp.map_or(SystemDuration::ZERO, |stamp| {
        clock.saturating_sub(stamp).min(AGE_MAX)
    });
    let mut one = |payload: &mut [u8]| {
        handle(Arrived {
            from: meta.addr,
            local_ip: meta.dst_ip,
            ecn: Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8)),
            age: age.into(),
            payload,
        });
    };
    match meta.stride {
        0 => one(bytes),
        stride if bytes.len() <= stride => one(bytes),
        stride => bytes.chunks_mut(stride).for_each(one),
    }
}

/// Datagrams of one size for one destination, the last perhaps shorter, which the system takes in one call.
#[derive(Debug)]
pub(super) struct Train {
    to: SocketAddr,
    from_ip: Option<IpAddr>,
    ecn: Ecn,
    segment: usize,
    count: usize,
    bytes: Vec<u8>,
}

impl Train {
    pub(super) fn new() -> Self {
        Self {
            to: SocketAddr::from(([0; 4], 0)),
            from_ip: None,
            ecn: Ecn::NotCapable,
            segment: 0,
            count: 0,
            bytes: Vec::with_capacity(TRAIN_BYTES_MAX),
        }
    }

    /// Begins a new one.
    pub(super) fn begin(
        &mut self,
        to: SocketAddr,
        from_ip: Option<IpAddr>,
        ecn: Ecn,
        payload: &[u8],
    ) {
        (self.to, self.from_ip, self.ecn) = (to, from_ip, ecn);
        (self.segment, self.count) = (payload.len(), 1);
        self.bytes.clear();
        self.bytes.extend_from_slice(payload);
    }

    /// Adds a datagram if it fits in.
    pub(super) fn append(&mut self, to: SocketAddr, ecn: Ecn, payload: &[u8]) -> bool {
        let fits = self.count > 0
            && self.count < TRAIN_LEN_MAX
            && self.segment > 0
            && !payload.is_empty()
            && payload.len() <= self.segment
            // A shorter one ends the train.
            && self.bytes.len() == self.count * self.segment
            && self.bytes.len() + payload.len() <= TRAIN_BYTES_MAX
            && (to, ecn) == (self.to, self.ecn);
        if fits {
            self.count += 1;
            self.bytes.extend_from_slice(payload);
        }
        fits
    }
}

/// Room for a datagram, or for what the kernel coalesces.
const BUFFER_BYTES: usize = 65_536;
/// Batches received before others have their turn.
const BATCHES_MAX: usize = 16;
/// Stamps older than this are wrong: somebody set the clock.
const AGE_MAX: SystemDuration = SystemDuration::from_secs(1);
/// Longest train: what the kernels with the smallest limit take.
const TRAIN_LEN_MAX: usize = 64;
/// Most bytes in a train: those of the largest datagram.
const TRAIN_BYTES_MAX: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_takes_equals_and_ends_with_a_shorter_one() {
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut train = Train::new();
        assert!(!train.append(to, Ecn::NotCapable, b"four"));
        train.begin(to, None, Ecn::NotCapable, b"four");
        assert!(train.append(to, Ecn::NotCapable, b"five"));
        assert!(!train.append(to, Ecn::NotCapable, b"longer"));
        assert!(!train.append(to, Ecn::Capable0, b"mark"));
        assert!(!train.append(to, Ecn::NotCapable, b""));
        assert!(train.append(to, Ecn::NotCapable, b"end"));
        assert!(!train.append(to, Ecn::NotCapable, b"end"));
        assert_eq!(
            (train.bytes.as_slice(), train.count),
            (&b"fourfiveend"[..], 3)
        );
    }
}
