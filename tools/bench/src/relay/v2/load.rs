//! The players: pairs of sockets, of which one sends and the other measures.

use std::net::SocketAddr;
use std::time::Instant as SystemInstant;

use anyhow::bail;
use clap::{Args, ValueEnum};
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions};
use muse_relay::{Link, LinkState, Relayed, RoomKey};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use serde::{Deserialize, Serialize};

use super::{PAIRS, turn};
use crate::statistics::quantile;

/// The kind of program between the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Nothing.
    None,
    /// The bare forwarder.
    Bare,
    /// Relay v2.
    Relay,
    /// coturn.
    Turn,
}

impl Kind {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bare => "bare",
            Self::Relay => "relay",
            Self::Turn => "turn",
        }
    }

    /// Title of its rows.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Bare => "bare quinn-udp",
            Self::Relay => "muse relay",
            Self::Turn => "coturn",
        }
    }
}

/// The load of the players.
#[derive(Args)]
pub(crate) struct LoadArguments {
    /// The kind of program between them.
    #[arg(long)]
    kind: Kind,
    /// Its address.
    #[arg(long)]
    server: SocketAddr,
    /// Bytes of each packet, without what the forwarder needs.
    #[arg(long)]
    size: usize,
    /// Duration in seconds.
    #[arg(long)]
    seconds: u64,
    /// Packets a second; as many as arrive without it.
    #[arg(long)]
    rate: Option<u64>,
}

/// The players' observations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LoadReport {
    /// Packets sent.
    pub(crate) sent: u64,
    /// Packets that arrived.
    pub(crate) received: u64,
    /// Time that it took.
    pub(crate) seconds: f64,
    /// Half took at most this long.
    pub(crate) p50_us: f64,
    /// 99 of 100 took at most this long.
    pub(crate) p99_us: f64,
}

impl LoadReport {
    /// Share of what was sent that arrived.
    pub(crate) fn arrived_percent(&self) -> f64 {
        100.0 * self.received as f64 / self.sent.max(1) as f64
    }
}

