//! A game server's connection to its master, with a socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use muse_drivers::master::MasterSocketConfig;
use muse_drivers::{MasterAddress, MasterCredentials, MasterLink};
use muse_transport::token::TokenVerifier;
use muse_transport::{Endpoint, ServerPublicKey};
use muse_wire::Instant;

use super::{HostEvent, HostedMatch};
use crate::{Listen, Result};

/// Everything that a game server must know before it starts: its master, its credentials, the port to bind, and where players reach it.
#[derive(Clone, Debug)]
pub struct MatchHostConfig {
    masters: Vec<MasterAddress>,
    credentials: MasterCredentials,
    port: u16,
    address: String,
    ca_file: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
}

impl MatchHostConfig {
    /// Names one master, or several with commas between, of which the next one is tried when one is lost. Players reach the server at `address`,
    /// host and port; `port` is what it binds.
    pub fn new(
        master: &str,
        credentials: MasterCredentials,
        port: u16,
        address: &str,
    ) -> io::Result<Self> {
        Ok(Self {
            masters: MasterAddress::parse_list(master)?,
            credentials,
            port,
            address: address.to_owned(),
            ca_file: None,
            certificate: None,
        })
    }

    /// Reads what a master sets for the servers that it starts: `MUSE_MASTER`, `MUSE_SERVER_CREDENTIAL`, `MUSE_SERVER_ADDRESS` and
    /// `MUSE_SERVER_PORT`, and `MUSE_SERVER_CERT` and `MUSE_SERVER_CERT_KEY` if it serves TLS; `MUSE_MASTER_CA` may name a PEM file of certificates to
    /// trust besides the system's. Returns none if no master has started this program.
    pub fn from_environment() -> io::Result<Option<Self>> {
        let Ok(master) = std::env::var("MUSE_MASTER") else {
            return Ok(None);
        };
        let (port, address) = (
            variable("MUSE_SERVER_PORT")?,
            variable("MUSE_SERVER_ADDRESS")?,
        );
        let port = port
            .parse()
            .map_err(|_| invalid("MUSE_SERVER_PORT is not a port"))?;
        let credential = variable("MUSE_SERVER_CREDENTIAL")?;
        let credentials = MasterCredentials::Server { credential };
        let mut config = Self::new(&master, credentials, port, &address)?;
        if let Some(chain) = std::env::var_os("MUSE_SERVER_CERT") {
            config = config.certificate(chain, variable("MUSE_SERVER_CERT_KEY")?);
        }
        Ok(Some(match std::env::var_os("MUSE_MASTER_CA") {
            Some(file) => config.ca_file(file),
            None => config,
        }))
    }

    /// Trusts the certificates of a PEM file besides those of the system: for a master with a certificate of your own.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Names the PEM files of a certificate chain and its key, which browsers trust for the host of `address`: for pages that come over HTTPS.
    pub fn certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((chain.into(), key.into()));
        self
    }

    /// Returns the PEM files of the certificate for browsers and of its key, if there is one.
    pub fn certificate_files(&self) -> Option<(&Path, &Path)> {
        let (chain, key) = self.certificate.as_ref()?;
        Some((chain.as_path(), key.as_path()))
    }

    /// Returns how to let browsers in at the TCP port with the number of [`listen_address`](Self::listen_address), for [`Listen::web`]: with the certificate, if
    /// there is one.
    #[cfg(feature = "web")]
    pub fn web(&self) -> crate::WebOptions {
        let options = crate::WebOptions::new(self.listen_address());
        match self.certificate_files() {
            Some((chain, key)) => options.certificate(chain, key),
            None => options,
        }
    }

    /// Returns the address to bind.
    pub fn listen_address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port))
    }

    /// Returns where to listen, with a key of this run's own, for holders of tokens only; and the public key for [`start`](Self::start).
    pub fn listen(&self) -> io::Result<(Listen, ServerPublicKey)> {
        let key = muse_drivers::new_key()?;
        let public = key.public();
        let listen = Listen::from(self.listen_address()).key(key);
        Ok((listen.tokens(TokenVerifier::new()), public))
    }

    /// Starts to connect to the master. `now` is the time of the endpoint that the host will serve.
    pub fn start(self, now: Instant, public_key: &ServerPublicKey) -> io::Result<MatchHost> {
        let mut socket = MasterSocketConfig::new(self.masters, self.credentials);
        if let Some(file) = self.ca_file {
            socket = socket.ca_file(file);
        }
        let machine = HostedMatch::new(&self.address, &public_key.to_string());
        Ok(MatchHost {
            link: MasterLink::new(socket, machine, now)?,
        })
    }
}

/// A game server's connection to its master: enrols, takes a match, reports each second, hands in the result. The match is reached through it.
///
/// Call [`turn`](Self::turn) in the server's loop until it returns no event. Nothing here waits.
#[derive(Debug)]
pub struct MatchHost {
    link: MasterLink<HostedMatch>,
}

impl MatchHost {
    /// Does what is due and returns the next thing that the master wants. From the assignment on, `endpoint` admits the holders of seats.
    ///
    /// # Errors
    /// As [`HostedMatch::poll_event`].
    pub fn turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Result<Option<HostEvent>> {
        self.link.receive(now);
        let event = self.link.poll_event(endpoint);
        // A server's machine asks nothing of the game but what its events say.
        while self.link.poll_command(now).is_some() {}
        event
    }
}

impl Deref for MatchHost {
    type Target = HostedMatch;

    fn deref(&self) -> &HostedMatch {
        &self.link
    }
}

impl DerefMut for MatchHost {
    fn deref_mut(&mut self) -> &mut HostedMatch {
        &mut self.link
    }
}

fn variable(name: &str) -> io::Result<String> {
    let missing = || {
        invalid(&format!(
            "MUSE_MASTER is set, and {name} is not: a master sets both"
        ))
    };
    std::env::var(name).map_err(|_| missing())
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
