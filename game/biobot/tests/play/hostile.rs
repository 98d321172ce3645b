//! A client that sends whatever it likes harms nobody and is counted (OA-17).

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
            let _ = table.stage.handle_packet(table.now, hostile, &bytes);
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
