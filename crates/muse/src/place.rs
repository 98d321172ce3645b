//! The address that a server listens at and the one that a client connects to, with their options.

#[cfg_attr(not(feature = "relay"), path = "place/no_room.rs")]
mod room;

#[cfg(not(target_arch = "wasm32"))]
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;

use muse_drivers::{ClientDriver, EndpointDriver, MemoryDriver, SystemEntropy};
use muse_transport::token::{ConnectToken, TokenVerifier};
use muse_transport::{
    AdmissionLimits, Config, Connect, HandshakeLimits, ServerKey, ServerOptions, ServerPublicKey,
};
use muse_wire::{Duration, Link};

use crate::{Error, Result, ServerAddress};

pub(crate) use room::OpenRoom;
#[cfg(feature = "relay")]
pub use room::RoomLoss;

/// The address that a server listens at, and the key by which it is known. A text such as `"[::]:7000"` is enough for a start.
///
/// ```
/// use muse::Listen;
/// let listen = Listen::at("127.0.0.1:0").key_file("tag.key");
/// # let _ = listen;
/// ```
#[derive(Debug, Default)]
pub struct Listen {
    /// None for a server without a socket.
    #[cfg(not(target_arch = "wasm32"))]
    address: Option<String>,
    key: Key,
    tokens: Option<TokenVerifier>,
    limits: Option<HandshakeLimits>,
    admission: Option<AdmissionLimits>,
    #[cfg(not(target_arch = "wasm32"))]
    room: room::Room,
    #[cfg(all(feature = "lockstep", feature = "relay", not(target_arch = "wasm32")))]
    pub(crate) ends_with_host: bool,
    #[cfg(all(feature = "web", not(target_arch = "wasm32")))]
    web: Option<muse_drivers::WebOptions>,
}

#[derive(Debug, Default)]
enum Key {
    /// One that lives as long as the server.
    #[default]
    Fresh,
    #[cfg(not(target_arch = "wasm32"))]
    File(PathBuf),
    Given(Box<ServerKey>),
}

impl Listen {
    /// Listens at this address: `"[::]:7000"` for both IP versions, port 0 for any free port.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn at(address: &str) -> Self {
        Self {
            address: Some(address.to_owned()),
            key: Key::File(PathBuf::from(KEY_FILE)),
            ..Self::default()
        }
    }

    /// Opens no socket: players in the same program come by [`join_offline`](crate::Server::join_offline), in the browser too.
    pub fn offline() -> Self {
        Self::default()
    }

    /// Keeps the server's key in this file, made on the first run. Default: `muse-server.key` in the current folder.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Key::File(path.into());
        self
    }

    /// Asks the game about each client before it is in ([`ServerEvent::Asking`](crate::ServerEvent::Asking), in a deterministic match `MatchEvent::Asking`), with
    /// [`admit`](crate::Server::admit) and [`deny`](crate::Server::deny) as answers. One that gets none is refused after 30 seconds.
    pub fn ask(mut self) -> Self {
        self.admission = Some(AdmissionLimits::default());
        self
    }

    /// Lets browsers in besides, over WebTransport and WebSocket.
    #[cfg(all(feature = "web", not(target_arch = "wasm32")))]
    pub fn web(mut self, web: muse_drivers::WebOptions) -> Self {
        self.web = Some(web);
        self
    }

    /// Binds everything. Returns the connections, and the address to tell players.
    pub(crate) fn open(self, config: Config) -> Result<Open> {
        let key = match self.key {
            Key::Fresh => ServerKey::generate(&mut SystemEntropy::new()?),
            #[cfg(not(target_arch = "wasm32"))]
            Key::File(path) => muse_drivers::load_or_create_key(path)?,
            Key::Given(key) => *key,
        };
        let public = key.public();
        let mut options = ServerOptions::new(key);
        if let Some(tokens) = self.tokens {
            options = options.tokens(tokens);
        }
        if let Some(limits) = self.limits {
            options = options.limits(limits);
        }
        if let Some(limits) = self.admission {
            options = options.admission(limits);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(address) = self.address {
            let link = EndpointDriver::bind(&*address, config, options)?;
            #[cfg(feature = "web")]
            let link = match self.web {
                Some(web) => link.with_web(muse_drivers::WebListener::bind(web)?)?,
                None => link,
            };
            return Open::at(link, public, self.room);
        }
        Ok(Open {
            link: EndpointDriver::offline(config, options)?,
            address: address(OFFLINE_HOST, OFFLINE_PORT, public)?,
            room: None,
        })
    }
}

