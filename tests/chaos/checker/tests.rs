//! A quiet history breaks no promise, and each kind of mischief is caught.

use super::*;
use crate::history::{Change, Kept, News, Wish};
use crate::plan::{Fault, Link, Way};
use muse_master::rating::{Entry as Part, Rating, rated};

/// A history in the making.
#[derive(Default)]
struct Made {
    entries: Vec<Entry>,
    calls: u64,
}

impl Made {
    fn at(mut self, at_ms: u64, event: Event) -> Self {
        self.entries.push(Entry { at_ms, event });
        self
    }

    fn stored(self, at_ms: u64, change: Change) -> Self {
        self.at(at_ms, Event::Stored { change })
    }

    fn call(mut self, player: u32, from_ms: u64, operation: Operation, answer: Answer) -> Self {
        self.calls += 1;
        let number = self.calls;
        let asked = Event::Asked {
            number,
            player,
            operation,
        };
        self.at(from_ms, asked)
            .at(from_ms + 10, Event::Answered { number, answer })
    }

    fn fault(self, number: usize, from_ms: u64, to_ms: u64, fault: Fault) -> Self {
        let broken = Event::Broken {
            number,
            fault,
            address: Some("127.0.0.1:9".to_owned()),
        };
        self.at(from_ms, broken).at(to_ms, Event::Mended { number })
    }

    fn promises(&self) -> Vec<Promise> {
        let mut entries = self.entries.clone();
        entries.sort_by_key(|entry| entry.at_ms);
        let found = check(&entries).into_iter();
        let mut promises: Vec<Promise> = found.map(|one| one.promise).collect();
        promises.dedup();
        promises
    }
}

fn signed_in() -> Made {
    let sign_in = |made: Made, player: u32, account: u64| {
        made.call(player, 0, Operation::SignIn, Answer::SignedIn { account })
    };
    sign_in(sign_in(Made::default(), 1, 11), 2, 12)
}

/// Two players wait and get a match on a server.
fn seated() -> Made {
    let mut made = signed_in();
    for (player, account) in [(1, 11), (2, 12)] {
        made = made
            .at(50, Event::Linked { player, master: 0 })
            .stored(100, ticket_in(account));
        let ticket = account;
        let news = News::Queued { ticket };
        made = made.at(120, Event::Told { player, news });
    }
    made = made.stored(200, Change::MatchMade { match_id: 7 });
    for account in [11, 12] {
        made = made.stored(200, ticket_out(account)).stored(
            200,
            Change::SeatIn {
                account,
                match_id: 7,
            },
        );
    }
    made.stored(
        300,
        Change::MatchPlaced {
            match_id: 7,
            address: Some("127.0.0.1:9".to_owned()),
        },
    )
}

fn ticket_in(account: u64) -> Change {
    let ticket = account;
    Change::TicketIn { account, ticket }
}

fn ticket_out(account: u64) -> Change {
    let ticket = account;
    Change::TicketOut { account, ticket }
}

fn ended(outcome: &str) -> Change {
    Change::MatchEnded {
        match_id: 7,
        outcome: outcome.to_owned(),
    }
}

fn seat_out(account: u64) -> Change {
    Change::SeatOut {
        account,
        match_id: 7,
    }
}

/// The ratings after the match, with these points.
fn ratings(points: [i64; 2]) -> [f64; 2] {
    let part = |(points, team)| Part {
        rating: Rating::default(),
        team,
        points,
    };
    let parts = [(points[0], 0), (points[1], 1)].map(part);
    let after = rated(&parts);
    [after[0].value, after[1].value]
}

fn result(account: u64, points: i64, rating: f64) -> Change {
    Change::Result {
        match_id: 7,
        account,
        points,
        rating,
    }
}

/// The match is over with a result.
fn finished() -> Made {
    let after = ratings([1, 2]);
    seated()
        .stored(9_000, ended("finished"))
        .stored(9_000, seat_out(11))
        .stored(9_000, seat_out(12))
        .stored(9_000, result(11, 1, after[0]))
        .stored(9_000, result(12, 2, after[1]))
}

fn kept(made: Made, account: u64, points: i64, rating: f64) -> Made {
    let row = Kept::Account {
        account,
        points,
        rating,
    };
    made.at(99_000, Event::Kept { row })
}

/// The database at the end has everything.
fn whole(made: Made) -> Made {
    let after = ratings([1, 2]);
    kept(kept(made, 11, 1, after[0]), 12, 2, after[1])
}

