//! One peer of a link: the search for a direct way to it, and the watch over that way once it is taken.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant};

use super::super::packet::{Candidates, LegId, is_local};

#[derive(Debug)]
pub(super) struct Peer {
    /// Our end of the way through the relay.
    pub(super) leg: LegId,
    pub(super) token: [u8; 8],
    /// The nonce of our probes, so that an echo proves that the peer got one.
    pub(super) nonce: [u8; 8],
    /// An address that echoed.
    pub(super) proven: Option<SocketAddr>,
    /// The relay says that the direct way works.
    pub(super) told: bool,
    /// The address to which datagrams go, while they go directly.
    pub(super) direct: Option<SocketAddr>,
    /// The time at which something came from there last.
    pub(super) heard: Instant,
    /// The time at which the peer was last heard of, whichever way.
    pub(super) seen: Instant,
    /// The relay has forgotten the way to it: once the direct one ends, so do we.
    pub(super) gone: bool,
    /// The time at which [`step`](Self::step) has something to do.
    pub(super) due: Instant,
    candidates: Candidates,
    /// The direct addresses that it had last, the newest first.
    addresses: [Option<SocketAddr>; ADDRESSES_MAX],
    phase: Phase,
    switched: Instant,
    probed: Instant,
    /// Searches without success.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Probes go out; so many rounds did.
    Search(u32),
    /// A way was found; the relay was told so often.
    Report(u32),
    /// The direct way is used.
    Watch,
    /// Nothing was found; later again.
    Rest,
}

/// The next thing to do for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Send a probe to every target.
    Probe,
    /// Tell the relay that the direct way works.
    Report,
    /// Ask the relay to introduce us again.
    Acquaint,
    /// The direct way is dead.
    FallBack,
    /// Nothing was heard of it for long: forget it.
    Forget,
}

impl Peer {
    pub(super) fn new(now: Instant, leg: LegId, nonce: [u8; 8]) -> Self {
        Self {
            leg,
            token: [0; 8],
            nonce,
            proven: None,
            told: false,
            direct: None,
            heard: now,
            seen: now,
            gone: false,
            due: now,
            candidates: Candidates::NONE,
            addresses: [None; ADDRESSES_MAX],
            phase: Phase::Rest,
            switched: now,
            probed: now,
            failures: 0,
        }
    }

    /// The relay says where the peer may be: search, unless a direct way is in use or a search is under way, which nobody can
    /// have begin again and again.
    pub(super) fn introduce(&mut self, now: Instant, token: [u8; 8], candidates: Candidates) {
        let searching = matches!(self.phase, Phase::Search(round) if round < ROUNDS);
        self.token = token;
        self.candidates = candidates;
        self.seen = now;
        self.gone = false;
        if self.direct.is_none() && !searching {
            self.proven = None;
            self.told = false;
            self.phase = Phase::Search(0);
            self.due = now;
        }
    }

    /// Has the relay asked for another introduction at this time.
    pub(super) fn acquaint_at(&mut self, at: Instant) {
        self.phase = Phase::Rest;
        self.due = at;
    }

    pub(super) fn step(&mut self, now: Instant, is_guest: bool) -> Step {
        match self.phase {
            Phase::Search(round) if round < ROUNDS => {
                self.phase = Phase::Search(round + 1);
                self.due = now + ROUND_INTERVAL * u64::from(round / 4 + 1);
                Step::Probe
            }
            Phase::Search(_) | Phase::Report(REPORTS) => {
                self.phase = Phase::Rest;
                self.failures = (self.failures + 1).min(FAILURES_MAX);
                // Only guests ask, so that both sides search at the same time.
                let pause = REST * (1 << (self.failures - 1));
                self.due = now + if is_guest { pause } else { REST };
                Step::Nothing
            }
            Phase::Report(count) => {
                self.phase = Phase::Report(count + 1);
                self.due = now + REPORT_INTERVAL;
                Step::Report
            }
            Phase::Watch => self.watch(now),
            Phase::Rest => {
                // The search begins when the introduction comes; should it be lost, we ask again.
                self.due = now + REST;
                match is_guest {
                    true => Step::Acquaint,
                    false if now.saturating_since(self.seen) >= FORGET_AFTER => Step::Forget,
                    false => Step::Nothing,
                }
            }
        }
    }

