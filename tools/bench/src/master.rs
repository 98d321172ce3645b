//! `muse bench master`: what a master carries on one machine.
//!
//! The master is a process of its own, whose CPU time and memory are read from the system; this process is all of its players. Sessions with
//! one-second keep-alives, tickets acknowledged after a durable commit, sign-ins by token, the time of one pass over a queue of 10,000, and matches with
//! real game servers: how long from *play* to a seat, and how long until a warm server is had.

mod load;
mod meeting;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use muse_master::matching::{MatchingConfig, QueueRules, Queues};
use muse_master::ticket::{Member, Ticket};
use muse_master_client::{AccountId, Preferences, TicketId};
use muse_program::child::Program;
use serde::Serialize;

use super::counters::{MachineTime, cpu_time, memory};
use super::results::Output;
use super::statistics::{Figure, quantile};
use muse_program::bars::Bar;

/// The measurements to make.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench master --quick --bars\n\nNeeds two open files for each session: see ulimit -n"
)]
pub(crate) struct Arguments {
    /// Number of sessions at once.
    #[arg(long, value_name = "N", default_value_t = 15_000)]
    sessions: usize,
    /// Seconds that sessions, tickets and sign-ins are watched, each.
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// An empty PostgreSQL database, to measure tickets with it too: postgres://USER@HOST/NAME. Needs the feature `postgres`.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    postgres: Option<String>,
    /// Shortened: a tenth of everything.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// The measurements.
#[derive(Debug, Default, Serialize)]
struct Figures {
    sessions: usize,
    cores_for_sessions: Option<Watched>,
    kilobytes_per_session: Option<f64>,
    cores_for_100_players: Option<Watched>,
    tickets_per_second_sqlite: Option<Watched>,
    tickets_per_second_postgres: Option<Watched>,
    sign_ins_per_second: Option<Watched>,
    matches: usize,
    time_to_match_p95_s: Option<f64>,
    warm_allocation_p95_ms: Option<f64>,
    pass_ms: f64,
    pass_ms_incompatible: f64,
    pass_ms_20_queues: f64,
}

/// A figure that was watched for a while, over slices of that time.
#[derive(Clone, Copy, Debug, Serialize)]
struct Watched {
    #[serde(flatten)]
    figure: Figure,
    /// Percent of the machine's time that others on the same hardware took meanwhile: with more than a few, measure again.
    stolen_percent: f64,
}

impl Watched {
    /// Measures how fast what is `counted` grows, in each of five slices.
    async fn over(
        window: Duration,
        mut counted: impl FnMut() -> anyhow::Result<f64>,
    ) -> anyhow::Result<Self> {
        let machine = MachineTime::now()?;
        let mut rates = Vec::with_capacity(SLICES as usize);
        let (mut at, mut before) = (Instant::now(), counted()?);
        for _ in 0..SLICES {
            tokio::time::sleep(window / SLICES).await;
            let (now, after) = (Instant::now(), counted()?);
            rates.push((after - before) / (now - at).as_secs_f64());
            (at, before) = (now, after);
        }
        let figure = Figure::of(rates.into_iter()).context("no time to watch")?;
        let stolen_percent = MachineTime::now()?.stolen_percent(&machine);
        Ok(Self {
            figure,
            stolen_percent,
        })
    }
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (sessions, seconds) = match arguments.quick {
        true => (arguments.sessions / 10, (arguments.seconds / 4).max(5)),
        false => (arguments.sessions, arguments.seconds),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    eprintln!("passes over a queue of 10,000 tickets");
    let mut figures = Figures {
        sessions,
        pass_ms: pass(Wanted::Anything),
        pass_ms_incompatible: pass(Wanted::Alone),
        pass_ms_20_queues: pass(Wanted::Queues),
        ..Figures::default()
    };
    let window = Duration::from_secs(seconds);
    eprintln!("100 players");
    figures.cores_for_100_players = Some(runtime.block_on(sessions_cost(100, window))?.0);
    eprintln!("{sessions} sessions");
    let (cores, kilobytes) = runtime.block_on(sessions_cost(sessions, window))?;
    figures.cores_for_sessions = Some(cores);
    figures.kilobytes_per_session = Some(kilobytes);
    let rate = |kind, database| runtime.block_on(rate(kind, database, window));
    eprintln!("tickets with SQLite");
    figures.tickets_per_second_sqlite = Some(rate(load::Kind::Tickets, None)?);
    if let Some(url) = &arguments.postgres {
        eprintln!("tickets with PostgreSQL");
        figures.tickets_per_second_postgres = Some(rate(load::Kind::Tickets, Some(url))?);
    }
    eprintln!("sign-ins by token");
    figures.sign_ins_per_second = Some(rate(load::Kind::SignIns, None)?);
    eprintln!("matches with game servers");
    runtime.block_on(matches(&mut figures, window))?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    arguments.output.finish(&figures, &bars(&figures))
}

fn bars(figures: &Figures) -> Vec<Bar> {
    let median = |watched: Option<Watched>| watched.map(|watched| watched.figure.median);
    let most = |name: &str, value, limit| Bar::at_most(format!("master_{name}"), value, limit);
    let least = |name: &str, value, limit| Bar::at_least(format!("master_{name}"), value, limit);
    let sessions = median(figures.cores_for_sessions);
    let few = median(figures.cores_for_100_players);
    let sqlite = median(figures.tickets_per_second_sqlite);
    let sign_ins = median(figures.sign_ins_per_second);
    let mut bars = vec![
        most("cores_for_sessions", sessions, 0.5),
        most("kilobytes_per_session", figures.kilobytes_per_session, 20.0),
        most("cores_for_100_players", few, 0.01),
        least("tickets_per_second_sqlite", sqlite, 2_000.0),
        least("sign_ins_per_second", sign_ins, 500.0),
        most("time_to_match_p95_s", figures.time_to_match_p95_s, 2.0),
        most(
            "warm_allocation_p95_ms",
            figures.warm_allocation_p95_ms,
            50.0,
        ),
        most("pass_ms", Some(figures.pass_ms), 100.0),
        most(
            "pass_ms_incompatible",
            Some(figures.pass_ms_incompatible),
            100.0,
        ),
        most("pass_ms_20_queues", Some(figures.pass_ms_20_queues), 150.0),
    ];
    let postgres = median(figures.tickets_per_second_postgres)
        .map(|rate| least("tickets_per_second_postgres", Some(rate), 2_000.0));
    bars.extend(postgres);
    bars
}

/// The preferences of a queue's players.
#[derive(Clone, Copy)]
enum Wanted {
    /// A usual mixture.
    Anything,
    /// Each player wants something that nobody else wants: the worst case.
    Alone,
    /// A usual mixture in twenty queues with rules of their own.
    Queues,
}

/// Milliseconds of the slowest of the first ten passes over 10,000 tickets.
fn pass(wanted: Wanted) -> f64 {
    let mut rng = fastrand::Rng::with_seed(1);
    let config = MatchingConfig::default().regions(&["eu", "us", "asia"]);
    let rules: String = (0..20)
        .map(|n| format!("[q{n}]\nlatency_max_ms = 180\n"))
        .collect();
    let mut queue = Queues::new(config, QueueRules::parse(&rules).expect("rules"));
    for id in 1..=10_000 {
        let mut preferences = Preferences::default();
        match wanted {
            Wanted::Alone => preferences = preferences.choice("room", &format!("room {id}")),
            Wanted::Anything | Wanted::Queues => {
                if matches!(wanted, Wanted::Queues) {
                    preferences = Preferences::queue(&format!("q{}", rng.u8(0..20)));
                }
                for region in ["eu", "us", "asia"] {
                    preferences = preferences.latency(region, rng.u16(10..200));
                }
                if rng.bool() {
                    preferences =
                        preferences.choice("mode", ["a", "b", "c", "d"][usize::from(rng.u8(0..4))]);
                }
                if rng.bool() {
                    preferences = preferences.players(rng.u8(2..=8));
                }
            }
        }
        let rating = 1_000.0 + 1_000.0 * rng.f64();
        queue.insert(Ticket {
            id: TicketId(id),
            party: vec![Member {
                account: AccountId(id),
                rating,
            }],
            preferences,
            since: muse_wire::Instant::from_millis(rng.u64(0..20_000)),
            attempts: 0,
        });
    }
    let mut slowest = Duration::ZERO;
    for n in 0..10 {
        let begun = Instant::now();
        queue.pass(
            muse_wire::Instant::from_millis(20_000 + n * 250),
            usize::MAX,
        );
        slowest = slowest.max(begun.elapsed());
    }
    slowest.as_secs_f64() * 1e3
}

/// Cores that so many sessions with keep-alives take, and kilobytes of memory for each.
async fn sessions_cost(sessions: usize, window: Duration) -> anyhow::Result<(Watched, f64)> {
    let master = Master::start(sessions + 10)?;
    let empty = memory(master.pid())?.resident;
    let clients = load::connect(&master.authority, sessions).await?;
    // The first seconds hold the last of the connecting.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let cores = Watched::over(window, || Ok(cpu_time(master.pid())?.as_secs_f64())).await?;
    let full = memory(master.pid())?.resident;
    clients.check()?;
    let each = (full as f64 - empty as f64) / 1e3 / sessions as f64;
    Ok((cores, each))
}

/// Answers a second, as fast as they come.
async fn rate(
    kind: load::Kind,
    database: Option<&String>,
    window: Duration,
) -> anyhow::Result<Watched> {
    let master = match database {
        Some(url) => Master::start_with(100, 0, 0, Some(url.as_str()))?,
        None => Master::start(100)?,
    };
    let mut askers = load::ask(&master.authority, kind).await?;
    Watched::over(window, || Ok(askers.counted()? as f64)).await
}

/// Matches with real game servers.
async fn matches(figures: &mut Figures, window: Duration) -> anyhow::Result<()> {
    let master = Master::start_with(100, 20, 4, None)?;
    let mut times = meeting::times_to_match(&master.authority, window).await?;
    figures.matches = times.len() / 2;
    figures.time_to_match_p95_s = p95(&mut times);
    drop(master);
    let master = Master::start_with(100, 20, 2, None)?;
    let mut times = meeting::warm_allocations(&master.authority, ALLOCATIONS).await?;
    figures.warm_allocation_p95_ms = p95(&mut times).map(|s| s * 1e3);
    Ok(())
}

fn p95(times: &mut [f64]) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    quantile(times, 0.95)
}

/// A master of its own, with a file of its own.
struct Master {
    program: Program,
    authority: String,
    _folder: tempfile::TempDir,
}

impl Master {
    /// Without game servers.
    fn start(players_max: usize) -> anyhow::Result<Self> {
        Self::start_with(players_max, 0, 0, None)
    }

