//! The workload whose instructions are counted: 50 clients and a server in memory, in virtual time.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, SeededEntropy,
    ServerKey, ServerOptions,
};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use serde::{Deserialize, Serialize};

/// The server's work while it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EchoReport {
    /// Messages sent back.
    pub(crate) echoes: u64,
    /// Packets taken in.
    pub(crate) packets_received: u64,
    /// Packets sent.
    pub(crate) packets_sent: u64,
}

/// Runs the workload and reports what was done.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let report = Crowd::new(CLIENTS)?.run(TICKS_WARM_UP, TICKS)?;
    println!("result {}", serde_json::to_string(&report)?);
    Ok(ExitCode::SUCCESS)
}

/// A tick that callgrind counts, which finds it by name.
#[inline(never)]
fn server_tick_counted(server: &mut Server, now: Instant, report: &mut EchoReport) {
    let done = server_tick(server, now);
    report.echoes += done.echoes;
    report.packets_received += done.packets_received;
    report.packets_sent += done.packets_sent;
}

/// The tick of a server that sends everything back.
#[inline(never)]
fn server_tick(server: &mut Server, now: Instant) -> EchoReport {
    let mut report = EchoReport::default();
    for (from, packet) in &mut server.inbox.packets {
        let datagram = Datagram {
            from: *from,
            ecn: Ecn::NotCapable,
            payload: packet,
        };
        server.endpoint.handle_datagram(now, datagram);
        report.packets_received += 1;
    }
    while let Some(event) = server.endpoint.poll_event(&mut server.message) {
        if let Event::Message {
            connection,
            channel,
            payload,
        } = event
        {
            let sent = server.endpoint.send(now, connection, channel, payload);
            report.echoes += u64::from(sent.is_ok());
        }
    }
    if server.endpoint.poll_timeout().is_some_and(|due| due <= now) {
        server.endpoint.handle_timeout(now);
    }
    // The transport writes each packet into a buffer of the driver's; what becomes of it is not counted.
    let (bytes, used) = (&mut server.outbox.bytes, &mut server.outbox.used);
    while let Some(transmit) = server.endpoint.poll_transmit(now, &mut bytes[*used..]) {
        server.outbox.packets.push((*used, transmit));
        *used += transmit.len;
        report.packets_sent += 1;
    }
    report
}

struct Server {
    endpoint: Endpoint,
    inbox: Inbox,
    outbox: Outbox,
    message: Vec<u8>,
}

#[derive(Default)]
struct Inbox {
    packets: Vec<(SocketAddr, Vec<u8>)>,
}

struct Outbox {
    bytes: Vec<u8>,
    used: usize,
    /// Position of each in the bytes.
    packets: Vec<(usize, Transmit)>,
}

struct Client {
    endpoint: Endpoint,
    connection: ConnectionId,
    is_connected: bool,
}

struct Crowd {
    server: Server,
    clients: Vec<Client>,
    echoes: u64,
}

impl Crowd {
    fn new(clients: u16) -> anyhow::Result<Self> {
        let config = Config::new(PROTOCOL)
            .channel(ChannelConfig::new(Delivery::Unreliable))
            .channel(ChannelConfig::new(Delivery::ReliableOrdered))
            .build()?;
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
        let public = key.public();
        let mut endpoint = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
        endpoint.listen(ServerOptions::new(key));
        let client = |number: u16| {
            let entropy = SeededEntropy::danger_seeded(10 + u64::from(number));
            let mut endpoint = Endpoint::new(config.clone(), entropy);
            let how = Connect::pinned(public);
            let connection = endpoint.connect(Instant::ZERO, SERVER, how)?;
            anyhow::Ok(Client {
                endpoint,
                connection,
                is_connected: false,
            })
        };
        Ok(Self {
            server: Server {
                endpoint,
                inbox: Inbox::default(),
                outbox: Outbox {
                    bytes: vec![0; OUTBOX_LEN],
                    used: 0,
                    packets: Vec::new(),
                },
                message: Vec::new(),
            },
            clients: (0..clients).map(client).collect::<anyhow::Result<_>>()?,
            echoes: 0,
        })
    }

