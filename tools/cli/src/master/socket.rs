//! A WebSocket to the master on a thread of its own, for loops that poll.

use std::sync::mpsc as std_mpsc;

use anyhow::{Context, bail};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
#[cfg(feature = "agones")]
use muse_master_client::api::{EnrolRequest, Enrolled};
use muse_master_client::api::{GuestRequest, SignedIn};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Who connects.
#[derive(Clone, Debug)]
pub(crate) enum Who {
    /// A player, by the key of his device.
    Guest(String),
    /// A game server, by its credential.
    Server(String),
    /// A game server of a cluster, which gets its credential for the fleet's key.
    #[cfg(feature = "agones")]
    Enrolling { key: String, name: String },
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Arrival {
    Connected,
    Lost(String),
    Text(String),
}

enum Command {
    Connect,
    Disconnect,
    Send(String),
}

/// The connection.
pub(crate) struct Socket {
    commands: mpsc::UnboundedSender<Command>,
    arrivals: std_mpsc::Receiver<Arrival>,
}

impl Socket {
    /// A connection that is not open yet, to `masters`: host and port, or several of them with commas between, of which the next one is tried
    /// when one is lost.
    pub(crate) fn new(masters: &str, who: Who) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let (commands, received) = mpsc::unbounded_channel();
        let (arrived, arrivals) = std_mpsc::channel();
        let masters = masters
            .split(',')
            .map(|master| master.trim_start_matches("ws://"));
        let masters: Vec<String> = masters.map(str::to_owned).collect();
        std::thread::spawn(move || runtime.block_on(run(&masters, &who, received, &arrived)));
        Ok(Self { commands, arrivals })
    }

    pub(crate) fn connect(&self) {
        let _ = self.commands.send(Command::Connect);
    }

    pub(crate) fn disconnect(&self) {
        let _ = self.commands.send(Command::Disconnect);
    }

    pub(crate) fn send(&self, text: String) {
        let _ = self.commands.send(Command::Send(text));
    }

    /// The next thing that happened, if anything did.
    pub(crate) fn poll(&self) -> Option<Arrival> {
        self.arrivals.try_recv().ok()
    }
}

async fn run(
    masters: &[String],
    who: &Who,
    mut commands: mpsc::UnboundedReceiver<Command>,
    arrived: &std_mpsc::Sender<Arrival>,
) {
    let mut masters = masters.iter().cycle();
    while let Some(command) = commands.recv().await {
        if !matches!(command, Command::Connect) {
            continue;
        }
        let authority = masters.next().expect("a split text has a part");
        // A master that was stopped takes connections and never answers.
        let opened = tokio::select! {
            opened = open(authority, who) => opened,
            () = given_up(&mut commands) => continue,
        };
        let ended = match opened {
            Ok(socket) => {
                let _ = arrived.send(Arrival::Connected);
                talk(socket, &mut commands, arrived).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            let _ = arrived.send(Arrival::Lost(format!("{error:#}")));
        }
    }
}

/// Waits until nobody wants the connection any more.
async fn given_up(commands: &mut mpsc::UnboundedReceiver<Command>) {
    loop {
        if let Some(Command::Disconnect) | None = commands.recv().await {
            return;
        }
    }
}

/// Signs in and opens the WebSocket.
async fn open(authority: &str, who: &Who) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let (path, bearer) = match who {
        Who::Guest(device_key) => {
            let device_key = device_key.clone();
            let body = serde_json::to_string(&GuestRequest { device_key })?;
            let answer = post(authority, "/v1/guest", None, body).await?;
            let signed_in: SignedIn = serde_json::from_str(&answer)?;
            ("/v1/push", signed_in.access_token)
        }
        Who::Server(credential) => ("/v1/server", credential.clone()),
        #[cfg(feature = "agones")]
        Who::Enrolling { key, name } => {
            let name = name.clone();
            let body = serde_json::to_string(&EnrolRequest { name })?;
            let answer = post(authority, "/v1/server/enrol", Some(key), body).await?;
            let enrolled: Enrolled = serde_json::from_str(&answer)?;
            ("/v1/server", enrolled.credential)
        }
    };
    let mut request = format!("ws://{authority}{path}").into_client_request()?;
    let bearer = format!("Bearer {bearer}").parse()?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    let stream = TcpStream::connect(authority).await?;
    // What is said waits for no answer to what was said before.
    stream.set_nodelay(true)?;
    let (socket, _) = tokio_tungstenite::client_async(request, stream).await?;
    Ok(socket)
}

/// One connection, until it is closed; an error unless it was closed from this side.
async fn talk(
    mut socket: WebSocketStream<TcpStream>,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    arrived: &std_mpsc::Sender<Arrival>,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let _ = arrived.send(Arrival::Text(text.to_string()));
                }
                Some(Ok(Message::Close(_))) | None => bail!("closed by the master"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
            },
            command = commands.recv() => match command {
                Some(Command::Send(text)) => socket.send(Message::text(text)).await?,
                Some(Command::Connect) => {}
                Some(Command::Disconnect) | None => {
                    let _ = socket.close(None).await;
                    return Ok(());
                }
            },
        }
    }
}

/// Posts JSON and returns the JSON that comes back.
async fn post(
    authority: &str,
    path: &str,
    bearer: Option<&str>,
    body: String,
) -> anyhow::Result<String> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = hyper::Request::post(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json");
    if let Some(bearer) = bearer {
        request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
    }
    let request = request.body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    if !status.is_success() {
        bail!("{path}: {status} {text}");
    }
    Ok(text)
}
