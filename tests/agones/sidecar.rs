//! The program that Agones puts beside a game server, by its published definition: what it is told changes the cluster.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{Stream, stream};
use serde_json::json;
use tokio::runtime::Runtime;
use tonic::{Request, Response, Status, Streaming};

use crate::cluster::Cluster;

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod published {
    tonic::include_proto!("agones.dev.sdk");
}
use published::game_server::status::Port;
use published::game_server::{ObjectMeta, Status as ServerStatus};
use published::sdk_server::{Sdk, SdkServer};
use published::{Duration, Empty, GameServer, KeyValue};

/// A sidecar that runs until it is dropped.
pub(crate) struct Sidecar {
    pub(crate) address: SocketAddr,
    pub(crate) signs: Arc<AtomicUsize>,
    runtime: Option<Runtime>,
}

impl Sidecar {
    /// Beside the server of this name; port 0 is any.
    pub(crate) fn start(cluster: &Cluster, name: &str, port: u16) -> Self {
        // Of its own, so that its end closes every connection, as that of a process would.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let signs = Arc::new(AtomicUsize::new(0));
        let beside = Beside {
            cluster: cluster.clone(),
            name: name.to_owned(),
            signs: Arc::clone(&signs),
        };
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("bound");
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            let incoming = stream::unfold(listener, |listener| async move {
                let accepted = listener.accept().await;
                Some((accepted.map(|(stream, _)| stream), listener))
            });
            let served = tonic::transport::Server::builder()
                .add_service(SdkServer::new(beside))
                .serve_with_incoming(incoming);
            served.await.expect("it serves");
        });
        Self {
            address,
            signs,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn signs(&self) -> usize {
        self.signs.load(Ordering::Relaxed)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The port is free when this is over. On a thread of its own, for a runtime must not wait for another's end.
            let end = std::thread::spawn(move || {
                runtime.shutdown_timeout(std::time::Duration::from_secs(5))
            });
            end.join().expect("it ends");
        }
    }
}

struct Beside {
    cluster: Cluster,
    name: String,
    signs: Arc<AtomicUsize>,
}

impl Beside {
    fn set_state(&self, state: &str) -> Result<Response<Empty>, Status> {
        self.found()?;
        self.cluster.set_state(&self.name, state);
        Ok(Response::new(Empty {}))
    }

    fn found(&self) -> Result<GameServer, Status> {
        found(&self.cluster, &self.name).ok_or_else(|| Status::not_found("no such server"))
    }

    /// What servers say of themselves has Agones' prefix.
    fn say(&self, kind: &str, pair: KeyValue) -> Result<Response<Empty>, Status> {
        self.found()?;
        self.cluster.change(&self.name, |server| {
            let key = format!("agones.dev/sdk-{}", pair.key);
            server["metadata"][kind][key] = json!(pair.value);
        });
        Ok(Response::new(Empty {}))
    }
}

fn found(cluster: &Cluster, name: &str) -> Option<GameServer> {
    let model = cluster.model();
    let server = model.servers.get(name)?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let port = server["status"]["ports"][0]["port"].as_i64();
    Some(GameServer {
        object_meta: Some(ObjectMeta {
            name: name.to_owned(),
            namespace: text(&server["metadata"]["namespace"]),
            uid: text(&server["metadata"]["uid"]),
            ..ObjectMeta::default()
        }),
        spec: None,
        status: Some(ServerStatus {
            state: text(&server["status"]["state"]),
            address: text(&server["status"]["address"]),
            ports: vec![Port {
                name: "game".to_owned(),
                port: port.and_then(|port| i32::try_from(port).ok()).unwrap_or(0),
            }],
            ..ServerStatus::default()
        }),
    })
}

#[tonic::async_trait]
impl Sdk for Beside {
    /// Asks: the cluster makes it so, later.
    async fn ready(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.set_state("RequestReady")
    }

    async fn allocate(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.set_state("Allocated")
    }

    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.set_state("Shutdown")
    }

    async fn health(&self, request: Request<Streaming<Empty>>) -> Result<Response<Empty>, Status> {
        let mut signs = request.into_inner();
        while signs.message().await?.is_some() {
            self.signs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Response::new(Empty {}))
    }

    async fn get_game_server(&self, _: Request<Empty>) -> Result<Response<GameServer>, Status> {
        self.found().map(Response::new)
    }

    type WatchGameServerStream = Pin<Box<dyn Stream<Item = Result<GameServer, Status>> + Send>>;

    async fn watch_game_server(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::WatchGameServerStream>, Status> {
        let begin = (self.cluster.clone(), self.name.clone(), None::<GameServer>);
        let changes = stream::unfold(begin, |(cluster, name, told)| async move {
            loop {
                let now = found(&cluster, &name)?;
                if told.as_ref() != Some(&now) {
                    return Some((Ok(now.clone()), (cluster, name, Some(now))));
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        Ok(Response::new(Box::pin(changes)))
    }

    async fn set_label(&self, pair: Request<KeyValue>) -> Result<Response<Empty>, Status> {
        self.say("labels", pair.into_inner())
    }

    async fn set_annotation(&self, pair: Request<KeyValue>) -> Result<Response<Empty>, Status> {
        self.say("annotations", pair.into_inner())
    }

    async fn reserve(&self, _: Request<Duration>) -> Result<Response<Empty>, Status> {
        self.set_state("Reserved")
    }
}
