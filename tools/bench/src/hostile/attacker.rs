//! One attacker: a client whose connections are real and whose packets are not, at a stated rate.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, SystemEntropy, UdpDriver, UdpOptions};
use muse_transport::fuzzing::{Forgery, forge};
use muse_transport::{Connect, ConnectionId, Endpoint, Event, ServerPublicKey};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use serde::{Deserialize, Serialize};

use crate::muse_role;

/// An attack behind the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// Last fragments of the largest messages, on every kind of channel.
    Fragments,
    /// Packets full of empty messages.
    EmptyMessages,
    /// Acknowledgements that call all packets recovered which arrived.
    RecoveredAcks,
    /// Acknowledgements that call all packets recovered, also those that were never sent.
    FalseAcks,
    /// Packets full of path challenges.
    PathChallenges,
    /// One honest packet again and again.
    Replays,
    /// Random bytes behind the id of a connection.
    Garbage,
}

impl Attack {
    /// The name in bars.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        let name = value.map_or_else(String::new, |value| value.get_name().to_owned());
        name.replace('-', "_")
    }
}

/// The server and the attack.
#[derive(Args)]
pub struct AttackArguments {
    /// The server.
    #[arg(long)]
    server: SocketAddr,
    /// Its public key, if it is a server of Biobot; by default one of the workloads.
    #[arg(long)]
    biobot_key: Option<ServerPublicKey>,
    /// The attack.
    #[arg(long)]
    attack: Attack,
    /// Hostile packets a second.
    #[arg(long)]
    rate: u64,
    /// Connections that send them.
    #[arg(long, default_value_t = 4)]
    connections: usize,
}

/// Packets sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttackReport {
    /// Hostile packets.
    pub(crate) sent: u64,
    /// Their payload.
    pub(crate) sent_bytes: u64,
    /// Connections that the server ended.
    pub(crate) cut: u64,
}

/// Connects, and attacks from `go` to `stop`.
pub(crate) fn run(arguments: &AttackArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let (config, key, message_max) = match arguments.biobot_key {
        Some(key) => {
            let config = muse_biobot::net::protocol().0.config();
            (config.build()?, key, muse_biobot::MESSAGE_MAX)
        }
        // The transport's default.
        None => (
            muse_role::config("")?,
            muse_role::server_key().public(),
            16 << 20,
        ),
    };
    let mut hostile = Hostile {
        channels: config.channels().len(),
        message_max,
        endpoint: Endpoint::new(config, SystemEntropy::new()?),
        connections: Vec::new(),
        connected: 0,
        attack: arguments.attack,
        forged: 0,
        left: 0,
        replayed: None,
        rng: fastrand::Rng::with_seed(1),
        report: AttackReport::default(),
    };
    let mut driver = UdpDriver::bind((Ipv4Addr::LOCALHOST, 0).into(), &UdpOptions::default())?;
    let clock = Clock::start();
    let deadline = clock.now() + CONNECT_MAX;
    for _ in 0..arguments.connections {
        let how = Connect::pinned(key).timeout(CONNECT_MAX);
        let id = hostile
            .endpoint
            .connect(clock.now(), arguments.server, how)?;
        hostile.connections.push(id);
    }
    while hostile.connected < arguments.connections {
        ensure!(
            clock.now() < deadline,
            "only {} connected",
            hostile.connected
        );
        hostile.turn(&clock, &mut driver)?;
    }
    control.connected();
    while !control.has_started() {
        hostile.turn(&clock, &mut driver)?;
    }
    let start = clock.now();
    while !control.has_stopped() {
        let due = (clock.now() - start).as_micros() * arguments.rate / 1_000_000;
        hostile.left = (due.saturating_sub(hostile.forged) as usize).min(BURST_MAX);
        hostile.turn(&clock, &mut driver)?;
    }
    control.result(&hostile.report);
    Ok(ExitCode::SUCCESS)
}

/// An endpoint that keeps its connections alive, with forged packets between its own.
struct Hostile {
    endpoint: Endpoint,
    channels: usize,
    message_max: usize,
    connections: Vec<ConnectionId>,
    connected: usize,
    attack: Attack,
    forged: u64,
    /// Hostile packets that are due.
    left: usize,
    /// The packet that is replayed, and to whom.
    replayed: Option<(SocketAddr, Vec<u8>)>,
    rng: fastrand::Rng,
    report: AttackReport,
}

