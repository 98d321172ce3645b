//! The side of a host or a guest: opens or joins, keeps the way open, and finds a direct one.
//!
//! A link knows nothing about what it carries. [`Relayed`](super::Relayed) puts it under a machine, which then speaks to *virtual*
//! addresses; the link says for each datagram whether it goes through the relay or straight to the peer.

mod asking;
mod banning;
mod code;
mod meeting;
mod mirror;
mod peer;
mod succession;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_transport::token::ConnectToken;
use muse_wire::keyed::KeyedMap;
use muse_wire::{Duration, Instant, log};

use super::code::{RoomCode, RoomKey};
use super::cookie::{Cookie, Secrets};
use super::packet::{Candidates, End, LegId, Packet, Refusal};
use asking::ASK_INTERVAL_MAX;
use banning::Bans;
use code::ByCode;
use mirror::Mirror;
use peer::Peer;
use succession::Succession;

/// A host's or a guest's link to a relay.
///
/// Mostly used through [`Relayed`](super::Relayed), which has the example. `seed` is secret randomness.
pub struct Link {
    relay: SocketAddr,
    /// Further addresses of a relay that has not answered yet, the next one first.
    others: VecDeque<SocketAddr>,
    role: Role,
    secrets: Secrets,
    direct: bool,
    local: Candidates,
    /// The host's right to open a room, at a relay that demands one.
    token: Option<ConnectToken>,
    /// Bans that the relay has not confirmed.
    bans: Bans,
    state: State,
    /// The time at which the state has something to do.
    state_due: Instant,
    public: Option<SocketAddr>,
    /// True if it was ready once: then it comes back by itself.
    was_ready: bool,
    /// An introduction that has overtaken the news that we are in the room.
    early: Option<(LegId, [u8; 8], Candidates)>,
    /// The relay said that it ends.
    draining: bool,
    /// By virtual id, in order.
    peers: BTreeMap<LegId, Peer>,
    /// The time at which some peer has something to do, or earlier.
    peers_due: Instant,
    /// Peers by the direct address that they have or had.
    by_address: KeyedMap<SocketAddr, LegId>,
    by_token: KeyedMap<[u8; 8], LegId>,
    /// The part that has to do with a short code.
    by_code: ByCode,
    succession: Succession,
    mirror: Mirror,
    out: VecDeque<(SocketAddr, Packet)>,
    events: VecDeque<LinkEvent>,
}

/// An event of a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkEvent {
    /// The room is open; again, after the relay had lost it.
    Opened {
        /// The code by which guests join it.
        code: RoomCode,
        /// Our address as the relay sees it.
        public: SocketAddr,
    },
    /// We are in the room; again, after the relay had lost us.
    Joined {
        /// Our address as the relay sees it.
        public: SocketAddr,
    },
    /// The relay says no. The link is over.
    Refused(Refusal),
    /// The relay does not answer. A link that was never ready is over; one that was goes on trying.
    Unanswered,
    /// Our public address has changed.
    PublicAddress(SocketAddr),
    /// Datagrams from and to this peer go straight to its address from now on.
    Direct {
        /// The peer's virtual address.
        peer: SocketAddr,
        /// Its real one.
        address: SocketAddr,
    },
    /// The direct way has ended; it goes through the relay again.
    Relayed {
        /// The peer's virtual address.
        peer: SocketAddr,
    },
    /// A guest came with a wrong short code.
    WrongCode {
        /// Further ones that are looked at before there is a pause.
        tries_left: u32,
    },
    /// This host has the room, as the relay says, to a guest. A guest's claim may have been refused by that.
    Host {
        /// The host's number.
        term: u32,
        /// The lock of the secret by which it came; zeros for the first.
        lock: [u8; 16],
    },
    /// The room is ours: we have succeeded its host.
    Succeeded {
        /// Our number.
        term: u32,
    },
    /// Another host has succeeded us. The link is over, unless it [follows](Link::follow).
    Replaced,
    /// The relay ends soon.
    Draining,
}

/// The state of a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkState {
    /// It asks the relay.
    Asking,
    /// The relay passes its datagrams on.
    Ready,
    /// It was refused, never answered, or left.
    Over,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Host(RoomKey),
    Guest(RoomCode),
}

