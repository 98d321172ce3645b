//! The limit: `quinn-udp` receives a batch, an address is looked up, `quinn-udp` sends. No ids, no limits, no statistics.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use muse_bench_workload::control::Control;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustc_hash::FxHashMap;

/// Forwards between the two players of each pair until told to stop. Players say which they are by a datagram of three bytes.
pub(super) fn run() -> anyhow::Result<()> {
    let control = Control::start();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    // The same buffers as the relay asks for.
    for set in [
        UdpSocketState::set_recv_buffer_size,
        UdpSocketState::set_send_buffer_size,
    ] {
        set(&state, UdpSockRef::from(&socket), BUFFER_BYTES)?;
    }
    control.ready(socket.local_addr()?.port());
    // Blocking with a time-out first, so that an idle forwarder sleeps as the relay does; quinn-udp makes it non-blocking.
    let mut waiting = Waiting::new(&socket)?;
    let mut partners = Partners::default();
    let len = 65_536;
    let mut storage = vec![vec![0; len]; BATCH_SIZE];
    let mut metas = vec![RecvMeta::default(); BATCH_SIZE];
    while !control.has_stopped() {
        let mut slices: Vec<IoSliceMut<'_>> = storage
            .iter_mut()
            .map(|bytes| IoSliceMut::new(bytes))
            .collect();
        let count = match state.recv(UdpSockRef::from(&socket), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                waiting.wait()?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for (meta, bytes) in metas.iter().zip(&slices).take(count) {
            let contents = &bytes[..meta.len];
            let (destination, contents) = match partners.of(meta.addr, contents) {
                Some(partner) => (partner, contents),
                None => continue,
            };
            let transmit = Transmit {
                destination,
                ecn: meta.ecn,
                contents,
                segment_size: (meta.stride < meta.len).then_some(meta.stride),
                src_ip: None,
            };
            // Datagrams that the socket does not accept are lost, as in a router.
            let _ = state.try_send(UdpSockRef::from(&socket), &transmit);
        }
    }
    control.result(&());
    Ok(())
}

/// The pairs of players.
#[derive(Default)]
struct Partners {
    by_address: FxHashMap<SocketAddr, SocketAddr>,
    known: FxHashMap<(u8, u8), SocketAddr>,
}

impl Partners {
    /// Returns the destination of a datagram. A registration goes back to its sender, once the pair is complete.
    fn of(&mut self, from: SocketAddr, contents: &[u8]) -> Option<SocketAddr> {
        let &[super::load::REGISTRATION, pair, side] = contents else {
            return self.by_address.get(&from).copied();
        };
        self.known.insert((pair, side), from);
        let other = *self.known.get(&(pair, 1 - side.min(1)))?;
        self.by_address.insert(from, other);
        self.by_address.insert(other, from);
        Some(from)
    }
}

/// Sleeps until a datagram is there.
struct Waiting(std::net::UdpSocket);

impl Waiting {
    fn new(socket: &std::net::UdpSocket) -> io::Result<Self> {
        let clone = socket.try_clone()?;
        clone.set_read_timeout(Some(Duration::from_millis(50)))?;
        Ok(Self(clone))
    }

    fn wait(&mut self) -> io::Result<()> {
        self.0.set_nonblocking(false)?;
        let result = self.0.peek(&mut [0]);
        self.0.set_nonblocking(true)?;
        match result {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

const BUFFER_BYTES: usize = 4 << 20;
