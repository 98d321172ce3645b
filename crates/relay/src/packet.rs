//! The packets of relay v2 (`docs/relay-v2.md`): what hosts, guests and the relay say to each other, and what peers say directly.
//!
//! Every first byte lies between 0x40 and 0x5F, where neither data packets nor handshakes of the transport are, so that one socket
//! serves the relay and direct peers alike.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use muse_wire::bytes::{EndOfBytes, Reader, Writer};
use thiserror::Error;

use super::code::{RoomCode, RoomKey};
use super::cookie::Cookie;

/// Names one end of a way through the relay: 56 bits, of which 32 are random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LegId(u64);

/// The end of a leg that a [`LegId`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A host's way to the relay itself.
    Room,
    /// A guest's end of the way to the host.
    Guest,
    /// The host's end of the way to a guest.
    Host,
    /// Nothing that a relay gives out.
    Reserved,
}

impl LegId {
    /// From its number, of which the low 56 bits count.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & ID_MASK)
    }

    /// Its number.
    pub const fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn new(tag: u32, slot: usize, end: End) -> Self {
        let end = match end {
            End::Room => 0,
            End::Guest => 1,
            End::Host => 2,
            End::Reserved => 3,
        };
        Self(u64::from(tag) << 24 | (slot as u64 & SLOT_MASK) << 2 | end)
    }

    pub(super) const fn end(self) -> End {
        match self.0 & 3 {
            0 => End::Room,
            1 => End::Guest,
            2 => End::Host,
            _ => End::Reserved,
        }
    }

    pub(super) const fn slot(self) -> usize {
        (self.0 >> 2 & SLOT_MASK) as usize
    }

    pub(super) const fn tag(self) -> u32 {
        (self.0 >> 24) as u32
    }

    /// The address that stands for the far end of this way towards machines above a link. It lies in a block of IPv6 that the
    /// IETF reserves, where no host can be. Random bits come first, so that limits per prefix do not take
    /// all guests of a relay for one.
    pub fn virtual_address(self) -> SocketAddr {
        let mut octets = [0; 16];
        octets[0] = VIRTUAL_PREFIX;
        octets[1..8].copy_from_slice(&self.0.to_be_bytes()[1..]);
        SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)), VIRTUAL_PORT)
    }

    /// The id whose [`virtual_address`](Self::virtual_address) this is.
    pub fn from_virtual(address: SocketAddr) -> Option<Self> {
        let IpAddr::V6(ip) = address.ip() else {
            return None;
        };
        let octets = ip.octets();
        let is_virtual =
            octets[0] == VIRTUAL_PREFIX && octets[8..] == [0; 8] && address.port() == VIRTUAL_PORT;
        let (bits, _) = octets.split_first_chunk::<8>()?;
        is_virtual.then(|| Self::from_bits(u64::from_be_bytes(*bits)))
    }

    /// The eight bytes in front of a datagram that goes this way.
    #[inline]
    pub const fn data_header(self) -> [u8; DATA_HEADER_LEN] {
        (self.0 << 8 | KIND_DATA as u64).to_le_bytes()
    }

    /// The way that a datagram came, if it came through a relay.
    #[inline]
    pub fn of_data(datagram: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*datagram.first_chunk()?);
        (word & 0xFF == u64::from(KIND_DATA)).then_some(Self(word >> 8))
    }
}

/// The reason for which a relay refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no room with this code.
    #[error("there is no room with this code")]
    NoSuchRoom,
    /// The relay has no place for another room, or this address has too many.
    #[error("the relay has no place for another room, or this address has too many")]
    NoPlace,
    /// The room has no place for another guest.
    #[error("the room is full")]
    RoomFull,
    /// The relay is about to end.
    #[error("the relay is about to end")]
    Draining,
    /// The relay speaks another version.
    #[error("the relay speaks another version")]
    Version,
    /// The host of the room has banned this guest.
    #[error("the host of the room has banned this player")]
    Banned,
    /// The relay opens rooms for holders of a token of its master alone, and there was none or it is not good.
    #[error(
        "the relay opens rooms for holders of its master's tokens, and there was none or it is not good"
    )]
    NoToken,
    /// The code of the room is another host's: open one with another key.
    #[error("the code of the room is another host's")]
    Taken,
    /// Another host has succeeded to the room.
    #[error("another host has succeeded to the room")]
    Succeeded,
    /// A number that this version does not know.
    #[error("a reason that this version does not know ({0})")]
    Unknown(u8),
}

