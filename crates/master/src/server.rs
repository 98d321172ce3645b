//! A running master: store, bus, fleet and leader behind one listening socket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener, ListenerExt};
use muse_master_client::messages::{FromMaster, encode};
use muse_master_client::{AccountId, MatchId};
use rustc_hash::FxHashMap;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::bus::{Bus, LocalBus, Note};
use crate::clock;
use crate::config::MasterConfig;
use crate::fleet::process::{ProcessConfig, ProcessFleet};
use crate::http;
use crate::hub::Hub;
use crate::journal::{Journal, SAMPLE_EVERY_S};
use crate::leader;
use crate::secrets::{Keys, random_text};
use crate::shared::{Shared, SharedConfig, Status};
use crate::store::{SqlStore, Store, StoreError};
use crate::tls;
use crate::token_keys::TokenKeys;

/// Why a master does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The socket cannot be had.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An operator's name or password cannot be.
    #[error("{0}")]
    Operator(&'static str),
    /// An origin is none.
    #[error("not an origin: {0}")]
    Origin(String),
    /// The certificate or its key is no use.
    #[error("{file}: {why}")]
    Tls {
        /// Which file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
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
        let store = SqlStore::sqlite(&config.database)?;
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        let tls = config
            .tls
            .as_ref()
            .map(|(chain, key)| tls::acceptor(chain, key));
        let tls = tls.transpose()?;
        let (listener, address) = bind(config.listen).await?;
        let inner = match tls {
            Some(_) => {
                let port = address.port().checked_add(1).unwrap_or(0);
                Some(bind(SocketAddr::from(([127, 0, 0, 1], port))).await?)
            }
            None => None,
        };
        let servers = inner.as_ref().map_or(address, |(_, inner)| *inner);
        let shared = share(&config, store, bus, servers).await?;
        tokio::spawn(deliver(Arc::clone(&shared)));
        tokio::spawn(close_silent(Arc::clone(&shared)));
        tokio::spawn(leader::lead(Arc::clone(&shared)));
        tokio::spawn(sample(Arc::clone(&shared)));
        tokio::spawn(keep_token_keys(Arc::clone(&shared)));
        if shared.bus.is_shared() {
            tokio::spawn(tell_seats(Arc::clone(&shared)));
        }
        let (close, closing) = watch::channel(false);
        let routes = http::router(
            Arc::clone(&shared),
            config.requests_per_second,
            config.routes,
        );
        let routes = http::with_origins(routes, &config.origins)?;
        let mut closed = JoinSet::new();
        if let Some((inner, _)) = inner {
            let routes = http::server_router(Arc::clone(&shared));
            closed.spawn(serve(inner, routes, closing.clone()));
        }
        match tls {
            Some(acceptor) => {
                // The tap is nothing but a way to have the client's address.
                let listener = tls::TlsListener::new(listener, acceptor).tap_io(|_| {});
                closed.spawn(serve(listener, routes, closing));
            }
            None => drop(closed.spawn(serve(listener, routes, closing))),
        }
        Ok(Self {
            shared,
            address,
            close,
            closed,
        })
    }

    /// Where it listens.
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
            while self.shared.status.matches() > 0 {
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
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Serves until it is told to close.
async fn serve<L>(listener: L, routes: Router, mut closing: watch::Receiver<bool>)
where
    L: Listener<Addr = SocketAddr>,
    SocketAddr: for<'a> Connected<IncomingStream<'a, L>>,
{
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
        let _ = closing.wait_for(|close| *close).await;
    });
    if let Err(error) = serving.await {
        tracing::error!(%error, "serving ended");
    }
}

