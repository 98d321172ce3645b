//! The two messages that agree on keys: Noise, or a stand-in without secrecy for links that need none.

use hkdf::hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use snow::HandshakeState;
use subtle::ConstantTimeEq;

use crate::crypto::{
    Entropy, Keys, SECRET_LEN, Secret, ServerKey, ServerPublicKey, Suite, expand, noise_builder,
};

/// The way in which client and server come to trust each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// No secrecy; messages carry a MAC with the token's secret, or with nothing secret when there is no token.
    DangerInsecure,
    /// The client knows the server's key; the server does not know the client.
    Pinned,
    /// The client knows the server's key from its token, and proves that it holds the token's secret.
    Token,
}

impl Mode {
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::DangerInsecure => 0,
            Self::Pinned => 1,
            Self::Token => 2,
        }
    }

    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::DangerInsecure),
            1 => Some(Self::Pinned),
            2 => Some(Self::Token),
            _ => None,
        }
    }

    const fn pattern(self) -> &'static str {
        match self {
            Self::Token => "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s",
            Self::Pinned | Self::DangerInsecure => "Noise_NK_25519_ChaChaPoly_BLAKE2s",
        }
    }
}

/// One side of the exchange. A message that cannot be read leaves it as it was.
pub(super) enum Session {
    Noise(Box<HandshakeState>),
    Insecure(Insecure),
}

impl Session {
    /// The client's side. `secret` is the token's.
    pub(super) fn initiator(
        mode: Mode,
        server: &ServerPublicKey,
        secret: Option<&Secret>,
        prologue: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Self {
        if mode == Mode::DangerInsecure {
            return Self::Insecure(Insecure::new(secret, prologue));
        }
        let mut builder = noise_builder(mode.pattern(), entropy)
            .prologue(prologue)
            .and_then(|builder| builder.remote_public_key(server.as_bytes()))
            .expect("each is set once");
        if let Some(secret) = secret {
            builder = builder.psk(0, secret).expect("set once");
        }
        Self::Noise(Box::new(
            builder
                .build_initiator()
                .expect("everything that the pattern needs is set"),
        ))
    }

    /// The server's side.
    pub(super) fn responder(
        mode: Mode,
        server: &ServerKey,
        secret: Option<&Secret>,
        prologue: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Self {
        if mode == Mode::DangerInsecure {
            return Self::Insecure(Insecure::new(secret, prologue));
        }
        let private = server.to_bytes();
        let mut builder = noise_builder(mode.pattern(), entropy)
            .prologue(prologue)
            .and_then(|builder| builder.local_private_key(&private[..]))
            .expect("each is set once");
        if let Some(secret) = secret {
            builder = builder.psk(0, secret).expect("set once");
        }
        Self::Noise(Box::new(
            builder
                .build_responder()
                .expect("everything that the pattern needs is set"),
        ))
    }

    /// Writes the next message; none when it does not fit.
    pub(super) fn write(&mut self, payload: &[u8], message: &mut [u8]) -> Option<usize> {
        match self {
            Self::Noise(noise) => noise.write_message(payload, message).ok(),
            Self::Insecure(insecure) => insecure.write(payload, message),
        }
    }

    /// Reads the next message; none when it is not authentic.
    pub(super) fn read(&mut self, message: &[u8], payload: &mut [u8]) -> Option<usize> {
        match self {
            Self::Noise(noise) => noise.read_message(message, payload).ok(),
            Self::Insecure(insecure) => insecure.read(message, payload),
        }
    }

    /// The packet keys, after both messages.
    pub(super) fn keys(&mut self, client: bool, suite: Suite, protocol_id: u64) -> Keys {
        let (mut from_client, mut from_server) = (Secret::default(), Secret::default());
        match self {
            Self::Noise(noise) => {
                let (one, two) = noise.dangerously_get_raw_split();
                let (one, two) = (Secret::new(one), Secret::new(two));
                expand(
                    &one,
                    &[LABEL_CLIENT, noise.get_handshake_hash()],
                    &mut from_client[..],
                );
                expand(
                    &two,
                    &[LABEL_SERVER, noise.get_handshake_hash()],
                    &mut from_server[..],
                );
            }
            Self::Insecure(insecure) => {
                expand(&insecure.transcript, &[LABEL_CLIENT], &mut from_client[..]);
                expand(&insecure.transcript, &[LABEL_SERVER], &mut from_server[..]);
            }
        }
        let (send, receive) = if client {
            (&from_client, &from_server)
        } else {
            (&from_server, &from_client)
        };
        Keys::new(suite, protocol_id, send, receive)
    }
}

/// Messages in the clear with a running MAC, so that corruption is found and a token's holder is proven.
pub(super) struct Insecure {
    key: Secret,
    transcript: Secret,
}

impl Insecure {
    fn new(secret: Option<&Secret>, prologue: &[u8]) -> Self {
        let key = secret.cloned().unwrap_or_default();
        let transcript = Secret::new(mac(&key, &[LABEL_INSECURE, prologue]));
        Self { key, transcript }
    }

    fn write(&mut self, payload: &[u8], message: &mut [u8]) -> Option<usize> {
        let next = Secret::new(mac(&self.key, &[&self.transcript[..], payload]));
        let message = message.get_mut(..INSECURE_TAG_LEN + payload.len())?;
        message[..INSECURE_TAG_LEN].copy_from_slice(&next[..INSECURE_TAG_LEN]);
        message[INSECURE_TAG_LEN..].copy_from_slice(payload);
        self.transcript = next;
        Some(message.len())
    }

    fn read(&mut self, message: &[u8], payload: &mut [u8]) -> Option<usize> {
        let (tag, plain) = message.split_at_checked(INSECURE_TAG_LEN)?;
        let next = Secret::new(mac(&self.key, &[&self.transcript[..], plain]));
        if !bool::from(next[..INSECURE_TAG_LEN].ct_eq(tag)) {
            return None;
        }
        payload.get_mut(..plain.len())?.copy_from_slice(plain);
        self.transcript = next;
        Some(plain.len())
    }
}

fn mac(key: &Secret, parts: &[&[u8]]) -> [u8; SECRET_LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key[..]).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The most by which a message is longer than its payload: an ephemeral key and a tag.
pub(super) const MESSAGE_OVERHEAD_MAX: usize = 32 + 16;
const INSECURE_TAG_LEN: usize = 16;
const LABEL_CLIENT: &[u8] = b"muse client";
const LABEL_SERVER: &[u8] = b"muse server";
const LABEL_INSECURE: &[u8] = b"muse insecure";
