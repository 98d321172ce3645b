//! A client of typed messages for a game loop.

use muse_drivers::ClientDriver;
use muse_schema::Message;
use muse_transport::{ConnectionStats, Event, MessageId, SendOptions};
use muse_wire::{Duration, Instant};

use crate::session::{ClientEvent, ClientSession};
use crate::{Channel, Error, Join, Protocol, Result};

/// A connection to a [`Server`](crate::Server). Call [`tick`](Self::tick) once a frame; dropping it tells the server.
#[derive(Debug)]
pub struct Client {
    link: ClientDriver,
    session: ClientSession,
    /// Messages that wait for the connection, encoded.
    waiting: Vec<(Channel, Vec<u8>)>,
}

impl Client {
    /// Begins to connect to a server of the same protocol.
    pub fn connect(join: impl Into<Join>, protocol: Protocol) -> Result<Self> {
        protocol.check()?;
        let link = join.into().open(protocol.config())?;
        let session = ClientSession::new(protocol, link.connection());
        Ok(Self {
            link,
            session,
            waiting: Vec::new(),
        })
    }

    /// Handles what has arrived and sends what is to be sent, without waiting.
    ///
    /// # Errors
    /// The reason, when there is no connection (any more); and what `handle` returns.
    pub fn tick(
        &mut self,
        mut handle: impl FnMut(&mut Self, ClientEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        self.receive()?;
        let mut buffer = self.link.take_buffer();
        let handled = loop {
            let Some(event) = self.link.poll_event(&mut buffer) else {
                break Ok(());
            };
            let handled = match self.interpret(event) {
                None => Ok(()),
                Some(ClientEvent::Ended(error)) => Err(error),
                Some(event) => handle(self, event),
            };
            if handled.is_err() {
                break handled;
            }
        };
        self.link.keep_buffer(buffer);
        self.link.flush()?;
        handled
    }

    /// Sleeps until something arrives or becomes due, for `timeout` at most. Returns true if something arrived.
    pub fn wait(&mut self, timeout: impl Into<Duration>) -> Result<bool> {
        Ok(self.link.wait(timeout)?)
    }

    /// Sends a message to the server, as its type is declared in the protocol. Fails before the connection is made.
    pub fn send<M: Message>(&mut self, message: &M) -> Result<MessageId> {
        self.send_with(message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: Message>(
        &mut self,
        message: &M,
        options: &SendOptions,
    ) -> Result<MessageId> {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session.send_with(now, endpoint, message, options)
    }

    /// Sends a message now, or as soon as the connection is made.
    pub fn send_when_connected<M: Message>(&mut self, message: &M) -> Result<()> {
        if self.session.is_connected() {
            return self.send(message).map(drop);
        }
        let channel = self.session.protocol().channel_of::<M>();
        let channel = channel.ok_or(Error::Undeclared(M::DESCRIPTOR.name()))?;
        let mut payload = Vec::new();
        crate::session::encode(message, &mut payload)?;
        self.waiting.push((channel, payload));
        Ok(())
    }

    /// Sends bytes on a channel without types.
    pub fn send_bytes(&mut self, channel: Channel, bytes: &[u8]) -> Result<MessageId> {
        let now = self.link.now();
        let endpoint = self.link.endpoint_mut();
        self.session.send_bytes(now, endpoint, channel, bytes)
    }

    /// Closes the connection and tells the server why. What is still on its way may be lost.
    pub fn leave(&mut self, text: &str) {
        self.link.close(0, text);
    }

    /// Closes the connection once everything reliable has arrived; [`tick`](Self::tick) then returns [`Error::Closed`].
    pub fn finish(&mut self, text: &str) {
        self.link.finish(0, text);
    }

    /// True while the connection stands.
    pub fn is_connected(&self) -> bool {
        self.session.is_connected()
    }

    /// Returns state and counters of the connection; `None` without one.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.link.stats()
    }

    /// Returns the protocol.
    pub const fn protocol(&self) -> &Protocol {
        self.session.protocol()
    }

    /// Returns the time of the last tick, which everything in it uses.
    pub fn now(&self) -> Instant {
        self.link.now()
    }

    /// Returns the connection below, for everything that is not here.
    pub fn connection(&mut self) -> (&mut ClientDriver, &mut ClientSession) {
        (&mut self.link, &mut self.session)
    }

    /// Takes what has arrived.
    pub(crate) fn receive(&mut self) -> Result<()> {
        Ok(self.link.poll()?)
    }

    pub(crate) fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.link.poll_event(buffer)
    }

    pub(crate) fn interpret<'b>(&mut self, event: Event<'b>) -> Option<ClientEvent<'b>> {
        let event = self.session.handle_event(event);
        if matches!(event, Some(ClientEvent::Connected)) {
            for (channel, payload) in std::mem::take(&mut self.waiting) {
                // Nothing else waits yet, so the queue has room; a connection that is gone says so itself.
                let _ = self.link.send(channel.0, &payload);
            }
        }
        event
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.link.flush()?)
    }
}