    fn watch(&mut self, now: Instant) -> Step {
        let quiet = now.saturating_since(self.heard);
        self.due = now + WATCH_INTERVAL;
        if quiet >= DEAD_AFTER {
            return Step::FallBack;
        }
        // Now and then also without need, because routers keep a mapping only for what goes out.
        if quiet >= WATCH_INTERVAL || now.saturating_since(self.probed) >= REFRESH {
            self.probed = now;
            return Step::Probe;
        }
        Step::Nothing
    }

    /// Returns the targets of probes: everywhere, or the direct address while it is used.
    pub(super) fn targets(&self) -> Candidates {
        match self.direct {
            None => self.candidates,
            Some(address) => {
                let mut only = Candidates::NONE;
                only.push(address);
                only
            }
        }
    }

    /// Returns further targets of a search: the ports that the peer's router gives out next, should it count up. Guests begin, so that the router of a host with
    /// many of them gives none out for the host's own guesses.
    pub(super) fn guesses(&self, is_guest: bool) -> impl Iterator<Item = SocketAddr> + use<> {
        let first = match self.phase {
            Phase::Search(round) if is_guest => {
                GUESSES_OF_GUEST.get((round as usize).wrapping_sub(1))
            }
            Phase::Search(round) => GUESSES_OF_HOST.get((round as usize).wrapping_sub(1)),
            _ => None,
        };
        let first = first.copied().filter(|first| *first != 0);
        let seen = self.candidates.as_slice().first().copied();
        let base = first.zip(seen).filter(|(_, seen)| !is_local(seen));
        let ports = base.into_iter().flat_map(|(first, seen)| {
            let ports = (first..first + GUESSES).map(move |step| seen.port().checked_add(step));
            ports.map(move |port| Some(SocketAddr::new(seen.ip(), port?)))
        });
        ports.flatten()
    }

    /// Remembers a direct address; returns the one that is forgotten for it.
    pub(super) fn remember(&mut self, address: SocketAddr) -> Option<SocketAddr> {
        let known = self.addresses.iter().position(|it| *it == Some(address));
        let last = known.unwrap_or(ADDRESSES_MAX - 1);
        let forgotten = self.addresses[last].filter(|_| known.is_none());
        self.addresses.copy_within(..last, 1);
        self.addresses[0] = Some(address);
        forgotten
    }

    /// Returns the direct addresses that it had last.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        self.addresses.into_iter().flatten()
    }

    /// Handles a probe from `from`. Returns true if one should go there as well, since no way is known yet.
    pub(super) fn on_probe(&mut self, now: Instant, from: SocketAddr) -> bool {
        self.seen = now;
        if self.direct == Some(from) {
            self.heard = now;
        }
        // A router may have given the peer another address than the relay saw.
        if self.direct.is_none() {
            self.candidates.push(from);
        }
        self.direct.is_none() && self.proven.is_none()
    }

    /// True if the search has gone on for so long that the other side may not have heard of it.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(self.phase, Phase::Search(round) if round % DOUBT_ROUNDS == 0)
    }

    /// Handles an echo of our probe. Returns true if it is the first sign that a way works.
    pub(super) fn on_echo(&mut self, now: Instant, from: SocketAddr) -> bool {
        self.seen = now;
        if self.direct.is_some() {
            if self.direct == Some(from) {
                self.heard = now;
            }
            return false;
        }
        if self.proven.is_some() {
            return false;
        }
        self.proven = Some(from);
        self.phase = Phase::Report(0);
        self.due = now;
        true
    }

    /// The proven way is taken from now on.
    pub(super) fn switch(&mut self, now: Instant) -> Option<SocketAddr> {
        self.direct = self.proven;
        self.phase = Phase::Watch;
        self.failures = 0;
        self.heard = now;
        self.switched = now;
        self.probed = now;
        self.due = now + WATCH_INTERVAL;
        self.direct
    }

    /// True if what comes through the relay shows that the other side has left the direct way, rather than that it is late.
    #[inline]
    pub(super) fn is_left_behind(&self, now: Instant) -> bool {
        self.direct.is_some() && now.saturating_since(self.switched) > LATECOMERS
    }

    pub(super) fn fall_back(&mut self, now: Instant) {
        self.direct = None;
        self.proven = None;
        self.told = false;
        self.phase = Phase::Rest;
        self.due = now + AGAIN;
    }
}

