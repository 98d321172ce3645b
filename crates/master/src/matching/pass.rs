//! One pass over a queue.

use std::collections::BTreeSet;

use muse_master_client::{AccountId, MatchId, Preferences, TicketId};
use muse_wire::Instant;

use super::lanes::{Place, Signature};
use super::{Entry, Queue};
use crate::ticket::{Backfill, Ticket};

/// The decisions of a pass. The tickets that it names are out of the queue.
#[derive(Debug, Default)]
pub struct Passed {
    /// Matches to create.
    pub groups: Vec<Group>,
    /// Seats of running matches that are filled.
    pub filled: Vec<Filled>,
    /// Tickets that ended because a player of theirs stayed away.
    pub ended: Vec<Ticket>,
    /// Players to whom bots are to be offered.
    pub bots_offered: Vec<AccountId>,
}

/// Tickets that play together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Longest waiting first.
    pub tickets: Vec<Ticket>,
    /// Whatever any of them asked for.
    pub preferences: Preferences,
    /// Bots that fill the match.
    pub bots: u8,
}

/// A ticket that goes into a running match.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The match.
    pub match_id: MatchId,
    /// The ticket that goes.
    pub ticket: Ticket,
}

/// A match that is being put together.
#[derive(Clone)]
struct Draft {
    signature: Signature,
    tickets: Vec<TicketId>,
    seats: usize,
    taken: usize,
    regions: u64,
    /// Rating and half-width of the anchor; no width if anything goes.
    rating: f64,
    width: Option<f64>,
}

impl Draft {
    fn free(&self) -> usize {
        self.seats.saturating_sub(self.taken)
    }

    /// True if some of the parties in these lanes have as many players together as there are free seats.
    fn can_be_filled(&self, lanes: &[Lane<'_>], checks: &mut usize) -> bool {
        let free = self.free();
        let mut sums = vec![false; free + 1];
        sums[0] = true;
        for lane in lanes {
            let size = lane.size.max(1);
            let waiting = lane
                .waiting()
                .filter(|place| !self.tickets.contains(&place.1));
            for _ in waiting.take(free / size) {
                if sums[free] || *checks == 0 {
                    return sums[free];
                }
                *checks = checks.saturating_sub(CHECK_COST + free);
                for sum in (size..=free).rev() {
                    sums[sum] |= sums[sum - size];
                }
            }
        }
        sums[free]
    }
}

impl Queue {
    /// Decides who plays together now, in at most so many new matches, and who fills seats of running ones. Its work is bounded; what is left goes on in
    /// the next pass.
    pub fn pass(&mut self, now: Instant, groups_max: usize) -> Passed {
        let mut passed = Passed::default();
        let mut checks = CHECKS_MAX;
        self.pass_into(now, groups_max, &mut checks, &mut passed);
        passed
    }

    /// As [`pass`](Self::pass), with what other queues have left of matches and work.
    pub(super) fn pass_into(
        &mut self,
        now: Instant,
        groups_max: usize,
        checks: &mut usize,
        passed: &mut Passed,
    ) {
        passed.ended.extend(self.end_absent(now));
        self.fill_running(now, passed, checks);
        let mut from = self.resume.take();
        loop {
            let next = match from {
                None => self.lanes.order().first(),
                Some(place) => self.lanes.order().range(after(place)).next(),
            };
            let Some(&place) = next else { break };
            // The next pass begins with who waits longest.
            if passed.groups.len() >= groups_max {
                break;
            }
            if *checks == 0 {
                self.resume = from;
                break;
            }
            from = Some(place);
            if let Some(draft) = self.draft(now, place.1, checks) {
                self.settle(now, draft, passed);
            }
        }
        self.offer_bots(now, passed);
    }

    /// The match around this anchor, as full as it gets.
    fn draft(&self, now: Instant, anchor: TicketId, checks: &mut usize) -> Option<Draft> {
        let entry = self.entries.get(&anchor)?;
        if !entry.away.is_empty() {
            return None;
        }
        let mut draft = self.alone(now, entry);
        self.fill(now, &mut draft, checks);
        if draft.free() > 0 {
            // One who asks for more players than there are, whose party leaves an odd seat, or whom the others contradict, does not keep them
            // from playing.
            let mut settled = self.alone(now, entry);
            settled.signature.players = u8::try_from(settled.seats).ok();
            let lanes = self.fitting_lanes(&settled, None, checks);
            let mut dead_ends = DEAD_ENDS_MAX;
            let full = self.complete(now, settled, lanes, checks, &mut dead_ends);
            return full.or(Some(draft));
        }
        Some(draft)
    }

