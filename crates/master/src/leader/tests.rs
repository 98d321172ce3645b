//! A term, from the lease to its loss.

use super::*;
use crate::lease::LEASE;
use crate::store::MemoryStore;
use crate::ticket::Member;
use muse_master_client::messages::{MatchResult, Phase, PlayerResult, Report};
use muse_master_client::{Preferences, TicketId};

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
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

fn leader(holder: u64) -> Leader {
    Leader::new(DirectorConfig::default(), holder)
}

/// Does everything for a leader whose fleet has server 7 alone. Returns what was requested.
fn serve(leader: &mut Leader, store: &mut MemoryStore, now: Instant) -> Vec<Request> {
    let mut requests = Vec::new();
    while let Some(request) = leader.poll_request(now, now) {
        let reply = match request.clone() {
            Request::Store(request) => store.handle_request(now, request),
            Request::Allocate(place) => Some(Reply::Placed(place.match_id, Ok(ServerId(7)))),
            _ => None,
        };
        if let Some(reply) = reply {
            leader.handle_reply(now, reply);
        }
        requests.push(request);
    }
    requests
}

fn commits(requests: &[Request]) -> Vec<&Transaction> {
    let transaction = |request| match request {
        &Request::Store(StoreRequest::Commit {
            ref transaction, ..
        }) => Some(transaction),
        _ => None,
    };
    requests.iter().filter_map(transaction).collect()
}

/// A leader with a match of accounts 1 and 2 on server 7, at 1 s.
fn with_match() -> (Leader, MemoryStore, MatchId) {
    let (mut leader, mut store) = (leader(1), MemoryStore::default());
    serve(&mut leader, &mut store, at(0));
    for n in 1..=2 {
        store.put_ticket(ticket(n));
        leader.handle_note(at(0), Note::Ticket(ticket(n)), |_| true);
    }
    leader.handle_timeout(at(1_000));
    serve(&mut leader, &mut store, at(1_000));
    let match_id = *store.matches().keys().next().expect("two players wait");
    assert_eq!(store.matches()[&match_id].server, Some(ServerId(7)));
    (leader, store, match_id)
}

fn report(match_id: MatchId, phase: Phase) -> Report {
    Report {
        match_id: Some(match_id),
        phase,
        seated: vec![AccountId(1), AccountId(2)],
        ..Report::default()
    }
}

#[test]
fn who_is_refused_the_lease_asks_again_later_and_gives_nothing_back() {
    let mut store = MemoryStore::default();
    serve(&mut leader(1), &mut store, at(0));
    let mut other = leader(2);
    let requests = serve(&mut other, &mut store, at(100));
    assert_eq!(other.ended(), Some(&Ended::OtherLeads));
    assert_eq!(requests.len(), 1);
    assert_eq!(other.again_after(), RENEW_EVERY);
}

#[test]
fn the_lease_is_renewed_and_one_that_ran_out_ends_the_term_before_anything_is_done() {
    let (mut leader, mut store) = (leader(1), MemoryStore::default());
    serve(&mut leader, &mut store, at(0));
    for second in 1..20 {
        leader.handle_timeout(at(second * 1_000));
        serve(&mut leader, &mut store, at(second * 1_000));
    }
    assert!(leader.is_leading());
    for n in 1..=2 {
        store.put_ticket(ticket(n));
        leader.handle_note(at(19_000), Note::Ticket(ticket(n)), |_| true);
    }
    let late = at(19_000) + LEASE;
    leader.handle_timeout(late);
    let requests = serve(&mut leader, &mut store, late);
    assert_eq!(leader.ended(), Some(&Ended::LeaseRanOut));
    let release = Request::Store(StoreRequest::ReleaseLease { holder: 1 });
    assert_eq!(requests, [release]);
}

#[test]
fn a_clock_that_is_set_ends_the_term() {
    let (mut leader, mut store) = (leader(1), MemoryStore::default());
    serve(&mut leader, &mut store, at(10_000));
    assert!(leader.poll_request(at(10_000), at(8_000)).is_none());
    assert!(leader.is_leading());
    assert!(leader.poll_request(at(10_000), at(7_999)).is_some());
    assert_eq!(leader.ended(), Some(&Ended::ClockSet));
}

