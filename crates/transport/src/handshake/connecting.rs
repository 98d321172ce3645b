//! The client's side: asks until it is admitted, refused, or out of time.

use std::fmt;
use std::sync::Arc;

use muse_wire::bytes::Reader;
use muse_wire::{Duration, Instant, log};
use thiserror::Error;

use super::cookie::COOKIE_LEN;
use super::inquiry::{Inquiry, differences};
use super::packet::{self, ACCEPT_FIXED_LEN, CONNECT_LEN_MAX, Connect, Describe, Packet, Reason};
use super::session::{MESSAGE_OVERHEAD_MAX, Mode, Session};
use super::{ClientRandom, DECISION_TIMEOUT_MAX, PAYLOAD_LEN_MAX, Refusal, VERSION};
use crate::crypto::{Entropy, Keys, Ratchet, ServerPublicKey, Suite};
use crate::token::ConnectToken;

/// The grounds on which a client trusts the server, and the server the client.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// The server is known by its key; the client by nothing.
    Pinned(ServerPublicKey),
    /// The server is known by its key, which is told later.
    Follows,
    /// Both by a token.
    Token(Box<ConnectToken>),
    /// The link protects the connection, or nothing does; a token still says who the client is.
    DangerInsecure(Option<Box<ConnectToken>>),
}

impl Trust {
    /// The mode, the server's key and the token; the key means nothing in the insecure mode. `None` before there is a key.
    fn parts(&self) -> Option<(Mode, ServerPublicKey, Option<&ConnectToken>)> {
        Some(match self {
            Self::Follows => return None,
            Self::Pinned(key) => (Mode::Pinned, *key, None),
            Self::Token(token) => (Mode::Token, token.server_key(), Some(token)),
            Self::DangerInsecure(token) => (
                Mode::DangerInsecure,
                ServerPublicKey::from_bytes([0; 32]),
                token.as_deref(),
            ),
        })
    }
}

/// The configuration of a [`Connecting`].
#[derive(Clone, Debug)]
pub(crate) struct ConnectingConfig {
    /// The same as the server's.
    pub(crate) protocol_id: u64,
    /// The same as the server's.
    pub(crate) schema_hash: u64,
    /// The text that this is the hash of, to find out what differs.
    pub(crate) description: Arc<str>,
    /// The id that this side wants to receive in the headers of packets.
    pub(crate) connection_id: u32,
    /// The means by which the sides know each other: a pinned key, or a token.
    pub(crate) trust: Trust,
    /// For the server's application, at most 256 bytes; encrypted, but not safe from being repeated.
    pub(crate) payload: Vec<u8>,
    /// The secure suites to offer, as a sum of their numbers.
    pub(crate) suites: u8,
    /// The time after which to give up.
    pub(crate) timeout: Duration,
}

