//! A match in a file: to watch it, and to verify that it went as it says.
//!
//! The container is that of `docs/replay.md`. Snapshots of the world (`W`) are for watching: a [`Recording`] shows any instant and any
//! player's view. Everything that went into the stage (`L`: packets, messages, who came and went, and when) is for verifying: [`verify`]
//! runs the match again, with its level and settings (`J`), and compares checksums (`C`); the same on every machine.

mod container;
mod log;
mod snapshot;
mod watch;

use muse::lockstep::Frame;
use muse::lockstep::replay::File;
use thiserror::Error;

use crate::messages::ToPlayer;
use crate::stage::{Stage, StageConfig};
use container::chunks;
use log::{Begin, Log};
use snapshot::Writer;

pub(crate) use log::Operation;
pub(crate) use snapshot::Figures;

pub use watch::{Mark, Recording};

/// The reason for which a file cannot be watched or verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It does not begin as replays do.
    #[error("this is not a Muse replay")]
    NotAReplay,
    /// It is a replay of something else, or of another version of the game.
    #[error("this is not a replay of this version of Biobot")]
    OtherGame,
    /// Something in it makes no sense.
    #[error("the replay is damaged at byte {at}")]
    Damaged {
        /// Offset of the chunk.
        at: usize,
    },
    /// There is nothing in it to watch.
    #[error("there is nothing in the replay")]
    Empty,
    /// Run again, the match went differently.
    #[error("run again, the match differs at tick {tick}")]
    Differs {
        /// The first tick that was checked and differed.
        tick: u32,
    },
}

/// Records a stage; it is a part of the stage, see [`Stage::start_recording`].
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    log: Log,
    snapshots: Writer,
    checks: Vec<u8>,
    messages: Vec<ToPlayer>,
}

impl Recorder {
    pub(crate) fn new(config: &StageConfig, now_micros: u64) -> Self {
        let mut file = container::file(config.slot_count());
        let begin = Begin::of(config, now_micros);
        file.push(b'J', &begin.to_bytes());
        Self {
            file,
            log: Log::new(now_micros),
            snapshots: Writer::default(),
            checks: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, now_micros: Option<u64>, operation: Operation) {
        self.log.note(now_micros, &operation);
    }

    pub(crate) fn note_message(&mut self, message: &ToPlayer) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push(message.clone());
        }
    }

    /// A tick has ended.
    pub(crate) fn handle_tick(&mut self, stage: &Stage, figures: &[Figures]) {
        let tick = stage.tick().0;
        if tick.is_multiple_of(CHECK_TICKS) {
            self.checks.extend(tick.to_le_bytes());
            self.checks.extend(stage.checksum().to_le_bytes());
        }
        if tick.is_multiple_of(crate::SNAPSHOT_TICKS) {
            let messages = std::mem::take(&mut self.messages);
            let bytes = self.snapshots.snapshot(stage, &messages, figures);
            self.file.push_frame(b'W', Frame(tick), &bytes);
        }
        if tick.is_multiple_of(FLUSH_TICKS) {
            self.flush();
        }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.flush();
        self.file.take_bytes()
    }

    pub(crate) fn finish(mut self, tick: u32) -> Vec<u8> {
        self.flush();
        self.file.finish(Frame(tick + 1), &[])
    }

    fn flush(&mut self) {
        let log = self.log.take();
        if !log.is_empty() {
            self.file.push(b'L', &log);
        }
        if !self.checks.is_empty() {
            self.file.push(b'C', &self.checks);
            self.checks.clear();
        }
    }
}

/// Runs a recorded match again. Says how many checksums were compared, and the last of them.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::{Command, Level, Practice, StageConfig};
/// use muse::wire::Instant;
/// let config = StageConfig::new(Arc::new(Level::arena())).cancels(false);
/// let mut practice = Practice::recorded(config, 2, Instant::ZERO);
/// for milli in (0..3_000).step_by(10) {
///     practice.tick(Instant::from_millis(milli), |_, _| Command { forward: 1, ..Command::default() });
/// }
/// let file = practice.stage_mut().finish_recording();
/// let (compared, _) = muse_biobot::replay::verify(&file)?;
/// assert!(compared >= 2);
/// # Ok::<(), muse_biobot::replay::RecordingError>(())
/// ```
pub fn verify(bytes: &[u8]) -> Result<(u32, u64), RecordingError> {
    let mut stage: Option<Stage> = None;
    let mut checks: Vec<(u32, u64)> = Vec::new();
    for chunk in chunks(bytes)? {
        let (_, letter, content) = chunk?;
        if letter == b'C' {
            checks.extend(container::checks(content));
        }
    }
    let mut sums = std::collections::BTreeMap::new();
    for chunk in chunks(bytes)? {
        let (at, letter, content) = chunk?;
        let damaged = RecordingError::Damaged { at };
        match letter {
            b'J' => {
                let begin = Begin::parse(content).ok_or(RecordingError::OtherGame)?;
                stage = Some(begin.stage());
            }
            b'L' => {
                let stage = stage.as_mut().ok_or(damaged.clone())?;
                log::run(content, stage, |stage| {
                    let tick = stage.tick().0;
                    if tick.is_multiple_of(CHECK_TICKS) {
                        sums.insert(tick, stage.checksum());
                    }
                })
                .ok_or(damaged)?;
            }
            _ => {}
        }
    }
    let mut last = 0;
    for (tick, sum) in &checks {
        if sums.get(tick) != Some(sum) {
            return Err(RecordingError::Differs { tick: *tick });
        }
        last = *sum;
    }
    match checks.len() {
        0 => Err(RecordingError::Empty),
        compared => Ok((compared as u32, last)),
    }
}

/// Ticks from one checksum to the next.
const CHECK_TICKS: u32 = 50;
/// Ticks from one piece of the file to the next: what a crash costs.
const FLUSH_TICKS: u32 = 50;
/// Messages between two snapshots.
const MESSAGES_MAX: usize = 64;
