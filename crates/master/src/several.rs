//! Life beside other masters: what must be known although notes between them can be lost.
//!
//! Each master says in the store that it is there and who is connected to it, so that friends see each other wherever they are. A master that does
//! not lead writes down there what its game servers say, and looks there for what they were to be told. All of it happens only with a bus
//! that other masters use too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muse_master_client::messages::{FromMaster, MatchResult, Report, ToServer, encode};
use muse_master_client::{AccountId, MatchId, ServerId};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use crate::bus::Note;
use crate::clock;
use crate::hub::lock;
use crate::secrets::random_name;
use crate::shared::Shared;
use crate::store::StoreError;

/// This master among others.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Its name, a new one with every start.
    pub(crate) master: u64,
    /// True if the store may be wrong about who is connected here.
    unsure: AtomicBool,
    /// Players who are connected here and of whom the store does not know it yet.
    arriving: Mutex<Vec<AccountId>>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        Self {
            master: random_name(),
            unsure: AtomicBool::new(false),
            arriving: Mutex::new(Vec::new()),
        }
    }
}

/// A player has connected to this master; a connection to another one is closed there. The others are told when the store knows it, so that they can ask there
/// which connection is the newest.
pub(crate) async fn entered(shared: &Shared, account: AccountId) {
    if !shared.bus.is_shared() {
        return;
    }
    let master = shared.identity.master;
    lock(&shared.identity.arriving).push(account);
    if shared.store.arrived(master, account).await.is_err() {
        shared.identity.unsure.store(true, Ordering::Relaxed);
    }
    let mut arriving = lock(&shared.identity.arriving);
    if let Some(place) = arriving.iter().position(|it| *it == account) {
        arriving.swap_remove(place);
    }
    drop(arriving);
    shared.bus.publish(Note::Entered(account, master));
}

/// A player has connected to another master, as that one said at some time: a note may come late, after the player has come back to this one.
pub(crate) async fn entered_elsewhere(shared: Arc<Shared>, account: AccountId) {
    // What is not yet stored here is newer than what another master has stored.
    let is_arriving = || lock(&shared.identity.arriving).contains(&account);
    if !shared.hub.is_online(account) || is_arriving() {
        return;
    }
    let newest = shared.store.whereabouts(account).await;
    if newest.is_ok_and(|newest| newest != Some(shared.identity.master)) && !is_arriving() {
        shared.hub.hand_over(account);
    }
}

/// A player's connection to this master is gone. False if they are connected to another one.
pub(crate) async fn left(shared: &Shared, account: AccountId) -> bool {
    if !shared.bus.is_shared() {
        return true;
    }
    let departed = shared.store.departed(shared.identity.master, account);
    departed.await.unwrap_or_else(|_| {
        shared.identity.unsure.store(true, Ordering::Relaxed);
        true
    })
}

/// Keeps all of it up, until the master ends.
pub(crate) async fn live(shared: Arc<Shared>) {
    let mut notes = shared.bus.subscribe();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut followed = Followed::default();
    let mut told: FxHashMap<AccountId, MatchId> = FxHashMap::default();
    let mut waiting = Waiting::default();
    loop {
        tokio::select! {
            note = notes.recv() => match note {
                Ok(Note::Ticket(ticket)) => {
                    let party = ticket.party.iter().map(|member| member.account);
                    waiting.handle_tickets(party.filter(|account| shared.hub.is_online(*account)));
                }
                Ok(Note::Report(server, report)) if shared.hub.has_server(server) => {
                    if let Some(report) = followed.handle_report(server, report) {
                        tokio::spawn(record_first(Arc::clone(&shared), server, report));
                    }
                }
                Ok(Note::Result(server, result)) if shared.hub.has_server(server) => {
                    tokio::spawn(hand_in(Arc::clone(&shared), server, result));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "notes were missed"),
                Err(RecvError::Closed) => return,
            },
            _ = look.tick() => {
                followed.reports.retain(|server, _| shared.hub.has_server(*server));
                let look = async {
                    be_seen(&shared).await?;
                    follow_servers(&shared, &followed.reports).await?;
                    tell_seats(&shared, &mut told).await?;
                    tell_left(&shared, &mut waiting).await
                };
                let looked = tokio::select! {
                    looked = look => looked,
                    error = lose_store(&shared) => {
                        // It may have been given up in the middle of naming who is here.
                        shared.identity.unsure.store(true, Ordering::Relaxed);
                        Err(error)
                    }
                };
                if let Err(error) = looked {
                    tracing::warn!(%error, "the store is not read again");
                    let_go(&shared, &followed.reports);
                }
            }
        }
    }
}

