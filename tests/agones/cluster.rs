//! A cluster as a master sees it: the allocator's REST interface and Kubernetes' lists and watches of `GameServer` objects.
//!
//! Requests to the allocator are read strictly: what `definition.rs` does not know is refused with 400.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::definition::AllocationRequest;

/// The cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    inner: Arc<Inner>,
    pub(crate) address: SocketAddr,
}

struct Inner {
    model: Mutex<Model>,
    changed: Notify,
}

/// The state of the cluster, and the requests it received.
#[derive(Default)]
pub(crate) struct Model {
    version: u64,
    pub(crate) servers: BTreeMap<String, Value>,
    /// Changes, oldest first.
    log: Vec<(u64, &'static str, Value)>,
    /// Versions up to here cannot be watched any more.
    compacted: u64,
    /// Watches with a smaller number end.
    generation: u64,
    /// Says that a version is too old by the status of the answer instead of by an event.
    pub(crate) gone_by_status: bool,
    pub(crate) lists: usize,
    pub(crate) pages: usize,
    pub(crate) watched_from: Vec<u64>,
    pub(crate) deletions: Vec<(String, StatusCode)>,
    /// Errors that the allocator answers next instead of allocating.
    pub(crate) in_the_way: VecDeque<(StatusCode, u32)>,
    pub(crate) batch_wait: Duration,
    batch: Vec<(AllocationRequest, oneshot::Sender<Response>)>,
    pub(crate) batches: Vec<usize>,
    /// Requests as they came, word for word.
    pub(crate) asked: Vec<String>,
}

impl Cluster {
    /// A cluster without servers, whose allocator collects requests for this long.
    pub(crate) async fn start(batch_wait: Duration) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port");
        let cluster = Self {
            address: listener.local_addr().expect("bound"),
            inner: Arc::new(Inner {
                model: Mutex::new(Model {
                    version: 1,
                    batch_wait,
                    ..Model::default()
                }),
                changed: Notify::new(),
            }),
        };
        let objects = "/apis/agones.dev/v1/namespaces/{namespace}/gameservers";
        let routes = Router::new()
            .route("/gameserverallocation", post(allocate))
            .route(objects, get(list_or_watch))
            .route(&format!("{objects}/{{name}}"), delete(remove))
            .with_state(cluster.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        cluster
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        let model = &self.inner.model;
        model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A server in this state, on this machine, with these labels beside the game's.
    pub(crate) fn add(&self, name: &str, state: &str, node: &str, labels: &[(&str, &str)]) {
        self.add_at(name, state, node, labels, 7_001);
    }

    pub(crate) fn add_at(
        &self,
        name: &str,
        state: &str,
        node: &str,
        labels: &[(&str, &str)],
        port: u16,
    ) {
        let mut all: BTreeMap<&str, &str> = BTreeMap::from([("muse.dev/game", "biobot")]);
        all.extend(labels.iter().copied());
        let uid = format!("{name}-{}", self.model().version);
        self.put(json!({
            "apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": { "name": name, "namespace": "muse", "uid": uid, "labels": all, "annotations": {} },
            "status": { "state": state, "address": "127.0.0.1", "nodeName": node, "ports": [{ "name": "game", "port": port }] },
        }));
    }

    /// Changes a server.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut server = self.model().servers[name].clone();
        change(&mut server);
        self.put(server);
    }

    pub(crate) fn set_state(&self, name: &str, state: &str) {
        self.change(name, |server| server["status"]["state"] = json!(state));
    }

    pub(crate) fn state(&self, name: &str) -> Option<String> {
        let model = self.model();
        let server = model.servers.get(name)?;
        server["status"]["state"].as_str().map(str::to_owned)
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut model = self.model();
        model.version += 1;
        let version = model.version;
        if let Some(mut server) = model.servers.remove(name) {
            server["metadata"]["resourceVersion"] = json!(version.to_string());
            model.log.push((version, "DELETED", server));
        }
        drop(model);
        self.inner.changed.notify_waiters();
    }

