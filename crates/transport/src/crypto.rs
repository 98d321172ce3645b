//! Protection of packets: keys per direction, sealed with an AEAD, renewed while the connection runs.
//!
//! The handshake gives one secret per direction; this module makes keys from it and seals and opens packets in place,
//! without allocation. The protocol id and the packet's header are associated data, so that neither can be
//! changed on the way, and a packet of another protocol never opens. The nonce is the packet number combined with a
//! secret vector, so that a packet number must never be sealed twice (`sent` never uses one again).
//!
//! Keys are renewed by the sender, which flips the phase bit in the header; the receiver follows when the first packet of the
//! new phase opens, and keeps the keys before for packets that come late. `docs/handshake.md` has the byte-exact
//! schedule and vectors.

mod entropy;
mod key_log;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod noise;
mod null;
#[cfg(any(target_arch = "wasm32", test))]
mod portable;
mod suite;

use hkdf::Hkdf;
use muse_wire::log;
use sha2::Sha256;
use thiserror::Error;
use zeroize::Zeroizing;

pub(crate) use entropy::draw_keyed;
pub use entropy::{Entropy, SeededEntropy};
pub(crate) use key_log::KeyLog;
#[cfg(not(target_arch = "wasm32"))]
use native::Aead;
pub use noise::{InvalidPublicKey, ServerKey, ServerPublicKey};
pub(crate) use noise::{Ratchet, builder as noise_builder};
pub(crate) use null::{Checksum, TAG_LEN as CHECKSUM_LEN};
#[cfg(target_arch = "wasm32")]
use portable::Aead;
pub(crate) use suite::Suite;

/// A secret that keys are derived from; wiped when dropped.
pub(crate) type Secret = Zeroizing<[u8; SECRET_LEN]>;

/// Both directions of one connection.
pub(crate) struct Keys {
    pub(crate) send: SendKeys,
    pub(crate) receive: ReceiveKeys,
}

impl Keys {
    /// Keys of a connection of which this side sends with `send` and receives with `receive`.
    pub(crate) fn new(suite: Suite, protocol_id: u64, send: &Secret, receive: &Secret) -> Self {
        Self {
            send: SendKeys::new(suite, protocol_id, send),
            receive: ReceiveKeys::new(suite, protocol_id, receive),
        }
    }

    /// The pair that speaks with a pair of `Keys` made by the same call on the other side, for tests of what lies above.
    #[cfg(test)]
    pub(crate) fn pair_for_tests(suite: Suite, protocol_id: u64, seed: u8) -> (Self, Self) {
        let (one, two) = (
            Secret::new([seed; SECRET_LEN]),
            Secret::new([!seed; SECRET_LEN]),
        );
        (
            Self::new(suite, protocol_id, &one, &two),
            Self::new(suite, protocol_id, &two, &one),
        )
    }
}

/// A packet did not open: forged, corrupted, of another connection or protocol, or from keys too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the packet is not authentic")]
pub(crate) struct Rejected;

/// Seals the packets of one direction.
///
/// For each packet read [`phase`](Self::phase), put it into the header, then call [`seal`](Self::seal) with a number
/// that was never sealed before. Tell it about acknowledgements, or keys will not be renewed: the peer must have
/// followed one renewal before the next.
pub(crate) struct SendKeys {
    epoch: Epoch,
    secret: Secret,
    suite: Suite,
    protocol_id: u64,
    phase: bool,
    /// The peer has acknowledged a packet of this phase.
    confirmed: bool,
    /// Number of the first packet of this phase.
    epoch_first: Option<u64>,
    sealed_in_epoch: u64,
    rekey_after: u64,
}

impl SendKeys {
    fn new(suite: Suite, protocol_id: u64, secret: &Secret) -> Self {
        Self {
            epoch: Epoch::new(suite, protocol_id, secret),
            secret: secret.clone(),
            suite,
            protocol_id,
            phase: false,
            confirmed: false,
            epoch_first: None,
            sealed_in_epoch: 0,
            rekey_after: REKEY_AFTER_DEFAULT,
        }
    }

    /// Renews keys after this many packets instead of 2^20; at most 2^23, the limit for AES-GCM.
    pub(crate) fn set_rekey_after(&mut self, packets: u64) {
        self.rekey_after = packets.clamp(1, CONFIDENTIALITY_LIMIT);
    }

    /// The phase bit of the next packet's header.
    #[inline]
    pub(crate) fn phase(&self) -> bool {
        self.phase
    }

    /// Bytes that [`seal`](Self::seal) adds.
    #[inline]
    pub(crate) fn tag_len(&self) -> usize {
        self.suite.tag_len()
    }

