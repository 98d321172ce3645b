//! Loss, duplicates, reordering, cuts, killed connections, and players who come back.

use muse::deterministic::{MATCH_PROTOCOL, MatchEvent};
use muse::drivers::{Driver, memory_pair};
use muse::lockstep::samples::duel::{Buttons, Duel};
use muse::lockstep::samples::rts::{Order, Rts};
use muse::lockstep::{Frame, MatchConfig, OverReason, Rng, Seat, Status};
use muse::token::{TokenGrant, TokenIssuer, TokenVerifier};
use muse::transport::SeededEntropy;
use muse::wire::Machine;
use muse::{Connect, Duration, Instant};
use muse_netem::{Conditions, Jitter};

use crate::support::{Ledger, Match, UNIX_S, address};

fn bad_network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(40))
        .jitter(Jitter::Uniform(Duration::from_millis(15)))
        .loss(0.05)
        .duplicate(0.05, Duration::from_millis(20))
        .reorder(0.05, Duration::from_millis(30))
}

fn good_network() -> Conditions {
    Conditions::default().delay(Duration::from_millis(20))
}

fn buttons(rng: &mut Rng) -> Buttons {
    Buttons::from_bits(rng.next() as u8)
}

fn orders(rng: &mut Rng) -> Vec<Order> {
    let [from, to] = [(); 2].map(|()| [(); 2].map(|()| rng.below(64) as u8));
    let order = Order {
        from,
        radius: 16,
        to,
    };
    if rng.below(4) == 0 {
        vec![order]
    } else {
        Vec::new()
    }
}

fn duel(seed: u64, conditions: Conditions) -> Match<Duel> {
    let config = MatchConfig::rollback(2);
    Match::new(
        seed,
        config,
        conditions,
        Some(Duel::new(1)),
        buttons,
        |options| options,
    )
}

#[test]
fn a_duel_is_the_same_on_both_machines_and_nothing_of_it_is_readable() {
    for seed in 1..=6 {
        let mut game = duel(seed * 100, bad_network());
        let guest = game.join(Duel::new(1));
        let mut ledger = Ledger::default();
        game.run(20, &mut ledger);
        assert!(ledger.compared > 5_000, "seed {seed}: {}", ledger.compared);
        for node in game.nodes.clone() {
            let session = game.session(node);
            assert_eq!(session.status(), Status::Running, "seed {seed}");
            assert!(
                session.frame() > Frame(1_000),
                "seed {seed}: {}",
                session.frame()
            );
            let node = game.simulation.node(node);
            assert!(!node.leaked, "seed {seed}: a packet was not encrypted");
            let confirmed = node.events.iter();
            let confirmed = confirmed.filter(|event| matches!(event, MatchEvent::Confirmed(..)));
            assert!(confirmed.count() > 0, "seed {seed}: bots hit each other");
        }
        assert!(
            game.session(guest).statistics().rollbacks > 20,
            "guesses were wrong"
        );
    }
}

#[test]
fn a_strategy_game_through_a_server_is_the_same_on_all_machines() {
    let config = MatchConfig::lockstep(4);
    let mut game = Match::new(7, config, bad_network(), None, orders, |options| options);
    for _ in 0..4 {
        game.join(Rts::new(4, 20, 1));
    }
    let mut ledger = Ledger::default();
    game.run(30, &mut ledger);
    assert!(ledger.compared > 200, "{}", ledger.compared);
    let server = game.simulation.node(game.nodes[0]);
    assert!(
        server.events.contains(&MatchEvent::Begun(Frame(0))),
        "{:?}",
        server.events
    );
    let orderer = server.participant.orderer().expect("it orders");
    assert!(orderer.sealed() > Frame(50), "{}", orderer.sealed());
}

#[test]
fn a_player_who_leaves_is_gone_at_once() {
    let mut game = duel(9, good_network());
    let guest = game.join(Duel::new(1));
    game.run(3, &mut Ledger::default());
    game.simulation.detach(guest);
    let now = game.simulation.now();
    let host = game.simulation.node_mut(game.nodes[0]);
    let connection = host.endpoint.connections().next().expect("the guest's");
    // As the driver does when a program ends; the peer's goodbye would have the same effect.
    host.endpoint.close(now, connection, 0, "");
    game.nodes.pop();
    game.run(1, &mut Ledger::default());
    let host = game.simulation.node(game.nodes[0]);
    let left = |event: &MatchEvent<_>| matches!(event, MatchEvent::Left(Seat(1), _));
    assert!(host.events.iter().any(left), "{:?}", host.events);
    assert_eq!(
        game.session(game.nodes[0]).status(),
        Status::Running,
        "it goes on"
    );
}

