//! `muse replay`: prints a recorded match, and verifies it by running it again.

mod biobot;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use muse_lockstep::replay::{Replay, play, verify};
use muse_lockstep::samples::{duel::Duel, rts::Rts};
use muse_lockstep::{DeterministicGame, Frame, describe, encode};

/// A recorded match.
#[derive(Args)]
#[command(
    after_help = "Example: muse replay match.muserply --verify\n         muse replay match.muserply --frame 700   the state and inputs of a frame\n\nExit code 3: it does not verify, or the file is damaged."
)]
pub(crate) struct Arguments {
    /// The recording.
    file: PathBuf,
    /// Run the match again and compare every checksum.
    #[arg(long)]
    verify: bool,
    /// Print the state before this frame, and the inputs of the frame.
    #[arg(long, value_name = "N")]
    frame: Option<u32>,
}

/// Prints, and verifies if asked to.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let bytes = std::fs::read(&arguments.file)
        .with_context(|| format!("cannot read {}", arguments.file.display()))?;
    let replay = Replay::parse(&bytes).with_context(|| arguments.file.display().to_string())?;
    summary(&replay);
    let mut sound = true;
    if let Some(problem) = replay.problem() {
        println!("problem: {problem}; the part before it can be played");
        sound = false;
    }
    let state = replay.header().state.as_str();
    let name = state.split([' ', '{']).next().unwrap_or_default();
    let asked = arguments.frame.is_some() || arguments.verify;
    // The games that this program knows how to run.
    match name {
        "Biobot" => sound &= biobot::examine(&bytes, arguments)?,
        _ if !asked => {}
        "Duel" => sound &= examine::<Duel>(&replay, arguments)?,
        "Rts" => sound &= examine::<Rts>(&replay, arguments)?,
        _ => bail!(
            "this program does not know the game {name:?}; without --verify and --frame it prints the summary"
        ),
    }
    Ok(exit(sound))
}

fn exit(sound: bool) -> ExitCode {
    match sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    }
}

fn summary(replay: &Replay<'_>) {
    let header = replay.header();
    let (first, end) = replay.frames();
    println!(
        "game: {}",
        header.state.split([' ', '{']).next().unwrap_or_default()
    );
    println!(
        "mode: {:?}, {} seats, steps of {} us",
        header.mode, header.seats, header.frame_micros
    );
    println!(
        "frames: {first}..{end}, {} states, {} checks, {} snapshots",
        replay.states(),
        replay.checks().len(),
        replay.snapshots().len()
    );
}

/// Verifies and prints a match of a known game. Returns true if it verified.
fn examine<G: DeterministicGame>(
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
