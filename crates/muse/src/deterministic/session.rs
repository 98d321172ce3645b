//! A match over UDP for a game loop.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

use muse_drivers::relay::{Invitation, LinkEvent};
use muse_drivers::{Client, Server};
use muse_lockstep::{
    DeterministicGame, Frame, InputError, MatchConfig, MatchConfigError, Orderer, Role, Seat,
    Session,
};
use muse_transport::{Connect, Endpoint, ServerKey, ServerOptions, ServerPublicKey};
use muse_wire::{Duration, Instant};

use super::{MATCH_CHANNEL, MatchEvent, Participant, transport_config};
use crate::ServerAddress;

/// A machine of a deterministic match over UDP, in lockstep or with rollback. Call [`tick`](Self::tick) in a loop.
///
/// One machine [hosts](Self::host), or a server [serves](Self::serve); the others [join](Self::join). Everything is encrypted, and a
/// guest talks to the holder of the key in the host's address or to nobody. A guest that is cut off comes back to its seat by itself,
/// for half a minute.
///
/// ```
/// use muse::prelude::*;
///
/// #[derive(Clone, Default, Schema)]
/// struct Race {
///     metres: [u32; 2],
/// }
///
/// impl DeterministicGame for Race {
///     type Input = bool;
///     type Event = Seat;
///
///     fn step(&mut self, step: &mut Step<'_, Self>) {
///         for (seat, pedal) in step.players() {
///             self.metres[seat.index()] += u32::from(*pedal);
///             if self.metres[seat.index()] == 10 {
///                 step.emit(seat);
///             }
///         }
///     }
/// }
///
/// let key = muse::new_key()?; // `host` keeps one in a file instead
/// let config = MatchConfig::rollback(2);
/// let mut host = DeterministicSession::host_with_key("127.0.0.1:0", key, config.clone(), Race::default())?;
/// let address = host.address().expect("a host has one").to_string(); // muse://127.0.0.1:40000/KEY
/// let mut guest = DeterministicSession::join(&address, config, Race::default())?;
/// let mut winner = None;
/// while winner.is_none() {
///     host.tick(|_frame| false)?;
///     for event in guest.tick(|_frame| true)? {
///         if let MatchEvent::Confirmed(_frame, seat) = event {
///             winner = Some(seat);
///         }
///     }
/// }
/// assert_eq!(winner, guest.seat());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DeterministicSession<G: DeterministicGame> {
    participant: Participant<G>,
    link: Link,
    /// The longest wait of a tick.
    frame: Duration,
    buffer: Vec<u8>,
}

/// The sockets of a machine.
enum Link {
    Host {
        server: Server,
        address: ServerAddress,
        invitation: Option<Invitation>,
    },
    Guest {
        client: Client,
        /// For another connection when this one is lost.
        how: Connect,
    },
}

impl<G: DeterministicGame> DeterministicSession<G> {
    /// Hosts a match that begins with this state: plays, and orders everybody's inputs. Listens at `address`, such as
    /// `"[::]:7000"`. The key that guests know the host by is made on the first run and kept in the file `muse-server.key`.
    pub fn host(address: impl ToSocketAddrs, config: MatchConfig, game: G) -> io::Result<Self> {
        let key = muse_drivers::load_or_create_key(Path::new(KEY_FILE))?;
        Self::host_with_key(address, key, config, game)
    }

    /// Hosts a match with a key of the caller's choice.
    pub fn host_with_key(
        address: impl ToSocketAddrs,
        key: ServerKey,
        config: MatchConfig,
        game: G,
    ) -> io::Result<Self> {
        let options = ServerOptions::new(key.clone());
        let nonce = nonce()?;
        let frame = config.frame_duration();
        let transport = transport_config::<G>(&config);
        let participant =
            Participant::host(config, game, MATCH_CHANNEL, nonce).map_err(invalid_settings)?;
        let server = Server::bind(address, transport, options)?;
        Self::over_server(participant, server, key.public(), frame)
    }

    /// Orders a match without playing in it, for a server. Options hold the server's key, and with connect tokens only their holders
    /// are let in.
    pub fn serve(
        address: impl ToSocketAddrs,
        options: ServerOptions,
        key: ServerPublicKey,
        config: MatchConfig,
    ) -> io::Result<Self> {
        let frame = config.frame_duration();
        let transport = transport_config::<G>(&config);
        let participant = Participant::server(config, MATCH_CHANNEL).map_err(invalid_settings)?;
        let server = Server::bind(address, transport, options)?;
        Self::over_server(participant, server, key, frame)
    }

