//! Players who move themselves, and a server that checks it.

use std::sync::Arc;

use glam::Vec3;
use muse::wire::Duration;
use muse_biobot::cheats::Offence;
use muse_biobot::{Command, Movement, Place, Player, Robot, StageConfig};
use muse_netem::{Conditions, Jitter};

use crate::network::Restless;
use crate::table::{Table, yard};

fn begun(conditions: Conditions, movement: Movement, seed: u64) -> Table {
    let more = r#", "devices": [ { "id": "raft", "what": { "platform": { "min": [-3, 0, -4], "max": [3, 0.3, 2],
        "path": [ { "offset": [0, 0, 0], "wait": 20, "ticks": 100 }, { "offset": [0, 2, -8], "wait": 20, "ticks": 100 } ] } } } ]"#;
    let config = StageConfig::new(Arc::new(yard("cooperative", more)))
        .slots(2)
        .movement(movement);
    let mut table = Table::new(config, 2, conditions, seed);
    table.begin();
    table
}

fn bad_link() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .loss(0.05)
}

/// Lets the second player claim to be where `place` says, once it plays.
fn claim(table: &mut Table, ticks: u32, mut place: impl FnMut(u32, &Robot) -> Place) {
    let mut turn = 0;
    table.run(ticks, |who, player: &mut Player| {
        if who == 0 {
            return Command::default();
        }
        turn += 1;
        let robot = player.predicted().cloned();
        Command {
            place: robot.map(|robot| place(turn / 4, &robot)),
            ..Command::default()
        }
    });
}

/// A claimed place: that of the robot, moved by `way`.
fn beyond(robot: &Robot, way: Vec3) -> Place {
    Place {
        position: (robot.feet() + way).into(),
        velocity: robot.velocity,
        standing: robot.standing,
        lives: robot.lives,
    }
}

#[test]
fn honest_players_walk_jump_and_ride() {
    let mut table = begun(bad_link(), Movement::Validated, 3);
    let mut people = [Restless::new(3), Restless::new(10)];
    let mut far = 0.0_f32;
    let start = table.robot(0).feet();
    for _ in 0..60 {
        table.run(50, |slot, _| people[slot].act());
        far = far.max(table.robot(0).feet().distance(start));
    }
    assert!(far > 5.0, "it hardly moves: {far} m");
    let report = table.stage.report();
    for player in &report.players {
        for offence in [Offence::TooFast, Offence::ThroughWalls, Offence::Flight] {
            assert_eq!(player.conduct.count(offence), 0, "{report}");
        }
    }
}

#[test]
fn who_claims_to_be_faster_stays_behind() {
    // Twice the speed of a robot; 7 m a second are within the tolerance.
    for (speed, refused) in [(12.0, true), (7.0, false)] {
        let mut table = begun(Conditions::default(), Movement::Validated, 1);
        let start = table.robot(1).feet();
        claim(&mut table, 100, |_, robot| {
            beyond(robot, Vec3::new(0.0, 0.0, -speed * 0.02))
        });
        let report = table.stage.report();
        let count = report.players[1].conduct.count(Offence::TooFast);
        assert_eq!(count > 0, refused, "{speed} m/s: {report}");
        let far = table.robot(1).feet().distance(start);
        // Half a second may be caught up, and a fifth is tolerance.
        assert!(far < 2.5 * 7.2 + 0.1, "{speed} m/s: {far} m in 2 s");
    }
}

#[test]
fn nobody_flies_or_jumps_twice() {
    let mut table = begun(Conditions::default(), Movement::Validated, 1);
    let mut highest = 0.0_f32;
    claim(&mut table, 150, |_, robot| {
        highest = highest.max(robot.position[1]);
        Place {
            standing: 0,
            ..beyond(robot, Vec3::new(0.0, 0.1, 0.0))
        }
    });
    assert!(table.robot(1).position[1] < 2.2);
    let report = table.stage.report();
    assert!(
        report.players[1].conduct.count(Offence::Flight) > 0,
        "{report}"
    );
    let mut hovers = begun(Conditions::default(), Movement::Validated, 1);
    claim(&mut hovers, 100, |_, robot| Place {
        standing: 1,
        ..beyond(robot, Vec3::new(0.0, 0.05, 0.0))
    });
    assert!(hovers.robot(1).position[1] < 0.6, "{:?}", hovers.robot(1));
    assert!(
        hovers.stage.report().players[1]
            .conduct
            .count(Offence::Flight)
            > 0
    );
}

#[test]
fn nobody_walks_through_walls() {
    let mut table = begun(Conditions::default(), Movement::Validated, 1);
    claim(&mut table, 400, |_, robot| {
        beyond(robot, Vec3::new(0.0, 0.0, 0.12))
    });
    let there = table.robot(1).position;
    assert!(there[2] < 30.0, "{there:?}");
    let report = table.stage.report();
    assert!(
        report.players[1].conduct.count(Offence::ThroughWalls) > 0,
        "{report}"
    );
}

#[test]
fn others_see_no_more_of_a_cheat_than_its_last_honest_place() {
    let mut table = begun(Conditions::default(), Movement::Validated, 1);
    claim(&mut table, 100, |turn, robot| {
        let leap = if turn % 10 == 0 { 9.0 } else { 0.0 };
        beyond(robot, Vec3::new(leap, 0.0, 0.0))
    });
    let now = table.now;
    let frame = table.guests[0].player.frame(now);
    assert_eq!(frame.statistics.jumps, 0);
    assert!(table.robot(1).position[0] < 12.0, "{:?}", table.robot(1));
}

/// Compares the costs of both models, for `docs/game.md`.
#[test]
fn both_models_are_compared() {
    for movement in [Movement::Server, Movement::Validated] {
        let mut table = begun(bad_link(), movement, 7);
        let mut people = [Restless::new(1), Restless::new(2)];
        table.run(250, |slot, _| people[slot].act());
        let sums = |table: &Table| {
            let mut sums = [0_u64; 4];
            for guest in &table.guests {
                let made = guest.player.client().prediction();
                sums[0] += made.corrected;
                sums[1] += made.confirmed;
                sums[2] += guest.bytes[0];
                sums[3] += guest.packets[0];
            }
            sums
        };
        let before = sums(&table);
        table.run(1_500, |slot, _| people[slot].act());
        let after = sums(&table);
        let [corrected, confirmed, bytes, packets] =
            std::array::from_fn(|index| after[index] - before[index]);
        // Two players, half a minute; what the transport adds is about 28 bytes a datagram.
        let kbit = (bytes + packets * 28) as f64 * 8.0 / 60.0 / 1e3;
        println!(
            "FIGURE {movement:?}: {corrected} of {} states corrected, {kbit:.1} kbit/s up",
            corrected + confirmed
        );
        assert!(
            corrected * 50 < confirmed,
            "{movement:?}: {corrected} of {confirmed}"
        );
        assert!(kbit < 36.0, "{movement:?}: {kbit:.1} kbit/s");
    }
}
