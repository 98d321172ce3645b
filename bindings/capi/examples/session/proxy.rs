//! A bad network in front of the server: the conditioner of the simulations, with real sockets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use muse::drivers::Clock;
use muse::wire::{Duration, Ecn, Instant};
use muse_netem::{Conditioner, Conditions, Jitter, Packet, PcapNg, Side};

/// Commands to the line: to be cut.
#[derive(Default)]
pub(crate) struct Weather {
    cut: AtomicBool,
}

impl Weather {
    /// Cuts the line for a while, from now on.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct Proxy {
    address: SocketAddr,
    running: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Proxy {
    pub(crate) fn start(
        server: SocketAddr,
        weather: Arc<Weather>,
        capture: Option<&str>,
    ) -> io::Result<Self> {
        let front = UdpSocket::bind("127.0.0.1:0")?;
        front.set_read_timeout(Some(std::time::Duration::from_millis(1)))?;
        let capture = capture.map(File::create).transpose()?;
        let capture = capture.map(PcapNg::new).transpose()?;
        let address = front.local_addr()?;
        let running = Arc::new(AtomicBool::new(true));
        let mut line = Line {
            clock: Clock::start(),
            front,
            server,
            weather,
            capture,
            cut_until: Instant::ZERO,
            clients: BTreeMap::new(),
            flying: BinaryHeap::new(),
            order: 0,
        };
        let goes_on = Arc::clone(&running);
        let thread = std::thread::spawn(move || {
            while goes_on.load(Ordering::Relaxed) {
                line.turn()?;
            }
            Ok(())
        });
        Ok(Self {
            address,
            running,
            thread,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn stop(self) -> io::Result<()> {
        self.running.store(false, Ordering::Relaxed);
        self.thread.join().expect("the proxy does not panic")
    }
}

/// A datagram on its way: when, in which order, for which client, to the server or from it.
type Flight = (Instant, u64, SocketAddr, bool, Vec<u8>);

struct Line {
    clock: Clock,
    front: UdpSocket,
    server: SocketAddr,
    weather: Arc<Weather>,
    capture: Option<PcapNg<File>>,
    cut_until: Instant,
    clients: BTreeMap<SocketAddr, Guest>,
    flying: BinaryHeap<Reverse<Flight>>,
    order: u64,
}

struct Guest {
    socket: UdpSocket,
    up: Conditioner,
    down: Conditioner,
}

impl Line {
    fn turn(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_MAX];
        if let Some((len, from)) = received(self.front.recv_from(&mut buffer))? {
            self.admit(from)?;
            self.offer(from, true, &buffer[..len])?;
        }
        let addresses: Vec<SocketAddr> = self.clients.keys().copied().collect();
        for address in addresses {
            while let Some((len, _)) =
                received(self.clients[&address].socket.recv_from(&mut buffer))?
            {
                self.offer(address, false, &buffer[..len])?;
            }
        }
        self.land()
    }

    /// A client has a socket of its own towards the server, and losses of its own.
    fn admit(&mut self, client: SocketAddr) -> io::Result<()> {
        if self.clients.contains_key(&client) {
            return Ok(());
        }
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_nonblocking(true)?;
        let conditions = Conditions::default()
            .delay(Duration::from_millis(15))
            .jitter(Jitter::Uniform(Duration::from_millis(5)))
            .loss(0.05);
        let guest = Guest {
            socket,
            up: Conditioner::new(conditions.clone(), 1),
            down: Conditioner::new(conditions, 2),
        };
        self.clients.insert(client, guest);
        Ok(())
    }

    fn offer(&mut self, client: SocketAddr, up: bool, payload: &[u8]) -> io::Result<()> {
        let now = self.clock.now();
        if let Some(capture) = &mut self.capture {
            let (from, to) = match up {
                true => (client, self.server),
                false => (self.server, client),
            };
            let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let at = Duration::from_micros(at.map_or(0, |at| at.as_micros() as u64));
            capture.arrived(Side::Clients, at, from, to, Ecn::NotCapable, payload, None)?;
        }
        if self.weather.cut.swap(false, Ordering::Relaxed) {
            self.cut_until = now + CUT_FOR;
        }
        let Some(guest) = self.clients.get_mut(&client) else {
            return Ok(());
        };
        let link = if up { &mut guest.up } else { &mut guest.down };
        let fates = link.offer(
            now,
            Packet::new(self.server, payload.len(), Ecn::NotCapable),
        );
        if now < self.cut_until {
            return Ok(());
        }
        for fate in fates.arrivals() {
            self.order += 1;
            let flight = (fate.at, self.order, client, up, payload.to_vec());
            self.flying.push(Reverse(flight));
        }
        Ok(())
    }

    /// Hands over what has arrived.
    fn land(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        while self
            .flying
            .peek()
            .is_some_and(|Reverse(flight)| flight.0 <= now)
        {
            let Some(Reverse((_, _, client, up, payload))) = self.flying.pop() else {
                break;
            };
            let sent = match up {
                true => self.clients[&client].socket.send_to(&payload, self.server),
                false => self.front.send_to(&payload, client),
            };
            // One that cannot be sent is as good as lost.
            let _ = sent;
        }
        Ok(())
    }
}

fn received(result: io::Result<(usize, SocketAddr)>) -> io::Result<Option<(usize, SocketAddr)>> {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, TimedOut, WouldBlock};
    match result {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            WouldBlock | TimedOut | ConnectionRefused | ConnectionReset => Ok(None),
            _ => Err(error),
        },
    }
}

const CUT_FOR: Duration = Duration::from_millis(900);
/// As long as datagrams can be: over loopback the search for the path's packet size goes far beyond Ethernet's.
const DATAGRAM_MAX: usize = 65_536;
