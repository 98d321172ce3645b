//! A full game server: players talk, others lose their connection and come back with their token, and strangers knock.
//!
//! Strangers have tokens, too, for which there is no place, so that nothing but a whole handshake tells them apart from those who come back.

mod players;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use muse_bench_workload::control::Control;
use muse_drivers::clock::unix_time;
use muse_drivers::{
    Clock, Driver, SystemEntropy, UdpDriver, UdpOptions, UdpWebDriver, WebListener, WebOptions,
};
use muse_transport::token::{ConnectToken, TokenGrant, TokenIssuer, TokenVerifier};
use muse_transport::{
    ChannelConfig, Config, Connect, Delivery, Endpoint, Event, ServerKey, ServerOptions,
};
use muse_wire::Machine;

use super::attacker::AttackReport;
use crate::isolation::Surroundings;
use crate::role::{Programs, Role};
use muse_program::bars::Bar;
pub(super) use players::SeatReport;

/// The program to run.
#[derive(Subcommand)]
pub(crate) enum SeatRole {
    /// The server.
    Server(ServerArguments),
    /// Those who have a seat.
    Players(SeatArguments),
    /// Those who have none.
    Strangers(SeatArguments),
}

/// The options of the server.
#[derive(Args)]
pub(crate) struct ServerArguments {
    /// Serve browsers as well, at the TCP port of the same number.
    #[arg(long)]
    web: bool,
}

/// The server to play on.
#[derive(Args)]
pub(crate) struct SeatArguments {
    #[arg(long)]
    server: SocketAddr,
    /// Some players lose their connection over and over, and come back.
    #[arg(long)]
    leave: bool,
}

