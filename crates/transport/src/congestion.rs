//! Congestion control: controllers behind one trait, the pacer and the budget.
//!
//! There are Fiedler's binary controller and a greedier one that never floods the link. A
//! [`Controller`] is sans-IO: the connection tells it what was sent, acknowledged and lost, and asks it for two numbers,
//! how many bytes may be in flight and how fast they may leave. The [`Pacer`] turns the second into release times, and
//! the [`Budget`] tells a game how much it may send this tick. `docs/congestion.md` holds formulae and measurements.
//!
//! ```
//! use muse_transport::congestion::Congestion;
//! use muse_wire::Instant;
//! let controller = Congestion::adaptive().build(1_200, Instant::ZERO);
//! assert!(controller.window() >= 2 * 1_200);
//! ```

mod adaptive;
mod binary;
mod budget;
mod fixed;
mod pacer;

use std::fmt;
use std::sync::Arc;

use muse_wire::{Duration, Instant};

pub use adaptive::AdaptiveConfig;
pub use binary::BinaryConfig;
pub use budget::Budget;
pub use pacer::Pacer;

/// Decides how much a connection may have in flight and how fast it may send.
///
/// The order of calls: [`on_sent`](Self::on_sent) for each packet that asks for an ack, then exactly one of
/// [`on_ack`](Self::on_ack) and [`on_loss`](Self::on_loss) for it, in any order between packets; `now` never goes back.
/// Within one received ack, call `on_ack` for every newly acknowledged packet before `on_loss` for those now taken as
/// lost. Between calls the connection reads [`window`](Self::window) and [`pacing_rate`](Self::pacing_rate); both are cheap.
///
/// A controller must return from every call in bounded time and must not panic whatever the numbers are: they
/// come from the network.
///
/// ```
/// use muse_transport::congestion::{Ack, Congestion, Controller, Loss};
/// use muse_wire::Instant;
///
/// /// Halves on loss, otherwise grows by what was acknowledged.
/// #[derive(Debug)]
/// struct Simple(usize);
///
/// impl Controller for Simple {
///     fn on_sent(&mut self, _: Instant, _: usize, _: usize, _: bool) {}
///     fn on_ack(&mut self, ack: &Ack) {
///         self.0 = (self.0 + ack.bytes).min(1 << 20);
///     }
///     fn on_loss(&mut self, _: &Loss) {
///         self.0 = (self.0 / 2).max(2_400);
///     }
///     fn window(&self) -> usize {
///         self.0
///     }
///     fn pacing_rate(&self) -> Option<u64> {
///         None
///     }
///     fn reset(&mut self, _: Instant) {
///         self.0 = 12_000;
///     }
/// }
///
/// let simple = Congestion::custom(|_packet_size, _now| Box::new(Simple(12_000)));
/// assert_eq!(simple.build(1_200, Instant::ZERO).window(), 12_000);
/// ```
pub trait Controller: Send + fmt::Debug {
    /// A packet of `bytes` left; `in_flight` includes it. `app_limited` says that the application had nothing more to
    /// send although window and pacing would have allowed it.
    fn on_sent(&mut self, now: Instant, bytes: usize, in_flight: usize, app_limited: bool);

    /// A packet was acknowledged.
    fn on_ack(&mut self, ack: &Ack);

    /// A packet is taken as lost.
    fn on_loss(&mut self, loss: &Loss);

    /// The path marked a packet instead of dropping it (ECN CE). `sent_at` is when the newest packet of the ack that
    /// reported the mark was sent. Ignored unless overridden.
    fn on_mark(&mut self, now: Instant, sent_at: Instant) {
        let _ = (now, sent_at);
    }

    /// Path MTU discovery changed the size of a full packet. Ignored unless overridden.
    fn on_packet_size(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Makes the pacer of a connection whose full packets have `packet_size` bytes. [`Pacer::new`] unless overridden: its burst lets a
    /// game that flushes once a tick do so at once, and keeps a lower rate from being felt until it is used up.
    fn pacer(&self, packet_size: usize) -> Pacer {
        Pacer::new(packet_size)
    }

    /// Bytes that may be in flight.
    fn window(&self) -> usize;

    /// Bytes per second at which packets may leave; `None` sends as fast as the window allows.
    fn pacing_rate(&self) -> Option<u64>;

    /// The path changed: everything learned about the old one is void.
    fn reset(&mut self, now: Instant);
}

/// One acknowledged packet, for [`Controller::on_ack`].
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The time at which the ack was handled.
    pub now: Instant,
    /// The time at which the packet was sent.
    pub sent_at: Instant,
    /// Size of the packet.
    pub bytes: usize,
    /// The round-trip sample, the peer's ack delay already removed. Only the newest packet of a received ack yields one:
    /// for the others the time to the ack says more about how acks are gathered than about the path.
    pub rtt: Option<Duration>,
    /// The part of the sample that may be time in which nobody looked for the ack: that is no delay of the path.
    pub rtt_slack: Duration,
    /// The smoothed round-trip time, this sample included.
    pub rtt_smoothed: Duration,
    /// Bytes still in flight after this ack.
    pub in_flight: usize,
    /// True if the application, not the controller, set the pace when the packet was sent.
    pub app_limited: bool,
}

