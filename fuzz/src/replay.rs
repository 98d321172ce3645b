//! Replay files of deterministic sessions: any bytes, and chunks of any content with the right checksums, are read and run again
//! without a panic, and running them again ends in the same state.

use muse_lockstep::replay::{File, Header, Replay, play, verify};
use muse_lockstep::{DeterministicGame, Frame, Mode, Step};
use muse_schema::Schema;

use crate::{Bound, Target, no_setup};

/// A file of a deterministic session.
pub const TARGET: Target = Target {
    name: "replay",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 64,
    },
    // A frame may be a single byte, and 255 steps of the game.
    steps: Bound {
        base: 100_000,
        per_byte: 8_000,
    },
};

/// A game whose steps cost next to nothing, so that what costs is the file.
#[derive(Schema, Clone, Debug, PartialEq)]
struct Counter {
    #[field(fixed)]
    steps: u64,
    #[field(fixed)]
    sum: u64,
}

impl DeterministicGame for Counter {
    type Input = u8;
    type Event = ();

    fn step(&mut self, step: &mut Step<'_, Self>) {
        self.steps = self.steps.wrapping_add(1);
        let input = step.input(0).copied().unwrap_or_default();
        self.sum = self.sum.rotate_left(5) ^ u64::from(input);
    }
}

/// The bytes are a file; and the seats of one, then chunks: letter, length, content.
fn run(data: &[u8]) {
    read(data);
    let Some((&seats, mut rest)) = data.split_first() else {
        return;
    };
    let mut file = File::new(&Header {
        state: Counter::TYPE.to_string(),
        input: u8::TYPE.to_string(),
        mode: Mode::Rollback,
        seats: seats % 17,
        frame_micros: 16_667,
    });
    while let [letter, low, high, after @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (content, after) = after.split_at(len.min(after.len()));
        file.push(*letter, content);
        rest = after;
    }
    read(&file.take_bytes());
}

fn read(bytes: &[u8]) {
    let Ok(replay) = Replay::parse(bytes) else {
        return;
    };
    let (first, end) = replay.frames();
    assert!(first <= end && replay.states() <= bytes.len());
    let verified = verify::<Counter>(&replay);
    let played = play::<Counter>(&replay, end);
    if let Ok(outcome) = verified
        && outcome.differs.is_none()
    {
        assert_eq!(outcome.frames, end.since(first), "it was run to its end");
        assert!(played.is_ok(), "what was run once can be run again");
    }
    if let Some(last) = end.0.checked_sub(1).filter(|last| *last >= first.0) {
        let inputs = replay.inputs(Frame(last));
        assert!(
            inputs.is_none_or(|frame| frame.inputs.len() == usize::from(replay.header().seats))
        );
    }
}
