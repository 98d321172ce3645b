//! The thread for browsers: opens the sockets, accepts, keeps up with certificates, and ends everything.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener as StdTcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use wtransport::Endpoint;
use wtransport::endpoint::endpoint_side;

use super::certificate;
use super::doors::{Doors, Limits};
use super::options::WebOptions;
use super::port::Harbour;
use super::shared::{FromWeb, Shared};
use super::socket::{self, Sockets};
use super::transport::{self, Transports};
use crate::native::tls::TlsCertificate;

/// The addresses of the listener.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) transport_address: SocketAddr,
}

/// The thread's whole life: until `stopped` resolves, and what is queued is sent.
pub(super) fn run(
    options: WebOptions,
    to_game: mpsc::Sender<FromWeb>,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
    bound: &SyncSender<io::Result<Bound>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = bound.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        let doors = Doors::new(Limits {
            all: options.sessions_max,
            per_address: options.sessions_per_address,
            per_prefix: options
                .sessions_per_prefix
                .max(options.sessions_per_address),
        });
        match open(&options, &shared) {
            Ok(open) => {
                let _ = bound.send(Ok(Bound {
                    address: open.address,
                    transport_address: open.transport_address,
                }));
                let harbour = Harbour::new(to_game, Arc::clone(&shared), options.datagram_max);
                serve(open, options, &doors, harbour, stopped).await;
            }
            Err(error) => {
                let _ = bound.send(Err(error));
            }
        }
    });
    runtime.shutdown_background();
}

/// The sockets that are open.
struct Open {
    listener: TcpListener,
    address: SocketAddr,
    endpoint: Endpoint<endpoint_side::Server>,
    transport_address: SocketAddr,
    /// A socket for the endpoint's next settings.
    spare: UdpSocket,
    /// The operator's, for HTTP and WebSockets.
    certificate: Option<TlsCertificate>,
}

fn open(options: &WebOptions, shared: &Shared) -> io::Result<Open> {
    let listener = bind_tcp(options.address)?;
    let address = listener.local_addr()?;
    let socket = bind_udp(SocketAddr::new(
        options.address.ip(),
        options.transport_port,
    ))?;
    let transport_address = socket.local_addr()?;
    let files = options.certificate.as_ref();
    let certificate = files.map(|(chain, key)| TlsCertificate::from_files(chain, key));
    let certificate = certificate.transpose().map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("certificate {error}"))
    })?;
    let (identity, hash) = certificate::self_signed()?;
    shared.set_certificate_hash(Some(hash));
    Ok(Open {
        listener: TcpListener::from_std(listener)?,
        address,
        spare: socket.try_clone()?,
        endpoint: Endpoint::server(transport::server_config(socket, identity))?,
        transport_address,
        certificate,
    })
}

async fn serve(
    open: Open,
    options: WebOptions,
    doors: &Doors,
    harbour: Harbour,
    stopped: oneshot::Receiver<()>,
) {
    let certificate = open.certificate;
    let sockets = Arc::new(Sockets {
        options: options.clone(),
        doors: doors.clone(),
        harbour: harbour.clone(),
        tls: certificate.as_ref().map(|it| it.acceptor(&[])),
        transport_port: open.transport_address.port(),
    });
    let transports = Arc::new(Transports {
        options,
        doors: doors.clone(),
        harbour: harbour.clone(),
    });
    tokio::select! {
        () = socket::accept(open.listener, sockets) => {}
        () = transport::accept(&open.endpoint, transports) => {}
        () = renew(&open.endpoint, &open.spare, &harbour) => {}
        () = watch(certificate) => {}
        _ = stopped => {}
    }
    // The endpoint closes what is open when it is dropped; sessions need it until they have said their last.
    finish(doors).await;
}

/// Keeps up with the operator's certificate; without one there is nothing to do.
async fn watch(certificate: Option<TlsCertificate>) {
    match certificate {
        Some(certificate) => certificate.watch().await,
        None => std::future::pending().await,
    }
}

/// Makes a new certificate for WebTransport from time to time. Sessions keep the one they began with.
async fn renew(endpoint: &Endpoint<endpoint_side::Server>, spare: &UdpSocket, harbour: &Harbour) {
    loop {
        tokio::time::sleep(certificate::RENEW_AFTER).await;
        let renewed = || -> io::Result<[u8; 32]> {
            let (identity, hash) = certificate::self_signed()?;
            let config = transport::server_config(spare.try_clone()?, identity);
            endpoint.reload_config(config, false)?;
            Ok(hash)
        };
        match renewed() {
            Ok(hash) => harbour.shared().set_certificate_hash(Some(hash)),
            Err(error) => tracing::warn!(%error, "the certificate of WebTransport was not renewed"),
        }
    }
}

/// Lets sessions send their last messages, for a second at most.
async fn finish(doors: &Doors) {
    let until = tokio::time::Instant::now() + FINISH_WITHIN;
    while doors.inside() > 0 && tokio::time::Instant::now() < until {
        tokio::time::sleep(FINISH_STEP).await;
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<StdTcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A server that starts again must not wait for connections of its predecessor to time out.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    dual_stack(&socket, address)?;
    let named = |error: io::Error| io::Error::new(error.kind(), format!("TCP {address}: {error}"));
    socket.bind(&address.into()).map_err(named)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn bind_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    dual_stack(&socket, address)?;
    let named = |error: io::Error| io::Error::new(error.kind(), format!("UDP {address}: {error}"));
    socket.bind(&address.into()).map_err(named)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// `[::]` takes IPv4 too, as game servers do.
fn dual_stack(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        socket.set_only_v6(false)?;
    }
    Ok(())
}

/// Connections that the system may hold until they are accepted.
const BACKLOG: i32 = 256;
/// The time that the last words of sessions may take.
const FINISH_WITHIN: Duration = Duration::from_secs(1);
const FINISH_STEP: Duration = Duration::from_millis(5);
