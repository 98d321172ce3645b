//! Tokens and passwords: what is random, what is hashed, what is signed.
//!
//! Access tokens are signed and short-lived, so that no request needs a lookup to know whose it is; refresh tokens and device keys are
//! stored as hashes; a game server's credential follows from its number, so that it holds over a restart of the master. Nothing
//! here is ever logged.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use muse_master_client::{AccountId, ServerId};
use muse_transport::Entropy;
use muse_wire::{Duration, Instant};
use ring::{digest, hmac};
use thiserror::Error;

/// Makes and checks what masters sign for themselves.
#[derive(Debug)]
pub struct Keys {
    key: hmac::Key,
}

/// The contents of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The account that it belongs to.
    pub account: AccountId,
    /// Void if the account has signed out everywhere since.
    pub generation: u64,
}

/// A token is not one of ours, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the token is not valid")]
pub struct InvalidToken;

impl Keys {
    /// Keys from the secret that all masters share, in hexadecimal.
    pub fn new(secret: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        }
    }

    /// An access token of a quarter of an hour.
    pub fn access(&self, access: Access, now: Instant) -> String {
        let expires_s = (now + ACCESS_LIFE).as_micros() / 1_000_000;
        let body = format!("{}.{}.{expires_s}", access.account, access.generation);
        let tag = hex(hmac::sign(&self.key, format!("access.{body}").as_bytes()).as_ref());
        format!("{body}.{tag}")
    }

    /// Returns the contents of a token, if it is ours and still holds.
    ///
    /// ```
    /// use muse_master::secrets::{Access, Keys};
    /// use muse_master_client::AccountId;
    /// use muse_wire::Instant;
    /// let keys = Keys::new("secret");
    /// let access = Access { account: AccountId(7), generation: 0 };
    /// let token = keys.access(access, Instant::ZERO);
    /// assert_eq!(keys.check_access(&token, Instant::from_secs(60)), Ok(access));
    /// assert!(keys.check_access(&token, Instant::from_secs(3_600)).is_err());
    /// ```
    pub fn check_access(&self, token: &str, now: Instant) -> Result<Access, InvalidToken> {
        let (body, tag) = token.rsplit_once('.').ok_or(InvalidToken)?;
        self.verify(&format!("access.{body}"), tag)?;
        let mut parts = body.split('.').map(str::parse::<u64>);
        let mut next = || parts.next().ok_or(InvalidToken)?.map_err(|_| InvalidToken);
        let (account, generation, expires_s) = (next()?, next()?, next()?);
        if now >= Instant::from_secs(expires_s) {
            return Err(InvalidToken);
        }
        let account = AccountId(account);
        Ok(Access {
            account,
            generation,
        })
    }

    /// The credential of a game server.
    pub fn server(&self, server: ServerId) -> String {
        let tag = hmac::sign(&self.key, format!("server.{server}").as_bytes());
        format!("{server}.{}", hex(tag.as_ref()))
    }

    /// Returns the server that a credential belongs to.
    pub fn check_server(&self, credential: &str) -> Result<ServerId, InvalidToken> {
        let (server, tag) = credential.split_once('.').ok_or(InvalidToken)?;
        self.verify(&format!("server.{server}"), tag)?;
        server.parse().map(ServerId).map_err(|_| InvalidToken)
    }

    /// A token of an operator.
    pub fn operator(&self, name: &str, generation: u64, now: Instant) -> String {
        let expires_s = (now + OPERATOR_LIFE).as_micros() / 1_000_000;
        let body = format!("{name}.{generation}.{expires_s}");
        let tag = hex(hmac::sign(&self.key, format!("operator.{body}").as_bytes()).as_ref());
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
        hmac::verify(&self.key, body.as_bytes(), &tag).map_err(|_| InvalidToken)
    }
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
        let credential = keys.server(ServerId(5));
        assert_eq!(keys.check_server(&credential), Ok(ServerId(5)));
        assert_eq!(
            keys.check_access(&credential, Instant::ZERO),
            Err(InvalidToken)
        );
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
