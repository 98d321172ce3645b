//! Attacks on the port for browsers of a game server, beside players over UDP and browsers that open sessions.
//!
//! The server is that of the full game server, with the listener that `muse game` has.

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use super::attacker::AttackReport;
use super::browsers::BrowserReport;
use super::http::{HttpAttack, HttpReport};
use super::master::start_attackers;
use super::quic::QuicAttack;
use super::seats::SeatReport;
use crate::isolation::Surroundings;
use crate::role::{Programs, Role};
use muse_program::bars::{Bar, Verdict, settle};

/// An attack at a stated rate.
#[derive(Clone, Copy)]
enum Attack {
    /// Over TCP: connections, and the time until each comes again.
    Tcp(HttpAttack, u64, u64),
    /// Over UDP: packets a second, or connections.
    Quic(QuicAttack, u64),
}

static ATTACKS: [(&str, Attack); 7] = [
    ("silent", Attack::Tcp(HttpAttack::Silent, 200, 100)),
    (
        "half_requests",
        Attack::Tcp(HttpAttack::HalfRequests, 200, 100),
    ),
    ("frames", Attack::Tcp(HttpAttack::BrowsersFrames, 20, 10)),
    ("half_open", Attack::Quic(QuicAttack::HalfOpen, 200)),
    (
        "opened_and_closed",
        Attack::Quic(QuicAttack::OpenedAndClosed, 500),
    ),
    ("unused", Attack::Quic(QuicAttack::Unused, 100)),
    ("garbage", Attack::Quic(QuicAttack::QuicGarbage, 2_000)),
];

struct Run {
    players: SeatReport,
    browsers: BrowserReport,
    server_cpu_seconds: f64,
    server_memory_growth_bytes: u64,
    sent: u64,
    sent_bytes: u64,
}

/// Runs every attack against a server of its own, and judges players and browsers beside it.
pub(super) fn bars(
    verdict: Verdict,
    surroundings: Surroundings,
    seconds: u64,
) -> anyhow::Result<Vec<Bar>> {
    let calm = || -> anyhow::Result<Run> {
        let quiet = measure(surroundings, None, seconds)?;
        print("no attack", &quiet);
        Ok(quiet)
    };
    let mut quiet = calm()?;
    let mut bars = Vec::new();
    for (name, attack) in ATTACKS {
        bars.extend(settle(verdict, |again| {
            if again {
                quiet = calm()?;
            }
            let run = measure(surroundings, Some(attack), seconds)?;
            print(name, &run);
            Ok(judge(name, &run, &quiet))
        })?);
    }
    Ok(bars)
}

fn measure(
    surroundings: Surroundings,
    attack: Option<Attack>,
    seconds: u64,
) -> anyhow::Result<Run> {
    let mut programs = Programs::new(surroundings);
    let mut server = programs.muse("the server", 0, "bench-hostile seats server --web")?;
    let at = format!("127.0.0.1:{}", server.port(START_MAX)?);
    let mut attacker = attack
        .map(|attack| start(&mut programs, &at, attack))
        .transpose()?;
    programs.set_realtime(PRIORITY);
    let line = format!("bench-hostile seats players --server {at}");
    let mut players = programs.muse("the players", 1, &line)?;
    players.expect("connected", START_MAX)?;
    let line = format!("bench-hostile browsers --server {at}");
    let mut browsers = programs.muse("the browsers", 1, &line)?;
    browsers.expect("connected", START_MAX)?;
    let (before, cpu) = (server.watch_memory()?, server.cpu_seconds()?);
    if let Some(attacker) = &mut attacker {
        attacker.say("go")?;
    }
    browsers.say("go")?;
    players.say("go")?;
    std::thread::sleep(Duration::from_secs(seconds));
    let server_cpu_seconds = server.cpu_seconds()? - cpu;
    let server_memory_growth_bytes = server.memory()?.resident_max.saturating_sub(before);
    let players = players.stop()?;
    let browsers = browsers.stop()?;
    let (sent, sent_bytes) = match (attacker, attack) {
        (Some(attacker), Some(Attack::Tcp(..))) => {
            let report: HttpReport = attacker.stop()?;
            (report.connections, report.bytes)
        }
        (Some(attacker), _) => {
            let report: AttackReport = attacker.stop()?;
            (report.sent, report.sent_bytes)
        }
        (None, _) => (0, 0),
    };
    Ok(Run {
        players,
        browsers,
        server_cpu_seconds,
        server_memory_growth_bytes,
        sent,
        sent_bytes,
    })
}