    /// Forgets what changed so far, and ends all watches.
    pub(crate) fn compact(&self) {
        let mut model = self.model();
        model.version += 1;
        model.compacted = model.version;
        model.generation += 1;
        drop(model);
        self.inner.changed.notify_waiters();
    }

    /// Ends all watches.
    pub(crate) fn cut(&self) {
        self.model().generation += 1;
        self.inner.changed.notify_waiters();
    }

    /// Tells watchers how far things are although none of theirs changed.
    pub(crate) fn bookmark(&self) -> u64 {
        let mut model = self.model();
        model.version += 100;
        let version = model.version;
        let mark = json!({
            "apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": { "resourceVersion": version.to_string() },
        });
        model.log.push((version, "BOOKMARK", mark));
        drop(model);
        self.inner.changed.notify_waiters();
        version
    }

    fn put(&self, mut server: Value) {
        let mut model = self.model();
        model.version += 1;
        let version = model.version;
        server["metadata"]["resourceVersion"] = json!(version.to_string());
        let name = text(&server["metadata"]["name"]);
        let old = model.servers.insert(name, server.clone());
        let kind = old.map_or("ADDED", |_| "MODIFIED");
        model.log.push((version, kind, server));
        drop(model);
        self.inner.changed.notify_waiters();
    }

    /// Gives every request of a batch its server, in order.
    fn run_batch(&self) {
        let batch = {
            let mut model = self.model();
            let batch = std::mem::take(&mut model.batch);
            model.batches.push(batch.len());
            batch
        };
        for (request, answer) in batch {
            let _ = answer.send(self.give(&request));
        }
    }

    fn give(&self, request: &AllocationRequest) -> Response {
        if let Some((status, code)) = self.model().in_the_way.pop_front() {
            return gateway_error(status, code, "in the way");
        }
        let found = {
            let model = self.model();
            let servers: Vec<&Value> = model.servers.values().collect();
            request.select(&servers).cloned()
        };
        let Some(mut server) = found else {
            let message = "there is no available GameServer to allocate";
            return gateway_error(StatusCode::TOO_MANY_REQUESTS, 8, message);
        };
        server["status"]["state"] = json!("Allocated");
        for (kind, patch) in request.metadata.patches() {
            for (key, value) in patch {
                server["metadata"][kind][key] = json!(value);
            }
        }
        let answer = json!({
            "gameServerName": server["metadata"]["name"], "ports": server["status"]["ports"],
            "address": server["status"]["address"], "addresses": [], "nodeName": server["status"]["nodeName"],
            "source": "local", "counters": {}, "lists": {},
            "metadata": { "labels": server["metadata"]["labels"], "annotations": server["metadata"]["annotations"] },
        });
        self.put(server);
        Json(answer).into_response()
    }
}

async fn allocate(State(cluster): State<Cluster>, headers: HeaderMap, body: Bytes) -> Response {
    let refused = |why: &str| gateway_error(StatusCode::BAD_REQUEST, 3, why);
    let json = headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/json");
    if !json {
        return refused("not JSON");
    }
    let request: AllocationRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return refused(&error.to_string()),
    };
    let (answer, answered) = oneshot::channel();
    {
        let mut model = cluster.model();
        let text = String::from_utf8_lossy(&body).into_owned();
        model.asked.push(text);
        model.batch.push((request, answer));
        if model.batch.len() == 1 {
            let (wait, cluster) = (model.batch_wait, cluster.clone());
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                cluster.run_batch();
            });
        }
    }
    let lost = || StatusCode::INTERNAL_SERVER_ERROR.into_response();
    answered.await.unwrap_or_else(|_| lost())
}

