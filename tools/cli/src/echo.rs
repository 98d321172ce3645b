//! `muse echo`: a server that sends every message back, for `muse ping` and for trying a network out.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use muse_drivers::{EndpointDriver, RoomOptions, load_or_create_key, new_key};
use muse_relay::{Invitation, LinkEvent, ShortCode};
use muse_transport::token::ConnectToken;
use muse_transport::{ChannelConfig, Config, Delivery, Event, ServerOptions, ServerPublicKey};
use muse_wire::Duration;

use crate::interrupt::Interrupt;

/// The address to listen on, and the key.
#[derive(Args)]
#[command(
    after_help = "Example: muse echo --listen [::]:7000 --key-file echo.key\n         muse echo --relay relay.example.com:7788 --relay-only\n\nIt prints the command to type on the other machine. Ctrl-C ends it."
)]
pub(crate) struct Arguments {
    /// Address and port; `[::]` takes IPv4 too, port 0 lets the system choose.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:7000")]
    listen: SocketAddr,
    /// File that keeps the server's key, created if it does not exist; without it each run has a new key.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Also accept clients through this relay (`muse relay`), by a short code or an invitation.
    #[arg(long, value_name = "HOST:PORT")]
    relay: Option<String>,
    /// The master's token for that relay, if it demands one.
    #[arg(long, value_name = "TOKEN", requires = "relay", hide_env_values = true)]
    relay_token: Option<String>,
    /// Look for no direct ways: clients that came by the invitation do not learn this address, nor this program theirs.
    #[arg(long, requires = "relay")]
    relay_only: bool,
}

/// Echoes until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let key = match &arguments.key_file {
        Some(path) => load_or_create_key(path)?,
        None => new_key()?,
    };
    let public = key.public();
    let mut server = EndpointDriver::bind(arguments.listen, config(), ServerOptions::new(key))
        .context("cannot listen; choose another address or port with --listen")?;
    println!("muse ping {} --key {public}", server.local_addr()?);
    let mut code = None;
    if let Some(relay) = &arguments.relay {
        let token = arguments.relay_token.as_deref();
        let room = room_options(arguments.relay_only, token)?;
        let at = muse_program::address::resolve(relay)?;
        code = Some(server.open_room_with(at, room)?);
    }
    while !interrupt.is_raised() {
        server.tick(|server, event| match event {
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                if let Err(error) = server.send(connection, channel, payload) {
                    tracing::warn!(?connection, "{error}");
                }
            }
            other => tracing::info!(?other, "echo"),
        })?;
        report_relay(&mut server, &public, code)?;
        server.wait(LOOK_EVERY)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the ways to the room once it is open; logs other events of the relay.
fn report_relay(
    server: &mut EndpointDriver,
    key: &ServerPublicKey,
    short: Option<ShortCode>,
) -> anyhow::Result<()> {
    while let Some(event) = server.poll_relay_event() {
        match event {
            LinkEvent::Opened { code, .. } => {
                let relay = server.relay().context("there is no relay")?.relay();
                let host_key = *key.as_bytes();
                let invitation = Invitation {
                    relay,
                    code,
                    host_key,
                };
                println!("muse ping {invitation}");
                if let Some(short) = short {
                    println!("muse ping {short} --relay {relay}");
                }
            }
            LinkEvent::Refused(reason) => bail!("the relay refused: {reason}"),
            other => tracing::info!(?other, "relay"),
        }
    }
    Ok(())
}

/// The options of a room: without direct ways, and with a token for the relay.
pub(crate) fn room_options(relay_only: bool, token: Option<&str>) -> anyhow::Result<RoomOptions> {
    let mut options = RoomOptions::default();
    if relay_only {
        options = options.relay_only();
    }
    if let Some(token) = token {
        options = options.token(ConnectToken::from_text(token)?);
    }
    Ok(options)
}

/// The configuration that `muse echo` and `muse ping` share: one unreliable channel.
pub(crate) fn config() -> Config {
    Config::new(PROTOCOL).channel(ChannelConfig::new(Delivery::Unreliable))
}

const PROTOCOL: u64 = 0x6d75_7365_2065_6368;
/// Interval at which a loop checks whether it is to end.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
