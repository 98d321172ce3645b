//! The succession of hosts on a link: a host names its heir, an heir claims the room, guests ask who has it.

use muse_wire::{Duration, Instant};

use super::super::packet::{LegId, Packet};
use super::super::short_code::{CodeSecret, KeyGiver, ShortCode};
use super::super::succession::{HOST_LEASE, lock_of, sealed, unsealed};
use super::asking::{KEEP_INTERVAL, KEEPS_MAX};
use super::{Link, LinkEvent, Ready, Role, State};

/// The part of a link that has to do with the next host.
#[derive(Debug, Default)]
pub(super) struct Succession {
    /// The host's number, as far as is known here.
    term: u32,
    /// The secret of the host's heir, if one was ever named.
    heir: Option<Option<[u8; 16]>>,
    /// The relay's last word that we are the host.
    kept_at: Option<Instant>,
    claim: Option<Claim>,
}

/// A claim or question of a guest, until it hears who the host is.
#[derive(Clone, Copy, Debug)]
struct Claim {
    term: u32,
    /// Zeros of one who only asks.
    secret: [u8; 16],
    due: Instant,
}

impl Succession {
    pub(super) fn term(&self) -> u32 {
        self.term
    }

    pub(super) fn kept(&mut self, now: Instant) {
        self.kept_at = Some(now);
    }
}

impl Link {
    /// Names the heir, as the host: whoever shows this secret, which only the heir is told, has the room once the relay hears nothing of us any more.
    /// `None` for nobody. From now on the relay is told every 100 ms that we are here.
    pub fn set_heir(&mut self, now: Instant, secret: Option<[u8; 16]>) {
        if let Role::Host(_) = self.role {
            self.succession.heir = Some(secret);
            if let State::Ready(_) = self.state {
                self.state_due = now;
            }
        }
    }

    /// Returns the lock of a secret, by which events name the host that came with it.
    pub fn heir_lock(secret: &[u8; 16]) -> [u8; 16] {
        lock_of(secret)
    }

    /// Claims the room, as a guest and the heir of the host with this number, until [`LinkEvent::Succeeded`] comes or
    /// [`LinkEvent::Host`] says that the host is well: every 100 ms.
    pub fn claim(&mut self, now: Instant, term: u32, secret: [u8; 16]) {
        if let Role::Guest(_) = self.role {
            self.succession.claim = Some(Claim {
                term,
                secret,
                due: now,
            });
        }
    }

    /// Asks who the host is, as a guest, until [`LinkEvent::Host`] comes.
    pub fn ask_who_hosts(&mut self, now: Instant) {
        if self.succession.claim.is_none() {
            self.claim(now, 0, [0; 16]);
        }
    }

    /// Asks and claims no more.
    pub fn withdraw(&mut self) {
        self.succession.claim = None;
    }

    /// True while the relay's word that we are the host is so new that nobody can have succeeded us.
    pub fn is_host_for_sure(&self, now: Instant) -> bool {
        let kept = self
            .succession
            .kept_at
            .filter(|_| matches!(self.state, State::Ready(_)));
        kept.is_some_and(|at| now.saturating_since(at) < HOST_LEASE)
    }

    /// Joins the room that we had, as a guest.
    pub fn follow(&mut self, now: Instant) {
        let Role::Host(key) = self.role else { return };
        self.role = Role::Guest(key.code());
        self.by_code = super::ByCode::default();
        self.succession = Succession::default();
        self.forget_all_peers();
        self.ask(now, now);
    }

    /// Gives our public key to guests who come with the room's short code from now on, as a host that has succeeded another.
    pub fn give_key_from_now(&mut self, now: Instant, secret: CodeSecret, host_key: [u8; 32]) {
        let (code, seed) = (ShortCode::new(self.code(), secret), self.draw_seed());
        self.by_code = super::ByCode::default();
        self.by_code.giver = Some(Box::new(KeyGiver::new(now, code, host_key, seed)));
    }

