//! The way to the peer: its address, which may change, and the largest datagram that passes.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::{Connection, Shared};
use crate::inbox::{LEVEL_FIRST, Rare};
use crate::timer::Timer;

/// Time between two challenges to a new address.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
/// Challenges before a new address is given up.
const CHALLENGES_MAX: u8 = 5;
/// Size of a full Ethernet frame's payload over IPv6; the first size to try.
pub(super) const ETHERNET: usize = 1_452;
/// The search stops when it is this close.
const PRECISION: usize = 64;
/// Losses of a probe before its size counts as too large.
const PROBE_LOSSES: u8 = 2;
/// Time before a failed search is begun again.
const SEARCH_AGAIN: Duration = Duration::from_secs(600);

/// An address from which an authentic packet came, not proven yet: it gets no more bytes than it sent.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) address: SocketAddr,
    pub(super) challenge: [u8; 8],
    pub(super) received: usize,
    pub(super) sent: usize,
    pub(super) tries: u8,
    pub(super) pending: bool,
    /// The packet being handled answers the challenge.
    answered: bool,
}

impl Connection {
    /// An authentic packet, newer than all before, came from another address.
    pub(super) fn on_other_address(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        from: SocketAddr,
        len: usize,
    ) {
        match &mut self.candidate {
            // The same challenge goes on: the answer to an earlier packet with it counts, too.
            Some(candidate) if candidate.address == from => candidate.received += len,
            _ => {
                log!(debug, connection = ?self.id, %from, "asking another address whether the peer is there");
                // Secret randomness, because the answer to it proves the address.
                let mut challenge = [0; 8];
                shared.entropy.fill(&mut challenge);
                self.candidate = Some(Box::new(Candidate {
                    address: from,
                    challenge,
                    received: len,
                    sent: 0,
                    tries: 0,
                    pending: true,
                    answered: false,
                }));
                self.timers.set(Timer::Path, now + CHALLENGE_INTERVAL);
            }
        }
    }

    /// The peer answered a challenge.
    pub(super) fn on_path_response(&mut self, data: [u8; 8]) {
        if let Some(candidate) = &mut self.candidate {
            candidate.answered |= candidate.challenge == data;
        }
    }

    /// Moves to the new address if the packet just handled came from there with the answer. An answer from elsewhere
    /// proves nothing: someone may have passed the challenge on to the peer, to draw the connection to themselves.
    pub(super) fn adopt_candidate(&mut self, now: Instant, shared: &mut Shared, from: SocketAddr) {
        let proven = |candidate: &mut Box<Candidate>| {
            std::mem::take(&mut candidate.answered) && candidate.address == from
        };
        let Some(candidate) = self.candidate.take_if(proven) else {
            return;
        };
        // Another port alone is a NAT that forgot us: the path is the same, and what is known of it still holds.
        let moved = candidate.address.ip() != self.remote.ip();
        self.remote = candidate.address;
        self.stats.address_changes += 1;
        self.timers.stop(Timer::Path);
        if moved {
            self.controller.reset(now);
            self.mtu.on_black_hole();
        }
        shared
            .inbox
            .rare(self.id, LEVEL_FIRST, Rare::AddressChanged(self.remote));
    }

    pub(super) fn on_path_timeout(&mut self, now: Instant) {
        if !self.state.carries_data() {
            self.repeat_close(now);
            return;
        }
        let Some(candidate) = &mut self.candidate else {
            return;
        };
        if candidate.tries >= CHALLENGES_MAX {
            log!(debug, connection = ?self.id, from = %candidate.address, "the other address did not answer");
            self.candidate = None;
            return;
        }
        candidate.pending = true;
        self.timers.set(Timer::Path, now + CHALLENGE_INTERVAL);
    }
}

/// Path MTU discovery by probing, begun when full packets show that it is worth it.
#[derive(Debug)]
pub(super) struct Mtu {
    floor: usize,
    current: usize,
    /// Smallest size known not to pass, or one above the largest allowed.
    ceiling: usize,
    limit: usize,
    in_flight: bool,
    losses: u8,
    wanted: bool,
    search_from: Instant,
}

impl Mtu {
    pub(super) fn new(floor: usize, limit: usize) -> Self {
        Self {
            floor,
            current: floor,
            ceiling: limit + 1,
            limit,
            in_flight: false,
            losses: 0,
            wanted: false,
            search_from: Instant::ZERO,
        }
    }

    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// A packet was full: a larger size would help.
    pub(super) fn want_larger(&mut self) {
        self.wanted = true;
    }