impl Refusal {
    const fn code(self) -> u8 {
        match self {
            Self::NoSuchRoom => 1,
            Self::NoPlace => 2,
            Self::RoomFull => 3,
            Self::Draining => 4,
            Self::Version => 5,
            Self::Banned => 6,
            Self::NoToken => 7,
            Self::Taken => 8,
            Self::Succeeded => 9,
            Self::Unknown(code) => code,
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::NoSuchRoom,
            2 => Self::NoPlace,
            3 => Self::RoomFull,
            4 => Self::Draining,
            5 => Self::Version,
            6 => Self::Banned,
            7 => Self::NoToken,
            8 => Self::Taken,
            9 => Self::Succeeded,
            code => Self::Unknown(code),
        }
    }
}

/// Up to [`CANDIDATES_MAX`] addresses under which somebody may be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Candidates {
    list: [SocketAddr; CANDIDATES_MAX],
    len: usize,
}

impl Candidates {
    /// None.
    pub const NONE: Self = Self {
        list: [NOWHERE; CANDIDATES_MAX],
        len: 0,
    };

    /// Adds one unless it is there already or there are too many.
    pub fn push(&mut self, address: SocketAddr) {
        if self.len < CANDIDATES_MAX && !self.as_slice().contains(&address) {
            self.list[self.len] = address;
            self.len += 1;
        }
    }

    /// All of them.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.list[..self.len]
    }

    /// Those of a local network alone: nobody can have strangers' addresses probed by claiming them.
    pub fn local_only(self) -> Self {
        let mut local = Self::NONE;
        let kept = self.as_slice().iter().filter(|address| is_local(address));
        kept.for_each(|address| local.push(*address));
        local
    }
}

impl std::fmt::Debug for Candidates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// A token that its holder shows to open a room ([`ConnectToken::show`](muse_transport::token::ConnectToken::show)), or none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShownToken {
    bytes: [u8; TOKEN_LEN_MAX],
    len: usize,
}

impl ShownToken {
    /// None.
    pub const NONE: Self = Self {
        bytes: [0; TOKEN_LEN_MAX],
        len: 0,
    };

    /// These bytes; `None` if there are more than [`TOKEN_LEN_MAX`].
    pub fn new(shown: &[u8]) -> Option<Self> {
        let mut token = Self::NONE;
        token.bytes.get_mut(..shown.len())?.copy_from_slice(shown);
        token.len = shown.len();
        Some(token)
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl std::fmt::Debug for ShownToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownToken({} bytes)", self.len)
    }
}

/// A part of a packet.
trait Field: Sized {
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes>;
}

/// Implements [`Field`] by what to read and what to write.
macro_rules! fields {
    ($($type:ty: |$reader:ident| $read:expr, |$value:ident, $writer:ident| $write:expr;)+) => {
        $(impl Field for $type {
            fn read($reader: &mut Reader<'_>) -> Option<Self> {
                $read
            }

            fn write(&self, $writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
                let $value = self;
                $write
            }
        })+
    };
}

