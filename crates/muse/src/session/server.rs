//! The clients of a server: who they are, and messages and packets to each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use muse_netcode::{ClientId, Tick};
use muse_schema::Message;
use muse_transport::{
    CloseReason, ConnectionId, Endpoint, Event, MessageId, Receipt, SendError, SendOptions,
};
use muse_wire::{Duration, Instant};

use super::{Incoming, PACKET_BYTES, SNAPSHOT_BYTES_MIN};
use crate::{Channel, Error, Protocol, Result};

/// An event at a server. `E` is [`Game::Event`](muse_netcode::prediction::Game::Event), for a server that simulates one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerEvent<'a, E = ()> {
    /// A client waits to be [admitted](ServerSession::admit) or [denied](ServerSession::deny), at once or later; at a server that
    /// [asks](crate::Listen::ask) only.
    Asking(Applicant),
    /// A client is connected. An account that was here before keeps its id.
    Joined(ClientId),
    /// A client whose player is still in the world came back and plays it on.
    Returned(ClientId),
    /// A client is gone, with the reason; its player stays until it is despawned. [`info`](ServerSession::info) still says who it was, until this event
    /// has been handled.
    Left(ClientId, CloseReason),
    /// A message arrived.
    Received(ClientId, Incoming<'a>),
    /// A packet of the game's client, for the server's [`handle_packet`](muse_netcode::Server::handle_packet).
    /// [`GameServerSession`](super::GameServerSession) handles these.
    Packet(ClientId, &'a [u8]),
    /// A message sent with [`SendOptions::receipt`] was delivered, lost or dropped.
    Receipt(ClientId, Receipt),
    /// Nothing has been heard of a client for a while; it may come back.
    Interrupted(ClientId),
    /// An interrupted client is back.
    Resumed(ClientId),
    /// A player's step emitted an event.
    Emitted(ClientId, E),
    /// The players have been simulated: now simulate the rest of the world, before clients are told of it.
    TickFinished(Tick),
    /// The server's room at a relay is open: friends can come by this code.
    #[cfg(feature = "relay")]
    RoomOpened(muse_drivers::relay::ShortCode),
    /// The server has no room at its relay, or no longer, and why.
    #[cfg(feature = "relay")]
    RoomLost(crate::RoomLoss),
    /// The master gave this server a match to host.
    #[cfg(feature = "master")]
    MatchAssigned(crate::master::MatchPlan),
    /// Everybody who has a seat in the master's match is connected.
    #[cfg(feature = "master")]
    MatchStarted,
    /// A player's name and saved progress, as [`ask_profile`](crate::master::HostedMatch::ask_profile) asked.
    #[cfg(feature = "master")]
    Profile(crate::master::PlayerProfile),
    /// The master refused to tell a profile or to save progress, and does not want to be asked again.
    #[cfg(feature = "master")]
    MasterRefused(crate::master::ServerMessage, crate::master::ServerRefusal),
}

/// A client that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// The facts about it. Somebody who recorded its hello may repeat it.
    pub info: ClientInfo,
    connection: ConnectionId,
}

impl Applicant {
    /// Returns the client that an event of an endpoint asks about; `None` of another event.
    pub fn from_event(event: &Event<'_>) -> Option<Self> {
        let Event::Asking {
            connection,
            account,
            user_data,
            hello,
            address,
        } = event
        else {
            return None;
        };
        let info = ClientInfo {
            account: *account,
            hello: hello.to_vec(),
            user_data: user_data.to_vec(),
            address: Some(*address),
        };
        Some(Self {
            info,
            connection: *connection,
        })
    }

    /// Returns its connection, for [`Endpoint::admit`] and [`Endpoint::deny`].
    pub const fn connection(&self) -> ConnectionId {
        self.connection
    }
}

/// The facts that a server knows about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The account of its connect token; 0 without one.
    pub account: u64,
    /// The greeting with which it connected ([`Connect::hello`](muse_transport::Connect::hello)).
    pub hello: Vec<u8>,
    /// The data of its token's issuer.
    pub user_data: Vec<u8>,
    /// The address that it connected from.
    pub address: Option<SocketAddr>,
}

#[derive(Clone, Debug)]
struct Member {
    connection: ConnectionId,
    info: ClientInfo,
}

/// The clients of one endpoint, each with an id that stays the same when its account comes back.
#[derive(Clone, Debug)]
pub struct ServerSession {
    protocol: Protocol,
    members: BTreeMap<ClientId, Member>,
    /// The client that the last event said has left.
    left: Option<(ClientId, ClientInfo)>,
    clients: BTreeMap<ConnectionId, ClientId>,
    /// The id of each account, also of those that are gone.
    accounts: BTreeMap<u64, ClientId>,
    next: u32,
    /// Accounts that may not come back.
    banned: BTreeSet<u64>,
    /// The message that is being encoded.
    payload: Vec<u8>,
}

