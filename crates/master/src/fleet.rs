//! Game servers on demand (OA-5): something that finds a server for a match and ends those that are not needed.

pub mod process;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use muse_master_client::ServerId;

use crate::director::Placement;
use crate::operators::ServerLine;

/// A server, or none if there is no room.
pub type Allocation = Pin<Box<dyn Future<Output = Option<ServerId>> + Send>>;

/// A fleet of game servers.
pub trait Fleet: Send + Sync {
    /// A server for this match.
    fn allocate(&self, placement: &Placement) -> Allocation;
    /// This server is not needed any more.
    fn release(&self, server: ServerId);
    /// A server has connected to this master and can be reached at this address.
    fn handle_linked(&self, server: ServerId, address: &str, busy: bool);
    /// Its connection is gone; it may come back.
    fn handle_unlinked(&self, server: ServerId);
    /// No more servers in advance; those without a match end.
    fn drain(&self);
    /// Servers that are starting, ready and busy.
    fn counts(&self) -> Counts;
    /// Every server, in order of their ports.
    fn servers(&self) -> Vec<ServerLine>;
    /// Where a server's output is kept, if it is.
    fn log(&self, server: ServerId) -> Option<PathBuf>;
}

/// How many servers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Started, not yet connected.
    pub starting: usize,
    /// Waiting for a match.
    pub ready: usize,
    /// With a match.
    pub busy: usize,
}
