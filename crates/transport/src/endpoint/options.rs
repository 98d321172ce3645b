//! How to let clients in, and how to be let in.

use std::sync::Arc;

use muse_wire::Duration;

use super::admission::AdmissionLimits;
use crate::config::Agreement;
use crate::crypto::{ServerKey, ServerPublicKey};
use crate::handshake::{ConnectingConfig, HandshakeLimits, ListenerConfig, Trust};
use crate::token::{ConnectToken, TokenVerifier};

/// How an endpoint lets clients in.
///
/// Without [`tokens`](Self::tokens) anyone who knows the server's public key may connect; with it only holders of a
/// connect token that a trusted master signed.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions};
/// # use muse_wire::{Duration, Instant};
/// use muse_transport::token::{TokenIssuer, TokenVerifier};
/// use muse_transport::{Event, Refusal};
/// # let now = Instant::ZERO;
/// let mut entropy = SeededEntropy::danger_seeded(1); // drivers use the operating system's randomness
/// let issuer = TokenIssuer::generate(1, 7, &mut entropy); // the master's
/// let mut verifier = TokenVerifier::new();
/// verifier.add_key(issuer.key_id(), &issuer.public_key())?;
/// let key = ServerKey::generate(&mut entropy);
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::Sequenced)).build()?;
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// # client.connect(now, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()))?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// server.listen(ServerOptions::new(key).tokens(verifier));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [here, _] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # let client = simulation.node_mut(here);
/// // A client that only knows the key of the server is not let in.
/// let mut buffer = Vec::new();
/// let event = client.poll_event(&mut buffer);
/// assert!(matches!(event, Some(Event::Refused { reason: Refusal::TokenRequired, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ServerOptions {
    key: ServerKey,
    verifier: Option<TokenVerifier>,
    limits: HandshakeLimits,
    danger_insecure: bool,
    admission: Option<AdmissionLimits>,
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
        }
    }

    /// Lets in only holders of connect tokens. Default: everybody who knows the key.
    pub fn tokens(mut self, verifier: TokenVerifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Limits on handshakes. Default: see [`HandshakeLimits`].
    pub fn limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Asks the application about each client, by [`Event::Asking`](crate::Event::Asking), before it is in. Default: everybody who passes the
    /// handshake is in.
    pub fn admission(mut self, limits: AdmissionLimits) -> Self {
        self.admission = Some(limits);
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

    pub(super) fn into_listener(self, protocol_id: u64, agreement: &Agreement) -> ListenerConfig {
        ListenerConfig {
            protocol_id,
            schema_hash: agreement.hash,
            description: Arc::clone(&agreement.description),
            key: self.key,
            token_required: self.verifier.is_some(),
            verifier: self.verifier,
            danger_insecure: self.danger_insecure,
            limits: self.limits,
        }
    }
}

/// How to connect: whom to trust, and what to say.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions};
/// # use muse_wire::{Duration, Instant};
/// use muse_transport::Event;
/// # let now = Instant::ZERO;
/// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// # let public = key.public();
/// let how = Connect::pinned(public).hello(b"name: Ada").timeout(Duration::from_secs(5));
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::Sequenced)).build()?;
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// client.connect(now, "192.0.2.2:2".parse()?, how)?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// # server.listen(ServerOptions::new(key));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [_, there] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # let server = simulation.node_mut(there);
/// // At the server:
/// let mut buffer = Vec::new();
/// assert!(matches!(server.poll_event(&mut buffer), Some(Event::Connected { hello: b"name: Ada", .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// With a connect token, which names the server's key.
    pub fn token(token: ConnectToken) -> Self {
        Self::new(Trust::Token(Box::new(token)))
    }

    /// Without encryption or authentication: anyone on the way can read and forge everything.
    pub fn danger_insecure() -> Self {
        Self::new(Trust::DangerInsecure(None))
    }

    /// What to say to the server at once, at most 256 bytes: it comes with its [`Event::Connected`](crate::Event::Connected).
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
