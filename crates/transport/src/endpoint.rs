//! Many connections behind one socket: the machine that a driver runs, for servers and clients alike.

mod admission;
mod attempt;
mod bans;
mod messages;
mod options;
mod pinning;
mod schedule;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::keyed::KeyedMap;
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit, log};
use thiserror::Error;

use self::admission::{Admission, Asking};
pub use self::admission::{AdmissionError, AdmissionLimits};
pub use self::attempt::ADDRESSES_MAX;
use self::attempt::{Attempt, Verdict};
use self::bans::Bans;
pub use self::messages::Broadcast;
pub use self::options::{Connect, ServerOptions};
use self::schedule::Schedule;
use self::sessions::Sessions;
use crate::config::{Agreement, CONNECTIONS_LIMIT, Config};
use crate::congestion::Budget;
use crate::connection::{CODE_REPLACED, Connection, Newcomer, Shared};
use crate::crypto::{Entropy, KeyLog, ServerPublicKey, draw_keyed};
use crate::event::{CloseReason, ConnectionId, Event, MessageId, SendError, SendOptions};
use crate::handshake::{
    ClientRandom, ConnectRequest, HANDSHAKE_LEN_MAX, HandshakeCounters, Listener, Outcome,
    REPLY_LEN_MAX, Refusal,
};
use crate::inbox::{LEVEL_LAST, Rare};
use crate::packet::Header;
use crate::stats::{ChannelStats, ConnectionStats};
use crate::token::{TokenId, TokenVerifier};

/// Replies to handshakes that may wait to be sent; further ones are dropped, clients repeat themselves.
const REPLIES_MAX: usize = 256;
/// The time within which an accepted client must send its first packet.
const CONFIRM_WITHIN: Duration = Duration::from_secs(12);

/// A socket's worth of connections: accepts them if it [listens](Endpoint::listen), makes them with
/// [`connect`](Endpoint::connect), or both.
///
/// Sans-IO. The order of calls is that of [`Machine`]; between them send messages, and read what happened with
/// [`poll_event`](Endpoint::poll_event) until it returns `None`. What was sent leaves with the next
/// [`poll_transmit`](Machine::poll_transmit): flush once a tick, or at once.
///
/// ```
/// use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, Event, SeededEntropy, ServerKey, ServerOptions};
/// use muse_wire::{Datagram, Ecn, Instant, Machine};
///
/// let config = Config::new(1).channel(ChannelConfig::new(Delivery::ReliableOrdered)).build()?;
/// let mut entropy = SeededEntropy::danger_seeded(1); // drivers use the operating system's randomness
/// let key = ServerKey::generate(&mut entropy);
/// let public = key.public();
/// let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// server.listen(ServerOptions::new(key));
/// let mut client = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// let (here, there) = ("127.0.0.1:1".parse()?, "127.0.0.1:2".parse()?);
/// let now = Instant::ZERO;
/// let connection = client.connect(now, there, Connect::pinned(public))?;
///
/// let (mut packet, mut message) = ([0; 1_500], Vec::new());
/// let mut received = Vec::new();
/// for _ in 0..5 {
///     while let Some(transmit) = client.poll_transmit(now, &mut packet) {
///         server.handle_datagram(now, Datagram { from: here, ecn: Ecn::NotCapable, payload: &mut packet[..transmit.len] });
///     }
///     while let Some(transmit) = server.poll_transmit(now, &mut packet) {
///         client.handle_datagram(now, Datagram { from: there, ecn: Ecn::NotCapable, payload: &mut packet[..transmit.len] });
///     }
///     while let Some(event) = client.poll_event(&mut message) {
///         if let Event::Connected { .. } = event {
///             client.send(now, connection, 0, b"hello")?;
///         }
///     }
///     while let Some(event) = server.poll_event(&mut message) {
///         if let Event::Message { payload, .. } = event {
///             received.push(payload.to_vec());
///         }
///     }
/// }
/// assert_eq!(received, [b"hello"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Endpoint {
    config: Arc<Config>,
    /// The description that both sides must share.
    agreement: Agreement,
    listener: Option<Listener>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    in_use: usize,
    /// Attempts of ours, by the random that names them.
    attempts: KeyedMap<ClientRandom, u32>,
    /// Clients that wait for a decision, and accepted ones that have not sent a packet yet.
    unconfirmed: KeyedMap<ClientRandom, u32>,
    sessions: Sessions,
    admission: Admission,
    shared: Shared,
    schedule: Schedule,
    replies: std::collections::VecDeque<(SocketAddr, Vec<u8>)>,
    spare_replies: Vec<Vec<u8>>,
    /// Typed messages are encoded here.
    encoded: Vec<u8>,
    /// Unix time in seconds at `Instant::ZERO`.
    unix_origin_s: u64,
    counters: EndpointCounters,
    bans: Bans,
    key_log: Option<KeyLog>,
    /// The key that was to follow, for attempts that begin later.
    followed: Option<ServerPublicKey>,
}

