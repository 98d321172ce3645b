//! Biobot on the wire: what both sides agree on, and a player's connection to a match over any link.
//!
//! The server's side is a [`ServerSession`](muse::session::ServerSession) around a [`Stage`](crate::Stage).

use std::sync::Arc;

use muse::session::{ClientEvent, ClientSession};
use muse::wire::{Duration, Instant};
use muse::{Channel, ChannelConfig, Delivery, Endpoint, Protocol};

use crate::{
    CONNECTION_MEMORY, Command, ENDPOINT_MEMORY, Level, MESSAGE_MAX, PROTOCOL, Player, ToPlayer,
};

/// Returns what both sides agree on, and the channel of messages. Nothing heard for 10 s is the end of a connection.
pub fn protocol() -> (Protocol, Channel) {
    let mut protocol = Protocol::with_id("biobot", u64::from(PROTOCOL)).configure(|config| {
        config
            .shared(&crate::description())
            .message_max(MESSAGE_MAX)
            .connection_memory(CONNECTION_MEMORY)
            .endpoint_memory(ENDPOINT_MEMORY)
            .keep_alive(Duration::from_millis(500))
            .silence(Duration::from_secs(2))
            .resume_within(Duration::from_secs(8))
    });
    let messages = protocol.add_channel(ChannelConfig::new(Delivery::ReliableOrdered));
    (protocol, messages)
}

/// An event of a player's connection.
#[derive(Debug)]
pub enum MatchNews {
    /// The connection is made.
    Connected,
    /// The first word of the server; the level is known from now on.
    Welcomed(ToPlayer),
    /// Another word of the server.
    Told(ToPlayer),
    /// Nothing has been heard of the server for a while; it may come back.
    Interrupted,
    /// The interrupted connection is back.
    Resumed,
    /// There is no connection (any more), and why.
    Ended(muse::Error),
}

/// A player's connection to a match, and the player on it.
#[derive(Debug)]
pub struct MatchClient {
    session: ClientSession,
    messages: Channel,
    name: String,
    /// Known since the welcome, or given before.
    level: Option<Arc<Level>>,
    is_welcome: bool,
    /// From the moment that the level is loaded.
    player: Option<Player>,
    /// Messages that came before.
    early: Vec<ToPlayer>,
}

impl MatchClient {
    /// For a connection that an endpoint with [`protocol`] has begun. `level` is another one than the mode's own.
    pub fn new(connection: muse::ConnectionId, name: &str, level: Option<Arc<Level>>) -> Self {
        let (protocol, messages) = protocol();
        Self {
            session: ClientSession::new(protocol, connection),
            messages,
            name: name.to_owned(),
            level,
            is_welcome: false,
            player: None,
            early: Vec::new(),
        }
    }

    /// Takes an event of the endpoint.
    pub fn handle_event(&mut self, now: Instant, event: muse::Event<'_>) -> Option<MatchNews> {
        match self.session.handle_event(event)? {
            ClientEvent::Packet(packet) => {
                if let Some(player) = &mut self.player {
                    // One that came twice or too late is of no use; the player's counters know of it.
                    let _ = player.handle_packet(now, packet);
                }
                None
            }
            ClientEvent::Received(message) => self.handle_message(message.bytes()),
            ClientEvent::Connected => Some(MatchNews::Connected),
            ClientEvent::Interrupted => Some(MatchNews::Interrupted),
            ClientEvent::Resumed => Some(MatchNews::Resumed),
            ClientEvent::Ended(error) => Some(MatchNews::Ended(error)),
            _ => None,
        }
    }

    /// Plays from now on: the level is loaded. Nothing happens before the welcome.
    pub fn load(&mut self, now: Instant) {
        if let (None, true, Some(level)) = (&self.player, self.is_welcome, &self.level) {
            let mut player = Player::new(now, Arc::clone(level), &self.name);
            for message in self.early.drain(..) {
                player.handle_message(&message);
            }
            self.player = Some(player);
        }
    }

    /// Sends what the player has to say.
    pub fn send_messages(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(player) = &mut self.player else {
            return;
        };
        while let Some(message) = player.poll_message() {
            // A queue that is full is that of a server that is gone; the connection says so soon.
            let bytes = message.encode();
            let _ = self
                .session
                .send_bytes(now, endpoint, self.messages, &bytes);
        }
    }

    /// Simulates what is due with this command and sends it. Returns false when nothing more is due.
    pub fn send_packet(&mut self, now: Instant, endpoint: &mut Endpoint, command: Command) -> bool {
        let Some(player) = &mut self.player else {
            return false;
        };
        let poll = |packet: &mut [u8]| player.poll_packet(now, command, packet);
        self.session.send_next_packet(now, endpoint, poll).is_some()
    }

    /// Returns when [`send_packet`](Self::send_packet) has something next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.player.as_ref().and_then(Player::poll_timeout)
    }

    /// Returns the level, once it is known.
    pub const fn level(&self) -> Option<&Arc<Level>> {
        self.level.as_ref()
    }

    /// Returns the player, once the level is loaded.
    pub const fn player(&self) -> Option<&Player> {
        self.player.as_ref()
    }

    /// Returns the player to change it, once the level is loaded.
    pub const fn player_mut(&mut self) -> Option<&mut Player> {
        self.player.as_mut()
    }

    fn handle_message(&mut self, bytes: &[u8]) -> Option<MatchNews> {
        let message = ToPlayer::decode(bytes).ok()?;
        match &mut self.player {
            Some(player) => player.handle_message(&message),
            None if self.early.len() < EARLY_MAX => self.early.push(message.clone()),
            None => {}
        }
        if let ToPlayer::Welcome { mode, .. } = &message
            && !self.is_welcome
        {
            self.is_welcome = true;
            let own = || Arc::new(Level::of(*mode));
            self.level.get_or_insert_with(own);
            return Some(MatchNews::Welcomed(message));
        }
        Some(MatchNews::Told(message))
    }
}

/// Messages that may wait for the level.
const EARLY_MAX: usize = 64;
