//! `muse bench relay --v1`: clients that each broadcast 20 UDP packets and 2 TCP packets a second, and how late the tick is.
//!
//! The relay has a core to itself and the clients another; a third program does nothing but wake every 50 ms, and the relay is
//! judged by how much later its ticks begin than that timer. All three run in the real-time class where that is allowed, so that other
//! programs of the machine are not what is measured. Loads grow until the tick is late or packets are lost, and the
//! output says what was exhausted.

mod clients;
mod hostile;
mod server;
mod timer;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::counters::Traffic;
use super::isolation::Surroundings;
use super::results::Output;
use super::role::Programs;
use super::statistics::quantile;
use super::table::{Column, values};
use clients::ClientsReport;
use muse_program::bars::Bar;
use server::ServerReport;

/// The program of the benchmark to run.
#[derive(Args)]
pub struct RoleArguments {
    #[command(subcommand)]
    role: RoleName,
}

#[derive(Subcommand)]
enum RoleName {
    /// The relay.
    Server(server::ServerArguments),
    /// All clients.
    Clients(clients::ClientsArguments),
    /// The idle timer.
    Timer,
    /// The programs of the benchmark of relay v2.
    #[command(subcommand)]
    V2(super::relay::v2::RoleName),
}

/// Runs one program of the benchmark.
pub(crate) fn run_role(arguments: &RoleArguments) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        RoleName::Server(arguments) => server::run(arguments)?,
        RoleName::Clients(arguments) => clients::run(arguments)?,
        RoleName::Timer => timer::run(),
        RoleName::V2(role) => super::relay::v2::run_role(role)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Milliseconds: the middle, the 99th percentile, the worst.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// Half are at most this.
    pub(crate) p50: f64,
    /// 99 of 100 are at most this.
    pub(crate) p99: f64,
    /// The worst.
    pub(crate) max: f64,
}