#[test]
fn a_match_that_was_played_breaks_nothing() {
    let told = Event::Told {
        player: 1,
        news: News::Over {
            match_id: 7,
            outcome: "finished".to_owned(),
        },
    };
    assert_eq!(whole(finished().at(9_100, told)).promises(), []);
}

#[test]
fn two_seats_are_found() {
    let second = Change::SeatIn {
        account: 11,
        match_id: 8,
    };
    let made = seated()
        .stored(400, Change::MatchMade { match_id: 8 })
        .stored(400, second);
    assert_eq!(kept_fresh(made).promises(), [Promise::OneSeat]);
    let queues = seated().stored(400, ticket_in(11));
    assert_eq!(kept_fresh(queues).promises(), [Promise::OneSeat]);
    let late = Change::SeatIn {
        account: 11,
        match_id: 7,
    };
    let late = whole(finished().stored(9_500, late));
    assert_eq!(late.promises(), [Promise::OneSeat]);
}

/// The accounts as they were made.
fn kept_fresh(made: Made) -> Made {
    let start = Rating::default().value;
    kept(kept(made, 11, 0, start), 12, 0, start)
}

#[test]
fn a_second_end_and_a_second_result_are_found() {
    let twice = whole(finished().stored(9_500, ended("aborted")));
    // It is no longer finished then, either.
    assert_eq!(
        twice.promises(),
        [Promise::OneResult, Promise::NoHealthyMatchAborted]
    );
    let rewritten = whole(finished().stored(9_500, Change::Rewritten { match_id: 7 }));
    assert_eq!(rewritten.promises(), [Promise::OneResult]);
    let again = result(11, 1, 1_500.0);
    let again = whole(finished().stored(9_500, again)).promises();
    assert!(again.contains(&Promise::OneResult), "{again:?}");
}

#[test]
fn a_result_without_a_seat_or_of_nobody_is_found() {
    let stranger = whole(finished().stored(9_500, result(13, 1, 1_500.0))).promises();
    assert!(stranger.contains(&Promise::OneResult), "{stranger:?}");
    let none = kept_fresh(seated().stored(9_000, ended("finished")));
    assert_eq!(none.promises(), [Promise::OneResult]);
    let told = Event::Told {
        player: 1,
        news: News::Over {
            match_id: 7,
            outcome: "finished".to_owned(),
        },
    };
    let lied = kept_fresh(seated().at(9_000, told));
    assert_eq!(lied.promises(), [Promise::OneResult]);
}

#[test]
fn a_healthy_match_that_is_aborted_is_found() {
    let aborted = |made: Made| kept_fresh(made.stored(20_000, ended("aborted")));
    let found = [Promise::NoHealthyMatchAborted];
    assert_eq!(aborted(seated()).promises(), found);
    let pause = |master| Fault::PauseMaster { master };
    // One master in trouble is no excuse, nor is a lost bus, a clock, or a server that was stopped for a moment.
    let one = seated().fault(1, 5_000, 19_000, pause(1));
    assert_eq!(aborted(one).promises(), found);
    let link = Link::Bus { master: 0 };
    let way = Way::Both;
    let bus = seated()
        .fault(1, 5_000, 19_000, Fault::Cut { link, way })
        .fault(
            2,
            5_000,
            19_000,
            Fault::StepClock {
                master: 1,
                by_s: 50,
            },
        );
    assert_eq!(aborted(bus).promises(), found);
    let moment = seated().fault(1, 8_000, 10_000, Fault::PauseGame { pick: 0 });
    assert_eq!(aborted(moment).promises(), found);
    // These are.
    let two = seated()
        .fault(1, 5_000, 19_000, pause(1))
        .fault(2, 5_000, 19_000, pause(2));
    assert_eq!(aborted(two).promises(), []);
    let killed = seated().fault(1, 8_000, 8_001, Fault::KillGame { pick: 0 });
    assert_eq!(aborted(killed).promises(), []);
    let stopped = seated().fault(1, 8_000, 19_000, Fault::PauseGame { pick: 0 });
    assert_eq!(aborted(stopped).promises(), []);
}