impl ConnectingConfig {
    /// Gives up after ten seconds, offers what this machine is good at, and says nothing to the application.
    pub(crate) fn new(
        protocol_id: u64,
        schema_hash: u64,
        connection_id: u32,
        trust: Trust,
    ) -> Self {
        Self {
            protocol_id,
            schema_hash,
            description: Arc::from(""),
            connection_id,
            trust,
            payload: Vec::new(),
            suites: Suite::offer(),
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// The server's key is known now; true if it was to follow.
    pub(crate) fn pin(&mut self, key: ServerPublicKey) -> bool {
        let follows = matches!(self.trust, Trust::Follows);
        if follows {
            self.trust = Trust::Pinned(key);
        }
        follows
    }

    /// The suites to offer in this mode.
    fn offer(&self) -> u8 {
        match self.trust {
            Trust::DangerInsecure(_) => Suite::Null.bit(),
            Trust::Pinned(_) | Trust::Follows | Trust::Token(_) => self.suites,
        }
    }
}

/// An attempt to connect.
///
/// Call [`poll_transmit`](Self::poll_transmit) until it returns `None`, give what arrives to [`handle`](Self::handle), and call
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has come.
pub(crate) struct Connecting {
    config: ConnectingConfig,
    version: u16,
    random: ClientRandom,
    entropy: Ratchet,
    /// The exchanges begun with the cookies that came, the newest last: the server answers one of them.
    sessions: Vec<Session>,
    /// The Connect with the newest cookie.
    pub(super) connect: Vec<u8>,
    cookie: [u8; COOKIE_LEN],
    /// Time at which that cookie came.
    pub(super) cookie_at: Option<Instant>,
    /// The server has another description, and is being asked for it.
    inquiry: Option<Inquiry>,
    next_send: Instant,
    delay: Duration,
    deadline: Instant,
    /// The deadline does not move beyond this, however long the server asks to wait.
    deadline_max: Instant,
    pub(super) finished: bool,
}

/// The progress of an attempt.
pub(crate) enum Progress {
    /// Nothing decided.
    Continue,
    /// The server's application has been asked and has not decided yet.
    Waiting,
    /// Let in.
    Established(Box<Established>),
    /// Not admitted.
    Refused(Refusal),
    /// No answer within the time.
    TimedOut,
}

/// The result of a successful attempt.
pub(crate) struct Established {
    /// The packet keys.
    pub(crate) keys: Keys,
    /// The connection id that the server wants to receive in the headers of packets.
    pub(crate) remote_connection_id: u32,
    /// The settings of the server's endpoint.
    pub(crate) settings: Vec<u8>,
}

/// The attempt cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum ConnectError {
    /// The payload does not fit.
    #[error("the payload is longer than {PAYLOAD_LEN_MAX} bytes")]
    Payload,
}

impl Connecting {
    /// Begins now.
    pub(crate) fn new(
        config: &ConnectingConfig,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ConnectError> {
        Self::with_version(config, VERSION, now, entropy)
    }

    /// Begins with another version than ours, to see how a server takes it.
    pub(super) fn with_version(
        config: &ConnectingConfig,
        version: u16,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ConnectError> {
        if config.payload.len() > PAYLOAD_LEN_MAX {
            return Err(ConnectError::Payload);
        }
        let mut random = [0; 16];
        entropy.fill(&mut random);
        Ok(Self {
            config: config.clone(),
            version,
            random,
            entropy: Ratchet::new(entropy),
            sessions: Vec::new(),
            connect: Vec::new(),
            cookie: [0; COOKIE_LEN],
            cookie_at: None,
            inquiry: None,
            next_send: now,
            delay: DELAY_FIRST,
            deadline: now + config.timeout,
            deadline_max: now + config.timeout + DECISION_TIMEOUT_MAX,
            finished: false,
        })
    }

    /// The name of this attempt.
    pub(crate) fn client_random(&self) -> ClientRandom {
        self.random
    }

    /// True if the server has answered at all.
    pub(crate) fn is_answered(&self) -> bool {
        self.cookie_at.is_some()
    }

    /// Writes the packet that is due, if one is and `buffer` has room for it.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if let Some(inquiry) = &mut self.inquiry {
            let describe = Describe {
                version: self.version,
                random: self.random,
                cookie: self.cookie,
                page: inquiry.poll_page()?,
            };
            return packet::emit_describe(self.config.protocol_id, &describe, buffer).ok();
        }
        if self.finished || now < self.next_send || now >= self.deadline {
            return None;
        }
        let len = if self.cookie_at.is_some() {
            buffer
                .get_mut(..self.connect.len())?
                .copy_from_slice(&self.connect);
            self.connect.len()
        } else {
            packet::emit_hello(self.config.protocol_id, self.version, &self.random, buffer).ok()?
        };
        self.next_send = now + self.delay;
        // A server that is overloaded must not be asked ever faster.
        self.delay = (self.delay * 3 / 2).min(DELAY_MAX);
        Some(len)
    }

