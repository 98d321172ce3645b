//! Network address translation: mappings, filters, time-outs and rebinding (RFC 4787's vocabulary), between IPv4 and IPv6 too (RFC 6146).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fastrand::Rng;
use muse_wire::{Duration, Instant};
use rustc_hash::{FxHashMap, FxHashSet};

use super::NatId;

/// The kind of a NAT: what it lets in, and if it uses one external port per destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NatKind {
    /// One external port per internal address; anyone may send to it.
    FullCone,
    /// One external port per internal address; open to IP addresses it has sent to.
    AddressRestricted,
    /// One external port per internal address; open to address and port pairs it has sent to.
    PortRestricted,
    /// One external port per internal address and destination; open to that destination alone.
    Symmetric,
    /// As [`Symmetric`](Self::Symmetric), with ports that count up from one mapping to the next.
    SymmetricCounted,
}

impl NatKind {
    fn is_symmetric(self) -> bool {
        matches!(self, Self::Symmetric | Self::SymmetricCounted)
    }
}

/// A router that hides nodes behind one external IP address.
#[derive(Clone, Debug)]
pub(super) struct Nat {
    pub(super) kind: NatKind,
    pub(super) external: IpAddr,
    pub(super) timeout: Duration,
    /// The provider's NAT that it is behind.
    pub(super) behind: Option<NatId>,
    /// True if those inside reach each other by their external addresses.
    pub(super) hairpins: bool,
    /// The prefix of IPv6 addresses that stand for IPv4 ones inside, for a NAT64.
    pub(super) prefix: Option<Ipv6Addr>,
    rng: Rng,
    /// The port of the latest mapping.
    latest: u16,
    by_inside: FxHashMap<(SocketAddr, Option<SocketAddr>), u16>,
    by_port: FxHashMap<u16, Mapping>,
}

#[derive(Clone, Debug)]
struct Mapping {
    inside: SocketAddr,
    key: (SocketAddr, Option<SocketAddr>),
    /// Last datagram out; those coming in do not keep a mapping alive.
    used_at: Instant,
    sent_to: FxHashSet<SocketAddr>,
}

impl Nat {
    pub(super) fn new(kind: NatKind, external: IpAddr, timeout: Duration, seed: u64) -> Self {
        Self {
            kind,
            external,
            timeout,
            behind: None,
            hairpins: true,
            prefix: None,
            rng: Rng::with_seed(seed),
            latest: 0,
            by_inside: FxHashMap::default(),
            by_port: FxHashMap::default(),
        }
    }

    /// The external address that a datagram from `inside` to `to` leaves with; `None` when no port is free.
    pub(super) fn outbound(
        &mut self,
        now: Instant,
        inside: SocketAddr,
        to: SocketAddr,
    ) -> Option<SocketAddr> {
        let key = (inside, self.kind.is_symmetric().then_some(to));
        let port = match self.by_inside.get(&key) {
            Some(&port) if self.is_alive(port, now) => port,
            _ => self.map(now, inside, key)?,
        };
        let mapping = self
            .by_port
            .get_mut(&port)
            .expect("a port in by_inside has its mapping");
        mapping.used_at = now;
        mapping.sent_to.insert(to);
        Some(SocketAddr::new(self.external, port))
    }

    /// Returns the inside address that has the external `port`, even if a sender would not be let in.
    pub(super) fn inside_of(&self, now: Instant, port: u16) -> Option<SocketAddr> {
        self.is_alive(port, now).then(|| self.by_port[&port].inside)
    }

    /// The inside address that a datagram from `from` to the external `port` reaches, if it is let in.
    pub(super) fn inbound(&self, now: Instant, port: u16, from: SocketAddr) -> Option<SocketAddr> {
        let mapping = self
            .by_port
            .get(&port)
            .filter(|_| self.is_alive(port, now))?;
        let open = match self.kind {
            NatKind::FullCone => true,
            NatKind::AddressRestricted => mapping.sent_to.iter().any(|to| to.ip() == from.ip()),
            NatKind::PortRestricted | NatKind::Symmetric | NatKind::SymmetricCounted => {
                mapping.sent_to.contains(&from)
            }
        };
        open.then_some(mapping.inside)
    }

    /// The IPv4 destination that an IPv6 one stands for, behind a NAT64.
    pub(super) fn embedded(&self, to: SocketAddr) -> Option<SocketAddr> {
        let IpAddr::V6(ip) = to.ip() else {
            return None;
        };
        let (ip, prefix) = (ip.octets(), self.prefix?.octets());
        let [.., a, b, c, d] = ip;
        let inside = ip[..PREFIX_LEN] == prefix[..PREFIX_LEN];
        inside.then(|| SocketAddr::from((Ipv4Addr::new(a, b, c, d), to.port())))
    }

    /// The source that those inside see.
    pub(super) fn source_inside(&self, from: SocketAddr) -> SocketAddr {
        let (Some(prefix), IpAddr::V4(ip)) = (self.prefix, from.ip()) else {
            return from;
        };
        let mut octets = prefix.octets();
        octets[PREFIX_LEN..].copy_from_slice(&ip.octets());
        SocketAddr::from((Ipv6Addr::from(octets), from.port()))
    }

    /// Forgets every mapping, as a router that restarts.
    pub(super) fn forget(&mut self) {
        self.by_inside.clear();
        self.by_port.clear();
    }

    fn map(
        &mut self,
        now: Instant,
        inside: SocketAddr,
        key: (SocketAddr, Option<SocketAddr>),
    ) -> Option<u16> {
        if let Some(old) = self.by_inside.remove(&key) {
            self.by_port.remove(&old);
        }
        let counts = self.kind == NatKind::SymmetricCounted && self.latest != 0;
        let start = match counts {
            true => self.latest.checked_add(1).unwrap_or(PORT_MIN),
            false => self.rng.u16(PORT_MIN..=u16::MAX),
        };
        let port = (start..=u16::MAX)
            .chain(PORT_MIN..start)
            .find(|&port| !self.is_alive(port, now))?;
        let mapping = Mapping {
            inside,
            key,
            used_at: now,
            sent_to: FxHashSet::default(),
        };
        if let Some(expired) = self.by_port.insert(port, mapping) {
            self.by_inside.remove(&expired.key);
        }
        self.by_inside.insert(key, port);
        self.latest = port;
        Some(port)
    }

    fn is_alive(&self, port: u16, now: Instant) -> bool {
        self.by_port
            .get(&port)
            .is_some_and(|mapping| now - mapping.used_at < self.timeout)
    }
}

/// Lowest external port given out.
const PORT_MIN: u16 = 1_024;
/// Bytes of the prefix of a NAT64, /96.
const PREFIX_LEN: usize = 12;
