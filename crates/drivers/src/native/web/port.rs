//! A session as the thread for browsers sees it: where datagrams go in and come out.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::address::Addresses;
use super::doors::Pass;
use super::shared::{FromWeb, Outgoing, Shared};
use super::{WebKind, WebSession};

/// The parts that every session needs.
#[derive(Clone, Debug)]
pub(super) struct Harbour {
    to_game: mpsc::Sender<FromWeb>,
    shared: Arc<Shared>,
    addresses: Arc<Mutex<Addresses>>,
    datagram_max: usize,
}

impl Harbour {
    pub(super) fn new(
        to_game: mpsc::Sender<FromWeb>,
        shared: Arc<Shared>,
        datagram_max: usize,
    ) -> Self {
        Self {
            to_game,
            shared,
            addresses: Arc::default(),
            datagram_max,
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Opens a session: its port, and what is to be sent to the browser. None when the game loop is gone.
    pub(super) async fn open(
        &self,
        session: WebSession,
        pass: Pass,
    ) -> Option<(Port, mpsc::Receiver<Vec<u8>>)> {
        let address = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .allot(session.remote.ip());
        let (queue, to_browser) = mpsc::channel(QUEUE_OUT);
        let waiting = Arc::new(AtomicUsize::new(0));
        let outgoing = Outgoing {
            queue,
            waiting: Arc::clone(&waiting),
            session,
        };
        let opened = FromWeb::Opened { address, outgoing };
        self.to_game.send(opened).await.ok()?;
        Shared::count(&self.shared.opened, 1);
        let port = Port {
            address,
            kind: session.kind,
            harbour: self.clone(),
            waiting,
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
            _pass: pass,
        };
        Some((port, to_browser))
    }
}

/// One session.
#[derive(Debug)]
pub(super) struct Port {
    address: SocketAddr,
    kind: WebKind,
    harbour: Harbour,
    waiting: Arc<AtomicUsize>,
    began: Instant,
    /// The time at which something came last, since it began; 0 if nothing ever did.
    heard_ms: AtomicU64,
    _pass: Pass,
}

impl Port {
    /// Gives a datagram of the browser's to the game loop, or drops it if too many wait.
    pub(super) fn deliver(&self, bytes: &[u8]) {
        let shared = self.shared();
        let heard = self.began.elapsed().as_millis() as u64;
        self.heard_ms.store(heard.max(1), Ordering::Relaxed);
        Shared::count(&shared.datagrams_in, 1);
        Shared::count(&shared.bytes_in, bytes.len());
        if bytes.is_empty() || bytes.len() > self.harbour.datagram_max {
            Shared::count(&shared.oversized, 1);
            return;
        }
        if self.waiting.load(Ordering::Relaxed) >= WAITING_MAX {
            Shared::count(&shared.dropped_in, 1);
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let datagram = FromWeb::Datagram {
            address: self.address,
            bytes: bytes.to_vec(),
        };
        if self.harbour.to_game.try_send(datagram).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            Shared::count(&shared.dropped_in, 1);
        }
        shared.wake();
    }

    /// Returns once the browser has been silent for so long that it must be gone: sooner if nothing ever came.
    pub(super) async fn silence(&self) {
        loop {
            let heard_ms = self.heard_ms.load(Ordering::Relaxed);
            let allowed = if heard_ms == 0 {
                FIRST_WORD_WITHIN
            } else {
                SILENCE_MAX
            };
            let until = self.began + Duration::from_millis(heard_ms) + allowed;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Longest datagram that the browser may send.
    pub(super) fn datagram_max(&self) -> usize {
        self.harbour.datagram_max
    }

    pub(super) fn sent(&self, bytes: usize) {
        Shared::count(&self.shared().datagrams_out, 1);
        Shared::count(&self.shared().bytes_out, bytes);
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.harbour.shared
    }

    /// Tells the game loop that the session is over.
    pub(super) async fn close(self) {
        tracing::debug!(address = %self.address, kind = ?self.kind, "a browser's session ended");
        Shared::count(&self.shared().closed, 1);
        let address = self.address;
        // The loop may be gone.
        let _ = self.harbour.to_game.send(FromWeb::Closed { address }).await;
    }
}

/// Datagrams for one browser that may wait to be sent: 300 kB at most.
const QUEUE_OUT: usize = 256;
/// Datagrams of one browser that may wait for the game loop.
pub(super) const WAITING_MAX: usize = 256;
/// A session in which nothing was ever said ends after this.
const FIRST_WORD_WITHIN: Duration = Duration::from_secs(10);
/// A session in which nothing comes any more ends after this; connections above are lost long before.
const SILENCE_MAX: Duration = Duration::from_secs(60);