/// Place of a connection.
struct Slot {
    generation: u32,
    /// The connection id that the peer puts into its packets.
    local_id: u32,
    occupant: Occupant,
    token: Option<TokenId>,
}

enum Occupant {
    Nobody,
    Attempt(Box<Attempt>),
    Asking(Box<Asking>),
    Connection(Box<Connection>),
}

/// Counts of datagrams that belonged to no connection, and the memory that all connections hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointCounters {
    /// Datagrams that are no packets of the protocol.
    pub datagrams_unknown: u64,
    /// Datagrams from addresses that were banned.
    pub datagrams_banned: u64,
    /// Packets for connections that do not exist.
    pub packets_stray: u64,
    /// Packets that did not authenticate or came twice.
    pub packets_rejected: u64,
    /// Replies to handshakes dropped because too many waited.
    pub replies_dropped: u64,
    /// Bytes of memory that received messages of all connections take at present, with their overhead.
    pub memory_held: usize,
    /// Messages and fragments refused because the memory budget of the endpoint was exhausted.
    pub pieces_refused: u64,
}

/// An error that keeps an attempt to connect from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint has 16,384 connections, as many as there can be.
    #[error(
        "all 16,384 connections of this endpoint are in use: close some, or take another endpoint"
    )]
    Full,
    /// No address was given.
    #[error("the server has no address")]
    NoAddress,
    /// The payload for the server is too long.
    #[error("the payload for the server is longer than 256 bytes")]
    Payload,
}

impl Endpoint {
    /// An endpoint that does not listen. `config` is what [`Config::build`] returned; `entropy` makes keys.
    pub fn new(config: Config, entropy: impl Entropy + 'static) -> Self {
        let mut shared = Shared::new(entropy);
        let keyed = draw_keyed(&mut *shared.entropy);
        Self {
            agreement: config.agreement(),
            config: Arc::new(config),
            listener: None,
            slots: Vec::new(),
            free: Vec::new(),
            in_use: 0,
            attempts: KeyedMap::with_hasher(keyed.clone()),
            unconfirmed: KeyedMap::with_hasher(keyed.clone()),
            sessions: Sessions::new(keyed.clone()),
            admission: Admission::default(),
            shared,
            schedule: Schedule::default(),
            replies: std::collections::VecDeque::new(),
            spare_replies: Vec::new(),
            encoded: Vec::new(),
            unix_origin_s: 0,
            counters: EndpointCounters::default(),
            bans: Bans::new(keyed),
            key_log: None,
            followed: None,
        }
    }

    /// Admits clients from now on.
    pub fn listen(&mut self, options: ServerOptions) {
        self.admission.limits = options.admission_limits();
        let config = options.into_listener(&self.config, &self.agreement);
        self.listener = Some(Listener::new(config, &mut self.shared.entropy));
    }

    /// Tells the wall-clock time, which connect tokens need to expire. Drivers do it.
    pub fn set_unix_time(&mut self, now: Instant, unix_s: u64) {
        self.unix_origin_s = unix_s.saturating_sub(now.as_micros() / 1_000_000);
    }

