//! What happened, as a C structure.

use muse::transport::token::TokenError;
use muse::transport::{CloseReason, Event, Outcome, Refusal};

/// What happened.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseEventKind {
    /// A connection is there. `account` is who, by connect token; `payload` the token's user data; `extra` what the client said
    /// when it connected.
    Connected = 1,
    /// The server did not let us in: `reason` is a MuseRefusal, `payload` its words.
    Refused = 2,
    /// Our attempt to connect got no answer in time.
    Unanswered = 3,
    /// A message: `channel` and `payload`.
    Message = 4,
    /// What became of a message sent with a receipt: `channel`, `message`, and a MuseOutcome as `reason`.
    Receipt = 5,
    /// Nothing has been heard for a while; the connection is kept and may come back.
    Interrupted = 6,
    /// An interrupted connection is back; nothing reliable was lost.
    Resumed = 7,
    /// The peer is reached at another address now: `payload` has it as text.
    AddressChanged = 8,
    /// The connection is over: `reason` is a MuseCloseReason, `code` and `payload` are what the peer said.
    Closed = 9,
    /// Something that this version of the header does not know.
    Other = 255,
}

/// Why a connection ended.
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
    /// The holder of its token connected anew.
    Replaced = 5,
}

/// Why a server did not let us in.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseRefusal {
    /// For a reason that this version of the header does not know.
    Other = 0,
    /// The server does not speak our version of the protocol.
    Version = 1,
    /// Channels or messages are not the same on both sides.
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

/// What became of a message.
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
    /// Why: a MuseRefusal, MuseCloseReason or MuseOutcome.
    pub reason: u8,
    /// 0.
    pub reserved: u8,
    /// The peer's number for why it closed.
    pub code: u32,
    /// Which connection of the endpoint.
    pub connection: u64,
    /// Who connected, by token; 0 without one.
    pub account: u64,
    /// Number of the message that a receipt is for.
    pub message: u64,
    /// Bytes that belong to the event.
    pub payload: *const u8,
    /// How many they are.
    pub payload_len: usize,
    /// What a client said when it connected.
    pub extra: *const u8,
    /// How many bytes that is.
    pub extra_len: usize,
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
        }
    }

    fn payload(mut self, payload: &[u8]) -> Self {
        (self.payload, self.payload_len) = (payload.as_ptr(), payload.len());
        self
    }

    fn reason(mut self, reason: u8) -> Self {
        self.reason = reason;
        self
    }

    /// The same event for C. Slices point to where `event` has them; words are put into `words`.
    pub(crate) fn of(event: &Event<'_>, words: &mut String) -> Self {
        use MuseEventKind as Kind;
        match event {
            Event::Connected {
                connection,
                account,
                user_data,
                hello,
            } => {
                let mut event = Self::new(Kind::Connected, connection.to_bits()).payload(user_data);
                event.account = *account;
                (event.extra, event.extra_len) = (hello.as_ptr(), hello.len());
                event
            }
            Event::Refused { connection, reason } => {
                *words = reason.to_string();
                Self::new(Kind::Refused, connection.to_bits())
                    .reason(refusal(reason) as u8)
                    .payload(words.as_bytes())
            }
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
            } => {
                *words = address.to_string();
                Self::new(Kind::AddressChanged, connection.to_bits()).payload(words.as_bytes())
            }
            Event::Closed { connection, reason } => closed(connection.to_bits(), reason, words),
            _ => Self::new(Kind::Other, 0),
        }
    }
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
