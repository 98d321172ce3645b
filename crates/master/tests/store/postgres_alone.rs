//! What is PostgreSQL's alone: other masters beside, other versions before, and the way there.

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
    let refused = SqlStore::postgres(&format!("{url}?sslmode=require"), None);
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("authorities")));
}
