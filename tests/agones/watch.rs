//! The cluster's reports about its servers, and the commands it is given.

use std::time::Duration;

use axum::http::StatusCode;
use muse_master::bus::Note;
use muse_master::fleet::Fleet;
use muse_master::fleet::agones::server_id;
use muse_master_client::MatchId;
use muse_master_client::messages::ToServer;
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::{Watching, until};

#[tokio::test]
async fn servers_are_listed_in_pages_and_then_followed() {
    let watching = Watching::start(|config| config).await;
    let cluster = &watching.cluster;
    for n in 0..1_100 {
        cluster.add(&format!("server-{n:04}"), "Scheduled", "n1", &[]);
    }
    // One of another game is not ours.
    cluster.add("stranger", "Ready", "n1", &[("muse.dev/game", "chess")]);
    watching.counts(1_100, 0, 0).await;
    let pages = cluster.model().pages;
    cluster.compact();
    until("a list of three pages", || {
        cluster.model().pages >= pages + 3
    })
    .await;
    cluster.set_state("server-0000", "RequestReady");
    cluster.set_state("server-0001", "Ready");
    cluster.set_state("server-0002", "Allocated");
    watching.counts(1_098, 1, 1).await;
    assert_eq!(watching.fleet.servers().len(), 1_100);
}

#[tokio::test]
async fn a_watch_that_is_too_old_begins_anew_and_misses_nothing() {
    for by_status in [false, true] {
        let watching = Watching::start(|config| config).await;
        let cluster = &watching.cluster;
        cluster.model().gone_by_status = by_status;
        for name in ["a", "b"] {
            cluster.add(name, "Allocated", "n1", &[]);
        }
        watching.counts(0, 0, 2).await;
        let mut notes = watching.bus.subscribe();
        let lists = cluster.model().lists;
        // The cluster forgets the change before the watch can report it.
        {
            let mut model = cluster.model();
            model.servers.remove("a");
        }
        cluster.compact();
        watching.counts(0, 0, 1).await;
        assert_eq!(gone(&mut notes).await, server_id("a"));
        assert!(cluster.model().lists > lists);
        cluster.set_state("b", "Shutdown");
        watching.counts(0, 0, 0).await;
        assert_eq!(gone(&mut notes).await, server_id("b"));
    }
}

#[tokio::test]
async fn a_watch_goes_on_at_the_last_bookmark() {
    let watching = Watching::start(|config| config).await;
    let cluster = &watching.cluster;
    cluster.add("a", "Ready", "n1", &[]);
    watching.counts(0, 1, 0).await;
    let lists = cluster.model().lists;
    let mark = cluster.bookmark();
    // The mark has been read when what follows it has.
    cluster.set_state("a", "Allocated");
    watching.counts(0, 0, 1).await;
    cluster.cut();
    until("a watch from there on", || {
        cluster
            .model()
            .watched_from
            .last()
            .is_some_and(|from| *from >= mark)
    })
    .await;
    cluster.set_state("a", "Shutdown");
    watching.counts(0, 0, 0).await;
    assert_eq!(cluster.model().lists, lists);
}

#[tokio::test]
async fn servers_and_their_matches_are_known_to_a_leader_that_has_just_come() {
    let watching = Watching::start(|config| config).await;
    let cluster = &watching.cluster;
    cluster.add("a", "Ready", "n1", &[]);
    cluster.change("a", |server| {
        server["metadata"]["annotations"]["muse.dev/match"] = json!("77");
    });
    watching.counts(0, 1, 0).await;
    // A match that nobody was given is none.
    assert!(watching.fleet.hosts().is_empty());
    cluster.set_state("a", "Allocated");
    watching.counts(0, 0, 1).await;
    let hosts = watching.fleet.hosts();
    assert_eq!(hosts, [(server_id("a"), MatchId(77))]);
}

#[tokio::test]
async fn a_server_that_does_not_end_is_deleted_and_nothing_else_of_its_name() {
    let watching = Watching::start(|config| config.end_grace(Duration::from_millis(100))).await;
    let cluster = &watching.cluster;
    for name in ["stuck", "renewed"] {
        cluster.add(name, "Allocated", "n1", &[]);
    }
    watching.counts(0, 0, 2).await;
    let mut notes = watching.bus.subscribe();
    let (stuck, renewed) = (server_id("stuck"), server_id("renewed"));
    watching.fleet.release(stuck);
    watching.fleet.release(stuck);
    let told = notes.recv().await.expect("a note");
    assert_eq!(told, Note::ToServer(stuck, ToServer::End));
    until("a deletion", || !cluster.model().deletions.is_empty()).await;
    assert_eq!(gone(&mut notes).await, stuck);
    // Another of the same name that the watch has not told yet: the deletion names the one that was meant.
    {
        let mut model = cluster.model();
        let server = model.servers.get_mut("renewed").expect("there");
        server["metadata"]["uid"] = json!("another");
    }
    watching.fleet.release(renewed);
    until("a conflict", || cluster.model().deletions.len() == 2).await;
    let expected = [
        ("stuck".to_owned(), StatusCode::OK),
        ("renewed".to_owned(), StatusCode::CONFLICT),
    ];
    assert_eq!(cluster.model().deletions, expected);
    assert_eq!(cluster.state("renewed").as_deref(), Some("Allocated"));
}

async fn gone(notes: &mut Receiver<Note>) -> muse_master_client::ServerId {
    loop {
        let note = tokio::time::timeout(crate::PATIENCE, notes.recv()).await;
        if let Note::ServerGone(server) = note.expect("in time").expect("a note") {
            return server;
        }
    }
}
