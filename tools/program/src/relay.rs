//! Relays on real sockets: [`v2`] is the relay for Muse traffic, `v1` (feature `legacy`) the one for clients of the older protocol; both fill a page of
//! [`metrics`].

pub mod metrics;
#[cfg(feature = "legacy")]
pub mod v1;
pub mod v2;

use std::net::SocketAddr;
use std::time::Duration;

/// A relay on sockets, of either version.
pub trait RelayServer {
    /// The address it listens on.
    fn local_addr(&self) -> anyhow::Result<SocketAddr>;

    /// The address for browsers, if there is one.
    fn web_address(&self) -> Option<SocketAddr> {
        None
    }

    /// The relay's public key, for which hosts need a token; `None` if they need none.
    fn key(&self) -> Option<&str> {
        None
    }

    /// Serves for a moment: until something is due or arrives.
    fn serve(&mut self) -> anyhow::Result<()>;

    /// The page of metrics.
    fn metrics(&self) -> String;

    /// Takes nobody new, gives those who are connected some time, and sends everything that waits.
    fn drain(self: Box<Self>, time: Duration) -> anyhow::Result<()>;
}
