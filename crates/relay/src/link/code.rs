//! Short codes on a link: a host gives its key to guests that have the code, a guest asks for it before anything else.

use std::collections::VecDeque;

use muse_wire::Instant;

use super::super::packet::LegId;
use super::super::short_code::{
    CodePacket, CodeRefusal, CodeSecret, Denial, KeyGiver, KeyTaker, ShortCode,
};
use super::{Link, LinkEvent, Ready, Role, State};

/// The part of a link that has to do with a short code, if there is one.
#[derive(Default)]
pub(super) struct ByCode {
    pub(super) giver: Option<Box<KeyGiver>>,
    taker: Option<Box<KeyTaker>>,
    /// Packets to be sent through the relay by these ways.
    out: VecDeque<(LegId, CodePacket)>,
    /// The outcome was told.
    told: bool,
}

impl ByCode {
    /// True for a guest that waits for the host's key.
    pub(super) fn is_asking(&self) -> bool {
        let taker = self.taker.as_ref();
        taker.is_some_and(|taker| taker.outcome().is_none())
    }

    /// There is a way to the host, or a new one.
    pub(super) fn hurry(&mut self, now: Instant) {
        if let Some(taker) = &mut self.taker {
            taker.hurry(now);
        }
    }

    /// There will be none.
    pub(super) fn fail(&mut self, reason: CodeRefusal) {
        if self.is_asking()
            && let Some(taker) = &mut self.taker
        {
            taker.fail(reason);
        }
    }

    fn say(&mut self, leg: LegId, packet: CodePacket) {
        if self.out.len() < OUT_MAX {
            self.out.push_back((leg, packet));
        }
    }
}

impl Link {
    /// Gives the host's public key to guests that come with the [short code](Self::short_code) of this secret. To be called before the link is used.
    pub fn give_key(mut self, now: Instant, secret: CodeSecret, host_key: [u8; 32]) -> Self {
        let (code, seed) = (ShortCode::new(self.code(), secret), self.draw_seed());
        self.by_code.giver = Some(Box::new(KeyGiver::new(now, code, host_key, seed)));
        self
    }

    /// Asks the host for its public key by a short code, as a guest: nothing else is sent before [`poll_host_key`](Self::poll_host_key) has said how it ended. To be
    /// called before the link is used.
    pub fn take_key(mut self, now: Instant, code: ShortCode) -> Self {
        let seed = self.draw_seed();
        self.by_code.taker = Some(Box::new(KeyTaker::new(now, code, seed)));
        self
    }

    /// Returns the code that friends type, for a host that gives its key by one.
    pub fn short_code(&self) -> Option<ShortCode> {
        self.by_code.giver.as_ref().map(|giver| giver.code())
    }

    /// Returns the host's public key, once it has been learned by a short code, or the reason why it has not; each once.
    pub fn poll_host_key(&mut self) -> Option<Result<[u8; 32], CodeRefusal>> {
        let outcome = self.by_code.taker.as_ref()?.outcome()?;
        (!std::mem::replace(&mut self.by_code.told, true)).then_some(outcome)
    }

    /// A datagram of the other side, forwarded by the relay, has something of ours in it.
    pub(crate) fn handle_content(&mut self, now: Instant, leg: LegId, bytes: &[u8]) {
        let Some(packet) = CodePacket::parse(bytes) else {
            return;
        };
        if let Some(giver) = &mut self.by_code.giver {
            let before = giver.tries_left();
            let answer = giver.handle(now, leg, packet);
            let tries_left = giver.tries_left();
            if let Some(answer) = answer {
                self.by_code.say(leg, answer);
                let wrong = matches!(
                    answer,
                    CodePacket::Denied {
                        reason: Denial::WrongCode,
                        ..
                    }
                );
                if wrong && tries_left < before {
                    self.event(LinkEvent::WrongCode { tries_left });
                }
            }
        } else if let Some(taker) = &mut self.by_code.taker {
            taker.handle(now, packet);
            self.ask_host(now);
        }
    }

    /// The next packet for the other side, and its way.
    pub(crate) fn poll_content(&mut self) -> Option<(LegId, CodePacket)> {
        self.by_code.out.pop_front()
    }

    /// Sends what a guest has to ask, if it is in the room.
    pub(super) fn ask_host(&mut self, now: Instant) {
        if let State::Ready(Ready { id, .. }) = self.state
            && let Some(taker) = &mut self.by_code.taker
            && let Some(packet) = taker.poll_transmit(now)
        {
            self.by_code.say(id, packet);
        }
    }

    /// Returns when a guest in the room has something to ask.
    pub(super) fn code_due(&self) -> Instant {
        let due = match (self.role, self.state, &self.by_code.taker) {
            (Role::Guest(_), State::Ready(_), Some(taker)) => taker.poll_timeout(),
            _ => None,
        };
        due.unwrap_or(Instant::FAR_FUTURE)
    }

    pub(super) fn draw_seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        for chunk in seed.as_chunks_mut::<8>().0 {
            *chunk = self.secrets.draw().to_le_bytes();
        }
        seed
    }
}

/// Packets that wait to be sent.
const OUT_MAX: usize = 256;
