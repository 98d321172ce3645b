//! The client's side of relay v1, without IO: commands, events, the UDP counter and its reset.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
use thiserror::Error;

use super::packet::{
    AFFECTING, Address, BROADCAST, DATAGRAM_DATA_MAX, DATAGRAM_MAX, DATAGRAM_UNICAST, DISCARD,
    DatagramHeader, GROUP, LIST, RESET, STATE, STREAM_DATA_MAX, STREAM_HEADER, StreamHeader,
    UNICAST,
};
use super::{StreamAction, StreamId, StreamMachine};

/// A client of a relay.
///
/// A driver gives it one TCP stream and a UDP socket. Commands queue what leaves with the driver's next turn;
/// [`poll_event`](Self::poll_event) says what happened.
///
/// The server learns where UDP goes from what it receives, so the client announces itself once it has its address, and again every
/// now and then, which also keeps a router's mapping open. With [`without_datagrams`](Self::without_datagrams) it uses TCP
/// alone.
///
/// ```
/// use muse_relay_v1::{Address, Client, Event, Update};
/// use muse_wire::{Instant};
/// use muse_relay_v1::{StreamId, StreamMachine};
///
/// let server = "192.0.2.1:7777".parse().expect("an address");
/// let mut client = Client::new();
/// let now = Instant::ZERO;
/// client.handle_open(now, StreamId(0), server);
/// client.handle_bytes(now, StreamId(0), &[1, 0, 0, 1, 0, 9]);
/// let Some(Event::Welcome { address }) = client.poll_event() else { panic!("told at once") };
/// assert_eq!(address, Address::new(9).expect("not zero"));
/// client.broadcast(3, b"a link between two cubes")?;
/// client.update(Update::new(32), b"where my hands are")?;
/// # Ok::<(), muse_relay_v1::SendError>(())
/// ```
#[derive(Debug)]
pub struct Client {
    server: Option<SocketAddr>,
    stream: Option<StreamId>,
    address: Option<Address>,
    datagrams: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    output_start: usize,
    updates: VecDeque<Vec<u8>>,
    /// The next grouped packet's counter.
    counter: u32,
    /// The counter has just gone from its maximum to zero.
    starts_again: bool,
    /// The addresses whose state was asked for, in order: answers do not say.
    asked: VecDeque<u8>,
    events: VecDeque<Event>,
    action: Option<StreamAction>,
    announce_at: Option<Instant>,
    announced: u32,
}

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The server gave an address. The first event.
    Welcome {
        /// This client's address.
        address: Address,
    },
    /// Another client's broadcast over TCP. Who sent it only its data can say.
    Broadcast {
        /// The application's 4 bits.
        through: u8,
        /// The data.
        data: Vec<u8>,
    },
    /// A message for this client alone, over TCP.
    Unicast {
        /// The sender.
        from: Address,
        /// The application's 4 bits.
        through: u8,
        /// The data.
        data: Vec<u8>,
    },
    /// The other active clients, as asked for.
    List {
        /// Their addresses.
        addresses: Vec<Address>,
    },
    /// The state of a client, as asked for.
    State {
        /// The client.
        address: u8,
        /// True if it is active.
        active: bool,
    },
    /// A UDP packet.
    Update {
        /// Its header: type, flags, counter or tick, and for a broadcast the sender's address.
        header: DatagramHeader,
        /// The data.
        data: Vec<u8>,
    },
    /// The connection is over. The last event. Without a [`Welcome`](Event::Welcome) before it, the relay was full.
    Closed,
}

/// The way in which a UDP packet is sent: grouped and to everybody, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    kind: u8,
    through: u8,
    to: Option<Address>,
    every_one: bool,
}

impl Update {
    /// An update of a type: of each type the newest one leaves at the tick.
    pub const fn new(kind: u8) -> Self {
        Self {
            kind,
            through: 0,
            to: None,
            every_one: false,
        }
    }

    /// The application's 4 bits. Default 0.
    pub const fn through(mut self, bits: u8) -> Self {
        self.through = bits;
        self
    }

    /// To one client. It will not know who sent it. Default: to everybody else.
    pub const fn to(mut self, address: Address) -> Self {
        self.to = Some(address);
        self
    }

    /// Every packet leaves at the tick, not only the newest of its type, and the receiver sees this client's counter rather than
    /// the tick. Default false.
    pub const fn every_one(mut self, on: bool) -> Self {
        self.every_one = on;
        self
    }
}

/// An error that keeps a packet from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// More data than a packet holds.
    #[error("{len} bytes, and a packet holds {max}")]
    TooLong {
        /// The number of bytes.
        len: usize,
        /// The most that there may be.
        max: usize,
    },
    /// The server has not given an address yet, or the connection is over.
    #[error("not connected")]
    NotConnected,
    /// The connection has not taken what was sent before.
    #[error("too much waits to be sent")]
    Full,
}

