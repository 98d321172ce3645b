//! Tokens and passwords: what is random, what is hashed, what is signed.
//!
//! Access tokens are signed and short-lived, so that no request needs a lookup to know whose it is; refresh tokens and device keys are
//! stored as hashes; a game server's credential is signed too, so that it holds over a restart of the master. Nothing
//! here is ever logged.

use std::sync::{PoisonError, RwLock};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use muse_master_client::messages::Claim;
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_transport::Entropy;
use muse_wire::{Duration, Instant};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Makes and checks what masters sign for themselves.
#[derive(Debug)]
pub struct Keys {
    /// The first one signs; what any of them signed is valid.
    keys: RwLock<Vec<hmac::Key>>,
}

/// The contents of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account that it belongs to.
    pub account: AccountId,
    /// Void if the account has signed out everywhere since.
    pub generation: u64,
    /// The sign-in that it follows from.
    pub sign_in: SignInId,
}

/// One use of a device key or a password, and all tokens that follow from it by refreshing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SignInId(pub u64);

impl SignInId {
    /// Nobody's.
    pub const NONE: Self = Self(0);

    /// A new one, that nobody else has.
    pub(crate) fn fresh() -> Self {
        Self(random_name().max(1))
    }
}

/// The contents of a game server's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// The server that it belongs to.
    pub server: ServerId,
    /// The time when it was issued.
    pub issued: Instant,
}

/// The key of the MAC that each note between masters carries.
#[derive(Clone, Debug)]
pub struct NoteKey(hmac::Key);

impl NoteKey {
    /// The key of the notes about this subject, from a secret that all masters of one deployment share.
    pub fn new(secret: &str, subject: &str) -> Self {
        let derived = hmac::sign(&hmac_key(secret), format!("notes.{subject}").as_bytes());
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }
}

impl AsRef<hmac::Key> for NoteKey {
    fn as_ref(&self) -> &hmac::Key {
        &self.0
    }
}

/// A token is not one of ours, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the token is not valid")]
pub struct InvalidToken;

impl Keys {
    /// A key from the secret that all masters share, in hexadecimal.
    pub fn new(secret: &str) -> Self {
        Self {
            keys: RwLock::new(vec![hmac_key(secret)]),
        }
    }

    /// Replaces the secrets: the first one signs from now on, and what any of them signed is valid.
    ///
    /// ```
    /// use muse_master::secrets::Keys;
    /// use muse_master_client::ServerId;
    /// let keys = Keys::new("old");
    /// # use muse_wire::Instant;
    /// let credential = keys.server(ServerId(5), Instant::ZERO);
    /// keys.replace(&["new", "old"]);
    /// assert!(keys.check_server(&credential).is_ok());
    /// assert_ne!(keys.server(ServerId(5), Instant::ZERO), credential);
    /// keys.replace(&["newer", "new"]);
    /// assert!(keys.check_server(&credential).is_err());
    /// ```
    pub fn replace(&self, secrets: &[&str]) {
        if !secrets.is_empty() {
            let keys = secrets.iter().map(|secret| hmac_key(secret)).collect();
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        }
    }

    fn sign(&self, text: &str) -> String {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        hex(hmac::sign(&keys[0], text.as_bytes()).as_ref())
    }

    /// An access token of a quarter of an hour.
    pub fn access(&self, access: Access, now: Instant) -> String {
        let expires_s = (now + ACCESS_LIFE).as_micros() / 1_000_000;
        let Access {
            account,
            generation,
            sign_in: SignInId(sign_in),
        } = access;
        let body = format!("{account}.{generation}.{sign_in}.{expires_s}");
        let tag = self.sign(&format!("access.{body}"));
        format!("{body}.{tag}")
    }

