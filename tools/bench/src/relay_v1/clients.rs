//! The clients of a loaded relay: each a TCP connection and a UDP socket of its own, all in one thread.
//!
//! They read every few milliseconds without waiting for each socket, because readiness of hundreds of sockets would cost more than the
//! reading. What they say is spread evenly over time, as real clients' would be.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};
use clap::Args;
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions};
use muse_relay_v1::packet::{BROADCAST, DISCARD, DatagramHeader, STREAM_HEADER, StreamHeader};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use serde::{Deserialize, Serialize};

use super::hostile::Hostile;
use super::{DATA_LEN, TCP_PER_SECOND};

/// The number of clients and their messages.
#[derive(Args)]
pub(crate) struct ClientsArguments {
    /// The relay.
    #[arg(long)]
    server: SocketAddr,
    /// Clients.
    #[arg(long)]
    clients: usize,
    /// UDP packets a second of each.
    #[arg(long)]
    rate: u64,
    /// Seconds of traffic.
    #[arg(long)]
    seconds: u64,
    /// Others misbehave meanwhile.
    #[arg(long)]
    hostile: bool,
}

/// The clients' counters, from `go` on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientsReport {
    /// Broadcasts sent.
    pub(crate) udp_sent: u64,
    /// Broadcasts of others that arrived.
    pub(crate) udp_received: u64,
    /// Broadcasts sent.
    pub(crate) tcp_sent: u64,
    /// Broadcasts of others that arrived.
    pub(crate) tcp_received: u64,
    /// Connections that ended.
    pub(crate) cut: u64,
    /// Largest delay of the clients behind their own schedule.
    pub(crate) lag_ms_max: f64,
}

/// Connects, waits for `go`, talks, waits for what is under way, reports.
pub(super) fn run(arguments: &ClientsArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let mut crowd = Crowd::connect(arguments)?;
    crowd.talk(arguments.rate, WARM_UP)?;
    control.connected();
    while !control.has_started() {
        crowd.turn()?;
    }
    crowd.report = ClientsReport::default();
    crowd.talk(arguments.rate, Duration::from_secs(arguments.seconds))?;
    control.done();
    let report = crowd.report;
    while !control.has_stopped() {
        crowd.turn()?;
    }
    control.result(&report);
    Ok(())
}

struct Crowd {
    clients: Vec<OneClient>,
    hostile: Option<Hostile>,
    clock: Clock,
    next_turn: Instant,
    buffer: Vec<u8>,
    report: ClientsReport,
}

struct OneClient {
    tcp: TcpStream,
    udp: UdpDriver,
    datagrams: Datagrams,
    /// Rest of the last packet: bytes of data to come, or the bytes of its header that have come.
    data_left: usize,
    header: Vec<u8>,
    ended: bool,
}

/// Counts what comes, and sends what it is given.
struct Datagrams {
    server: SocketAddr,
    own: u8,
    counter: u32,
    received: u64,
    outgoing: Vec<Vec<u8>>,
}

impl Crowd {
    fn connect(arguments: &ClientsArguments) -> anyhow::Result<Self> {
        let clients = (0..arguments.clients).map(|_| OneClient::connect(arguments.server));
        let clock = Clock::start();
        Ok(Self {
            clients: clients.collect::<anyhow::Result<_>>()?,
            hostile: match arguments.hostile {
                true => Some(Hostile::connect(arguments.server)?),
                false => None,
            },
            next_turn: clock.now(),
            clock,
            buffer: vec![0; 256 << 10],
            report: ClientsReport::default(),
        })
    }

    /// Every client sends at its rate for `time`; then all is awaited that is still under way.
    fn talk(&mut self, rate: u64, time: Duration) -> anyhow::Result<()> {
        let count = self.clients.len() as u64;
        let start = self.clock.now();
        let (mut udp, mut tcp) = (0, 0);
        loop {
            let passed = (self.clock.now() - start).min(time).as_micros();
            let due = |per_second: u64| count * per_second * passed / 1_000_000;
            while udp < due(rate) {
                self.clients[(udp % count) as usize].datagrams.say();
                udp += 1;
            }
            while tcp < due(TCP_PER_SECOND) {
                self.clients[(tcp % count) as usize].say_tcp()?;
                tcp += 1;
            }
            self.turn()?;
            if passed >= time.as_micros() {
                break;
            }
        }
        (self.report.udp_sent, self.report.tcp_sent) = (udp, tcp);
        let deadline = self.clock.now() + LAST_WORDS_MAX;
        while self.clock.now() < deadline && !self.has_all() {
            self.turn()?;
        }
        Ok(())
    }

    fn has_all(&self) -> bool {
        let others = self.clients.len() as u64 - 1;
        let report = &self.report;
        report.udp_received >= report.udp_sent * others
            && report.tcp_received >= report.tcp_sent * others
    }

