//! The servers of a fleet of child processes: which ports they hold, which are free, and which have gone to another master.
//!
//! A child connects to any master that it can reach, and gets its match wherever it is connected. So a child that is not connected here may be played on
//! elsewhere, and is left alone.

use std::collections::BTreeMap;

use muse_master_client::ServerId;
use muse_wire::Instant;
use tokio::sync::mpsc;

use crate::fleet::Counts;
use crate::operators::ServerLine;
use crate::ports::Ports;

/// All servers of one fleet. `is_here` tells which of them are connected to this master.
pub(super) struct Table {
    ports: Ports,
    processes: BTreeMap<ServerId, Process>,
    matches_max: usize,
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
    /// It has not yet connected to any master, as far as is known here.
    Starting,
    /// It has no match, as far as is known here.
    Ready,
    Busy,
}

impl Table {
    /// No servers, and room for so many matches.
    pub(super) fn new(ports: Ports, matches_max: usize) -> Self {
        Self {
            ports,
            processes: BTreeMap::new(),
            matches_max,
            draining: false,
        }
    }

    /// Returns how many servers there are.
    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    pub(super) fn ports_mut(&mut self) -> &mut Ports {
        &mut self.ports
    }

    /// A child was started, which `end` ends.
    pub(super) fn insert(&mut self, server: ServerId, port: u16, end: mpsc::Sender<()>) {
        let child = Process {
            port,
            standing: Standing::Starting,
            end: Some(end),
        };
        self.processes.insert(server, child);
    }

    /// A server has ended or is forgotten. False if it was not known.
    pub(super) fn remove(&mut self, now: Instant, server: ServerId) -> bool {
        let Some(process) = self.processes.remove(&server) else {
            return false;
        };
        // One that never connected may have found a stranger on its port.
        match process.standing {
            Standing::Starting => self.ports.give_back_strange(now, process.port),
            Standing::Ready | Standing::Busy => self.ports.give_back(process.port),
        }
        true
    }

    /// A server has connected to this master; one that is not known is adopted with its port. False if it is not needed.
    pub(super) fn handle_linked(&mut self, server: ServerId, address: &str, busy: bool) -> bool {
        let linked = match busy {
            true => Standing::Busy,
            false => Standing::Ready,
        };
        if let Some(process) = self.processes.get_mut(&server) {
            // It comes back from another master, perhaps with a match that it got there. One that was given to a match here may not have heard of it.
            if busy || process.standing == Standing::Starting {
                process.standing = linked;
            }
            return !self.draining || process.standing == Standing::Busy;
        }
        let port = address
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        let Some(port) = port else { return true };
        tracing::info!(%server, port, "adopted a game server");
        self.ports.adopt(port);
        let adopted = Process {
            port,
            standing: linked,
            end: None,
        };
        self.processes.insert(server, adopted);
        true
    }

    /// A child has connected to another master.
    pub(super) fn handle_elsewhere(&mut self, server: ServerId) {
        if let Some(process) = self.processes.get_mut(&server)
            && process.standing == Standing::Starting
        {
            process.standing = Standing::Ready;
        }
    }

    /// True if a child has not connected to any master, as far as is known here.
    pub(super) fn is_starting(&self, server: ServerId) -> bool {
        let process = self.processes.get(&server);
        process.is_some_and(|process| process.standing == Standing::Starting)
    }

    /// True if there is no child that could be waited for when its connection is gone.
    pub(super) fn is_adopted(&self, server: ServerId) -> bool {
        let process = self.processes.get(&server);
        process.is_some_and(|process| process.end.is_none())
    }

    /// Returns what ends a child.
    pub(super) fn end(&self, server: ServerId) -> Option<&mpsc::Sender<()>> {
        self.processes.get(&server)?.end.as_ref()
    }

    /// Takes a ready server, which is busy from now on.
    pub(super) fn take_ready(&mut self, is_here: impl Fn(ServerId) -> bool) -> Option<ServerId> {
        if self.is_full() {
            return None;
        }
        let mut processes = self.processes.iter_mut();
        // One that is not connected here has ended or is at another master, and would not hear of its match.
        let (server, process) = processes
            .find(|(server, process)| process.standing == Standing::Ready && is_here(**server))?;
        process.standing = Standing::Busy;
        Some(*server)
    }

    /// True if as many matches are played as may be.
    pub(super) fn is_full(&self) -> bool {
        self.counts().busy >= self.matches_max
    }

    /// True if fewer than `warm` servers wait for a match, and more may be started.
    pub(super) fn is_short(&self, warm: usize) -> bool {
        let counts = self.counts();
        counts.starting + counts.ready < warm && !self.draining
    }

