//! Options of a [`WebListener`](super::WebListener).

use std::net::SocketAddr;
use std::path::PathBuf;

use super::DATAGRAM_MAX;

/// The address and the terms on which browsers are admitted.
#[derive(Clone, Debug)]
pub struct WebOptions {
    pub(super) address: SocketAddr,
    pub(super) transport_port: u16,
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
    pub(super) origins: Vec<String>,
    pub(super) sessions_max: usize,
    pub(super) sessions_per_address: usize,
    pub(super) sessions_per_prefix: usize,
    /// Longest datagram, either way.
    pub(super) datagram_max: usize,
}

impl WebOptions {
    /// Listens at `address` over TCP for pages that ask where to go, and for WebSockets; and at the same IP address for WebTransport.
    /// Games use the number of their UDP port, so that one address leads everywhere.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            transport_port: 0,
            certificate: None,
            origins: Vec::new(),
            sessions_max: 1_024,
            sessions_per_address: 64,
            sessions_per_prefix: 256,
            datagram_max: DATAGRAM_MAX,
        }
    }

    /// A certificate chain and its private key, as PEM files, for `GET /link` and WebSockets, which are then encrypted (`https:`, `wss:`): a page that
    /// comes over HTTPS needs that. The files are read again when they change, and new connections get what is in them by then. Default: WebSockets
    /// are not encrypted by their link. WebTransport has a certificate of our own making in either case, renewed every week, whose hash `GET /link`
    /// tells; and Muse encrypts inside of both.
    pub fn certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((chain.into(), key.into()));
        self
    }

    /// Lets in pages of this origin (`https://game.example`) and of others named so. Default: of any: it is the connect token that
    /// lets a player in, which no page has without its player.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Lets datagrams be as long as those of a relay are, which has 8 bytes to put in front: 1,208. Default: 1,200, what the transport
    /// needs.
    #[cfg(feature = "relay")]
    pub fn for_relay(mut self) -> Self {
        self.datagram_max = DATAGRAM_MAX + muse_relay::packet::DATA_HEADER_LEN;
        self
    }

    /// True if a page of this origin may connect; programs that are no browsers name none.
    pub(super) fn allows(&self, origin: Option<&str>) -> bool {
        self.origins.is_empty() || origin.is_some_and(|it| self.origins.iter().any(|o| o == it))
    }
}

muse_wire::setters! { WebOptions:
    /// Listens there instead.
    address: SocketAddr,

    /// UDP port of WebTransport. Default: any that is free; name one if a firewall has to let it through.
    transport_port: u16,

    /// Sessions at once, those that are being made included. Default: 1,024. Each may hold some 300 kB in queues, and a few kB when
    /// quiet.
    sessions_max: usize,

    /// Sessions at once from one IPv4 address or IPv6 /64. Default: 64; players behind one router share it.
    sessions_per_address: usize,

    /// Sessions at once from one IPv4 /24 or IPv6 /48, which one customer may have all of. Default: 256, and never less than those of one address.
    sessions_per_prefix: usize,
}
