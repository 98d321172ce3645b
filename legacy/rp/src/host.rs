//! Any number of connections over two sockets: client and server in one machine.

mod crossing;
mod schedule;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_wire::partial::Promise;
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use thiserror::Error;

use crate::connection::{Connection, Numbers, Over, Side};
use crate::effects::Effects;
use crate::event::{Channel, ConnectionId, EndReason, Event, FailReason, Message};
use crate::handlers::Handlers;
use crate::packet::{ChannelInfo, Meaning, PAYLOAD_MAX, Packet};
use crate::stats::{ConnectionStats, HostStats};
use crate::{HostOptions, OptionsError};
use schedule::Schedule;

/// A MUSE-RP host without IO: it accepts connections once it [`listen`](Self::listen)s and makes them by
/// [`connect`](Self::connect).
///
/// The program around it has two UDP sockets, one per [`Channel`], and runs each with the machine that
/// [`socket`](Self::socket) gives: datagrams in, time-outs, datagrams out (see [`Machine`]); `HostDriver` of `muse-rp-driver` does
/// that. Then it looks at
/// [`poll_event`](Self::poll_event), or at [`dispatch`](Self::dispatch) if messages have handlers. The crate's front page has an
/// example.
///
/// Nothing that arrives stops it, half-open connections time out, nothing is repeated for ever, and every queue has a
/// limit.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    promise: Promise,
    random: fastrand::Rng,
    is_listening: bool,
    next_id: u64,
    connections: BTreeMap<ConnectionId, Connection>,
    by_address: [BTreeMap<SocketAddr, ConnectionId>; 2],
    /// Connections that wait for INIT3, by the id that INIT2 gave them.
    half_open: BTreeMap<u32, ConnectionId>,
    /// The newest of them by the client's reliable address. They stand apart from `by_address`, so that a late or forged INIT1
    /// does no harm to a connection that is open: only INIT3 replaces it.
    calls: BTreeMap<SocketAddr, ConnectionId>,
    next_offer: u32,
    accepted: usize,
    schedule: Schedule,
    /// Connections that may have something to send, by channel, in turn.
    ready: [VecDeque<ConnectionId>; 2],
    effects: Effects,
}

impl Host {
    /// A host. The first sequence numbers of its connections follow from `seed`: give it something that others cannot guess.
    pub fn new(options: HostOptions, seed: u64) -> Result<Self, OptionsError> {
        let effects = Effects::new(options.ack_delay);
        Ok(Self {
            promise: options.validate()?,
            options,
            random: fastrand::Rng::with_seed(seed),
            is_listening: false,
            next_id: 0,
            connections: BTreeMap::new(),
            by_address: [BTreeMap::new(), BTreeMap::new()],
            half_open: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_offer: 0,
            accepted: 0,
            schedule: Schedule::default(),
            ready: [VecDeque::new(), VecDeque::new()],
            effects,
        })
    }

    /// Accepts new connections or stops accepting them. A new host accepts none. Those that are open stay open.
    pub fn listen(&mut self, listen: bool) {
        self.is_listening = listen;
    }

    /// Begins a connection to the reliable port of a server. [`Event::Connected`] or [`Event::ConnectFailed`] follows.
    ///
    /// Two hosts may call each other at once, whether they listen or not: one connection comes of it.
    pub fn connect(
        &mut self,
        now: Instant,
        server: SocketAddr,
    ) -> Result<ConnectionId, ConnectError> {
        if self.by_address[Channel::Reliable.index()].contains_key(&server) {
            return Err(ConnectError::Known(server));
        }
        let numbers = Numbers {
            reliable_sequence: self.random.u32(..),
            reliable_ack: self.random.u32(..),
            partial_sequence: self.random.u32(..),
            partial_ack: self.random.u32(..),
        };
        let id = self.new_id();
        let connection =
            Connection::call(now, id, server, numbers, &self.options, &mut self.effects);
        self.by_address[Channel::Reliable.index()].insert(server, id);
        self.connections.insert(id, connection);
        self.touch(id);
        Ok(id)
    }