#[test]
fn a_ticket_that_comes_while_the_store_is_read_is_not_forgotten() {
    let (mut leader, mut store) = (leader(1), MemoryStore::default());
    let lease = Request::Store(StoreRequest::Lease { holder: 1 });
    assert_eq!(leader.poll_request(at(0), at(0)), Some(lease));
    let granted = store.handle_request(at(0), StoreRequest::Lease { holder: 1 });
    leader.handle_reply(at(0), granted.expect("a reply"));
    let restored = store.handle_request(at(0), StoreRequest::Restore { epoch: 1 });
    store.put_ticket(ticket(1));
    leader.handle_note(at(0), Note::Ticket(ticket(1)), |_| true);
    leader.handle_reply(at(1), restored.expect("a reply"));
    assert_eq!((leader.is_leading(), leader.queued()), (true, 1));
}

#[test]
fn what_must_be_stored_is_tried_again_each_second_and_what_may_be_stored_ends_the_term() {
    let (mut leader, mut store, match_id) = with_match();
    let away = || StoreError::Unavailable("away".to_owned());
    let record = Transaction::RecordServer(match_id, ServerId(7));
    leader.handle_reply(at(1_100), Reply::NotStored(record.clone(), away()));
    leader.handle_timeout(at(2_099));
    assert_eq!(
        commits(&serve(&mut leader, &mut store, at(2_099))),
        [&record; 0]
    );
    assert_eq!(leader.poll_timeout(), Some(at(2_100)));
    leader.handle_timeout(at(2_100));
    assert_eq!(
        commits(&serve(&mut leader, &mut store, at(2_100))),
        [&record]
    );
    let create = Transaction::FillSeats(crate::matching::Filled {
        match_id,
        ticket: ticket(3),
    });
    leader.handle_reply(at(2_200), Reply::NotStored(create, away()));
    assert_eq!(leader.ended(), Some(&Ended::Store(away())));
}

#[test]
fn a_result_that_the_store_refuses_is_not_tried_again_for_ever() {
    let (mut leader, mut store, match_id) = with_match();
    let player = |points| PlayerResult {
        account: AccountId(1),
        points,
        team: None,
    };
    let ending = Ending {
        match_id,
        outcome: Outcome::Finished,
        result: Some(MatchResult {
            match_id,
            outcome: Outcome::Finished,
            players: vec![player(1), player(2)],
        }),
        requeue: Vec::new(),
    };
    let refused = StoreError::Forbidden("a result names somebody who has no seat");
    let forged = Transaction::EndMatch(ending.clone());
    leader.handle_reply(at(1_100), Reply::NotStored(forged, refused));
    leader.handle_timeout(at(2_100));
    let aborted = Transaction::EndMatch(Ending {
        outcome: Outcome::Aborted,
        result: None,
        ..ending
    });
    let requests = serve(&mut leader, &mut store, at(2_100));
    assert_eq!(commits(&requests), [&aborted]);
}

#[test]
fn an_old_epoch_ends_the_term() {
    let (mut leader, _, match_id) = with_match();
    let record = Transaction::RecordRunning(match_id);
    leader.handle_reply(at(1_100), Reply::NotStored(record, StoreError::OldEpoch));
    assert_eq!(leader.ended(), Some(&Ended::Store(StoreError::OldEpoch)));
}

#[test]
fn a_stored_report_counts_if_it_is_newer_than_at_the_last_look() {
    let (mut leader, mut store, match_id) = with_match();
    let looked = |millis| {
        let reports = vec![StoredReport {
            match_id,
            server: ServerId(7),
            at: at(millis),
            report: report(match_id, Phase::Connecting),
            result: None,
        }];
        Reply::Looked(Ok(Looked {
            reports,
            ..Looked::default()
        }))
    };
    let admits = |requests: Vec<Request>| {
        let admit = |request: &Request| matches!(request, Request::Admit { .. });
        requests.iter().any(admit)
    };
    leader.handle_reply(at(1_100), looked(900));
    leader.handle_reply(at(1_200), looked(900));
    assert!(!admits(serve(&mut leader, &mut store, at(1_200))));
    leader.handle_reply(at(1_300), looked(1_250));
    assert!(admits(serve(&mut leader, &mut store, at(1_300))));
}

