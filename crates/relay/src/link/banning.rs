//! Bans: a host tells the relay who may not come back, until the relay says that it knows.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::super::packet::{Candidates, End, LegId, Packet, is_local};
use super::{Link, Ready, Role, State};

/// Bans that the relay has not confirmed, the oldest first.
#[derive(Debug)]
pub(super) struct Bans {
    waiting: VecDeque<Ban>,
    due: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Ban {
    random: [u8; 8],
    guest: LegId,
    addresses: Candidates,
}

impl Default for Bans {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            due: Instant::FAR_FUTURE,
        }
    }
}

impl Bans {
    /// Returns when they are sent, again.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    pub(super) fn confirm(&mut self, random: [u8; 8]) {
        self.waiting.retain(|ban| ban.random != random);
        if self.waiting.is_empty() {
            self.due = Instant::FAR_FUTURE;
        }
    }
}

impl Link {
    /// Bans a guest from the room for its life, as its host: `peer` is the guest's virtual address or any other that it speaks from. The
    /// relay lets nobody in from the guest's IP address (IPv6: /64) any more, and drops those who are. Returns the guest's
    /// addresses that are known here, for the caller to ignore what comes from them directly.
    ///
    /// A relay that restarts has forgotten bans.
    pub fn ban(&mut self, now: Instant, peer: SocketAddr) -> Candidates {
        let mut addresses = Candidates::NONE;
        let Role::Host(_) = self.role else {
            return addresses;
        };
        let virtual_id = LegId::from_virtual(peer);
        if virtual_id.is_none() {
            addresses.push(peer);
        }
        let id = virtual_id.or_else(|| self.by_address.get(&peer).copied());
        if let Some(peer) = id.and_then(|id| self.peers.get(&id)) {
            // An address of its own local network may be another machine's in ours, unless it came from there.
            let public = peer.targets();
            let public = public.as_slice().iter().filter(|it| !is_local(it));
            let known = peer.addresses().chain(public.copied());
            known.for_each(|address| addresses.push(address));
        }
        if let Some(id) = id {
            self.remove_peer(id);
        }
        if self.bans.waiting.len() >= WAITING_MAX {
            self.bans.waiting.pop_front();
        }
        log!(debug, ?id, "banned a guest");
        self.bans.waiting.push_back(Ban {
            random: self.secrets.draw().to_le_bytes(),
            guest: id.unwrap_or(LegId::new(0, 0, End::Reserved)),
            addresses,
        });
        self.bans.due = now;
        addresses
    }

    pub(super) fn send_bans(&mut self, now: Instant) {
        self.bans.due = now + BAN_AGAIN;
        let State::Ready(Ready { id, .. }) = self.state else {
            return;
        };
        for index in 0..self.bans.waiting.len() {
            let Ban {
                random,
                guest,
                addresses,
            } = self.bans.waiting[index];
            let packet = Packet::Ban {
                id,
                random,
                guest,
                addresses,
            };
            self.say(self.relay, packet);
        }
    }
}

/// Time until unconfirmed bans are sent again.
const BAN_AGAIN: Duration = Duration::from_millis(500);
/// Bans that wait for the relay; beyond that the oldest is no longer repeated.
const WAITING_MAX: usize = 64;
