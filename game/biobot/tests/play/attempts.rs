//! Cheats that a command can express have no effect, and the report names them; honest players on a bad link are in no report.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::bots::Brain;
use muse_biobot::cheats::Offence;
use muse_biobot::{Command, Level, Movement, Place, Player, StageConfig};
use muse_netem::{Conditions, Jitter};

use crate::table::{Table, yard};

/// Two players in a yard with a lever; the second sends whatever it is told.
fn table() -> Table {
    let more = r#", "devices": [ { "id": "lever", "what": { "lever": { "at": [0, 1.2, -29.8] } } },
        { "id": "theirs", "only": 0, "what": { "button": { "at": [4, 1.2, 12] } } } ]"#;
    let mut table = Table::near(yard("cooperative", more), 2);
    table.begin();
    table.guests[1].player.danger_send_everything();
    table
}

fn count(table: &Table, slot: usize, offence: Offence) -> u32 {
    table.stage.report().players[slot].conduct.count(offence)
}

/// Presses this for a while.
fn press(table: &mut Table, ticks: u32, mut act: impl FnMut(u32, &mut Player) -> Command) {
    let mut turn = 0;
    table.run(ticks, |who, player| match who {
        0 => Command::default(),
        _ => {
            turn += 1;
            act(turn / 4, player)
        }
    });
}

#[test]
fn a_lever_far_away_and_the_button_of_another_stay_as_they_are() {
    let mut table = table();
    press(&mut table, 100, |turn, _| Command {
        use_: turn % 4 == 0,
        ..Command::default()
    });
    assert!(!table.active("lever") && !table.active("theirs"));
    let tried = count(&table, 1, Offence::UseFromAfar);
    assert!(tried > 10, "{}", table.stage.report());
    assert_eq!(count(&table, 0, Offence::UseFromAfar), 0);
}

#[test]
fn jumps_in_the_air_are_seen() {
    let mut table = table();
    let mut highest = 0.0_f32;
    press(&mut table, 150, |turn, player| {
        highest = highest.max(player.predicted().map_or(0.0, |robot| robot.position[1]));
        Command {
            jump: turn % 2 == 0,
            ..Command::default()
        }
    });
    assert!(highest < 1.4, "{highest} m");
    let tried = count(&table, 1, Offence::JumpInAir);
    assert!(tried > 20, "{}", table.stage.report());
}

#[test]
fn a_trigger_that_never_rests_is_seen() {
    let mut table = table();
    press(&mut table, 150, |_, _| Command {
        fire: true,
        ..Command::default()
    });
    let tried = count(&table, 1, Offence::FireTooFast);
    assert!(tried > 10, "{}", table.stage.report());
    // One in 8 ticks, whatever is pressed.
    assert!(table.robot(1).shots <= 20, "{} shots", table.robot(1).shots);
}

#[test]
fn shots_from_elsewhere_come_from_where_the_robot_is() {
    let mut table = table();
    press(&mut table, 150, |_, player| {
        let robot = player.predicted().cloned();
        let place = robot.map(|robot| Place {
            position: [0.0, 3.0, -20.0],
            velocity: [0.0; 3],
            standing: 1,
            lives: robot.lives,
        });
        Command {
            fire: true,
            place,
            ..Command::default()
        }
    });
    assert!(
        count(&table, 1, Offence::ShotFromElsewhere) > 10,
        "{}",
        table.stage.report()
    );
    let seen = &table.guests[0].player;
    let other = seen
        .last_frame()
        .robots
        .first()
        .map(|shown| shown.robot.position);
    assert!(table.robot(1).position[2] > 5.0, "{other:?}");
}

#[test]
fn the_dead_do_nothing() {
    let mut table = Table::near(yard("versus", ""), 2);
    table.begin();
    table.guests[1].player.danger_send_everything();
    let mut shots = 0;
    for _ in 0..40 {
        let victim = table.robot(1);
        let shooter = table.robot(0);
        let way = victim.middle() - shooter.eye();
        let (yaw, pitch) = muse_biobot::weapons::angles(way);
        table.run(25, |who, player| match who {
            0 => Command {
                fire: true,
                yaw,
                pitch,
                ..Command::default()
            },
            _ => {
                let dead = player.predicted().is_some_and(|robot| !robot.alive());
                shots += u32::from(dead);
                Command {
                    fire: dead,
                    use_: dead,
                    ..Command::default()
                }
            }
        });
    }
    assert!(shots > 0, "it has never died");
    assert!(
        count(&table, 1, Offence::ActsWhileDead) > 10,
        "{}",
        table.stage.report()
    );
    // It learns late that it is back, so its first shots come as soon as it is; none came before.
    let deaths = table.stage.round().deaths[1];
    assert!(deaths > 0 && u16::from(table.robot(1).shots) <= 3 * deaths);
}

#[test]
fn a_weapon_that_was_not_found_stays_hidden() {
    let mut table = table();
    press(&mut table, 100, |_, _| Command {
        weapon: 4,
        fire: true,
        ..Command::default()
    });
    assert_eq!(table.robot(1).weapon, 1);
    assert!(count(&table, 1, Offence::WeaponNotOwned) > 10);
}

fn bad_link() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(0.05)
}

#[test]
fn honest_bots_on_a_bad_link_are_in_no_report() {
    for movement in [Movement::Server, Movement::Validated] {
        for (level, players, seed) in [(Level::escape(), 2, 3), (Level::arena(), 4, 5)] {
            let level = Arc::new(level);
            let config = StageConfig::new(Arc::clone(&level))
                .slots(players)
                .seed(seed)
                .movement(movement);
            let mut table = Table::new(config, players, bad_link(), seed);
            table.begin();
            let brain = |slot: u8| Brain::new(Arc::clone(&level), seed * 10 + u64::from(slot));
            let mut brains: Vec<Brain> = (0..players).map(brain).collect();
            for _ in 0..60 {
                for _ in 0..50 {
                    let now = table.now;
                    table.run(1, |slot, player| brains[slot].act(now, player));
                }
                if table.stage.outcome().is_some() {
                    break;
                }
            }
            let report = table.stage.report();
            for player in &report.players {
                assert_eq!(player.conduct.total(), 0, "{movement:?}: {report}");
            }
            let shots: u32 = report
                .players
                .iter()
                .map(|player| u32::from(table.robot(player.slot).shots))
                .sum();
            assert!(shots >= 10, "{movement:?}: they hardly fire: {shots}");
        }
    }
}
