//! The five packets of the handshake as bytes.
//!
//! All begin with kind and protocol id and end with a checksum. The checksum is no protection against anyone, it
//! only keeps a corrupted packet from being taken for a refusal or a wrong key.

use muse_wire::bytes::{EndOfBytes, Reader, Writer};

use super::cookie::COOKIE_LEN;
use super::inquiry::PAGE_LEN;
use super::session::{MESSAGE_OVERHEAD_MAX, Mode};
use super::{CLIENT_RANDOM_LEN, ClientRandom, DENIED_TEXT_LEN_MAX, PAYLOAD_LEN_MAX, Refusal};
use crate::crypto::{CHECKSUM_LEN, Checksum, NONCE_LEN};
use crate::token::{PUBLIC_LEN_MAX, TokenError};

/// A packet whose kind, protocol, checksum and structure are right.
pub(super) enum Packet<'a> {
    Hello {
        version: u16,
        random: ClientRandom,
    },
    Cookie {
        random: ClientRandom,
        cookie: [u8; COOKIE_LEN],
    },
    Connect(Connect<'a>),
    Accept {
        random: ClientRandom,
        message: &'a [u8],
    },
    Refuse {
        random: ClientRandom,
        reason: Reason<'a>,
    },
    Wait {
        random: ClientRandom,
    },
    Describe(Describe),
    Description {
        random: ClientRandom,
        page: u16,
        count: u16,
        text: &'a [u8],
    },
}

/// A client asks for a page of the server's description.
#[derive(Clone, Copy)]
pub(super) struct Describe {
    pub(super) version: u16,
    pub(super) random: ClientRandom,
    pub(super) cookie: [u8; COOKIE_LEN],
    pub(super) page: u16,
}

/// A client's request to connect.
#[derive(Clone, Copy)]
pub(super) struct Connect<'a> {
    pub(super) version: u16,
    pub(super) random: ClientRandom,
    pub(super) cookie: [u8; COOKIE_LEN],
    pub(super) connection_id: u32,
    pub(super) suites: u8,
    pub(super) mode: u8,
    pub(super) schema_hash: u64,
    pub(super) token: &'a [u8],
    pub(super) message: &'a [u8],
}

/// A refusal as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason<'a> {
    Version { min: u16, max: u16 },
    Schema { server: u64 },
    Denied { code: u16, text: &'a str },
    Plain(u8),
}

/// The reason for which a datagram is not a packet of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ignored {
    /// Of another protocol.
    Protocol,
    /// Corrupted, cut short, or something else.
    Malformed,
}

impl From<EndOfBytes> for Ignored {
    fn from(_: EndOfBytes) -> Self {
        Self::Malformed
    }
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    pub(super) fn parse(protocol_id: u64, datagram: &'a [u8]) -> Result<Self, Ignored> {
        let mut reader = Reader::new(datagram);
        let kind = reader.u8()?;
        if !(KIND_HELLO..=KIND_DESCRIPTION).contains(&kind) {
            return Err(Ignored::Malformed);
        }
        if reader.u64()? != protocol_id {
            return Err(Ignored::Protocol);
        }
        let (body, checksum) = datagram
            .split_last_chunk::<CHECKSUM_LEN>()
            .ok_or(Ignored::Malformed)?;
        if checksum_of(protocol_id, body) != *checksum {
            return Err(Ignored::Malformed);
        }
        let mut reader = Reader::new(body.get(PREFIX_LEN..).ok_or(Ignored::Malformed)?);
        match kind {
            KIND_HELLO if datagram.len() >= HELLO_LEN => Ok(Self::Hello {
                version: reader.u16()?,
                random: reader.array()?,
            }),
            KIND_COOKIE => Ok(Self::Cookie {
                random: reader.array()?,
                cookie: reader.array()?,
            }),
            KIND_CONNECT if datagram.len() >= CONNECT_LEN_MIN => {
                Ok(Self::Connect(Connect::parse(reader)?))
            }
            KIND_ACCEPT => Ok(Self::Accept {
                random: reader.array()?,
                message: reader.rest(),
            }),
            KIND_REFUSE => Ok(Self::Refuse {
                random: reader.array()?,
                reason: Reason::parse(reader)?,
            }),
            KIND_WAIT => Ok(Self::Wait {
                random: reader.array()?,
            }),
            KIND_DESCRIBE if datagram.len() >= DESCRIBE_LEN => Ok(Self::Describe(Describe {
                version: reader.u16()?,
                random: reader.array()?,
                cookie: reader.array()?,
                page: reader.u16()?,
            })),
            KIND_DESCRIPTION => Ok(Self::Description {
                random: reader.array()?,
                page: reader.u16()?,
                count: reader.u16()?,
                text: reader.rest(),
            }),
            _ => Err(Ignored::Malformed),
        }
    }
}