    pub(super) fn keep_interval(&self) -> Duration {
        match (self.role, self.succession.heir) {
            (Role::Host(_), Some(_)) => HEIR_INTERVAL,
            _ => KEEP_INTERVAL,
        }
    }

    pub(super) fn keeps_max(&self) -> u32 {
        match (self.role, self.succession.heir) {
            (Role::Host(_), Some(_)) => HEIRS_MAX,
            _ => KEEPS_MAX,
        }
    }

    pub(super) fn keep_packet(&self, id: LegId) -> Packet {
        let (Role::Host(key), Some(heir)) = (self.role, self.succession.heir) else {
            return Packet::Keep { id };
        };
        let heir = heir.map(|secret| (lock_of(&secret), sealed(&secret, key.bytes())));
        let (lock, sealed) = heir.unwrap_or_default();
        Packet::Heir {
            id,
            term: self.succession.term,
            lock,
            sealed,
        }
    }

    pub(super) fn claim_due(&self) -> Instant {
        let claim = self.succession.claim.as_ref();
        let claim = claim.filter(|_| matches!(self.state, State::Ready(_)));
        claim.map_or(Instant::FAR_FUTURE, |claim| claim.due)
    }

    pub(super) fn send_claim(&mut self, now: Instant) {
        let State::Ready(Ready { id, .. }) = self.state else {
            return;
        };
        if let Some(claim) = &mut self.succession.claim {
            claim.due = now + CLAIM_INTERVAL;
            let (term, secret) = (claim.term, claim.secret);
            self.say(self.relay, Packet::Succeed { id, term, secret });
        }
    }

    /// The relay says who the host is.
    pub(super) fn on_host(&mut self, now: Instant, term: u32, lock: [u8; 16]) {
        if let Role::Host(_) = self.role {
            return self.on_replaced();
        }
        if term > self.succession.term {
            // The way to the former host leads nowhere.
            self.succession.term = term;
            self.forget_all_peers();
            if let State::Ready(Ready { id, .. }) = self.state
                && self.direct
            {
                self.expect_introduction(now, id);
            }
        }
        self.event(LinkEvent::Host { term, lock });
    }

    pub(super) fn on_replaced(&mut self) {
        self.state = State::Over;
        self.state_due = Instant::FAR_FUTURE;
        self.event(LinkEvent::Replaced);
    }

    /// The relay says that the room is ours.
    pub(super) fn on_inheritance(&mut self, now: Instant, packet: Packet) {
        let (Some(claim), Role::Guest(code)) = (self.succession.claim, self.role) else {
            return;
        };
        let Packet::Heir {
            id,
            term,
            lock,
            sealed,
        } = packet
        else {
            return;
        };
        let key = unsealed(&claim.secret, &sealed);
        if lock != lock_of(&claim.secret) || key.code() != code || term != claim.term + 1 {
            return;
        }
        self.role = Role::Host(key);
        self.by_code = super::ByCode::default();
        self.forget_all_peers();
        self.state = State::Ready(Ready { id, unanswered: 0 });
        self.state_due = now;
        self.succession = Succession {
            term,
            heir: Some(None),
            kept_at: Some(now),
            claim: None,
        };
        self.event(LinkEvent::Succeeded { term });
    }

    fn forget_all_peers(&mut self) {
        let peers: Vec<LegId> = self.peers.keys().copied().collect();
        for id in peers {
            let peer = id.virtual_address();
            if self.is_direct(peer) {
                self.event(LinkEvent::Relayed { peer });
            }
            self.remove_peer(id);
        }
    }
}

/// The interval at which a host with an heir says that it is there, and the number of times without an answer before it asks for the room again.
const HEIR_INTERVAL: Duration = Duration::from_millis(100);
const HEIRS_MAX: u32 = 30;
/// The interval at which a guest asks for the room.
const CLAIM_INTERVAL: Duration = Duration::from_millis(100);
