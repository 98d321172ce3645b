//! The proxy itself: sockets, clients and what is on its way, in one thread.
//!
//! Each client address has a socket of its own towards the server, so that the server tells clients apart as it would without a proxy, and
//! a link of its own in each direction, as players have access lines of their own.

mod clients;
mod statistics;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use mio::{Token, Waker};
use muse_drivers::Clock;
use muse_netem::{Cause, Packet, Side};
use muse_wire::{Duration, Instant};

use super::capture::CaptureFile;
use super::flights::{Due, Flights, Id};
use super::port::{Arrived, Buffers, More, Port, Train};
use super::sockets::{first_bound, plain};
use super::streams::Streams;
use super::waiter::Waiter;
use super::way::{Link, Pair, Way};
use clients::{Client, Clients};
pub use statistics::{Lag, Statistics, Trouble};

/// Settings of the proxy, apart from the conditions.
pub struct Setup {
    /// Addresses to listen on: the first that can be bound is used.
    pub listen: Vec<SocketAddr>,
    /// The server that everything is forwarded to.
    pub server: SocketAddr,
    /// The random seed.
    pub seed: u64,
    /// Most clients, and most streams, at a time.
    pub clients_max: usize,
    /// A client that is silent for so long is forgotten.
    pub idle: Duration,
    /// True if all clients share one link in each direction.
    pub shared: bool,
    /// True to forward TCP as well.
    pub tcp: bool,
}

/// A running proxy.
pub struct Engine {
    clock: Clock,
    waiter: Waiter,
    waker: Arc<Waker>,
    listener: Port,
    clients: Clients,
    /// The links of all clients, where they share them.
    shared: Option<[Link; 2]>,
    streams: Option<Streams>,
    flights: Flights,
    conditions: Pair,
    setup: Setup,
    buffers: Buffers,
    train: Train,
    /// The client and direction that the train belongs to.
    train_for: Option<(Id, Way)>,
    /// Sockets with more to read.
    hot: Vec<Token>,
    ready: Vec<Token>,
    capture: Option<CaptureFile>,
    trouble: Trouble,
    lag: Lag,
    forget_at: Instant,
}

impl Engine {
    /// Opens the sockets.
    pub fn new(setup: Setup, conditions: Pair) -> anyhow::Result<Self> {
        let waiter = Waiter::new().context("cannot wait for sockets")?;
        let registry = waiter.registry();
        let listener = first_bound(&setup.listen, |address| {
            Port::bind(address, registry, LISTENER)
        })
        .with_context(|| {
            format!(
                "cannot listen at {} (UDP); is another program there?",
                setup.listen[0]
            )
        })?;
        let local = listener.local_addr();
        let streams = match setup.tcp {
            true => Some(
                Streams::listen(local, setup.server, registry, setup.clients_max).with_context(
                    || format!("cannot listen at {local} (TCP); is another program there?"),
                )?,
            ),
            false => None,
        };
        Ok(Self {
            clock: Clock::start(),
            waker: Arc::new(
                Waker::new(registry, WAKER)
                    .context("cannot create the waker of the proxy's thread")?,
            ),
            listener,
            clients: Clients::new(setup.clients_max),
            shared: (setup.shared).then(|| Link::pair(&conditions, setup.seed, 0)),
            streams,
            flights: Flights::default(),
            conditions,
            setup,
            buffers: Buffers::new(),
            train: Train::new(),
            train_for: None,
            hot: Vec::new(),
            ready: Vec::new(),
            capture: None,
            trouble: Trouble::default(),
            lag: Lag::default(),
            forget_at: Instant::ZERO,
            waiter,
        })
    }

    /// Records everything from now on.
    pub(crate) fn capture(&mut self, file: CaptureFile) {
        self.capture = Some(file);
    }

    /// Returns the address on which it listens.
    pub fn local_addr(&self) -> SocketAddr {
        plain(self.listener.local_addr())
    }

    /// Returns the server that everything is forwarded to.
    pub(crate) fn server(&self) -> SocketAddr {
        self.setup.server
    }

