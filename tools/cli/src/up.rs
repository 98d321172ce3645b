//! `muse up`: everything on one machine: the page, the master, game servers on demand and a relay.
//!
//! One address is enough for a player: the master serves the [`page`] there besides its own. It starts `muse game` for each match; all of it
//! ends with this program.

mod inside;
mod page;
mod routes;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use muse_master::director::DirectorConfig;
use muse_master::matching::MatchingConfig;
use muse_master::{Master, MasterConfig};
use muse_master_client::api::RelayPlace;
use tokio::process::{Child, Command};

use crate::Common;
use crate::front::FrontArguments;
use crate::interrupt::Interrupt;

use page::Page;

/// The address, the players to serve, and what to store.
#[derive(Args)]
#[command(after_help = "Example: muse up --port 8080\n         \
muse up --host game.example --port 443 --tls-cert chain.pem --tls-key key.pem\n\n\
Open the address that it prints in two windows and press Play in both. With --host and this machine's name or address, others\n\
in the network can play too; over plain HTTP their browsers use WebSockets instead of WebTransport, and with a certificate everything\n\
comes over HTTPS. Ctrl-C or SIGTERM ends everything.")]
pub(crate) struct Arguments {
    /// Port of the page and of the master; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = 8_080)]
    port: u16,
    /// Name or address at which players reach this machine. By default, only this machine can connect.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Players of a match when none of them asks for a number.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    players: u8,
    /// Seconds of waiting after which bots are offered; 0 for never.
    #[arg(long, value_name = "S", default_value_t = 15)]
    bots_after_seconds: u64,
    /// Level file to use instead of the game's own, for matches of its mode.
    #[arg(long, value_name = "FILE")]
    level: Option<PathBuf>,
    /// Most players at once; more are told to come back in 10 seconds.
    #[arg(long, value_name = "N", default_value_t = 100)]
    players_max: usize,
    /// Most matches at once.
    #[arg(long, value_name = "N", default_value_t = 20)]
    matches_max: usize,
    /// First port of game servers.
    #[arg(long, value_name = "PORT", default_value_t = 8_888)]
    first_port: u16,
    /// Port of the relay, UDP; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = 7_788)]
    relay_port: u16,
    /// Directory of the built page; by default the page inside of this program, or `game/web/dist` if there is none.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "no_page")]
    page: Option<PathBuf>,
    /// Do not serve the page: for bots and other clients.
    #[arg(long)]
    no_page: bool,
    /// Directory for accounts and records of matches; created if it does not exist.
    #[arg(long, value_name = "DIRECTORY", default_value = ".muse")]
    data: PathBuf,
    #[command(flatten)]
    front: FrontArguments,
}

/// Serves until it is told to end. The programs that it starts have the same options as every command.
pub(crate) fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let page = match arguments.no_page {
        true => None,
        false => Some(page::find(arguments.page.as_deref())?),
    };
    std::fs::create_dir_all(&arguments.data)
        .with_context(|| format!("cannot create {}", arguments.data.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(arguments, common, page, &interrupt))
}

async fn serve(
    arguments: &Arguments,
    common: &Common,
    page: Option<Page>,
    interrupt: &Interrupt,
) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let program = program.into_os_string().into_string();
    let program = program.map_err(|_| anyhow!("this program's path is not valid UTF-8"))?;
    let words = common.words()?;
    let relay = start_relay(&program, arguments, &words).await?;
    let config = master_config(&program, arguments, &words, page)?.relays(vec![RelayPlace {
        region: "here".to_owned(),
        address: relay.address.clone(),
        key: None,
    }]);
    let master = Master::start(config).await?;
    let port = master.address().port();
    let (scheme, host) = (arguments.front.scheme(), &arguments.host);
    match arguments.no_page {
        true => println!("master   {scheme}://{host}:{port}/"),
        false => {
            println!("Biobot is at {scheme}://{host}:{port}/");
            println!("Open it in two windows and press Play in both. Ctrl-C ends everything.");
        }
    }
    println!("matches  from port {}, UDP and TCP", arguments.first_port);
    println!("relay    {} UDP", relay.address);
    interrupt.raised().await;
    common.log_format.say("ending");
    master.drain(DRAIN_MAX).await;
    drop(relay);
    Ok(ExitCode::SUCCESS)
}

fn master_config(
    program: &str,
    arguments: &Arguments,
    words: &[String],
    page: Option<Page>,
) -> anyhow::Result<MasterConfig> {
    let bots_after = match arguments.bots_after_seconds {
        0 => None,
        seconds => Some(muse_wire::Duration::from_secs(seconds)),
    };
    let matching = MatchingConfig::default()
        .players(arguments.players)
        .bots_after(bots_after);
    let directory = arguments.data.join("matches");
    let records = directory
        .to_str()
        .ok_or_else(|| anyhow!("the path of --data is not valid UTF-8"))?;
    let mut game = vec![program, "game", "--with-parent", "--records", records];
    if let Some(level) = &arguments.level {
        let level = level.to_str();
        game.push("--level");
        game.push(level.ok_or_else(|| anyhow!("the path of --level is not valid UTF-8"))?);
    }
    game.extend(words.iter().map(String::as_str));
    let listen = SocketAddr::new(bind_address(&arguments.host), arguments.port);
    let routes = routes::routes(page, directory.clone(), &arguments.host);
    let config = MasterConfig::new(listen, arguments.data.join("master.db"));
    Ok(arguments
        .front
        .apply(config)
        .protocol_id(u64::from(muse_biobot::PROTOCOL))
        .director(DirectorConfig::default().matching(matching))
        .game(game.into_iter().map(str::to_owned).collect())
        .game_host(&arguments.host)
        .routes(routes)
        .players_max(arguments.players_max)
        .matches_max(arguments.matches_max)
        .first_port(arguments.first_port))
}

/// A relay in a process of its own, which ends when this is dropped.
struct Relay {
    address: String,
    _child: Child,
}

async fn start_relay(
    program: &str,
    arguments: &Arguments,
    words: &[String],
) -> anyhow::Result<Relay> {
    let listen = SocketAddr::new(bind_address(&arguments.host), arguments.relay_port);
    let mut child = Command::new(program)
        .args([
            "relay",
            "--listen",
            &listen.to_string(),
            "--open",
            "--drain-seconds",
            "0",
        ])
        .args(words)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the relay")?;
    let output = child.stdout.take().context("the relay has no output")?;
    let line = page::first_line(output).await;
    let bound = line
        .strip_prefix("ready ")
        .and_then(|it| it.rsplit_once(':'));
    let Some((_, port)) = bound else {
        return Err(anyhow!(
            "the relay did not start at {listen}; choose another --relay-port"
        ));
    };
    Ok(Relay {
        address: format!("{}:{port}", arguments.host),
        _child: child,
    })
}

/// Binds to loopback unless players reach this machine by another name.
fn bind_address(host: &str) -> IpAddr {
    match host {
        "127.0.0.1" | "localhost" => Ipv4Addr::LOCALHOST.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Time to drain. It is short because game servers end with this program anyway.
const DRAIN_MAX: Duration = Duration::from_millis(500);
