//! Tests of packet protection: round trips, renewal under reordering, forgeries, and both implementations against each other.

use super::*;

const SUITES: [Suite; 3] = [Suite::Aes128Gcm, Suite::ChaCha20Poly1305, Suite::Null];
const PROTOCOL: u64 = 0x1122_3344_5566_7788;

struct Packet {
    number: u64,
    phase: bool,
    bytes: Vec<u8>,
}

fn seal(keys: &mut SendKeys, number: u64, plain: &[u8]) -> Packet {
    let phase = keys.phase();
    let mut bytes = plain.to_vec();
    bytes.resize(plain.len() + keys.tag_len(), 0);
    let len = keys.seal(number, &header(number, phase), &mut bytes, plain.len());
    assert_eq!(len, bytes.len());
    Packet {
        number,
        phase,
        bytes,
    }
}

fn open(keys: &mut ReceiveKeys, packet: &Packet) -> Result<Vec<u8>, Rejected> {
    let mut bytes = packet.bytes.clone();
    let len = keys.open(
        packet.number,
        packet.phase,
        &header(packet.number, packet.phase),
        &mut bytes,
    )?;
    bytes.truncate(len);
    Ok(bytes)
}

fn header(number: u64, phase: bool) -> [u8; 7] {
    let number = number.to_le_bytes();
    [0x80 | u8::from(phase), 1, 2, 3, 4, number[0], number[1]]
}

#[test]
fn packets_round_trip_in_every_suite_and_size() {
    for suite in SUITES {
        let (mut client, mut server) = Keys::pair_for_tests(suite, PROTOCOL, 3);
        for len in [0, 1, 7, 8, 9, 100, 1_200, 1_452] {
            let plain: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let packet = seal(&mut client.send, len as u64, &plain);
            assert_eq!(packet.bytes.len(), len + suite.tag_len());
            assert_eq!(
                open(&mut server.receive, &packet),
                Ok(plain),
                "{suite:?} {len}"
            );
        }
    }
}

#[test]
fn every_change_of_a_bit_is_rejected() {
    for suite in SUITES {
        let (mut client, mut server) = Keys::pair_for_tests(suite, PROTOCOL, 3);
        let packet = seal(&mut client.send, 5, b"something worth protecting");
        for bit in 0..packet.bytes.len() * 8 {
            let mut forged = packet.bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let opened = server
                .receive
                .open(5, false, &header(5, false), &mut forged);
            assert_eq!(opened, Err(Rejected), "{suite:?} bit {bit}");
        }
        for bit in 0..header(5, false).len() * 8 {
            let mut forged = header(5, false);
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                server
                    .receive
                    .open(5, false, &forged, &mut packet.bytes.clone()),
                Err(Rejected)
            );
        }
        let wrong_number =
            server
                .receive
                .open(6, false, &header(5, false), &mut packet.bytes.clone());
        assert_eq!(wrong_number, Err(Rejected), "{suite:?}");
        for len in 0..packet.bytes.len() {
            let mut short = packet.bytes[..len].to_vec();
            assert_eq!(
                server.receive.open(5, false, &header(5, false), &mut short),
                Err(Rejected)
            );
        }
        let mut long_header = packet.bytes.clone();
        assert_eq!(
            server
                .receive
                .open(5, false, &[0; HEADER_LEN_MAX + 1], &mut long_header),
            Err(Rejected)
        );
        assert!(
            open(&mut server.receive, &packet).is_ok(),
            "{suite:?}: forgeries change nothing"
        );
    }
}

#[test]
fn another_protocol_or_direction_does_not_open() {
    for suite in SUITES {
        let (mut client, _) = Keys::pair_for_tests(suite, PROTOCOL, 3);
        let (_, mut other) = Keys::pair_for_tests(suite, PROTOCOL + 1, 3);
        let packet = seal(&mut client.send, 1, b"hello");
        assert_eq!(
            open(&mut other.receive, &packet),
            Err(Rejected),
            "{suite:?}"
        );
        if suite != Suite::Null {
            assert_eq!(
                open(&mut client.receive, &packet),
                Err(Rejected),
                "{suite:?}: reflected"
            );
        }
    }
}

#[test]
fn renewal_survives_loss_and_reordering() {
    for (suite, seed) in SUITES
        .into_iter()
        .flat_map(|suite| (0..20).map(move |seed| (suite, seed)))
    {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut client, mut server) = Keys::pair_for_tests(suite, PROTOCOL, 9);
        client.send.set_rekey_after(10);
        let mut on_the_way: Vec<Packet> = Vec::new();
        let mut renewals = 0;
        for number in 0..2_000 {
            let before = client.send.phase();
            let packet = seal(&mut client.send, number, &number.to_le_bytes());
            renewals += u32::from(client.send.phase() != before);
            if random.u8(..) > 80 {
                on_the_way.push(packet);
            }
            while on_the_way.len() > 6 {
                let packet = on_the_way.swap_remove(random.usize(..on_the_way.len()));
                // Packets overtaken by more than a whole phase may be lost, as in the transport's window.
                if packet.number + 10 >= number {
                    assert_eq!(
                        open(&mut server.receive, &packet),
                        Ok(packet.number.to_le_bytes().to_vec())
                    );
                    client.send.handle_ack(packet.number);
                }
            }
        }
        assert!(renewals > 50, "{suite:?} {seed}: {renewals} renewals");
        assert_eq!(server.receive.rejected(), 0);
    }
}

