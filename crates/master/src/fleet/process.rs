//! Game servers as child processes of the master: a warm pool, ports from 8888 up, at most 20 matches.
//!
//! A child outlives its master: it has a process group of its own, and when the master is back, it connects again and is adopted with
//! its port. Its credential and address come in the environment, which other users of the machine cannot read, and never on the command line.

mod table;

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use muse_master_client::ServerId;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};

use super::{Allocation, Counts, Fleet};
use crate::bus::{Bus, Note};
use crate::clock;
use crate::director::{NoServer, Placement};
use crate::hosts::ServerStanding;
use crate::hub::{Hub, lock};
use crate::operators::ServerLine;
use crate::ports::Ports;
use crate::secrets::Keys;
use crate::store::Store;
use table::Table;

/// Options of a [`ProcessFleet`], as the master's have them.
#[derive(Clone, Debug)]
pub(crate) struct ProcessConfig {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// The addresses of masters that servers connect to.
    pub(crate) masters: String,
    /// The address at which players reach the servers.
    pub(crate) host: String,
    /// The certificate chain and the key that the master serves, for the servers' ports for browsers.
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// Servers that wait for a match.
    pub(crate) warm: usize,
    /// Matches at once.
    pub(crate) matches_max: usize,
    /// The first port; there are as many as matches and warm servers.
    pub(crate) first_port: u16,
    /// A folder for what the servers write, one file each, the newest 200 of them. A file and not a pipe, because servers outlive their
    /// master.
    pub(crate) logs: Option<PathBuf>,
}

/// Child processes.
#[derive(Clone)]
pub struct ProcessFleet {
    inner: Arc<Inner>,
}

struct Inner {
    config: ProcessConfig,
    keys: Arc<Keys>,
    hub: Arc<Hub>,
    bus: Arc<dyn Bus>,
    store: Arc<dyn Store>,
    table: Mutex<Table>,
    changed: Notify,
}

impl ProcessFleet {
    /// A fleet without servers; [`start`](Self::start) fills the warm pool.
    pub(crate) fn new(
        config: ProcessConfig,
        keys: Arc<Keys>,
        hub: Arc<Hub>,
        bus: Arc<dyn Bus>,
        store: Arc<dyn Store>,
    ) -> Self {
        let ports = config
            .matches_max
            .saturating_add(config.warm)
            .saturating_add(PORTS_SPARE);
        let ports = Ports::new(config.first_port, u16::try_from(ports).unwrap_or(u16::MAX));
        let table = Mutex::new(Table::new(ports, config.matches_max));
        Self {
            inner: Arc::new(Inner {
                config,
                keys,
                hub,
                bus,
                store,
                table,
                changed: Notify::new(),
            }),
        }
    }

    /// Starts servers until the warm pool is full.
    pub fn start(&self) {
        let is_short = || self.table().is_short(self.inner.config.warm);
        while is_short() && self.start_one().is_ok() {}
    }

    /// Starts one server, if there is room and it can be started.
    fn start_one(&self) -> Result<(), NoServer> {
        let mut table = self.table();
        let limit = self
            .inner
            .config
            .matches_max
            .saturating_add(self.inner.config.warm);
        if table.len() >= limit {
            return Err(NoServer::Full);
        }
        let Some(port) = free_port(table.ports_mut()) else {
            tracing::warn!("no port is free for another game server");
            // Ports come back from our own servers, not from strangers and not from servers that crash as soon as they start.
            return Err(match table.len() {
                0 => NoServer::Failed,
                _ => NoServer::Full,
            });
        };
        let server = random_id().map_err(|_| NoServer::Failed)?;
        let child = match self.spawn(server, port) {
            Ok(child) => child,
            Err(error) => {
                table.ports_mut().give_back(port);
                tracing::error!(%error, "cannot start a game server");
                return Err(NoServer::Failed);
            }
        };
        let (end, ended) = mpsc::channel(1);
        table.insert(server, port, end);
        drop(table);
        let fleet = self.clone();
        tokio::spawn(async move { fleet.watch(server, child, ended).await });
        Ok(())
    }

