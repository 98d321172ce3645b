//! The life of a match, step by step.

use super::*;
use crate::ticket::Member;
use muse_master_client::messages::{Phase, PlayerResult};

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn ticket(n: u64) -> Ticket {
    Ticket {
        id: TicketId(n),
        party: vec![Member {
            account: AccountId(n),
            rating: 1_500.0,
        }],
        preferences: Preferences::default(),
        since: at(0),
        attempts: 0,
    }
}

fn actions(director: &mut Director) -> Vec<Action> {
    std::iter::from_fn(|| director.poll_action()).collect()
}

fn report(match_id: MatchId, phase: Phase, present: &[u64]) -> Report {
    Report {
        match_id: Some(match_id),
        phase,
        seated: vec![AccountId(1), AccountId(2)],
        present: present.iter().map(|&n| AccountId(n)).collect(),
        ..Report::default()
    }
}

/// Two players are matched at 1 s; the match is stored.
fn created() -> (Director, MatchId) {
    let mut director = Director::new(DirectorConfig::default(), 3);
    director.handle_ticket(at(0), ticket(1));
    director.handle_ticket(at(0), ticket(2));
    director.handle_timeout(at(1));
    let Some(Action::CreateMatch(new)) = director.poll_action() else {
        unreachable!("two players wait");
    };
    assert_eq!(new.match_id.0 >> 32, 3);
    director.handle_created(at(1), new.match_id);
    (director, new.match_id)
}

/// And placed on server 7, whose players may come.
fn admitted() -> (Director, MatchId) {
    let (mut director, id) = created();
    let done = actions(&mut director);
    assert!(matches!(done.last(), Some(Action::Place(place)) if place.match_id == id));
    director.handle_placed(at(1), id, ServerId(7));
    director.handle_timeout(at(2));
    director.handle_report(at(2), ServerId(7), &report(id, Phase::Connecting, &[]));
    let done = actions(&mut director);
    assert!(
        done.iter()
            .any(|action| matches!(action, Action::Admit { players, .. } if players.len() == 2))
    );
    (director, id)
}

fn running() -> (Director, MatchId) {
    let (mut director, id) = admitted();
    director.handle_report(at(3), ServerId(7), &report(id, Phase::Loading, &[1, 2]));
    director.handle_timeout(at(4));
    director.handle_report(at(4), ServerId(7), &report(id, Phase::Running, &[1, 2]));
    assert!(actions(&mut director).contains(&Action::RecordRunning { match_id: id }));
    (director, id)
}

fn ending(director: &mut Director) -> Option<Ending> {
    actions(director)
        .into_iter()
        .find_map(|action| match action {
            Action::EndMatch(ending) => Some(ending),
            _ => None,
        })
}

fn result(match_id: MatchId) -> MatchResult {
    let player = |n, points| PlayerResult {
        account: AccountId(n),
        points,
        team: None,
    };
    MatchResult {
        match_id,
        outcome: Outcome::Finished,
        players: vec![player(1, 10), player(2, 20)],
    }
}

#[test]
fn a_result_ends_the_match_once_and_frees_the_server() {
    let (mut director, id) = running();
    director.handle_result(at(60), ServerId(7), result(id));
    director.handle_result(at(60), ServerId(7), result(id));
    let done = actions(&mut director);
    let endings = done
        .iter()
        .filter(|action| matches!(action, Action::EndMatch(_)));
    assert_eq!(endings.count(), 1);
    director.handle_ended(at(60), id, Vec::new());
    let done = actions(&mut director);
    assert!(done.contains(&Action::ReleaseServer(ServerId(7))));
    assert_eq!(director.matches(), 0);
    // Late: nothing but a confirmation, as soon as it is certain that the match is nobody else's.
    director.handle_result(at(90), ServerId(7), result(id));
    director.handle_led(at(90));
    assert_eq!(actions(&mut director), []);
    director.handle_led(at(91));
    let confirmed = Action::ConfirmResult {
        server: ServerId(7),
        match_id: id,
    };
    assert_eq!(actions(&mut director), [confirmed]);
}

