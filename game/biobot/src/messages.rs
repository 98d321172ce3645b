//! The messages that travel reliably and in order, beside the netcode's packets.

use muse::schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema};

use crate::{Mode, Movement, Phase};

/// From a player to the stage.
#[derive(Schema, Clone, Debug, PartialEq)]
pub enum FromPlayer {
    /// The first message.
    Hello {
        /// Its name.
        #[field(max = 24)]
        name: String,
        /// [`VERSION`] of the program.
        version: u16,
    },
    /// The level has been loaded.
    Loaded,
    /// A line for everybody.
    Chat {
        /// The text.
        #[field(max = 200)]
        text: String,
    },
    /// A vote about a player who dropped.
    Vote {
        /// To go on without it, or to finish the match.
        go_on: bool,
    },
    /// To see another player's view, for those who only watch or are dead.
    Watch {
        /// The slot.
        #[field(range = 0..=15)]
        slot: u8,
    },
}

/// From the stage to a player.
#[derive(Schema, Clone, Debug, PartialEq)]
pub enum ToPlayer {
    /// The answer to having come.
    Welcome {
        /// The slot of the receiver; `None` for one who only watches.
        slot: Option<u8>,
        /// The level's name.
        #[field(max = 32)]
        level: String,
        /// The mode that is played.
        mode: Mode,
        /// The side that moves the robots.
        movement: Movement,
        /// The random seed.
        #[field(fixed)]
        seed: u64,
    },
    /// The players; whenever they change.
    Names {
        /// Slots with names.
        #[field(max = 16)]
        names: Vec<Name>,
    },
    /// A line of a player, or of the game itself.
    Chat {
        /// The sender's slot.
        from: Option<u8>,
        /// The text.
        #[field(max = 200)]
        text: String,
    },
    /// Somebody died.
    KillFeed {
        /// The killer: a slot, or an enemy or a fall for `None`.
        killer: Option<u8>,
        /// The victim: a slot.
        victim: u8,
        /// With which weapon; 0 for a fall.
        weapon: u8,
    },
    /// One's own shot hit.
    Hit {
        /// The damage done.
        damage: u8,
        /// True if it killed.
        killed: bool,
        /// True if it hit a weak point.
        critical: bool,
    },
    /// One was hurt.
    Hurt {
        /// The damage done.
        damage: u8,
        /// The direction it came from: a yaw in the world.
        #[field(angle = 8)]
        direction: f32,
    },
    /// A checkpoint was reached, or a weapon found: to be saved.
    Progress {
        /// The farthest checkpoint.
        checkpoint: u8,
        /// The weapons that this player has.
        owned: u8,
    },
    /// A player dropped: the others decide. `None` when it is decided or the player is back.
    Vote {
        /// The player who dropped, and the tick until which the seat is kept.
        dropped: Option<(u8, u32)>,
    },
    /// A goal was scored.
    Goal {
        /// The team that it counts for.
        team: u8,
        /// The slot of the robot that touched the ball last; `None` if nobody did.
        scorer: Option<u8>,
        /// The goals of both teams, this one included.
        goals: [u8; 2],
    },
    /// The match is over.
    Result {
        /// The outcome.
        phase: Phase,
        /// Slots in the order of their points.
        #[field(max = 16)]
        table: Vec<Line>,
    },
}

/// A player's name.
#[derive(Schema, Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The slot.
    pub slot: u8,
    /// The name.
    #[field(max = 24)]
    pub name: String,
    /// True if it is connected.
    pub present: bool,
}

/// A player in the table of results.
#[derive(Schema, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The slot.
    pub slot: u8,
    /// Points.
    pub points: i16,
    /// Kills.
    pub kills: u16,
    /// Deaths.
    pub deaths: u16,
}

impl FromPlayer {
    /// The message as it travels.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads exactly these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }
}

impl ToPlayer {
    /// The message as it travels.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads exactly these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }
}

/// Texts that are too long are refused by their declaration, and then nothing is sent; who makes messages cuts them before.
fn encode<T: Schema>(message: &T) -> Vec<u8> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut writer = BitWriter::new(&mut bytes);
    let written: Result<(), EncodeError> = message.write(&Options::NONE, &mut writer);
    let len = written.map_or(0, |()| writer.finish());
    bytes.truncate(len);
    bytes
}

fn decode<T: Schema>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = BitReader::new(bytes);
    let message = T::read(&Options::NONE, &mut reader)?;
    reader.finish().map_err(|_| DecodeError::Trailing)?;
    Ok(message)
}

/// A text of at most so many bytes, cut at a whole character, without control characters.
pub fn clean(text: &str, bytes_max: usize) -> String {
    let mut cleaned = String::with_capacity(text.len().min(bytes_max));
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if cleaned.len() + letter.len_utf8() > bytes_max {
            break;
        }
        cleaned.push(letter);
    }
    cleaned
}

/// Of the messages, states and rules: who has another does not play along.
pub const VERSION: u16 = 4;
/// Longest name in bytes.
pub const NAME_BYTES_MAX: usize = 24;
/// Longest line of chat in bytes.
pub const CHAT_BYTES_MAX: usize = 200;
/// Longest message.
const MESSAGE_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_travel() {
        let names = (0..16)
            .map(|slot| Name {
                slot,
                name: "ÄÖÜ".repeat(4),
                present: slot % 2 == 0,
            })
            .collect();
        for message in [
            ToPlayer::Names { names },
            ToPlayer::Vote {
                dropped: Some((1, 70_000)),
            },
            ToPlayer::Chat {
                from: None,
                text: "x".repeat(CHAT_BYTES_MAX),
            },
        ] {
            let bytes = message.encode();
            assert!(!bytes.is_empty());
            assert_eq!(ToPlayer::decode(&bytes), Ok(message));
        }
        let chat = FromPlayer::Chat {
            text: "to the lift".to_owned(),
        };
        assert_eq!(FromPlayer::decode(&chat.encode()), Ok(chat));
        assert!(FromPlayer::decode(&[]).is_err());
    }

    #[test]
    fn texts_are_cut_at_whole_characters() {
        assert_eq!(clean("a\u{7}bÄ", 3), "ab");
        assert_eq!(clean("abÄ", 4), "abÄ");
    }
}