impl Client {
    /// A client that uses TCP and UDP.
    pub fn new() -> Self {
        Self {
            server: None,
            stream: None,
            address: None,
            datagrams: true,
            input: Vec::new(),
            output: Vec::new(),
            output_start: 0,
            updates: VecDeque::new(),
            counter: 0,
            starts_again: false,
            asked: VecDeque::new(),
            events: VecDeque::new(),
            action: None,
            announce_at: None,
            announced: 0,
        }
    }

    /// A client that uses TCP alone: the server sends it no UDP.
    pub fn without_datagrams() -> Self {
        Self {
            datagrams: false,
            ..Self::new()
        }
    }

    /// Starts the UDP counter at a number rather than at 0.
    pub fn counter_from(mut self, counter: u32) -> Self {
        self.counter = counter;
        self
    }

    /// This client's address, once the server has told it.
    pub fn address(&self) -> Option<Address> {
        self.address
    }

    /// Sends over TCP to every other client. `through` are 4 bits that the receivers see.
    pub fn broadcast(&mut self, through: u8, data: &[u8]) -> Result<(), SendError> {
        self.send(through, BROADCAST, &[], data)
    }

    /// Sends over TCP to one client, which learns who sent it. If nobody has the address, it goes nowhere.
    pub fn unicast(&mut self, to: Address, through: u8, data: &[u8]) -> Result<(), SendError> {
        self.send(through, UNICAST, &[to.get()], data)
    }

    /// Asks which other clients are active; [`Event::List`] is the answer.
    pub fn list(&mut self) -> Result<(), SendError> {
        self.send(0, LIST, &[], &[])
    }

    /// Asks whether a client is active; [`Event::State`] is the answer.
    pub fn state(&mut self, address: u8) -> Result<(), SendError> {
        if self.asked.len() >= ASKED_MAX {
            return Err(SendError::Full);
        }
        self.send(0, STATE, &[address], &[])?;
        self.asked.push_back(address);
        Ok(())
    }

