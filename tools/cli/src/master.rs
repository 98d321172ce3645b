//! `muse master`: the master server on one machine, with SQLite and game servers as child processes.

#[cfg(feature = "agones")]
mod cluster;
pub(crate) mod enrolment;
mod game;
mod player;
#[cfg(feature = "agones")]
mod sidecar;
mod simulate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use muse_master::director::DirectorConfig;
use muse_master::matching::MatchingConfig;
use muse_master::{Master, MasterConfig, Retention};
use muse_master_client::api::RelayPlace;
use muse_program::logs::LogFormat;
use muse_transport::ServerPublicKey;

use crate::front::FrontArguments;
use crate::interrupt::Interrupt;

pub(crate) use game::run as run_game;
pub(crate) use player::{Arguments as PlayerArguments, run as run_player};

/// The address to listen on, what to store, what to start.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: muse master --listen 0.0.0.0:7777 --database muse.db --game \"./my-game-server --headless\"\n         \
muse master simulate --queues queues.toml --queue ranked\n\n\
The HTTP interface is described at /openapi.json, metrics are at /metrics, the operators' page is at /admin; docs/master.md explains them.\n\
Ctrl-C or SIGTERM drains: no new matches, running ones finish. A second one ends at once."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Tool>,
    /// Address and port for players and game servers.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// SQLite file, created if it does not exist, or a PostgreSQL database as postgres://USER@HOST/NAME. A password is
    /// safer in the environment (MUSE_MASTER_DATABASE) or in a file than on the command line.
    #[arg(
        long,
        value_name = "FILE OR URL",
        hide_env_values = true,
        default_value = "muse.db"
    )]
    database: PathBuf,
    /// Certificate authorities of the PostgreSQL server as a PEM file: the connection is then encrypted and the certificate checked.
    #[arg(long, value_name = "FILE")]
    database_ca: Option<PathBuf>,
    /// NATS server over which masters with one database talk to each other, such as nats://127.0.0.1:4222, or tls://USER:PASSWORD@HOST:PORT. A
    /// password is safer in the environment (MUSE_MASTER_NATS) or in a file than on the command line.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    nats: Option<String>,
    /// Certificate authorities of the NATS server as a PEM file: the connection is then encrypted and the certificate checked.
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// Another master with the same database, or a load balancer in front of all of them: this master's game servers connect to it when this one is
    /// gone; can be repeated.
    #[arg(long = "other-master", value_name = "HOST:PORT")]
    other_masters: Vec<String>,
    /// Most players at once; more are told to come back in 10 seconds.
    #[arg(long, value_name = "N", default_value_t = 100)]
    players_max: usize,
    /// Most connections that have not signed in; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    connections_max: usize,
    /// Most connections of one address that have not signed in; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 256)]
    connections_per_ip: usize,
    /// Requests per second of one address, on average; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 50)]
    requests_per_second: u32,
    /// Requests per second of one account from all addresses, on average; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 20)]
    account_requests_per_second: u32,
    /// Passwords per minute that one address may have checked, on average; 0 for no limit, as is needed behind a proxy
    /// that names no clients.
    #[arg(long, value_name = "N", default_value_t = 30)]
    passwords_per_minute: u32,
    /// Command line of the game server; by default a placeholder without rules whose matches last a few seconds.
    #[arg(long, value_name = "COMMAND")]
    game: Option<String>,
    /// Address at which players reach the game servers.
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    game_host: String,
    /// Game servers to keep ready for a match.
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm: usize,
    /// Most matches at once.
    #[arg(long, value_name = "N", default_value_t = 20)]
    matches_max: usize,
    /// First port of game servers; closed servers' ports are used again.
    #[arg(long, value_name = "PORT", default_value_t = 8888)]
    first_port: u16,
    /// Players of a match when none of them asks for a number.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    players: u8,
    /// File with the rules of queues by name, as docs/master.md says; read again when it changes.
    #[arg(long, value_name = "FILE")]
    queues: Option<PathBuf>,
    /// Seconds of waiting after which bots are offered; 0 for never.
    #[arg(long, value_name = "S", default_value_t = 0)]
    bots_after_seconds: u64,
    /// The game's protocol id, for which connect tokens are issued.
    #[arg(long, value_name = "N", default_value_t = game::PROTOCOL)]
    protocol_id: u64,
    /// File with the key that seals the secrets of the database, created if it does not exist; by default beside the SQLite file, with .key at the end.
    /// With PostgreSQL it is needed, the same at each master; or set MUSE_SECRET_KEY to 64 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    secret_key_file: Option<PathBuf>,
    /// Days after which the masters sign with a new key.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    secret_days: u32,
    /// Days for which a guest is kept without signing in, at least 30; 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    keep_guests_days: u32,
    /// Days for which chat is kept; 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    keep_chat_days: u32,
    /// Days for which matches and their results are kept; 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 400)]
    keep_matches_days: u32,
    /// Days for which the operators' actions are kept; 0 for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 400)]
    keep_audit_days: u32,
    /// Name of an operator who may use /admin; the password (12 characters or more) is read from MUSE_OPERATOR_PASSWORD.
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Folder for the output of game servers, shown at /admin; by default their errors go to the master's standard error.
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Origin of a page that may use the master from a browser, such as https://game.example, or *; can be repeated.
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Seconds that running matches may take to finish after Ctrl-C or SIGTERM.
    #[arg(long, value_name = "S", default_value_t = 600)]
    drain_seconds: u64,
    /// Region in which there are game servers, by the name that players report round-trip times for; can be repeated.
    #[arg(long = "region", value_name = "NAME")]
    regions: Vec<String>,
    /// Relay for games that players host themselves, such as eu=relay.example:7780; can be repeated. Players are told the one that is nearest to all of them.
    /// With the key that the relay prints, players get tokens for it.
    #[arg(long = "relay", value_name = "REGION=HOST:PORT[/KEY]", value_parser = relay_place)]
    relays: Vec<RelayPlace>,
    #[command(flatten)]
    front: FrontArguments,
    #[cfg(feature = "agones")]
    #[command(flatten)]
    cluster: cluster::Arguments,
}

