//! The exchange as it should go, and each way in which a server says no.

use super::*;

#[test]
fn a_pinned_key_lets_in_and_keys_agree() {
    let mut server = Server::new(|_| {});
    let mut client = connecting(pinned(), 1);
    let mut established = established(run(&mut client, &mut server));
    let connection = &mut server.connections[0];
    assert_keys_agree(&mut established.keys, &mut connection.keys);
    assert_eq!(established.remote_connection_id, SERVER_ID);
    assert_eq!(connection.remote_connection_id, CLIENT_ID);
    assert_eq!(established.settings, b"settings");
    assert_eq!(established.keys.send.tag_len(), 16);
    assert_eq!(connection.payload, b"let me in");
    assert_eq!((connection.account, connection.resumes), (None, false));
    assert_eq!(server.listener.counters().accepted, 1);
}

#[test]
fn a_token_lets_in_with_account_and_user_data() {
    for insecure in [false, true] {
        let mut server = Server::new(|config| {
            config.verifier = Some(verifier());
            config.token_required = true;
            config.danger_insecure = insecure;
        });
        let trust = if insecure {
            Trust::DangerInsecure(Some(token(9)))
        } else {
            Trust::Token(token(9))
        };
        let mut established = established(run(&mut connecting(trust, 1), &mut server));
        let connection = &mut server.connections[0];
        assert_keys_agree(&mut established.keys, &mut connection.keys);
        assert_eq!((connection.account, connection.resumes), (Some(42), false));
        assert_eq!(connection.user_data, b"blue team");
    }
}

#[test]
fn without_protection_the_same_packets_flow() {
    let mut server = Server::new(|config| config.danger_insecure = true);
    let mut established = established(run(
        &mut connecting(Trust::DangerInsecure(None), 1),
        &mut server,
    ));
    assert_keys_agree(&mut established.keys, &mut server.connections[0].keys);
    assert_eq!(established.keys.send.tag_len(), 8);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || {
        let mut server = Server::new(|_| {});
        let mut client = connecting(pinned(), 5);
        established(run(&mut client, &mut server));
        (
            client.connect,
            server.accepts.into_values().collect::<Vec<_>>(),
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn no_client_gets_in_unprotected_unless_the_server_says_danger() {
    let mut server = Server::new(|_| {});
    let refusal = refused(run(
        &mut connecting(Trust::DangerInsecure(None), 1),
        &mut server,
    ));
    assert_eq!(refusal, Refusal::Insecure);
}

#[test]
fn a_wrong_pinned_key_is_named() {
    let mut server = Server::new(|config| config.key = ServerKey::from_bytes([0x52; 32]));
    assert_eq!(
        refused(run(&mut connecting(pinned(), 1), &mut server)),
        Refusal::WrongKey
    );
    assert!(server.connections.is_empty());
}

#[test]
fn a_version_mismatch_names_both() {
    let mut server = Server::new(|_| {});
    let mut entropy = SeededEntropy::danger_seeded(1);
    let mut client =
        Connecting::with_version(&config(pinned()), 7, Instant::ZERO, &mut entropy).expect("valid");
    let refusal = refused(run(&mut client, &mut server));
    assert_eq!(
        refusal,
        Refusal::Version {
            client: 7,
            server_min: 1,
            server_max: 1
        }
    );
    assert_eq!(
        refusal.to_string(),
        "the server speaks versions 1 to 1 of the protocol, the client 7"
    );
}

#[test]
fn a_schema_mismatch_names_both() {
    let mut server = Server::new(|config| config.schema_hash = 0xbeef);
    let refusal = refused(run(&mut connecting(pinned(), 1), &mut server));
    assert_eq!(
        refusal.to_string(),
        "what both sides must share differs: the server has 000000000000beef, the client 0123456789abcdef; build both from the same messages, channels and kinds"
    );
}

fn denied(text: &str) -> Refusal {
    Refusal::Denied {
        code: 0xBEEF,
        text: text.to_owned(),
    }
}

#[test]
fn the_application_can_say_no_and_why() {
    let long = "ü".repeat(100);
    for (decision, expected) in [
        (Refusal::Full, Refusal::Full),
        (Refusal::Busy, Refusal::Busy),
        (denied("banned until Friday"), denied("banned until Friday")),
        (denied(&long), denied(&"ü".repeat(64))),
        (Refusal::Other(200), Refusal::Other(200)),
    ] {
        let mut server = Server::new(|_| {});
        server.decision = Some(decision);
        assert_eq!(
            refused(run(&mut connecting(pinned(), 1), &mut server)),
            expected
        );
    }
}

#[test]
fn another_protocol_is_ignored_in_silence() {
    let mut server = Server::new(|config| config.protocol_id = PROTOCOL + 1);
    let mut client = connecting(pinned(), 1);
    assert!(matches!(run(&mut client, &mut server), Progress::TimedOut));
    assert!(server.listener.counters().other_protocol > 5);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn silence_is_met_with_patience_and_an_end() {
    let mut client = connecting(pinned(), 1);
    let mut sent_ms = Vec::new();
    let mut now = Instant::ZERO;
    let mut buffer = [0; HANDSHAKE_LEN_MAX];
    while matches!(client.handle_timeout(now), Progress::Continue) {
        if client.poll_transmit(now, &mut buffer).is_some() {
            sent_ms.push(now.as_millis());
        }
        now = client
            .poll_timeout()
            .expect("an unfinished attempt has a timer");
    }
    assert_eq!(now, after_ms(10_000));
    assert_eq!(sent_ms[..5], [0, 250, 625, 1_187, 2_031]);
    assert!(sent_ms.len() < 16, "{sent_ms:?}");
}

#[test]
fn a_payload_that_does_not_fit_is_an_error() {
    let mut config = config(pinned());
    config.payload = vec![0; PAYLOAD_LEN_MAX + 1];
    let attempt = Connecting::new(&config, Instant::ZERO, &mut SeededEntropy::danger_seeded(1));
    assert_eq!(attempt.err(), Some(ConnectError::Payload));
}

#[test]
fn the_longest_parts_fit() {
    let mut server = Server::new(|config| config.verifier = Some(verifier()));
    let mut grant =
        TokenGrant::new(1, server_key().public(), server_address()).user_data(&[7; 256]);
    for port in 1..8 {
        grant = grant.server(SocketAddr::new(address("[2001:db8::1]:1").ip(), port));
    }
    let token = issuer()
        .issue(&grant, UNIX_NOW_S, &mut SeededEntropy::danger_seeded(3))
        .expect("at the limits");
    let mut config = config(Trust::Token(Box::new(token)));
    config.payload = vec![9; PAYLOAD_LEN_MAX];
    let mut client = Connecting::new(&config, Instant::ZERO, &mut SeededEntropy::danger_seeded(1))
        .expect("fits");
    established(run(&mut client, &mut server));
    assert_eq!(server.connections[0].user_data, [7; 256]);
    assert_eq!(server.connections[0].payload, [9; PAYLOAD_LEN_MAX]);
}
