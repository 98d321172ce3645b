//! A look at every datagram of a virtual network, for assertions and captures.

use std::fmt;
use std::net::SocketAddr;

use muse_wire::{Ecn, Instant};

use crate::Cause;

/// A datagram seen by a tap.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// The time.
    pub at: Instant,
    /// The stage of its way at which it was seen.
    pub stage: Stage,
    /// Its source, as seen at that point.
    pub from: SocketAddr,
    /// Its destination, as seen at that point.
    pub to: SocketAddr,
    /// Its congestion mark.
    pub ecn: Ecn,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// The stage of its way at which a datagram was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As it left its sender, before any translation.
    Sent,
    /// As it reached its receiver, after all translation.
    Delivered,
    /// Lost, for this cause.
    Lost(Cause),
}

/// The function that sees everything.
#[derive(Default)]
pub(super) struct Tap(pub(super) Option<Watcher>);

/// The type that [`Network::set_tap`](crate::Network::set_tap) takes.
pub(super) type Watcher = Box<dyn FnMut(Sighting<'_>) + Send>;

impl Tap {
    pub(super) fn see(
        &mut self,
        at: Instant,
        stage: Stage,
        (from, to): (SocketAddr, SocketAddr),
        ecn: Ecn,
        payload: &[u8],
    ) {
        if let Some(watcher) = &mut self.0 {
            watcher(Sighting {
                at,
                stage,
                from,
                to,
                ecn,
                payload,
            });
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Tap(on)"
        } else {
            "Tap(off)"
        })
    }
}
