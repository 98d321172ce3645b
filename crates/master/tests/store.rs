//! The promises of every store; each one passes the same suite.

#[path = "store/deletion.rs"]
mod deletion;
#[cfg(feature = "postgres")]
#[path = "../../../tests/support/postgres.rs"]
#[allow(dead_code, reason = "the master's tests use more of it")]
mod postgres;
#[cfg(feature = "postgres")]
#[path = "store/postgres_alone.rs"]
mod postgres_alone;
#[path = "store/ranking.rs"]
mod ranking;
#[path = "store/retention.rs"]
mod retention;
#[path = "store/several.rs"]
mod several;
#[path = "store/together.rs"]
mod together;
#[path = "store/tokens.rs"]
mod tokens;

use deletion::an_account_is_exported_and_deleted;
use muse_master::director::{Ending, NewMatch};
use muse_master::operators::{Sanction, Sentence};
use muse_master::secrets::SignInId;
use muse_master::store::{ChatTarget, Fill, FriendStep, SqlStore, Store, StoreError};
use muse_master::ticket::{Play, Ticket};
use muse_master_client::messages::{MatchResult, Outcome, PlayerResult};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId};
use muse_wire::{Duration, Instant};
#[cfg(feature = "postgres")]
use postgres_alone::*;
use ranking::the_ranking_is_paged_from_line_to_line;
use retention::what_is_old_goes_in_batches_and_everything_else_stays;
use several::*;
use together::*;
use tokens::*;

fn at(seconds: u64) -> Instant {
    Instant::from_secs(1_800_000_000 + seconds)
}

async fn guests<const N: usize>(store: &dyn Store) -> [AccountId; N] {
    let mut accounts = [AccountId(0); N];
    for (n, account) in accounts.iter_mut().enumerate() {
        *account = store
            .guest(format!("device {n}"), at(0))
            .await
            .expect("made");
    }
    accounts
}

async fn queued(store: &dyn Store, account: AccountId) -> Ticket {
    let played = store
        .play(account, Preferences::default(), false, at(1))
        .await;
    played.expect("nothing stands in the way").ticket
}

async fn leader(store: &dyn Store, holder: u64, now: u64) -> u64 {
    let lease = store.lease("q".to_owned(), holder, at(now)).await;
    lease.expect("asked").expect("free").epoch
}

fn new_match(id: u64, tickets: &[Ticket]) -> NewMatch {
    NewMatch {
        match_id: MatchId(id),
        tickets: tickets.to_vec(),
        preferences: Preferences::default(),
        bots: 0,
    }
}

fn finished(id: u64, players: &[(AccountId, i64)]) -> Ending {
    let player = |&(account, points): &(AccountId, i64)| PlayerResult {
        account,
        points,
        team: None,
    };
    Ending {
        match_id: MatchId(id),
        outcome: Outcome::Finished,
        result: Some(MatchResult {
            match_id: MatchId(id),
            outcome: Outcome::Finished,
            players: players.iter().map(player).collect(),
        }),
        requeue: Vec::new(),
    }
}

async fn play_again_updates_or_leaves(store: &dyn Store) {
    let [account] = guests(store).await;
    let play = |preferences| store.play(account, preferences, false, at(2));
    let entered = play(Preferences::default()).await.expect("enters");
    let two = Preferences::default().players(2);
    let updated = play(two.clone()).await.expect("updates");
    assert_eq!(
        (updated.play, updated.ticket.id),
        (Play::Update, entered.ticket.id)
    );
    let stays = store
        .play(account, two.clone(), true, at(2))
        .await
        .expect("stays");
    assert_eq!(stays.play, Play::Stay);
    assert_eq!(store.queued().await.expect("read"), [account]);
    assert_eq!(play(two).await.expect("leaves").play, Play::Leave);
    assert_eq!(store.queued().await.expect("read"), []);
    assert_eq!(store.standing(account).await.expect("known").ticket, None);
}