    fn spawn(&self, server: ServerId, port: u16) -> std::io::Result<Child> {
        let config = &self.inner.config;
        let (program, arguments) = config
            .command
            .split_first()
            .ok_or_else(|| std::io::Error::other("the command is empty"))?;
        let output = |file: &File| file.try_clone().map(Stdio::from);
        let (out, err) = match self.log(server) {
            Some(path) => {
                let file = create_log(&path)?;
                (output(&file)?, output(&file)?)
            }
            None => (Stdio::null(), Stdio::inherit()),
        };
        let mut command = Command::new(program);
        for own in MASTERS_OWN {
            command.env_remove(own);
        }
        if let Some((chain, key)) = &config.certificate {
            command.env("MUSE_SERVER_CERT", chain);
            command.env("MUSE_SERVER_CERT_KEY", key);
        }
        command
            .args(arguments)
            .env("MUSE_MASTER", &config.masters)
            .env(
                "MUSE_SERVER_CREDENTIAL",
                self.inner.keys.server(server, clock::now()),
            )
            .env("MUSE_SERVER_ADDRESS", format!("{}:{port}", config.host))
            .env("MUSE_SERVER_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
    }

    /// Waits for the end of a child, or ends it.
    async fn watch(self, server: ServerId, mut child: Child, mut ended: mpsc::Receiver<()>) {
        let limit = tokio::time::sleep(START_MAX);
        tokio::pin!(limit);
        loop {
            tokio::select! {
                _ = child.wait() => break,
                _ = ended.recv() => {
                    // It has been told to end; a little later it is ended.
                    let _ = tokio::time::timeout(END_GRACE, child.wait()).await;
                    let _ = child.kill().await;
                    break;
                }
                () = &mut limit, if !limit.is_elapsed() => match self.is_at_any_master(server).await {
                    Some(true) => {}
                    Some(false) => {
                        tracing::warn!(%server, "a game server did not connect in time");
                        let _ = child.kill().await;
                        break;
                    }
                    None => limit.as_mut().reset(tokio::time::Instant::now() + START_MAX),
                },
            }
        }
        self.remove(server);
    }

    /// True if a child has connected, to this master or to another one, where it may have a match. None if that cannot be known now.
    async fn is_at_any_master(&self, server: ServerId) -> Option<bool> {
        if !self.table().is_starting(server) {
            return Some(true);
        }
        match self.inner.store.server_standing(server).await {
            Ok(ServerStanding::Known) => {
                tracing::info!(%server, "a game server has connected to another master");
                self.table().handle_elsewhere(server);
                Some(true)
            }
            Ok(_) => Some(false),
            Err(error) => {
                tracing::warn!(%server, %error, "it is not known whether a game server has connected");
                None
            }
        }
    }

    fn remove(&self, server: ServerId) {
        if self.table().remove(clock::now(), server) {
            self.inner.bus.publish(Note::ServerGone(server));
            self.inner.changed.notify_waiters();
            self.start();
        }
    }

    /// Forgets an adopted server that did not come back. Nobody is told that it is gone: it may be connected to another master, where its match goes
    /// on, and if it is not, the leader notices its silence. If it still holds its port, that is found when the port is taken.
    fn forget(&self, server: ServerId) {
        if self.table().remove(clock::now(), server) {
            self.inner.changed.notify_waiters();
            self.start();
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.inner.table)
    }

    fn is_here(&self, server: ServerId) -> bool {
        self.inner.hub.has_server(server)
    }

    /// A ready server, which is busy from now on.
    fn take_ready(&self) -> Option<ServerId> {
        self.table().take_ready(|server| self.is_here(server))
    }

    async fn find(self) -> Result<ServerId, NoServer> {
        loop {
            let changed = self.inner.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(server) = self.take_ready() {
                self.start();
                return Ok(server);
            }
            if self.table().is_full() {
                return Err(NoServer::Full);
            }
            if self.counts().starting == 0 {
                self.start_one()?;
            }
            let changed = tokio::time::timeout(START_MAX, changed).await;
            changed.map_err(|_| NoServer::Failed)?;
        }
    }
}

impl Fleet for ProcessFleet {
    fn allocate(&self, _placement: &Placement) -> Allocation {
        Box::pin(self.clone().find())
    }

    fn release(&self, server: ServerId) {
        use muse_master_client::messages::ToServer;
        self.inner
            .bus
            .publish(Note::ToServer(server, ToServer::End));
        if let Some(end) = self.table().end(server) {
            // Full means that it is being ended already.
            let _ = end.try_send(());
        }
    }

    fn handle_linked(&self, server: ServerId, address: &str, busy: bool) {
        let is_needed = self.table().handle_linked(server, address, busy);
        if !is_needed {
            self.release(server);
        }
        self.inner.changed.notify_waiters();
    }

