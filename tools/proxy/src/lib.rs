//! `muse proxy`: a bad network in front of any UDP server.
//!
//! `engine` is the proxy; the conditions are those of `muse-netem`, which simulations use too. `desk` changes them at run time, for
//! standard input and for the `page`.

mod capture;
mod control;
mod desk;
pub mod engine;
mod flights;
mod page;
mod port;
mod report;
mod sockets;
mod streams;
mod waiter;
mod way;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anyhow::Context;
use clap::Args;
use muse_netem::{Conditions, Profile};
use muse_wire::{Duration, Instant};

use capture::CaptureFile;
use control::Request;
use desk::{Answer, Desk};
use engine::{Engine, Setup, Statistics};
use muse_program::address::resolve;
use muse_program::interrupt::Interrupt;
use way::{Pair, Way};

/// The addresses, and the conditions of the network.
#[derive(Args)]
#[command(
    after_help = "Example: muse proxy --listen :9000 --to game.example:8888 --rtt 80 --jitter 10 --loss 2
         muse proxy --listen :9000 --to 127.0.0.1:8888 --profile hotel --page 127.0.0.1:9001
         muse proxy --listen :9000 --to 127.0.0.1:8888 --rtt 60 --up rate=1mbit,queue=300ms --down loss=5,burst=4
         muse proxy --listen :7777 --to 127.0.0.1:7788 --tcp --profile 4g --capture bad.pcapng
         muse proxy --list-profiles

Point clients at --listen instead of at the server. While it runs, lines on standard input change the network:
`loss 5`, `rtt 200`, `down rate 1mbit`, `profile satellite`, `cut 5`, `stats`, `help`. Ctrl-C ends it with a summary.
docs/proxy.md and docs/netem.md define all values."
)]
pub struct Arguments {
    /// Address that clients send to; `:PORT` for every address of this machine, port 0 lets the system choose.
    #[arg(
        long,
        value_name = "[HOST]:PORT",
        required_unless_present = "list_profiles"
    )]
    listen: Option<String>,
    /// The server to forward to.
    #[arg(
        long,
        value_name = "HOST:PORT",
        required_unless_present = "list_profiles"
    )]
    to: Option<String>,
    #[command(flatten)]
    network: NetworkArguments,
    /// Random seed: the same seed and the same packets give the same losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Forward TCP connections too, with the same delay, jitter and rate, but without loss.
    #[arg(long)]
    tcp: bool,
    /// Share one link in each direction between all clients, rather than one for each.
    #[arg(long)]
    shared: bool,
    /// Most clients at a time.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    clients_max: u32,
    /// Seconds of silence after which a client is forgotten.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle_seconds: u64,
    /// Write all packets of both sides to this file, for Wireshark.
    #[arg(long, value_name = "FILE.pcapng")]
    capture: Option<PathBuf>,
    /// Serve a page with sliders and counters at this address; a port alone is on loopback.
    #[arg(long, value_name = "[HOST:]PORT")]
    page: Option<String>,
    /// End after this many seconds.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// No live counters on standard error.
    #[arg(long)]
    quiet: bool,
    /// Print all profiles with their conditions, and exit.
    #[arg(long)]
    list_profiles: bool,
}

