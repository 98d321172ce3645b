//! The sockets of a master: for players, for its game servers beside TLS, and for operators if they have an address of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use muse_drivers::TlsCertificate;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::config::MasterConfig;
use crate::proxies::Proxies;
use crate::server::StartError;
use crate::serving::{ConnectionLimits, Serving};

/// The sockets that listen, each with its address.
pub(crate) struct Sockets {
    /// The address for players.
    pub(crate) address: SocketAddr,
    players: TcpListener,
    tls: Option<TlsAcceptor>,
    /// For game servers on this machine, if players come over TLS.
    servers: Option<(TcpListener, SocketAddr)>,
    pub(crate) operators: Option<(TcpListener, SocketAddr)>,
}

/// The routes of each.
pub(crate) struct Routes {
    pub(crate) players: Router,
    pub(crate) servers: Router,
    pub(crate) operators: Router,
}

impl Sockets {
    /// Listens, and keeps up with the certificate from then on.
    pub(crate) async fn open(config: &MasterConfig) -> Result<Self, StartError> {
        let files = config.tls.as_ref();
        let certificate = files.map(|(chain, key)| TlsCertificate::from_files(chain, key));
        let certificate = certificate.transpose()?;
        let (players, address) = bind(config.listen).await?;
        let servers = match certificate {
            Some(_) => Some(bind(beside(config.listen, address)).await?),
            None => None,
        };
        let operators = match config.operator_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let tls = certificate.map(|certificate| {
            let acceptor = certificate.acceptor(&[b"http/1.1"]);
            tokio::spawn(certificate.watch());
            acceptor
        });
        Ok(Self {
            address,
            players,
            tls,
            servers,
            operators,
        })
    }

    /// Returns the address for game servers on this machine.
    pub(crate) fn for_servers(&self) -> SocketAddr {
        self.servers
            .as_ref()
            .map_or(self.address, |(_, address)| *address)
    }

    /// Serves at all of them until `closing` says so, and then until the last connection has ended.
    pub(crate) fn serve(
        self,
        routes: Routes,
        limits: ConnectionLimits,
        proxies: Proxies,
        closing: &watch::Receiver<bool>,
    ) -> JoinSet<()> {
        let mut served = JoinSet::new();
        if let Some((listener, _)) = self.servers {
            let servers = Serving {
                listener,
                tls: None,
                routes: routes.servers,
                // Everybody comes from this machine.
                limits: ConnectionLimits {
                    per_address: 0,
                    ..limits
                },
                proxies: Arc::default(),
            };
            served.spawn(servers.serve(closing.clone()));
        }
        if let Some((listener, address)) = self.operators {
            let operators = Serving {
                listener,
                tls: self.tls.clone().filter(|_| !address.ip().is_loopback()),
                routes: routes.operators,
                limits,
                proxies: Arc::default(),
            };
            served.spawn(operators.serve(closing.clone()));
        }
        let players = Serving {
            listener: self.players,
            tls: self.tls,
            routes: routes.players,
            limits,
            proxies: Arc::new(proxies),
        };
        served.spawn(players.serve(closing.clone()));
        served
    }
}

/// Returns the address for game servers on this machine: the port after that of players, or any if the system chose theirs.
fn beside(wanted: SocketAddr, players: SocketAddr) -> SocketAddr {
    let port = match wanted.port() {
        0 => 0,
        _ => players.port().checked_add(1).unwrap_or(0),
    };
    (Ipv4Addr::LOCALHOST, port).into()
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
