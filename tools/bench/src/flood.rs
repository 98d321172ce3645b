//! `muse bench flood`: what players notice while strangers send handshakes as fast as a core can.
//!
//! The server has one core, the flood and the players share the other, where the players come first. Twice, each time beside the same players without a flood: with a server that looks at its socket once a
//! tick, as a plain game loop does, and with one that takes datagrams in as they come. Both are judged, by the worse of
//! them.

mod flooder;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::counters::{Traffic, socket_drops};
use super::crowd::{ClientsReport, Counts, ServerReport};
use super::isolation::Surroundings;
use super::results::Output;
use super::role::{Programs, Role};
pub(crate) use flooder::{FloodArguments, FloodReport, run as run_flooder};
use muse_program::bars::{Bar, Verdict, settle};

/// The number of players, and the duration.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench flood --bars\n\nA bar that falls short is measured again: the median of three counts. With --quick, a bar of times is short only if it was in each of five rounds.\n\n\
Exit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// Players, each with 20 messages a second, one in ten reliable.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    players: u64,
    /// Seconds that each flood lasts; 10, or 3 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Datagrams of the flood that go to the kernel as one. More than 1 makes a flood several times as fast as a core
    /// can send single datagrams.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    train: u8,
    /// Shortened: 3 seconds, and times are judged by the best of up to five rounds.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// One run: players, and a flood or none.
#[derive(Serialize)]
struct Flood {
    server_takes_datagrams: &'static str,
    /// The players' round trips' p99 beside that without a flood; none in a run without one.
    p99_ratio: Option<f64>,
    delivered_percent: f64,
    reliable_percent: f64,
    unreliable_percent: f64,
    flood_per_second: f64,
    read_per_second: f64,
    replies_per_second: f64,
    /// Payload bytes sent to strangers for each byte of theirs that was read at all.
    bytes_out_per_byte_in: f64,
    /// The longest reply against the shortest question.
    longest_reply_to_question: f64,
    kernel: Kernel,
    server: ServerReport,
    players: ClientsReport,
    flood: FloodReport,
}

/// The kernel's counters, seen from outside.
#[derive(Serialize)]
struct Kernel {
    seconds: f64,
    memory_growth_bytes: i64,
    server_core_share: f64,
    server_socket_drops: u64,
    receive_buffer_errors: u64,
}

#[derive(Serialize)]
struct Results {
    floods: Vec<Flood>,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    let mut floods = Vec::new();
    let bars = settle(Verdict::of(arguments.quick), |_| {
        let begun = floods.len();
        for (name, option) in [("once a tick", ""), ("as they come", "--drain")] {
            let quiet = measure(arguments, surroundings, name, option, false)?;
            let before = quiet.players.round_trip_ms_p99;
            println!("no flood, the server takes datagrams {name}: round trips p99 {before:.1} ms");
            let mut flood = measure(arguments, surroundings, name, option, true)?;
            flood.p99_ratio = Some(flood.players.round_trip_ms_p99 / before);
            print(&flood);
            floods.extend([quiet, flood]);
        }
        Ok(bars(&floods[begun..]))
    })?;
    let results = Results { floods, bars };
    arguments.output.finish(&results, &results.bars)
}

fn measure(
    arguments: &Arguments,
    surroundings: Surroundings,
    name: &'static str,
    option: &str,
    floods: bool,
) -> anyhow::Result<Flood> {
    let default = if arguments.quick { 3 } else { 10 };
    let seconds = arguments.seconds.unwrap_or(default);
    let mut programs = Programs::new(surroundings);
    let words = format!("bench-crowd server --tick-ms 16 {option}");
    let mut server = programs.muse("the server", 0, &words)?;
    let port = server.port(START_MAX)?;
    let train = arguments.train;
    let words = format!("bench-flood --server 127.0.0.1:{port} --train {train}");
    let mut flooder = floods
        .then(|| programs.muse("the flood", 1, &words))
        .transpose()?;
    programs.set_realtime(PRIORITY);
    // The players talk before the flood too, so that its memory is not mistaken for theirs.
    let words = format!(
        "bench-crowd clients --server 127.0.0.1:{port} --clients {} --rate 20 --reliable-every 10 --seconds {seconds} --warm-up-seconds 3",
        arguments.players
    );
    let mut players = programs.muse("the players", 1, &words)?;
    if let Some(flooder) = &mut flooder {
        flooder.expect("started", START_MAX)?;
    }
    players.expect("connected", CONNECT_MAX)?;

    let pid = server.pid();
    let (before, cpu) = (server.memory()?.resident, server.cpu_seconds()?);
    let (traffic, drops) = (Traffic::of(pid)?, socket_drops(pid, port)?);
    server.say("go")?;
    if let Some(flooder) = &mut flooder {
        flooder.say("go")?;
    }
    let began = std::time::Instant::now();
    players.say("go")?;
    players.expect("done", Duration::from_secs(seconds + 30))?;
    let took = began.elapsed().as_secs_f64();
    let after = server.memory()?.resident_max;
    let cpu = server.cpu_seconds()? - cpu;
    let drops = socket_drops(pid, port)? - drops;
    let traffic = Traffic::of(pid)?.since(&traffic);
    let flood = flooder.map(Role::stop::<FloodReport>).transpose()?;
    let players: ClientsReport = players.stop()?;
    let server: ServerReport = server.stop()?;

    let kernel = Kernel {
        seconds: took,
        memory_growth_bytes: after as i64 - before as i64,
        server_core_share: cpu / took,
        server_socket_drops: drops,
        receive_buffer_errors: traffic.receive_buffer_errors,
    };
    let flood = flood.unwrap_or_default();
    Ok(summarise(name, kernel, server, players, flood))
}

