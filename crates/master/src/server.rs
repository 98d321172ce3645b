//! A running master: store, bus, fleet and leader behind one listening socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muse_master_client::messages::{FromMaster, encode};
use muse_transport::token::TokenIssuer;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::bus::{Bus, LocalBus, Note};
use crate::director::DirectorConfig;
use crate::fleet::process::{ProcessConfig, ProcessFleet};
use crate::http;
use crate::hub::Hub;
use crate::leader;
use crate::secrets::{Keys, random_text, unhex};
use crate::sessions::PLAYERS_MAX_DEFAULT;
use crate::shared::{Shared, SharedConfig, Status};
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, StoreError};

/// How a master runs.
#[derive(Clone, Debug)]
pub struct MasterConfig {
    listen: SocketAddr,
    database: PathBuf,
    players_max: usize,
    requests_per_second: u32,
    protocol_id: u64,
    director: DirectorConfig,
    game: Vec<String>,
    game_host: String,
    warm: usize,
    matches_max: usize,
    first_port: u16,
}

impl MasterConfig {
    /// Listens at `listen` and keeps everything in the file `database`.
    pub fn new(listen: SocketAddr, database: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            database: database.into(),
            players_max: PLAYERS_MAX_DEFAULT,
            requests_per_second: 50,
            protocol_id: 0,
            director: DirectorConfig::default(),
            game: Vec::new(),
            game_host: "127.0.0.1".to_owned(),
            warm: 1,
            matches_max: 20,
            first_port: crate::ports::FIRST_PORT,
        }
    }

    /// Players at once, 100 by default (OA-2). Each costs a socket and less than 20 kB.
    pub fn players_max(mut self, players_max: usize) -> Self {
        self.players_max = players_max;
        self
    }

    /// Requests of one address in a second in the long run, 50 by default, and 20 times as many in a burst; 0 for no limit.
    pub fn requests_per_second(mut self, requests_per_second: u32) -> Self {
        self.requests_per_second = requests_per_second;
        self
    }

    /// The protocol that connect tokens name, 0 by default: the game's.
    pub fn protocol_id(mut self, protocol_id: u64) -> Self {
        self.protocol_id = protocol_id;
        self
    }

    /// How matches are made and followed.
    pub fn director(mut self, director: DirectorConfig) -> Self {
        self.director = director;
        self
    }

    /// The program of the game server and its arguments; without one no match gets a server.
    pub fn game(mut self, command: Vec<String>) -> Self {
        self.game = command;
        self
    }

    /// The address at which players reach game servers, 127.0.0.1 by default.
    pub fn game_host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.game_host);
        self
    }

    /// Game servers that wait for a match, 1 by default.
    pub fn warm(mut self, warm: usize) -> Self {
        self.warm = warm;
        self
    }

    /// Matches at once, 20 by default.
    pub fn matches_max(mut self, matches_max: usize) -> Self {
        self.matches_max = matches_max;
        self
    }

    /// The first port of game servers, 8888 by default.
    pub fn first_port(mut self, first_port: u16) -> Self {
        self.first_port = first_port;
        self
    }
}

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
}

/// A master that runs. Dropping it does not end it; the runtime's end does.
pub struct Master {
    shared: Arc<Shared>,
    address: SocketAddr,
    close: oneshot::Sender<()>,
    closed: tokio::task::JoinHandle<()>,
}

impl Master {
    /// Opens the store, listens and begins to serve.
    pub async fn start(config: MasterConfig) -> Result<Self, StartError> {
        http::install_recorder();
        let store = SqliteStore::open(&config.database)?;
        let listen = config.listen;
        let failed = |error| StartError::Listen {
            address: listen,
            error,
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = share(config.clone(), store, address).await?;
        tokio::spawn(deliver(Arc::clone(&shared)));
        tokio::spawn(close_silent(Arc::clone(&shared)));
        tokio::spawn(leader::lead(Arc::clone(&shared)));
        let (close, closing) = oneshot::channel::<()>();
        let routes = http::router(Arc::clone(&shared), config.requests_per_second);
        let service: http::Service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
            let _ = closing.await;
        });
        let closed = tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "serving ended");
            }
        });
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
        let _ = self.close.send(());
        let _ = tokio::time::timeout(CLOSE_MAX, self.closed).await;
    }
}

/// Puts the parts together.
async fn share(
    config: MasterConfig,
    store: SqliteStore,
    address: SocketAddr,
) -> Result<Arc<Shared>, StartError> {
    let store: Arc<dyn Store> = Arc::new(store);
    let keys = Arc::new(Keys::new(&store.secret("masters", random_text()).await?));
    let seed = store.secret("connect_tokens", random_text()).await?;
    let seed: Option<[u8; 32]> = unhex(&seed).and_then(|seed| seed.try_into().ok());
    let seed = seed.ok_or_else(|| StoreError::Unavailable("a secret is damaged".to_owned()))?;
    let hub = Arc::new(Hub::new(config.players_max));
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
    let own = if address.ip().is_unspecified() {
        SocketAddr::from(([127, 0, 0, 1], address.port()))
    } else {
        address
    };
    let processes = ProcessConfig::new(config.game.clone(), &format!("ws://{own}"))
        .host(&config.game_host)
        .warm(config.warm)
        .matches_max(config.matches_max)
        .first_port(config.first_port);
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
    Ok(Arc::new(Shared {
        config: SharedConfig {
            director: config.director,
            protocol_id: config.protocol_id,
        },
        store,
        bus,
        fleet: Arc::new(fleet),
        hub,
        keys,
        issuer: TokenIssuer::from_bytes(config.protocol_id, 1, &seed),
        draining: watch::Sender::new(false),
        status: Status::default(),
        hashing: Semaphore::new(HASHES_AT_ONCE),
    }))
}

/// Hands notes to the connections of this master.
async fn deliver(shared: Arc<Shared>) {
    let mut notes = shared.bus.subscribe();
    loop {
        match notes.recv().await {
            Ok(Note::Tell(account, message)) => shared.hub.tell(account, message),
            Ok(Note::ToServer(server, message)) => shared.hub.tell_server(server, message),
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "notes were missed"),
            Err(RecvError::Closed) => return,
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
/// Time for connections to close after a drain.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// Head start of servers that were running when the master came.
const ADOPT_FIRST: Duration = Duration::from_millis(1_500);
