//! The connection to a game server, over any pipe that carries datagrams: the transport's client without a socket.
//!
//! The Worker gives what its session received to [`Wire::handle_datagram`] and sends what [`Wire::poll_transmit`] returns. When its session
//! breaks it opens another and goes on with the same wire: the transport moves the connection there, and nothing reliable is lost.

use muse::drivers::carried::{Carried, LINK, REMOTE};
use muse::transport::{
    Config, Connect, ConnectError, ConnectionId, ConnectionStats, Endpoint, Entropy, Event,
};
use muse::wire::{Instant, Machine};

use crate::conditioned::{Conditioned, Weather};

/// One connection to one server.
pub struct Wire {
    endpoint: Carried<Endpoint>,
    connection: ConnectionId,
    outgoing: Conditioned,
    incoming: Conditioned,
    /// Bytes through the session, both ways, whatever the weather does to them afterwards.
    bytes_sent: u64,
    bytes_received: u64,
}

impl Wire {
    /// Begins to connect. `config` says channels and protocol; its link is set here.
    pub fn connect(
        now: Instant,
        config: Config,
        how: Connect,
        mut entropy: impl Entropy + 'static,
        unix_s: u64,
    ) -> Result<Self, ConnectError> {
        let mut seed = [0; 8];
        entropy.fill(&mut seed);
        let seed = u64::from_le_bytes(seed);
        let mut endpoint = Endpoint::new(config.link(LINK), entropy);
        endpoint.set_unix_time(now, unix_s);
        let connection = endpoint.connect(now, REMOTE, how)?;
        Ok(Self {
            endpoint: Carried::new(endpoint),
            connection,
            outgoing: Conditioned::new(seed),
            incoming: Conditioned::new(!seed),
            bytes_sent: 0,
            bytes_received: 0,
        })
    }

    /// Worsens the link from now on.
    pub fn set_weather(&mut self, now: Instant, weather: Weather) {
        self.outgoing.set(now, weather);
        self.incoming.set(now, weather);
    }

    /// The session received this.
    pub fn handle_datagram(&mut self, now: Instant, bytes: Vec<u8>) {
        self.bytes_received += bytes.len() as u64;
        self.incoming.offer(now, bytes);
        self.advance(now);
    }

    /// Takes in what has become due.
    pub fn advance(&mut self, now: Instant) {
        while let Some(bytes) = self.incoming.poll(now) {
            self.endpoint.receive(now, bytes);
        }
        self.endpoint.advance(now);
    }

    /// Returns the next datagram that the session is to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        while let Some(datagram) = self.endpoint.next_datagram(now) {
            self.outgoing.offer(now, datagram);
        }
        let bytes = self.outgoing.poll(now)?;
        self.bytes_sent += bytes.len() as u64;
        Some(bytes)
    }

    /// When to call [`advance`](Self::advance) and [`poll_transmit`](Self::poll_transmit) next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        [
            self.endpoint.poll_timeout(),
            self.incoming.poll_timeout(),
            self.outgoing.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the next event; a payload that comes with it is put into `buffer`.
    pub fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.endpoint.poll_event(buffer)
    }

    /// Returns the endpoint, to send.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Returns the connection to the server.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Tells the server that we go.
    pub fn close(&mut self, now: Instant) {
        self.endpoint
            .close(now, self.connection, 0, "the player left");
    }

    /// State and counters; none before and after the connection.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.endpoint.stats(self.connection)
    }

    /// Bytes sent and received so far.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_sent, self.bytes_received)
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
