//! Direct ways in doubt: what goes there goes through the relay as well, so that a way that is lost costs a moment and not seconds.
//!
//! A peer gets such datagrams twice, or once by either way; the transport drops what it has already. Until the direct way is given up, both ways have one name
//! towards the machine above, or each copy that came first would move the connection.

use std::net::SocketAddr;

use muse_wire::{Instant, Transmit};

use super::super::packet::LegId;
use super::Link;
use super::peer::Trust;

/// A copy of what went directly last, until it has gone through the relay.
#[derive(Default)]
pub(super) struct Mirror {
    waiting: Option<(Transmit, LegId)>,
    bytes: Vec<u8>,
}

impl Link {
    /// Notes that datagrams of the machine above go directly to `transmit.to`. If that may be in vain, they go through the relay as well: the next
    /// [`poll_mirrored`](Self::poll_mirrored) has them.
    #[inline]
    pub(crate) fn on_direct(&mut self, now: Instant, transmit: &Transmit, bytes: &[u8]) {
        let Some(&id) = self.by_address.get(&transmit.to) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        if peer.direct != Some(transmit.to) || peer.gone {
            return;
        }
        let trust = peer.on_sent(now);
        if trust == Trust::Firm {
            return;
        }
        self.peers_due = self.peers_due.min(peer.due);
        // Our own router may have forgotten us: then the relay has to know the new address first.
        self.check_relay(now);
        if trust == Trust::Lost
            && let Some(leg) = self.leg_to(id)
        {
            self.mirror.bytes.clear();
            self.mirror.bytes.extend_from_slice(bytes);
            self.mirror.waiting = Some((*transmit, leg));
        }
    }

    /// Writes the copy that has to go through the relay, without its headers, and returns it with its way.
    #[inline]
    pub(crate) fn poll_mirrored(&mut self, buffer: &mut [u8]) -> Option<(Transmit, LegId)> {
        let (transmit, leg) = self.mirror.waiting.take()?;
        let room = buffer.get_mut(..transmit.len)?;
        room.copy_from_slice(&self.mirror.bytes);
        Some((transmit, leg))
    }

    /// Returns the name by which the machine above knows the sender of data from a virtual address: its direct one, if it has one at present.
    pub(crate) fn name_of(&self, from: SocketAddr) -> SocketAddr {
        let peer = LegId::from_virtual(from).and_then(|id| self.peers.get(&id));
        peer.and_then(|peer| peer.direct).unwrap_or(from)
    }
}
