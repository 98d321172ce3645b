//! Attacks on a master over TCP, all from one address, while players at others sign in.
//!
//! The master has one core; attackers and players share the other, where players come first: what is measured is how long the master takes, and not how
//! long a player waits for the attackers' own work.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use muse_master::store::{SqlStore, Store};
use serde::Serialize;

use super::http::{HttpAttack, HttpReport};
use super::sign_ins::SignInReport;
use crate::isolation::Surroundings;
use crate::role::{Programs, Role};
use muse_program::bars::{Bar, Verdict, settle};

/// The way in which players sign in while an attack runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum SignIn {
    Guests,
    Passwords,
    GuestsOverTls,
}

/// One attack at a stated rate.
struct Plan {
    name: &'static str,
    attack: HttpAttack,
    /// Connections at a time.
    connections: u64,
    /// Time until each comes again.
    pause_ms: u64,
    sign_in: SignIn,
}

impl Plan {
    const fn new(
        name: &'static str,
        attack: HttpAttack,
        connections: u64,
        pause_ms: u64,
        sign_in: SignIn,
    ) -> Self {
        Self {
            name,
            attack,
            connections,
            pause_ms,
            sign_in,
        }
    }
}

static PLANS: [Plan; 11] = [
    Plan::new("silent", HttpAttack::Silent, 400, 100, SignIn::Guests),
    Plan::new(
        "half_requests",
        HttpAttack::HalfRequests,
        400,
        100,
        SignIn::Guests,
    ),
    Plan::new("rankings", HttpAttack::Rankings, 100, 100, SignIn::Guests),
    Plan::new(
        "strangers_frames",
        HttpAttack::StrangersFrames,
        100,
        100,
        SignIn::Guests,
    ),
    Plan::new(
        "players_frames",
        HttpAttack::PlayersFrames,
        50,
        20,
        SignIn::Guests,
    ),
    Plan::new(
        "players_unread",
        HttpAttack::PlayersUnread,
        50,
        5,
        SignIn::Guests,
    ),
    Plan::new(
        "wrong_passwords",
        HttpAttack::WrongPasswords,
        400,
        100,
        SignIn::Passwords,
    ),
    Plan::new(
        "wrong_passwords_at_once",
        HttpAttack::WrongPasswords,
        400,
        5,
        SignIn::Passwords,
    ),
    Plan::new(
        "slow_tls",
        HttpAttack::SlowTls,
        400,
        100,
        SignIn::GuestsOverTls,
    ),
    Plan::new(
        "slow_headers",
        HttpAttack::SlowHeaders,
        400,
        100,
        SignIn::GuestsOverTls,
    ),
    Plan::new(
        "tls_handshakes",
        HttpAttack::TlsHandshakes,
        50,
        100,
        SignIn::GuestsOverTls,
    ),
];

/// Players who sign in, with an attack beside them or without.
#[derive(Clone, Copy, Debug, Serialize)]
struct Run {
    master_cpu_seconds: f64,
    master_memory_growth_bytes: u64,
    seconds: f64,
    players: SignInReport,
    attackers: HttpReport,
}

/// Runs every attack against a master of its own, with its default limits, and judges sign-ins, memory and CPU time.
pub(super) fn bars(
    verdict: Verdict,
    surroundings: Surroundings,
    seconds: u64,
) -> anyhow::Result<Vec<Bar>> {
    let mut bars = Vec::new();
    for sign_in in [SignIn::Guests, SignIn::Passwords, SignIn::GuestsOverTls] {
        let calm = || -> anyhow::Result<Run> {
            let quiet = measure(surroundings, None, sign_in, seconds)?;
            print(&format!("no attack, {sign_in:?}"), &quiet);
            Ok(quiet)
        };
        let mut quiet = calm()?;
        for plan in PLANS.iter().filter(|plan| plan.sign_in == sign_in) {
            bars.extend(settle(verdict, |again| {
                if again {
                    quiet = calm()?;
                }
                let run = measure(surroundings, Some(plan), sign_in, seconds)?;
                print(plan.name, &run);
                Ok(judge(plan, &run, &quiet))
            })?);
        }
    }
    Ok(bars)
}

fn measure(
    surroundings: Surroundings,
    plan: Option<&Plan>,
    sign_in: SignIn,
    seconds: u64,
) -> anyhow::Result<Run> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (mut tls, mut certificate) = (String::new(), String::new());
    if sign_in == SignIn::GuestsOverTls {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        std::fs::write(path("chain"), made.cert.pem())?;
        std::fs::write(path("key"), made.signing_key.serialize_pem())?;
        tls = format!("--tls-cert {} --tls-key {}", path("chain"), path("key"));
        certificate = format!("--certificate {}", path("chain"));
    }
    let mut programs = Programs::new(surroundings);
    let (database, port) = (path("muse.db"), two_free_ports()?);
    if plan.is_some_and(|plan| plan.attack == HttpAttack::Rankings) {
        make_accounts(&database)?;
    }
    let line = format!(
        "master --listen 127.0.0.1:{port} --database {database} --matches-max 0 --warm 0 {tls}"
    );
    let mut master = programs.muse("the master", 0, &line)?;
    master.expect("http", START_MAX)?;
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let mut attackers = plan
        .map(|plan| {
            let to = format!("{at} {certificate}");
            start_attackers(
                &mut programs,
                &to,
                plan.attack,
                plan.connections,
                plan.pause_ms,
            )
        })
        .transpose()?;
    programs.set_realtime(PRIORITY);
    let by_password = match sign_in {
        SignIn::Passwords => "--by-password",
        _ => "",
    };
    let line = format!("bench-hostile sign-ins --master {at} {certificate} {by_password}");
    let mut players = programs.muse("the players", 1, &line)?;
    players.expect("connected", START_MAX)?;
    let (before, cpu) = (master.watch_memory()?, master.cpu_seconds()?);
    let begun = std::time::Instant::now();
    if let Some(attackers) = &mut attackers {
        attackers.say("go")?;
    }
    players.say("go")?;
    std::thread::sleep(Duration::from_secs(seconds));
    let master_cpu_seconds = master.cpu_seconds()? - cpu;
    let master_memory_growth_bytes = master.memory()?.resident_max.saturating_sub(before);
    let seconds = begun.elapsed().as_secs_f64();
    let attackers = attackers.map(Role::stop::<HttpReport>).transpose()?;
    let players: SignInReport = players.stop()?;
    ensure!(players.count > 0, "nobody tried to sign in");
    Ok(Run {
        master_cpu_seconds,
        master_memory_growth_bytes,
        seconds,
        players,
        attackers: attackers.unwrap_or_default(),
    })
}

