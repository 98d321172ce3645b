//! The options of a master.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use muse_master_client::api::RelayPlace;

use crate::director::DirectorConfig;
use crate::proxies::{Proxies, TrustedProxy};
use crate::retention::Retention;
use crate::sealing::SealingKeySource;
use crate::serving::ConnectionLimits;
use crate::sessions::PLAYERS_MAX_DEFAULT;

/// Options of a master.
#[derive(Clone, Debug)]
pub struct MasterConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) database: PathBuf,
    pub(crate) players_max: usize,
    pub(crate) connections: ConnectionLimits,
    pub(crate) requests_per_second: u32,
    pub(crate) account_requests_per_second: u32,
    pub(crate) passwords_per_minute: u32,
    pub(crate) protocol_id: u64,
    pub(crate) director: DirectorConfig,
    pub(crate) queues_file: Option<PathBuf>,
    pub(crate) game: Vec<String>,
    pub(crate) game_host: String,
    pub(crate) warm: usize,
    pub(crate) matches_max: usize,
    pub(crate) first_port: u16,
    pub(crate) logs: Option<PathBuf>,
    pub(crate) routes: Option<Router>,
    pub(crate) origins: Vec<String>,
    pub(crate) operator: Option<(String, String)>,
    pub(crate) database_ca: Option<PathBuf>,
    pub(crate) nats: Option<String>,
    pub(crate) nats_ca: Option<PathBuf>,
    pub(crate) other_masters: Vec<String>,
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) proxies: Proxies,
    pub(crate) operator_listen: Option<SocketAddr>,
    pub(crate) relays: Vec<RelayPlace>,
    pub(crate) retention: Retention,
    pub(crate) secret_key: SealingKeySource,
    pub(crate) secret_days: u32,
    #[cfg(feature = "agones")]
    pub(crate) agones: Option<crate::fleet::agones::AgonesConfig>,
}

impl MasterConfig {
    /// Listens at `listen` and keeps everything in the file `database`, or in a PostgreSQL database if it is a URL that begins with
    /// `postgres://` (feature `postgres`).
    pub fn new(listen: SocketAddr, database: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            database: database.into(),
            players_max: PLAYERS_MAX_DEFAULT,
            connections: ConnectionLimits {
                connections_max: 1_024,
                per_address: 256,
                request_time: Duration::from_secs(10),
            },
            requests_per_second: 50,
            account_requests_per_second: 20,
            passwords_per_minute: 30,
            protocol_id: 0,
            director: DirectorConfig::default(),
            queues_file: None,
            game: Vec::new(),
            game_host: "127.0.0.1".to_owned(),
            warm: 1,
            matches_max: 20,
            first_port: crate::ports::FIRST_PORT,
            logs: None,
            routes: None,
            origins: Vec::new(),
            operator: None,
            database_ca: None,
            nats: None,
            nats_ca: None,
            other_masters: Vec::new(),
            tls: None,
            proxies: Proxies::default(),
            operator_listen: None,
            relays: Vec::new(),
            retention: Retention::default(),
            secret_key: SealingKeySource::Beside,
            secret_days: 30,
            #[cfg(feature = "agones")]
            agones: None,
        }
    }

    /// Connections at once that have not signed in, 1,024 by default, each of which costs a socket and less than 40 kB; 0 for no limit. When there is no
    /// room for another, the address with most of them loses the one that has waited longest without asking for anything.
    pub fn connections_max(mut self, connections_max: usize) -> Self {
        self.connections.connections_max = connections_max;
        self
    }

    /// Connections of one address that have not signed in, 256 by default; 0 for no limit. With IPv6 a network of 64 bits counts as one address. The
    /// connections of a [trusted proxy](Self::trusted_proxies) that serve many clients are not limited by address.
    pub fn connections_per_address(mut self, connections: usize) -> Self {
        self.connections.per_address = connections;
        self
    }

    /// Time for a TLS handshake, then for the header of each request, then for its body, 10 seconds each by default. A connection may be silent for
    /// as long between two requests, and a WebSocket has as long to take each message that it is sent.
    pub fn request_time(mut self, request_time: Duration) -> Self {
        self.connections.request_time = request_time;
        self
    }

    /// The address at which players reach game servers, 127.0.0.1 by default.
    pub fn game_host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.game_host);
        self
    }

    /// An operator who may use `/admin`, made or given a new password when the master starts; none by default.
    pub fn operator(mut self, name: &str, password: &str) -> Self {
        self.operator = Some((name.to_owned(), password.to_owned()));
        self
    }

    /// A file with the key that seals the secrets of the database, made if there is none: 64 hexadecimal digits. By default, `FILE.key` beside the
    /// database `FILE`; masters that share a PostgreSQL database need it, or [`secret_key`](Self::secret_key), and the same at each.
    pub fn secret_key_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.secret_key = SealingKeySource::File(file.into());
        self
    }

    /// The key that seals the secrets of the database itself, for example from the environment, instead of a file.
    pub fn secret_key(mut self, key: &str) -> Self {
        self.secret_key = SealingKeySource::Text(key.to_owned());
        self
    }

    /// Ends TLS itself, with a certificate chain and a key as PEM files; none by default. The files are read again when they change, and connections
    /// that begin from then on get the new certificate. Game servers on this machine connect without TLS to the next port, which listens for them on the
    /// loopback address alone, and find the names of the files in `MUSE_SERVER_CERT` and `MUSE_SERVER_CERT_KEY`, for browsers.
    pub fn tls(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls = Some((certificates.into(), key.into()));
        self
    }

    /// Proxies that name their clients in `X-Forwarded-For`, none by default: limits by address then hold for the client and not for the proxy. Each must
    /// add the address that it sees, at the end, to what the client may have sent.
    pub fn trusted_proxies(mut self, proxies: &[TrustedProxy]) -> Self {
        self.proxies.trusted = proxies.to_vec();
        self
    }

    /// Has every connection of a trusted proxy begin with a header of PROXY protocol, version 2, which names the client, and believes no header of HTTP
    /// then; not by default. A connection of theirs without one is closed.
    pub fn proxy_protocol(mut self, proxy_protocol: bool) -> Self {
        self.proxies.by_connection = proxy_protocol;
        self
    }

    /// Relays for games that players host themselves, at most 32, none by default. Players measure how far each is, and the master says which suits them.
    pub fn relays(mut self, relays: Vec<RelayPlace>) -> Self {
        self.relays = relays;
        self.relays.truncate(muse_relay::RELAYS_MAX);
        self
    }

    /// Game servers of a cluster instead of child processes; none by default.
    #[cfg(feature = "agones")]
    pub fn agones(mut self, agones: crate::fleet::agones::AgonesConfig) -> Self {
        self.agones = Some(agones);
        self
    }
}

