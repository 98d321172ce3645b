//! An endpoint with the links that it runs over and the clock of all of them, polled from a game loop.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use muse_transport::congestion::Budget;
use muse_transport::typed::Message;
use muse_transport::{
    AdmissionError, Broadcast, ChannelStats, Config, ConfigError, ConnectionId, ConnectionStats,
    Endpoint, Event, MessageError, MessageId, SendError, SendOptions, ServerOptions,
};
use muse_wire::{Duration, Instant, Machine};

use crate::beside::Beside;
use crate::memory::{MemoryEnds, is_memory_address};
use crate::sockets::Sockets;
use crate::{Clock, MemoryDriver, SystemEntropy};

/// An endpoint over all of its links at once: a UDP socket, browsers, a relay's room, peers in the same process.
///
/// Each tick: [`poll`](Self::poll), then [`poll_event`](Self::poll_event) until there is none, the game's step,
/// [`flush`](Self::flush). [`tick`](Self::tick) does all of it. A program with nothing else to do sleeps in
/// [`wait`](Self::wait). Dropping it tells the peers.
///
/// This one serves; [`ClientDriver`](crate::ClientDriver) is the same with a connection to a server.
///
/// ```
/// use muse_drivers::{EndpointDriver, new_key};
/// use muse_transport::{ChannelConfig, Config, Delivery, Event, ServerOptions};
///
/// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let mut server = EndpointDriver::bind("[::]:0", config, ServerOptions::new(new_key()?))?;
/// let mut buffer = Vec::new();
/// for _tick in 0..3 {
///     server.poll()?;
///     while let Some(event) = server.poll_event(&mut buffer) {
///         match event {
///             Event::Connected { connection, .. } => println!("{connection:?} is here"),
///             Event::Message { connection, channel, payload } => {
///                 server.send(connection, channel, payload).expect("room in the queue");
///             }
///             _ => {}
///         }
///     }
///     let told = server.broadcast(0, b"the state of the world");
///     assert_eq!(told.sent, 0, "nobody has come yet");
///     server.flush()?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct EndpointDriver {
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Sockets,
    /// Links to peers in the same process.
    memory: MemoryEnds,
    clock: Clock,
    /// Time of the last poll or flush: one reading serves everything that happens in between.
    now: Instant,
    /// The time at which it was last known what had arrived: at the last poll, or when a datagram ended a wait.
    looked_at: Instant,
    /// The buffer into which `tick` puts payloads.
    buffer: Vec<u8>,
}

impl EndpointDriver {
    /// Serves without a socket: peers in the same process come by [`add_memory_link`](Self::add_memory_link).
    pub fn offline(config: Config, options: ServerOptions) -> io::Result<Self> {
        let mut driver = Self::new(Sockets::default(), config)?;
        driver.endpoint.listen(options);
        Ok(driver)
    }