fn start(programs: &mut Programs, server: &str, attack: Attack) -> anyhow::Result<Role> {
    let (attack, amount) = match attack {
        Attack::Tcp(attack, connections, pause_ms) => {
            return start_attackers(programs, server, attack, connections, pause_ms);
        }
        Attack::Quic(attack, amount) => (attack, amount),
    };
    let value = attack.to_possible_value();
    let value = value.context("every attack has a name")?;
    let name = value.get_name();
    let line = format!("bench-hostile quic --server {server} --attack {name} --amount {amount}");
    let mut attacker = programs.muse("the attacker", 1, &line)?;
    attacker.expect("connected", START_MAX)?;
    Ok(attacker)
}

fn print(name: &str, run: &Run) {
    println!(
        "  {name:16} p50 {:.1} ms, p99 {:.1} ms, reliable {:.2} %; sessions {}, {} failed, p99 {:.1} ms WebTransport, {:.1} ms WebSocket; server {:.2} CPU-s, memory +{} kB; {} hostile packets or connections, {} kB",
        run.players.ms_p50,
        run.players.ms_p99,
        run.players.reliable_percent(),
        run.browsers.count,
        run.browsers.failed,
        run.browsers.transport_ms_p99,
        run.browsers.socket_ms_p99,
        run.server_cpu_seconds,
        run.server_memory_growth_bytes / 1_024,
        run.sent,
        run.sent_bytes / 1_024,
    );
}

fn judge(name: &str, run: &Run, quiet: &Run) -> Vec<Bar> {
    let name = |what: &str| format!("hostile_web_{name}_{what}");
    let ratio = run.players.ms_p99 / quiet.players.ms_p99;
    // Nearly all that a quiet server does beside its players, who cost the same in both, is to open sessions.
    let honest = quiet.server_cpu_seconds / (quiet.browsers.count * SESSION_BYTES).max(1) as f64;
    let more = (run.server_cpu_seconds - quiet.server_cpu_seconds).max(0.0);
    let hostile = more / run.sent_bytes.max(1) as f64;
    let held = run.server_memory_growth_bytes as f64 - quiet.server_memory_growth_bytes as f64;
    let limit = run.sent_bytes as f64 / 1e3 + SESSIONS_HELD * SESSION_KILOBYTES;
    let browsers = &run.browsers;
    let reliable = run.players.reliable_percent();
    vec![
        Bar::at_most(name("p99_ratio"), ratio, 2.0).timed(),
        Bar::at_least(name("reliable_percent"), reliable, 100.0),
        Bar::at_most(
            name("webtransport_ms_p99"),
            browsers.transport_ms_p99,
            500.0,
        )
        .timed(),
        Bar::at_most(name("websocket_ms_p99"), browsers.socket_ms_p99, 500.0).timed(),
        Bar::at_most(name("cpu_per_byte_ratio"), hostile / honest, 4.0).timed(),
        Bar::at_most(name("memory_kilobytes"), held / 1e3, limit),
    ]
}

/// Bytes that a browser sends to open a session, on average of both kinds.
const SESSION_BYTES: u64 = 2_000;
/// Sessions of one address that are being made or are open, and memory that each may take.
const SESSIONS_HELD: f64 = 64.0;
const SESSION_KILOBYTES: f64 = 64.0;
const PRIORITY: u8 = 20;
const START_MAX: Duration = Duration::from_secs(20);
