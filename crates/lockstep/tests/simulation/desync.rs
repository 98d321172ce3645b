//! A difference is found within ten frames and named; what becomes of a machine whose state differs.

use muse_lockstep::{
    Frame, MatchConfig, Notice, OverReason, Report, Rng, Role, Seat, SessionEvent, Status,
};
use muse_netem::{Conditions, NodeId};
use muse_wire::Duration;

use crate::brawl::{Brawl, Push};
use crate::support::Match;

/// A match of so many players through a server, over a decent network.
fn start(config: MatchConfig, players: usize) -> Match<Brawl> {
    let conditions = Conditions::default()
        .delay(Duration::from_millis(30))
        .loss(0.02);
    let mut game = Match::with_server(5, config.begins_with(players as u8), conditions);
    for _ in 0..players {
        game.join(Brawl::new(5), Role::Player);
    }
    game
}

struct Outcome {
    reports: Vec<(NodeId, Report)>,
    notices: Vec<Notice>,
    mended: usize,
}

/// Plays for so long; `plant` is asked after every millisecond.
fn run(game: &mut Match<Brawl>, seconds: u64, mut plant: impl FnMut(&mut Match<Brawl>)) -> Outcome {
    let mut rng = Rng::new(9);
    let mut outcome = Outcome {
        reports: Vec::new(),
        notices: Vec::new(),
        mended: 0,
    };
    let end = game.simulation.now() + Duration::from_secs(seconds);
    while game.simulation.now() < end {
        game.simulation.run_for(Duration::from_millis(1));
        plant(game);
        for node in game.players.clone() {
            if rng.below(100) == 0 {
                let push = Push::random(&mut rng);
                game.session_mut(node).set_input(push).expect("it is small");
            }
            while let Some(event) = game.session_mut(node).poll_event() {
                match event {
                    SessionEvent::Desynced(report) => outcome.reports.push((node, *report)),
                    SessionEvent::Mended(_) => outcome.mended += 1,
                    _ => {}
                }
            }
        }
        let hub = game.hub;
        let orderer = game
            .simulation
            .node_mut(hub)
            .orderer_mut()
            .expect("it orders");
        outcome
            .notices
            .extend(std::iter::from_fn(|| orderer.poll_notice()));
    }
    outcome
}

/// Breaks one field of one machine's state, once it has run this frame and no rollback will run it again.
fn plant_once(victim: usize, frame: u32) -> impl FnMut(&mut Match<Brawl>) {
    let mut done = false;
    move |game| {
        let node = game.players[victim];
        let session = game.session(node);
        if !done && session.frame().0 == frame + 1 && session.confirmed() > Frame(frame) {
            done = true;
            game.session_mut(node).danger_state_mut().players[3].score += 1;
        }
    }
}

fn desyncs(notices: &[Notice]) -> Vec<(Seat, Frame)> {
    let found = notices.iter().filter_map(|notice| match notice {
        Notice::Desync(seat, frame) => Some((*seat, *frame)),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_planted_difference_is_found_within_ten_frames_and_named_in_lockstep() {
    let mut game = start(MatchConfig::lockstep(4).frame(Duration::from_millis(10)), 4);
    let outcome = run(&mut game, 60, plant_once(2, 700));
    let found = desyncs(&outcome.notices);
    let victim = game.session(game.players[2]).seat().expect("it plays");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, victim);
    assert!(found[0].1.0 <= 710, "found at check {}", found[0].1);
    named(&outcome, &game);
}

#[test]
fn a_planted_difference_is_found_within_ten_frames_and_named_in_rollback() {
    // With delay enough no frame is guessed, so that what is planted stays.
    let mut game = start(MatchConfig::rollback(4).delay(12), 4);
    let outcome = run(&mut game, 30, plant_once(2, 700));
    let found = desyncs(&outcome.notices);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.0 <= 710, "found at check {}", found[0].1);
    named(&outcome, &game);
}

/// Both the machine that differs and the reference have a report, which names the frame and the field; then all is well again.
fn named(outcome: &Outcome, game: &Match<Brawl>) {
    assert_eq!(outcome.reports.len(), 2, "{:?}", outcome.reports);
    for (node, report) in &outcome.reports {
        assert_eq!(report.frame, Some(Frame(700)), "{report}");
        assert_eq!(report.fields[0].path, "players[3].score", "{report}");
        assert_eq!(report.fields.len(), 1, "{report}");
        assert!(report.compared > 400, "{report}");
        let text = report.to_string();
        assert!(
            text.contains("frame 700") && text.contains("players[3].score"),
            "{text}"
        );
        assert!(game.players.contains(node));
    }
    assert_eq!(outcome.mended, 1, "from its own last good state");
    for node in &game.players {
        assert_eq!(game.session(*node).status(), Status::Running);
    }
}

#[test]
fn a_machine_that_cannot_be_mended_is_expelled() {
    let mut game = start(MatchConfig::rollback(4).delay(12), 4);
    let mut next = 300;
    let outcome = run(&mut game, 60, |game| {
        let node = game.players[1];
        let session = game.session_mut(node);
        // It goes wrong again and again.
        if session.frame().0 >= next && session.confirmed() > session.frame() {
            next += 7;
            session.danger_state_mut().time += 1;
        }
    });
    let seat = game.session(game.players[1]).seat().expect("it had one");
    let left = |notice: &Notice| matches!(notice, Notice::Left(who, _, OverReason::Expelled) if *who == seat);
    assert!(outcome.notices.iter().any(left), "{:?}", outcome.notices);
    assert!(
        outcome.mended >= 2,
        "its own state, then the reference's: {}",
        outcome.mended
    );
    assert_eq!(
        game.session(game.players[1]).status(),
        Status::Over(OverReason::Expelled)
    );
    for index in [0, 2, 3] {
        let session = game.session(game.players[index]);
        assert_eq!(session.status(), Status::Running, "the others play on");
    }
}

#[test]
fn a_match_of_two_that_never_agree_ends() {
    let mut game = start(MatchConfig::rollback(2).delay(12), 2);
    let mut next = 300;
    let outcome = run(&mut game, 60, |game| {
        let node = game.players[1];
        let session = game.session_mut(node);
        if session.frame().0 >= next && session.confirmed() > session.frame() {
            next += 7;
            session.danger_state_mut().time += 1;
        }
    });
    assert!(
        outcome.notices.contains(&Notice::Ended),
        "{:?}",
        outcome.notices
    );
    for node in &game.players {
        assert_eq!(
            game.session(*node).status(),
            Status::Over(OverReason::Desync)
        );
    }
}