    pub(crate) fn new(sockets: Sockets, config: Config) -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            endpoint: endpoint(clock, config)?,
            sockets,
            memory: MemoryEnds::default(),
            clock,
            now: clock.now(),
            looked_at: clock.now(),
            buffer: Vec::new(),
        })
    }

    /// Adds a link within the process and returns its other end: for a client in the same program
    /// ([`ClientDriver::over_memory`](crate::ClientDriver::over_memory)).
    pub fn add_memory_link(&mut self) -> MemoryDriver {
        self.memory.add()
    }

    pub(crate) fn attach(&mut self, end: MemoryDriver) {
        self.memory.attach(end);
    }

    /// One turn of a game loop: receives what arrived, gives every event to `handle`, sends what is to be sent.
    pub fn tick(&mut self, mut handle: impl FnMut(&mut Self, Event<'_>)) -> io::Result<()> {
        self.poll()?;
        let mut buffer = self.take_buffer();
        while let Some(event) = self.poll_event(&mut buffer) {
            handle(self, event);
        }
        self.keep_buffer(buffer);
        self.flush()
    }

    /// Receives what has arrived and handles what has become due. Errors are those of the socket itself: no peer can cause one.
    pub fn poll(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        self.endpoint.looked_away(self.now - self.looked_at);
        self.looked_at = self.now;
        let (now, machine, link) = (self.now, &mut self.endpoint, &mut self.memory);
        if link.is_empty() {
            self.sockets.receive(now, machine)?;
        } else {
            link.receive(now, machine)?;
            self.sockets.receive(now, &mut Beside { link, machine })?;
        }
        if let Some(server) = self.sockets.poll_host_key() {
            self.endpoint.pin(server);
        }
        Ok(())
    }

    /// Returns the next event. It borrows from `buffer` alone, so that the driver can be used while handling it;
    /// give the same buffer again, and nothing is allocated.
    pub fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.endpoint.poll_event(buffer)
    }

    /// Sends what is to be sent: once a tick, or at once after something urgent.
    pub fn flush(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        let (now, machine, link) = (self.now, &mut self.endpoint, &self.memory);
        if link.is_empty() {
            return self.sockets.flush(now, machine);
        }
        self.sockets.flush(now, &mut Beside { link, machine })
    }

    /// Flushes, then sleeps until something arrives or becomes due, for `timeout` at most; [`poll`](Self::poll) comes next.
    /// Returns true if something arrived. In the browser, where nothing may sleep, it only looks.
    ///
    /// A loop with ticks of its own waits here for the rest of each tick and polls whenever it wakes, instead of sleeping elsewhere:
    /// a flood of strangers' datagrams fills the socket's buffer within a tick, and what no longer fits is lost, players' packets too.
    pub fn wait(&mut self, timeout: impl Into<Duration>) -> io::Result<bool> {
        let timeout = timeout.into();
        // Only after a flush does the endpoint know what comes next.
        self.flush()?;
        // What is due at an endpoint that may not send yet is not done before the relay's link has something to do.
        let endpoint = match self.sockets.is_waiting() {
            true => None,
            false => self.endpoint.poll_timeout(),
        };
        let due = [endpoint, self.sockets.poll_timeout()];
        let due = due.into_iter().flatten().min();
        let due = due.map_or(timeout, |due| self.clock.until(due));
        let until = self.clock.now() + due.min(timeout);
        let arrived = loop {
            if self.memory.has_waiting() {
                break true;
            }
            let left = self.clock.until(until);
            // Nothing wakes a socket for a datagram in memory, so those are looked for now and then.
            let alone = self.memory.is_empty();
            let slice = if alone {
                left
            } else {
                left.min(MEMORY_WAIT_MAX)
            };
            let woken = self.sockets.wait(slice)?;
            if woken || alone || left <= slice {
                break woken;
            }
        };
        self.looked_at = self.clock.now();
        Ok(arrived)
    }

    /// Sends a message on a channel, as the channel's config says.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
    ) -> Result<MessageId, SendError> {
        self.send_with(connection, channel, payload, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        self.endpoint
            .send_with(self.now, connection, channel, payload, options)
    }

    /// Sends a typed message; the peer gives it to a [`Dispatcher`](muse_transport::Dispatcher).
    pub fn send_message<M: Message>(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        message: &M,
    ) -> Result<MessageId, MessageError> {
        self.endpoint
            .send_message(self.now, connection, channel, message)
    }

    /// Sends a message to every peer.
    pub fn broadcast(&mut self, channel: u8, payload: &[u8]) -> Broadcast {
        self.endpoint.broadcast(self.now, channel, payload)
    }

    /// Sends a message to every peer that `wanted` agrees to.
    pub fn broadcast_if(
        &mut self,
        channel: u8,
        payload: &[u8],
        wanted: impl FnMut(ConnectionId) -> bool,
    ) -> Broadcast {
        self.endpoint
            .broadcast_if(self.now, channel, payload, wanted)
    }

    /// Sends a typed message to every peer, encoded once.
    pub fn broadcast_message<M: Message>(
        &mut self,
        channel: u8,
        message: &M,
    ) -> Result<Broadcast, MessageError> {
        self.endpoint.broadcast_message(self.now, channel, message)
    }

    /// Lets a client in that [asks](Event::Asking).
    pub fn admit(&mut self, connection: ConnectionId) -> Result<(), AdmissionError> {
        self.endpoint.admit(self.now, connection)
    }

    /// Refuses a client that [asks](Event::Asking), which reads `code` and `text`.
    pub fn deny(
        &mut self,
        connection: ConnectionId,
        code: u16,
        text: &str,
    ) -> Result<(), AdmissionError> {
        self.endpoint.deny(self.now, connection, code, text)
    }

    /// Closes a connection at once and tells the peer why. What is still on its way may be lost.
    pub fn close(&mut self, connection: ConnectionId, code: u16, text: &str) {
        self.endpoint.close(self.now, connection, code, text);
    }

    /// Closes a connection and lets the peer come back no more: nothing is taken from its IP address (IPv6: /64) as long as this endpoint
    /// lives, and the relay of a room lets nobody in from there. Others with the same address lose their connections too. A peer in the
    /// same process or on the same machine is closed only.
    pub fn ban(&mut self, connection: ConnectionId, code: u16, text: &str) {
        let (now, sockets) = (self.now, &mut self.sockets);
        let at_relay = |peer| sockets.ban(now, peer);
        ban(now, &mut self.endpoint, connection, (code, text), at_relay);
    }

    /// Closes a connection once everything reliable has arrived; [`Event::Closed`] says when. Nothing more can be sent meanwhile.
    pub fn finish(&mut self, connection: ConnectionId, code: u16, text: &str) {
        self.endpoint.finish(self.now, connection, code, text);
    }

    /// Returns the connections, in no particular order.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.endpoint.connections()
    }

    /// Returns state and counters of a connection; `None` if there is none.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.endpoint.stats(connection)
    }

    /// Returns the counters of one channel of a connection.
    pub fn channel_stats(&self, connection: ConnectionId, channel: u8) -> Option<ChannelStats> {
        self.endpoint.channel_stats(connection, channel)
    }

    /// Returns what may be sent on a connection now and in the long run.
    pub fn budget(&mut self, connection: ConnectionId) -> Option<Budget> {
        self.endpoint.budget(self.now, connection)
    }

    /// Returns the time to which deadlines of messages refer: that of the last poll or flush.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the endpoint below, for everything that is not here.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the endpoint below, to change it; its `now` is [`now`](Self::now).
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Takes the buffer that [`tick`](Self::tick) puts payloads into, for a loop of your own; [`keep_buffer`](Self::keep_buffer) gives it back.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Keeps a buffer for the next turn, unless it has become huge.
    pub fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(BUFFER_KEPT_MAX);
        self.buffer = buffer;
    }
}