    /// Encrypts the first `plain_len` bytes of `buffer` in place, appends the tag and returns the length of both.
    ///
    /// # Panics
    /// If `buffer` has no room for the tag or `header` is longer than [`HEADER_LEN_MAX`].
    #[inline]
    pub(crate) fn seal(
        &mut self,
        packet_number: u64,
        header: &[u8],
        buffer: &mut [u8],
        plain_len: usize,
    ) -> usize {
        let (ad, ad_len) = associated_data(self.protocol_id, header)
            .expect("a header is at most HEADER_LEN_MAX long");
        let len = self
            .epoch
            .seal(packet_number, &ad[..ad_len], buffer, plain_len);
        self.epoch_first.get_or_insert(packet_number);
        self.sealed_in_epoch += 1;
        if self.sealed_in_epoch >= self.rekey_after {
            self.renew_if_due();
        }
        len
    }

    /// The peer acknowledged this packet, so it has the keys that sealed it.
    #[inline]
    pub(crate) fn handle_ack(&mut self, packet_number: u64) {
        if !self.confirmed && self.epoch_first.is_some_and(|first| packet_number >= first) {
            self.confirmed = true;
        }
    }

    /// Renews the keys now; the next packet has the other phase. Does nothing and says `false` while the peer has
    /// acknowledged no packet of the present phase, because it could not follow two renewals at once.
    pub(crate) fn update(&mut self) -> bool {
        let confirmed = self.confirmed;
        if confirmed {
            self.renew();
        }
        confirmed
    }

    #[cold]
    fn renew_if_due(&mut self) {
        // Past the limit of the AEAD secrecy goes before the connection.
        if !self.update() && self.sealed_in_epoch >= CONFIDENTIALITY_LIMIT {
            self.renew();
        }
    }

    fn renew(&mut self) {
        log!(
            debug,
            sealed = self.sealed_in_epoch,
            "renewed the keys of packets sent"
        );
        self.secret = next_secret(&self.secret);
        self.epoch = Epoch::new(self.suite, self.protocol_id, &self.secret);
        self.phase = !self.phase;
        self.confirmed = false;
        self.epoch_first = None;
        self.sealed_in_epoch = 0;
    }
}

/// Opens the packets of one direction, following the sender's renewals.
///
/// Each packet costs one attempt to open it, whatever its phase bit says, and a packet that does not open changes nothing.
pub(crate) struct ReceiveKeys {
    current: Epoch,
    /// Secret of the current keys.
    secret: Secret,
    /// Made when the other phase is first seen, kept until it is adopted.
    next: Option<Box<(Epoch, Secret)>>,
    /// For packets that were overtaken by the renewal.
    previous: Option<Box<Epoch>>,
    suite: Suite,
    protocol_id: u64,
    phase: bool,
    /// Lowest number that opened with the current keys: the other phase is the next above it, the previous below it.
    epoch_first: u64,
    rejected: u64,
}

impl ReceiveKeys {
    fn new(suite: Suite, protocol_id: u64, secret: &Secret) -> Self {
        Self {
            current: Epoch::new(suite, protocol_id, secret),
            secret: secret.clone(),
            next: None,
            previous: None,
            suite,
            protocol_id,
            phase: false,
            epoch_first: 0,
            rejected: 0,
        }
    }

    /// Packets that did not open so far. Past 2^36 nothing opens any more (the limit for ChaCha20-Poly1305).
    pub(crate) fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Decrypts `payload` (ciphertext and tag) in place and returns the length of the plaintext at its front. What
    /// `payload` holds after a rejection is not specified.
    #[inline]
    pub(crate) fn open(
        &mut self,
        packet_number: u64,
        phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected> {
        let (ad, ad_len) = associated_data(self.protocol_id, header).ok_or(Rejected)?;
        let ad = &ad[..ad_len];
        let opened = if self.rejected >= INTEGRITY_LIMIT {
            Err(Rejected)
        } else if phase == self.phase {
            let opened = self.current.open(packet_number, ad, payload);
            if opened.is_ok() && packet_number < self.epoch_first {
                self.epoch_first = packet_number;
            }
            opened
        } else {
            self.open_other_phase(packet_number, ad, payload)
        };
        if opened.is_err() {
            self.rejected += 1;
        }
        opened
    }

    #[cold]
    fn open_other_phase(
        &mut self,
        packet_number: u64,
        ad: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected> {
        if packet_number < self.epoch_first {
            return self
                .previous
                .as_ref()
                .ok_or(Rejected)?
                .open(packet_number, ad, payload);
        }
        let next = self.next.get_or_insert_with(|| {
            let secret = next_secret(&self.secret);
            Box::new((Epoch::new(self.suite, self.protocol_id, &secret), secret))
        });
        let opened = next.0.open(packet_number, ad, payload)?;
        let adopted = self
            .next
            .take()
            .expect("the keys that just opened a packet");
        log!(debug, packet_number, "the peer renewed its keys");
        let (epoch, secret) = *adopted;
        self.previous = Some(Box::new(core::mem::replace(&mut self.current, epoch)));
        self.secret = secret;
        self.phase = !self.phase;
        self.epoch_first = packet_number;
        Ok(opened)
    }
}

/// A cipher that turns one packet with one nonce into ciphertext and tag and back. The native, the portable and the null
/// protection implement it.
trait PacketCipher {
    /// Encrypts `buffer[..plain_len]`, appends the tag, returns the length of both.
    fn seal(&self, nonce: [u8; NONCE_LEN], ad: &[u8], buffer: &mut [u8], plain_len: usize)
    -> usize;

    /// Decrypts ciphertext and tag in place, returns the plaintext's length.
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected>;
}

/// Keys of one direction between two renewals.
struct Epoch {
    cipher: Cipher,
    iv: [u8; NONCE_LEN],
}

#[allow(
    clippy::large_enum_variant,
    reason = "the large one is the common one; a box would cost a cache miss per packet"
)]
enum Cipher {
    Aead(Aead),
    Null(Checksum),
}

