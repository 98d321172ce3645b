//! The interface that a library under test implements.

use std::net::SocketAddr;
use std::time::Duration;

use crate::options::Options;

/// A networking library under test: how to open its server and its clients.
pub trait Library {
    /// The server: one socket, many connections.
    type Server: Peer;
    /// All clients of one process, each with a socket of its own.
    type Clients: Clients;

    /// Opens a server on [`Options::port`] of the loopback interface and says which port it got.
    fn serve(options: &Options) -> Result<(Self::Server, u16), Failure>;

    /// A process for clients of `server`, none of them there yet.
    fn clients(options: &Options, server: SocketAddr) -> Result<Self::Clients, Failure>;
}

/// The clients of one process.
pub trait Clients: Peer {
    /// Opens a client more and starts to connect it.
    fn add(&mut self) -> Result<(), Failure>;
}

/// A set of connections: all of a server's, or all clients of one process.
///
/// Connections are numbered from 0 in the order in which they came about. A workload's loop is: [`poll`](Peer::poll),
/// any number of [`send`](Peer::send), [`flush`](Peer::flush), then [`sleep`](Peer::sleep) or [`wait`](Peer::wait).
pub trait Peer {
    /// True if messages sent as [`Kind::Reliable`] surely arrive. False for bare datagrams alone.
    const RELIABLE: bool = true;

    /// Number of reliable messages that W2 keeps between its two applications. The window is the workload's own, so that a
    /// library without back-pressure needs no queue without limit; large enough for it never to matter otherwise.
    const IN_FLIGHT_MAX: u64 = 4_096;

    /// Number of established connections.
    fn connected(&self) -> usize;

    /// Takes in all that has arrived, runs the timers that are due, and calls `received` with each message, its
    /// connection and the kind of channel it came on.
    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8]));

    /// Hands a message to the library.
    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent;

    /// Called when the tick's messages have all been handed over: everything that was delayed goes out now.
    fn flush(&mut self);

    /// Returns when something may have arrived or become possible, at the latest after `timeout`.
    fn wait(&mut self, timeout: Duration);

    /// Lets `duration` pass, whatever arrives. A library with a runtime of its own runs it meanwhile.
    fn sleep(&mut self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The kind of channel a message travels on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// May be lost.
    Unreliable,
    /// Reliable and ordered.
    Reliable,
}

/// Tells whether a library took a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// It is on its way.
    Accepted,
    /// Back-pressure: not taken, to be tried again later.
    Full,
}

/// The reason that a role could not run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
}

impl Failure {
    /// A failure with a message of one line.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
