//! `muse bench`: measures Muse and its peers in one run on this machine, alternating, and says how they compare.
//!
//! `transport` runs the workloads W1 to W4, `connections` a crowd, `flood` a crowd under a flood of handshakes, `hostile` attacks of every other kind, `relay` a relay under load,
//! `cubes` the snapshot coder, `netcode` replication, `prediction` what players predict and see, `cost` counts instructions. The flow of a measurement is in `transport`; one run of one library is
//! in `measure`; what a run is made of is in the modules that `measure` uses.

mod build;
mod callgrind;
mod cases;
mod connections;
mod cost;
mod counters;
mod crowd;
mod cubes;
mod flood;
mod hostile;
mod isolation;
mod master;
mod matches;
mod measure;
mod muse_role;
mod netcode;
mod prediction;
mod proxy;
mod relay;
mod relay_v1;
mod results;
mod role;
mod rollback;
mod statistics;
mod table;
mod transport;
mod virtual_cases;
mod virtual_w3;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// The benchmark to run.
#[derive(Args)]
#[command(after_help = "Example: muse bench transport --workload w1 --peers rusty_enet,quinn")]
pub struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// W1 many clients, W2 one fat pipe, W3 a bad network, W4 reordering and bursts.
    Transport(transport::Arguments),
    /// 10,000 connections on one socket and one core.
    Connections(connections::Arguments),
    /// Players on a server that is flooded with handshakes.
    Flood(flood::Arguments),
    /// Attacks on real servers, and what honest players notice.
    Hostile(hostile::Arguments),
    /// The load that a relay carries on one core.
    Relay(relay::Arguments),
    /// The snapshot coder on a recorded physics scene and on bodies that all move.
    Cubes(cubes::Arguments),
    /// The duel beside GGRS, and what saving, loading and rolling back cost.
    Rollback(rollback::Arguments),
    /// Bytes and CPU time of replication: 1,000 bodies that all move, and crowds.
    Netcode(netcode::Arguments),
    /// Wrong predictions of players of Biobot's ball, as they are seen, and the cost of a rollback.
    Prediction(prediction::Arguments),
    /// The load that a master carries: sessions, tickets, sign-ins, matching.
    Master(master::Arguments),
    /// The cost of a match of Biobot to a server, and to each player in bytes.
    Match(matches::Arguments),
    /// Instructions per message, against the figure that is checked in.
    Cost(cost::Arguments),
}

/// Runs the benchmark that was asked for.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.benchmark {
        Benchmark::Transport(arguments) => transport::run(arguments),
        Benchmark::Connections(arguments) => connections::run(arguments),
        Benchmark::Flood(arguments) => flood::run(arguments),
        Benchmark::Hostile(arguments) => hostile::run(arguments),
        Benchmark::Relay(arguments) => relay::run(arguments),
        Benchmark::Cubes(arguments) => cubes::run(arguments),
        Benchmark::Rollback(arguments) => rollback::run(arguments),
        Benchmark::Netcode(arguments) => netcode::run(arguments),
        Benchmark::Prediction(arguments) => prediction::run(arguments),
        Benchmark::Master(arguments) => master::run(arguments),
        Benchmark::Match(arguments) => matches::run(arguments),
        Benchmark::Cost(arguments) => cost::run(arguments),
    }
}

/// One program of a benchmark, which the harness starts as a process of its own.
#[derive(Subcommand)]
pub enum RoleCommand {
    /// One side of a workload, with Muse.
    #[command(hide = true)]
    BenchRole(muse_role::RoleArguments),
    /// The bad network between the two programs of a benchmark.
    #[command(hide = true)]
    BenchProxy(proxy::ProxyArguments),
    /// One side of a crowd.
    #[command(hide = true)]
    BenchCrowd(crowd::CrowdArguments),
    /// Sends handshakes without end.
    #[command(hide = true)]
    BenchFlood(flood::FloodArguments),
    /// A hostile client.
    #[command(hide = true)]
    BenchAttack(hostile::AttackArguments),
    /// One program of an attack that has several.
    #[command(hide = true)]
    BenchHostile(hostile::RoleArguments),
    /// One program of the benchmark of relay v1.
    #[command(hide = true)]
    BenchRelay(relay_v1::RoleArguments),
    /// One program of the benchmark of rollback.
    #[command(hide = true)]
    BenchRollback(rollback::RoleArguments),
    /// The workload whose instructions are counted.
    #[command(hide = true)]
    BenchCost,
}

/// Runs one program of a benchmark.
pub fn run_role(role: RoleCommand) -> anyhow::Result<ExitCode> {
    match role {
        RoleCommand::BenchRole(arguments) => Ok(muse_role::run(arguments)),
        RoleCommand::BenchProxy(arguments) => proxy::run(&arguments),
        RoleCommand::BenchCrowd(arguments) => crowd::run(&arguments),
        RoleCommand::BenchFlood(arguments) => flood::run_flooder(&arguments),
        RoleCommand::BenchAttack(arguments) => hostile::run_attacker(&arguments),
        RoleCommand::BenchHostile(arguments) => hostile::run_role(&arguments),
        RoleCommand::BenchRelay(arguments) => relay_v1::run_role(&arguments),
        RoleCommand::BenchRollback(arguments) => rollback::run_role(&arguments),
        RoleCommand::BenchCost => cost::run_echo(),
    }
}