    fn start_with(
        players_max: usize,
        matches_max: usize,
        warm: usize,
        database: Option<&str>,
    ) -> anyhow::Result<Self> {
        let options = format!(
            "--requests-per-second 0 --account-requests-per-second 0 --connections-max 0 \
             --connections-per-ip 0 --drain-seconds 5 --warm {warm} --players-max {players_max} \
             --matches-max {matches_max} --first-port {FIRST_PORT}"
        );
        Self::spawn(&options, database)
    }

    /// With these options, separated by blanks, and a database of its own by default.
    fn spawn(options: &str, database: Option<&str>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a folder for the database")?;
        let line = format!("master --listen 127.0.0.1:0 {options}");
        let mut program = Program::start(&line, |command| {
            command.env("MUSE_GAME_SECONDS", "0.1");
            match database {
                // Not on the command line, where others would read a password.
                Some(url) => command
                    .env("MUSE_MASTER_DATABASE", url)
                    .arg("--secret-key-file")
                    .arg(folder.path().join("key")),
                None => command.arg("--database").arg(folder.path().join("muse.db")),
            };
        })?;
        let authority = program.line()?.trim_start_matches("http://").to_owned();
        Ok(Self {
            program,
            authority,
            _folder: folder,
        })
    }

    fn pid(&self) -> u32 {
        self.program.id()
    }
}

/// Parts of the time that a figure is watched for.
const SLICES: u32 = 5;
/// Matches whose allocation is timed.
const ALLOCATIONS: usize = 20;
/// Away from the ports of a master that is in use.
const FIRST_PORT: u16 = 26_700;
