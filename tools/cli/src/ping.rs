//! `muse ping`: round-trip times to a server over the Muse protocol, as `ping` measures them over ICMP.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use muse_drivers::ClientDriver;
use muse_program::address::resolve;
use muse_relay::{Invitation, LinkEvent};
use muse_transport::{CloseReason, Connect, Event, Refusal, ServerPublicKey};

use crate::echo::{LOOK_EVERY, config, room_options};
use crate::interrupt::Interrupt;

/// The server to ping, and the pings.
#[derive(Args)]
#[command(
    after_help = "Example: muse ping 192.0.2.7:7000 --key 64_HEXADECIMAL_DIGITS --count 10
         muse ping KWXPTR-7Q4M --relay relay.example.com:7788

The server is `muse echo`, which prints its address and key, or with --relay a short code, and an invitation that contains everything. Ctrl-C ends it early.
Exit code 1: nothing answered."
)]
pub(crate) struct Arguments {
    /// The server's name or address, and its port; or a short code (with --relay) or an invitation to a server behind a relay.
    #[arg(value_name = "HOST:PORT")]
    server: String,
    /// The relay at which the server has a room, for a short code.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "key")]
    relay: Option<String>,
    /// The server's public key, as it prints it; not needed with a short code or an invitation.
    #[arg(long, value_name = "HEX")]
    key: Option<ServerPublicKey>,
    /// Look for no direct way: the server does not learn this address, nor this program the server's. Needs a short code or an invitation.
    #[arg(long, conflicts_with = "key")]
    relay_only: bool,
    /// Number of pings; until Ctrl-C by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between pings, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    interval_ms: u64,
    /// Time to wait for the connection, and for the last answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
}

