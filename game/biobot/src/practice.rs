//! Stage and players in one program, over memory: no server at all.

use std::sync::Arc;

use muse::netcode::ClientId;
use muse::wire::Instant;

use crate::level::Level;
use crate::player::Player;
use crate::stage::{Audience, Profile, Stage, StageConfig};
use crate::{Command, Mode, ToPlayer};

/// A match in one program: the first player sits here, the others are steered by the caller.
///
/// ```
/// use muse_biobot::{Command, Level, Phase, Practice};
/// use muse::wire::Instant;
/// let mut practice = Practice::new(Level::escape(), 2, 7, Instant::ZERO);
/// for milli in (0..2_000).step_by(10) {
///     practice.tick(Instant::from_millis(milli), |_slot, _player| Command::default());
/// }
/// assert_eq!(practice.stage().round().phase, Phase::Playing);
/// assert!(practice.player_mut(0).expect("it plays").frame(Instant::from_secs(2)).own.is_some());
/// ```
#[derive(Debug)]
pub struct Practice {
    stage: Stage,
    players: Vec<Player>,
    buffer: Vec<u8>,
}

impl Practice {
    /// A match of so many players.
    pub fn new(level: Level, players: u8, seed: u64, now: Instant) -> Self {
        let level = Arc::new(level);
        let config = StageConfig::new(Arc::clone(&level))
            .seed(seed)
            .slots(players)
            .cancels(false);
        Self::with(config, players, now)
    }

    /// With settings of one's own.
    pub fn with(config: StageConfig, players: u8, now: Instant) -> Self {
        Self::seated(Stage::new(config, now), players, now)
    }

    /// The same, recorded: see [`replay`](crate::replay).
    pub fn recorded(config: StageConfig, players: u8, now: Instant) -> Self {
        let mut stage = Stage::new(config, now);
        stage.start_recording(now);
        Self::seated(stage, players, now)
    }

    fn seated(mut stage: Stage, players: u8, now: Instant) -> Self {
        let level = Arc::clone(stage.level());
        let mut all = Vec::new();
        for slot in 0..players {
            let name = match (slot, level.mode) {
                (0, _) => "You".to_owned(),
                (_, Mode::Cooperative) => "Partner".to_owned(),
                (slot, Mode::Versus | Mode::Ball) => format!("Bot {slot}"),
            };
            let profile = Profile {
                id: u64::from(slot),
                name: name.clone(),
                ..Profile::default()
            };
            if stage.join(ClientId(u32::from(slot)), profile).is_ok() {
                all.push(Player::new(now, Arc::clone(&level), &name));
            }
        }
        Self {
            stage,
            players: all,
            buffer: vec![0; MEMORY_PACKET_BYTES],
        }
    }

    /// The server's side.
    pub const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The server's side, to change it.
    pub const fn stage_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }

    /// A player's side.
    pub fn player(&self, slot: usize) -> Option<&Player> {
        self.players.get(slot)
    }

    /// A player's side.
    pub fn player_mut(&mut self, slot: usize) -> Option<&mut Player> {
        self.players.get_mut(slot)
    }

    /// Lets time pass: `command` says what the player of each slot does now.
    pub fn tick(&mut self, now: Instant, mut command: impl FnMut(usize, &mut Player) -> Command) {
        for (slot, player) in self.players.iter_mut().enumerate() {
            let client = ClientId(slot as u32);
            while let Some(message) = player.poll_message() {
                self.stage.handle_message(client, &message);
            }
            let pressed = command(slot, player);
            while let Some(len) = player.poll_packet(now, pressed, &mut self.buffer) {
                // What a player of this program says is well-formed; the stage counts what is not.
                let _ = self.stage.handle_packet(now, client, &self.buffer[..len]);
            }
        }
        while self.stage.poll_tick(now).is_some() {
            self.deliver_packets(now);
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            self.deliver_message(audience, &message);
        }
    }

    fn deliver_packets(&mut self, now: Instant) {
        while let Some((client, len)) = self.stage.poll_packet(now, &mut self.buffer) {
            if let Some(player) = self.players.get_mut(client.0 as usize) {
                // As above.
                let _ = player.handle_packet(now, &self.buffer[..len]);
            }
        }
    }

    fn deliver_message(&mut self, audience: Audience, message: &ToPlayer) {
        for (slot, player) in self.players.iter_mut().enumerate() {
            let meant = match audience {
                Audience::Everyone => true,
                Audience::One(client) => client.0 as usize == slot,
            };
            if meant {
                player.handle_message(message);
            }
        }
    }
}

/// Bytes of a packet through memory.
const MEMORY_PACKET_BYTES: usize = 4_096;