fn refused(director: &mut Director) -> (Vec<ServerRefusal>, Vec<Outcome>) {
    let (mut refusals, mut endings) = (Vec::new(), Vec::new());
    for action in actions(director) {
        match action {
            Action::RefuseResult { refusal, .. } => refusals.push(refusal),
            Action::EndMatch(ending) => {
                assert_eq!(ending.result, None);
                endings.push(ending.outcome);
            }
            Action::ConfirmResult { .. } => unreachable!("a lie is not confirmed"),
            _ => {}
        }
    }
    (refusals, endings)
}

#[test]
fn a_result_that_names_a_stranger_or_somebody_twice_is_refused_and_nothing_counts() {
    let account = AccountId(9);
    let stranger = (9, ServerRefusal::NoSeat { account });
    let account = AccountId(1);
    let twice = (1, ServerRefusal::NamedTwice { account });
    for (named, refusal) in [stranger, twice] {
        let (mut director, id) = running();
        let mut forged = result(id);
        forged.players.push(PlayerResult {
            account: AccountId(named),
            points: 1_000,
            team: None,
        });
        director.handle_result(at(60), ServerId(7), forged.clone());
        let expected = (vec![refusal], vec![Outcome::Aborted]);
        assert_eq!(refused(&mut director), expected);
        // Once and for all: an honest one comes too late.
        director.handle_result(at(61), ServerId(7), result(id));
        assert_eq!(refused(&mut director), (Vec::new(), Vec::new()));
    }
}

#[test]
fn a_result_of_another_servers_match_is_refused_and_that_match_goes_on() {
    let (mut director, match_id) = running();
    director.handle_result(at(60), ServerId(8), result(match_id));
    let refusal = ServerRefusal::OtherMatch { match_id };
    assert_eq!(refused(&mut director), (vec![refusal], Vec::new()));
    director.handle_result_refused(at(60), ServerId(8), match_id);
    assert_eq!(refused(&mut director), (Vec::new(), Vec::new()));
    director.handle_result(at(61), ServerId(7), result(match_id));
    let ending = ending(&mut director).expect("its own server's");
    assert_eq!(ending.outcome, Outcome::Finished);
}

#[test]
fn a_result_that_a_master_refused_ends_its_match_without_one() {
    let (mut director, match_id) = running();
    director.handle_result_refused(at(60), ServerId(7), match_id);
    assert_eq!(refused(&mut director), (Vec::new(), vec![Outcome::Aborted]));
}

#[test]
fn a_result_may_name_those_who_left_also_after_a_change_of_leaders() {
    let (mut director, id) = running();
    director.handle_seat_left(id, AccountId(2));
    director.handle_result(at(60), ServerId(7), result(id));
    let ended = ending(&mut director).expect("both had a seat");
    assert_eq!(ended.outcome, Outcome::Finished);
    let mut next = Director::new(DirectorConfig::default(), 4);
    let stored = StoredMatch {
        match_id: id,
        preferences: Preferences::default(),
        bots: 0,
        players: vec![AccountId(1)],
        left: vec![AccountId(2)],
        server: Some(ServerId(7)),
        running: true,
    };
    next.restore(at(100), Vec::new(), vec![stored]);
    next.handle_result(at(101), ServerId(7), result(id));
    let ended = ending(&mut next).expect("both had a seat");
    assert_eq!(ended.outcome, Outcome::Finished);
}

#[test]
fn a_new_leader_takes_a_result_of_a_match_that_it_did_not_see_begin() {
    let mut director = Director::new(DirectorConfig::default(), 2);
    let stored = StoredMatch {
        match_id: MatchId(1),
        preferences: Preferences::default(),
        bots: 0,
        players: vec![AccountId(1), AccountId(2)],
        left: Vec::new(),
        server: Some(ServerId(7)),
        running: false,
    };
    director.restore(at(100), Vec::new(), vec![stored]);
    director.handle_result(at(101), ServerId(7), result(MatchId(1)));
    let ending = ending(&mut director).expect("the server is the match's");
    assert_eq!(ending.outcome, Outcome::Finished);
    assert!(ending.result.is_some());
}

