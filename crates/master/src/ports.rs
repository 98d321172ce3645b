//! Ports of game servers on one host: from 8888 up, and a closed server's port is used again.

use std::collections::{BTreeMap, BTreeSet};

use muse_wire::{Duration, Instant};

/// Hands ports out and takes them back.
///
/// ```
/// use muse_master::ports::Ports;
/// use muse_wire::Instant;
/// let mut ports = Ports::new(8888, 2);
/// let (first, second) = (ports.take(Instant::ZERO), ports.take(Instant::ZERO));
/// assert_eq!((first, second, ports.take(Instant::ZERO)), (Some(8888), Some(8889), None));
/// ports.give_back(8888);
/// assert_eq!(ports.take(Instant::ZERO), Some(8888));
/// ```
#[derive(Debug)]
pub struct Ports {
    first: u16,
    last: u16,
    taken: BTreeSet<u16>,
    /// Ports that somebody else has bound, and when to try them again.
    strange: BTreeMap<u16, Instant>,
}

impl Ports {
    /// `count` ports from `first` up.
    pub fn new(first: u16, count: u16) -> Self {
        let last = first.saturating_add(count.saturating_sub(1));
        Self {
            first,
            last,
            taken: BTreeSet::new(),
            strange: BTreeMap::new(),
        }
    }

    /// The lowest free port.
    pub fn take(&mut self, now: Instant) -> Option<u16> {
        self.strange.retain(|_, again| *again > now);
        let free = |port: &u16| !self.taken.contains(port) && !self.strange.contains_key(port);
        let port = (self.first..=self.last).find(free)?;
        self.taken.insert(port);
        Some(port)
    }

    /// This port is in use by a server that was found running, as after a restart of the master.
    pub fn adopt(&mut self, port: u16) {
        self.taken.insert(port);
    }

    /// The server is closed.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }

    /// The port could not be bound: it belongs to a stranger. It is tried again after a minute.
    pub fn give_back_strange(&mut self, now: Instant, port: u16) {
        self.taken.remove(&port);
        self.strange.insert(port, now + STRANGE_FOR);
    }

    /// Returns how many are not taken, also if strangers may have them.
    pub fn free(&self) -> usize {
        let taken = self.taken.range(self.first..=self.last).count();
        usize::from(self.last - self.first) + 1 - taken
    }

    /// Returns how many are taken.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }
}

/// The first port by default.
pub const FIRST_PORT: u16 = 8888;
/// Time after which a port that another program holds is tried again.
const STRANGE_FOR: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_port_is_left_alone_for_a_minute() {
        let mut ports = Ports::new(FIRST_PORT, 2);
        let port = ports.take(Instant::ZERO).expect("free");
        ports.give_back_strange(Instant::ZERO, port);
        assert_eq!(ports.take(Instant::ZERO), Some(8889));
        assert_eq!(ports.take(Instant::from_secs(59)), None);
        assert_eq!(ports.take(Instant::from_secs(60)), Some(8888));
        assert_eq!((ports.taken(), ports.free()), (2, 0));
    }

    #[test]
    fn the_range_ends_at_the_last_port_there_is() {
        let mut ports = Ports::new(65_534, 10);
        assert_eq!(ports.take(Instant::ZERO), Some(65_534));
        assert_eq!(ports.take(Instant::ZERO), Some(65_535));
        assert_eq!(ports.take(Instant::ZERO), None);
    }
}
