//! Asking the relay, keeping the way to it open, and coming back when the relay has lost us.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant};

use super::super::packet::{Candidates, LegId, Packet, Refusal, ShownToken, VERSION};
use super::super::relay::occasion;
use super::super::short_code::CodeRefusal;
use super::{Asking, Link, LinkEvent, Ready, Role, State, host_id};

impl Link {
    /// Begins to ask the relay, `first` or after a pause.
    pub(super) fn ask(&mut self, now: Instant, first: Instant) {
        let random = self.secrets.draw().to_le_bytes();
        self.state = State::Asking(Asking {
            random,
            cookie: None,
            since: now,
            interval: ASK_INTERVAL,
        });
        self.state_due = first;
    }

    pub(super) fn ask_again(&mut self, now: Instant, mut asking: Asking) {
        let waited = now.saturating_since(asking.since);
        if waited >= ASK_TIME && !self.was_ready {
            self.event(LinkEvent::Unanswered);
            self.state = State::Over;
            self.state_due = Instant::FAR_FUTURE;
            return;
        }
        if let Some((_, at)) = asking.cookie
            && now.saturating_since(at) > COOKIE_TIME
        {
            asking.cookie = None;
        }
        if asking.interval > ASK_INTERVAL && asking.cookie.is_none() {
            self.try_next_address();
        }
        self.state_due = now + asking.interval;
        let limit = if waited > ASK_TIME {
            ASK_INTERVAL_LATE
        } else {
            ASK_INTERVAL_MAX
        };
        asking.interval = (asking.interval * 3 / 2).min(limit);
        self.state = State::Asking(asking);
        self.send_request(&asking);
    }

    /// Asks a relay that has not answered at its next address, if it has more than one.
    fn try_next_address(&mut self) {
        if let Some(next) = self.others.pop_front() {
            let silent = std::mem::replace(&mut self.relay, next);
            self.others.push_back(silent);
        }
    }

    /// Returns true if this is the relay's first answer, from an address that was asked before the present one, and takes that.
    pub(super) fn is_found(&mut self, from: SocketAddr, packet: &Packet) -> bool {
        let State::Asking(asking) = self.state else {
            return false;
        };
        let (Packet::Cookie { random, .. } | Packet::Refused { random, .. }) = packet else {
            return false;
        };
        if *random != asking.random || asking.cookie.is_some() {
            return false;
        }
        let asked = self.others.iter_mut().find(|other| **other == from);
        asked
            .map(|other| std::mem::swap(&mut self.relay, other))
            .is_some()
    }

    pub(super) fn send_request(&mut self, asking: &Asking) {
        let random = asking.random;
        // Without a direct way not even the relay needs to know where we are in the local network.
        let (direct, local) = match self.direct {
            true => (true, self.local),
            false => (false, Candidates::NONE),
        };
        let packet = match (asking.cookie, self.role) {
            (None, _) => Packet::Hello {
                version: VERSION,
                random,
            },
            (Some((cookie, _)), Role::Host(key)) => {
                let shown = self.token.as_ref().and_then(|token| {
                    let occasion = occasion(&random, &cookie, &key);
                    ShownToken::new(&token.show(&occasion))
                });
                Packet::Open {
                    random,
                    cookie,
                    key,
                    direct,
                    local,
                    token: shown.unwrap_or(ShownToken::NONE),
                    term: self.succession.term(),
                }
            }
            (Some((cookie, _)), Role::Guest(code)) => Packet::Join {
                random,
                cookie,
                code,
                direct,
                local,
            },
        };
        self.say(self.relay, packet);
    }

    pub(super) fn keep(&mut self, now: Instant, mut ready: Ready) {
        if ready.unanswered >= self.keeps_max() {
            self.event(LinkEvent::Unanswered);
            self.ask(now, now);
            return;
        }
        ready.unanswered += 1;
        self.state = State::Ready(ready);
        self.state_due = now + KEEP_AGAIN.min(self.keep_interval());
        let packet = self.keep_packet(ready.id);
        self.say(self.relay, packet);
    }

