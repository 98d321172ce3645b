//! `muse rp serve`: a server that prints what arrives and, if asked, sends it back.

use std::net::IpAddr;
use std::process::ExitCode;

use clap::Args;
use clap::value_parser;
use muse_rp::{Event, Host, HostOptions};
use muse_rp_driver::HostDriver;
use muse_wire::Duration;

use super::events;
use crate::interrupt::Interrupt;

/// The ports to listen on, and the promised reliability.
#[derive(Args)]
#[command(
    after_help = "Example: muse rp serve --reliable-port 7777 --partial-port 7778 --window 10 --percent 80 --echo

Once it listens, it prints its ports on standard error."
)]
pub(super) struct Arguments {
    /// Port of the reliable channel; 0 lets the system choose.
    #[arg(long, value_name = "P", default_value_t = 7_777)]
    reliable_port: u16,
    /// Port of the partially reliable channel; 0 lets the system choose.
    #[arg(long, value_name = "Q", default_value_t = 7_778)]
    partial_port: u16,
    /// Messages in flight at once, and the window to which the guarantee applies.
    #[arg(long, value_name = "W", default_value_t = 64, value_parser = value_parser!(u32).range(1..=65_535))]
    window: u32,
    /// Share of each window that is guaranteed to arrive on the partially reliable channel, in per cent.
    #[arg(long, value_name = "R", default_value_t = 80, value_parser = value_parser!(u8).range(0..=100))]
    percent: u8,
    /// Send every message back, on its channel and with its type.
    #[arg(long)]
    echo: bool,
    /// Address to listen on; `0.0.0.0` is all of IPv4, which is all that the original supports, `::` IPv6 too.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    listen: IpAddr,
    /// Most clients at once.
    #[arg(long, value_name = "N", default_value_t = 64)]
    clients_max: usize,
    /// Time between pings, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = value_parser!(u64).range(1..=3_600_000))]
    interval_ms: u64,
    /// Time before a ping is answered, in milliseconds. The original needs some; with 0 at both ends the round trip is that of the path.
    #[arg(long, value_name = "MS", default_value_t = 25, value_parser = value_parser!(u64).range(0..=3_600_000))]
    ping_answer_ms: u64,
    /// Time after which a client that does not answer pings is disconnected, and before which none is, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
}

/// Serves until Ctrl-C.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let options = HostOptions::default()
        .window(arguments.window)
        .percent(arguments.percent)
        .connections_max(arguments.clients_max)
        .ping_interval(Duration::from_millis(arguments.interval_ms))
        .ping_answer_delay(Duration::from_millis(arguments.ping_answer_ms))
        .time_out(Duration::from_millis(arguments.timeout_ms));
    let ports = [arguments.reliable_port, arguments.partial_port];
    let mut driver = HostDriver::bind(arguments.listen, ports, options)?;
    driver.host().listen(true);
    let [reliable, partial] = driver.ports()?;
    eprintln!("listening: reliable port {reliable}, partial port {partial}");
    while !interrupt.is_raised() {
        driver.poll()?;
        handle_events(driver.host(), arguments.echo)?;
        driver.flush()?;
        driver.wait(Duration::MAX)?;
    }
    driver.close()?;
    handle_events(driver.host(), false)?;
    Ok(ExitCode::SUCCESS)
}

fn handle_events(host: &mut Host, echo: bool) -> anyhow::Result<()> {
    while let Some(event) = host.poll_event() {
        match event {
            Event::Connected { connection } => {
                tracing::info!(?connection, peer = ?host.peer(connection), "connected");
                events::connected()?;
            }
            Event::Message(message) => {
                events::received(&message)?;
                let (channel, kind) = (message.channel, message.kind);
                // The original can send longer messages than it can read.
                if echo
                    && let Err(error) =
                        host.send(message.connection, channel, kind, &message.payload)
                {
                    tracing::warn!(connection = ?message.connection, "cannot echo: {error}");
                }
            }
            Event::Disconnected { connection, reason } => {
                tracing::info!(?connection, ?reason, "disconnected");
                events::disconnected()?;
            }
            other => tracing::debug!(?other, "event"),
        }
    }
    Ok(())
}
