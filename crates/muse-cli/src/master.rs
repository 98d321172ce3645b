//! `muse master`: the master server on one machine, with SQLite and game servers as child processes.

mod game;
mod player;
pub(crate) mod socket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use muse_master::director::DirectorConfig;
use muse_master::matching::MatchingConfig;
use muse_master::{Master, MasterConfig};

use crate::interrupt::Interrupt;

pub(crate) use game::run as run_game;
pub(crate) use player::{Arguments as PlayerArguments, run as run_player};

/// Where to listen, what to keep, what to start.
#[derive(Args)]
#[command(
    after_help = "Example: muse master --listen 0.0.0.0:7777 --database muse.db --game \"./my-game-server --headless\"\n\n\
The interface is described at /openapi.json, figures are at /metrics, operators go to /admin; docs/master.md explains them.\n\
Ctrl-C or SIGTERM drains: no new matches, running ones finish. A second one ends at once."
)]
pub(crate) struct Arguments {
    /// Address and port for players and game servers.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// The file that keeps everything; it is made if it is not there.
    #[arg(long, value_name = "FILE", default_value = "muse.db")]
    database: PathBuf,
    /// Certificate chain as a PEM file: the master then speaks TLS. Game servers on this machine use the next port, without it.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key as a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Players at once; more are told to come back in 10 seconds.
    #[arg(long, value_name = "N", default_value_t = 100)]
    players_max: usize,
    /// Requests of one address in a second in the long run; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 50)]
    requests_per_second: u32,
    /// Program of the game server and its arguments; without it a game without rules that lasts a few seconds.
    #[arg(long, value_name = "COMMAND")]
    game: Option<String>,
    /// Address at which players reach the game servers.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    game_host: String,
    /// Game servers that wait for a match.
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm: usize,
    /// Matches at once.
    #[arg(long, value_name = "N", default_value_t = 20)]
    matches_max: usize,
    /// First port of game servers; closed servers' ports are used again.
    #[arg(long, value_name = "PORT", default_value_t = 8888)]
    first_port: u16,
    /// Players of a match for which nobody asks a number.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    players: u8,
    /// Offer bots after so many seconds of waiting; 0 for never.
    #[arg(long, value_name = "S", default_value_t = 0)]
    bots_after_s: u64,
    /// The game's protocol id, which connect tokens name.
    #[arg(long, value_name = "N", default_value_t = game::PROTOCOL)]
    protocol_id: u64,
    /// Name of an operator who may use /admin; the password (12 characters or more) is read from MUSE_OPERATOR_PASSWORD.
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Folder for the output of game servers, shown at /admin; without it their errors go where the master's go.
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Origin of a page that may use the master from a browser, such as https://game.example, or *; can be repeated.
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// How long running matches may take to finish after Ctrl-C or SIGTERM.
    #[arg(long, value_name = "S", default_value_t = 600)]
    drain_s: u64,
}

/// Serves until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let config = config(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async move {
        let master = Master::start(config).await?;
        let scheme = arguments.tls_cert.as_ref().map_or("http", |_| "https");
        println!("{scheme}://{}", master.address());
        let mut look = tokio::time::interval(LOOK_EVERY);
        while !interrupt.is_raised() {
            look.tick().await;
        }
        eprintln!("draining");
        master.drain(Duration::from_secs(arguments.drain_s)).await;
        Ok(ExitCode::SUCCESS)
    })
}

fn config(arguments: &Arguments) -> anyhow::Result<MasterConfig> {
    let bots_after = match arguments.bots_after_s {
        0 => None,
        seconds => Some(muse_wire::Duration::from_secs(seconds)),
    };
    let matching = MatchingConfig::default()
        .players(arguments.players)
        .bots_after(bots_after);
    let game = match &arguments.game {
        Some(command) => command.split_whitespace().map(str::to_owned).collect(),
        None => {
            let program = std::env::current_exe().context("cannot find this program's file")?;
            let program = program.into_os_string().into_string();
            let program = program.map_err(|_| anyhow::anyhow!("this program's path is no text"))?;
            vec![program, "master-game".to_owned()]
        }
    };
    let origins: Vec<&str> = arguments.origins.iter().map(String::as_str).collect();
    let mut config = MasterConfig::new(arguments.listen, &arguments.database);
    if let Some((certificates, key)) = arguments.tls_cert.as_ref().zip(arguments.tls_key.as_ref()) {
        config = config.tls(certificates, key);
    }
    if let Some(folder) = &arguments.logs {
        config = config.logs(folder);
    }
    if let Some(name) = &arguments.operator {
        let password = std::env::var("MUSE_OPERATOR_PASSWORD")
            .context("set MUSE_OPERATOR_PASSWORD to the operator's password")?;
        config = config.operator(name, &password);
    }
    Ok(config
        .origins(&origins)
        .players_max(arguments.players_max)
        .requests_per_second(arguments.requests_per_second)
        .protocol_id(arguments.protocol_id)
        .director(DirectorConfig::default().matching(matching))
        .game(game)
        .game_host(&arguments.game_host)
        .warm(arguments.warm)
        .matches_max(arguments.matches_max)
        .first_port(arguments.first_port))
}

const LOOK_EVERY: Duration = Duration::from_millis(100);
