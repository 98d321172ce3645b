//! The transport workloads W1 to W4, written once and run by every library under test; and the [`bodies`] that netcode replicates.
//!
//! A library takes part by implementing [`Library`] and [`Peer`]; [`run`] is then its whole `main`. The program is a
//! server or a client of one workload, speaks the line protocol of [`control`] on its standard streams, and measures
//! nothing of its own process: CPU time, memory and interface counters are read from outside, between the marks that
//! the line protocol gives. So the library's code is the only thing that differs between two programs.

pub mod bodies;
pub mod control;
mod fat_pipe;
mod latency;
mod many_clients;
mod message;
mod options;
mod peer;
mod report;
mod ticks;

use std::process::ExitCode;

pub use latency::Latencies;
pub use message::{Header, unix_nanos};
pub use options::{Options, OptionsError, Role, Workload};
pub use peer::{Clients, Failure, Kind, Library, Peer, Sent};
pub use report::{LatencySummary, Report};
pub use ticks::{CLIENT_PHASE, SERVER_PHASE, TICK, Ticks};

use control::Control;

/// The whole program of a library under test: parses the command line and runs the role it names.
///
/// Exit codes: 0 after an orderly stop, 1 when the role failed, 2 for a bad command line. Errors are one line on
/// standard error.
///
/// ```no_run
/// # use muse_bench_workload::{Clients, Failure, Kind, Library, Options, Peer, Sent};
/// # use std::{net::SocketAddr, time::Duration};
/// # struct Nothing;
/// # impl Peer for Nothing {
/// #     fn connected(&self) -> usize { 0 }
/// #     fn poll(&mut self, _: &mut impl FnMut(usize, Kind, &[u8])) {}
/// #     fn send(&mut self, _: usize, _: Kind, _: &[u8]) -> Sent { Sent::Full }
/// #     fn flush(&mut self) {}
/// #     fn wait(&mut self, _: Duration) {}
/// # }
/// # impl Clients for Nothing {
/// #     fn add(&mut self) -> Result<(), Failure> { Ok(()) }
/// # }
/// struct MyLibrary;
/// impl Library for MyLibrary {
///     type Server = Nothing;
///     type Clients = Nothing;
///     fn serve(_: &Options) -> Result<(Nothing, u16), Failure> { Ok((Nothing, 7777)) }
///     fn clients(_: &Options, _: SocketAddr) -> Result<Nothing, Failure> { Ok(Nothing) }
/// }
/// fn main() -> std::process::ExitCode {
///     muse_bench_workload::run::<MyLibrary>(std::env::args().skip(1))
/// }
/// ```
pub fn run<L: Library>(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run_role::<L>(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_role<L: Library>(options: &Options) -> Result<(), Failure> {
    let control = Control::start();
    let report = match options.role {
        Role::Server => {
            let (mut server, port) = L::serve(options)?;
            control.ready(port);
            match options.workload {
                Workload::ManyClients => many_clients::serve(&mut server, &control),
                Workload::FatPipe => fat_pipe::serve(&mut server, options, &control),
                Workload::BadNetwork => latency::serve(&mut server, options, &control),
            }
        }
        Role::Client { server } => {
            let mut client = L::clients(options, server)?;
            connect_all(&mut client, options)?;
            control.connected();
            match options.workload {
                Workload::ManyClients => many_clients::run_clients(&mut client, options, &control),
                Workload::FatPipe => fat_pipe::run_client(&mut client, options, &control),
                Workload::BadNetwork => latency::run_client(&mut client, options, &control),
            }
        }
    };
    control.result(&report);
    Ok(())
}

/// Connects all clients, a few in each tick: a crowd that comes at once overflows a server's socket.
fn connect_all<C: Clients>(client: &mut C, options: &Options) -> Result<(), Failure> {
    let mut ticks = Ticks::new(CLIENT_PHASE);
    let mut added = 0;
    for _ in 0..CONNECT_TICKS_MAX {
        for _ in 0..CONNECTS_PER_TICK.min(options.clients - added) {
            client.add()?;
            added += 1;
        }
        client.poll(&mut |_, _, _| ());
        client.flush();
        if client.connected() >= options.clients {
            return Ok(());
        }
        ticks.sleep(client);
    }
    Err(Failure::new(format!(
        "only {} of {} clients connected in 30 s",
        client.connected(),
        options.clients
    )))
}

const CONNECTS_PER_TICK: usize = 16;
/// 30 s of ticks.
const CONNECT_TICKS_MAX: usize = 1_875;
