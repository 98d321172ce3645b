//! Leading: keeps the lease, drives the [`Director`], and does what it says.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use muse_master_client::messages::{FromMaster, ToServer, encode};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::bus::Note;
use crate::clock::{self, SteadyClock};
use crate::director::{Action, Director, NoServer, Placement};
use crate::lease::{Lease, RENEW_EVERY};
use crate::matching::Filled;
use crate::shared::Shared;
use crate::store::{Answer, Created, Fill, StoreError, StoredReport};
use crate::ticket::Ticket;

/// Leads whenever it can, until the master ends.
pub(crate) async fn lead(shared: Arc<Shared>) {
    loop {
        // Every term has a holder of its own, so that its epoch is its own too.
        let holder = fresh_holder();
        let queue = || QUEUE.to_owned();
        match shared.store.lease(queue(), holder, clock::now()).await {
            Ok(Some(lease)) => {
                tracing::info!(epoch = lease.epoch, "leads the queue");
                let ended = Term::begin(&shared, holder, lease).await;
                tracing::warn!(reason = %ended, "leads no longer");
                // Whoever asks next need not wait for the lease to run out.
                let _ = shared.store.release_lease(queue(), holder).await;
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "cannot ask for the lease"),
        }
        shared.status.set_leading(false);
        // Who closes leaves it to the others, and comes back to it only if nobody else does it.
        tokio::time::sleep(if shared.leaves_leading() {
            CLOSING_WAITS
        } else {
            RENEW_EVERY.into()
        })
        .await;
    }
}

/// What came of something that was begun.
enum Done {
    Created(MatchId, Result<Created, StoreError>),
    Filled(Filled, Result<Fill, StoreError>),
    Placed(MatchId, Result<ServerId, NoServer>),
    Ended(MatchId, Option<Vec<Ticket>>),
    Lease(Result<Option<Lease>, StoreError>),
    Tickets(Result<Vec<Ticket>, StoreError>),
    Reports(Result<Vec<StoredReport>, StoreError>),
    Here(Result<Vec<AccountId>, StoreError>),
    OldEpoch,
}

/// The time between winning the lease and losing it.
struct Term {
    shared: Arc<Shared>,
    holder: u64,
    lease: Lease,
    /// What the director's time comes from.
    clock: SteadyClock,
    director: Director,
    /// When each match was last reported in the store; none before the first look.
    reported: Option<FxHashMap<MatchId, Instant>>,
    done: mpsc::UnboundedSender<Done>,
}

impl Term {
    async fn begin(shared: &Arc<Shared>, holder: u64, lease: Lease) -> String {
        let mut notes = shared.bus.subscribe();
        let restored = shared.store.restore(lease.epoch).await;
        let (tickets, matches) = match restored {
            Ok(restored) => restored,
            Err(error) => return error.to_string(),
        };
        tracing::info!(tickets = tickets.len(), matches = matches.len(), "restored");
        let (done, mut answers) = mpsc::unbounded_channel();
        let mut term = Self {
            director: Director::new(shared.config.director.clone(), lease.epoch),
            shared: Arc::clone(shared),
            holder,
            lease,
            clock: SteadyClock::new(),
            reported: None,
            done,
        };
        let parties: Vec<_> = tickets
            .iter()
            .flat_map(|ticket| ticket.party.clone())
            .collect();
        let now = term.clock.now();
        term.director.restore(now, tickets, matches);
        let waiting = parties.iter().map(|member| member.account).collect();
        shared.bus.publish(Note::WhoIsHere(waiting));
        shared.status.set_leading(true);
        let mut renew = tokio::time::interval(RENEW_EVERY.into());
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut reconcile = tokio::time::interval(LOOK_EVERY);
        let mut draining = shared.draining.subscribe();
        let stays = shared.leaves_leading();
        loop {
            if shared.leaves_leading() && !stays {
                return "this master is closing".to_owned();
            }
            // Before anything is done: a master that was paused may have decided by what it missed.
            if let Err(reason) = term.still_leads() {
                return reason.to_owned();
            }
            term.director.drain(*draining.borrow_and_update());
            term.director.handle_room(shared.fleet.room());
            term.act();
            let due = term.director.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
            let wait = term.clock.until(due);
            tokio::select! {
                note = notes.recv() => match note {
                    Ok(note) => term.handle_note(note),
                    Err(RecvError::Lagged(missed)) => return format!("{missed} notes were missed"),
                    Err(RecvError::Closed) => return "the bus is closed".to_owned(),
                },
                answer = answers.recv() => if let Some(answer) = answer
                    && let Err(reason) = term.handle_done(answer) {
                    return reason;
                },
                _ = renew.tick() => term.renew(),
                _ = look.tick(), if shared.bus.is_shared() => term.look(),
                _ = reconcile.tick() => term.director.handle_fleet(&shared.fleet.hosts()),
                _ = draining.changed() => {}
                () = tokio::time::sleep(wait) => term.director.handle_timeout(term.clock.now()),
            }
            shared
                .status
                .set(term.director.queued(), term.director.matches());
        }
    }

