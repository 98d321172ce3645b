//! The thread that holds the connection to a master, and the queues to it and from it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::address::MasterAddress;
use super::session::{MasterCredentials, Session};
use super::stream::{Dialer, Failure, Stream};

/// Options of a [`MasterSocket`].
#[derive(Clone, Debug)]
pub struct MasterSocketConfig {
    masters: Vec<MasterAddress>,
    credentials: MasterCredentials,
    ca_file: Option<PathBuf>,
}

impl MasterSocketConfig {
    /// Names the masters, of which the next one is tried when one is lost, and who connects.
    pub fn new(masters: Vec<MasterAddress>, credentials: MasterCredentials) -> Self {
        Self {
            masters,
            credentials,
            ca_file: None,
        }
    }

    /// Trusts the certificates of a PEM file besides those of the system: for a master with a certificate of your own.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.ca_file = Some(path.as_ref().to_owned());
        self
    }
}

/// Something that arrived from a master.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MasterArrival {
    /// The connection is open.
    Connected,
    /// It could not be opened, or has ended, with the reason in words.
    Lost(String),
    /// A text.
    Text(String),
    /// The answer to a request over HTTP.
    Answer(MasterAnswer),
}

/// A call over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRequest {
    /// The method.
    pub method: MasterMethod,
    /// The path, such as `/v1/friends`.
    pub path: String,
    /// The body in JSON, if there is one.
    pub body: Option<String>,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterMethod {
    /// Asks.
    Get,
    /// Does.
    Post,
    /// Sets.
    Put,
    /// Removes.
    Delete,
}

/// The answer to a request over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterAnswer {
    /// The number that the request came with.
    pub number: u64,
    /// The body, or why there is none.
    pub result: Result<String, MasterRefusal>,
}

/// A request that a master refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterRefusal {
    /// The status of HTTP; 0 if the master was not reached.
    pub status: u16,
    /// A short name of the reason.
    pub code: String,
    /// A sentence.
    pub message: String,
}

impl fmt::Display for MasterRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for MasterRefusal {}

/// A WebSocket to a master and calls over HTTP beside it, on a thread of its own, for loops that poll.
///
/// Nothing here waits, and every queue has a limit. Dropping it sends what has been handed over, for half a second at most.
#[derive(Debug)]
pub struct MasterSocket {
    /// The number of the connection that is wanted; 0 for none.
    wanted: Option<watch::Sender<u64>>,
    attempts: u64,
    commands: mpsc::Sender<Command>,
    arrivals: mpsc::Receiver<(u64, MasterArrival)>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    /// For the connection of this number.
    Send(u64, String),
    Request(u64, MasterRequest),
}

impl MasterSocket {
    /// Starts the thread; nothing is opened before [`connect`](Self::connect).
    pub fn new(config: MasterSocketConfig) -> io::Result<Self> {
        if config.masters.is_empty() {
            let message = "name at least one master";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let is_secure = config.masters.iter().any(MasterAddress::is_secure);
        let dialer = Dialer::new(is_secure, config.ca_file.as_deref())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (wanted, wants) = watch::channel(0);
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (arrived, arrivals) = mpsc::channel(ARRIVALS_MAX);
        let worker = Worker {
            masters: config.masters,
            next: 0,
            shared: Arc::new(Shared {
                dialer,
                session: Mutex::new(Session::new(config.credentials)),
                requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            }),
            wants,
            commands: received,
            arrived,
        };
        let thread = std::thread::Builder::new().name("muse-master".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(worker.run());
            // A name that is still being looked up is nobody's any more.
            runtime.shutdown_background();
        })?;
        Ok(Self {
            wanted: Some(wanted),
            attempts: 0,
            commands,
            arrivals,
            thread: Some(thread),
        })
    }

    /// Signs in and opens the connection; [`MasterArrival::Connected`] or [`MasterArrival::Lost`] follows.
    pub fn connect(&mut self) {
        self.attempts += 1;
        self.want(self.attempts);
    }

    /// Closes the connection. Nothing more arrives of it.
    pub fn disconnect(&mut self) {
        self.attempts += 1;
        self.want(0);
    }

