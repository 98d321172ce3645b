//! A client's connection: messages and packets to the server, and how the connection stands.

use muse_netcode::Update;
use muse_schema::Message;
use muse_transport::{ConnectionId, Endpoint, Event, MessageId, Receipt, SendError, SendOptions};
use muse_wire::Instant;

use super::{Incoming, PACKET_BYTES};
use crate::{Channel, Error, Protocol, Result};

/// An event at a client.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// The connection is made.
    Connected,
    /// A message arrived.
    Received(Incoming<'a>),
    /// A packet of the game's server, for the client's [`handle_packet`](muse_netcode::Client::handle_packet).
    /// [`GameClientSession`](super::GameClientSession) handles these.
    Packet(&'a [u8]),
    /// The client learnt something about an entity of the world; for entities that are not players.
    Updated(Update),
    /// A message sent with [`SendOptions::receipt`] was delivered, lost or dropped.
    Receipt(Receipt),
    /// Nothing has been heard of the server for a while; it may come back.
    Interrupted,
    /// The interrupted connection is back.
    Resumed,
    /// There is no connection (any more), and why.
    Ended(Error),
}

/// One connection of an endpoint, to a server.
#[derive(Clone, Debug)]
pub struct ClientSession {
    protocol: Protocol,
    connection: ConnectionId,
    is_connected: bool,
    /// The message that is being encoded.
    payload: Vec<u8>,
}

impl ClientSession {
    /// For the connection that [`Endpoint::connect`] began.
    pub const fn new(protocol: Protocol, connection: ConnectionId) -> Self {
        Self {
            protocol,
            connection,
            is_connected: false,
            payload: Vec::new(),
        }
    }

    /// Returns the protocol.
    pub const fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// True while the connection stands.
    pub const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Takes an event of the endpoint. Returns what it means to the game; `None` if the game need not know.
    pub fn handle_event<'a>(&mut self, event: Event<'a>) -> Option<ClientEvent<'a>> {
        Some(match event {
            Event::Connected { .. } => {
                self.is_connected = true;
                ClientEvent::Connected
            }
            Event::Message {
                channel, payload, ..
            } if channel == Channel::STATES.0 => ClientEvent::Packet(payload),
            Event::Message {
                channel, payload, ..
            } => ClientEvent::Received(Incoming {
                channel: Channel(channel),
                payload,
            }),
            Event::Receipt { receipt, .. } => ClientEvent::Receipt(receipt),
            Event::Interrupted { .. } => ClientEvent::Interrupted,
            Event::Resumed { .. } => ClientEvent::Resumed,
            Event::Refused { reason, .. } => self.end(Error::Refused(reason)),
            Event::Unanswered { .. } => self.end(Error::Unanswered),
            Event::Closed { reason, .. } => self.end(Error::Closed(reason)),
            _ => return None,
        })
    }

    /// Sends a message to the server, as its type is declared in the protocol.
    pub fn send<M: Message>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        message: &M,
    ) -> Result<MessageId> {
        self.send_with(now, endpoint, message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: Message>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        message: &M,
        options: &SendOptions,
    ) -> Result<MessageId> {
        let channel = self.protocol.channel_of::<M>();
        let channel = channel.ok_or(Error::Undeclared(M::DESCRIPTOR.name()))?;
        super::encode(message, &mut self.payload)?;
        let payload = &self.payload;
        Ok(endpoint.send_with(now, self.connection, channel.0, payload, options)?)
    }

    /// Sends bytes on a channel without types.
    pub fn send_bytes(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        channel: Channel,
        bytes: &[u8],
    ) -> Result<MessageId> {
        Ok(endpoint.send(now, self.connection, channel.0, bytes)?)
    }

    /// Sends the next packet of a simulation, which `poll` writes to the front of its buffer, as
    /// [`poll_packet`](muse_netcode::Client::poll_packet) does. Returns its length; `None` if there is none.
    pub fn send_next_packet(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        poll: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        let mut packet = [0; PACKET_BYTES];
        let len = poll(&mut packet)?;
        // One that does not go is lost, as the network might have lost it.
        let _ = self.send_packet(now, endpoint, &packet[..len]);
        Some(len)
    }

    /// Sends a packet of the game. One that does not go is lost, as the network might have lost it.
    pub fn send_packet(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        packet: &[u8],
    ) -> std::result::Result<(), SendError> {
        endpoint
            .send(now, self.connection, Channel::STATES.0, packet)
            .map(drop)
    }

    /// Returns the connection, for the endpoint.
    pub const fn connection(&self) -> ConnectionId {
        self.connection
    }

    fn end(&mut self, error: Error) -> ClientEvent<'static> {
        self.is_connected = false;
        ClientEvent::Ended(error)
    }
}
