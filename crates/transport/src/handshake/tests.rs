//! Tests of the handshake: a client and a server with a virtual clock and a network that misbehaves by seed.

#![allow(clippy::panic, reason = "a test that cannot go on says why")]

mod flow;
mod golden;
mod hostile;
mod limits;
mod tokens;

use std::collections::HashMap;
use std::net::SocketAddr;

use muse_wire::{Duration, Instant};

use super::connecting::{ConnectError, Established};
use super::*;
use crate::crypto::{Keys, SeededEntropy, ServerKey, Suite};
use crate::steering::Shard;
use crate::token::{ConnectToken, TokenGrant, TokenId, TokenIssuer, TokenVerifier};

const PROTOCOL: u64 = 0x4d55_5345_0000_0001;
const SCHEMA: u64 = 0x0123_4567_89ab_cdef;
const UNIX_NOW_S: u64 = 1_800_000_000;
const CLIENT_ID: u32 = 0xc11e_0001;
const SERVER_ID: u32 = 0x5e41_0001;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn client_address() -> SocketAddr {
    address("192.0.2.7:40000")
}

fn server_address() -> SocketAddr {
    address("203.0.113.5:9000")
}

/// A server that keeps its Accepts, as the endpoint does.
struct Server {
    listener: Listener,
    unix_now_s: u64,
    live_tokens: Vec<TokenId>,
    accepts: HashMap<(SocketAddr, ClientRandom), Vec<u8>>,
    connections: Vec<Connection>,
    decision: Option<Refusal>,
}

struct Connection {
    keys: Keys,
    remote_connection_id: u32,
    payload: Vec<u8>,
    account: Option<u64>,
    user_data: Vec<u8>,
    resumes: bool,
}

impl Server {
    fn new(change: impl FnOnce(&mut ListenerConfig)) -> Self {
        let mut config = ListenerConfig {
            protocol_id: PROTOCOL,
            schema_hash: SCHEMA,
            description: "1 Jump\n".into(),
            key: server_key(),
            verifier: None,
            token_required: false,
            danger_insecure: false,
            limits: HandshakeLimits::default(),
            shard: Shard::ALONE,
            cookie_secret: None,
        };
        change(&mut config);
        Self {
            listener: Listener::new(config, &mut SeededEntropy::danger_seeded(77)),
            unix_now_s: UNIX_NOW_S,
            live_tokens: Vec::new(),
            accepts: HashMap::new(),
            connections: Vec::new(),
            decision: None,
        }
    }

    fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let repeat = self.listener.peek_connect(datagram);
        if let Some(accept) = repeat.and_then(|random| self.accepts.get(&(from, random))) {
            return Some(accept.clone());
        }
        let mut reply = [0; REPLY_LEN_MAX];
        let live = &self.live_tokens;
        let outcome =
            self.listener
                .handle(now, self.unix_now_s, from, datagram, &mut reply, |id| {
                    live.contains(id)
                });
        let len = match outcome {
            Outcome::Nothing => return None,
            Outcome::Reply(len) => len,
            Outcome::Request(request) => self.decide(now, request, &mut reply),
        };
        assert!(
            len <= datagram.len(),
            "a reply of {len} bytes to {} bytes",
            datagram.len()
        );
        Some(reply[..len].to_vec())
    }

    fn decide(
        &mut self,
        now: Instant,
        mut request: Box<ConnectRequest>,
        reply: &mut [u8],
    ) -> usize {
        if let Some(refusal) = &self.decision {
            return self.listener.refuse(now, &request, refusal, reply);
        }
        let name = (request.from(), request.client_random());
        let mut connection = Connection {
            keys: Keys::pair_for_tests(Suite::Null, 0, 0).0,
            remote_connection_id: 0,
            payload: request.payload().to_vec(),
            account: request.account(),
            user_data: request.user_data().to_vec(),
            resumes: request.token.as_ref().is_some_and(|token| token.resumes),
        };
        self.live_tokens.extend(request.token_id());
        match self
            .listener
            .accept(&mut request, SERVER_ID, b"settings", reply)
        {
            Ok(accepted) => {
                connection.keys = accepted.keys;
                connection.remote_connection_id = accepted.remote_connection_id;
                self.connections.push(connection);
                self.accepts.insert(name, reply[..accepted.len].to_vec());
                accepted.len
            }
            Err(refusal) => panic!("not accepted: {refusal}"),
        }
    }
}

