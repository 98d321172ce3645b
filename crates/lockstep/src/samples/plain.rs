//! Sessions and orderers over plain datagrams, for simulations and measurements.
//!
//! Nothing is encrypted and senders are known by their address alone: never use it on a network. Games run over encrypted
//! connections with `muse::deterministic`.

use std::net::SocketAddr;

use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};

use crate::config::{MatchConfig, MatchConfigError};
use crate::frame::Seat;
use crate::game::DeterministicGame;
use crate::orderer::{LinkId, Orderer};
use crate::packet::{Kind, PACKET_BYTES_MAX};
use crate::session::{Role, Session, Target};

/// A session that talks to an orderer at an address.
#[derive(Debug)]
pub struct PlainClient<G: DeterministicGame> {
    session: Session<G>,
    server: SocketAddr,
    /// Addresses of the other players, for those that are sent inputs directly.
    peers: Vec<Option<SocketAddr>>,
    now: Instant,
}

impl<G: DeterministicGame> PlainClient<G> {
    /// Wraps a session.
    pub fn new(session: Session<G>, server: SocketAddr) -> Self {
        Self {
            peers: vec![None; session.config().seats()],
            session,
            server,
            now: Instant::ZERO,
        }
    }

    /// Inputs for this player go to it directly as well, and its inputs are taken from this address.
    pub fn connect(&mut self, seat: Seat, address: SocketAddr) {
        if let Some(peer) = self.peers.get_mut(seat.index()) {
            *peer = Some(address);
        }
        let known = self
            .peers
            .iter()
            .enumerate()
            .filter(|(_, peer)| peer.is_some());
        let mask = known.fold(0, |mask, (seat, _)| mask | 1 << seat);
        self.session.set_directs(mask);
    }
}

