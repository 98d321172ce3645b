//! Limits of a relay.

use muse_wire::Duration;

use super::packet::SLOTS_MAX;

/// Limits of a [`Relay`](super::Relay). The defaults suit a public relay on a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(super) rooms: usize,
    pub(super) rooms_per_ip: u32,
    pub(super) rooms_per_prefix: u32,
    pub(super) guests: usize,
    pub(super) guests_per_room: usize,
    pub(super) guests_per_ip: usize,
    pub(super) guests_per_prefix: usize,
    pub(super) all_guests_per_prefix: u32,
    pub(super) guest_packets_per_second: u32,
    pub(super) guest_bytes_per_second: u32,
    pub(super) packets_per_second: u32,
    pub(super) bytes_per_second: u32,
    pub(super) egress_bytes_per_second: u32,
    pub(super) burst_ms: u32,
    pub(super) requests_per_second: u32,
    pub(super) idle: Duration,
}

muse_wire::setters! { Limits:
    /// Rooms at a time. Default 4,096; some 500 bytes each.
    rooms: usize = rooms.min(SLOTS_MAX),

    /// Rooms at a time from one IP address (IPv6: /64). Default 64.
    rooms_per_ip: u32,

    /// Rooms at a time from one network (IPv4: /24, IPv6: /48). Default 256.
    rooms_per_prefix: u32,

    /// Guests at a time, in all rooms. Default 65,536; some 350 bytes each.
    guests: usize = guests.min(SLOTS_MAX),

    /// Guests at a time in one room. Default 256.
    guests_per_room: usize,

    /// Guests at a time in one room from one IP address (IPv6: /64), so that nobody fills a room alone. Default 64.
    guests_per_ip: usize,

    /// Guests at a time in one room from one network (IPv4: /24, IPv6: /48). Default 128.
    guests_per_prefix: usize,

    /// Guests at a time in all rooms from one network (IPv4: /24, IPv6: /48). Default 4,096.
    all_guests_per_prefix: u32,

    /// Packets a second between a guest and its host, in both directions; what is beyond is dropped. Default 1,000.
    guest_packets_per_second: u32,

    /// Bytes a second between a guest and its host, in both directions; what is beyond is dropped. Default 500,000.
    guest_bytes_per_second: u32,

    /// Packets a second that a room may send, in all directions; what is beyond is dropped. Default 20,000. Active guests have equal
    /// shares: one within its share gets through whatever others send.
    packets_per_second: u32,

    /// Bytes a second that a room may send, in all directions; what is beyond is dropped. Default 4 MB. Active guests have equal
    /// shares.
    bytes_per_second: u32,

    /// Bytes a second that all rooms may send together. Default 100 MB, somewhat less than a gigabit. Active rooms have equal shares: one
    /// within its share gets through whatever others send.
    egress_bytes_per_second: u32,

    /// Sets how many milliseconds' worth of those may come at once. Default 250.
    burst_ms: u32,

    /// Requests to open or join a second from one IP address (IPv6: /64), with four seconds' worth at once. Default 16. So many codes can be guessed.
    requests_per_second: u32,

    /// After so much silence a host's room or a guest is forgotten. Default 60 s; they say something every 5 s.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rooms: 4_096,
            rooms_per_ip: 64,
            rooms_per_prefix: 256,
            guests: 65_536,
            guests_per_room: 256,
            guests_per_ip: 64,
            guests_per_prefix: 128,
            all_guests_per_prefix: 4_096,
            guest_packets_per_second: 1_000,
            guest_bytes_per_second: 500_000,
            packets_per_second: 20_000,
            bytes_per_second: 4_000_000,
            egress_bytes_per_second: 100_000_000,
            burst_ms: 250,
            requests_per_second: 16,
            idle: Duration::from_secs(60),
        }
    }
}