impl Hostile {
    fn turn(&mut self, clock: &Clock, driver: &mut UdpDriver) -> anyhow::Result<()> {
        let now = clock.now();
        driver.receive(now, self)?;
        // Something that the server sends back: it takes packets of its own to acknowledge them, and some hundred until a number is left out.
        let echoes = match self.attack {
            Attack::RecoveredAcks => 1,
            Attack::FalseAcks => 8,
            _ => 0,
        };
        for connection in &self.connections {
            for _ in 0..echoes {
                let sent = self.endpoint.send(now, *connection, 0, &[7; ECHO_LEN]);
                // What it says besides is received from it, too.
                self.report.sent_bytes += if sent.is_ok() { ECHO_LEN as u64 } else { 0 };
            }
        }
        let mut message = Vec::new();
        while let Some(event) = self.endpoint.poll_event(&mut message) {
            match event {
                Event::Connected { .. } => self.connected += 1,
                Event::Refused { reason, .. } => anyhow::bail!("refused: {reason}"),
                Event::Closed { .. } => self.report.cut += 1,
                _ => (),
            }
        }
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.handle_timeout(now);
        }
        driver.flush(now, self)?;
        std::thread::sleep(TURN);
        Ok(())
    }

    fn forge(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        if let Some((to, packet)) = &self.replayed {
            buffer.get_mut(..packet.len())?.copy_from_slice(packet);
            return Some((*to, packet.len()));
        }
        let turn = self.forged as usize;
        let connection = *self.connections.get(turn % self.connections.len())?;
        // It begins when the server must have left out a number: false acknowledgements look like losses, and make it send less.
        if self.attack == Attack::FalseAcks {
            let stats = self.endpoint.stats(connection)?;
            if stats.packets_received < FALSE_FROM {
                return None;
            }
        }
        let forgery = match self.attack {
            Attack::Fragments => Forgery::LastFragment {
                channel: (turn / self.connections.len() % self.channels) as u8,
                number: turn as u16,
                total: self.message_max as u32,
            },
            // Channel 0 is unreliable in both protocols.
            Attack::EmptyMessages => Forgery::EmptyMessages { channel: 0 },
            Attack::RecoveredAcks => Forgery::RecoveredArrived,
            Attack::FalseAcks => Forgery::Recovered,
            Attack::PathChallenges | Attack::Replays | Attack::Garbage => Forgery::PathChallenges,
        };
        let buffer = buffer.get_mut(..DATAGRAM_LEN)?;
        let (to, len) = forge(&mut self.endpoint, now, connection, forgery, buffer)?;
        match self.attack {
            Attack::Replays => self.replayed = Some((to, buffer[..len].to_vec())),
            Attack::Garbage => self.rng.fill(&mut buffer[HEADER_LEN..len]),
            _ => (),
        }
        Some((to, len))
    }
}

impl Machine for Hostile {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        while self.left > 0 {
            self.left -= 1;
            self.forged += 1;
            let Some((to, len)) = self.forge(now, buffer) else {
                continue;
            };
            self.report.sent += 1;
            self.report.sent_bytes += len as u64;
            return Some(Transmit {
                to,
                len,
                segment: None,
                ecn: Ecn::NotCapable,
            });
        }
        self.endpoint.poll_transmit(now, buffer)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

/// Bytes of a message that servers of the workloads send back.
const ECHO_LEN: usize = 64;
/// Packets of a server among which there is one number that was left out.
const FALSE_FROM: u64 = 300;
/// Bytes of a forged packet at the most.
const DATAGRAM_LEN: usize = 1_200;
/// Bytes of a packet that name the connection and the packet.
const HEADER_LEN: usize = 7;
const CONNECT_MAX: Duration = Duration::from_secs(20);
const TURN: std::time::Duration = std::time::Duration::from_millis(2);
/// Hostile packets of one turn; a turn that comes late does not make good for all that it missed.
const BURST_MAX: usize = 512;