    /// The match of an anchor whom nobody has joined.
    fn alone(&self, now: Instant, entry: &Entry) -> Draft {
        let signature = entry.signature.clone();
        let party = entry.ticket.party.len();
        let asked = signature.players.map(usize::from);
        let accepted = self.accepted(now - entry.ticket.since);
        Draft {
            seats: asked.unwrap_or(party.max(self.config.players.into())),
            signature,
            tickets: vec![entry.ticket.id],
            taken: party,
            regions: self.allowed_regions(now, entry),
            rating: entry.rating,
            width: accepted.map(|(rating, _)| rating),
        }
    }

    /// Adds the longest waiting compatible tickets until the draft is full or nobody is left.
    fn fill(&self, now: Instant, draft: &mut Draft, checks: &mut usize) {
        let mut lanes = self.fitting_lanes(draft, None, checks);
        while draft.free() > 0
            && *checks > 0
            && let Some(next) = next(&mut lanes, checks)
        {
            if let Some(regions) = self.joins(now, draft, next.0) {
                self.join(draft, &mut lanes, next, regions, checks);
            }
        }
    }

    /// The draft with tickets that make it exactly full, the longest waiting first as far as that goes: who leads into a dead end is left out.
    fn complete(
        &self,
        now: Instant,
        draft: Draft,
        mut lanes: Vec<Lane<'_>>,
        checks: &mut usize,
        dead_ends: &mut usize,
    ) -> Option<Draft> {
        if draft.free() == 0 {
            return Some(draft);
        }
        let mut hope = draft.can_be_filled(&lanes, checks);
        while hope
            && *checks > 0
            && let Some(next) = next(&mut lanes, checks)
        {
            let Some(regions) = self.joins(now, &draft, next.0) else {
                continue;
            };
            let (mut longer, mut rest) = (draft.clone(), lanes.clone());
            self.join(&mut longer, &mut rest, next, regions, checks);
            let full = self.complete(now, longer, rest, checks, dead_ends);
            if full.is_some() {
                return full;
            }
            hope = *dead_ends > 0 && draft.can_be_filled(&lanes, checks);
        }
        *dead_ends = dead_ends.saturating_sub(1);
        None
    }

    /// Takes a ticket of a fitting lane into a draft, and leaves the lanes that fit then.
    fn join<'a>(
        &'a self,
        draft: &mut Draft,
        lanes: &mut Vec<Lane<'a>>,
        (place, signature): (Place, &Signature),
        regions: u64,
        checks: &mut usize,
    ) {
        let wider = draft.signature.merged(signature).expect("the lane fits");
        draft.regions = regions;
        draft.tickets.push(place.1);
        draft.taken += self.entries[&place.1].ticket.party.len();
        let narrowed = wider != draft.signature;
        draft.signature = wider;
        if let Some(players) = draft.signature.players {
            draft.seats = usize::from(players);
        }
        if narrowed {
            // Choices made now may exclude lanes; those made before were checked already.
            *lanes = self.fitting_lanes(draft, Some(place), checks);
        }
        let free = draft.free();
        lanes.retain(|lane| lane.size <= free);
    }

