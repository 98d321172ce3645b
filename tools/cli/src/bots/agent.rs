//! A player at a master, without a person: signs in as a guest, queues, plays, comes back and queues again.

use anyhow::Context;
use muse_master_client::messages::Seat as Invitation;
use muse_master_client::{PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig, Preferences};
use muse_wire::{Duration, Instant};

use crate::master::link::Link;
use crate::master::socket::Who;

/// The life of one bot with its master.
pub(crate) struct Agent {
    link: Link<PlayerLink>,
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
        let config = PlayerLinkConfig::default().retry(Duration::from_secs(2));
        let life = PlayerLink::new(config, seed);
        Ok(Self {
            link: Link::new(authority, Who::Guest(device_key), life)
                .with_context(|| format!("cannot reach {authority}"))?,
            preferences,
            matches: 0,
        })
    }

    /// Does what is due, and says what the bot is to do.
    pub(crate) fn turn(&mut self, now: Instant) -> Vec<Order> {
        self.link.listen(now);
        while let Some(event) = self.link.poll_event() {
            match event {
                PlayerEvent::Online(_) | PlayerEvent::LeftQueue => self.queue(),
                PlayerEvent::Back(_, outcome) => {
                    tracing::info!(?outcome, "back at the master");
                    self.matches += 1;
                    self.queue();
                }
                _ => {}
            }
        }
        let mut orders = Vec::new();
        while let Some(action) = self.link.act() {
            match action {
                PlayerAction::JoinGame(seat) => orders.push(Order::Join(seat)),
                PlayerAction::LeaveGame => orders.push(Order::Leave),
                other => tracing::warn!(?other, "not known"),
            }
        }
        orders
    }

    /// The game server let the bot in.
    pub(crate) fn handle_connected(&mut self) {
        self.link.handle_game_connected();
    }

    /// The game server is lost, or the match over.
    pub(crate) fn handle_lost(&mut self, now: Instant) {
        self.link.handle_game_lost(now);
    }

    /// Matches that the bot has come back from.
    pub(crate) const fn matches(&self) -> u32 {
        self.matches
    }

    fn queue(&mut self) {
        if self.link.game().is_none() && !self.link.wants_match() {
            self.link.play(self.preferences.clone());
        }
    }
}
