//! Tests of PostgreSQL alone: several masters on one database, schemas of other versions, and the connection to it.

use muse_master::store::{FriendStep, SqlStore, Store, StoreError};
use muse_master_client::{AccountId, Preferences};

use super::postgres::Postgres;
use super::{at, guests, queued, runtime};

pub(crate) fn a_newer_database_is_refused(server: &Postgres) {
    let url = server.database("newer");
    SqlStore::postgres(&url, None).expect("opened");
    server.ask("newer", "UPDATE muse_version SET version = 999");
    let refused = SqlStore::postgres(&url, None);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("newer")));
}

/// Two masters with one database: of the same ticket asked for by both at once there is one.
pub(crate) fn two_stores_take_turns(server: &Postgres) {
    let url = server.database("turns");
    let stores = [(); 2].map(|()| SqlStore::postgres(&url, None).expect("opened"));
    runtime().block_on(async {
        let [account] = guests(&stores[0]).await;
        for _ in 0..50 {
            let play = |store: &SqlStore| store.play(account, Preferences::default(), true, at(1));
            let (one, other) = (play(&stores[0]), play(&stores[1]));
            let (one, other) = (one.await.expect("played"), other.await.expect("played"));
            assert_eq!(one.ticket.id, other.ticket.id);
            stores[1].leave_queue(account).await.expect("left");
        }
    });
}

/// Somebody holds everybody up: an error in a while, nothing written, and it goes on by itself.
pub(crate) fn a_turn_that_does_not_come_is_an_error(server: &Postgres) {
    let store = SqlStore::postgres(&server.database("held"), None).expect("opened");
    runtime().block_on(async {
        let [account] = guests(&store).await;
        let held = server.hold("held", "SELECT 1", 1, 5_570_193);
        let refused = store
            .play(account, Preferences::default(), true, at(1))
            .await;
        assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("PostgreSQL")));
        drop(held);
        assert_eq!(store.standing(account).await.expect("read").ticket, None);
        queued(&store, account).await;
    });
}

/// Between writes of one commit stand transactions whose first statement is refused, and some that ask nothing at all: a savepoint goes with
/// the first statement, and neither may undo what came before it or spoil what comes after.
pub(crate) fn what_fails_at_once_takes_nothing_else_with_it(server: &Postgres) {
    let store = SqlStore::postgres(&server.database("at_once"), None).expect("opened");
    runtime().block_on(async {
        let [account] = guests(&store).await;
        server.ask("at_once", "DROP TABLE leases");
        let calls: Vec<_> = (0..20)
            .map(|version| {
                let document = version.to_string();
                let saved = store.save_progress(account, "g".to_owned(), version, document);
                let refused = store.tickets(1);
                let nothing = store.befriend(account, account, FriendStep::Ask);
                (saved, refused, nothing)
            })
            .collect();
        for ((saved, refused, nothing), version) in calls.into_iter().zip(1..) {
            assert_eq!(saved.await, Ok(version));
            assert!(
                matches!(refused.await, Err(StoreError::Unavailable(why)) if why.contains("leases"))
            );
            assert!(matches!(nothing.await, Err(StoreError::Conflict(_))));
        }
        let progress = store.progress(account, "g".to_owned()).await.expect("read");
        assert_eq!((progress.version, progress.document), (20, 19.into()));
    });
}

/// A ticket is written with whatever is asked next, so that it is refused when nobody looks at it any more: the commit fails for all, and nothing holds.
pub(crate) fn a_write_that_was_put_off_fails_with_its_commit(server: &Postgres) {
    let store = SqlStore::postgres(&server.database("put_off"), None).expect("opened");
    runtime().block_on(async {
        let [one, other] = guests(&store).await;
        server.ask(
            "put_off",
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'not today'; END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON ticket_members FOR EACH ROW EXECUTE FUNCTION refuse()",
        );
        let saved = |version| store.save_progress(other, "g".to_owned(), version, "1".to_owned());
        let calls = (
            store.play(one, Preferences::default(), true, at(1)),
            saved(0),
        );
        let refused = calls.0.await;
        assert!(
            matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("not today")),
            "{refused:?}"
        );
        // In the same commit it fails too; in the next one it holds.
        let beside = calls.1.await;
        let progress = store.progress(other, "g".to_owned()).await.expect("read");
        assert_eq!(progress.version, beside.unwrap_or(0));
        assert_eq!(store.standing(one).await.expect("read").ticket, None);
        server.ask("put_off", "DROP TRIGGER refuse ON ticket_members");
        queued(&store, one).await;
    });
}

/// Both connections are cut while nobody uses them: the next read and the next write succeed.
pub(crate) fn connections_that_break_at_rest_are_made_again(server: &Postgres) {
    let store = SqlStore::postgres(&server.database("rest"), None).expect("opened");
    runtime().block_on(async {
        let [account] = guests(&store).await;
        store.account(account).await.expect("read");
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name = 'muse-master' AND datname = 'rest'";
        assert_eq!(server.ask("rest", cut), "2");
        store.account(account).await.expect("read again");
        queued(&store, account).await;
    });
}

pub(crate) fn the_connection_is_encrypted_for_whom_it_is_trusted(server: &Postgres) {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = ["one.pem", "other.pem"].map(|name| {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
        let path = folder.path().join(name);
        std::fs::write(&path, made.cert.pem()).expect("written");
        (path, made)
    });
    let url = server.database("encrypted");
    let refused = SqlStore::postgres(&url, Some(&one.0));
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "it has no certificate"
    );
    server.encrypt(&one.1.cert.pem(), &one.1.signing_key.serialize_pem());
    let store = SqlStore::postgres(&url, Some(&one.0)).expect("trusted");
    let _: [AccountId; 1] = runtime().block_on(guests(&store));
    // The one that writes, and the one that reads; and both are encrypted.
    let connections = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE application_name = 'muse-master' AND datname = 'encrypted'";
    assert_eq!(server.ask("encrypted", connections), "2");
    let encrypted = format!("{connections} AND ssl");
    assert_eq!(server.ask("encrypted", &encrypted), "2");
    let refused = SqlStore::postgres(&url, Some(&other.0));
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    for mode in ["require", "verify-full"] {
        let url = format!("{url}?connect_timeout=3&sslmode={mode}");
        let refused = SqlStore::postgres(&url, None);
        assert!(
            matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("authorities"))
        );
        assert!(SqlStore::postgres(&url, Some(&other.0)).is_err());
        SqlStore::postgres(&url, Some(&one.0)).expect("trusted");
    }
}
