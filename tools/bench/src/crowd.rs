//! A crowd: one server and a process of many clients that talk at a steady rate, for the benchmarks of many
//! connections and of floods.
//!
//! Both are driven by the line protocol of [`muse_bench_workload::control`], as the programs of the workloads are. The
//! server sends every message back on the channel it came on; each side counts for itself, so that a loss can be put
//! down to a direction.

mod clients;
mod server;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use muse_drivers::UdpOptions;
use muse_transport::{ChannelConfig, Config, Delivery, ServerKey};
use serde::{Deserialize, Serialize};

pub(crate) use clients::ClientsReport;
pub(crate) use server::ServerReport;

/// The side to run.
#[derive(Args)]
pub struct CrowdArguments {
    #[command(subcommand)]
    side: Side,
}

#[derive(Subcommand)]
enum Side {
    /// The server.
    Server(server::ServerArguments),
    /// All clients.
    Clients(clients::ClientsArguments),
}

/// Runs one side of a crowd.
pub(crate) fn run(arguments: &CrowdArguments) -> anyhow::Result<ExitCode> {
    match &arguments.side {
        Side::Server(arguments) => server::run(arguments)?,
        Side::Clients(arguments) => clients::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Messages by channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// On the unreliable channel.
    pub(crate) unreliable: u64,
    /// On the reliable channel.
    pub(crate) reliable: u64,
}

impl Counts {
    /// Of both channels.
    pub(crate) fn all(self) -> u64 {
        self.unreliable + self.reliable
    }

    fn add(&mut self, channel: u8) {
        match channel {
            UNRELIABLE => self.unreliable += 1,
            _ => self.reliable += 1,
        }
    }
}

/// The configuration that both sides share.
pub(crate) fn config() -> anyhow::Result<Config> {
    let config = Config::new(PROTOCOL)
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered));
    Ok(config.build()?)
}

/// The key of the server: both processes know it, nobody relies on it.
fn server_key() -> ServerKey {
    ServerKey::from_bytes([0x6d; 32])
}

fn socket_options() -> UdpOptions {
    UdpOptions::default()
        .receive_buffer(SOCKET_BUFFER)
        .send_buffer(SOCKET_BUFFER)
}

fn localhost(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

const PROTOCOL: u64 = 0x6d75_7365_2063_7277;
const UNRELIABLE: u8 = 0;
const RELIABLE: u8 = 1;
const MESSAGE_LEN: usize = 64;
/// Socket buffers of 4 MB, as the bars say.
const SOCKET_BUFFER: usize = 4 << 20;
