//! Counts and measurements of a connection and its channels.

use muse_wire::Duration;

/// Counters of one channel, both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelStats {
    /// Messages taken for sending.
    pub messages_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages refused because the queue was full.
    pub refused: u64,
    /// Messages, or fragments of them, sent again after a loss.
    pub pieces_resent: u64,
    /// Second copies of retransmissions.
    pub pieces_copied: u64,
    /// Messages whose deadline passed before they were acknowledged.
    pub messages_expired: u64,
    /// Messages that a newer one made needless (reliable sequenced).
    pub messages_superseded: u64,
    /// Messages that congestion held back for longer than [`queue_age`](crate::ChannelConfig::queue_age), dropped unsent.
    pub messages_stale: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Messages that arrived twice and were dropped.
    pub messages_duplicate: u64,
    /// Messages older than one already delivered, dropped (sequenced modes).
    pub messages_late: u64,
    /// Messages that will never come: expired at the sender, or lost within the promise of a partially reliable channel.
    pub messages_skipped: u64,
    /// Large unreliable messages of which a fragment never came.
    pub messages_incomplete: u64,
}

/// State and counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Shortest round-trip time of late.
    pub rtt_min: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variance: Duration,
    /// Mean difference between successive round-trip times.
    pub jitter: Duration,
    /// Share of packets lost of late, 0 to 1, as the acknowledgements say.
    pub loss: f32,
    /// Bytes a second that arrive at the peer at present.
    pub bandwidth: u64,
    /// Bytes in flight.
    pub in_flight: usize,
    /// Bytes that may be in flight.
    pub window: usize,
    /// Largest datagram that passes.
    pub mtu: usize,
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Packets received and authenticated.
    pub packets_received: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_received: u64,
    /// Packets taken as lost.
    pub packets_lost: u64,
    /// Packets taken as lost that arrived after all.
    pub packets_lost_spuriously: u64,
    /// Messages of all channels that congestion held back for longer than
    /// [`queue_age`](crate::ChannelConfig::queue_age), dropped unsent.
    pub messages_stale: u64,
    /// Packets of ours that the peer reconstructed from parity.
    pub packets_recovered_by_peer: u64,
    /// Packets of the peer reconstructed here.
    pub packets_recovered: u64,
    /// Parity frames sent.
    pub parities_sent: u64,
    /// Bytes of parity sent.
    pub parity_bytes_sent: u64,
    /// Parity equations of the peer's that contradicted what arrived: a broken peer.
    pub parities_rejected: u64,
    /// Bytes of memory that received messages take at present, with their overhead.
    pub memory_held: usize,
    /// Messages and fragments that arrived and were refused because a memory budget was exhausted. What must arrive is
    /// sent again by the peer.
    pub pieces_refused: u64,
    /// Packets that were not acknowledged because something in them was refused.
    pub packets_refused: u64,
    /// Unfinished large messages of unreliable channels that were dropped to stay within a memory budget.
    pub messages_evicted: u64,
    /// Packets that came twice or too late to tell.
    pub packets_replayed: u64,
    /// Packets that did not authenticate.
    pub packets_forged: u64,
    /// Changes of the peer's address.
    pub address_changes: u64,
    /// Times the connection was interrupted.
    pub interruptions: u64,
}
