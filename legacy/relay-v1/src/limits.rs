//! Limits on what one client may ask of a relay that faces the internet.

use muse_wire::Duration;
use muse_wire::rate::Rate;

/// Limits and settings of a [`Relay`](super::Relay). The defaults let 120 clients send 20 updates a second with room to spare.
#[derive(Clone, Debug)]
pub struct Limits {
    pub(super) clients: usize,
    pub(super) clients_per_ip: usize,
    pub(super) datagram_rate: Rate,
    pub(super) packet_rate: Rate,
    pub(super) byte_rate: Rate,
    pub(super) held_datagram_bytes: usize,
    pub(super) held_stream_bytes: usize,
    pub(super) unsent_bytes: usize,
    pub(super) stall: Duration,
    pub(super) tick: Duration,
    pub(super) keep_alive: Duration,
    pub(super) any_source: bool,
}

impl Limits {
    /// UDP packets a second from one client, and how many at once. Default 500 and 500. What is beyond is dropped and counted. A
    /// broadcast costs one packet out for every other client.
    pub fn datagrams_per_second(mut self, rate: u32, burst: u32) -> Self {
        self.datagram_rate = Rate::new(rate, burst.max(1));
        self
    }

    /// TCP packets a second from one client, and how many at once. Default 2,000 and 2,000. What is beyond waits with its
    /// sender; nothing is lost.
    pub fn packets_per_second(mut self, rate: u32, burst: u32) -> Self {
        self.packet_rate = Rate::new(rate.max(1), burst.max(1));
        self
    }

    /// TCP bytes a second from one client, and how many at once. Default 2 MiB and 512 KiB. What is beyond waits with its
    /// sender; nothing is lost.
    pub fn bytes_per_second(mut self, rate: u32, burst: u32) -> Self {
        self.byte_rate = Rate::new(rate.max(1), burst.max(1));
        self
    }

    /// Accepts UDP for a client from any IP address rather than only from that of its TCP connection. Default false. With
    /// it anybody who can send a packet can speak, and receive, in another's name.
    pub fn danger_any_source(mut self, on: bool) -> Self {
        self.any_source = on;
        self
    }
}

muse_wire::setters! { Limits:
    /// Most clients at a time. Default 255, which is also the most that there are addresses for. One more is refused: its
    /// connection is closed before it is told an address.
    clients: usize = clients.min(CLIENTS_MAX),

    /// Most clients at a time from one IP address. Default 255: no limit, because players behind one router share an address.
    clients_per_ip: usize,

    /// Bytes of UDP packets of one client that are held for the tick. Default 256 KiB. What is beyond is dropped and counted.
    held_datagram_bytes: usize,

    /// Bytes of TCP packets of all clients that are held for the tick. Default 16 MiB. When it is full, nobody's bytes are read
    /// until the tick.
    held_stream_bytes: usize = held_stream_bytes.max(1),

    /// Bytes that may wait for one client because it does not read. Default 4 MiB, beyond what the system's own buffer takes. A
    /// client for whom more waits is cut off.
    unsent_bytes: usize,

    /// Sets how long bytes may wait for a client that reads nothing at all. Default 10 s; then it is cut off.
    stall: Duration,

    /// Length of the tick. Default 50 ms, as the protocol says; other values are for tests.
    tick: Duration = tick.max(Duration::from_millis(1)),

    /// Sets how often UDP endpoints are kept alive. Default 30 s, as the protocol says.
    keep_alive: Duration = keep_alive.max(Duration::from_millis(1)),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: CLIENTS_MAX,
            clients_per_ip: CLIENTS_MAX,
            datagram_rate: Rate::new(500, 500),
            packet_rate: Rate::new(2_000, 2_000),
            byte_rate: Rate::new(2 << 20, 512 << 10),
            held_datagram_bytes: 256 << 10,
            held_stream_bytes: 16 << 20,
            unsent_bytes: 4 << 20,
            stall: Duration::from_secs(10),
            tick: Duration::from_millis(50),
            keep_alive: Duration::from_secs(30),
            any_source: false,
        }
    }
}

/// Addresses 1 to 255.
pub const CLIENTS_MAX: usize = 255;
