//! Doors for the fuzzer into what is private: each takes any bytes, drives one part with them and asserts what must hold.
//!
//! Not part of the interface.

mod connection;

use std::net::SocketAddr;

use muse_schema::fnv1a;
use muse_wire::{Duration, Instant};

pub use self::connection::{Meter, Work, honest_peer, hostile_peer, operations, packet};
pub use crate::connection::forge::Forgery;
use crate::crypto::{Keys, SeededEntropy, ServerKey};
use crate::endpoint::Endpoint;
use crate::event::ConnectionId;
use crate::handshake::{
    Connecting, ConnectingConfig, DESCRIPTION_LEN_MAX, DIFFERENCES_MAX, HANDSHAKE_LEN_MAX,
    HandshakeLimits, Inquiry, Listener, ListenerConfig, Outcome, Progress, REPLY_LEN_MAX, Refusal,
    Trust, differences, page_of, repair_for_fuzzing,
};
use crate::steering::Shard;
use crate::token::{ConnectToken, TokenGrant, TokenIssuer, TokenVerifier};

/// Bytes as operations on a handshake: packets are sent, repeated, changed, cut and made up, clients come from several
/// addresses, time passes. No reply is longer than its question, and a client that is admitted has the keys of a connection. Says
/// whether a client was admitted.
pub fn handshake(data: &[u8]) -> bool {
    let (operations, _) = data.as_chunks::<4>();
    let mut table = Table::new();
    for operation in operations.iter().take(OPERATIONS_MAX) {
        table.step(*operation);
    }
    table.admitted
}

/// Seals a packet that no honest peer sends under the keys of a connection of `endpoint`, and returns its length and destination; `None` if
/// there is no such connection. `buffer` holds a datagram.
pub fn forge(
    endpoint: &mut Endpoint,
    now: Instant,
    connection: ConnectionId,
    forgery: Forgery,
    buffer: &mut [u8],
) -> Option<(SocketAddr, usize)> {
    endpoint.with_connection(connection, |connection, _| {
        let len = connection.forge(now, forgery, buffer).ok()?;
        Some((connection.remote, len))
    })?
}

