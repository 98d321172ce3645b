//! The datagram and the ChannelInfo: encapsulate, serialise and deserialise. `docs/muse-rp.md` has the tables.

use muse_wire::bytes::{EndOfBytes, Reader, Writer};
use thiserror::Error;

/// A datagram, read in place.
///
/// ```
/// use muse_rp::packet::{Flags, Packet};
/// let packet = Packet { sequence: 7, ack: 0, flags: Flags::DATA, kind: 300, payload: b"hi" };
/// let mut buffer = [0; 64];
/// let len = packet.emit(&mut buffer).expect("13 bytes fit");
/// assert_eq!(&buffer[..len], b"\x07\0\0\0\0\0\0\0\0\x2c\x01hi");
/// assert_eq!(Packet::parse(&buffer[..len]), Ok(packet));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The sequence number; in a ping its id.
    pub sequence: u32,
    /// The last number accepted; counts in acknowledgements only.
    pub ack: u32,
    /// The kind of datagram.
    pub flags: Flags,
    /// The message type, by which handlers are chosen.
    pub kind: u16,
    /// The application's bytes, or a [`ChannelInfo`], or a ping's direction.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader::new(bytes);
        let packet = Self {
            sequence: reader.u32()?,
            ack: reader.u32()?,
            flags: Flags(reader.u8()?),
            kind: reader.u16()?,
            payload: reader.rest(),
        };
        if packet.payload.len() > PAYLOAD_READ_MAX {
            return Err(PacketError::TooLong(packet.payload.len()));
        }
        Ok(packet)
    }

    /// Writes the datagram to the front of `buffer` and says how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u32(self.sequence)?;
        writer.u32(self.ack)?;
        writer.u8(self.flags.0)?;
        writer.u16(self.kind)?;
        writer.slice(self.payload)?;
        Ok(writer.len())
    }
}

/// The reason that a datagram cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Shorter than the header or than what its kind needs.
    #[error("cut short")]
    TooShort,
    /// More payload than any implementation sends.
    #[error("payload of {0} bytes: at most {PAYLOAD_READ_MAX} are read")]
    TooLong(usize),
    /// An INIT's payload is not a [`ChannelInfo`].
    #[error("ChannelInfo of {0} bytes instead of {CHANNEL_INFO_LEN}")]
    ChannelInfo(usize),
}

impl From<EndOfBytes> for PacketError {
    fn from(_: EndOfBytes) -> Self {
        Self::TooShort
    }
}

/// The flags of a datagram. Bits without a meaning are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag: data.
    pub const DATA: Self = Self(0);
    /// An acknowledgement.
    pub const ACK: Self = Self(1);
    /// A step of the handshake.
    pub const INIT: Self = Self(2);
    /// The end of the connection.
    pub const END: Self = Self(4);
    /// A ping or its answer.
    pub const PING: Self = Self(8);

    /// Returns the kind of datagram: flags are looked at in the order INIT, END, PING, ACK.
    pub const fn meaning(self) -> Meaning {
        match self.0 {
            flags if flags & Self::INIT.0 != 0 => Meaning::Init,
            flags if flags & Self::END.0 != 0 => Meaning::End,
            flags if flags & Self::PING.0 != 0 => Meaning::Ping,
            flags if flags & Self::ACK.0 != 0 => Meaning::Ack,
            _ => Meaning::Data,
        }
    }
}

/// The kind of a datagram, by its [`Flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A step of the handshake.
    Init,
    /// The end of the connection.
    End,
    /// A ping or its answer.
    Ping,
    /// An acknowledgement.
    Ack,
    /// A message of the application.
    Data,
}

/// A channel's ports and numbers, exchanged in the handshake.
///
/// Ports are 32 bits wide on the wire and echoed as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelInfo {
    /// The sender's port of the reliable channel.
    pub reliable_port: u32,
    /// The sender's port of the partially reliable channel.
    pub partial_port: u32,
    /// Window of both channels; the server's counts.
    pub window: u32,
    /// Share that surely arrives, in per cent; the server's counts.
    pub percent: u32,
    /// The other side's reliable port, echoed.
    pub your_reliable_port: u32,
    /// The other side's partial port, echoed.
    pub your_partial_port: u32,
    /// The server's number for the connection.
    pub id: u32,
}

impl ChannelInfo {
    /// Reads the payload of an INIT.
    pub fn parse(payload: &[u8]) -> Result<Self, PacketError> {
        if payload.len() != CHANNEL_INFO_LEN {
            return Err(PacketError::ChannelInfo(payload.len()));
        }
        let mut reader = Reader::new(payload);
        Ok(Self {
            reliable_port: reader.u32()?,
            partial_port: reader.u32()?,
            window: reader.u32()?,
            percent: reader.u32()?,
            your_reliable_port: reader.u32()?,
            your_partial_port: reader.u32()?,
            id: reader.u32()?,
        })
    }

    /// The payload of an INIT.
    pub fn bytes(&self) -> [u8; CHANNEL_INFO_LEN] {
        let words = [
            self.reliable_port,
            self.partial_port,
            self.window,
            self.percent,
            self.your_reliable_port,
            self.your_partial_port,
            self.id,
        ];
        let mut bytes = [0; CHANNEL_INFO_LEN];
        for (target, word) in bytes.chunks_exact_mut(4).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Bytes before the payload.
pub const HEADER_LEN: usize = 11;
/// Largest payload that may be sent: the original reads 1,000 bytes of a datagram and loses the rest.
pub const PAYLOAD_MAX: usize = 989;
/// Largest payload that is read: the original lets its application send this much.
pub const PAYLOAD_READ_MAX: usize = 1_500;
/// Length of a [`ChannelInfo`].
pub const CHANNEL_INFO_LEN: usize = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_looked_at_in_order() {
        assert_eq!(Flags(0xFF).meaning(), Meaning::Init);
        assert_eq!(Flags(0xFD).meaning(), Meaning::End);
        assert_eq!(Flags(0xF9).meaning(), Meaning::Ping);
        assert_eq!(Flags(0xF1).meaning(), Meaning::Ack);
        assert_eq!(Flags(0xF0).meaning(), Meaning::Data);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(Packet::parse(&[0; 10]), Err(PacketError::TooShort));
        assert!(Packet::parse(&[0; HEADER_LEN + PAYLOAD_READ_MAX]).is_ok());
        assert_eq!(
            Packet::parse(&[0; HEADER_LEN + PAYLOAD_READ_MAX + 1]),
            Err(PacketError::TooLong(PAYLOAD_READ_MAX + 1))
        );
        assert_eq!(
            ChannelInfo::parse(&[0; 27]),
            Err(PacketError::ChannelInfo(27))
        );
        assert!(ChannelInfo::parse(&[0; 29]).is_err());
    }
}