fn server_key() -> ServerKey {
    ServerKey::from_bytes([0x51; 32])
}

fn issuer() -> TokenIssuer {
    TokenIssuer::from_bytes(PROTOCOL, 1, &[0x15; 32])
}

fn verifier() -> TokenVerifier {
    let mut verifier = TokenVerifier::new().address(server_address());
    verifier
        .add_key(1, &issuer().public_key())
        .expect("a public key");
    verifier
}

fn grant() -> TokenGrant {
    TokenGrant::new(42, server_key().public(), server_address())
        .user_data(b"blue team")
        .lifetime_s(30)
}

fn token(seed: u64) -> Box<ConnectToken> {
    let mut entropy = SeededEntropy::danger_seeded(seed);
    Box::new(
        issuer()
            .issue(&grant(), UNIX_NOW_S, &mut entropy)
            .expect("within the limits"),
    )
}

/// For tests that knock more often than is allowed.
fn unlimited() -> HandshakeLimits {
    let most = u32::MAX;
    HandshakeLimits::default()
        .operations(most, most)
        .replies(most, most)
        .per_address(most, most)
        .per_prefix(most, most)
}

fn pinned() -> Trust {
    Trust::Pinned(server_key().public())
}

fn config(trust: Trust) -> ConnectingConfig {
    let mut config = ConnectingConfig::new(PROTOCOL, SCHEMA, CLIENT_ID, trust);
    config.payload = b"let me in".to_vec();
    config
}

fn connecting(trust: Trust, seed: u64) -> Connecting {
    Connecting::new(
        &config(trust),
        Instant::ZERO,
        &mut SeededEntropy::danger_seeded(seed),
    )
    .expect("a short payload")
}

/// Returns what the client sends now.
fn transmit(client: &mut Connecting, now: Instant) -> Vec<u8> {
    let mut buffer = [0; HANDSHAKE_LEN_MAX];
    let len = client
        .poll_transmit(now, &mut buffer)
        .expect("a packet is due");
    buffer[..len].to_vec()
}

/// Runs the exchange on a perfect network to its end.
fn run(client: &mut Connecting, server: &mut Server) -> Progress {
    run_at(client, server, Instant::ZERO)
}

fn run_at(client: &mut Connecting, server: &mut Server, start: Instant) -> Progress {
    let mut now = start;
    let mut buffer = [0; HANDSHAKE_LEN_MAX];
    loop {
        while let Some(len) = client.poll_transmit(now, &mut buffer) {
            let Some(reply) = server.handle(now, client_address(), &buffer[..len]) else {
                continue;
            };
            match client.handle(now, &reply) {
                Progress::Continue => {}
                decided => return decided,
            }
        }
        now = client
            .poll_timeout()
            .expect("an unfinished attempt has a timer");
        match client.handle_timeout(now) {
            Progress::Continue => {}
            decided => return decided,
        }
    }
}

fn established(progress: Progress) -> Box<Established> {
    match progress {
        Progress::Established(established) => established,
        Progress::Refused(refusal) => panic!("refused: {refusal}"),
        Progress::Continue | Progress::Waiting => panic!("undecided"),
        Progress::TimedOut => panic!("timed out"),
    }
}

fn refused(progress: Progress) -> Refusal {
    match progress {
        Progress::Refused(refusal) => refusal,
        Progress::Established(_) => panic!("established"),
        Progress::Continue | Progress::Waiting => panic!("undecided"),
        Progress::TimedOut => panic!("timed out"),
    }
}

/// Both sides have the same keys, each for its direction.
fn assert_keys_agree(client: &mut Keys, server: &mut Keys) {
    for (number, from, to) in [
        (0, &mut client.send, &mut server.receive),
        (0, &mut server.send, &mut client.receive),
    ] {
        let mut packet = [b"over the new keys".as_slice(), &[0; 16]].concat();
        let len = from.seal(number, b"header", &mut packet, 17);
        assert_eq!(
            to.open(number, false, b"header", &mut packet[..len]),
            Ok(17)
        );
        assert_eq!(&packet[..17], b"over the new keys");
    }
}

/// Makes the checksum of a changed packet right again, as an attacker would.
fn repair(packet: &mut [u8]) {
    packet::repair(PROTOCOL, packet);
}

fn after_ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
