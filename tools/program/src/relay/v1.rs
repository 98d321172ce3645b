//! `muse relay --v1`: the relay of protocol version 1 over real sockets.

use std::net::SocketAddr;
use std::time::Duration as SystemDuration;

use anyhow::Context;
use clap::Args;
use muse_drivers::{Clock, UdpOptions};
use muse_relay_v1::{CLIENTS_MAX, Limits, Relay};
use muse_stream::{StreamDriver, Turn};
use muse_wire::{Duration, Instant};

use super::RelayServer;
use super::metrics::{Histogram, metrics};

/// Limits, each with its default.
#[derive(Args, Clone, Debug)]
#[group(id = "limits_v1")]
#[command(next_help_heading = "Limits with --v1")]
pub struct LimitArguments {
    /// Most clients at a time; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = CLIENTS_MAX as u64, value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX as u64))]
    clients_max: u64,
    /// Most clients at a time from one IP address.
    #[arg(long, value_name = "N", default_value_t = CLIENTS_MAX as u64, value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX as u64))]
    clients_per_ip: u64,
    /// UDP packets per second from one client; packets beyond that are dropped.
    #[arg(long, value_name = "N", default_value_t = 500)]
    udp_packets_per_second: u32,
    /// Largest burst of UDP packets from one client.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    udp_burst: u32,
    /// Bytes of UDP from one client that are queued for the tick; packets beyond that are dropped.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 10)]
    udp_held: usize,
    /// TCP packets per second from one client; beyond that its connection is not read.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    tcp_packets_per_second: u32,
    /// Largest burst of TCP packets from one client.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    tcp_burst: u32,
    /// TCP bytes per second from one client; beyond that its connection is not read.
    #[arg(long, value_name = "BYTES", default_value_t = 2 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    tcp_bytes_per_second: u32,
    /// Largest burst of TCP bytes from one client.
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 10, value_parser = clap::value_parser!(u32).range(1..))]
    tcp_bytes_burst: u32,
    /// Bytes of TCP from all clients that are queued for the tick; when they are reached, no connection is read until the tick.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    tcp_held: usize,
    /// Bytes that may wait for a client that does not read; with more it is disconnected.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    tcp_unsent: usize,
    /// Seconds that a client may read nothing while bytes wait for it; then it is disconnected.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    stall_seconds: u64,
    /// Time between UDP keep-alives.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    keep_alive_seconds: u64,
    /// Accept UDP for a client from any IP address, not only from that of its TCP connection. Anybody can then send in its name.
    #[arg(long)]
    danger_any_udp_source: bool,
    /// Send UDP packets one by one instead of several for one client in one system call.
    #[arg(long)]
    no_udp_gso: bool,
}

impl LimitArguments {
    fn limits(&self) -> Limits {
        Limits::default()
            .clients(usize::try_from(self.clients_max).unwrap_or(CLIENTS_MAX))
            .clients_per_ip(usize::try_from(self.clients_per_ip).unwrap_or(CLIENTS_MAX))
            .datagrams_per_second(self.udp_packets_per_second, self.udp_burst)
            .held_datagram_bytes(self.udp_held)
            .packets_per_second(self.tcp_packets_per_second, self.tcp_burst)
            .bytes_per_second(self.tcp_bytes_per_second, self.tcp_bytes_burst)
            .held_stream_bytes(self.tcp_held)
            .unsent_bytes(self.tcp_unsent)
            .stall(Duration::from_secs(self.stall_seconds))
            .keep_alive(Duration::from_secs(self.keep_alive_seconds))
            .danger_any_source(self.danger_any_udp_source)
    }
}

/// A relay and its sockets.
pub struct Server {
    relay: Relay,
    driver: StreamDriver,
    clock: Clock,
    lateness: Histogram,
    work: Histogram,
}

impl Server {
    /// Listens at `address`.
    pub fn bind(address: SocketAddr, limits: &LimitArguments) -> anyhow::Result<Self> {
        // Congestion marks mean nothing here and cost time; a datagram of 1,432 bytes may be fragmented on a narrow path, as the
        // original's would be.
        let options = UdpOptions::default()
            .ecn(false)
            .dont_fragment(false)
            .gso(!limits.no_udp_gso)
            .receive_limit(RECEIVE_LIMIT);
        let driver = StreamDriver::bind(address, &options)
            .with_context(|| format!("cannot listen at {address}; choose another address"))?;
        let clock = Clock::start();
        Ok(Self {
            relay: Relay::new(clock.now(), limits.limits()),
            driver,
            clock,
            lateness: Histogram::default(),
            work: Histogram::default(),
        })
    }

