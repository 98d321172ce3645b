//! Several endpoints behind one port: which of them a datagram belongs to.
//!
//! Endpoints share nothing, so whatever must happen once must happen at one of them. A connection's packets go to the endpoint that accepted it, by the
//! connection id. A Connect goes by the name of its token, so that every use of a token meets the memory of the first, and a player who comes back
//! from another address meets their session. Everything else goes by address, so that a handshake stays together.
//!
//! ```
//! use muse_transport::steering::shard_of;
//! // A packet of connection 0x00_0007_02, at the third of four endpoints.
//! assert_eq!(shard_of(&[0x80, 0x02, 0x07, 0x00, 0x00, 1, 0], 4), Some(2));
//! // A Hello.
//! assert_eq!(shard_of(&[0x01, 0, 0, 0, 0, 0, 0, 0, 0], 4), None);
//! ```

use crate::handshake::CONNECT_TOKEN_OFFSET;
use crate::token::{TOKEN_ID_OFFSET, TokenId};

/// Most endpoints behind one port: as many as the low byte of a connection id can tell apart.
pub const SHARDS_MAX: usize = 256;
/// Bit of the first byte that says that a datagram is a connection's packet.
pub const PACKET_BIT: u8 = 0x80;
/// Offset of the connection id's low byte in a connection's packet.
pub const CONNECTION_OFFSET: usize = 1;
/// First byte of a Connect.
pub const CONNECT_FIRST: u8 = 3;
/// Offset, in a Connect, of the two bytes that hold the length of its token; zero if there is none.
pub const TOKEN_LENGTH_OFFSET: usize = CONNECT_TOKEN_OFFSET - 2;
/// Offset, in a Connect with a token, of the first byte of the token's name.
pub const TOKEN_NAME_OFFSET: usize = CONNECT_TOKEN_OFFSET + TOKEN_ID_OFFSET;

/// Returns the number of the endpoint, out of `count`, that a datagram belongs to; `None` if its address decides.
///
/// An endpoint that is told [its place](crate::Config::shard) refuses tokens of the others, so that a mistake here costs a connection and never admits a
/// token twice.
pub fn shard_of(datagram: &[u8], count: usize) -> Option<usize> {
    let place = |byte: u8| usize::from(byte) % count.max(1);
    let first = *datagram.first()?;
    if first & PACKET_BIT != 0 {
        return datagram.get(CONNECTION_OFFSET).copied().map(place);
    }
    if first != CONNECT_FIRST {
        return None;
    }
    let length = datagram.get(TOKEN_LENGTH_OFFSET..CONNECT_TOKEN_OFFSET)?;
    if length == [0, 0] {
        return None;
    }
    datagram.get(TOKEN_NAME_OFFSET).copied().map(place)
}

/// The place of an endpoint among those behind its port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    pub(crate) number: usize,
    pub(crate) count: usize,
}

impl Shard {
    /// The only endpoint behind its port.
    pub(crate) const ALONE: Self = Self {
        number: 0,
        count: 1,
    };

    /// True if it fits into the connection ids.
    pub(crate) fn is_possible(self) -> bool {
        self.number < self.count && self.count <= SHARDS_MAX
    }

    /// True if every Connect with this token comes here.
    pub(crate) fn serves(self, token: &TokenId) -> bool {
        usize::from(token.as_bytes()[0]) % self.count == self.number
    }
}
