//! What every part of a running master has in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use muse_master_client::messages::{FromMaster, Seat, encode};
use muse_master_client::{AccountId, MatchId, Preferences};
use muse_transport::ServerPublicKey;
use muse_transport::token::{TokenGrant, TokenIssuer};
use tokio::sync::{Semaphore, watch};

use crate::bus::{Bus, Note};
use crate::clock;
use crate::director::DirectorConfig;
use crate::fleet::Fleet;
use crate::hub::Hub;
use crate::secrets::{Keys, SystemEntropy, hex, unhex};
use crate::store::{Store, StoreError, StoredSeat};
use crate::ticket::{Play, Ticket};

pub(crate) struct Shared {
    pub(crate) config: SharedConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) issuer: TokenIssuer,
    pub(crate) draining: watch::Sender<bool>,
    pub(crate) status: Status,
    /// Password hashes that are computed at once.
    pub(crate) hashing: Semaphore,
}

pub(crate) struct SharedConfig {
    pub(crate) director: DirectorConfig,
    pub(crate) protocol_id: u64,
}

/// What the outside may know about the leader.
#[derive(Debug, Default)]
pub(crate) struct Status {
    leading: AtomicBool,
    queued: AtomicUsize,
    matches: AtomicUsize,
}

impl Status {
    pub(crate) fn set_leading(&self, leading: bool) {
        self.leading.store(leading, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, queued: usize, matches: usize) {
        self.queued.store(queued, Ordering::Relaxed);
        self.matches.store(matches, Ordering::Relaxed);
    }

    pub(crate) fn is_leading(&self) -> bool {
        self.leading.load(Ordering::Relaxed)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    pub(crate) fn matches(&self) -> usize {
        self.matches.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// The public keys with which game servers check connect tokens.
    pub(crate) fn token_keys(&self) -> Vec<(u32, String)> {
        vec![(self.issuer.key_id(), hex(&self.issuer.public_key()))]
    }

    /// A way into a match, with a fresh token.
    pub(crate) fn seat(&self, account: AccountId, stored: &StoredSeat) -> Option<Seat> {
        let key: [u8; 32] = unhex(&stored.public_key)?.try_into().ok()?;
        let address = stored.address.parse().ok()?;
        let grant = TokenGrant::new(account.0, ServerPublicKey::from_bytes(key), address)
            .user_data(&stored.match_id.0.to_le_bytes());
        let now_s = clock::now().as_micros() / 1_000_000;
        let token = self.issuer.issue(&grant, now_s, &mut SystemEntropy).ok()?;
        Some(Seat {
            match_id: stored.match_id,
            address: stored.address.clone(),
            token: token.to_text(),
            preferences: stored.preferences.clone(),
        })
    }

    pub(crate) fn tell_seat(&self, account: AccountId, stored: &StoredSeat) {
        match self.seat(account, stored) {
            Some(seat) => self.tell(account, &FromMaster::Seat(seat)),
            None => {
                tracing::error!(match_id = %stored.match_id, "the server's address or key is no use")
            }
        }
    }

    pub(crate) fn tell(&self, account: AccountId, message: &FromMaster) {
        self.bus.publish(Note::Tell(account, encode(message)));
    }

    /// *Play*, from either interface.
    pub(crate) async fn play(
        &self,
        account: AccountId,
        preferences: Preferences,
        insists: bool,
    ) -> Result<Option<Ticket>, StoreError> {
        if *self.draining.borrow() {
            return Err(StoreError::Unavailable("this master is closing".to_owned()));
        }
        let played = self
            .store
            .play(account, preferences, insists, clock::now())
            .await?;
        metrics::counter!("muse_tickets").increment(1);
        if played.play == Play::Leave {
            self.ticket_gone(&played.ticket);
            return Ok(None);
        }
        self.bus.publish(Note::Ticket(played.ticket.clone()));
        for member in &played.ticket.party {
            self.tell(
                member.account,
                &FromMaster::Queue(queue_state(&played.ticket)),
            );
        }
        Ok(Some(played.ticket))
    }

    pub(crate) async fn leave_queue(&self, account: AccountId) -> Result<(), StoreError> {
        if let Some(ticket) = self.store.leave_queue(account).await? {
            self.ticket_gone(&ticket);
        }
        Ok(())
    }

    fn ticket_gone(&self, ticket: &Ticket) {
        self.bus.publish(Note::TicketGone(ticket.id));
        for member in &ticket.party {
            self.tell(member.account, &FromMaster::LeftQueue);
        }
    }

    pub(crate) async fn leave_match(
        &self,
        account: AccountId,
    ) -> Result<Option<MatchId>, StoreError> {
        let match_id = self.store.standing(account).await?.match_id;
        if let Some(match_id) = match_id {
            self.bus.publish(Note::SeatLeft(match_id, account));
        }
        Ok(match_id)
    }
}

/// A ticket as its players see it.
pub(crate) fn queue_state(ticket: &Ticket) -> muse_master_client::messages::QueueState {
    muse_master_client::messages::QueueState {
        ticket: ticket.id,
        waited_ms: (clock::now() - ticket.since).as_millis(),
        preferences: ticket.preferences.clone(),
    }
}