muse_wire::setters! { Listen:
    /// Is known by this key.
    key: ServerKey = Key::Given(Box::new(key)),
    /// Admits holders of connect tokens only.
    tokens: TokenVerifier = Some(tokens),
    /// Limits handshakes otherwise than by default.
    limits: HandshakeLimits = Some(limits),
}

#[cfg(not(target_arch = "wasm32"))]
impl From<&str> for Listen {
    fn from(address: &str) -> Self {
        Self::at(address)
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::at(&address.to_string())
    }
}

/// The outcome of [`Listen::open`].
pub(crate) struct Open {
    pub(crate) link: EndpointDriver,
    pub(crate) address: ServerAddress,
    pub(crate) room: Option<OpenRoom>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Open {
    /// Opens the room, if one is wanted, and finds out how players reach a bound server.
    fn at(mut link: EndpointDriver, key: ServerPublicKey, room: room::Room) -> Result<Self> {
        let bound = link.local_addr()?;
        let host = reachable_ip(bound.ip()).to_string();
        Ok(Self {
            room: room.open(&mut link, key)?,
            link,
            address: address(&host, bound.port(), key)?,
        })
    }
}

fn address(host: &str, port: u16, key: ServerPublicKey) -> Result<ServerAddress> {
    let address = ServerAddress::new(host, port, key);
    address.map_err(|error| Error::Io(std::io::Error::other(error)))
}

/// The server that a client connects to. The text that a server prints, `muse://HOST:PORT/KEY` or an invitation to a room, is enough for a start.
///
/// ```
/// use muse::Join;
/// # let key = muse::ServerPublicKey::from_bytes([7; 32]);
/// let join = Join::to(&format!("muse://127.0.0.1:7000/{key}")).hello(b"Ada");
/// # let _ = join;
/// ```
#[derive(Debug)]
pub struct Join {
    to: Target,
    hello: Vec<u8>,
    timeout: Option<Duration>,
    #[cfg(not(target_arch = "wasm32"))]
    relay_only: bool,
    #[cfg(all(feature = "lockstep", feature = "relay", not(target_arch = "wasm32")))]
    pub(crate) never_host: bool,
    /// The link that leads there, if it is none of this machine's sockets, and its properties.
    memory: Option<(MemoryDriver, Link)>,
}

#[derive(Clone, Debug)]
enum Target {
    Text(String),
    Token(
        #[cfg_attr(
            target_arch = "wasm32",
            expect(dead_code, reason = "the page has the address")
        )]
        String,
        Box<ConnectToken>,
    ),
    Key(ServerPublicKey),
    /// The relay and the short code of a room.
    #[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
    Room(String, String),
}

impl Join {
    /// Goes where this text says: the address of a server, or an invitation to its room at a relay.
    pub fn to(text: &str) -> Self {
        Self::new(Target::Text(text.trim().to_owned()))
    }

    /// Goes to `address` (host and port) with a connect token, which holds the server's key.
    pub fn token(address: &str, token: ConnectToken) -> Self {
        Self::new(Target::Token(address.to_owned(), Box::new(token)))
    }

    /// Leaves the datagrams to the program, for which the second value sends and receives them: for a page in the browser, whose
    /// WebTransport or WebSocket session carries them to the server (`docs/web-link.md`).
    pub fn carried(mut self) -> (Self, MemoryDriver) {
        let (near, far) = muse_drivers::memory::link();
        self.memory = Some((near, muse_drivers::carried::LINK));
        (self, far)
    }

    fn new(to: Target) -> Self {
        Self {
            to,
            hello: Vec::new(),
            timeout: None,
            #[cfg(not(target_arch = "wasm32"))]
            relay_only: false,
            #[cfg(all(feature = "lockstep", feature = "relay", not(target_arch = "wasm32")))]
            never_host: false,
            memory: None,
        }
    }

    /// Goes to a server in the same program.
    pub(crate) fn offline(server: &mut EndpointDriver, key: ServerPublicKey) -> Self {
        let mut join = Self::new(Target::Key(key));
        join.memory = Some((server.add_memory_link(), Link::UDP));
        join
    }

