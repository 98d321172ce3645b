//! The bytes of relay v1. All integers are little-endian.

use std::fmt;
use std::num::NonZeroU8;

use thiserror::Error;

/// A client's address: 1 to 255. Zero is never given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(NonZeroU8);

impl Address {
    /// The address of this number, unless it is zero.
    pub const fn new(number: u8) -> Option<Self> {
        match NonZeroU8::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Its number.
    pub const fn get(self) -> u8 {
        self.0.get()
    }

    pub(super) const fn index(self) -> usize {
        self.get() as usize
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The header before each packet of a TCP stream: `length:u16 | control:u8 | length:u16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Bytes of data behind the header.
    pub length: u16,
    /// High 4 bits: through, the application's. Low 4 bits: what the server does.
    pub control: u8,
}

impl StreamHeader {
    /// Reads a header.
    pub const fn parse(bytes: [u8; STREAM_HEADER]) -> Result<Self, LengthMismatch> {
        let [low, high, control, low_again, high_again] = bytes;
        if low != low_again || high != high_again {
            return Err(LengthMismatch);
        }
        Ok(Self {
            length: u16::from_le_bytes([low, high]),
            control,
        })
    }

    /// Writes the header.
    pub const fn emit(self) -> [u8; STREAM_HEADER] {
        let [low, high] = self.length.to_le_bytes();
        [low, high, self.control, low, high]
    }

    /// The low 4 bits of `control`.
    pub const fn affecting(self) -> u8 {
        self.control & AFFECTING
    }
}

/// The two lengths of a TCP header differ: the sender has lost count, and nothing behind can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the two lengths of a header differ")]
pub struct LengthMismatch;

/// The header of a UDP packet: `length:u16 | type:u8 | control:u8 | time:u32 | length:u16 | addr:u8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// The application's type, by which the server groups.
    pub kind: u8,
    /// High 4 bits: through. Low 4 bits: flags.
    pub control: u8,
    /// The sender's counter, or the server's tick.
    pub time: u32,
    /// The sender of a broadcast, the destination of a unicast.
    pub address: u8,
}

impl DatagramHeader {
    /// Reads a packet: its header and its data.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), DatagramError> {
        let Some((header, data)) = bytes.split_first_chunk::<DATAGRAM_HEADER>() else {
            return Err(DatagramError::Short);
        };
        if data.len() > DATAGRAM_DATA_MAX {
            return Err(DatagramError::Long);
        }
        let [l0, l1, kind, control, t0, t1, t2, t3, m0, m1, address] = *header;
        if (l0, l1) != (m0, m1) || usize::from(u16::from_le_bytes([l0, l1])) != data.len() {
            return Err(DatagramError::Length);
        }
        let time = u32::from_le_bytes([t0, t1, t2, t3]);
        let header = Self {
            kind,
            control,
            time,
            address,
        };
        Ok((header, data))
    }

    /// Writes the header of a packet with `length` bytes of data.
    pub const fn emit(self, length: u16) -> [u8; DATAGRAM_HEADER] {
        let [l0, l1] = length.to_le_bytes();
        let [t0, t1, t2, t3] = self.time.to_le_bytes();
        [
            l0,
            l1,
            self.kind,
            self.control,
            t0,
            t1,
            t2,
            t3,
            l0,
            l1,
            self.address,
        ]
    }

    /// True if a flag is set.
    pub const fn has(self, flag: u8) -> bool {
        self.control & flag != 0
    }
}

/// The reason for which a UDP packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// It is shorter than a header.
    #[error("shorter than a header")]
    Short,
    /// It is longer than 1,432 bytes.
    #[error("longer than any packet may be")]
    Long,
    /// Its lengths differ, or are not that of its data.
    #[error("the lengths do not fit the data")]
    Length,
}

/// Bytes of a TCP header.
pub const STREAM_HEADER: usize = 5;
/// Most data of a TCP packet.
pub const STREAM_DATA_MAX: usize = u16::MAX as usize;
/// Bytes of a UDP header.
pub const DATAGRAM_HEADER: usize = 11;
/// Most data of a UDP packet.
pub const DATAGRAM_DATA_MAX: usize = 1_421;
/// The longest UDP packet.
pub const DATAGRAM_MAX: usize = DATAGRAM_HEADER + DATAGRAM_DATA_MAX;
/// The offset of `time` in a UDP header.
pub(super) const TIME_OFFSET: usize = 4;

/// The bits of a TCP control byte that the server acts on.
pub const AFFECTING: u8 = 0x0F;
/// TCP: to every active client but the sender.
pub const BROADCAST: u8 = 0;
/// TCP: which addresses are active.
pub const LIST: u8 = 1;
/// TCP: to the client that the first byte of data names.
pub const UNICAST: u8 = 2;
/// TCP: whether a client is active.
pub const STATE: u8 = 3;
/// TCP: this client's UDP counter starts again.
pub const RESET: u8 = 4;

/// UDP flag: only the newest of a type leaves at the tick.
pub const GROUP: u8 = 1;
/// UDP flag: to one client.
pub const DATAGRAM_UNICAST: u8 = 2;
/// UDP flag: not to be passed on.
pub const DISCARD: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_protocol_are_read() {
        let hello = [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0xFF];
        let (header, data) = DatagramHeader::parse(&hello).expect("the example is valid");
        assert_eq!((header.address, header.time, data), (7, 0, &[0xFF][..]));
        let list = StreamHeader::parse([3, 0, 1, 3, 0]).expect("the example is valid");
        assert_eq!((list.length, list.affecting()), (3, LIST));
    }

    #[test]
    fn the_longest_datagram_is_1432_bytes() {
        let header = DatagramHeader {
            kind: 1,
            control: 0,
            time: u32::MAX,
            address: 255,
        };
        let mut packet = header.emit(1_421).to_vec();
        packet.resize(1_432, 9);
        assert_eq!(
            DatagramHeader::parse(&packet).map(|(header, _)| header),
            Ok(header)
        );
        packet = header.emit(1_422).to_vec();
        packet.resize(1_433, 9);
        assert_eq!(DatagramHeader::parse(&packet), Err(DatagramError::Long));
    }

    #[test]
    fn each_length_of_a_datagram_must_be_right() {
        let header = DatagramHeader {
            kind: 1,
            control: 0,
            time: 0,
            address: 1,
        };
        let good = [&header.emit(3)[..], &[1, 2, 3]].concat();
        assert!(DatagramHeader::parse(&good).is_ok());
        for at in [0, 1, 8, 9] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(DatagramHeader::parse(&bad), Err(DatagramError::Length));
        }
        let both = [&header.emit(2)[..], &[1, 2, 3]].concat();
        assert_eq!(DatagramHeader::parse(&both), Err(DatagramError::Length));
        for len in 0..DATAGRAM_HEADER {
            assert_eq!(
                DatagramHeader::parse(&good[..len]),
                Err(DatagramError::Short)
            );
        }
    }
}
