//! `muse relay`: relay v2 over a real socket, on one thread; browsers have a second one for their links.
//!
//! The relay's machine knows a browser by an address that stands for its session, so that everything holds for browsers that holds for
//! others: limits, proofs of addresses, moves to a new session.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration as SystemDuration;

use anyhow::{Context, bail};
use clap::Args;
use muse_drivers::clock::unix_time;
use muse_drivers::{
    Clock, Driver, UdpDriver, UdpOptions, UdpWebDriver, WebListener, WebOptions, fill_random,
    load_or_create_key,
};
use muse_relay::{HostTokens, Limits, MasterKey, Relay};
use muse_wire::{Duration, Machine};

use super::RelayServer;
use super::metrics::metrics;

/// The hosts that may open rooms.
#[derive(Args, Clone, Debug)]
#[group(id = "hosts_v2")]
#[command(next_help_heading = "Hosts")]
pub struct HostArguments {
    /// Open rooms for anybody, within the limits. At a loopback address that is the default, as only this machine can connect.
    #[arg(long, conflicts_with_all = ["v1", "master_keys"])]
    open: bool,
    /// Open rooms for hosts with a token of the master that has this public key, which the master tells at /v1/relays/key; can be
    /// repeated.
    #[arg(long = "master-key", value_name = "KEY", conflicts_with = "v1")]
    master_keys: Vec<MasterKey>,
    /// File of this relay's own key, for which the master signs; created if it does not exist.
    #[arg(
        long,
        value_name = "FILE",
        requires = "master_keys",
        default_value = "muse-relay.key"
    )]
    key_file: PathBuf,
}

impl HostArguments {
    /// Returns the tokens that a relay at `address` demands; `None` if anybody may open rooms.
    fn tokens(&self, address: SocketAddr) -> anyhow::Result<Option<HostTokens>> {
        if self.master_keys.is_empty() {
            if !self.open && !address.ip().is_loopback() {
                bail!(
                    "who may open rooms? Add --master-key KEY for hosts with a token of your master, or --open for anybody who can reach {address}"
                );
            }
            return Ok(None);
        }
        let mut tokens = HostTokens::new(load_or_create_key(&self.key_file)?);
        for key in &self.master_keys {
            tokens = tokens
                .master_key(key)
                .with_context(|| format!("--master-key {key}"))?;
        }
        Ok(Some(tokens))
    }
}

/// Limits, each with its default.
#[derive(Args, Clone, Debug)]
#[group(id = "limits_v2")]
#[command(next_help_heading = "Limits")]
pub struct LimitArguments {
    /// Most rooms at a time; further ones are refused.
    #[arg(long, value_name = "N", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    rooms_max: u32,
    /// Most rooms at a time from one IP address (IPv6: /64).
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    rooms_per_ip: u32,
    /// Most rooms at a time from one network (IPv4: /24, IPv6: /48).
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    rooms_per_prefix: u32,
    /// Most guests at a time, in all rooms.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    guests_max: u32,
    /// Most guests at a time in one room.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    guests_per_room: u32,
    /// Most guests at a time in one room from one IP address (IPv6: /64).
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    guests_per_ip: u32,
    /// Most guests at a time in one room from one network (IPv4: /24, IPv6: /48).
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    guests_per_prefix: u32,
    /// Most guests at a time in all rooms from one network (IPv4: /24, IPv6: /48).
    #[arg(long, value_name = "N", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..))]
    all_guests_per_prefix: u32,
    /// Packets per second between a guest and its host, in both directions; packets beyond that are dropped.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    guest_packets_per_second: u32,
    /// Bytes per second between a guest and its host, in both directions; packets beyond that are dropped.
    #[arg(long, value_name = "BYTES", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..))]
    guest_bytes_per_second: u32,
    /// Packets per second that a room may send, in all directions; packets beyond that are dropped. Active guests have equal shares.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    room_packets_per_second: u32,
    /// Bytes per second that a room may send, in all directions; packets beyond that are dropped. Active guests have equal shares.
    #[arg(long, value_name = "BYTES", default_value_t = 4_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    room_bytes_per_second: u32,
    /// Bytes per second that all rooms may send together; packets beyond that are dropped. Active rooms have equal shares.
    #[arg(long, value_name = "BYTES", default_value_t = 100_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    egress_bytes_per_second: u32,
    /// Largest burst, in milliseconds of these rates.
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    room_burst_ms: u32,
    /// Requests per second to open or join a room from one IP address (IPv6: /64).
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_second: u32,
    /// Seconds of silence after which a room or a guest is forgotten.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(15..=86_400))]
    idle_seconds: u64,
}

