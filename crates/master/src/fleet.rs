//! Game servers on demand: something that finds a server for a match and ends those that are not needed.

#[cfg(feature = "agones")]
pub mod agones;
pub mod process;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use muse_master_client::{MatchId, ServerId};

use crate::bus::Bus;
use crate::config::MasterConfig;
use crate::director::{NoServer, Placement};
use crate::hub::Hub;
use crate::operators::ServerLine;
use crate::secrets::Keys;
use crate::server::StartError;
use crate::store::Store;
use process::{ProcessConfig, ProcessFleet};

/// A server, or why there is none.
pub type Allocation = Pin<Box<dyn Future<Output = Result<ServerId, NoServer>> + Send>>;

/// A fleet of game servers.
pub trait Fleet: Send + Sync {
    /// A server for this match.
    fn allocate(&self, placement: &Placement) -> Allocation;
    /// This server is not needed any more.
    fn release(&self, server: ServerId);
    /// A server has connected to this master and can be reached at this address, or has got a match since.
    fn handle_linked(&self, server: ServerId, address: &str, busy: bool);
    /// Its connection is gone; it may come back.
    fn handle_unlinked(&self, server: ServerId);
    /// No more servers in advance; those without a match end.
    fn drain(&self);
    /// Returns how many more matches there is room for; any number if only asking tells.
    fn room(&self) -> usize {
        usize::MAX
    }
    /// Servers that are starting, ready and busy.
    fn counts(&self) -> Counts;
    /// Every server, in order of their ports.
    fn servers(&self) -> Vec<ServerLine>;
    /// Returns the file with a server's output, if it is kept.
    fn log(&self, server: ServerId) -> Option<PathBuf>;
    /// The number of a server that this fleet did not start itself: it shows the fleet's key, and says its name and the unique id that the cluster gave
    /// it. None if the key is wrong, if there is no such server, or if servers do not come by themselves.
    fn enrol(&self, _key: &str, _name: &str, _uid: &str) -> Option<ServerId> {
        None
    }
    /// Servers that were given to a match according to the fleet itself, for a leader that looks for those that no match knows.
    fn hosts(&self) -> Vec<(ServerId, MatchId)> {
        Vec::new()
    }
}

/// Numbers of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Started, not yet connected.
    pub starting: usize,
    /// Waiting for a match.
    pub ready: usize,
    /// With a match.
    pub busy: usize,
}

/// The fleet that a master is told to use; child processes connect to it at `own`.
pub(crate) async fn open(
    config: &MasterConfig,
    keys: &Arc<Keys>,
    hub: &Arc<Hub>,
    bus: &Arc<dyn Bus>,
    store: &Arc<dyn Store>,
    own: SocketAddr,
) -> Result<Arc<dyn Fleet>, StartError> {
    let (hub, bus) = (Arc::clone(hub), Arc::clone(bus));
    #[cfg(feature = "agones")]
    if let Some(agones) = &config.agones {
        let fleet = agones::AgonesFleet::start(agones.clone(), config.protocol_id, hub, bus).await;
        let fleet = fleet.map_err(|error| StartError::Fleet(error.to_string()))?;
        return Ok(Arc::new(fleet));
    }
    let mut masters = format!("ws://{own}");
    for other in &config.other_masters {
        masters.push_str(&format!(",ws://{other}"));
    }
    let processes = ProcessConfig {
        command: config.game.clone(),
        masters,
        host: config.game_host.clone(),
        certificate: config.tls.clone(),
        warm: config.warm,
        matches_max: config.matches_max,
        first_port: config.first_port,
        logs: config.logs.clone(),
    };
    let fleet = ProcessFleet::new(processes, Arc::clone(keys), hub, bus, Arc::clone(store));
    if !config.game.is_empty() {
        let fleet = fleet.clone();
        tokio::spawn(async move {
            // Servers of the last master connect first, so that their ports are known.
            tokio::time::sleep(ADOPT_FIRST).await;
            fleet.start();
        });
    }
    Ok(Arc::new(fleet))
}

/// Head start of servers that were running when the master came.
const ADOPT_FIRST: Duration = Duration::from_millis(1_500);
