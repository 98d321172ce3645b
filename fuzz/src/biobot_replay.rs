//! Biobot's replays: a file of any bytes, and a real one whose chunks are followed by others of any content, is watched and verified
//! without a panic.

use std::sync::{Arc, OnceLock};

use muse_biobot::replay::{Recording, verify};
use muse_biobot::{Command, Level, Practice, StageConfig};
use muse_lockstep::replay::{Chunks, File, Header};
use muse_wire::Instant;

use crate::{Bound, Target};

/// A file of a match.
pub const TARGET: Target = Target {
    name: "biobot_replay",
    setup: || {
        recorded();
    },
    body: run,
    memory: Bound {
        base: 1_000_000,
        per_byte: 400,
    },
    steps: Bound {
        base: 2_000_000,
        per_byte: 10_000,
    },
};

/// The bytes are a file; and how many chunks of a real one to keep, then chunks: letter, length, content.
fn run(data: &[u8]) {
    read(data.to_vec());
    let Some((&kept, mut rest)) = data.split_first() else {
        return;
    };
    let (header, chunks) = recorded();
    let mut file = File::new(header);
    for (letter, content) in chunks.iter().take(usize::from(kept % 8)) {
        file.push(*letter, content);
    }
    while let [letter, low, high, after @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (content, after) = after.split_at(len.min(after.len()));
        file.push(*letter, content);
        rest = after;
    }
    read(file.take_bytes());
}

fn read(file: Vec<u8>) {
    let _ = verify(&file);
    let Ok(mut recording) = Recording::parse(file) else {
        return;
    };
    let (first, last) = recording.ticks();
    for ticks in [f64::from(first), f64::from(last) - 0.5, f64::NAN, f64::MAX] {
        let shown = recording.frame(ticks, 0).time.ticks();
        assert!((f64::from(first)..=f64::from(last)).contains(&shown) || shown.is_nan());
    }
}

/// The chunks of a file.
type Content = Vec<(u8, Vec<u8>)>;

/// A second of a real match.
fn recorded() -> &'static (Header, Content) {
    static FILE: OnceLock<(Header, Content)> = OnceLock::new();
    FILE.get_or_init(|| {
        let config = StageConfig::new(Arc::new(Level::arena())).cancels(false);
        let mut practice = Practice::recorded(config, 1, Instant::ZERO);
        for milli in (0..1_100).step_by(10) {
            practice.tick(Instant::from_millis(milli), |_, _| Command::default());
        }
        let file = practice.stage_mut().finish_recording();
        let (header, chunks) = Chunks::parse(&file).expect("just written");
        let chunks = chunks.map(|chunk| chunk.expect("just written"));
        let content = chunks.map(|(_, letter, content)| (letter, content.to_vec()));
        (header, content.collect())
    })
}
