//! Tokens at the door: good ones once, bad ones never, and the holder again while the session lives.

use super::*;
use crate::token::TokenError;

fn with_tokens() -> Server {
    Server::new(|config| {
        config.verifier = Some(verifier());
        config.token_required = true;
        config.limits = unlimited();
    })
}

fn present(
    server: &mut Server,
    token: Box<ConnectToken>,
    seed: u64,
) -> Result<Box<Established>, Refusal> {
    match run(&mut connecting(Trust::Token(token), seed), server) {
        Progress::Established(established) => Ok(established),
        other => Err(refused(other)),
    }
}

fn refusal_of(server: &mut Server, token: Box<ConnectToken>) -> Option<Refusal> {
    let refusal = present(server, token, 1).err();
    assert!(server.connections.is_empty());
    refusal
}

fn issue(issuer: &TokenIssuer, grant: &TokenGrant) -> Box<ConnectToken> {
    Box::new(
        issuer
            .issue(grant, UNIX_NOW_S, &mut SeededEntropy::danger_seeded(4))
            .expect("within the limits"),
    )
}

#[test]
fn without_a_token_nobody_gets_in_where_one_is_required() {
    let refusal = refused(run(&mut connecting(pinned(), 1), &mut with_tokens()));
    assert_eq!(refusal, Refusal::TokenRequired);
}

#[test]
fn a_server_that_knows_no_master_refuses_tokens() {
    let mut server = Server::new(|_| {});
    assert_eq!(
        refusal_of(&mut server, token(1)),
        Some(Refusal::Token(TokenError::Invalid))
    );
}

#[test]
fn a_token_is_used_once() {
    let mut server = with_tokens();
    assert!(present(&mut server, token(9), 1).is_ok());
    server.live_tokens.clear();
    assert_eq!(
        present(&mut server, token(9), 2).err(),
        Some(Refusal::Token(TokenError::Used))
    );
    assert!(
        present(&mut server, token(10), 3).is_ok(),
        "another token is another matter"
    );
}

#[test]
fn its_holder_resumes_while_the_session_lives_even_after_expiry() {
    let mut server = with_tokens();
    let first = present(&mut server, token(9), 1);
    server.unix_now_s += 3_600;
    let mut again = present(&mut server, token(9), 2).expect("the session lives");
    assert!(first.is_ok() && server.connections[1].resumes && !server.connections[0].resumes);
    assert_keys_agree(&mut again.keys, &mut server.connections[1].keys);
    server.live_tokens.clear();
    assert_eq!(
        present(&mut server, token(9), 3).err(),
        Some(Refusal::Token(TokenError::Expired))
    );
}

#[test]
fn who_only_saw_the_token_does_not_get_in_and_does_not_spend_it() {
    let mut server = with_tokens();
    let mut bytes = token(9).to_bytes().to_vec();
    bytes[1..33].fill(0xaa);
    let stolen = Box::new(ConnectToken::from_bytes(&bytes).expect("the same public part"));
    assert_eq!(
        refusal_of(&mut server, stolen.clone()),
        Some(Refusal::WrongKey)
    );
    assert!(present(&mut server, token(9), 2).is_ok());
    assert_eq!(
        present(&mut server, stolen, 3).err(),
        Some(Refusal::WrongKey),
        "nor do they take over the session"
    );
}

#[test]
fn expiry_is_to_the_second_and_the_future_is_not_yet() {
    for (unix_now_s, expected) in [
        (UNIX_NOW_S + 30, None),
        (UNIX_NOW_S + 31, Some(Refusal::Token(TokenError::Expired))),
        (UNIX_NOW_S - 60, None),
        (
            UNIX_NOW_S - 61,
            Some(Refusal::Token(TokenError::NotYetValid)),
        ),
    ] {
        let mut server = with_tokens();
        server.unix_now_s = unix_now_s;
        assert_eq!(
            present(&mut server, token(1), 1).err(),
            expected,
            "{unix_now_s}"
        );
    }
}

#[test]
fn a_token_is_for_its_server_address_and_protocol() {
    let wrong_key = TokenGrant::new(
        1,
        ServerKey::from_bytes([0x53; 32]).public(),
        server_address(),
    );
    let wrong_address = TokenGrant::new(1, server_key().public(), address("203.0.113.6:9000"));
    for grant in [wrong_key, wrong_address.clone()] {
        let refusal = refusal_of(&mut with_tokens(), issue(&issuer(), &grant));
        assert_eq!(refusal, Some(Refusal::Token(TokenError::WrongServer)));
    }
    let one_of_two = wrong_address.server(address("[::ffff:203.0.113.5]:9000"));
    assert!(present(&mut with_tokens(), issue(&issuer(), &one_of_two), 1).is_ok());
    let other_game = TokenIssuer::from_bytes(PROTOCOL + 1, 1, &[0x15; 32]);
    let refusal = refusal_of(&mut with_tokens(), issue(&other_game, &grant()));
    assert_eq!(refusal, Some(Refusal::Token(TokenError::OtherProtocol)));
}

