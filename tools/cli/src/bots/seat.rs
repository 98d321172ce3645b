//! A player's seat in a match over UDP, without a person: the connection, and Biobot's whole client on top of it.

use std::sync::Arc;

use muse_biobot::net::{MatchClient, MatchNews};
use muse_biobot::{Command, Level, Player, ToPlayer};
use muse_drivers::ClientDriver;
use muse_transport::{ConnectionStats, Event};
use muse_wire::Instant;

/// A connection to a game server and the match on it.
pub(crate) struct Seat {
    link: ClientDriver,
    client: MatchClient,
    state: State,
    /// The result of the match.
    result: Option<ToPlayer>,
    buffer: Vec<u8>,
}

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Connected,
    /// With the reason.
    Over(String),
}

impl Seat {
    /// Takes the seat to which a connection has begun.
    pub(crate) fn new(link: ClientDriver, name: &str, level: Option<Arc<Level>>) -> Self {
        Self {
            client: MatchClient::new(link.connection(), name, level),
            link,
            state: State::Connecting,
            result: None,
            buffer: Vec::new(),
        }
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
        if let Some(player) = self.client.player_mut() {
            player.handle_cost(now, self.link.now().saturating_since(now));
        }
        if !matches!(self.state, State::Over(_)) {
            let due = self.client.poll_timeout().is_some_and(|due| due <= now);
            let endpoint = self.link.endpoint_mut();
            self.client.send_messages(now, endpoint);
            if due && let Some(player) = self.client.player_mut() {
                let command = play(player, now);
                while self.client.send_packet(now, endpoint, command) {}
            }
        }
        self.link.flush()?;
        Ok(())
    }

    /// When [`turn`](Self::turn) has something to do even if nothing arrives.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    pub(crate) fn now(&self) -> Instant {
        self.link.now()
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) const fn player(&self) -> Option<&Player> {
        self.client.player()
    }

    /// Returns the result of the match; none while it goes on.
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
        match self.client.handle_event(now, event) {
            Some(MatchNews::Connected) => self.state = State::Connected,
            Some(MatchNews::Welcomed(_)) => self.client.load(now),
            Some(MatchNews::Told(message @ ToPlayer::Result { .. })) => self.result = Some(message),
            Some(MatchNews::Ended(error)) => self.state = State::Over(error.to_string()),
            _ => {}
        }
    }
}