    /// Sends a text. Returns false if the queue is full, because nothing has left it for long.
    pub fn send(&self, text: String) -> bool {
        let command = Command::Send(self.attempts, text);
        self.commands.try_send(command).is_ok()
    }

    /// Makes a call over HTTP, as the account that is signed in; [`MasterArrival::Answer`] follows with the same number. Returns false if the
    /// queue is full.
    pub fn request(&self, number: u64, request: MasterRequest) -> bool {
        let command = Command::Request(number, request);
        self.commands.try_send(command).is_ok()
    }

    /// Returns the next thing that arrived.
    pub fn poll(&mut self) -> Option<MasterArrival> {
        loop {
            let (attempt, arrival) = self.arrivals.try_recv().ok()?;
            // Messages of a connection that is no longer wanted are dropped; answers to requests belong to no connection.
            if attempt == self.attempts || matches!(arrival, MasterArrival::Answer(_)) {
                return Some(arrival);
            }
        }
    }

    fn want(&self, attempt: u64) {
        if let Some(wanted) = &self.wanted {
            wanted.send_replace(attempt);
        }
    }
}

impl Drop for MasterSocket {
    fn drop(&mut self) {
        self.wanted = None;
        // It may wait for room to tell what nobody listens to.
        self.arrivals.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    dialer: Dialer,
    session: Mutex<Session>,
    requests: Arc<Semaphore>,
}

struct Worker {
    masters: Vec<MasterAddress>,
    next: usize,
    shared: Arc<Shared>,
    wants: watch::Receiver<u64>,
    commands: mpsc::Receiver<Command>,
    arrived: mpsc::Sender<(u64, MasterArrival)>,
}

/// The socket was dropped.
struct Dropped;

impl Worker {
    async fn run(mut self) {
        while self.turn().await.is_ok() {}
    }

    /// One connection from beginning to end, or the wait for one.
    async fn turn(&mut self) -> Result<(), Dropped> {
        let attempt = *self.wants.borrow_and_update();
        if attempt == 0 {
            return self.idle().await;
        }
        let address = self.masters[self.next % self.masters.len()].clone();
        self.next += 1;
        let opened = tokio::select! {
            opened = open(&self.shared, &address) => opened,
            changed = self.wants.changed() => return changed.map_err(|_| Dropped),
        };
        let ended = match opened {
            Ok(socket) => {
                self.tell(attempt, MasterArrival::Connected).await?;
                self.talk(attempt, &address, socket).await
            }
            Err(error) => Err(Ended::Lost(error)),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(Ended::Dropped) => Err(Dropped),
            Err(Ended::Lost(error)) => {
                let reason = format!("{address}: {error}");
                self.tell(attempt, MasterArrival::Lost(reason)).await?;
                self.idle().await
            }
        }
    }

    /// Waits until another connection is wanted.
    async fn idle(&mut self) -> Result<(), Dropped> {
        loop {
            tokio::select! {
                changed = self.wants.changed() => return changed.map_err(|_| Dropped),
                command = self.commands.recv() => match command {
                    Some(Command::Request(number, _)) => {
                        let result = Err(unreached("there is no connection to the master"));
                        let answer = MasterAnswer { number, result };
                        self.tell(0, MasterArrival::Answer(answer)).await?;
                    }
                    Some(Command::Send(..)) => {}
                    None => return Err(Dropped),
                },
            }
        }
    }

    /// Carries texts until the connection ends, or until it is not wanted any more.
    async fn talk(
        &mut self,
        attempt: u64,
        address: &MasterAddress,
        mut socket: WebSocketStream<Box<dyn Stream>>,
    ) -> Result<(), Ended> {
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        let text = MasterArrival::Text(text.as_str().to_owned());
                        self.tell(attempt, text).await?;
                    }
                    Some(Ok(Message::Close(_))) | None => {
                        return Err(Ended::Lost("closed by the master".into()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(Ended::Lost(error.into())),
                },
                command = self.commands.recv() => match command {
                    Some(Command::Send(of, text)) if of == attempt => {
                        let sent = timeout(SEND_MAX, socket.send(Message::text(text))).await;
                        let sent = sent.map_err(|_| Ended::Lost("nothing leaves".into()))?;
                        sent.map_err(|error| Ended::Lost(error.into()))?;
                    }
                    Some(Command::Send(..)) => {}
                    Some(Command::Request(number, request)) => {
                        self.begin_request(address, number, request);
                    }
                    None => return self.close(attempt, socket, true).await,
                },
                changed = self.wants.changed() => {
                    return self.close(attempt, socket, changed.is_err()).await;
                }
            }
        }
    }

