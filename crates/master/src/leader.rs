//! Leading a queue: wins the lease, takes over what is stored, runs the [`Director`], and says what is to be stored, started and sent.
//!
//! The leader decides; a shell does. The program's shell is `leading.rs`, with the real store, fleet, bus and clock; the laboratory's simulator of
//! the whole system and `tests/week` run this same machine with simulated ones.

mod requests;

use std::collections::VecDeque;
use std::mem;

use muse_master_client::messages::{Outcome, ServerMessage, ToServer, encode};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::bus::Note;
use crate::director::{Action, Director, DirectorConfig, Ending, NoServer, StoredMatch};
use crate::lease::{Lease, RENEW_EVERY};
use crate::matching::QueueRules;
use crate::store::{Fill, StoreError, StoredReport};
use crate::ticket::Ticket;
pub use requests::{Looked, Reply, Request, StoreRequest, Transaction};

/// One attempt to lead a queue: from asking for the lease to losing it.
///
/// Call `handle_*` as things happen and [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout). After each of these, do all
/// that [`poll_request`](Self::poll_request) returns, and look whether it has [`ended`](Self::ended); then make another one
/// [`again_after`](Self::again_after) a while. `now` comes from a clock that nobody sets and that showed the time of day when the leader was made.
///
/// ```
/// use muse_master::director::DirectorConfig;
/// use muse_master::leader::{Leader, Request};
/// use muse_master::store::MemoryStore;
/// use muse_wire::Instant;
/// let (mut leader, mut store) = (Leader::new(DirectorConfig::default(), 1), MemoryStore::default());
/// let now = Instant::ZERO;
/// while let Some(request) = leader.poll_request(now, now) {
///     if let Request::Store(request) = request
///         && let Some(reply) = store.handle_request(now, request)
///     {
///         leader.handle_reply(now, reply);
///     }
/// }
/// assert!(leader.is_leading());
/// ```
#[derive(Debug)]
pub struct Leader {
    config: DirectorConfig,
    holder: u64,
    is_shared: bool,
    is_draining: bool,
    state: State,
    requests: VecDeque<Request>,
}

#[derive(Debug)]
enum State {
    /// The lease is asked for.
    Asking,
    /// The store is being read. Notes that come meanwhile may be about something newer.
    Restoring {
        lease: Lease,
        early: Vec<Note>,
    },
    Leading(Box<Leading>),
    Ended(Ended),
}

/// The reason why a leader leads no longer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ended {
    /// The lease was not granted, or not renewed in time.
    #[error("another master leads")]
    OtherLeads,
    /// The store failed where it matters whether something was written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lease could not be renewed.
    #[error("the lease ran out")]
    LeaseRanOut,
    /// Tickets carry the time of day, so it must not jump.
    #[error("the system's clock was set")]
    ClockSet,
    /// This master drains, and others can lead.
    #[error("this master is closing")]
    Closing,
    /// The bus dropped notes because they were read too slowly.
    #[error("{0} notes were missed")]
    NotesMissed(u64),
}

impl Leader {
    /// Asks for the lease under the name `holder`, which no other term may have, so that its epoch is its own too.
    pub fn new(config: DirectorConfig, holder: u64) -> Self {
        let ask = Request::Store(StoreRequest::Lease { holder });
        Self {
            config,
            holder,
            is_shared: false,
            is_draining: false,
            state: State::Asking,
            requests: VecDeque::from([ask]),
        }
    }

    /// Sets whether other masters use the bus too, false by default. Then notes can be lost, so the store is read again every 5 seconds, and a master that
    /// drains leaves leading to others.
    pub fn shared(mut self, is_shared: bool) -> Self {
        self.is_shared = is_shared;
        self
    }

    /// Changes the rules of named queues.
    pub fn set_queues(&mut self, now: Instant, queues: &QueueRules) {
        self.config = mem::take(&mut self.config).queues(queues.clone());
        if let State::Leading(leading) = &mut self.state {
            leading.director.set_queues(now, queues.clone());
        }
    }