    /// Begins to connect. [`Event::Connected`], [`Event::Refused`] or [`Event::Unanswered`] follows.
    pub fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        how: Connect,
    ) -> Result<ConnectionId, ConnectError> {
        self.connect_any(now, &[to], how)
    }

    /// Begins to connect to a server that has several addresses, as [`connect`](Self::connect) does to one.
    ///
    /// Up to [`ADDRESSES_MAX`] addresses are tried, 250 ms apart, IPv6 and IPv4 in turn, and the first that completes the handshake wins
    /// ([RFC 8305](https://www.rfc-editor.org/rfc/rfc8305)); [`remote`](Self::remote) says which. A refusal ends the attempt, unless the machine
    /// at that address does not have the expected key.
    pub fn connect_any(
        &mut self,
        now: Instant,
        to: &[SocketAddr],
        how: Connect,
    ) -> Result<ConnectionId, ConnectError> {
        let Some(index) = self.take_slot(CONNECTIONS_LIMIT) else {
            return Err(ConnectError::Full);
        };
        let slot = &mut self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        log!(debug, connection = ?id, addresses = ?to, "connecting");
        let mut config = how.into_config(self.config.protocol, &self.agreement, slot.local_id);
        if let Some(key) = self.followed {
            config.pin(key);
        }
        match Attempt::new(now, to, config, &mut *self.shared.entropy) {
            Ok(attempt) => slot.occupant = Occupant::Attempt(Box::new(attempt)),
            Err(error) => {
                self.release_slot(index);
                return Err(error);
            }
        }
        self.follow(now, index, Verdict::Continue);
        Ok(id)
    }

    /// Sends a message on a channel, as the channel's config says.
    pub fn send(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
    ) -> Result<MessageId, SendError> {
        self.send_with(now, connection, channel, payload, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        let index = self.find(connection).ok_or(SendError::NoConnection)?;
        let Occupant::Connection(connection) = &mut self.slots[index].occupant else {
            return Err(SendError::NoConnection);
        };
        let message = connection.send(now, &mut self.shared, channel, payload, options)?;
        self.schedule.mark_dirty(index);
        Ok(message)
    }

    /// Closes a connection at once and tells the peer why. What is still on its way may be lost. An attempt to connect is
    /// given up; a client that waits for a decision is [denied](Self::deny).
    pub fn close(&mut self, now: Instant, connection: ConnectionId, code: u16, text: &str) {
        self.cancel(now, connection, code, text);
        self.with_connection(connection, |connection, _| {
            connection.close(now, code, text, CloseReason::ByUs)
        });
    }

    /// Closes a connection once everything reliable has arrived. Nothing more can be sent meanwhile.
    pub fn finish(&mut self, now: Instant, connection: ConnectionId, code: u16, text: &str) {
        self.cancel(now, connection, code, text);
        self.with_connection(connection, |connection, _| {
            connection.finish(now, code, text)
        });
    }

    /// Returns the next event; a payload that comes with it is put into `buffer`.
    pub fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.shared.inbox.pop(buffer)
    }

    /// Tells the endpoint how long the socket was not read: datagrams handled until the next call may have waited for as long.
    ///
    /// A game loop that reads once a tick sees round trips that are too long by up to a tick, which must not be taken for a queue on the path. A loop
    /// that is woken by every datagram need not call it. [`Client`] and [`Server`] call it.
    ///
    /// [`Client`]: https://docs.rs/muse-drivers/latest/muse_drivers/struct.Client.html
    /// [`Server`]: https://docs.rs/muse-drivers/latest/muse_drivers/struct.Server.html
    pub fn looked_away(&mut self, span: Duration) {
        self.shared.looked_away = span;
    }

    /// Returns what a connection may send now and keep sending; `None` if there is no such connection.
    pub fn budget(&mut self, now: Instant, connection: ConnectionId) -> Option<Budget> {
        self.with_connection(connection, |connection, _| connection.budget(now))
    }

    /// State and counters of a connection.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        let stats = self.get(connection)?.stats();
        Some(ConnectionStats {
            memory_held: self.shared.inbox.ledger.held(connection),
            ..stats
        })
    }

    /// Counters of one channel of a connection.
    pub fn channel_stats(&self, connection: ConnectionId, channel: u8) -> Option<ChannelStats> {
        self.get(connection)?.channel_stats(channel)
    }

    /// Bytes and messages of a channel that wait to be sent or acknowledged.
    pub fn queued(&self, connection: ConnectionId, channel: u8) -> (usize, usize) {
        self.get(connection)
            .map_or((0, 0), |connection| connection.queued(channel))
    }

    /// Returns the address of the peer.
    pub fn remote(&self, connection: ConnectionId) -> Option<SocketAddr> {
        self.get(connection).map(|connection| connection.remote)
    }

    /// True if nothing has been heard of the peer for a while.
    pub fn is_interrupted(&self, connection: ConnectionId) -> bool {
        self.get(connection).is_some_and(Connection::is_interrupted)
    }

    /// Every open connection.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| match &slot.occupant {
                Occupant::Connection(connection)
                    if connection.is_announced() && connection.is_open() =>
                {
                    Some(ConnectionId::new(index, slot.generation))
                }
                _ => None,
            })
    }

    /// Returns the configuration of this endpoint.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counts what arrived that belonged to nobody, and what all connections hold together.
    pub fn counters(&self) -> EndpointCounters {
        EndpointCounters {
            memory_held: self.shared.inbox.ledger.total(),
            pieces_refused: self.shared.pieces_refused,
            ..self.counters
        }
    }

    /// Returns the counts of handshakes, if the endpoint listens.
    pub fn handshake_counters(&self) -> Option<HandshakeCounters> {
        self.listener.as_ref().map(|listener| *listener.counters())
    }

    /// The verifier of connect tokens, to change its keys while running.
    pub fn token_verifier(&mut self) -> Option<&mut TokenVerifier> {
        self.listener.as_mut()?.verifier_mut()
    }

    /// Gives the secrets of every connection made from now on to `log`, as lines of text (`docs/protocol.md`), so that a
    /// capture of its packets can be read. Anyone who has the lines can read and forge everything. Default: none.
    pub fn danger_key_log(&mut self, log: Arc<dyn Fn(&str) + Send + Sync>) {
        self.key_log = Some(log);
    }

    fn get(&self, connection: ConnectionId) -> Option<&Connection> {
        match &self.slots[self.find(connection)?].occupant {
            Occupant::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    fn find(&self, connection: ConnectionId) -> Option<usize> {
        let index = connection.index();
        let slot = self.slots.get(index)?;
        // Slots are used again: an id of a connection that is over must not name the next one in its slot.
        (ConnectionId::new(index, slot.generation) == connection).then_some(index)
    }

    pub(crate) fn with_connection<T>(
        &mut self,
        connection: ConnectionId,
        act: impl FnOnce(&mut Connection, &mut Shared) -> T,
    ) -> Option<T> {
        let index = self.find(connection)?;
        let Occupant::Connection(connection) = &mut self.slots[index].occupant else {
            return None;
        };
        let result = act(connection, &mut self.shared);
        self.schedule.mark_dirty(index);
        Some(result)
    }

    fn handle_data(&mut self, now: Instant, header: &Header, datagram: Datagram<'_>) {
        // The connection id holds the slot, so that no table is searched. All of it is compared: it has random bits, too.
        let index = (header.connection >> 8 & 0xFFFF) as usize;
        let slot = self
            .slots
            .get_mut(index)
            .filter(|slot| slot.local_id == header.connection);
        let Some(Slot {
            occupant: Occupant::Connection(connection),
            ..
        }) = slot
        else {
            self.counters.packets_stray += 1;
            return;
        };
        let announced = connection.is_announced();
        if !connection.handle_packet(now, &mut self.shared, header, datagram) {
            self.counters.packets_rejected += 1;
            return;
        }
        self.schedule.mark_dirty(index);
        // The client's first packet: from now on a repeated Connect is not answered any more.
        if !announced && let Some(random) = connection.take_attempt() {
            self.unconfirmed.remove(&random);
            self.confirm(now, index);
        }
    }

    fn handle_handshake(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        // Replies of servers name our attempt behind kind and protocol id.
        let random = datagram
            .get(9..25)
            .and_then(|bytes| ClientRandom::try_from(bytes).ok());
        if let Some(name) = random
            && let Some(&index) = self.attempts.get(&name)
        {
            self.handle_reply(now, index as usize, from, &name, datagram);
            return;
        }
        let Some(listener) = &mut self.listener else {
            self.counters.datagrams_unknown += 1;
            return;
        };
        // Before the listener, which would take the repeated Connect for a replay.
        if let Some(random) = listener.peek_connect(datagram)
            && self.repeat_answer(now, &random, from)
        {
            return;
        }
        let mut reply = [0; REPLY_LEN_MAX];
        let unix = self.unix_now_s(now);
        let Some(listener) = &mut self.listener else {
            return;
        };
        let (sessions, slots) = (&self.sessions, &self.slots);
        match listener.handle(now, unix, from, datagram, &mut reply, |token| {
            is_resumable(sessions, slots, token)
        }) {
            Outcome::Nothing => {}
            Outcome::Reply(len) => self.reply(from, &reply[..len]),
            Outcome::Request(request) => self.handle_request(now, request, &mut reply),
        }
    }

    /// Sends a client away; returns the length of the refusal in `reply`, zero when there is none.
    fn refuse(
        &mut self,
        now: Instant,
        request: &ConnectRequest,
        refusal: &Refusal,
        reply: &mut [u8],
    ) -> usize {
        let Some(listener) = &mut self.listener else {
            return 0;
        };
        log!(debug, client = %request.from(), %refusal, "refused a client");
        let len = listener.refuse(now, request, refusal, reply);
        self.reply(request.from(), &reply[..len]);
        len
    }

    /// Lets a client into slot `index`, which is released if that fails. `asked` says whether the application admitted it.
    fn accept(
        &mut self,
        now: Instant,
        index: usize,
        mut request: Box<ConnectRequest>,
        asked: bool,
        reply: &mut [u8],
    ) -> Result<(), Refusal> {
        let slot = &mut self.slots[index];
        let accepted = match &mut self.listener {
            Some(listener) => listener.accept(&mut request, slot.local_id, &[], reply),
            None => Err(Refusal::Full),
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.release_slot(index);
                self.refuse(now, &request, &refusal, reply);
                return Err(refusal);
            }
        };
        let (from, random, token) = (request.from(), request.client_random(), request.token_id());
        let id = ConnectionId::new(index, slot.generation);
        let config = Arc::clone(&self.config);
        let remote_id = accepted.remote_connection_id;
        if let Some(log) = &self.key_log {
            accepted
                .keys
                .danger_log(log, false, slot.local_id, remote_id);
        }
        log!(debug, connection = ?id, client = %from, "accepted a client, which has to send a packet");
        let (keys, entropy) = (accepted.keys, &mut *self.shared.entropy);
        let mut connection = Connection::new(id, config, keys, remote_id, from, now, entropy);
        let newcomer = Newcomer {
            random,
            accept: reply[..accepted.len].to_vec(),
            account: request.account().unwrap_or(0),
            user_data: request.user_data().to_vec(),
            hello: request.payload().to_vec(),
            announced: false,
            asked,
        };
        connection.await_confirmation(now + CONFIRM_WITHIN, newcomer);
        slot.occupant = Occupant::Connection(Box::new(connection));
        slot.token = token;
        if let Some(token) = token
            && let Some(displaced) = self.sessions.begin(token, id)
            && let Some(displaced) = self.find(displaced)
        {
            self.abandon(displaced);
        }
        self.unconfirmed.insert(random, index as u32);
        self.schedule.mark_dirty(index);
        self.reply(from, &reply[..accepted.len]);
        Ok(())
    }

    /// Gives up an accepted client whose first packet has not come, in favour of another one with its token.
    fn abandon(&mut self, index: usize) {
        if let Occupant::Connection(connection) = &self.slots[index].occupant {
            connection.abandon(&mut self.shared, CloseReason::Replaced);
        }
        self.release_slot(index);
    }

    /// An accepted client has shown that it has the keys: the connection that it comes back from gives way.
    fn confirm(&mut self, now: Instant, index: usize) {
        let slot = &self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        let replaced = slot
            .token
            .and_then(|token| self.sessions.confirm(&token, id))
            .and_then(|old| self.find(old));
        let Some(old) = replaced else { return };
        let Occupant::Connection(connection) = &mut self.slots[old].occupant else {
            return;
        };
        if connection.is_announced() {
            connection.close(
                now,
                CODE_REPLACED,
                "the holder of the token connected anew",
                CloseReason::Replaced,
            );
            self.schedule.mark_dirty(old);
        } else {
            self.abandon(old);
        }
    }

    /// A server answered an attempt of ours.
    fn handle_reply(
        &mut self,
        now: Instant,
        index: usize,
        from: SocketAddr,
        name: &ClientRandom,
        datagram: &[u8],
    ) {
        let Occupant::Attempt(attempt) = &mut self.slots[index].occupant else {
            return;
        };
        let verdict = attempt.handle(now, from, name, datagram, &mut *self.shared.entropy);
        self.follow(now, index, verdict);
    }

    /// Does what has become of an attempt of ours.
    fn follow(&mut self, now: Instant, index: usize, verdict: Verdict) {
        let slot = &mut self.slots[index];
        let Occupant::Attempt(attempt) = &slot.occupant else {
            return;
        };
        match verdict {
            Verdict::Continue => {
                // Another address may have been tried.
                for name in attempt.names() {
                    self.attempts.insert(*name, index as u32);
                }
                self.schedule.mark_dirty(index);
            }
            Verdict::Established(remote, established) => {
                for name in attempt.names() {
                    self.attempts.remove(name);
                }
                let id = ConnectionId::new(index, slot.generation);
                let remote_id = established.remote_connection_id;
                if let Some(log) = &self.key_log {
                    established
                        .keys
                        .danger_log(log, true, slot.local_id, remote_id);
                }
                let config = Arc::clone(&self.config);
                let (keys, entropy) = (established.keys, &mut *self.shared.entropy);
                let mut connection =
                    Connection::new(id, config, keys, remote_id, remote, now, entropy);
                // The server waits for a packet before it believes in us.
                connection.greet();
                slot.occupant = Occupant::Connection(Box::new(connection));
                self.shared
                    .inbox
                    .connected(id, 0, &established.settings, &[]);
                self.schedule.mark_dirty(index);
            }
            Verdict::Failed(outcome) => self.give_up(index, outcome),
        }
    }

    /// Ends what is no connection yet.
    fn cancel(&mut self, now: Instant, connection: ConnectionId, code: u16, text: &str) {
        let Some(index) = self.find(connection) else {
            return;
        };
        match self.slots[index].occupant {
            Occupant::Attempt(_) => self.give_up(index, Rare::Closed(CloseReason::ByUs)),
            Occupant::Asking(_) => drop(self.deny(now, connection, code, text)),
            Occupant::Nobody | Occupant::Connection(_) => {}
        }
    }

    fn unix_now_s(&self, now: Instant) -> u64 {
        self.unix_origin_s + now.as_micros() / 1_000_000
    }

    fn give_up(&mut self, index: usize, outcome: Rare) {
        let slot = &self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        if let Occupant::Attempt(attempt) = &slot.occupant {
            for name in attempt.names() {
                self.attempts.remove(name);
            }
        }
        self.shared.inbox.rare(id, LEVEL_LAST, outcome);
        self.release_slot(index);
    }

    fn reply(&mut self, to: SocketAddr, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // Anyone can cause replies, so their number is bounded; a client that misses one asks again.
        if self.replies.len() >= REPLIES_MAX {
            self.counters.replies_dropped += 1;
            return;
        }
        let mut reply = self.spare_replies.pop().unwrap_or_default();
        reply.clear();
        reply.extend_from_slice(bytes);
        self.replies.push_back((to, reply));
    }

    /// A free slot, while fewer than `limit` are in use.
    fn take_slot(&mut self, limit: usize) -> Option<usize> {
        if self.in_use >= limit {
            return None;
        }
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    local_id: 0,
                    occupant: Occupant::Nobody,
                    token: None,
                });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        let mut random = [0];
        self.shared.entropy.fill(&mut random);
        slot.local_id =
            self.config.shard.number as u32 | (index as u32) << 8 | u32::from(random[0]) << 24;
        self.in_use += 1;
        Some(index)
    }

    fn release_slot(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let id = ConnectionId::new(index, slot.generation);
        if let Some(token) = slot.token.take() {
            self.sessions.end(&token, id);
        }
        slot.generation = slot.generation.wrapping_add(1);
        // Packets that are still under way find nobody.
        slot.local_id = u32::MAX;
        if let Occupant::Connection(mut connection) =
            std::mem::replace(&mut slot.occupant, Occupant::Nobody)
        {
            self.shared.inbox.ledger.free(id, connection.held());
            if let Some(random) = connection.take_attempt() {
                self.unconfirmed.remove(&random);
            }
        }
        self.in_use -= 1;
        self.free.push(index as u32);
        self.schedule.clear(index);
    }

    /// Returns the time at which something in slot `index` is due.
    fn slot_timeout(&mut self, index: usize) -> Instant {
        match &mut self.slots[index].occupant {
            Occupant::Nobody => Instant::FAR_FUTURE,
            Occupant::Attempt(attempt) => attempt.poll_timeout(),
            Occupant::Asking(asking) => asking.next_timeout(),
            Occupant::Connection(connection) => connection.next_timeout(),
        }
    }
}

