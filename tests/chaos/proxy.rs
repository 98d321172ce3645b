//! TCP proxies between the parts of a run: bytes are held back in one direction or in both, as on a network that drops them, and go on when it is mended.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::plan::Way;

/// A proxy in front of one address; it ends with the runtime.
#[derive(Clone)]
pub(crate) struct Proxy {
    state: Arc<State>,
    port: u16,
}

struct State {
    target: Mutex<SocketAddr>,
    /// Counts how often connections were broken: those of an earlier number end.
    age: watch::Sender<u64>,
    holds_out: AtomicBool,
    holds_back: AtomicBool,
    open: AtomicUsize,
    /// The time of the last connection.
    opened: Mutex<Option<Instant>>,
}

impl Proxy {
    /// Begins to listen at a free port.
    pub(crate) fn start(runtime: &tokio::runtime::Runtime, target: u16) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let state = Arc::new(State {
            target: Mutex::new(local(target)),
            age: watch::Sender::new(0),
            holds_out: AtomicBool::new(false),
            holds_back: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            opened: Mutex::new(None),
        });
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&shared), client));
            }
        });
        Self { state, port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Holds back what goes this way.
    pub(crate) fn cut(&self, way: Way) {
        let is = |ways: &[Way]| ways.contains(&way);
        if is(&[Way::Out, Way::Both]) {
            self.state.holds_out.store(true, Ordering::Relaxed);
        }
        if is(&[Way::Back, Way::Both]) {
            self.state.holds_back.store(true, Ordering::Relaxed);
        }
    }

    /// Lets everything through again.
    pub(crate) fn mend(&self) {
        self.state.holds_out.store(false, Ordering::Relaxed);
        self.state.holds_back.store(false, Ordering::Relaxed);
    }

    /// Leads to another port from now on; open connections are broken.
    pub(crate) fn lead_to(&self, target: u16) {
        *self.state.target.lock().expect("nobody panicked") = local(target);
        self.state.age.send_modify(|age| *age += 1);
    }

    /// The time of the last connection, if one is open.
    pub(crate) fn opened(&self) -> Option<Instant> {
        let is_open = self.state.open.load(Ordering::Relaxed) > 0;
        let opened = *self.state.opened.lock().expect("nobody panicked");
        opened.filter(|_| is_open)
    }
}

impl State {
    /// Waits until nothing is held back this way.
    async fn passes(&self, holds: &AtomicBool) {
        while holds.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn serve(state: Arc<State>, client: TcpStream) {
    state.open.fetch_add(1, Ordering::Relaxed);
    *state.opened.lock().expect("nobody panicked") = Some(Instant::now());
    let mut age = state.age.subscribe();
    tokio::select! {
        () = carry(&state, client) => {}
        _ = age.changed() => {}
    }
    state.open.fetch_sub(1, Ordering::Relaxed);
}

async fn carry(state: &State, client: TcpStream) {
    // The first packet must get through and be answered.
    state.passes(&state.holds_out).await;
    state.passes(&state.holds_back).await;
    let target = *state.target.lock().expect("nobody panicked");
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let out = copy(state, &state.holds_out, client_in, server_out);
    let back = copy(state, &state.holds_back, server_in, client_out);
    tokio::join!(out, back);
}

/// Carries bytes one way until that side ends.
async fn copy(state: &State, holds: &AtomicBool, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 16_384];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        state.passes(holds).await;
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
