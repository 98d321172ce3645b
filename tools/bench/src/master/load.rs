//! The players: many connections on one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use muse_master_client::api::{PlayAnswer, SignedIn};
use muse_master_client::messages::{ToMaster, encode};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// A request that is repeated as fast as it is answered.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// *Play*, twice in a row: once into the queue and once out of it again, a durable commit each. Only what enters counts.
    Tickets,
    /// Refresh tokens, each used once.
    SignIns,
}

/// Sessions that keep themselves alive until they are dropped.
pub(super) struct Sessions {
    lost: Arc<AtomicUsize>,
}

impl Sessions {
    /// Checks that all are still there.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => bail!("{lost} sessions were lost"),
        }
    }
}

/// Opens so many sessions.
pub(super) async fn connect(authority: &str, count: usize) -> anyhow::Result<Sessions> {
    let lost = Arc::new(AtomicUsize::new(0));
    let mut http = Http::open(authority).await?;
    for n in 0..count {
        let token = http.sign_in(n).await?.access_token;
        let mut socket = open_push(authority, &token).await?;
        let lost = Arc::clone(&lost);
        // Keep-alives are spread over the second.
        let offset = Duration::from_micros((n as u64 * 7_919) % 1_000_000);
        tokio::spawn(async move {
            let mut beat = tokio::time::interval_at(
                tokio::time::Instant::now() + offset,
                Duration::from_secs(1),
            );
            let text = encode(&ToMaster::KeepAlive);
            loop {
                tokio::select! {
                    _ = beat.tick() => if socket.send(Message::text(text.clone())).await.is_err() { break },
                    message = socket.next() => if !matches!(message, Some(Ok(_))) { break },
                }
            }
            lost.fetch_add(1, Ordering::Relaxed);
        });
    }
    Ok(Sessions { lost })
}

/// A player's connection, with small buffers.
pub(super) async fn open_push(
    authority: &str,
    token: &str,
) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let mut request = format!("ws://{authority}/v1/push").into_client_request()?;
    request
        .headers_mut()
        .insert(AUTHORIZATION, format!("Bearer {token}").parse()?);
    let small = WebSocketConfig::default()
        .read_buffer_size(1_024)
        .write_buffer_size(0);
    let stream = TcpStream::connect(authority)
        .await
        .context("open files: see ulimit -n")?;
    stream.set_nodelay(true)?;
    let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(small));
    Ok(opened.await?.0)
}

/// Players who ask as fast as they are answered, until they are dropped.
pub(super) struct Askers {
    counted: Arc<AtomicU64>,
    all: JoinSet<anyhow::Result<()>>,
}

impl Askers {
    /// Returns how many requests were answered so far.
    pub(super) fn counted(&mut self) -> anyhow::Result<u64> {
        match self.all.try_join_next() {
            // They go on for ever, unless something fails.
            Some(ended) => Err(ended?.err().unwrap_or_else(|| anyhow!("a player left"))),
            None => Ok(self.counted.load(Ordering::Relaxed)),
        }
    }
}

/// Starts 64 of them, once all are signed in.
pub(super) async fn ask(authority: &str, kind: Kind) -> anyhow::Result<Askers> {
    let mut clients = Vec::with_capacity(CONNECTIONS);
    for n in 0..CONNECTIONS {
        let mut http = Http::open(authority).await?;
        let signed_in = http.sign_in(n).await?;
        clients.push((http, signed_in));
    }
    let counted = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for (n, (mut http, mut signed_in)) in clients.into_iter().enumerate() {
        let counted = Arc::clone(&counted);
        all.spawn(async move {
            // Each asks for a match of its own, so that nothing is matched meanwhile.
            let play = format!(r#"{{"preferences":{{"choices":{{"room":"{n}"}}}}}}"#);
            loop {
                match kind {
                    Kind::Tickets => {
                        let token = Some(signed_in.access_token.as_str());
                        let entered = http.call("/v1/ticket", token, play.clone()).await?;
                        if serde_json::from_slice::<PlayAnswer>(&entered)?
                            .ticket
                            .is_none()
                        {
                            bail!("a player left the queue who should have entered it");
                        }
                        counted.fetch_add(1, Ordering::Relaxed);
                        let left = http.call("/v1/ticket", token, play.clone()).await?;
                        if serde_json::from_slice::<PlayAnswer>(&left)?
                            .ticket
                            .is_some()
                        {
                            bail!("a player entered the queue who should have left it");
                        }
                    }
                    Kind::SignIns => {
                        let body = format!(r#"{{"refresh_token":"{}"}}"#, signed_in.refresh_token);
                        let answer = http.call("/v1/refresh", None, body).await?;
                        signed_in = serde_json::from_slice(&answer)?;
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    Ok(Askers { counted, all })
}

/// A connection that is kept open.
pub(super) struct Http {
    authority: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Http {
    pub(super) async fn open(authority: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let authority = authority.to_owned();
        Ok(Self { authority, sender })
    }

    pub(super) async fn sign_in(&mut self, n: usize) -> anyhow::Result<SignedIn> {
        let body = format!(r#"{{"device_key":"bench device number {n}"}}"#);
        let answer = self.call("/v1/guest", None, body).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    async fn call(
        &mut self,
        path: &str,
        bearer: Option<&str>,
        body: String,
    ) -> anyhow::Result<Bytes> {
        let mut request = hyper::Request::post(path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json");
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
        }
        self.sender.ready().await?;
        let response = self
            .sender
            .send_request(request.body(Full::new(Bytes::from(body)))?)
            .await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{path}: {status} {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

const CONNECTIONS: usize = 64;