impl<'a> Connect<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, EndOfBytes> {
        fn prefixed<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], EndOfBytes> {
            let len = usize::from(reader.u16()?);
            reader.slice(len)
        }
        Ok(Self {
            version: reader.u16()?,
            random: reader.array()?,
            cookie: reader.array()?,
            connection_id: reader.u32()?,
            suites: reader.u8()?,
            mode: reader.u8()?,
            schema_hash: reader.u64()?,
            token: prefixed(&mut reader)?,
            message: prefixed(&mut reader)?,
        })
    }

    /// Writes the packet with its padding.
    pub(super) fn emit(&self, protocol_id: u64, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = begin(KIND_CONNECT, protocol_id, buffer)?;
        writer.u16(self.version)?;
        writer.slice(&self.random)?;
        writer.slice(&self.cookie)?;
        self.emit_bound(&mut writer)?;
        writer.u16(self.message.len() as u16)?;
        writer.slice(self.message)?;
        finish(protocol_id, writer, CONNECT_LEN_MIN)
    }

    /// Returns what the handshake is bound to: everything in the packet before the message.
    pub(super) fn prologue(&self, protocol_id: u64) -> Prologue {
        let mut bytes = [0; PROLOGUE_LEN_MAX];
        let mut writer = Writer::new(&mut bytes);
        let written = writer
            .slice(PROLOGUE_LABEL)
            .and_then(|()| writer.u8(KIND_CONNECT))
            .and_then(|()| writer.u64(protocol_id))
            .and_then(|()| writer.u16(self.version))
            .and_then(|()| writer.slice(&self.random))
            .and_then(|()| writer.slice(&self.cookie))
            .and_then(|()| self.emit_bound(&mut writer));
        debug_assert!(written.is_ok() || self.token.len() > PUBLIC_LEN_MAX);
        let len = writer.len();
        Prologue { bytes, len }
    }

    fn emit_bound(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        writer.u32(self.connection_id)?;
        writer.u8(self.suites)?;
        writer.u8(self.mode)?;
        writer.u64(self.schema_hash)?;
        writer.u16(self.token.len() as u16)?;
        writer.slice(self.token)
    }

    /// The mode, if the token is there exactly when the mode allows one and no part is longer than its limit.
    pub(super) fn mode(&self) -> Option<Mode> {
        let mode = Mode::from_number(self.mode)?;
        let fits = self.token.len() <= PUBLIC_LEN_MAX
            && self.message.len() <= PAYLOAD_LEN_MAX + MESSAGE_OVERHEAD_MAX;
        let token_right = match mode {
            Mode::Pinned => self.token.is_empty(),
            Mode::Token => !self.token.is_empty(),
            Mode::DangerInsecure => true,
        };
        (fits && token_right).then_some(mode)
    }
}

/// Bytes that the Noise handshake is bound to.
pub(super) struct Prologue {
    bytes: [u8; PROLOGUE_LEN_MAX],
    len: usize,
}