/// True if the session that began with `token` goes on. One that is being closed does not.
fn is_resumable(sessions: &Sessions, slots: &[Slot], token: &TokenId) -> bool {
    let Some(id) = sessions.current(token) else {
        return false;
    };
    slots.get(id.index()).is_some_and(|slot| {
        let alive = ConnectionId::new(id.index(), slot.generation) == id;
        alive && matches!(&slot.occupant, Occupant::Connection(connection) if connection.is_open())
    })
}

impl Machine for Endpoint {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if self.bans.contain(datagram.from.ip()) {
            self.counters.datagrams_banned += 1;
            return;
        }
        if let Some(header) = Header::parse(datagram.payload) {
            self.handle_data(now, &header, datagram);
            return;
        }
        let Datagram { from, payload, .. } = datagram;
        // Only what can be a handshake goes on: longer datagrams are dropped before anything of them is read.
        let handshake = payload.first().is_some_and(|first| first & 0x80 == 0);
        if handshake && payload.len() <= HANDSHAKE_LEN_MAX {
            self.handle_handshake(now, from, payload);
        } else {
            self.counters.datagrams_unknown += 1;
        }
    }

    fn prepare(&self, payload: &[u8]) {
        let Some(header) = Header::parse(payload) else {
            return;
        };
        let slot = self.slots.get((header.connection >> 8 & 0xFFFF) as usize);
        if let Some(Slot {
            occupant: Occupant::Connection(connection),
            ..
        }) = slot
        {
            connection.touch();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.schedule.pop_due(now) {
            match &mut self.slots[index].occupant {
                Occupant::Nobody => continue,
                Occupant::Connection(connection) if connection.next_timeout() <= now => {
                    connection.handle_timeout(now, &mut self.shared);
                }
                Occupant::Attempt(attempt) => {
                    let verdict = attempt.handle_timeout(now, &mut *self.shared.entropy);
                    self.follow(now, index, verdict);
                    continue;
                }
                Occupant::Asking(asking) if asking.next_timeout() <= now => {
                    self.handle_asking_timeout(now, index);
                    continue;
                }
                Occupant::Asking(_) | Occupant::Connection(_) => {}
            }
            self.schedule.mark_dirty(index);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        // Handshakes first: they are short, and bounded in number.
        if let Some((to, reply)) = self.replies.pop_front() {
            let len = reply.len().min(buffer.len());
            buffer[..len].copy_from_slice(&reply[..len]);
            self.spare_replies.push(reply);
            return Some(Transmit {
                to,
                len,
                segment: None,
                ecn: Ecn::NotCapable,
            });
        }
        while let Some(index) = self.schedule.first_dirty() {
            let transmit = match &mut self.slots[index].occupant {
                Occupant::Nobody | Occupant::Asking(_) => None,
                Occupant::Attempt(attempt) => {
                    let packet = attempt.poll_transmit(now, buffer);
                    packet.map(|(to, len)| Transmit {
                        to,
                        len,
                        segment: None,
                        ecn: Ecn::NotCapable,
                    })
                }
                Occupant::Connection(connection) => {
                    connection.poll_transmit(now, &mut self.shared, buffer)
                }
            };
            let slot = &self.slots[index].occupant;
            let more = !matches!(slot, Occupant::Connection(connection) if connection.drained);
            if transmit.is_some() && more {
                return transmit;
            }
            self.schedule.clean_first();
            let dead = matches!(&self.slots[index].occupant, Occupant::Connection(connection) if connection.is_dead());
            if dead {
                self.release_slot(index);
            } else {
                let at = self.slot_timeout(index);
                self.schedule.set(index, at);
            }
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        // Connections that wait to be polled have their time-out set afterwards.
        self.schedule.next()
    }
}