    /// Starts no more servers in advance. Returns those that are not needed any more; those that are not connected here may have a match elsewhere.
    pub(super) fn drain(&mut self, is_here: impl Fn(ServerId) -> bool) -> Vec<ServerId> {
        self.draining = true;
        let idle = self
            .processes
            .iter()
            .filter(|(server, process)| process.standing == Standing::Ready && is_here(**server));
        idle.map(|(server, _)| *server).collect()
    }

    /// Returns how many more matches there is room for.
    pub(super) fn room(&self) -> usize {
        let counts = self.counts();
        let servers = counts.starting + counts.ready + self.ports.free();
        let matches = self.matches_max.saturating_sub(counts.busy);
        matches.min(servers)
    }

    pub(super) fn counts(&self) -> Counts {
        let count = |standing| {
            let processes = self.processes.values();
            processes.filter(|it| it.standing == standing).count()
        };
        Counts {
            starting: count(Standing::Starting),
            ready: count(Standing::Ready),
            busy: count(Standing::Busy),
        }
    }

    /// Every server, in order of their ports.
    pub(super) fn lines(&self, is_here: impl Fn(ServerId) -> bool) -> Vec<ServerLine> {
        let line = |(server, process): (&ServerId, &Process)| ServerLine {
            server: *server,
            port: process.port,
            standing: match process.standing {
                Standing::Starting => "starting",
                Standing::Ready => "ready",
                Standing::Busy => "busy",
            }
            .to_owned(),
            connected: is_here(*server),
            adopted: process.end.is_none(),
        };
        let mut lines: Vec<ServerLine> = self.processes.iter().map(line).collect();
        lines.sort_by_key(|line| line.port);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId(7);
    const ADDRESS: &str = "127.0.0.1:9000";

    /// A fleet with one child, which has just been started.
    fn table() -> Table {
        let mut table = Table::new(Ports::new(9_000, 2), 2);
        let (end, _) = mpsc::channel(1);
        let port = table.ports_mut().take(Instant::ZERO).expect("free");
        table.insert(SERVER, port, end);
        table
    }

    #[test]
    fn a_server_that_is_not_connected_gets_no_match() {
        let mut table = table();
        assert!(table.handle_linked(SERVER, ADDRESS, false));
        assert_eq!(table.take_ready(|_| false), None);
        assert_eq!(table.take_ready(|_| true), Some(SERVER));
        assert_eq!(table.take_ready(|_| true), None);
    }

    #[test]
    fn a_server_that_comes_back_with_a_match_of_another_master_gets_no_second_one() {
        let mut table = table();
        table.handle_linked(SERVER, ADDRESS, false);
        table.handle_linked(SERVER, ADDRESS, true);
        assert_eq!(table.take_ready(|_| true), None);
        assert_eq!(table.counts().busy, 1);
    }

    #[test]
    fn a_server_that_has_not_heard_of_its_match_gets_no_second_one() {
        let mut table = table();
        table.handle_linked(SERVER, ADDRESS, false);
        assert_eq!(table.take_ready(|_| true), Some(SERVER));
        table.handle_linked(SERVER, ADDRESS, false);
        assert_eq!(table.take_ready(|_| true), None);
    }

    #[test]
    fn a_master_that_closes_ends_no_server_that_may_have_a_match_elsewhere() {
        let mut table = table();
        assert_eq!(table.drain(|_| true), [], "it may have connected elsewhere");
        table.handle_linked(SERVER, ADDRESS, true);
        assert_eq!(table.drain(|_| true), [], "it is played on");
        let mut table = super::tests::table();
        table.handle_linked(SERVER, ADDRESS, false);
        assert_eq!(table.drain(|_| false), [], "it is at another master");
        assert_eq!(table.drain(|_| true), [SERVER]);
    }

    #[test]
    fn a_child_that_comes_while_its_master_closes_is_not_needed_without_a_match() {
        let mut table = table();
        table.drain(|_| true);
        assert!(!table.handle_linked(SERVER, ADDRESS, false));
        assert!(table.handle_linked(SERVER, ADDRESS, true));
    }

    #[test]
    fn a_server_of_another_master_is_adopted_and_forgotten_with_its_port() {
        let mut table = Table::new(Ports::new(9_000, 2), 2);
        assert!(table.handle_linked(SERVER, ADDRESS, true));
        assert!(table.is_adopted(SERVER) && table.end(SERVER).is_none());
        assert_eq!((table.counts().busy, table.room()), (1, 1));
        assert!(table.remove(Instant::ZERO, SERVER));
        assert_eq!((table.counts().busy, table.room()), (0, 2));
        assert!(!table.remove(Instant::ZERO, SERVER));
    }
}