/// Runs one of the programs.
pub(super) fn run(role: &SeatRole) -> anyhow::Result<ExitCode> {
    match role {
        SeatRole::Server(arguments) => serve(arguments.web)?,
        SeatRole::Players(arguments) => players::run(arguments.server, arguments.leave)?,
        SeatRole::Strangers(arguments) => knock(arguments.server)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends everything back, with as many seats as there are players, until told to stop.
fn serve(web: bool) -> anyhow::Result<()> {
    let control = Control::start();
    let mut verifier = TokenVerifier::new();
    verifier.add_key(KEY_ID, &issuer().public_key())?;
    let mut server = Node::new((Ipv4Addr::LOCALHOST, 0).into())?;
    let options = ServerOptions::new(server_key()).tokens(verifier);
    server.endpoint.listen(options);
    if web {
        let listener = WebListener::bind(WebOptions::new(server.driver.local_addr()?))?;
        server.driver = server.driver.with_web(listener)?;
    }
    control.ready(server.driver.local_addr()?.port());
    let mut message = Vec::new();
    let mut next = server.clock.now() + TICK;
    while !control.has_stopped() {
        let now = server.clock.now();
        server.driver.receive(now, &mut server.endpoint)?;
        while let Some(event) = server.endpoint.poll_event(&mut message) {
            if let Event::Message {
                connection,
                channel,
                payload,
            } = event
            {
                let _ = server.endpoint.send(now, connection, channel, payload);
            }
        }
        server.flush()?;
        next = (next + TICK).max(now);
        std::thread::sleep(server.clock.until(next).into());
    }
    control.result(&());
    Ok(())
}

/// Strangers who connect with tokens of their own, are refused and try again, at a rate.
fn knock(server: SocketAddr) -> anyhow::Result<()> {
    let control = Control::start();
    let mut strangers = Vec::new();
    for number in 0..STRANGERS {
        strangers.push(Node::new(SocketAddr::from(([127, 66, number, 1], 0)))?);
    }
    control.connected();
    while !control.has_started() {
        std::thread::sleep(TURN);
    }
    let (begun, mut knocks) = (std::time::Instant::now(), 0_u64);
    let (mut report, mut message) = (AttackReport::default(), Vec::new());
    let mut gone = 0;
    while !control.has_stopped() {
        let due = (begun.elapsed().as_secs_f64() * KNOCKS_PER_SECOND) as u64;
        while knocks < due {
            let stranger = &mut strangers[knocks as usize % usize::from(STRANGERS)];
            let token = token(server, STRANGER_FIRST + knocks)?;
            knocks += 1;
            let how = Connect::token(token).timeout(KNOCK_TIMEOUT);
            // Too many under way: the server does not answer.
            if stranger
                .endpoint
                .connect(stranger.clock.now(), server, how)
                .is_err()
            {
                break;
            }
        }
        for stranger in &mut strangers {
            let now = stranger.clock.now();
            stranger.driver.receive(now, &mut stranger.endpoint)?;
            while let Some(event) = stranger.endpoint.poll_event(&mut message) {
                gone += u64::from(matches!(event, Event::Refused { .. }));
            }
            report.sent_bytes += stranger.flush()?;
        }
        std::thread::sleep(TURN);
    }
    report.sent = knocks;
    report.cut = gone;
    control.result(&report);
    Ok(())
}

/// An endpoint, its socket and its clock.
struct Node {
    endpoint: Endpoint,
    driver: UdpWebDriver,
    clock: Clock,
}

impl Node {
    fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let mut endpoint = Endpoint::new(config()?, SystemEntropy::new()?);
        endpoint.set_unix_time(clock.now(), unix_time().as_micros() / 1_000_000);
        Ok(Self {
            endpoint,
            driver: UdpWebDriver::new(UdpDriver::bind(address, &UdpOptions::default())?),
            clock,
        })
    }

    /// Does what is due, and sends. Returns the bytes of what was sent.
    fn flush(&mut self) -> anyhow::Result<u64> {
        let now = self.clock.now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        let before = self.driver.udp().counters().bytes_sent;
        self.driver.flush(now, &mut self.endpoint)?;
        Ok(self.driver.udp().counters().bytes_sent - before)
    }
}

/// A server that is full, its players, and strangers or none.
struct Run {
    players: SeatReport,
    strangers: AttackReport,
    server_cpu_seconds: f64,
    server_memory_growth_bytes: u64,
}

/// Judges those who play and those who come back while strangers knock, beside a server on which nobody does.
pub(super) fn bars(surroundings: Surroundings, seconds: u64) -> anyhow::Result<Vec<Bar>> {
    let steady = measure(surroundings, seconds, false, false)?;
    print("nobody leaves", &steady);
    let quiet = measure(surroundings, seconds, true, false)?;
    print("no attack", &quiet);
    let run = measure(surroundings, seconds, true, true)?;
    print("strangers", &run);
    let name = |what: &str| format!("hostile_full_server_{what}");
    let ratio = run.players.ms_p99 / quiet.players.ms_p99;
    let returning = quiet.server_cpu_seconds - steady.server_cpu_seconds;
    let honest = returning / quiet.players.returned.max(1) as f64;
    let knocking = (run.server_cpu_seconds - quiet.server_cpu_seconds).max(0.0);
    let hostile = knocking / run.strangers.sent.max(1) as f64;
    let held = run.server_memory_growth_bytes as f64 / 1e3;
    let limit = (quiet.server_memory_growth_bytes + run.strangers.sent_bytes) as f64 / 1e3;
    let back = 100.0 * run.players.returned as f64 / run.players.left.max(1) as f64;
    let (reliable, back_ms) = (run.players.reliable_percent(), run.players.return_ms_p99);
    Ok(vec![
        Bar::at_most(name("p99_ratio"), ratio, 2.0).timed(),
        Bar::at_least(name("reliable_percent"), reliable, 100.0),
        Bar::at_least(name("came_back_percent"), back, 100.0),
        Bar::at_most(name("come_back_ms_p99"), back_ms, 500.0).timed(),
        Bar::at_most(name("cpu_per_handshake_ratio"), hostile / honest, 4.0).timed(),
        Bar::at_most(name("memory_kilobytes"), held, limit + MEMORY_KILOBYTES),
    ])
}

fn measure(
    surroundings: Surroundings,
    seconds: u64,
    leave: bool,
    attack: bool,
) -> anyhow::Result<Run> {
    let mut programs = Programs::new(surroundings);
    let mut server = programs.muse("the server", 0, "bench-hostile seats server")?;
    let at = format!("127.0.0.1:{}", server.port(START_MAX)?);
    let mut strangers = None;
    if attack {
        let line = format!("bench-hostile seats strangers --server {at}");
        strangers = Some(programs.muse("the strangers", 1, &line)?);
    }
    programs.set_realtime(PRIORITY);
    let option = if leave { "--leave" } else { "" };
    let line = format!("bench-hostile seats players --server {at} {option}");
    let mut players = programs.muse("the players", 1, &line)?;
    players.expect("connected", START_MAX)?;
    if let Some(strangers) = &mut strangers {
        strangers.expect("connected", START_MAX)?;
        strangers.say("go")?;
    }
    let (before, cpu) = (server.watch_memory()?, server.cpu_seconds()?);
    players.say("go")?;
    std::thread::sleep(Duration::from_secs(seconds));
    let server_cpu_seconds = server.cpu_seconds()? - cpu;
    let server_memory_growth_bytes = server.memory()?.resident_max.saturating_sub(before);
    let players: SeatReport = players.stop()?;
    let strangers = strangers.map(Role::stop::<AttackReport>).transpose()?;
    Ok(Run {
        players,
        strangers: strangers.unwrap_or_default(),
        server_cpu_seconds,
        server_memory_growth_bytes,
    })
}

fn print(name: &str, run: &Run) {
    let Run { players, .. } = run;
    println!(
        "  {name:16} p50 {:.1} ms, p99 {:.1} ms, reliable {:.2} %, {} of {} came back, p99 {:.1} ms; server {:.2} CPU-s, memory +{} kB; {} knocks of {} kB, {} refused",
        players.ms_p50,
        players.ms_p99,
        players.reliable_percent(),
        players.returned,
        players.left,
        players.return_ms_p99,
        run.server_cpu_seconds,
        run.server_memory_growth_bytes / 1_024,
        run.strangers.sent,
        run.strangers.sent_bytes / 1_024,
        run.strangers.cut,
    );
}

/// A token for an hour.
fn token(server: SocketAddr, account: u64) -> anyhow::Result<ConnectToken> {
    let grant = TokenGrant::new(account, server_key().public(), server).lifetime_s(3_600);
    let unix_s = unix_time().as_micros() / 1_000_000;
    Ok(issuer().issue(&grant, unix_s, &mut SystemEntropy::new()?)?)
}

/// The master's key: all three programs know it, nobody relies on it.
fn issuer() -> TokenIssuer {
    TokenIssuer::from_bytes(PROTOCOL, KEY_ID, &[0x6d; 32])
}

fn server_key() -> ServerKey {
    ServerKey::from_bytes([0x6e; 32])
}

fn config() -> anyhow::Result<Config> {
    let config = Config::new(PROTOCOL)
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .connections_max(SEATS);
    Ok(config.build()?)
}

const PROTOCOL: u64 = 0x6d75_7365_2073_6561;
const KEY_ID: u32 = 1;
const UNRELIABLE: u8 = 0;
const RELIABLE: u8 = 1;
/// Seats of the server; all are taken.
const SEATS: usize = 50;
/// Addresses of strangers, each in another network of 256.
const STRANGERS: u8 = 32;
/// Handshakes with a good token that strangers begin in a second.
const KNOCKS_PER_SECOND: f64 = 200.0;
/// Accounts of strangers begin here.
const STRANGER_FIRST: u64 = 1_000_000;
const KNOCK_TIMEOUT: muse_wire::Duration = muse_wire::Duration::from_secs(2);
const TICK: muse_wire::Duration = muse_wire::Duration::from_millis(16);
const TURN: Duration = Duration::from_millis(2);
/// Memory beside the bytes received that an attack may cost: what the program itself takes as it goes.
const MEMORY_KILOBYTES: f64 = 64.0;
const PRIORITY: u8 = 20;
const START_MAX: Duration = Duration::from_secs(20);