    /// A relay that has forgotten one way may have forgotten everything: ask at once rather than at the next sign of life.
    pub(super) fn look_after_room(&mut self, now: Instant) {
        if let State::Ready(Ready { unanswered: 0, .. }) = self.state {
            self.state_due = now;
        }
    }

    /// Makes sure that the relay knows where we are, unless it said so a moment ago.
    pub(super) fn check_relay(&mut self, now: Instant) {
        let recent = self.state_due.saturating_since(now) > KEEP_INTERVAL - KEEP_AGAIN;
        if !recent {
            self.look_after_room(now);
        }
    }

    pub(super) fn on_ready(&mut self, now: Instant, id: LegId, observed: SocketAddr) {
        self.state = State::Ready(Ready { id, unanswered: 0 });
        self.state_due = now + self.keep_interval();
        self.was_ready = true;
        self.others.clear();
        self.public = Some(observed);
        self.event(match self.role {
            Role::Host(key) => LinkEvent::Opened {
                code: key.code(),
                public: observed,
            },
            Role::Guest(_) => LinkEvent::Joined { public: observed },
        });
        self.by_code.hurry(now);
        if matches!(self.role, Role::Guest(_)) && self.direct {
            self.expect_introduction(now, id);
        }
        if let Some((leg, token, candidates)) = self.early.take() {
            self.on_introduce(now, leg, token, candidates);
        }
    }

    /// After a restart of the relay the host may be slower than its guests, so one that was in tries again for a while.
    pub(super) fn on_refused(&mut self, now: Instant, reason: Refusal) {
        let hopeful = matches!(reason, Refusal::NoSuchRoom | Refusal::RoomFull);
        let State::Asking(Asking { since, .. }) = self.state else {
            return;
        };
        if self.was_ready && hopeful && now.saturating_since(since) < REJOIN_TIME {
            self.ask(now, now + REJOIN_INTERVAL);
            if let State::Asking(asking) = &mut self.state {
                asking.since = since;
            }
            return;
        }
        if reason == Refusal::Succeeded && matches!(self.role, Role::Host(_)) {
            return self.on_replaced();
        }
        if reason == Refusal::NoSuchRoom {
            self.by_code.fail(CodeRefusal::NoSuchRoom);
        }
        self.event(LinkEvent::Refused(reason));
        self.state = State::Over;
        self.state_due = Instant::FAR_FUTURE;
    }

    /// The relay saw us at this address. A new one deserves a new attempt at a direct way.
    pub(super) fn on_public(&mut self, now: Instant, observed: SocketAddr) {
        if self.public == Some(observed) {
            return;
        }
        self.public = Some(observed);
        self.event(LinkEvent::PublicAddress(observed));
        if let Role::Guest(_) = self.role
            && let Some(peer) = self.peers.get_mut(&host_id())
            && peer.direct.is_none()
        {
            peer.acquaint_at(now);
            self.peers_due = self.peers_due.min(now);
        }
    }
}

/// Time between two requests, at first and at most; and once the relay has been silent for long.
const ASK_INTERVAL: Duration = Duration::from_millis(250);
pub(super) const ASK_INTERVAL_MAX: Duration = Duration::from_secs(1);
const ASK_INTERVAL_LATE: Duration = Duration::from_secs(5);
/// The time within which a relay must answer.
const ASK_TIME: Duration = Duration::from_secs(10);
/// A cookie is not used for longer; the relay takes it for 10 s.
const COOKIE_TIME: Duration = Duration::from_secs(5);
/// Time between two signs of life: shorter than any router's memory.
pub(super) const KEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Time until an unanswered one is repeated, and how often.
pub(super) const KEEP_AGAIN: Duration = Duration::from_millis(500);
pub(super) const KEEPS_MAX: u32 = 6;
/// The time for which, and the interval at which, a link that the relay has lost tries to come back to its room.
const REJOIN_TIME: Duration = Duration::from_secs(60);
const REJOIN_INTERVAL: Duration = Duration::from_millis(500);
