//! The relay under load: the one that ships, and how late each of its ticks was.

use clap::Args;
use muse_bench_workload::control::Control;
use serde::{Deserialize, Serialize};

use super::Spread;
use muse_program::relay::RelayServer;
use muse_program::relay::v1::{LimitArguments, Server};

/// Arguments of the server.
#[derive(Args)]
pub(crate) struct ServerArguments {
    #[command(flatten)]
    limits: LimitArguments,
}

/// The server's counters from `go` on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// Ticks.
    pub(crate) ticks: u64,
    /// Lateness of their beginning.
    pub(crate) lateness_ms: Spread,
    /// Time until everything was with the system.
    pub(crate) work_ms: Spread,
    /// UDP packets that left.
    pub(crate) datagrams_out: u64,
    /// UDP packets that the system had not taken by the next tick.
    pub(crate) datagrams_unsent: u64,
    /// UDP packets beyond a limit.
    pub(crate) datagrams_limited: u64,
    /// Ticks left out.
    pub(crate) ticks_missed: u64,
}

/// Serves until told to stop.
pub(super) fn run(arguments: &ServerArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let localhost = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let mut server = Server::bind(localhost, &arguments.limits)?;
    control.ready(server.local_addr()?.port());
    let (mut lateness, mut work) = (Vec::new(), Vec::new());
    let mut start = None;
    while !control.has_stopped() {
        let turn = server.turn()?;
        if !control.has_started() {
            continue;
        }
        start.get_or_insert(*server.relay().stats());
        if let Some(late) = turn.late {
            lateness.push(late.as_millis_f64());
            work.push(turn.took.as_millis_f64());
        }
    }
    let (start, end) = (start.unwrap_or_default(), server.relay().stats());
    control.result(&ServerReport {
        ticks: lateness.len() as u64,
        lateness_ms: Spread::of(lateness),
        work_ms: Spread::of(work),
        datagrams_out: end.datagrams_out - start.datagrams_out,
        datagrams_unsent: end.datagrams_unsent - start.datagrams_unsent,
        datagrams_limited: end.datagrams_limited - start.datagrams_limited,
        ticks_missed: end.ticks_missed - start.ticks_missed,
    });
    Ok(())
}
