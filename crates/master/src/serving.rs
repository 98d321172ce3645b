//! A listening socket: accepts connections, over TLS or not, and lets none of them keep the others out.
//!
//! `axum::serve` has no limits, so connections are driven here, by hyper: a time for the header of a proxy, for the TLS handshake, for the header of a
//! request and for its body, and [`Connections`] decides who goes when there are too many.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::connections::{ConnectionId, Connections};
use crate::http::limits::network;
use crate::hub::lock;
use crate::proxies::{self, Proxies};

/// Limits of connections that have not signed in: their number, and the time for each of their steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) connections_max: usize,
    pub(crate) per_address: usize,
    pub(crate) request_time: Duration,
}

/// A socket that listens, and what is served there.
pub(crate) struct Serving {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) routes: Router,
    pub(crate) limits: ConnectionLimits,
    pub(crate) proxies: Arc<Proxies>,
}

/// Dropping the sender closes the connection.
type Table = Arc<Mutex<Connections<oneshot::Sender<Infallible>>>>;

impl Serving {
    /// Serves until it is told to close, and then until the last connection has ended.
    pub(crate) async fn serve(self, closing: watch::Receiver<bool>) {
        let limits = self.limits;
        let table = Connections::new(limits.connections_max, limits.per_address);
        let table: Table = Arc::new(Mutex::new(table));
        let mut tasks = JoinSet::new();
        let mut close = closing.clone();
        loop {
            let accepted = tokio::select! {
                _ = close.wait_for(|close| *close) => break,
                Some(_) = tasks.join_next() => continue,
                accepted = accept(&self.listener) => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    tracing::trace!(%address, "a connection was accepted");
                    let (handle, evicted) = oneshot::channel();
                    let proxied = self.proxies.trusts(address.ip());
                    let connection = Connection {
                        caller: Caller::new(&table, address, proxied, handle, limits.request_time),
                        routes: self.routes.clone(),
                        proxies: Arc::clone(&self.proxies),
                        closing: closing.clone(),
                    };
                    tasks.spawn(connection.run(stream, self.tls.clone(), evicted));
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => make_room(&table, &error).await,
            }
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// A connection that sends what is written at once. Otherwise the second of two things told to a player would wait until they had acknowledged
/// the first, which systems put off for 40 ms.
async fn accept(listener: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr)> {
    let (stream, address) = listener.accept().await?;
    let _ = stream.set_nodelay(true);
    Ok((stream, address))
}

/// True if the next connection may be accepted although this one was not.
fn is_of_one_connection(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

/// Closes a connection because the system has no file left for another.
async fn make_room(table: &Table, error: &std::io::Error) {
    match lock(table).evict() {
        Some(evicted) => close_evicted(evicted),
        None => tracing::error!(%error, "no connection can be accepted"),
    }
    // Its task ends meanwhile. Without any, something else must end first.
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

fn close_evicted(evicted: oneshot::Sender<Infallible>) {
    metrics::counter!("muse_connections_evicted").increment(1);
    metrics::gauge!("muse_connections").decrement(1.0);
    drop(evicted);
}

/// One connection.
struct Connection {
    caller: Caller,
    routes: Router,
    proxies: Arc<Proxies>,
    closing: watch::Receiver<bool>,
}

impl Connection {
    /// Serves it until it ends or has to make room for another.
    async fn run(
        mut self,
        mut stream: TcpStream,
        tls: Option<TlsAcceptor>,
        evicted: oneshot::Receiver<Infallible>,
    ) {
        let caller = self.caller.clone();
        let served = async {
            if self.proxies.expects_header(self.caller.address)
                && !self.caller.learn_client(&mut stream).await
            {
                return;
            }
            let Some(tls) = tls else {
                return self.drive(stream).await;
            };
            let handshake = tls.accept(stream);
            let handshake = tokio::time::timeout(self.caller.request_time, handshake);
            match handshake.await {
                Ok(Ok(stream)) => self.drive(stream).await,
                Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
                Err(_) => timed_out("TLS handshake"),
            }
        };
        tokio::select! {
            () = served => {}
            _ = evicted => {}
        }
        caller.close();
    }

    /// Answers its requests. A WebSocket ends this, too: it has a task of its own.
    async fn drive(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self {
            caller,
            routes,
            proxies,
            mut closing,
        } = self;
        let routes = TowerToHyperService::new(routes);
        let request_time = caller.request_time;
        let service = service_fn(move |mut request: Request<Incoming>| {
            let caller = caller.clone();
            if request.body().is_end_stream() {
                caller.handle_request();
            }
            let client = proxies.client(caller.address, request.headers());
            let extensions = request.extensions_mut();
            extensions.insert(ConnectInfo(client));
            extensions.insert(caller.clone());
            let answer = routes.call(request);
            async move {
                let answer: Result<Response, Infallible> = answer.await;
                let upgraded =
                    |answer: &Response| answer.status() == StatusCode::SWITCHING_PROTOCOLS;
                if !answer.as_ref().is_ok_and(upgraded) {
                    caller.handle_answer();
                }
                answer
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(request_time)
            .max_buf_size(BUFFER_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let closes = async move { drop(closing.wait_for(|close| *close).await) };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = closes => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if ended.is_err_and(|error| error.is_timeout()) {
            timed_out("header of a request");
        }
    }
}

/// The connection that a request came over.
#[derive(Clone)]
pub(crate) struct Caller {
    table: Table,
    id: ConnectionId,
    address: SocketAddr,
    request_time: Duration,
}

impl Caller {
    /// Takes its place, or that of another. A proxy's connection is one of many clients'.
    fn new(
        table: &Table,
        address: SocketAddr,
        proxied: bool,
        handle: oneshot::Sender<Infallible>,
        request_time: Duration,
    ) -> Self {
        let from = network(address.ip());
        let (id, evicted) = match proxied {
            true => lock(table).open_for_many(from, handle),
            false => lock(table).open(from, handle),
        };
        metrics::gauge!("muse_connections").increment(1.0);
        if let Some(evicted) = evicted {
            close_evicted(evicted);
        }
        Self {
            table: Arc::clone(table),
            id,
            address,
            request_time,
        }
    }

    /// Waits for the header in which a proxy names the client, whose connection this is from then on. False if none comes.
    async fn learn_client(&mut self, stream: &mut TcpStream) -> bool {
        let header = proxies::read_header(stream);
        match tokio::time::timeout(self.request_time, header).await {
            Ok(Ok(None)) => true,
            Ok(Ok(Some(client))) => {
                let evicted = lock(&self.table).move_to(self.id, network(client.ip()));
                if let Some(evicted) = evicted {
                    close_evicted(evicted);
                }
                self.address = client;
                true
            }
            // A proxy that only looks whether something listens.
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => false,
            Ok(Err(error)) => {
                tracing::warn!(proxy = %self.address, %error, "a connection of a proxy is refused");
                false
            }
            Err(_) => {
                timed_out("header of PROXY protocol");
                false
            }
        }
    }

    /// Waits for the body of a request; none if it takes too long.
    pub(crate) async fn receive<T>(&self, body: impl Future<Output = T>) -> Option<T> {
        let received = tokio::time::timeout(self.request_time, body).await.ok();
        match received {
            Some(_) => self.handle_request(),
            None => timed_out("body of a request"),
        }
        received
    }

    fn handle_request(&self) {
        lock(&self.table).handle_request(self.id);
    }

    fn handle_answer(&self) {
        lock(&self.table).handle_answer(self.id);
    }

    fn close(&self) {
        if lock(&self.table).close(self.id).is_some() {
            metrics::gauge!("muse_connections").decrement(1.0);
        }
    }
}

/// Counts a connection that was too slow.
pub(crate) fn timed_out(what: &'static str) {
    metrics::counter!("muse_connections_timed_out").increment(1);
    tracing::debug!(what, "a connection was too slow");
}

/// Longest header of a request, and what a connection reads ahead of its body.
const BUFFER_MAX: usize = 16 * 1024;
/// Time between two attempts when the system has no file left for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_send_at_once() -> std::io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (stream, from) = accept(&listener).await?;
        assert_eq!(from, client.local_addr()?);
        assert!(stream.nodelay()?);
        Ok(())
    }
}
