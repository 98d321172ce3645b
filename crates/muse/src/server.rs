//! A server of typed messages for a game loop.

use muse_drivers::EndpointDriver;
use muse_netcode::ClientId;
use muse_schema::Message;
use muse_transport::{Event, MessageId, SendOptions};
use muse_wire::{Duration, Instant};

use crate::place::OpenRoom;
use crate::session::{Applicant, ClientInfo, ServerEvent, ServerSession};
use crate::{Channel, Join, Listen, Protocol, Result, ServerAddress};

/// A server that exchanges messages with its clients. Call [`tick`](Self::tick) in a loop; dropping it tells the clients.
///
/// ```
/// use muse::prelude::*;
///
/// #[derive(Message, Debug)]
/// #[message(id = 1)]
/// struct Say {
///     text: String,
/// }
///
/// fn protocol() -> Protocol {
///     Protocol::new("chat/1").message::<Say>(Delivery::ReliableOrdered)
/// }
///
/// # fn main() -> muse::Result<()> {
/// let mut server = Server::listen(Listen::at("127.0.0.1:0").key(muse::new_key()?), protocol())?;
/// let mut client = Client::connect(&server.address(), protocol())?;
/// client.send_when_connected(&Say { text: "hello".into() })?;
/// let mut heard = None;
/// while heard.is_none() {
///     client.tick(|_, _| Ok(()))?;
///     server.tick(|server, event| {
///         if let ServerEvent::Received(from, message) = event {
///             heard = message.read::<Say>();
///             server.send(from, &Say { text: "welcome".into() })?;
///         }
///         Ok(())
///     })?;
/// }
/// assert_eq!(heard.map(|say| say.text).as_deref(), Some("hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    pub(crate) link: EndpointDriver,
    session: ServerSession,
    address: ServerAddress,
    pub(crate) room: Option<OpenRoom>,
}

impl Server {
    /// Listens for clients of the same protocol.
    pub fn listen(listen: impl Into<Listen>, protocol: Protocol) -> Result<Self> {
        protocol.check()?;
        let open = listen.into().open(protocol.config())?;
        Ok(Self {
            link: open.link,
            session: ServerSession::new(protocol),
            address: open.address,
            room: open.room,
        })
    }

    /// Waits for something to arrive, for a tenth of a second at most, and handles it.
    pub fn tick(
        &mut self,
        handle: impl FnMut(&mut Self, ServerEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        self.tick_within(WAIT_MAX, handle)
    }

    /// As [`tick`](Self::tick), and waits for `wait` at most: for a program that has something else to do.
    pub fn tick_within(
        &mut self,
        wait: Duration,
        mut handle: impl FnMut(&mut Self, ServerEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        self.receive(wait)?;
        let mut buffer = self.link.take_buffer();
        let handled = loop {
            let Some(event) = self.link.poll_event(&mut buffer) else {
                break Ok(());
            };
            if let Some(event) = self.interpret(event)
                && let Err(error) = handle(self, event)
            {
                break Err(error);
            }
        };
        self.link.keep_buffer(buffer);
        #[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
        let handled = handled.and_then(|()| self.handle_room(&mut handle));
        self.link.flush()?;
        handled
    }

    /// Sends a message to a client, as its type is declared in the protocol.
    pub fn send<M: Message>(&mut self, client: ClientId, message: &M) -> Result<MessageId> {
        self.send_with(client, message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: Message>(
        &mut self,
        client: ClientId,
        message: &M,
        options: &SendOptions,
    ) -> Result<MessageId> {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session
            .send_with(now, endpoint, client, message, options)
    }

    /// Sends a message to every client.
    pub fn broadcast<M: Message>(&mut self, message: &M) -> Result<()> {
        let now = self.link.now();
        self.session
            .broadcast(now, self.link.endpoint_mut(), message)
    }

    /// Sends bytes on a channel without types.
    pub fn send_bytes(
        &mut self,
        client: ClientId,
        channel: Channel,
        bytes: &[u8],
    ) -> Result<MessageId> {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session
            .send_bytes(now, endpoint, client, channel, bytes)
    }

    /// Lets a client in that [asks](Listen::ask); [`ServerEvent::Joined`] follows.
    pub fn admit(&mut self, applicant: &Applicant) {
        let now = self.link.now();
        self.session.admit(now, self.link.endpoint_mut(), applicant);
    }

    /// Refuses a client that [asks](Listen::ask); it reads `text` in its error.
    pub fn deny(&mut self, applicant: &Applicant, text: &str) {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session
            .deny(now, endpoint, applicant, CODE_DISCONNECTED, text);
    }

    /// Closes a client's connection and tells it why; [`ServerEvent::Left`] follows.
    pub fn disconnect(&mut self, client: ClientId, text: &str) {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session
            .disconnect(now, endpoint, client, CODE_DISCONNECTED, text);
    }

    /// Closes a client's connection, tells it why, and lets it come back no more as long as this server lives: neither its account, if it
    /// has one, nor anybody from its IP address (IPv6: /64), directly or through the relay of the server's room. Others with that
    /// address lose their connections too, except those on this machine. [`ServerEvent::Left`] follows for each.
    pub fn ban(&mut self, client: ClientId, text: &str) {
        if let Some(connection) = self.session.connection(client) {
            self.session.ban_account(client);
            self.link.ban(connection, CODE_DISCONNECTED, text);
        }
    }

    /// Returns the connected clients, in order of their ids.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.session.clients()
    }

    /// Returns what is known of a client: account, hello, address; also while [`ServerEvent::Left`] is handled. `None` if it is not connected.
    pub fn info(&self, client: ClientId) -> Option<&ClientInfo> {
        self.session.info(client)
    }

    /// Returns the address that a player pastes to connect: `muse://HOST:PORT/KEY`. One that is [offline](Listen::offline) cannot be
    /// reached by it.
    pub fn address(&self) -> ServerAddress {
        self.address.clone()
    }

    /// Returns a way into this server for a client in the same program, without a socket: for the player of a machine that hosts, and for
    /// playing offline. Each way is for one client.
    pub fn join_offline(&mut self) -> Join {
        Join::offline(&mut self.link, self.address.key())
    }

    /// Returns the line that a friend pastes to connect: the invitation to the server's room if it has one, else its address.
    pub fn line(&self) -> String {
        let room = self.room.map(|room| room.line());
        room.unwrap_or_else(|| self.address.to_string())
    }

    /// Returns the protocol.
    pub const fn protocol(&self) -> &Protocol {
        self.session.protocol()
    }

    /// Returns the time of the last tick, which everything in it uses.
    pub fn now(&self) -> Instant {
        self.link.now()
    }

    /// Returns the connections below, for everything that is not here.
    pub fn connections(&mut self) -> (&mut EndpointDriver, &mut ServerSession) {
        (&mut self.link, &mut self.session)
    }

    /// Waits, and takes what has arrived.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<()> {
        self.link.wait(wait)?;
        Ok(self.link.poll()?)
    }

    pub(crate) fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.link.poll_event(buffer)
    }

    pub(crate) fn interpret<'b, E>(&mut self, event: Event<'b>) -> Option<ServerEvent<'b, E>> {
        let now = self.link.now();
        self.session
            .handle_event(now, self.link.endpoint_mut(), event)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.link.flush()?)
    }
}

/// Longest wait of a tick, so that a loop notices what happens elsewhere.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// The code of connections that the game closes.
const CODE_DISCONNECTED: u16 = 1;