/// The players who are connected to this master and wait with a ticket, as far as they know.
#[derive(Debug, Default)]
struct Waiting {
    accounts: FxHashSet<AccountId>,
}

impl Waiting {
    /// These players have tickets.
    fn handle_tickets(&mut self, accounts: impl Iterator<Item = AccountId>) {
        self.accounts.extend(accounts);
    }

    /// All players here who have a ticket in the store. Returns those who have none any more.
    fn handle_stored(&mut self, stored: FxHashSet<AccountId>) -> Vec<AccountId> {
        let mut gone: Vec<AccountId> = self.accounts.difference(&stored).copied().collect();
        gone.sort_unstable();
        self.accounts = stored;
        gone
    }
}

/// The game servers that are connected to this master, by what each said last.
#[derive(Debug, Default)]
struct Followed {
    reports: FxHashMap<ServerId, Report>,
}

impl Followed {
    /// A server said how its match goes. Returns what is to be stored at once: the first report of one that has just come with a match, perhaps from a master
    /// that was cut off, and of which the leader has not heard since. If the bus is lost, it hears of it by the store alone, and does not wait for ever.
    fn handle_report(&mut self, server: ServerId, report: Report) -> Option<Report> {
        let is_first = !self.reports.contains_key(&server);
        let first = (is_first && report.match_id.is_some()).then(|| report.clone());
        self.reports.insert(server, report);
        first
    }
}

/// Stores what a server says that has just come, unless this master leads.
async fn record_first(shared: Arc<Shared>, server: ServerId, report: Report) {
    if shared.status.is_leading() {
        return;
    }
    let recorded = shared.store.record_report(server, report, clock::now());
    match recorded.await {
        Ok(true) => {}
        Ok(false) => shared.hub.tell_server(server, ToServer::End),
        // It is stored at the next look.
        Err(error) => tracing::warn!(%server, %error, "a game server's first report is not stored"),
    }
}

/// Reports that this master is alive, and who is connected to it if the store may not know.
async fn be_seen(shared: &Shared) -> Result<(), StoreError> {
    let master = shared.identity.master;
    let known = shared.store.master_seen(master, clock::now()).await?;
    if known && !shared.identity.unsure.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    let name = async {
        shared.store.all_departed(master).await?;
        let online = shared.hub.online(usize::MAX);
        for some in online.chunks(NAMED_AT_ONCE) {
            let here = some
                .iter()
                .filter(|account| shared.hub.is_online(**account));
            let named: Vec<_> = here
                .map(|account| shared.store.arrived(master, *account))
                .collect();
            for answer in named {
                answer.await?;
            }
        }
        Ok(())
    };
    name.await
        .inspect_err(|_| shared.identity.unsure.store(true, Ordering::Relaxed))
}

/// Stores what game servers that are connected here say, for a leader that may not hear it, and tells them what they may have missed of it.
async fn follow_servers(
    shared: &Shared,
    servers: &FxHashMap<ServerId, Report>,
) -> Result<(), StoreError> {
    // A leader's messages to servers of its own master are not lost.
    if shared.status.is_leading() {
        return Ok(());
    }
    for (&server, report) in servers {
        if report.match_id.is_some() {
            let report = report.clone();
            let recorded = shared.store.record_report(server, report, clock::now());
            if !recorded.await? {
                shared.hub.tell_server(server, ToServer::End);
            }
        } else if let Some(hosted) = shared.store.hosted(server).await? {
            let assignment = shared.assignment(
                server,
                hosted.match_id,
                hosted.preferences,
                hosted.players,
                hosted.bots,
            );
            let assign = ToServer::Assign(assignment);
            shared.hub.tell_server(server, assign);
        }
    }
    Ok(())
}