impl Drop for EndpointDriver {
    /// Says goodbye, so that peers need not wait for a silence to know. One packet each: if it is lost they wait after all.
    fn drop(&mut self) {
        say_goodbye(self.clock.now(), &mut self.endpoint);
        // What was said goes first: a relay that is left passes nothing on.
        let _ = self.flush();
        self.sockets.leave();
        // Nobody is left to report an error to.
        let _ = self.flush();
    }
}

impl fmt::Debug for EndpointDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointDriver")
            .field("sockets", &self.sockets)
            .finish_non_exhaustive()
    }
}

/// An endpoint with the system's randomness and wall clock.
pub(crate) fn endpoint(clock: Clock, config: Config) -> io::Result<Endpoint> {
    let config = config.build().map_err(invalid_config)?;
    let mut endpoint = Endpoint::new(config, SystemEntropy::new()?);
    let unix_s = crate::clock::unix_time().as_micros() / 1_000_000;
    endpoint.set_unix_time(clock.now(), unix_s);
    Ok(endpoint)
}

/// Closes a connection for this reason and takes nothing more from its peer. `at_relay` has the relay do the same, and returns the
/// addresses of the peer that are known.
pub(crate) fn ban(
    now: Instant,
    endpoint: &mut Endpoint,
    connection: ConnectionId,
    (code, text): (u16, &str),
    at_relay: impl FnOnce(SocketAddr) -> Vec<SocketAddr>,
) {
    let Some(remote) = endpoint.remote(connection) else {
        return;
    };
    endpoint.close(now, connection, code, text);
    if is_memory_address(remote) {
        return;
    }
    let mut known = at_relay(remote);
    known.push(remote);
    for address in known {
        endpoint.ban(address.ip());
    }
    let others: Vec<ConnectionId> = endpoint.connections().collect();
    for other in others {
        let remote = endpoint.remote(other);
        if remote.is_some_and(|remote| endpoint.is_banned(remote.ip())) {
            endpoint.close(now, other, code, text);
        }
    }
}

pub(crate) fn say_goodbye(now: Instant, endpoint: &mut Endpoint) {
    let connections: Vec<ConnectionId> = endpoint.connections().collect();
    for connection in connections {
        endpoint.close(now, connection, 0, "the program let go of the connection");
    }
}

fn invalid_config(error: ConfigError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Largest buffer that `tick` keeps: one huge message should not hold its memory for ever.
const BUFFER_KEPT_MAX: usize = 1 << 20;
/// The longest that a datagram of a peer in the same process waits for a driver that sleeps.
const MEMORY_WAIT_MAX: Duration = Duration::from_millis(1);
