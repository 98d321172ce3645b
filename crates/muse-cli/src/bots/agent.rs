//! A player at a master, without a person: signs in as a guest, queues, plays, comes back and queues again (OA-11).

use anyhow::Context;
use muse_master_client::messages::{Seat as Invitation, decode, encode};
use muse_master_client::{Action, Event, Life, LifeConfig, Preferences};
use muse_wire::{Duration, Instant};

use crate::master::socket::{Arrival, Socket, Who};

/// The life of one bot with its master.
pub(crate) struct Agent {
    socket: Socket,
    life: Life,
    preferences: Preferences,
    matches: u32,
}

/// What the bot is to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Go to this game server.
    Join(Invitation),
    /// Leave the game server.
    Leave,
}

impl Agent {
    /// Begins to connect to `authority`, host and port.
    pub(crate) fn new(
        authority: &str,
        device_key: String,
        seed: u64,
        preferences: Preferences,
    ) -> anyhow::Result<Self> {
        let config = LifeConfig::default().retry(Duration::from_secs(2));
        let mut life = Life::new(config, seed);
        life.start(Instant::ZERO);
        Ok(Self {
            socket: Socket::new(authority, Who::Guest(device_key))
                .with_context(|| format!("cannot reach {authority}"))?,
            life,
            preferences,
            matches: 0,
        })
    }

    /// Does what is due, and says what the bot is to do.
    pub(crate) fn turn(&mut self, now: Instant) -> Vec<Order> {
        while let Some(arrival) = self.socket.poll() {
            match arrival {
                Arrival::Connected => self.life.handle_connected(now),
                Arrival::Lost(why) => {
                    tracing::info!("the master is lost: {why}");
                    self.life.handle_lost(now);
                }
                Arrival::Text(text) => match decode(&text) {
                    Ok(message) => self.life.handle_message(now, message),
                    Err(error) => tracing::warn!("{error}"),
                },
            }
        }
        if self.life.poll_timeout().is_some_and(|at| at <= now) {
            self.life.handle_timeout(now);
        }
        while let Some(event) = self.life.poll_event() {
            match event {
                Event::Online(_) | Event::LeftQueue => self.queue(),
                Event::Back(_, outcome) => {
                    tracing::info!(?outcome, "back at the master");
                    self.matches += 1;
                    self.queue();
                }
                _ => {}
            }
        }
        let mut orders = Vec::new();
        while let Some(action) = self.life.poll_action() {
            match action {
                Action::Connect => self.socket.connect(),
                Action::Disconnect => self.socket.disconnect(),
                Action::Send(message) => self.socket.send(encode(&message)),
                Action::JoinGame(seat) => orders.push(Order::Join(seat)),
                Action::LeaveGame => orders.push(Order::Leave),
                other => tracing::warn!(?other, "not known"),
            }
        }
        orders
    }

    /// The game server let the bot in.
    pub(crate) fn handle_connected(&mut self) {
        self.life.handle_game_connected();
    }

    /// The game server is lost, or the match over.
    pub(crate) fn handle_lost(&mut self, now: Instant) {
        self.life.handle_game_lost(now);
    }

    /// Matches that the bot has come back from.
    pub(crate) const fn matches(&self) -> u32 {
        self.matches
    }

    fn queue(&mut self) {
        if self.life.game().is_none() && !self.life.wants_match() {
            self.life.play(self.preferences.clone());
        }
    }
}
