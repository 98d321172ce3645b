//! A server and its clients over real sockets, run until something has happened.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::{Duration, Instant};

use muse_drivers::{ClientDriver, EndpointDriver, new_key};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, ConnectionId, Delivery, Event, Receipt, Refusal,
    ServerOptions, ServerPublicKey,
};

/// Time that a test waits for what must come; nothing depends on it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) server: Option<EndpointDriver>,
    pub(crate) at_server: Log,
    pub(crate) clients: Vec<(ClientDriver, Log)>,
    pub(crate) config: Config,
    pub(crate) key: ServerPublicKey,
}

/// Events that one side has been told.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) connected: Vec<ConnectionId>,
    pub(crate) messages: Vec<(ConnectionId, u8, Vec<u8>)>,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) unanswered: usize,
    pub(crate) interrupted: usize,
    pub(crate) resumed: usize,
    pub(crate) closed: Vec<CloseReason>,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        Self::at("127.0.0.1:0", config).expect("loopback is there")
    }

    pub(crate) fn at(address: &str, config: Config) -> std::io::Result<Self> {
        let key = new_key()?;
        let public = key.public();
        let server = Some(EndpointDriver::bind(
            address,
            config.clone(),
            ServerOptions::new(key),
        )?);
        Ok(Self {
            server,
            at_server: Log::default(),
            clients: Vec::new(),
            config,
            key: public,
        })
    }

    pub(crate) fn server(&mut self) -> &mut EndpointDriver {
        self.server
            .as_mut()
            .expect("the server has not been dropped")
    }

    /// Begins to connect a client.
    pub(crate) fn add(&mut self) -> usize {
        let address = self.server().local_addr().expect("bound");
        let client = ClientDriver::connect(address, self.config.clone(), Connect::pinned(self.key));
        self.clients
            .push((client.expect("a socket"), Log::default()));
        self.clients.len() - 1
    }

    /// Connects a client, and says how the server calls it.
    pub(crate) fn join(&mut self) -> (usize, ConnectionId) {
        let (index, known) = (self.add(), self.at_server.connected.len());
        self.until("client and server to connect", |world| {
            world.at_server.connected.len() > known && !world.clients[index].1.connected.is_empty()
        });
        (index, self.at_server.connected[known])
    }

    /// One tick of everybody.
    pub(crate) fn tick(&mut self) {
        if let Some(server) = &mut self.server {
            server
                .tick(|_, event| self.at_server.take(event))
                .expect("the server's socket works");
        }
        self.tick_clients();
    }

    pub(crate) fn tick_clients(&mut self) {
        for (client, log) in &mut self.clients {
            client
                .tick(|_, event| log.take(event))
                .expect("the client's socket works");
        }
    }

    /// Ticks until `done`.
    pub(crate) fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        self.until_with(what, Self::tick, done);
    }

    /// Ticks the clients alone: the server has stalled.
    pub(crate) fn clients_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        self.until_with(what, Self::tick_clients, done);
    }

    fn until_with(&mut self, what: &str, tick: impl Fn(&mut Self), done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            tick(self);
            if done(self) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            if let Some((client, _)) = self.clients.last_mut() {
                client.wait(Duration::from_millis(1)).expect("waits");
            }
        }
    }
}

impl Log {
    pub(crate) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Connected { connection, .. } => self.connected.push(connection),
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                self.messages.push((connection, channel, payload.to_vec()));
            }
            Event::Receipt { receipt, .. } => self.receipts.push(receipt),
            Event::Refused { reason, .. } => self.refused.push(reason),
            Event::Unanswered { .. } => self.unanswered += 1,
            Event::Interrupted { .. } => self.interrupted += 1,
            Event::Resumed { .. } => self.resumed += 1,
            Event::Closed { reason, .. } => self.closed.push(reason),
            other => unreachable!("nothing here leads to {other:?}"),
        }
    }

    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.messages
            .iter()
            .map(|(_, _, payload)| payload.as_slice())
            .collect()
    }
}

/// A config with one channel of each delivery mode.
pub(crate) fn every_mode() -> Config {
    let partial = Delivery::partially_reliable(10, 80).expect("a sensible promise");
    [
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableSequenced,
        ORDERED,
        partial,
    ]
    .into_iter()
    .fold(Config::new(0x7E57), |config, delivery| {
        config.channel(ChannelConfig::new(delivery))
    })
}

/// A config with one ordered channel that notices silence soon.
pub(crate) fn impatient() -> Config {
    Config::new(0x7E57)
        .channel(ChannelConfig::new(ORDERED))
        .keep_alive(muse_wire::Duration::from_millis(30))
        .silence(muse_wire::Duration::from_millis(150))
}

pub(crate) const ORDERED: Delivery = Delivery::ReliableOrdered;
