//! Every match can be recorded, watched and run again with the same result.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::replay::{Recording, RecordingError, verify};
use muse_biobot::{Command, FromPlayer, Level, StageConfig, ToPlayer};
use muse_netem::{Conditions, Jitter};

use crate::network::Restless;
use crate::table::Table;

/// A match of four on the arena over a bad network, with somebody who drops and comes back, and one whose seat another gets; the file, and where everybody was.
fn recorded() -> (Vec<u8>, Vec<(u32, [f32; 3])>) {
    let conditions = Conditions::default()
        .delay(Duration::from_millis(40))
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(0.03);
    let config = StageConfig::new(Arc::new(Level::arena())).slots(4).seed(3);
    let mut table = Table::recorded(config, 4, conditions, 8);
    let mut people: Vec<Restless> = (0..8).map(Restless::new).collect();
    let mut places = Vec::new();
    let mut file = Vec::new();
    for round in 0..1_200 {
        table.run(1, |slot, _| people[slot].act());
        places.push((table.stage.tick().0, table.robot(0).position));
        match round {
            300 => table.leave(3),
            500 => assert!(table.join(103).is_ok()),
            700 => table.leave(2),
            710 => table.stage.give_up(102),
            720 => assert_eq!(table.join(107), Ok(2), "the free seat"),
            600 => table.guests[1].player.send(FromPlayer::Chat {
                text: "hello".to_owned(),
            }),
            _ => {}
        }
        if round % 100 == 0 {
            file.extend(table.stage.take_recording());
        }
    }
    file.extend(table.stage.finish_recording());
    (file, places)
}

#[test]
fn a_recorded_match_runs_again_to_the_same_sums() {
    let (file, _) = recorded();
    let (compared, sum) = verify(&file).expect("it is the same match");
    println!(
        "FIGURE {compared} checksums, the last {sum:016x}, {} bytes for 24 s of four",
        file.len()
    );
    assert!(compared >= 20);
    // One input changed, somewhere in the middle: either the file says that it is damaged, or the match differs.
    let mut forged = file.clone();
    let middle = forged.len() / 2;
    forged[middle] ^= 1;
    let found = verify(&forged).expect_err("something was changed");
    assert!(matches!(found, RecordingError::Damaged { .. }), "{found}");
}

#[test]
fn the_container_is_the_one_of_every_replay() {
    let (file, _) = recorded();
    let replay = muse::lockstep::replay::Replay::parse(&file).expect("a replay");
    assert_eq!(replay.problem(), None);
    assert_eq!(replay.header().seats, 4);
    assert_eq!(replay.header().frame_micros, 20_000);
    assert!(replay.snapshots().len() > 500);
    assert!(replay.checks().len() >= 20);
}

#[test]
fn any_instant_can_be_watched() {
    let (file, places) = recorded();
    let mut recording = Recording::parse(file.clone()).expect("whole");
    let (first, last) = recording.ticks();
    assert!(first <= 2 && last >= 1_190, "{first} to {last}");
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let (tick, place) = places[rng.u32(..) as usize % places.len()];
        if tick % 2 == 0 && tick <= last {
            let frame = recording.frame(f64::from(tick), 0);
            let own = frame.own.as_ref().expect("it is in the match");
            assert_eq!(own.robot.position, place, "tick {tick}");
        }
    }
    let chat =
        |message: &ToPlayer| matches!(message, ToPlayer::Chat { text, .. } if text == "hello");
    assert!(recording.marks().iter().any(|mark| chat(&mark.message)));
    assert_eq!(recording.names().len(), 4);
    // Forwards frame by frame, everything that was said is seen once.
    let mut seen = 0;
    let mut at = f64::from(first);
    while at < f64::from(last) {
        let frame = recording.frame(at, 2);
        let heard = |seen: &&muse_biobot::player::Seen| matches!(seen, muse_biobot::player::Seen::Message(message) if chat(message));
        seen += frame.seen.iter().filter(heard).count();
        at += 0.83;
    }
    assert_eq!(seen, 1);
    // What is cut off plays as far as it goes.
    let cut = Recording::parse(file[..file.len() / 2].to_vec()).expect("half of it");
    assert!(cut.ticks().1 < last);
}

#[test]
fn nonsense_is_no_recording() {
    let (file, _) = recorded();
    assert_eq!(
        Recording::parse(Vec::new()).err(),
        Some(RecordingError::NotAReplay)
    );
    let mut rng = fastrand::Rng::with_seed(2);
    for _ in 0..40 {
        let mut bytes = file.clone();
        for _ in 0..3 {
            let at = rng.u32(..) as usize % bytes.len();
            bytes[at] = rng.u8(..);
        }
        // Neither panics; what is read can be shown.
        if let Ok(mut recording) = Recording::parse(bytes) {
            let (first, last) = recording.ticks();
            assert!(recording.frame(f64::from(last), 0).time.tick.0 >= first);
        }
    }
}

#[test]
fn without_recording_there_is_nothing() {
    let mut table = Table::near(Level::arena(), 2);
    table.run(10, |_, _| Command::default());
    assert!(table.stage.finish_recording().is_empty());
}