    /// Begins to connect.
    pub(crate) fn open(self, config: Config) -> Result<ClientDriver> {
        let how = self.to.connect()?.hello(&self.hello);
        let how = match self.timeout {
            Some(timeout) => how.timeout(timeout),
            None => how,
        };
        match self.memory {
            Some((end, link)) => Ok(ClientDriver::over_memory(end, config.link(link), how)?),
            #[cfg(not(target_arch = "wasm32"))]
            None => self.to.open(self.relay_only, config, how),
            #[cfg(target_arch = "wasm32")]
            None => Err(not_carried()),
        }
    }
}

muse_wire::setters! { Join:
    /// Says this to the server when connecting, up to 256 bytes: a name, for example. It is encrypted.
    hello: &[u8] = hello.to_vec(),
    /// Sets the time after which it gives up when nobody answers. Default: 10 seconds.
    timeout: Duration = Some(timeout),
}

impl Target {
    /// Returns how the server proves who it is.
    fn connect(&self) -> Result<Connect> {
        match self {
            Self::Token(_, token) => Ok(Connect::token((**token).clone())),
            Self::Key(key) => Ok(Connect::pinned(*key)),
            #[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
            Self::Room(..) => Ok(Connect::key_follows()),
            Self::Text(text) => Ok(Connect::pinned(match room::invitation(text) {
                Some(it) => room::host_key(&it),
                None => parse_address(text)?.key(),
            })),
        }
    }

    /// Begins to connect over a socket.
    #[cfg(not(target_arch = "wasm32"))]
    fn open(self, relay_only: bool, config: Config, how: Connect) -> Result<ClientDriver> {
        if let Self::Text(text) = &self
            && let Some(it) = room::invitation(text)
        {
            return room::join(&it, relay_only, config, how);
        }
        #[cfg(feature = "relay")]
        if let Self::Room(relay, code) = &self {
            return room::join_by_code((relay, code), relay_only, config, how);
        }
        if relay_only {
            return Err(no_relay());
        }
        Ok(match self {
            Self::Token(address, _) => ClientDriver::connect(&*address, config, how)?,
            Self::Text(text) => {
                let address = parse_address(&text)?;
                ClientDriver::connect((&*address.host(), address.port()), config, how)?
            }
            Self::Key(_) => return Err(not_carried()),
            #[cfg(feature = "relay")]
            Self::Room(..) => return Err(not_carried()),
        })
    }
}

fn parse_address(text: &str) -> Result<ServerAddress> {
    let invalid = |error| {
        let text = format!("{text:?}: {error}");
        std::io::Error::new(std::io::ErrorKind::InvalidInput, text)
    };
    Ok(text.parse().map_err(invalid)?)
}

#[cfg(not(target_arch = "wasm32"))]
fn no_relay() -> Error {
    let text = "only a room is reached through a relay alone: join by its short code or invitation, or without `relay_only`";
    std::io::Error::new(std::io::ErrorKind::InvalidInput, text).into()
}

fn not_carried() -> Error {
    let text = "there is no socket here: let the page carry datagrams (`Join::carried`)";
    std::io::Error::new(std::io::ErrorKind::Unsupported, text).into()
}

impl From<&str> for Join {
    fn from(text: &str) -> Self {
        Self::to(text)
    }
}

impl From<&String> for Join {
    fn from(text: &String) -> Self {
        Self::to(text)
    }
}

impl From<&ServerAddress> for Join {
    fn from(address: &ServerAddress) -> Self {
        Self::to(&address.to_string())
    }
}

#[cfg(not(target_arch = "wasm32"))]
/// The address to tell players of a socket that listens at `bound`: for one that listens everywhere, the one that this machine has
/// towards the internet.
fn reachable_ip(bound: IpAddr) -> IpAddr {
    if !bound.is_unspecified() {
        return bound;
    }
    // Connecting a UDP socket sends nothing: it only looks up the route. The address is one that is reserved for documentation.
    let towards = |from: &str, to: &str| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    towards("0.0.0.0:0", "192.0.2.1:9")
        .or_else(|| towards("[::]:0", "[2001:db8::1]:9"))
        .filter(|ip| !ip.is_unspecified())
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The address of a server without a socket names its key, and no place.
const OFFLINE_HOST: &str = "offline";
const OFFLINE_PORT: u16 = 1;
/// The file that holds a server's key by default.
#[cfg(not(target_arch = "wasm32"))]
const KEY_FILE: &str = "muse-server.key";
