//! The server's side: answers strangers without remembering them, and lets the proven ones ask to come in.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::bytes::Writer;
use muse_wire::{Instant, log};

use super::cookie::CookieJar;
use super::inquiry::page_of;
use super::limits::{HandshakeLimits, Limiter};
use super::packet::{self, ACCEPT_FIXED_LEN, Connect, Describe, Ignored, Packet, Reason};
use super::recent::{RECENT_MAX, Recent};
use super::session::{Mode, Session};
use super::{ClientRandom, PAYLOAD_LEN_MAX, Refusal, VERSION};
use crate::crypto::{Entropy, Keys, Ratchet, Secret, ServerKey, ServerPublicKey, Suite};
use crate::steering::Shard;
use crate::token::{TokenError, TokenId, TokenVerifier, Verified};

/// The configuration of a [`Listener`].
pub(crate) struct ListenerConfig {
    /// Packets of another protocol are ignored.
    pub(crate) protocol_id: u64,
    /// Clients with another schema are refused.
    pub(crate) schema_hash: u64,
    /// The text that this is the hash of, for clients that want to know what differs.
    pub(crate) description: Arc<str>,
    /// The key that clients pin and tokens are sealed to.
    pub(crate) key: ServerKey,
    /// Checks tokens; without it tokens are refused.
    pub(crate) verifier: Option<TokenVerifier>,
    /// True if clients without a token are refused.
    pub(crate) token_required: bool,
    /// True if clients may connect without encryption.
    pub(crate) danger_insecure: bool,
    /// The limits on the cost of strangers.
    pub(crate) limits: HandshakeLimits,
    /// The place among the listeners behind the port.
    pub(crate) shard: Shard,
    /// The secret of cookies, if others have the same.
    pub(crate) cookie_secret: Option<Secret>,
}

/// Answers handshake packets. It holds fixed memory, however many strangers knock; its tokens' memory is bounded too.
///
/// Give every handshake packet of strangers to [`handle`](Self::handle), but a Connect that repeats one already answered,
/// recognised by address and [`peek_connect`](Self::peek_connect), is answered with the Accept kept from the first time. An
/// [`Outcome::Request`] is then accepted or refused.
pub(crate) struct Listener {
    config: ListenerConfig,
    cookies: CookieJar,
    limiter: Limiter,
    recent: Recent,
    entropy: Ratchet,
    counters: HandshakeCounters,
}

/// The outcome of a packet.
pub(crate) enum Outcome {
    /// Nothing to do.
    Nothing,
    /// Send this many bytes of the reply buffer to where the packet came from.
    Reply(usize),
    /// Somebody asks to come in: accept or refuse.
    Request(Box<ConnectRequest>),
}

/// A connection that may begin.
pub(crate) struct Accepted {
    /// Length of the Accept in the reply buffer. Keep it to answer a repeated Connect.
    pub(crate) len: usize,
    /// The packet keys.
    pub(crate) keys: Keys,
    /// The connection id that the client wants to receive.
    pub(crate) remote_connection_id: u32,
}

impl Listener {
    /// The key that clients pin.
    pub(crate) fn public_key(&self) -> ServerPublicKey {
        self.config.key.public()
    }

    /// A listener whose secrets come from `entropy`.
    pub(crate) fn new(mut config: ListenerConfig, entropy: &mut dyn Entropy) -> Self {
        let secret = config.cookie_secret.take();
        Self {
            cookies: CookieJar::new(secret.unwrap_or_else(|| random_secret(entropy))),
            limiter: Limiter::new(config.limits, entropy),
            recent: Recent::new(RECENT_MAX),
            entropy: Ratchet::new(entropy),
            counters: HandshakeCounters::default(),
            config,
        }
    }

    /// Returns the counts of packets and their outcomes.
    pub(crate) fn counters(&self) -> &HandshakeCounters {
        &self.counters
    }

    /// To add and remove the master's keys while running.
    pub(crate) fn verifier_mut(&mut self) -> Option<&mut TokenVerifier> {
        self.config.verifier.as_mut()
    }

