//! A recorded match of Biobot: its players, its events, the state at any tick, and its verification.

use muse_biobot::replay::{Recording, RecordingError, verify};
use muse_biobot::{TICKS_PER_SECOND, ToPlayer};

use super::Arguments;

/// Prints, and verifies if asked to. Returns true if the recording is sound.
pub(super) fn examine(bytes: &[u8], arguments: &Arguments) -> anyhow::Result<bool> {
    let mut recording = Recording::parse(bytes.to_vec())?;
    match arguments.frame {
        None => story(&recording),
        Some(tick) => picture(&mut recording, tick),
    }
    if !arguments.verify {
        return Ok(true);
    }
    match verify(bytes) {
        Ok((compared, last)) => {
            println!("verified: {compared} checks agree, the last is {last:016x}");
            Ok(true)
        }
        Err(error @ RecordingError::Differs { .. }) => {
            println!("differs: {error}");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

fn story(recording: &Recording) {
    let (first, last) = recording.ticks();
    println!("ticks: {first}..={last}, {}", clock(last - first));
    for name in recording.names() {
        println!("player {}: {}", name.slot, name.name);
    }
    let called = |slot: u8| {
        let mut names = recording.names().iter();
        let found = names.find(|name| name.slot == slot && !name.name.is_empty());
        found.map_or(format!("player {slot}"), |name| name.name.clone())
    };
    for mark in recording.marks() {
        let at = clock(mark.tick.saturating_sub(first));
        match &mark.message {
            ToPlayer::KillFeed { killer, victim, .. } => {
                let killer = killer.map_or("the world".to_owned(), called);
                println!("{at} {killer} killed {}", called(*victim));
            }
            ToPlayer::Goal { scorer, goals, .. } => {
                let scorer = scorer.map_or("nobody".to_owned(), called);
                println!("{at} goal by {scorer}, {} : {}", goals[0], goals[1]);
            }
            ToPlayer::Chat { from, text } => {
                let from = from.map_or("the game".to_owned(), called);
                println!("{at} {from}: {text}");
            }
            ToPlayer::Result { phase, table } => {
                println!("{at} {phase:?}");
                for line in table {
                    println!(
                        "  {}: {} points, {} kills, {} deaths",
                        called(line.slot),
                        line.points,
                        line.kills,
                        line.deaths
                    );
                }
            }
            _ => {}
        }
    }
}

/// Everything that the first player saw at a tick.
fn picture(recording: &mut Recording, tick: u32) {
    let frame = recording.frame(f64::from(tick), 0);
    println!("tick {}", frame.time.tick.0);
    for robot in frame.own.iter().map(|own| &own.robot) {
        println!("{robot:?}");
    }
    for shown in &frame.robots {
        println!("{:?}", shown.robot);
    }
    for shown in &frame.enemies {
        println!("{:?}", shown.enemy);
    }
    for shown in &frame.bolts {
        println!("{:?}", shown.bolt);
    }
    if let Some(shown) = &frame.ball {
        println!("{:?}", shown.ball);
    }
}

fn clock(ticks: u32) -> String {
    let seconds = ticks / TICKS_PER_SECOND;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