#[test]
fn who_did_not_connect_leaves_and_who_did_waits_on() {
    let (mut director, id) = admitted();
    for second in 3..=14 {
        director.handle_report(
            at(second),
            ServerId(7),
            &report(id, Phase::Connecting, &[2]),
        );
        director.handle_timeout(at(second));
    }
    let ending = ending(&mut director).expect("12 seconds have passed");
    assert_eq!(ending.outcome, Outcome::Cancelled);
    let back: Vec<TicketId> = ending.requeue.iter().map(|ticket| ticket.id).collect();
    assert_eq!(back, [TicketId(2)]);
    assert_eq!(ending.requeue[0].since, at(0));
    director.handle_ended(at(14), id, ending.requeue);
    assert_eq!(director.queued(), 1);
}

/// Ticks each second, as the director asks for, and finds the end of a match.
fn ended_within(
    director: &mut Director,
    seconds: std::ops::RangeInclusive<u64>,
) -> Option<(u64, Ending)> {
    seconds.into_iter().find_map(|second| {
        director.handle_timeout(at(second));
        Some((second, ending(director)?))
    })
}

#[test]
fn a_silent_server_aborts_its_match_after_ten_seconds() {
    let (mut director, _) = running();
    let (second, ending) = ended_within(&mut director, 5..=60).expect("silent since 4 s");
    assert_eq!(second, 14);
    assert_eq!((ending.outcome, ending.result), (Outcome::Aborted, None));
}

#[test]
fn a_silent_servers_match_is_not_called_off_because_nobody_heard_that_it_has_begun() {
    let (mut director, id) = admitted();
    let say = |director: &mut Director, second, phase| {
        director.handle_report(at(second), ServerId(7), &report(id, phase, &[1, 2]));
    };
    for second in 3..=9 {
        say(&mut director, second, Phase::Connecting);
        director.handle_timeout(at(second));
    }
    // Its players would have to be there by 14 s. It has lost its master meanwhile, and comes to another one.
    assert_eq!(ended_within(&mut director, 10..=15), None);
    say(&mut director, 16, Phase::Running);
    director.handle_timeout(at(16));
    assert_eq!(ending(&mut director), None);
    let (second, ending) = ended_within(&mut director, 17..=60).expect("silent since 16 s");
    assert_eq!((second, ending.outcome), (26, Outcome::Aborted));
}

#[test]
fn a_server_that_has_a_match_gets_no_other_and_goes_on_with_it() {
    let (mut director, id) = running();
    for n in [3, 4] {
        director.handle_ticket(at(4), ticket(n));
    }
    director.handle_timeout(at(5));
    let made = actions(&mut director).into_iter().find_map(|it| match it {
        Action::CreateMatch(new) => Some(new.match_id),
        _ => None,
    });
    let second = made.expect("two more wait");
    director.handle_created(at(5), second);
    actions(&mut director);
    // The server got its match at another master; its own one takes it for free when it comes back.
    director.handle_placed(at(5), second, ServerId(7));
    assert_eq!(actions(&mut director), []);
    director.handle_report(at(6), ServerId(7), &report(id, Phase::Running, &[1, 2]));
    director.handle_timeout(at(6));
    let asked = actions(&mut director);
    assert!(matches!(asked.as_slice(), [Action::Place(place)] if place.match_id == second));
    director.handle_placed(at(6), second, ServerId(8));
    director.handle_result(at(7), ServerId(7), result(id));
    let ending = ending(&mut director).expect("the first match is over");
    assert_eq!((ending.match_id, ending.outcome), (id, Outcome::Finished));
}

#[test]
fn a_pause_of_the_leader_is_no_silence_of_a_server() {
    for pause in [12, 3_600] {
        let (mut director, id) = running();
        assert_eq!(ended_within(&mut director, 5..=6), None);
        // What the server said meanwhile is read only after the first tick.
        let resumed = 6 + pause;
        director.handle_timeout(at(resumed));
        assert_eq!(ending(&mut director), None, "{pause} s");
        for second in resumed + 1..resumed + 60 {
            director.handle_report(
                at(second),
                ServerId(7),
                &report(id, Phase::Running, &[1, 2]),
            );
            director.handle_timeout(at(second));
        }
        assert_eq!(ending(&mut director), None, "{pause} s");
    }
}

