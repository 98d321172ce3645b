//! The address that a server listens at and the one that a client connects to, with their options.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;

use muse_drivers::relay::Invitation;
use muse_transport::token::{ConnectToken, TokenVerifier};
use muse_transport::{AdmissionLimits, Connect, HandshakeLimits, ServerKey, ServerOptions};
use muse_wire::Duration;

use crate::{Error, Protocol, Result, ServerAddress};

/// The address that a server listens at, and the key by which it is known. A text such as `"[::]:7000"` is enough for a start.
///
/// ```
/// use muse::Listen;
/// let listen = Listen::at("127.0.0.1:0").key_file("tag.key");
/// # let _ = listen;
/// ```
#[derive(Debug)]
pub struct Listen {
    address: String,
    key: Key,
    tokens: Option<TokenVerifier>,
    limits: Option<HandshakeLimits>,
    admission: Option<AdmissionLimits>,
    room: Option<String>,
    #[cfg(feature = "web")]
    web: Option<muse_drivers::WebOptions>,
}

#[derive(Debug)]
enum Key {
    File(PathBuf),
    Given(Box<ServerKey>),
}

impl Listen {
    /// Listens at this address: `"[::]:7000"` for both IP versions, port 0 for any free port.
    pub fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            key: Key::File(PathBuf::from(KEY_FILE)),
            tokens: None,
            limits: None,
            admission: None,
            room: None,
            #[cfg(feature = "web")]
            web: None,
        }
    }

    /// Opens a room at a relay besides, so that players behind routers can come by an invitation.
    pub fn room(mut self, relay: &str) -> Self {
        self.room = Some(relay.to_owned());
        self
    }

    /// Keeps the server's key in this file, made on the first run. Default: `muse-server.key` in the current folder.
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Key::File(path.into());
        self
    }

    /// Is known by this key.
    pub fn key(mut self, key: ServerKey) -> Self {
        self.key = Key::Given(Box::new(key));
        self
    }

    /// Admits holders of connect tokens only.
    pub fn tokens(mut self, verifier: TokenVerifier) -> Self {
        self.tokens = Some(verifier);
        self
    }

    /// Asks the game about each client before it is in ([`ServerEvent::Asking`](crate::ServerEvent::Asking)), with
    /// [`admit`](crate::Server::admit) and [`deny`](crate::Server::deny) as answers.
    pub fn ask(mut self) -> Self {
        self.admission = Some(AdmissionLimits::default());
        self
    }

    /// Limits handshakes otherwise than by default.
    pub fn limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Lets browsers in besides, over WebTransport and WebSocket.
    #[cfg(feature = "web")]
    pub fn web(mut self, web: muse_drivers::WebOptions) -> Self {
        self.web = Some(web);
        self
    }

    /// Binds everything. Returns the connections, and the address to tell players.
    pub(crate) fn open(self, protocol: &Protocol) -> Result<Open> {
        protocol.check()?;
        let key = match self.key {
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
        let link = muse_drivers::Server::bind(&*self.address, protocol.config(), options)?;
        #[cfg(feature = "web")]
        let link = match self.web {
            Some(web) => link.with_web(muse_drivers::WebListener::bind(web)?)?,
            None => link,
        };
        let mut link = link;
        let bound = link.local_addr()?;
        let host = reachable_ip(bound.ip());
        let address = ServerAddress::new(&host.to_string(), bound.port(), public)
            .map_err(|error| Error::Io(std::io::Error::other(error)))?;
        let invitation = match &self.room {
            None => None,
            Some(relay) => {
                let relay = lookup(relay)?;
                let code = link.open_room(relay)?;
                let host_key = *public.as_bytes();
                Some(Invitation {
                    relay,
                    code,
                    host_key,
                })
            }
        };
        Ok(Open {
            link,
            address,
            invitation,
        })
    }
}

impl From<&str> for Listen {
    fn from(address: &str) -> Self {
        Self::at(address)
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::at(&address.to_string())
    }
}

/// The outcome of [`Listen::open`].
pub(crate) struct Open {
    pub(crate) link: muse_drivers::Server,
    pub(crate) address: ServerAddress,
    pub(crate) invitation: Option<Invitation>,
}

/// The server that a client connects to. The text that a server prints, `muse://HOST:PORT/KEY` or an invitation to a room, is enough for a start.
///
/// ```
/// use muse::Join;
/// # let key = muse::ServerPublicKey::from_bytes([7; 32]);
/// let join = Join::to(&format!("muse://127.0.0.1:7000/{key}")).hello(b"Ada");
/// # let _ = join;
/// ```
#[derive(Clone, Debug)]
pub struct Join {
    to: Target,
    hello: Vec<u8>,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Target {
    Text(String),
    Token(String, Box<ConnectToken>),
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

    /// Says this to the server when connecting, up to 256 bytes: a name, for example. It is encrypted.
    pub fn hello(mut self, hello: &[u8]) -> Self {
        self.hello = hello.to_vec();
        self
    }

    /// Sets the time after which it gives up when nobody answers. Default: 10 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn new(to: Target) -> Self {
        Self {
            to,
            hello: Vec::new(),
            timeout: None,
        }
    }

    /// Begins to connect.
    pub(crate) fn open(self, protocol: &Protocol) -> Result<muse_drivers::Client> {
        protocol.check()?;
        let config = protocol.config();
        let with = |connect: Connect| {
            let connect = connect.hello(&self.hello);
            match self.timeout {
                Some(timeout) => connect.timeout(timeout),
                None => connect,
            }
        };
        let invalid = |error: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, error);
        let link = match self.to {
            Target::Token(address, token) => {
                muse_drivers::Client::connect(&*address, config, with(Connect::token(*token)))?
            }
            Target::Text(text) => match text.parse::<Invitation>() {
                Ok(invitation) => {
                    let key = muse_transport::ServerPublicKey::from_bytes(invitation.host_key);
                    let (relay, code) = (invitation.relay, invitation.code);
                    muse_drivers::Client::join(relay, code, config, with(Connect::pinned(key)))?
                }
                Err(_) => {
                    let address: ServerAddress = text
                        .parse()
                        .map_err(|error| invalid(format!("{text:?}: {error}")))?;
                    let (host, key) = (address.host(), address.key());
                    let to = (host.as_str(), address.port());
                    muse_drivers::Client::connect(to, config, with(Connect::pinned(key)))?
                }
            },
        };
        Ok(link)
    }
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

impl From<&Invitation> for Join {
    fn from(invitation: &Invitation) -> Self {
        Self::to(&invitation.to_string())
    }
}

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

fn lookup(name: &str) -> Result<SocketAddr> {
    let none = || {
        let text = format!("{name} has no address");
        std::io::Error::new(std::io::ErrorKind::NotFound, text)
    };
    Ok(name.to_socket_addrs()?.next().ok_or_else(none)?)
}

/// The file that holds a server's key by default.
const KEY_FILE: &str = "muse-server.key";
