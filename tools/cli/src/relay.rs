//! `muse relay`: a relay, which connects players behind routers.
//!
//! This file has what both kinds of relay have in common: the address, the metrics, and how they end. The relays themselves are in `muse_program::relay`: [`v2`] is
//! the relay for Muse traffic, `v1` (feature `legacy`) the one for clients of the older protocol.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use muse_program::address::resolve;
use muse_program::relay::metrics::Metrics;
#[cfg(feature = "legacy")]
use muse_program::relay::v1;
use muse_program::relay::{RelayServer, v2};

use crate::interrupt::Interrupt;

/// The kind of relay, its address and its limits.
#[derive(Args)]
#[command(
    after_help = "Example: muse relay --listen [::]:7788 --open --metrics 127.0.0.1:9100
         muse relay --listen [::]:7788 --master-key KEY --web 7788 --web-transport-port 7789
         muse relay --v1 --listen 0.0.0.0:7777

It prints one line when it is ready. Ctrl-C or SIGTERM drains it: no new clients are accepted, connected ones
may go on for --drain-seconds, then everything in the queues is sent and the connections are closed."
)]
pub(crate) struct Arguments {
    /// Address to listen on, UDP, with --v1 also TCP; `[::]` takes IPv4 too, port 0 lets the system choose.
    #[arg(long, value_name = "HOST:PORT")]
    listen: String,
    /// Run the relay of protocol version 1 (docs/relay-v1.md), if it is built in (--features legacy).
    #[arg(long)]
    v1: bool,
    /// Serve Prometheus metrics over HTTP at this address.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Seconds that clients may go on after the signal to end.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    drain_seconds: u64,
    #[command(flatten)]
    hosts: v2::HostArguments,
    #[command(flatten)]
    web: v2::WebArguments,
    #[command(flatten)]
    limits: v2::LimitArguments,
    #[cfg(feature = "legacy")]
    #[command(flatten)]
    v1_limits: v1::LimitArguments,
}

/// Relays until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let listen = resolve(&arguments.listen)?;
    let metrics = match &arguments.metrics {
        Some(address) => Some(Metrics::serve(resolve(address)?)?),
        None => None,
    };
    let mut server: Box<dyn RelayServer> = match arguments.v1 {
        true => bind_v1(listen, arguments)?,
        false => {
            let server = v2::Server::bind(listen, &arguments.hosts, &arguments.limits)?;
            Box::new(server.with_web(&arguments.web)?)
        }
    };
    let mut line = format!("ready {}", server.local_addr()?);
    if let Some(metrics) = &metrics {
        line += &format!(" metrics http://{}/metrics", metrics.address());
    }
    if let Some(web) = server.web_address() {
        line += &format!(" browsers http://{web}/link");
    }
    if let Some(key) = server.key() {
        line += &format!(" key {key}");
    }
    println!("{line}");
    while !interrupt.is_raised() {
        server.serve()?;
        if let Some(metrics) = &metrics {
            metrics.publish_if_asked(|| server.metrics());
        }
    }
    server.drain(Duration::from_secs(arguments.drain_seconds))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "legacy")]
fn bind_v1(listen: SocketAddr, arguments: &Arguments) -> anyhow::Result<Box<dyn RelayServer>> {
    Ok(Box::new(v1::Server::bind(listen, &arguments.v1_limits)?))
}

#[cfg(not(feature = "legacy"))]
fn bind_v1(listen: SocketAddr, _: &Arguments) -> anyhow::Result<Box<dyn RelayServer>> {
    anyhow::bail!(
        "`muse relay --v1` is not built in; run it with: cargo run --release -p muse-cli --features legacy -- relay --v1 --listen {listen}"
    )
}