#[test]
fn a_server_that_is_silent_after_a_pause_is_lost_in_the_usual_time() {
    for pause in [12, 3_600] {
        let (mut director, _) = running();
        assert_eq!(ended_within(&mut director, 5..=6), None);
        let resumed = 6 + pause;
        let ended = ended_within(&mut director, resumed..=resumed + 60);
        let (second, ending) = ended.expect("silent");
        assert_eq!((second, ending.outcome), (resumed + 10, Outcome::Aborted));
    }
}

#[test]
fn a_pause_of_the_leader_costs_nobody_their_time_to_connect() {
    let (mut director, id) = admitted();
    let connecting = report(id, Phase::Connecting, &[2]);
    let mut now = 2;
    let mut step = |director: &mut Director, by: u64| {
        now += by;
        director.handle_timeout(at(now));
        director.handle_report(at(now), ServerId(7), &connecting);
        ending(director).map(|ending| ending.outcome)
    };
    assert_eq!(step(&mut director, 1), None);
    assert_eq!(step(&mut director, 100), None);
    // Of its 12 seconds 11 are left.
    let ended = (1..60).find_map(|second| Some((second, step(&mut director, 1)?)));
    assert_eq!(ended, Some((11, Outcome::Cancelled)));
}

#[test]
fn a_pause_of_the_leader_keeps_the_places_of_those_who_were_away() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    director.handle_ticket(at(0), ticket(1));
    director.handle_away(at(0), AccountId(1));
    director.handle_timeout(at(1));
    director.handle_timeout(at(3_601));
    assert_eq!(director.queued(), 1);
    for second in 3_602..=3_631 {
        assert_eq!(director.queued(), 1);
        director.handle_timeout(at(second));
    }
    assert_eq!(director.queued(), 0);
}

#[test]
fn an_idle_leader_asks_for_no_ticks() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    director.handle_timeout(at(1));
    assert_eq!(director.poll_timeout(), None);
    director.handle_ticket(at(5_000), ticket(1));
    director.handle_timeout(at(5_000));
    assert!(
        director
            .poll_timeout()
            .is_some_and(|at| at <= Instant::from_secs(5_001))
    );
}

#[test]
fn a_lost_server_aborts_at_once() {
    let (mut director, _) = running();
    director.handle_server_gone(at(5), ServerId(7));
    assert_eq!(
        ending(&mut director).map(|ending| ending.outcome),
        Some(Outcome::Aborted)
    );
}

#[test]
fn without_a_server_it_is_asked_for_again_and_then_the_players_wait_on() {
    let (mut director, id) = created();
    director.handle_ticket(at(1), ticket(3));
    director.handle_ticket(at(1), ticket(4));
    let mut asked = 0;
    let mut called_off = None;
    for second in 1..=11 {
        director.handle_timeout(at(second));
        for action in actions(&mut director) {
            match action {
                Action::Place(_) => {
                    asked += 1;
                    director.handle_not_placed(at(second), id, NoServer::Failed);
                }
                Action::CreateMatch(_) => unreachable!("no server comes up"),
                Action::EndMatch(ending) => called_off = Some((second, ending)),
                _ => {}
            }
        }
    }
    let (second, ending) = called_off.expect("10 seconds have passed");
    assert_eq!((second, asked, ending.requeue.len()), (11, 10, 2));
    assert_eq!(ending.requeue[0].attempts, 1);
}