    /// Sends over UDP. It may be lost; when it leaves later than the next one of its type, it is.
    pub fn update(&mut self, update: Update, data: &[u8]) -> Result<(), SendError> {
        let Some(own) = self.address.filter(|_| self.stream.is_some()) else {
            return Err(SendError::NotConnected);
        };
        let (len, max) = (data.len(), DATAGRAM_DATA_MAX);
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        if self.updates.len() >= UPDATES_MAX {
            return Err(SendError::Full);
        }
        let time = self.counter;
        let flags = match update.every_one {
            true => 0,
            false => GROUP,
        } | update.to.map_or(0, |_| DATAGRAM_UNICAST);
        if self.starts_again {
            // Not with the last one before: the server would take that for one left over.
            self.send(0, RESET, &[], &[])?;
        }
        (self.counter, self.starts_again) = self.counter.overflowing_add(1);
        self.queue_update(
            DatagramHeader {
                kind: update.kind,
                control: update.through << 4 | flags,
                time,
                address: update.to.unwrap_or(own).get(),
            },
            data,
        );
        Ok(())
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.action = Some(StreamAction::Close(stream));
            self.announce_at = None;
            self.events.push_back(Event::Closed);
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn send(
        &mut self,
        through: u8,
        affecting: u8,
        first: &[u8],
        data: &[u8],
    ) -> Result<(), SendError> {
        let Some(stream) = self.stream.filter(|_| self.address.is_some()) else {
            return Err(SendError::NotConnected);
        };
        let (len, max) = (data.len(), STREAM_DATA_MAX - first.len());
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        if self.output.len() - self.output_start > OUTPUT_MAX {
            return Err(SendError::Full);
        }
        let length = u16::try_from(first.len() + len).unwrap_or(u16::MAX);
        let control = through << 4 | affecting;
        let header = StreamHeader { length, control };
        self.output.extend_from_slice(&header.emit());
        self.output.extend_from_slice(first);
        self.output.extend_from_slice(data);
        self.action.get_or_insert(StreamAction::Write(stream));
        Ok(())
    }

    fn queue_update(&mut self, header: DatagramHeader, data: &[u8]) {
        let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
        self.updates
            .push_back([&header.emit(length)[..], data].concat());
    }

    /// Tells the server where UDP for this client goes, with a packet that it does not pass on.
    fn announce(&mut self, now: Instant, own: Address) {
        let header = DatagramHeader {
            kind: 0,
            control: DISCARD,
            time: 0,
            address: own.get(),
        };
        if self.updates.len() < UPDATES_MAX {
            self.queue_update(header, &[]);
        }
        // The first may be lost, and the server has no way to say so.
        self.announced = self.announced.saturating_add(1);
        let wait = match self.announced < ANNOUNCED_SOON {
            true => ANNOUNCE_SOON,
            false => ANNOUNCE_EVERY,
        };
        self.announce_at = Some(now + wait);
    }

    fn take_packet(&mut self, now: Instant, header: StreamHeader, data: &[u8]) {
        let through = header.control >> 4;
        let Some(own) = self.address else {
            // The first packet is the address.
            match data.first().copied().and_then(Address::new) {
                Some(address) if header.affecting() == BROADCAST => {
                    self.address = Some(address);
                    self.events.push_back(Event::Welcome { address });
                    if self.datagrams {
                        self.announce(now, address);
                    }
                }
                _ => self.close(),
            }
            return;
        };
        let event = match (header.control & AFFECTING, data) {
            (BROADCAST, _) => Event::Broadcast {
                through,
                data: data.to_vec(),
            },
            (UNICAST, [from, data @ ..]) => Event::Unicast {
                // Zero is nobody's address; a server that says it is not one of ours.
                from: Address::new(*from).unwrap_or(own),
                through,
                data: data.to_vec(),
            },
            (LIST, _) => Event::List {
                addresses: data.iter().copied().filter_map(Address::new).collect(),
            },
            (STATE, [state, ..]) => match self.asked.pop_front() {
                Some(address) => Event::State {
                    address,
                    active: *state == 1,
                },
                None => return,
            },
            _ => return,
        };
        self.events.push_back(event);
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for Client {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        if Some(datagram.from) != self.server || self.events.len() >= EVENTS_MAX {
            return;
        }
        match DatagramHeader::parse(datagram.payload) {
            Ok((header, data)) if !header.has(DISCARD) => {
                let data = data.to_vec();
                self.events.push_back(Event::Update { header, data });
            }
            _ => (),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let (Some(due), Some(own)) = (self.announce_at, self.address)
            && due <= now
        {
            self.announce(now, own);
        }
    }

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let to = self.server?;
        let update = self.updates.pop_front()?;
        let room = buffer.get_mut(..update.len())?;
        room.copy_from_slice(&update);
        debug_assert!(update.len() <= DATAGRAM_MAX, "checked when it was queued");
        Some(Transmit {
            to,
            len: update.len(),
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.announce_at
    }
}

impl StreamMachine for Client {
    fn handle_open(&mut self, _: Instant, stream: StreamId, peer: SocketAddr) -> bool {
        if self.server.is_some() {
            return false;
        }
        (self.stream, self.server) = (Some(stream), Some(peer));
        true
    }

    fn read_limit(&mut self, _: Instant, _: StreamId) -> usize {
        // Events that nobody takes hold the server back, not memory.
        match self.events.len() < EVENTS_MAX {
            true => READ_MAX,
            false => 0,
        }
    }

    fn handle_bytes(&mut self, now: Instant, stream: StreamId, bytes: &[u8]) {
        if self.stream != Some(stream) {
            return;
        }
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some((&header, behind)) = rest.split_first_chunk::<STREAM_HEADER>() {
            let Ok(header) = StreamHeader::parse(header) else {
                self.close();
                return;
            };
            let Some((data, next)) = behind.split_at_checked(usize::from(header.length)) else {
                break;
            };
            self.take_packet(now, header, data);
            rest = next;
        }
        self.input = rest.to_vec();
    }

    fn handle_end(&mut self, _: Instant, stream: StreamId) {
        if self.stream == Some(stream) {
            self.close();
        }
    }

    fn poll_stream(&mut self, _: Instant) -> Option<StreamAction> {
        self.action.take()
    }

    fn outgoing(&self, stream: StreamId) -> &[u8] {
        match self.stream == Some(stream) {
            true => &self.output[self.output_start..],
            false => &[],
        }
    }

    fn handle_written(&mut self, _: Instant, _: StreamId, len: usize) {
        self.output_start = (self.output_start + len).min(self.output.len());
        if self.output_start == self.output.len() {
            self.output.clear();
            self.output_start = 0;
        }
    }
}

/// Most bytes that wait for the connection before more are refused.
const OUTPUT_MAX: usize = 1 << 20;
/// Most UDP packets that wait for the socket.
const UPDATES_MAX: usize = 1_024;
/// Most questions without an answer.
const ASKED_MAX: usize = 1_024;
/// Most events that wait for the application before UDP is dropped and TCP is left with the server.
const EVENTS_MAX: usize = 16_384;
const READ_MAX: usize = 64 << 10;
/// The first announcements come soon after each other.
const ANNOUNCED_SOON: u32 = 3;
const ANNOUNCE_SOON: Duration = Duration::from_secs(1);
/// Within the shortest time after which routers forget a mapping.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(15);