fn summarise(
    name: &'static str,
    kernel: Kernel,
    server: ServerReport,
    players: ClientsReport,
    flood: FloodReport,
) -> Flood {
    let share = |count: fn(Counts) -> u64, refused: u64| {
        let arrived = count(server.received) + count(players.received);
        let sent = count(players.sent) + count(server.sent) + refused;
        100.0 * arrived as f64 / sent.max(1) as f64
    };
    let read = server.hellos + server.connects + server.malformed;
    // Unread packets were not answered either; the shortest question is what counts.
    let bytes_read = (read * flood.question_len_min).max(1);
    Flood {
        server_takes_datagrams: name,
        p99_ratio: None,
        delivered_percent: share(Counts::all, players.refused + server.refused),
        reliable_percent: share(|counts| counts.reliable, 0),
        unreliable_percent: share(|counts| counts.unreliable, 0),
        flood_per_second: flood.sent as f64 / kernel.seconds,
        read_per_second: read as f64 / kernel.seconds,
        replies_per_second: flood.replies as f64 / kernel.seconds,
        bytes_out_per_byte_in: flood.reply_bytes as f64 / bytes_read as f64,
        longest_reply_to_question: flood.reply_len_max as f64 / flood.question_len_min as f64,
        kernel,
        server,
        players,
        flood,
    }
}

fn print(flood: &Flood) {
    println!(
        "flood of {:.0} handshakes/s for {:.1} s, the server takes datagrams {}",
        flood.flood_per_second, flood.kernel.seconds, flood.server_takes_datagrams
    );
    println!(
        "  players' messages delivered, both ways: {:.3} % (reliable {:.3} %, unreliable {:.3} %), {} connections cut",
        flood.delivered_percent,
        flood.reliable_percent,
        flood.unreliable_percent,
        flood.players.cut
    );
    println!(
        "  players' round trips: p99 {:.1} ms, {:.2} times that without a flood",
        flood.players.round_trip_ms_p99,
        flood.p99_ratio.unwrap_or(f64::NAN)
    );
    println!(
        "  server: {:.0} % of its core, memory {:+} kB; read {:.0}/s, replied {:.0}/s",
        flood.kernel.server_core_share * 100.0,
        flood.kernel.memory_growth_bytes / 1_024,
        flood.read_per_second,
        flood.replies_per_second
    );
    println!(
        "  bytes out per byte in {:.3}, longest reply to shortest question {:.2}",
        flood.bytes_out_per_byte_in, flood.longest_reply_to_question
    );
    println!(
        "  RcvbufErrors {}; the server's socket dropped {}, by its sieve or for want of room\n",
        flood.kernel.receive_buffer_errors, flood.kernel.server_socket_drops
    );
}

/// Judges runs with a flood; those without one among `runs` are what these are compared with.
fn bars(runs: &[Flood]) -> Vec<Bar> {
    let floods = || runs.iter().filter(|run| run.p99_ratio.is_some());
    let worst = |figure: fn(&Flood) -> f64| floods().map(figure).reduce(f64::max);
    let delivered = floods().map(|flood| flood.delivered_percent);
    let reliable = floods().map(|flood| flood.reliable_percent);
    let ratio = floods().filter_map(|flood| flood.p99_ratio);
    let memory = worst(|flood| flood.kernel.memory_growth_bytes as f64 / 1e6);
    let bytes = worst(|flood| flood.bytes_out_per_byte_in);
    let longest = worst(|flood| flood.longest_reply_to_question);
    vec![
        Bar::at_least("flood_delivered_percent", delivered.reduce(f64::min), 99.0),
        Bar::at_least("flood_reliable_percent", reliable.reduce(f64::min), 100.0),
        Bar::at_most("flood_p99_ratio", ratio.reduce(f64::max), 2.0).timed(),
        Bar::at_most("flood_memory_growth_megabytes", memory, 1.0),
        Bar::at_most("flood_bytes_out_per_byte_in", bytes, 1.0),
        Bar::at_most("flood_longest_reply_to_question", longest, 1.0),
    ]
}

const PRIORITY: u8 = 20;
const START_MAX: Duration = Duration::from_secs(20);
const CONNECT_MAX: Duration = Duration::from_secs(70);
