//! The strategy game in lockstep: traffic, joining at minute ten, late players, speed control.

use muse_lockstep::samples::rts::{Order, Rts};
use muse_lockstep::{Late, MatchConfig, Rng, Role, Seat, SessionEvent, Status};
use muse_netem::{Conditions, Jitter, NodeId};
use muse_wire::Duration;

use crate::support::{Ledger, Match};

fn decent() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(40))
        .jitter(Jitter::Uniform(Duration::from_millis(15)))
        .loss(0.02)
}

/// A match of eight with so many units each.
fn eight(config: MatchConfig, units_each: usize, conditions: Conditions) -> Match<Rts> {
    let mut game = Match::with_server(11, config, conditions);
    for _ in 0..8 {
        game.join(Rts::new(8, units_each, 4), Role::Player);
    }
    game
}

/// Now and then somebody sends units to the middle.
fn command(game: &mut Match<Rts>, rng: &mut Rng) {
    for node in game.players.clone() {
        // Once a second each: a busy player.
        if rng.below(100) == 0 {
            let mut orders = game.session(node).input().clone();
            let tile = |rng: &mut Rng| rng.below(64) as u8;
            orders.push(Order {
                from: [tile(rng), tile(rng)],
                radius: 40,
                to: [24 + (tile(rng) & 15), 24 + (tile(rng) & 15)],
            });
            game.session_mut(node)
                .set_input(orders)
                .expect("it is small");
        }
    }
}

/// Bytes a second of each player, up and down, and how many units have fallen.
fn traffic(units_each: usize) -> (Vec<f64>, Vec<f64>, usize) {
    let mut game = eight(MatchConfig::lockstep(8), units_each, decent());
    let mut rng = Rng::new(1);
    game.run_secs(5, |game| command(game, &mut rng));
    let read = |game: &Match<Rts>| -> Vec<(u64, u64)> {
        let network = game.simulation.network();
        let bytes = |node: &NodeId| {
            let stats = network.stats(*node);
            (stats.sent.payload_bytes, stats.received.payload_bytes)
        };
        game.players.iter().map(bytes).collect()
    };
    let before = read(&game);
    let mut ledger = Ledger::default();
    game.run_secs(60, |game| {
        command(game, &mut rng);
        ledger.enter(game);
    });
    assert!(ledger.compared > 1_000, "{}", ledger.compared);
    let after = read(&game);
    let rate = |from: u64, to: u64| (to - from) as f64 / 60.0;
    let up = before
        .iter()
        .zip(&after)
        .map(|(a, b)| rate(a.0, b.0))
        .collect();
    let down = before
        .iter()
        .zip(&after)
        .map(|(a, b)| rate(a.1, b.1))
        .collect();
    let state = game.session(game.players[0]).state();
    let fallen = state.units.iter().filter(|unit| unit.health == 0).count();
    (up, down, fallen)
}

#[test]
fn traffic_stays_below_a_kilobyte_and_does_not_depend_on_the_units() {
    let (up_few, down_few, _) = traffic(5);
    let (up, down, fallen) = traffic(50);
    println!("5 units each: up {up_few:.0?} down {down_few:.0?}");
    println!("50 units each: up {up:.0?} down {down:.0?}; {fallen} fell");
    assert!(fallen > 10, "400 units path and fight: {fallen} fell");
    for (few, many) in up_few.iter().chain(&down_few).zip(up.iter().chain(&down)) {
        assert!(*many < 1_000.0, "{many} bytes a second");
        assert!(
            (many - few).abs() < few * 0.1,
            "{few} with 40 units, {many} with 400"
        );
    }
}

#[test]
fn who_joins_at_minute_ten_runs_at_most_sixty_frames() {
    // Rollback at 60 frames a second is the hard case; in lockstep turns are few.
    for config in [
        MatchConfig::rollback(8).begins_with(7).check_every(30),
        MatchConfig::lockstep(8).begins_with(7),
    ] {
        let mut game = Match::with_server(3, config.clone(), decent().loss(0.05));
        for _ in 0..7 {
            game.join(Rts::new(8, 1, 4), Role::Player);
        }
        let mut rng = Rng::new(2);
        game.simulation.run_for(Duration::from_secs(600));
        let mut ledger = Ledger::default();
        let late = game.join(Rts::new(8, 1, 4), Role::Player);
        game.run_secs(10, |game| {
            command(game, &mut rng);
            ledger.enter(game);
        });
        let session = game.session(late);
        assert_eq!(session.status(), Status::Running, "{:?}", config.mode());
        let caught_up = session.statistics().caught_up;
        assert!(
            (1..=60).contains(&caught_up),
            "{caught_up} frames in {:?}",
            config.mode()
        );
        assert!(ledger.compared > 20, "{}", ledger.compared);
        let seat = session.seat().expect("it plays");
        // Inputs are confirmed up to the delay before they are run: a frame that everybody has run.
        let run = |node: &NodeId| {
            game.session(*node)
                .confirmed()
                .min(game.session(*node).frame())
        };
        let frame = game.players.iter().map(run).min().expect("eight play") - 1;
        for node in &game.players {
            let inputs = game.session(*node).inputs_at(frame);
            assert!(
                inputs[usize::from(seat.0)].is_some(),
                "everybody sees it play"
            );
        }
    }
}

