//! Attacks on the port of WebTransport, below WebTransport itself: QUIC that is never completed, never used, or none.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::{Args, ValueEnum};
use muse_bench_workload::control::Control;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use wtransport::quinn;

use super::attacker::AttackReport;
use super::browsers::{Links, client_config};
use super::{block_on, ready};

/// An attack on a port of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuicAttack {
    /// First messages of handshakes that never go on, from many networks.
    HalfOpen,
    /// Handshakes that are closed as soon as they are begun, from many networks.
    OpenedAndClosed,
    /// Connections on which nothing is asked for, from one address.
    Unused,
    /// Random bytes behind the header of a first message.
    QuicGarbage,
}

/// The server and the attack.
#[derive(Args)]
pub(crate) struct QuicArguments {
    /// The server's port for browsers.
    #[arg(long)]
    server: SocketAddr,
    /// The attack.
    #[arg(long)]
    attack: QuicAttack,
    /// Packets a second; or connections at a time of those that are not used.
    #[arg(long)]
    amount: u64,
}

/// Attacks from `go` to `stop`.
pub(super) fn run(arguments: &QuicArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let report = block_on(async {
        let links = Links::find(arguments.server).await?;
        match arguments.attack {
            QuicAttack::Unused => hold(&control, &links, arguments.amount).await,
            attack => flood(&control, &links, attack, arguments.amount).await,
        }
    })?;
    control.result(&report);
    Ok(ExitCode::SUCCESS)
}

/// Sends packets from many addresses, at a rate.
async fn flood(
    control: &Control,
    links: &Links,
    attack: QuicAttack,
    rate: u64,
) -> anyhow::Result<AttackReport> {
    let handshakes = handshakes(links).await?;
    let mut sockets = Vec::new();
    for number in 0..ADDRESSES {
        let address = SocketAddr::from(([127, 66, number, 1], 0));
        sockets.push(std::net::UdpSocket::bind(address)?);
    }
    for socket in &sockets {
        socket.set_nonblocking(true)?;
    }
    ready(control).await;
    let (begun, mut sent, mut report) = (Instant::now(), 0_u64, AttackReport::default());
    let mut rng = fastrand::Rng::with_seed(1);
    while !control.has_stopped() {
        let due = (begun.elapsed().as_secs_f64() * rate as f64) as u64;
        for _ in 0..due.saturating_sub(sent).min(BURST_MAX) {
            let [mut opens, closes] = handshakes[sent as usize % handshakes.len()].clone();
            if attack == QuicAttack::QuicGarbage {
                rng.fill(&mut opens[HEADER_LEN..]);
            }
            let packets = match attack {
                QuicAttack::OpenedAndClosed => vec![opens, closes],
                _ => vec![opens],
            };
            let socket = &sockets[sent as usize % sockets.len()];
            sent += 1;
            for packet in packets {
                // A full buffer is what a flood meets.
                if socket.send_to(&packet, links.transport).is_ok() {
                    report.sent += 1;
                    report.sent_bytes += packet.len() as u64;
                }
            }
        }
        sent = sent.max(due.saturating_sub(BURST_MAX));
        let mut answer = [0; 2_000];
        for socket in &sockets {
            while socket.recv(&mut answer).is_ok() {}
        }
        tokio::time::sleep(TURN).await;
    }
    Ok(report)
}

/// The two packets of clients that open a connection and close it at once, as they send them to somebody who never answers.
async fn handshakes(links: &Links) -> anyhow::Result<Vec<[Vec<u8>; 2]>> {
    let nobody = UdpSocket::bind("127.0.0.1:0").await?;
    let to = nobody.local_addr()?;
    let endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let config = client_config(links, SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = config.quic_config();
    let mut all = Vec::with_capacity(HANDSHAKES);
    let mut buffer = [0; 2_000];
    while all.len() < HANDSHAKES {
        let connecting = endpoint.connect_with(config.clone(), to, "localhost")?;
        let len = tokio::time::timeout(PATIENCE, nobody.recv(&mut buffer)).await??;
        let opens = buffer[..len].to_vec();
        drop(connecting);
        let len = tokio::time::timeout(PATIENCE, nobody.recv(&mut buffer)).await??;
        let closes = buffer[..len].to_vec();
        let same = opens.get(5..HEADER_LEN) == closes.get(5..HEADER_LEN);
        ensure!(same && len >= HEADER_LEN, "not what a client sends");
        all.push([opens, closes]);
    }
    Ok(all)
}

/// Keeps so many connections open at a time, without a word on them.
async fn hold(control: &Control, links: &Links, connections: u64) -> anyhow::Result<AttackReport> {
    let at = SocketAddr::from(([127, 66, 1, 1], 0));
    let config = client_config(links, at).quic_config().clone();
    let (server, opened) = (links.transport, Arc::new(AtomicU64::new(0)));
    let endpoint = quinn::Endpoint::client(at)?;
    ready(control).await;
    let mut holders = JoinSet::new();
    for _ in 0..connections {
        let (endpoint, config, opened) = (endpoint.clone(), config.clone(), Arc::clone(&opened));
        holders.spawn(async move {
            loop {
                opened.fetch_add(1, Ordering::Relaxed);
                if let Ok(connecting) = endpoint.connect_with(config.clone(), server, "localhost")
                    && let Ok(connection) = connecting.await
                {
                    connection.closed().await;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    while !control.has_stopped() {
        tokio::time::sleep(TURN).await;
    }
    holders.shutdown().await;
    let sent = opened.load(Ordering::Relaxed);
    ensure!(sent > 0, "no connection was tried");
    Ok(AttackReport {
        sent,
        sent_bytes: sent * HANDSHAKE_BYTES,
        cut: 0,
    })
}

/// Addresses of the attacker, each in another network of 256.
const ADDRESSES: u8 = 32;
/// Different handshakes; after these they begin again.
const HANDSHAKES: usize = 1_000;
/// Bytes up to the end of the connection's id.
const HEADER_LEN: usize = 14;
/// Bytes that a client sends for a handshake: two packets of full length.
const HANDSHAKE_BYTES: u64 = 2_400;
const BURST_MAX: u64 = 512;
const TURN: Duration = Duration::from_millis(2);
/// Time until a connection that was closed comes again.
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);
