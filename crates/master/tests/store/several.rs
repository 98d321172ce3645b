//! The promises of every store to several masters: who is where, how matches go although notes are lost, and that all of a transaction holds or
//! nothing of it.

use muse_master::director::NewMatch;
use muse_master::hosts::{Registration, ServerStanding};
use muse_master::store::{FriendStep, Store, StoreError};
use muse_master::ticket::{Member, Ticket};
use muse_master_client::messages::{MatchResult, Outcome, Phase, Report};
use muse_master_client::{AccountId, MatchId, ServerId};

use super::tokens::named;
use super::{SignInId, at, finished, guests, leader, new_match, queued};

pub(crate) async fn friends_are_seen_at_whatever_master_they_are(store: &dyn Store) {
    let [one, other, stranger] = guests(store).await;
    for (from, to) in [(one, other), (other, one), (one, stranger)] {
        let asked = store.befriend(from, to, FriendStep::Ask).await;
        asked.expect("asked");
    }
    let seen = async |now| {
        let friends = store.friends(one, at(now)).await.expect("read");
        let online = friends.iter().filter(|friend| friend.online);
        online.map(|friend| friend.account).collect::<Vec<_>>()
    };
    assert_eq!(store.master_seen(1, at(0)).await, Ok(false));
    assert_eq!(store.master_seen(1, at(1)).await, Ok(true));
    assert_eq!(seen(1).await, []);
    for account in [other, stranger] {
        store.arrived(1, account).await.expect("arrived");
    }
    assert_eq!(seen(2).await, [other]);
    let epoch = leader(store, 1, 0).await;
    assert_eq!(store.queued_here(epoch, at(2)).await, Ok(Vec::new()));
    for account in [one, other] {
        queued(store, account).await;
    }
    assert_eq!(store.queued_here(epoch, at(2)).await, Ok(vec![other]));
    assert_eq!(store.queued_here(epoch, at(16)).await, Ok(Vec::new()));
    // A master that says nothing is away, and its players with it.
    assert_eq!(seen(16).await, []);
    store.master_seen(1, at(16)).await.expect("seen");
    assert_eq!(seen(17).await, [other]);
    // The player changes to another master; that the first one loses them then means nothing.
    store.master_seen(2, at(17)).await.expect("seen");
    store.arrived(2, other).await.expect("arrived");
    assert_eq!(store.departed(1, other).await, Ok(false));
    assert_eq!(seen(18).await, [other]);
    assert_eq!(store.departed(2, other).await, Ok(true));
    assert_eq!(store.departed(2, other).await, Ok(true));
    assert_eq!(seen(18).await, []);
    store.arrived(1, other).await.expect("arrived");
    store.all_departed(1).await.expect("departed");
    assert_eq!(seen(18).await, []);
    // One that was silent for long is forgotten, and what it said with it.
    store.arrived(1, other).await.expect("arrived");
    store.master_seen(2, at(90)).await.expect("seen");
    assert_eq!(store.master_seen(1, at(91)).await, Ok(false));
    assert_eq!(seen(91).await, []);
}

