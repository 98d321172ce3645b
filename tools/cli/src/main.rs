//! The `muse` binary: everything of Muse that is run rather than linked.

mod bench;
mod bots;
mod echo;
mod game;
mod interrupt;
mod lab;
mod master;
mod ping;
mod proxy;
mod relay;
mod replay;
mod rp;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Multiplayer networking for games, from the UDP packet to the finished match.
#[derive(Parser)]
#[command(
    name = "muse",
    version,
    after_help = "Example: muse bench transport --quick\n\nLogs: RUST_LOG=debug muse ..."
)]
struct Muse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Round-trip times to a Muse server.
    Ping(ping::Arguments),
    /// A server that sends every message back, for `muse ping`.
    Echo(echo::Arguments),
    /// Both ends of MUSE-RP v1, to talk to the original.
    Rp(rp::Arguments),
    /// A server through which players behind routers meet.
    Relay(relay::Arguments),
    /// A bad network in front of any UDP server.
    Proxy(Box<proxy::Arguments>),
    /// Print a recorded match, and verify it by running it again.
    Replay(replay::Arguments),
    /// Run the shipped netcode in virtual time and draw what happens.
    Lab(lab::Arguments),
    /// The page, the master, game servers and a relay on this machine: open it and play.
    Up(up::Arguments),
    /// A game server of Biobot, for one match.
    Game(game::Arguments),
    /// Players of Biobot without people.
    Bots(bots::Arguments),
    /// Sessions, matchmaking, game servers on demand, friends, chat, ranking.
    Master(Box<master::Arguments>),
    /// A game server without a game.
    #[command(hide = true)]
    MasterGame,
    /// A player without a game.
    #[command(hide = true)]
    MasterPlayer(master::PlayerArguments),
    /// Measure Muse beside its peers on this machine.
    Bench(bench::Arguments),
    /// One side of a benchmark's workload, with Muse.
    #[command(hide = true)]
    BenchRole(bench::RoleArguments),
    /// The bad network between the two programs of a benchmark.
    #[command(hide = true)]
    BenchProxy(bench::ProxyArguments),
    /// One side of a crowd.
    #[command(hide = true)]
    BenchCrowd(bench::CrowdArguments),
    /// Who sends handshakes without end.
    #[command(hide = true)]
    BenchFlood(bench::FloodArguments),
    /// One program of the benchmark of relay v1.
    #[command(hide = true)]
    BenchRelay(bench::RelayV1Arguments),
    /// One program of the benchmark of rollback.
    #[command(hide = true)]
    BenchRollback(bench::RollbackArguments),
    /// The workload whose instructions are counted.
    #[command(hide = true)]
    BenchCost,
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let outcome = match Muse::parse().command {
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        Command::Rp(arguments) => rp::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Proxy(arguments) => proxy::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Up(arguments) => up::run(&arguments),
        Command::Game(arguments) => game::run(&arguments),
        Command::Bots(arguments) => bots::run(&arguments),
        Command::Master(arguments) => master::run(&arguments),
        Command::MasterGame => master::run_game(),
        Command::MasterPlayer(arguments) => master::run_player(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::BenchRole(arguments) => Ok(bench::run_role(arguments)),
        Command::BenchProxy(arguments) => bench::run_proxy(&arguments),
        Command::BenchCrowd(arguments) => bench::run_crowd(&arguments),
        Command::BenchFlood(arguments) => bench::run_flooder(&arguments),
        Command::BenchRelay(arguments) => bench::run_relay_v1(&arguments),
        Command::BenchRollback(arguments) => bench::run_rollback(&arguments),
        Command::BenchCost => bench::run_cost(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