/// Puts the parts together.
async fn share(
    config: &MasterConfig,
    store: SqlStore,
    bus: Arc<dyn Bus>,
    address: SocketAddr,
) -> Result<Arc<Shared>, StartError> {
    let store: Arc<dyn Store> = Arc::new(store);
    if let Some((name, password)) = &config.operator {
        http::check_operator(name, password).map_err(StartError::Operator)?;
        let hash = http::hash_password(password).ok_or(StartError::Operator("no randomness"))?;
        store.set_operator(name.clone(), hash, clock::now()).await?;
    }
    let keys = Arc::new(Keys::new(&store.secret("masters", random_text()).await?));
    let hub = Arc::new(Hub::new(config.players_max));
    let own = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    let processes = ProcessConfig::new(config.game.clone(), &format!("ws://{own}"))
        .host(&config.game_host)
        .warm(config.warm)
        .matches_max(config.matches_max)
        .first_port(config.first_port)
        .logs(config.logs.clone());
    let fleet = ProcessFleet::new(
        processes,
        Arc::clone(&keys),
        Arc::clone(&hub),
        Arc::clone(&bus),
    );
    if !config.game.is_empty() {
        let fleet = fleet.clone();
        tokio::spawn(async move {
            // Servers of the last master connect first, so that their ports are known.
            tokio::time::sleep(ADOPT_FIRST).await;
            fleet.start();
        });
    }
    let shared = Arc::new(Shared {
        config: SharedConfig {
            director: config.director.clone(),
            protocol_id: config.protocol_id,
        },
        store,
        bus,
        fleet: Arc::new(fleet),
        hub,
        keys,
        token_keys: Mutex::new(TokenKeys::new(random_text())),
        draining: watch::Sender::new(false),
        status: Status::default(),
        journal: Journal::default(),
        started: clock::now(),
        hashing: Semaphore::new(HASHES_AT_ONCE),
    });
    shared.keep_token_keys().await?;
    Ok(shared)
}

/// Hands notes to the connections of this master.
async fn deliver(shared: Arc<Shared>) {
    let mut notes = shared.bus.subscribe();
    loop {
        match notes.recv().await {
            Ok(Note::Tell(account, message)) => shared.hub.tell(account, message),
            Ok(Note::ToServer(server, message)) => shared.hub.tell_server(server, message),
            Ok(Note::TellAll(message)) => shared.hub.tell_all(&message),
            Ok(Note::Kick(account, reason)) => {
                let refused = FromMaster::Refused {
                    code: "kicked".to_owned(),
                    message: reason,
                };
                let closing = FromMaster::Closing { come_back: false };
                shared
                    .hub
                    .close(account, &[encode(&refused), encode(&closing)]);
            }
            Ok(Note::WhoIsHere(accounts)) => {
                for account in accounts {
                    if shared.hub.is_online(account) {
                        shared.bus.publish(Note::Back(account));
                    }
                }
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

/// Tells players of their seats who may have missed it, because the bus lost it between the leader and this master. Who is told twice
/// is told the same.
async fn tell_seats(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(SEATS_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told: FxHashMap<AccountId, MatchId> = FxHashMap::default();
    loop {
        look.tick().await;
        let Ok(seated) = shared.store.seated().await else {
            continue;
        };
        let here: FxHashMap<AccountId, MatchId> = seated
            .into_iter()
            .filter(|(account, _)| shared.hub.is_online(*account))
            .collect();
        for (account, match_id) in &here {
            if told.get(account) != Some(match_id)
                && let Ok(standing) = shared.store.standing(*account).await
                && let Some(seat) = standing.seat
            {
                shared.tell_seat(*account, &seat);
            }
        }
        told = here;
    }
}

/// Keeps the keys of connect tokens up.
async fn keep_token_keys(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(TOKEN_KEYS_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Err(error) = shared.keep_token_keys().await {
            tracing::warn!(%error, "the keys of connect tokens are not kept up");
        }
    }
}

/// Remembers how things were, for the operators' charts.
async fn sample(shared: Arc<Shared>) {
    let mut look = tokio::time::interval(Duration::from_secs(SAMPLE_EVERY_S));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Ok(sample) = http::sample(&shared).await {
            shared.journal.sample(sample);
        }
    }
}

/// Closes sessions that have been silent for 10 seconds (OA-3).
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

/// Passwords that are hashed at once; each takes some 20 ms of a core and 19 MB.
const HASHES_AT_ONCE: usize = 2;
/// How often players are looked for who may have missed their seat.
const SEATS_EVERY: Duration = Duration::from_secs(3);
/// How often the keys of connect tokens are looked at; tomorrow's is there in time whenever that is.
const TOKEN_KEYS_EVERY: Duration = Duration::from_secs(600);
/// Time for connections to close after a drain.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// Head start of servers that were running when the master came.
const ADOPT_FIRST: Duration = Duration::from_millis(1_500);
