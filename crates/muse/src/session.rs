//! Sessions over any link: the clients of an endpoint, and a client's connection, with typed messages and the packets of a game.
//!
//! Both halves are sans-IO. They act on an [`Endpoint`](muse_transport::Endpoint), which a driver runs over UDP, WebTransport,
//! WebSocket, memory or a relay's room, and which the simulation runs in virtual time; so everything above them, from
//! [`GameServer`](crate::GameServer) to a game of your own loop, behaves alike on every link.
//!
//! [`ServerSession`] and [`ClientSession`] carry messages; on top of them [`GameServerSession`] and [`GameClientSession`] carry a game, whose example shows a turn.

mod client;
mod game_client;
mod game_server;
mod server;

pub use client::{ClientEvent, ClientSession};
pub use game_client::GameClientSession;
pub use game_server::GameServerSession;
pub use server::{Applicant, ClientInfo, ServerEvent, ServerSession};

use muse_schema::{DecodeError, Message};

use crate::Channel;

/// A message that arrived. It borrows what the event borrowed and is decoded when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming<'a> {
    channel: Channel,
    payload: &'a [u8],
}

impl<'a> Incoming<'a> {
    /// Returns the message that these bytes are, which came on this channel: for a program that has kept them.
    pub const fn new(channel: Channel, payload: &'a [u8]) -> Self {
        Self { channel, payload }
    }

    /// Returns the message if it is of this type and whole; `None` otherwise.
    pub fn read<M: Message>(&self) -> Option<M> {
        self.try_read()?.ok()
    }

    /// Returns the message if it is of this type, or what is wrong with it; `None` if it is of another type.
    pub fn try_read<M: Message>(&self) -> Option<std::result::Result<M, DecodeError>> {
        let (id, bytes) = self.payload.split_first_chunk()?;
        (u16::from_le_bytes(*id) == M::ID).then(|| M::decode(bytes))
    }

    /// Returns the channel that it came on.
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// Returns its bytes, for channels without types.
    pub const fn bytes(&self) -> &'a [u8] {
        self.payload
    }
}

/// Bytes of a game's packet that fit into one datagram with everything around them.
pub const PACKET_BYTES: usize = 1_100;
/// Bytes that a snapshot may have however congested the path is: without any the client's clock would stop.
const SNAPSHOT_BYTES_MIN: usize = 256;

/// Encodes a message with its id, in place of what `payload` held.
pub(crate) fn encode<M: Message>(message: &M, payload: &mut Vec<u8>) -> crate::Result<()> {
    payload.clear();
    let encoded = muse_transport::typed::encode(message, payload);
    Ok(encoded.map_err(muse_transport::MessageError::Encode)?)
}
