//! Those who have a seat: some talk and measure, others vanish without a word and come back from another socket.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use muse_bench_workload::control::Control;
use muse_drivers::Driver;
use muse_transport::token::ConnectToken;
use muse_transport::{Connect, ConnectionId, Event};
use serde::{Deserialize, Serialize};

use super::{Node, RELIABLE, SEATS, UNRELIABLE, token};
use crate::statistics::quantile;

/// The players' observations.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::hostile) struct SeatReport {
    /// Round trips of those who stay.
    pub(in crate::hostile) ms_p50: f64,
    pub(in crate::hostile) ms_p99: f64,
    pub(super) reliable_sent: u64,
    pub(super) reliable_received: u64,
    /// Times that somebody vanished.
    pub(super) left: u64,
    /// Times that they were back.
    pub(super) returned: u64,
    /// From the first packet of a handshake to the connection.
    pub(super) return_ms_p99: f64,
}

impl SeatReport {
    pub(in crate::hostile) fn reliable_percent(&self) -> f64 {
        100.0 * self.reliable_received as f64 / self.reliable_sent.max(1) as f64
    }
}

/// Takes all seats, and plays from `go` to `stop`.
pub(super) fn run(server: SocketAddr, leave: bool) -> anyhow::Result<()> {
    let control = Control::start();
    let mut crowd = Crowd::new(server)?;
    let deadline = Instant::now() + CONNECT_MAX;
    while crowd.players.iter().any(|player| !player.connected) {
        ensure!(Instant::now() < deadline, "not all seats can be taken");
        crowd.turn()?;
    }
    control.connected();
    while !control.has_started() {
        crowd.turn()?;
    }
    crowd.clear();
    while !control.has_stopped() {
        crowd.talk();
        if leave {
            crowd.replace_one()?;
        }
        crowd.turn()?;
    }
    // What is under way arrives, and whoever left last comes back.
    let deadline = Instant::now() + LAST_MAX;
    while !crowd.is_done() && Instant::now() < deadline {
        crowd.turn()?;
    }
    control.result(&crowd.report());
    Ok(())
}

struct Crowd {
    server: SocketAddr,
    begun: Instant,
    players: Vec<Player>,
    /// Messages of each kind that each of those who stay has sent.
    said: [u64; 2],
    replaced: u64,
    round_trips: Vec<f64>,
    returns: Vec<f64>,
    report: SeatReport,
}

/// Somebody with a seat.
struct Player {
    node: Node,
    token: ConnectToken,
    connection: ConnectionId,
    connected: bool,
    since: Instant,
}

impl Player {
    fn new(server: SocketAddr, number: usize, token: ConnectToken) -> anyhow::Result<Self> {
        let mut node = Node::new(SocketAddr::from(([127, 1, number as u8, 1], 0)))?;
        let how = Connect::token(token.clone());
        let connection = node.endpoint.connect(node.clock.now(), server, how)?;
        Ok(Self {
            node,
            token,
            connection,
            connected: false,
            since: Instant::now(),
        })
    }
}

impl Crowd {
    fn new(server: SocketAddr) -> anyhow::Result<Self> {
        let player = |number| Player::new(server, number, token(server, 1 + number as u64)?);
        Ok(Self {
            server,
            begun: Instant::now(),
            players: (0..SEATS).map(player).collect::<anyhow::Result<_>>()?,
            said: [0; 2],
            replaced: 0,
            round_trips: Vec::new(),
            returns: Vec::new(),
            report: SeatReport::default(),
        })
    }

    /// Begins to count.
    fn clear(&mut self) {
        self.begun = Instant::now();
        self.returns.clear();
        self.round_trips.clear();
        self.report = SeatReport::default();
    }

    /// Lets those who stay say what is due.
    fn talk(&mut self) {
        let passed = self.begun.elapsed();
        for (channel, every) in [(UNRELIABLE, UNRELIABLE_EVERY), (RELIABLE, RELIABLE_EVERY)] {
            let due = (passed.as_micros() / every.as_micros()) as u64;
            let said = &mut self.said[usize::from(channel)];
            if *said >= due {
                continue;
            }
            *said = due;
            let mut message = [7; MESSAGE_LEN];
            let sent_at = passed.as_nanos() as u64;
            message[..8].copy_from_slice(&sent_at.to_le_bytes());
            for player in &mut self.players[..STEADY] {
                let now = player.node.clock.now();
                let (endpoint, id) = (&mut player.node.endpoint, player.connection);
                if channel == RELIABLE {
                    self.report.reliable_sent += 1;
                }
                // One that is refused is missed in the end.
                let _ = endpoint.send(now, id, channel, &message);
            }
        }
    }

    /// One of the others vanishes and comes back from another socket, if it is time for that.
    fn replace_one(&mut self) -> anyhow::Result<()> {
        let due = (self.begun.elapsed().as_micros() / LEAVE_EVERY.as_micros()) as u64;
        if self.replaced >= due {
            return Ok(());
        }
        self.replaced = due;
        let number = STEADY + due as usize % (SEATS - STEADY);
        let player = &mut self.players[number];
        if !player.connected {
            // Still on the way back from the last time.
            return Ok(());
        }
        *player = Player::new(self.server, number, player.token.clone())?;
        self.report.left += 1;
        Ok(())
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        let mut message = Vec::new();
        for player in &mut self.players {
            let node = &mut player.node;
            let now = node.clock.now();
            node.driver.receive(now, &mut node.endpoint)?;
            while let Some(event) = node.endpoint.poll_event(&mut message) {
                match event {
                    Event::Connected { .. } => {
                        player.connected = true;
                        self.report.returned += 1;
                        let took = player.since.elapsed();
                        self.returns.push(took.as_secs_f64() * 1e3);
                    }
                    Event::Message {
                        channel, payload, ..
                    } => {
                        let sent_at = payload
                            .first_chunk()
                            .map(|bytes| u64::from_le_bytes(*bytes));
                        let sent_at = Duration::from_nanos(sent_at.unwrap_or_default());
                        let took = self.begun.elapsed().saturating_sub(sent_at);
                        self.round_trips.push(took.as_secs_f64() * 1e3);
                        self.report.reliable_received += u64::from(channel == RELIABLE);
                    }
                    Event::Refused { reason, .. } => anyhow::bail!("refused: {reason}"),
                    Event::Closed { reason, .. } => anyhow::bail!("closed: {reason:?}"),
                    _ => {}
                }
            }
            node.flush()?;
        }
        std::thread::sleep(TURN);
        Ok(())
    }

    fn is_done(&self) -> bool {
        let report = &self.report;
        report.returned == report.left && report.reliable_received == report.reliable_sent
    }

    fn report(mut self) -> SeatReport {
        self.round_trips.sort_by(f64::total_cmp);
        self.returns.sort_by(f64::total_cmp);
        SeatReport {
            ms_p50: quantile(&self.round_trips, 0.5).unwrap_or_default(),
            ms_p99: quantile(&self.round_trips, 0.99).unwrap_or_default(),
            return_ms_p99: quantile(&self.returns, 0.99).unwrap_or_default(),
            ..self.report
        }
    }
}

/// Players who stay; the others come and go.
const STEADY: usize = 30;
const UNRELIABLE_EVERY: Duration = Duration::from_millis(50);
const RELIABLE_EVERY: Duration = Duration::from_millis(500);
/// Time between two who vanish.
const LEAVE_EVERY: Duration = Duration::from_millis(50);
const MESSAGE_LEN: usize = 64;
const TURN: Duration = Duration::from_millis(2);
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// Time to wait for what is still on its way.
const LAST_MAX: Duration = Duration::from_secs(5);
