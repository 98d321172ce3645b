//! One match, from its row in the store to its result.

use std::mem;

use muse_master_client::messages::{
    FromMaster, MatchResult, Outcome, Phase, Report, ServerRefusal,
};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

use super::{Action, Director, Ending, NewMatch, NoServer, Placement, StoredMatch};
use crate::hosts::Seats;
use crate::matching::Filled;
use crate::ticket::{Backfill, Ticket};

/// A match as the director knows it.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) stage: Stage,
    pub(super) players: Vec<AccountId>,
    /// Players who gave up their seats. A result may name them.
    left: Vec<AccountId>,
    pub(super) server: Option<ServerId>,
    preferences: Preferences,
    bots: u8,
    /// To give back to the queue if it is called off.
    tickets: Vec<Ticket>,
    present: Vec<AccountId>,
    /// Players on their way into open seats whose transaction is not yet answered.
    filling: usize,
    rating: f64,
    /// True if its players know of it: a match that only tries whether there is room is told when it has a server.
    told: bool,
    /// The time when its server was last heard.
    pub(super) heard: Instant,
    /// The time by which the stage must be over.
    until: Instant,
}

/// A stage of a match's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Being stored.
    Creating,
    /// Waits for a server, which is asked for again at this time; none while it is being asked for.
    Placing {
        refused: bool,
        again: Option<Instant>,
    },
    /// Has a server, which has not yet said that it hosts the match.
    Starting,
    /// Its players connect.
    Connecting,
    /// Its players load.
    Loading,
    /// It is played.
    Running,
    /// Its end is being stored.
    Ending(Outcome),
}

impl Match {
    pub(super) fn new(now: Instant, new: &NewMatch) -> Self {
        let ratings = new.tickets.iter().map(Ticket::rating);
        Self {
            stage: Stage::Creating,
            players: new.players().collect(),
            left: Vec::new(),
            server: None,
            preferences: new.preferences.clone(),
            bots: new.bots,
            rating: ratings.sum::<f64>() / new.tickets.len().max(1) as f64,
            tickets: new.tickets.clone(),
            present: Vec::new(),
            filling: 0,
            told: false,
            heard: now,
            until: Instant::FAR_FUTURE,
        }
    }

    /// Notes that this leader was paused: the server counts as just heard.
    pub(super) fn forgive(&mut self, now: Instant, gap: Duration) {
        self.heard = now;
        // The far future stays what it is, because times saturate.
        self.until += gap;
    }

    /// True until it has a server: then the fleet counts it.
    pub(super) fn is_placed_next(&self) -> bool {
        matches!(self.stage, Stage::Creating | Stage::Placing { .. })
    }

    fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Running)
    }

    fn seats(&self) -> Seats<'_> {
        Seats {
            players: &self.players,
            left: &self.left,
        }
    }

    /// Tickets of which everybody was there, or all of them if no server ever asked for them.
    fn requeued(&mut self, counts: bool) -> Vec<Ticket> {
        let asked = matches!(self.stage, Stage::Connecting | Stage::Loading);
        let mut tickets = mem::take(&mut self.tickets);
        tickets.retain(|ticket| {
            let mut party = ticket.party.iter();
            !asked || party.all(|member| self.present.contains(&member.account))
        });
        for ticket in &mut tickets {
            ticket.attempts += u8::from(counts);
        }
        tickets.retain(|ticket| ticket.attempts < ATTEMPTS_MAX);
        tickets
    }
}

