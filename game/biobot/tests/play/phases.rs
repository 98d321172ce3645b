//! A match begins and ends, and players drop out of it.

use std::sync::Arc;

use muse_biobot::stage::JoinError;
use muse_biobot::{Command, FromPlayer, Phase, StageConfig, ToPlayer};
use muse_netem::Conditions;

use crate::table::{Table, yard};

fn idle(table: &mut Table, ticks: u32) {
    table.run(ticks, |_, _| Command::default());
}

fn config() -> StageConfig {
    StageConfig::new(Arc::new(yard("cooperative", ""))).slots(2)
}

#[test]
fn a_match_that_not_everybody_comes_to_is_cancelled() {
    let mut table = Table::new(config(), 1, Conditions::default(), 1);
    idle(&mut table, 480);
    assert_eq!(table.stage.round().phase, Phase::Waiting);
    idle(&mut table, 30);
    let outcome = table.stage.outcome().expect("10 s are over");
    assert!(outcome.cancelled && outcome.phase == Phase::Over);
    assert_eq!(table.join(7), Err(JoinError::Over));
}

#[test]
fn a_match_that_may_begin_short_does() {
    let mut table = Table::new(config().cancels(false), 1, Conditions::default(), 1);
    idle(&mut table, 560);
    assert_eq!(table.stage.round().phase, Phase::Playing);
}

#[test]
fn a_seat_is_kept_for_ten_seconds() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    table.run(60, |who, _| Command {
        forward: i8::from(who == 1),
        ..Command::default()
    });
    table.leave(1);
    idle(&mut table, 20);
    let before = table.robot(1);
    assert_eq!(before.velocity, [0.0; 3], "it has stopped");
    idle(&mut table, 230);
    let voted = |message: &ToPlayer| {
        matches!(
            message,
            ToPlayer::Vote {
                dropped: Some((1, _))
            }
        )
    };
    assert!(table.guests[0].heard.iter().any(voted));
    assert_eq!(table.join(101), Ok(1), "the same player");
    idle(&mut table, 60);
    let after = table.robot(1);
    assert_eq!(
        (before.position, before.lives),
        (after.position, after.lives)
    );
    assert!(
        table.guests[2].player.predicted().is_some(),
        "and it plays on"
    );
    assert_eq!(table.guests[2].player.slot(), Some(1));
    let back = table.guests[0]
        .heard
        .iter()
        .rev()
        .find(|message| matches!(message, ToPlayer::Vote { .. }));
    assert_eq!(back, Some(&ToPlayer::Vote { dropped: None }));
    assert_eq!(table.join(555), Err(JoinError::Full));
}

#[test]
fn after_that_it_is_free_and_the_others_go_on() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    table.leave(1);
    idle(&mut table, 510);
    assert_eq!(table.stage.round().phase, Phase::Playing);
    let world = table.stage.server().world();
    let robots = world
        .entities()
        .filter(|entity| world.state(table.stage.kinds().robot, *entity).is_some());
    assert_eq!(robots.count(), 1);
}

#[test]
fn a_seat_that_is_given_up_is_free_at_once() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    table.leave(1);
    idle(&mut table, 20);
    assert_eq!(table.join(555), Err(JoinError::Full));
    table.stage.give_up(101);
    assert_eq!(table.join(555), Ok(1));
    idle(&mut table, 60);
    let joined = table.guests.last().expect("it joined");
    assert!(joined.player.predicted().is_some(), "and it plays");
    let vote = |message: &&ToPlayer| matches!(message, ToPlayer::Vote { .. });
    let last = table.guests[0].heard.iter().rev().find(vote);
    assert_eq!(last, Some(&ToPlayer::Vote { dropped: None }));
}

#[test]
fn the_others_may_finish_it() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    table.leave(0);
    idle(&mut table, 20);
    table.guests[1]
        .player
        .send(FromPlayer::Vote { go_on: false });
    idle(&mut table, 10);
    assert_eq!(
        table.stage.outcome().map(|outcome| outcome.phase),
        Some(Phase::Lost)
    );
}

#[test]
fn a_match_without_anybody_ends() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    table.leave(0);
    table.leave(1);
    idle(&mut table, 510);
    assert_eq!(
        table.stage.outcome().map(|outcome| outcome.phase),
        Some(Phase::Over)
    );
}

#[test]
fn chat_reaches_everybody() {
    let mut table = Table::near(yard("cooperative", ""), 2);
    table.begin();
    let text = "to the lift".to_owned();
    table.guests[0]
        .player
        .send(FromPlayer::Chat { text: text.clone() });
    idle(&mut table, 10);
    for guest in &table.guests {
        let line = ToPlayer::Chat {
            from: Some(0),
            text: text.clone(),
        };
        assert!(guest.heard.contains(&line));
    }
}
