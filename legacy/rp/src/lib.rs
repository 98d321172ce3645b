//! MUSE-RP v1, byte-compatible with the original implementation.
//!
//! A connection has two channels, each over a UDP socket of its own on both sides: one reliable and ordered, one that loses
//! at most a promised share of each window, in order too. [`Host`] is client and server in one, without IO: the sockets stay
//! outside and are told apart by [`Channel`].
//!
//! From the outside in: [`host`] (connections, handshake, events), [`sender`] and [`receiver`] (one direction of a channel),
//! [`packet`] (bytes). `muse-rp-driver` has the sockets. Messages go to the application as [`Event`]s or to [`handlers`] by type. `docs/muse-rp.md` is the
//! standard, with what it takes to live with the original.
//!
//! Nothing here is encrypted or authenticated: the format has no room for it. It is for games that talk to
//! the original; new games use the Muse transport.
//!
//! ```
//! use muse_rp::{Channel, Event, Host, HostOptions};
//! use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};
//!
//! let mut server = Host::new(HostOptions::default().ack_delay(Duration::ZERO).ports(7_777, 7_778), 1)?;
//! server.listen(true);
//! let mut client = Host::new(HostOptions::default().ack_delay(Duration::ZERO).ports(50_001, 50_002), 2)?;
//! let connection = client.connect(Instant::ZERO, "192.0.2.1:7777".parse()?)?;
//!
//! // In place of sockets: what one host sends, the other receives, until neither has anything to say.
//! fn carry(from: &mut Host, ports: [u16; 2], address: [u8; 4], to: &mut Host) -> bool {
//!     let mut any = false;
//!     from.handle_timeout(Instant::ZERO);
//!     for (channel, port) in Channel::ALL.into_iter().zip(ports) {
//!         let mut buffer = [0; 1_500];
//!         while let Some(transmit) = from.socket(channel).poll_transmit(Instant::ZERO, &mut buffer) {
//!             let payload = &mut buffer[..transmit.len];
//!             let datagram = Datagram { from: (address, port).into(), ecn: Ecn::NotCapable, payload };
//!             to.socket(channel).handle_datagram(Instant::ZERO, datagram);
//!             any = true;
//!         }
//!     }
//!     any
//! }
//! let mut exchange = |client: &mut Host| {
//!     while carry(client, [50_001, 50_002], [192, 0, 2, 2], &mut server)
//!         | carry(&mut server, [7_777, 7_778], [192, 0, 2, 1], client)
//!     {}
//! };
//! exchange(&mut client);
//! assert!(matches!(client.poll_event(), Some(Event::Connected { .. })));
//! client.send(connection, Channel::Reliable, 300, b"hello")?;
//! exchange(&mut client);
//!
//! assert!(matches!(server.poll_event(), Some(Event::Connected { .. })));
//! let Some(Event::Message(message)) = server.poll_event() else { panic!("a message arrived") };
//! assert_eq!((message.kind, &*message.payload), (300, &b"hello"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connection;
mod effects;
pub mod event;
pub mod handlers;
pub mod host;
pub mod options;
pub mod packet;
mod ping;
pub mod receiver;
pub mod sender;
pub mod stats;

pub use event::{Channel, ConnectionId, EndReason, Event, FailReason, Message};
pub use handlers::{Handler, Handlers};
pub use host::{ConnectError, Host, SendError, Socket};
pub use options::{HostOptions, OptionsError};
pub use stats::{ChannelStats, ConnectionStats, HostStats};
