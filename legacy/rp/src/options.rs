//! The options of a host, with defaults and validation.

use muse_wire::Duration;
use muse_wire::partial::{Promise, PromiseError};
use thiserror::Error;

use crate::handlers::Handlers;

/// Options of a [`Host`](crate::Host).
///
/// ```
/// use muse_rp::{Host, HostOptions, OptionsError};
/// assert!(Host::new(HostOptions::default().window(100).percent(95), 1).is_ok());
/// let error = Host::new(HostOptions::default().percent(101), 1).err();
/// assert_eq!(error.map(|error| error.to_string()), Some("reliability of 101 %: it must be 0 to 100".to_owned()));
/// ```
#[derive(Debug)]
pub struct HostOptions {
    pub(crate) connections_max: usize,
    pub(crate) time_out: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) ping_answer_delay: Duration,
    pub(crate) tick: Duration,
    pub(crate) reliable_port: u16,
    pub(crate) partial_port: u16,
    pub(crate) window: u32,
    pub(crate) percent: u8,
    pub(crate) initial_timer: Duration,
    pub(crate) ack_delay: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) connect_tries: u32,
    pub(crate) resends_max: u32,
    pub(crate) queue_max: usize,
    pub(crate) handlers: Handlers,
}

impl HostOptions {
    /// The ports of this host's two sockets, as told to the peer. Default 7,777 and 7,778.
    pub fn ports(mut self, reliable: u16, partial: u16) -> Self {
        self.reliable_port = reliable;
        self.partial_port = partial;
        self
    }

    /// Sets how long an attempt to connect takes, and how many there are. Default 1 s, 5 attempts.
    pub fn connect_timeout(mut self, timeout: Duration, tries: u32) -> Self {
        self.connect_timeout = timeout;
        self.connect_tries = tries;
        self
    }

    /// Checks everything and gives the promise of the partially reliable channel.
    pub(crate) fn validate(&self) -> Result<Promise, OptionsError> {
        let promise = Promise::new(self.window, self.percent)?;
        if self.reliable_port == self.partial_port {
            return Err(OptionsError::Ports(self.reliable_port));
        }
        if self.ping_interval.is_zero() || self.time_out < self.ping_interval {
            return Err(OptionsError::Pings {
                time_out: self.time_out,
                interval: self.ping_interval,
            });
        }
        let times = [self.tick, self.initial_timer, self.connect_timeout];
        if times.iter().any(|time| time.is_zero()) {
            return Err(OptionsError::Zero);
        }
        if self.connect_tries == 0 || self.resends_max == 0 || self.queue_max == 0 {
            return Err(OptionsError::Zero);
        }
        Ok(promise)
    }
}

muse_wire::setters! { HostOptions:
    /// Most open connections that are accepted; further clients get no answer. Default 64. Each costs some hundred bytes, and
    /// what its windows hold.
    connections_max: usize,

    /// Sets how long a peer may leave pings unanswered before it is expelled, in whole ping intervals, and how long a half-open
    /// connection is kept. No connection ends earlier for messages that are not acknowledged. Default 10 s. At 10 % loss each way a peer is expelled wrongly once in 10 million
    /// intervals; at half the time, once in 4,000.
    time_out: Duration,

    /// Time between pings. Default 1 s. A ping and its answer are 12 bytes each; the round trip is known this fresh.
    ping_interval: Duration,

    /// Sets how long a ping waits for its answer. The original stops when it measures less than 1 ms, and it starts its clock
    /// only after it has sent: on a busy machine more than 5 ms later. Default 25 ms, which the peer measures as part of the
    /// round trip; none is right where nobody uses the original. Answer well within the peer's ping interval: it looks at the
    /// answer to its newest ping alone.
    ping_answer_delay: Duration,

    /// Sets the longest interval at which the program around the host looks at its sockets and at what the host has for it. The host itself
    /// only keeps it. Default 1 ms, as in the original.
    tick: Duration,

    /// Messages under way at once, per channel, and the length of the windows that the promise is about. The server's counts.
    /// Default 64. There is no congestion control: a window that the path does not carry is lost.
    window: u32,

    /// Share of each window that surely arrives on the partially reliable channel, in per cent. The server's counts.
    /// Default 80. What it takes to reach it costs time.
    percent: u8,

    /// Sets how long to wait for an acknowledgement as long as the round trip is unknown; later twice the round trip, at least
    /// 20 ms. Default 200 ms.
    initial_timer: Duration,

    /// Sets how long acknowledgements wait. The original forgets what it has sent if the acknowledgement comes before it has noted the
    /// message, and then repeats the wrong one for ever. Default 5 ms, which adds as much to each window's round trip, and ten times as
    /// much to each step of the handshake; none is right where nobody uses the original.
    ack_delay: Duration,

    /// Sets how often one message is sent again by the timer, at least, before a connection whose peer still answers pings is given
    /// up, which is not before [`time_out`](Self::time_out) either. Default 250: with the shortest timer that is 5 s.
    resends_max: u32,

    /// Most messages that wait or are under way, per channel of a connection; further ones are refused. Default 16,384, which
    /// can be 16 MB.
    queue_max: usize,

    /// Sets the handlers of messages by type; see [`Host::dispatch`](crate::Host::dispatch). Default none.
    handlers: Handlers,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            connections_max: 64,
            time_out: Duration::from_secs(10),
            ping_interval: Duration::from_secs(1),
            ping_answer_delay: Duration::from_millis(25),
            tick: Duration::from_millis(1),
            reliable_port: 7_777,
            partial_port: 7_778,
            window: 64,
            percent: 80,
            initial_timer: Duration::from_millis(200),
            ack_delay: Duration::from_millis(5),
            connect_timeout: Duration::from_secs(1),
            connect_tries: 5,
            resends_max: 250,
            queue_max: 16_384,
            handlers: Handlers::default(),
        }
    }
}

/// Options that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The window or the percentage.
    #[error(transparent)]
    Promise(#[from] PromiseError),
    /// Two sockets cannot have one port.
    #[error("both channels on port {0}: each needs its own")]
    Ports(u16),
    /// Pings that are never sent, or that nobody could answer in time.
    #[error(
        "time-out of {time_out} with pings every {interval}: it must be at least one interval, and that not 0"
    )]
    Pings {
        /// The time-out.
        time_out: Duration,
        /// The interval.
        interval: Duration,
    },
    /// A time or number that must not be zero.
    #[error(
        "the tick, the timers, the attempts to connect, the resends and the queue must not be 0"
    )]
    Zero,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let wrong = |options: HostOptions| options.validate().expect_err("nonsense");
        let options = HostOptions::default;
        assert!(matches!(
            wrong(options().window(0)),
            OptionsError::Promise(PromiseError::Window(0))
        ));
        assert!(matches!(
            wrong(options().percent(101)),
            OptionsError::Promise(PromiseError::Percent(101))
        ));
        assert_eq!(wrong(options().ports(5, 5)), OptionsError::Ports(5));
        assert!(matches!(
            wrong(options().ping_interval(Duration::ZERO)),
            OptionsError::Pings { .. }
        ));
        assert!(matches!(
            wrong(options().time_out(Duration::from_millis(999))),
            OptionsError::Pings { .. }
        ));
        assert_eq!(wrong(options().tick(Duration::ZERO)), OptionsError::Zero);
        assert_eq!(wrong(options().resends_max(0)), OptionsError::Zero);
        assert!(options().validate().is_ok());
    }
}