async fn list_or_watch(
    State(cluster): State<Cluster>,
    Path(namespace): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    if namespace != "muse" {
        return status(StatusCode::FORBIDDEN, "Forbidden");
    }
    let labels = query.get("labelSelector").cloned().unwrap_or_default();
    if query.get("watch").is_some_and(|watch| watch == "true") {
        let from = query.get("resourceVersion").and_then(|v| v.parse().ok());
        return watch(&cluster, from.unwrap_or(0), labels);
    }
    let mut model = cluster.model();
    let start = query.get("continue").cloned().unwrap_or_default();
    let limit = query.get("limit").and_then(|n| n.parse().ok());
    let limit: usize = limit.unwrap_or(usize::MAX);
    model.pages += 1;
    model.lists += usize::from(start.is_empty());
    let mut matching = model
        .servers
        .iter()
        .filter(|(name, server)| **name > start && has_labels(server, &labels));
    let page: Vec<(&String, &Value)> = matching.by_ref().take(limit).collect();
    let more = matching.next().is_some();
    let last = page.last().filter(|_| more).map(|(name, _)| *name);
    let items: Vec<&Value> = page.iter().map(|(_, server)| *server).collect();
    Json(json!({
        "apiVersion": "agones.dev/v1", "kind": "GameServerList",
        "metadata": { "resourceVersion": model.version.to_string(), "continue": last.cloned().unwrap_or_default() },
        "items": items,
    }))
    .into_response()
}

/// One line of JSON for each change, until the watch is cut.
fn watch(cluster: &Cluster, from: u64, labels: String) -> Response {
    let generation = {
        let mut model = cluster.model();
        model.watched_from.push(from);
        if from < model.compacted && model.gone_by_status {
            return status(StatusCode::GONE, "Expired");
        }
        model.generation
    };
    let begin = (cluster.clone(), from, labels);
    let changes = stream::unfold(begin, move |(cluster, seen, labels)| async move {
        loop {
            let inner = Arc::clone(&cluster.inner);
            let changed = inner.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (lines, upto) = {
                let model = cluster.model();
                if seen < model.compacted && !model.gone_by_status {
                    let gone = json!({ "type": "ERROR", "object": {
                        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
                        "reason": "Expired", "message": "too old resource version" } });
                    (format!("{gone}\n"), u64::MAX)
                } else if model.generation != generation || seen == u64::MAX {
                    return None;
                } else {
                    let new = model.log.iter().filter(|(version, _, _)| *version > seen);
                    let lines = new.filter(|(_, kind, object)| {
                        *kind == "BOOKMARK" || has_labels(object, &labels)
                    });
                    let lines = lines.map(|(_, kind, object)| {
                        format!("{}\n", json!({ "type": kind, "object": object }))
                    });
                    (lines.collect(), model.version)
                }
            };
            if !lines.is_empty() {
                let line = Ok::<_, Infallible>(Bytes::from(lines));
                return Some((line, (cluster, upto, labels)));
            }
            changed.await;
        }
    });
    let body = Body::from_stream(changes);
    ([("content-type", "application/json")], body).into_response()
}

async fn remove(
    State(cluster): State<Cluster>,
    Path((_, name)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let options: Value = serde_json::from_slice(&body).unwrap_or_default();
    let wanted = options["preconditions"]["uid"].clone();
    let found = cluster.model().servers.get(&name).cloned();
    let answer = match found {
        None => StatusCode::NOT_FOUND,
        Some(server) if wanted.is_string() && wanted != server["metadata"]["uid"] => {
            StatusCode::CONFLICT
        }
        Some(_) => StatusCode::OK,
    };
    cluster.model().deletions.push((name.clone(), answer));
    if answer == StatusCode::OK {
        cluster.remove(&name);
    }
    status(answer, "Status")
}

/// An answer of Kubernetes that is not an object.
fn status(code: StatusCode, reason: &str) -> Response {
    let verdict = if code.is_success() {
        "Success"
    } else {
        "Failure"
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": verdict, "message": reason,
        "reason": reason, "code": code.as_u16(),
    });
    (code, Json(body)).into_response()
}

/// The answer of grpc-gateway when a call fails.
fn gateway_error(status: StatusCode, code: u32, message: &str) -> Response {
    let body = json!({ "code": code, "message": message, "details": [] });
    (status, Json(body)).into_response()
}

fn has_labels(server: &Value, selector: &str) -> bool {
    let mut pairs = selector.split(',').filter_map(|pair| pair.split_once('='));
    pairs.all(|(key, value)| server["metadata"]["labels"][key] == value)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