#[test]
fn keys_rotate() {
    let (old, new) = (issuer(), TokenIssuer::from_bytes(PROTOCOL, 2, &[0x16; 32]));
    let mut server = with_tokens();
    assert_eq!(
        refusal_of(&mut server, issue(&new, &grant())),
        Some(Refusal::Token(TokenError::UnknownKey))
    );
    let verifier = server
        .listener
        .verifier_mut()
        .expect("this server checks tokens");
    verifier
        .add_key(2, &new.public_key())
        .expect("a public key");
    assert!(
        present(&mut server, token(5), 1).is_ok(),
        "the old key still holds"
    );
    assert!(present(&mut server, issue(&new, &grant()), 2).is_ok());
    let verifier = server
        .listener
        .verifier_mut()
        .expect("this server checks tokens");
    assert!(verifier.remove_key(old.key_id()));
    assert_eq!(
        present(&mut server, token(6), 3).err(),
        Some(Refusal::Token(TokenError::UnknownKey))
    );
    let forger = TokenIssuer::from_bytes(PROTOCOL, 2, &[0x17; 32]);
    assert_eq!(
        present(&mut server, issue(&forger, &grant()), 4).err(),
        Some(Refusal::Token(TokenError::Invalid))
    );
}

#[test]
fn any_changed_bit_of_a_token_is_noticed() {
    let bytes = token(9).to_bytes().to_vec();
    let mut server = with_tokens();
    let mut unreadable = 0;
    for bit in 33 * 8..bytes.len() * 8 {
        let mut forged = bytes.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let Ok(forged) = ConnectToken::from_bytes(&forged) else {
            unreadable += 1;
            continue;
        };
        let refusal = refusal_of(&mut server, Box::new(forged));
        assert!(
            matches!(refusal, Some(Refusal::Token(_))),
            "bit {bit}: {refusal:?}"
        );
    }
    assert!(
        unreadable < 200,
        "{unreadable} changes were not even tokens"
    );
    assert!(
        present(&mut server, token(9), 1).is_ok(),
        "nothing of that spent the real one"
    );
}

#[test]
fn a_server_that_cannot_remember_more_tokens_says_so() {
    let mut server = Server::new(|config| config.verifier = Some(verifier().used_tokens_max(2)));
    assert!(present(&mut server, token(1), 1).is_ok());
    assert!(present(&mut server, token(2), 2).is_ok());
    let mut client = connecting(Trust::Token(token(3)), 3);
    let hello = transmit(&mut client, Instant::ZERO);
    let cookie = server
        .handle(Instant::ZERO, client_address(), &hello)
        .expect("a cookie");
    client.handle(Instant::ZERO, &cookie);
    let connect = transmit(&mut client, Instant::ZERO);
    let mut reply = [0; REPLY_LEN_MAX];
    let mut knock = |unix_now_s: u64| {
        let outcome = server.listener.handle(
            Instant::ZERO,
            unix_now_s,
            client_address(),
            &connect,
            &mut reply,
            |_| false,
        );
        let Outcome::Request(mut request) = outcome else {
            panic!("the token itself is good")
        };
        server
            .listener
            .accept(&mut request, SERVER_ID, b"", &mut reply)
            .map(|accepted| accepted.len)
    };
    assert_eq!(knock(UNIX_NOW_S), Err(Refusal::Busy));
    assert_eq!(
        knock(UNIX_NOW_S + 30),
        Err(Refusal::Busy),
        "the others have not expired yet"
    );
}

#[test]
fn two_requests_with_one_token_become_one_connection() {
    let mut server = with_tokens();
    let mut requests = Vec::new();
    for seed in 1..=2 {
        let mut client = connecting(Trust::Token(token(9)), seed);
        let hello = transmit(&mut client, Instant::ZERO);
        let cookie = server
            .handle(Instant::ZERO, client_address(), &hello)
            .expect("a cookie");
        client.handle(Instant::ZERO, &cookie);
        let connect = transmit(&mut client, Instant::ZERO);
        let mut reply = [0; REPLY_LEN_MAX];
        match server.listener.handle(
            Instant::ZERO,
            UNIX_NOW_S,
            client_address(),
            &connect,
            &mut reply,
            |_| false,
        ) {
            Outcome::Request(request) => requests.push(request),
            Outcome::Nothing | Outcome::Reply(_) => panic!("nothing was accepted yet"),
        }
    }
    let mut reply = [0; REPLY_LEN_MAX];
    let results: Vec<_> = requests
        .into_iter()
        .map(|mut request| {
            server
                .listener
                .accept(&mut request, SERVER_ID, b"", &mut reply)
                .map(|_| ())
        })
        .collect();
    assert_eq!(results, [Ok(()), Err(Refusal::Token(TokenError::Used))]);
}
