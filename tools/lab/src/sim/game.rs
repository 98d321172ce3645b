//! The games of the simulation: the laboratory's own little one, or Biobot as it ships, with its bots at the keys.

mod biobot;
mod stub;

use std::sync::Arc;

use muse_biobot::{Level, Mode};
use muse_master_client::AccountId;
use muse_netcode::{ClientId, EntityId, Tick};
use muse_wire::Instant;

/// The game that is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Game {
    /// A game of the laboratory's own, six in a match: characters that run about on a plane and see only who is near.
    #[default]
    Stub,
    /// Biobot, two against the machines.
    Cooperative,
    /// Biobot, six against each other.
    Versus,
    /// Biobot, three against three with the ball.
    Ball,
}

/// A match as its server runs it.
pub(super) trait Hosted {
    /// Somebody comes; false if there is no room.
    fn join(&mut self, client: ClientId, account: AccountId) -> bool;
    /// Somebody goes.
    fn leave(&mut self, client: ClientId);
    /// A packet of the netcode came, perhaps a damaged one.
    fn handle_packet(&mut self, now: Instant, client: ClientId, packet: &[u8]);
    /// A message of the game came.
    fn handle_message(&mut self, client: ClientId, message: &[u8]);
    /// When there is something to do.
    fn due(&self) -> Instant;
    /// Does it, and sends what there is to say.
    fn tick(&mut self, now: Instant, send: &mut dyn FnMut(Whom, &[u8]));
    /// True if the game itself says that it has ended.
    fn is_over(&self) -> bool;
    /// True if a player was allowed to see an entity at a tick.
    fn shows(&self, account: AccountId, entity: EntityId, tick: Tick) -> bool;
}

/// To whom something is sent, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// A packet of the netcode.
    Packet(ClientId),
    /// A message of the game, to one or to everybody.
    Message(Option<ClientId>),
}

/// A match as a player's program runs it.
pub(super) trait Played {
    /// A packet of the netcode came.
    fn handle_packet(&mut self, local: Instant, packet: &[u8]);
    /// A message of the game came.
    fn handle_message(&mut self, message: &[u8]);
    /// When there is something to do.
    fn due(&self) -> Option<Instant>;
    /// Does it; `send` takes packets of the netcode.
    fn play(&mut self, local: Instant, send: &mut dyn FnMut(&mut [u8]));
    /// The next message of the game.
    fn poll_message(&mut self) -> Option<Vec<u8>>;
    /// Tells of every entity that it knows, and of which tick.
    fn sees(&self, look: &mut dyn FnMut(EntityId, Tick));
}

/// The common ground of all matches of a simulation.
pub(super) struct Ground {
    level: Option<Arc<Level>>,
}

impl Ground {
    pub(super) fn new(game: Game) -> Self {
        let level = match game {
            Game::Stub => None,
            Game::Cooperative => Some(Level::of(Mode::Cooperative)),
            Game::Versus => Some(Level::of(Mode::Versus)),
            Game::Ball => Some(Level::of(Mode::Ball)),
        };
        Self {
            level: level.map(Arc::new),
        }
    }

    /// Players of a match.
    pub(super) fn players(&self) -> u8 {
        match self.level.as_ref().map(|level| level.mode) {
            Some(Mode::Cooperative) => 2,
            _ => 6,
        }
    }

    pub(super) fn host(&self, now: Instant, seed: u64) -> Box<dyn Hosted> {
        match &self.level {
            None => Box::new(stub::Hosted::new(now, seed)),
            Some(level) => Box::new(biobot::Hosted::new(now, level, self.players(), seed)),
        }
    }

    pub(super) fn play(&self, local: Instant, account: AccountId, seed: u64) -> Box<dyn Played> {
        match &self.level {
            None => Box::new(stub::Played::new(local, account)),
            Some(level) => Box::new(biobot::Played::new(local, level, account, seed)),
        }
    }
}