#[test]
fn only_the_late_player_suffers_when_its_commands_are_repeated() {
    let after = Duration::from_millis(300);
    let config = MatchConfig::lockstep(8).late(Late::Repeat { after });
    let mut game = eight(config, 5, decent());
    let mut rng = Rng::new(6);
    game.run_secs(10, |game| command(game, &mut rng));
    let stalls =
        |game: &Match<Rts>, index: usize| game.session(game.players[index]).statistics().stalls;
    let before: Vec<u64> = (0..8).map(|index| stalls(&game, index)).collect();
    let frame_before = game.session(game.players[0]).frame();
    let victim = game.players[7];
    game.cut(victim, &decent(), 3);
    let mut ledger = Ledger::default();
    game.run_secs(10, |game| {
        command(game, &mut rng);
        ledger.enter(game);
    });
    let frames = game.session(game.players[0]).frame().since(frame_before);
    assert!(
        frames >= 40,
        "turns of at most 200 ms go on: {frames} in 10 s"
    );
    assert!(game.session(victim).statistics().replaced > 5);
    // A stall is looked at every 20 ms: fifteen looks are the 300 ms that the first late turn costs.
    for (index, before) in before.iter().enumerate().take(7) {
        let more = stalls(&game, index) - before;
        assert!(more < 120, "player {index} waited {more} times");
    }
    assert_eq!(game.session(victim).status(), Status::Running);
    let own = game.session(victim).confirmed().since(frame_before);
    assert!(own + 10 > frames, "the late player has caught up");
}

#[test]
fn a_silent_player_is_waited_for_then_dropped() {
    let config = MatchConfig::lockstep(8).drop_after(Duration::from_secs(6));
    let mut game = eight(config, 5, decent());
    game.run_secs(5, |_| ());
    let gone = game.players[3];
    let seat = game.session(gone).seat().expect("it plays");
    game.simulation.detach(gone);
    game.players.remove(3);
    game.run_secs(3, |_| ());
    let first = game.players[0];
    let waiting = game.session(first).status();
    assert_eq!(
        waiting,
        Status::Waiting { seats: 1 << seat.0 },
        "who is waited for can be shown"
    );
    game.run_secs(2, |_| ());
    assert_eq!(game.session(first).lag(seat), None, "and is silent");
    game.run_secs(3, |_| ());
    assert_eq!(game.session(first).status(), Status::Running);
    let mut events = std::iter::from_fn(|| game.session_mut(first).poll_event());
    assert!(events.any(|event| matches!(event, SessionEvent::Left(who, _) if who == seat)));
    let lag = game.session(first).lag(Seat(0)).expect("it is there");
    assert!(lag > Duration::from_millis(50), "{lag:?}");
}

#[test]
fn turns_follow_the_round_trip_without_swinging() {
    let mut game = eight(MatchConfig::lockstep(8), 5, decent());
    game.run_secs(60, |_| ());
    let near = game.orderer().pace();
    let far = Conditions::default()
        .delay(Duration::from_millis(250))
        .jitter(Jitter::Uniform(Duration::from_millis(60)));
    let node = game.players[5];
    let hub = game.hub;
    game.simulation.network_mut().set_links(node, hub, far);
    game.run_secs(120, |_| ());
    let long = game.orderer().pace();
    assert!(
        long.0 > near.0,
        "{near:?} {long:?}: longer turns for who is far"
    );
    let first = game.players[0];
    let events = std::iter::from_fn(|| game.session_mut(first).poll_event());
    let changes = events
        .filter(|event| matches!(event, SessionEvent::Pace(..)))
        .count();
    assert!(changes <= 5, "{changes} changes in three minutes");
    // A machine that takes 80 ms for a step slows the game for all.
    game.session_mut(node)
        .report_cost(Duration::from_millis(80));
    game.run_secs(10, |_| ());
    assert!(
        game.orderer().pace().1 >= Duration::from_millis(90),
        "{:?}",
        game.orderer().pace()
    );
}

#[test]
fn a_spectator_sees_what_the_players_play() {
    let mut game = eight(MatchConfig::lockstep(8), 5, decent());
    let mut rng = Rng::new(8);
    game.run_secs(20, |game| command(game, &mut rng));
    let spectator = game.join(Rts::new(8, 5, 4), Role::Spectator);
    let mut ledger = Ledger::default();
    game.run_secs(20, |game| {
        command(game, &mut rng);
        ledger.enter(game);
    });
    let session = game.session(spectator);
    assert_eq!((session.status(), session.seat()), (Status::Running, None));
    let behind = game.orderer().sealed().since(session.frame());
    assert!(behind <= 8, "{behind} turns behind");
    assert!(ledger.compared > 300, "{}", ledger.compared);
}
