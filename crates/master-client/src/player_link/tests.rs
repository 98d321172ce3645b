//! Promises of the player's machine, in virtual time.
use super::*;
use crate::TicketId;

fn seconds(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn online() -> PlayerLink {
    let mut link = PlayerLink::new(PlayerLinkConfig::default(), 1);
    link.start(Instant::ZERO);
    link.handle_timeout(Instant::ZERO);
    assert_eq!(link.poll_action(), Some(PlayerAction::Connect));
    link.handle_connected(Instant::ZERO);
    link.handle_message(Instant::ZERO, welcome(None, None));
    assert_eq!(link.poll_event(), Some(PlayerEvent::Online(AccountId(1))));
    link
}

fn welcome(ticket: Option<QueueState>, seat: Option<Seat>) -> FromMaster {
    FromMaster::Welcome {
        account: AccountId(1),
        ticket,
        seat,
    }
}

fn seat(match_id: u64) -> Seat {
    Seat {
        match_id: MatchId(match_id),
        address: "203.0.113.5:8888".to_owned(),
        token: "token".to_owned(),
        preferences: Preferences::default(),
    }
}

fn ticket(preferences: Preferences) -> QueueState {
    QueueState {
        ticket: TicketId(1),
        waited_ms: 5_000,
        preferences,
    }
}

fn events(link: &mut PlayerLink) -> Vec<PlayerEvent> {
    std::iter::from_fn(|| link.poll_event()).collect()
}

fn actions(link: &mut PlayerLink) -> Vec<PlayerAction> {
    std::iter::from_fn(|| link.poll_action()).collect()
}

/// Lets time pass until `end` and returns when the machine tried to connect.
fn attempts(link: &mut PlayerLink, end: Instant) -> Vec<Instant> {
    let mut attempts = Vec::new();
    while let Some(at) = link.poll_timeout().filter(|at| *at <= end) {
        link.handle_timeout(at);
        for action in actions(link) {
            if action == PlayerAction::Connect {
                attempts.push(at);
                link.handle_lost(at);
            }
        }
    }
    attempts
}

#[test]
fn attempts_come_every_ten_seconds_spread_over_one() {
    let mut link = PlayerLink::new(PlayerLinkConfig::default(), 3);
    link.start(Instant::ZERO);
    let attempts = attempts(&mut link, seconds(100));
    assert!((9..=11).contains(&attempts.len()), "{attempts:?}");
    for pair in attempts.windows(2) {
        let between = pair[1] - pair[0];
        assert!(between >= Duration::from_secs(10) && between <= Duration::from_secs(11));
    }
}

#[test]
fn keep_alives_go_each_second_and_ten_seconds_of_silence_are_a_loss() {
    let mut link = online();
    let mut sent = 0;
    while link.state() == LinkState::Online {
        let at = link.poll_timeout().expect("online");
        link.handle_timeout(at);
        let done = actions(&mut link);
        sent += done
            .iter()
            .filter(|a| matches!(a, PlayerAction::Send(ToMaster::KeepAlive)))
            .count();
        if link.state() != LinkState::Online {
            assert_eq!(at, seconds(10));
            assert_eq!(done, [PlayerAction::Disconnect]);
        }
    }
    assert_eq!(sent, 9);
    // Back soon.
    assert!(link.poll_timeout().is_some_and(|at| at <= seconds(11)));
}

#[test]
fn a_full_master_is_tried_again_when_it_said() {
    let mut link = PlayerLink::new(PlayerLinkConfig::default(), 5);
    link.start(Instant::ZERO);
    link.handle_timeout(Instant::ZERO);
    link.handle_connected(Instant::ZERO);
    link.handle_message(Instant::ZERO, FromMaster::Full { retry_after_s: 10 });
    assert_eq!(
        actions(&mut link),
        [PlayerAction::Connect, PlayerAction::Disconnect]
    );
    let at = link.poll_timeout().expect("a retry");
    assert!(at >= seconds(10) && at <= seconds(11));
}

#[test]
fn a_player_who_still_waits_is_queued_again_after_a_loss() {
    let mut link = online();
    let preferences = Preferences::default().players(2);
    link.queue(preferences.clone());
    assert_eq!(
        actions(&mut link),
        [PlayerAction::Send(ToMaster::Queue {
            preferences: preferences.clone()
        })]
    );
    link.handle_lost(seconds(1));
    link.handle_timeout(seconds(3));
    link.handle_connected(seconds(3));
    link.handle_message(seconds(3), welcome(None, None));
    assert_eq!(
        actions(&mut link),
        [
            PlayerAction::Connect,
            PlayerAction::Send(ToMaster::Queue {
                preferences: preferences.clone()
            })
        ]
    );
    // With the ticket still there nothing is sent.
    link.handle_lost(seconds(4));
    link.handle_timeout(seconds(6));
    link.handle_connected(seconds(6));
    let ticket = QueueState {
        ticket: TicketId(1),
        waited_ms: 5_000,
        preferences,
    };
    link.handle_message(seconds(6), welcome(Some(ticket), None));
    assert_eq!(actions(&mut link), [PlayerAction::Connect]);
}

#[test]
fn queueing_twice_stays_in_the_queue_and_a_change_keeps_the_place() {
    let mut link = online();
    for preferences in [
        Preferences::queue("tag"),
        Preferences::queue("tag"),
        Preferences::queue("race"),
    ] {
        link.queue(preferences.clone());
        assert_eq!(link.queue_status(), QueueStatus::Requested);
        let sent = PlayerAction::Send(ToMaster::Queue {
            preferences: preferences.clone(),
        });
        assert_eq!(actions(&mut link), [sent]);
        link.handle_message(seconds(1), FromMaster::Queue(ticket(preferences)));
        assert_eq!(link.queue_status(), QueueStatus::Waiting);
    }
}

#[test]
fn who_leaves_the_queue_without_a_master_is_out_when_it_is_back() {
    let mut link = online();
    link.queue(Preferences::default());
    link.handle_message(
        seconds(1),
        FromMaster::Queue(ticket(Preferences::default())),
    );
    link.handle_lost(seconds(2));
    link.leave_queue();
    assert_eq!(link.queue_status(), QueueStatus::Leaving);
    link.handle_timeout(seconds(4));
    link.handle_connected(seconds(4));
    actions(&mut link);
    link.handle_message(
        seconds(4),
        welcome(Some(ticket(Preferences::default())), None),
    );
    assert_eq!(
        actions(&mut link),
        [PlayerAction::Send(ToMaster::LeaveQueue)]
    );
    link.handle_message(seconds(5), FromMaster::LeftQueue);
    assert_eq!(link.queue_status(), QueueStatus::Out);
    assert!(events(&mut link).contains(&PlayerEvent::LeftQueue));
    link.handle_message(seconds(6), FromMaster::LeftQueue);
    assert_eq!(events(&mut link), [], "it is no news");
}

#[test]
fn a_refused_request_is_over_and_one_that_the_master_has_no_time_for_is_repeated() {
    let refused = |code: &str| FromMaster::Refused {
        code: code.to_owned(),
        message: String::new(),
    };
    let mut link = online();
    link.queue(Preferences::default());
    actions(&mut link);
    link.handle_message(seconds(1), refused("too_many_requests"));
    assert_eq!(link.queue_status(), QueueStatus::Requested);
    link.handle_timeout(seconds(2));
    let again = PlayerAction::Send(ToMaster::Queue {
        preferences: Preferences::default(),
    });
    assert!(actions(&mut link).contains(&again));
    link.handle_message(seconds(3), refused("conflict"));
    assert_eq!(link.queue_status(), QueueStatus::Out);
}

/// A link whose match was just called off; it has asked the master what follows.
fn cancelled() -> PlayerLink {
    let mut link = online();
    link.queue(Preferences::default());
    link.handle_message(
        seconds(1),
        FromMaster::MatchFound {
            match_id: MatchId(4),
        },
    );
    events(&mut link);
    actions(&mut link);
    let outcome = Outcome::Cancelled;
    link.handle_message(
        seconds(2),
        FromMaster::MatchOver {
            match_id: MatchId(4),
            outcome,
        },
    );
    assert_eq!(actions(&mut link), [PlayerAction::Send(ToMaster::Rejoin)]);
    assert_eq!(events(&mut link), [], "not known yet");
    link
}

#[test]
fn after_a_cancelled_match_it_is_certain_whether_one_waits() {
    let told = |waiting| PlayerEvent::MatchCancelled {
        match_id: MatchId(4),
        waiting,
    };
    let mut back = cancelled();
    back.handle_message(
        seconds(2),
        FromMaster::Queue(ticket(Preferences::default())),
    );
    assert_eq!(
        events(&mut back),
        [
            told(true),
            PlayerEvent::Queued(ticket(Preferences::default()))
        ]
    );
    assert_eq!(back.queue_status(), QueueStatus::Waiting);
    // The answer to the question comes as well and is no news.
    back.handle_message(
        seconds(2),
        welcome(Some(ticket(Preferences::default())), None),
    );
    assert_eq!(back.queue_status(), QueueStatus::Waiting);

    let mut out = cancelled();
    out.handle_message(seconds(2), welcome(None, None));
    assert_eq!(events(&mut out), [told(false)]);
    assert_eq!(out.queue_status(), QueueStatus::Out);

    // An answer that is lost is asked for again, and a new connection answers too.
    let mut lost = cancelled();
    lost.handle_timeout(seconds(4));
    assert!(actions(&mut lost).contains(&PlayerAction::Send(ToMaster::Rejoin)));
    lost.handle_lost(seconds(5));
    lost.handle_timeout(seconds(7));
    lost.handle_connected(seconds(7));
    lost.handle_message(seconds(7), welcome(None, None));
    assert!(events(&mut lost).contains(&told(false)));
}

#[test]
fn a_server_that_refuses_every_seat_is_asked_less_and_less_often() {
    let mut link = online();
    link.handle_message(Instant::ZERO, FromMaster::Seat(seat(4)));
    let mut joins = Vec::new();
    let mut now = Instant::ZERO;
    while now <= seconds(120) {
        for action in actions(&mut link) {
            match action {
                PlayerAction::JoinGame(_) => {
                    joins.push(now);
                    link.handle_game_lost(now, "the token has expired");
                }
                // The master has a fresh token for everybody who asks.
                PlayerAction::Send(ToMaster::Rejoin) => {
                    link.handle_message(now, FromMaster::Seat(seat(4)));
                }
                PlayerAction::Send(ToMaster::KeepAlive) => {
                    link.handle_message(now, FromMaster::KeepAlive);
                }
                _ => {}
            }
        }
        now = link.poll_timeout().expect("online").max(now);
        link.handle_timeout(now);
    }
    let early = joins.iter().filter(|at| **at <= seconds(10)).count();
    assert!((4..=6).contains(&early), "{joins:?}");
    let waits = joins.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(waits.clone().all(|wait| wait <= Duration::from_secs(31)));
    assert!(
        waits
            .clone()
            .next_back()
            .is_some_and(|wait| wait >= Duration::from_secs(15))
    );
    let named = |event: &PlayerEvent| matches!(event, PlayerEvent::GameLost { reason, .. } if reason == "the token has expired");
    assert_eq!(
        events(&mut link)
            .iter()
            .filter(|event| named(event))
            .count(),
        joins.len()
    );
}

#[test]
fn it_goes_to_the_match_and_comes_back() {
    let mut link = online();
    link.handle_message(seconds(1), FromMaster::Seat(seat(4)));
    assert_eq!(actions(&mut link), [PlayerAction::JoinGame(seat(4))]);
    link.handle_game_connected(seconds(1));
    assert_eq!(link.game(), Some(MatchId(4)));
    link.handle_message(
        seconds(2),
        FromMaster::MatchOver {
            match_id: MatchId(4),
            outcome: Outcome::Finished,
        },
    );
    assert_eq!(actions(&mut link), [PlayerAction::LeaveGame]);
    assert_eq!(link.game(), None);
}

#[test]
fn a_lost_game_asks_for_its_seat_until_the_master_answers() {
    let mut link = online();
    link.handle_message(seconds(1), FromMaster::Seat(seat(4)));
    link.handle_game_connected(seconds(1));
    link.handle_message(seconds(11), FromMaster::KeepAlive);
    link.handle_game_lost(seconds(12), "lost");
    actions(&mut link);
    link.handle_timeout(seconds(12));
    assert!(actions(&mut link).contains(&PlayerAction::Send(ToMaster::Rejoin)));
    link.handle_timeout(seconds(14));
    assert!(actions(&mut link).contains(&PlayerAction::Send(ToMaster::Rejoin)));
    link.handle_message(seconds(14), FromMaster::Seat(seat(4)));
    assert!(actions(&mut link).contains(&PlayerAction::JoinGame(seat(4))));
    // And when both are lost, the welcome decides.
    link.handle_game_lost(seconds(15), "lost");
    link.handle_lost(seconds(15));
    link.handle_timeout(seconds(17));
    link.handle_connected(seconds(17));
    link.handle_message(seconds(17), welcome(None, None));
    assert_eq!(link.game(), None);
}

#[test]
fn a_game_that_goes_on_survives_a_master_that_forgot_it() {
    let mut link = online();
    link.handle_message(seconds(1), FromMaster::Seat(seat(4)));
    link.handle_game_connected(seconds(1));
    link.handle_lost(seconds(2));
    link.handle_timeout(seconds(4));
    link.handle_connected(seconds(4));
    actions(&mut link);
    link.handle_message(seconds(4), welcome(None, None));
    assert_eq!(actions(&mut link), []);
    assert_eq!(link.game(), Some(MatchId(4)));
}
