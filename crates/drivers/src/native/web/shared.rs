//! The shared state of the game loop and the thread for browsers: queues, counters, and the call that wakes the loop.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::mpsc;

use super::WebSession;

/// A message of the thread to the game loop.
#[derive(Debug)]
pub(super) enum FromWeb {
    Opened {
        address: SocketAddr,
        outgoing: Outgoing,
    },
    Datagram {
        address: SocketAddr,
        bytes: Vec<u8>,
    },
    Closed {
        address: SocketAddr,
    },
}

/// The game loop's end of a session.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) queue: mpsc::Sender<Vec<u8>>,
    /// Datagrams of this session that wait for the game loop.
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) session: WebSession,
}

/// Counters and the wake-up call.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) opened: AtomicU64,
    pub(super) closed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) datagrams_in: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) datagrams_out: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) by_stream: AtomicU64,
    pub(super) dropped_in: AtomicU64,
    pub(super) dropped_out: AtomicU64,
    pub(super) oversized: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) violations: AtomicU64,
    /// The game loop sleeps and wants to be woken.
    pub(super) asleep: AtomicBool,
    waker: OnceLock<UdpSocket>,
    certificate_hash: Mutex<Option<[u8; 32]>>,
}

/// Counts of a [`WebListener`](super::WebListener).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebCounters {
    /// Sessions that were opened.
    pub sessions_opened: u64,
    /// Sessions that ended.
    pub sessions_closed: u64,
    /// Attempts that were turned away: too many, another origin, no path of ours, no answer in time.
    pub sessions_refused: u64,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Their bytes, without what QUIC, TCP and TLS add.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Datagrams among both that were too long for one of QUIC and went over a stream.
    pub datagrams_by_stream: u64,
    /// Datagrams that came faster than the game loop took them.
    pub dropped_incoming: u64,
    /// Datagrams that were sent faster than a session's link took them.
    pub dropped_outgoing: u64,
    /// Datagrams longer than a browser's link carries: probes for the largest that passes.
    pub oversized: u64,
    /// Datagrams for sessions that had ended.
    pub unreachable: u64,
    /// Sessions closed because of what they sent.
    pub violations: u64,
}

impl Shared {
    pub(super) fn count(counter: &AtomicU64, by: usize) {
        counter.fetch_add(by as u64, Ordering::Relaxed);
    }

    pub(super) fn counters(&self) -> WebCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WebCounters {
            sessions_opened: read(&self.opened),
            sessions_closed: read(&self.closed),
            sessions_refused: read(&self.refused),
            datagrams_received: read(&self.datagrams_in),
            bytes_received: read(&self.bytes_in),
            datagrams_sent: read(&self.datagrams_out),
            bytes_sent: read(&self.bytes_out),
            datagrams_by_stream: read(&self.by_stream),
            dropped_incoming: read(&self.dropped_in),
            dropped_outgoing: read(&self.dropped_out),
            oversized: read(&self.oversized),
            unreachable: read(&self.unreachable),
            violations: read(&self.violations),
        }
    }

    /// Sets the socket whose datagrams wake the game loop; the first one stays.
    pub(super) fn set_waker(&self, socket: UdpSocket) {
        let _ = self.waker.set(socket);
    }

    /// Wakes the game loop if it sleeps.
    pub(super) fn wake(&self) {
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            // If the socket is full, the loop has something to wake up for.
            let _ = waker.send(&[0]);
        }
    }

    pub(super) fn certificate_hash(&self) -> Option<[u8; 32]> {
        *self
            .certificate_hash
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_certificate_hash(&self, hash: Option<[u8; 32]>) {
        *self
            .certificate_hash
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = hash;
    }
}
