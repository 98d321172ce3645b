//! Counts of a relay.

use muse_wire::Duration;

/// Counters of a [`Relay`](super::Relay), from its start on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Clients that were given an address.
    pub accepted: u64,
    /// Connections refused because there were too many clients.
    pub refused: u64,
    /// Clients that left by themselves, or whose connection broke.
    pub left: u64,
    /// Clients cut off because the lengths of a header differed.
    pub cut_length: u64,
    /// Clients cut off because they did not read.
    pub cut_slow: u64,
    /// TCP packets that arrived.
    pub packets_in: u64,
    /// TCP bytes that arrived.
    pub stream_bytes_in: u64,
    /// TCP packets for one client each, given to its connection.
    pub packets_out: u64,
    /// TCP bytes that left.
    pub stream_bytes_out: u64,
    /// TCP packets with an unused control, or without the data that theirs needs.
    pub packets_ignored: u64,
    /// TCP packets for an address that is not active.
    pub packets_undeliverable: u64,
    /// UDP packets that arrived.
    pub datagrams_in: u64,
    /// Their bytes.
    pub datagram_bytes_in: u64,
    /// UDP packets given to the network, keep-alives included.
    pub datagrams_out: u64,
    /// Their bytes.
    pub datagram_bytes_out: u64,
    /// UDP packets dropped because they are malformed.
    pub datagrams_malformed: u64,
    /// UDP packets dropped because no active client may have sent them.
    pub datagrams_unknown: u64,
    /// UDP packets dropped because they came from another IP address or endpoint than their sender's.
    pub datagrams_spoofed: u64,
    /// UDP packets beyond a client's rate or held bytes, dropped.
    pub datagrams_limited: u64,
    /// Grouped UDP packets that a newer one replaced, or that were older than the one held.
    pub datagrams_superseded: u64,
    /// Grouped UDP packets dropped as left over from before the counter started again.
    pub datagrams_stale: u64,
    /// UDP packets that the network had not taken by the next tick, dropped.
    pub datagrams_unsent: u64,
    /// Ticks.
    pub ticks: u64,
    /// Ticks that were left out because the one before came a whole tick late or more.
    pub ticks_missed: u64,
    /// The sum of all lateness of ticks.
    pub tick_lateness_sum: Duration,
    /// The largest lateness of a tick.
    pub tick_lateness_max: Duration,
}
