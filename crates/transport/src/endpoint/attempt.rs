//! An attempt to connect to a server that may have several addresses, in the manner of RFC 8305.
//!
//! Addresses are tried one after the other, [`STAGGER`] apart, the versions of IP in turn, and the first that completes the handshake
//! wins. An address that answers is given time to finish before the next is tried, so that on usual paths the server hears from
//! one of them only; what another one has begun by then is a half-open handshake, which the server forgets by itself.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::ConnectError;
use crate::crypto::{Entropy, ServerPublicKey};
use crate::handshake::{
    ClientRandom, Connecting, ConnectingConfig, Established, Progress, Refusal, Trust,
};
use crate::inbox::Rare;

/// Most addresses that are tried; further ones are left out.
pub const ADDRESSES_MAX: usize = 8;
/// Time between two addresses, as RFC 8305 recommends it.
const STAGGER: Duration = Duration::from_millis(250);

/// A connection that is being made.
pub(super) struct Attempt {
    config: ConnectingConfig,
    racers: Vec<Racer>,
    /// Addresses that have not been tried.
    waiting: VecDeque<SocketAddr>,
    /// When the next of them is.
    next_start: Instant,
    /// The names of all handshakes begun, also of those that are over.
    names: Vec<ClientRandom>,
    /// A machine at one of the addresses refused: told if no other lets us in.
    refusal: Option<Refusal>,
}

/// The handshake with one address.
struct Racer {
    connecting: Connecting,
    remote: SocketAddr,
}

/// The outcome of an attempt so far.
pub(super) enum Verdict {
    /// Nothing decided.
    Continue,
    /// The server at this address let us in.
    Established(SocketAddr, Box<Established>),
    /// It is over, and this is to be told.
    Failed(Rare),
}

impl Attempt {
    /// Begins with the first address.
    pub(super) fn new(
        now: Instant,
        to: &[SocketAddr],
        config: ConnectingConfig,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ConnectError> {
        let mut attempt = Self {
            config,
            racers: Vec::new(),
            waiting: in_turn(to).into(),
            next_start: now,
            names: Vec::new(),
            refusal: None,
        };
        let Some(first) = attempt.waiting.pop_front() else {
            return Err(ConnectError::NoAddress);
        };
        attempt.start(now, first, entropy)?;
        Ok(attempt)
    }

    /// The server's key is known now; true if it was to follow.
    pub(super) fn pin(&mut self, key: ServerPublicKey) -> bool {
        let racers = self.racers.iter_mut();
        racers.for_each(|racer| racer.connecting.pin(key));
        self.config.pin(key)
    }

    /// True if it waits for the server's key.
    pub(super) fn waits_for_key(&self) -> bool {
        matches!(self.config.trust, Trust::Follows)
    }

    /// The names of all handshakes begun so far.
    pub(super) fn names(&self) -> &[ClientRandom] {
        &self.names
    }

    /// Writes the next packet that is due.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        self.racers.iter_mut().find_map(|racer| {
            let len = racer.connecting.poll_transmit(now, buffer)?;
            Some((racer.remote, len))
        })
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Instant {
        let racers = self.racers.iter();
        let next = racers.filter_map(|racer| racer.connecting.poll_timeout());
        let start = (!self.waiting.is_empty()).then_some(self.next_start);
        next.chain(start).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Tries the next address when it is its turn, and gives up those whose time is up.
    pub(super) fn handle_timeout(&mut self, now: Instant, entropy: &mut dyn Entropy) -> Verdict {
        let mut index = 0;
        while let Some(racer) = self.racers.get_mut(index) {
            match racer.connecting.handle_timeout(now) {
                Progress::TimedOut => self.drop_racer(now, index),
                Progress::Refused(refusal) => return self.refused(now, index, refusal, entropy),
                Progress::Continue | Progress::Waiting | Progress::Established(_) => index += 1,
            }
        }
        self.go_on(now, entropy)
    }

    /// A reply arrived for the handshake with this name. What comes from another address than the handshake's is ignored.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        name: &ClientRandom,
        datagram: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Verdict {
        let named = |racer: &Racer| racer.connecting.client_random() == *name;
        let Some(index) = self.racers.iter().position(named) else {
            return Verdict::Continue;
        };
        let racer = &mut self.racers[index];
        if racer.remote != from {
            return Verdict::Continue;
        }
        let answered = racer.connecting.is_answered();
        match racer.connecting.handle(now, datagram) {
            Progress::Established(established) => Verdict::Established(from, established),
            Progress::Refused(refusal) => self.refused(now, index, refusal, entropy),
            Progress::Waiting => {
                // The server has checked everything and asks its application: one question is enough.
                self.racers.swap(0, index);
                self.racers.truncate(1);
                self.waiting.clear();
                Verdict::Continue
            }
            Progress::Continue | Progress::TimedOut => {
                if !answered && self.racers[index].connecting.is_answered() {
                    self.next_start = now + STAGGER;
                }
                Verdict::Continue
            }
        }
    }

    /// A refusal is the server's, unless it has not the key that we expect: then it is another machine.
    fn refused(
        &mut self,
        now: Instant,
        index: usize,
        refusal: Refusal,
        entropy: &mut dyn Entropy,
    ) -> Verdict {
        if refusal != Refusal::WrongKey {
            return Verdict::Failed(Rare::Refused(refusal));
        }
        self.refusal = Some(refusal);
        self.drop_racer(now, index);
        self.go_on(now, entropy)
    }

    fn drop_racer(&mut self, now: Instant, index: usize) {
        log!(debug, remote = %self.racers[index].remote, "gave an address up");
        self.racers.swap_remove(index);
        self.next_start = now;
    }

    /// Tries the next address if it is its turn; fails when there is nothing left to hope for.
    fn go_on(&mut self, now: Instant, entropy: &mut dyn Entropy) -> Verdict {
        if now >= self.next_start
            && let Some(next) = self.waiting.pop_front()
        {
            let started = self.start(now, next, entropy);
            debug_assert!(started.is_ok(), "the first address took the payload");
        }
        if !self.racers.is_empty() {
            return Verdict::Continue;
        }
        let refusal = self.refusal.take().map(Rare::Refused);
        Verdict::Failed(refusal.unwrap_or(Rare::Unanswered))
    }

    fn start(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        entropy: &mut dyn Entropy,
    ) -> Result<(), ConnectError> {
        let connecting =
            Connecting::new(&self.config, now, entropy).map_err(|_| ConnectError::Payload)?;
        log!(debug, %remote, "trying an address");
        self.names.push(connecting.client_random());
        self.racers.push(Racer { connecting, remote });
        self.next_start = now + STAGGER;
        Ok(())
    }
}

