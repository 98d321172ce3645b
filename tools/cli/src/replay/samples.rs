//! Recordings of the library's sample games.

pub(super) use muse_lockstep::samples::{duel::Duel, rts::Rts};

use muse_lockstep::replay::{Replay, play, verify};
use muse_lockstep::{DeterministicGame, Frame, describe, encode};

use super::Arguments;

/// Verifies and prints a match of a known game. Returns true if it verified.
pub(super) fn examine<G: DeterministicGame>(
    replay: &Replay<'_>,
    arguments: &Arguments,
) -> anyhow::Result<bool> {
    if let Some(frame) = arguments.frame {
        let state: G = play(replay, Frame(frame))?;
        let mut bytes = Vec::new();
        encode(&state, &mut bytes)?;
        print!("{}", describe(&G::TYPE, &bytes));
        let inputs = replay.inputs(Frame(frame)).unwrap_or_default();
        for (seat, input) in inputs.inputs.iter().enumerate() {
            let input = input.map(muse_lockstep::decode::<G::Input>);
            match input {
                Some(Ok(input)) => println!("seat {seat}: {input:?}"),
                Some(Err(_)) => println!("seat {seat}: an input that cannot be decoded"),
                None => println!("seat {seat}: nobody"),
            }
        }
    }
    if !arguments.verify {
        return Ok(true);
    }
    let outcome = verify::<G>(replay)?;
    match outcome.differs {
        None => println!(
            "verified: {} frames, {} checks agree",
            outcome.frames, outcome.compared
        ),
        Some((frame, fields)) => {
            println!("differs: the state before frame {frame} is not the recorded one");
            fields.iter().for_each(|field| println!("  {field}"));
            return Ok(false);
        }
    }
    Ok(true)
}