#[test]
fn a_renewal_waits_for_the_peer() {
    let (mut client, mut server) = Keys::pair_for_tests(Suite::ChaCha20Poly1305, PROTOCOL, 9);
    client.send.set_rekey_after(2);
    for number in 0..50 {
        seal(&mut client.send, number, b"lost");
        assert!(!client.send.phase(), "no acknowledgement, no renewal");
    }
    assert!(!client.send.update());
    client.send.handle_ack(49);
    assert!(client.send.update());
    assert!(client.send.phase());
    client.send.handle_ack(49);
    assert!(
        !client.send.update(),
        "the acknowledgement was of the phase before"
    );
    let packet = seal(&mut client.send, 50, b"arrives");
    assert!(open(&mut server.receive, &packet).is_ok());
}

#[test]
fn a_forged_phase_bit_destroys_nothing() {
    let (mut client, mut server) = Keys::pair_for_tests(Suite::Aes128Gcm, PROTOCOL, 9);
    let first = seal(&mut client.send, 0, b"first");
    assert!(open(&mut server.receive, &first).is_ok());
    for number in 0..100 {
        let forged = Packet {
            number,
            phase: true,
            bytes: vec![number as u8; 60],
        };
        assert_eq!(open(&mut server.receive, &forged), Err(Rejected));
    }
    let second = seal(&mut client.send, 1, b"second");
    assert_eq!(open(&mut server.receive, &second), Ok(b"second".to_vec()));
    client.send.handle_ack(1);
    assert!(client.send.update());
    let third = seal(&mut client.send, 2, b"third");
    assert_eq!(open(&mut server.receive, &third), Ok(b"third".to_vec()));
    let late = Packet {
        number: 1,
        ..second
    };
    assert_eq!(
        open(&mut server.receive, &late),
        Ok(b"second".to_vec()),
        "the keys before are kept"
    );
}

#[test]
fn native_and_portable_protection_agree() {
    let mut random = fastrand::Rng::with_seed(4);
    for suite in [Suite::Aes128Gcm, Suite::ChaCha20Poly1305] {
        for len in 0..200 {
            let key: Vec<u8> = (0..suite.key_len()).map(|_| random.u8(..)).collect();
            let ad: Vec<u8> = (0..random.usize(..AD_LEN_MAX))
                .map(|_| random.u8(..))
                .collect();
            let plain: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            let nonce = [random.u8(..); NONCE_LEN];
            let (native, portable) = (
                native::Aead::new(suite, &key),
                portable::Aead::new(suite, &key),
            );
            let (mut one, mut two) = (
                [plain.clone(), vec![0; 16]].concat(),
                [plain.clone(), vec![0; 16]].concat(),
            );
            native.seal(nonce, &ad, &mut one, len);
            portable.seal(nonce, &ad, &mut two, len);
            assert_eq!(one, two);
            assert_eq!(native.open(nonce, &ad, &mut two), Ok(len));
            one[len / 2] ^= 1;
            assert_eq!(portable.open(nonce, &ad, &mut one.clone()), Err(Rejected));
            one[len / 2] ^= 1;
            assert_eq!(portable.open(nonce, &ad, &mut one), Ok(len));
            assert_eq!(&one[..len], plain);
        }
    }
}

/// The vectors of `docs/handshake.md`.
#[test]
fn golden_vectors_stay_as_documented() {
    let secret = Secret::new(core::array::from_fn(|index| index as u8));
    let mut lines = String::new();
    for suite in SUITES {
        let mut keys = SendKeys::new(suite, PROTOCOL, &secret);
        for number in [0, 0x1_0000_0001] {
            let packet = seal(&mut keys, number, b"Muse");
            lines += &format!(
                "{suite:?} {} {number} {}\n",
                u8::from(packet.phase),
                hex(&packet.bytes)
            );
        }
        keys.handle_ack(0x1_0000_0001);
        assert!(keys.update());
        let packet = seal(&mut keys, 0x1_0000_0002, b"Muse");
        lines += &format!(
            "{suite:?} {} {} {}\n",
            u8::from(packet.phase),
            packet.number,
            hex(&packet.bytes)
        );
    }
    assert_eq!(lines, include_str!("vectors.txt"));
}

#[test]
fn secrets_become_keys_as_documented() {
    let secret = Secret::new(core::array::from_fn(|index| index as u8));
    let (key, iv) = key_and_iv(Suite::Aes128Gcm, &secret);
    let (next_key, _) = key_and_iv(Suite::Aes128Gcm, &next_secret(&secret));
    assert_eq!(hex(&key[..16]), "ece9a61e15ced6d8e92b22dbe9836396");
    assert_eq!(hex(&iv), "c47d9aa0794d911943650749");
    assert_eq!(hex(&next_key[..16]), "660c008ca65ad53c8c0f3a6415840aec");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
