//! The program that Agones puts beside a game server: what it is told changes the cluster.
//!
//! The messages are those of the `agones` crate, which keeps its own server's side to itself, so the calls are dispatched by name here. Only what
//! Muse calls is answered.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use agones::{GameServer, ObjectMeta, Port, Status as ServerStatus};
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::runtime::Runtime;
use tonic::body::BoxBody;
use tonic::codegen::http;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status, Streaming};

use crate::cluster::Cluster;

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
                .add_service(beside)
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

/// The service of a sidecar.
#[derive(Clone)]
struct Beside {
    cluster: Cluster,
    name: String,
    signs: Arc<AtomicUsize>,
}

impl Beside {
    fn found(&self) -> Option<GameServer> {
        found(&self.cluster, &self.name)
    }

    fn set_state(&self, state: &str) -> Option<()> {
        self.found()?;
        self.cluster.set_state(&self.name, state);
        Some(())
    }

    /// Sets a label; those that servers give themselves have Agones' prefix.
    fn set_label(&self, pair: &KeyValue) -> Option<()> {
        self.found()?;
        self.cluster.change(&self.name, |server| {
            let key = format!("agones.dev/sdk-{}", pair.key);
            server["metadata"]["labels"][key] = json!(pair.value);
        });
        Some(())
    }

    async fn count_signs(self, mut signs: Streaming<()>) -> Result<Answers<()>, Status> {
        while signs.message().await?.is_some() {
            self.signs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(one(()))
    }

    /// The server whenever it has changed, beginning with now.
    fn watch(self) -> Answers<GameServer> {
        let begin = (self.cluster, self.name, None::<GameServer>);
        let changes = stream::unfold(begin, |(cluster, name, told)| async move {
            loop {
                let now = found(&cluster, &name)?;
                if told.as_ref() != Some(&now) {
                    return Some((Ok(now.clone()), (cluster, name, Some(now))));
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        Answers(Box::pin(changes))
    }

    async fn answer(self, request: http::Request<BoxBody>) -> http::Response<BoxBody> {
        let call = request.uri().path().trim_start_matches(CALLS).to_owned();
        match call.as_str() {
            // Asks: the cluster makes it so, later.
            "Ready" => unary(request, move |()| self.set_state("RequestReady")).await,
            "Shutdown" => unary(request, move |()| self.set_state("Shutdown")).await,
            "SetLabel" => unary(request, move |pair| self.set_label(&pair)).await,
            "GetGameServer" => unary(request, move |()| self.found()).await,
            "Health" => streaming(request, move |signs| self.count_signs(signs)).await,
            "WatchGameServer" => {
                let watch = move |_: Streaming<()>| async move { Ok(self.watch()) };
                streaming(request, watch).await
            }
            _ => Status::unimplemented(call).into_http(),
        }
    }
}

impl NamedService for Beside {
    const NAME: &'static str = "agones.dev.sdk.SDK";
}

impl Service<http::Request<BoxBody>> for Beside {
    type Response = http::Response<BoxBody>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<BoxBody>) -> Self::Future {
        let beside = self.clone();
        Box::pin(async move { Ok(beside.answer(request).await) })
    }
}

/// A label, which the `agones` crate has no public type for.
#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// The answers of a call. A type of its own, because the compiler does not see through an alias that the futures with it may be sent.
struct Answers<T>(Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>);

impl<T> Stream for Answers<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

fn one<T: Send + 'static>(answer: T) -> Answers<T> {
    Answers(Box::pin(stream::iter([Ok(answer)])))
}

/// Answers a call of one message, which is a stream of one on the wire. None says that there is no such server.
async fn unary<I, O>(
    request: http::Request<BoxBody>,
    handle: impl FnOnce(I) -> Option<O> + Send + 'static,
) -> http::Response<BoxBody>
where
    I: prost::Message + Default + 'static,
    O: prost::Message + 'static,
{
    let handle = |mut asked: Streaming<I>| async move {
        let message = asked.message().await?;
        let message = message.ok_or_else(|| Status::invalid_argument("no message"))?;
        let answer = handle(message).ok_or_else(|| Status::not_found("no such server"))?;
        Ok(one(answer))
    };
    streaming(request, handle).await
}

/// Answers a call of any kind.
async fn streaming<I, O, H, F>(
    request: http::Request<BoxBody>,
    handle: H,
) -> http::Response<BoxBody>
where
    I: prost::Message + Default + 'static,
    O: prost::Message + 'static,
    H: FnOnce(Streaming<I>) -> F + Send,
    F: Future<Output = Result<Answers<O>, Status>> + Send + 'static,
{
    let mut grpc = Grpc::new(tonic::codec::ProstCodec::<O, I>::default());
    grpc.streaming(Once(Some(handle)), request).await
}

/// A handler of one call.
struct Once<H>(Option<H>);

impl<H, I, O, F> Service<Request<Streaming<I>>> for Once<H>
where
    H: FnOnce(Streaming<I>) -> F,
    F: Future<Output = Result<Answers<O>, Status>> + Send + 'static,
{
    type Response = Response<Answers<O>>;
    type Error = Status;
    type Future = BoxFuture<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<I>>) -> Self::Future {
        let handle = self.0.take().expect("called once");
        let answers = handle(request.into_inner());
        Box::pin(async move { answers.await.map(Response::new) })
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

/// The path in front of the name of a call.
const CALLS: &str = "/agones.dev.sdk.SDK/";
