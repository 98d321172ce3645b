//! Game servers of a Kubernetes cluster, through Agones. `docs/decisions/0013-agones.md` says why so.
//!
//! Agones keeps a fleet of game servers warm. A match gets one by the allocator's REST interface, with the match's number as an annotation,
//! so that a server whose master died before it wrote that down is found and ended. What became of servers is told by a watch of the cluster's
//! `GameServer` objects; what goes on in a match is told by the servers themselves, which connect to a master as everywhere.
//!
//! A game server has no secret in its object: its pod holds the fleet's key, from a Kubernetes secret, and learns its name and unique id from its
//! sidecar. It exchanges the three for a credential of its own ([`Fleet::enrol`]), if the watch knows a server of this name and id. Its number follows
//! from its name, so that every master knows it without asking another.
//!
//! A match goes to the region with the lowest measured latency to its players that has a free server: the label [`REGION`] of the fleet's
//! template names it.

mod allocator;
mod servers;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Preconditions};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use muse_master_client::messages::ToServer;
use muse_master_client::{MatchId, ServerId};
use ring::digest;
use thiserror::Error;

use super::{Allocation, Counts, Fleet};
use crate::bus::{Bus, Note};
use crate::director::{NoServer, Placement};
use crate::hub::{Hub, lock};
use crate::operators::ServerLine;
use crate::secrets::hashed;
use allocator::{Allocator, Expression, Request, Selector, Verdict};
use servers::{Change, Servers, Standing};

/// Options of an [`AgonesFleet`]: where it finds its servers.
///
/// ```
/// use muse_master::fleet::agones::AgonesConfig;
/// let config = AgonesConfig::new("https://agones-allocator.agones-system", "biobot", "the fleet's key")
///     .namespace("muse")
///     .matches_per_host(20);
/// assert!(!format!("{config:?}").contains("the fleet's key"));
/// ```
#[derive(Clone)]
pub struct AgonesConfig {
    allocator: String,
    game: String,
    key: String,
    namespace: String,
    identity: Option<(PathBuf, PathBuf)>,
    authority: Option<PathBuf>,
    kubernetes: Option<String>,
    matches_per_host: usize,
    end_grace: Duration,
}

impl AgonesConfig {
    /// Servers of the fleets with the label `muse.dev/game: {game}`, allocated by the service at the address `allocator`. `key` is what game
    /// servers show to enrol.
    pub fn new(allocator: &str, game: &str, key: &str) -> Self {
        Self {
            allocator: allocator.trim_end_matches('/').to_owned(),
            game: game.to_owned(),
            key: key.to_owned(),
            namespace: "default".to_owned(),
            identity: None,
            authority: None,
            kubernetes: None,
            matches_per_host: 20,
            end_grace: Duration::from_secs(10),
        }
    }

    /// The namespace of the fleet, `default` by default.
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Certificate and key as PEM files, which the allocator asks for unless it was installed without; none by default.
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }
}

muse_wire::setters! { AgonesConfig:
    /// The PEM file of the authority that signed the allocator's certificate; none by default, and then no certificate is accepted.
    authority: impl Into<PathBuf> = Some(authority.into()),

    /// Address of the cluster's interface, for tests and for clusters without authentication; by default that of the pod or of `KUBECONFIG`.
    kubernetes: &str = Some(kubernetes.to_owned()),

    /// Matches at once on one machine of the cluster, 20 by default. Servers on a full one are left out of the choice, by the label that they
    /// have given themselves ([`NODE`]).
    matches_per_host: usize = matches_per_host.max(1),

    /// Time for a server that was told to end, 10 seconds by default; then it is deleted.
    end_grace: Duration,
}

impl fmt::Debug for AgonesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgonesConfig")
            .field("allocator", &self.allocator)
            .field("game", &self.game)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// The reason why a fleet cannot be reached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgonesError {
    /// A certificate or key is no use.
    #[error("{file}: {why}")]
    Tls {
        /// The file.
        file: String,
        /// The cause.
        why: String,
    },
    /// An address is none.
    #[error("not an address: {0}")]
    Address(String),
    /// The cluster's interface cannot be used.
    #[error("the cluster: {0}")]
    Cluster(String),
    /// Without a key anybody could be a game server.
    #[error("the fleet's key has at least {KEY_LEN_MIN} characters")]
    Key,
}

/// Servers of a cluster.
#[derive(Clone)]
pub struct AgonesFleet {
    inner: Arc<Inner>,
}

struct Inner {
    config: AgonesConfig,
    protocol: String,
    allocator: Allocator,
    cluster: Api<DynamicObject>,
    hub: Arc<Hub>,
    bus: Arc<dyn Bus>,
    servers: Mutex<Servers>,
}

