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
    /// Probes of the direct way since the last echo.
    unechoed: u32,
    /// The round trip of the direct way, once it was measured.
    round_trip: Option<Duration>,
    /// Datagrams that went directly since anything was last heard from there.
    unanswered: Option<Unanswered>,
    /// The first probe since then.
    asked: Option<Instant>,
    /// The time at which the peer last sent a probe from its direct address.
    asked_by_peer: Instant,
    /// The time at which something last said that the peer is in doubt.
    doubted: Option<Instant>,
    /// The time at which data or an echo came from there last.
    answered: Instant,
    /// When the peer began to send through the relay although there is a direct way, and when it last did.
    relayed: (Instant, Instant),
    /// Searches without success.
    failures: u32,
}

/// Datagrams that went directly without an answer. Not each needs one: acknowledgements are not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    first: Instant,
    /// The first one of those that followed each other closely.
    streak: Instant,
    last: Instant,
}

/// Trust in a direct way, by its silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It works.
    Firm,
    /// An answer is late: the way through the relay should be ready.
    Shaken,
    /// An answer is overdue, or the peer is in doubt: what goes there goes through the relay as well.
    Lost,
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
            unechoed: 0,
            round_trip: None,
            unanswered: None,
            asked: None,
            asked_by_peer: Instant::ZERO,
            doubted: None,
            answered: now,
            relayed: (Instant::ZERO, Instant::ZERO),
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
        let stale = now.saturating_since(self.probed) >= REFRESH || self.round_trip.is_none();
        if quiet >= WATCH_INTERVAL || stale || self.wants_answer(now) {
            self.probed = now;
            self.unechoed += 1;
            self.asked.get_or_insert(now);
            return Step::Probe;
        }
        Step::Nothing
    }

    /// Data or an echo came from the direct address: the peer uses it.
    #[inline]
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.answered = now;
        self.seen = now;
        self.unanswered = None;
        self.asked = None;
    }

    /// A datagram goes to the direct address. Returns how far that can be trusted.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant) -> Trust {
        let new = Unanswered {
            first: now,
            streak: now,
            last: now,
        };
        let unanswered = self.unanswered.get_or_insert(new);
        if now.saturating_since(unanswered.last) > STREAK_PAUSE {
            unanswered.streak = now;
        }
        unanswered.last = now;
        if self.wants_answer(now) && now.saturating_since(self.probed) >= DOUBT_INTERVAL {
            self.due = now;
        }
        self.trust(now)
    }

    fn trust(&self, now: Instant) -> Trust {
        let is_recent = |doubted| now.saturating_since(doubted) < DOUBTED_FOR;
        if self.doubted.is_some_and(is_recent) {
            return Trust::Lost;
        }
        let streak = self.unanswered.map(|unanswered| unanswered.streak);
        let waited = |since: Option<Instant>| since.map(|since| now.saturating_since(since));
        let (waited, patience) = (waited(streak).max(waited(self.asked)), self.patience());
        match waited {
            Some(waited) if waited >= patience => Trust::Lost,
            Some(waited) if waited >= patience / 2 => Trust::Shaken,
            _ => Trust::Firm,
        }
    }

    /// True if a probe should find out whether the direct way works: something may be overdue.
    fn wants_answer(&self, now: Instant) -> bool {
        let patience = self.patience();
        self.unanswered.is_some_and(|unanswered| {
            now.saturating_since(unanswered.first) >= patience
                || now.saturating_since(unanswered.streak) >= patience / 2
        })
    }

    /// The time within which something is answered.
    fn patience(&self) -> Duration {
        match self.round_trip {
            Some(round_trip) => (round_trip + ANSWER_TIME).clamp(PATIENCE_MIN, PATIENCE_MAX),
            None => PATIENCE_UNKNOWN,
        }
    }

    /// Data came through the relay. Returns true if the peer has left the direct way for good, rather than that it is late or in doubt.
    #[inline]
    pub(super) fn on_relayed(&mut self, now: Instant) -> bool {
        self.seen = now;
        if self.direct.is_none() || now.saturating_since(self.switched) <= LATECOMERS {
            return false;
        }
        // Who probes all the time hears nothing from us. Others only answer our own doubt, which must not feed itself.
        if now.saturating_since(self.asked_by_peer) < ASKED_WITHIN {
            self.doubted = Some(now);
        }
        let (since, last) = &mut self.relayed;
        if now.saturating_since(*last) > RELAYED_PAUSE {
            *since = now;
        }
        *last = now;
        now.saturating_since(self.answered.max(*since)) >= LEFT_AFTER
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
            self.asked_by_peer = now;
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
                // With two under way nobody knows which one was answered.
                if std::mem::take(&mut self.unechoed) == 1 {
                    let sample = now.saturating_since(self.probed);
                    let before = self.round_trip.unwrap_or(sample);
                    self.round_trip = Some((before * 3 + sample) / 4);
                }
                self.hear(now);
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
        self.unechoed = 0;
        self.round_trip = None;
        self.unanswered = None;
        self.asked = None;
        self.doubted = None;
        // At once, to know the round trip.
        self.due = now;
        self.direct
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
/// An answer to what went directly takes a round trip and this time, because programs look at their sockets now and then and acknowledge late. After that much silence, within
/// these limits, data go through the relay as well; after half of it the relay is asked whether the way through it is ready.
const ANSWER_TIME: Duration = Duration::from_millis(100);
const PATIENCE_MIN: Duration = Duration::from_millis(150);
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// The same before the round trip is known.
const PATIENCE_UNKNOWN: Duration = Duration::from_millis(400);
/// The time between probes of a direct way that is in doubt.
const DOUBT_INTERVAL: Duration = Duration::from_millis(250);
/// Datagrams with longer pauses between them need no answer each.
const STREAK_PAUSE: Duration = Duration::from_millis(120);
/// Data that come through the relay say that the peer is in doubt, for this long, if it has sent a probe within this time before.
const DOUBTED_FOR: Duration = Duration::from_millis(500);
const ASKED_WITHIN: Duration = Duration::from_millis(500);
/// A peer that sends through the relay for so long, without a pause of more than that, and not directly, has left the direct way.
const LEFT_AFTER: Duration = Duration::from_secs(4);
const RELAYED_PAUSE: Duration = Duration::from_secs(3);
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
    use std::net::Ipv4Addr;

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
                assert!(
                    guesses
                        .iter()
                        .all(|it| it.ip() == Ipv4Addr::new(192, 0, 2, 1))
                );
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

    #[test]
    fn trust_goes_with_silence_and_comes_back_with_an_answer() {
        let at = Instant::from_millis;
        let mut peer = peer();
        let address = SocketAddr::from(([192, 0, 2, 1], 9));
        peer.on_echo(at(10_000), address);
        peer.switch(at(10_000));
        assert_eq!(peer.step(at(10_000), true), Step::Probe);
        peer.on_echo(at(10_080), address);
        assert_eq!(peer.round_trip, Some(Duration::from_millis(80)));

        // Acknowledgements are not answered.
        for now in [11_000, 13_000, 14_000] {
            assert_eq!(peer.on_sent(at(now)), Trust::Firm);
        }
        peer.hear(at(14_950));
        for (now, trust) in [(15_000, Trust::Firm), (15_089, Trust::Firm)] {
            assert_eq!(peer.on_sent(at(now)), trust);
        }
        assert_eq!(peer.on_sent(at(15_090)), Trust::Shaken);
        assert_eq!(peer.due, at(15_090), "asks at once");
        assert_eq!(peer.on_sent(at(15_180)), Trust::Lost);
        peer.hear(at(15_181));
        assert_eq!(peer.on_sent(at(15_182)), Trust::Firm);

        assert!(!peer.on_relayed(at(15_185)), "it answers our doubt");
        assert_eq!(peer.on_sent(at(15_186)), Trust::Firm);
        peer.on_probe(at(15_187), address);
        assert!(!peer.on_relayed(at(15_188)), "it is in doubt itself");
        assert_eq!(peer.on_sent(at(15_190)), Trust::Lost);
        peer.hear(at(15_191));
        assert_eq!(peer.on_sent(at(15_700)), Trust::Firm, "it was a moment");
        for relayed in (16_000..19_190).step_by(100) {
            assert!(!peer.on_relayed(at(relayed)), "{relayed}");
        }
        assert!(peer.on_relayed(at(20_000)), "it has left");
    }
}