/// A fleet that answers every match in the same way, for so many seconds. How often it was asked, and who found a server.
fn ask_fleet(
    director: &mut Director,
    seconds: std::ops::RangeInclusive<u64>,
    answer: Result<ServerId, NoServer>,
) -> (usize, Vec<AccountId>, Vec<FromMaster>) {
    let (mut asked, mut placed, mut told) = (0, Vec::new(), Vec::new());
    for second in seconds {
        let now = at(second);
        director.handle_timeout(now);
        while let Some(action) = director.poll_action() {
            match action {
                Action::CreateMatch(new) => director.handle_created(now, new.match_id),
                Action::Place(placement) => {
                    asked += 1;
                    match answer {
                        Ok(server) => {
                            placed.extend(placement.players);
                            director.handle_placed(now, placement.match_id, server);
                        }
                        Err(why) => director.handle_not_placed(now, placement.match_id, why),
                    }
                }
                Action::EndMatch(ending) => {
                    director.handle_ended(now, ending.match_id, ending.requeue);
                }
                Action::Tell(AccountId(1), message) => told.push(message),
                _ => {}
            }
        }
    }
    (asked, placed, told)
}

#[test]
fn a_full_fleet_expels_nobody_and_who_waits_longest_plays_first() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    for n in 1..=6 {
        let since = at(n / 3);
        director.handle_ticket(since, Ticket { since, ..ticket(n) });
    }
    let full = Err(NoServer::Full);
    let (asked, _, told) = ask_fleet(&mut director, 1..=600, full);
    assert_eq!((director.queued(), director.matches()), (6, 0));
    // Less and less often, and without a word about matches that come to nothing, after the first.
    assert!((20..60).contains(&asked), "{asked}");
    let found = |message: &&FromMaster| matches!(message, FromMaster::MatchFound { .. });
    assert_eq!(told.iter().filter(found).count(), 1, "{told:?}");
    let state = director.queue_state(at(600), AccountId(1)).expect("queued");
    assert_eq!(state.waited_ms, 600_000);
    // One server is free.
    let placed = (601..=616).find_map(|second| {
        let (_, placed, told) = ask_fleet(&mut director, second..=second, Ok(ServerId(7)));
        (!placed.is_empty()).then_some((placed, told))
    });
    let (placed, told) = placed.expect("it is asked for each 16 seconds at least");
    assert_eq!(placed, [AccountId(1), AccountId(2)]);
    assert_eq!(told.iter().filter(found).count(), 1, "{told:?}");
    assert_eq!(director.queued(), 4);
}

#[test]
fn a_fleet_that_fails_gives_up_after_three_attempts() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    director.handle_ticket(at(0), ticket(1));
    director.handle_ticket(at(0), ticket(2));
    ask_fleet(&mut director, 1..=120, Err(NoServer::Failed));
    assert_eq!((director.queued(), director.matches()), (0, 0));
}

#[test]
fn no_more_matches_are_made_than_the_fleet_has_room_for() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    for n in 1..=6 {
        director.handle_ticket(at(0), ticket(n));
    }
    director.handle_room(0);
    assert_eq!(ask_fleet(&mut director, 1..=600, Ok(ServerId(7))).0, 0);
    director.handle_room(1);
    director.handle_timeout(at(601));
    let made = |action: &Action| matches!(action, Action::CreateMatch(_));
    assert_eq!(actions(&mut director).into_iter().filter(made).count(), 1);
    // It still looks for a server: the room is taken.
    director.handle_timeout(at(602));
    assert_eq!(actions(&mut director).into_iter().filter(made).count(), 0);
    assert_eq!(director.queued(), 4);
}

#[test]
fn open_seats_are_filled_while_the_fleet_is_full() {
    let (mut director, id) = running();
    director.handle_room(0);
    let mut open = report(id, Phase::Running, &[1]);
    open.left = vec![AccountId(2)];
    open.seated = vec![AccountId(1)];
    open.open_seats = 1;
    director.handle_report(at(5), ServerId(7), &open);
    director.handle_ticket(at(5), ticket(3));
    director.handle_timeout(at(5));
    let filled = |action: &Action| matches!(action, Action::FillSeats(_));
    assert!(actions(&mut director).iter().any(filled));
}

