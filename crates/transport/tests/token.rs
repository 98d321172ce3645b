//! Connect tokens as a master and a client see them: limits, bytes, text, and what they keep to themselves.

use std::net::SocketAddr;

use muse_transport::token::{
    CONNECT_TOKEN_LEN_MAX, ConnectToken, InvalidToken, IssueError, KeyError, LIFETIME_S_MAX,
    SERVERS_MAX, TokenGrant, TokenIssuer, TokenVerifier, USER_DATA_LEN_MAX,
};
use muse_transport::{SeededEntropy, ServerKey, ServerPublicKey};
use proptest::prelude::*;

const PROTOCOL: u64 = 7;
const UNIX_NOW_S: u64 = 1_800_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn grant() -> TokenGrant {
    let server = ServerKey::from_bytes([1; 32]).public();
    TokenGrant::new(0x0acc_0000_0000_0042, server, address("203.0.113.5:9000"))
}

fn issuer() -> TokenIssuer {
    TokenIssuer::from_bytes(PROTOCOL, 3, &[2; 32])
}

fn issue(grant: &TokenGrant, seed: u64) -> Result<ConnectToken, IssueError> {
    issuer().issue(grant, UNIX_NOW_S, &mut SeededEntropy::danger_seeded(seed))
}

#[test]
fn a_token_survives_bytes_and_text() {
    let second = address("[2001:db8::5]:9001");
    let token = issue(
        &grant().server(second).user_data(b"squad 9").lifetime_s(15),
        1,
    )
    .expect("within the limits");
    for again in [
        ConnectToken::from_bytes(&token.to_bytes()),
        ConnectToken::from_text(&token.to_text()),
    ] {
        let again = again.expect("what was just written");
        assert_eq!(*again.to_bytes(), *token.to_bytes());
        assert_eq!(again.id(), token.id());
        assert_eq!(again.servers(), [address("203.0.113.5:9000"), second]);
        assert_eq!(again.server_key(), ServerKey::from_bytes([1; 32]).public());
        assert_eq!(again.expires_s(), UNIX_NOW_S + 15);
    }
    let text = token.to_text();
    assert!(
        text.bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_')
    );
}

#[test]
fn every_limit_holds() {
    assert_eq!(
        issue(&grant().user_data(&[0; USER_DATA_LEN_MAX + 1]), 1).err(),
        Some(IssueError::UserData)
    );
    assert_eq!(
        issue(&grant().lifetime_s(0), 1).err(),
        Some(IssueError::Lifetime)
    );
    assert_eq!(
        issue(&grant().lifetime_s(LIFETIME_S_MAX + 1), 1).err(),
        Some(IssueError::Lifetime)
    );
    let mut many = grant()
        .user_data(&[7; USER_DATA_LEN_MAX])
        .lifetime_s(LIFETIME_S_MAX);
    for port in 1..SERVERS_MAX as u16 {
        many = many.server(SocketAddr::new(address("[2001:db8::1]:1").ip(), port));
    }
    let largest = issue(&many, 1).expect("at the limits");
    assert!(largest.to_bytes().len() <= CONNECT_TOKEN_LEN_MAX);
    const { assert!(CONNECT_TOKEN_LEN_MAX <= 1_024) };
    assert!(ConnectToken::from_text(&largest.to_text()).is_ok());
    assert_eq!(
        issue(&many.server(address("203.0.113.5:1")), 1).err(),
        Some(IssueError::Servers)
    );
}

#[test]
fn what_travels_shows_neither_account_nor_user_data_nor_secret() {
    let token = issue(&grant().user_data(b"a very private note"), 1).expect("within the limits");
    let bytes = token.to_bytes();
    let (secret, public) = bytes[1..].split_at(32);
    let shows = |needle: &[u8]| public.windows(needle.len()).any(|window| window == needle);
    assert!(!shows(b"private note"));
    assert!(!shows(&0x0acc_0000_0000_0042_u64.to_le_bytes()));
    assert!(!shows(&secret[..8]));
    let secret_digits: String = secret[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(!format!("{token:?}").contains(&secret_digits));
    assert!(!format!("{:?}", ServerKey::from_bytes([0xab; 32])).contains("abab"));
}

#[test]
fn every_token_is_its_own() {
    let (one, two) = (
        issue(&grant(), 1).expect("valid"),
        issue(&grant(), 2).expect("valid"),
    );
    assert_ne!(one.id(), two.id());
    assert_ne!(one.to_bytes()[1..33], two.to_bytes()[1..33]);
    assert_eq!(
        one.to_text(),
        issue(&grant(), 1).expect("valid").to_text(),
        "and a simulation repeats itself"
    );
}

#[test]
fn keys_are_kept_and_read_back() {
    let issuer = issuer();
    let again = TokenIssuer::from_bytes(PROTOCOL, issuer.key_id(), &issuer.to_bytes());
    assert_eq!(again.public_key(), issuer.public_key());
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(5));
    let text = key.public().to_string();
    assert_eq!(text.parse::<ServerPublicKey>(), Ok(key.public()));
    for wrong in [
        "",
        "zz",
        &text[1..],
        &text.replace(|letter: char| letter.is_ascii_digit(), "g"),
    ] {
        assert!(wrong.parse::<ServerPublicKey>().is_err(), "{wrong}");
    }
}

#[test]
fn a_verifier_trusts_few_and_only_real_keys() {
    let mut verifier = TokenVerifier::new();
    assert_eq!(
        verifier.add_key(1, &[0; 32]),
        Err(KeyError::Invalid),
        "a weak key"
    );
    for key_id in 0..16 {
        let key = TokenIssuer::from_bytes(PROTOCOL, key_id, &[key_id as u8; 32]).public_key();
        assert_eq!(verifier.add_key(key_id, &key), Ok(()));
    }
    assert_eq!(
        verifier.add_key(16, &issuer().public_key()),
        Err(KeyError::TooMany)
    );
    assert_eq!(
        verifier.add_key(15, &issuer().public_key()),
        Ok(()),
        "in place of the one with that number"
    );
    assert!(verifier.remove_key(3) && !verifier.remove_key(3));
    assert_eq!(verifier.used_tokens(), 0);
}

proptest! {
    #[test]
    fn no_bytes_or_text_make_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1_100), text in ".{0,1400}") {
        let _ = ConnectToken::from_bytes(&bytes);
        prop_assert_eq!(ConnectToken::from_text(&text).err(), Some(InvalidToken));
    }

    #[test]
    fn a_changed_token_is_itself_or_nothing(index in 0_usize..280, change in 1_u8..) {
        let mut bytes = issue(&grant(), 1).expect("valid").to_bytes().to_vec();
        let index = index % bytes.len();
        bytes[index] ^= change;
        if let Ok(token) = ConnectToken::from_bytes(&bytes) {
            prop_assert_eq!(&token.to_bytes()[..], &bytes[..]);
        }
    }
}