fields! {
    // The version is the only plain number; the name of the protocol follows it.
    u8: |reader| reader.u8().ok().filter(|_| reader.array() == Ok(MAGIC)),
        |version, writer| writer.u8(*version).and_then(|()| writer.slice(&MAGIC));
    bool: |reader| Some(reader.u8().ok()? & 1 != 0), |flag, writer| writer.u8(u8::from(*flag));
    u32: |reader| reader.u32().ok(), |number, writer| writer.u32(*number);
    [u8; 8]: |reader| reader.array().ok(), |bytes, writer| writer.slice(bytes);
    [u8; 16]: |reader| reader.array().ok(), |bytes, writer| writer.slice(bytes);
    Cookie: |reader| reader.array().ok(), |bytes, writer| writer.slice(bytes);
    RoomKey: |reader| Some(Self::new(reader.array().ok()?)), |key, writer| writer.slice(key.bytes());
    RoomCode: |reader| Self::from_bits(reader.u64().ok()?), |code, writer| writer.u64(code.bits());
    Refusal: |reader| Some(Self::from_code(reader.u8().ok()?)), |reason, writer| writer.u8(reason.code());
    SocketAddr: |reader| read_address(reader).ok()?, |address, writer| write_address(writer, *address);
    ShownToken: |reader| {
        let len = usize::from(reader.u16().ok()?);
        Self::new(reader.slice(len).ok()?)
    }, |token, writer| {
        writer.u16(token.len as u16)?;
        writer.slice(token.as_slice())
    };
    LegId: |reader| {
        let mut bytes = [0; 8];
        bytes[..7].copy_from_slice(&reader.array::<7>().ok()?);
        Some(Self(u64::from_le_bytes(bytes)))
    }, |id, writer| writer.slice(&id.0.to_le_bytes()[..7]);
    Candidates: |reader| {
        let mut candidates = Self::NONE;
        for _ in 0..usize::from(reader.u8().ok()?).min(CANDIDATES_MAX) {
            if let Some(address) = read_address(reader).ok()? {
                candidates.push(address);
            }
        }
        Some(candidates)
    }, |candidates, writer| {
        writer.u8(candidates.len as u8)?;
        let mut addresses = candidates.as_slice().iter();
        addresses.try_for_each(|address| write_address(writer, *address))
    };
}

