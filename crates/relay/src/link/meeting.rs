//! Meeting peers directly: introductions, probes, and the switch between the two ways.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::super::packet::{Candidates, End, LegId, Packet};
use super::peer::{Peer, Step};
use super::{Link, LinkEvent, Role, State, host_id};

impl Link {
    pub(super) fn step_peers(&mut self, now: Instant) {
        let due: Vec<LegId> = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.due <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.step_peer(now, id);
        }
        let next = self.peers.values().map(|peer| peer.due).min();
        self.peers_due = next.unwrap_or(Instant::FAR_FUTURE);
    }

    pub(super) fn step_peer(&mut self, now: Instant, id: LegId) {
        let is_guest = matches!(self.role, Role::Guest(_));
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let (token, nonce, leg) = (peer.token, peer.nonce, peer.leg);
        match peer.step(now, is_guest) {
            Step::Nothing => {}
            Step::Probe => {
                let candidates = peer.targets();
                if is_guest && peer.is_in_doubt() {
                    self.say(self.relay, Packet::Acquaint { id: leg });
                }
                for to in candidates.as_slice() {
                    self.say(*to, Packet::Probe { token, nonce });
                }
            }
            Step::Report => self.say(self.relay, Packet::Works { id: leg, token }),
            Step::Acquaint => self.say(self.relay, Packet::Acquaint { id: leg }),
            Step::FallBack => self.fall_back(now, id),
        }
    }

    /// A guest that is in the room will be introduced to its host. Should that be lost, it asks.
    pub(super) fn expect_introduction(&mut self, now: Instant, leg: LegId) {
        let nonce = self.secrets.draw().to_le_bytes();
        let new = || Peer::new(now, leg, nonce);
        let peer = self.peers.entry(host_id()).or_insert_with(new);
        peer.leg = leg;
        if peer.direct.is_none() {
            peer.acquaint_at(now + INTRODUCED_WITHIN);
            self.peers_due = self.peers_due.min(peer.due);
        }
    }

    pub(super) fn on_introduce(
        &mut self,
        now: Instant,
        leg: LegId,
        token: [u8; 8],
        candidates: Candidates,
    ) {
        let id = match (self.role, self.state) {
            (Role::Host(_), _) if leg.end() == End::Host => leg,
            (Role::Guest(_), State::Ready(ready)) if ready.id == leg => host_id(),
            _ => return,
        };
        if !self.peers.contains_key(&id) {
            if self.peers.len() >= PEERS_MAX {
                return;
            }
            let nonce = self.secrets.draw().to_le_bytes();
            self.peers.insert(id, Peer::new(now, leg, nonce));
        }
        if let Some(peer) = self.peers.get_mut(&id) {
            self.by_token.remove(&peer.token);
            self.by_token.insert(token, id);
            log!(debug, peer = ?id, candidates = ?candidates.as_slice(), "looking for a direct way");
            peer.introduce(now, token, candidates);
            self.peers_due = self.peers_due.min(peer.due);
        }
    }

    pub(super) fn on_probe(
        &mut self,
        now: Instant,
        from: SocketAddr,
        token: [u8; 8],
        nonce: [u8; 8],
    ) {
        let Some(peer) = self
            .by_token
            .get(&token)
            .and_then(|id| self.peers.get_mut(id))
        else {
            return;
        };
        let answer = peer.on_probe(now, from);
        let ours = peer.nonce;
        self.say(from, Packet::Echo { token, nonce });
        if answer {
            self.say(from, Packet::Probe { token, nonce: ours });
        }
    }

    pub(super) fn on_echo(
        &mut self,
        now: Instant,
        from: SocketAddr,
        token: [u8; 8],
        nonce: [u8; 8],
    ) {
        let Some(&id) = self.by_token.get(&token) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.nonce == nonce) else {
            return;
        };
        if !peer.on_echo(now, from) {
            return;
        }
        self.peers_due = self.peers_due.min(now);
        let told = peer.told;
        self.by_address.insert(from, id);
        if told {
            self.switch(now, id);
        }
    }

    /// The direct way is taken.
    pub(super) fn switch(&mut self, now: Instant, id: LegId) {
        if let Some(peer) = self.peers.get_mut(&id)
            && let Some(address) = peer.switch(now)
        {
            self.peers_due = self.peers_due.min(peer.due);
            self.event(LinkEvent::Direct {
                peer: id.virtual_address(),
                address,
            });
        }
    }

    pub(super) fn fall_back(&mut self, now: Instant, id: LegId) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        peer.fall_back(now);
        self.peers_due = self.peers_due.min(peer.due);
        self.event(LinkEvent::Relayed {
            peer: id.virtual_address(),
        });
    }

    /// The relay has forgotten the way to a peer. If that is gone direct, it needs no relay.
    pub(super) fn forget_peer(&mut self, leg: LegId) {
        let id = self.virtual_of(leg);
        if let Some(peer) = self.peers.get(&id)
            && peer.direct.is_none()
        {
            self.by_token.remove(&peer.token);
            self.peers.remove(&id);
            self.by_address.retain(|_, other| *other != id);
        }
    }
}

/// The time that an introduction may take before a guest asks for it.
const INTRODUCED_WITHIN: Duration = Duration::from_millis(1_200);
/// Peers that a host looks for direct ways to, at a time.
const PEERS_MAX: usize = 4_096;