    /// Sends what was handed over before the connection was given up, and says goodbye.
    async fn close(
        &mut self,
        attempt: u64,
        mut socket: WebSocketStream<Box<dyn Stream>>,
        is_dropped: bool,
    ) -> Result<(), Ended> {
        let commands = &mut self.commands;
        let farewell = async {
            while let Ok(command) = commands.try_recv() {
                if let Command::Send(of, text) = command
                    && of == attempt
                    && socket.send(Message::text(text)).await.is_err()
                {
                    return;
                }
            }
            let _ = socket.close(None).await;
        };
        // The connection ends even if the master does not read the last messages in time.
        let _ = timeout(CLOSE_MAX, farewell).await;
        match is_dropped {
            true => Err(Ended::Dropped),
            false => Ok(()),
        }
    }

    fn begin_request(&self, address: &MasterAddress, number: u64, request: MasterRequest) {
        let (shared, arrived) = (Arc::clone(&self.shared), self.arrived.clone());
        let address = address.clone();
        tokio::spawn(async move {
            let permit = Arc::clone(&shared.requests).acquire_owned().await;
            let called = timeout(CALL_MAX, call(&shared, &address, request)).await;
            drop(permit);
            let result = match called {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => Err(unreached(&error.to_string())),
                Err(_) => Err(unreached("the master does not answer")),
            };
            let answer = MasterArrival::Answer(MasterAnswer { number, result });
            let _ = arrived.send((0, answer)).await;
        });
    }

    async fn tell(&self, attempt: u64, arrival: MasterArrival) -> Result<(), Dropped> {
        let sent = self.arrived.send((attempt, arrival)).await;
        sent.map_err(|_| Dropped)
    }
}

/// The end of a connection that was not given up from this side.
enum Ended {
    Lost(Failure),
    Dropped,
}

impl From<Dropped> for Ended {
    fn from(Dropped: Dropped) -> Self {
        Self::Dropped
    }
}

async fn open(
    shared: &Shared,
    address: &MasterAddress,
) -> Result<WebSocketStream<Box<dyn Stream>>, Failure> {
    let mut session = shared.session.lock().await;
    let bearer = session.sign_in(&shared.dialer, address).await?;
    shared.dialer.open(address, session.path(), &bearer).await
}

async fn call(
    shared: &Shared,
    address: &MasterAddress,
    request: MasterRequest,
) -> Result<Result<String, MasterRefusal>, Failure> {
    let bearer = {
        let mut session = shared.session.lock().await;
        session.bearer(&shared.dialer, address).await?
    };
    let method = match request.method {
        MasterMethod::Get => "GET",
        MasterMethod::Post => "POST",
        MasterMethod::Put => "PUT",
        MasterMethod::Delete => "DELETE",
    };
    let (path, body) = (&request.path, request.body);
    let dialer = &shared.dialer;
    dialer
        .call(address, method, path, Some(&bearer), body)
        .await
}

fn unreached(message: &str) -> MasterRefusal {
    MasterRefusal {
        status: 0,
        code: "unreached".to_owned(),
        message: message.to_owned(),
    }
}

/// Most texts and requests that wait to leave.
const COMMANDS_MAX: usize = 256;
/// Most arrivals that wait to be polled; the connection is read no further meanwhile.
const ARRIVALS_MAX: usize = 1_024;
/// Most calls over HTTP at the same time.
const REQUESTS_MAX: usize = 4;
/// Longest time for a text to leave.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Longest call over HTTP.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Longest time for the last messages and the close.
const CLOSE_MAX: Duration = Duration::from_millis(500);