impl std::ops::Deref for Prologue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> Reason<'a> {
    fn parse(mut reader: Reader<'a>) -> Result<Self, Ignored> {
        Ok(match reader.u8()? {
            REASON_VERSION => Self::Version {
                min: reader.u16()?,
                max: reader.u16()?,
            },
            REASON_SCHEMA => Self::Schema {
                server: reader.u64()?,
            },
            REASON_DENIED => {
                let code = reader.u16()?;
                let len = usize::from(reader.u8()?);
                let text = reader.slice(len)?;
                let text = std::str::from_utf8(text).map_err(|_| Ignored::Malformed)?;
                Self::Denied { code, text }
            }
            number => Self::Plain(number),
        })
    }

    /// Returns `refusal` as it travels.
    pub(super) fn of(refusal: &'a Refusal) -> Self {
        match refusal {
            Refusal::Version {
                server_min,
                server_max,
                ..
            } => Self::Version {
                min: *server_min,
                max: *server_max,
            },
            Refusal::Schema { server, .. } => Self::Schema { server: *server },
            Refusal::Denied { code, text } => Self::Denied {
                code: *code,
                text: cut(text),
            },
            Refusal::Token(TokenError::Full) => Self::Plain(REASON_TOKEN_INVALID),
            Refusal::Other(number) => Self::Plain(*number),
            plain => {
                let number = PLAIN.iter().find(|(_, refusal)| refusal == plain);
                Self::Plain(number.map_or(REASON_TOKEN_INVALID, |(number, _)| *number))
            }
        }
    }

    /// Returns its meaning to a client with this version and schema.
    pub(super) fn refusal(self, client_version: u16, client_schema: u64) -> Refusal {
        match self {
            Self::Version { min, max } => Refusal::Version {
                client: client_version,
                server_min: min,
                server_max: max,
            },
            Self::Schema { server } => Refusal::Schema {
                client: client_schema,
                server,
                differences: Vec::new(),
            },
            Self::Denied { code, text } => Refusal::Denied {
                code,
                text: text.to_owned(),
            },
            Self::Plain(number) => {
                let known = PLAIN.iter().find(|(known, _)| *known == number);
                known.map_or(Refusal::Other(number), |(_, refusal)| refusal.clone())
            }
        }
    }
}

/// Writes a Hello, padded so that no reply is longer.
pub(super) fn emit_hello(
    protocol_id: u64,
    version: u16,
    random: &ClientRandom,
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_HELLO, protocol_id, buffer)?;
    writer.u16(version)?;
    writer.slice(random)?;
    finish(protocol_id, writer, HELLO_LEN)
}

/// Writes a Cookie.
pub(super) fn emit_cookie(
    protocol_id: u64,
    random: &ClientRandom,
    cookie: &[u8; COOKIE_LEN],
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_COOKIE, protocol_id, buffer)?;
    writer.slice(random)?;
    writer.slice(cookie)?;
    finish(protocol_id, writer, 0)
}

/// Writes an Accept around the message that `message` puts into the rest of the buffer.
pub(super) fn emit_accept(
    protocol_id: u64,
    random: &ClientRandom,
    buffer: &mut [u8],
    message: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_ACCEPT, protocol_id, buffer)?;
    writer.slice(random)?;
    let len = message(writer.spare()).ok_or(EndOfBytes)?;
    writer.advance(len);
    finish(protocol_id, writer, 0)
}

/// Writes a Refuse.
pub(super) fn emit_refuse(
    protocol_id: u64,
    random: &ClientRandom,
    reason: Reason<'_>,
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_REFUSE, protocol_id, buffer)?;
    writer.slice(random)?;
    match reason {
        Reason::Version { min, max } => {
            writer.u8(REASON_VERSION)?;
            writer.u16(min)?;
            writer.u16(max)?;
        }
        Reason::Schema { server } => {
            writer.u8(REASON_SCHEMA)?;
            writer.u64(server)?;
        }
        Reason::Denied { code, text } => {
            writer.u8(REASON_DENIED)?;
            writer.u16(code)?;
            writer.u8(text.len() as u8)?;
            writer.slice(text.as_bytes())?;
        }
        Reason::Plain(number) => writer.u8(number)?,
    }
    finish(protocol_id, writer, 0)
}