/// Bytes as a token that a client holds, and as one shown to a server.
pub fn token(data: &[u8]) {
    if let Ok(token) = ConnectToken::from_bytes(data) {
        assert_eq!(&token.to_bytes()[..], data);
        let again = ConnectToken::from_text(&token.to_text()).expect("what to_text wrote");
        assert_eq!(*again.to_bytes(), *token.to_bytes());
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(token) = ConnectToken::from_text(text)
    {
        assert_eq!(token.to_text(), text, "one token, one text");
    }
    let (key, mut entropy) = (
        ServerKey::from_bytes([1; 32]),
        SeededEntropy::danger_seeded(1),
    );
    if let Ok(checked) = verifier().check(data, PROTOCOL, &key, UNIX_NOW_S, &|_| false) {
        // The master's key is no secret here, so the fuzzer could in principle sign; the seal is tried in any case.
        let signed = verifier().verify(&checked).is_ok();
        assert!(!signed || checked.open(&key, &mut entropy).is_ok());
    }
}

/// Bytes as pages of a description that a hostile server sends: two bytes each for page, count and length, then the text. Whatever comes,
/// the client asks for a bounded number of pages and ends.
pub fn description(data: &[u8]) {
    let mut inquiry = Inquiry::new(Instant::ZERO, fnv1a(data));
    let (mut now, mut asked, mut rest) = (Instant::ZERO, 0, data);
    loop {
        asked += std::iter::from_fn(|| inquiry.poll_page()).count();
        let Some((head, body)) = rest.split_first_chunk::<6>() else {
            break;
        };
        let [page, count, len] = [0, 2, 4].map(|at| u16::from_le_bytes([head[at], head[at + 1]]));
        let (text, tail) = body.split_at(usize::from(len).min(body.len()));
        if let Some(text) = inquiry.handle_page(now, page, count, text) {
            let differences = differences("1 Jump\n", &text);
            check_refusal(&Refusal::Schema {
                client: 0,
                server: 1,
                differences,
            });
            return;
        }
        rest = tail;
    }
    while inquiry.handle_timeout(now) {
        asked += std::iter::from_fn(|| inquiry.poll_page()).count();
        now = inquiry.poll_timeout();
    }
    assert!(asked <= QUESTIONS_MAX, "{asked} questions");
    if data.len() > 6
        && data.len() <= DESCRIPTION_LEN_MAX
        && let Ok(text) = std::str::from_utf8(data)
    {
        answer_honestly(text);
    }
}

/// An honest server's description arrives as it is, unless it has characters that must not be shown.
fn answer_honestly(server: &str) {
    let mut inquiry = Inquiry::new(Instant::ZERO, fnv1a(server.as_bytes()));
    let mut whole = None;
    while let Some(page) = inquiry.poll_page() {
        let (count, text) = page_of(server, page).expect("a page that exists");
        whole = inquiry.handle_page(Instant::ZERO, page, count, text);
    }
    let shown = !server
        .chars()
        .any(|character| character != '\n' && character.is_control());
    assert_eq!(whole.as_deref(), Some(if shown { server } else { "" }));
}

/// A refusal can be shown, and names no more than it may.
fn check_refusal(refusal: &Refusal) {
    assert!(!refusal.to_string().is_empty());
    if let Refusal::Schema { differences, .. } = refusal {
        assert!(differences.len() <= DIFFERENCES_MAX);
    }
}

/// A server, a client and the packets that lie on the table between them.
struct Table {
    listener: Listener,
    client: Connecting,
    clients: u64,
    connections: Vec<Keys>,
    packets: Vec<Vec<u8>>,
    now: Instant,
    admitted: bool,
}

impl Table {
    fn new() -> Self {
        let config = ListenerConfig {
            protocol_id: PROTOCOL,
            schema_hash: fnv1a(DESCRIPTION.as_bytes()),
            description: DESCRIPTION.into(),
            key: ServerKey::from_bytes([1; 32]),
            verifier: Some(verifier()),
            token_required: false,
            danger_insecure: true,
            limits: HandshakeLimits::default(),
            shard: Shard::ALONE,
            cookie_secret: None,
        };
        Self {
            listener: Listener::new(config, &mut SeededEntropy::danger_seeded(1)),
            client: client(0),
            clients: 0,
            connections: Vec::new(),
            packets: vec![Vec::new()],
            now: Instant::ZERO,
            admitted: false,
        }
    }

    fn step(&mut self, [kind, which, one, two]: [u8; 4]) {
        let which = usize::from(which) % self.packets.len();
        let value = usize::from(u16::from_le_bytes([one, two]));
        match kind % 8 {
            0 => self.deliver_to_server(which, one),
            1 => self.deliver_to_client(which),
            2 => {
                if let Some(byte) = self.packets[which].get_mut(usize::from(one)) {
                    *byte ^= two;
                }
            }
            3 => repair_for_fuzzing(PROTOCOL, &mut self.packets[which]),
            4 => self.packets[which].resize(value % HANDSHAKE_LEN_MAX, one),
            5 => {
                self.now += Duration::from_millis(value as u64);
                if let Progress::Refused(refusal) = self.client.handle_timeout(self.now) {
                    check_refusal(&refusal);
                }
            }
            6 if self.clients < CLIENTS_MAX => {
                self.clients += 1;
                self.client = client(u64::from(one) + self.clients * 256);
            }
            _ => {}
        }
        let mut buffer = [0; HANDSHAKE_LEN_MAX];
        if let Some(len) = self.client.poll_transmit(self.now, &mut buffer) {
            self.put(buffer[..len].to_vec());
        }
    }

    fn deliver_to_server(&mut self, which: usize, address: u8) {
        let from = SocketAddr::from(([192, 0, 2, address % 4], 5_000));
        let (packet, mut reply) = (&self.packets[which], [0; REPLY_LEN_MAX]);
        let len = match self
            .listener
            .handle(self.now, UNIX_NOW_S, from, packet, &mut reply, |_| false)
        {
            Outcome::Nothing => return,
            Outcome::Reply(len) => len,
            Outcome::Request(mut request) => {
                match self
                    .listener
                    .accept(&mut request, 7, b"settings", &mut reply)
                {
                    Ok(accepted) => {
                        self.connections.push(accepted.keys);
                        accepted.len
                    }
                    Err(_) => return,
                }
            }
        };
        assert!(len <= packet.len(), "a reply is longer than its question");
        self.put(reply[..len].to_vec());
    }

    fn deliver_to_client(&mut self, which: usize) {
        let mut established = match self.client.handle(self.now, &self.packets[which]) {
            Progress::Established(established) => established,
            Progress::Refused(refusal) => return check_refusal(&refusal),
            Progress::Continue | Progress::Waiting | Progress::TimedOut => return,
        };
        let mut sealed = [0; 20];
        let len = established.keys.send.seal(0, &[], &mut sealed, 4);
        let agreed = self.connections.iter_mut().any(|keys| {
            let mut packet = sealed;
            keys.receive.open(0, false, &[], &mut packet[..len]).is_ok()
        });
        assert!(
            agreed && established.settings == b"settings",
            "let in by nobody"
        );
        self.admitted = true;
    }

    fn put(&mut self, packet: Vec<u8>) {
        if self.packets.len() < PACKETS_MAX {
            self.packets.push(packet);
        } else if let Some(oldest) = self.packets.get_mut(self.connections.len() % PACKETS_MAX) {
            *oldest = packet;
        }
    }
}

fn client(seed: u64) -> Connecting {
    let mut entropy = SeededEntropy::danger_seeded(seed);
    let key = ServerKey::from_bytes([1; 32]).public();
    let grant = TokenGrant::new(1, key, SocketAddr::from(([203, 0, 113, 1], 9_000)));
    let mut token = || {
        Box::new(
            issuer()
                .issue(&grant, UNIX_NOW_S, &mut entropy)
                .expect("within the limits"),
        )
    };
    let trust = match seed % 4 {
        0 => Trust::Pinned(key),
        1 => Trust::Token(token()),
        2 => Trust::DangerInsecure(None),
        _ => Trust::DangerInsecure(Some(token())),
    };
    let mut config = ConnectingConfig::new(PROTOCOL, fnv1a(DESCRIPTION.as_bytes()), 9, trust);
    if seed % 16 >= OUTDATED_FROM {
        config.schema_hash = 1;
        config.description = "1 Jump\nchannel 0 sequenced\n".into();
    }
    Connecting::new(&config, Instant::ZERO, &mut entropy).expect("no payload")
}

fn issuer() -> TokenIssuer {
    TokenIssuer::from_bytes(PROTOCOL, 1, &[2; 32])
}

fn verifier() -> TokenVerifier {
    let mut verifier = TokenVerifier::new();
    verifier
        .add_key(1, &issuer().public_key())
        .expect("a public key");
    verifier
}

const PROTOCOL: u64 = 1;
const UNIX_NOW_S: u64 = 1_800_000_000;
const OPERATIONS_MAX: usize = 64;
/// The description that the server shares with its clients.
const DESCRIPTION: &str = "1 Jump { height: u8 }\nchannel 0 sequenced\n";
/// Clients whose seed modulo 16 is from here on have another description.
const OUTDATED_FROM: u64 = 12;
/// Each page once, and eight again every 250 ms for 3 s.
const QUESTIONS_MAX: usize = 64 + 8 * 12;
/// Each costs operations with public keys, which are slow.
const CLIENTS_MAX: u64 = 4;
const PACKETS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_admitted_and_noise_breaks_nothing() {
        // Transmit, to the server, to the client, Connect to the server, Accept to the client.
        let script = [
            [7, 0, 0, 0],
            [0, 1, 0, 0],
            [1, 2, 0, 0],
            [0, 3, 0, 0],
            [1, 4, 0, 0],
        ]
        .concat();
        for trust in 0..4 {
            let script = [&[6, 0, trust, 0][..], &script].concat();
            assert!(handshake(&script), "trust {trust}");
            let changed = [&script[..16], &[2, 3, 60, 1], &script[16..]].concat();
            assert!(!handshake(&changed), "trust {trust}: the checksum");
            let forged = [&changed[..20], &[3, 3, 0, 0], &changed[20..]].concat();
            assert!(!handshake(&forged), "trust {trust}: bound to the exchange");
        }
        // The same with a client that has another description, which asks for the server's and gets it.
        let outdated = [&[6, 0, 12, 0][..], &script, &[0, 5, 0, 0, 1, 6, 0, 0]].concat();
        assert!(!handshake(&outdated));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            let noise: Vec<u8> = (0..random.usize(..400)).map(|_| random.u8(..)).collect();
            handshake(&noise);
            token(&noise);
            description(&noise);
        }
        description(&b"1 Jump\n".repeat(8_000));
    }

    #[test]
    fn real_tokens_pass_the_door() {
        let grant = TokenGrant::new(
            1,
            ServerKey::from_bytes([1; 32]).public(),
            SocketAddr::from(([203, 0, 113, 1], 9)),
        );
        let mut entropy = SeededEntropy::danger_seeded(3);
        let real = issuer()
            .issue(&grant, UNIX_NOW_S, &mut entropy)
            .expect("within the limits");
        token(&real.to_bytes());
        token(real.to_text().as_bytes());
        token(&real.to_bytes()[33..]);
    }
}
