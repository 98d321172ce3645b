//! Game servers as child processes of the master: a warm pool, ports from 8888 up, at most 20 matches.
//!
//! A child outlives its master: it has a process group of its own, and when the master is back, it connects again and is adopted with
//! its port. Its credential and address come in the environment, which other users of the machine cannot read, and never on the command line.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muse_master_client::ServerId;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};

use super::{Allocation, Counts, Fleet};
use crate::bus::{Bus, Note};
use crate::clock;
use crate::director::{NoServer, Placement};
use crate::hub::{Hub, lock};
use crate::operators::ServerLine;
use crate::ports::Ports;
use crate::secrets::Keys;

/// Options of a [`ProcessFleet`], as the master's have them.
#[derive(Clone, Debug)]
pub(crate) struct ProcessConfig {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// The addresses of masters that servers connect to.
    pub(crate) masters: String,
    /// The address at which players reach the servers.
    pub(crate) host: String,
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
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    ports: Ports,
    processes: BTreeMap<ServerId, Process>,
    draining: bool,
}

struct Process {
    port: u16,
    standing: Standing,
    /// Ends it; none for one that was adopted.
    end: Option<mpsc::Sender<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Starting,
    Ready,
    Busy,
}

impl ProcessFleet {
    /// A fleet without servers; [`start`](Self::start) fills the warm pool.
    pub(crate) fn new(
        config: ProcessConfig,
        keys: Arc<Keys>,
        hub: Arc<Hub>,
        bus: Arc<dyn Bus>,
    ) -> Self {
        let ports = config
            .matches_max
            .saturating_add(config.warm)
            .saturating_add(PORTS_SPARE);
        let ports = Ports::new(config.first_port, u16::try_from(ports).unwrap_or(u16::MAX));
        Self {
            inner: Arc::new(Inner {
                config,
                keys,
                hub,
                bus,
                state: Mutex::new(State {
                    ports,
                    processes: BTreeMap::new(),
                    draining: false,
                }),
                changed: Notify::new(),
            }),
        }
    }

    /// Starts servers until the warm pool is full.
    pub fn start(&self) {
        loop {
            let short = {
                let state = lock(&self.inner.state);
                let counts = state.counts();
                let waiting = counts.starting + counts.ready;
                waiting < self.inner.config.warm && !state.draining
            };
            if !short || self.start_one().is_err() {
                break;
            }
        }
    }

