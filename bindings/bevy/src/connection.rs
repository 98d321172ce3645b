//! Connections as resources and messages.

use std::sync::Mutex;

use bevy_ecs::prelude::*;
use muse::netcode::Claim;
use muse::netcode::{ClientId, Tick};
use muse::session::Incoming;
use muse::{Applicant, Channel, CloseReason, Duration, Receipt, Refusal};

/// Insert it on the server to serve these connections, at any time.
#[derive(Resource)]
pub struct ServeOn(pub(crate) Mutex<muse::drivers::EndpointDriver>);

impl ServeOn {
    /// Serves what this socket brings. Its config must be [`Protocol::transport`](crate::Protocol::transport)'s.
    pub fn new(link: muse::drivers::EndpointDriver) -> Self {
        Self(Mutex::new(link))
    }
}

/// Insert it on the client to connect, at any time; a session before it ends.
#[derive(Resource)]
pub struct ConnectTo(pub(crate) Mutex<muse::drivers::ClientDriver>);

impl ConnectTo {
    /// Plays over this connection. Its config must be [`Protocol::transport`](crate::Protocol::transport)'s.
    pub fn new(link: muse::drivers::ClientDriver) -> Self {
        Self(Mutex::new(link))
    }
}

/// The state of the client's connection to its server.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// There was no [`ConnectTo`] yet.
    #[default]
    Idle,
    /// The handshake is under way.
    Connecting,
    /// The session runs.
    Connected,
    /// Nothing has been heard for a while; it may come back.
    Interrupted,
    /// The server refused the client.
    Refused(Refusal),
    /// Nobody answered.
    Unanswered,
    /// The connection was closed.
    Closed(CloseReason),
}

/// On the client: [`ConnectionState`] changed.
#[derive(Message, Clone, Debug)]
pub struct ConnectionChanged(pub ConnectionState);

/// On the server: a client waits to be [admitted](crate::NetServer::admit) or [denied](crate::NetServer::deny), at once or later; at an endpoint with
/// [`ServerOptions::admission`](muse::ServerOptions::admission) only.
#[derive(Message, Clone, Debug)]
pub struct ClientAsking(pub Applicant);

/// On the server: a client is there, and sees what it may. Spawn its player with [`Owner`](crate::Owner).
#[derive(Message, Clone, Debug)]
pub struct ClientJoined {
    /// Its number.
    pub client: ClientId,
    /// The account in its connect token; 0 without one.
    pub account: u64,
}

/// On the server: a client is gone. What becomes of what it owned is for the game to say.
#[derive(Message, Clone, Debug)]
pub struct ClientLeft {
    /// Its number.
    pub client: ClientId,
    /// The reason why its connection ended.
    pub reason: CloseReason,
}

/// On the client: a message of the game's own, see [`Protocol::message`](crate::Protocol::message).
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MessageReceived {
    /// The channel.
    pub channel: Channel,
    /// The bytes that were sent.
    pub payload: Vec<u8>,
}

impl MessageReceived {
    /// Returns the message if it is of this type and whole; `None` otherwise.
    pub fn read<M: muse::Message>(&self) -> Option<M> {
        Incoming::new(self.channel, &self.payload).read()
    }
}

/// On the server: a client's message of the game's own, see [`Protocol::message`](crate::Protocol::message).
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MessageFrom {
    /// The client that sent it.
    pub client: ClientId,
    /// The channel.
    pub channel: Channel,
    /// The bytes that were sent.
    pub payload: Vec<u8>,
}

impl MessageFrom {
    /// Returns the message if it is of this type and whole; `None` otherwise.
    pub fn read<M: muse::Message>(&self) -> Option<M> {
        Incoming::new(self.channel, &self.payload).read()
    }
}

/// On either side: the outcome of a message that was sent with [`SendOptions::receipt`](muse::SendOptions::receipt).
#[derive(Message, Clone, Copy, Debug)]
pub struct ReceiptReceived {
    /// On the server: of which client.
    pub client: Option<ClientId>,
    /// The message, and its fate.
    pub receipt: Receipt,
}

/// The tick that is being simulated, in `FixedUpdate` on either side.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetTick(pub Tick);

/// On the client: the player's input for this tick. Write it in `FixedUpdate`.
#[derive(Resource, Clone, Debug, Default)]
pub struct PlayerInput<I: Send + Sync + 'static>(pub I);

/// On the client: the claim that a shot at what is on the screen carries, by which the server judges it.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct OnScreen(pub Option<Claim>);

/// Figures of the session and its connections, as of the last frame. On the server those of connections are sums.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// Connections.
    pub connections: usize,
    /// Round-trip time; on the server the longest.
    pub round_trip: Duration,
    /// Share of packets lost, 0 to 1; on the server the worst.
    pub loss: f32,
    /// Bytes sent, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Bytes received, without IP and UDP headers.
    pub bytes_received: u64,
    /// On the client: how far ahead of the server it plays.
    pub ahead: Duration,
    /// On the client: how far in the past others are shown.
    pub behind: Duration,
    /// On the client: states of the own player that had been predicted.
    pub confirmed: u64,
    /// On the client: states of the own player that had not.
    pub corrected: u64,
    /// On the client: entities that it predicts besides its own player.
    pub predicted_others: u32,
    /// On the server: ticks of time that it could not keep up with.
    pub slipped: u64,
}