    /// Checks whether this term may go on. The next one begins with what is stored, and gives everybody their full time.
    fn still_leads(&self) -> Result<(), &'static str> {
        if clock::now() >= self.lease.until {
            return Err("the lease ran out");
        }
        // Tickets carry the time of day, which the director compares with its own.
        if self.clock.step() > CLOCK_STEP_MAX {
            return Err("the system's clock was set");
        }
        Ok(())
    }

    fn renew(&self) {
        let queue = QUEUE.to_owned();
        let answer = self.shared.store.lease(queue, self.holder, clock::now());
        self.when_done(answer, Done::Lease);
    }

    /// Reads what notes may have been lost about.
    fn look(&self) {
        let (store, epoch) = (&self.shared.store, self.lease.epoch);
        self.when_done(store.tickets(epoch), Done::Tickets);
        self.when_done(store.reports(epoch), Done::Reports);
        self.when_done(store.queued_here(epoch, clock::now()), Done::Here);
    }

    /// What game servers said to other masters. A report counts if it is newer than at the last look: the first look may find one of a server that
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

    fn handle_note(&mut self, note: Note) {
        let now = self.clock.now();
        match note {
            Note::Ticket(ticket) => {
                let party: Vec<_> = ticket.party.iter().map(|member| member.account).collect();
                self.director.handle_ticket(now, ticket);
                // Who only asks over HTTP has a grace period to open his connection.
                for account in party {
                    if !self.shared.hub.is_online(account) {
                        self.director.handle_away(now, account);
                    }
                }
            }
            Note::TicketGone(ticket) => self.director.handle_ticket_gone(ticket),
            Note::Back(account) => self.director.handle_back(account),
            Note::Away(account) => self.director.handle_away(now, account),
            Note::SeatLeft(match_id, account) => self.director.handle_seat_left(match_id, account),
            Note::Report(server, report) => self.director.handle_report(now, server, &report),
            Note::Result(server, result) => self.director.handle_result(now, server, result),
            Note::ServerGone(server) => self.director.handle_server_gone(now, server),
            _ => {}
        }
    }

    fn handle_done(&mut self, done: Done) -> Result<(), String> {
        let now = self.clock.now();
        match done {
            Done::Created(match_id, Ok(created)) if created.gone.is_empty() => {
                metrics::counter!("muse_matches_created").increment(1);
                self.shared.journal.note(match_id, "made and stored");
                self.director.handle_created(now, match_id);
            }
            Done::Created(match_id, Ok(created)) => {
                self.director.handle_refused(now, match_id, &created.gone);
            }
            Done::Created(match_id, Err(error)) => {
                self.director.handle_refused(now, match_id, &[]);
                return refused(&error);
            }
            Done::Filled(filled, Ok(Fill::Filled)) => {
                self.director.handle_filled(filled.match_id, &filled.ticket);
            }
            Done::Filled(filled, Ok(fill)) => {
                self.director
                    .handle_not_filled(filled, fill == Fill::TicketGone);
            }
            Done::Filled(filled, Err(error)) => {
                self.director.handle_not_filled(filled, false);
                return refused(&error);
            }
            Done::Placed(match_id, Ok(server)) => {
                let text = format!("placed on server {server}");
                self.shared.journal.note(match_id, text);
                self.director.handle_placed(now, match_id, server);
            }
            Done::Placed(match_id, Err(why)) => {
                let text = match why {
                    NoServer::Full => "all servers are busy: its players wait on",
                    NoServer::Failed => "no server to be had",
                };
                self.shared.journal.note(match_id, text);
                self.director.handle_not_placed(now, match_id, why);
            }
            Done::Ended(match_id, requeued) => {
                let requeued = requeued.unwrap_or_default();
                self.director.handle_ended(now, match_id, requeued);
            }
            Done::Lease(Ok(Some(lease))) if lease.epoch == self.lease.epoch => self.lease = lease,
            Done::Lease(Ok(_)) => return Err("another master leads".to_owned()),
            Done::Lease(Err(error)) => tracing::warn!(%error, "the lease is not renewed"),
            Done::Tickets(Ok(tickets)) => {
                let new = self.director.handle_tickets(now, tickets);
                if new > 0 {
                    tracing::info!(new, "tickets found in the store");
                }
            }
            Done::Tickets(Err(error)) => tracing::warn!(%error, "the queue is not read"),
            Done::Reports(Ok(reports)) => self.handle_reports(now, reports),
            Done::Reports(Err(error)) => tracing::warn!(%error, "the reports are not read"),
            Done::Here(Ok(accounts)) => {
                for account in accounts {
                    self.director.handle_back(account);
                }
            }
            Done::Here(Err(error)) => tracing::warn!(%error, "who is here is not known"),
            Done::OldEpoch => return Err(StoreError::OldEpoch.to_string()),
        }
        Ok(())
    }

    /// Does everything that the director wants. Transactions are begun in its order and answered when they are.
    fn act(&mut self) {
        let epoch = self.lease.epoch;
        while let Some(action) = self.director.poll_action() {
            let store = Arc::clone(&self.shared.store);
            let now = clock::now();
            match action {
                Action::CreateMatch(new) => {
                    let match_id = new.match_id;
                    let answer = store.create_match(epoch, new, now);
                    self.when_done(answer, move |created| Done::Created(match_id, created));
                }
                Action::FillSeats(filled) => {
                    let answer = store.fill_seats(epoch, filled.match_id, filled.ticket.id);
                    self.when_done(answer, move |fill| Done::Filled(filled, fill));
                }
                Action::Place(placement) => self.place(placement),
                Action::RecordServer { match_id, server } => {
                    self.insist(
                        move || store.record_server(epoch, match_id, server),
                        |()| None,
                    );
                }
                Action::RecordRunning { match_id } => {
                    self.shared.journal.note(match_id, "has begun");
                    self.insist(move || store.record_running(epoch, match_id), |()| None);
                }
                Action::Admit {
                    match_id,
                    server,
                    players,
                    backfill,
                } => {
                    let text = format!("{} told where to go", listed(&players));
                    self.shared.journal.note(match_id, text);
                    if backfill {
                        for &account in &players {
                            let admit = ToServer::Admit { account };
                            self.shared.bus.publish(Note::ToServer(server, admit));
                        }
                    }
                    let shared = Arc::clone(&self.shared);
                    let answer = store.match_seat(match_id);
                    tokio::spawn(async move {
                        if let Ok(Some(stored)) = answer.await {
                            for account in players {
                                shared.tell_seat(account, &stored);
                            }
                        }
                    });
                }
                Action::FreeSeat { match_id, account } => {
                    let text = format!("{account} gave his seat up");
                    self.shared.journal.note(match_id, text);
                    self.insist(move || store.free_seat(epoch, match_id, account), |()| None);
                }
                Action::EndMatch(ending) => {
                    let match_id = ending.match_id;
                    tracing::info!(%match_id, outcome = ?ending.outcome, "match over");
                    let text = format!("over: {:?}", ending.outcome);
                    self.shared.journal.note(match_id, text);
                    self.insist(
                        move || store.end_match(epoch, ending.clone(), clock::now()),
                        move |requeued| Some(Done::Ended(match_id, requeued)),
                    );
                }
                Action::EndTicket(ticket) => {
                    self.insist(move || store.end_ticket(epoch, ticket), |()| None);
                }
                Action::ReleaseServer(server) => self.shared.fleet.release(server),
                Action::ConfirmResult { server, match_id } => {
                    let stored = ToServer::ResultStored { match_id };
                    self.shared.bus.publish(Note::ToServer(server, stored));
                }
                Action::Tell(account, message) => self.tell(account, &message),
            }
        }
    }

    fn tell(&self, account: AccountId, message: &FromMaster) {
        self.shared
            .bus
            .publish(Note::Tell(account, encode(message)));
    }

    fn place(&self, placement: Placement) {
        let shared = Arc::clone(&self.shared);
        let done = self.done.clone();
        let match_id = placement.match_id;
        let allocation = shared.fleet.allocate(&placement);
        tokio::spawn(async move {
            let begun = std::time::Instant::now();
            let server = allocation.await;
            if let Ok(server) = server {
                let took = begun.elapsed();
                metrics::histogram!("muse_allocation_seconds").record(took.as_secs_f64());
                tracing::info!(%match_id, %server, took_ms = took.as_millis(), "placed");
                let assignment = shared.assignment(
                    match_id,
                    placement.preferences,
                    placement.players,
                    placement.bots,
                );
                shared
                    .bus
                    .publish(Note::ToServer(server, ToServer::Assign(assignment)));
            }
            let _ = done.send(Done::Placed(match_id, server));
        });
    }

    fn when_done<T: Send + 'static>(
        &self,
        answer: Answer<T>,
        done: impl FnOnce(Result<T, StoreError>) -> Done + Send + 'static,
    ) {
        let answers = self.done.clone();
        tokio::spawn(async move {
            let _ = answers.send(done(answer.await));
        });
    }

    /// Something that must be stored: tried until it is, or until another one leads.
    fn insist<T: Send + 'static>(
        &self,
        transaction: impl Fn() -> Answer<T> + Send + 'static,
        done: impl FnOnce(T) -> Option<Done> + Send + 'static,
    ) {
        let answers = self.done.clone();
        let mut answer = transaction();
        tokio::spawn(async move {
            loop {
                match answer.await {
                    Ok(value) => {
                        if let Some(done) = done(value) {
                            let _ = answers.send(done);
                        }
                        return;
                    }
                    Err(StoreError::OldEpoch) => {
                        let _ = answers.send(Done::OldEpoch);
                        return;
                    }
                    Err(error) => tracing::error!(%error, "not stored, again in a second"),
                }
                // The term may have ended meanwhile; the epoch then ends this.
                tokio::time::sleep(StdDuration::from_secs(1)).await;
                if answers.is_closed() {
                    return;
                }
                answer = transaction();
            }
        });
    }
}

/// What could not be stored may be stored all the same, if only the answer was lost: the term ends, and the next one reads what is.
fn refused(error: &StoreError) -> Result<(), String> {
    tracing::error!(%error, "not stored");
    Err(error.to_string())
}

fn listed(accounts: &[AccountId]) -> String {
    let names: Vec<String> = accounts.iter().map(AccountId::to_string).collect();
    names.join(", ")
}

fn fresh_holder() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from_le_bytes(bytes) >> 11
}

/// How often a leader whose bus may lose something looks into the store, and every leader at its fleet.
const LOOK_EVERY: StdDuration = StdDuration::from_secs(5);
/// How long a master that closes leaves leading to others; longer than a lease.
const CLOSING_WAITS: StdDuration = StdDuration::from_secs(10);
/// How far the time of day may stray from the term's own clock; small corrections are borne.
const CLOCK_STEP_MAX: Duration = Duration::from_secs(2);
/// The queue that is led.
const QUEUE: &str = "default";