    /// Queues a message. It leaves as soon as the window has room.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        channel: Channel,
        kind: u16,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(SendError::TooLong(payload.len()));
        }
        self.connections
            .get_mut(&connection)
            .ok_or(SendError::NotConnected)?
            .send(channel, kind, payload, &self.options)?;
        self.touch(connection);
        Ok(())
    }

    /// Queues a message for every open connection; says how many took it.
    pub fn send_to_all(
        &mut self,
        channel: Channel,
        kind: u16,
        payload: &[u8],
    ) -> Result<usize, SendError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(SendError::TooLong(payload.len()));
        }
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        let taken = |id: &ConnectionId| self.send(*id, channel, kind, payload).is_ok();
        Ok(all.into_iter().filter(taken).count())
    }

    /// Ends a connection: one END, and whatever is not acknowledged yet is forgotten. See
    /// [`unacknowledged`](Self::unacknowledged) to wait for it before.
    pub fn disconnect(&mut self, connection: ConnectionId) {
        let Some(known) = self.connections.get(&connection) else {
            return;
        };
        let over = match (known.is_open(), known.side) {
            (false, Side::Client(_)) => Over::Fail(FailReason::ByUs),
            _ => Over::End(EndReason::ByUs),
        };
        self.end(connection, over);
    }

    /// Ends every connection.
    pub fn disconnect_all(&mut self) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for connection in all {
            self.disconnect(connection);
        }
    }

    /// Messages of a channel that the peer has not acknowledged yet, sent or not; 0 when there is no such connection.
    pub fn unacknowledged(&self, connection: ConnectionId, channel: Channel) -> usize {
        let known = self.connections.get(&connection);
        known.map_or(0, |known| known.unacknowledged(channel))
    }

    /// The open connections.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let open = self.connections.iter().filter(|(_, known)| known.is_open());
        open.map(|(id, _)| *id)
    }

    /// Returns the address of the peer's reliable channel.
    pub fn peer(&self, connection: ConnectionId) -> Option<SocketAddr> {
        let known = self.connections.get(&connection)?;
        Some(known.reliable_address)
    }

    /// Returns the statistics of a connection.
    pub fn connection_stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.connections.get(&connection).map(Connection::stats)
    }

    /// Returns the statistics of the host.
    pub fn stats(&self) -> &HostStats {
        &self.effects.stats
    }

    /// Longest interval at which the program around the host is to look at it; see [`HostOptions::tick`].
    pub fn tick(&self) -> Duration {
        self.options.tick
    }

    /// The handlers by message type, to be changed at any time.
    pub fn handlers(&mut self) -> &mut Handlers {
        &mut self.options.handlers
    }

    /// Returns the next event, messages included.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.effects.events.pop_front()
    }

    /// Gives messages to the handlers of their types, until something happened that no handler is for.
    pub fn dispatch(&mut self) -> Option<Event> {
        loop {
            let event = self.poll_event()?;
            let Event::Message(message) = &event else {
                return Some(event);
            };
            if !self.run_handler(message) {
                return Some(event);
            }
        }
    }

    /// The machine of one of the two sockets. Both share the time-outs: either may be asked.
    pub fn socket(&mut self, channel: Channel) -> Socket<'_> {
        Socket {
            host: self,
            channel,
        }
    }

    /// A datagram arrived at a socket.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        channel: Channel,
        from: SocketAddr,
        datagram: &[u8],
    ) {
        self.effects.stats.datagrams_received += 1;
        let Ok(packet) = Packet::parse(datagram) else {
            self.effects.stats.malformed += 1;
            return;
        };
        let mut known = self.by_address[channel.index()].get(&from).copied();
        if channel == Channel::Reliable && packet.flags.meaning() != Meaning::Init {
            known = known.or_else(|| self.calls.get(&from).copied());
        }
        match (packet.flags.meaning(), known) {
            (Meaning::Init, known) => match channel {
                Channel::Reliable => self.handle_reliable_init(now, from, known, &packet),
                Channel::Partial => self.handle_partial_init(now, from, known, &packet),
            },
            (meaning, Some(id)) => self.handle_known(now, channel, id, meaning, &packet),
            (_, None) => self.effects.stats.unexpected += 1,
        }
    }

    /// The time has come that [`poll_timeout`](Self::poll_timeout) said.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.effects.release(now);
        // Each connection once: one whose time is always past must not keep us here.
        for _ in 0..self.connections.len() {
            let Some(id) = self.schedule.pop_due(now) else {
                return;
            };
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            match connection.handle_timeout(now, &self.options, &mut self.effects) {
                Some(over) => self.end(id, over),
                None => self.touch(id),
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (connections, acks) = (self.schedule.next(), self.effects.timeout());
        connections.into_iter().chain(acks).min()
    }

    /// Writes what a socket is to send next into `buffer`: to whom, and how many bytes. 1,000 bytes hold any datagram.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        self.effects.release(now);
        let small = self.effects.poll(channel, buffer);
        let transmit = small.or_else(|| self.poll_message(now, channel, buffer))?;
        self.effects.stats.datagrams_sent += 1;
        Some(transmit)
    }

    fn poll_message(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        while let Some(id) = self.ready[channel.index()].pop_front() {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            connection.is_ready[channel.index()] = false;
            let transmit = connection.poll_transmit(now, channel, buffer);
            // Behind the others again if it has more.
            self.touch(id);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    fn handle_known(
        &mut self,
        now: Instant,
        channel: Channel,
        id: ConnectionId,
        meaning: Meaning,
        packet: &Packet<'_>,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let effects = &mut self.effects;
        match meaning {
            Meaning::End => {
                if let Some(over) = connection.handle_end(packet, effects) {
                    return self.end(id, over);
                }
            }
            Meaning::Ping if packet.payload.is_empty() => effects.stats.malformed += 1,
            Meaning::Ping if channel == Channel::Partial => effects.stats.unexpected += 1,
            Meaning::Ping => connection.handle_ping(now, packet, effects),
            Meaning::Ack => {
                connection.handle_ack(now, channel, packet.ack, self.promise, effects);
            }
            Meaning::Data | Meaning::Init => connection.handle_data(now, channel, packet, effects),
        }
        self.touch(id);
    }

    /// INIT1, or INIT2 from a server that was called.
    fn handle_reliable_init(
        &mut self,
        now: Instant,
        from: SocketAddr,
        known: Option<ConnectionId>,
        packet: &Packet<'_>,
    ) {
        if let Some(id) = known
            && let Some(connection) = self.connections.get_mut(&id)
            && matches!(connection.side, Side::Client(_))
        {
            if connection.is_calling() && is_call(packet) {
                return self.handle_crossing_call(now, from, id, packet);
            }
            match connection.handle_init2(now, packet, &self.options, &mut self.effects) {
                Ok(Some(partial)) => self.join(id, partial),
                Ok(None) => self.touch(id),
                Err(over) => self.end(id, over),
            }
            return;
        }
        // Of a repetition nothing comes: INIT2's own timer repairs what may be lost.
        if !self.is_repetition(from, (packet.sequence, packet.ack)) {
            self.accept(now, from, packet);
        }
    }

    /// True if the numbers are those of a connection or a call from that address.
    fn is_repetition(&self, from: SocketAddr, numbers: (u32, u32)) -> bool {
        let known = self.by_address[Channel::Reliable.index()].get(&from);
        let known = known.into_iter().chain(self.calls.get(&from));
        known
            .filter_map(|id| self.connections.get(id))
            .any(|known| matches!(known.side, Side::Server { init1, .. } if init1 == numbers))
    }

    /// INIT3, or INIT4 from a server that was called.
    fn handle_partial_init(
        &mut self,
        now: Instant,
        from: SocketAddr,
        known: Option<ConnectionId>,
        packet: &Packet<'_>,
    ) {
        if let Some(id) = known
            && let Some(connection) = self.connections.get_mut(&id)
        {
            let effects = &mut self.effects;
            match connection.side {
                // The peer may have called as well, and join from the same address.
                Side::Client(numbers) if !numbers.is_init4(packet) && is_join(packet) => (),
                Side::Client(_) => {
                    let opens = connection.handle_init4(now, packet, &self.options, effects);
                    let server = connection.reliable_address;
                    if opens {
                        self.withdraw_offer(server);
                    }
                    return self.touch(id);
                }
                Side::Server { .. } => {
                    if connection.handle_init3_again(now, packet, self.promise, effects) {
                        return self.touch(id);
                    }
                }
            }
        }
        let Ok(info) = ChannelInfo::parse(packet.payload) else {
            self.effects.stats.malformed += 1;
            return;
        };
        let waiting = self.half_open.get(&info.id).copied();
        let called =
            known.and_then(|id| self.peer(id).filter(|peer| self.own_call(*peer).is_some()));
        let matches = |id: &ConnectionId| {
            let waiting = self.connections.get(id);
            let address = waiting.map(|waiting| waiting.reliable_address);
            // A server that this host has called may join by the same two sockets, and nobody else by one of them.
            address.is_some_and(|address| {
                address.ip() == from.ip() && called.is_none_or(|called| called == address)
            })
        };
        let Some(id) = waiting.filter(matches) else {
            self.effects.stats.unexpected += 1;
            return;
        };
        let Some(id) = self.admit(now, id) else {
            return;
        };
        let reliable = self.peer(id).unwrap_or(from);
        for (channel, address) in [(Channel::Partial, from), (Channel::Reliable, reliable)] {
            if let Some(old) = self.by_address[channel.index()].get(&address) {
                self.end(*old, Over::End(EndReason::Replaced));
            }
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let (options, effects) = (&self.options, &mut self.effects);
        connection.handle_init3(now, from, packet, self.promise, options, effects);
        let reliable = connection.reliable_address;
        self.half_open.remove(&info.id);
        self.forget_call(reliable, id);
        self.accepted += 1;
        self.by_address[Channel::Reliable.index()].insert(reliable, id);
        self.by_address[Channel::Partial.index()].insert(from, id);
        self.touch(id);
    }

    /// A caller joins: gives the id of its connection, which is that of our own call if both have called each other. `None` if it
    /// is not let in.
    fn admit(&mut self, now: Instant, caller: ConnectionId) -> Option<ConnectionId> {
        let address = self.peer(caller)?;
        if let Some(own) = self.own_call(address) {
            if !self.yields(own, caller) {
                self.effects.stats.unexpected += 1;
                return None;
            }
            self.merge(own, caller);
            return Some(own);
        }
        if self.accepted >= self.options.connections_max {
            self.effects.stats.refused += 1;
            let connection = self.connections.get_mut(&caller)?;
            connection.refuse(now, &mut self.effects);
            self.touch(caller);
            return None;
        }
        Some(caller)
    }

    /// INIT1: a client calls, perhaps one that has restarted.
    fn accept(&mut self, now: Instant, from: SocketAddr, packet: &Packet<'_>) {
        if !self.is_listening {
            self.effects.stats.unexpected += 1;
            return;
        }
        if self.accepted >= self.options.connections_max {
            self.effects.stats.refused += 1;
            return;
        }
        self.offer(now, from, packet);
    }

    /// Answers INIT1 with INIT2.
    fn offer(&mut self, now: Instant, from: SocketAddr, packet: &Packet<'_>) {
        let Ok(client) = ChannelInfo::parse(packet.payload) else {
            self.effects.stats.malformed += 1;
            return;
        };
        if !is_call(packet) {
            // The offer of a server that this host does not call any more.
            self.effects.stats.unexpected += 1;
            return;
        }
        if self.half_open.len() >= HALF_OPEN_MAX
            && let Some((_, oldest)) = self.half_open.first_key_value()
        {
            self.end(*oldest, Over::End(EndReason::TimedOut));
        }
        let offer = ChannelInfo {
            reliable_port: self.options.reliable_port.into(),
            partial_port: self.options.partial_port.into(),
            window: self.options.window,
            percent: self.options.percent.into(),
            your_reliable_port: client.reliable_port,
            your_partial_port: client.partial_port,
            id: self.next_offer,
        };
        self.next_offer = self.next_offer.wrapping_add(1);
        let id = self.new_id();
        let init1 = (packet.sequence, packet.ack);
        let connection = Connection::offer(now, id, from, init1, offer, &self.options);
        self.half_open.insert(offer.id, id);
        self.calls.insert(from, id);
        self.connections.insert(id, connection);
        self.touch(id);
    }

    /// The server that was called has a partial channel at this address.
    fn join(&mut self, id: ConnectionId, partial: SocketAddr) {
        let by_partial = &mut self.by_address[Channel::Partial.index()];
        if by_partial.contains_key(&partial) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.partial_address = None;
            }
            return self.end(id, Over::Fail(FailReason::BadOffer));
        }
        by_partial.insert(partial, id);
        self.touch(id);
    }

    fn forget_call(&mut self, from: SocketAddr, id: ConnectionId) {
        if self.calls.get(&from) == Some(&id) {
            self.calls.remove(&from);
        }
    }

    /// Something happened to a connection: its time-out may be another, and it may have something to send.
    fn touch(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        self.schedule.set(id, connection.timeout());
        for channel in Channel::ALL {
            if connection.has_something(channel) && !connection.is_ready[channel.index()] {
                connection.is_ready[channel.index()] = true;
                self.ready[channel.index()].push_back(id);
            }
        }
    }

    /// Forgets a connection and tells whom it concerns.
    fn end(&mut self, id: ConnectionId, over: Over) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        self.schedule.remove(id);
        let is_half_open = match connection.side {
            Side::Server { offer, .. } => self.half_open.remove(&offer.id).is_some(),
            Side::Client(_) => false,
        };
        if is_half_open {
            self.forget_call(connection.reliable_address, id);
            self.effects.stats.half_open_lost += 1;
            return;
        }
        self.by_address[Channel::Reliable.index()].remove(&connection.reliable_address);
        if let Some(partial) = connection.partial_address {
            self.by_address[Channel::Partial.index()].remove(&partial);
        }
        if matches!(connection.side, Side::Client(_)) && !self.is_listening {
            self.withdraw_offer(connection.reliable_address);
        }
        let peer_knows = matches!(
            over,
            Over::End(EndReason::ByPeer | EndReason::Replaced) | Over::Fail(FailReason::ByPeer)
        );
        if !peer_knows && !connection.is_calling() {
            connection.send_end(&mut self.effects);
        }
        if matches!(connection.side, Side::Server { .. }) {
            self.accepted -= 1;
        }
        self.effects.events.push_back(match over {
            Over::End(reason) => Event::Disconnected {
                connection: id,
                reason,
            },
            Over::Fail(reason) => Event::ConnectFailed {
                connection: id,
                reason,
            },
        });
    }

    fn new_id(&mut self) -> ConnectionId {
        self.next_id += 1;
        ConnectionId(self.next_id)
    }

    /// Runs the handler of a message's type; false if there is none. A message that arrives while its own handler runs is left
    /// to the application.
    fn run_handler(&mut self, message: &Message) -> bool {
        let Some(mut handler) = self.options.handlers.take(message.kind) else {
            return false;
        };
        handler(self, message);
        self.options.handlers.put_back(message.kind, handler);
        true
    }
}