/// Network conditions. Values are milliseconds and percentages unless stated otherwise.
#[derive(Args)]
struct NetworkArguments {
    /// Named network to start from; the options below change it.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Round trip, half of it in each direction.
    #[arg(long, value_name = "MS", conflicts_with = "delay")]
    rtt: Option<String>,
    /// Delay of each direction.
    #[arg(long, value_name = "MS")]
    delay: Option<String>,
    /// Variation of each direction's delay: plus or minus MS, or uniform:MAX, normal:MEAN:DEVIATION, pareto:SCALE:SHAPE:MAX.
    #[arg(long, value_name = "MS")]
    jitter: Option<String>,
    /// Keep packets in order despite jitter.
    #[arg(long)]
    keep_order: bool,
    /// Share of packets lost in each direction.
    #[arg(long, value_name = "PERCENT")]
    loss: Option<String>,
    /// Mean length of bursts of losses, in packets.
    #[arg(long, value_name = "PACKETS")]
    burst: Option<String>,
    /// Rate limit in each direction, headers included: 500kbit, 1mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Queue in front of the rate limit; packets beyond it are lost: 100ms, 64kb.
    #[arg(long, value_name = "TIME|SIZE")]
    queue: Option<String>,
    /// Share of packets that arrive twice; 2:5 for 2 % with the copy 5 ms later.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1")]
    duplicate: Option<String>,
    /// Share of packets delayed by 20 ms, so that others overtake them; 2:50 for 2 % by 50 ms.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1")]
    reorder: Option<String>,
    /// Share of packets with flipped bits.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "1")]
    corrupt: Option<String>,
    /// Largest IP packet.
    #[arg(long, value_name = "BYTES")]
    mtu: Option<String>,
    /// Conditions that differ from clients to the server: loss=2,rate=1mbit (delay, jitter, order, loss, burst, rate, queue, duplicate, reorder,
    /// corrupt, truncate, mark, mtu).
    #[arg(long, value_name = "KNOB=VALUE,...")]
    up: Option<String>,
    /// Conditions that differ from the server to clients.
    #[arg(long, value_name = "KNOB=VALUE,...")]
    down: Option<String>,
}

/// Forwards until Ctrl-C, `quit` or the end of `--seconds`.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list_profiles {
        println!("{}", report::profiles());
        return Ok(ExitCode::SUCCESS);
    }
    let interrupt = Interrupt::listen()?;
    let (name, conditions) = arguments.network.conditions()?;
    let mut engine = Engine::new(arguments.setup()?, conditions.clone())?;
    if let Some(path) = &arguments.capture {
        engine.capture(CaptureFile::create(path)?);
    }
    let (asker, requests) = control::asker(engine.waker());
    let mut line = format!("ready {}", engine.local_addr());
    if let Some(address) = &arguments.page {
        let address = resolve(&match address.parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) => address.clone(),
        })?;
        line += &format!(" page http://{}/", page::serve(address, asker.clone())?);
    }
    println!("{line}");
    control::read_lines(asker);
    let mut desk = Desk::new(&name, &conditions);
    say_start(&engine, &desk);
    let end = arguments.seconds.map(Instant::from_secs);
    let mut live = Live::new(!arguments.quiet && std::io::stderr().is_terminal());
    while !interrupt.is_raised() && end.is_none_or(|end| engine.now() < end) {
        engine.turn(TURN_MAX)?;
        if !answer(&requests, &mut desk, &mut engine) {
            break;
        }
        live.show(&engine, desk.name());
    }
    live.clear();
    let statistics = engine.statistics();
    engine.finish()?;
    // The program that started it may be gone; that is no error.
    let _ = writeln!(
        std::io::stdout(),
        "after {:.1} s\n{}",
        statistics.uptime.as_secs_f64(),
        report::table(&statistics)
    );
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn setup(&self) -> anyhow::Result<Setup> {
        let listen = self.listen.as_deref().context("--listen is missing")?;
        let to = self.to.as_deref().context("--to is missing")?;
        Ok(Setup {
            listen: sockets::listen_addresses(listen)?,
            server: resolve(to)?,
            seed: self.seed,
            clients_max: self.clients_max as usize,
            idle: Duration::from_secs(self.idle_seconds),
            shared: self.shared,
            tcp: self.tcp,
        })
    }
}

impl NetworkArguments {
    /// Returns the name of the conditions, and the conditions in each direction.
    fn conditions(&self) -> anyhow::Result<(String, Pair)> {
        let name = self.profile.as_deref().unwrap_or("perfect");
        let profile =
            Profile::named(name).ok_or_else(|| anyhow::Error::msg(desk::unknown_profile(name)))?;
        let mut changed = false;
        let mut pair = Way::BOTH.map(|way| desk::of_profile(profile, way));
        for (way, conditions) in Way::BOTH.into_iter().zip(&mut pair) {
            for (knob, value) in self.knobs() {
                changed = true;
                conditions
                    .set(knob, value)
                    .with_context(|| format!("--{knob} {value}"))?;
            }
            let (option, own) = match way {
                Way::Up => ("--up", &self.up),
                Way::Down => ("--down", &self.down),
            };
            for word in own.iter().flat_map(|own| own.split(',')) {
                changed = true;
                set_word(conditions, word).with_context(|| format!("{option} {word}"))?;
            }
        }
        let name = match (changed, &self.profile) {
            (true, None) => "custom".to_owned(),
            (true, Some(_)) => format!("{} (changed)", profile.name()),
            (false, _) => profile.name().to_owned(),
        };
        Ok((name, pair.map(Arc::new)))
    }