async fn a_match_takes_tickets_and_ends_once(store: &dyn Store) {
    let [one, other] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    let new = new_match(1, &tickets);
    let created = store
        .create_match(epoch, new.clone(), at(2))
        .await
        .expect("created");
    assert_eq!(created.gone, []);
    let again = store
        .create_match(
            epoch,
            NewMatch {
                match_id: MatchId(2),
                ..new
            },
            at(2),
        )
        .await;
    assert_eq!(again.expect("answered").gone.len(), 2);
    let busy = store.play(one, Preferences::default(), false, at(2)).await;
    assert!(matches!(busy, Err(StoreError::Conflict(_))));
    store
        .record_server(epoch, MatchId(1), ServerId(7))
        .await
        .expect("recorded");
    store
        .register_server(ServerId(7), "a:1".to_owned(), "00".to_owned(), at(3))
        .await
        .expect("registered");
    let seat = store
        .standing(one)
        .await
        .expect("known")
        .seat
        .expect("it is placed");
    assert_eq!((seat.server, seat.address.as_str()), (ServerId(7), "a:1"));
    let ending = finished(1, &[(one, 10), (other, 30)]);
    assert_eq!(
        store.end_match(epoch, ending.clone(), at(9)).await,
        Ok(Some(Vec::new()))
    );
    let winner = store.account(other).await.expect("known").view;
    assert!(winner.rating > 1_500.0 && winner.points == 30);
    assert_eq!(store.end_match(epoch, ending, at(10)).await, Ok(None));
    assert_eq!(store.account(other).await.expect("known").view, winner);
    assert_eq!(store.standing(one).await.expect("known").match_id, None);
    let ranking = store.ranking(None).await.expect("read");
    assert_eq!(
        ranking.first().map(|line| (line.place, line.account)),
        Some((1, other))
    );
}

async fn an_old_epoch_changes_nothing(store: &dyn Store) {
    let [one, other] = guests(store).await;
    let ask = |holder, now| store.lease("q".to_owned(), holder, now);
    let old = ask(1, at(0)).await.expect("asked").expect("free").epoch;
    assert_eq!(ask(2, at(1)).await, Ok(None));
    let tickets = [queued(store, one).await, queued(store, other).await];
    let new = ask(2, at(60))
        .await
        .expect("asked")
        .expect("it ran out")
        .epoch;
    let created = store
        .create_match(old, new_match(1, &tickets), at(61))
        .await;
    assert_eq!(created, Err(StoreError::OldEpoch));
    assert_eq!(
        store.end_ticket(old, tickets[0].id).await,
        Err(StoreError::OldEpoch)
    );
    let (tickets, matches) = store.restore(new).await.expect("restored");
    assert_eq!((tickets.len(), matches.len()), (2, 0));
}

async fn tickets_return_from_a_match_that_was_called_off(store: &dyn Store) {
    let [one, other, third] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    store
        .create_match(epoch, new_match(1, &tickets), at(2))
        .await
        .expect("created");
    let late = queued(store, third).await;
    assert_eq!(
        store.fill_seats(epoch, MatchId(1), late.id).await,
        Ok(Fill::Filled)
    );
    assert_eq!(
        store.fill_seats(epoch, MatchId(1), late.id).await,
        Ok(Fill::TicketGone)
    );
    store
        .free_seat(epoch, MatchId(1), other)
        .await
        .expect("freed");
    queued(store, other).await;
    let ending = Ending {
        match_id: MatchId(1),
        outcome: Outcome::Cancelled,
        result: None,
        requeue: tickets.to_vec(),
    };
    let back = store.end_match(epoch, ending, at(20)).await.expect("ended");
    assert_eq!(back, Some(vec![tickets[0].clone()]));
    let restored = store.restore(epoch).await.expect("restored").0;
    assert_eq!(restored.len(), 2);
}

