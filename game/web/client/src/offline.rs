//! A match in this program alone: the stage, this player, and bots. Practice works with no server at all.
//!
//! The player's packets pass the sliders of the net graph here too, so that one can feel what each technique does without a server.

use std::sync::Arc;

use muse::netcode::ClientId;
use muse::wire::Instant;
use muse_biobot::bots::{Brain, Skill};
use muse_biobot::{
    Audience, Command, FromPlayer, Level, Mode, Player, Profile, Stage, StageConfig, ToPlayer,
};
use serde::Deserialize;

use crate::conditioned::{Conditioned, Weather};

/// A practice match as the page asks for it.
#[derive(Clone, Debug, Deserialize)]
pub struct Wanted {
    /// The mode.
    pub game: Mode,
    /// The player's name.
    pub name: String,
    /// Players besides this one.
    #[serde(default)]
    pub bots: u8,
    /// 0 easy, 1 normal, 2 hard.
    #[serde(default = "normal")]
    pub difficulty: u8,
    /// Random seed; any if left out.
    #[serde(default)]
    pub seed: Option<u32>,
    /// Progress that was saved with the account.
    #[serde(default)]
    pub progress: Option<Progress>,
}

/// Progress of a player: what is unlocked.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The farthest checkpoint.
    pub checkpoint: u8,
    /// Weapons, a bit for each.
    pub owned: u8,
}

/// The match.
#[derive(Debug)]
pub struct Offline {
    stage: Stage,
    player: Player,
    up: Conditioned,
    down: Conditioned,
    others: Vec<(Player, Brain)>,
    buffer: Vec<u8>,
}

impl Offline {
    /// Begins a match.
    pub fn start(now: Instant, wanted: &Wanted, chance: u64) -> Self {
        let level = Arc::new(Level::of(wanted.game));
        let seed = wanted.seed.map_or(chance, u64::from);
        let players = 1 + wanted.bots.min(level.slots.saturating_sub(1));
        let config = StageConfig::new(Arc::clone(&level))
            .seed(seed)
            .difficulty(wanted.difficulty)
            .slots(players)
            .cancels(false);
        let mut stage = Stage::new(config, now);
        let progress = wanted.progress.unwrap_or_default();
        let mut join = |slot: u8, name: &str| {
            let profile = Profile {
                id: u64::from(slot),
                name: name.to_owned(),
                checkpoint: progress.checkpoint,
                owned: progress.owned,
                ..Profile::default()
            };
            // There are as many slots as players.
            let _ = stage.join(ClientId(u32::from(slot)), profile);
            Player::new(now, Arc::clone(&level), name)
        };
        let player = join(0, &wanted.name);
        let skill = skill(wanted.difficulty);
        let bot = |slot: u8| {
            let name = match wanted.game {
                Mode::Cooperative => "Partner".to_owned(),
                Mode::Versus | Mode::Ball => format!("Bot {slot}"),
            };
            let brain = Brain::new(Arc::clone(&level), seed << 8 | u64::from(slot));
            (join(slot, &name), brain.skill(skill))
        };
        let others = (1..players).map(bot).collect();
        Self {
            player,
            others,
            stage,
            up: Conditioned::new(chance),
            down: Conditioned::new(!chance),
            buffer: vec![0; MEMORY_PACKET_BYTES],
        }
    }

    /// The stage.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// This player's side.
    pub fn player_mut(&mut self) -> &mut Player {
        &mut self.player
    }

    /// Worsens the link between player and stage.
    pub fn set_weather(&mut self, now: Instant, weather: Weather) {
        self.up.set(now, weather);
        self.down.set(now, weather);
    }

    /// Lets time pass.
    pub fn advance(&mut self, now: Instant, command: Command) {
        while let Some(bytes) = self.down.poll(now) {
            // What the stage of this program says is well-formed.
            let _ = self.player.handle_packet(now, &bytes);
        }
        self.send_messages();
        while let Some(len) = self.player.poll_packet(now, command, &mut self.buffer) {
            self.up.offer(now, self.buffer[..len].to_vec());
        }
        while let Some(bytes) = self.up.poll(now) {
            // The stage counts what it does not like.
            let _ = self.stage.handle_packet(now, ClientId(0), &bytes);
        }
        self.move_others(now);
        while self.stage.poll_tick(now).is_some() {
            self.deliver_packets(now);
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            self.deliver(audience, &message);
        }
    }

    /// When to call [`advance`](Self::advance) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [
            Some(self.stage.poll_timeout()),
            self.player.poll_timeout(),
            self.up.poll_timeout(),
            self.down.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn send_messages(&mut self) {
        while let Some(message) = self.player.poll_message() {
            self.stage.handle_message(ClientId(0), &message);
        }
    }

    fn move_others(&mut self, now: Instant) {
        for (index, (other, brain)) in self.others.iter_mut().enumerate() {
            let client = ClientId(index as u32 + 1);
            while let Some(message) = other.poll_message() {
                self.stage.handle_message(client, &message);
            }
            let command = brain.act(now, other);
            while let Some(len) = other.poll_packet(now, command, &mut self.buffer) {
                let _ = self.stage.handle_packet(now, client, &self.buffer[..len]);
            }
        }
    }

    fn deliver_packets(&mut self, now: Instant) {
        while let Some((client, len)) = self.stage.poll_packet(now, &mut self.buffer) {
            let bytes = &self.buffer[..len];
            match client.0.checked_sub(1) {
                None => self.down.offer(now, bytes.to_vec()),
                Some(index) => {
                    if let Some((other, _)) = self.others.get_mut(index as usize) {
                        let _ = other.handle_packet(now, bytes);
                    }
                }
            }
        }
    }

    fn deliver(&mut self, audience: Audience, message: &ToPlayer) {
        let meant = |client: u32| match audience {
            Audience::Everyone => true,
            Audience::One(one) => one.0 == client,
        };
        if meant(0) {
            self.player.handle_message(message);
        }
        for (index, (other, _)) in self.others.iter_mut().enumerate() {
            if meant(index as u32 + 1) {
                other.handle_message(message);
            }
        }
    }

    /// Says something to the stage.
    pub fn send(&mut self, message: FromPlayer) {
        self.player.send(message);
    }
}

/// Opponents and partners that suit a difficulty.
fn skill(difficulty: u8) -> Skill {
    match difficulty {
        0 => Skill::default().reaction_ticks(25).error(0.05),
        1 => Skill::default(),
        _ => Skill::default().reaction_ticks(8).error(0.012),
    }
}

const fn normal() -> u8 {
    1
}

/// Bytes of a packet through memory.
const MEMORY_PACKET_BYTES: usize = 4_096;