#[derive(Clone, Copy, Debug)]
enum State {
    Asking(Asking),
    Ready(Ready),
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    random: [u8; 8],
    cookie: Option<(Cookie, Instant)>,
    since: Instant,
    interval: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Ready {
    id: LegId,
    /// Keeps since the last answer.
    unanswered: u32,
}

impl Link {
    /// Opens a room, as its host.
    pub fn open(now: Instant, relay: SocketAddr, key: RoomKey, seed: [u8; 32]) -> Self {
        Self::new(now, relay, Role::Host(key), seed)
    }

    /// Joins a room.
    pub fn join(now: Instant, relay: SocketAddr, code: RoomCode, seed: [u8; 32]) -> Self {
        Self::new(now, relay, Role::Guest(code), seed)
    }

    fn new(now: Instant, relay: SocketAddr, role: Role, seed: [u8; 32]) -> Self {
        let secrets = Secrets::new(&seed);
        let keyed = secrets.keyed();
        let mut link = Self {
            relay,
            others: VecDeque::new(),
            role,
            secrets,
            direct: true,
            local: Candidates::NONE,
            token: None,
            bans: Bans::default(),
            state: State::Over,
            state_due: Instant::FAR_FUTURE,
            public: None,
            was_ready: false,
            early: None,
            draining: false,
            peers: BTreeMap::new(),
            peers_due: Instant::FAR_FUTURE,
            by_address: KeyedMap::with_hasher(keyed.clone()),
            by_token: KeyedMap::with_hasher(keyed),
            by_code: ByCode::default(),
            succession: Succession::default(),
            mirror: Mirror::default(),
            out: VecDeque::new(),
            events: VecDeque::new(),
        };
        link.ask(now, now);
        link
    }

    /// Sets whether a direct way is looked for. Default true. Without it no peer learns our address and we learn nobody's: everything goes through
    /// the relay. One side is enough. To be called before the link is used.
    pub fn direct(mut self, on: bool) -> Self {
        self.direct = on;
        self
    }

    /// Our own addresses in local networks, with the socket's port, so that peers behind the same router find the short way.
    /// Default none; addresses that are not local are left out. To be called before the link is used.
    pub fn local_addresses(mut self, addresses: &[SocketAddr]) -> Self {
        for address in addresses {
            self.local.push(*address);
        }
        self.local = self.local.local_only();
        self
    }

    /// Further addresses of the relay, up to seven: all are asked in turn, a quarter of a second apart at first, until it answers from one of them. Default
    /// none. To be called before the link is used.
    pub fn elsewhere(mut self, addresses: &[SocketAddr]) -> Self {
        let room = OTHERS_MAX - self.others.len();
        self.others.extend(addresses.iter().take(room));
        self
    }

    /// The host's token, for a relay that opens rooms for holders of its master's tokens alone. Default none. To be called before the
    /// link is used. One with user data, or with more addresses than one, may be too long: then the relay refuses.
    pub fn token(mut self, token: ConnectToken) -> Self {
        self.token = Some(token);
        self
    }

