//! Events as a C structure.

use std::net::SocketAddr;

use muse::transport::token::TokenError;
use muse::transport::{CloseReason, Event, Outcome, Refusal};

/// The kind of an event.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseEventKind {
    /// A connection is made. `account` is who, by connect token; `payload` the token's user data; `extra` what the client said
    /// when it connected.
    Connected = 1,
    /// The server refused us: `reason` is a MuseRefusal, `payload` its words. With MUSE_REFUSAL_DENIED, `code` and `extra` are what the
    /// server's application said; with MUSE_REFUSAL_SCHEMA, `extra` has each difference on a line ("here" is the client).
    Refused = 2,
    /// Our attempt to connect got no answer in time.
    Unanswered = 3,
    /// A message: `channel` and `payload`.
    Message = 4,
    /// A message sent with a receipt was delivered, lost or dropped: `channel`, `message`, and a MuseOutcome as `reason`.
    Receipt = 5,
    /// Nothing has been heard for a while; the connection is kept and may come back.
    Interrupted = 6,
    /// An interrupted connection is back; nothing reliable was lost.
    Resumed = 7,
    /// The peer is reached at another address now: `address`.
    AddressChanged = 8,
    /// The connection is over: `reason` is a MuseCloseReason, `code` and `payload` are what the peer said.
    Closed = 9,
    /// A client asks to be let in, at a server made with `asks`: `account`, `payload`, `extra` as with MUSE_EVENT_KIND_CONNECTED, and its
    /// `address`. Decide with `muse_admit` or `muse_deny`, at once or later. After `muse_admit`, MUSE_EVENT_KIND_CONNECTED or
    /// MUSE_EVENT_KIND_CLOSED follows; a client that leaves before the decision is MUSE_EVENT_KIND_CLOSED.
    Asking = 10,
    /// Something that this version of the header does not know.
    Other = 255,
}

/// The reason for which a connection ended.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseCloseReason {
    /// For a reason that this version of the header does not know.
    Other = 0,
    /// The peer closed it.
    ByPeer = 1,
    /// We closed it.
    ByUs = 2,
    /// Nothing was heard for too long.
    Lost = 3,
    /// The peer broke the protocol.
    Protocol = 4,
    /// The holder of its token connected again.
    Replaced = 5,
    /// Nobody decided in time about a client that asked; it was refused as by a busy server.
    Undecided = 6,
    /// One side acknowledged a packet that the other never sent.
    FalseAck = 7,
}

/// The reason for which a server refused a client.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseRefusal {
    /// For a reason that this version of the header does not know.
    Other = 0,
    /// The server does not speak our version of the protocol.
    Version = 1,
    /// Channels, or the lines in `shared`, are not the same on both sides.
    Schema = 2,
    /// The server is full.
    Full = 3,
    /// The server wants a connect token.
    TokenRequired = 4,
    /// The token is not valid.
    TokenInvalid = 5,
    /// The token has expired.
    TokenExpired = 6,
    /// The token has been used.
    TokenUsed = 7,
    /// The token is for another server.
    TokenWrongServer = 8,
    /// The server does not have the key that we expect.
    WrongKey = 9,
    /// The application on the server said no.
    Denied = 10,
    /// The server has too much to do now.
    Busy = 11,
    /// The server takes no unprotected connections.
    Insecure = 12,
}

/// The fate of a message.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseOutcome {
    /// The peer has it.
    Delivered = 1,
    /// It was lost and is not sent again.
    Lost = 2,
    /// Its deadline passed, or a newer message made it needless.
    Expired = 3,
}

/// One event. Which fields mean something depends on `kind`; the others are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MuseEvent {
    /// A MuseEventKind.
    pub kind: u8,
    /// The channel of a message or receipt.
    pub channel: u8,
    /// The reason: a MuseRefusal, MuseCloseReason or MuseOutcome.
    pub reason: u8,
    /// 0.
    pub reserved: u8,
    /// The peer's number for why it closed or denied a connection.
    pub code: u32,
    /// The connection of the endpoint.
    pub connection: u64,
    /// The account of a connect token; 0 without one.
    pub account: u64,
    /// Number of the message that a receipt is for.
    pub message: u64,
    /// Bytes that belong to the event.
    pub payload: *const u8,
    /// Number of bytes at `payload`.
    pub payload_len: usize,
    /// Further bytes: what a client said when it connected, or the details of a refusal.
    pub extra: *const u8,
    /// Number of bytes at `extra`.
    pub extra_len: usize,
    /// The peer's address as text, "203.0.113.5:7000".
    pub address: *const u8,
    /// Number of bytes at `address`.
    pub address_len: usize,
}

impl MuseEvent {
    fn new(kind: MuseEventKind, connection: u64) -> Self {
        Self {
            kind: kind as u8,
            channel: 0,
            reason: 0,
            reserved: 0,
            code: 0,
            connection,
            account: 0,
            message: 0,
            payload: std::ptr::null(),
            payload_len: 0,
            extra: std::ptr::null(),
            extra_len: 0,
            address: std::ptr::null(),
            address_len: 0,
        }
    }

    fn payload(mut self, payload: &[u8]) -> Self {
        (self.payload, self.payload_len) = (payload.as_ptr(), payload.len());
        self
    }