/// Pings and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let timeout = Duration::from_millis(arguments.timeout_ms);
    let (client, server) = begin(arguments, timeout)?;
    let mut session = Session {
        client,
        interrupt,
        server,
        answered: Vec::new(),
        sent: Vec::new(),
        ended: None,
    };
    if !session.connect(timeout)? {
        return Ok(ExitCode::FAILURE);
    }
    session.ping(arguments, timeout)?;
    print!("{}", summary(server, session.sent.len(), &session.answered));
    if let Some(reason) = session.ended {
        bail!("the connection ended: {reason}");
    }
    Ok(match session.answered.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Begins to connect; returns the client and the server's address.
fn begin(arguments: &Arguments, timeout: Duration) -> anyhow::Result<(ClientDriver, SocketAddr)> {
    if let Some(relay) = &arguments.relay {
        let (relay, code) = (resolve(relay)?, arguments.server.parse()?);
        let options = room_options(arguments.relay_only, None)?;
        let how = Connect::key_follows().timeout(timeout.into());
        let client = ClientDriver::join_by_code(relay, code, options, config(), how)
            .with_context(|| format!("cannot join through the relay {relay}"))?;
        return Ok((client, relay));
    }
    if arguments.server.starts_with("muse2:") {
        let invitation: Invitation = arguments.server.parse()?;
        let key = ServerPublicKey::from_bytes(invitation.host_key);
        let how = Connect::pinned(key).timeout(timeout.into());
        let (relay, code) = (invitation.relay, invitation.code);
        let options = room_options(arguments.relay_only, None)?;
        let client = ClientDriver::join(relay, code, options, config(), how)
            .with_context(|| format!("cannot join through the relay {}", invitation.relay))?;
        return Ok((client, invitation.relay));
    }
    if arguments.relay_only {
        bail!(
            "--relay-only needs the short code or invitation of a server behind a relay (`muse echo --relay`)"
        );
    }
    let server = resolve(&arguments.server)?;
    let key = arguments
        .key
        .context("--key is missing: the key that the server printed when it started")?;
    let how = Connect::pinned(key).timeout(timeout.into());
    let client = ClientDriver::connect(server, config(), how)
        .with_context(|| format!("cannot connect to {server}"))?;
    Ok((client, server))
}

struct Session {
    client: ClientDriver,
    interrupt: Interrupt,
    server: SocketAddr,
    /// When each ping left, by its number; `None` once it is answered.
    sent: Vec<Option<Instant>>,
    /// Round-trip times in the order of arrival.
    answered: Vec<Duration>,
    ended: Option<String>,
}

impl Session {
    /// Waits for the connection; false if the user gave up first.
    fn connect(&mut self, timeout: Duration) -> anyhow::Result<bool> {
        let began = Instant::now();
        let mut outcome = None;
        while !self.interrupt.is_raised() {
            let server = self.server;
            self.client.tick(|_, event| match event {
                Event::Connected { .. } => outcome = Some(Ok(())),
                Event::Refused { reason, .. } => outcome = Some(Err(refused(server, &reason))),
                Event::Unanswered { .. } => outcome = Some(Err(unanswered(server, timeout))),
                _ => (),
            })?;
            self.watch_relay()?;
            if let Some(outcome) = outcome {
                outcome?;
                let took = milliseconds(began.elapsed());
                println!("PING {} (connected in {took:.1} ms)", self.server);
                return Ok(true);
            }
            self.client.wait(LOOK_EVERY)?;
        }
        eprintln!("{}: interrupted before it answered", self.server);
        Ok(false)
    }

    /// Sends pings until all were sent and answered, or the timeout has passed.
    fn ping(&mut self, arguments: &Arguments, timeout: Duration) -> anyhow::Result<()> {
        let count = arguments.count.unwrap_or(u64::MAX);
        let interval = Duration::from_millis(arguments.interval_ms);
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next && (self.sent.len() as u64) < count {
                self.send()?;
                next += interval;
            }
            let all_sent = self.sent.len() as u64 >= count;
            let all_answered = self.sent.len() == self.answered.len();
            let too_late = all_sent && now >= next - interval + timeout;
            let over = all_sent && all_answered || too_late;
            if over || self.ended.is_some() || self.interrupt.is_raised() {
                return Ok(());
            }
            let pause = match all_sent {
                true => LOOK_EVERY.into(),
                false => next.saturating_duration_since(now).min(LOOK_EVERY.into()),
            };
            self.client.wait(pause)?;
            self.take_answers()?;
            self.watch_relay()?;
        }
    }

    /// Prints which path the pings take.
    fn watch_relay(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.client.poll_relay_event() {
            match event {
                LinkEvent::Joined { public } => println!("through the relay, as {public}"),
                LinkEvent::Direct { address, .. } => println!("directly, to {address}"),
                LinkEvent::Relayed { .. } => println!("through the relay again"),
                LinkEvent::Refused(reason) => bail!("the relay refused: {reason}"),
                LinkEvent::Unanswered => println!("the relay does not answer"),
                _ => (),
            }
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let number = self.sent.len() as u64;
        self.sent.push(Some(Instant::now()));
        if let Err(error) = self.client.send(0, &number.to_le_bytes()) {
            self.ended = Some(error.to_string());
        }
        self.client.flush().context("cannot send")
    }

    fn take_answers(&mut self) -> anyhow::Result<()> {
        let Self {
            client,
            server,
            sent,
            answered,
            ended,
            ..
        } = self;
        client.tick(|_, event| match event {
            Event::Message { payload, .. } => {
                let number = payload.try_into().map(u64::from_le_bytes);
                let number = number.map_or(usize::MAX, |number| number as usize);
                // Duplicates and answers to pings that were never sent are ignored.
                if let Some(left) = sent.get_mut(number).and_then(Option::take) {
                    let took = left.elapsed();
                    println!(
                        "answer from {server}: number={} time={:.3} ms",
                        number + 1,
                        milliseconds(took)
                    );
                    answered.push(took);
                }
            }
            Event::Interrupted { .. } => println!("{server} is silent"),
            Event::Resumed { .. } => println!("{server} is back"),
            Event::Closed { reason, .. } => *ended = Some(describe(&reason)),
            _ => (),
        })?;
        Ok(())
    }
}

fn unanswered(server: SocketAddr, timeout: Duration) -> anyhow::Error {
    anyhow::anyhow!(
        "no answer from {server} within {:.1} s: is `muse echo` running there, and does a firewall let UDP through?",
        timeout.as_secs_f64()
    )
}

fn refused(server: SocketAddr, reason: &Refusal) -> anyhow::Error {
    let advice = match reason {
        Refusal::WrongKey => "; give --key the key that the server printed when it started",
        Refusal::Schema { .. } | Refusal::Version { .. } => {
            "; run the same version of `muse echo` there"
        }
        Refusal::Full | Refusal::Busy => "; try again later",
        _ => "",
    };
    anyhow::anyhow!("{server} refused: {reason}{advice}")
}

fn describe(reason: &CloseReason) -> String {
    match reason {
        CloseReason::ByPeer { text, .. } => format!("the server said {text:?}"),
        CloseReason::Lost => "nothing was heard of the server for too long".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The lines at the end.
fn summary(server: SocketAddr, sent: usize, answered: &[Duration]) -> String {
    let received = answered.len();
    let loss = 100.0 * (sent - received) as f64 / sent.max(1) as f64;
    let mut text = format!(
        "--- {server} ping statistics ---\n{sent} sent, {received} received, {loss:.1} % loss\n"
    );
    if let (Some(min), Some(max)) = (answered.iter().min(), answered.iter().max()) {
        let average = answered.iter().sum::<Duration>().div_f64(received as f64);
        let steps = answered.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
        let jitter = steps
            .sum::<Duration>()
            .div_f64((received - 1).max(1) as f64);
        let [min, average, max, jitter] = [*min, average, *max, jitter].map(milliseconds);
        text += &format!(
            "round trip min/avg/max/jitter = {min:.3}/{average:.3}/{max:.3}/{jitter:.3} ms\n"
        );
    }
    text
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_loss_and_the_steps_between_answers() {
        let server = SocketAddr::from(([192, 0, 2, 7], 7_000));
        let answered = [10, 14, 12].map(Duration::from_millis);
        assert_eq!(
            summary(server, 4, &answered),
            "--- 192.0.2.7:7000 ping statistics ---\n4 sent, 3 received, 25.0 % loss\n\
             round trip min/avg/max/jitter = 10.000/12.000/14.000/3.000 ms\n"
        );
        assert!(summary(server, 4, &[]).ends_with("4 sent, 0 received, 100.0 % loss\n"));
        assert!(summary(server, 0, &[]).ends_with("0 sent, 0 received, 0.0 % loss\n"));
    }
}