    /// Ends a turn's wait early, from another thread.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Bytes of receive buffer that the system granted.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.listener.receive_buffer().unwrap_or(0)
    }

    pub(crate) fn conditions(&self) -> &Pair {
        &self.conditions
    }

    /// Changes the conditions of everybody from now on.
    pub(crate) fn set_conditions(&mut self, conditions: Pair) {
        let now = self.clock.now();
        self.conditions = conditions;
        let links = self.clients.iter_mut().map(|client| &mut client.links);
        for links in links.chain(&mut self.shared) {
            for way in Way::BOTH {
                let conditions = Arc::clone(&self.conditions[way.index()]);
                links[way.index()].set_conditions(now, conditions);
            }
        }
        if let Some(streams) = &mut self.streams {
            streams.set_conditions(now, &self.conditions);
        }
    }

    /// Waits for the next event, for `wait` at most, and handles it.
    pub fn turn(&mut self, wait: Duration) -> anyhow::Result<()> {
        let now = self.clock.now();
        let timeout = match (self.hot.is_empty(), self.flights.next()) {
            (false, _) => Duration::ZERO,
            (true, Some(due)) => due.saturating_since(now).min(wait),
            (true, None) => wait,
        };
        let mut ready = std::mem::take(&mut self.ready);
        ready.append(&mut self.hot);
        self.waiter
            .wait(timeout.into(), |token| ready.push(token))
            .context("cannot wait for sockets")?;
        for &token in &ready {
            self.serve(token);
        }
        ready.clear();
        self.ready = ready;
        self.deliver();
        let now = self.clock.now();
        if now >= self.forget_at {
            self.forget_at = now + FORGET_INTERVAL;
            let registry = self.waiter.registry();
            self.clients.forget_idle(now, self.setup.idle, registry);
            if let Some(capture) = &mut self.capture {
                capture.flush();
            }
        }
        Ok(())
    }

    /// Closes the capture. Packets in flight are lost.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        match self.capture.take() {
            Some(capture) => capture.finish(),
            None => Ok(()),
        }
    }

    fn serve(&mut self, token: Token) {
        match token {
            LISTENER => self.receive_from_clients(),
            WAKER => (),
            Token(number) if number >= Streams::TOKENS => {
                if let Some(streams) = &mut self.streams {
                    let now = self.clock.now();
                    let (registry, flights) = (self.waiter.registry(), &mut self.flights);
                    let mut context = (now, registry, flights, &self.conditions, self.setup.seed);
                    streams.serve(token, &mut context);
                }
            }
            Token(number) => self.receive_from_server(number - CLIENTS),
        }
    }

    fn receive_from_clients(&mut self) {
        let Self {
            listener,
            clients,
            shared,
            flights,
            conditions,
            setup,
            buffers,
            waiter,
            capture,
            trouble,
            clock,
            ..
        } = self;
        let (now, local) = (clock.now(), listener.local_addr());
        let outcome = listener.receive(buffers, |arrived| {
            let client = clients.of(arrived.from, now, setup, conditions, waiter.registry());
            let Some((id, client)) = client else {
                trouble.refused += 1;
                return;
            };
            client.local_ip = arrived.local_ip.or(client.local_ip);
            let links = shared.as_mut().unwrap_or(&mut client.links);
            let key = (id, Way::Up);
            let lost = depart(
                links,
                flights,
                trouble,
                key,
                clock.now(),
                &arrived,
                setup.server,
            );
            if let Some(capture) = capture {
                let to = SocketAddr::new(client.local_ip.unwrap_or(local.ip()), local.port());
                capture.arrived(Side::Clients, &arrived, plain(to), lost);
            }
        });
        match outcome {
            Ok(More::Perhaps) => self.hot.push(LISTENER),
            Ok(More::No) => (),
            Err(_) => {
                // Reports about clients that have gone; what waits behind them is read next time.
                self.trouble.socket_errors += 1;
                self.hot.push(LISTENER);
            }
        }
    }

    fn receive_from_server(&mut self, index: usize) {
        let Self {
            clients,
            shared,
            flights,
            setup,
            buffers,
            capture,
            trouble,
            clock,
            ..
        } = self;
        let Some((id, client)) = clients.at(index) else {
            return;
        };
        let now = clock.now();
        let Client {
            port,
            links,
            address,
            local,
            heard,
            ..
        } = client;
        let links = shared.as_mut().unwrap_or(links);
        let outcome = port.receive(buffers, |arrived| {
            if plain(arrived.from) != setup.server {
                trouble.strangers += 1;
                return;
            }
            *heard = now;
            let key = (id, Way::Down);
            let lost = depart(
                links,
                flights,
                trouble,
                key,
                clock.now(),
                &arrived,
                *address,
            );
            if let Some(capture) = capture {
                capture.arrived(Side::Server, &arrived, *local, lost);
            }
        });
        match outcome {
            Ok(More::No) => (),
            Ok(More::Perhaps) => self.hot.push(Token(index + CLIENTS)),
            Err(error) => {
                if error.kind() == std::io::ErrorKind::ConnectionRefused {
                    self.trouble.server_refused += 1;
                } else {
                    self.trouble.socket_errors += 1;
                }
                self.hot.push(Token(index + CLIENTS));
            }
        }
    }

    /// Executes everything that is due.
    fn deliver(&mut self) {
        let now = self.clock.now();
        for _ in 0..DELIVERIES_MAX {
            let Some((at, due)) = self.flights.pop(now) else {
                break;
            };
            match due {
                Due::Datagram(slot) => {
                    self.lag.record(now.saturating_since(at));
                    self.board(slot);
                    self.flights.land(slot);
                }
                Due::Stream(id) => {
                    if let Some(streams) = &mut self.streams {
                        let (registry, flights) = (self.waiter.registry(), &mut self.flights);
                        let mut context =
                            (now, registry, flights, &self.conditions, self.setup.seed);
                        streams.remind(id, &mut context);
                    }
                }
            }
        }
        self.send_train();
    }

    /// Puts a datagram that has arrived into the train, or into the next.
    fn board(&mut self, slot: u32) {
        let datagram = self.flights.datagram(slot);
        let (key, ecn) = ((datagram.client, datagram.way), datagram.ecn);
        let Some(client) = self.clients.with_id(datagram.client) else {
            self.trouble.forgotten += 1;
            return;
        };
        let (to, from_ip) = match datagram.way {
            Way::Up => (self.setup.server, None),
            Way::Down => (client.address, client.local_ip),
        };
        if let Some(capture) = &mut self.capture {
            let local = self.listener.local_addr();
            let (side, from) = match datagram.way {
                Way::Up => (Side::Server, client.local),
                Way::Down => {
                    let ip = client.local_ip.unwrap_or(local.ip());
                    (Side::Clients, plain(SocketAddr::new(ip, local.port())))
                }
            };
            capture.left(side, from, plain(to), datagram);
        }
        if self.train_for != Some(key) || !self.train.append(to, ecn, &datagram.payload) {
            self.send_train();
            let payload = &self.flights.datagram(slot).payload;
            self.train.begin(to, from_ip, ecn, payload);
            self.train_for = Some(key);
        }
    }

    fn send_train(&mut self) {
        let Some((id, way)) = self.train_for.take() else {
            return;
        };
        let port = match way {
            Way::Down => Some(&self.listener),
            Way::Up => self.clients.with_id(id).map(|client| &client.port),
        };
        if let Some(port) = port {
            self.trouble.unsendable += port.send(&self.train);
        }
    }
}

/// Offers a datagram to its link, and schedules its arrival if it is not lost. Returns why it was lost.
fn depart(
    links: &mut [Link; 2],
    flights: &mut Flights,
    trouble: &mut Trouble,
    key: (Id, Way),
    // The clock is read after the batch was: an older time would make packets arrive too soon.
    now: Instant,
    arrived: &Arrived<'_>,
    to: SocketAddr,
) -> Option<Cause> {
    let packet = Packet::new(plain(to), arrived.payload.len(), arrived.ecn);
    let fates = links[key.1.index()].offer(now - arrived.age, packet);
    for fate in fates.arrivals() {
        trouble.no_room += u64::from(!flights.depart(key, fate, arrived.payload));
    }
    fates.lost()
}

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// First number of the clients' sockets.
const CLIENTS: usize = 16;
/// Interval at which idle clients are looked for.
const FORGET_INTERVAL: Duration = Duration::from_millis(500);
/// Deliveries before sockets are read again.
const DELIVERIES_MAX: usize = 4_096;