    fn extra(mut self, extra: &[u8]) -> Self {
        (self.extra, self.extra_len) = (extra.as_ptr(), extra.len());
        self
    }

    fn address(mut self, address: SocketAddr, words: &mut String) -> Self {
        *words = address.to_string();
        (self.address, self.address_len) = (words.as_ptr(), words.len());
        self
    }

    fn reason(mut self, reason: u8) -> Self {
        self.reason = reason;
        self
    }

    /// Returns the same event for C. Slices point to where `event` has them; words are put into `words`.
    pub(crate) fn of(event: &Event<'_>, words: &mut String) -> Self {
        use MuseEventKind as Kind;
        match event {
            Event::Connected {
                connection,
                account,
                user_data,
                hello,
            } => {
                let mut event = Self::new(Kind::Connected, connection.to_bits());
                event.account = *account;
                event.payload(user_data).extra(hello)
            }
            Event::Asking {
                connection,
                account,
                user_data,
                hello,
                address,
            } => {
                let mut event = Self::new(Kind::Asking, connection.to_bits());
                event.account = *account;
                event
                    .payload(user_data)
                    .extra(hello)
                    .address(*address, words)
            }
            Event::Refused { connection, reason } => refused(connection.to_bits(), reason, words),
            Event::Unanswered { connection } => Self::new(Kind::Unanswered, connection.to_bits()),
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                let mut event = Self::new(Kind::Message, connection.to_bits()).payload(payload);
                event.channel = *channel;
                event
            }
            Event::Receipt {
                connection,
                receipt,
            } => {
                let mut event = Self::new(Kind::Receipt, connection.to_bits());
                event.channel = receipt.id.channel;
                event.message = receipt.id.number;
                event.reason(outcome(receipt.outcome) as u8)
            }
            Event::Interrupted { connection } => Self::new(Kind::Interrupted, connection.to_bits()),
            Event::Resumed { connection } => Self::new(Kind::Resumed, connection.to_bits()),
            Event::AddressChanged {
                connection,
                address,
            } => Self::new(Kind::AddressChanged, connection.to_bits()).address(*address, words),
            Event::Closed { connection, reason } => closed(connection.to_bits(), reason, words),
            _ => Self::new(Kind::Other, 0),
        }
    }
}

fn refused(connection: u64, reason: &Refusal, words: &mut String) -> MuseEvent {
    *words = reason.to_string();
    let (told, mut code) = (words.len(), 0);
    match reason {
        Refusal::Denied { code: number, text } => {
            words.push_str(text);
            code = u32::from(*number);
        }
        Refusal::Schema { differences, .. } => {
            let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
            words.push_str(&lines.join("\n"));
        }
        _ => {}
    }
    let (payload, extra) = words.as_bytes().split_at(told);
    let event = MuseEvent::new(MuseEventKind::Refused, connection).reason(refusal(reason) as u8);
    MuseEvent { code, ..event }.payload(payload).extra(extra)
}

fn closed(connection: u64, reason: &CloseReason, words: &mut String) -> MuseEvent {
    words.clear();
    let mut code = 0;
    let reason = match reason {
        CloseReason::ByPeer {
            code: number,
            text: said,
        } => {
            words.push_str(said);
            code = u32::from(*number);
            MuseCloseReason::ByPeer
        }
        CloseReason::ByUs => MuseCloseReason::ByUs,
        CloseReason::Lost => MuseCloseReason::Lost,
        CloseReason::Protocol => MuseCloseReason::Protocol,
        CloseReason::Replaced => MuseCloseReason::Replaced,
        CloseReason::Undecided => MuseCloseReason::Undecided,
        CloseReason::FalseAck => MuseCloseReason::FalseAck,
        _ => MuseCloseReason::Other,
    };
    let event = MuseEvent::new(MuseEventKind::Closed, connection).reason(reason as u8);
    MuseEvent { code, ..event }.payload(words.as_bytes())
}

fn refusal(reason: &Refusal) -> MuseRefusal {
    match reason {
        Refusal::Version { .. } => MuseRefusal::Version,
        Refusal::Schema { .. } => MuseRefusal::Schema,
        Refusal::Full => MuseRefusal::Full,
        Refusal::TokenRequired => MuseRefusal::TokenRequired,
        Refusal::Token(TokenError::Expired) => MuseRefusal::TokenExpired,
        Refusal::Token(TokenError::Used) => MuseRefusal::TokenUsed,
        Refusal::Token(TokenError::WrongServer) => MuseRefusal::TokenWrongServer,
        // The text names the cause.
        Refusal::Token(_) => MuseRefusal::TokenInvalid,
        Refusal::WrongKey => MuseRefusal::WrongKey,
        Refusal::Denied { .. } => MuseRefusal::Denied,
        Refusal::Busy => MuseRefusal::Busy,
        Refusal::Insecure => MuseRefusal::Insecure,
        _ => MuseRefusal::Other,
    }
}

fn outcome(outcome: Outcome) -> MuseOutcome {
    match outcome {
        Outcome::Delivered => MuseOutcome::Delivered,
        Outcome::Lost => MuseOutcome::Lost,
        Outcome::Expired => MuseOutcome::Expired,
    }
}