#[test]
fn a_master_that_closes_leaves_leading_to_others_and_comes_back_if_there_are_none() {
    let mut store = MemoryStore::default();
    let mut first = leader(1).shared(true);
    serve(&mut first, &mut store, at(0));
    first.drain(true);
    serve(&mut first, &mut store, at(0));
    assert_eq!(first.ended(), Some(&Ended::Closing));
    assert!(first.again_after() > LEASE);
    let mut second = leader(2).shared(true);
    second.drain(true);
    serve(&mut second, &mut store, at(20_000));
    second.drain(true);
    assert!(second.is_leading());
}

#[test]
fn a_master_alone_leads_on_while_it_closes() {
    let (mut leader, _, _) = with_match();
    leader.drain(true);
    assert_eq!((leader.is_leading(), leader.matches()), (true, 1));
}

/// A leader that shares its bus, with a match that runs on server 7 of another master.
fn with_running_match() -> (Leader, MemoryStore, MatchId) {
    let (mut leader, mut store) = (leader(1).shared(true), MemoryStore::default());
    serve(&mut leader, &mut store, at(0));
    for n in 1..=2 {
        store.put_ticket(ticket(n));
        leader.handle_note(at(0), Note::Ticket(ticket(n)), |_| true);
    }
    leader.handle_timeout(at(1_000));
    serve(&mut leader, &mut store, at(1_000));
    let match_id = *store.matches().keys().next().expect("two players wait");
    let note = Note::Report(ServerId(7), report(match_id, Phase::Running));
    leader.handle_note(at(1_000), note, |_| true);
    serve(&mut leader, &mut store, at(1_000));
    (leader, store, match_id)
}

/// Lets time pass in steps of half a second, while looks are answered by `look`. Returns true if the match ends.
fn pass(
    leader: &mut Leader,
    store: &mut MemoryStore,
    millis: std::ops::RangeInclusive<u64>,
    mut look: impl FnMut(Instant) -> Option<Reply>,
) -> bool {
    pass_while(leader, store, millis, |now, request| match request {
        StoreRequest::Look { .. } => Some(look(now)),
        _ => None,
    })
}

/// As `pass`, while `answer` answers what it wants to.
fn pass_while(
    leader: &mut Leader,
    store: &mut MemoryStore,
    millis: std::ops::RangeInclusive<u64>,
    mut answer: impl FnMut(Instant, &StoreRequest) -> Option<Option<Reply>>,
) -> bool {
    let mut has_ended = false;
    for now in millis.step_by(500).map(at) {
        leader.handle_timeout(now);
        while let Some(request) = leader.poll_request(now, now) {
            let Request::Store(request) = request else {
                continue;
            };
            let commit = [Request::Store(request.clone())];
            let mut commits = commits(&commit).into_iter();
            has_ended |= commits.any(|it| matches!(it, Transaction::EndMatch(_)));
            let reply = answer(now, &request).unwrap_or_else(|| store.handle_request(now, request));
            if let Some(reply) = reply {
                leader.handle_reply(now, reply);
            }
        }
    }
    has_ended
}

fn looked(reports: Vec<StoredReport>) -> Option<Reply> {
    Some(Reply::Looked(Ok(Looked {
        reports,
        ..Looked::default()
    })))
}

#[test]
fn nobody_is_silent_while_the_store_that_would_tell_does_not_answer() {
    let (mut leader, mut store, _) = with_running_match();
    let begun = 1_500..=40_000;
    assert!(!pass(&mut leader, &mut store, begun, |_| None));
    // Once it answers, and says nothing of the server, that one has its 10 seconds.
    let away = || StoreError::Unavailable("away".to_owned());
    leader.handle_reply(at(40_000), Reply::Looked(Err(away())));
    let silent = |_| looked(Vec::new());
    assert!(!pass(&mut leader, &mut store, 40_500..=49_500, silent));
    assert!(pass(&mut leader, &mut store, 50_000..=51_000, silent));
}

