//! The cost of a server: its part of a simulation run again, alone and in one go, so that CPU time is told exactly.

use std::net::UdpSocket;
use std::time::Duration;

use crate::counters::cpu_time;
use crate::cubes::time_since;
use crate::statistics::Figure;

use super::simulation::{Replication, Script, Setup, TICKS_WARM};

/// CPU time of a server, in milliseconds a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// For all clients together: quantising, comparing, keeping.
    pub(crate) shared: Figure,
    /// For one client: its packets, choice, coding.
    pub(crate) per_client: Figure,
}

/// Runs the server several times.
pub(crate) fn measure(
    setup: Setup,
    script: &Script,
    runs: usize,
    socket: Option<&UdpSocket>,
) -> anyhow::Result<Cost> {
    let mut shared = Vec::new();
    let mut per_client = Vec::new();
    for _ in 0..runs {
        let ticks = (script.ticks() - TICKS_WARM) as f64;
        let alone = run(setup, script, false, None)?;
        let whole = run(setup, script, true, socket)?;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0 / ticks;
        shared.push(milliseconds(alone));
        per_client.push(milliseconds(whole.saturating_sub(alone)) / setup.clients as f64);
    }
    let figure = |values: Vec<f64>| Figure::of(values.into_iter());
    let (Some(shared), Some(per_client)) = (figure(shared), figure(per_client)) else {
        anyhow::bail!("no run was asked for");
    };
    Ok(Cost { shared, per_client })
}

/// CPU time of the ticks after all have joined, with the clients' part or without.
fn run(
    setup: Setup,
    script: &Script,
    with_clients: bool,
    socket: Option<&UdpSocket>,
) -> anyhow::Result<Duration> {
    let mut server = Replication::new(setup, script, with_clients)?;
    let mut start = Duration::ZERO;
    for tick in 0..script.ticks() {
        if tick == TICKS_WARM {
            start = cpu_time(std::process::id())?;
        }
        server.tick(script, tick, |_, packet| {
            if let Some(socket) = socket {
                // What does not fit the receiver's buffer is lost; sending costs the same.
                let _ = socket.send(packet);
            }
        })?;
    }
    time_since(start)
}
