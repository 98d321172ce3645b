//! Runs a replay again.

use muse_schema::Schema;
use thiserror::Error;

use crate::diff::{Difference, differences};
use crate::frame::Frame;
use crate::game::{DeterministicGame, Step, decode, encode};
use crate::replay::Replay;
use crate::replay::read::Cursor;

/// The outcome of running a replay again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that were run.
    pub frames: u32,
    /// Checksums and states that were compared.
    pub compared: u32,
    /// The first frame before which the state was another than recorded, and the fields that differ if the state was stored.
    pub differs: Option<(Frame, Vec<Difference>)>,
}

/// The reason why a replay cannot be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlayError {
    /// It is of another game, or of another version of it.
    #[error("the replay is of another game or version")]
    OtherGame,
    /// There is no state at or before the frame, or no inputs up to it.
    #[error("the replay does not hold this frame")]
    NoSuchFrame,
    /// A state or an input cannot be decoded.
    #[error("the replay's content cannot be decoded")]
    Undecodable,
}

/// Runs the whole replay and compares everything that can be compared.
pub fn verify<G: DeterministicGame>(replay: &Replay<'_>) -> Result<Outcome, PlayError> {
    let (first, end) = replay.frames();
    let mut outcome = Outcome {
        frames: 0,
        compared: 0,
        differs: None,
    };
    let mut scratch = Vec::new();
    let mut checks = replay.checks().iter().peekable();
    run::<G>(replay, first, end, |frame, state| {
        outcome.frames = frame.since(first);
        while checks.next_if(|(at, _)| *at < frame).is_some() {}
        while let Some((_, sum)) = checks.next_if(|(at, _)| *at == frame) {
            outcome.compared += 1;
            if outcome.differs.is_none() && state.checksum(&mut scratch) != *sum {
                let stored = replay.state_before(frame).filter(|(at, _)| *at == frame);
                outcome.differs = Some((
                    frame,
                    stored.map_or(Vec::new(), |(_, stored)| {
                        scratch.clear();
                        let _ = encode(state, &mut scratch);
                        differences(&G::TYPE, &scratch, stored, FIELDS_MAX)
                    }),
                ));
            }
        }
        outcome.differs.is_none()
    })?;
    Ok(outcome)
}

/// The state before a frame: from the nearest stored one, and the inputs since then.
pub fn play<G: DeterministicGame>(replay: &Replay<'_>, frame: Frame) -> Result<G, PlayError> {
    let (from, _) = replay.state_before(frame).ok_or(PlayError::NoSuchFrame)?;
    run(replay, from, frame, |_, _| true)
}

/// Runs from a stored state up to `end`; `each` sees the state before every frame, and stops it by `false`.
fn run<G: DeterministicGame>(
    replay: &Replay<'_>,
    from: Frame,
    end: Frame,
    mut each: impl FnMut(Frame, &G) -> bool,
) -> Result<G, PlayError> {
    let header = replay.header();
    let ours = (G::TYPE.to_string(), <G::Input as Schema>::TYPE.to_string());
    if (&header.state, &header.input) != (&ours.0, &ours.1) {
        return Err(PlayError::OtherGame);
    }
    let (_, stored) = replay.state_before(from).ok_or(PlayError::NoSuchFrame)?;
    let mut state: G = decode(stored).map_err(|_| PlayError::Undecodable)?;
    let mut events = Vec::new();
    let mut frame = from;
    let mut cursor = Cursor::new(replay);
    let mut decoded = Vec::new();
    while each(frame, &state) && frame < end {
        let inputs = cursor.seek(frame).ok_or(PlayError::NoSuchFrame)?;
        decoded.clear();
        for input in &inputs.inputs {
            // As sessions do: what cannot be decoded counts as nothing given.
            decoded.push(input.map(|bytes| decode(bytes).unwrap_or_default()));
        }
        for _ in 0..inputs.steps {
            state.step(&mut Step::new(frame, &decoded, &mut events));
            events.clear();
            for input in decoded.iter_mut().flatten() {
                *input = G::Input::default();
            }
        }
        frame += 1;
    }
    Ok(state)
}

const FIELDS_MAX: usize = 16;