impl ServerSession {
    /// Starts without clients.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            members: BTreeMap::new(),
            left: None,
            clients: BTreeMap::new(),
            accounts: BTreeMap::new(),
            next: 1,
            banned: BTreeSet::new(),
            payload: Vec::new(),
        }
    }

    /// Returns the protocol.
    pub const fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Takes an event of the endpoint. Returns what it means to the game; `None` if the game need not know.
    pub fn handle_event<'a, E>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        event: Event<'a>,
    ) -> Option<ServerEvent<'a, E>> {
        self.left = None;
        match event {
            Event::Asking { .. } => {
                let applicant = Applicant::from_event(&event)?;
                if self.banned.contains(&applicant.info.account) {
                    // One that is gone has been told so already.
                    let _ = endpoint.deny(now, applicant.connection, CODE_BANNED, BANNED);
                    return None;
                }
                Some(ServerEvent::Asking(applicant))
            }
            Event::Connected {
                connection,
                account,
                user_data,
                hello,
            } => {
                if self.banned.contains(&account) {
                    endpoint.close(now, connection, CODE_BANNED, BANNED);
                    return None;
                }
                let info = ClientInfo {
                    account,
                    hello: hello.to_vec(),
                    user_data: user_data.to_vec(),
                    address: endpoint.remote(connection),
                };
                let client = self.seat(now, endpoint, connection, info);
                Some(ServerEvent::Joined(client))
            }
            Event::Closed { connection, reason } => {
                let client = self.clients.remove(&connection)?;
                let member = self.members.remove(&client)?;
                self.left = Some((client, member.info));
                Some(ServerEvent::Left(client, reason))
            }
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                let client = *self.clients.get(&connection)?;
                if channel == Channel::STATES.0 {
                    return Some(ServerEvent::Packet(client, payload));
                }
                let channel = Channel(channel);
                Some(ServerEvent::Received(client, Incoming { channel, payload }))
            }
            Event::Receipt {
                connection,
                receipt,
            } => Some(ServerEvent::Receipt(self.client_of(connection)?, receipt)),
            Event::Interrupted { connection } => {
                Some(ServerEvent::Interrupted(self.client_of(connection)?))
            }
            Event::Resumed { connection } => {
                Some(ServerEvent::Resumed(self.client_of(connection)?))
            }
            Event::AddressChanged {
                connection,
                address,
            } => {
                let client = self.client_of(connection)?;
                self.members.get_mut(&client)?.info.address = Some(address);
                None
            }
            _ => None,
        }
    }

    /// Lets a client in; [`ServerEvent::Joined`] follows, unless it is gone meanwhile.
    pub fn admit(&mut self, now: Instant, endpoint: &mut Endpoint, applicant: &Applicant) {
        // One that is gone, or waited too long, has been told so already.
        let _ = endpoint.admit(now, applicant.connection);
    }

    /// Refuses a client, which reads `code` and `text` in [`Error::Refused`].
    pub fn deny(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        applicant: &Applicant,
        code: u16,
        text: &str,
    ) {
        let _ = endpoint.deny(now, applicant.connection, code, text);
    }

    /// Returns the ids of the connected clients, in order.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.members.keys().copied()
    }

    /// Returns what is known of a client, also of one that has just [left](ServerEvent::Left); `None` once the next event is there.
    pub fn info(&self, client: ClientId) -> Option<&ClientInfo> {
        let left = self.left.as_ref().filter(|(left, _)| *left == client);
        let connected = self.members.get(&client).map(|member| &member.info);
        connected.or(left.map(|(_, info)| info))
    }

    /// Returns the connection of a client, for the endpoint.
    pub fn connection(&self, client: ClientId) -> Option<ConnectionId> {
        Some(self.members.get(&client)?.connection)
    }

    /// Returns the client of a connection.
    pub fn client_of(&self, connection: ConnectionId) -> Option<ClientId> {
        self.clients.get(&connection).copied()
    }

    /// Sends a message to a client, as its type is declared in the protocol.
    pub fn send<M: Message>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        message: &M,
    ) -> Result<MessageId> {
        self.send_with(now, endpoint, client, message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: Message>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        message: &M,
        options: &SendOptions,
    ) -> Result<MessageId> {
        let channel = self.channel_of::<M>()?;
        let connection = self.connected(client)?;
        self.encode(message)?;
        let payload = &self.payload;
        Ok(endpoint.send_with(now, connection, channel.0, payload, options)?)
    }

    /// Sends a message to every client, encoded once. A client whose queue is full does not get it.
    pub fn broadcast<M: Message>(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        message: &M,
    ) -> Result<()> {
        let channel = self.channel_of::<M>()?;
        self.encode(message)?;
        let clients = &self.clients;
        let known = |connection| clients.contains_key(&connection);
        let _ = endpoint.broadcast_if(now, channel.0, &self.payload, known);
        Ok(())
    }

    /// Sends bytes on a channel without types.
    pub fn send_bytes(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        channel: Channel,
        bytes: &[u8],
    ) -> Result<MessageId> {
        let connection = self.connected(client)?;
        Ok(endpoint.send(now, connection, channel.0, bytes)?)
    }

    /// Sends the packets of a simulation until `poll` has none; it writes the next to the front of its buffer and says whose it is and how long, as
    /// [`poll_packet`](muse_netcode::Server::poll_packet) does.
    pub fn send_packets(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        mut poll: impl FnMut(&mut [u8]) -> Option<(ClientId, usize)>,
    ) {
        let mut packet = [0; PACKET_BYTES];
        while let Some((client, len)) = poll(&mut packet) {
            // One that does not go is lost, as the network might have lost it.
            let _ = self.send_packet(now, endpoint, client, &packet[..len]);
        }
    }

    /// Sends a packet of the game to its client. One that does not go is lost, as the network might have lost it.
    pub fn send_packet(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        packet: &[u8],
    ) -> std::result::Result<(), SendError> {
        let connection = self.connection(client).ok_or(SendError::NoConnection)?;
        endpoint
            .send(now, connection, Channel::STATES.0, packet)
            .map(drop)
    }

    /// Returns the bytes that a snapshot to this client may have now, if one goes each `interval`: what congestion control lets
    /// through.
    pub(super) fn snapshot_budget(
        &self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        interval: Duration,
    ) -> Option<usize> {
        let budget = endpoint.budget(now, self.connection(client)?)?;
        Some(budget.this_tick(interval).max(SNAPSHOT_BYTES_MIN))
    }

    /// Closes a client's connection and tells it why; [`ServerEvent::Left`] follows. What is still on its way may be lost.
    pub fn disconnect(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        code: u16,
        text: &str,
    ) {
        if let Some(connection) = self.connection(client) {
            endpoint.close(now, connection, code, text);
        }
    }

    /// Lets a client's account come back no more, whatever its address. A client without a token has none: its address is the
    /// endpoint's to [ban](Endpoint::ban).
    pub fn ban_account(&mut self, client: ClientId) {
        let account = self.info(client).map_or(0, |info| info.account);
        if account != 0 && self.banned.len() < BANNED_MAX {
            self.banned.insert(account);
        }
    }

    /// Closes a client's connection once everything reliable has arrived.
    pub fn finish(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        client: ClientId,
        code: u16,
        text: &str,
    ) {
        if let Some(connection) = self.connection(client) {
            endpoint.finish(now, connection, code, text);
        }
    }

    /// Gives a new connection its id: a new one, or that of its account, whose older connection ends.
    fn seat(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        connection: ConnectionId,
        info: ClientInfo,
    ) -> ClientId {
        // Without tokens clients cannot be told apart, so nobody gets an id back.
        let known = match info.account {
            0 => None,
            account => self.accounts.get(&account).copied(),
        };
        let client = known.unwrap_or_else(|| {
            let client = ClientId(self.next);
            self.next = self.next.wrapping_add(1).max(1);
            client
        });
        if info.account != 0 && known.is_none() {
            self.remember(info.account, client);
        }
        if let Some(ghost) = self.members.remove(&client) {
            self.clients.remove(&ghost.connection);
            endpoint.close(now, ghost.connection, 0, "came by another connection");
        }
        self.clients.insert(connection, client);
        self.members.insert(client, Member { connection, info });
        client
    }

    fn remember(&mut self, account: u64, client: ClientId) {
        if self.accounts.len() >= ACCOUNTS_MAX {
            let members = &self.members;
            let is_gone = |entry: &(&u64, &ClientId)| !members.contains_key(entry.1);
            let gone = self.accounts.iter().find(is_gone).map(|(gone, _)| *gone);
            if let Some(gone) = gone {
                self.accounts.remove(&gone);
            }
        }
        self.accounts.insert(account, client);
    }

    fn connected(&self, client: ClientId) -> Result<ConnectionId> {
        self.connection(client).ok_or(Error::NoSuchClient(client))
    }

    fn channel_of<M: Message>(&self) -> Result<Channel> {
        let channel = self.protocol.channel_of::<M>();
        channel.ok_or(Error::Undeclared(M::DESCRIPTOR.name()))
    }

    fn encode<M: Message>(&mut self, message: &M) -> Result<()> {
        super::encode(message, &mut self.payload)
    }
}

/// Accounts whose ids are remembered; beyond that those that are gone are forgotten.
const ACCOUNTS_MAX: usize = 65_536;
/// Accounts that are banned; further ones are not remembered.
const BANNED_MAX: usize = 65_536;
/// The code and words for a banned account that comes back.
const CODE_BANNED: u16 = 1;
const BANNED: &str = "you are banned from this server";
