//! A small HTTP server on a thread of its own, for the pages that commands offer beside their work: a relay's metrics, the proxy's sliders.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;

/// Serves `pages` at `address` for as long as the program runs, and returns the bound address.
///
/// Each connection has a few seconds for one request; when many are open, further ones wait.
pub fn serve(address: SocketAddr, pages: Router) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    std::thread::spawn(move || runtime.block_on(accept(listener, pages)));
    Ok(address)
}

async fn accept(listener: tokio::net::TcpListener, pages: Router) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors: others may be closed soon.
                tracing::debug!("page: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(pages.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            match tokio::time::timeout(PATIENCE, connection).await {
                Ok(Ok(())) => (),
                Ok(Err(error)) => tracing::debug!("page: {error}"),
                Err(_) => tracing::debug!("page: a connection took too long"),
            }
            drop(place);
        });
    }
}

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// Longest time for a connection; answers themselves take up to two seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for which nobody is accepted after the system ran out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