pub(crate) async fn reports_and_results_wait_for_a_leader_that_missed_them(store: &dyn Store) {
    let [one, other] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    let new = new_match(1, &tickets);
    store
        .create_match(epoch, new, at(2))
        .await
        .expect("created");
    assert_eq!(store.hosted(ServerId(7)).await, Ok(None));
    let placed = store.record_server(epoch, MatchId(1), ServerId(7)).await;
    placed.expect("placed");
    let hosted = store.hosted(ServerId(7)).await.expect("read");
    assert_eq!(hosted.expect("it has one").players, {
        let mut players = vec![one, other];
        players.sort_unstable();
        players
    });
    let report = Report {
        match_id: Some(MatchId(1)),
        phase: Phase::Running,
        seated: vec![one, other],
        ..Report::default()
    };
    let say = |server, report: &Report, now| store.record_report(server, report.clone(), at(now));
    assert_eq!(say(ServerId(7), &report, 3).await, Ok(true));
    assert_eq!(say(ServerId(8), &report, 3).await, Ok(false));
    assert_eq!(say(ServerId(8), &Report::default(), 3).await, Ok(true));
    let stored = store.reports(epoch).await.expect("read");
    assert_eq!((stored.len(), stored[0].at), (1, at(3)));
    assert_eq!((&stored[0].report, &stored[0].result), (&report, &None));
    let ending = finished(1, &[(one, 10), (other, 30)]);
    let result = ending.result.clone().expect("it has one");
    let hand_in = |server, now| store.record_result(server, result.clone(), at(now));
    assert_eq!(hand_in(ServerId(8), 4).await, Ok(false));
    assert_eq!(hand_in(ServerId(7), 4).await, Ok(true));
    let stored = store.reports(epoch).await.expect("read");
    assert_eq!(stored[0].report, report, "a result takes no report away");
    assert_eq!(stored[0].result.as_ref(), Some(&result));
    assert_eq!(store.reports(epoch + 1).await, Err(StoreError::OldEpoch));
    store.end_match(epoch, ending, at(9)).await.expect("ended");
    assert_eq!(store.reports(epoch).await, Ok(Vec::new()));
    assert_eq!(hand_in(ServerId(7), 10).await, Ok(false));
    assert_eq!(say(ServerId(7), &report, 10).await, Ok(false));
    let unknown = MatchResult {
        match_id: MatchId(99),
        outcome: Outcome::Aborted,
        players: Vec::new(),
    };
    let unknown = store.record_result(ServerId(7), unknown, at(10)).await;
    assert_eq!(unknown, Ok(false));
}

/// A server registers with one key, is not revived once it is gone, and gets no second match.
pub(crate) async fn a_game_server_is_known_by_its_key_until_it_is_gone(store: &dyn Store) {
    let server = ServerId(7);
    let register = |key: &str, now| {
        let address = "203.0.113.5:8888".to_owned();
        store.register_server(server, address, key.to_owned(), at(now))
    };
    let standing = || store.server_standing(server);
    assert_eq!(standing().await, Ok(ServerStanding::Unknown));
    assert_eq!(register("aa", 1).await, Ok(Registration::Registered));
    assert_eq!(standing().await, Ok(ServerStanding::Known));
    assert_eq!(register("bb", 2).await, Ok(Registration::OtherKey));
    assert_eq!(register("aa", 3).await, Ok(Registration::Registered));
    let [one] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let ticket = queued(store, one).await;
    let created = store.create_match(epoch, new_match(1, &[ticket]), at(4));
    created.await.expect("created");
    let held = async |server| {
        store
            .held(server, MatchId(1))
            .await
            .expect("read")
            .is_some()
    };
    assert!(held(server).await && held(ServerId(8)).await);
    let placed = store.record_server(epoch, MatchId(1), server).await;
    placed.expect("placed");
    assert!(held(server).await && !held(ServerId(8)).await);
    let ended = store.end_match(epoch, finished(1, &[(one, 1)]), at(5));
    ended.await.expect("ended");
    assert!(!held(server).await);
    assert_eq!(register("aa", 6).await, Ok(Registration::Over));
    store.end_server(server, at(7)).await.expect("gone");
    store.end_server(server, at(8)).await.expect("gone already");
    store.server_seen(server, at(9)).await.expect("too late");
    let gone = ServerStanding::Gone { since: at(7) };
    assert_eq!(standing().await, Ok(gone));
    // Another one of the same name, in a cluster.
    assert_eq!(register("bb", 10).await, Ok(Registration::Registered));
    assert_eq!(standing().await, Ok(ServerStanding::Known));
}

/// Those who gave up their seats are remembered until the match is over, and a result names nobody else.
pub(crate) async fn a_result_names_only_those_who_had_a_seat(store: &dyn Store) {
    let [one, other, stranger] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    let created = store.create_match(epoch, new_match(1, &tickets), at(2));
    created.await.expect("created");
    for _ in 0..2 {
        let freed = store.free_seat(epoch, MatchId(1), other).await;
        freed.expect("freed");
    }
    let never = store.free_seat(epoch, MatchId(1), stranger).await;
    never.expect("nothing to do");
    let (_, matches) = store.restore(epoch).await.expect("restored");
    let found = (&matches[0].players, &matches[0].left);
    assert_eq!(found, (&vec![one], &vec![other]));
    for forged in [[one, stranger], [one, one]] {
        let ending = finished(1, &forged.map(|account| (account, 10)));
        let refused = store.end_match(epoch, ending, at(3)).await;
        assert!(matches!(refused, Err(StoreError::Forbidden(_))));
    }
    let ending = finished(1, &[(one, 10), (other, 20)]);
    let ended = store.end_match(epoch, ending, at(4)).await;
    assert_eq!(ended, Ok(Some(Vec::new())));
    let points = async |account| store.account(account).await.expect("known").view.points;
    let all = [
        points(one).await,
        points(other).await,
        points(stranger).await,
    ];
    assert_eq!(all, [10, 20, 0]);
}