muse_wire::setters! { MasterConfig:
    /// Players at once, 100 by default. Each costs a socket and less than 20 kB.
    players_max: usize,

    /// Requests of one address in a second in the long run, 50 by default, and 20 times as many in a burst; 0 for no limit.
    requests_per_second: u32,

    /// Requests of one account in a second in the long run, by HTTP and on its WebSocket together, 20 by default, and 20 times as many in a burst; 0
    /// for no limit. Keep-alives are not counted.
    account_requests_per_second: u32,

    /// Passwords that one address may have checked or set in a minute in the long run, 30 by default, and 20 at once; 0 for no limit, behind a proxy that
    /// names no clients. With IPv6 a network of 64 bits counts as one address.
    passwords_per_minute: u32,

    /// The protocol that connect tokens name, 0 by default: the game's.
    protocol_id: u64,

    /// Days after which what masters sign for themselves (access tokens, operators' tokens, credentials of game servers) gets a new key, 30 by default and 1 at
    /// least. What an older one signed is valid until it runs out, and the credential of a game server for 30 days.
    secret_days: u32,

    /// Sets how long guests, chat, matches and the audit are kept.
    retention: Retention,

    /// Sets how matches are made and followed.
    director: DirectorConfig,

    /// A file with the [rules of named queues](crate::matching::QueueRules::parse); none by default. It is read again when it changes.
    queues_file: impl Into<PathBuf> = Some(queues_file.into()),

    /// The program of the game server and its arguments; without one no match gets a server.
    game: Vec<String>,

    /// Game servers that wait for a match, 1 by default.
    warm: usize,

    /// Matches at once, 20 by default.
    matches_max: usize,

    /// The first port of game servers, 8888 by default.
    first_port: u16,

    /// A folder for what game servers write, shown on the operators' page; none by default, and then their errors go where the master's go.
    logs: impl Into<PathBuf> = Some(logs.into()),

    /// Serves these wherever the master has no route of its own, for example the game's page at `/`; nothing by default. The master's are below
    /// `/v1` and `/admin`, and `/health`, `/ready`, `/metrics` and `/openapi.json`.
    routes: Router = Some(routes),

    /// Serves `/metrics` and `/admin` there and not where players come, with `/health` and `/ready` at both; none by default. On a loopback address it is
    /// without TLS, elsewhere with the certificate, if there is one.
    operator_listen: SocketAddr = Some(operator_listen),

    /// Pages of these origins may use the master from a browser, such as `https://game.example`; `*` for all, none by default: a page that the
    /// master serves itself needs none. There are no cookies, so a foreign page can do nothing in a player's name.
    origins: &[&str] = origins.iter().map(|&origin| origin.to_owned()).collect(),

    /// A PEM file of certificate authorities: the connection to PostgreSQL is then encrypted, and the server's certificate checked; none by default,
    /// for a database on the same private network. SQLite needs none.
    database_ca: impl Into<PathBuf> = Some(database_ca.into()),

    /// A NATS server such as `nats://127.0.0.1:4222` or `tls://USER:PASSWORD@HOST:PORT` over which masters that share a database talk to each other (feature `nats`); none by
    /// default: one master alone.
    nats: &str = Some(nats.to_owned()),

    /// A PEM file of certificate authorities: the connection to the NATS server is then encrypted, and the server's certificate checked; none by
    /// default. With a URL that begins with `tls://` and without this, the system's authorities are trusted.
    nats_ca: impl Into<PathBuf> = Some(nats_ca.into()),

    /// Hosts and ports of other masters with the same database, or of a load balancer in front of all of them; none by default. Game servers of this
    /// master turn to them when it is gone, so that their matches go on and count.
    other_masters: &[&str] = other_masters.iter().map(|&master| master.to_owned()).collect(),
}
