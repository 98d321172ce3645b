//! The crowd's server: one endpoint, one socket, one thread.

use clap::Args;
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, SystemEntropy, UdpDriver};
use muse_transport::{Endpoint, Event, HandshakeLimits, ServerOptions};
use muse_wire::{Duration, Instant, Machine};
use serde::{Deserialize, Serialize};

use super::{Counts, config, localhost, server_key, socket_options};

/// Arguments of the server.
#[derive(Args)]
pub(crate) struct ServerArguments {
    /// Length of a tick.
    #[arg(long, default_value_t = 10)]
    tick_ms: u64,
    /// Operations with public keys a second; 0 for the default.
    #[arg(long, default_value_t = 0)]
    operations: u32,
    /// Take datagrams in as they come, not only once a tick.
    #[arg(long)]
    drain: bool,
}

/// The server's counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// Messages that arrived, from `go` on as all counts of messages.
    pub(crate) received: Counts,
    /// Messages sent back.
    pub(crate) sent: Counts,
    /// Messages that could not be sent back because a queue was full.
    pub(crate) refused: u64,
    /// Hellos read.
    pub(crate) hellos: u64,
    /// Connects read.
    pub(crate) connects: u64,
    /// Datagrams dropped as no handshake of ours.
    pub(crate) malformed: u64,
    /// Cookies sent.
    pub(crate) cookies: u64,
    /// Replies not sent because of the limit a second.
    pub(crate) replies_limited: u64,
    /// Most datagrams that one turn took in.
    pub(crate) datagrams_at_once_max: u64,
    /// Bytes of receive buffer that the kernel granted.
    pub(crate) receive_buffer: u64,
}

/// Serves until told to stop.
pub(super) fn run(arguments: &ServerArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let mut options = ServerOptions::new(server_key());
    if arguments.operations > 0 {
        let limits = HandshakeLimits::default();
        options = options.limits(limits.operations(arguments.operations, arguments.operations));
    }
    let driver = UdpDriver::bind(localhost(0), &socket_options().sieve(true))?;
    let mut endpoint = Endpoint::new(config()?, SystemEntropy::new()?);
    endpoint.listen(options);
    let mut report = ServerReport {
        receive_buffer: driver.receive_buffer()? as u64,
        ..ServerReport::default()
    };
    control.ready(driver.local_addr()?.port());
    let mut server = Server {
        driver,
        endpoint,
        clock: Clock::start(),
        message: Vec::new(),
    };
    let tick = Duration::from_millis(arguments.tick_ms);
    let mut next = server.clock.now() + tick;
    let mut started = false;
    while !control.has_stopped() {
        if control.has_started() && !started {
            started = true;
            report = ServerReport {
                receive_buffer: report.receive_buffer,
                ..ServerReport::default()
            };
        }
        let arrived = server.receive()?;
        report.datagrams_at_once_max = report.datagrams_at_once_max.max(arrived);
        if !arguments.drain || server.clock.now() >= next {
            server.step(&mut report)?;
            next = (next + tick).max(server.clock.now());
        }
        let left = server.clock.until(next);
        match arguments.drain {
            true => drop(server.driver.wait(left)?),
            false => std::thread::sleep(left.into()),
        }
    }
    if let Some(counters) = server.endpoint.handshake_counters() {
        report.hellos = counters.hellos;
        report.connects = counters.connects;
        report.malformed = counters.malformed;
        report.cookies = counters.cookies;
        report.replies_limited = counters.replies_limited;
    }
    control.result(&report);
    Ok(())
}

struct Server {
    driver: UdpDriver,
    endpoint: Endpoint,
    clock: Clock,
    message: Vec<u8>,
}

impl Server {
    fn receive(&mut self) -> anyhow::Result<u64> {
        let now = self.clock.now();
        Ok(self.driver.receive(now, &mut self.endpoint)? as u64)
    }

    /// The tick: sends back what came, does what is due, flushes.
    fn step(&mut self, report: &mut ServerReport) -> anyhow::Result<()> {
        let now: Instant = self.clock.now();
        while let Some(event) = self.endpoint.poll_event(&mut self.message) {
            let Event::Message {
                connection,
                channel,
                payload,
            } = event
            else {
                continue;
            };
            report.received.add(channel);
            match self.endpoint.send(now, connection, channel, payload) {
                Ok(_) => report.sent.add(channel),
                Err(_) => report.refused += 1,
            }
        }
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.driver.flush(now, &mut self.endpoint)?;
        Ok(())
    }
}