impl LimitArguments {
    fn limits(&self) -> Limits {
        Limits::default()
            .rooms(self.rooms_max as usize)
            .rooms_per_ip(self.rooms_per_ip)
            .rooms_per_prefix(self.rooms_per_prefix)
            .guests(self.guests_max as usize)
            .guests_per_room(self.guests_per_room as usize)
            .guests_per_ip(self.guests_per_ip as usize)
            .guests_per_prefix(self.guests_per_prefix as usize)
            .all_guests_per_prefix(self.all_guests_per_prefix)
            .guest_packets_per_second(self.guest_packets_per_second)
            .guest_bytes_per_second(self.guest_bytes_per_second)
            .packets_per_second(self.room_packets_per_second)
            .bytes_per_second(self.room_bytes_per_second)
            .egress_bytes_per_second(self.egress_bytes_per_second)
            .burst_ms(self.room_burst_ms)
            .requests_per_second(self.requests_per_second)
            .idle(Duration::from_secs(self.idle_seconds))
    }
}

/// Browsers, beside players over UDP.
#[derive(Args, Clone, Debug)]
#[group(id = "web_v2")]
#[command(next_help_heading = "Browsers")]
pub struct WebArguments {
    /// Accept browsers as well, at this TCP port; usually the number of the UDP port, 0 lets the system choose.
    #[arg(long, value_name = "PORT", conflicts_with = "v1")]
    web: Option<u16>,
    /// UDP port of WebTransport, which must not be the relay's; by default the system chooses.
    #[arg(long, value_name = "PORT", requires = "web", default_value_t = 0)]
    web_transport_port: u16,
    /// PEM file of a certificate chain, for pages served over HTTPS; needs --web-key.
    #[arg(long, value_name = "FILE", requires = "web", requires = "web_key")]
    web_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    #[arg(long, value_name = "FILE", requires = "web_cert")]
    web_key: Option<PathBuf>,
    /// Accept only pages of this origin, as in `https://game.example`; can be repeated.
    #[arg(long, value_name = "ORIGIN", requires = "web")]
    web_origin: Vec<String>,
    /// Most browsers at a time; further ones are refused.
    #[arg(long, value_name = "N", requires = "web", default_value_t = 1_024)]
    web_sessions_max: usize,
    /// Most browsers at a time from one IP address (IPv6: /64).
    #[arg(long, value_name = "N", requires = "web", default_value_t = 64)]
    web_sessions_per_ip: usize,
    /// Most browsers at a time from one network (IPv4: /24, IPv6: /48).
    #[arg(long, value_name = "N", requires = "web", default_value_t = 256)]
    web_sessions_per_prefix: usize,
}

impl WebArguments {
    /// The listener, at the IP address of `relay`, if one is wanted.
    fn listen(&self, mut relay: SocketAddr) -> anyhow::Result<Option<WebListener>> {
        let Some(port) = self.web else {
            return Ok(None);
        };
        relay.set_port(port);
        let mut options = WebOptions::new(relay)
            .for_relay()
            .transport_port(self.web_transport_port)
            .sessions_max(self.web_sessions_max)
            .sessions_per_address(self.web_sessions_per_ip)
            .sessions_per_prefix(self.web_sessions_per_prefix);
        if let (Some(chain), Some(key)) = (&self.web_cert, &self.web_key) {
            options = options.certificate(chain, key);
        }
        for origin in &self.web_origin {
            options = options.origin(origin);
        }
        let web = WebListener::bind(options)
            .with_context(|| format!("cannot listen for browsers at {relay}"))?;
        Ok(Some(web))
    }
}

/// A relay and its socket.
pub struct Server {
    relay: Relay,
    driver: UdpWebDriver,
    clock: Clock,
    /// The public key for which hosts need a token, if they need one.
    key: Option<String>,
}

impl Server {
    /// Listens at `address`, for the hosts that may open rooms.
    pub fn bind(
        address: SocketAddr,
        hosts: &HostArguments,
        limits: &LimitArguments,
    ) -> anyhow::Result<Self> {
        Self::start(address, hosts.tokens(address)?, limits)
    }

    /// Listens at `address`, for anybody.
    pub fn bind_open(address: SocketAddr, limits: &LimitArguments) -> anyhow::Result<Self> {
        Self::start(address, None, limits)
    }