impl AgonesFleet {
    /// Connects to the cluster and begins to watch it; must be called within a tokio runtime. Only servers that speak `protocol_id` are
    /// allocated, so that a fleet can be updated while matches go on.
    pub async fn start(
        config: AgonesConfig,
        protocol_id: u64,
        hub: Arc<Hub>,
        bus: Arc<dyn Bus>,
    ) -> Result<Self, AgonesError> {
        if config.key.len() < KEY_LEN_MIN {
            return Err(AgonesError::Key);
        }
        let allocator = Allocator::new(
            &config.allocator,
            config.identity.as_ref(),
            config.authority.as_deref(),
        )?;
        let client = client(&config).await?;
        let kind = GroupVersionKind::gvk("agones.dev", "v1", "GameServer");
        let resource = ApiResource::from_gvk_with_plural(&kind, "gameservers");
        let cluster = Api::namespaced_with(client, &config.namespace, &resource);
        let fleet = Self {
            inner: Arc::new(Inner {
                config,
                protocol: protocol_label(protocol_id),
                allocator,
                cluster,
                hub,
                bus,
                servers: Mutex::new(Servers::default()),
            }),
        };
        tokio::spawn(fleet.clone().watch());
        Ok(fleet)
    }

    /// Follows the cluster for ever.
    async fn watch(self) {
        loop {
            self.watch_until_expired().await;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Follows the cluster. The watcher resumes by itself when its connection is lost, and starts over when an event in its stream says that its version
    /// is too old; if it is told so before there is a stream, it would ask for the same version for ever, so this returns.
    async fn watch_until_expired(&self) {
        let config = watcher::Config::default()
            .labels(&format!("{GAME}={}", self.inner.config.game))
            .page_size(PAGE);
        let events = watcher(self.inner.cluster.clone(), config).default_backoff();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.handle_event(event),
                Err(
                    watcher::Error::WatchStartFailed(kube::Error::Api(status))
                    | watcher::Error::WatchFailed(kube::Error::Api(status)),
                ) if status.code == 410 => return,
                Err(error) => tracing::warn!(%error, "the cluster is not watched"),
            }
        }
    }

    fn handle_event(&self, event: watcher::Event<DynamicObject>) {
        let mut servers = lock(&self.inner.servers);
        let change = match event {
            watcher::Event::Init => Change::Begin,
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                Change::Seen(object)
            }
            watcher::Event::Delete(object) => Change::Gone(object),
            watcher::Event::InitDone => Change::Complete,
        };
        let gone = servers.apply(change);
        drop(servers);
        for server in gone {
            self.inner.bus.publish(Note::ServerGone(server));
        }
    }

    /// Asks the allocator; again while others are in the way or it is not there, and not if there is no free server.
    async fn find(self, request: Request) -> Result<ServerId, NoServer> {
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(AGAIN * attempt).await;
            }
            match self.inner.allocator.allocate(&request).await {
                Ok(Verdict::Allocated(name)) => return Ok(server_id(&name)),
                Ok(Verdict::Full) => return Err(NoServer::Full),
                Ok(Verdict::Again(why)) => tracing::info!(why, "not allocated, again"),
                Err(error) => tracing::warn!(%error, "the allocator does not answer"),
            }
        }
        Err(NoServer::Failed)
    }

    fn request(&self, placement: &Placement) -> Request {
        let full = lock(&self.inner.servers).full_hosts(self.inner.config.matches_per_host);
        let labels = |region: Option<&String>| {
            let mut labels = BTreeMap::from([
                (GAME.to_owned(), self.inner.config.game.clone()),
                (PROTOCOL.to_owned(), self.inner.protocol.clone()),
            ]);
            labels.extend(region.map(|region| (REGION.to_owned(), region.clone())));
            labels
        };
        let selector = |region: Option<&String>| Selector {
            match_labels: labels(region),
            match_expressions: Expression::not_in(NODE, &full).into_iter().collect(),
            ..Selector::default()
        };
        // In order: the best region first, and anywhere at last.
        let regions = placement.regions.iter().map(Some).chain([None]);
        Request::new(
            &self.inner.config.namespace,
            regions.map(selector).collect(),
            BTreeMap::from([(MATCH.to_owned(), placement.match_id.to_string())]),
        )
    }

    /// Deletes a server that was told to end and did not. Its unique id is named, so that nothing else of the same name is meant.
    async fn delete(self, server: ServerId) {
        tokio::time::sleep(self.inner.config.end_grace).await;
        let Some((name, uid)) = lock(&self.inner.servers).named(server) else {
            return;
        };
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: Some(uid),
            resource_version: None,
        });
        match self.inner.cluster.delete(&name, &parameters).await {
            Ok(_) => tracing::warn!(%server, name, "a game server did not end and was deleted"),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => {
                tracing::warn!(%server, name, %error, "a game server cannot be deleted");
                lock(&self.inner.servers).keep(server);
            }
        }
    }
}