    /// The relay.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Handles arriving packets, until the next tick at most.
    pub fn turn(&mut self) -> anyhow::Result<Turn> {
        let turn = self
            .driver
            .turn(&self.clock, &mut self.relay, WAIT_MAX)
            .context("a socket of the relay failed")?;
        if let Some(late) = turn.late {
            self.lateness.add(late);
            self.work.add(turn.took);
        }
        Ok(turn)
    }

    fn has_unsent(&self, deadline: Instant) -> bool {
        let waits = self.relay.unsent_bytes() > 0 || self.driver.udp().has_unsent();
        waits && self.clock.now() < deadline
    }
}

impl RelayServer for Server {
    fn local_addr(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.driver.local_addr()?)
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        self.turn().map(drop)
    }

    fn metrics(&self) -> String {
        let (relay, stats) = (&self.relay, self.relay.stats());
        let udp = self.driver.udp().counters();
        metrics! { "muse_relay_v1_";
            gauge clients "Active clients." => relay.clients();
            gauge udp_endpoints "Active clients whose UDP endpoint is known." => relay.endpoints();
            gauge held_bytes "Bytes held for the next tick." => relay.held_bytes();
            gauge unsent_bytes "Bytes that wait for clients that do not read." => relay.unsent_bytes();
            counter clients_total "Clients that were given an address." => stats.accepted;
            counter refused_total "Connections refused because there were too many clients." => stats.refused;
            counter ended_total "Clients that are gone, by cause." => cause {
                left: stats.left, length: stats.cut_length, slow: stats.cut_slow
            };
            counter tcp_packets_total "TCP packets, by direction." => direction {
                in: stats.packets_in, out: stats.packets_out
            };
            counter tcp_bytes_total "TCP bytes, by direction." => direction {
                in: stats.stream_bytes_in, out: stats.stream_bytes_out
            };
            counter tcp_dropped_total "TCP packets that were not passed on, by cause." => cause {
                ignored: stats.packets_ignored, inactive: stats.packets_undeliverable
            };
            counter udp_packets_total "UDP packets, by direction." => direction {
                in: stats.datagrams_in, out: stats.datagrams_out
            };
            counter udp_bytes_total "UDP bytes, by direction." => direction {
                in: stats.datagram_bytes_in, out: stats.datagram_bytes_out
            };
            counter udp_dropped_total "UDP packets that were not passed on, by cause." => cause {
                malformed: stats.datagrams_malformed, unknown: stats.datagrams_unknown, spoofed: stats.datagrams_spoofed,
                limited: stats.datagrams_limited, superseded: stats.datagrams_superseded, stale: stats.datagrams_stale,
                unsent: stats.datagrams_unsent, unreachable: udp.unreachable + udp.oversized
            };
            counter ticks_total "Ticks." => stats.ticks;
            counter ticks_missed_total "Ticks left out because the one before was a whole tick late." => stats.ticks_missed;
            histogram tick_lateness_seconds "How late ticks began." => &self.lateness;
            histogram tick_work_seconds "How long it took to send what a tick had." => &self.work;
        }
    }

    fn drain(mut self: Box<Self>, time: SystemDuration) -> anyhow::Result<()> {
        self.driver.stop_listening();
        self.relay.refuse_clients();
        let deadline = self.clock.now() + Duration::from(time);
        while self.relay.clients() > 0 && self.clock.now() < deadline {
            self.turn()?;
        }
        // The last tick, and the bytes that remain of it.
        let (tick, deadline) = (self.relay.tick(), self.clock.now() + LAST_WORDS_MAX);
        while self.relay.tick() == tick || self.has_unsent(deadline) {
            self.turn()?;
        }
        self.relay.close();
        let deadline = self.clock.now() + LAST_WORDS_MAX;
        while self.driver.streams() > 0 && self.clock.now() < deadline {
            self.turn()?;
        }
        Ok(())
    }
}

/// Longest wait of the loop when nothing is due.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Datagrams received at a time before the tick has its turn.
const RECEIVE_LIMIT: usize = 512;
/// Time that the last messages may take to leave.
const LAST_WORDS_MAX: Duration = Duration::from_millis(1_500);