async fn names_are_unique_and_progress_is_optimistic(store: &dyn Store) {
    let [one, other] = guests(store).await;
    let name = |account, name: &str| store.set_password(account, named(name, None), SignInId(1));
    name(one, "ada").await.expect("free");
    assert!(matches!(
        name(other, "ada").await,
        Err(StoreError::Conflict(_))
    ));
    let known = store.password("ada".to_owned()).await.expect("read");
    assert_eq!(known, Some((one, "hash".to_owned())));
    let save = |based_on, document: &str| {
        store.save_progress(one, "biobot".to_owned(), based_on, document.to_owned())
    };
    assert_eq!(save(0, r#"{"level":1}"#).await, Ok(1));
    assert_eq!(save(1, r#"{"level":2}"#).await, Ok(2));
    assert!(matches!(save(1, "{}").await, Err(StoreError::Conflict(_))));
    let progress = store
        .progress(one, "biobot".to_owned())
        .await
        .expect("read");
    assert_eq!(
        (progress.version, progress.document["level"].as_u64()),
        (2, Some(2))
    );
}

async fn friends_rooms_and_chat(store: &dyn Store) {
    let [one, other, third] = guests(store).await;
    assert_eq!(store.befriend(one, other, FriendStep::Ask).await, Ok(false));
    assert_eq!(
        store.friends(other, at(1)).await.expect("read")[0].state,
        "asks"
    );
    assert_eq!(store.befriend(other, one, FriendStep::Ask).await, Ok(true));
    assert_eq!(
        store.friends(one, at(1)).await.expect("read")[0].state,
        "friend"
    );
    store
        .open_room(one, "ABCDEF".to_owned(), at(1))
        .await
        .expect("opened");
    let room = store
        .join_room(other, "ABCDEF".to_owned(), at(2))
        .await
        .expect("joined");
    assert_eq!(room.members, [one, other]);
    let nowhere = store.join_room(third, "XXXXXX".to_owned(), at(2)).await;
    assert_eq!(nowhere, Err(StoreError::NotFound("room")));
    // The leader plays for both.
    let refused = store
        .play(other, Preferences::default(), false, at(3))
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    assert_eq!(queued(store, one).await.party.len(), 2);
    let said = store
        .say(one, ChatTarget::Room, "hello".to_owned(), at(4))
        .await
        .expect("said");
    assert_eq!(said.readers, [one, other]);
    let lines = store.history(other, ChatTarget::Room).await.expect("read");
    assert_eq!(lines, [said.line]);
    // A blocked writer is not heard, and nobody writes without end.
    store
        .befriend(third, one, FriendStep::Block)
        .await
        .expect("blocked");
    let direct = ChatTarget::Direct(third);
    let said = store
        .say(one, direct, "you".to_owned(), at(4))
        .await
        .expect("said");
    assert_eq!(said.readers, [one]);
    for _ in 2..10 {
        store
            .say(one, direct, "you".to_owned(), at(5))
            .await
            .expect("said");
    }
    assert!(matches!(
        store.say(one, direct, "you".to_owned(), at(6)).await,
        Err(StoreError::Conflict(_))
    ));
    let later = at(6) + Duration::from_secs(10);
    assert!(
        store
            .say(one, direct, "you".to_owned(), later)
            .await
            .is_ok()
    );
}

async fn sanctions_hold_until_they_are_lifted_and_are_written_down(store: &dyn Store) {
    let [one, other] = guests(store).await;
    let sentence = |sanction, until: Option<Instant>| Sentence {
        account: one,
        sanction,
        until,
        reason: "rude".to_owned(),
    };
    let impose =
        |sanction, until| store.sanction("ada".to_owned(), sentence(sanction, until), at(1));
    impose(Sanction::Ban, Some(at(100))).await.expect("banned");
    impose(Sanction::Mute, Some(at(50))).await.expect("muted");
    let banned = store.account(one).await.expect("known").banned_until;
    assert_eq!(banned, Some(at(100)));
    let say = |now| store.say(one, ChatTarget::Direct(other), "hello".to_owned(), now);
    assert!(matches!(say(at(49)).await, Err(StoreError::Forbidden(_))));
    let line = say(at(50)).await.expect("the mute is over").line;
    let listed = store
        .player_lines(one.to_string(), Vec::new(), at(49))
        .await
        .expect("read");
    assert_eq!(listed[0].banned_until_ms, Some(at(100).as_millis()));
    assert_eq!(listed[0].muted_until_ms, Some(at(50).as_millis()));
    assert_eq!(listed[0].reasons, ["rude", "rude"]);
    impose(Sanction::Ban, None).await.expect("lifted");
    assert_eq!(store.account(one).await.expect("known").banned_until, None);
    let deleted = store.delete_line("ada".to_owned(), line.id, at(60)).await;
    assert_eq!(deleted, Ok(line.clone()));
    assert_eq!(store.chat_lines(None).await, Ok(Vec::new()));
    let again = store.delete_line("ada".to_owned(), line.id, at(60)).await;
    assert_eq!(again, Err(StoreError::NotFound("line")));
    let written = store.audits().await.expect("read");
    let actions: Vec<&str> = written.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["delete_line", "unban", "mute", "ban"]);
    assert!(written.iter().all(|line| line.operator == "ada"));
}

async fn operators_have_generations_and_the_last_one_stays(store: &dyn Store) {
    let set = |name: &str, password: &str| {
        store.set_operator(name.to_owned(), password.to_owned(), at(0))
    };
    set("ada", "one").await.expect("made");
    set("ada", "two").await.expect("changed");
    let known = store.operator("ada".to_owned()).await.expect("read");
    let known = known.expect("there");
    assert_eq!((known.password.as_str(), known.generation), ("two", 1));
    let last = store.remove_operator("ada".to_owned()).await;
    assert!(matches!(last, Err(StoreError::Conflict(_))));
    set("bob", "three").await.expect("made");
    store
        .remove_operator("ada".to_owned())
        .await
        .expect("removed");
    assert_eq!(store.operators().await, Ok(vec!["bob".to_owned()]));
}

async fn operators_see_tickets_and_matches(store: &dyn Store) {
    let [one, other, third] = guests(store).await;
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    queued(store, third).await;
    let new = new_match(1, &tickets);
    store
        .create_match(epoch, new, at(2))
        .await
        .expect("created");
    let waiting = store.ticket_lines(at(11)).await.expect("read");
    assert_eq!((waiting.len(), waiting[0].waited_ms), (1, 10_000));
    assert_eq!(store.waiting().await, Ok((1, Some(at(1)))));
    let live = store.match_line(MatchId(1)).await.expect("read");
    assert_eq!((live.players.len(), live.ended_ms), (2, None));
    let ending = finished(1, &[(one, 10), (other, 30)]);
    store.end_match(epoch, ending, at(9)).await.expect("ended");
    let over = store.match_lines().await.expect("read");
    assert_eq!(over[0].outcome.as_deref(), Some("finished"));
    assert_eq!(over[0].players.len(), 2);
    let found = store
        .player_lines(String::new(), vec![third, one], at(12))
        .await;
    let found = found.expect("read");
    assert!(found[0].ticket.is_some() && found[1].points == 10);
}

async fn secrets_are_made_once_and_exchanged_once(store: &dyn Store) {
    let text = str::to_owned;
    assert_eq!(store.secret("s", text("a")).await, Ok(text("a")));
    assert_eq!(store.secret("s", text("b")).await, Ok(text("a")));
    assert_eq!(
        store.exchange_secret("s", text("a"), text("c")).await,
        Ok(text("c"))
    );
    assert_eq!(
        store.exchange_secret("s", text("a"), text("d")).await,
        Ok(text("c"))
    );
}

macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(#[test]
            fn $name() {
                let folder = tempfile::tempdir().expect("a folder");
                let store = SqlStore::sqlite(&folder.path().join("muse.db")).expect("opened");
                runtime().block_on(super::$name(&store));
            })*
        }

        /// All of it in one cluster, each promise in a database of its own.
        #[cfg(feature = "postgres")]
        #[test]
        fn postgres_keeps_every_promise() {
            let server = postgres::Postgres::start();
            $({
                println!("{}", stringify!($name));
                let store = SqlStore::postgres(&server.database(stringify!($name)), None);
                runtime().block_on($name(&store.expect("opened")));
            })*
            let store = SqlStore::postgres(&server.database("deletion"), None).expect("opened");
            let count = |sql: &str| server.ask("deletion", sql).parse().expect("a number");
            runtime().block_on(an_account_is_exported_and_deleted(&store, &count));
            let store = SqlStore::postgres(&server.database("broken"), None).expect("opened");
            let change = |sql: &str| drop(server.ask("broken", sql));
            runtime().block_on(a_broken_row_is_its_own_players_trouble(&store, &change));
            a_newer_database_is_refused(&server);
            a_turn_that_does_not_come_is_an_error(&server);
            what_fails_at_once_takes_nothing_else_with_it(&server);
            a_write_that_was_put_off_fails_with_its_commit(&server);
            connections_that_break_at_rest_are_made_again(&server);
            two_stores_take_turns(&server);
            the_connection_is_encrypted_for_whom_it_is_trusted(&server);
        }
    };
}

