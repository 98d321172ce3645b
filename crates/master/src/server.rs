//! A running master: store, bus, fleet and leader behind one listening socket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muse_master_client::messages::{FromMaster, encode};
use muse_relay::host_token_issuer;
use thiserror::Error;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bus::{Bus, LocalBus, Note};
use crate::clock;
use crate::config::MasterConfig;
use crate::fleet;
use crate::http::{self, limits::Limits, passwords::Passwords};
use crate::hub::Hub;
use crate::journal::{Journal, SAMPLE_EVERY_S};
use crate::key_ring::{KeyRing, KeyTerms};
use crate::leading;
use crate::queue_file;
use crate::relays::Relays;
use crate::retention;
use crate::sealing::{SealedSecrets, SealingError};
use crate::secrets::{Keys, random_text, unhex};
use crate::several::{self, Identity};
use crate::shared::{Shared, SharedConfig, Status};
use crate::sockets::{Routes, Sockets};
use crate::store::{SqlStore, Store, StoreError};

/// The reason why a master does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket cannot be had.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key that seals the secrets of the database is missing, or not theirs.
    #[error("{0}")]
    SecretKey(String),
    /// An operator's name or password cannot be.
    #[error("{0}")]
    Operator(&'static str),
    /// An origin is none.
    #[error("not an origin: {0}")]
    Origin(String),
    /// The file with the rules of queues is no use.
    #[error("{0}")]
    Queues(String),
    /// The certificate or its key is no use.
    #[error("{file}: {why}")]
    Tls {
        /// The file.
        file: String,
        /// The cause.
        why: String,
    },
    /// The masters' bus cannot be had.
    #[error("{0}")]
    Bus(String),
    /// The fleet of game servers cannot be had.
    #[error("{0}")]
    Fleet(String),
    /// This program can do less than it is asked.
    #[error("this program was built without the feature `{0}`")]
    Feature(&'static str),
}

impl From<SealingError> for StartError {
    fn from(error: SealingError) -> Self {
        match error {
            SealingError::Store(error) => Self::Store(error),
            other => Self::SecretKey(other.to_string()),
        }
    }
}

/// A master that runs. Dropping it does not end it; the runtime's end does.
pub struct Master {
    shared: Arc<Shared>,
    address: SocketAddr,
    close: watch::Sender<bool>,
    closed: JoinSet<()>,
}

impl Master {
    /// Opens the store, listens and begins to serve.
    pub async fn start(config: MasterConfig) -> Result<Self, StartError> {
        http::install_recorder();
        let store: Arc<dyn Store> = Arc::new(open_store(&config)?);
        let file = match database_url(&config) {
            Some(_) => None,
            None => Some(config.database.as_path()),
        };
        let secrets = SealedSecrets::new(Arc::clone(&store), &config.secret_key, file)?;
        let bus = open_bus(&config, &secrets).await?;
        let sockets = Sockets::open(&config).await?;
        let address = sockets.address;
        let shared = share(&config, store, secrets, bus, sockets.for_servers()).await?;
        tokio::spawn(deliver(Arc::clone(&shared)));
        tokio::spawn(close_silent(Arc::clone(&shared)));
        tokio::spawn(leading::lead(Arc::clone(&shared)));
        tokio::spawn(sample(Arc::clone(&shared)));
        tokio::spawn(keep_keys(Arc::clone(&shared)));
        tokio::spawn(retention::keep_up(Arc::clone(&shared), config.retention));
        if let Some(file) = config.queues_file {
            tokio::spawn(queue_file::keep_up(Arc::clone(&shared), file));
        }
        if shared.bus.is_shared() {
            tokio::spawn(several::live(Arc::clone(&shared)));
        }
        let (close, closing) = watch::channel(false);
        let routes = http::router(
            Arc::clone(&shared),
            config.routes,
            sockets.operators.is_some(),
        );
        let routes = Routes {
            players: http::with_origins(routes, &config.origins)?,
            servers: http::server_router(Arc::clone(&shared)),
            operators: http::operator_router(Arc::clone(&shared)),
        };
        let closed = sockets.serve(routes, config.connections, config.proxies, &closing);
        Ok(Self {
            shared,
            address,
            close,
            closed,
        })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes no more matches and waits for the running ones to finish, at most for `limit`; then closes. Game servers that are left go on and
    /// are adopted by the next master.
    pub async fn drain(self, limit: Duration) {
        self.shared.draining.send_replace(true);
        self.shared.fleet.drain();
        let finished = async {
            let mut look = tokio::time::interval(Duration::from_millis(200));
            while self.has_matches() {
                look.tick().await;
            }
        };
        if tokio::time::timeout(limit, finished).await.is_err() {
            tracing::warn!("matches are left to the next master");
        }
        let closing = encode(&FromMaster::Closing { come_back: true });
        self.shared.hub.close_all(&closing);
        self.close.send_replace(true);
        let _ = tokio::time::timeout(CLOSE_MAX, self.closed.join_all()).await;
    }

    /// True if something would be left to the next master.
    fn has_matches(&self) -> bool {
        let shared = &self.shared;
        if shared.bus.is_shared() && !shared.status.is_leading() {
            // Another master follows them. Servers that a cluster keeps need this one no more than any other.
            return shared.fleet.counts().busy > shared.fleet.hosts().len();
        }
        shared.status.matches() > 0
    }
}

fn open_store(config: &MasterConfig) -> Result<SqlStore, StartError> {
    if cfg!(not(feature = "postgres")) && config.database_ca.is_some() {
        return Err(StartError::Feature("postgres"));
    }
    match database_url(config) {
        #[cfg(feature = "postgres")]
        Some(url) => Ok(SqlStore::postgres(url, config.database_ca.as_deref())?),
        #[cfg(not(feature = "postgres"))]
        Some(_) => Err(StartError::Feature("postgres")),
        None => Ok(SqlStore::sqlite(&config.database)?),
    }
}

/// The database's address, if it is no file.
fn database_url(config: &MasterConfig) -> Option<&str> {
    let text = config.database.to_str()?;
    (text.starts_with("postgres") && text.contains("://")).then_some(text)
}

#[cfg_attr(not(feature = "nats"), expect(unused_variables))]
async fn open_bus(
    config: &MasterConfig,
    secrets: &SealedSecrets,
) -> Result<Arc<dyn Bus>, StartError> {
    match &config.nats {
        #[cfg(feature = "nats")]
        Some(url) => {
            let secret = secrets.lasting("notes").await?;
            let mut nats = crate::bus::NatsConfig::new(url, "muse.notes", &secret);
            if let Some(file) = &config.nats_ca {
                nats = nats.ca_file(file);
            }
            let bus = crate::bus::NatsBus::connect(nats).await;
            let bus = bus.map_err(|error| StartError::Bus(error.to_string()))?;
            Ok(Arc::new(bus))
        }
        #[cfg(not(feature = "nats"))]
        Some(_) => Err(StartError::Feature("nats")),
        None => Ok(Arc::new(LocalBus::default())),
    }
}

/// Puts the parts together.
async fn share(
    config: &MasterConfig,
    store: Arc<dyn Store>,
    secrets: SealedSecrets,
    bus: Arc<dyn Bus>,
    address: SocketAddr,
) -> Result<Arc<Shared>, StartError> {
    let queues = match &config.queues_file {
        Some(file) => queue_file::read(file).map_err(StartError::Queues)?,
        None => config.director.queue_rules().clone(),
    };
    if let Some((name, password)) = &config.operator {
        http::check_operator(name, password).map_err(StartError::Operator)?;
        let hash = http::hash_password(password).ok_or(StartError::Operator("no randomness"))?;
        store.set_operator(name.clone(), hash, clock::now()).await?;
    }
    let secret_terms = KeyTerms::masters(config.secret_days);
    let keys = Arc::new(Keys::new(&random_text()));
    secrets.keep_masters(&keys, secret_terms).await?;
    let hub = Arc::new(Hub::new(config.players_max));
    let own = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    let fleet = fleet::open(config, &keys, &hub, &bus, &store, own).await?;
    let seed = secrets.lasting("relay_tokens").await?;
    let seed: Option<[u8; 32]> = unhex(&seed).and_then(|seed| seed.try_into().ok());
    let damaged = || StoreError::Unavailable("a secret is damaged".to_owned());
    let relay_tokens = host_token_issuer(&seed.ok_or_else(damaged)?);
    let shared = Arc::new(Shared {
        config: SharedConfig {
            director: config.director.clone(),
            protocol_id: config.protocol_id,
            secret_terms,
            request_time: config.connections.request_time,
        },
        store,
        bus,
        fleet,
        hub,
        limits: Limits::new(
            config.requests_per_second,
            config.account_requests_per_second,
        ),
        keys,
        secrets,
        token_keys: Mutex::new(KeyRing::new(random_text())),
        draining: watch::Sender::new(false),
        queues: watch::Sender::new(queues),
        status: Status::default(),
        identity: Identity::new(),
        journal: Journal::default(),
        relays: Relays::new(config.relays.clone()),
        relay_tokens,
        started: clock::now(),
        passwords: Passwords::new(config.passwords_per_minute),
    });
    shared.keep_keys().await?;
    Ok(shared)
}

/// Hands notes to the connections of this master.
async fn deliver(shared: Arc<Shared>) {
    let mut notes = shared.bus.subscribe();
    loop {
        match notes.recv().await {
            Ok(Note::Tell(account, message)) => shared.hub.tell(account, message),
            Ok(Note::ToServer(server, message)) => shared.hub.tell_server(server, message),
            Ok(Note::ServerGone(server)) => {
                let ended = shared.store.end_server(server, clock::now());
                tokio::spawn(async move {
                    if let Err(error) = ended.await {
                        tracing::warn!(%server, %error, "a game server that is gone is not stored");
                    }
                });
            }
            Ok(Note::TellAll(message)) => shared.hub.tell_all(&message),
            Ok(Note::Kick(account, reason)) => {
                let refused = FromMaster::Refused {
                    code: "kicked".to_owned(),
                    message: reason,
                };
                let closing = FromMaster::Closing { come_back: false };
                shared
                    .hub
                    .close(account, &[&encode(&refused), &encode(&closing)]);
            }
            Ok(Note::Revoked(account, keeps)) => {
                shared.hub.revoke(account, keeps, &http::signed_out());
            }
            Ok(Note::Measured(account, latency_ms)) => {
                let now = clock::now();
                shared.relays.handle_measured(now, account, &latency_ms);
            }
            Ok(Note::WhoIsHere(accounts)) => {
                for account in accounts {
                    if shared.hub.is_online(account) {
                        shared.bus.publish(Note::Back(account));
                    }
                }
            }
            Ok(Note::Entered(account, master)) if master != shared.identity.master => {
                tokio::spawn(several::entered_elsewhere(Arc::clone(&shared), account));
            }
            // A leader elsewhere does not see who is connected here.
            Ok(Note::Ticket(ticket)) if !shared.status.is_leading() => {
                for member in ticket.party {
                    if shared.hub.is_online(member.account) {
                        shared.bus.publish(Note::Back(member.account));
                    }
                }
            }
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "notes were missed"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Keeps the keys up.
async fn keep_keys(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(KEYS_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Err(error) = shared.keep_keys().await {
            tracing::warn!(%error, "the keys are not kept up");
        }
    }
}

/// Samples the figures of the operators' charts, and forgets clients that have not sent a request for long.
async fn sample(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(Duration::from_secs(SAMPLE_EVERY_S));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        shared.limits.forget();
        shared.passwords.forget();
        if let Ok(sample) = http::sample(&shared).await {
            shared.journal.sample(sample);
        }
    }
}

/// Closes sessions that have been silent for 10 seconds.
async fn close_silent(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(Duration::from_millis(500));
    loop {
        look.tick().await;
        for account in shared.hub.close_silent() {
            tracing::debug!(%account, "silent");
            http::player_gone(&shared, account).await;
        }
    }
}

/// Time between two looks at the keys; the next ones are there in time whenever that is.
const KEYS_EVERY: Duration = Duration::from_secs(600);
/// Time for connections to close after a drain.
const CLOSE_MAX: Duration = Duration::from_secs(2);
