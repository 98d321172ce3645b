//! The cost of a small datagram by each way to the kernel: the figures of decision 0004.
//!
//! One socket talks to 500 others on loopback, 64 bytes each. The ways take turns round by round, so that a busy
//! machine disturbs all of them alike; printed are medians of the CPU time per datagram, of this thread only.
//!
//! ```text
//! cargo run --release -p muse-drivers --example send_cost
//! ```
#![allow(unsafe_code, reason = "the bare system calls, to compare with")]

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("compares Linux system calls: run it on Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::mem;
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::ptr;

    use muse_drivers::{Driver, UdpDriver, UdpOptions};
    use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};
    use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};

    const PEERS: usize = 500;
    const BYTES: usize = 64;
    const ROUNDS: usize = 301;
    const BATCH: usize = 128;

    pub(crate) fn main() -> io::Result<()> {
        let peers: Vec<UdpSocket> = (0..PEERS).map(|_| peer()).collect::<io::Result<_>>()?;
        let addresses: Vec<SocketAddr> = peers
            .iter()
            .map(UdpSocket::local_addr)
            .collect::<io::Result<_>>()?;
        println!("{BYTES} bytes, {PEERS} peers, {ROUNDS} rounds: ns of CPU per datagram");
        println!("sending");
        measure(&mut senders(&addresses)?, |_| Ok(()), || drain_all(&peers));
        println!("receiving");
        let (mut ways, servers) = receivers()?;
        let fill = |way: usize| {
            peers
                .iter()
                .try_for_each(|peer| send_one(peer, servers[way]))
        };
        measure(&mut ways, fill, || Ok(()));
        println!("trains of 45 x 1,452 bytes to one peer");
        bulk()
    }

    type Way<'a> = (&'static str, Box<dyn FnMut() -> io::Result<usize> + 'a>);

    /// Runs the ways in turn; `before` and `after` each of them are not counted.
    fn measure(
        ways: &mut [Way<'_>],
        before: impl Fn(usize) -> io::Result<()>,
        after: impl Fn() -> io::Result<()>,
    ) {
        let mut costs = vec![Vec::with_capacity(ROUNDS); ways.len()];
        for _ in 0..ROUNDS {
            for (index, ((_, way), costs)) in ways.iter_mut().zip(&mut costs).enumerate() {
                before(index).expect("loopback sends");
                let start = cpu_ns();
                let datagrams = way().expect("loopback works");
                let spent = cpu_ns() - start;
                assert_eq!(datagrams, PEERS);
                costs.push(spent as f64 / datagrams as f64);
                after().expect("loopback receives");
            }
        }
        for ((name, _), mut costs) in ways.iter().zip(costs) {
            costs.sort_by(f64::total_cmp);
            let (median, tenth) = (costs[ROUNDS / 2], costs[ROUNDS / 10]);
            println!("  {name:34} median {median:6.0}   tenth percentile {tenth:6.0}");
        }
    }

    fn senders(addresses: &[SocketAddr]) -> io::Result<Vec<Way<'_>>> {
        let payload = [7_u8; BYTES];
        let plain = peer()?;
        let quinn_socket = peer()?;
        let quinn = UdpSocketState::new(UdpSockRef::from(&quinn_socket))?;
        let raw_socket = peer()?;
        let mut raw = RawSend::new(addresses);
        let mut ways: Vec<Way<'_>> = vec![
            (
                "sendto",
                Box::new(move || {
                    addresses
                        .iter()
                        .try_for_each(|to| plain.send_to(&payload, to).map(drop))?;
                    Ok(addresses.len())
                }),
            ),
            (
                "quinn-udp per destination",
                Box::new(move || {
                    for to in addresses {
                        let transmit = quinn_udp::Transmit {
                            destination: *to,
                            ecn: None,
                            contents: &payload,
                            segment_size: None,
                            src_ip: None,
                        };
                        quinn.try_send(UdpSockRef::from(&quinn_socket), &transmit)?;
                    }
                    Ok(addresses.len())
                }),
            ),
            (
                "bare sendmmsg, prepared once",
                Box::new(move || raw.send(&raw_socket)),
            ),
        ];
        let both = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
        for (name, bind, ecn) in [
            ("UdpDriver, unmarked", loopback(), Ecn::NotCapable),
            ("UdpDriver, marked", loopback(), Ecn::Capable0),
            ("UdpDriver, marked, dual-stack", both, Ecn::Capable0),
        ] {
            let mut driver = UdpDriver::bind(bind, &UdpOptions::default())?;
            let mut machine = Broadcast {
                to: addresses,
                next: 0,
                ecn,
                received: 0,
            };
            ways.push((
                name,
                Box::new(move || {
                    machine.next = 0;
                    driver.flush(Instant::ZERO, &mut machine)
                }),
            ));
        }
        Ok(ways)
    }

    /// The ways to receive, and the address of each one's socket.
    fn receivers() -> io::Result<(Vec<Way<'static>>, Vec<SocketAddr>)> {
        let plain = peer()?;
        let plain_address = plain.local_addr()?;
        let quinn_socket = peer()?;
        let quinn_address = quinn_socket.local_addr()?;
        let quinn = UdpSocketState::new(UdpSockRef::from(&quinn_socket))?;
        let mut slots = vec![0_u8; quinn_udp::BATCH_SIZE * 65_536];
        let raw_socket = peer()?;
        let raw_address = raw_socket.local_addr()?;
        let mut raw = RawReceive::new();
        let mut ways: Vec<Way<'static>> = vec![
            (
                "recvfrom",
                Box::new(move || {
                    let mut buffer = [0; 2_048];
                    until_empty(|| plain.recv_from(&mut buffer).map(|_| 1))
                }),
            ),
            (
                "quinn-udp",
                Box::new(move || {
                    until_empty(|| {
                        let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
                        let mut free = slots.chunks_exact_mut(65_536);
                        let mut slices: [IoSliceMut<'_>; quinn_udp::BATCH_SIZE] =
                            std::array::from_fn(|_| {
                                IoSliceMut::new(free.next().unwrap_or_default())
                            });
                        quinn.recv(UdpSockRef::from(&quinn_socket), &mut slices, &mut metas)
                    })
                }),
            ),
            (
                "bare recvmmsg",
                Box::new(move || until_empty(|| raw.receive(&raw_socket))),
            ),
        ];
        let mut addresses = vec![plain_address, quinn_address, raw_address];
        let both = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
        for (name, bind, ecn) in [
            ("UdpDriver, marks unread", loopback(), false),
            ("UdpDriver, marks read", loopback(), true),
            ("UdpDriver, marks read, dual-stack", both, true),
        ] {
            let mut driver = UdpDriver::bind(bind, &UdpOptions::default().ecn(ecn))?;
            let port = driver.local_addr()?.port();
            addresses.push(SocketAddr::new(loopback().ip(), port));
            let mut machine = Broadcast {
                to: &[],
                next: 0,
                ecn: Ecn::NotCapable,
                received: 0,
            };
            ways.push((
                name,
                Box::new(move || driver.receive(Instant::ZERO, &mut machine)),
            ));
        }
        Ok((ways, addresses))
    }

    /// A sender of long trains and its receiver, each by its own CPU time.
    fn bulk() -> io::Result<()> {
        let mut sender = UdpDriver::bind(loopback(), &UdpOptions::default())?;
        let mut receiver = UdpDriver::bind(loopback(), &UdpOptions::default())?;
        let to = [receiver.local_addr()?];
        let mut trains = Trains { to: to[0], left: 0 };
        let mut sink = Broadcast {
            to: &[],
            next: 0,
            ecn: Ecn::NotCapable,
            received: 0,
        };
        let (mut sending, mut receiving) = (0, 0);
        for _ in 0..2_000 {
            trains.left = 16;
            let start = cpu_ns();
            sender.flush(Instant::ZERO, &mut trains)?;
            let middle = cpu_ns();
            receiver.receive(Instant::ZERO, &mut sink)?;
            sending += middle - start;
            receiving += cpu_ns() - middle;
        }
        let gigabytes = receiver.counters().bytes_received as f64 / 1e9;
        println!(
            "  sent {:.2} CPU-s per GB",
            sending as f64 / 1e9 / gigabytes
        );
        println!(
            "  received {:.2} CPU-s per GB",
            receiving as f64 / 1e9 / gigabytes
        );
        println!(
            "  {} of {} arrived",
            sink.received,
            sender.counters().datagrams_sent
        );
        Ok(())
    }

    struct Broadcast<'a> {
        to: &'a [SocketAddr],
        next: usize,
        ecn: Ecn,
        received: usize,
    }

    impl Machine for Broadcast<'_> {
        fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
            self.received += usize::from(!datagram.payload.is_empty());
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
            let to = *self.to.get(self.next)?;
            self.next += 1;
            buffer[..BYTES].fill(7);
            Some(Transmit {
                to,
                len: BYTES,
                segment: None,
                ecn: self.ecn,
            })
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }

    struct Trains {
        to: SocketAddr,
        left: usize,
    }

    impl Machine for Trains {
        fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> {
            self.left = self.left.checked_sub(1)?;
            let (len, segment) = (45 * 1_452, Some(1_452));
            Some(Transmit {
                to: self.to,
                len,
                segment,
                ecn: Ecn::Capable0,
            })
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }

    /// `sendmmsg` with everything prepared beforehand: the floor.
    struct RawSend {
        headers: Vec<libc::mmsghdr>,
        _owned: (Vec<libc::sockaddr_in>, Vec<libc::iovec>, Box<[u8; BYTES]>),
    }

    impl RawSend {
        fn new(addresses: &[SocketAddr]) -> Self {
            let payload = Box::new([7_u8; BYTES]);
            let mut names: Vec<libc::sockaddr_in> = addresses.iter().map(raw_address).collect();
            let vector = libc::iovec {
                iov_base: payload.as_ptr().cast_mut().cast(),
                iov_len: BYTES,
            };
            let mut vectors = vec![vector; addresses.len()];
            let headers = names.iter_mut().zip(&mut vectors).map(|(name, vector)| {
                // SAFETY: integers and pointers, for which zero is a value.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_name = ptr::from_mut(name).cast();
                header.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_in>() as _;
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            });
            Self {
                headers: headers.collect(),
                _owned: (names, vectors, payload),
            }
        }

        fn send(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            let mut sent = 0;
            for chunk in self.headers.chunks_mut(BATCH) {
                let (fd, len) = (socket.as_raw_fd(), chunk.len() as _);
                // SAFETY: the headers point into vectors that `self` owns and never moves.
                let count = unsafe { libc::sendmmsg(fd, chunk.as_mut_ptr(), len, 0) };
                sent += usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
            }
            Ok(sent)
        }
    }

    /// `recvmmsg` with addresses and nothing else.
    struct RawReceive {
        headers: Vec<libc::mmsghdr>,
        _owned: (Vec<libc::sockaddr_in>, Vec<libc::iovec>, Vec<u8>),
    }

    impl RawReceive {
        const SLOTS: usize = 64;

        fn new() -> Self {
            let mut bytes = vec![0_u8; Self::SLOTS * 2_048];
            let mut vectors: Vec<libc::iovec> = bytes
                .chunks_exact_mut(2_048)
                .map(|slot| libc::iovec {
                    iov_base: slot.as_mut_ptr().cast(),
                    iov_len: slot.len(),
                })
                .collect();
            let mut names = vec![raw_address(&loopback()); Self::SLOTS];
            let headers = names.iter_mut().zip(&mut vectors).map(|(name, vector)| {
                // SAFETY: as above.
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_name = ptr::from_mut(name).cast();
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            });
            Self {
                headers: headers.collect(),
                _owned: (names, vectors, bytes),
            }
        }

        fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            for header in &mut self.headers {
                header.msg_hdr.msg_namelen = mem::size_of::<libc::sockaddr_in>() as _;
            }
            let (fd, len) = (socket.as_raw_fd(), self.headers.len() as _);
            let headers = self.headers.as_mut_ptr();
            // SAFETY: the headers point into vectors that `self` owns and never moves.
            let count = unsafe { libc::recvmmsg(fd, headers, len, 0, ptr::null_mut()) };
            usize::try_from(count).map_err(|_| io::Error::last_os_error())
        }
    }

    fn raw_address(address: &SocketAddr) -> libc::sockaddr_in {
        let SocketAddr::V4(v4) = address else {
            unreachable!("all sockets are IPv4")
        };
        // SAFETY: integers, for which zero is a value.
        let mut raw: libc::sockaddr_in = unsafe { mem::zeroed() };
        raw.sin_family = libc::AF_INET as _;
        raw.sin_port = v4.port().to_be();
        raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
        raw
    }

    fn loopback() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    fn peer() -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(loopback())?;
        socket.set_nonblocking(true)?;
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20);
        Ok(socket)
    }

    fn send_one(peer: &UdpSocket, to: SocketAddr) -> io::Result<()> {
        peer.send_to(&[7; BYTES], to).map(drop)
    }

    fn drain_all(peers: &[UdpSocket]) -> io::Result<()> {
        let mut buffer = [0; 2_048];
        for peer in peers {
            until_empty(|| peer.recv_from(&mut buffer).map(|_| 1))?;
        }
        Ok(())
    }

    fn until_empty(mut receive: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match receive() {
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    fn cpu_ns() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid timespec for the call to fill.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        assert_eq!(result, 0, "every thread has a CPU clock");
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}
