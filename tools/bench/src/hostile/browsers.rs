//! Browsers that open a session, one after the other, each from an address of its own: what an attack on their port delays.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use data_encoding::BASE64;
use muse_bench_workload::control::Control;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use wtransport::ClientConfig;
use wtransport::tls::Sha256Digest;

use super::http::upgrade;
use super::requests::Reach;
use super::{block_on, ready};
use crate::statistics::quantile;

/// The server.
#[derive(Args)]
pub(crate) struct BrowserArguments {
    /// The server's port for browsers.
    #[arg(long)]
    server: SocketAddr,
}

/// The times that sessions took to open.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BrowserReport {
    /// Sessions that were tried, of both kinds.
    pub(crate) count: u64,
    pub(crate) failed: u64,
    /// A failed one counts as one that took as long as a browser waits at the most.
    pub(crate) transport_ms_p99: f64,
    pub(crate) socket_ms_p99: f64,
}

/// The links that a page finds by `GET /link`.
pub(super) struct Links {
    pub(super) transport: SocketAddr,
    certificate: [u8; 32],
}

impl Links {
    pub(super) async fn find(server: SocketAddr) -> anyhow::Result<Self> {
        let body = Reach::new(server, None)?
            .ask(Ipv4Addr::new(127, 1, 0, 1), "GET /link", "")
            .await?;
        let links: serde_json::Value = serde_json::from_str(&body)?;
        let links = &links["webtransport"];
        let port = links["port"].as_u64().context("no port")?;
        let hash = links["certificates"][0].as_str().context("no hash")?;
        let hash = BASE64.decode(hash.as_bytes()).ok().context("not a hash")?;
        Ok(Self {
            transport: SocketAddr::new(server.ip(), u16::try_from(port)?),
            certificate: hash.try_into().ok().context("not a hash")?,
        })
    }
}

/// A client at an address of its own, which trusts the server's certificate.
pub(super) fn client_config(links: &Links, from: SocketAddr) -> ClientConfig {
    ClientConfig::builder()
        .with_bind_address(from)
        .with_server_certificate_hashes([Sha256Digest::new(links.certificate)])
        .build()
}

/// Opens sessions from `go` to `stop`.
pub(super) fn run(arguments: &BrowserArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let report = block_on(async {
        let links = Links::find(arguments.server).await?;
        ready(&control).await;
        let (mut times, mut report) = ([Vec::new(), Vec::new()], BrowserReport::default());
        while !control.has_stopped() {
            for (kind, times) in times.iter_mut().enumerate() {
                let [high, low] = (report.count as u16).to_be_bytes();
                let from = SocketAddr::from(([127, 1, high, low], 0));
                let begun = Instant::now();
                let opened = tokio::time::timeout(PATIENCE, async {
                    match kind {
                        0 => open_transport(&links, from).await,
                        _ => open_socket(arguments.server, from).await,
                    }
                });
                report.count += 1;
                let took = match opened.await {
                    Ok(Ok(())) => begun.elapsed(),
                    failed => {
                        if let Ok(Err(error)) = failed {
                            eprintln!("{error:#}");
                        }
                        report.failed += 1;
                        PATIENCE
                    }
                };
                times.push(took.as_secs_f64() * 1e3);
            }
            tokio::time::sleep(PAUSE).await;
        }
        let p99 = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            quantile(&times, 0.99).unwrap_or_default()
        });
        anyhow::Ok(BrowserReport {
            transport_ms_p99: p99[0],
            socket_ms_p99: p99[1],
            ..report
        })
    })?;
    control.result(&report);
    Ok(ExitCode::SUCCESS)
}

async fn open_transport(links: &Links, from: SocketAddr) -> anyhow::Result<()> {
    let endpoint = wtransport::Endpoint::client(client_config(links, from))?;
    let url = format!("https://{}/muse", links.transport);
    let connection = endpoint.connect(url).await?;
    connection.close(wtransport::VarInt::from_u32(0), b"");
    Ok(())
}

async fn open_socket(server: SocketAddr, from: SocketAddr) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from)?;
    let mut stream = socket.connect(server).await?;
    stream.write_all(upgrade("/muse", "").as_bytes()).await?;
    let mut answer = [0; 512];
    let len = stream.read(&mut answer).await?;
    ensure!(answer[..len].starts_with(b"HTTP/1.1 101"), "not opened");
    Ok(())
}

const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