/// Declares the packets: each with its first byte, the length to which it is filled up, and its fields in the order in which they travel.
macro_rules! packets {
    ($($(#[$doc:meta])* $name:ident($kind:literal $(, $len:ident)?) {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })+) => {
        /// Everything but forwarded datagrams.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(clippy::large_enum_variant, reason = "a packet is made, written and gone; few ever wait")]
        pub enum Packet {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)+
        }

        impl Packet {
            /// Reads a packet. `None` when it is none, is shorter than its kind has to be, or is a forwarded datagram.
            pub fn parse(bytes: &[u8]) -> Option<Self> {
                let mut reader = Reader::new(bytes);
                match reader.u8().ok()? {
                    $($kind $(if bytes.len() >= $len)? => Some(Self::$name {
                        $($field: Field::read(&mut reader)?,)*
                    }),)+
                    _ => None,
                }
            }

            /// Writes the packet and returns the least length of its kind.
            fn write(&self, writer: &mut Writer<'_>) -> Result<usize, EndOfBytes> {
                match self {
                    $(Self::$name { $($field),* } => {
                        writer.u8($kind)?;
                        $($field.write(writer)?;)*
                        Ok(0 $(+ $len)?)
                    })+
                }
            }
        }
    };
}

packets! {
    /// To the relay: who am I, and how far is it?
    Hello(0x41, HELLO_LEN) {
        /// The speaker's version.
        version: u8,
        /// Names the question.
        random: [u8; 8],
    }
    /// The answer to a Hello: proof of the address, and what it is.
    Cookie(0x42) {
        /// Of the Hello.
        random: [u8; 8],
        /// To be shown in the next packet.
        cookie: Cookie,
        /// The address that the Hello came from.
        observed: SocketAddr,
    }
    /// To the relay: open a room, or take it over at this address.
    Open(0x43, REQUEST_LEN) {
        /// True if peers may be told our addresses, to find a direct way.
        direct: bool,
        /// Names the request.
        random: [u8; 8],
        /// From the relay.
        cookie: Cookie,
        /// Anyone who has it has the room.
        key: RoomKey,
        /// Our addresses in local networks.
        local: Candidates,
        /// The right to open a room, at a relay that demands one.
        token: ShownToken,
        /// The host's number: how many the room had before.
        term: u32,
    }
    /// The room is open.
    Opened(0x44) {
        /// Of the request.
        random: [u8; 8],
        /// The host's way to the relay.
        id: LegId,
        /// The host's public address.
        observed: SocketAddr,
    }
    /// To the relay: let me into the room.
    Join(0x45, REQUEST_LEN) {
        /// True if the host may be told our addresses.
        direct: bool,
        /// Names the request.
        random: [u8; 8],
        /// From the relay.
        cookie: Cookie,
        /// The room.
        code: RoomCode,
        /// Our addresses in local networks.
        local: Candidates,
    }
    /// The guest is in.
    Joined(0x46) {
        /// Of the request.
        random: [u8; 8],
        /// The guest's end of the way to the host.
        id: LegId,
        /// The guest's public address.
        observed: SocketAddr,
    }
    /// An Open or Join was refused.
    Refused(0x47) {
        /// Of the request.
        random: [u8; 8],
        /// The reason.
        reason: Refusal,
    }
    /// To the relay: I am still here, and where am I?
    Keep(0x48, KEEP_LEN) {
        /// The speaker's end.
        id: LegId,
    }
    /// The answer to a Keep or a Response.
    Kept(0x49) {
        /// Of the Keep.
        id: LegId,
        /// The address that it came from.
        observed: SocketAddr,
    }
    /// The relay knows no such id, or it is over.
    Gone(0x4A) {
        /// The id.
        id: LegId,
    }
    /// To an address that an id was used from for the first time: can you hear me?
    Challenge(0x4B) {
        /// The id.
        id: LegId,
        /// To be sent back.
        proof: Cookie,
    }
    /// The answer to a Challenge.
    Response(0x4C, KEEP_LEN) {
        /// Of the Challenge.
        id: LegId,
        /// Of the Challenge.
        proof: Cookie,
    }
    /// To the relay: it is over.
    Leave(0x4D) {
        /// A guest's end, or a host's room.
        id: LegId,
    }
    /// From the relay: the other side may be reached here.
    Introduce(0x4E) {
        /// The receiver's end.
        id: LegId,
        /// The token that both sides put into their probes.
        token: [u8; 8],
        /// The addresses to send them to.
        candidates: Candidates,
    }
    /// To the relay: introduce us again.
    Acquaint(0x4F) {
        /// The speaker's end.
        id: LegId,
    }
    /// To the relay: the direct way works.
    Works(0x50) {
        /// The speaker's end.
        id: LegId,
        /// Of the Introduce.
        token: [u8; 8],
    }
    /// From the relay: the direct way works, take it.
    Direct(0x51) {
        /// The receiver's end.
        id: LegId,
        /// Of the Introduce.
        token: [u8; 8],
    }
    /// From the relay: it ends soon.
    Draining(0x52) {
        /// The receiver's end.
        id: LegId,
    }
    /// From peer to peer.
    Probe(0x53) {
        /// Of the Introduce.
        token: [u8; 8],
        /// Names the probe.
        nonce: [u8; 8],
    }
    /// From peer to peer: a Probe arrived.
    Echo(0x54) {
        /// Of the Probe.
        token: [u8; 8],
        /// Of the Probe.
        nonce: [u8; 8],
    }
    /// To the relay: never let this guest into the room again.
    Ban(0x55, KEEP_LEN) {
        /// The room.
        id: LegId,
        /// Names the request.
        random: [u8; 8],
        /// The host's end of the way to the guest; any other id for none.
        guest: LegId,
        /// Addresses that the guest is known to have besides.
        addresses: Candidates,
    }
    /// The answer to a Ban.
    Banned(0x56) {
        /// The room.
        id: LegId,
        /// Of the Ban.
        random: [u8; 8],
    }
    /// To the relay: a Keep that names the host's heir. To the heir: the room is yours.
    Heir(0x5C, HEIR_LEN) {
        /// The room.
        id: LegId,
        /// The number of the host that speaks, or of the new one.
        term: u32,
        /// The lock that the heir's secret opens; zeros for nobody.
        lock: [u8; 16],
        /// The room's key, for the heir's eyes.
        sealed: [u8; 16],
    }
    /// To the relay: let me succeed the host; with another secret than the heir's, who is the host? From the relay: this host is.
    Succeed(0x5D, HEIR_LEN) {
        /// The guest's end; to a former host, its room.
        id: LegId,
        /// The number of the host to be succeeded; of the one that there is.
        term: u32,
        /// The heir's secret; the lock by which the host came, zeros for the first.
        secret: [u8; 16],
    }
}

impl Packet {
    /// Writes the packet and says how long it is.
    pub fn emit(&self, buffer: &mut [u8; PACKET_LEN_MAX]) -> usize {
        buffer.fill(0);
        let mut writer = Writer::new(buffer);
        let len_min = self
            .write(&mut writer)
            .expect("every packet fits into the buffer");
        // A question is never shorter than its answer.
        writer.len().max(len_min)
    }
}

/// True if a datagram is of relay v2, rather than of the transport.
#[inline]
pub fn is_relay_packet(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xE0 == 0x40)
}