#[test]
fn a_match_of_an_earlier_leader_waits_for_room_too() {
    let stored = StoredMatch {
        match_id: MatchId(1),
        preferences: Preferences::default(),
        bots: 0,
        players: vec![AccountId(1), AccountId(2)],
        left: Vec::new(),
        server: None,
        running: false,
    };
    let mut director = Director::new(DirectorConfig::default(), 2);
    director.restore(at(0), Vec::new(), vec![stored]);
    let (asked, ..) = ask_fleet(&mut director, 1..=600, Err(NoServer::Full));
    assert!((20..60).contains(&asked), "{asked}");
    let (_, placed, _) = ask_fleet(&mut director, 601..=620, Ok(ServerId(7)));
    assert_eq!(placed, [AccountId(1), AccountId(2)]);
}

#[test]
fn a_refused_match_gives_back_the_tickets_that_are_left() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    director.handle_ticket(at(0), ticket(1));
    director.handle_ticket(at(0), ticket(2));
    director.handle_timeout(at(1));
    let Some(Action::CreateMatch(new)) = director.poll_action() else {
        unreachable!("two players wait");
    };
    director.handle_refused(at(1), new.match_id, &[TicketId(1)]);
    assert_eq!((director.queued(), director.matches()), (1, 0));
}

#[test]
fn a_new_leader_goes_on_with_running_matches_and_places_the_others() {
    let stored = |n: u64, server: Option<u64>, running| StoredMatch {
        match_id: MatchId(n),
        preferences: Preferences::default(),
        bots: 0,
        players: vec![AccountId(n)],
        left: Vec::new(),
        server: server.map(ServerId),
        running,
    };
    let mut director = Director::new(DirectorConfig::default(), 2);
    let matches = vec![
        stored(1, Some(7), true),
        stored(2, None, false),
        stored(3, Some(9), true),
    ];
    director.restore(at(100), vec![ticket(50), ticket(51)], matches);
    // Players of restored tickets are not matched before they are back.
    director.handle_timeout(at(100));
    let done = actions(&mut director);
    assert!(
        matches!(&done[..], [Action::Place(place)] if place.match_id == MatchId(2)),
        "{done:?}"
    );
    // Server 9 never answers; server 8 was started for match 2 by the last leader, server 6 belongs to nobody.
    director.handle_report(
        at(101),
        ServerId(7),
        &report(MatchId(1), Phase::Running, &[1]),
    );
    director.handle_report(
        at(101),
        ServerId(8),
        &report(MatchId(2), Phase::Connecting, &[]),
    );
    let fleet = [
        (ServerId(6), MatchId(77)),
        (ServerId(7), MatchId(1)),
        (ServerId(8), MatchId(2)),
    ];
    director.handle_fleet(at(101), &fleet);
    director.handle_fleet(at(102), &fleet);
    director.handle_placed(at(102), MatchId(2), ServerId(10));
    director.handle_led(at(103));
    let done = actions(&mut director);
    let released: Vec<&Action> = done
        .iter()
        .filter(|action| matches!(action, Action::ReleaseServer(_)))
        .collect();
    assert_eq!(
        released,
        [
            &Action::ReleaseServer(ServerId(6)),
            &Action::ReleaseServer(ServerId(10))
        ]
    );
    director.handle_report(
        at(109),
        ServerId(7),
        &report(MatchId(1), Phase::Running, &[1]),
    );
    director.handle_report(
        at(109),
        ServerId(8),
        &report(MatchId(2), Phase::Connecting, &[]),
    );
    let (second, ended) = ended_within(&mut director, 101..=110).expect("match 3 is silent");
    assert_eq!((second, ended.match_id), (110, MatchId(3)));
}