    /// Starts one server, if there is room and it can be started.
    fn start_one(&self) -> Result<(), NoServer> {
        let mut state = lock(&self.inner.state);
        let limit = self
            .inner
            .config
            .matches_max
            .saturating_add(self.inner.config.warm);
        if state.processes.len() >= limit {
            return Err(NoServer::Full);
        }
        let Some(port) = free_port(&mut state.ports) else {
            tracing::warn!("no port is free for another game server");
            // Ports come back from our own servers, not from strangers and not from servers that crash as soon as they start.
            return Err(match state.processes.is_empty() {
                true => NoServer::Failed,
                false => NoServer::Full,
            });
        };
        let server = random_id().map_err(|_| NoServer::Failed)?;
        let child = match self.spawn(server, port) {
            Ok(child) => child,
            Err(error) => {
                state.ports.give_back(port);
                tracing::error!(%error, "cannot start a game server");
                return Err(NoServer::Failed);
            }
        };
        let (end, ended) = mpsc::channel(1);
        let standing = Standing::Starting;
        let end = Some(end);
        state.processes.insert(
            server,
            Process {
                port,
                standing,
                end,
            },
        );
        drop(state);
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
                () = &mut limit, if !limit.is_elapsed() => {
                    let starting = {
                        let state = lock(&self.inner.state);
                        state.processes.get(&server).is_some_and(|p| p.standing == Standing::Starting)
                    };
                    if starting {
                        tracing::warn!(%server, "a game server did not connect in time");
                        let _ = child.kill().await;
                        break;
                    }
                }
            }
        }
        self.remove(server);
    }

    fn remove(&self, server: ServerId) {
        let mut state = lock(&self.inner.state);
        let Some(process) = state.processes.remove(&server) else {
            return;
        };
        // One that never connected may have found a stranger on its port.
        if process.standing == Standing::Starting {
            state.ports.give_back_strange(clock::now(), process.port);
        } else {
            state.ports.give_back(process.port);
        }
        drop(state);
        self.inner.bus.publish(Note::ServerGone(server));
        self.inner.changed.notify_waiters();
        self.start();
    }

    /// Forgets an adopted server that did not come back. Nobody is told that it is gone: it may be connected to another master, where its match goes
    /// on, and if it is not, the leader notices its silence. If it still holds its port, that is found when the port is taken.
    fn forget(&self, server: ServerId) {
        let mut state = lock(&self.inner.state);
        let Some(process) = state.processes.remove(&server) else {
            return;
        };
        state.ports.give_back(process.port);
        drop(state);
        self.inner.changed.notify_waiters();
        self.start();
    }

    /// A ready server, which is busy from now on.
    fn take_ready(&self) -> Option<ServerId> {
        let mut state = lock(&self.inner.state);
        let busy = state.counts().busy;
        if busy >= self.inner.config.matches_max {
            return None;
        }
        let mut processes = state.processes.iter_mut();
        // One that is not connected here has ended or is at another master, and would not hear of its match.
        let (server, process) = processes.find(|(server, process)| {
            process.standing == Standing::Ready && self.inner.hub.has_server(**server)
        })?;
        process.standing = Standing::Busy;
        Some(*server)
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
            let counts = self.counts();
            if counts.busy >= self.inner.config.matches_max {
                return Err(NoServer::Full);
            }
            if counts.starting == 0 {
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
        let state = lock(&self.inner.state);
        if let Some(end) = state
            .processes
            .get(&server)
            .and_then(|process| process.end.as_ref())
        {
            // Full means that it is being ended already.
            let _ = end.try_send(());
        }
    }

    fn handle_linked(&self, server: ServerId, address: &str, busy: bool) {
        let mut state = lock(&self.inner.state);
        let standing = if busy {
            Standing::Busy
        } else {
            Standing::Ready
        };
        match state.processes.get_mut(&server) {
            Some(process) if process.standing == Standing::Starting => process.standing = standing,
            Some(_) => {}
            None => {
                let port = address
                    .rsplit_once(':')
                    .and_then(|(_, port)| port.parse().ok());
                let Some(port) = port else { return };
                tracing::info!(%server, port, "adopted a game server");
                state.ports.adopt(port);
                let end = None;
                state.processes.insert(
                    server,
                    Process {
                        port,
                        standing,
                        end,
                    },
                );
            }
        }
        drop(state);
        self.inner.changed.notify_waiters();
    }

    fn handle_unlinked(&self, server: ServerId) {
        let adopted = {
            let state = lock(&self.inner.state);
            state
                .processes
                .get(&server)
                .is_some_and(|process| process.end.is_none())
        };
        if !adopted {
            return;
        }
        // There is no child to wait for.
        let fleet = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ADOPTED_SILENCE).await;
            if !fleet.inner.hub.has_server(server) {
                fleet.forget(server);
            }
        });
    }

    fn drain(&self) {
        let mut state = lock(&self.inner.state);
        state.draining = true;
        let idle = state
            .processes
            .iter()
            .filter(|(_, process)| process.standing != Standing::Busy);
        let idle: Vec<ServerId> = idle.map(|(server, _)| *server).collect();
        drop(state);
        for server in idle {
            self.release(server);
        }
    }

    fn room(&self) -> usize {
        let state = lock(&self.inner.state);
        let counts = state.counts();
        let servers = counts.starting + counts.ready + state.ports.free();
        let matches = self.inner.config.matches_max.saturating_sub(counts.busy);
        matches.min(servers)
    }

    fn counts(&self) -> Counts {
        lock(&self.inner.state).counts()
    }

    fn servers(&self) -> Vec<ServerLine> {
        let state = lock(&self.inner.state);
        let line = |(server, process): (&ServerId, &Process)| ServerLine {
            server: *server,
            port: process.port,
            standing: match process.standing {
                Standing::Starting => "starting",
                Standing::Ready => "ready",
                Standing::Busy => "busy",
            }
            .to_owned(),
            connected: self.inner.hub.has_server(*server),
            adopted: process.end.is_none(),
        };
        let mut lines: Vec<ServerLine> = state.processes.iter().map(line).collect();
        lines.sort_by_key(|line| line.port);
        lines
    }

    fn log(&self, server: ServerId) -> Option<PathBuf> {
        let folder = self.inner.config.logs.as_ref()?;
        Some(folder.join(format!("server-{server}.log")))
    }
}

impl State {
    fn counts(&self) -> Counts {
        let count = |standing| {
            self.processes
                .values()
                .filter(|p| p.standing == standing)
                .count()
        };
        Counts {
            starting: count(Standing::Starting),
            ready: count(Standing::Ready),
            busy: count(Standing::Busy),
        }
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

    fn fleet(bus: Arc<LocalBus>) -> ProcessFleet {
        let config = ProcessConfig {
            command: Vec::new(),
            masters: String::new(),
            host: "127.0.0.1".to_owned(),
            warm: 0,
            matches_max: 1,
            first_port: 9_000,
            logs: None,
        };
        let hub = Arc::new(Hub::new(1));
        let keys = Arc::new(Keys::new("a secret"));
        ProcessFleet::new(config, keys, hub, bus)
    }

    #[test]
    fn a_server_that_is_not_connected_gets_no_match() {
        let fleet = fleet(Arc::default());
        let server = ServerId(7);
        fleet.handle_linked(server, "127.0.0.1:9000", false);
        assert_eq!(fleet.take_ready(), None);
        let _messages = fleet.inner.hub.link_server(server, 1);
        assert_eq!(fleet.take_ready(), Some(server));
    }

    #[test]
    fn an_adopted_server_that_moved_to_another_master_is_forgotten_and_not_gone() {
        let bus = Arc::new(LocalBus::default());
        let mut notes = bus.subscribe();
        let fleet = fleet(bus);
        fleet.handle_linked(ServerId(7), "127.0.0.1:9000", true);
        assert_eq!((fleet.counts().busy, fleet.room()), (1, 0));
        fleet.forget(ServerId(7));
        assert_eq!((fleet.counts().busy, fleet.room()), (0, 1));
        // A note that it is gone would end its match and void its credential.
        assert!(notes.try_recv().is_err());
    }
}
