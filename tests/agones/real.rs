//! The same calls against a real API server, which `scripts/kubernetes-check.sh` starts: conflicts, deletions and the watch are its own.
//!
//! Agones' controllers are not there. Its allocator is played by a few lines that do what it does: look for a ready server, and write it back as
//! allocated under the version that was read, which the API server refuses if another was quicker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use muse_master::bus::{Bus, LocalBus};
use muse_master::director::NoServer;
use muse_master::fleet::agones::{AgonesConfig, AgonesFleet, protocol_label};
use muse_master::fleet::{Counts, Fleet};
use muse_master::hub::Hub;
use serde_json::{Value, json};

use crate::{KEY, PROTOCOL, placement, until};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "scripts/kubernetes-check.sh starts what it needs"]
async fn real_allocation_watch_conflict_and_no_free_server() {
    let real = Real::start(2).await;
    for name in ["a", "b"] {
        real.add(name).await;
    }
    real.counts(0, 2, 0).await;
    // Two allocations meet: both read the same server, and one is refused with 409 and asks again.
    let (first, second) = tokio::join!(
        real.fleet.allocate(&placement(1, &[])),
        real.fleet.allocate(&placement(2, &[]))
    );
    assert!(first.is_ok() && second.is_ok() && first != second);
    assert!(real.allocator.conflicts.load(Ordering::Relaxed) > 0);
    real.counts(0, 0, 2).await;
    let mut matches: Vec<u64> = real.fleet.hosts().iter().map(|(_, id)| id.0).collect();
    matches.sort_unstable();
    assert_eq!(matches, [1, 2]);
    assert_eq!(
        real.fleet.allocate(&placement(3, &[])).await,
        Err(NoServer::Full)
    );
    assert_eq!(real.allocator.full.load(Ordering::Relaxed), 1);
    real.clear().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "scripts/kubernetes-check.sh starts what it needs"]
async fn real_deletion_means_one_server_and_not_its_name() {
    let real = Real::start(1).await;
    real.add("a").await;
    real.counts(0, 1, 0).await;
    let server = real.fleet.allocate(&placement(7, &[])).await;
    let server = server.expect("one is free");
    real.counts(0, 0, 1).await;
    real.fleet.release(server);
    real.counts(0, 0, 0).await;
    let left = real.objects.list(&ListParams::default()).await;
    assert!(left.expect("a list").items.is_empty());
    // The API server refuses a deletion that means another of the same name.
    real.add("a").await;
    let other = DeleteParams::default().preconditions(kube::api::Preconditions {
        uid: Some("another".to_owned()),
        resource_version: None,
    });
    let refused = real.objects.delete("a", &other).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 409));
    real.clear().await;
}

struct Real {
    fleet: AgonesFleet,
    objects: Api<DynamicObject>,
    allocator: Arc<Allocator>,
}

/// A process that plays Agones' allocator.
struct Allocator {
    objects: Api<DynamicObject>,
    /// Requests that read before one of them writes.
    meeting: tokio::sync::Barrier,
    met: AtomicUsize,
    at_once: usize,
    conflicts: AtomicUsize,
    full: AtomicUsize,
}

impl Real {
    async fn start(at_once: usize) -> Self {
        let file = std::env::var("MUSE_KUBERNETES_TEST").expect("the script sets it");
        let file = kube::config::Kubeconfig::read_from(file).expect("a file");
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let kind = GroupVersionKind::gvk("agones.dev", "v1", "GameServer");
        let resource = ApiResource::from_gvk_with_plural(&kind, "gameservers");
        let objects = Api::namespaced_with(client, "muse", &resource);
        let allocator = Arc::new(Allocator {
            objects: objects.clone(),
            meeting: tokio::sync::Barrier::new(at_once),
            met: AtomicUsize::new(0),
            at_once,
            conflicts: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
        });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let routes = Router::new()
            .route("/gameserverallocation", post(allocate))
            .with_state(Arc::clone(&allocator));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        // The fleet signs in as a master would, by KUBECONFIG.
        let config = AgonesConfig::new(&address, "biobot", KEY)
            .namespace("muse")
            .end_grace(Duration::from_millis(100));
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        let fleet = AgonesFleet::start(config, PROTOCOL, Arc::new(Hub::new(1)), bus).await;
        Self {
            fleet: fleet.expect("a fleet"),
            objects,
            allocator,
        }
    }

    async fn add(&self, name: &str) {
        let object = json!({
            "apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": { "name": name, "labels": {
                "muse.dev/game": "biobot", "agones.dev/sdk-muse-protocol": protocol_label(PROTOCOL) } },
            "spec": {},
            "status": { "state": "Ready", "nodeName": "n1", "address": "127.0.0.1", "ports": [{ "name": "game", "port": 7_001 }] },
        });
        let object = serde_json::from_value(object).expect("an object");
        let made = self.objects.create(&PostParams::default(), &object).await;
        made.expect("it is made");
    }

    async fn counts(&self, starting: usize, ready: usize, busy: usize) {
        let wanted = Counts {
            starting,
            ready,
            busy,
        };
        until("the fleet's counts", || self.fleet.counts() == wanted).await;
    }

    async fn clear(&self) {
        let all = self.objects.list(&ListParams::default()).await;
        for object in all.expect("a list").items {
            let name = object.name_any();
            let how = DeleteParams::default();
            let gone = self.objects.delete(&name, &how).await;
            gone.expect("it goes");
        }
    }
}

async fn allocate(State(allocator): State<Arc<Allocator>>, Json(request): Json<Value>) -> Response {
    let found = allocator.objects.list(&ListParams::default()).await;
    let ready = |object: &DynamicObject| object.data["status"]["state"] == "Ready";
    let found = found.expect("a list").items.into_iter().find(ready);
    if allocator.met.fetch_add(1, Ordering::Relaxed) < allocator.at_once {
        allocator.meeting.wait().await;
    }
    let Some(mut object) = found else {
        allocator.full.fetch_add(1, Ordering::Relaxed);
        let none = json!({ "code": 8, "message": "no server", "details": [] });
        return (StatusCode::TOO_MANY_REQUESTS, Json(none)).into_response();
    };
    object.data["status"]["state"] = json!("Allocated");
    let annotations = request["metadata"]["annotations"].clone();
    let annotations: std::collections::BTreeMap<String, String> =
        serde_json::from_value(annotations).expect("annotations");
    object.annotations_mut().extend(annotations);
    let name = object.name_any();
    let how = PostParams::default();
    match allocator.objects.replace(&name, &how, &object).await {
        Ok(_) => Json(json!({ "gameServerName": name })).into_response(),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            allocator.conflicts.fetch_add(1, Ordering::Relaxed);
            let aborted = json!({ "code": 10, "message": status.message, "details": [] });
            (StatusCode::CONFLICT, Json(aborted)).into_response()
        }
        Err(error) => unreachable!("{error}"),
    }
}