pub(crate) async fn a_lease_that_is_given_back_is_free(store: &dyn Store) {
    let ask = |holder, now| store.lease("q".to_owned(), holder, at(now));
    let first = ask(1, 0).await.expect("asked").expect("free");
    let release = |holder| store.release_lease("q".to_owned(), holder);
    release(2).await.expect("not theirs");
    assert_eq!(ask(2, 1).await, Ok(None));
    release(1).await.expect("given back");
    let second = ask(2, 1).await.expect("asked").expect("free again");
    assert_eq!(second.epoch, first.epoch + 1);
    // The first one cannot give back what another one has.
    release(1).await.expect("answered");
    assert_eq!(ask(3, 2).await, Ok(None));
    let old = store.end_ticket(first.epoch, muse_master_client::TicketId(1));
    assert_eq!(old.await, Err(StoreError::OldEpoch));
}

/// A seat turns out to be taken in the middle of many writes: those before it and those after it leave nothing.
pub(crate) async fn a_transaction_that_fails_half_way_leaves_nothing(store: &dyn Store) {
    let [one, other, third] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let seated = queued(store, one).await;
    let created = store.create_match(epoch, new_match(1, &[seated]), at(2));
    created.await.expect("created");
    let free = queued(store, other).await;
    let mut forged = queued(store, third).await;
    forged.party.push(Member {
        account: one,
        rating: 1_500.0,
    });
    let orders = [[&free, &forged], [&forged, &free]];
    for (version, order) in orders.into_iter().enumerate() {
        let new = NewMatch {
            tickets: order.map(Ticket::clone).to_vec(),
            ..new_match(2, &[])
        };
        let failing = store.create_match(epoch, new, at(3));
        // Begun beside it, and in the same commit.
        let version = version as u64;
        let beside = store.save_progress(one, "g".to_owned(), version, "{}".to_owned());
        assert!(matches!(failing.await, Err(StoreError::Unavailable(_))));
        assert_eq!(beside.await, Ok(version + 1));
    }
    let (tickets, matches) = store.restore(epoch).await.expect("restored");
    let ids: Vec<_> = tickets.iter().map(|ticket| ticket.id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&free.id) && ids.contains(&forged.id));
    assert_eq!(matches.len(), 1);
    assert_eq!(store.standing(other).await.expect("read").match_id, None);
}

/// Calls are begun in the order in which they are made, no matter whose answer is awaited first.
pub(crate) async fn calls_are_begun_in_order(store: &dyn Store) {
    let [account] = guests(store).await;
    let save = |based_on: u64| {
        let document = format!("{based_on}");
        store.save_progress(account, "g".to_owned(), based_on, document)
    };
    let answers: Vec<_> = (0..100).map(save).collect();
    for (answer, version) in answers.into_iter().rev().zip((1..=100).rev()) {
        assert_eq!(answer.await, Ok(version));
    }
}

/// Texts compare byte by byte, and hold what comes over the network.
pub(crate) async fn names_are_found_by_how_they_begin(store: &dyn Store) {
    let accounts: [AccountId; 4] = guests(store).await;
    for (account, name) in accounts.into_iter().zip(["Ada", "ada", "Adam", "Bob"]) {
        let named = store.set_password(account, named(name, None), SignInId(1));
        named.await.expect("free");
    }
    let found = async |search: &str| {
        let lines = store.player_lines(search.to_owned(), Vec::new(), at(1));
        let lines = lines.await.expect("read").into_iter();
        lines.filter_map(|line| line.name).collect::<Vec<_>>()
    };
    assert_eq!(found("Ad").await, ["Ada", "Adam"]);
    assert_eq!(found("ad").await, ["ada"]);
    assert_eq!(found("A\0").await, [""; 0]);
    assert_eq!(found("\u{10ffff}'; --").await, [""; 0]);
    assert_eq!(store.operator("a\0b".to_owned()).await, Ok(None));
}