suite!(
    play_again_updates_or_leaves,
    a_match_takes_tickets_and_ends_once,
    the_ranking_is_paged_from_line_to_line,
    an_old_epoch_changes_nothing,
    tickets_return_from_a_match_that_was_called_off,
    refresh_tokens_are_used_once_and_repeated_at_once_only,
    a_thief_who_follows_the_owner_at_once_is_found_at_the_next_token,
    a_new_password_ends_all_sign_ins_but_one,
    blocked_writers_are_not_in_the_history,
    what_is_old_goes_in_batches_and_everything_else_stays,
    names_are_unique_and_progress_is_optimistic,
    friends_rooms_and_chat,
    sanctions_hold_until_they_are_lifted_and_are_written_down,
    operators_have_generations_and_the_last_one_stays,
    operators_see_tickets_and_matches,
    secrets_are_made_once_and_exchanged_once,
    friends_are_seen_at_whatever_master_they_are,
    reports_and_results_wait_for_a_leader_that_missed_them,
    a_lease_that_is_given_back_is_free,
    a_game_server_is_known_by_its_key_until_it_is_gone,
    a_result_names_only_those_who_had_a_seat,
    a_transaction_that_fails_half_way_leaves_nothing,
    calls_are_begun_in_order,
    names_are_found_by_how_they_begin,
    a_crowd_that_plays_at_once_is_treated_as_one_by_one,
);