impl Fleet for AgonesFleet {
    fn allocate(&self, placement: &Placement) -> Allocation {
        Box::pin(self.clone().find(self.request(placement)))
    }

    fn release(&self, server: ServerId) {
        self.inner
            .bus
            .publish(Note::ToServer(server, ToServer::End));
        if lock(&self.inner.servers).release(server) {
            tokio::spawn(self.clone().delete(server));
        }
    }

    // The cluster decides whether a server exists.
    fn handle_linked(&self, _: ServerId, _: &str, _: bool) {}

    fn handle_unlinked(&self, _: ServerId) {}

    // Warm servers belong to Agones, and to the other masters.
    fn drain(&self) {}

    fn counts(&self) -> Counts {
        lock(&self.inner.servers).counts()
    }

    fn servers(&self) -> Vec<ServerLine> {
        let servers = lock(&self.inner.servers);
        let line = |(server, found): (ServerId, &servers::Found)| ServerLine {
            server,
            port: found.port,
            standing: match found.standing {
                Standing::Starting => "starting",
                Standing::Ready => "ready",
                Standing::Busy => "busy",
            }
            .to_owned(),
            connected: self.inner.hub.has_server(server),
            adopted: false,
        };
        let mut lines: Vec<ServerLine> = servers.iter().map(line).collect();
        lines.sort_by_key(|line| line.port);
        lines
    }

    fn log(&self, _: ServerId) -> Option<PathBuf> {
        None
    }

    fn enrol(&self, key: &str, name: &str, uid: &str) -> Option<ServerId> {
        let server = server_id(name);
        let found = lock(&self.inner.servers).named(server)?;
        // Hashes, so that the time of the comparison says nothing about the key and the id, which other pods of the fleet cannot read.
        let is_right = hashed(key) == hashed(&self.inner.config.key)
            && found.0 == name
            && hashed(uid) == hashed(&found.1);
        is_right.then_some(server)
    }

    fn hosts(&self) -> Vec<(ServerId, MatchId)> {
        lock(&self.inner.servers).hosts()
    }
}

async fn client(config: &AgonesConfig) -> Result<Client, AgonesError> {
    let failed = |error: &dyn fmt::Display| AgonesError::Cluster(error.to_string());
    let found = match &config.kubernetes {
        Some(address) => {
            let address = address
                .parse()
                .map_err(|_| AgonesError::Address(address.clone()))?;
            kube::Config::new(address)
        }
        None => kube::Config::infer()
            .await
            .map_err(|error| failed(&error))?,
    };
    Client::try_from(found).map_err(|error| failed(&error))
}

/// The number of a server, which follows from its name: every master finds the same.
pub fn server_id(name: &str) -> ServerId {
    let hash = digest::digest(&digest::SHA256, name.as_bytes());
    let bytes = hash.as_ref().first_chunk().expect("32 bytes");
    ServerId((u64::from_le_bytes(*bytes) >> 11).max(1))
}

/// A protocol as the value of the label [`PROTOCOL`].
pub fn protocol_label(protocol_id: u64) -> String {
    format!("{protocol_id:016x}")
}

/// Label of a fleet's template: which game its servers host.
pub const GAME: &str = "muse.dev/game";
/// Label of a fleet's template: the region in which its servers are, as players name it when they measure.
pub const REGION: &str = "muse.dev/region";
/// Annotation of an allocated server: the number of its match.
pub const MATCH: &str = "muse.dev/match";
/// Label that a server gives itself: the protocol it speaks. Agones puts `agones.dev/sdk-` in front of what servers say themselves.
pub const PROTOCOL: &str = "agones.dev/sdk-muse-protocol";
/// Label that a server gives itself: the machine it is on.
pub const NODE: &str = "agones.dev/sdk-muse-node";
/// Shortest key of a fleet.
const KEY_LEN_MIN: usize = 16;
/// Objects in one answer of the cluster.
const PAGE: u32 = 500;
/// Number of times that the allocator is asked for one match, and the pause before the first repetition; each further one is longer by it. All
/// together stays within the time that a match has to be placed.
const ATTEMPTS: u32 = 4;
const AGAIN: Duration = Duration::from_millis(200);