    /// Hosts a match in a room of the relay at this address, for friends behind routers. [`invitation`](Self::invitation) is what they
    /// join by.
    pub fn host_room(relay: SocketAddr, config: MatchConfig, game: G) -> io::Result<Self> {
        let key = muse_drivers::new_key()?;
        let host_key = *key.public().as_bytes();
        let any = match relay {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let mut session = Self::host_with_key(any, key, config, game)?;
        if let Link::Host {
            server, invitation, ..
        } = &mut session.link
        {
            let code = server.open_room(relay)?;
            *invitation = Some(Invitation {
                relay,
                code,
                host_key,
            });
        }
        Ok(session)
    }

    /// Joins the match at an address that its host printed: `muse://HOST:PORT/KEY`.
    pub fn join(address: &str, config: MatchConfig, game: G) -> io::Result<Self> {
        Self::join_as(Role::Player, address, config, game)
    }

    /// Watches the match at an address that its host printed.
    pub fn watch(address: &str, config: MatchConfig, game: G) -> io::Result<Self> {
        Self::join_as(Role::Spectator, address, config, game)
    }

    fn join_as(role: Role, address: &str, config: MatchConfig, game: G) -> io::Result<Self> {
        let address: ServerAddress = address
            .parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let how = Connect::pinned(address.key());
        let addresses = address.resolve()?;
        let transport = transport_config::<G>(&config);
        let client = Client::connect(&addresses[..], transport, how.clone())?;
        Self::over_client(client, how, role, config, game)
    }

    /// Joins the match at a server in a way of the caller's choice: with a connect token, for example, whose account gets its seat
    /// again when it comes back.
    pub fn join_with(
        server: impl ToSocketAddrs,
        how: Connect,
        config: MatchConfig,
        game: G,
    ) -> io::Result<Self> {
        let transport = transport_config::<G>(&config);
        let client = Client::connect(server, transport, how.clone())?;
        Self::over_client(client, how, Role::Player, config, game)
    }

    /// Joins the match of a friend's room by the [invitation](Self::invitation) that the friend's machine printed: through the relay, and
    /// directly where the routers allow it.
    pub fn join_room(invitation: &str, config: MatchConfig, game: G) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let invitation: Invitation = invitation.trim().parse().map_err(invalid)?;
        let how = Connect::pinned(ServerPublicKey::from_bytes(invitation.host_key));
        let transport = transport_config::<G>(&config);
        let client = Client::accept_invitation(&invitation, transport)?;
        Self::over_client(client, how, Role::Player, config, game)
    }

    fn over_server(
        participant: Participant<G>,
        server: Server,
        key: ServerPublicKey,
        frame: Duration,
    ) -> io::Result<Self> {
        let here = reachable_address(server.local_addr()?);
        let address = ServerAddress::new(&here.ip().to_string(), here.port(), key)
            .expect("the address of a bound socket has an IP address and a port");
        Ok(Self {
            participant,
            link: Link::Host {
                server,
                address,
                invitation: None,
            },
            frame,
            buffer: Vec::new(),
        })
    }

    fn over_client(
        client: Client,
        how: Connect,
        role: Role,
        config: MatchConfig,
        game: G,
    ) -> io::Result<Self> {
        let frame = config.frame_duration();
        let nonce = nonce()?;
        let connection = client.connection();
        let participant = Participant::guest(config, game, role, MATCH_CHANNEL, nonce, connection)
            .map_err(invalid_settings)?;
        Ok(Self {
            participant,
            link: Link::Guest { client, how },
            frame,
            buffer: Vec::new(),
        })
    }

    /// Waits until the next frame has run, takes in what arrived meanwhile, sends what is to be sent, and returns what happened. Never
    /// waits for longer than a frame takes. `input` is asked once for each frame (rollback) or turn (lockstep) and told its number.
    ///
    /// Errors are those of the socket, and an input that is too long to travel.
    pub fn tick(
        &mut self,
        input: impl FnMut(Frame) -> G::Input,
    ) -> io::Result<Vec<MatchEvent<G::Event>>> {
        self.tick_within(self.frame, input)
    }

    /// As [`tick`](Self::tick), and waits for `limit` at most: zero for a loop that waits elsewhere, for the screen for example.
    pub fn tick_within(
        &mut self,
        limit: impl Into<Duration>,
        mut input: impl FnMut(Frame) -> G::Input,
    ) -> io::Result<Vec<MatchEvent<G::Event>>> {
        let before = self.frame();
        let mut events = Vec::new();
        self.turn(&mut input)?;
        let until = self.now() + limit.into();
        loop {
            events.extend(std::iter::from_fn(|| self.participant.poll_event()));
            let left = until.saturating_since(self.now());
            if left == Duration::ZERO || !events.is_empty() || self.frame() > before {
                return Ok(events);
            }
            let due = self.participant.poll_timeout();
            let due = due.saturating_since(self.now());
            match &mut self.link {
                Link::Host { server, .. } => server.wait(due.min(left))?,
                Link::Guest { client, .. } => client.wait(due.min(left))?,
            };
            self.turn(&mut input)?;
        }
    }

