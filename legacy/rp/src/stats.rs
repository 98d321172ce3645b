//! Statistics of a host and its connections, with the share of losses.

use muse_wire::Duration;

use crate::receiver::ReceiverCounters;
use crate::sender::SenderCounters;

/// Statistics of a connection since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The last round trip measured by a ping; `None` before the first.
    pub rtt: Option<Duration>,
    /// The round trip, smoothed over some eight pings.
    pub rtt_smoothed: Option<Duration>,
    /// Pings sent.
    pub pings_sent: u64,
    /// Pings answered in time.
    pub pings_answered: u64,
    /// The reliable channel.
    pub reliable: ChannelStats,
    /// The partially reliable channel.
    pub partial: ChannelStats,
}

/// Statistics of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChannelStats {
    /// Sending.
    pub sender: SenderCounters,
    /// Receiving.
    pub receiver: ReceiverCounters,
    /// Messages that are not acknowledged yet, sent or not.
    pub unacknowledged: usize,
}

impl ChannelStats {
    /// Share of transmissions that had to be repeated, in per cent: an estimate of the path's loss from above, as
    /// some repetitions are needless.
    pub fn resent_percent(&self) -> f64 {
        let again = self.sender.resent_by_timer + self.sender.resent_by_duplicates;
        let all = (self.sender.sent + again).max(1);
        again as f64 * 100.0 / all as f64
    }

    /// Share of messages that were lost for good on the way here, in per cent.
    pub fn skipped_percent(&self) -> f64 {
        let skipped = self.receiver.skipped;
        skipped as f64 * 100.0 / (skipped + self.receiver.delivered).max(1) as f64
    }
}

/// Statistics of a host, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostStats {
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Datagrams handed out to be sent.
    pub datagrams_sent: u64,
    /// Datagrams that could not be read.
    pub malformed: u64,
    /// Datagrams from addresses without a connection, and those that make no sense in its state.
    pub unexpected: u64,
    /// Clients that got no answer because there were enough.
    pub refused: u64,
    /// Half-open connections given up: out of time, or to make room.
    pub half_open_lost: u64,
    /// Datagrams not sent because too many waited for the sockets.
    pub overflowed: u64,
    /// Messages not accepted (they come again) because the application does not fetch its events.
    pub backlogged: u64,
}
