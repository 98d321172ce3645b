//! Meeting peers directly: introductions, probes, and the switch between the two ways.

use std::net::{IpAddr, SocketAddr};

use muse_wire::{Duration, Instant, log};

use super::super::packet::{Candidates, End, LegId, Packet, is_local};
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
                let (candidates, guesses) = (peer.targets(), peer.guesses(is_guest));
                if is_guest && peer.is_in_doubt() {
                    self.say(self.relay, Packet::Acquaint { id: leg });
                }
                for to in candidates.as_slice().iter().copied().chain(guesses) {
                    self.say(to, Packet::Probe { token, nonce });
                }
            }
            Step::Report => self.say(self.relay, Packet::Works { id: leg, token }),
            Step::Acquaint => self.say(self.relay, Packet::Acquaint { id: leg }),
            Step::FallBack => {
                let gone = peer.gone;
                self.fall_back(now, id);
                if gone {
                    self.remove_peer(id);
                }
            }
            Step::Forget => self.remove_peer(id),
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
        let candidates = self.reachable(candidates);
        if !self.peers.contains_key(&id) {
            if self.peers.len() >= PEERS_MAX && !self.make_place() {
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

    /// Candidates as they are reached from here. If the relay sees us at an IPv4 address while we speak IPv6 with it, a NAT64 is between us: IPv4 addresses
    /// have the first 96 bits of the relay's there.
    fn reachable(&self, candidates: Candidates) -> Candidates {
        let behind_nat64 = self.public.is_some_and(|public| public.is_ipv4());
        let IpAddr::V6(relay) = self.relay.ip() else {
            return candidates;
        };
        if !behind_nat64 {
            return candidates;
        }
        let mut reachable = Candidates::NONE;
        for candidate in candidates.as_slice() {
            match candidate.ip() {
                IpAddr::V4(_) if is_local(candidate) => {}
                IpAddr::V4(ip) => {
                    let mut octets = relay.octets();
                    octets[12..].copy_from_slice(&ip.octets());
                    reachable.push(SocketAddr::from((octets, candidate.port())));
                }
                IpAddr::V6(_) => reachable.push(*candidate),
            }
        }
        reachable
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
        let forgotten = peer.remember(from);
        if let Some(address) = forgotten {
            self.forget_address(address, id);
        }
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

    /// The relay has forgotten the way to a peer. One that is gone direct needs no relay, for as long as that lasts.
    pub(super) fn forget_peer(&mut self, leg: LegId) {
        let id = self.virtual_of(leg);
        match self.peers.get_mut(&id) {
            Some(peer) if peer.direct.is_some() => peer.gone = matches!(self.role, Role::Host(_)),
            Some(_) => self.remove_peer(id),
            None => {}
        }
    }

    /// Forgets the peer that is missed least: one that the relay has forgotten, else one without a direct way that was silent for
    /// longest. Data for its direct address still go there. False if there is no such peer.
    fn make_place(&mut self) -> bool {
        let peers = self.peers.iter();
        let idle = peers.filter(|(_, peer)| peer.gone || peer.direct.is_none());
        let least = idle.min_by_key(|(_, peer)| (!peer.gone, peer.seen));
        let least = least.map(|(id, _)| *id);
        least.map(|id| self.remove_peer(id)).is_some()
    }

    pub(super) fn remove_peer(&mut self, id: LegId) {
        let Some(peer) = self.peers.remove(&id) else {
            return;
        };
        log!(debug, peer = ?id, "forgot a peer");
        if self.by_token.get(&peer.token) == Some(&id) {
            self.by_token.remove(&peer.token);
        }
        for address in peer.addresses() {
            self.forget_address(address, id);
        }
    }

    /// An address is no longer that of `id`; it may be another's.
    fn forget_address(&mut self, address: SocketAddr, id: LegId) {
        if self.by_address.get(&address) == Some(&id) {
            self.by_address.remove(&address);
        }
    }
}

/// The time that an introduction may take before a guest asks for it.
const INTRODUCED_WITHIN: Duration = Duration::from_millis(600);
/// Peers that a host looks for direct ways to, at a time.
const PEERS_MAX: usize = 4_096;