/// A search: 12 rounds of probes, the first four at [`ROUND_INTERVAL`], the next four at twice that, the last four at three times that. Both sides have to send
/// before either one's router lets the other's probes in, and the introductions reach them at different times.
const ROUNDS: u32 = 12;
/// Rounds after which a guest has both sides introduced again: one of the introductions may have been lost.
const DOUBT_ROUNDS: u32 = 6;
const ROUND_INTERVAL: Duration = Duration::from_millis(80);
/// The interval at which, and the number of times that, the relay is told that a way works before it is given up.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
const REPORTS: u32 = 10;
/// Pause after a search without success, doubled for each further one.
const REST: Duration = Duration::from_secs(10);
const FAILURES_MAX: u32 = 4;
/// A direct way is checked this often, refreshed after this time even if it is in use, because routers keep a mapping only for what goes out,
/// and counts as dead after this much silence: three checks unanswered.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(5);
const DEAD_AFTER: Duration = Duration::from_millis(3_500);
/// Guesses at the ports of a router that counts up, in a round; and the first of them in each round, counted from the port that the relay saw.
const GUESSES: u16 = 4;
const GUESSES_OF_GUEST: [u16; ROUNDS as usize] = [0, 0, 1, 5, 9, 13, 0, 0, 1, 5, 9, 13];
const GUESSES_OF_HOST: [u16; ROUNDS as usize] = [0, 0, 0, 0, 0, 0, 1, 5, 9, 13, 1, 5];
/// Pause between the end of a direct way and the next search.
const AGAIN: Duration = Duration::from_secs(2);
/// A host forgets a peer without a direct way that it has not heard of for so long: longer than relays keep silent guests.
const FORGET_AFTER: Duration = Duration::from_secs(90);
/// Direct addresses of a peer that are remembered: data for one that it had a moment ago still find it.
const ADDRESSES_MAX: usize = 4;
/// The time after the switch in which datagrams may still come through the relay.
const LATECOMERS: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        let leg = LegId::from_bits(7);
        let mut candidates = Candidates::NONE;
        candidates.push(SocketAddr::from(([192, 0, 2, 1], 65_530)));
        candidates.push(SocketAddr::from(([192, 168, 0, 1], 5)));
        let mut peer = Peer::new(Instant::ZERO, leg, [0; 8]);
        peer.introduce(Instant::ZERO, [1; 8], candidates);
        peer
    }

    #[test]
    fn guesses_go_to_the_ports_after_the_one_that_the_relay_saw() {
        for (is_guest, first_round) in [(true, 2), (false, 6)] {
            let (mut peer, mut ports, mut began) = (peer(), Vec::new(), None);
            for round in 0..ROUNDS {
                assert_eq!(peer.step(Instant::ZERO, is_guest), Step::Probe);
                let guesses: Vec<SocketAddr> = peer.guesses(is_guest).collect();
                assert!(guesses.iter().all(|it| it.ip() == [192, 0, 2, 1]));
                if !guesses.is_empty() {
                    began.get_or_insert(round);
                }
                ports.extend(guesses.iter().map(SocketAddr::port));
            }
            assert_eq!(began, Some(first_round));
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports, [65_531, 65_532, 65_533, 65_534, 65_535]);
        }
    }

    #[test]
    fn nobody_guesses_at_addresses_of_a_local_network() {
        let mut peer = peer();
        peer.candidates = Candidates::NONE;
        peer.candidates.push(SocketAddr::from(([10, 0, 0, 1], 9)));
        for _ in 0..ROUNDS {
            peer.step(Instant::ZERO, true);
            assert_eq!(peer.guesses(true).count(), 0);
        }
    }
}
