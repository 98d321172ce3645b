//! Tokens that are shown outside of a handshake: to a relay, which opens rooms for their holders.
//!
//! A holder shows the public part of the token and a code that only the holder of its secret can make, over bytes that name the
//! occasion. So a token that was seen on the wire is of no use to others.

use hkdf::hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{ConnectToken, PUBLIC_LEN_MAX, TokenError, TokenId, TokenVerifier};
use crate::crypto::{Entropy, SECRET_LEN, ServerKey};

/// The contents of an authentic token that was [shown](ConnectToken::show).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// The token's name.
    pub id: TokenId,
    /// The account that it was issued to.
    pub account: u64,
    /// The data of its issuer.
    pub user_data: Vec<u8>,
}

impl ConnectToken {
    /// Returns the bytes by which its holder shows the token on the occasion that `context` names, at most [`SHOWN_LEN_MAX`].
    /// [`TokenVerifier::check_shown`] reads them.
    pub fn show(&self, context: &[u8]) -> Vec<u8> {
        let proof = proof(self.secret(), context).finalize().into_bytes();
        [self.public(), &proof[..PROOF_LEN]].concat()
    }
}

impl TokenVerifier {
    /// Checks a token that was [shown](ConnectToken::show) to the server with this key on the occasion that `context` names. It is not
    /// counted as used: how often it may be shown before it expires is the caller's to decide.
    ///
    /// It costs two operations with public keys, unless something cheaper is wrong already.
    ///
    /// ```
    /// use muse_transport::token::{TokenError, TokenGrant, TokenIssuer, TokenVerifier};
    /// use muse_transport::{SeededEntropy, ServerKey};
    /// let mut entropy = SeededEntropy::danger_seeded(1);
    /// let key = ServerKey::generate(&mut entropy);
    /// let issuer = TokenIssuer::generate(0xCAFE, 1, &mut entropy);
    /// let grant = TokenGrant::new(42, key.public(), "203.0.113.7:7788".parse()?);
    /// let token = issuer.issue(&grant, 1_700_000_000, &mut entropy)?;
    /// let mut verifier = TokenVerifier::new();
    /// verifier.add_key(1, &issuer.public_key())?;
    ///
    /// let shown = token.show(b"this occasion");
    /// let mut check = |context: &[u8]| verifier.check_shown(&shown, context, 0xCAFE, &key, 1_700_000_030, &mut entropy);
    /// assert_eq!(check(b"this occasion")?.account, 42);
    /// assert_eq!(check(b"another one"), Err(TokenError::Invalid));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_shown(
        &self,
        shown: &[u8],
        context: &[u8],
        protocol_id: u64,
        server_key: &ServerKey,
        unix_now_s: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<TokenHolder, TokenError> {
        let (public, code) = shown
            .split_last_chunk::<PROOF_LEN>()
            .ok_or(TokenError::Invalid)?;
        let checked = self.check(public, protocol_id, server_key, unix_now_s, &|_| false)?;
        self.verify(&checked)?;
        let verified = checked.open(server_key, entropy)?;
        proof(&verified.secret, context)
            .verify_truncated_left(code)
            .map_err(|_| TokenError::Invalid)?;
        Ok(TokenHolder {
            id: verified.id,
            account: verified.account,
            user_data: verified.user_data,
        })
    }
}

fn proof(secret: &[u8; SECRET_LEN], context: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(LABEL);
    mac.update(context);
    mac
}

/// Most bytes of a token that is shown.
pub const SHOWN_LEN_MAX: usize = PUBLIC_LEN_MAX + PROOF_LEN;
const PROOF_LEN: usize = 16;
/// So that the code means nothing elsewhere.
const LABEL: &[u8] = b"muse shown token 1";