#[test]
fn sqlite_exports_and_deletes_an_account() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("muse.db");
    let store = SqlStore::sqlite(&path).expect("opened");
    let beside = rusqlite::Connection::open(&path).expect("opened");
    let count = |sql: &str| {
        beside
            .query_row(sql, [], |row| row.get(0))
            .expect("a number")
    };
    runtime().block_on(an_account_is_exported_and_deleted(&store, &count));
}

#[test]
fn in_sqlite_a_broken_row_is_its_own_players_trouble() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("muse.db");
    let store = SqlStore::sqlite(&path).expect("opened");
    let beside = rusqlite::Connection::open(&path).expect("opened");
    let change = |sql: &str| assert_eq!(beside.execute(sql, []), Ok(1));
    runtime().block_on(a_broken_row_is_its_own_players_trouble(&store, &change));
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime")
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_an_old_one_opens_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("muse.db");
    for _ in 0..2 {
        SqlStore::sqlite(&path).expect("opened");
    }
    let connection = rusqlite::Connection::open(&path).expect("opened");
    connection
        .execute_batch("PRAGMA user_version = 999")
        .expect("written");
    let refused = SqlStore::sqlite(&path);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("newer")));
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let _store = SqlStore::sqlite(&folder.path().join("muse.db")).expect("opened");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.file_name());
        names.push(entry.file_name());
    }
    // Also what is not in the first file yet.
    assert!(names.contains(&"muse.db-wal".into()), "{names:?}");
}
