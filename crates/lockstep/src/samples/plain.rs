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

/// A machine of a match: a session, an orderer, or both.
#[derive(Debug)]
pub struct PlainPeer<G: DeterministicGame> {
    session: Option<Session<G>>,
    orderer: Option<Orderer>,
    /// Address of the orderer, if it is elsewhere.
    server: Option<SocketAddr>,
    /// Addresses of the other players, for those that are sent inputs directly.
    peers: Vec<Option<SocketAddr>>,
    /// Addresses of those that the orderer talks to.
    links: Vec<Option<SocketAddr>>,
    now: Instant,
}

impl<G: DeterministicGame> PlainPeer<G> {
    /// A player or spectator, whose orderer is at an address.
    pub fn client(session: Session<G>, server: SocketAddr) -> Self {
        Self {
            peers: vec![None; session.config().seats()],
            server: Some(server),
            ..Self::new(Some(session), None)
        }
    }

    /// A server that orders and forwards.
    pub fn server(orderer: Orderer) -> Self {
        Self::new(None, Some(orderer))
    }

    /// A player who hosts a match that begins with this state. Two players need no other machine.
    pub fn host(config: MatchConfig, state: G, nonce: u32) -> Result<Self, MatchConfigError> {
        let orderer = Orderer::new::<G>(config.clone())?;
        let session = Session::new(config, state, Role::Player, nonce)?;
        Ok(Self {
            // The host's own link, which no address has.
            links: vec![None],
            ..Self::new(Some(session), Some(orderer))
        })
    }

    fn new(session: Option<Session<G>>, orderer: Option<Orderer>) -> Self {
        Self {
            session,
            orderer,
            server: None,
            peers: Vec::new(),
            links: Vec::new(),
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
        if let Some(session) = &mut self.session {
            session.set_directs(mask);
        }
    }

    /// The session, unless it is a server.
    pub fn session(&self) -> Option<&Session<G>> {
        self.session.as_ref()
    }

    /// The session, unless it is a server.
    pub fn session_mut(&mut self) -> Option<&mut Session<G>> {
        self.session.as_mut()
    }

    /// The orderer, if it has one.
    pub fn orderer(&self) -> Option<&Orderer> {
        self.orderer.as_ref()
    }

    /// The orderer, if it has one: to end the match or to poll notices.
    pub fn orderer_mut(&mut self) -> Option<&mut Orderer> {
        self.orderer.as_mut()
    }

    /// True if a client takes this datagram from where it comes.
    fn takes(&self, datagram: &Datagram<'_>) -> bool {
        if datagram.payload.first() != Some(&Kind::Direct.byte()) {
            return Some(datagram.from) == self.server;
        }
        // A player speaks for its own seat only: the seat is the byte after the kind.
        let seat = datagram.payload.get(1);
        let peer = seat.and_then(|seat| self.peers.get(usize::from(*seat)));
        peer == Some(&Some(datagram.from))
    }
}

impl<G: DeterministicGame> Machine for PlainPeer<G> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        let takes = self.takes(&datagram);
        let Some(orderer) = &mut self.orderer else {
            if let Some(session) = self.session.as_mut().filter(|_| takes) {
                session.handle_packet(now, datagram.payload);
            }
            return;
        };
        // Nobody is sent to the host's own link: a stranger takes another.
        if let Some(session) = &mut self.session
            && self.links.first() == Some(&None)
            && !orderer.knows(OWN_LINK)
        {
            let mut buffer = [0; PACKET_BYTES_MAX];
            if let Some((_, len)) = session.poll_packet(now, &mut buffer) {
                orderer.handle_packet(now, OWN_LINK, &buffer[..len]);
            }
        }
        if let Some(link) = link_of(&mut self.links, orderer, datagram.from) {
            orderer.handle_packet(now, link, datagram.payload);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if let Some(orderer) = &mut self.orderer {
            orderer.handle_timeout(now);
        }
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.now = now;
        let mut own = [0; PACKET_BYTES_MAX];
        for _ in 0..EXCHANGES_MAX {
            let (to, len) = match (&mut self.session, &mut self.orderer) {
                (Some(session), None) => {
                    let (target, len) = session.poll_packet(now, buffer)?;
                    let to = match target {
                        Target::Orderer => self.server,
                        Target::Seat(seat) => self.peers.get(seat.index()).copied().flatten(),
                    };
                    (to, len)
                }
                (session, orderer) => {
                    let orderer = orderer.as_mut()?;
                    if let Some(session) = session
                        && let Some((Target::Orderer, len)) = session.poll_packet(now, &mut own)
                    {
                        orderer.handle_packet(now, OWN_LINK, &own[..len]);
                        continue;
                    }
                    let (link, len) = orderer.poll_packet(now, buffer)?;
                    if let Some(session) = session.as_mut().filter(|_| link == OWN_LINK) {
                        session.handle_packet(now, &buffer[..len]);
                    }
                    (self.links.get(link.0).copied().flatten(), len)
                }
            };
            if let Some(to) = to {
                return Some(transmit(to, len));
            }
        }
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let session = self.session.as_mut();
        let session = session.and_then(|session| session.poll_timeout(self.now));
        let orderer = self.orderer.as_mut();
        let orderer = orderer.and_then(|orderer| orderer.poll_timeout(self.now));
        [session, orderer].into_iter().flatten().min()
    }
}

/// The link of an address; a new address takes a number that nobody has.
fn link_of(
    links: &mut Vec<Option<SocketAddr>>,
    orderer: &Orderer,
    address: SocketAddr,
) -> Option<LinkId> {
    if let Some(index) = links.iter().position(|link| *link == Some(address)) {
        return Some(LinkId(index));
    }
    let unused = |index: &usize| !orderer.knows(LinkId(*index));
    let index = (0..links.len()).find(unused).unwrap_or(links.len());
    if index >= LINKS_MAX {
        return None;
    }
    if index == links.len() {
        links.push(None);
    }
    links[index] = Some(address);
    Some(LinkId(index))
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
/// Packets between a host's own two halves in one go, and packets to nobody.
const EXCHANGES_MAX: usize = 64;
