//! Every call that Muse makes to Agones and to Kubernetes, against a server that speaks as they do.
//!
//! `cluster.rs` and `sidecar.rs` are that server: its messages are those of the `agones` crate and of `definition.rs`.
//! `scripts/kubernetes-check.sh` runs the calls to Kubernetes against a real one. The game servers are the shipped binary, and so are the players.

mod allocation;
mod cluster;
mod definition;
mod life;
mod real;
mod sidecar;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use muse_master::bus::{Bus, LocalBus};
use muse_master::director::{NoServer, Placement};
use muse_master::fleet::agones::{AgonesConfig, AgonesFleet, protocol_label};
use muse_master::fleet::{Counts, Fleet};
use muse_master::hub::Hub;
use muse_master_client::{MatchId, Preferences, ServerId};

use cluster::Cluster;

/// A fleet that watches a cluster.
struct Watching {
    cluster: Cluster,
    fleet: AgonesFleet,
    bus: Arc<dyn Bus>,
}

impl Watching {
    async fn start(config: impl FnOnce(AgonesConfig) -> AgonesConfig) -> Self {
        let cluster = Cluster::start(Duration::from_millis(10)).await;
        Self::start_at(cluster, config).await
    }

    async fn start_at(cluster: Cluster, config: impl FnOnce(AgonesConfig) -> AgonesConfig) -> Self {
        let agones = AgonesConfig::new(&cluster.url(), "biobot", KEY)
            .namespace("muse")
            .kubernetes(&cluster.url());
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        let hub = Arc::new(Hub::new(1));
        let fleet = AgonesFleet::start(config(agones), PROTOCOL, hub, Arc::clone(&bus)).await;
        Self {
            cluster,
            fleet: fleet.expect("a fleet"),
            bus,
        }
    }

    /// A free server that speaks our protocol.
    fn add_ready(&self, name: &str, node: &str, region: &str) {
        let protocol = protocol_label(PROTOCOL);
        let labels = [
            ("agones.dev/sdk-muse-protocol", protocol.as_str()),
            ("agones.dev/sdk-muse-node", node),
            ("muse.dev/region", region),
        ];
        self.cluster.add(name, "Ready", node, &labels);
    }

    async fn allocate(&self, match_id: u64, regions: &[&str]) -> Result<ServerId, NoServer> {
        self.fleet.allocate(&placement(match_id, regions)).await
    }

    async fn counts(&self, starting: usize, ready: usize, busy: usize) {
        let wanted = Counts {
            starting,
            ready,
            busy,
        };
        until("the fleet's counts", || self.fleet.counts() == wanted).await;
    }
}

fn placement(match_id: u64, regions: &[&str]) -> Placement {
    Placement {
        match_id: MatchId(match_id),
        regions: regions.iter().map(|&region| region.to_owned()).collect(),
        preferences: Preferences::default(),
        players: Vec::new(),
        bots: 0,
    }
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "not in time: {what}");
}

const KEY: &str = "the key of the fleet";
const PROTOCOL: u64 = 0x4d55_5345_0000_0001;
const PATIENCE: Duration = Duration::from_secs(30);
