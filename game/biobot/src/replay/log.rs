//! Everything that goes into a stage, to run it again.

use std::sync::Arc;

use muse::netcode::ClientId;
use muse::schema::{BitReader, BitWriter, Options, Schema};
use muse::wire::Instant;
use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::messages::VERSION;
use crate::movement::Movement;
use crate::stage::{Profile, Stage, StageConfig};

/// Level and settings, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    version: u16,
    pub level: Level,
    pub seed: u64,
    difficulty: u8,
    slots: u8,
    cancels: bool,
    kills_to_win: u16,
    goals_to_win: u8,
    play_ticks: u32,
    #[serde(default)]
    movement: Movement,
    now_micros: u64,
}

impl Begin {
    pub(super) fn of(config: &StageConfig, now_micros: u64) -> Self {
        let (seed, difficulty, slots, cancels, wins, play_ticks) = config.parts();
        let (kills_to_win, goals_to_win) = wins;
        Self {
            version: VERSION,
            level: Level::clone(config.level()),
            seed,
            difficulty,
            slots,
            cancels,
            kills_to_win,
            goals_to_win,
            play_ticks,
            movement: config.moved_by(),
            now_micros,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a level that was read can be written")
    }

    /// With the level checked as if it were read from its own file.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let mut begin: Self = serde_json::from_slice(content).ok()?;
        let text = serde_json::to_string(&begin.level).ok()?;
        begin.level = Level::parse(&text).ok()?;
        (begin.version == VERSION).then_some(begin)
    }

    pub(super) fn stage(self) -> Stage {
        let config = StageConfig::new(Arc::new(self.level))
            .seed(self.seed)
            .difficulty(self.difficulty)
            .slots(self.slots)
            .cancels(self.cancels)
            .kills_to_win(self.kills_to_win)
            .goals_to_win(self.goals_to_win)
            .play_ticks(self.play_ticks)
            .movement(self.movement);
        Stage::new(config, Instant::from_micros(self.now_micros))
    }
}

/// Something that went into a stage.
#[derive(Schema, Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Join {
        client: u32,
        #[field(fixed)]
        id: u64,
        #[field(max = 64)]
        name: String,
        slot: Option<u8>,
        checkpoint: u8,
        owned: u8,
    },
    Watch {
        client: u32,
    },
    Leave {
        client: u32,
    },
    Packet {
        client: u32,
        #[field(max = 2048)]
        bytes: Vec<u8>,
    },
    Message {
        client: u32,
        #[field(max = 2048)]
        bytes: Vec<u8>,
    },
    Tick,
    Drain {
        room: u32,
    },
    GiveUp {
        #[field(fixed)]
        id: u64,
    },
}

/// Operations on their way into the file: how much later, how long, what.
#[derive(Debug)]
pub(super) struct Log {
    bytes: Vec<u8>,
    now_micros: u64,
    scratch: Vec<u8>,
    last: Option<(u64, Operation)>,
}

impl Log {
    pub(super) fn new(now_micros: u64) -> Self {
        Self {
            bytes: Vec::new(),
            now_micros,
            scratch: vec![0; OPERATION_BYTES_MAX],
            last: None,
        }
    }

    pub(super) fn note(&mut self, now_micros: Option<u64>, operation: &Operation) {
        let now = now_micros.unwrap_or(self.now_micros);
        // Packets are polled one by one; that they were is enough.
        let drain = matches!(operation, Operation::Drain { .. });
        if drain
            && self
                .last
                .as_ref()
                .is_some_and(|(at, last)| *at == now && last == operation)
        {
            return;
        }
        let mut writer = BitWriter::new(&mut self.scratch);
        if operation.write(&Options::NONE, &mut writer).is_err() {
            return;
        }
        let len = writer.finish();
        // Time may be given that is before what was given last; then it stays, as it did for the stage.
        let later = (now as i64).wrapping_sub(self.now_micros as i64) as i32;
        self.bytes.extend(later.to_le_bytes());
        self.bytes.extend((len as u16).to_le_bytes());
        self.bytes.extend(&self.scratch[..len]);
        self.now_micros = self.now_micros.wrapping_add_signed(i64::from(later));
        self.last = Some((now, operation.clone()));
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        if self.bytes.is_empty() {
            return Vec::new();
        }
        let mut content = Vec::with_capacity(self.bytes.len());
        content.append(&mut self.bytes);
        content
    }
}

/// Runs the operations of a chunk; `ticked` after every tick. `None` when they make no sense.
pub(super) fn run(content: &[u8], stage: &mut Stage, mut ticked: impl FnMut(&Stage)) -> Option<()> {
    let mut rest = content;
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    while !rest.is_empty() {
        let (later, after) = rest.split_first_chunk::<4>()?;
        let (len, after) = after.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len));
        let (bytes, after) = after.split_at_checked(len)?;
        rest = after;
        let later = i32::from_le_bytes(*later);
        let operation = Operation::read(&Options::NONE, &mut BitReader::new(bytes)).ok()?;
        stage.replay_micros = stage.replay_micros.wrapping_add_signed(i64::from(later));
        let now = Instant::from_micros(stage.replay_micros);
        apply(operation, now, stage, &mut buffer, &mut ticked);
        while stage.poll_message().is_some() {}
    }
    Some(())
}

fn apply(
    operation: Operation,
    now: Instant,
    stage: &mut Stage,
    buffer: &mut [u8],
    ticked: &mut impl FnMut(&Stage),
) {
    match operation {
        Operation::Join {
            client,
            id,
            name,
            slot,
            checkpoint,
            owned,
        } => {
            let profile = Profile {
                id,
                name,
                slot,
                checkpoint,
                owned,
            };
            // It was refused then, too.
            let _ = stage.join(ClientId(client), profile);
        }
        Operation::Watch { client } => {
            let _ = stage.watch(ClientId(client));
        }
        Operation::Leave { client } => stage.leave(ClientId(client)),
        Operation::Packet { client, bytes } => {
            let _ = stage.handle_packet(now, ClientId(client), &bytes);
        }
        Operation::Message { client, bytes } => {
            stage.handle_message_bytes(ClientId(client), &bytes);
        }
        Operation::Tick => {
            if stage.poll_tick(now).is_some() {
                ticked(stage);
            }
        }
        Operation::Drain { room } => {
            let room = (room as usize).min(buffer.len());
            while stage.poll_packet(now, &mut buffer[..room]).is_some() {}
        }
        Operation::GiveUp { id } => stage.give_up(id),
    }
}

/// Longest operation.
const OPERATION_BYTES_MAX: usize = 4_096;
/// Longest packet.
const PACKET_BYTES_MAX: usize = 65_536;