/// Makes accounts in a new database, so that a ranking has lines to read.
fn make_accounts(database: &str) -> anyhow::Result<()> {
    let store = SqlStore::sqlite(Path::new(database))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let now = muse_wire::Instant::ZERO;
    runtime.block_on(async {
        for some in 0..ACCOUNTS / ACCOUNTS_AT_ONCE {
            let numbers = some * ACCOUNTS_AT_ONCE..(some + 1) * ACCOUNTS_AT_ONCE;
            let guests =
                numbers.map(|number| store.guest(format!("a device, number {number}"), now));
            try_join_all(guests).await?;
        }
        Ok(())
    })
}

/// Starts attackers over TCP, which wait until they are told to begin.
pub(super) fn start_attackers(
    programs: &mut Programs,
    server: &str,
    attack: HttpAttack,
    connections: u64,
    pause_ms: u64,
) -> anyhow::Result<Role> {
    let value = attack.to_possible_value();
    let value = value.context("every attack has a name")?;
    let line = format!(
        "bench-hostile http --server {server} --attack {} --connections {connections} --pause-ms {pause_ms}",
        value.get_name(),
    );
    let mut attackers = programs.muse("the attackers", 1, &line)?;
    attackers.expect("connected", START_MAX)?;
    Ok(attackers)
}

fn print(name: &str, run: &Run) {
    println!(
        "  {name:26} sign-ins {:3}, p50 {:.1} ms, p99 {:.1} ms, {} failed; master {:.0} % of its core, memory +{} kB; hostile {:.0} connections/s, {:.0} kB/s",
        run.players.count,
        run.players.ms_p50,
        run.players.ms_p99,
        run.players.failed,
        100.0 * run.master_cpu_seconds / run.seconds,
        run.master_memory_growth_bytes / 1_024,
        run.attackers.connections as f64 / run.seconds,
        run.attackers.bytes as f64 / 1e3 / run.seconds,
    );
}

fn judge(plan: &Plan, run: &Run, quiet: &Run) -> Vec<Bar> {
    let name = |what: &str| format!("hostile_{}_{what}", plan.name);
    // What honest sign-ins cost without an attack they cost during one, too.
    let each = quiet.master_cpu_seconds / quiet.players.count as f64;
    let hostile_cpu = (run.master_cpu_seconds - each * run.players.count as f64).max(0.0);
    let hostile = hostile_cpu / run.attackers.bytes.max(1) as f64;
    let honest = quiet.master_cpu_seconds / quiet.players.bytes.max(1) as f64;
    let lane = match plan.sign_in {
        SignIn::Passwords => HASH_KILOBYTES,
        _ => 0.0,
    };
    let held = run.master_memory_growth_bytes as f64 - quiet.master_memory_growth_bytes as f64;
    let open = plan.connections.min(CONNECTIONS_PER_ADDRESS) as f64;
    let limit = run.attackers.bytes as f64 / 1e3 + open * CONNECTION_KILOBYTES + lane;
    vec![
        Bar::at_most(name("sign_in_ms_p99"), run.players.ms_p99, 500.0).timed(),
        Bar::at_most(name("cpu_per_byte_ratio"), hostile / honest, 4.0).timed(),
        Bar::at_most(name("memory_kilobytes"), held / 1e3, limit),
    ]
}

/// A port after which the next one is free too: a master with TLS needs both.
fn two_free_ports() -> anyhow::Result<u16> {
    loop {
        let first = TcpListener::bind("127.0.0.1:0")?;
        let port = first.local_addr()?.port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return Ok(port);
        }
    }
}

/// Players run in the real-time class, where that is allowed, ahead of the attackers on their core.
const PRIORITY: u8 = 20;
/// Connections of one address that a master keeps by default, and memory that each may take: a header that is not complete, and TLS.
const CONNECTIONS_PER_ADDRESS: u64 = 256;
const CONNECTION_KILOBYTES: f64 = 64.0;
/// Accounts in the database of which rankings are asked for.
const ACCOUNTS: u64 = 20_000;
const ACCOUNTS_AT_ONCE: u64 = 1_000;
/// Memory of one password that is hashed; one address has one of two lanes.
const HASH_KILOBYTES: f64 = 20_000.0;
const START_MAX: Duration = Duration::from_secs(20);