    fn handle_unlinked(&self, server: ServerId) {
        if !self.table().is_adopted(server) {
            return;
        }
        // There is no child to wait for.
        let fleet = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ADOPTED_SILENCE).await;
            if !fleet.is_here(server) {
                fleet.forget(server);
            }
        });
    }

    fn drain(&self) {
        let idle = self.table().drain(|server| self.is_here(server));
        for server in idle {
            self.release(server);
        }
    }

    fn room(&self) -> usize {
        self.table().room()
    }

    fn counts(&self) -> Counts {
        self.table().counts()
    }

    fn servers(&self) -> Vec<ServerLine> {
        self.table().lines(|server| self.is_here(server))
    }

    fn log(&self, server: ServerId) -> Option<PathBuf> {
        let folder = self.inner.config.logs.as_ref()?;
        Some(folder.join(format!("server-{server}.log")))
    }
}

/// The file for a server's output, and room for it.
fn create_log(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
        let logs = std::fs::read_dir(folder)?.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let ours = name
                .to_str()
                .is_some_and(|name| name.starts_with("server-"));
            let changed = entry.metadata().and_then(|data| data.modified()).ok()?;
            ours.then(|| (changed, entry.path()))
        });
        let mut logs: Vec<_> = logs.collect();
        logs.sort_unstable();
        let old = logs.len().saturating_sub(LOGS_KEPT - 1);
        for (_, path) in &logs[..old] {
            let _ = std::fs::remove_file(path);
        }
    }
    File::options().create(true).append(true).open(path)
}

/// A port that nobody has bound, not even a stranger.
fn free_port(ports: &mut Ports) -> Option<u16> {
    loop {
        let port = ports.take(clock::now())?;
        if UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return Some(port);
        }
        tracing::warn!(port, "the port belongs to another program");
        ports.give_back_strange(clock::now(), port);
    }
}

fn random_id() -> Result<ServerId, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(ServerId((u64::from_le_bytes(bytes) >> 11).max(1)))
}

/// Variables with secrets of the master, which a game server that was taken over must not find in its environment.
const MASTERS_OWN: [&str; 5] = [
    "MUSE_MASTER_DATABASE",
    "MUSE_FLEET_KEY",
    "MUSE_MASTER_NATS",
    "MUSE_OPERATOR_PASSWORD",
    "MUSE_SECRET_KEY",
];
/// Time for a child to connect.
const START_MAX: Duration = Duration::from_secs(10);
/// Time for a child that was told to end: to tell its players, for which Biobot's server takes up to three seconds, and to write its records.
const END_GRACE: Duration = Duration::from_secs(5);
/// Time for which an adopted server may be without a connection.
const ADOPTED_SILENCE: Duration = Duration::from_secs(10);
/// Files of servers' output that are kept.
const LOGS_KEPT: usize = 200;
/// Ports beyond what is needed, for those that strangers hold.
const PORTS_SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::LocalBus;
    use crate::store::SqlStore;

    const SERVER: ServerId = ServerId(7);

    fn fleet(folder: &Path, bus: Arc<LocalBus>) -> ProcessFleet {
        let config = ProcessConfig {
            command: Vec::new(),
            masters: String::new(),
            host: "127.0.0.1".to_owned(),
            certificate: None,
            warm: 0,
            matches_max: 1,
            first_port: 9_000,
            logs: None,
        };
        let hub = Arc::new(Hub::new(1));
        let keys = Arc::new(Keys::new("a secret"));
        let store = SqlStore::sqlite(&folder.join("muse.db")).expect("opened");
        ProcessFleet::new(config, keys, hub, bus, Arc::new(store))
    }

    #[test]
    fn an_adopted_server_that_moved_to_another_master_is_forgotten_and_not_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let bus = Arc::new(LocalBus::default());
        let mut notes = bus.subscribe();
        let fleet = fleet(folder.path(), bus);
        fleet.handle_linked(SERVER, "127.0.0.1:9000", true);
        assert_eq!((fleet.counts().busy, fleet.room()), (1, 0));
        fleet.forget(SERVER);
        assert_eq!((fleet.counts().busy, fleet.room()), (0, 1));
        // A note that it is gone would end its match and void its credential.
        assert!(notes.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_child_that_connected_to_another_master_is_not_late() {
        let folder = tempfile::tempdir().expect("a folder");
        let fleet = fleet(folder.path(), Arc::default());
        let (end, _ended) = mpsc::channel(1);
        fleet.table().insert(SERVER, 9_000, end);
        assert_eq!(fleet.is_at_any_master(SERVER).await, Some(false));
        let address = "127.0.0.1:9000".to_owned();
        let store = &fleet.inner.store;
        let registered = store.register_server(SERVER, address, "key".to_owned(), clock::now());
        registered.await.expect("stored");
        assert_eq!(fleet.is_at_any_master(SERVER).await, Some(true));
        let counts = fleet.counts();
        assert_eq!((counts.starting, counts.ready), (0, 1));
        // Its match is not this master's to give.
        assert_eq!(fleet.take_ready(), None);
    }
}