/// Plays, is cut off for so long, and is back in its seat in the end.
fn cut_off_and_back(seconds: u64) -> Match<Duel> {
    let mut game = duel(11, good_network());
    let guest = game.join(Duel::new(1));
    let mut ledger = Ledger::default();
    game.run(5, &mut ledger);
    assert_eq!(game.session(guest).seat(), Some(Seat(1)));
    game.cut(guest, &good_network(), seconds);
    let shown = |game: &Match<Duel>| {
        let state = game.simulation.node(guest).participant.state();
        state.expect("it plays").time
    };
    game.run(seconds - 1, &mut ledger);
    assert!(
        shown(&game) > 250,
        "the last state is shown: {}",
        shown(&game)
    );
    game.run(1, &mut ledger);
    let compared = ledger.compared;
    game.run(15, &mut ledger);
    assert!(ledger.compared > compared + 5_000, "both play again");
    assert_eq!(game.session(guest).seat(), Some(Seat(1)));
    assert_eq!(game.session(guest).status(), Status::Running);
    let events = &game.simulation.node(guest).events;
    let begun = events
        .iter()
        .filter(|event| matches!(event, MatchEvent::Begun(_)));
    assert_eq!(begun.count(), 2, "{events:?}");
    let interrupted = events
        .iter()
        .filter(|event| **event == MatchEvent::Interrupted);
    assert_eq!(interrupted.count(), 1, "{events:?}");
    game
}

#[test]
fn a_player_who_was_dropped_comes_back_over_the_same_connection() {
    let game = cut_off_and_back(13);
    let guest = game.simulation.node(game.nodes[1]);
    assert_eq!(guest.endpoint.connections().count(), 1);
}

#[test]
fn a_player_whose_connection_was_lost_comes_back_over_another() {
    let game = cut_off_and_back(24);
    let host = game.simulation.node(game.nodes[0]);
    assert_eq!(
        host.endpoint.connections().count(),
        1,
        "the old one is gone"
    );
}

#[test]
fn who_cannot_come_back_is_told() {
    let mut game = duel(13, good_network());
    let guest = game.join(Duel::new(1));
    game.run(3, &mut Ledger::default());
    game.cut(guest, &good_network(), 120);
    game.run(80, &mut Ledger::default());
    let guest = game.simulation.node(guest);
    assert_eq!(guest.events.last(), Some(&MatchEvent::Lost));
    assert!(guest.participant.is_over() && !guest.participant.wants_connection());
}

#[test]
fn an_account_that_comes_back_gets_its_seat_while_its_old_connection_still_stands() {
    let mut entropy = SeededEntropy::danger_seeded(99);
    let issuer = TokenIssuer::generate(MATCH_PROTOCOL, 1, &mut entropy);
    let mut verifier = TokenVerifier::new();
    verifier
        .add_key(issuer.key_id(), &issuer.public_key())
        .expect("a public key");
    let config = MatchConfig::rollback(3).begins_with(2);
    let mut game = Match::new(17, config, good_network(), None, buttons, |options| {
        options.tokens(verifier)
    });
    let server_key = game.key.public();
    let mut ticket = |account: u64| {
        let grant = TokenGrant::new(account, server_key, address(1)).lifetime_s(600);
        Connect::token(
            issuer
                .issue(&grant, UNIX_S, &mut entropy)
                .expect("a small grant"),
        )
    };
    let first = game.join_with(Duel::new(1), ticket(70));
    game.run(1, &mut Ledger::default());
    game.join_with(Duel::new(1), ticket(71));
    let mut ledger = Ledger::default();
    game.run(4, &mut ledger);
    assert_eq!(game.session(first).seat(), Some(Seat(0)));
    // The machine dies without a word and is started again at once.
    game.simulation.detach(first);
    let how = ticket(70);
    let again = game.guest(Duel::new(1), how);
    game.simulation.attach(first, again);
    game.run(6, &mut ledger);
    assert_eq!(
        game.session(first).seat(),
        Some(Seat(0)),
        "its own, not the free third one"
    );
    assert_eq!(game.session(first).status(), Status::Running);
    let events = &game.simulation.node(game.nodes[0]).events;
    let left = events
        .iter()
        .filter(|event| matches!(event, MatchEvent::Left(Seat(0), _)));
    assert_eq!(left.count(), 1, "{events:?}");
}

