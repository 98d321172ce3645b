//! The bytes of `docs/handshake.md`, which must not change without a new version.

use super::*;

#[test]
fn the_documented_exchanges_stay_as_they_are() {
    let token = Trust::Token(token(9));
    for (trust, expected) in [
        (Trust::DangerInsecure(None), include_str!("insecure.txt")),
        (pinned(), include_str!("pinned.txt")),
        (token, include_str!("token.txt")),
    ] {
        let mut server = Server::new(|config| {
            config.danger_insecure = true;
            config.verifier = Some(verifier());
        });
        let mut entropy = SeededEntropy::danger_seeded(1);
        let mut config = config(trust);
        // The offered suites depend on the machine; the vectors use the one that all machines have.
        config.suites = Suite::ChaCha20Poly1305.bit();
        let mut client = Connecting::new(&config, Instant::ZERO, &mut entropy).expect("valid");
        let hello = transmit(&mut client, Instant::ZERO);
        let cookie = server
            .handle(Instant::ZERO, client_address(), &hello)
            .expect("a cookie");
        client.handle(Instant::ZERO, &cookie);
        let connect = transmit(&mut client, Instant::ZERO);
        let accept = server
            .handle(Instant::ZERO, client_address(), &connect)
            .expect("an Accept");
        let mut established = established(client.handle(Instant::ZERO, &accept));
        let mut packet = [b"Muse".as_slice(), &[0; 16]].concat();
        let len = established.keys.send.seal(1, b"header", &mut packet, 4);
        packet.truncate(len);
        let lines: String = [hello, cookie, connect, accept, packet]
            .iter()
            .map(|bytes| hex(bytes) + "\n")
            .collect();
        assert_eq!(lines, expected);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
