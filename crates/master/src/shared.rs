//! The common part of everything in a running master.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muse_master_client::api::RelayPlace;
use muse_master_client::messages::{Assignment, FromMaster, Seat, ToServer, encode};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId};
use muse_transport::ServerPublicKey;
use muse_transport::token::{TokenGrant, TokenIssuer};
use muse_wire::Instant;
use tokio::sync::watch;

use crate::bus::{Bus, Note};
use crate::clock;
use crate::director::DirectorConfig;
use crate::fleet::Fleet;
use crate::http::limits::Limits;
use crate::http::passwords::Passwords;
use crate::hub::{Hub, lock};
use crate::journal::Journal;
use crate::key_ring::{KeyRing, KeyTerms};
use crate::matching::QueueRules;
use crate::relays::Relays;
use crate::sealing::{SealedSecrets, SealingError};
use crate::secrets::{Keys, SystemEntropy, unhex};
use crate::several::Identity;
use crate::store::{Store, StoreError, StoredSeat};
use crate::ticket::{Play, Ticket};

pub(crate) struct Shared {
    pub(crate) config: SharedConfig,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) limits: Limits,
    pub(crate) keys: Arc<Keys>,
    pub(crate) secrets: SealedSecrets,
    pub(crate) token_keys: Mutex<KeyRing>,
    pub(crate) draining: watch::Sender<bool>,
    /// The rules of named queues, for whoever leads.
    pub(crate) queues: watch::Sender<QueueRules>,
    pub(crate) status: Status,
    pub(crate) identity: Identity,
    pub(crate) journal: Journal,
    pub(crate) relays: Relays,
    /// Signs tokens by which players open rooms at relays.
    pub(crate) relay_tokens: TokenIssuer,
    pub(crate) started: Instant,
    pub(crate) passwords: Passwords,
}

pub(crate) struct SharedConfig {
    pub(crate) director: DirectorConfig,
    pub(crate) protocol_id: u64,
    /// For how long a key of what masters sign for themselves does.
    pub(crate) secret_terms: KeyTerms,
    /// Time in which an open WebSocket has to take what it is told.
    pub(crate) request_time: std::time::Duration,
}

/// The leader as the outside may know it.
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
        lock(&self.token_keys).public()
    }

    /// Reads from the store the keys of connect tokens and of what masters sign for themselves, and adds the next ones.
    pub(crate) async fn keep_keys(&self) -> Result<(), SealingError> {
        let now_s = clock::now().as_micros() / 1_000_000;
        let tokens = KeyTerms::CONNECT_TOKENS;
        let tokens = self
            .secrets
            .ring(TOKEN_KEYS, "connect_tokens", tokens, now_s);
        *lock(&self.token_keys) = tokens.await?;
        let masters = self.config.secret_terms;
        self.secrets.keep_masters(&self.keys, masters).await
    }

    /// Returns what a game server is told of its match.
    pub(crate) fn assignment(
        &self,
        server: ServerId,
        match_id: MatchId,
        preferences: Preferences,
        players: Vec<AccountId>,
        bots: u8,
    ) -> Assignment {
        Assignment {
            match_id,
            preferences,
            players,
            bots,
            token_keys: self.token_keys(),
            protocol_id: self.config.protocol_id,
            connect_ms: self.config.director.connect_time().as_millis(),
            proof: self.keys.claim(server, match_id),
        }
    }

    /// A way into a match, with a fresh token.
    pub(crate) fn seat(&self, account: AccountId, stored: &StoredSeat) -> Option<Seat> {
        let key: [u8; 32] = unhex(&stored.public_key)?.try_into().ok()?;
        let address = stored.address.parse().ok()?;
        let grant = TokenGrant::new(account.0, ServerPublicKey::from_bytes(key), address)
            .user_data(&stored.match_id.0.to_le_bytes());
        let now_s = clock::now().as_micros() / 1_000_000;
        let issuer = lock(&self.token_keys).issuer(self.config.protocol_id, now_s)?;
        let token = issuer.issue(&grant, now_s, &mut SystemEntropy).ok()?;
        Some(Seat {
            match_id: stored.match_id,
            address: stored.address.clone(),
            token: token.to_text(),
            preferences: stored.preferences.clone(),
        })
    }

    /// A token with which a player opens a room at a relay.
    pub(crate) fn relay_token(&self, account: AccountId, place: &RelayPlace) -> Option<String> {
        let key = place.key.as_ref()?.parse().ok()?;
        // The relay's key alone decides where the token is good; a name has no address here.
        let address = place.address.parse().unwrap_or(ANYWHERE);
        let grant = TokenGrant::new(account.0, key, address).lifetime_s(RELAY_TOKEN_S);
        let now_s = clock::now().as_micros() / 1_000_000;
        let token = self
            .relay_tokens
            .issue(&grant, now_s, &mut SystemEntropy)
            .ok()?;
        Some(token.to_text())
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

    /// Gives a seat up. A player who plays again right after it finds that they have left: the leader, who may be another master, has freed the seat
    /// by then, unless that takes longer than a second.
    pub(crate) async fn leave_match(&self, account: AccountId) -> Result<(), StoreError> {
        let standing = self.store.standing(account).await?;
        if let Some(seat) = standing.seat {
            let remove = ToServer::Remove { account };
            self.bus.publish(Note::ToServer(seat.server, remove));
        }
        let Some(match_id) = standing.match_id else {
            return Ok(());
        };
        self.bus.publish(Note::SeatLeft(match_id, account));
        let mut wait = FREED_FIRST;
        while wait <= FREED_LAST && self.store.standing(account).await?.match_id == Some(match_id) {
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        Ok(())
    }

    /// Disconnects a player with this reason, and takes them out of queue and match.
    pub(crate) async fn kick(&self, account: AccountId, reason: &str) -> Result<(), StoreError> {
        self.leave_queue(account).await?;
        self.leave_match(account).await?;
        self.bus.publish(Note::Kick(account, reason.to_owned()));
        Ok(())
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

/// Time to wait before looking whether a seat is free; twice as long each time.
const FREED_FIRST: Duration = Duration::from_millis(5);
/// The last of these waits: together they are a little more than a second.
const FREED_LAST: Duration = Duration::from_millis(640);
/// Life of a token for a relay, in seconds: for as long its holder can open the room again after a restart of the relay.
const RELAY_TOKEN_S: u64 = 3_600;
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
/// The name under which the keys of connect tokens are kept.
const TOKEN_KEYS: &str = "token_keys";
