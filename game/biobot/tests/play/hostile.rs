//! A client that sends whatever it likes harms nobody and is counted.

use muse_biobot::cheats::Offence;
use muse_biobot::{Command, FromPlayer};

use crate::table::{Table, yard};

#[test]
fn random_bytes_neither_panic_nor_disturb() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    let mut rng = fastrand::Rng::with_seed(99);
    let honest = table.guests[0].client;
    let hostile = table.guests[1].client;
    for round in 0..400 {
        for _ in 0..20 {
            let len = rng.u8(..) as usize;
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            // Half of it begins as packets do.
            if rng.bool() && len > 12 {
                bytes[..7].copy_from_slice(&[1, 0, 0, 0, 0, 255, 255]);
            }
            let now = table.now;
            let _ = table.stage.handle_packet(now, hostile, &bytes);
            table.stage.handle_message_bytes(hostile, &bytes);
        }
        table.run(1, |_, _| Command {
            forward: 1,
            yaw: round as f32 * 0.05,
            ..Command::default()
        });
    }
    let report = table.stage.report();
    assert!(
        report.players[1].suspect && !report.players[0].suspect,
        "{report}"
    );
    assert!(report.players[1].conduct.count(Offence::BadPacket) > 100);
    assert!(report.players[1].conduct.count(Offence::BadMessage) > 100);
    assert!(report.players[1].conduct.count(Offence::PacketFlood) > 100);
    let counters = table
        .stage
        .server()
        .input_counters(honest)
        .expect("it is there");
    assert!(
        counters.missing == 0,
        "the honest player plays on: {counters:?}"
    );
    assert_eq!(table.guests[0].player.client().prediction().corrected, 0);
}

#[test]
fn messages_out_of_turn_are_counted_and_do_nothing() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    let client = table.guests[1].client;
    let before = table.guests[0].heard.len();
    table
        .stage
        .handle_message(client, &FromPlayer::Vote { go_on: false });
    let again = FromPlayer::Hello {
        name: "somebody else".to_owned(),
        version: muse_biobot::messages::VERSION,
    };
    table.stage.handle_message(client, &again);
    table.stage.handle_message(
        client,
        &FromPlayer::Chat {
            text: "\u{7}\n".to_owned(),
        },
    );
    table.run(10, |_, _| Command::default());
    let conduct = table.stage.report().players[1].conduct.clone();
    assert_eq!(conduct.count(Offence::OutOfTurn), 2);
    assert_eq!(conduct.count(Offence::BadText), 1);
    assert_eq!(table.guests[0].heard.len(), before);
    for _ in 0..50 {
        let text = "x".to_owned();
        table
            .stage
            .handle_message(client, &FromPlayer::Chat { text });
    }
    assert!(
        table.stage.report().players[1]
            .conduct
            .count(Offence::MessageFlood)
            >= 40
    );
}

/// Plays a match in which one player cheats, and returns it with the place where the cheat began.
fn cheat(
    seconds: u32,
    mut act: impl FnMut(&mut muse_biobot::Player) -> Command,
) -> (Table, glam::Vec3) {
    let mut table = Table::near(yard("versus", ""), 2);
    table.begin();
    let before = table.robot(1).feet();
    table.run(seconds * 50, |who, player| match who {
        0 => Command::default(),
        _ => act(player),
    });
    (table, before)
}

#[test]
fn nobody_runs_faster_than_robots_run() {
    // All keys at once, and a look that is no number.
    let wild = Command {
        forward: 127,
        right: -128,
        yaw: f32::NAN,
        ..Command::default()
    };
    let (table, before) = cheat(1, |_| wild);
    let far = table.robot(1).feet().distance(before);
    assert!(far < 6.1, "{far} m in a second");
}

#[test]
fn nobody_jumps_in_the_air() {
    let mut highest = 0.0_f32;
    let mut turn = 0;
    let (_, _) = cheat(4, |player| {
        turn += 1;
        highest = highest.max(player.predicted().map_or(0.0, |robot| robot.position[1]));
        Command {
            jump: turn % 2 == 0,
            ..Command::default()
        }
    });
    assert!(highest < 1.4, "{highest} m");
}

#[test]
fn nobody_fires_faster_than_the_weapon_or_without_rounds() {
    let (table, _) = cheat(2, |_| Command {
        fire: true,
        reload: true,
        weapon: 3,
        ..Command::default()
    });
    // 35 ticks from shot to shot.
    let shots = table.robot(1).shots;
    assert!(shots <= 3, "{shots} shots of the scatter in 2 s");
}

#[test]
fn nobody_chooses_the_past_to_shoot_at() {
    use muse::netcode::Claim;
    use muse::netcode::TickTime;
    let long_ago = Claim::at(TickTime::from_ticks(10.0));
    let (table, _) = cheat(3, |_| Command {
        fire: true,
        claim: Some(long_ago),
        ..Command::default()
    });
    let conduct = &table.stage.report().players[1].conduct;
    assert!(
        conduct.count(Offence::ClaimForged) > 10,
        "{}",
        table.stage.report()
    );
    assert_eq!(table.robot(0).health, 100);
}

#[test]
fn who_leaves_stays_in_the_report() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    let client = table.guests[1].client;
    for _ in 0..30 {
        table.stage.handle_message_bytes(client, &[255; 9]);
    }
    table.leave(1);
    table.run(510, |_, _| Command::default());
    let report = table.stage.report();
    let left = report.players.iter().find(|player| player.id == 101);
    assert!(left.is_some_and(|player| player.suspect), "{report}");
}