/// Writes a Wait: the application has not decided yet.
pub(super) fn emit_wait(
    protocol_id: u64,
    random: &ClientRandom,
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_WAIT, protocol_id, buffer)?;
    writer.slice(random)?;
    finish(protocol_id, writer, 0)
}

/// Writes a Describe, padded so that no page is longer.
pub(super) fn emit_describe(
    protocol_id: u64,
    describe: &Describe,
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_DESCRIBE, protocol_id, buffer)?;
    writer.u16(describe.version)?;
    writer.slice(&describe.random)?;
    writer.slice(&describe.cookie)?;
    writer.u16(describe.page)?;
    finish(protocol_id, writer, DESCRIBE_LEN)
}

/// Writes a page of a description, of which there are `count`.
pub(super) fn emit_description(
    protocol_id: u64,
    random: &ClientRandom,
    page: u16,
    count: u16,
    text: &[u8],
    buffer: &mut [u8],
) -> Result<usize, EndOfBytes> {
    let mut writer = begin(KIND_DESCRIPTION, protocol_id, buffer)?;
    writer.slice(random)?;
    writer.u16(page)?;
    writer.u16(count)?;
    writer.slice(text)?;
    finish(protocol_id, writer, 0)
}

/// The client's random if the datagram looks like a Connect of this protocol; nothing else is checked.
pub(super) fn peek_connect(protocol_id: u64, datagram: &[u8]) -> Option<ClientRandom> {
    let mut reader = Reader::new(datagram);
    let connect = datagram.len() >= CONNECT_LEN_MIN && reader.u8() == Ok(KIND_CONNECT);
    let ours = connect && reader.u64() == Ok(protocol_id);
    reader.u16().ok()?;
    ours.then(|| reader.array().ok()).flatten()
}

/// The front of `text` that fits into a Refuse, cut between characters.
fn cut(text: &str) -> &str {
    let len = (0..=DENIED_TEXT_LEN_MAX.min(text.len()))
        .rev()
        .find(|len| text.is_char_boundary(*len));
    &text[..len.unwrap_or(0)]
}

fn begin(kind: u8, protocol_id: u64, buffer: &mut [u8]) -> Result<Writer<'_>, EndOfBytes> {
    let mut writer = Writer::new(buffer);
    writer.u8(kind)?;
    writer.u64(protocol_id)?;
    Ok(writer)
}

/// Pads with zeros to `len_min` with the checksum, and writes the checksum.
fn finish(protocol_id: u64, mut writer: Writer<'_>, len_min: usize) -> Result<usize, EndOfBytes> {
    while writer.len() + CHECKSUM_LEN < len_min {
        writer.u8(0)?;
    }
    let checksum = checksum_of(protocol_id, writer.written());
    writer.slice(&checksum)?;
    Ok(writer.len())
}

/// Makes the checksum of a changed packet right again, as an attacker would.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn repair(protocol_id: u64, packet: &mut [u8]) {
    if let Some((body, checksum)) = packet.split_last_chunk_mut() {
        *checksum = checksum_of(protocol_id, body);
    }
}

pub(super) fn checksum_of(protocol_id: u64, body: &[u8]) -> [u8; CHECKSUM_LEN] {
    Checksum::new(protocol_id).sum([0; NONCE_LEN], &[], body)
}

const KIND_HELLO: u8 = 1;
const KIND_COOKIE: u8 = 2;
const KIND_CONNECT: u8 = crate::steering::CONNECT_FIRST;
const KIND_ACCEPT: u8 = 4;
const KIND_REFUSE: u8 = 5;
const KIND_WAIT: u8 = 6;
const KIND_DESCRIBE: u8 = 7;
const KIND_DESCRIPTION: u8 = 8;

