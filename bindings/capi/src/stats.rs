//! Counters as C structures.

use muse::transport::ConnectionId;

use crate::context::Muse;
use crate::endpoint::{no_connection, on};
use crate::memory;
use crate::status::{Failure, MuseStatus};

/// State and counters of a connection. Times are microseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseStats {
    /// Smoothed round-trip time.
    pub rtt_us: u64,
    /// Shortest round-trip time of late.
    pub rtt_min_us: u64,
    /// Mean difference between successive round-trip times.
    pub jitter_us: u64,
    /// Share of packets lost of late, 0 to 1.
    pub loss: f64,
    /// Bytes a second that arrive at the peer at present.
    pub bandwidth: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes that may be in flight.
    pub window: u64,
    /// Largest datagram that passes.
    pub mtu: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_received: u64,
    /// Packets taken as lost.
    pub packets_lost: u64,
    /// Packets of the peer that were rebuilt from parity.
    pub packets_recovered: u64,
    /// Changes of the peer's address.
    pub address_changes: u64,
    /// Times the connection was interrupted.
    pub interruptions: u64,
    /// 1 while nothing is heard of the peer.
    pub is_interrupted: u8,
    /// 0.
    pub reserved: [u8; 7],
}

/// Counters of one channel of a connection, both directions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseChannelStats {
    /// Messages taken for sending.
    pub messages_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages refused because the queue was full.
    pub refused: u64,
    /// Messages, or pieces of them, sent again after a loss.
    pub pieces_resent: u64,
    /// Messages whose deadline passed.
    pub messages_expired: u64,
    /// Messages delivered to the application.
    pub messages_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Messages that arrived twice and were dropped.
    pub messages_duplicate: u64,
    /// Messages older than one already delivered, dropped.
    pub messages_late: u64,
    /// Messages that will never come.
    pub messages_skipped: u64,
    /// Bytes that wait to be sent or acknowledged.
    pub queued_bytes: u64,
    /// Messages that wait to be sent or acknowledged.
    pub queued_messages: u64,
}

/// Gives state and counters of a connection.
///
/// # Safety
/// `muse` is null or a living Muse; `stats` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_stats(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    stats: *mut MuseStats,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let place = memory::place(stats)?;
        let connection = ConnectionId::from_bits(connection);
        let endpoint = owned.endpoint();
        let stats = endpoint.stats(connection).ok_or_else(no_connection)?;
        place.put(MuseStats {
            rtt_us: stats.rtt.as_micros(),
            rtt_min_us: stats.rtt_min.as_micros(),
            jitter_us: stats.jitter.as_micros(),
            loss: f64::from(stats.loss),
            bandwidth: stats.bandwidth,
            in_flight: stats.in_flight as u64,
            window: stats.window as u64,
            mtu: stats.mtu as u64,
            packets_sent: stats.packets_sent,
            bytes_sent: stats.bytes_sent,
            packets_received: stats.packets_received,
            bytes_received: stats.bytes_received,
            packets_lost: stats.packets_lost,
            packets_recovered: stats.packets_recovered,
            address_changes: stats.address_changes,
            interruptions: stats.interruptions,
            is_interrupted: u8::from(endpoint.is_interrupted(connection)),
            reserved: [0; 7],
        });
        Ok(())
    })
}

/// Gives counters of one channel of a connection.
///
/// # Safety
/// `muse` is null or a living Muse; `stats` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_channel_stats(
    muse: *mut Muse,
    endpoint: u64,
    connection: u64,
    channel: u8,
    stats: *mut MuseChannelStats,
) -> MuseStatus {
    on!(muse, endpoint, |owned| {
        let place = memory::place(stats)?;
        let connection = ConnectionId::from_bits(connection);
        let endpoint = owned.endpoint();
        if endpoint.remote(connection).is_none() {
            return Err(no_connection());
        }
        let Some(stats) = endpoint.channel_stats(connection, channel) else {
            return Err(Failure::new(MuseStatus::ErrorNoChannel, "no such channel"));
        };
        let (queued_bytes, queued_messages) = endpoint.queued(connection, channel);
        place.put(MuseChannelStats {
            messages_sent: stats.messages_sent,
            bytes_sent: stats.bytes_sent,
            refused: stats.refused,
            pieces_resent: stats.pieces_resent,
            messages_expired: stats.messages_expired,
            messages_received: stats.messages_received,
            bytes_received: stats.bytes_received,
            messages_duplicate: stats.messages_duplicate,
            messages_late: stats.messages_late,
            messages_skipped: stats.messages_skipped,
            queued_bytes: queued_bytes as u64,
            queued_messages: queued_messages as u64,
        });
        Ok(())
    })
}