    /// Takes in and sends what there is, then sleeps for the rest of the turn.
    fn turn(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        for client in &mut self.clients {
            client.udp.flush(now, &mut client.datagrams)?;
            client.udp.receive(now, &mut client.datagrams)?;
            self.report.udp_received += std::mem::take(&mut client.datagrams.received);
            self.report.tcp_received += client.read(&mut self.buffer)?;
        }
        if let Some(hostile) = &mut self.hostile {
            hostile.turn();
        }
        self.report.cut = self.clients.iter().filter(|client| client.ended).count() as u64;
        self.next_turn += TURN;
        let now = self.clock.now();
        match self.next_turn > now {
            true => std::thread::sleep(self.clock.until(self.next_turn).into()),
            false => {
                let lag = (now - self.next_turn).as_millis_f64();
                self.report.lag_ms_max = self.report.lag_ms_max.max(lag);
                self.next_turn = now;
            }
        }
        Ok(())
    }
}

impl OneClient {
    fn connect(server: SocketAddr) -> anyhow::Result<Self> {
        let mut tcp = TcpStream::connect(server).context("cannot connect to the relay")?;
        let mut welcome = [0; STREAM_HEADER + 1];
        tcp.read_exact(&mut welcome)
            .context("the relay refused a client")?;
        tcp.set_nodelay(true)?;
        tcp.set_nonblocking(true)?;
        // Clients of the original protocol know nothing of coalesced datagrams.
        let options = UdpOptions::default().gro(false).ecn(false);
        let mut udp = UdpDriver::bind(SocketAddr::new(tcp.local_addr()?.ip(), 0), &options)?;
        let own = welcome[STREAM_HEADER];
        let mut datagrams = Datagrams {
            server,
            own,
            counter: 0,
            received: 0,
            outgoing: Vec::new(),
        };
        datagrams.queue(DISCARD, &[]);
        udp.flush(Instant::ZERO, &mut datagrams)?;
        Ok(Self {
            tcp,
            udp,
            datagrams,
            data_left: 0,
            header: Vec::new(),
            ended: false,
        })
    }

    fn say_tcp(&mut self) -> anyhow::Result<()> {
        let header = StreamHeader {
            length: DATA_LEN as u16,
            control: BROADCAST,
        };
        let packet = [&header.emit()[..], &[7; DATA_LEN]].concat();
        // The relay reads a client that sends so little at once.
        let written = self.tcp.write(&packet);
        ensure!(
            self.ended || matches!(written, Ok(len) if len == packet.len()),
            "the relay does not read: {written:?}"
        );
        Ok(())
    }

    /// Reads what there is and counts whole packets.
    fn read(&mut self, buffer: &mut [u8]) -> anyhow::Result<u64> {
        let len = match self.tcp.read(buffer) {
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(_) => 0,
        };
        self.ended |= len == 0;
        let mut rest = &buffer[..len];
        let mut packets = 0;
        while !rest.is_empty() {
            let take = match self.data_left {
                0 => STREAM_HEADER - self.header.len(),
                left => left,
            };
            let (taken, after) = rest.split_at(take.min(rest.len()));
            rest = after;
            if self.data_left > 0 {
                self.data_left -= taken.len();
                packets += u64::from(self.data_left == 0);
                continue;
            }
            self.header.extend_from_slice(taken);
            if let Ok(header) = <[u8; STREAM_HEADER]>::try_from(&self.header[..]) {
                self.data_left = usize::from(StreamHeader::parse(header)?.length);
                self.header.clear();
            }
        }
        Ok(packets)
    }
}

impl Datagrams {
    fn say(&mut self) {
        self.counter += 1;
        self.queue(0, &[7; DATA_LEN]);
    }

    fn queue(&mut self, control: u8, data: &[u8]) {
        let header = DatagramHeader {
            kind: KIND,
            control,
            time: self.counter,
            address: self.own,
        };
        let packet = [&header.emit(data.len() as u16)[..], data].concat();
        self.outgoing.push(packet);
    }
}

impl Machine for Datagrams {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        let header = DatagramHeader::parse(datagram.payload);
        let ours = |header: DatagramHeader| header.kind == KIND && !header.has(DISCARD);
        self.received += u64::from(header.is_ok_and(|(header, _)| ours(header)));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let packet = self.outgoing.pop()?;
        buffer[..packet.len()].copy_from_slice(&packet);
        Some(Transmit {
            to: self.server,
            len: packet.len(),
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

/// The tag of the clients' packets.
const KIND: u8 = 1;
const TURN: Duration = Duration::from_millis(10);
const WARM_UP: Duration = Duration::from_secs(1);
/// Time to wait for what is still under way.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);
