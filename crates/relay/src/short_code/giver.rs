//! The host's side: gives its key to guests that prove that they have the secret, and few others a chance to guess it.

use std::collections::BTreeMap;

use muse_wire::rate::{Rate, TokenBucket};
use muse_wire::{Duration, Instant};
use subtle::ConstantTimeEq;

use super::super::cookie::Secrets;
use super::super::packet::LegId;
use super::{CodePacket, Denial, Exchange, Point, SIDE_GUEST, Shared, ShortCode};

/// Answers guests with a short code, as the room's host.
///
/// Give each packet to [`handle`](Self::handle); the answer, if there is one, goes back to the same guest and is never longer than the packet.
///
/// A guest shows its proof first, so the host knows of every guess. Wrong ones take from a budget of [`TRIES_MAX`](Self::TRIES_MAX), which gets one back each
/// [`TRY_INTERVAL`](Self::TRY_INTERVAL); while there is none left no proof is looked at.
pub struct KeyGiver {
    code: ShortCode,
    host_key: [u8; 32],
    secrets: Secrets,
    /// By the host's end of the way to the guest.
    exchanges: BTreeMap<LegId, Begun>,
    asks: TokenBucket,
    tries: u32,
    /// The time since which the next try grows back.
    grows_from: Instant,
}

/// An exchange with a guest.
struct Begun {
    at: Instant,
    random: [u8; 8],
    /// The guest's point, and ours.
    points: (Point, Point),
    state: State,
}

enum State {
    /// The guest is to show its proof.
    Answered(Shared),
    /// It did; the answer is repeated when it asks again.
    Decided(CodePacket),
}

impl KeyGiver {
    /// Wrong codes that are looked at without a pause.
    pub const TRIES_MAX: u32 = 8;
    /// The time after which one more is.
    pub const TRY_INTERVAL: Duration = Duration::from_secs(60);

    /// Gives `host_key` to guests with this code. `seed` is secret randomness.
    pub fn new(now: Instant, code: ShortCode, host_key: [u8; 32], seed: [u8; 32]) -> Self {
        Self {
            code,
            host_key,
            secrets: Secrets::new(&seed),
            exchanges: BTreeMap::new(),
            asks: TokenBucket::full(now, ASKS),
            tries: Self::TRIES_MAX,
            grows_from: now,
        }
    }

    /// Returns the code.
    pub fn code(&self) -> ShortCode {
        self.code
    }

    /// Returns how many wrong codes are looked at before there is a pause.
    pub fn tries_left(&self) -> u32 {
        self.tries
    }

    /// Returns the number of exchanges that are remembered.
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// A guest said this. Returns the answer.
    pub fn handle(&mut self, now: Instant, from: LegId, packet: CodePacket) -> Option<CodePacket> {
        match packet {
            CodePacket::Ask { random, point } => self.handle_ask(now, from, random, point),
            CodePacket::Confirm { random, proof } => {
                Some(self.handle_confirm(now, from, random, &proof))
            }
            CodePacket::Answer { .. } | CodePacket::Key { .. } | CodePacket::Denied { .. } => None,
        }
    }

    fn handle_ask(
        &mut self,
        now: Instant,
        from: LegId,
        random: [u8; 8],
        point: Point,
    ) -> Option<CodePacket> {
        if let Some(begun) = self.exchanges.get(&from)
            && begun.random == random
        {
            // Repeated. Another point under the same name would be another exchange.
            let (theirs, ours) = begun.points;
            return (theirs == point).then_some(CodePacket::Answer {
                random,
                point: ours,
            });
        }
        if !self.asks.admit(now, ASKS, 1) {
            return None;
        }
        let exchange = Exchange::host(&self.code, &mut self.secrets);
        let ours = exchange.point;
        let shared = exchange.finish(SIDE_GUEST, &point)?;
        self.make_place(now);
        let begun = Begun {
            at: now,
            random,
            points: (point, ours),
            state: State::Answered(shared),
        };
        self.exchanges.insert(from, begun);
        Some(CodePacket::Answer {
            random,
            point: ours,
        })
    }

    fn handle_confirm(
        &mut self,
        now: Instant,
        from: LegId,
        random: [u8; 8],
        proof: &[u8; 32],
    ) -> CodePacket {
        let denied = |reason| CodePacket::Denied { random, reason };
        self.grow(now);
        let begun = self.exchanges.get_mut(&from);
        let Some(begun) = begun.filter(|begun| begun.random == random) else {
            return denied(Denial::Unknown);
        };
        let shared = match &begun.state {
            State::Decided(answer) => return *answer,
            State::Answered(shared) => shared,
        };
        if self.tries == 0 {
            return denied(Denial::TooManyTries);
        }
        let answer = match bool::from(shared.guest_proof(&random).ct_eq(proof)) {
            true => {
                let sealed = shared.seal(&random, &self.host_key);
                let proof = shared.host_proof(&random, &sealed);
                CodePacket::Key {
                    random,
                    sealed,
                    proof,
                }
            }
            false => {
                self.tries -= 1;
                denied(Denial::WrongCode)
            }
        };
        begun.state = State::Decided(answer);
        answer
    }

    /// Tries that have grown back.
    fn grow(&mut self, now: Instant) {
        let grown =
            now.saturating_since(self.grows_from).as_micros() / Self::TRY_INTERVAL.as_micros();
        self.tries = Self::TRIES_MAX.min(
            self.tries
                .saturating_add(grown.min(u64::from(u32::MAX)) as u32),
        );
        if self.tries == Self::TRIES_MAX {
            self.grows_from = now;
        } else {
            self.grows_from += Self::TRY_INTERVAL * grown;
        }
    }

    /// Forgets exchanges that are over, and the oldest if there are still too many.
    fn make_place(&mut self, now: Instant) {
        self.exchanges
            .retain(|_, begun| now.saturating_since(begun.at) < KEPT);
        if self.exchanges.len() >= EXCHANGES_MAX {
            let oldest = self.exchanges.iter().min_by_key(|(_, begun)| begun.at);
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.exchanges.remove(&id);
            }
        }
    }
}

/// Exchanges that are remembered, and for how long.
const EXCHANGES_MAX: usize = 64;
const KEPT: Duration = Duration::from_secs(30);
/// Exchanges begun: each costs the host some 300 us.
const ASKS: Rate = Rate::new(32, 64);