    /// Returns the values that are the same in both directions.
    fn knobs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let keep = self.keep_order.then_some("keep");
        [
            ("rtt", self.rtt.as_deref()),
            ("delay", self.delay.as_deref()),
            ("jitter", self.jitter.as_deref()),
            ("order", keep),
            ("loss", self.loss.as_deref()),
            ("burst", self.burst.as_deref()),
            ("rate", self.rate.as_deref()),
            ("queue", self.queue.as_deref()),
            ("duplicate", self.duplicate.as_deref()),
            ("reorder", self.reorder.as_deref()),
            ("corrupt", self.corrupt.as_deref()),
            ("mtu", self.mtu.as_deref()),
        ]
        .into_iter()
        .filter_map(|(knob, value)| Some((knob, value?)))
    }
}

fn set_word(conditions: &mut Conditions, word: &str) -> anyhow::Result<()> {
    let (knob, value) = word
        .split_once('=')
        .with_context(|| format!("`{word}` needs a value, as in loss=2"))?;
    Ok(conditions.set(knob, value)?)
}

/// Answers all requests. False when one of them ends the proxy.
fn answer(requests: &Receiver<Request>, desk: &mut Desk, engine: &mut Engine) -> bool {
    let mut goes_on = true;
    for request in requests.try_iter() {
        // The thread that asked may no longer wait for the answer.
        match request {
            Request::Command(line, reply) => drop(reply.send(match desk.execute(engine, &line) {
                Ok(Answer::Text(text)) => Ok(text),
                Ok(Answer::Quit) => {
                    goes_on = false;
                    Ok("ending".to_owned())
                }
                Err(error) => Err(error),
            })),
            Request::State(reply) => drop(reply.send(report::state(desk.name(), engine))),
        }
    }
    goes_on
}

/// Prints on standard error what the proxy does, and what may limit it.
fn say_start(engine: &Engine, desk: &Desk) {
    let [up, down] = engine.conditions();
    eprintln!(
        "{} -> {}  {}\n  up   {up}\n  down {down}",
        engine.local_addr(),
        engine.server(),
        desk.name()
    );
    let granted = engine.receive_buffer();
    if granted < BUFFER_BYTES_ENOUGH {
        tracing::info!(
            "the system grants {} kB of receive buffer; for more than some 10,000 packets a second, raise net.core.rmem_max",
            granted / 1_000
        );
    }
}

/// The line of counters on a terminal: the one above that on which people type.
struct Live {
    on: bool,
    before: Option<Statistics>,
    next: Instant,
}

impl Live {
    fn new(on: bool) -> Self {
        if on {
            eprintln!("Type `help` for the commands that change the network; Ctrl-C ends.\n");
        }
        Self {
            on,
            before: None,
            next: Instant::ZERO,
        }
    }

    fn show(&mut self, engine: &Engine, name: &str) {
        let now = engine.now();
        if !self.on || now < self.next {
            return;
        }
        self.next = now + LIVE_INTERVAL;
        let statistics = engine.statistics();
        if let Some(before) = &self.before {
            let line = report::live_line(name, &statistics, before);
            // A closed terminal is no reason to end.
            let _ = write!(std::io::stderr(), "\x1b7\x1b[1A\r\x1b[2K{line}\x1b8");
        }
        self.before = Some(statistics);
    }

    fn clear(&self) {
        if self.on {
            let _ = write!(std::io::stderr(), "\r\x1b[2K\x1b[1A\x1b[2K");
        }
    }
}

/// Interval at which the proxy checks whether it is to end.
const TURN_MAX: Duration = Duration::from_millis(50);
/// Interval at which the live line changes.
const LIVE_INTERVAL: Duration = Duration::from_millis(500);
/// A receive buffer that holds a moment of 50,000 packets a second.
const BUFFER_BYTES_ENOUGH: usize = 1 << 20;