/// Plays.
pub(super) fn run(arguments: &LoadArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let clock = Clock::start();
    let mut players = Players::meet(arguments, clock)?;
    control.connected();
    while !control.has_started() {
        players.keep_alive()?;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let report = players.play(arguments)?;
    control.done();
    control.result(&report);
    while !control.has_stopped() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

/// Both ends of every pair.
struct Players {
    clock: Clock,
    senders: Vec<Player>,
    receivers: Vec<Player>,
}

struct Player {
    driver: UdpDriver,
    machine: Party,
}

/// A port, with or without a link under it.
enum Party {
    Plain(Port),
    Relayed(Box<Relayed<Port>>),
}

impl Party {
    fn port(&mut self) -> &mut Port {
        match self {
            Self::Plain(port) => port,
            Self::Relayed(relayed) => relayed.machine_mut(),
        }
    }

    fn is_ready(&mut self) -> bool {
        match self {
            Self::Plain(port) => port.registration.is_none(),
            Self::Relayed(relayed) => relayed.link().state() == LinkState::Ready,
        }
    }
}

impl Player {
    fn turn(&mut self, now: Instant) -> std::io::Result<()> {
        match &mut self.machine {
            Party::Plain(port) => self.driver.poll(now, port),
            Party::Relayed(relayed) => self.driver.poll(now, relayed.as_mut()),
        }
    }

    fn receive(&mut self, now: Instant) -> std::io::Result<usize> {
        match &mut self.machine {
            Party::Plain(port) => self.driver.receive(now, port),
            Party::Relayed(relayed) => self.driver.receive(now, relayed.as_mut()),
        }
    }

    fn flush(&mut self, now: Instant) -> std::io::Result<usize> {
        match &mut self.machine {
            Party::Plain(port) => self.driver.flush(now, port),
            Party::Relayed(relayed) => self.driver.flush(now, relayed.as_mut()),
        }
    }
}

impl Players {
    /// Binds all sockets and introduces them to what stands between.
    fn meet(arguments: &LoadArguments, clock: Clock) -> anyhow::Result<Self> {
        let bind = || UdpDriver::bind(([127, 0, 0, 1], 0).into(), &UdpOptions::default());
        let mut players = Self {
            clock,
            senders: Vec::new(),
            receivers: Vec::new(),
        };
        for pair in 0..PAIRS as u8 {
            let receiver = bind()?;
            let there = receiver.local_addr()?;
            let mut sender = bind()?;
            let port = |to| Port::new(to, arguments.size);
            let (from, to) = match arguments.kind {
                Kind::None => (port(there), port(there)),
                Kind::Bare => (
                    port(arguments.server).registering(pair, 0),
                    port(arguments.server).registering(pair, 1),
                ),
                Kind::Relay => (port(Link::host_address()), port(there)),
                Kind::Turn => {
                    let here = sender.local_addr()?;
                    drop(sender);
                    turn::allocate(here, arguments.server, there)?;
                    sender = UdpDriver::bind(here, &UdpOptions::default())?;
                    let from = port(arguments.server).with_header(&turn::header(arguments.size));
                    (from, port(there))
                }
            };
            let (from, to) = match arguments.kind {
                Kind::Relay => {
                    let now = clock.now();
                    let key = RoomKey::new([pair; 16]);
                    let open = Link::open(now, arguments.server, key, [pair; 32]).direct(false);
                    let seed = [pair + 100; 32];
                    let join = Link::join(now, arguments.server, key.code(), seed).direct(false);
                    (
                        Party::Relayed(Box::new(Relayed::new(from, join))),
                        Party::Relayed(Box::new(Relayed::new(to, open))),
                    )
                }
                _ => (Party::Plain(from), Party::Plain(to)),
            };
            let player = |driver, machine| Player { driver, machine };
            players.receivers.push(player(receiver, to));
            players.until_ready()?;
            players.senders.push(player(sender, from));
            if arguments.kind == Kind::Relay {
                players.until_ready()?;
            }
        }
        players.until_ready()?;
        Ok(players)
    }

    /// Runs everybody until all are ready. The bare forwarder needs both sides of a pair.
    fn until_ready(&mut self) -> anyhow::Result<()> {
        let began = SystemInstant::now();
        if self.receivers.len() > self.senders.len() && self.receivers[0].machine.is_plain() {
            return Ok(());
        }
        loop {
            self.keep_alive()?;
            let mut all = self.senders.iter_mut().chain(&mut self.receivers);
            if all.all(|player| player.machine.is_ready()) {
                return Ok(());
            }
            if began.elapsed() > READY_MAX {
                bail!("the forwarder does not answer");
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn keep_alive(&mut self) -> std::io::Result<()> {
        let now = self.clock.now();
        for player in self.senders.iter_mut().chain(&mut self.receivers) {
            player.turn(now)?;
        }
        Ok(())
    }

    fn play(&mut self, arguments: &LoadArguments) -> anyhow::Result<LoadReport> {
        let began = SystemInstant::now();
        for player in self.senders.iter_mut().chain(&mut self.receivers) {
            player.machine.port().origin = began;
        }
        let length = std::time::Duration::from_secs(arguments.seconds);
        let (mut sent, mut progress) = (0_u64, SystemInstant::now());
        while began.elapsed() < length {
            let allowed = match arguments.rate {
                Some(rate) => (began.elapsed().as_secs_f64() * rate as f64) as u64,
                None => sent + PAIRS as u64,
            };
            let received = self.received();
            let stalled = progress.elapsed() > STALL;
            let under_way = sent.saturating_sub(received + self.lost());
            if sent < allowed && (under_way < WINDOW || stalled) {
                if stalled {
                    // Packets that have not arrived by now are lost.
                    self.receivers[0].machine.port().given_up += under_way;
                    progress = SystemInstant::now();
                }
                let now = self.clock.now();
                for player in &mut self.senders {
                    player.machine.port().pending = 1;
                    player.flush(now)?;
                }
                sent += PAIRS as u64;
            }
            let now = self.clock.now();
            for player in &mut self.receivers {
                player.receive(now)?;
            }
            if self.received() > received {
                progress = SystemInstant::now();
            }
            if arguments.rate.is_some() && sent >= allowed && self.received() + self.lost() >= sent
            {
                // Nothing is under way. A real-time program that never sleeps is made to, for much longer.
                std::thread::sleep(PAUSE);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let received = self.received();
        let times = self.receivers.iter_mut().map(|it| it.machine.port());
        let mut times: Vec<u32> = times.flat_map(|port| port.times.drain(..)).collect();
        times.sort_unstable();
        let at = |share| quantile(&times, share).map_or(0.0, |time| f64::from(time) / 1e3);
        Ok(LoadReport {
            sent,
            received,
            seconds,
            p50_us: at(0.5),
            p99_us: at(0.99),
        })
    }

    fn received(&mut self) -> u64 {
        let ports = self.receivers.iter_mut().map(|it| it.machine.port());
        ports.map(|port| port.received).sum()
    }

    fn lost(&mut self) -> u64 {
        self.receivers[0].machine.port().given_up
    }
}

impl Party {
    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

/// One socket's traffic.
struct Port {
    to: SocketAddr,
    header: Vec<u8>,
    size: usize,
    pending: u32,
    /// Sent until it comes back.
    registration: Option<[u8; 3]>,
    register_at: Instant,
    origin: SystemInstant,
    received: u64,
    given_up: u64,
    /// Nanoseconds under way.
    times: Vec<u32>,
}

impl Port {
    fn new(to: SocketAddr, size: usize) -> Self {
        Self {
            to,
            header: Vec::new(),
            size,
            pending: 0,
            registration: None,
            register_at: Instant::ZERO,
            origin: SystemInstant::now(),
            received: 0,
            given_up: 0,
            times: Vec::new(),
        }
    }

    fn registering(mut self, pair: u8, side: u8) -> Self {
        self.registration = Some([REGISTRATION, pair, side]);
        self
    }

    fn with_header(mut self, header: &[u8]) -> Self {
        self.header = header.to_vec();
        self
    }
}

impl Machine for Port {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        if datagram.payload.len() == 3 {
            self.registration = None;
            return;
        }
        // What others in the room send is none of the measurement.
        let stamp = match datagram.payload.get(1..9) {
            Some(stamp) if datagram.payload.len() == self.size => stamp,
            _ => return,
        };
        let stamp = u64::from_le_bytes(stamp.try_into().expect("eight bytes"));
        let now = self.origin.elapsed().as_nanos() as u64;
        self.received += 1;
        self.times
            .push(u32::try_from(now.saturating_sub(stamp)).unwrap_or(u32::MAX));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let one = |to, len| Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        };
        if let Some(registration) = self.registration
            && now >= self.register_at
        {
            self.register_at = now + Duration::from_millis(20);
            buffer[..3].copy_from_slice(&registration);
            return Some(one(self.to, 3));
        }
        self.pending = self.pending.checked_sub(1)?;
        let head = self.header.len();
        buffer[..head].copy_from_slice(&self.header);
        let stamp = self.origin.elapsed().as_nanos() as u64;
        let body = buffer.get_mut(head..head + self.size)?;
        // A data packet of the transport begins so.
        body[0] = 0x80;
        body[1..9].copy_from_slice(&stamp.to_le_bytes());
        Some(one(self.to, head + self.size))
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

/// First byte of a registration with the bare forwarder.
pub(super) const REGISTRATION: u8 = 0xF1;
/// Packets under way at most.
const WINDOW: u64 = 1_024;
/// Nothing arriving for so long means that what is under way is lost.
const STALL: std::time::Duration = std::time::Duration::from_millis(20);
/// Much shorter than the time between two rounds of packets.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(10);
const READY_MAX: std::time::Duration = std::time::Duration::from_secs(10);
