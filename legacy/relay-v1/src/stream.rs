//! The interface between a driver and a sans-IO core for byte streams (TCP), beside datagrams.

use std::net::SocketAddr;

use muse_wire::{Instant, Machine};

/// A [`Machine`] that has byte streams as well: a server of many streams, or a client of one.
///
/// The driver names each stream and keeps the name until the machine has asked to close it. A machine closes every stream
/// that it took, also those that the peer ended. After each `handle_*` the driver calls
/// [`poll_stream`](StreamMachine::poll_stream) until it returns `None`.
pub trait StreamMachine: Machine {
    /// A stream to `peer` is open. False refuses it: the driver closes it and forgets its name.
    fn handle_open(&mut self, now: Instant, stream: StreamId, peer: SocketAddr) -> bool;

    /// Returns the number of bytes that the driver may read from the stream now. Zero leaves them with the sender; the driver asks again
    /// after [`handle_timeout`](Machine::handle_timeout).
    fn read_limit(&mut self, now: Instant, stream: StreamId) -> usize;

    /// Bytes arrived, at most as many as [`read_limit`](StreamMachine::read_limit) allowed.
    fn handle_bytes(&mut self, now: Instant, stream: StreamId, bytes: &[u8]);

    /// Nothing more will arrive: the peer ended the stream, or it broke. May be said more than once.
    fn handle_end(&mut self, now: Instant, stream: StreamId);

    /// Returns the next thing to do with a stream.
    fn poll_stream(&mut self, now: Instant) -> Option<StreamAction>;

    /// The bytes to write next; empty when there are none.
    fn outgoing(&self, stream: StreamId) -> &[u8];

    /// The first `len` bytes of [`outgoing`](StreamMachine::outgoing) are written. Called after every attempt, also with zero
    /// when the stream takes nothing now.
    fn handle_written(&mut self, now: Instant, stream: StreamId, len: usize);
}

/// A stream, by the number that the driver gave it. Numbers are small and used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// A request of a [`StreamMachine`] about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamAction {
    /// There is something to write.
    Write(StreamId),
    /// Close it in order: what was written still arrives.
    Close(StreamId),
    /// Break it off: what was written but has not arrived is lost, and the system forgets it at once.
    Abort(StreamId),
}