/// The addresses as they are tried: each once, the versions of IP in turn, beginning with that of the first.
fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut seen: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        // A socket reports an IPv4 peer by its plain address.
        let plain = match address.ip().to_canonical() {
            ip if ip == address.ip() => *address,
            ip => SocketAddr::new(ip, address.port()),
        };
        if !seen.contains(&plain) {
            seen.push(plain);
        }
    }
    let first_is_ipv6 = seen.first().is_some_and(SocketAddr::is_ipv6);
    let (one, other): (Vec<SocketAddr>, Vec<SocketAddr>) = seen
        .iter()
        .copied()
        .partition(|address| address.is_ipv6() == first_is_ipv6);
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let mut turns = Vec::with_capacity(seen.len());
    while turns.len() < seen.len() {
        turns.extend(one.next());
        turns.extend(other.next());
    }
    turns.truncate(ADDRESSES_MAX);
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_ip_take_turns() {
        let parse = |texts: &[&str]| -> Vec<SocketAddr> {
            let parsed = texts.iter().map(|text| text.parse());
            parsed.collect::<Result<_, _>>().expect("addresses")
        };
        let given = parse(&[
            "[2001:db8::1]:7",
            "[2001:db8::2]:7",
            "[2001:db8::1]:7",
            "192.0.2.1:7",
            "[::ffff:192.0.2.1]:7",
            "192.0.2.2:7",
            "192.0.2.3:7",
        ]);
        let expected = parse(&[
            "[2001:db8::1]:7",
            "192.0.2.1:7",
            "[2001:db8::2]:7",
            "192.0.2.2:7",
            "192.0.2.3:7",
        ]);
        assert_eq!(in_turn(&given), expected);
        let many: Vec<SocketAddr> = (0..20).map(|host| ([192, 0, 2, host], 7).into()).collect();
        assert_eq!(in_turn(&many), many[..ADDRESSES_MAX]);
        assert!(in_turn(&[]).is_empty());
    }
}
