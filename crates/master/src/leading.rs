//! Drives the [`Leader`] with the real store, fleet, bus and clock. Everything is decided there.

use std::pin::Pin;
use std::sync::Arc;

use muse_master_client::messages::ToServer;
use muse_master_client::{AccountId, MatchId};
use muse_wire::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::bus::Note;
use crate::clock::{self, SteadyClock};
use crate::director::Placement;
use crate::http::count_refusal;
use crate::leader::{Leader, Looked, Reply, Request, StoreRequest, Transaction};
use crate::secrets::random_name;
use crate::shared::Shared;
use crate::store::{Answer, Store};

/// Leads whenever it can, until the master ends.
pub(crate) async fn lead(shared: Arc<Shared>) {
    loop {
        let again_after = lead_once(&shared).await;
        shared.status.set_leading(false);
        tokio::time::sleep(again_after.into()).await;
    }
}

/// Leads until it must not any more. Returns how long to wait before the next attempt.
async fn lead_once(shared: &Arc<Shared>) -> Duration {
    let clock = SteadyClock::new();
    let mut notes = shared.bus.subscribe();
    let mut draining = shared.draining.subscribe();
    let (sender, mut replies) = mpsc::unbounded_channel();
    let hands = Hands {
        shared: Arc::clone(shared),
        replies: sender,
    };
    let mut queues = shared.queues.subscribe();
    let rules = queues.borrow_and_update().clone();
    let config = shared.config.director.clone().queues(rules);
    let mut leader = Leader::new(config, random_name()).shared(shared.bus.is_shared());
    loop {
        leader.drain(*draining.borrow_and_update());
        leader.handle_room(shared.fleet.room());
        while let Some(request) = leader.poll_request(clock.now(), clock::now()) {
            hands.fulfil(request);
        }
        if leader.is_leading() {
            shared.status.set_leading(true);
            shared.status.set(leader.queued(), leader.matches());
        }
        if leader.ended().is_some() {
            return leader.again_after();
        }
        let due = leader.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        tokio::select! {
            note = notes.recv() => match note {
                Ok(note) => {
                    let is_online = |account| shared.hub.is_online(account);
                    leader.handle_note(clock.now(), note, is_online);
                }
                Err(RecvError::Lagged(missed)) => leader.handle_notes_missed(missed),
                Err(RecvError::Closed) => return leader.again_after(),
            },
            Some(reply) = replies.recv() => leader.handle_reply(clock.now(), reply),
            _ = draining.changed() => {}
            _ = queues.changed() => {
                let rules = queues.borrow_and_update().clone();
                leader.set_queues(clock.now(), &rules);
            }
            () = tokio::time::sleep(clock.until(due)) => leader.handle_timeout(clock.now()),
        }
    }
}

/// Does what a leader requests.
struct Hands {
    shared: Arc<Shared>,
    /// Replies that come after the leader's end reach nobody.
    replies: mpsc::UnboundedSender<Reply>,
}

impl Hands {
    fn fulfil(&self, request: Request) {
        let shared = &self.shared;
        match request {
            Request::Store(request) => {
                let replies = self.replies.clone();
                let answer = begin(&*shared.store, request);
                tokio::spawn(async move {
                    if let Some(reply) = answer.await {
                        let _ = replies.send(reply);
                    }
                });
            }
            Request::Allocate(placement) => self.allocate(placement),
            Request::Release(server) => shared.fleet.release(server),
            Request::ListServers => {
                let _ = self.replies.send(Reply::Servers(shared.fleet.hosts()));
            }
            Request::Publish(note) => {
                if let Note::ToServer(server, ToServer::Refused { message, refusal }) = &note {
                    count_refusal(*server, *message, refusal);
                }
                shared.bus.publish(note);
            }
            Request::Admit {
                match_id, players, ..
            } => self.admit(match_id, players),
            Request::Journal(match_id, text) => shared.journal.note(match_id, text),
        }
    }