    /// Returns the time to call [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if let Some(inquiry) = &self.inquiry {
            return Some(inquiry.poll_timeout());
        }
        (!self.finished).then_some(self.next_send.min(self.deadline))
    }

    /// Time has passed: gives up when it is up.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Progress {
        if let Some(inquiry) = &mut self.inquiry {
            return match inquiry.handle_timeout(now) {
                true => Progress::Continue,
                false => self.mismatch(""),
            };
        }
        if self.finished || now < self.deadline {
            return Progress::Continue;
        }
        self.finished = true;
        Progress::TimedOut
    }

    /// A packet arrived from the server's address. What is not an answer to this attempt changes nothing.
    pub(crate) fn handle(&mut self, now: Instant, datagram: &[u8]) -> Progress {
        if let Some(inquiry) = &mut self.inquiry {
            if let Ok(Packet::Description {
                random,
                page,
                count,
                text,
            }) = Packet::parse(self.config.protocol_id, datagram)
                && random == self.random
                && let Some(server) = inquiry.handle_page(now, page, count, text)
            {
                return self.mismatch(&server);
            }
            return Progress::Continue;
        }
        if self.finished {
            return Progress::Continue;
        }
        match Packet::parse(self.config.protocol_id, datagram) {
            Ok(Packet::Cookie { random, cookie }) if random == self.random => {
                self.handle_cookie(now, &cookie);
                Progress::Continue
            }
            Ok(Packet::Accept { random, message })
                if random == self.random && self.cookie_at.is_some() =>
            {
                self.handle_accept(message)
            }
            Ok(Packet::Refuse { random, reason }) if random == self.random => {
                self.finished = true;
                if let Reason::Schema { server } = reason
                    && self.cookie_at.is_some()
                    && !self.config.description.is_empty()
                {
                    log!(debug, "refused: asking the server what differs");
                    self.inquiry = Some(Inquiry::new(now, server));
                    return Progress::Continue;
                }
                Progress::Refused(reason.refusal(self.version, self.config.schema_hash))
            }
            Ok(Packet::Wait { random }) if random == self.random && self.cookie_at.is_some() => {
                // The server is there and the application thinks about it: time to give up starts over.
                log!(debug, "the server's application has not decided yet");
                self.deadline = (now + self.config.timeout).min(self.deadline_max);
                Progress::Waiting
            }
            _ => Progress::Continue,
        }
    }

    /// The server's description is known, or will not be: the attempt is over.
    fn mismatch(&mut self, server: &str) -> Progress {
        let Some(inquiry) = self.inquiry.take() else {
            return Progress::Continue;
        };
        Progress::Refused(Refusal::Schema {
            client: self.config.schema_hash,
            server: inquiry.hash(),
            differences: differences(&self.config.description, server),
        })
    }

    fn handle_cookie(&mut self, now: Instant, cookie: &[u8; COOKIE_LEN]) {
        // A young cookie is kept: another one is a duplicate of the answer, and answering each would feed a storm.
        if self.cookie_at.is_some_and(|at| now < at + COOKIE_KEPT) {
            return;
        }
        let Some(()) = self.begin_exchange(*cookie) else {
            return;
        };
        log!(debug, "the server answered with a cookie");
        self.cookie = *cookie;
        self.cookie_at = Some(now);
        self.next_send = now;
        self.delay = DELAY_FIRST;
    }

    /// The server's key is known now, for one that was to follow.
    pub(crate) fn pin(&mut self, key: ServerPublicKey) {
        self.config.pin(key);
    }

    /// The exchange is bound to the cookie, or a recorded Connect could be sent again with a fresh one. `None` before the server's key is known.
    fn begin_exchange(&mut self, cookie: [u8; COOKIE_LEN]) -> Option<()> {
        let (mode, server_key, token) = self.config.trust.parts()?;
        let mut connect = Connect {
            version: self.version,
            random: self.random,
            cookie,
            connection_id: self.config.connection_id,
            suites: self.config.offer(),
            mode: mode.number(),
            schema_hash: self.config.schema_hash,
            token: token.map_or(&[], ConnectToken::public),
            message: &[],
        };
        let prologue = connect.prologue(self.config.protocol_id);
        let secret = token.map(ConnectToken::secret);
        let mut session =
            Session::initiator(mode, &server_key, secret, &prologue, &mut self.entropy);
        let mut message = [0; PAYLOAD_LEN_MAX + MESSAGE_OVERHEAD_MAX];
        let written = session.write(&self.config.payload, &mut message);
        connect.message = &message[..written.expect("the buffer fits the longest payload")];
        self.connect.resize(CONNECT_LEN_MAX, 0);
        let len = connect.emit(self.config.protocol_id, &mut self.connect);
        self.connect
            .truncate(len.expect("the buffer fits the longest Connect"));
        // Several are kept, since the server may answer a Connect with an earlier cookie; not all, as anyone may send
        // cookies.
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.remove(0);
        }
        self.sessions.push(session);
        Some(())
    }

    fn handle_accept(&mut self, message: &[u8]) -> Progress {
        let mut payload = [0; ACCEPT_FIXED_LEN + PAYLOAD_LEN_MAX + MESSAGE_OVERHEAD_MAX];
        for session in self.sessions.iter_mut().rev() {
            let Some(len) = session.read(message, &mut payload) else {
                continue;
            };
            let mut reader = Reader::new(&payload[..len]);
            let (Ok(remote_connection_id), Ok(suite)) = (reader.u32(), reader.u8()) else {
                break;
            };
            // Only what was offered: nobody may talk us into less.
            let offered = Suite::from_bit(suite & self.config.offer());
            let (Some(suite), true) = (offered, reader.remaining() <= PAYLOAD_LEN_MAX) else {
                break;
            };
            self.finished = true;
            return Progress::Established(Box::new(Established {
                keys: session.keys(true, suite, self.config.protocol_id),
                remote_connection_id,
                settings: reader.rest().to_vec(),
            }));
        }
        Progress::Continue
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting")
            .field("trust", &self.config.trust)
            .field("cookie_at", &self.cookie_at)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const DELAY_FIRST: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(1);
/// A newer cookie replaces one that is older than this, well before the server's 10 s are over.
const COOKIE_KEPT: Duration = Duration::from_secs(1);
/// Exchanges of which an Accept may still come.
const SESSIONS_MAX: usize = 4;