    /// Lanes whose tickets could join, each from after `from` on.
    fn fitting_lanes(
        &self,
        draft: &Draft,
        from: Option<Place>,
        checks: &mut usize,
    ) -> Vec<Lane<'_>> {
        let default = usize::from(self.config.players);
        let mut fitting = Vec::new();
        *checks = checks.saturating_sub(self.lanes.shapes());
        for (signature, size, places) in self.lanes.near(&draft.signature) {
            *checks = checks.saturating_sub(1);
            // A number that the other one asks for decides how many seats there are.
            let players = draft.signature.players.or(signature.players);
            let seats = players.map_or(default.max(draft.seats), usize::from);
            let fits = draft.taken + size <= seats && draft.signature.fits(signature);
            if fits {
                let mut lane = Lane {
                    signature,
                    size,
                    head: None,
                    rest: match from {
                        None => places.range(..),
                        Some(place) => places.range(after(place)),
                    },
                };
                lane.step();
                fitting.push(lane);
            }
        }
        fitting
    }

    /// The regions of the draft with this ticket, none if it may not join.
    fn joins(&self, now: Instant, draft: &Draft, (_, ticket): Place) -> Option<u64> {
        let entry = &self.entries[&ticket];
        if !entry.away.is_empty() || draft.tickets.contains(&ticket) {
            return None;
        }
        let theirs = self.accepted(now - entry.ticket.since);
        if let (Some(mine), Some((theirs, _))) = (draft.width, theirs) {
            // The mean of both: a long wait widens for two, and who has just come is not handed to anyone at once.
            let width = (mine + theirs) / 2.0;
            if (draft.rating - entry.rating).abs() > width {
                return None;
            }
        }
        let regions = draft.regions & self.allowed_regions(now, entry);
        (regions != 0).then_some(regions)
    }

    /// Returns the regions where a ticket may be played by now, as a mask.
    fn allowed_regions(&self, now: Instant, entry: &Entry) -> u64 {
        let within = |most: f64| {
            let near = entry
                .regions
                .iter()
                .filter(|(_, latency)| f64::from(*latency) <= most);
            near.fold(0_u64, |mask, (region, _)| mask | 1 << region)
        };
        // Whoever measured nothing could be anywhere.
        let allowed = match self.config.latency_max_ms {
            Some(most) => within(most.into()),
            None => u64::MAX,
        };
        let Some((_, latency_max)) = self.accepted(now - entry.ticket.since) else {
            return allowed;
        };
        if entry.regions.is_empty() {
            return allowed;
        }
        let mask = within(latency_max) & allowed;
        if mask != 0 || allowed == 0 {
            return mask;
        }
        // Far from everything: the nearest is what there is.
        let nearest = entry.regions.iter().min_by_key(|(_, latency)| *latency);
        nearest.map_or(allowed, |(region, _)| 1 << region)
    }

    /// Takes a full draft out of the queue; one that bots may fill too.
    fn settle(&mut self, now: Instant, draft: Draft, passed: &mut Passed) {
        let missing = draft.free();
        if draft.taken > draft.seats || (missing > 0 && !self.bots_fill(now, &draft)) {
            return;
        }
        let ids = draft.tickets.into_iter();
        let tickets: Vec<Ticket> = ids.filter_map(|id| self.remove(id)).collect();
        let Some((first, others)) = tickets.split_first() else {
            return;
        };
        let size = self.config.size;
        let wanted = |ticket: &Ticket| Preferences {
            players: size.or(ticket.preferences.players),
            ..ticket.preferences.clone()
        };
        let everything = others
            .iter()
            .try_fold(wanted(first), |all, ticket| all.merged(&wanted(ticket)));
        passed.groups.push(Group {
            preferences: everything.expect("lanes that fit merge"),
            tickets,
            bots: u8::try_from(missing).unwrap_or(u8::MAX),
        });
    }

    fn bots_fill(&self, now: Instant, draft: &Draft) -> bool {
        let Some(after) = self.config.bots_after else {
            return false;
        };
        let mut entries = draft.tickets.iter().filter_map(|id| self.entries.get(id));
        let anchor_waited = entries
            .clone()
            .next()
            .is_some_and(|entry| now - entry.ticket.since >= after);
        anchor_waited && entries.all(|entry| entry.ticket.preferences.bots)
    }

    fn fill_running(&mut self, now: Instant, passed: &mut Passed, checks: &mut usize) {
        let keys: Vec<(Instant, MatchId)> = self.backfills.keys().copied().collect();
        for key in keys {
            let Some(mut backfill) = self.backfills.remove(&key) else {
                continue;
            };
            let signature = self.signature(&backfill.preferences);
            let region = self.config.region(backfill.region.as_deref());
            let mut draft = Draft {
                signature,
                tickets: Vec::new(),
                seats: usize::from(backfill.seats),
                taken: 0,
                regions: region.map_or(u64::MAX, |region| 1 << region),
                rating: backfill.rating,
                width: self
                    .accepted(now - backfill.since)
                    .map(|(rating, _)| rating),
            };
            self.fill_seats(now, &mut draft, &backfill, checks);
            for ticket in draft.tickets.drain(..).filter_map(|id| self.remove(id)) {
                backfill.seats = backfill.seats.saturating_sub(ticket.party.len() as u8);
                passed.filled.push(Filled {
                    match_id: backfill.match_id,
                    ticket,
                });
            }
            if backfill.seats > 0 {
                self.backfills.insert(key, backfill);
            }
        }
    }

    /// Like [`fill`](Self::fill) for a match that runs: its preferences are settled, so that a ticket must agree with them alone.
    fn fill_seats(&self, now: Instant, draft: &mut Draft, seats: &Backfill, checks: &mut usize) {
        let players = seats.preferences.players;
        let mut candidates: BTreeSet<(Place, usize)> = BTreeSet::new();
        for (signature, size, places) in self.lanes.near(&draft.signature) {
            *checks = checks.saturating_sub(1);
            let number = signature.players.is_none() || signature.players == players;
            if number && size <= draft.free() && draft.signature.covers(signature) {
                let free = places.iter().take(BACKFILL_LOOKED_AT);
                candidates.extend(free.map(|place| (*place, size)));
            }
        }
        for (place, size) in candidates {
            if *checks == 0 || draft.free() == 0 {
                break;
            }
            *checks = checks.saturating_sub(CHECK_COST);
            let party = &self.entries[&place.1].ticket.party;
            let has_left = party
                .iter()
                .any(|member| seats.without.contains(&member.account));
            if !has_left && size <= draft.free() && self.joins(now, draft, place).is_some() {
                draft.tickets.push(place.1);
                draft.taken += size;
            }
        }
    }

    fn end_absent(&mut self, now: Instant) -> Vec<Ticket> {
        let gone = |entry: &&Entry| entry.away.iter().any(|(_, until)| *until <= now);
        let mut ended: Vec<TicketId> = self
            .entries
            .values()
            .filter(gone)
            .map(|entry| entry.ticket.id)
            .collect();
        ended.sort_unstable();
        ended.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn offer_bots(&mut self, now: Instant, passed: &mut Passed) {
        let Some(after) = self.config.bots_after else {
            return;
        };
        for (since, id) in self.lanes.order() {
            if now - *since < after {
                break;
            }
            if let Some(entry) = self.entries.get_mut(id)
                && !entry.bots_offered
            {
                entry.bots_offered = true;
                let leader = entry.ticket.party.first().map(|member| member.account);
                passed
                    .bots_offered
                    .extend(leader.filter(|_| !entry.ticket.preferences.bots));
            }
        }
    }
}

