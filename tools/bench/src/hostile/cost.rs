//! The price of a hostile packet: CPU time that a server spends on it, beside the costliest honest packet of the same size and number of
//! frames, in one process and without sockets.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use muse_transport::congestion::Congestion;
use muse_transport::fuzzing::{Forgery, forge};
use muse_transport::{
    Connect, ConnectionId, Endpoint, Event, SeededEntropy, ServerKey, ServerOptions,
};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};
use rustix::time::{ClockId, clock_gettime};

use crate::muse_role::{RELIABLE, UNRELIABLE, config};
use muse_program::bars::{Bar, Verdict, settle};

/// Measures every forgery beside its honest counterpart, and judges the ratio.
pub(super) fn bars(verdict: Verdict) -> anyhow::Result<Vec<Bar>> {
    let cases = [
        (
            "fragments",
            Packet::Forged(|number| Forgery::LastFragment {
                channel: RELIABLE,
                number: number as u16,
                total: 16 << 20,
            }),
            Packet::Honest(1, 1_000),
        ),
        (
            "empty_messages",
            Packet::Forged(|_| Forgery::EmptyMessages {
                channel: UNRELIABLE,
            }),
            Packet::Honest(550, 0),
        ),
        (
            "path_challenges",
            Packet::Forged(|_| Forgery::PathChallenges),
            Packet::Honest(120, 7),
        ),
    ];
    let mut bars = Vec::new();
    for (name, forged, honest) in cases {
        bars.extend(settle(verdict, |_| {
            Ok(vec![median(format!("hostile_cost_{name}"), || {
                let forged = Pair::connect()?.micros_per_packet(forged)?;
                let honest = Pair::connect()?.micros_per_packet(honest)?;
                println!("  {name}: {forged:.2} us a packet, {honest:.2} us an honest one");
                Ok(forged / honest)
            })?])
        })?);
    }
    bars.extend(settle(verdict, |_| Ok(vec![recovered_acks()?]))?);
    Ok(bars)
}

/// An acknowledgement that calls everything recovered which arrived, beside an honest one of as many runs after losses.
fn recovered_acks() -> anyhow::Result<Bar> {
    median("hostile_cost_recovered_acks".to_owned(), || {
        let (forged, len) = Pair::connect()?.micros_per_ack(true)?;
        let (honest, honest_len) = Pair::connect()?.micros_per_ack(false)?;
        println!(
            "  recovered_acks: {forged:.2} us a packet of {len} bytes, {honest:.2} us an honest one of {honest_len}"
        );
        Ok(forged / honest)
    })
}