    /// The size to probe now, if any.
    pub(super) fn probe(&mut self, now: Instant) -> Option<usize> {
        if !self.wanted || self.in_flight || now < self.search_from {
            return None;
        }
        // The search is over; begun again after a long time, since paths change.
        if self.ceiling - self.current <= PRECISION {
            if self.ceiling <= self.limit {
                self.search_from = now + SEARCH_AGAIN;
                self.ceiling = self.limit + 1;
            }
            return None;
        }
        Some(self.next_size())
    }

    /// Larger sizes cannot be sent from here.
    pub(super) fn limit_to(&mut self, size: usize) {
        self.limit = size.max(self.current);
        self.ceiling = self.ceiling.min(self.limit + 1);
    }

    pub(super) fn on_probe_sent(&mut self) {
        self.in_flight = true;
    }

    /// A probe of `size` arrived; `true` when packets may grow.
    pub(super) fn on_probe_acked(&mut self, size: usize) -> bool {
        self.in_flight = false;
        self.losses = 0;
        let grown = size > self.current;
        self.current = self.current.max(size);
        // It may have been taken as lost before, and smaller sizes after it.
        self.ceiling = self.ceiling.max(self.current + 1);
        grown
    }

    pub(super) fn on_probe_lost(&mut self, size: usize) {
        self.in_flight = false;
        self.losses += 1;
        if self.losses >= PROBE_LOSSES {
            self.losses = 0;
            // Between an Ethernet frame and a jumbo frame there is hardly anything to find.
            let ceiling = if size > ETHERNET + PRECISION {
                ETHERNET + PRECISION
            } else {
                size
            };
            self.ceiling = self.ceiling.min(ceiling).max(self.current + 1);
        }
    }

    /// Nothing passes any more: begin again with what surely fits.
    pub(super) fn on_black_hole(&mut self) {
        self.current = self.floor;
        self.ceiling = self.limit + 1;
        self.in_flight = false;
        self.losses = 0;
        self.wanted = false;
    }

    fn next_size(&self) -> usize {
        // First what most paths allow, then the largest of all, and only then what lies between.
        if self.current < ETHERNET && ETHERNET < self.ceiling {
            ETHERNET
        } else if self.ceiling > self.limit {
            self.limit
        } else {
            self.current.midpoint(self.ceiling)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search against a path that passes `path` bytes.
    fn search(limit: usize, path: usize) -> usize {
        let mut mtu = Mtu::new(1_200, limit);
        let now = Instant::from_secs(1);
        mtu.want_larger();
        for _ in 0..40 {
            let Some(size) = mtu.probe(now) else { break };
            assert!(size > mtu.current() && size <= limit);
            mtu.on_probe_sent();
            assert_eq!(mtu.probe(now), None, "one probe at a time");
            if size <= path {
                assert!(mtu.on_probe_acked(size));
            } else {
                mtu.on_probe_lost(size);
            }
        }
        assert_eq!(mtu.probe(now), None, "the search ends");
        mtu.current()
    }

    #[test]
    fn the_search_comes_close_to_what_passes() {
        assert_eq!(search(1_452, 1_452), 1_452);
        assert_eq!(search(8_952, 65_000), 8_952);
        for path in [1_200, 1_280, 1_400, 1_451, 1_452, 1_492] {
            let found = search(8_952, path);
            assert!(found <= path && path - found <= PRECISION, "{path} {found}");
        }
        assert_eq!(
            search(8_952, 4_000),
            1_452,
            "sizes between Ethernet and jumbo frames are not looked for"
        );
    }

    #[test]
    fn a_probe_that_is_only_late_still_counts() {
        let mut mtu = Mtu::new(1_200, 8_952);
        let now = Instant::from_secs(1);
        mtu.want_larger();
        let mut first = None;
        while let Some(size) = mtu.probe(now) {
            first.get_or_insert(size);
            mtu.on_probe_sent();
            mtu.on_probe_lost(size);
        }
        // Seed 4456 of the promises test.
        assert!(mtu.on_probe_acked(8_952));
        assert_eq!((first, mtu.probe(now)), (Some(ETHERNET), None));
        assert_eq!(mtu.current(), 8_952);
    }

    #[test]
    fn nothing_is_probed_without_need() {
        let mut mtu = Mtu::new(1_200, 1_452);
        assert_eq!(mtu.probe(Instant::from_secs(1)), None);
    }
}