    /// Ticks until all is in its steady state, then as often again as asked, counting.
    fn run(mut self, warm_up: u64, ticks: u64) -> anyhow::Result<EchoReport> {
        let mut report = EchoReport::default();
        for tick in 0..warm_up + ticks {
            let now = Instant::from_micros(tick * TICK.as_micros());
            self.clients_send(now, tick)?;
            match tick < warm_up {
                true => _ = server_tick(&mut self.server, now),
                false => server_tick_counted(&mut self.server, now, &mut report),
            }
            self.deliver(now + TICK / 2)?;
        }
        let connected = self.clients.iter().filter(|client| client.is_connected);
        ensure!(
            connected.count() == self.clients.len(),
            "not all clients connected"
        );
        ensure!(
            self.echoes >= report.echoes,
            "echoes were lost without a network"
        );
        Ok(report)
    }

    fn clients_send(&mut self, now: Instant, tick: u64) -> anyhow::Result<()> {
        self.server.inbox.packets.clear();
        let mut buffer = [0; PACKET_LEN_MAX];
        for (number, client) in self.clients.iter_mut().enumerate() {
            let Client {
                endpoint,
                connection,
                ..
            } = client;
            let turn = tick + number as u64;
            if client.is_connected && turn.is_multiple_of(3) {
                endpoint.send(now, *connection, 0, &[7; 64])?;
            }
            if client.is_connected && turn.is_multiple_of(31) {
                endpoint.send(now, *connection, 1, &[8; 64])?;
            }
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            let here = client_address(number as u16);
            while let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) {
                let packets = transmit
                    .datagrams(&buffer)
                    .map(|packet| (here, packet.to_vec()));
                self.server.inbox.packets.extend(packets);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, now: Instant) -> anyhow::Result<()> {
        let Outbox {
            bytes,
            used,
            packets,
        } = &mut self.server.outbox;
        for (start, transmit) in packets.drain(..) {
            let client = usize::from(transmit.to.port()).checked_sub(1);
            let client = client.and_then(|number| self.clients.get_mut(number));
            let client = client.context("a packet to nobody")?;
            let packets = &mut bytes[start..start + transmit.len];
            for payload in packets.chunks_mut(transmit.segment.unwrap_or(transmit.len)) {
                let (from, ecn) = (SERVER, Ecn::NotCapable);
                client
                    .endpoint
                    .handle_datagram(now, Datagram { from, ecn, payload });
            }
        }
        *used = 0;
        for client in &mut self.clients {
            while let Some(event) = client.endpoint.poll_event(&mut self.server.message) {
                match event {
                    Event::Connected { .. } => client.is_connected = true,
                    Event::Message { .. } => self.echoes += 1,
                    _ => (),
                }
            }
        }
        Ok(())
    }
}

/// Clients are told apart by their port alone.
fn client_address(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], number + 1))
}

/// The function that is counted, by callgrind's name for it.
pub(super) const MEASURED_FUNCTION: &str = "server_tick_counted";
/// Description of the workload behind the figure.
pub(super) const DESCRIPTION: &str = "50 clients, each 20 unreliable and 2 reliable messages/s of 64 bytes, echoed once a tick of 16 ms; server's endpoint, without sockets";

const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    9,
);
const PROTOCOL: u64 = 0x6d75_7365_2063_6f73;
const CLIENTS: u16 = 50;
const TICK: Duration = Duration::from_millis(16);
/// Until connections are made and paths are probed.
const TICKS_WARM_UP: u64 = 600;
const TICKS: u64 = 600;
const PACKET_LEN_MAX: usize = 65_536;
const OUTBOX_LEN: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_echoed() {
        let report = Crowd::new(5)
            .and_then(|crowd| crowd.run(100, 93))
            .expect("it runs");
        // In 93 ticks each client sends 31 unreliable and 3 reliable messages.
        assert_eq!(report.echoes, 5 * 34);
    }
}
