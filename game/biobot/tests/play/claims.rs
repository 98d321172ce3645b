//! Nobody honest is called a cheat for what they saw, however good or bad their network is.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::bots::Brain;
use muse_biobot::cheats::Offence;
use muse_biobot::{Command, Level, Mode, StageConfig};
use muse_netem::{Conditions, Jitter};

use crate::table::Table;

const PLAYERS: u8 = 4;

/// Bots shoot at each other for a minute. Returns their shots, each with a claim, and those that were refused.
fn play(network: Conditions) -> (u32, u32) {
    let level = Arc::new(Level::of(Mode::Versus));
    let config = StageConfig::new(Arc::clone(&level))
        .slots(PLAYERS)
        .kills_to_win(10_000)
        .cancels(false);
    let mut table = Table::new(config, PLAYERS, network, 3);
    let mut brains: Vec<_> = (0..u64::from(PLAYERS))
        .map(|slot| Brain::new(Arc::clone(&level), slot))
        .collect();
    let mut commands = [Command::default(); PLAYERS as usize];
    let mut fired: [Option<u8>; PLAYERS as usize] = [None; PLAYERS as usize];
    let mut shots = 0;
    for step in 0..60 * 200 {
        let now = table.now;
        table.step(&mut |index, player| {
            // They look at 67 frames a second.
            if step % 3 == 0 {
                commands[index] = brains[index].act(now, player);
                player.frame(now);
            }
            commands[index]
        });
        for (slot, fired) in (0..).zip(&mut fired) {
            if let Some(robot) = table.find_robot(slot)
                && let Some(before) = fired.replace(robot.shots)
            {
                shots += u32::from(robot.shots.wrapping_sub(before));
            }
        }
    }
    let report = table.stage.report();
    let refused = report.players.iter();
    let refused = refused.map(|player| player.conduct.count(Offence::ClaimForged));
    (shots, refused.sum())
}

#[test]
fn honest_claims_are_believed_on_every_network() {
    let network = |way_ms, jitter_ms, loss| {
        Conditions::default()
            .delay(Duration::from_millis(way_ms))
            .jitter(Jitter::Around(Duration::from_millis(jitter_ms)))
            .loss(loss)
    };
    for (name, network) in [
        ("no delay", Conditions::default()),
        ("100 ms", network(50, 10, 0.0)),
        ("100 ms, 5 % loss", network(50, 10, 0.05)),
        ("100 ms, 20 % loss", network(50, 10, 0.2)),
        ("300 ms, 5 % loss", network(150, 15, 0.05)),
        ("300 ms, reordering", network(150, 40, 0.0)),
        ("bursts", network(50, 10, 0.0).burst_loss(0.05, 4.0)),
    ] {
        let (shots, refused) = play(network);
        println!("{name}: {refused} of {shots} claims refused");
        assert!(shots > 200, "{name}: {shots} shots");
        // One in a thousand.
        assert!(refused * 1_000 <= shots, "{name}: {refused} of {shots}");
    }
}
