//! The sample game as it ships: its stage on the server, its client at the player's, its bots at the keys.

use std::sync::Arc;

use muse::session::PACKET_BYTES;
use muse_biobot::bots::Brain;
use muse_biobot::{Audience, Level, Player, Profile, Stage, StageConfig};
use muse_master_client::AccountId;
use muse_netcode::{ClientId, EntityId, Tick};
use muse_wire::Instant;

use super::Whom;

/// The server's side.
pub(super) struct Hosted {
    stage: Stage,
}

impl Hosted {
    pub(super) fn new(now: Instant, level: &Arc<Level>, players: u8, seed: u64) -> Self {
        let config = StageConfig::new(Arc::clone(level))
            .seed(seed)
            .slots(players)
            .cancels(false);
        Self {
            stage: Stage::new(config, now),
        }
    }
}

impl super::Hosted for Hosted {
    fn join(&mut self, client: ClientId, account: AccountId) -> bool {
        let profile = Profile {
            id: account.0,
            name: account.to_string(),
            ..Profile::default()
        };
        self.stage.join(client, profile).is_ok()
    }

    fn leave(&mut self, client: ClientId) {
        self.stage.leave(client);
    }

    fn handle_packet(&mut self, now: Instant, client: ClientId, packet: &[u8]) {
        // The stage counts what is damaged.
        let _ = self.stage.handle_packet(now, client, packet);
    }

    fn handle_message(&mut self, client: ClientId, message: &[u8]) {
        self.stage.handle_message_bytes(client, message);
    }

    fn due(&self) -> Instant {
        self.stage.poll_timeout()
    }

    fn tick(&mut self, now: Instant, send: &mut dyn FnMut(Whom, &[u8])) {
        while self.stage.poll_tick(now).is_some() {}
        let mut buffer = [0; PACKET_BYTES];
        while let Some((client, len)) = self.stage.poll_packet(now, &mut buffer) {
            send(Whom::Packet(client), &buffer[..len]);
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            let whom = match audience {
                Audience::Everyone => None,
                Audience::One(client) => Some(client),
            };
            send(Whom::Message(whom), &message.encode());
        }
    }

    fn is_over(&self) -> bool {
        self.stage.outcome().is_some()
    }

    fn shows(&self, _: AccountId, _: EntityId, _: Tick) -> bool {
        // Everybody on a stage may know of everything on it.
        true
    }
}

/// A player's side.
pub(super) struct Played {
    player: Player,
    brain: Brain,
}

impl Played {
    pub(super) fn new(local: Instant, level: &Arc<Level>, account: AccountId, seed: u64) -> Self {
        Self {
            player: Player::new(local, Arc::clone(level), &account.to_string()),
            brain: Brain::new(Arc::clone(level), seed),
        }
    }
}

impl super::Played for Played {
    fn handle_packet(&mut self, local: Instant, packet: &[u8]) {
        // One that came twice or too late is of no use; the player's counters know of it.
        let _ = self.player.handle_packet(local, packet);
    }

    fn handle_message(&mut self, message: &[u8]) {
        self.player.handle_message_bytes(message);
    }

    fn due(&self) -> Option<Instant> {
        self.player.poll_timeout()
    }

    fn play(&mut self, local: Instant, send: &mut dyn FnMut(&mut [u8])) {
        let command = self.brain.act(local, &mut self.player);
        let mut buffer = [0; PACKET_BYTES];
        while let Some(len) = self.player.poll_packet(local, command, &mut buffer) {
            send(&mut buffer[..len]);
        }
    }

    fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.player.poll_message().map(|message| message.encode())
    }

    fn sees(&self, _: &mut dyn FnMut(EntityId, Tick)) {}
}
