//! A player at a master, without a person: signs in as a guest, queues, plays, comes back and queues again.

use anyhow::Context;
use muse::master::{Account, Master, MasterEvent, MasterOptions, MatchSeat, QueueStatus};
use muse_master_client::Preferences;
use muse_wire::Duration;

/// The connection of one bot to its master.
pub(crate) struct Agent {
    master: Master,
    preferences: Preferences,
    matches: u32,
}

/// An order for the bot.
#[derive(Debug)]
pub(crate) enum Order {
    /// Go to this game server.
    Join(Box<MatchSeat>),
    /// Leave the game server.
    Leave,
}

impl Agent {
    /// Starts to connect to the master at `url`.
    pub(crate) fn new(
        url: &str,
        device_key: &str,
        seed: u64,
        preferences: Preferences,
    ) -> anyhow::Result<Self> {
        let retry = Duration::from_secs(2);
        let options = MasterOptions::default().retry(retry).seed(seed);
        let master = Master::connect_with(url, Account::guest_key(device_key), options);
        Ok(Self {
            master: master.with_context(|| format!("cannot reach {url}"))?,
            preferences,
            matches: 0,
        })
    }

    /// Does what is due, and says what the bot is to do.
    pub(crate) fn turn(&mut self) -> anyhow::Result<Vec<Order>> {
        let mut orders = Vec::new();
        while let Some(event) = self.master.poll() {
            match event {
                MasterEvent::Connected(_)
                | MasterEvent::LeftQueue
                | MasterEvent::Cancelled { waiting: false, .. } => self.queue()?,
                MasterEvent::MatchOver(_, outcome) => {
                    tracing::info!(?outcome, "back at the master");
                    self.matches += 1;
                    self.queue()?;
                }
                MasterEvent::Seated(seat) => orders.push(Order::Join(Box::new(seat))),
                MasterEvent::Unseated => orders.push(Order::Leave),
                MasterEvent::SeatLost {
                    reason, retry_in, ..
                } => {
                    tracing::info!(?retry_in, "left the game server: {reason}");
                }
                _ => {}
            }
        }
        Ok(orders)
    }

    /// The game server let the bot in.
    pub(crate) fn handle_connected(&mut self) {
        self.master.handle_game_connected();
    }

    /// The game server is lost, or the match over.
    pub(crate) fn handle_lost(&mut self, reason: &str) {
        self.master.handle_game_lost(reason);
    }

    /// Matches that the bot has come back from.
    pub(crate) const fn matches(&self) -> u32 {
        self.matches
    }

    fn queue(&mut self) -> anyhow::Result<()> {
        let is_free = self.master.current_match().is_none();
        if is_free && self.master.queue_status() == QueueStatus::Out {
            self.master.queue(self.preferences.clone())?;
        }
        Ok(())
    }
}