    /// Takes in what arrived, runs what is due, sends what is to be sent.
    fn turn(&mut self, input: &mut impl FnMut(Frame) -> G::Input) -> io::Result<()> {
        let participant = &mut self.participant;
        let given = match &mut self.link {
            Link::Host { server, .. } => {
                server.poll()?;
                while let Some(event) = server.poll_event(&mut self.buffer) {
                    participant.handle_event(server.now(), &event);
                }
                let given = participant.advance(server.now(), server.endpoint_mut(), input);
                server.flush()?;
                given
            }
            Link::Guest { client, how } => {
                client.poll()?;
                while let Some(event) = client.poll_event(&mut self.buffer) {
                    participant.handle_event(client.now(), &event);
                }
                if participant.wants_connection() {
                    let (now, server) = (client.now(), client.server_addr());
                    let connection = client.endpoint_mut().connect(now, server, how.clone());
                    participant.set_connection(connection.map_err(io::Error::other)?);
                }
                let given = participant.advance(client.now(), client.endpoint_mut(), input);
                client.flush()?;
                given
            }
        };
        given.map_err(|error: InputError| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    /// Returns what guests join by, as seen from the local network. A host behind a router puts the router's name or address in its
    /// place and forwards the port, or uses a relay. A guest has none.
    pub fn address(&self) -> Option<&ServerAddress> {
        match &self.link {
            Link::Host { address, .. } => Some(address),
            Link::Guest { .. } => None,
        }
    }

    /// Returns what friends join a [room](Self::host_room) by: one word to be sent to them.
    pub fn invitation(&self) -> Option<&Invitation> {
        match &self.link {
            Link::Host { invitation, .. } => invitation.as_ref(),
            Link::Guest { .. } => None,
        }
    }

    /// Returns what happened at the relay, for a match in a room: whether it is open, and which ways are direct.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        match &mut self.link {
            Link::Host { server, .. } => server.poll_relay_event(),
            Link::Guest { client, .. } => client.poll_relay_event(),
        }
    }

    /// Returns the state to be drawn: with guesses in rollback. A server has none.
    pub fn state(&self) -> Option<&G> {
        self.participant.state()
    }

    /// Returns the seat of this machine's player, once it has one.
    pub fn seat(&self) -> Option<Seat> {
        self.participant.session().and_then(Session::seat)
    }

    /// Returns the frame that is run next, for a server the first one whose inputs are not all there.
    pub fn frame(&self) -> Frame {
        match (self.participant.session(), self.participant.orderer()) {
            (Some(session), _) => session.frame(),
            (None, orderer) => orderer.map_or(Frame(0), Orderer::sealed),
        }
    }

    /// Returns true if the match is over for this machine.
    pub fn is_over(&self) -> bool {
        self.participant.is_over()
    }

    /// Leaves the match: the others are told with the next tick. A host that leaves ends it for everybody.
    pub fn leave(&mut self) {
        self.participant.leave();
    }

    /// Returns the machine below: its session, statistics, delay and orderer.
    pub fn participant(&self) -> &Participant<G> {
        &self.participant
    }

    /// Returns the machine below, to change it.
    pub fn participant_mut(&mut self) -> &mut Participant<G> {
        &mut self.participant
    }

    /// Returns the connections below.
    pub fn endpoint(&self) -> &Endpoint {
        match &self.link {
            Link::Host { server, .. } => server.endpoint(),
            Link::Guest { client, .. } => client.endpoint(),
        }
    }

    fn now(&self) -> Instant {
        match &self.link {
            Link::Host { server, .. } => server.now(),
            Link::Guest { client, .. } => client.now(),
        }
    }
}

/// An address that others on the network can reach a socket by, which may be bound to all addresses.
fn reachable_address(bound: SocketAddr) -> SocketAddr {
    if !bound.ip().is_unspecified() {
        return bound;
    }
    // Connecting a UDP socket sends nothing: it only looks up the route. The addresses are reserved for documentation.
    let towards = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let here = socket.local_addr().ok()?.ip();
        (!here.is_unspecified()).then_some(here)
    };
    let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let by_v4 = || {
        towards(
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        )
    };
    let by_v6 = || towards(Ipv6Addr::UNSPECIFIED.into(), documentation.into());
    let here = by_v4().or_else(by_v6);
    SocketAddr::new(here.unwrap_or(Ipv4Addr::LOCALHOST.into()), bound.port())
}

/// A number that tells this life of a machine from others.
fn nonce() -> io::Result<u32> {
    let mut bytes = [0; 4];
    muse_drivers::fill_random(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn invalid_settings(error: MatchConfigError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The file that keeps a host's key.
const KEY_FILE: &str = "muse-server.key";
