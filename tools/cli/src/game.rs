//! `muse game`: the authoritative server of one match of Biobot, for players over UDP and in browsers.
//!
//! Started by a master, whose environment says where it is, it registers, hosts the match that it is given and admits players with a
//! connect token. Started by hand it admits anybody, which has to be asked for by a `danger` option. One match, then the process ends.
//! [`host`] has the connections and the stage, [`master_link`] the connection to the master, [`records`] the files that are kept of a match.

pub(crate) mod host;
mod locals;
mod master_link;
mod monitor;
mod profiles;
mod records;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use muse_biobot::{Level, Mode, Movement};
use muse_drivers::{EndpointDriver, WebListener, WebOptions, danger_key_log_file, new_key};
use muse_transport::token::TokenVerifier;
use muse_transport::{Config, ServerOptions};

use crate::interrupt::Interrupt;
use crate::master::enrolment::Enrolment;
use host::{Host, MatchPlan};
use master_link::MasterLink;
use muse_program::lateness;
use records::{Records, Tape};

/// The address to listen on, what to play, what to record.
#[derive(Args)]
#[command(
    after_help = "Example: muse game --listen 127.0.0.1:7000 --mode versus --players 4 --danger-no-tokens\n         \
muse game --listen [::]:0 --danger-no-tokens --relay relay.example.com:7788\n\n\
A master starts it without --danger-no-tokens and sets environment variables that say where to register: see `muse up` and\n\
`muse master --protocol-id 1651076962 --game \"muse game\"`. It prints its address and its public key; when the match is over it prints a report on\n\
cheating attempts and on how late its ticks were. Ctrl-C or SIGTERM ends the match."
)]
pub(crate) struct Arguments {
    /// Address and port for players over UDP; port 0 lets the system choose. Not needed if a master starts this program.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// TCP port for browsers; by default the same number as the UDP port.
    #[arg(long, value_name = "PORT", conflicts_with = "no_web")]
    web: Option<u16>,
    /// PEM file of a certificate chain that browsers trust for this machine's name, for pages served over HTTPS; by default that of the master that
    /// starts this program. It is read again when it changes.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "no_web",
        requires = "web_key"
    )]
    web_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    #[arg(long, value_name = "FILE", requires = "web_cert")]
    web_key: Option<PathBuf>,
    /// Do not serve browsers.
    #[arg(long)]
    no_web: bool,
    /// Open a room at this relay besides, for players behind routers; its code is printed.
    #[arg(long, value_name = "HOST:PORT", requires = "danger_no_tokens")]
    relay: Option<String>,
    /// The master's token for that relay, if it demands one.
    #[arg(long, value_name = "TOKEN", requires = "relay")]
    relay_token: Option<String>,
    /// Look for no direct ways: players of the room do not learn this address, nor this server theirs.
    #[arg(long, requires = "relay")]
    relay_only: bool,
    /// Level file to use instead of the mode's own level.
    #[arg(long, value_name = "FILE")]
    level: Option<PathBuf>,
    /// Mode to play; a master's match overrides it.
    #[arg(long, value_enum, default_value_t = PlayMode::Coop)]
    mode: PlayMode,
    /// People that the match waits for; by default 2, less one for each bot, but at least 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    players: Option<u8>,
    /// Bots that this server adds to the match.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    bots: u8,
    /// Difficulty: 0 easy, 1 normal, 2 hard.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    difficulty: u8,
    /// The side that moves the robots: the server from the players' inputs, or the players themselves, checked by the server. With
    /// the ball it is always the server.
    #[arg(long, value_enum, default_value_t = Mover::Server)]
    movement: Mover,
    /// Random seed; drawn at random by default.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Longest duration of a match of versus or ball, in seconds.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    versus_seconds: u32,
    /// File to record the match to; `muse replay` prints and verifies it.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Directory for the records of each match: the recording, the report and, if the program crashes, the reason.
    #[arg(long, value_name = "DIRECTORY")]
    records: Option<PathBuf>,
    /// Print the figures of the match as one line of JSON at the end.
    #[arg(long)]
    figures: bool,
    /// End when the program that started this one ends.
    #[arg(long)]
    with_parent: bool,
    /// File to append the connections' secrets to, so that Wireshark can read a capture: for tests, never with players. Only its owner may be
    /// able to read it.
    #[arg(long, value_name = "FILE")]
    danger_key_log: Option<PathBuf>,
    /// Admit anybody who knows the address and the key: for tests and private networks, not for the internet.
    #[arg(long)]
    danger_no_tokens: bool,
}

/// The mode of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlayMode {
    /// Two against the machine.
    Coop,
    /// Everyone against everyone.
    Versus,
    /// Two teams, a ball and two goals.
    Ball,
}

/// The side that moves the robots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mover {
    /// The server; players predict it.
    Server,
    /// Players, within what the server finds possible.
    Validated,
}

impl From<Mover> for Movement {
    fn from(mover: Mover) -> Self {
        match mover {
            Mover::Server => Self::Server,
            Mover::Validated => Self::Validated,
        }
    }
}

