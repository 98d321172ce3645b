//! The proxy's statistics, for people and for the page.

use hdrhistogram::Histogram;
use muse_netem::Counters;
use muse_wire::Duration;
use serde::Serialize;

use super::super::way::Way;
use super::Engine;

/// Packets lost for other reasons than the configured conditions.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Trouble {
    /// From clients for which there was no place.
    pub refused: u64,
    /// Reports that nothing listens at the server's address.
    pub server_refused: u64,
    /// Not sent by the system: too large for the interface, or its buffers are full.
    pub unsendable: u64,
    /// Too much was on its way.
    pub no_room: u64,
    /// Their client was forgotten while they were on their way.
    pub forgotten: u64,
    /// To a client's socket, from somebody who is not the server.
    pub strangers: u64,
    /// Other errors of sockets.
    pub socket_errors: u64,
    /// Dropped by the system before the proxy could read them, on systems that report it.
    pub kernel_drops: u64,
}

/// Lateness of the proxy with what it had to send.
#[derive(Clone, Debug)]
pub struct Lag {
    micros: Histogram<u32>,
}

impl Default for Lag {
    fn default() -> Self {
        let micros = Histogram::new_with_max(LAG_MICROS_MAX, LAG_DIGITS);
        Self {
            micros: micros.expect("the limits are in order"),
        }
    }
}

impl Lag {
    pub(super) fn record(&mut self, lag: Duration) {
        self.micros.saturating_record(lag.as_micros());
    }

    /// Returns the delay in microseconds that this share of all packets did not exceed.
    pub(crate) fn quantile_us(&self, quantile: f64) -> u64 {
        self.micros.value_at_quantile(quantile)
    }
}

/// A copy of all counters.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Since the start.
    pub uptime: Duration,
    /// Of datagrams, by direction.
    pub ways: [Counters; 2],
    /// Clients at present.
    pub clients: usize,
    /// Clients so far.
    pub clients_seen: u64,
    /// TCP connections at present, so far, and refused by the server.
    pub streams: [u64; 3],
    /// Bytes of streams by direction.
    pub stream_bytes: [u64; 2],
    /// Packets on their way.
    pub in_flight: usize,
    /// Packets that were lost by accident.
    pub trouble: Trouble,
    /// Time between when a packet was due and when it left.
    pub lag: Lag,
    /// Packets captured.
    pub captured: u64,
}

impl Engine {
    /// Returns the statistics so far.
    pub fn statistics(&self) -> Statistics {
        let ways = Way::BOTH.map(|way| match &self.shared {
            Some(links) => *links[way.index()].counters(),
            None => self.clients.counters(way),
        });
        let mut trouble = self.trouble;
        trouble.kernel_drops = self.kernel_drops();
        Statistics {
            uptime: self.clock.now().saturating_since(muse_wire::Instant::ZERO),
            ways,
            clients: self.clients.len(),
            clients_seen: self.clients.seen,
            streams: self.streams.as_ref().map_or([0; 3], |it| it.counts()),
            stream_bytes: self.streams.as_ref().map_or([0; 2], |it| it.bytes()),
            in_flight: self.flights.len(),
            trouble,
            lag: self.lag.clone(),
            captured: self.capture.as_ref().map_or(0, |capture| capture.packets()),
        }
    }

    /// Each client: its address, what it and the server have sent, and how long ago something was heard.
    pub(crate) fn client_lines(&self) -> Vec<String> {
        let now = self.clock.now();
        let line = |client: &super::Client| {
            let [up, down] = Way::BOTH.map(|way| client.links[way.index()].counters().offered);
            let quiet = now.saturating_since(client.heard).as_secs_f64();
            let (address, local) = (super::plain(client.address), client.local);
            format!("{address} by {local}: {up} up, {down} down, heard {quiet:.1} s ago")
        };
        self.clients.iter().map(line).collect()
    }

    /// Returns Linux's count of packets for which a socket had no room.
    fn kernel_drops(&self) -> u64 {
        let mut ports: Vec<u16> = self.clients.iter().map(|it| it.local.port()).collect();
        ports.push(self.listener.local_addr().port());
        ports.sort_unstable();
        ["/proc/net/udp", "/proc/net/udp6"]
            .into_iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .map(|table| drops_of(&table, &ports))
            .sum()
    }
}

/// The sum of the last column for the sockets with these local ports.
fn drops_of(table: &str, ports: &[u16]) -> u64 {
    let line_drops = |line: &str| {
        let mut words = line.split_whitespace();
        let local = words.nth(1)?;
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        let drops = words.next_back()?.parse::<u64>().ok()?;
        ports.binary_search(&port).is_ok().then_some(drops)
    };
    table.lines().filter_map(line_drops).sum()
}

/// Longer delays are counted as this.
const LAG_MICROS_MAX: u64 = 60_000_000;
/// Significant digits of the histogram.
const LAG_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let mut lag = Lag::default();
        for micros in 1..=1_000 {
            lag.record(Duration::from_micros(micros));
        }
        assert!((500..1_000).contains(&lag.quantile_us(0.5)));
        assert_eq!(lag.quantile_us(1.0), 1_000);
        assert_eq!(Lag::default().quantile_us(0.5), 0);
    }

    #[test]
    fn drops_are_read_from_the_table_of_sockets() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   10: 0100007F:2328 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0000000000000000 17
   11: 0100007F:2329 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0000000000000000 5
";
        assert_eq!(drops_of(table, &[9_000]), 17);
        assert_eq!(drops_of(table, &[9_000, 9_001]), 22);
    }
}