/// The median of some ratios.
fn median(name: String, mut ratio: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<Bar> {
    let ratios = (0..ROUNDS).map(|_| ratio());
    let mut ratios = ratios.collect::<anyhow::Result<Vec<_>>>()?;
    ratios.sort_by(f64::total_cmp);
    Ok(Bar::at_most(name, ratios[ROUNDS / 2], RATIO_MAX).timed())
}

/// A packet of the peer.
#[derive(Clone, Copy)]
enum Packet {
    /// Forged, given a number that rises.
    Forged(fn(u64) -> Forgery),
    /// So many unreliable messages of so many bytes.
    Honest(usize, usize),
}

/// A server and a client that exchange packets by hand.
struct Pair {
    server: Endpoint,
    client: Endpoint,
    connection: ConnectionId,
    now: Instant,
    message: Vec<u8>,
    forged: u64,
}

impl Pair {
    /// Connects, and lets both exchange packets for a while: an attack on what is remembered needs a past.
    fn connect() -> anyhow::Result<Self> {
        let mut entropy = SeededEntropy::danger_seeded(1);
        let key = ServerKey::generate(&mut entropy);
        let how = Connect::pinned(key.public());
        // What is measured is the price of a packet, not when it may be sent.
        let config = config("")?.congestion(Congestion::off()).build()?;
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
        server.listen(ServerOptions::new(key));
        let mut client = Endpoint::new(config, SeededEntropy::danger_seeded(3));
        let now = Instant::ZERO;
        let connection = client.connect(now, SERVER, how)?;
        let mut pair = Self {
            server,
            client,
            connection,
            now,
            message: Vec::new(),
            forged: 0,
        };
        for _ in 0..PAST {
            let packets = pair.packets(Packet::Honest(1, 64), 1)?;
            pair.serve(packets);
        }
        ensure!(pair.is_connected(), "the handshake failed");
        Ok(pair)
    }

    fn is_connected(&self) -> bool {
        self.client.connections().count() == 1 && self.server.connections().count() == 1
    }

    /// CPU time of the server for one packet.
    fn micros_per_packet(mut self, kind: Packet) -> anyhow::Result<f64> {
        let (mut spent, mut count) = (std::time::Duration::ZERO, 0);
        for _ in 0..BATCHES {
            let packets = self.packets(kind, BATCH)?;
            count += packets.len();
            spent += self.serve(packets);
        }
        Ok(spent.as_secs_f64() * 1e6 / count as f64)
    }

    /// CPU time of the server for one acknowledgement, and its length: the server sends, every third packet is lost, and the client acknowledges the
    /// others, or forges an acknowledgement of them first.
    fn micros_per_ack(mut self, forged: bool) -> anyhow::Result<(f64, usize)> {
        let id = self.server.connections().next().context("nobody")?;
        let (mut spent, mut count, mut longest) = (std::time::Duration::ZERO, 0_u32, 0);
        let mut buffer = [0; 1_200];
        for _ in 0..BATCHES {
            for number in 0..SENT_PER_ACK {
                self.server.send(self.now, id, UNRELIABLE, &[7; 16])?;
                while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
                    if number % 3 > 0 {
                        let packet = datagram(SERVER, &mut buffer[..transmit.len]);
                        self.client.handle_datagram(self.now, packet);
                    }
                }
            }
            while self.client.poll_event(&mut self.message).is_some() {}
            let mut packets = Vec::new();
            if forged {
                let (client, id) = (&mut self.client, self.connection);
                let forged = forge(client, self.now, id, Forgery::RecoveredArrived, &mut buffer);
                let (_, len) = forged.context("the connection is gone")?;
                packets.push(buffer[..len].to_vec());
            }
            // Later than an acknowledgement of unreliable messages waits.
            self.now += Duration::from_millis(500);
            self.client.handle_timeout(self.now);
            while let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer) {
                packets.push(buffer[..transmit.len].to_vec());
            }
            for (number, packet) in packets.iter_mut().enumerate() {
                let len = packet.len();
                let start = thread_time();
                self.server
                    .handle_datagram(self.now, datagram(CLIENT, packet));
                if number == 0 {
                    spent += thread_time() - start;
                    count += 1;
                    longest = longest.max(len);
                }
            }
            self.server.handle_timeout(self.now);
            while self.server.poll_event(&mut self.message).is_some() {}
        }
        ensure!(self.is_connected(), "the server has cut the connection");
        Ok((spent.as_secs_f64() * 1e6 / f64::from(count.max(1)), longest))
    }

    /// Lets the client send so many packets of a kind, and whatever it owes besides.
    fn packets(&mut self, kind: Packet, count: u32) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut packets = Vec::new();
        let mut buffer = [0; 1_200];
        for _ in 0..count {
            match kind {
                Packet::Forged(forgery) => {
                    self.forged += 1;
                    let forgery = forgery(self.forged);
                    let forged = forge(
                        &mut self.client,
                        self.now,
                        self.connection,
                        forgery,
                        &mut buffer,
                    );
                    let (_, len) = forged.context("the connection is gone")?;
                    packets.push(buffer[..len].to_vec());
                }
                Packet::Honest(messages, len) => {
                    for _ in 0..messages {
                        // Before it is connected there is nothing to send.
                        let message = &[7; 1_200][..len];
                        let _ = self
                            .client
                            .send(self.now, self.connection, UNRELIABLE, message);
                    }
                }
            }
            while let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer) {
                packets.push(buffer[..transmit.len].to_vec());
            }
        }
        Ok(packets)
    }

    /// Gives packets to the server and its answers to the client; returns the CPU time that the server took.
    fn serve(&mut self, mut packets: Vec<Vec<u8>>) -> std::time::Duration {
        let mut answers: Vec<Vec<u8>> = Vec::new();
        let mut buffer = [0; 1_500];
        let start = thread_time();
        for payload in &mut packets {
            self.server
                .handle_datagram(self.now, datagram(CLIENT, payload));
            while self.server.poll_event(&mut self.message).is_some() {}
        }
        if self
            .server
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.server.handle_timeout(self.now);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
            answers.push(buffer[..transmit.len].to_vec());
        }
        let spent = thread_time() - start;
        for payload in &mut answers {
            self.client
                .handle_datagram(self.now, datagram(SERVER, payload));
        }
        while let Some(event) = self.client.poll_event(&mut self.message) {
            debug_assert!(!matches!(event, Event::Refused { .. }));
        }
        if self
            .client
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.client.handle_timeout(self.now);
        }
        self.now += Duration::from_millis(10);
        spent
    }
}

fn datagram(from: SocketAddr, payload: &mut [u8]) -> Datagram<'_> {
    Datagram {
        from,
        ecn: Ecn::NotCapable,
        payload,
    }
}

fn thread_time() -> std::time::Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

const SERVER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::LOCALHOST,
    1,
));
const CLIENT: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::LOCALHOST,
    2,
));
/// Exchanges before anything is measured.
const PAST: u32 = 5_000;
const BATCHES: u32 = 200;
const BATCH: u32 = 20;
const ROUNDS: usize = 5;
/// Packets of the server that one acknowledgement is about: as many runs as one has.
const SENT_PER_ACK: u32 = 90;
/// The cost of a hostile packet beside an honest one at the most.
const RATIO_MAX: f64 = 4.0;
