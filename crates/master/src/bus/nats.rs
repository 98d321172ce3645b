//! The bus of several masters: core NATS, one subject, nothing kept.
//!
//! A master hears its own notes at once and not by way of the server, so that it works on alone while the server is away; what the
//! others missed meanwhile they read in the store. Notes that are not sealed by a master of this deployment are dropped and counted (`seal.rs`).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, ServerAddr};
use futures_util::StreamExt;
use thiserror::Error;
use tokio::sync::{broadcast, mpsc};

use super::seal::{Opener, Sealer};
use super::{Bus, NOTES_MAX, Note};
use crate::clock;
use crate::secrets::{NoteKey, random_name};
use crate::tls;

/// Notes over a NATS server.
#[derive(Debug)]
pub struct NatsBus {
    notes: broadcast::Sender<Note>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

/// Options of a [`NatsBus`].
#[derive(Clone)]
pub struct NatsConfig {
    url: String,
    subject: String,
    key: NoteKey,
    ca_file: Option<PathBuf>,
}

impl NatsConfig {
    /// A server such as `nats://127.0.0.1:4222`, or `tls://USER:PASSWORD@HOST:PORT` for one with TLS and a password. Masters of one deployment name the
    /// same `subject` and have the same `secret`.
    pub fn new(url: &str, subject: &str, secret: &str) -> Self {
        Self {
            url: url.to_owned(),
            subject: subject.to_owned(),
            key: NoteKey::new(secret, subject),
            ca_file: None,
        }
    }

    /// Encrypts the connection and trusts the authorities in a PEM file, and no others; by default the system's, with `tls://` alone.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }
}

/// Shows nothing secret.
impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("subject", &self.subject)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

/// There is no such server.
#[derive(Debug, Error)]
#[error("cannot connect to NATS: {0}")]
pub struct NatsError(String);

impl NatsBus {
    /// Connects. A server that is away is waited for without end: the master works without it meanwhile.
    pub async fn connect(config: NatsConfig) -> Result<Self, NatsError> {
        let failed = |error: &dyn fmt::Display| NatsError(error.to_string());
        let NatsConfig {
            url, subject, key, ..
        } = &config;
        let address: ServerAddr = url.parse().map_err(|error| failed(&error))?;
        let mut options = ConnectOptions::new();
        // The library reads no password from an address.
        if let Some((user, password)) = address.username().zip(address.password()) {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        }
        if let Some(file) = &config.ca_file {
            // It would look for the certificates at each attempt, and never say that there are none.
            tls::check_authorities(file).map_err(|error| failed(&error))?;
            options = options
                .require_tls(true)
                .add_root_certificates(file.clone());
        }
        let since = clock::now();
        let client = options
            .name("muse-master")
            .no_echo()
            .retry_on_initial_connect()
            .connection_timeout(CONNECT_MAX)
            .ping_interval(Duration::from_secs(5))
            .event_callback(|event| async move { tracing::warn!(%event, "NATS") })
            .connect(address)
            .await
            .map_err(|error| failed(&error))?;
        let mut arriving = client
            .subscribe(subject.clone())
            .await
            .map_err(|error| failed(&error))?;
        // The server has the subscription once it has answered the flush: everything from then on is received.
        if tokio::time::timeout(CONNECT_MAX, client.flush())
            .await
            .is_err()
        {
            // Without its address, which may hold a password.
            tracing::warn!("NATS does not answer; the other masters are heard when it does");
        }
        let (notes, _) = broadcast::channel(NOTES_MAX);
        let heard = notes.clone();
        let own = random_name();
        let mut opener = Opener::new(key.clone(), own, since);
        tokio::spawn(async move {
            while let Some(message) = arriving.next().await {
                if let Some(note) = read(&mut opener, &message.payload) {
                    drop(heard.send(note));
                }
            }
        });
        let (outgoing, waiting) = mpsc::channel(NOTES_MAX);
        let sealer = Sealer::new(key.clone(), own);
        tokio::spawn(send(client, subject.clone(), sealer, waiting));
        Ok(Self { notes, outgoing })
    }
}

/// Reads a message of another master; none if it is not one.
fn read(opener: &mut Opener, message: &[u8]) -> Option<Note> {
    let note = opener.open(clock::now(), message).inspect_err(|dropped| {
        metrics::counter!("muse_notes_refused").increment(1);
        tracing::warn!(reason = %dropped, "a note is dropped");
    });
    serde_json::from_slice(note.ok()?)
        .inspect_err(|error| tracing::warn!(%error, "a note that cannot be read"))
        .ok()
}

async fn send(
    client: Client,
    subject: String,
    mut sealer: Sealer,
    mut waiting: mpsc::Receiver<Vec<u8>>,
) {
    while let Some(note) = waiting.recv().await {
        let note = sealer.seal(clock::now(), &note);
        // Notes that waited for the server's return would be stale.
        let connected = client.connection_state() == State::Connected;
        let sent = async { client.publish(subject.clone(), note.into()).await.is_ok() };
        if !connected || !tokio::time::timeout(SEND_MAX, sent).await.unwrap_or(false) {
            metrics::counter!("muse_notes_lost").increment(1);
        }
    }
}

impl Bus for NatsBus {
    fn publish(&self, note: Note) {
        let text = serde_json::to_vec(&note).expect("notes have text keys and finite numbers");
        if self.outgoing.try_send(text).is_err() {
            metrics::counter!("muse_notes_lost").increment(1);
        }
        // Without a listener there is nobody to tell.
        let _ = self.notes.send(note);
    }

    fn subscribe(&self) -> broadcast::Receiver<Note> {
        self.notes.subscribe()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Time for the server to answer at the start.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Time for which one note may keep the others waiting.
const SEND_MAX: Duration = Duration::from_millis(500);