#[test]
fn when_the_host_ends_the_match_everybody_is_told() {
    let mut game = duel(19, good_network());
    let guest = game.join(Duel::new(1));
    game.run(2, &mut Ledger::default());
    let host = game.simulation.node_mut(game.nodes[0]);
    host.participant.orderer_mut().expect("it orders").end();
    game.simulation.wake(game.nodes[0]);
    game.run(1, &mut Ledger::default());
    for node in [game.nodes[0], guest] {
        let node = game.simulation.node(node);
        assert_eq!(
            node.events.last(),
            Some(&MatchEvent::Over(OverReason::Over))
        );
        assert!(node.participant.is_over());
    }
}

#[test]
fn a_difference_is_named_to_both() {
    let mut game = duel(23, good_network());
    let guest = game.join(Duel::new(1));
    game.run(3, &mut Ledger::default());
    let session = game.simulation.node_mut(guest).participant.session_mut();
    session.expect("it plays").danger_state_mut().fighters[0].at[0] += 1;
    game.simulation.run_for(Duration::from_secs(5));
    for node in game.nodes.clone() {
        let mut reports =
            game.simulation
                .node(node)
                .events
                .iter()
                .filter_map(|event| match event {
                    MatchEvent::Desynced(report) => Some(report),
                    _ => None,
                });
        let report = reports.next().expect("a report");
        assert!(
            report.fields[0].path.starts_with("fighters[0].at"),
            "{report}"
        );
    }
    assert_eq!(
        game.session(guest).status(),
        Status::Running,
        "it was mended"
    );
}

#[test]
fn a_host_that_was_suspended_keeps_its_own_seat() {
    let config = MatchConfig::rollback(2).begins_with(1);
    let mut game = Match::new(
        29,
        config,
        good_network(),
        Some(Duel::new(1)),
        buttons,
        |options| options,
    );
    game.run(2, &mut Ledger::default());
    let before = game.session(game.nodes[0]).frame();
    let later = game.simulation.now() + Duration::from_secs(100);
    // Nothing runs for 100 s, as when a laptop is closed.
    let node = game.simulation.node_mut(game.nodes[0]);
    for millis in 0..1_000 {
        node.handle_timeout(later + Duration::from_millis(millis));
    }
    let session = node.participant.session().expect("it plays");
    assert_eq!(session.status(), Status::Running);
    assert!(session.frame() > before + 40, "{}", session.frame());
    let left = |event: &MatchEvent<_>| matches!(event, MatchEvent::Left(..));
    assert!(!node.events.iter().any(left), "{:?}", node.events);
}

#[test]
fn who_leaves_does_not_come_back_by_itself() {
    let mut game = duel(43, good_network());
    let guest = game.join(Duel::new(1));
    game.run(2, &mut Ledger::default());
    game.simulation.node_mut(guest).participant.leave();
    game.simulation.wake(guest);
    game.run(3, &mut Ledger::default());
    assert!(game.simulation.node(guest).participant.is_over());
    let events = &game.simulation.node(game.nodes[0]).events;
    let joined = events
        .iter()
        .filter(|event| matches!(event, MatchEvent::Joined(Seat(1), _)));
    assert_eq!(joined.count(), 1, "{events:?}");
    let left = |event: &MatchEvent<_>| matches!(event, MatchEvent::Left(Seat(1), _));
    assert!(events.iter().any(left), "{events:?}");
}

#[test]
fn a_duel_within_one_process_needs_no_network() {
    let mut game = duel(47, good_network());
    let how = Connect::pinned(game.key.public());
    let mut guest = game.guest(Duel::new(1), how);
    let host = game.simulation.detach(game.nodes[0]);
    let mut host = host.expect("it was there");
    let (mut at_host, mut at_guest) = memory_pair(address(1), address(2));
    for millis in 0..6_000 {
        let now = Instant::from_millis(millis);
        at_host.poll(now, &mut host).expect("memory does not fail");
        at_guest
            .poll(now, &mut guest)
            .expect("memory does not fail");
    }
    let sessions = [&host, &guest].map(|node| node.participant.session().expect("it plays"));
    for session in sessions {
        assert_eq!(session.status(), Status::Running);
        assert!(session.confirmed() > Frame(250), "{}", session.confirmed());
    }
    let [here, there] = sessions.map(|session| session.state_at(Frame(240)).copied());
    assert!(here.is_some() && here == there, "{here:?} {there:?}");
}