    /// The name of the attempt if the datagram looks like a Connect. Costs nothing and proves nothing.
    pub(crate) fn peek_connect(&self, datagram: &[u8]) -> Option<ClientRandom> {
        packet::peek_connect(self.config.protocol_id, datagram)
    }

    /// A packet arrived from a stranger. `resumable` says whether the session that began with a token still lives.
    /// `reply` should have room for `REPLY_LEN_MAX` bytes.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        unix_now_s: u64,
        from: SocketAddr,
        datagram: &[u8],
        reply: &mut [u8],
        resumable: impl Fn(&TokenId) -> bool,
    ) -> Outcome {
        match Packet::parse(self.config.protocol_id, datagram) {
            Ok(Packet::Hello { version, random }) => {
                self.counters.hellos += 1;
                log!(trace, client = %from, version, "hello");
                if version != VERSION {
                    log!(debug, client = %from, version, "refused a client of another version");
                    return self.reply_refusal(now, &random, &version_refusal(version), reply);
                }
                self.reply_cookie(now, from, &random, reply)
            }
            Ok(Packet::Connect(connect)) => {
                self.counters.connects += 1;
                if connect.version != VERSION {
                    log!(debug, client = %from, version = connect.version, "refused a client of another version");
                    return self.reply_refusal(
                        now,
                        &connect.random,
                        &version_refusal(connect.version),
                        reply,
                    );
                }
                if !self
                    .cookies
                    .check(now, from, &connect.random, &connect.cookie)
                {
                    // Too old, from before a restart, or the client's address changed: it gets another.
                    self.counters.cookies_invalid += 1;
                    log!(debug, client = %from, "a cookie is too old, or of another address");
                    return self.reply_cookie(now, from, &connect.random, reply);
                }
                match self.admit(now, unix_now_s, from, &connect, &resumable) {
                    Ok(request) => {
                        self.counters.requests += 1;
                        Outcome::Request(request)
                    }
                    Err(Rejection::Dropped) => Outcome::Nothing,
                    Err(Rejection::Refused(refusal)) => {
                        log!(debug, client = %from, %refusal, "refused a client");
                        self.reply_refusal(now, &connect.random, &refusal, reply)
                    }
                }
            }
            Ok(Packet::Describe(describe)) => self.describe(now, from, &describe, reply),
            Ok(
                Packet::Cookie { .. }
                | Packet::Accept { .. }
                | Packet::Refuse { .. }
                | Packet::Wait { .. }
                | Packet::Description { .. },
            )
            | Err(Ignored::Malformed) => {
                self.counters.malformed += 1;
                Outcome::Nothing
            }
            Err(Ignored::Protocol) => {
                self.counters.other_protocol += 1;
                log!(debug, client = %from, "ignored a handshake with another protocol id");
                Outcome::Nothing
            }
        }
    }

    /// Admits the client: finishes the key exchange and writes the Accept. `settings`, at most 256 bytes, are for the
    /// client. The client has not shown yet that it has the keys; until a packet opens with them, nothing that
    /// exists should give way to this connection, not even the session that it resumes.
    pub(crate) fn accept(
        &mut self,
        request: &mut ConnectRequest,
        connection_id: u32,
        settings: &[u8],
        reply: &mut [u8],
    ) -> Result<Accepted, Refusal> {
        if let (Some(token), Some(verifier)) = (&request.token, self.config.verifier.as_mut()) {
            // Only here, where nothing else can fail for the client's sake: a refused attempt must not use up the token.
            verifier.mark_used(token, request.unix_now_s)?;
        }
        self.recent.insert(request.random);
        let mut payload = [0; ACCEPT_FIXED_LEN + PAYLOAD_LEN_MAX];
        let mut writer = Writer::new(&mut payload);
        writer
            .u32(connection_id)
            .and_then(|()| writer.u8(request.suite.bit()))
            .and_then(|()| writer.slice(settings))
            .expect("settings of at most 256 bytes");
        let session = &mut request.session;
        let protocol_id = self.config.protocol_id;
        let len = packet::emit_accept(protocol_id, &request.random, reply, |message| {
            session.write(writer.written(), message)
        })
        .expect("a reply buffer of REPLY_LEN_MAX bytes");
        self.counters.accepted += 1;
        Ok(Accepted {
            len,
            keys: session.keys(false, request.suite, protocol_id),
            remote_connection_id: request.connection_id,
        })
    }

    /// Writes that the application has not decided yet; returns the length of the reply, zero when the limit of replies is
    /// reached.
    pub(crate) fn wait(&mut self, now: Instant, random: &ClientRandom, reply: &mut [u8]) -> usize {
        if !self.may_reply(now) {
            return 0;
        }
        packet::emit_wait(self.config.protocol_id, random, reply).unwrap_or(0)
    }

    /// Takes a reply from the limit of replies; `false` when there is none left.
    pub(crate) fn may_reply(&mut self, now: Instant) -> bool {
        let allowed = self.limiter.reply(now);
        self.counters.replies_limited += u64::from(!allowed);
        allowed
    }

    /// Counts what became of questions to the application.
    pub(crate) fn counters_mut(&mut self) -> &mut HandshakeCounters {
        &mut self.counters
    }

    /// Sends the client away; returns the length of the reply, zero when the limit of replies is reached.
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        request: &ConnectRequest,
        refusal: &Refusal,
        reply: &mut [u8],
    ) -> usize {
        match self.reply_refusal(now, &request.random, refusal, reply) {
            Outcome::Reply(len) => len,
            Outcome::Nothing | Outcome::Request(_) => 0,
        }
    }

    /// Everything between a good cookie and a request, from cheap to expensive.
    fn admit(
        &mut self,
        now: Instant,
        unix_now_s: u64,
        from: SocketAddr,
        connect: &Connect<'_>,
        resumable: &dyn Fn(&TokenId) -> bool,
    ) -> Result<Box<ConnectRequest>, Rejection> {
        // Checked before anything is computed: repeating a Connect must cost the sender more than us.
        if self.recent.contains(now, &connect.random) {
            self.counters.replayed += 1;
            log!(debug, client = %from, "dropped a repeated request");
            return Err(Rejection::Dropped);
        }
        let Some(mode) = connect.mode() else {
            self.counters.malformed += 1;
            return Err(Rejection::Dropped);
        };
        if self.recent.is_full() || !self.limiter.handshake(now, from) {
            self.counters.prefix_limited += 1;
            log!(debug, client = %from, "dropped a request: too many from there");
            return Err(Rejection::Dropped);
        }
        let suite = self.agree(mode, connect)?;
        let token = self.check_token(now, unix_now_s, connect, resumable)?;
        let secret = token.as_ref().map(|token| &token.secret);
        // The public-key operations of all strangers together are bounded: under a flood handshakes wait, and players do
        // not.
        self.spend(
            now,
            if mode == Mode::DangerInsecure {
                0
            } else {
                EXCHANGE_OPERATIONS
            },
        )?;
        let prologue = connect.prologue(self.config.protocol_id);
        let mut session =
            Session::responder(mode, &self.config.key, secret, &prologue, &mut self.entropy);
        let mut payload = [0; PAYLOAD_LEN_MAX];
        let len = session
            .read(connect.message, &mut payload)
            .ok_or(Refusal::WrongKey)?;
        Ok(Box::new(ConnectRequest {
            from,
            random: connect.random,
            connection_id: connect.connection_id,
            payload: payload[..len].to_vec(),
            unix_now_s,
            suite,
            session,
            token,
        }))
    }

    /// A page of the description, for a client whose address is proven.
    fn describe(
        &mut self,
        now: Instant,
        from: SocketAddr,
        describe: &Describe,
        reply: &mut [u8],
    ) -> Outcome {
        let Describe { random, page, .. } = describe;
        if describe.version != VERSION || !self.cookies.check(now, from, random, &describe.cookie) {
            self.counters.cookies_invalid += 1;
            return Outcome::Nothing;
        }
        if !self.limiter.description(now) {
            self.counters.replies_limited += 1;
            return Outcome::Nothing;
        }
        let Some((count, text)) = page_of(&self.config.description, *page) else {
            self.counters.malformed += 1;
            return Outcome::Nothing;
        };
        self.counters.descriptions += 1;
        packet::emit_description(self.config.protocol_id, random, *page, count, text, reply)
            .map_or(Outcome::Nothing, Outcome::Reply)
    }

    /// Checks that need no cryptography: the kind of protection and the schema.
    fn agree(&self, mode: Mode, connect: &Connect<'_>) -> Result<Suite, Refusal> {
        let suite = match mode {
            Mode::DangerInsecure if !self.config.danger_insecure => return Err(Refusal::Insecure),
            Mode::DangerInsecure => Suite::Null,
            // Every client has a suite that we know, or it is none of ours.
            Mode::Pinned | Mode::Token => Suite::choose(connect.suites).ok_or(Refusal::WrongKey)?,
        };
        if connect.schema_hash != self.config.schema_hash {
            return Err(Refusal::Schema {
                client: connect.schema_hash,
                server: self.config.schema_hash,
                differences: Vec::new(),
            });
        }
        if connect.token.is_empty() && self.config.token_required {
            return Err(Refusal::TokenRequired);
        }
        Ok(suite)
    }

    fn check_token(
        &mut self,
        now: Instant,
        unix_now_s: u64,
        connect: &Connect<'_>,
        resumable: &dyn Fn(&TokenId) -> bool,
    ) -> Result<Option<Verified>, Rejection> {
        if connect.token.is_empty() {
            return Ok(None);
        }
        let invalid = Refusal::Token(TokenError::Invalid);
        let verifier = self.config.verifier.as_ref().ok_or(invalid)?;
        let key = &self.config.key;
        // Checks that need no public keys come first; each costly step pays from the budget before it is made.
        let checked = verifier
            .check(
                connect.token,
                self.config.protocol_id,
                key,
                unix_now_s,
                resumable,
            )
            .map_err(Refusal::from)?;
        // Another listener remembers whether it was used.
        if !self.config.shard.serves(&checked.id()) {
            return Err(Refusal::Token(TokenError::WrongServer).into());
        }
        spend(
            &mut self.limiter,
            &mut self.counters,
            now,
            SIGNATURE_OPERATIONS,
        )?;
        verifier.verify(&checked).map_err(Refusal::from)?;
        spend(
            &mut self.limiter,
            &mut self.counters,
            now,
            UNSEAL_OPERATIONS,
        )?;
        Ok(Some(
            checked
                .open(key, &mut self.entropy)
                .map_err(Refusal::from)?,
        ))
    }

    fn spend(&mut self, now: Instant, operations: u32) -> Result<(), Rejection> {
        spend(&mut self.limiter, &mut self.counters, now, operations)
    }

    fn reply_cookie(
        &mut self,
        now: Instant,
        from: SocketAddr,
        random: &ClientRandom,
        reply: &mut [u8],
    ) -> Outcome {
        if !self.may_reply(now) {
            return Outcome::Nothing;
        }
        // Nothing is kept of the client: the cookie itself remembers.
        let cookie = self.cookies.bake(now, from, random);
        self.counters.cookies += 1;
        packet::emit_cookie(self.config.protocol_id, random, &cookie, reply)
            .map_or(Outcome::Nothing, Outcome::Reply)
    }

    fn reply_refusal(
        &mut self,
        now: Instant,
        random: &ClientRandom,
        refusal: &Refusal,
        reply: &mut [u8],
    ) -> Outcome {
        self.counters.refused += 1;
        if !self.may_reply(now) {
            return Outcome::Nothing;
        }
        packet::emit_refuse(self.config.protocol_id, random, Reason::of(refusal), reply)
            .map_or(Outcome::Nothing, Outcome::Reply)
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// A client whose address is proven and whose token, if any, is good, asks to be admitted.
pub(crate) struct ConnectRequest {
    from: SocketAddr,
    random: ClientRandom,
    connection_id: u32,
    payload: Vec<u8>,
    unix_now_s: u64,
    suite: Suite,
    session: Session,
    pub(super) token: Option<Verified>,
}

impl ConnectRequest {
    /// Returns the address that it comes from.
    pub(crate) fn from(&self) -> SocketAddr {
        self.from
    }

    /// The name of this attempt.
    pub(crate) fn client_random(&self) -> ClientRandom {
        self.random
    }

    /// Returns the data of the client's application, at most 256 bytes. Somebody may have recorded and repeated it.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The account in the token.
    pub(crate) fn account(&self) -> Option<u64> {
        self.token.as_ref().map(|token| token.account)
    }

    /// The user data in the token.
    pub(crate) fn user_data(&self) -> &[u8] {
        self.token.as_ref().map_or(&[], |token| &token.user_data)
    }

    /// The request is accepted later than it came: the time and whether the token's session lives may have changed.
    pub(crate) fn refresh(&mut self, unix_now_s: u64, resumes: bool) {
        self.unix_now_s = unix_now_s;
        if let Some(token) = &mut self.token {
            token.resumes |= resumes;
        }
    }

    /// The token's name.
    pub(crate) fn token_id(&self) -> Option<TokenId> {
        self.token.as_ref().map(|token| token.id)
    }
}

/// Counts of a server's handshakes, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeCounters {
    /// First packets of clients.
    pub hellos: u64,
    /// Cookies sent.
    pub cookies: u64,
    /// Pages of the description sent to clients that do not share it.
    pub descriptions: u64,
    /// Packets that ask to come in.
    pub connects: u64,
    /// Of those, with a cookie that is too old or false.
    pub cookies_invalid: u64,
    /// Handed to the endpoint for a decision.
    pub requests: u64,
    /// Let in.
    pub accepted: u64,
    /// Of the requests, put before the application, see [`ServerOptions::admission`](crate::ServerOptions::admission).
    pub asked: u64,
    /// Denied by the application.
    pub denied: u64,
    /// Refused because the application did not decide in time.
    pub undecided: u64,
    /// Gone before the application decided.
    pub withdrawn: u64,
    /// Refused because too many waited for a decision.
    pub pending_limited: u64,
    /// Holders of tokens who come back to a full server, left to ask again because too many others came back at the same time.
    pub resuming_limited: u64,
    /// Sent away, with or without a reply.
    pub refused: u64,
    /// Dropped: not a handshake packet that a server takes.
    pub malformed: u64,
    /// Dropped: of another protocol.
    pub other_protocol: u64,
    /// Dropped: the limit of replies was reached.
    pub replies_limited: u64,
    /// Dropped: a Connect that was already accepted and is no longer waited for.
    pub replayed: u64,
    /// Dropped: the limit of the address or its prefix was reached, or too many were accepted in ten seconds.
    pub prefix_limited: u64,
    /// Dropped: the limit of operations with public keys was reached.
    pub operations_limited: u64,
}

/// The reason for which a Connect becomes no request.
enum Rejection {
    /// Counted; the client may try again.
    Dropped,
    Refused(Refusal),
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn spend(
    limiter: &mut Limiter,
    counters: &mut HandshakeCounters,
    now: Instant,
    operations: u32,
) -> Result<(), Rejection> {
    if limiter.operations(now, operations) {
        return Ok(());
    }
    counters.operations_limited += 1;
    Err(Rejection::Dropped)
}

fn random_secret(entropy: &mut dyn Entropy) -> Secret {
    let mut secret = Secret::default();
    entropy.fill(&mut secret[..]);
    secret
}

fn version_refusal(client: u16) -> Refusal {
    Refusal::Version {
        client,
        server_min: VERSION,
        server_max: VERSION,
    }
}

/// Checking an Ed25519 signature.
const SIGNATURE_OPERATIONS: u32 = 1;
/// Our public key and one Diffie-Hellman.
const UNSEAL_OPERATIONS: u32 = 2;
/// Our public key, a new key pair and two Diffie-Hellman; those of the Accept are spent in advance.
const EXCHANGE_OPERATIONS: u32 = 4;