/// True if an address belongs to a local network.
pub fn is_local(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

pub(super) fn read_address(reader: &mut Reader<'_>) -> Result<Option<SocketAddr>, EndOfBytes> {
    let (family, octets, port) = (reader.u8()?, reader.array::<16>()?, reader.u16()?);
    Ok(match family {
        4 => {
            let [a, b, c, d, ..] = octets;
            Some(SocketAddr::from((Ipv4Addr::new(a, b, c, d), port)))
        }
        6 => Some(SocketAddr::from((Ipv6Addr::from(octets), port))),
        _ => None,
    })
}

pub(super) fn write_address(
    writer: &mut Writer<'_>,
    address: SocketAddr,
) -> Result<(), EndOfBytes> {
    let mut octets = [0; 16];
    let family = match address.ip() {
        IpAddr::V4(ip) => {
            octets[..4].copy_from_slice(&ip.octets());
            4
        }
        IpAddr::V6(ip) => {
            octets = ip.octets();
            6
        }
    };
    writer.u8(family)?;
    writer.slice(&octets)?;
    writer.u16(address.port())
}

/// The version of the protocol that this module speaks.
pub const VERSION: u8 = 2;
/// Bytes in front of a forwarded datagram.
pub const DATA_HEADER_LEN: usize = 8;
/// Most addresses under which somebody may be reached.
pub const CANDIDATES_MAX: usize = 5;
/// Longest token that an Open carries: one that names one address and has no user data has at most 267 bytes.
pub const TOKEN_LEN_MAX: usize = 320;
/// Longest packet: an Open with a token.
pub const PACKET_LEN_MAX: usize = 480;
/// Length of an Heir and a Succeed, so that neither is shorter than what answers it.
const HEIR_LEN: usize = 48;
/// Length of a Hello; its answer has 48 bytes.
const HELLO_LEN: usize = 64;
/// Length of an Open or Join; an answer and an introduction have 35 and at most 112 bytes.
const REQUEST_LEN: usize = 192;
/// Length of a Keep or Response; the answer or a challenge have 27 and 28 bytes.
pub(super) const KEEP_LEN: usize = 32;
const MAGIC: [u8; 4] = *b"MUSE";
const ID_MASK: u64 = (1 << 56) - 1;
const SLOT_MASK: u64 = (1 << 22) - 1;
/// Most rooms, and most guests, that ids can tell apart.
pub(super) const SLOTS_MAX: usize = 1 << 22;
/// 0100::/8 is reserved by the IETF; nothing is routed there.
const VIRTUAL_PREFIX: u8 = 1;
const VIRTUAL_PORT: u16 = 1;
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

const KIND_DATA: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::super::cookie::COOKIE_LEN;
    use super::*;

    fn samples() -> Vec<Packet> {
        let (random, token, nonce) = ([1; 8], [2; 8], [3; 8]);
        let (cookie, id) = ([4; COOKIE_LEN], LegId::new(0xDEAD_BEEF, 77, End::Host));
        let observed = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let other = SocketAddr::from((Ipv6Addr::LOCALHOST, 5));
        let mut local = Candidates::NONE;
        for port in 0..10 {
            local.push(SocketAddr::from(([10, 0, 0, 1], port)));
        }
        let key = RoomKey::new([9; 16]);
        let (reason, proof) = (Refusal::RoomFull, cookie);
        vec![
            Packet::Hello {
                version: VERSION,
                random,
            },
            Packet::Cookie {
                random,
                cookie,
                observed,
            },
            Packet::Open {
                random,
                cookie,
                key,
                direct: true,
                local,
                token: ShownToken::new(&[7; TOKEN_LEN_MAX]).expect("no more than fits"),
                term: 0,
            },
            Packet::Opened {
                random,
                id,
                observed: other,
            },
            Packet::Join {
                random,
                cookie,
                code: key.code(),
                direct: false,
                local,
            },
            Packet::Joined {
                random,
                id,
                observed,
            },
            Packet::Refused { random, reason },
            Packet::Keep { id },
            Packet::Kept { id, observed },
            Packet::Gone { id },
            Packet::Challenge { id, proof },
            Packet::Response { id, proof },
            Packet::Leave { id },
            Packet::Introduce {
                id,
                token,
                candidates: local,
            },
            Packet::Acquaint { id },
            Packet::Works { id, token },
            Packet::Direct { id, token },
            Packet::Draining { id },
            Packet::Probe { token, nonce },
            Packet::Echo { token, nonce },
            Packet::Ban {
                id,
                random,
                guest: id,
                addresses: local,
            },
            Packet::Banned { id, random },
            Packet::Heir {
                id,
                term: 3,
                lock: [5; 16],
                sealed: [6; 16],
            },
            Packet::Succeed {
                id,
                term: 4,
                secret: [7; 16],
            },
        ]
    }

    #[test]
    fn every_packet_is_read_as_it_was_written_and_not_when_it_is_cut() {
        for packet in samples() {
            let mut buffer = [0; PACKET_LEN_MAX];
            let len = packet.emit(&mut buffer);
            assert_eq!(Packet::parse(&buffer[..len]), Some(packet));
            assert!(is_relay_packet(&buffer[..len]));
            for shorter in 0..len {
                assert_eq!(Packet::parse(&buffer[..shorter]), None, "{packet:?}");
            }
        }
    }

    #[test]
    fn no_answer_is_longer_than_its_question() {
        let len = |wanted: fn(&Packet) -> bool| {
            let packet = samples().into_iter().find(wanted).expect("a sample");
            packet.emit(&mut [0; PACKET_LEN_MAX])
        };
        let hello = len(|packet| matches!(packet, Packet::Hello { .. }));
        assert!(len(|packet| matches!(packet, Packet::Cookie { .. })) <= hello);
        let keep = len(|packet| matches!(packet, Packet::Keep { .. }));
        assert!(len(|packet| matches!(packet, Packet::Kept { .. })) <= keep);
        assert!(len(|packet| matches!(packet, Packet::Challenge { .. })) <= keep);
        assert!(len(|packet| matches!(packet, Packet::Gone { .. })) <= DATA_HEADER_LEN);
        let ban = len(|packet| matches!(packet, Packet::Ban { .. }));
        assert!(len(|packet| matches!(packet, Packet::Banned { .. })) <= ban);
        let join = len(|packet| matches!(packet, Packet::Join { .. }));
        let answer = len(|packet| matches!(packet, Packet::Joined { .. }));
        let introduction = len(|packet| matches!(packet, Packet::Introduce { .. }));
        assert!(answer + introduction <= join);
    }

    #[test]
    fn virtual_addresses_name_their_ids() {
        for end in [End::Room, End::Guest, End::Host, End::Reserved] {
            let id = LegId::new(0xDEAD_BEEF, 0x2A_AAAA, end);
            assert_eq!(
                (id.tag(), id.slot(), id.end()),
                (0xDEAD_BEEF, 0x2A_AAAA, end)
            );
            assert_eq!(LegId::from_virtual(id.virtual_address()), Some(id));
            assert_eq!(LegId::of_data(&id.data_header()), Some(id));
        }
        let real = SocketAddr::from(([192, 0, 2, 1], 1));
        assert_eq!(LegId::from_virtual(real), None);
        assert_eq!(LegId::of_data(&[0x41, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn only_local_addresses_may_be_claimed() {
        let mut claimed = Candidates::NONE;
        for address in ["192.168.1.2:5", "192.0.2.9:53", "10.1.1.1:6", "[fe80::1]:7"] {
            claimed.push(address.parse().expect("an address"));
        }
        let kept: Vec<String> = claimed
            .local_only()
            .as_slice()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(kept, ["192.168.1.2:5", "10.1.1.1:6", "[fe80::1]:7"]);
    }
}
