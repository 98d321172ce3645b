//! `muse relay`: a relay, which connects players behind routers.
//!
//! This file has what both kinds of relay have in common: the address, the metrics, and how they end. The relays themselves are in `muse_program::relay`: [`v2`] is
//! the relay for Muse traffic, [`v1`] the one for clients of the older protocol.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use muse_program::relay::metrics::Metrics;
use muse_program::relay::{v1, v2};

use crate::interrupt::Interrupt;

/// The kind of relay, its address and its limits.
#[derive(Args)]
#[command(after_help = "Example: muse relay [::]:7788 --metrics 127.0.0.1:9100
         muse relay [::]:7788 --web 7788 --web-transport-port 7789
         muse relay --v1 0.0.0.0:7777

It prints one line when it is ready. Ctrl-C or SIGTERM drains it: no new clients are accepted, connected ones
may go on for --drain-seconds, then everything in the queues is sent and the connections are closed.")]
pub(crate) struct Arguments {
    /// Address to listen on, UDP, with --v1 also TCP; `[::]` takes IPv4 too, port 0 lets the system choose.
    #[arg(value_name = "HOST:PORT")]
    listen: String,
    /// Run the relay of protocol version 1 (docs/relay-v1.md).
    #[arg(long)]
    v1: bool,
    /// Serve Prometheus metrics over HTTP at this address.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Seconds that clients may go on after the signal to end.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    drain_seconds: u64,
    #[command(flatten)]
    web: v2::WebArguments,
    #[command(flatten)]
    limits: v2::LimitArguments,
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
    let mut server = match arguments.v1 {
        true => Server::V1(Box::new(v1::Server::bind(listen, &arguments.v1_limits)?)),
        false => {
            let server = v2::Server::bind(listen, &arguments.limits)?;
            Server::V2(Box::new(server.with_web(&arguments.web)?))
        }
    };
    let mut line = format!("ready {}", server.local_addr()?);
    if let Some(metrics) = &metrics {
        line += &format!(" metrics http://{}/metrics", metrics.address());
    }
    if let Some(web) = server.web_address() {
        line += &format!(" browsers http://{web}/link");
    }
    println!("{line}");
    while !interrupt.is_raised() {
        server.turn()?;
        if let Some(metrics) = &metrics {
            metrics.publish_if_asked(|| server.metrics());
        }
    }
    server.drain(Duration::from_secs(arguments.drain_seconds))?;
    Ok(ExitCode::SUCCESS)
}

/// The relay that was asked for.
enum Server {
    V1(Box<v1::Server>),
    V2(Box<v2::Server>),
}

impl Server {
    fn local_addr(&self) -> anyhow::Result<SocketAddr> {
        match self {
            Self::V1(server) => server.local_addr(),
            Self::V2(server) => server.local_addr(),
        }
    }

    fn web_address(&self) -> Option<SocketAddr> {
        match self {
            Self::V1(_) => None,
            Self::V2(server) => server.web_address(),
        }
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        match self {
            Self::V1(server) => server.turn().map(drop),
            Self::V2(server) => server.turn(),
        }
    }

    fn metrics(&self) -> String {
        match self {
            Self::V1(server) => server.metrics(),
            Self::V2(server) => server.metrics(),
        }
    }

    fn drain(self, time: Duration) -> anyhow::Result<()> {
        match self {
            Self::V1(server) => server.drain(time),
            Self::V2(server) => server.drain(time),
        }
    }
}

/// The first address of a name, with its port.
pub(crate) fn resolve(name: &str) -> anyhow::Result<SocketAddr> {
    name.to_socket_addrs()
        .with_context(|| format!("{name} is not HOST:PORT"))?
        .next()
        .with_context(|| format!("{name} has no address"))
}