#[test]
fn a_ticket_that_vanishes_is_found() {
    let waits = || {
        signed_in()
            .at(
                50,
                Event::Linked {
                    player: 1,
                    master: 0,
                },
            )
            .stored(100, ticket_in(11))
    };
    let gone = |made: Made| kept_fresh(made.stored(40_000, ticket_out(11))).promises();
    assert_eq!(gone(waits()), [Promise::NoTicketLost]);
    // They left, by either way, perhaps.
    let left = waits().call(1, 39_000, Operation::LeaveQueue, Answer::Left);
    assert_eq!(gone(left), [Promise::NoTicketLost], "that was over before");
    let unknown = Answer::Unknown {
        why: "cut".to_owned(),
    };
    let left = waits().call(1, 39_000, Operation::LeaveQueue, unknown);
    assert_eq!(gone(left), []);
    let wish = Wish::LeaveQueue;
    let left = waits().at(39_990, Event::Wished { player: 1, wish });
    assert_eq!(gone(left), []);
    // They were away, or at a master that could not say that they were there.
    let why = String::new();
    let away = waits().at(9_000, Event::Unlinked { player: 1, why });
    assert_eq!(gone(away), []);
    let isolated = waits().fault(1, 5_000, 39_000, Fault::IsolateMaster { master: 0 });
    assert_eq!(gone(isolated), []);
    let other = waits().fault(1, 5_000, 39_000, Fault::IsolateMaster { master: 1 });
    assert_eq!(gone(other), [Promise::NoTicketLost]);
    let news = News::Queued { ticket: 99 };
    let lied = kept_fresh(signed_in().at(5, Event::Told { player: 1, news }));
    assert_eq!(lied.promises(), [Promise::NoTicketLost]);
}

#[test]
fn ratings_that_do_not_add_up_are_found() {
    let after = ratings([1, 2]);
    let wrong = kept(kept(finished(), 11, 2, after[0]), 12, 2, after[1]);
    assert_eq!(wrong.promises(), [Promise::RatingsAddUp]);
    let wrong = kept(kept(finished(), 11, 1, 1_500.0), 12, 2, after[1]);
    assert_eq!(wrong.promises(), [Promise::RatingsAddUp]);
    let made = seated()
        .stored(9_000, ended("finished"))
        .stored(9_000, result(11, 1, after[0] + 1.0))
        .stored(9_000, result(12, 2, after[1]));
    assert_eq!(whole(made).promises(), [Promise::RatingsAddUp]);
}

#[test]
fn a_confirmed_write_that_is_gone_is_found() {
    let save = |document| Operation::Save {
        based_on: document - 1,
        document,
    };
    let saved = || {
        signed_in()
            .call(1, 100, save(1), Answer::Saved { version: 1 })
            .call(1, 200, save(2), Answer::Saved { version: 2 })
    };
    let ends = |made: Made, version: u64, document: u64| {
        let row = Kept::Progress {
            account: 11,
            version,
            document,
        };
        kept_fresh(made.at(98_000, Event::Kept { row })).promises()
    };
    assert_eq!(ends(saved(), 2, 2), []);
    assert_eq!(ends(saved(), 1, 1), [Promise::NoWriteGone]);
    assert_eq!(ends(saved(), 2, 1), [Promise::NoWriteGone]);
    // Nobody wrote this.
    assert_eq!(ends(saved(), 3, 3), [Promise::NoWriteGone]);
    // Somebody may have.
    let why = "cut".to_owned();
    let maybe = saved().call(1, 300, save(3), Answer::Unknown { why });
    assert_eq!(ends(maybe, 3, 3), []);
    let refused = saved().call(1, 300, save(3), Answer::Refused { status: 409 });
    assert_eq!(ends(refused, 3, 3), [Promise::NoWriteGone]);
    let stale = Answer::Loaded {
        version: 1,
        document: Some(1),
    };
    let stale = saved().call(1, 300, Operation::Load, stale);
    assert_eq!(ends(stale, 2, 2), [Promise::NoWriteGone]);
}

#[test]
fn a_line_or_an_account_that_is_gone_is_found() {
    let text = "1 to 2".to_owned();
    let said = || {
        let text = text.clone();
        signed_in().call(1, 100, Operation::Say { text }, Answer::Said)
    };
    assert_eq!(kept_fresh(said()).promises(), [Promise::NoWriteGone]);
    let row = Kept::Line {
        sender: 11,
        text: text.clone(),
    };
    let there = said().at(98_000, Event::Kept { row });
    assert_eq!(kept_fresh(there).promises(), []);
    let other =
        kept_fresh(signed_in()).call(1, 500, Operation::SignIn, Answer::SignedIn { account: 13 });
    assert_eq!(other.promises(), [Promise::NoWriteGone]);
}

#[test]
fn somebody_who_is_stuck_is_found() {
    let stuck = kept_fresh(signed_in()).at(99_500, Event::Stuck { player: 1 });
    assert_eq!(stuck.promises(), [Promise::Recovers]);
}
