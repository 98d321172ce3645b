//! Options of a server that admits clients, and of a client that connects.

use std::sync::Arc;

use muse_wire::Duration;

use super::admission::AdmissionLimits;
use crate::config::{Agreement, Config};
use crate::crypto::{Secret, ServerKey, ServerPublicKey};
use crate::handshake::{ConnectingConfig, HandshakeLimits, ListenerConfig, Trust};
use crate::token::{ConnectToken, TokenVerifier};

/// The terms on which an endpoint admits clients.
///
/// Without [`tokens`](Self::tokens) anyone who knows the server's public key may connect; with it only holders of a
/// connect token that a trusted master signed.
#[derive(Debug)]
pub struct ServerOptions {
    key: ServerKey,
    verifier: Option<TokenVerifier>,
    limits: HandshakeLimits,
    danger_insecure: bool,
    admission: Option<AdmissionLimits>,
    cookie_secret: Option<Secret>,
}

impl ServerOptions {
    /// A server known by `key`.
    pub fn new(key: ServerKey) -> Self {
        Self {
            key,
            verifier: None,
            limits: HandshakeLimits::default(),
            danger_insecure: false,
            admission: None,
            cookie_secret: None,
        }
    }

    /// Admits only holders of connect tokens. Default: everybody who knows the key.
    pub fn tokens(mut self, verifier: TokenVerifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Sets the secret of the cookies by which clients prove their addresses, for endpoints that [share a port](crate::Config::shard): a client may get its
    /// cookie from one and come with it to another. Make another one whenever the server starts. Default: random.
    pub fn cookie_secret(mut self, secret: [u8; 32]) -> Self {
        self.cookie_secret = Some(Secret::new(secret));
        self
    }

    pub(super) fn admission_limits(&self) -> Option<AdmissionLimits> {
        self.admission
    }

    /// Also lets in clients without encryption. Anyone on the way can then read and forge what they send. For links that
    /// encrypt already, and for experiments.
    pub fn danger_allow_insecure(mut self) -> Self {
        self.danger_insecure = true;
        self
    }

    pub(super) fn into_listener(self, config: &Config, agreement: &Agreement) -> ListenerConfig {
        ListenerConfig {
            protocol_id: config.protocol,
            schema_hash: agreement.hash,
            description: Arc::clone(&agreement.description),
            key: self.key,
            token_required: self.verifier.is_some(),
            verifier: self.verifier,
            danger_insecure: self.danger_insecure,
            limits: self.limits,
            shard: config.shard,
            cookie_secret: self.cookie_secret,
        }
    }
}

muse_wire::setters! { ServerOptions:
    /// Limits on handshakes. Default: see [`HandshakeLimits`].
    limits: HandshakeLimits,

    /// Asks the application about each client, by [`Event::Asking`](crate::Event::Asking), before it is in. Default: everybody who passes the
    /// handshake is in.
    admission: AdmissionLimits = Some(admission),
}

/// The terms on which a client connects: whom to trust, and what to say.
#[derive(Clone, Debug)]
pub struct Connect {
    trust: Trust,
    payload: Vec<u8>,
    timeout: Option<Duration>,
}

impl Connect {
    /// To a server whose public key is known.
    pub fn pinned(key: ServerPublicKey) -> Self {
        Self::new(Trust::Pinned(key))
    }

    /// To a server whose public key is not known yet: the handshake waits for [`Endpoint::pin`](crate::Endpoint::pin).
    pub fn key_follows() -> Self {
        Self::new(Trust::Follows)
    }

    /// With a connect token, which names the server's key.
    pub fn token(token: ConnectToken) -> Self {
        Self::new(Trust::Token(Box::new(token)))
    }

    /// Without encryption or authentication: anyone on the way can read and forge everything.
    pub fn danger_insecure() -> Self {
        Self::new(Trust::DangerInsecure(None))
    }

    /// Sets the data to send to the server at once, at most 256 bytes: it comes with its [`Event::Connected`](crate::Event::Connected).
    /// Encrypted, but somebody who recorded it may repeat it. Default: nothing.
    pub fn hello(mut self, hello: &[u8]) -> Self {
        self.payload = hello.to_vec();
        self
    }

    /// Gives up after this time. Default: 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn new(trust: Trust) -> Self {
        Self {
            trust,
            payload: Vec::new(),
            timeout: None,
        }
    }

    pub(super) fn into_config(
        self,
        protocol_id: u64,
        agreement: &Agreement,
        connection_id: u32,
    ) -> ConnectingConfig {
        let mut config =
            ConnectingConfig::new(protocol_id, agreement.hash, connection_id, self.trust);
        config.description = Arc::clone(&agreement.description);
        config.payload = self.payload;
        if let Some(timeout) = self.timeout {
            config.timeout = timeout;
        }
        config
    }
}