/// True for INIT1: of its payload only the ports are set, while an offer has a window.
fn is_call(packet: &Packet<'_>) -> bool {
    ChannelInfo::parse(packet.payload).is_ok_and(|info| info.window == 0)
}

/// True if it may be INIT3, which has the offer as payload.
fn is_join(packet: &Packet<'_>) -> bool {
    ChannelInfo::parse(packet.payload).is_ok()
}

/// One of the two sockets of a [`Host`], as a driver runs it.
#[derive(Debug)]
pub struct Socket<'a> {
    host: &'a mut Host,
    channel: Channel,
}

impl Machine for Socket<'_> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let (from, payload) = (datagram.from, datagram.payload);
        self.host.handle_datagram(now, self.channel, from, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, len) = self.host.poll_transmit(now, self.channel, buffer)?;
        Some(Transmit {
            to,
            len,
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.host.poll_timeout()
    }
}

/// The reason that a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such connection, or it is not open yet or any more.
    #[error("not connected")]
    NotConnected,
    /// The payload is longer than the original would read.
    #[error("payload of {0} bytes: at most {PAYLOAD_MAX} travel")]
    TooLong(usize),
    /// The peer does not keep up; see [`HostOptions::queue_max`].
    #[error("{0} messages wait already")]
    QueueFull(usize),
}

/// The reason that no connection was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is a connection with that address.
    #[error("there is a connection with {0} already")]
    Known(SocketAddr),
}

/// Most connections that wait for INIT3; the oldest makes room for a new one, so that forged INIT1s do not lock others out.
const HALF_OPEN_MAX: usize = 1_024;
