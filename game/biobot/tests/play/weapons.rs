//! Weapons: magazines, rates of fire, reloading, recoil, aiming; predicted, and counted alike on both sides.

use muse_biobot::player::Seen;
use muse_biobot::{Command, Effect, Player};

use crate::table::{Table, yard};

fn pressed(fire: bool, weapon: u8) -> Command {
    Command {
        fire,
        weapon,
        ..Command::default()
    }
}

#[test]
fn magazines_run_empty_and_are_filled_again() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    let before = table.robot(0);
    assert_eq!(before.rounds(), 24);
    // 8 ticks from shot to shot.
    table.run(80, |_, _| pressed(true, 0));
    let after = table.robot(0);
    let fired = before.rounds() - after.rounds();
    assert!((9..=11).contains(&fired), "{fired} shots in 80 ticks");
    assert_eq!(after.shots, fired);
    table.run(150, |_, _| pressed(true, 0));
    assert!(
        table.robot(0).reload > 0 || table.robot(0).rounds() > 20,
        "an empty one is reloaded"
    );
    table.run(10, |_, _| pressed(false, 0));
    table.run(70, |_, _| Command {
        reload: true,
        ..Command::default()
    });
    table.run(70, |_, _| Command::default());
    assert_eq!(table.robot(0).rounds(), 24);
}

#[test]
fn recoil_throws_up_and_goes_away() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    table.run(40, |_, _| pressed(true, 0));
    let tick = table.stage.tick();
    let thrown = table.robot(0).recoil(tick);
    assert!(thrown > 0.01, "{thrown}");
    table.run(100, |_, _| Command::default());
    assert_eq!(table.robot(0).recoil(table.stage.tick()), 0.0);
}

#[test]
fn aiming_takes_a_moment_and_slows() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    let aim = |_: usize, _: &mut Player| Command {
        aim: true,
        forward: 1,
        ..Command::default()
    };
    table.run(60, aim);
    let robot = table.robot(0);
    assert_eq!(robot.aiming(), 1.0);
    let speed = glam::Vec3::from(robot.velocity).length();
    assert!((3.0..3.6).contains(&speed), "{speed} m/s");
}

#[test]
fn only_weapons_that_one_has_are_drawn() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    table.run(30, |_, _| pressed(false, 4));
    assert_eq!(table.robot(0).weapon, 1);
    table.run(30, |_, _| pressed(false, 3));
    assert_eq!(table.robot(0).weapon, 3);
    let report = table.stage.report();
    let conduct = &report.players[0].conduct;
    // An honest client does not ask for what it knows that it has not.
    assert_eq!(
        conduct.count(muse_biobot::cheats::Offence::WeaponNotOwned),
        0
    );
}

#[test]
fn one_sees_and_hears_each_of_ones_own_shots_once() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    let before = table.robot(0).shots;
    let mut flashes = 0;
    for turn in 0..1_200 {
        table.step(&mut |_, _| pressed(turn % 200 < 120, 0));
        let now = table.now;
        let frame = table.guests[0].player.frame(now);
        flashes += frame
            .seen
            .iter()
            .filter(|seen| {
                matches!(
                    seen,
                    Seen::Own {
                        effect: Effect::Fired { .. },
                        ..
                    }
                )
            })
            .count();
    }
    table.run(20, |_, _| Command::default());
    let fired = table.robot(0).shots.wrapping_sub(before);
    assert!(fired > 10);
    assert_eq!(flashes, usize::from(fired));
}

#[test]
fn what_is_launched_flies_and_bursts() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    table.run(40, |_, _| pressed(false, 2));
    let (mut shown, mut bursts, mut frames) = (0, 0, 0);
    for turn in 0..500 {
        table.step(&mut |_, _| Command {
            pitch: 0.1,
            ..pressed(turn < 8, 0)
        });
        let now = table.now;
        let frame = table.guests[0].player.frame(now);
        shown += usize::from(!frame.bolts.is_empty());
        frames += usize::from(frame.bolts.len() > 1);
        bursts += frame
            .seen
            .iter()
            .filter(|seen| matches!(seen, Seen::Burst { weapon: 2, .. }))
            .count();
    }
    // 40 m at 30 m/s, in frames of 5 ms.
    assert!((200..330).contains(&shown), "{shown}");
    assert_eq!((bursts, frames), (1, 0), "one bolt, never shown twice");
}

/// The command to fire is lost, so the server's robot does not fire: the bolt flies on the screen until that is known, and fades.
#[test]
fn a_launch_that_the_server_denies_fades() {
    let mut table = Table::near(yard("cooperative", ""), 1);
    table.begin();
    table.run(40, |_, _| pressed(false, 2));
    let (mut shown, mut least, mut taken_back) = (0, 1.0_f32, 0);
    for turn in 0..400 {
        table.guests[0].cut = turn < 60;
        table.step(&mut |_, _| Command {
            pitch: 0.1,
            ..pressed(turn < 8, 0)
        });
        let now = table.now;
        let frame = table.guests[0].player.frame(now);
        assert!(frame.bolts.len() <= 1);
        for bolt in &frame.bolts {
            assert_eq!(bolt.entity, None, "the server knows of none");
            shown += 1;
            least = least.min(bolt.share);
        }
        let cancelled = |seen: &&Seen| matches!(seen, Seen::Cancelled { .. });
        taken_back += frame.seen.iter().filter(cancelled).count();
    }
    let robot = table.robot(0);
    assert_eq!((robot.weapon, robot.rounds(), robot.shots), (2, 4, 0));
    // 300 ms without the server, and the time to fade, in frames of 5 ms.
    assert!(
        (60..150).contains(&shown) && least < 0.1,
        "{shown}, {least}"
    );
    assert_eq!(taken_back, 1);
}