    /// Returns the contents of a token, if it is ours and still holds.
    ///
    /// ```
    /// use muse_master::secrets::{Access, Keys, SignInId};
    /// use muse_master_client::AccountId;
    /// use muse_wire::Instant;
    /// let keys = Keys::new("secret");
    /// let access = Access { account: AccountId(7), generation: 0, sign_in: SignInId(5) };
    /// let token = keys.access(access, Instant::ZERO);
    /// assert_eq!(keys.check_access(&token, Instant::from_secs(60)), Ok(access));
    /// assert!(keys.check_access(&token, Instant::from_secs(3_600)).is_err());
    /// ```
    pub fn check_access(&self, token: &str, now: Instant) -> Result<Access, InvalidToken> {
        let (body, tag) = token.rsplit_once('.').ok_or(InvalidToken)?;
        self.verify(&format!("access.{body}"), tag)?;
        let mut parts = body.split('.').map(str::parse::<u64>);
        let mut next = || parts.next().ok_or(InvalidToken)?.map_err(|_| InvalidToken);
        let (account, generation) = (next()?, next()?);
        let (sign_in, expires_s) = (next()?, next()?);
        if now >= Instant::from_secs(expires_s) {
            return Err(InvalidToken);
        }
        Ok(Access {
            account: AccountId(account),
            generation,
            sign_in: SignInId(sign_in),
        })
    }

    /// The credential of a game server that was just started: it must register before [`ENROL_LIFE`] has passed.
    pub fn server(&self, server: ServerId, now: Instant) -> String {
        let body = format!("{server}.{}", now.as_micros());
        let tag = self.sign(&format!("server.{body}"));
        format!("{body}.{tag}")
    }

    /// Returns the contents of a game server's credential, if it is ours. Whether it still holds is for its user to judge.
    pub fn check_server(&self, credential: &str) -> Result<Enrolment, InvalidToken> {
        let (body, tag) = credential.rsplit_once('.').ok_or(InvalidToken)?;
        self.verify(&format!("server.{body}"), tag)?;
        let (server, issued_us) = body.split_once('.').ok_or(InvalidToken)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| InvalidToken);
        Ok(Enrolment {
            server: ServerId(number(server)?),
            issued: Instant::from_micros(number(issued_us)?),
        })
    }

    /// The proof that a master gave a match to a server.
    pub fn claim(&self, server: ServerId, match_id: MatchId) -> String {
        self.sign(&format!("claim.{server}.{match_id}"))
    }

    /// True if a master gave this match to this server.
    pub fn check_claim(&self, server: ServerId, claim: &Claim) -> bool {
        let body = format!("claim.{server}.{}", claim.match_id);
        self.verify(&body, &claim.proof).is_ok()
    }

    /// A token of an operator.
    pub fn operator(&self, name: &str, generation: u64, now: Instant) -> String {
        let expires_s = (now + OPERATOR_LIFE).as_micros() / 1_000_000;
        let body = format!("{name}.{generation}.{expires_s}");
        let tag = self.sign(&format!("operator.{body}"));
        format!("{body}.{tag}")
    }

    /// The name and the generation of an operator's token, if it is ours and still holds.
    pub fn check_operator(&self, token: &str, now: Instant) -> Result<(String, u64), InvalidToken> {
        let (body, tag) = token.rsplit_once('.').ok_or(InvalidToken)?;
        self.verify(&format!("operator.{body}"), tag)?;
        let mut parts = body.splitn(3, '.');
        let name = parts.next().ok_or(InvalidToken)?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (generation, expires_s) = number().zip(number()).ok_or(InvalidToken)?;
        if now >= Instant::from_secs(expires_s) {
            return Err(InvalidToken);
        }
        Ok((name.to_owned(), generation))
    }

    fn verify(&self, body: &str, tag: &str) -> Result<(), InvalidToken> {
        let tag = unhex(tag).ok_or(InvalidToken)?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut verified = keys
            .iter()
            .map(|key| hmac::verify(key, body.as_bytes(), &tag));
        match verified.any(|verified| verified.is_ok()) {
            true => Ok(()),
            false => Err(InvalidToken),
        }
    }
}

fn hmac_key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

/// The system's randomness, for connect tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// Returns the form in which a token or a device key is stored. They are random, so a plain hash is enough.
pub fn hashed(token: &str) -> String {
    hex(digest::digest(&digest::SHA256, token.as_bytes()).as_ref())
}

/// The refresh token that follows from another one by a salt: whoever has the one and not the store cannot make it.
pub(crate) fn successor(token: &str, salt: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt.as_bytes());
    hex(hmac::sign(&key, format!("refresh.{token}").as_bytes()).as_ref())
}

/// 32 random bytes in hexadecimal.
pub fn random_text() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    hex(&bytes)
}

/// Returns a number that nobody else has, small enough for JavaScript to read exactly.
pub(crate) fn random_name() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from_le_bytes(bytes) >> 11
}