#[test]
fn the_store_is_read_again_before_a_match_is_given_up() {
    let (mut leader, mut store, match_id) = with_running_match();
    // Another master has stored a report since the last look: the server has moved there, and the bus is lost.
    let moved = at(10_200);
    let reports = |now: Instant| {
        let found = StoredReport {
            match_id,
            server: ServerId(7),
            at: moved,
            report: report(match_id, Phase::Running),
            result: None,
        };
        looked((now >= moved).then_some(found).into_iter().collect())
    };
    assert!(!pass(&mut leader, &mut store, 1_500..=20_000, reports));
    assert!(pass(&mut leader, &mut store, 20_500..=22_000, reports));
}

#[test]
fn nobody_is_silent_while_nothing_can_be_written() {
    // The store is read all the time, and nobody is in it: a server that has lost its master cannot register with another one while the disk is full or the standby
    // is away.
    let away = || StoreError::Unavailable("the disk is full".to_owned());
    for is_answered in [true, false] {
        let (mut leader, mut store, _) = with_running_match();
        let ended = pass_while(
            &mut leader,
            &mut store,
            1_500..=12_500,
            |now, request| match request {
                StoreRequest::Look { .. } => Some(looked(Vec::new())),
                StoreRequest::Lease { .. } if now >= at(8_000) => {
                    Some(is_answered.then(|| Reply::Lease(Err(away()))))
                }
                _ => None,
            },
        );
        assert!(!ended && leader.is_leading());
        // The next leader gives everybody their time again.
        assert!(!pass(&mut leader, &mut store, 13_000..=20_000, |_| None));
        assert_eq!(leader.ended(), Some(&Ended::LeaseRanOut));
    }
}

/// Two masters lead for a moment if the clock of one is ahead: the lease of the other has run out by it. The older one does not know the newer one's match.
#[test]
fn a_leader_that_has_not_heard_of_the_next_one_ends_none_of_its_servers() {
    let (mut old, mut store) = (leader(1).shared(true), MemoryStore::default());
    serve(&mut old, &mut store, at(0));
    let mut new = leader(2).shared(true);
    serve(&mut new, &mut store, at(25_000));
    for n in 1..=2 {
        store.put_ticket(ticket(n));
        new.handle_note(at(25_000), Note::Ticket(ticket(n)), |_| true);
    }
    new.handle_timeout(at(26_000));
    serve(&mut new, &mut store, at(26_000));
    let match_id = *store.matches().keys().next().expect("two players wait");
    let note = Note::Report(ServerId(7), report(match_id, Phase::Connecting));
    old.handle_note(at(1_100), note, |_| true);
    let result = MatchResult {
        match_id,
        outcome: Outcome::Finished,
        players: Vec::new(),
    };
    old.handle_note(at(1_100), Note::Result(ServerId(7), result), |_| true);
    let mut requests = serve(&mut old, &mut store, at(1_100));
    old.handle_timeout(at(1_200));
    requests.extend(serve(&mut old, &mut store, at(1_200)));
    assert!(!requests.iter().any(is_about_a_server), "{requests:?}");
    assert_eq!(old.ended(), Some(&Ended::OtherLeads));
}

#[test]
fn a_server_of_a_match_that_nobody_has_is_ended_once_the_lease_is_renewed() {
    let (mut leader, mut store) = (leader(1).shared(true), MemoryStore::default());
    serve(&mut leader, &mut store, at(0));
    let note = Note::Report(ServerId(7), report(MatchId(77), Phase::Connecting));
    leader.handle_note(at(1_100), note, |_| true);
    let requests = serve(&mut leader, &mut store, at(1_100));
    assert!(!requests.iter().any(is_about_a_server), "{requests:?}");
    leader.handle_timeout(at(1_200));
    let requests = serve(&mut leader, &mut store, at(1_200));
    assert!(
        requests.contains(&Request::Release(ServerId(7))),
        "{requests:?}"
    );
}

fn is_about_a_server(request: &Request) -> bool {
    matches!(
        request,
        Request::Release(_) | Request::Publish(Note::ToServer(..))
    )
}
