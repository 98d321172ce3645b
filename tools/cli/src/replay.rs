//! `muse replay`: prints a recorded match, and verifies it by running it again.

mod biobot;
#[cfg(feature = "tools")]
mod samples;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use muse_lockstep::replay::Replay;

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
        #[cfg(feature = "tools")]
        "Duel" => sound &= samples::examine::<samples::Duel>(&replay, arguments)?,
        #[cfg(feature = "tools")]
        "Rts" => sound &= samples::examine::<samples::Rts>(&replay, arguments)?,
        #[cfg(not(feature = "tools"))]
        "Duel" | "Rts" => bail!(
            "the library's sample games are not built in; run it with: cargo run --release -p muse-cli --features tools -- replay {}",
            arguments.file.display()
        ),
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
