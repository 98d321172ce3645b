//! Servers for matches.

use std::time::Duration;

use axum::http::StatusCode;
use muse_master::director::NoServer;
use muse_master::fleet::Fleet;
use muse_master::fleet::agones::server_id;

use crate::cluster::Cluster;
use crate::{KEY, Watching, placement};

#[tokio::test]
async fn a_match_goes_to_the_nearest_region_that_has_a_server_and_anywhere_at_last() {
    let watching = Watching::start(|config| config).await;
    watching.add_ready("asia-1", "n1", "asia");
    watching.add_ready("us-1", "n2", "us");
    let nearest = watching.allocate(11, &["eu", "us"]).await;
    assert_eq!(nearest, Ok(server_id("us-1")));
    let anywhere = watching.allocate(12, &["eu", "us"]).await;
    assert_eq!(anywhere, Ok(server_id("asia-1")));
    let model = watching.cluster.model();
    let annotations = &model.servers["us-1"]["metadata"]["annotations"];
    assert_eq!(annotations["muse.dev/match"], "11");
    // Those who may read the objects of the cluster read no secret.
    assert!(model.asked.iter().all(|request| !request.contains(KEY)));
    let objects = serde_json::to_string(&model.servers).expect("JSON");
    assert!(!objects.contains(KEY));
}

#[tokio::test]
async fn no_free_server_is_an_answer_and_not_asked_again() {
    let watching = Watching::start(|config| config).await;
    watching.cluster.add("starting", "RequestReady", "n1", &[]);
    assert_eq!(watching.allocate(1, &[]).await, Err(NoServer::Full));
    assert_eq!(watching.cluster.model().asked.len(), 1);
}

#[tokio::test]
async fn what_was_in_the_way_is_tried_again() {
    let watching = Watching::start(|config| config).await;
    watching.add_ready("a", "n1", "eu");
    // gRPC's ABORTED and UNAVAILABLE.
    let codes = [
        (StatusCode::CONFLICT, 10),
        (StatusCode::SERVICE_UNAVAILABLE, 14),
    ];
    watching.cluster.model().in_the_way.extend(codes);
    let allocated = watching.allocate(1, &["eu"]).await;
    assert_eq!(allocated, Ok(server_id("a")));
    assert_eq!(watching.cluster.model().asked.len(), 3);
}

#[tokio::test]
async fn matches_at_once_wait_for_one_batch_together() {
    let cluster = Cluster::start(Duration::from_millis(500)).await;
    let watching = Watching::start_at(cluster, |config| config).await;
    for n in 0..12 {
        watching.add_ready(&format!("server-{n}"), "n1", "eu");
    }
    let begun: Vec<_> = (0..12)
        .map(|n| tokio::spawn(watching.fleet.allocate(&placement(n, &["eu"]))))
        .collect();
    let mut servers = Vec::new();
    for allocation in begun {
        servers.push(
            allocation
                .await
                .expect("no panic")
                .expect("a server for each"),
        );
    }
    servers.sort_unstable();
    servers.dedup();
    assert_eq!(servers.len(), 12);
    // One after the other they would take twelve batches of half a second.
    let batches = watching.cluster.model().batches.clone();
    assert!(batches.len() <= 2, "{batches:?}");
}

#[tokio::test]
async fn a_machine_with_enough_matches_gets_no_more() {
    let watching = Watching::start(|config| config.matches_per_host(2)).await;
    for n in 0..4 {
        watching.add_ready(&format!("a-{n}"), "first", "eu");
    }
    watching.add_ready("b-0", "second", "eu");
    watching.counts(0, 5, 0).await;
    for n in 0..2 {
        assert!(watching.allocate(n, &["eu"]).await.is_ok());
    }
    watching.counts(0, 3, 2).await;
    assert_eq!(watching.allocate(2, &["eu"]).await, Ok(server_id("b-0")));
    watching.counts(0, 2, 3).await;
    assert_eq!(watching.allocate(3, &["eu"]).await, Err(NoServer::Full));
    // One of its matches ends.
    watching.cluster.remove("a-0");
    watching.counts(0, 2, 2).await;
    assert!(watching.allocate(4, &["eu"]).await.is_ok());
}

#[tokio::test]
async fn servers_of_another_protocol_are_left_alone() {
    let watching = Watching::start(|config| config).await;
    let old = [("agones.dev/sdk-muse-protocol", "00000000000000ff")];
    watching.cluster.add("old", "Ready", "n1", &old);
    // Labels that a server gives itself have the prefix; without it the label is another one.
    let bare = [("muse-protocol", "4d55534500000001")];
    watching.cluster.add("bare", "Ready", "n1", &bare);
    watching.counts(0, 2, 0).await;
    assert_eq!(watching.allocate(1, &[]).await, Err(NoServer::Full));
    watching.add_ready("new", "n1", "eu");
    assert_eq!(watching.allocate(1, &[]).await, Ok(server_id("new")));
}

#[tokio::test]
async fn an_allocator_that_is_away_is_no_server() {
    let nowhere = "http://127.0.0.1:9";
    let watching = Watching::start(|_| {
        muse_master::fleet::agones::AgonesConfig::new(nowhere, "biobot", KEY)
            .namespace("muse")
            .kubernetes(nowhere)
    })
    .await;
    assert_eq!(watching.allocate(1, &[]).await, Err(NoServer::Failed));
}

/// The fleet's key is not enough: the cluster must know a server of this name and unique id, and know it still.
#[tokio::test]
async fn a_server_enrols_with_the_fleets_key_its_name_and_its_unique_id() {
    let watching = Watching::start(|config| config).await;
    let cluster = &watching.cluster;
    for name in ["a", "b"] {
        watching.add_ready(name, "n1", "eu");
    }
    watching.counts(0, 2, 0).await;
    let uid = |name: &str| {
        let uid = &cluster.model().servers[name]["metadata"]["uid"];
        uid.as_str().expect("a text").to_owned()
    };
    let (first, second) = (uid("a"), uid("b"));
    let enrol = |key: &str, name: &str, uid: &str| watching.fleet.enrol(key, name, uid);
    assert_eq!(enrol(KEY, "a", &first), Some(server_id("a")));
    assert_eq!(enrol(KEY, "b", &second), Some(server_id("b")));
    assert_eq!(enrol("another key", "a", &first), None);
    assert_eq!(enrol(KEY, "a", &second), None);
    assert_eq!(enrol(KEY, "a", ""), None);
    assert_eq!(enrol(KEY, "c", &first), None);
    cluster.remove("a");
    watching.counts(0, 1, 0).await;
    assert_eq!(enrol(KEY, "a", &first), None);
}