    /// True from the time when everything is restored until the end.
    pub fn is_leading(&self) -> bool {
        matches!(self.state, State::Leading(_))
    }

    /// Returns how many tickets wait.
    pub fn queued(&self) -> usize {
        self.director().map_or(0, Director::queued)
    }

    /// Returns how many matches there are.
    pub fn matches(&self) -> usize {
        self.director().map_or(0, Director::matches)
    }

    /// Returns why it leads no longer, once that is so. Its last requests are still to be done.
    pub fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Returns how long to wait before the next attempt. A master that closes leaves leading to the others, and comes back to it only if nobody else does it.
    pub fn again_after(&self) -> Duration {
        match self.leaves_leading() {
            true => CLOSING_WAITS,
            false => RENEW_EVERY,
        }
    }

    /// Makes no match from now on, or makes them again; running ones finish.
    pub fn drain(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
        let leaves = self.leaves_leading();
        if let State::Leading(leading) = &mut self.state {
            leading.director.drain(is_draining);
            if leaves && !leading.stays {
                self.end(Ended::Closing);
            }
        }
    }

    /// Sets how many more matches the fleet has room for. Unlimited until this is called.
    pub fn handle_room(&mut self, matches: usize) {
        if let State::Leading(leading) = &mut self.state {
            leading.director.handle_room(matches);
        }
    }

    /// A note came over the bus. `is_online` tells who is connected to this master.
    pub fn handle_note(&mut self, now: Instant, note: Note, is_online: impl Fn(AccountId) -> bool) {
        // A player who only asks over HTTP has a grace period to open their connection.
        let absent = match &note {
            Note::Ticket(ticket) => {
                let party = ticket.party.iter().map(|member| member.account);
                party.filter(|account| !is_online(*account)).collect()
            }
            _ => Vec::new(),
        };
        let notes = std::iter::once(note).chain(absent.into_iter().map(Note::Away));
        match &mut self.state {
            // A new leader reads the store, which has everything from before its lease.
            State::Asking | State::Ended(_) => {}
            State::Restoring { early, .. } if early.len() < EARLY_MAX => early.extend(notes),
            State::Restoring { early, .. } => {
                let missed = early.len() as u64;
                self.end(Ended::NotesMissed(missed));
            }
            State::Leading(leading) => notes.for_each(|note| leading.handle_note(now, note)),
        }
    }

    /// Notes were lost on the way to this leader: the next one reads what is stored.
    pub fn handle_notes_missed(&mut self, count: u64) {
        self.end(Ended::NotesMissed(count));
    }

