//! The bus of several masters: core NATS, one subject, nothing kept.
//!
//! A master hears its own notes at once and not by way of the server, so that it works on alone while the server is away; what the
//! others missed meanwhile they read in the store.

use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use thiserror::Error;
use tokio::sync::{broadcast, mpsc};

use super::{Bus, NOTES_MAX, Note};

/// Notes over a NATS server.
#[derive(Debug)]
pub struct NatsBus {
    notes: broadcast::Sender<Note>,
    outgoing: mpsc::Sender<Vec<u8>>,
}

/// There is no such server.
#[derive(Debug, Error)]
#[error("cannot connect to NATS: {0}")]
pub struct NatsError(String);

impl NatsBus {
    /// Connects to a server such as `nats://127.0.0.1:4222`. Masters of one deployment name the same `subject`. A server that is away is waited
    /// for without end: the master works without it meanwhile.
    pub async fn connect(url: &str, subject: &str) -> Result<Self, NatsError> {
        let failed = |error: &dyn std::fmt::Display| NatsError(error.to_string());
        let client = ConnectOptions::new()
            .name("muse-master")
            .no_echo()
            .retry_on_initial_connect()
            .connection_timeout(CONNECT_MAX)
            .ping_interval(Duration::from_secs(5))
            .event_callback(|event| async move { tracing::warn!(%event, "NATS") })
            .connect(url)
            .await
            .map_err(|error| failed(&error))?;
        let mut arriving = client
            .subscribe(subject.to_owned())
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
        tokio::spawn(async move {
            while let Some(message) = arriving.next().await {
                match serde_json::from_slice::<Note>(&message.payload) {
                    Ok(note) => drop(heard.send(note)),
                    Err(error) => tracing::warn!(%error, "a note that cannot be read"),
                }
            }
        });
        let (outgoing, waiting) = mpsc::channel(NOTES_MAX);
        tokio::spawn(send(client, subject.to_owned(), waiting));
        Ok(Self { notes, outgoing })
    }
}

async fn send(client: Client, subject: String, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(note) = waiting.recv().await {
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