#[test]
fn a_seat_that_is_given_up_is_offered_and_never_twice() {
    let (mut director, id) = running();
    let mut open = report(id, Phase::Running, &[1]);
    open.left = vec![AccountId(2)];
    open.seated = vec![AccountId(1)];
    open.open_seats = 1;
    director.handle_report(at(10), ServerId(7), &open);
    let freed = Action::FreeSeat {
        match_id: id,
        account: AccountId(2),
    };
    assert!(actions(&mut director).contains(&freed));
    director.handle_ticket(at(11), ticket(3));
    director.handle_ticket(at(12), ticket(4));
    director.handle_timeout(at(12));
    // The server does not know it yet and says again that the seat is open, before and after the transaction.
    director.handle_report(at(13), ServerId(7), &open);
    director.handle_timeout(at(13));
    director.handle_filled(id, &ticket(3));
    director.handle_report(at(14), ServerId(7), &open);
    director.handle_timeout(at(14));
    let done = actions(&mut director);
    let filled: Vec<&Action> = done
        .iter()
        .filter(|action| matches!(action, Action::FillSeats(_)))
        .collect();
    assert_eq!(filled.len(), 1, "{done:?}");
    assert!(
        done.iter()
            .any(|action| matches!(action, Action::Admit { backfill: true, .. }))
    );
}

#[test]
fn a_draining_leader_makes_no_matches() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    director.drain(true);
    director.handle_ticket(at(0), ticket(1));
    director.handle_ticket(at(0), ticket(2));
    director.handle_timeout(at(5));
    assert_eq!(actions(&mut director), []);
}

#[test]
fn a_leader_that_missed_notes_finds_them_in_the_store() {
    let mut director = Director::new(DirectorConfig::default(), 1);
    let late = Instant::from_secs(60);
    let (missed, forgotten) = (ticket(1), ticket(2));
    director.handle_ticket(Instant::ZERO, forgotten);
    assert_eq!(director.handle_tickets(late, vec![missed.clone()]), 1);
    assert_eq!(director.queued(), 1);
    // What is known is not new, and who has been matched is not queued again.
    assert_eq!(director.handle_tickets(late, vec![missed.clone()]), 0);
    director.handle_ticket(late, ticket(3));
    director.handle_timeout(late);
    assert_eq!((director.queued(), director.matches()), (0, 1));
    assert_eq!(director.handle_tickets(late, vec![missed, ticket(3)]), 0);
    assert_eq!(director.queued(), 0);
}

#[test]
fn a_match_is_placed_where_its_worst_round_trip_is_best_among_regions_that_exist() {
    let matching = MatchingConfig::default()
        .regions(&["eu", "us", "asia"])
        .latency_ms(300.0, 0.0);
    let config = DirectorConfig::default().matching(matching);
    let mut director = Director::new(config, 1);
    let far = Preferences::default()
        .latency("eu", 20)
        .latency("us", 60)
        .latency("asia", 250)
        .latency("Not a region!", 1);
    let near = far.clone().latency("eu", 110).latency("us", 30);
    for (n, preferences) in [(1, far), (2, near)] {
        let ticket = Ticket {
            preferences,
            ..ticket(n)
        };
        director.handle_ticket(at(0), ticket);
    }
    director.handle_timeout(at(1));
    let Some(Action::CreateMatch(new)) = director.poll_action() else {
        unreachable!("two players wait");
    };
    director.handle_created(at(1), new.match_id);
    let placed = actions(&mut director).into_iter().find_map(|action| {
        let Action::Place(placement) = action else {
            return None;
        };
        Some(placement.regions)
    });
    let expected = ["us", "eu", "asia"].map(str::to_owned).to_vec();
    assert_eq!(placed, Some(expected));
}

#[test]
fn changed_rules_of_queues_make_the_match_at_once() {
    let rules = |players: u8| {
        let text = format!("[ranked]\nplayers = {players}");
        QueueRules::parse(&text).expect("rules")
    };
    let mut director = Director::new(DirectorConfig::default().queues(rules(4)), 1);
    for n in 1..=2 {
        let preferences = Preferences::queue("ranked");
        let ticket = Ticket {
            preferences,
            ..ticket(n)
        };
        director.handle_ticket(at(0), ticket);
    }
    director.handle_timeout(at(1));
    assert!(actions(&mut director).is_empty());
    director.set_queues(at(1), rules(2));
    assert_eq!(director.poll_timeout(), Some(at(1)));
    director.handle_timeout(at(1));
    let made =
        |action: &Action| matches!(action, Action::CreateMatch(new) if new.tickets.len() == 2);
    assert!(actions(&mut director).iter().any(made));
}