    /// A request was answered.
    pub fn handle_reply(&mut self, now: Instant, reply: Reply) {
        let handled = match (&mut self.state, reply) {
            (State::Asking, Reply::Lease(Ok(Some(lease)))) => {
                let epoch = lease.epoch;
                tracing::info!(epoch, "leads the queue");
                let early = Vec::new();
                self.state = State::Restoring { lease, early };
                self.store(StoreRequest::Restore { epoch });
                Ok(())
            }
            (State::Asking, Reply::Lease(Ok(None))) => Err(Ended::OtherLeads),
            (State::Asking, Reply::Lease(Err(error))) => Err(error.into()),
            (State::Restoring { .. }, Reply::Restored(Ok((tickets, matches)))) => {
                self.begin(now, tickets, matches);
                Ok(())
            }
            (State::Restoring { .. }, Reply::Restored(Err(error))) => Err(error.into()),
            (State::Leading(leading), reply) => {
                leading.handle_reply(now, reply, &mut self.requests)
            }
            _ => Ok(()),
        };
        if let Err(ended) = handled {
            self.end(ended);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let State::Leading(leading) = &mut self.state {
            leading.handle_timeout(now, self.holder, &mut self.requests);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Leading(leading) => Some(leading.poll_timeout()),
            _ => None,
        }
    }

    /// Returns the next thing to do. A leader whose lease has run out by the time of day, or whose clock was set, ends instead: if it was paused, it
    /// has decided by what it missed.
    pub fn poll_request(&mut self, now: Instant, time_of_day: Instant) -> Option<Request> {
        if let State::Leading(leading) = &self.state {
            let step = (now - time_of_day).max(time_of_day - now);
            if time_of_day >= leading.lease.until {
                self.end(Ended::LeaseRanOut);
            } else if step > CLOCK_STEP_MAX {
                self.end(Ended::ClockSet);
            }
        }
        if self.requests.is_empty()
            && let State::Leading(leading) = &mut self.state
            && let Some(action) = leading.director.poll_action()
        {
            leading.act(action, &mut self.requests);
        }
        self.requests.pop_front()
    }

    fn begin(&mut self, now: Instant, tickets: Vec<Ticket>, matches: Vec<StoredMatch>) {
        let stays = self.leaves_leading();
        let State::Restoring { lease, early } = &mut self.state else {
            return;
        };
        tracing::info!(tickets = tickets.len(), matches = matches.len(), "restored");
        let parties = tickets.iter().flat_map(|ticket| &ticket.party);
        let waiting = parties.map(|member| member.account).collect();
        self.requests
            .push_back(Request::Publish(Note::WhoIsHere(waiting)));
        let mut director = Director::new(self.config.clone(), lease.epoch);
        director.restore(now, tickets, matches);
        director.drain(self.is_draining);
        let due = |timer: Timer| match timer {
            Timer::Look if !self.is_shared => Instant::FAR_FUTURE,
            _ => now,
        };
        let mut leading = Leading {
            lease: lease.clone(),
            director,
            timers: Timer::ALL.map(due),
            retries: VecDeque::new(),
            reported: None,
            looking: None,
            renewing: None,
            stays,
        };
        for note in mem::take(early) {
            leading.handle_note(now, note);
        }
        self.state = State::Leading(Box::new(leading));
    }

    /// Ends the term. Decisions that were not yet begun are left to the next leader.
    fn end(&mut self, ended: Ended) {
        match self.state {
            State::Ended(_) => return,
            State::Asking => {
                self.requests.clear();
                if ended != Ended::OtherLeads {
                    tracing::error!(reason = %ended, "cannot ask for the lease");
                }
            }
            State::Restoring { .. } | State::Leading(_) => {
                self.requests.clear();
                tracing::warn!(reason = %ended, "leads no longer");
                // The next master that asks need not wait for the lease to run out.
                let holder = self.holder;
                self.store(StoreRequest::ReleaseLease { holder });
            }
        }
        self.state = State::Ended(ended);
    }

    fn store(&mut self, request: StoreRequest) {
        self.requests.push_back(Request::Store(request));
    }

    fn director(&self) -> Option<&Director> {
        match &self.state {
            State::Leading(leading) => Some(&leading.director),
            _ => None,
        }
    }

    /// True if this master closes while others may go on.
    fn leaves_leading(&self) -> bool {
        self.is_shared && self.is_draining
    }
}

/// The time between restoring and the end.
#[derive(Debug)]
struct Leading {
    lease: Lease,
    director: Director,
    /// The time when each [`Timer`] is due.
    timers: [Instant; Timer::ALL.len()],
    /// Transactions that failed, and when they are tried again, in that order. Each is the end of something that the director began once, so there are not more
    /// of them than matches, seats and tickets.
    retries: VecDeque<(Instant, Transaction)>,
    /// The time of each match's last report in the store; none before the first look.
    reported: Option<FxHashMap<MatchId, Instant>>,
    /// The time since when a look is not answered.
    looking: Option<Instant>,
    /// The time since when a renewal of the lease is not answered.
    renewing: Option<Instant>,
    /// It began while its master was closing, because nobody else led.
    stays: bool,
}

/// Something that is done again and again.
#[derive(Clone, Copy, Debug)]
enum Timer {
    Renew,
    Look,
    ListServers,
}

impl Timer {
    const ALL: [Self; 3] = [Self::Renew, Self::Look, Self::ListServers];