impl Spread {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| quantile(&times, share).unwrap_or(0.0);
        Self {
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// A load and whether datagrams for one client go to the system together.
#[derive(Clone, Copy, Debug, Serialize)]
struct Load {
    clients: u64,
    updates_per_second: u64,
    gso: bool,
    /// Others flood, do not read, break headers and lie meanwhile.
    hostile: bool,
}

impl Load {
    fn title(self) -> String {
        let Self {
            clients,
            updates_per_second,
            ..
        } = self;
        let gso = if self.gso { "" } else { ", without GSO" };
        let hostile = if self.hostile {
            ", beside hostile ones"
        } else {
            ""
        };
        format!("{clients} x {updates_per_second}/s{gso}{hostile}")
    }
}

#[derive(Clone, Debug, Serialize)]
struct Outcome {
    load: Load,
    control_lateness_ms: Spread,
    server_core_share: f64,
    /// Share of the time in which the relay was ready to run and did not.
    server_waited_share: f64,
    clients_core_share: f64,
    datagrams_per_second: f64,
    udp_delivered_percent: f64,
    tcp_delivered_percent: f64,
    receive_buffer_errors: u64,
    server: ServerReport,
    clients: ClientsReport,
}

impl Outcome {
    fn above_control_ms(&self) -> f64 {
        (self.server.lateness_ms.p99 - self.control_lateness_ms.p99).max(0.0)
    }

    /// Returns what broke, and why.
    fn breaks(&self) -> Option<String> {
        let symptom = if self.above_control_ms() > LATENESS_MS_MAX {
            format!("ticks begin {:.1} ms late", self.above_control_ms())
        } else if self.tcp_delivered_percent < DELIVERED_PERCENT_MIN {
            format!("{:.1} % of TCP arrives", self.tcp_delivered_percent)
        } else if self.udp_delivered_percent < DELIVERED_PERCENT_MIN {
            format!("{:.1} % of UDP arrives", self.udp_delivered_percent)
        } else {
            return None;
        };
        let cause = if self.server_core_share > CORE_FULL {
            format!(
                "what a tick sends takes {:.0} ms (p99) of its 50: the relay's core is full, nearly all of it in the kernel, which copies datagrams into {} sockets",
                self.server.work_ms.p99, self.load.clients
            )
        } else if self.clients_core_share > CORE_FULL {
            "the core of the clients is full, the relay's is not: they send in bursts, and a tick has several times its share to send"
                .to_owned()
        } else if self.server_waited_share > WAITED_MAX {
            format!(
                "the relay used {:.0} % of its core and waited for it for {:.0} % of the time: this machine is busy with something else, and the run does not count",
                self.server_core_share * 100.0,
                self.server_waited_share * 100.0
            )
        } else if self.receive_buffer_errors > 0 {
            format!(
                "sockets overflowed {} times between the clients' reads",
                self.receive_buffer_errors
            )
        } else {
            "neither core is full and no socket overflowed: the machine was held up".to_owned()
        };
        Some(format!("{symptom}: {cause}"))
    }
}

#[derive(Serialize)]
struct Results {
    seconds: u64,
    outcomes: Vec<Outcome>,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges; each load lasts `seconds`.
pub(crate) fn run(seconds: u64, quick: bool, output: &Output) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    println!(
        "relay v1 on one core, clients that each broadcast UDP and {TCP_PER_SECOND} TCP packets a second, {DATA_LEN} bytes each, {seconds} s"
    );
    let mut outcomes = Vec::new();
    for load in loads(quick) {
        let outcome = measure(surroundings, load, seconds)?;
        let broken = outcome.breaks().is_some();
        outcomes.push(outcome);
        // Loads beyond the bars are only there to find where it breaks.
        if broken && load.gso && load.clients > BARS[1] {
            break;
        }
    }
    print(&outcomes);
    let results = Results {
        seconds,
        bars: bars(&outcomes),
        outcomes,
    };
    output.finish(&results, &results.bars)
}

fn loads(quick: bool) -> Vec<Load> {
    let load = |clients, updates_per_second, gso| Load {
        clients,
        updates_per_second,
        gso,
        hostile: false,
    };
    let hostile = Load {
        hostile: true,
        ..load(120, 20, true)
    };
    let mut loads = vec![load(120, 20, true), load(180, 20, true), hostile];
    if !quick {
        loads.insert(0, load(120, 20, false));
        loads.insert(2, load(180, 20, false));
        let beyond = [20, 30, 40, 60, 80, 120, 160];
        loads.extend(beyond.map(|rate| load(255, rate, true)));
    }
    loads
}

fn measure(surroundings: Surroundings, load: Load, seconds: u64) -> anyhow::Result<Outcome> {
    let mut programs = Programs::new(surroundings);
    programs.set_realtime(LOADED);
    let option = if load.gso { "" } else { "--no-udp-gso" };
    let words = format!("bench-relay server {option}");
    let mut server = programs.muse("the relay", 0, &words)?;
    let port = server.port(START_MAX)?;
    let (count, rate) = (load.clients, load.updates_per_second);
    let option = if load.hostile { "--hostile" } else { "" };
    let words = format!(
        "bench-relay clients --server 127.0.0.1:{port} --clients {count} --rate {rate} --seconds {seconds} {option}"
    );
    let mut clients = programs.muse("the clients", 1, &words)?;
    clients.expect("connected", CONNECT_MAX)?;
    programs.set_realtime(IDLE);
    let mut timer = programs.muse("the timer", usize::MAX, "bench-relay timer")?;
    timer.expect("connected", START_MAX)?;

    let traffic = Traffic::of(server.pid())?;
    let cpu = (server.cpu_seconds()?, clients.cpu_seconds()?);
    let waited = run_queue_seconds(server.pid());
    let began = Instant::now();
    for role in [&mut server, &mut timer, &mut clients] {
        role.say("go")?;
    }
    clients.expect("done", Duration::from_secs(seconds + 60))?;
    let took = began.elapsed().as_secs_f64();
    let server_cpu = server.cpu_seconds()? - cpu.0;
    let clients_cpu = clients.cpu_seconds()? - cpu.1;
    let waited = run_queue_seconds(server.pid()) - waited;
    let traffic = Traffic::of(server.pid())?.since(&traffic);
    let control_lateness_ms: Spread = timer.stop()?;
    let server: ServerReport = server.stop()?;
    let clients: ClientsReport = clients.stop()?;
    let others = (load.clients - 1) as f64;
    let percent = |received: u64, sent: u64| 100.0 * received as f64 / (sent as f64 * others);
    Ok(Outcome {
        load,
        control_lateness_ms,
        server_core_share: server_cpu / took,
        server_waited_share: waited / took,
        clients_core_share: clients_cpu / took,
        datagrams_per_second: server.datagrams_out as f64 / took,
        udp_delivered_percent: percent(clients.udp_received, clients.udp_sent),
        tcp_delivered_percent: percent(clients.tcp_received, clients.tcp_sent),
        receive_buffer_errors: traffic.receive_buffer_errors,
        server,
        clients,
    })
}

/// Time that the main thread of a process has waited for a core while it could have run.
fn run_queue_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

const COLUMNS: [Column<Outcome>; 12] = [
    ("late p50 ms", 2, |it| it.server.lateness_ms.p50),
    ("p99", 2, |it| it.server.lateness_ms.p99),
    ("max", 2, |it| it.server.lateness_ms.max),
    ("idle timer p99", 2, |it| it.control_lateness_ms.p99),
    ("tick's work p50 ms", 1, |it| it.server.work_ms.p50),
    ("p99", 1, |it| it.server.work_ms.p99),
    ("relay's core %", 0, |it| it.server_core_share * 100.0),
    ("waited %", 1, |it| it.server_waited_share * 100.0),
    ("clients' core %", 0, |it| it.clients_core_share * 100.0),
    ("datagrams/s out", 0, |it| it.datagrams_per_second),
    ("UDP %", 2, |it| it.udp_delivered_percent),
    ("TCP %", 2, |it| it.tcp_delivered_percent),
];

fn print(outcomes: &[Outcome]) {
    let rows = outcomes.iter().map(|it| (it.load.title(), it.clone()));
    print!("{}", values("load", &COLUMNS, rows));
    for outcome in outcomes {
        if let Some(why) = outcome.breaks() {
            println!("breaks at {}: {why}", outcome.load.title());
        }
    }
    if outcomes.iter().all(|outcome| outcome.breaks().is_none()) {
        println!("none of these loads breaks it");
    }
}

fn bars(outcomes: &[Outcome]) -> Vec<Bar> {
    let mut bars = Vec::new();
    let cases = BARS.map(|clients| (clients, false)).into_iter();
    for (clients, hostile) in cases.chain([(BARS[0], true)]) {
        let outcome = outcomes.iter().find(|outcome| {
            let load = outcome.load;
            load.clients == clients && load.gso && load.hostile == hostile
        });
        let beside = if hostile { "beside_hostile_" } else { "" };
        let name = |what: &str| format!("relay_v1_{clients}_clients_{beside}{what}");
        let late = outcome.map(Outcome::above_control_ms);
        let udp = outcome.map(|outcome| outcome.udp_delivered_percent);
        let tcp = outcome.map(|outcome| outcome.tcp_delivered_percent);
        let least = DELIVERED_PERCENT_MIN;
        bars.extend([
            Bar::at_most(
                name("lateness_p99_ms_above_idle_timer"),
                late,
                LATENESS_MS_MAX,
            ),
            Bar::at_least(name("udp_delivered_percent"), udp, least),
            Bar::at_least(name("tcp_delivered_percent"), tcp, least),
        ]);
    }
    bars
}

/// Clients that a relay has to serve: always, and with datagrams given to the system together.
const BARS: [u64; 2] = [120, 180];
const LATENESS_MS_MAX: f64 = 2.0;
/// Loss is allowed to UDP, but a relay that is on time because it drops is none.
const DELIVERED_PERCENT_MIN: f64 = 99.0;
/// A core that is used for more than this share of the time has no room for a tick's peak.
const CORE_FULL: f64 = 0.7;
/// Waiting for the core for more than this share of the time shows in the 99th percentile.
const WAITED_MAX: f64 = 0.01;
/// Real-time priorities: the idle timer never waits for what is measured.
const LOADED: u8 = 20;
const IDLE: u8 = 30;
const TCP_PER_SECOND: u64 = 2;
const DATA_LEN: usize = 64;
const START_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(30);
