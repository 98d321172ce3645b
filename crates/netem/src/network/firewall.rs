//! A firewall in front of one node: lets UDP out and answers in, or nothing at all.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;

/// Rules of a firewall. It translates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// UDP goes out; what comes in comes from an address and port that was sent to within this time.
    OutOnly(Duration),
    /// No UDP at all.
    Blocked,
}

/// A firewall and what it remembers: when each pair of an inside address and a destination was last sent to.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    rules: Firewall,
    sent_at: FxHashMap<(SocketAddr, SocketAddr), Instant>,
}

impl Guard {
    pub(super) fn new(rules: Firewall) -> Self {
        Self {
            rules,
            sent_at: FxHashMap::default(),
        }
    }

    /// True if a datagram may go out.
    pub(super) fn outbound(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) -> bool {
        if self.rules == Firewall::Blocked {
            return false;
        }
        self.sent_at.insert((from, to), now);
        true
    }

    /// True if a datagram from `from` may come in to `to`.
    pub(super) fn inbound(&self, now: Instant, from: SocketAddr, to: SocketAddr) -> bool {
        let Firewall::OutOnly(timeout) = self.rules else {
            return false;
        };
        let sent_at = self.sent_at.get(&(to, from));
        sent_at.is_some_and(|sent_at| now - *sent_at < timeout)
    }

    /// Forgets what was sent.
    pub(super) fn forget(&mut self) {
        self.sent_at.clear();
    }
}