/// Six letters that are hard to confuse.
pub fn room_code() -> String {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    let letter = |byte: u8| char::from(LETTERS[usize::from(byte) % LETTERS.len()]);
    bytes.into_iter().map(letter).collect()
}

/// Returns bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Reads hexadecimal of either case; none if it is something else.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

/// Life of an access token.
pub const ACCESS_LIFE: Duration = Duration::from_secs(900);
/// Time for a game server to register for the first time.
pub const ENROL_LIFE: Duration = Duration::from_secs(60);
/// Life of an operator's token.
pub const OPERATOR_LIFE: Duration = Duration::from_secs(8 * 3_600);
/// Life of a refresh token.
pub const REFRESH_LIFE: Duration = Duration::from_secs(30 * 86_400);
/// Without I and O; 24 of them give 190 million codes.
const LETTERS: &[u8; 24] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_only_as_it_was_made() {
        let keys = Keys::new("one");
        let access = Access {
            account: AccountId(7),
            generation: 3,
            sign_in: SignInId(9),
        };
        let token = keys.access(access, Instant::ZERO);
        assert_eq!(keys.check_access(&token, Instant::ZERO), Ok(access));
        let other = token.replacen('7', "8", 1);
        assert_eq!(keys.check_access(&other, Instant::ZERO), Err(InvalidToken));
        assert_eq!(
            Keys::new("two").check_access(&token, Instant::ZERO),
            Err(InvalidToken)
        );
        for nonsense in ["", ".", "a.b.c.d", "1.2.3.", "1.2.3.zz", "é.é"] {
            assert_eq!(
                keys.check_access(nonsense, Instant::ZERO),
                Err(InvalidToken)
            );
            assert_eq!(keys.check_server(nonsense), Err(InvalidToken));
            assert!(keys.check_operator(nonsense, Instant::ZERO).is_err());
        }
        let credential = keys.server(ServerId(5), Instant::from_secs(9));
        let enrolment = Enrolment {
            server: ServerId(5),
            issued: Instant::from_secs(9),
        };
        assert_eq!(keys.check_server(&credential), Ok(enrolment));
        let older = credential.replacen("9000000", "8000000", 1);
        assert_eq!(keys.check_server(&older), Err(InvalidToken));
        assert_eq!(
            keys.check_access(&credential, Instant::ZERO),
            Err(InvalidToken)
        );
    }

    #[test]
    fn a_claim_is_one_servers_to_one_match() {
        let keys = Keys::new("one");
        let proof = keys.claim(ServerId(5), MatchId(8));
        let claim = |match_id, proof: &str| Claim {
            match_id: MatchId(match_id),
            proof: proof.to_owned(),
        };
        assert!(keys.check_claim(ServerId(5), &claim(8, &proof)));
        assert!(!keys.check_claim(ServerId(6), &claim(8, &proof)));
        assert!(!keys.check_claim(ServerId(5), &claim(9, &proof)));
        assert!(!keys.check_claim(ServerId(5), &claim(8, "")));
        assert!(!Keys::new("two").check_claim(ServerId(5), &claim(8, &proof)));
    }

    #[test]
    fn an_operators_token_is_no_players_token() {
        let keys = Keys::new("one");
        let token = keys.operator("ada", 2, Instant::ZERO);
        let known = keys.check_operator(&token, Instant::ZERO);
        assert_eq!(known, Ok(("ada".to_owned(), 2)));
        assert!(keys.check_access(&token, Instant::ZERO).is_err());
        let late = Instant::ZERO + OPERATOR_LIFE;
        assert_eq!(keys.check_operator(&token, late), Err(InvalidToken));
        let access = Access {
            account: AccountId(7),
            generation: 0,
            sign_in: SignInId(9),
        };
        let access = keys.access(access, Instant::ZERO);
        assert!(keys.check_operator(&access, Instant::ZERO).is_err());
    }

    #[test]
    fn codes_are_six_letters() {
        let code = room_code();
        assert!(code.len() == 6 && code.bytes().all(|byte| LETTERS.contains(&byte)));
    }

    #[test]
    fn hexadecimal_reads_what_it_wrote() {
        assert_eq!(unhex(&hex(&[0, 255, 16])), Some(vec![0, 255, 16]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
        assert_eq!(unhex("+f"), None);
        assert_eq!(unhex("fF"), Some(vec![255]));
    }
}