impl<G: DeterministicGame> Machine for PlainClient<G> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        // A player speaks for its own seat only: the seat is the byte after the kind.
        let peer = datagram
            .payload
            .get(1)
            .and_then(|seat| self.peers.get(usize::from(*seat)));
        let direct = datagram.payload.first() == Some(&Kind::Direct.byte());
        let from_peer = direct && peer.is_some_and(|peer| *peer == Some(datagram.from));
        if from_peer || !direct && datagram.from == self.server {
            self.session.handle_packet(now, datagram.payload);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.session.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.now = now;
        loop {
            let (target, len) = self.session.poll_packet(now, buffer)?;
            let to = match target {
                Target::Orderer => Some(self.server),
                Target::Seat(seat) => self.peers.get(seat.index()).copied().flatten(),
            };
            if let Some(to) = to {
                return Some(transmit(to, len));
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.session.poll_timeout(self.now)
    }
}

/// An orderer that is talked to by address.
#[derive(Debug)]
pub struct PlainServer {
    orderer: Orderer,
    links: Vec<Option<SocketAddr>>,
    now: Instant,
}

impl PlainServer {
    /// Wraps an orderer.
    pub fn new(orderer: Orderer) -> Self {
        Self {
            orderer,
            links: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// The orderer.
    pub fn orderer(&self) -> &Orderer {
        &self.orderer
    }

    /// The orderer, to end the match or to poll notices.
    pub fn orderer_mut(&mut self) -> &mut Orderer {
        &mut self.orderer
    }

    /// The link of an address; a new address takes a number that nobody has.
    fn link_of(&mut self, address: SocketAddr) -> Option<LinkId> {
        if let Some(index) = self.links.iter().position(|link| *link == Some(address)) {
            return Some(LinkId(index));
        }
        let unused = |index: &usize| !self.orderer.knows(LinkId(*index));
        let index = (0..self.links.len())
            .find(unused)
            .unwrap_or(self.links.len());
        if index >= LINKS_MAX {
            return None;
        }
        if index == self.links.len() {
            self.links.push(None);
        }
        self.links[index] = Some(address);
        Some(LinkId(index))
    }
}

impl Machine for PlainServer {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        if let Some(link) = self.link_of(datagram.from) {
            self.orderer.handle_packet(now, link, datagram.payload);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.orderer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.now = now;
        loop {
            let (link, len) = self.orderer.poll_packet(now, buffer)?;
            if let Some(to) = self.links.get(link.0).copied().flatten() {
                return Some(transmit(to, len));
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.orderer.poll_timeout(self.now)
    }
}

/// A player who hosts: a session and the orderer of the match in one machine. Two players need no other.
#[derive(Debug)]
pub struct PlainHost<G: DeterministicGame> {
    server: PlainServer,
    session: Session<G>,
}

impl<G: DeterministicGame> PlainHost<G> {
    /// Hosts a match that begins with this state.
    pub fn new(config: MatchConfig, state: G, nonce: u32) -> Result<Self, MatchConfigError> {
        let mut server = PlainServer::new(Orderer::new::<G>(config.clone())?);
        // The host's own link, which no address has.
        server.links.push(None);
        Ok(Self {
            server,
            session: Session::new(config, state, Role::Player, nonce)?,
        })
    }

    /// The orderer.
    pub fn orderer(&self) -> &Orderer {
        &self.server.orderer
    }

    /// Carries packets between the host's own session and its orderer.
    fn exchange(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let mut own = [0; PACKET_BYTES_MAX];
        for _ in 0..EXCHANGES_MAX {
            if let Some((Target::Orderer, len)) = self.session.poll_packet(now, &mut own) {
                self.server
                    .orderer
                    .handle_packet(now, OWN_LINK, &own[..len]);
                continue;
            }
            let (link, len) = self.server.orderer.poll_packet(now, buffer)?;
            if link == OWN_LINK {
                self.session.handle_packet(now, &buffer[..len]);
            } else if let Some(to) = self.server.links.get(link.0).copied().flatten() {
                return Some(transmit(to, len));
            }
        }
        None
    }
}

impl<G: DeterministicGame> Machine for PlainHost<G> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        // Nobody is sent to the host's own link: a stranger takes another.
        if self.server.links.first() == Some(&None) && !self.server.orderer.knows(OWN_LINK) {
            let mut buffer = [0; PACKET_BYTES_MAX];
            if let Some((_, len)) = self.session.poll_packet(now, &mut buffer) {
                self.server
                    .orderer
                    .handle_packet(now, OWN_LINK, &buffer[..len]);
            }
        }
        self.server.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.session.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.server.now = now;
        self.exchange(now, buffer)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let session = self.session.poll_timeout(self.server.now);
        let server = self.server.poll_timeout();
        [session, server].into_iter().flatten().min()
    }
}

/// Any machine of a match: one type for programs that run several kinds.
#[derive(Debug)]
pub enum PlainPeer<G: DeterministicGame> {
    /// A player or spectator.
    Client(Box<PlainClient<G>>),
    /// A player who hosts.
    Host(Box<PlainHost<G>>),
    /// A server that orders and forwards.
    Server(Box<PlainServer>),
}

impl<G: DeterministicGame> PlainPeer<G> {
    /// The session, unless it is a server.
    pub fn session(&self) -> Option<&Session<G>> {
        match self {
            Self::Client(client) => Some(&client.session),
            Self::Host(host) => Some(&host.session),
            Self::Server(_) => None,
        }
    }

    /// The session, unless it is a server.
    pub fn session_mut(&mut self) -> Option<&mut Session<G>> {
        match self {
            Self::Client(client) => Some(&mut client.session),
            Self::Host(host) => Some(&mut host.session),
            Self::Server(_) => None,
        }
    }

    /// The orderer, if it has one.
    pub fn orderer(&self) -> Option<&Orderer> {
        match self {
            Self::Client(_) => None,
            Self::Host(host) => Some(&host.server.orderer),
            Self::Server(server) => Some(&server.orderer),
        }
    }

    /// The orderer, if it has one.
    pub fn orderer_mut(&mut self) -> Option<&mut Orderer> {
        match self {
            Self::Client(_) => None,
            Self::Host(host) => Some(&mut host.server.orderer),
            Self::Server(server) => Some(&mut server.orderer),
        }
    }

    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Client(client) => client.as_mut(),
            Self::Host(host) => host.as_mut(),
            Self::Server(server) => server.as_mut(),
        }
    }
}

impl<G: DeterministicGame> Machine for PlainPeer<G> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine().handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.machine().poll_transmit(now, buffer)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.machine().poll_timeout()
    }
}

fn transmit(to: SocketAddr, len: usize) -> Transmit {
    Transmit {
        to,
        len,
        segment: None,
        ecn: Ecn::NotCapable,
    }
}

const OWN_LINK: LinkId = LinkId(0);
/// Addresses that a server keeps track of.
const LINKS_MAX: usize = 512;
/// Packets between a host's own two halves in one go.
const EXCHANGES_MAX: usize = 64;
