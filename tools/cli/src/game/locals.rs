//! Bots in the server's own process that fill a match up: complete clients, connected through memory.

use std::sync::Arc;

use muse_biobot::bots::Brain;
use muse_biobot::{Audience, Player, Profile, Stage, ToPlayer};
use muse_netcode::ClientId;
use muse_wire::Instant;

use muse::session::PACKET_BYTES;

/// All local bots.
#[derive(Default)]
pub(crate) struct Locals {
    all: Vec<Local>,
    packet: Vec<u8>,
}

struct Local {
    client: ClientId,
    player: Player,
    brain: Brain,
}

impl Locals {
    /// Seats `count` bots, numbered from `first` on.
    pub(crate) fn seat(
        stage: &mut Stage,
        count: u8,
        first: ClientId,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut all = Vec::new();
        for number in 0..count {
            let client = ClientId(first.0 + u32::from(number));
            let name = format!("Bot {}", number + 1);
            let profile = Profile {
                // No account has such a number.
                id: u64::MAX - u64::from(number),
                name: name.clone(),
                ..Profile::default()
            };
            if stage.join(client, profile).is_ok() {
                let level = Arc::clone(stage.level());
                all.push(Local {
                    client,
                    player: Player::new(now, Arc::clone(&level), &name),
                    brain: Brain::new(level, seed.wrapping_add(u64::from(number))),
                });
            }
        }
        Self {
            all,
            packet: vec![0; PACKET_BYTES],
        }
    }

    /// Runs every bot whose tick is due.
    pub(crate) fn play(&mut self, stage: &mut Stage, now: Instant) {
        for local in &mut self.all {
            while let Some(message) = local.player.poll_message() {
                stage.handle_message(local.client, &message);
            }
            if local.player.poll_timeout().is_none_or(|due| due > now) {
                continue;
            }
            let command = local.brain.act(now, &mut local.player);
            while let Some(len) = local.player.poll_packet(now, command, &mut self.packet) {
                // A bot's packets are whole.
                let _ = stage.handle_packet(now, local.client, &self.packet[..len]);
            }
        }
    }

    /// Gives a packet of the stage to the bot it is for, if it is for one.
    pub(crate) fn handle_packet(&mut self, now: Instant, client: ClientId, bytes: &[u8]) {
        let mut all = self.all.iter_mut();
        if let Some(local) = all.find(|local| local.client == client) {
            let _ = local.player.handle_packet(now, bytes);
        }
    }

    /// Gives a message of the stage to the bots it is for.
    pub(crate) fn handle_message(&mut self, audience: Audience, message: &ToPlayer) {
        for local in &mut self.all {
            match audience {
                Audience::One(one) if one != local.client => {}
                _ => local.player.handle_message(message),
            }
        }
    }
}