impl Epoch {
    fn new(suite: Suite, protocol_id: u64, secret: &Secret) -> Self {
        let (key, iv) = key_and_iv(suite, secret);
        let cipher = match suite {
            Suite::Null => Cipher::Null(Checksum::new(protocol_id)),
            Suite::Aes128Gcm | Suite::ChaCha20Poly1305 => {
                Cipher::Aead(Aead::new(suite, &key[..suite.key_len()]))
            }
        };
        Self { cipher, iv }
    }

    #[inline]
    fn nonce(&self, packet_number: u64) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..]
            .iter_mut()
            .zip(packet_number.to_be_bytes())
        {
            *byte ^= number;
        }
        nonce
    }

    #[inline]
    fn seal(&self, packet_number: u64, ad: &[u8], buffer: &mut [u8], plain_len: usize) -> usize {
        let nonce = self.nonce(packet_number);
        match &self.cipher {
            Cipher::Aead(aead) => aead.seal(nonce, ad, buffer, plain_len),
            Cipher::Null(checksum) => checksum.seal(nonce, ad, buffer, plain_len),
        }
    }

    #[inline]
    fn open(&self, packet_number: u64, ad: &[u8], payload: &mut [u8]) -> Result<usize, Rejected> {
        let nonce = self.nonce(packet_number);
        match &self.cipher {
            Cipher::Aead(aead) => aead.open(nonce, ad, payload),
            Cipher::Null(checksum) => checksum.open(nonce, ad, payload),
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.iv);
    }
}

/// HKDF-Expand with SHA-256 from a secret and the parts of a label.
pub(crate) fn expand(secret: &[u8; SECRET_LEN], label: &[&[u8]], output: &mut [u8]) {
    Hkdf::<Sha256>::from_prk(secret)
        .expect("a secret is as long as a hash")
        .expand_multi_info(label, output)
        .expect("an output of at most 255 hashes");
}

fn key_and_iv(suite: Suite, secret: &Secret) -> (Zeroizing<[u8; 32]>, [u8; NONCE_LEN]) {
    let mut key = Zeroizing::new([0; 32]);
    let mut iv = [0; NONCE_LEN];
    expand(
        secret,
        &[LABEL_KEY, &[suite.bit()]],
        &mut key[..suite.key_len()],
    );
    expand(secret, &[LABEL_IV, &[suite.bit()]], &mut iv);
    (key, iv)
}

fn next_secret(secret: &Secret) -> Secret {
    let mut next = Secret::new([0; SECRET_LEN]);
    expand(secret, &[LABEL_REKEY], &mut next[..]);
    next
}

/// Protocol id and header side by side on the stack; none when the header is too long.
#[inline]
fn associated_data(protocol_id: u64, header: &[u8]) -> Option<([u8; AD_LEN_MAX], usize)> {
    let mut ad = [0; AD_LEN_MAX];
    ad[..8].copy_from_slice(&protocol_id.to_le_bytes());
    ad[8..].get_mut(..header.len())?.copy_from_slice(header);
    Some((ad, 8 + header.len()))
}

/// Length of the secrets that the handshake gives.
pub(crate) const SECRET_LEN: usize = 32;
/// Longest header that can be associated data.
pub(crate) const HEADER_LEN_MAX: usize = 16;
/// Tag of both AEADs, and the most that any suite adds.
pub(crate) const AEAD_TAG_LEN: usize = 16;
const AD_LEN_MAX: usize = 8 + HEADER_LEN_MAX;
pub(crate) const NONCE_LEN: usize = 12;
/// Packets after which keys are renewed: an hour of a busy connection, an eighth of what AES-GCM allows.
const REKEY_AFTER_DEFAULT: u64 = 1 << 20;
/// Most packets sealed with one key (RFC 9001, section 6.6, for AES-128-GCM).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// Most forgeries that a connection tolerates (RFC 9001, section 6.6, for ChaCha20-Poly1305).
const INTEGRITY_LIMIT: u64 = 1 << 36;
const LABEL_KEY: &[u8] = b"muse key";
const LABEL_IV: &[u8] = b"muse iv";
const LABEL_REKEY: &[u8] = b"muse rekey";

#[cfg(test)]
mod tests;
