//! A player's seat in a match over UDP, without a person: the connection, and Biobot's whole client on top of it.

use std::sync::Arc;

use muse_biobot::{Command, Level, Player, ToPlayer};
use muse_drivers::Client;
use muse_transport::{Connect, ConnectionStats, Event};
use muse_wire::Instant;

use crate::game;
use crate::game::host::{MESSAGES, PACKET_BYTES, PACKETS};

/// A connection to a game server and the match on it.
pub(crate) struct Seat {
    link: Client,
    name: String,
    /// Another level than the mode's own.
    level: Option<Arc<Level>>,
    /// There from the welcome on.
    player: Option<Player>,
    state: State,
    /// How the match ended.
    result: Option<ToPlayer>,
    buffer: Vec<u8>,
    packet: Vec<u8>,
}

/// How the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Connected,
    /// With the reason.
    Over(String),
}

impl Seat {
    /// Begins to connect.
    pub(crate) fn connect(
        address: &str,
        how: Connect,
        name: &str,
        level: Option<Arc<Level>>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            link: Client::connect(address, game::config(), how)?,
            name: name.to_owned(),
            level,
            player: None,
            state: State::Connecting,
            result: None,
            buffer: Vec::new(),
            packet: vec![0; PACKET_BYTES],
        })
    }

    /// Takes in what has arrived, lets `play` say what the player does, and sends it.
    pub(crate) fn turn(
        &mut self,
        play: impl FnOnce(&mut Player, Instant) -> Command,
    ) -> anyhow::Result<()> {
        self.link.poll()?;
        let now = self.link.now();
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.link.poll_event(&mut buffer) {
            self.handle(now, event);
        }
        self.buffer = buffer;
        if let Some(player) = &mut self.player
            && !matches!(self.state, State::Over(_))
        {
            let due = player.poll_timeout().is_some_and(|due| due <= now);
            while let Some(message) = player.poll_message() {
                // A queue that is full is that of a server that is gone; the connection says so soon.
                let _ = self.link.send(MESSAGES, &message.encode());
            }
            if due {
                let command = play(player, now);
                while let Some(len) = player.poll_packet(now, command, &mut self.packet) {
                    let _ = self.link.send(PACKETS, &self.packet[..len]);
                }
            }
        }
        self.link.flush()?;
        Ok(())
    }

    /// When [`turn`](Self::turn) has something to do even if nothing arrives.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.player.as_ref().and_then(Player::poll_timeout)
    }

    pub(crate) fn now(&self) -> Instant {
        self.link.now()
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) const fn player(&self) -> Option<&Player> {
        self.player.as_ref()
    }

    /// How the match ended; none while it goes on.
    pub(crate) const fn result(&self) -> Option<&ToPlayer> {
        self.result.as_ref()
    }

    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        self.link.stats()
    }

    /// Leaves.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.link.close(0, "leaves");
        self.link.flush()?;
        Ok(())
    }

    fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Connected { .. } => self.state = State::Connected,
            Event::Message {
                channel: PACKETS,
                payload,
                ..
            } => {
                if let Some(player) = &mut self.player {
                    // One that came twice or too late is of no use; the player's counters know of it.
                    let _ = player.handle_packet(now, payload);
                }
            }
            Event::Message { payload, .. } => self.handle_message(now, payload),
            Event::Closed { reason, .. } => self.state = State::Over(format!("{reason:?}")),
            Event::Refused { reason, .. } => self.state = State::Over(reason.to_string()),
            Event::Unanswered { .. } => {
                self.state = State::Over("the server does not answer".to_owned());
            }
            _ => {}
        }
    }

    fn handle_message(&mut self, now: Instant, payload: &[u8]) {
        let Ok(message) = ToPlayer::decode(payload) else {
            return;
        };
        if let ToPlayer::Welcome { mode, .. } = &message
            && self.player.is_none()
        {
            let own = || Arc::new(Level::of(*mode));
            let level = self.level.clone().unwrap_or_else(own);
            self.player = Some(Player::new(now, level, &self.name));
        }
        if let Some(player) = &mut self.player {
            player.handle_message(&message);
        }
        if matches!(message, ToPlayer::Result { .. }) {
            self.result = Some(message);
        }
    }
}