    fn start(
        address: SocketAddr,
        tokens: Option<HostTokens>,
        limits: &LimitArguments,
    ) -> anyhow::Result<Self> {
        // One turn receives no more than fits into the second-level cache, so that packets are still cached when they are forwarded.
        let options = UdpOptions::default().receive_limit(RECEIVE_LIMIT);
        let driver = UdpDriver::bind(address, &options)
            .with_context(|| format!("cannot listen at {address}; choose another address"))?;
        let clock = Clock::start();
        let mut seed = [0; 32];
        fill_random(&mut seed).context("the system provides no randomness")?;
        let (now, limits) = (clock.now(), limits.limits());
        let key = tokens.as_ref().map(|tokens| tokens.relay_key().to_string());
        let mut relay = match tokens {
            Some(tokens) => Relay::new(now, limits, tokens, seed),
            None => Relay::danger_open(now, limits, seed),
        };
        relay.set_unix_time(now, unix_time().as_micros() / 1_000_000);
        Ok(Self {
            relay,
            driver: UdpWebDriver::new(driver),
            clock,
            key,
        })
    }

    /// Accepts browsers, if they are wanted.
    pub fn with_web(mut self, web: &WebArguments) -> anyhow::Result<Self> {
        if let Some(web) = web.listen(self.driver.local_addr()?)? {
            self.driver = self.driver.with_web(web)?;
        }
        Ok(self)
    }

    /// Handles arriving packets; waits for a moment when there are none.
    pub fn turn(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        let received = self
            .driver
            .receive(now, &mut self.relay)
            .context("the relay's socket failed")?;
        if self.relay.poll_timeout().is_some_and(|due| due <= now) {
            self.relay.handle_timeout(now);
        }
        self.driver
            .flush(now, &mut self.relay)
            .context("the relay's socket failed")?;
        if received == 0 {
            let due = self.relay.poll_timeout().map(|due| self.clock.until(due));
            self.driver
                .wait(due.unwrap_or(WAIT_MAX).min(WAIT_MAX))
                .context("the relay's socket failed")?;
        }
        Ok(())
    }
}

impl RelayServer for Server {
    fn local_addr(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.driver.local_addr()?)
    }

    fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        self.turn()
    }

    fn metrics(&self) -> String {
        let (stats, udp) = (self.relay.stats(), self.driver.udp().counters());
        let page = metrics! { "muse_relay_";
            gauge rooms "Rooms at present." => self.relay.rooms();
            gauge guests "Guests at present." => self.relay.guests();
            counter packets_total "Packets of players, by direction." => direction {
                in: stats.packets_in, out: stats.packets_out
            };
            counter bytes_total "Bytes of players' packets, by direction." => direction {
                in: stats.bytes_in, out: stats.bytes_out
            };
            counter control_total "Packets for the relay itself." => stats.control_in;
            counter dropped_total "Packets that went nowhere, by cause." => cause {
                malformed: stats.malformed, unknown: stats.unknown, limited: stats.limited, overflowed: stats.overflowed,
                unproven: stats.unproven, throttled: stats.throttled, refused: stats.refused,
                unreachable: udp.unreachable + udp.oversized
            };
            counter rooms_total "Rooms that were opened." => stats.rooms_opened;
            counter rooms_ended_total "Rooms that are gone, by cause." => cause {
                closed: stats.rooms_closed, silent: stats.rooms_expired
            };
            counter guests_total "Guests that joined." => stats.guests_joined;
            counter guests_ended_total "Guests that are gone, by cause." => cause {
                left: stats.guests_left, silent: stats.guests_expired, banned: stats.guests_banned
            };
            counter moves_total "Proven changes of address." => stats.moves;
            counter introductions_total "Times that two players were told each other's addresses." => stats.introductions;
            counter successions_total "Rooms that a host's heir took over." => stats.successions;
            counter directs_total "Pairs that found a direct way." => stats.directs;
        };
        let Some(web) = self.driver.web() else {
            return page;
        };
        let counters = web.counters();
        page + &metrics! { "muse_relay_web_";
            gauge sessions "Browsers at present." => web.sessions();
            counter sessions_total "Sessions of browsers, by what became of them." => outcome {
                opened: counters.sessions_opened, closed: counters.sessions_closed, refused: counters.sessions_refused,
                misbehaved: counters.violations
            };
            counter datagrams_total "Datagrams of browsers, by direction." => direction {
                in: counters.datagrams_received, out: counters.datagrams_sent
            };
            counter dropped_total "Datagrams of browsers that went nowhere, by cause." => cause {
                incoming: counters.dropped_incoming, outgoing: counters.dropped_outgoing, oversized: counters.oversized,
                unreachable: counters.unreachable
            };
        }
    }

    fn drain(mut self: Box<Self>, time: SystemDuration) -> anyhow::Result<()> {
        self.relay.drain();
        let deadline = self.clock.now() + Duration::from(time);
        while self.relay.rooms() > 0 && self.clock.now() < deadline {
            self.turn()?;
        }
        Ok(())
    }

    fn web_address(&self) -> Option<SocketAddr> {
        self.driver.web().map(WebListener::address)
    }
}

/// Longest wait of the loop when nothing is due.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Datagrams received at a time.
const RECEIVE_LIMIT: usize = 256;