const REASON_VERSION: u8 = 1;
const REASON_SCHEMA: u8 = 2;
const REASON_TOKEN_INVALID: u8 = 5;
const REASON_DENIED: u8 = 10;
/// Refusals of which the number says everything.
static PLAIN: [(u8, Refusal); 12] = [
    (3, Refusal::Full),
    (4, Refusal::TokenRequired),
    (REASON_TOKEN_INVALID, Refusal::Token(TokenError::Invalid)),
    (6, Refusal::Token(TokenError::Expired)),
    (7, Refusal::Token(TokenError::Used)),
    (8, Refusal::Token(TokenError::WrongServer)),
    (9, Refusal::WrongKey),
    (11, Refusal::Busy),
    (12, Refusal::Insecure),
    (13, Refusal::Token(TokenError::OtherProtocol)),
    (14, Refusal::Token(TokenError::NotYetValid)),
    (15, Refusal::Token(TokenError::UnknownKey)),
];

/// Kind and protocol id.
const PREFIX_LEN: usize = 1 + 8;
/// A Hello is padded to this; a Cookie (53 bytes) and a refusal of the version (38) are shorter.
pub(super) const HELLO_LEN: usize = 64;
const COOKIE_OFFSET: usize = PREFIX_LEN + 2 + CLIENT_RANDOM_LEN;
/// Connection id, suites, mode, schema hash, token's length.
const BOUND_FIXED_LEN: usize = 4 + 1 + 1 + 8 + 2;
/// Offset of the token in a Connect that has one.
pub(crate) const CONNECT_TOKEN_OFFSET: usize = COOKIE_OFFSET + COOKIE_LEN + BOUND_FIXED_LEN;
/// A Connect is padded to this; no reply to it is longer.
pub(super) const CONNECT_LEN_MIN: usize = 384;
/// With the longest token and payload; fits every link.
pub(super) const CONNECT_LEN_MAX: usize = COOKIE_OFFSET
    + COOKIE_LEN
    + BOUND_FIXED_LEN
    + PUBLIC_LEN_MAX
    + 2
    + PAYLOAD_LEN_MAX
    + MESSAGE_OVERHEAD_MAX
    + CHECKSUM_LEN;
/// Connection id and suite, which precede the settings.
pub(super) const ACCEPT_FIXED_LEN: usize = 4 + 1;
/// With the longest settings.
pub(super) const ACCEPT_LEN_MAX: usize = PREFIX_LEN
    + CLIENT_RANDOM_LEN
    + MESSAGE_OVERHEAD_MAX
    + ACCEPT_FIXED_LEN
    + PAYLOAD_LEN_MAX
    + CHECKSUM_LEN;
/// A Describe is padded to this; no page with what goes around it is longer.
pub(super) const DESCRIBE_LEN: usize = 1_000;
/// The longest page with what goes around it.
pub(super) const DESCRIPTION_PACKET_LEN_MAX: usize =
    PREFIX_LEN + CLIENT_RANDOM_LEN + 2 + 2 + PAGE_LEN + CHECKSUM_LEN;
const PROLOGUE_LABEL: &[u8] = b"muse handshake";
const PROLOGUE_LEN_MAX: usize =
    PROLOGUE_LABEL.len() + COOKIE_OFFSET + COOKIE_LEN + BOUND_FIXED_LEN + PUBLIC_LEN_MAX;
const _: () = assert!(
    ACCEPT_LEN_MAX <= CONNECT_LEN_MIN,
    "no reply to a Connect is longer than it"
);
const _: () = assert!(
    PREFIX_LEN + CLIENT_RANDOM_LEN + 4 + DENIED_TEXT_LEN_MAX + CHECKSUM_LEN <= CONNECT_LEN_MIN
);
const _: () = assert!(
    DESCRIPTION_PACKET_LEN_MAX <= DESCRIBE_LEN && DESCRIBE_LEN <= CONNECT_LEN_MAX,
    "no page is longer than the question, which is no longer than other packets"
);
const _: () = assert!(CONNECT_LEN_MAX <= 1_200, "a Connect passes every path");