    fn allocate(&self, placement: Placement) {
        let shared = Arc::clone(&self.shared);
        let replies = self.replies.clone();
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
                    server,
                    match_id,
                    placement.preferences,
                    placement.players,
                    placement.bots,
                );
                // Also if its leader leads no longer: the next one hears of the match from the server.
                let assign = ToServer::Assign(assignment);
                shared.bus.publish(Note::ToServer(server, assign));
            }
            let _ = replies.send(Reply::Placed(match_id, server));
        });
    }

    fn admit(&self, match_id: MatchId, players: Vec<AccountId>) {
        let shared = Arc::clone(&self.shared);
        let answer = shared.store.match_seat(match_id);
        tokio::spawn(async move {
            if let Ok(Some(stored)) = answer.await {
                for account in players {
                    shared.tell_seat(account, &stored);
                }
            }
        });
    }
}

type FutureReply = Pin<Box<dyn Future<Output = Option<Reply>> + Send>>;

/// Begins a transaction now, so that transactions are written in the leader's order; its reply can be awaited whenever.
fn begin(store: &dyn Store, request: StoreRequest) -> FutureReply {
    let now = clock::now();
    match request {
        StoreRequest::Lease { holder } => {
            let lease = store.lease(QUEUE.to_owned(), holder, now);
            Box::pin(async { Some(Reply::Lease(lease.await)) })
        }
        StoreRequest::ReleaseLease { holder } => {
            let released = store.release_lease(QUEUE.to_owned(), holder);
            Box::pin(async {
                let _ = released.await;
                None
            })
        }
        StoreRequest::Restore { epoch } => {
            let restored = store.restore(epoch);
            Box::pin(async { Some(Reply::Restored(restored.await)) })
        }
        StoreRequest::Look { epoch } => {
            let tickets = store.tickets(epoch);
            let reports = store.reports(epoch);
            let here = store.queued_here(epoch, now);
            let looked = async {
                Ok(Looked {
                    tickets: tickets.await?,
                    reports: reports.await?,
                    here: here.await?,
                })
            };
            Box::pin(async { Some(Reply::Looked(looked.await)) })
        }
        StoreRequest::Commit { epoch, transaction } => {
            let reply = commit(store, epoch, transaction.clone(), now);
            Box::pin(async {
                let failed = |error| Reply::NotStored(transaction, error);
                Some(reply.await.unwrap_or_else(failed))
            })
        }
    }
}

fn commit(store: &dyn Store, epoch: u64, transaction: Transaction, now: Instant) -> Answer<Reply> {
    match transaction {
        Transaction::CreateMatch(new) => {
            let match_id = new.match_id;
            then(store.create_match(epoch, new, now), move |created| {
                if created.gone.is_empty() {
                    metrics::counter!("muse_matches_created").increment(1);
                }
                Reply::Created(match_id, created)
            })
        }
        Transaction::FillSeats(filled) => {
            let answer = store.fill_seats(epoch, filled.match_id, filled.ticket.id);
            then(answer, |fill| Reply::Filled(filled, fill))
        }
        Transaction::RecordServer(match_id, server) => {
            then(store.record_server(epoch, match_id, server), stored)
        }
        Transaction::RecordRunning(match_id) => then(store.record_running(epoch, match_id), stored),
        Transaction::FreeSeat(match_id, account) => {
            then(store.free_seat(epoch, match_id, account), stored)
        }
        Transaction::EndMatch(ending) => {
            let match_id = ending.match_id;
            then(store.end_match(epoch, ending, now), move |requeued| {
                Reply::Ended(match_id, requeued)
            })
        }
        Transaction::EndTicket(ticket) => then(store.end_ticket(epoch, ticket), stored),
    }
}

fn then<T: 'static>(
    answer: Answer<T>,
    reply: impl FnOnce(T) -> Reply + Send + 'static,
) -> Answer<Reply> {
    Box::pin(async { answer.await.map(reply) })
}

fn stored((): ()) -> Reply {
    Reply::Stored
}

/// The queue that is led.
const QUEUE: &str = "default";