impl From<PlayMode> for Mode {
    fn from(mode: PlayMode) -> Self {
        match mode {
            PlayMode::Coop => Self::Cooperative,
            PlayMode::Versus => Self::Versus,
            PlayMode::Ball => Self::Ball,
        }
    }
}

/// Hosts one match and ends.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let records = Records::open(arguments.records.as_deref())?;
    let plan = plan(arguments)?;
    let enrolment = Enrolment::from_environment(u64::from(muse_biobot::PROTOCOL))?;
    let listen = match (&enrolment, arguments.listen) {
        (Some(enrolment), _) => enrolment.listen_address(),
        (None, Some(listen)) => listen,
        (None, None) => {
            bail!(
                "no address to listen on: add for example --listen 127.0.0.1:7000 --danger-no-tokens"
            )
        }
    };
    if enrolment.is_none() && !arguments.danger_no_tokens {
        bail!(
            "no master has started this server, so nobody has a token for it: use `muse up`, or add --danger-no-tokens to admit anybody"
        );
    }
    let key = new_key()?;
    let public = key.public();
    let mut options = ServerOptions::new(key);
    if enrolment.is_some() {
        options = options.tokens(TokenVerifier::new());
    }
    let mut server = EndpointDriver::bind(listen, config(), options)
        .with_context(|| format!("cannot listen at {listen}"))?;
    if let Some(path) = &arguments.danger_key_log {
        let log = danger_key_log_file(path).context("cannot write the secrets")?;
        server.endpoint_mut().danger_key_log(log);
    }
    let mut line = format!("listening at {}, key {public}", server.local_addr()?);
    if !arguments.no_web {
        let options = enrolment.as_ref().map(Enrolment::web);
        let web = open_web(arguments, options, &server)?;
        line += &format!(", browsers at {}", web.address());
        server = server.with_web(web)?;
    }
    if let Some(relay) = &arguments.relay {
        let token = arguments.relay_token.as_deref();
        let room = crate::echo::room_options(arguments.relay_only, token)?;
        let code = server.open_room_with(relay.as_str(), room);
        let code = code.with_context(|| format!("no way to the relay {relay}"))?;
        line += &format!(", room {code} at {relay}");
    }
    println!("{line}");
    let master = enrolment
        .map(|enrolment| MasterLink::new(enrolment, server.now(), &public))
        .transpose()?;
    let tape = Tape::new(arguments.replay.as_deref(), arguments.records.as_deref());
    let mut host = Host::new(server, plan, master, tape);
    let parent = arguments.with_parent.then(parent_id);
    let orphaned = || parent.is_some_and(|id| id != parent_id());
    while !host.is_over() && !interrupt.is_raised() && !orphaned() {
        host.turn()?;
    }
    // The parent was the master, or ended together with it: there is nobody left to report to.
    host.close(!orphaned())?;
    records.write(&host)?;
    print!("{}", host.report());
    println!("{}", host.lateness());
    if arguments.figures {
        println!("{}", serde_json::to_string(&host.figures())?);
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration that both sides of Biobot share; the browser's client has the same channels. A connection on which nothing is heard
/// for 10 s ends; one that is heard again before that goes on where it was.
pub(crate) fn config() -> Config {
    muse_biobot::net::protocol().0.config()
}

fn plan(arguments: &Arguments) -> anyhow::Result<MatchPlan> {
    let level = arguments.level.as_deref().map(read_level).transpose()?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => {
            let mut bytes = [0; 8];
            muse_drivers::fill_random(&mut bytes)?;
            u64::from_le_bytes(bytes)
        }
    };
    Ok(MatchPlan {
        level,
        mode: arguments.mode.into(),
        movement: arguments.movement.into(),
        players: arguments
            .players
            .unwrap_or(2u8.saturating_sub(arguments.bots).max(1)),
        bots: arguments.bots,
        difficulty: arguments.difficulty,
        seed,
        versus_ticks: arguments.versus_seconds * muse_biobot::TICKS_PER_SECOND,
    })
}

/// Reads a level from a file.
pub(crate) fn read_level(file: &Path) -> anyhow::Result<Arc<Level>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let level =
        Level::parse(&text).with_context(|| format!("{} is not a level", file.display()))?;
    Ok(Arc::new(level))
}

/// Lets browsers in by the options of the master that has started this server, if one has, and by those of the command line.
fn open_web(
    arguments: &Arguments,
    options: Option<WebOptions>,
    server: &EndpointDriver,
) -> anyhow::Result<WebListener> {
    let mut address = server.local_addr()?;
    if let Some(port) = arguments.web {
        address.set_port(port);
    }
    let mut options = options.map_or_else(|| WebOptions::new(address), |it| it.address(address));
    if let Some((chain, key)) = arguments.web_cert.as_ref().zip(arguments.web_key.as_ref()) {
        options = options.certificate(chain, key);
    }
    WebListener::bind(options).with_context(|| format!("cannot listen for browsers at {address}"))
}

#[cfg(unix)]
fn parent_id() -> u32 {
    std::os::unix::process::parent_id()
}

/// On systems that do not tell a program who started it, the program stays.
#[cfg(not(unix))]
fn parent_id() -> u32 {
    0
}