/// The oldest head of these lanes, and what its lane asks for.
fn next<'a>(lanes: &mut [Lane<'a>], checks: &mut usize) -> Option<(Place, &'a Signature)> {
    let heads = lanes.iter().enumerate();
    let oldest = heads.filter_map(|(index, lane)| lane.head.map(|head| (head, index)));
    let (place, index) = oldest.min()?;
    *checks = checks.saturating_sub(CHECK_COST + lanes.len());
    lanes[index].step();
    Some((place, lanes[index].signature))
}

/// A lane that is being walked.
#[derive(Clone)]
struct Lane<'a> {
    signature: &'a Signature,
    size: usize,
    head: Option<Place>,
    rest: std::collections::btree_set::Range<'a, Place>,
}

impl Lane<'_> {
    /// Everybody who has not been looked at.
    fn waiting(&self) -> impl Iterator<Item = Place> {
        self.head.into_iter().chain(self.rest.clone().copied())
    }

    fn step(&mut self) {
        self.head = self.rest.next().copied();
    }
}

fn after(place: Place) -> (std::ops::Bound<Place>, std::ops::Bound<Place>) {
    (std::ops::Bound::Excluded(place), std::ops::Bound::Unbounded)
}

/// Most work of one pass: looking at a lane costs 1, comparing with a ticket [`CHECK_COST`].
pub(super) const CHECKS_MAX: usize = 3_000_000;
const CHECK_COST: usize = 8;
/// Dead ends after which the search for a full match is given up. In a queue where nobody contradicts anybody, none is met.
const DEAD_ENDS_MAX: usize = 100;
/// Tickets of one lane that are looked at for the seats of one running match.
const BACKFILL_LOOKED_AT: usize = 256;