impl Director {
    /// The match is stored; now it needs a server.
    pub fn handle_created(&mut self, now: Instant, match_id: MatchId) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        if found.stage == Stage::Creating {
            if !self.room.is_tight() {
                self.tell_found(match_id);
            }
            self.begin_placing(now, match_id);
        }
    }

    fn tell_found(&mut self, match_id: MatchId) {
        let found = self.matches.get_mut(&match_id);
        let Some(found) = found.filter(|found| !found.told) else {
            return;
        };
        found.told = true;
        for account in found.players.clone() {
            self.tell(account, FromMaster::MatchFound { match_id });
        }
    }

    /// The match could not be stored: these tickets are gone, the others wait on.
    pub fn handle_refused(&mut self, now: Instant, match_id: MatchId, gone: &[TicketId]) {
        let Some(found) = self.matches.remove(&match_id) else {
            return;
        };
        let left = found.tickets.into_iter();
        for ticket in left.filter(|ticket| !gone.contains(&ticket.id)) {
            self.queue.insert(ticket);
        }
        self.next_pass = self.next_pass.max(now + self.config.times.pass_every);
    }

    /// The match has a server. One that has a match already keeps that one: its master did not know that it got it at another one.
    pub fn handle_placed(&mut self, now: Instant, match_id: MatchId, server: ServerId) {
        let other = self.by_server.get(&server);
        if other.is_some_and(|&other| other != match_id) {
            return self.handle_not_placed(now, match_id, NoServer::Failed);
        }
        let until = now + self.config.times.connect;
        match self.matches.get_mut(&match_id) {
            Some(found) if matches!(found.stage, Stage::Placing { .. }) => {
                found.stage = Stage::Starting;
                found.server = Some(server);
                (found.heard, found.until) = (now, until);
                self.by_server.insert(server, match_id);
                self.actions
                    .push_back(Action::RecordServer { match_id, server });
                self.timers.insert((until, match_id));
                self.room.handle_placed();
                self.tell_found(match_id);
            }
            // The match ended meanwhile, or another server claimed it.
            Some(found) if found.server == Some(server) => {}
            _ => self.stray(now, Action::ReleaseServer(server)),
        }
    }

    /// There is no server to be had. If servers fail, one is asked for again soon; if all are busy, the players wait on as tickets, with their place and their
    /// waiting time.
    pub fn handle_not_placed(&mut self, now: Instant, match_id: MatchId, why: NoServer) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        if !matches!(found.stage, Stage::Placing { .. }) {
            return;
        }
        let mut again = now + PLACE_AGAIN;
        if why == NoServer::Full {
            again = self.room.handle_full(now);
            if !found.tickets.is_empty() {
                let requeue = found.requeued(false);
                return self.end_with(now, match_id, Outcome::Cancelled, None, requeue);
            }
            // An earlier leader made it, and nobody knows its tickets any more: it waits as a match.
            found.until = again + self.config.times.place;
        }
        found.stage = Stage::Placing {
            refused: true,
            again: Some(again),
        };
        self.timers.insert((again, match_id));
    }

    /// A ticket is stored as seats of a running match.
    pub fn handle_filled(&mut self, match_id: MatchId, ticket: &Ticket) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        let players: Vec<AccountId> = ticket.party.iter().map(|member| member.account).collect();
        found.players.extend(&players);
        found.filling = found.filling.saturating_sub(players.len());
        if let Some(server) = found.server {
            self.actions.push_back(Action::Admit {
                match_id,
                server,
                players,
                backfill: true,
            });
        }
    }

    pub(super) fn fill(&mut self, filled: Filled) {
        if let Some(found) = self.matches.get_mut(&filled.match_id) {
            found.filling += filled.ticket.party.len();
        }
        self.actions.push_back(Action::FillSeats(filled));
    }

    /// It could not be: the match is over or the ticket is gone.
    pub fn handle_not_filled(&mut self, filled: Filled, ticket_is_gone: bool) {
        if let Some(found) = self.matches.get_mut(&filled.match_id) {
            found.filling = found.filling.saturating_sub(filled.ticket.party.len());
        }
        if !ticket_is_gone {
            self.queue.insert(filled.ticket);
        }
    }

    /// A player gave up their seat.
    pub fn handle_seat_left(&mut self, match_id: MatchId, account: AccountId) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        let before = found.players.len();
        found.players.retain(|player| *player != account);
        if found.players.len() == before {
            return;
        }
        if !found.left.contains(&account) {
            found.left.push(account);
        }
        if !matches!(found.stage, Stage::Ending(_)) {
            self.actions
                .push_back(Action::FreeSeat { match_id, account });
        }
    }

    /// A game server reports the end of its match. Again and late is harmless: only the first counts. A result of another server's match, or one
    /// that names somebody twice or without a seat, is refused for good; the latter is the end of the match, of which nothing counts.
    pub fn handle_result(&mut self, now: Instant, server: ServerId, result: MatchResult) {
        let match_id = result.match_id;
        self.claim(now, match_id, server);
        let Some(found) = self.matches.get(&match_id) else {
            return self.stray(now, Action::ConfirmResult { server, match_id });
        };
        let refusal = match found.server == Some(server) {
            false => Err(ServerRefusal::OtherMatch { match_id }),
            true if matches!(found.stage, Stage::Ending(_)) => return,
            true => found.seats().check_result(match_id, &result),
        };
        match refusal {
            Ok(()) => self.end(now, match_id, result.outcome, Some(result)),
            Err(refusal) => {
                self.handle_result_refused(now, server, match_id);
                self.actions.push_back(Action::RefuseResult {
                    server,
                    match_id,
                    refusal,
                });
            }
        }
    }

    /// A result was refused: if the match is this server's, it is over and nothing of it counts.
    pub fn handle_result_refused(&mut self, now: Instant, server: ServerId, match_id: MatchId) {
        if self.by_server.get(&server) == Some(&match_id) {
            self.end(now, match_id, Outcome::Aborted, None);
        }
    }

    /// Gives a match that waits for a server to the one that speaks of it, because the last leader died before it wrote that down. Masters pass on only
    /// what a server says of the match that was assigned to it.
    fn claim(&mut self, now: Instant, match_id: MatchId, server: ServerId) {
        let found = self.matches.get(&match_id);
        let waits =
            |found: &Match| found.server.is_none() && matches!(found.stage, Stage::Placing { .. });
        if found.is_some_and(waits) {
            self.handle_placed(now, match_id, server);
        }
    }

    /// The end of the match is stored.
    pub fn handle_ended(&mut self, now: Instant, match_id: MatchId, requeued: Vec<Ticket>) {
        let Some(found) = self.matches.remove(&match_id) else {
            return;
        };
        let Stage::Ending(outcome) = found.stage else {
            self.matches.insert(match_id, found);
            return;
        };
        for account in found.players.iter().filter(|_| found.told) {
            self.tell(*account, FromMaster::MatchOver { match_id, outcome });
        }
        for ticket in requeued {
            for member in &ticket.party {
                let state = FromMaster::Queue(muse_master_client::messages::QueueState {
                    ticket: ticket.id,
                    waited_ms: (now - ticket.since).as_millis(),
                    preferences: ticket.preferences.clone(),
                });
                self.tell(member.account, state);
            }
            self.handle_ticket(now, ticket);
        }
        if let Some(server) = found.server {
            self.by_server.remove(&server);
            self.actions
                .push_back(Action::ConfirmResult { server, match_id });
            self.actions.push_back(Action::ReleaseServer(server));
            self.ask_soon(now);
        }
    }

    /// Releases a server: matches that wait for room ask again as soon as it may be gone.
    fn ask_soon(&mut self, now: Instant) {
        let soon = self.room.handle_released(now);
        for (&match_id, found) in &mut self.matches {
            if let Stage::Placing {
                again: Some(again), ..
            } = &mut found.stage
                && *again > soon
            {
                *again = soon;
                self.timers.insert((soon, match_id));
            }
        }
    }

    /// A game server's process ended, or the fleet lost it.
    pub fn handle_server_gone(&mut self, now: Instant, server: ServerId) {
        if let Some(&match_id) = self.by_server.get(&server) {
            self.end(now, match_id, Outcome::Aborted, None);
        }
    }

    /// Everything that the fleet has: what belongs to no match is ended.
    pub fn handle_fleet(&mut self, now: Instant, servers: &[(ServerId, MatchId)]) {
        for &(server, match_id) in servers {
            let known = self.matches.get(&match_id).map(|found| found.server);
            // Still to be placed: it may be the one that was started just before the last leader died.
            if known.is_none_or(|found| found.is_some_and(|other| other != server)) {
                self.stray(now, Action::ReleaseServer(server));
            }
        }
    }

    pub(super) fn report(&mut self, now: Instant, server: ServerId, report: &Report) {
        let Some(match_id) = report.match_id else {
            return;
        };
        self.claim(now, match_id, server);
        let found = self.matches.get_mut(&match_id);
        let Some(found) = found.filter(|found| found.server == Some(server)) else {
            return self.stray(now, Action::ReleaseServer(server));
        };
        if matches!(found.stage, Stage::Ending(_)) {
            return;
        }
        found.heard = now;
        found.present.clone_from(&report.present);
        let left: Vec<AccountId> = report.left.clone();
        self.advance(now, match_id, server, report.phase);
        for account in left {
            self.handle_seat_left(match_id, account);
        }
        self.backfill(now, match_id, report);
    }

    fn advance(&mut self, now: Instant, match_id: MatchId, server: ServerId, phase: Phase) {
        let limit = self.config.times.connect + MARGIN;
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        let stage = match phase {
            Phase::Ready => return,
            Phase::Connecting => Stage::Connecting,
            Phase::Loading => Stage::Loading,
            Phase::Running => Stage::Running,
        };
        if stage == found.stage || rank(stage) < rank(found.stage) {
            return;
        }
        let admit = found.stage == Stage::Starting;
        found.stage = stage;
        found.until = if stage == Stage::Running {
            Instant::FAR_FUTURE
        } else {
            now + limit
        };
        let due = found.until.min(now + self.config.times.silence);
        let players = found.players.clone();
        self.timers.insert((due, match_id));
        if admit {
            self.actions.push_back(Action::Admit {
                match_id,
                server,
                players,
                backfill: false,
            });
        }
        if stage == Stage::Running {
            self.actions.push_back(Action::RecordRunning { match_id });
        }
    }

    fn backfill(&mut self, now: Instant, match_id: MatchId, report: &Report) {
        let Some(found) = self.matches.get(&match_id) else {
            return;
        };
        if !found.has_begun() {
            return;
        }
        // Seats that are given away but not yet known to the server are not open.
        let promised = found
            .players
            .iter()
            .filter(|player| !report.seated.contains(player));
        let promised = found.filling + promised.count();
        let regions = self.queue.regions(&found.preferences);
        // The region is not asked of the fleet: it is the best one, or one with which all were content.
        self.queue.set_backfill(Backfill {
            match_id,
            seats: report
                .open_seats
                .saturating_sub(u8::try_from(promised).unwrap_or(u8::MAX)),
            preferences: found.preferences.clone(),
            region: regions.into_iter().next(),
            rating: found.rating,
            since: now,
            without: found.left.clone(),
        });
    }

    /// A timer of this match has come: it may be for nothing, because what it waited for has moved.
    pub(super) fn check(&mut self, now: Instant, match_id: MatchId) {
        let silence = self.config.times.silence;
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        match found.stage {
            Stage::Creating | Stage::Ending(_) => {}
            Stage::Placing { .. } if found.until <= now => {
                self.end(now, match_id, Outcome::Cancelled, None);
            }
            Stage::Placing {
                again: Some(again), ..
            } if again <= now => self.place(now, match_id),
            Stage::Placing { again, .. } => {
                let due = again.unwrap_or(found.until);
                self.timers.insert((due, match_id));
            }
            stage => {
                // How far a silent server's match is cannot be known: it may be looking for another master.
                let limit = match found.heard + REPORTS_LATE < found.until {
                    true => Instant::FAR_FUTURE,
                    false => found.until,
                };
                let due = limit.min(found.heard + silence);
                if due > now {
                    self.timers.insert((due, match_id));
                } else if stage == Stage::Running || found.heard + silence <= now {
                    self.end(now, match_id, Outcome::Aborted, None);
                } else {
                    self.end(now, match_id, Outcome::Cancelled, None);
                }
            }
        }
    }

    pub(super) fn restore_match(&mut self, now: Instant, stored: StoredMatch) {
        let match_id = stored.match_id;
        let placed = stored.server.is_some();
        let found = Match {
            stage: match (placed, stored.running) {
                (true, true) => Stage::Running,
                // Its players are told again as soon as the server says that it waits for them.
                (true, false) => Stage::Starting,
                (false, _) => Stage::Creating,
            },
            players: stored.players,
            left: stored.left,
            server: stored.server,
            preferences: stored.preferences,
            bots: stored.bots,
            tickets: Vec::new(),
            present: Vec::new(),
            filling: 0,
            rating: 1_500.0,
            told: true,
            heard: now,
            until: if stored.running {
                Instant::FAR_FUTURE
            } else {
                now + self.config.times.connect
            },
        };
        let due = found.until.min(now + self.config.times.silence);
        self.matches.insert(match_id, found);
        match stored.server {
            Some(server) => {
                self.by_server.insert(server, match_id);
                self.timers.insert((due, match_id));
            }
            None => self.begin_placing(now, match_id),
        }
    }

    fn begin_placing(&mut self, now: Instant, match_id: MatchId) {
        let until = now + self.config.times.place;
        if let Some(found) = self.matches.get_mut(&match_id) {
            found.until = until;
            found.stage = Stage::Placing {
                refused: false,
                again: Some(now),
            };
            self.place(now, match_id);
        }
    }

    fn place(&mut self, now: Instant, match_id: MatchId) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        if let Stage::Placing { again, .. } = &mut found.stage {
            *again = None;
        }
        self.timers.insert((found.until.max(now), match_id));
        self.actions.push_back(Action::Place(Placement {
            match_id,
            regions: self.queue.regions(&found.preferences),
            preferences: found.preferences.clone(),
            players: found.players.clone(),
            bots: found.bots,
        }));
    }

    fn end(
        &mut self,
        now: Instant,
        match_id: MatchId,
        outcome: Outcome,
        result: Option<MatchResult>,
    ) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        if matches!(found.stage, Stage::Ending(_)) {
            return;
        }
        let begun = found.has_begun();
        // A match that had begun cannot be called off any more. That it had begun may be news: a leader that has just taken over hears
        // of it by the result.
        let outcome = match outcome {
            Outcome::Cancelled if begun => Outcome::Aborted,
            other => other,
        };
        let requeue = match begun || outcome == Outcome::Finished {
            true => Vec::new(),
            false => found.requeued(true),
        };
        self.end_with(now, match_id, outcome, result, requeue);
    }

    /// Ends a match with these tickets back in the queue, as far as nobody of them left.
    fn end_with(
        &mut self,
        now: Instant,
        match_id: MatchId,
        outcome: Outcome,
        result: Option<MatchResult>,
        mut requeue: Vec<Ticket>,
    ) {
        let Some(found) = self.matches.get_mut(&match_id) else {
            return;
        };
        requeue.retain(|ticket| {
            ticket
                .party
                .iter()
                .all(|m| found.players.contains(&m.account))
        });
        found.stage = Stage::Ending(outcome);
        found.until = now;
        self.queue.remove_backfill(match_id);
        self.actions.push_back(Action::EndMatch(Ending {
            match_id,
            outcome,
            result: result.filter(|_| outcome == Outcome::Finished),
            requeue,
        }));
    }
}

fn rank(stage: Stage) -> u8 {
    match stage {
        Stage::Creating => 0,
        Stage::Placing { .. } => 1,
        Stage::Starting => 2,
        Stage::Connecting => 3,
        Stage::Loading => 4,
        Stage::Running => 5,
        Stage::Ending(_) => 6,
    }
}

/// Number of times that a ticket comes back from matches that were called off.
const ATTEMPTS_MAX: u8 = 3;
/// A server that could not be had is asked for again after this.
const PLACE_AGAIN: Duration = Duration::from_secs(1);
/// A game server reports each second, and its reports may have to wait for a look into the store. One that was not heard for so long does not say what there is to know.
const REPORTS_LATE: Duration = Duration::from_secs(3);
/// Time by which the master waits longer than the game server for players to connect and to load.
const MARGIN: Duration = Duration::from_secs(2);
