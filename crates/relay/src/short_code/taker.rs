//! The guest's side: asks the host for its key, and proves that it has the secret.

use muse_wire::{Duration, Instant};
use subtle::ConstantTimeEq;

use super::super::cookie::Secrets;
use super::{CodePacket, CodeRefusal, Denial, Exchange, SIDE_HOST, Shared, ShortCode};

/// Learns a host's key by a short code, as a guest in its room.
///
/// Call [`poll_transmit`](Self::poll_transmit) until it returns `None`, at the time of [`poll_timeout`](Self::poll_timeout) and after
/// [`handle`](Self::handle), which takes the host's packets; [`outcome`](Self::outcome) says when it is over.
///
/// Each exchange lets whoever answers try one secret, so only the first answer counts, and a host that has forgotten an exchange gets two more at most.
pub struct KeyTaker {
    code: ShortCode,
    secrets: Secrets,
    random: [u8; 8],
    state: State,
    due: Instant,
    interval: Duration,
    begun: u32,
}

enum State {
    Asking(Exchange),
    Confirming(Shared),
    Over(Result<[u8; 32], CodeRefusal>),
}

impl KeyTaker {
    /// Begins now. `seed` is secret randomness.
    pub fn new(now: Instant, code: ShortCode, seed: [u8; 32]) -> Self {
        let mut secrets = Secrets::new(&seed);
        let random = secrets.draw().to_le_bytes();
        let exchange = Exchange::guest(&code, &mut secrets);
        Self {
            code,
            secrets,
            random,
            state: State::Asking(exchange),
            due: now,
            interval: INTERVAL,
            begun: 1,
        }
    }

    /// Returns the host's key or the reason why there is none, once it is over.
    pub fn outcome(&self) -> Option<Result<[u8; 32], CodeRefusal>> {
        match self.state {
            State::Over(outcome) => Some(outcome),
            State::Asking(_) | State::Confirming(_) => None,
        }
    }

    /// The host said this.
    pub fn handle(&mut self, now: Instant, packet: CodePacket) {
        match (packet, &self.state) {
            (CodePacket::Answer { random, point }, State::Asking(_)) if random == self.random => {
                self.handle_answer(now, &point);
            }
            (
                CodePacket::Key {
                    random,
                    sealed,
                    proof,
                },
                State::Confirming(shared),
            ) if random == self.random
                && bool::from(shared.host_proof(&random, &sealed).ct_eq(&proof)) =>
            {
                self.state = State::Over(Ok(shared.seal(&random, &sealed)));
            }
            (CodePacket::Denied { random, reason }, State::Confirming(_))
                if random == self.random =>
            {
                match reason {
                    Denial::WrongCode => self.state = State::Over(Err(CodeRefusal::WrongCode)),
                    Denial::TooManyTries => {
                        self.state = State::Over(Err(CodeRefusal::TooManyTries))
                    }
                    Denial::Unknown => self.begin(now),
                }
            }
            _ => {}
        }
    }

    /// Returns the packet that is due, if one is.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<CodePacket> {
        if now < self.due {
            return None;
        }
        let random = self.random;
        let packet = match &self.state {
            State::Asking(exchange) => CodePacket::Ask {
                random,
                point: exchange.point,
            },
            State::Confirming(shared) => CodePacket::Confirm {
                random,
                proof: shared.guest_proof(&random),
            },
            State::Over(_) => return None,
        };
        self.due = now + self.interval;
        self.interval = (self.interval * 3 / 2).min(INTERVAL_MAX);
        Some(packet)
    }

    /// Returns when something is to be sent.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Over(_) => None,
            State::Asking(_) | State::Confirming(_) => Some(self.due),
        }
    }

    /// The way to the host is none: it is over.
    pub fn fail(&mut self, reason: CodeRefusal) {
        self.state = State::Over(Err(reason));
    }

    /// Sends what is to be sent at once, because there is a new way to the host.
    pub fn hurry(&mut self, now: Instant) {
        self.due = now;
        self.interval = INTERVAL;
    }

    fn handle_answer(&mut self, now: Instant, point: &[u8; 32]) {
        let over = State::Over(Err(CodeRefusal::Interrupted));
        if let State::Asking(exchange) = std::mem::replace(&mut self.state, over) {
            match exchange.finish(SIDE_HOST, point) {
                Some(shared) => self.state = State::Confirming(shared),
                None => return self.begin(now),
            }
        }
        self.hurry(now);
    }

    /// The exchange came to nothing: the host has forgotten it, as after a restart of the relay, or answered with no point of the curve.
    fn begin(&mut self, now: Instant) {
        if self.begun >= EXCHANGES_MAX {
            self.state = State::Over(Err(CodeRefusal::Interrupted));
            return;
        }
        self.begun += 1;
        self.random = self.secrets.draw().to_le_bytes();
        self.state = State::Asking(Exchange::guest(&self.code, &mut self.secrets));
        self.hurry(now);
    }
}

/// Time between two packets, at first and at most.
const INTERVAL: Duration = Duration::from_millis(250);
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Exchanges with a host that forgets them.
const EXCHANGES_MAX: u32 = 3;