/// Other work with a master's files.
#[derive(Subcommand)]
enum Tool {
    /// Shows what the rules of queues do to a trace of players.
    Simulate(simulate::Arguments),
}

/// Serves until it is told to end.
pub(crate) fn run(arguments: &Arguments, logs: LogFormat) -> anyhow::Result<ExitCode> {
    if let Some(Tool::Simulate(arguments)) = &arguments.command {
        return simulate::run(arguments);
    }
    let interrupt = Interrupt::listen()?;
    let config = config(arguments, logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async move {
        let master = Master::start(config).await?;
        println!("{}://{}", arguments.front.scheme(), master.address());
        interrupt.raised().await;
        logs.say("draining");
        master
            .drain(Duration::from_secs(arguments.drain_seconds))
            .await;
        Ok(ExitCode::SUCCESS)
    })
}

fn config(arguments: &Arguments, logs: LogFormat) -> anyhow::Result<MasterConfig> {
    let bots_after = match arguments.bots_after_seconds {
        0 => None,
        seconds => Some(muse_wire::Duration::from_secs(seconds)),
    };
    let regions: Vec<&str> = arguments.regions.iter().map(String::as_str).collect();
    let matching = MatchingConfig::default()
        .players(arguments.players)
        .regions(&regions)
        .bots_after(bots_after);
    let game = match &arguments.game {
        Some(command) => shlex::split(command).context("--game: a quote is not closed")?,
        None => {
            let program = std::env::current_exe().context("cannot find this program's file")?;
            let program = program.into_os_string().into_string();
            let program =
                program.map_err(|_| anyhow::anyhow!("this program's path is not valid UTF-8"))?;
            let logs = format!("--log-format={}", logs.word());
            vec![program, "master-game".to_owned(), logs]
        }
    };
    let origins: Vec<&str> = arguments.origins.iter().map(String::as_str).collect();
    let mut config = MasterConfig::new(arguments.listen, &arguments.database);
    if let Some(file) = &arguments.database_ca {
        config = config.database_ca(file);
    }
    if let Some(url) = &arguments.nats {
        config = config.nats(url);
    }
    if let Some(file) = &arguments.nats_ca {
        config = config.nats_ca(file);
    }
    let others: Vec<&str> = arguments.other_masters.iter().map(String::as_str).collect();
    if let Some(file) = &arguments.queues {
        config = config.queues_file(file);
    }
    if let Some(folder) = &arguments.logs {
        config = config.logs(folder);
    }
    if let Some(name) = &arguments.operator {
        let password = std::env::var("MUSE_OPERATOR_PASSWORD")
            .context("set MUSE_OPERATOR_PASSWORD to the operator's password")?;
        config = config.operator(name, &password);
    }
    if let Some(file) = &arguments.secret_key_file {
        config = config.secret_key_file(file);
    } else if let Ok(key) = std::env::var("MUSE_SECRET_KEY") {
        config = config.secret_key(&key);
    }
    #[cfg(feature = "agones")]
    let config = arguments.cluster.apply(config)?;
    Ok(arguments
        .front
        .apply(config)
        .origins(&origins)
        .relays(arguments.relays.clone())
        .other_masters(&others)
        .players_max(arguments.players_max)
        .connections_max(arguments.connections_max)
        .connections_per_address(arguments.connections_per_ip)
        .requests_per_second(arguments.requests_per_second)
        .account_requests_per_second(arguments.account_requests_per_second)
        .passwords_per_minute(arguments.passwords_per_minute)
        .secret_days(arguments.secret_days)
        .retention(retention(arguments))
        .protocol_id(arguments.protocol_id)
        .director(DirectorConfig::default().matching(matching))
        .game(game)
        .game_host(&arguments.game_host)
        .warm(arguments.warm)
        .matches_max(arguments.matches_max)
        .first_port(arguments.first_port))
}

fn retention(arguments: &Arguments) -> Retention {
    Retention::default()
        .guests_days(arguments.keep_guests_days)
        .chat_days(arguments.keep_chat_days)
        .matches_days(arguments.keep_matches_days)
        .audit_days(arguments.keep_audit_days)
}

fn relay_place(text: &str) -> Result<RelayPlace, String> {
    let (region, address) = text
        .split_once('=')
        .filter(|(region, address)| !region.is_empty() && address.contains(':'))
        .ok_or("not REGION=HOST:PORT[/KEY]")?;
    let (address, key) = match address.split_once('/') {
        Some((address, key)) => {
            let key: ServerPublicKey = key.parse().map_err(|error| format!("{error}"))?;
            (address, Some(key.to_string()))
        }
        None => (address, None),
    };
    Ok(RelayPlace {
        region: region.to_owned(),
        address: address.to_owned(),
        key,
    })
}
