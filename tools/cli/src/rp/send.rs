//! `muse rp send`: a client that sends numbered messages and prints what comes back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum, value_parser};
use muse_program::address::resolve;
use muse_rp::packet::PAYLOAD_MAX;
use muse_rp::{Channel, ConnectionId, EndReason, Event, HostOptions, SendError};
use muse_rp_driver::HostDriver;
use muse_wire::{Duration, Instant};

use super::events;
use crate::interrupt::Interrupt;

/// The server, and the messages.
#[derive(Args)]
#[command(
    after_help = "Example: muse rp send --to 127.0.0.1:7777 --channel reliable --type 300 --count 100 --size 64 --interval-ms 10

A payload begins with the message's number from 0, in four bytes, little-endian, as far as the size allows; the following bytes count up from
the number's low byte. It ends when everything is acknowledged and nothing has come back for a while.
Exit code 1: not connected, or not everything acknowledged."
)]
pub(super) struct Arguments {
    /// The server's name or address, and its reliable port.
    #[arg(long, value_name = "HOST:P")]
    to: String,
    /// Channel to send on.
    #[arg(long, value_enum, default_value_t = ChannelName::Reliable)]
    channel: ChannelName,
    /// The type of the messages.
    #[arg(long = "type", value_name = "T", default_value_t = 1)]
    kind: u16,
    /// Number of messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
    /// Bytes of payload of each.
    #[arg(long, value_name = "BYTES", default_value_t = 4, value_parser = value_parser!(u16).range(0..=PAYLOAD_MAX as i64))]
    size: u16,
    /// Time between messages in milliseconds; 0 for as fast as the window allows.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = value_parser!(u64).range(0..=3_600_000))]
    interval_ms: u64,
    /// Time without an answer after which it ends, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = value_parser!(u64).range(0..=3_600_000))]
    linger_ms: u64,
    /// Time before a ping is answered, in milliseconds. The original needs some; with 0 at both ends the round trip is that of the path.
    #[arg(long, value_name = "MS", default_value_t = 25, value_parser = value_parser!(u64).range(0..=3_600_000))]
    ping_answer_ms: u64,
    /// Time after which a server that does not answer pings is given up, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = value_parser!(u64).range(1_000..=3_600_000))]
    timeout_ms: u64,
    /// Time-out of each of five attempts to connect, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = value_parser!(u64).range(1..=3_600_000))]
    connect_ms: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ChannelName {
    Reliable,
    Partial,
}

/// Connects, sends, waits and ends.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let server = resolve(&arguments.to)?;
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let connect = Duration::from_millis(arguments.connect_ms);
    let options = HostOptions::default()
        .connect_timeout(connect, CONNECT_TRIES)
        .time_out(Duration::from_millis(arguments.timeout_ms))
        .ping_answer_delay(Duration::from_millis(arguments.ping_answer_ms));
    let mut driver = HostDriver::bind(any, [0, 0], options)?;
    let now = driver.now();
    let mut session = Session {
        connection: driver.connect(server)?,
        driver,
        channel: match arguments.channel {
            ChannelName::Reliable => Channel::Reliable,
            ChannelName::Partial => Channel::Partial,
        },
        server,
        next_at: None,
        quiet_since: now,
        ended: None,
        sent: 0,
    };
    let mut is_done = false;
    while !is_done && session.ended.is_none() && !interrupt.is_raised() {
        session.driver.poll()?;
        session.handle_events()?;
        session.send_due(arguments)?;
        session.driver.flush()?;
        is_done = session.is_done(arguments);
        if !is_done {
            session.driver.wait(Duration::MAX)?;
        }
    }
    session.driver.close()?;
    session.handle_events()?;
    match session.ended {
        Some(reason) if reason != EndReason::ByUs => bail!(
            "the connection ended ({reason}) after {} of {} messages were queued",
            session.sent,
            arguments.count
        ),
        _ if is_done => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

struct Session {
    driver: HostDriver,
    connection: ConnectionId,
    server: SocketAddr,
    channel: Channel,
    /// When the next message is due; `None` while not connected.
    next_at: Option<Instant>,
    /// When something last arrived or was still on the way.
    quiet_since: Instant,
    ended: Option<EndReason>,
    sent: u32,
}

impl Session {
    fn handle_events(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.driver.host().poll_event() {
            self.quiet_since = self.driver.now();
            match event {
                Event::Connected { .. } => {
                    self.next_at = Some(self.driver.now());
                    events::connected()?;
                }
                Event::Message(message) => events::received(&message)?,
                Event::Disconnected { reason, .. } => {
                    self.ended = Some(reason);
                    events::disconnected()?;
                }
                Event::ConnectFailed { reason, .. } => {
                    bail!("cannot connect to {}: {reason}", self.server)
                }
                other => tracing::debug!(?other, "event"),
            }
        }
        Ok(())
    }

    /// Queues the messages whose time has come and for which there is room.
    fn send_due(&mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let now = self.driver.now();
        while let Some(due) = self.next_at
            && due <= now
            && self.sent < arguments.count
            && self.ended.is_none()
        {
            let payload = payload(self.sent, arguments.size.into());
            let (host, id) = (self.driver.host(), self.connection);
            match host.send(id, self.channel, arguments.kind, &payload) {
                Ok(()) => self.sent += 1,
                Err(SendError::QueueFull(_)) => return Ok(()),
                Err(error) => bail!(error),
            }
            self.next_at = Some(due + Duration::from_millis(arguments.interval_ms));
        }
        Ok(())
    }

    fn is_done(&mut self, arguments: &Arguments) -> bool {
        let host = self.driver.host();
        let under_way = host.unacknowledged(self.connection, self.channel);
        if self.next_at.is_none() || self.sent < arguments.count || under_way > 0 {
            self.quiet_since = self.driver.now();
            return false;
        }
        self.driver.now() - self.quiet_since >= Duration::from_millis(arguments.linger_ms)
    }
}

fn payload(number: u32, size: usize) -> Vec<u8> {
    let mut payload: Vec<u8> = (0..size)
        .map(|offset| (number as u8).wrapping_add(offset as u8))
        .collect();
    let head = size.min(4);
    payload[..head].copy_from_slice(&number.to_le_bytes()[..head]);
    payload
}

const CONNECT_TRIES: u32 = 5;