/// One packet taken as lost, for [`Controller::on_loss`].
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The time at which the loss was noticed.
    pub now: Instant,
    /// The time at which the packet was sent.
    pub sent_at: Instant,
    /// Size of the packet.
    pub bytes: usize,
    /// Bytes still in flight after this loss.
    pub in_flight: usize,
    /// Nothing sent for several probe time-outs arrived: the path is dead or was cut.
    pub persistent: bool,
}

/// The choice of a connection's controller: the part of its configuration that is about congestion.
///
/// The default is [`Congestion::adaptive`].
///
/// ```
/// use muse_transport::Config;
/// use muse_transport::congestion::Congestion;
/// use muse_wire::Instant;
/// // A leased line, of which half is ours.
/// let line = Congestion::fixed(250_000);
/// assert_eq!(line.build(1_200, Instant::ZERO).pacing_rate(), Some(250_000));
/// // Whatever is below does it.
/// assert_eq!(Congestion::off().build(1_200, Instant::ZERO).pacing_rate(), None);
/// let config = Config::new(1).congestion(line);
/// # let _ = config;
/// ```
#[derive(Clone)]
pub struct Congestion(Kind);

impl Congestion {
    /// Watches delay and loss, paces, looks for spare bandwidth and holds its own beside TCP. The default.
    pub fn adaptive() -> Self {
        Self::adaptive_with(AdaptiveConfig::default())
    }

    /// [`adaptive`](Self::adaptive) with other constants.
    pub fn adaptive_with(config: AdaptiveConfig) -> Self {
        Self(Kind::Adaptive(config))
    }

    /// Fiedler's two modes, 30 and 10 packets a second of 256 bytes.
    pub fn binary() -> Self {
        Self::binary_with(BinaryConfig::default())
    }

    /// [`binary`](Self::binary) with other constants.
    pub fn binary_with(config: BinaryConfig) -> Self {
        Self(Kind::Binary(config))
    }

    /// A fixed rate in bytes per second, whatever the path says. For links whose capacity is known and not shared.
    pub fn fixed(bytes_per_second: u64) -> Self {
        Self(Kind::Fixed(bytes_per_second))
    }

    /// No limit at all: for links that are reliable and do their own congestion control (WebSocket, in-memory).
    pub fn off() -> Self {
        Self(Kind::Off)
    }

    /// A controller of your own; `make` gets the size of a full packet and the time, once per connection.
    pub fn custom<F>(make: F) -> Self
    where
        F: Fn(usize, Instant) -> Box<dyn Controller> + Send + Sync + 'static,
    {
        Self(Kind::Custom(Arc::new(make)))
    }

    /// A controller for one connection whose full packets have `packet_size` bytes.
    pub fn build(&self, packet_size: usize, now: Instant) -> Box<dyn Controller> {
        match &self.0 {
            Kind::Adaptive(config) => Box::new(adaptive::Adaptive::new(*config, packet_size, now)),
            Kind::Binary(config) => Box::new(binary::Binary::new(*config, now)),
            Kind::Fixed(rate) => Box::new(fixed::Fixed::new(*rate)),
            Kind::Off => Box::new(fixed::Off),
            Kind::Custom(make) => make(packet_size, now),
        }
    }
}

impl Default for Congestion {
    fn default() -> Self {
        Self::adaptive()
    }
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Adaptive(config) => f.debug_tuple("Adaptive").field(config).finish(),
            Kind::Binary(config) => f.debug_tuple("Binary").field(config).finish(),
            Kind::Fixed(rate) => f.debug_tuple("Fixed").field(rate).finish(),
            Kind::Off => f.write_str("Off"),
            Kind::Custom(_) => f.write_str("Custom"),
        }
    }
}

#[derive(Clone)]
enum Kind {
    Adaptive(AdaptiveConfig),
    Binary(BinaryConfig),
    Fixed(u64),
    Off,
    Custom(Arc<dyn Fn(usize, Instant) -> Box<dyn Controller> + Send + Sync>),
}

/// Bytes that `rate` bytes per second yield in `span`, saturating.
fn bytes_in(rate: u64, span: Duration) -> u64 {
    // Numbers of 64 bits are divided several times faster than those of 128, and nearly always suffice.
    if let Some(product) = rate.checked_mul(span.as_micros()) {
        return product / 1_000_000;
    }
    let bytes = u128::from(rate) * u128::from(span.as_micros()) / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
