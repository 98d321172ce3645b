//! Limits of a relay.

use muse_wire::Duration;

use super::packet::SLOTS_MAX;

/// Limits of a [`Relay`](super::Relay). The defaults suit a public relay on a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(super) rooms: usize,
    pub(super) rooms_per_ip: u32,
    pub(super) guests: usize,
    pub(super) guests_per_room: usize,
    pub(super) guests_per_ip: usize,
    pub(super) packets_per_second: u32,
    pub(super) bytes_per_second: u32,
    pub(super) burst_ms: u32,
    pub(super) requests_per_second: u32,
    pub(super) idle: Duration,
}

impl Limits {
    /// Rooms at a time. Default 4,096; some 200 bytes each.
    pub fn rooms(mut self, count: usize) -> Self {
        self.rooms = count.min(SLOTS_MAX);
        self
    }

    /// Rooms at a time from one IP address (IPv6: /64). Default 64.
    pub fn rooms_per_ip(mut self, count: u32) -> Self {
        self.rooms_per_ip = count;
        self
    }

    /// Guests at a time, in all rooms. Default 65,536; some 250 bytes each.
    pub fn guests(mut self, count: usize) -> Self {
        self.guests = count.min(SLOTS_MAX);
        self
    }

    /// Guests at a time in one room. Default 256.
    pub fn guests_per_room(mut self, count: usize) -> Self {
        self.guests_per_room = count;
        self
    }

    /// Guests at a time in one room from one IP address (IPv6: /64), so that nobody fills a room alone. Default 64.
    pub fn guests_per_ip(mut self, count: usize) -> Self {
        self.guests_per_ip = count;
        self
    }

    /// Packets a second that a room may send, in all directions; what is beyond is dropped. Default 20,000.
    pub fn packets_per_second(mut self, count: u32) -> Self {
        self.packets_per_second = count;
        self
    }

    /// Bytes a second that a room may send, in all directions; what is beyond is dropped. Default 4 MB.
    pub fn bytes_per_second(mut self, bytes: u32) -> Self {
        self.bytes_per_second = bytes;
        self
    }

    /// Sets how many milliseconds' worth of those may come at once. Default 250.
    pub fn burst_ms(mut self, milliseconds: u32) -> Self {
        self.burst_ms = milliseconds;
        self
    }

    /// Requests to open or join a second from one IP address (IPv6: /64), with four seconds' worth at once. Default 16. So many codes can be guessed.
    pub fn requests_per_second(mut self, count: u32) -> Self {
        self.requests_per_second = count;
        self
    }

    /// After so much silence a host's room or a guest is forgotten. Default 60 s; they say something every 5 s.
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rooms: 4_096,
            rooms_per_ip: 64,
            guests: 65_536,
            guests_per_room: 256,
            guests_per_ip: 64,
            packets_per_second: 20_000,
            bytes_per_second: 4_000_000,
            burst_ms: 250,
            requests_per_second: 16,
            idle: Duration::from_secs(60),
        }
    }
}