    const fn every(self) -> Duration {
        match self {
            Self::Renew => RENEW_EVERY,
            Self::Look | Self::ListServers => LOOK_EVERY,
        }
    }
}

impl Leading {
    fn handle_timeout(&mut self, now: Instant, holder: u64, requests: &mut VecDeque<Request>) {
        self.look_before_giving_up(now);
        for timer in Timer::ALL {
            let due = &mut self.timers[timer as usize];
            if *due > now {
                continue;
            }
            *due = now + timer.every();
            let epoch = self.lease.epoch;
            requests.push_back(match timer {
                Timer::Renew => {
                    self.renewing.get_or_insert(now);
                    Request::Store(StoreRequest::Lease { holder })
                }
                Timer::Look => {
                    self.looking.get_or_insert(now);
                    Request::Store(StoreRequest::Look { epoch })
                }
                Timer::ListServers => Request::ListServers,
            });
        }
        while self.retries.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, transaction)) = self.retries.pop_front()
        {
            requests.push_back(self.commit(transaction));
        }
        if self.director.poll_timeout().is_some_and(|at| at <= now) {
            self.director.handle_timeout(now);
        }
    }

    /// Servers of other masters may be heard by the store alone, if the bus is lost: it is read again before one of them counts as silent, and nobody is silent
    /// while it does not answer. The same holds while nothing can be written there: a server that looks for another master finds none that could register it.
    fn look_before_giving_up(&mut self, now: Instant) {
        let is_shared = self.timers[Timer::Look as usize] < Instant::FAR_FUTURE;
        let is_late = |since: Option<Instant>| since.is_some_and(|since| since + STORE_LATE <= now);
        if is_late(self.looking) || is_late(self.renewing) {
            self.director.handle_deaf(now);
        } else if self.looking.is_none() && is_shared && self.director.is_giving_up(now) {
            self.timers[Timer::Look as usize] = now;
        }
    }

    fn poll_timeout(&self) -> Instant {
        let retry = self.retries.front().map(|(at, _)| *at);
        let due = [retry, self.director.poll_timeout()].into_iter().flatten();
        due.chain(self.timers).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn handle_note(&mut self, now: Instant, note: Note) {
        match note {
            Note::Ticket(ticket) => self.director.handle_ticket(now, ticket),
            Note::TicketGone(ticket) => self.director.handle_ticket_gone(ticket),
            Note::Back(account) => self.director.handle_back(account),
            Note::Away(account) => self.director.handle_away(now, account),
            Note::SeatLeft(match_id, account) => self.director.handle_seat_left(match_id, account),
            Note::Report(server, report) => self.director.handle_report(now, server, &report),
            Note::Result(server, result) => self.director.handle_result(now, server, result),
            Note::ResultRefused(server, match_id) => {
                self.director.handle_result_refused(now, server, match_id);
            }
            Note::ServerGone(server) => self.director.handle_server_gone(now, server),
            _ => {}
        }
    }

    fn handle_reply(
        &mut self,
        now: Instant,
        reply: Reply,
        requests: &mut VecDeque<Request>,
    ) -> Result<(), Ended> {
        match reply {
            Reply::Created(match_id, created) if created.gone.is_empty() => {
                requests.push_back(journal(match_id, "made and stored"));
                self.director.handle_created(now, match_id);
            }
            Reply::Created(match_id, created) => {
                self.director.handle_refused(now, match_id, &created.gone);
            }
            Reply::Filled(filled, Fill::Filled) => {
                self.director.handle_filled(filled.match_id, &filled.ticket);
            }
            Reply::Filled(filled, fill) => {
                self.director
                    .handle_not_filled(filled, fill == Fill::TicketGone);
            }
            Reply::Placed(match_id, Ok(server)) => {
                requests.push_back(journal(match_id, format!("placed on server {server}")));
                self.director.handle_placed(now, match_id, server);
            }
            Reply::Placed(match_id, Err(why)) => {
                let text = match why {
                    NoServer::Full => "all servers are busy: its players wait on",
                    NoServer::Failed => "no server to be had",
                };
                requests.push_back(journal(match_id, text));
                self.director.handle_not_placed(now, match_id, why);
            }
            Reply::Ended(match_id, requeued) => {
                let requeued = requeued.unwrap_or_default();
                self.director.handle_ended(now, match_id, requeued);
            }
            Reply::NotStored(transaction, error) => {
                return self.handle_not_stored(now, transaction, error);
            }
            Reply::Lease(Ok(Some(lease))) if lease.epoch == self.lease.epoch => {
                if let Some(asked) = self.renewing.take() {
                    self.director.handle_led(asked);
                }
                self.lease = lease;
            }
            Reply::Lease(Ok(_)) => return Err(Ended::OtherLeads),
            Reply::Lease(Err(error)) => {
                tracing::warn!(%error, "the lease is not renewed");
                self.renewing = None;
                self.director.handle_deaf(now);
            }
            Reply::Looked(Ok(looked)) => {
                self.looking = None;
                self.handle_looked(now, looked);
            }
            Reply::Looked(Err(error)) => {
                tracing::warn!(%error, "the store is not read again");
                self.looking = None;
                self.director.handle_deaf(now);
            }
            Reply::Servers(servers) => self.director.handle_fleet(now, &servers),
            Reply::Stored | Reply::Restored(_) => {}
        }
        Ok(())
    }

    fn handle_not_stored(
        &mut self,
        now: Instant,
        transaction: Transaction,
        error: StoreError,
    ) -> Result<(), Ended> {
        tracing::error!(%error, "not stored");
        match transaction {
            // It may be stored nevertheless, if only the answer was lost: the next leader reads it.
            Transaction::CreateMatch(_) | Transaction::FillSeats(_) => Err(error.into()),
            _ if error == StoreError::OldEpoch => Err(error.into()),
            // It would be refused again and again: the match ends without it.
            Transaction::EndMatch(ending) if matches!(error, StoreError::Forbidden(_)) => {
                let aborted = Ending {
                    outcome: Outcome::Aborted,
                    result: None,
                    ..ending
                };
                let aborted = Transaction::EndMatch(aborted);
                self.retries.push_back((now + RETRY_AFTER, aborted));
                Ok(())
            }
            // It must be stored, and storing it twice makes no difference.
            transaction => {
                self.retries.push_back((now + RETRY_AFTER, transaction));
                Ok(())
            }
        }
    }

    fn handle_looked(&mut self, now: Instant, looked: Looked) {
        let new = self.director.handle_tickets(now, looked.tickets);
        if new > 0 {
            tracing::info!(new, "tickets found in the store");
        }
        self.handle_reports(now, looked.reports);
        for account in looked.here {
            self.director.handle_back(account);
        }
    }

    /// Game servers said this to other masters. A report counts if it is newer than at the last look: the first look may find one of a server that
    /// is gone.
    fn handle_reports(&mut self, now: Instant, stored: Vec<StoredReport>) {
        let before = self.reported.take();
        let mut reported = FxHashMap::default();
        for found in stored {
            reported.insert(found.match_id, found.at);
            let known = before
                .as_ref()
                .map(|before| before.get(&found.match_id).copied());
            if known.is_some_and(|known| known != Some(found.at)) {
                self.director
                    .handle_report(now, found.server, &found.report);
            }
            if let Some(result) = found.result {
                self.director.handle_result(now, found.server, result);
            }
        }
        self.reported = Some(reported);
    }

    /// Turns what the director wants into at least one request.
    fn act(&self, action: Action, requests: &mut VecDeque<Request>) {
        match action {
            Action::CreateMatch(new) => {
                requests.push_back(self.commit(Transaction::CreateMatch(new)));
            }
            Action::FillSeats(filled) => {
                requests.push_back(self.commit(Transaction::FillSeats(filled)));
            }
            Action::Place(placement) => requests.push_back(Request::Allocate(placement)),
            Action::RecordServer { match_id, server } => {
                requests.push_back(self.commit(Transaction::RecordServer(match_id, server)));
            }
            Action::RecordRunning { match_id } => {
                requests.push_back(journal(match_id, "has begun"));
                requests.push_back(self.commit(Transaction::RecordRunning(match_id)));
            }
            Action::Admit {
                match_id,
                server,
                players,
                backfill,
            } => {
                let names: Vec<String> = players.iter().map(AccountId::to_string).collect();
                let text = format!("{} told where to go", names.join(", "));
                requests.push_back(journal(match_id, text));
                for &account in players.iter().filter(|_| backfill) {
                    requests.push_back(tell_server(server, ToServer::Admit { account }));
                }
                requests.push_back(Request::Admit {
                    match_id,
                    server,
                    players,
                });
            }
            Action::FreeSeat { match_id, account } => {
                requests.push_back(journal(match_id, format!("{account} gave up their seat")));
                requests.push_back(self.commit(Transaction::FreeSeat(match_id, account)));
            }
            Action::EndMatch(ending) => {
                let (match_id, outcome) = (ending.match_id, ending.outcome);
                tracing::info!(%match_id, ?outcome, "match over");
                requests.push_back(journal(match_id, format!("over: {outcome:?}")));
                requests.push_back(self.commit(Transaction::EndMatch(ending)));
            }
            Action::EndTicket(ticket) => {
                requests.push_back(self.commit(Transaction::EndTicket(ticket)));
            }
            Action::ReleaseServer(server) => requests.push_back(Request::Release(server)),
            Action::ConfirmResult { server, match_id } => {
                requests.push_back(tell_server(server, ToServer::ResultStored { match_id }));
            }
            Action::RefuseResult {
                server,
                match_id,
                refusal,
            } => {
                requests.push_back(journal(
                    match_id,
                    format!("its result is refused: {refusal}"),
                ));
                let message = ServerMessage::Result;
                let refused = ToServer::Refused { message, refusal };
                requests.push_back(tell_server(server, refused));
            }
            Action::Tell(account, message) => {
                let tell = Note::Tell(account, encode(&message));
                requests.push_back(Request::Publish(tell));
            }
        }
    }

    fn commit(&self, transaction: Transaction) -> Request {
        let epoch = self.lease.epoch;
        Request::Store(StoreRequest::Commit { epoch, transaction })
    }
}

fn journal(match_id: MatchId, text: impl Into<String>) -> Request {
    Request::Journal(match_id, text.into())
}

fn tell_server(server: ServerId, message: ToServer) -> Request {
    Request::Publish(Note::ToServer(server, message))
}

/// Time between two looks of a leader at its fleet, and into the store if its bus may lose something.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Time after which a look or a renewal that is not answered means that the store is away.
const STORE_LATE: Duration = Duration::from_secs(2);
/// Time for which a master that closes leaves leading to others; longer than a lease.
const CLOSING_WAITS: Duration = Duration::from_secs(10);
/// The most by which the time of day may stray from the leader's own clock; small corrections are tolerated.
const CLOCK_STEP_MAX: Duration = Duration::from_secs(2);
/// Time before a transaction that must be written is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Notes that are kept while what is stored is being read.
const EARLY_MAX: usize = 16_384;

#[cfg(test)]
mod tests;
