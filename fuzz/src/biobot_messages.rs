//! Biobot's messages: what decodes encodes alike, and whatever players say in whatever order, a match goes on.

use std::sync::{Arc, OnceLock};

use muse_biobot::messages::{FromPlayer, ToPlayer};
use muse_biobot::{Level, Player, Profile, Stage, StageConfig};
use muse_netcode::ClientId;
use muse_wire::{Duration, Instant};

use crate::{Bound, Target};

/// Messages to and from a match.
pub const TARGET: Target = Target {
    name: "biobot_messages",
    setup: || {
        level();
    },
    body: run,
    memory: Bound {
        base: 1_000_000,
        per_byte: 1_000,
    },
    steps: Bound {
        base: 500_000,
        per_byte: 4_000,
    },
};

/// The bytes are operations on a match: a byte that says which, one for the client, and a message with its length.
fn run(data: &[u8]) {
    if let Ok(message) = FromPlayer::decode(data) {
        assert_eq!(FromPlayer::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = ToPlayer::decode(data) {
        let again = message.encode();
        assert_eq!(ToPlayer::decode(&again).map(|m| m.encode()), Ok(again));
    }
    let mut now = Instant::from_secs(1);
    let config = StageConfig::new(Arc::clone(level()))
        .slots(4)
        .cancels(false);
    let mut stage = Stage::new(config, now);
    let mut player = Player::new(now, Arc::clone(level()), "honest");
    let mut rest = data;
    for _ in 0..OPERATIONS_MAX {
        let [operation, who, len, after @ ..] = rest else {
            break;
        };
        let (bytes, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let client = ClientId(u32::from(who % 8));
        match operation % 6 {
            0 | 1 => stage.handle_message_bytes(client, bytes),
            2 => join(&mut stage, client, bytes),
            3 => stage.leave(client),
            4 => player.handle_message_bytes(bytes),
            _ => {
                now += Duration::from_millis(20);
                stage.poll_tick(now);
            }
        }
        drain(&mut stage, &mut player);
    }
}

/// Anybody asks for a seat, or to watch. It may be refused.
fn join(stage: &mut Stage, client: ClientId, bytes: &[u8]) {
    if bytes.is_empty() {
        let _ = stage.watch(client);
        return;
    }
    let profile = Profile {
        id: u64::from(bytes[0] % 8),
        name: String::from_utf8_lossy(bytes).into_owned(),
        slot: bytes.get(1).copied(),
        checkpoint: bytes.get(2).copied().unwrap_or(0),
        owned: bytes.get(3).copied().unwrap_or(0),
    };
    let _ = stage.join(client, profile);
}

/// Checks that all that the stage says can be sent, and lets the player hear it.
fn drain(stage: &mut Stage, player: &mut Player) {
    while let Some((_, message)) = stage.poll_message() {
        let bytes = message.encode();
        assert!(!bytes.is_empty(), "too long to be sent: {message:?}");
        player.handle_message_bytes(&bytes);
    }
    while player.poll_message().is_some() {}
}

fn level() -> &'static Arc<Level> {
    static LEVEL: OnceLock<Arc<Level>> = OnceLock::new();
    LEVEL.get_or_init(|| Arc::new(Level::arena()))
}

const OPERATIONS_MAX: usize = 256;