    /// The address that stands for the host, for a guest to connect to.
    pub fn host_address() -> SocketAddr {
        host_id().virtual_address()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Returns its state.
    pub fn state(&self) -> LinkState {
        match self.state {
            State::Asking(_) => LinkState::Asking,
            State::Ready(_) => LinkState::Ready,
            State::Over => LinkState::Over,
        }
    }

    /// Our address as the relay sees it.
    pub fn public_address(&self) -> Option<SocketAddr> {
        self.public
    }

    /// The relay: once it has answered, the address of which it did.
    pub fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// The code of the room.
    pub fn code(&self) -> RoomCode {
        match self.role {
            Role::Host(key) => key.code(),
            Role::Guest(code) => code,
        }
    }

    /// Returns the id by which the relay knows us; `None` while we are not in the room.
    pub fn id(&self) -> Option<LegId> {
        match self.state {
            State::Ready(ready) => Some(ready.id),
            State::Asking(_) | State::Over => None,
        }
    }

    /// Returns the number of peers to which a direct way is looked for or in use.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// True if the way to this peer, by its virtual or its direct address, is direct at present.
    pub fn is_direct(&self, peer: SocketAddr) -> bool {
        let id = LegId::from_virtual(peer).or_else(|| self.by_address.get(&peer).copied());
        id.and_then(|id| self.peers.get(&id))
            .is_some_and(|peer| peer.direct.is_some())
    }

    /// True if nothing can be sent yet: a guest that has not been in the room before, or does not know the host's key. What it has to say waits.
    pub fn is_waiting(&self) -> bool {
        let first = match self.state {
            State::Asking(_) => !self.was_ready && matches!(self.role, Role::Guest(_)),
            State::Ready(_) => false,
            State::Over => return false,
        };
        first || self.by_code.is_asking()
    }

    /// Tells the relay that it is over. Direct ways go on.
    pub fn leave(&mut self) {
        if let State::Ready(Ready { id, .. }) = self.state {
            self.say(self.relay, Packet::Leave { id });
        }
        self.state = State::Over;
        self.state_due = Instant::FAR_FUTURE;
    }

    /// A packet of relay v2 that is no forwarded datagram arrived.
    pub fn handle_packet(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        match Packet::parse(bytes) {
            Some(Packet::Probe { token, nonce }) => self.on_probe(now, from, token, nonce),
            Some(Packet::Echo { token, nonce }) => self.on_echo(now, from, token, nonce),
            Some(packet) if from == self.relay || self.is_found(from, &packet) => {
                self.handle_relay(now, packet);
            }
            _ => {}
        }
    }

    /// A forwarded datagram arrived: the virtual address that it comes from, unless it is nobody's.
    #[inline]
    pub fn handle_forwarded(
        &mut self,
        now: Instant,
        from: SocketAddr,
        leg: LegId,
    ) -> Option<SocketAddr> {
        if from != self.relay {
            return None;
        }
        let id = match (self.role, self.state) {
            (Role::Host(_), _) if leg.end() == End::Host => leg,
            (Role::Guest(_), State::Ready(ready)) if ready.id == leg => host_id(),
            _ => return None,
        };
        if let Some(peer) = self.peers.get_mut(&id)
            && peer.on_relayed(now)
        {
            // The other side has gone back to the relay: so do we.
            self.fall_back(now, id);
        }
        Some(id.virtual_address())
    }

    /// A datagram of the machine above came from this address directly.
    #[inline]
    pub fn handle_direct(&mut self, now: Instant, from: SocketAddr) {
        let Some(&id) = self.by_address.get(&from) else {
            return;
        };
        if let Some(peer) = self.peers.get_mut(&id)
            && peer.proven == Some(from)
        {
            peer.hear(now);
            if peer.direct.is_none() {
                self.switch(now, id);
            }
        }
    }

    /// Returns the way of a datagram of the machine above for `to`: an address, and the way through the relay if it goes there.
    /// `None` when there is no way at present.
    #[inline]
    pub fn route(&self, to: SocketAddr, first_byte: u8) -> Option<(SocketAddr, Option<LegId>)> {
        let id = match LegId::from_virtual(to) {
            Some(id) => id,
            None => match self.by_address.get(&to) {
                Some(&id) => id,
                None => return Some((to, None)),
            },
        };
        let peer = self.peers.get(&id);
        // Handshakes stay where they began: their cookies are bound to an address.
        let is_data = first_byte & 0x80 != 0;
        if let Some(address) = peer.and_then(|peer| peer.direct)
            && is_data
        {
            return Some((address, None));
        }
        Some((self.relay, Some(self.leg_to(id)?)))
    }

    /// Returns our end of the way to a peer through the relay, if there is one.
    fn leg_to(&self, id: LegId) -> Option<LegId> {
        match (self.role, self.state) {
            (Role::Host(_), _) => Some(id),
            (Role::Guest(_), State::Ready(ready)) => Some(ready.id),
            (Role::Guest(_), _) => None,
        }
    }

    /// The next packet of the link itself.
    pub fn poll_packet(&mut self) -> Option<(SocketAddr, Packet)> {
        self.out.pop_front()
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.state_due.min(self.peers_due).min(self.bans.due());
        let due = due.min(self.code_due()).min(self.claim_due());
        (due != Instant::FAR_FUTURE).then_some(due)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.state_due {
            match self.state {
                State::Asking(asking) => self.ask_again(now, asking),
                State::Ready(ready) => self.keep(now, ready),
                State::Over => self.state_due = Instant::FAR_FUTURE,
            }
        }
        if now >= self.peers_due {
            self.step_peers(now);
        }
        if now >= self.bans.due() {
            self.send_bans(now);
        }
        if now >= self.code_due() {
            self.ask_host(now);
        }
        if now >= self.claim_due() {
            self.send_claim(now);
        }
    }

    fn handle_relay(&mut self, now: Instant, packet: Packet) {
        match (packet, self.state) {
            (Packet::Cookie { random, cookie, .. }, State::Asking(mut asking))
                if random == asking.random =>
            {
                // A relay that refuses its own cookies must not get us to ask without pause.
                let fresh = |at| now.saturating_since(at) < ASK_INTERVAL_MAX;
                if asking.cookie.is_some_and(|(_, at)| fresh(at)) {
                    return;
                }
                asking.cookie = Some((cookie, now));
                self.state = State::Asking(asking);
                self.state_due = now + asking.interval;
                self.send_request(&asking);
            }
            (
                Packet::Opened {
                    random,
                    id,
                    observed,
                }
                | Packet::Joined {
                    random,
                    id,
                    observed,
                },
                State::Asking(asking),
            ) if random == asking.random => self.on_ready(now, id, observed),
            (Packet::Refused { random, reason }, State::Asking(asking))
                if random == asking.random =>
            {
                self.on_refused(now, reason);
            }
            (Packet::Kept { id, observed }, State::Ready(ready)) if ready.id == id => {
                self.state = State::Ready(Ready { id, unanswered: 0 });
                self.state_due = now + self.keep_interval();
                self.succession.kept(now);
                self.on_public(now, observed);
            }
            (Packet::Challenge { id, proof }, State::Ready(_)) => {
                self.say(self.relay, Packet::Response { id, proof });
            }
            (Packet::Gone { id }, State::Ready(ready)) if ready.id == id => self.ask(now, now),
            (Packet::Gone { id }, _) => {
                self.forget_peer(id);
                self.look_after_room(now);
            }
            (
                Packet::Introduce {
                    id,
                    token,
                    candidates,
                },
                State::Ready(_),
            ) if self.direct => self.on_introduce(now, id, token, candidates),
            (
                Packet::Introduce {
                    id,
                    token,
                    candidates,
                },
                State::Asking(_),
            ) if self.direct => self.early = Some((id, token, candidates)),
            (Packet::Direct { id, token }, _) => {
                let id = self.virtual_of(id);
                if let Some(peer) = self.peers.get_mut(&id)
                    && peer.token == token
                    && peer.direct.is_none()
                {
                    peer.told = true;
                    if peer.proven.is_some() {
                        self.switch(now, id);
                    }
                }
            }
            (Packet::Succeed { id, term, secret }, State::Ready(ready)) if ready.id == id => {
                self.on_host(now, term, secret);
            }
            (Packet::Heir { .. }, State::Ready(_)) => self.on_inheritance(now, packet),
            (Packet::Banned { random, .. }, _) => self.bans.confirm(random),
            (Packet::Draining { .. }, _) if !self.draining => {
                self.draining = true;
                self.event(LinkEvent::Draining);
            }
            _ => {}
        }
    }

    fn virtual_of(&self, leg: LegId) -> LegId {
        match self.role {
            Role::Host(_) => leg,
            Role::Guest(_) => host_id(),
        }
    }

    fn say(&mut self, to: SocketAddr, packet: Packet) {
        if self.out.len() < OUT_MAX {
            self.out.push_back((to, packet));
        }
    }

    fn event(&mut self, event: LinkEvent) {
        log!(debug, relay = %self.relay, ?event);
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("relay", &self.relay)
            .field("state", &self.state())
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

/// Returns the id of the host at its guests: an id that no relay gives out, the same whatever way leads there.
fn host_id() -> LegId {
    LegId::new(0, 0, End::Reserved)
}

/// Further addresses of a relay.
const OTHERS_MAX: usize = 7;
const OUT_MAX: usize = 4_096;
const EVENTS_MAX: usize = 1_024;