/// Waits until the store does not answer any more, however much else it has to do.
async fn lose_store(shared: &Shared) -> StoreError {
    loop {
        let ready = tokio::time::timeout(STORE_SILENCE, shared.store.ready()).await;
        match ready {
            Ok(Ok(())) => tokio::time::sleep(READY_EVERY).await,
            Ok(Err(error)) => return error,
            Err(_) => return StoreError::Unavailable("it does not answer".to_owned()),
        }
    }
}

/// Closes the connections of game servers that have a match. This master cannot pass on what they say, and perhaps another one can: the leader gives up on
/// a server that it does not hear.
fn let_go(shared: &Shared, servers: &FxHashMap<ServerId, Report>) {
    let busy = servers
        .iter()
        .filter(|(_, report)| report.match_id.is_some());
    for (&server, _) in busy {
        tracing::warn!(%server, "a game server is to find another master");
        shared.hub.release_server(server);
    }
}

/// Stores a result for the leader, or tells the server that it needs no repeating.
async fn hand_in(shared: Arc<Shared>, server: ServerId, result: MatchResult) {
    if shared.status.is_leading() {
        return;
    }
    let match_id = result.match_id;
    let recorded = shared.store.record_result(server, result, clock::now());
    if let Ok(false) = recorded.await {
        let stored = ToServer::ResultStored { match_id };
        shared.hub.tell_server(server, stored);
    }
}

/// Tells players of their seats if they may have missed it. Being told twice does no harm.
async fn tell_seats(
    shared: &Shared,
    told: &mut FxHashMap<AccountId, MatchId>,
) -> Result<(), StoreError> {
    let seated = shared.store.seated().await?.into_iter();
    let here: FxHashMap<AccountId, MatchId> = seated
        .filter(|(account, _)| shared.hub.is_online(*account))
        .collect();
    for (account, match_id) in &here {
        if told.get(account) != Some(match_id)
            && let Some(seat) = shared.store.standing(*account).await?.seat
        {
            shared.tell_seat(*account, &seat);
        }
    }
    *told = here;
    Ok(())
}

/// Tells players that they wait no longer if they may have missed it: they left by a call to another master, or their ticket has ended.
async fn tell_left(shared: &Shared, waiting: &mut Waiting) -> Result<(), StoreError> {
    let queued = shared.store.queued().await?.into_iter();
    let here = queued.filter(|account| shared.hub.is_online(*account));
    for account in waiting.handle_stored(here.collect()) {
        let standing = shared.store.standing(account).await?;
        if standing.ticket.is_none() && standing.match_id.is_none() {
            shared.hub.tell(account, encode(&FromMaster::LeftQueue));
        }
    }
    Ok(())
}

/// Time between two looks at the store.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time for which the store may be silent before this master counts as cut off from it. A game server tries another one at once, which stores its first report
/// at once, so that with the time between two looks all of it is less than the 10 seconds after which the leader gives up on the server.
const STORE_SILENCE: Duration = Duration::from_secs(3);
/// Time between two questions whether the store is there.
const READY_EVERY: Duration = Duration::from_secs(1);
/// Players that are named to the store before it is waited for.
const NAMED_AT_ONCE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId(7);
    const MATCH: MatchId = MatchId(9);

    #[test]
    fn a_player_whose_ticket_is_gone_is_told_once() {
        let accounts = [1, 2, 3].map(AccountId);
        let stored = |accounts: &[AccountId]| accounts.iter().copied().collect();
        let mut waiting = Waiting::default();
        assert_eq!(waiting.handle_stored(stored(&accounts[..2])), []);
        // A ticket that comes and goes between two looks.
        waiting.handle_tickets(accounts[2..].iter().copied());
        assert_eq!(waiting.handle_stored(stored(&accounts[..1])), accounts[1..]);
        assert_eq!(waiting.handle_stored(stored(&accounts[..1])), []);
    }

    #[test]
    fn the_first_report_of_a_server_with_a_match_is_stored_at_once() {
        let mut followed = Followed::default();
        let report = Report {
            match_id: Some(MATCH),
            ..Report::default()
        };
        let free = followed.handle_report(ServerId(1), Report::default());
        assert_eq!(free, None);
        let first = followed.handle_report(SERVER, report.clone());
        assert_eq!(first, Some(report.clone()));
        assert_eq!(followed.handle_report(SERVER, report), None);
    }
}
