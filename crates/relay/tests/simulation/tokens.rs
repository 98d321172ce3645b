//! Tokens: a relay that demands them opens rooms for hosts that its master knows, and for nobody else.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use muse_relay::packet::{Candidates, PACKET_LEN_MAX, Packet, ShownToken, VERSION};
use muse_relay::{
    HostTokens, Limits, Link, LinkEvent, LinkState, MasterKey, Refusal, Relay, host_token_issuer,
};
use muse_transport::token::{ConnectToken, TokenGrant, TokenIssuer};
use muse_transport::{SeededEntropy, ServerKey};
use muse_wire::{Duration, Ecn, Instant};

use crate::crowd::Crowd;
use crate::world::RELAY;

const NOW_S: u64 = 1_700_000_000;

struct Guarded {
    crowd: Crowd,
    master: TokenIssuer,
    key: ServerKey,
    entropy: SeededEntropy,
}

impl Guarded {
    fn new() -> Self {
        let mut entropy = SeededEntropy::danger_seeded(1);
        let master = host_token_issuer(&[5; 32]);
        let key = ServerKey::generate(&mut entropy);
        let tokens = HostTokens::new(key.clone());
        let tokens = tokens.master_key(&MasterKey::of(&master));
        let tokens = tokens.expect("a public key");
        let mut relay = Relay::new(Instant::ZERO, Limits::default(), tokens, [1; 32]);
        relay.set_unix_time(Instant::ZERO, NOW_S);
        Self {
            crowd: Crowd::at(relay),
            master,
            key,
            entropy,
        }
    }

    fn issue(&mut self, by: Option<&TokenIssuer>) -> ConnectToken {
        let grant = TokenGrant::new(42, self.key.public(), RELAY);
        let issuer = by.unwrap_or(&self.master);
        let token = issuer.issue(&grant, NOW_S, &mut self.entropy);
        token.expect("within the limits")
    }

    /// Opens a room with a token; says why not.
    fn open(&mut self, last: u8, room: u8, token: Option<ConnectToken>) -> Result<(), Refusal> {
        let (now, seed) = (self.crowd.simulation.now(), self.crowd.seed());
        let link = Link::open(now, RELAY, Crowd::key(room), seed);
        let link = match token {
            Some(token) => link.token(token),
            None => link,
        };
        let at = SocketAddr::from(([198, 51, 100, last], 4_000));
        let host = self.crowd.add(at, link);
        let events = self.crowd.events(host);
        let refused = events.iter().find_map(|event| match event {
            LinkEvent::Refused(reason) => Some(*reason),
            _ => None,
        });
        refused.map_or(Ok(()), Err)
    }
}

#[test]
fn rooms_are_for_holders_of_the_masters_tokens() {
    let mut guarded = Guarded::new();
    assert_eq!(guarded.open(1, 1, None), Err(Refusal::NoToken));
    let stranger = host_token_issuer(&[6; 32]);
    let forged = guarded.issue(Some(&stranger));
    assert_eq!(guarded.open(2, 1, Some(forged)), Err(Refusal::NoToken));
    let (id, seed) = (guarded.master.key_id(), *guarded.master.to_bytes());
    let of_a_game = TokenIssuer::from_bytes(7, id, &seed);
    let of_a_game = guarded.issue(Some(&of_a_game));
    assert_eq!(guarded.open(3, 1, Some(of_a_game)), Err(Refusal::NoToken));
    let token = guarded.issue(None);
    assert_eq!(guarded.open(4, 1, Some(token.clone())), Ok(()));
    // Guests need none.
    let at = SocketAddr::from(([192, 0, 2, 1], 4_000));
    let guest = guarded.crowd.join(at, 1, false);
    let state = guarded.crowd.member(guest).link().state();
    assert_eq!(state, LinkState::Ready);
    // One room at a time.
    assert_eq!(guarded.open(5, 2, Some(token.clone())), Ok(()));
    assert_eq!(guarded.crowd.relay().rooms(), 1);
    let late = Duration::from_secs(61);
    guarded.crowd.simulation.run_for(late);
    assert_eq!(guarded.open(6, 3, Some(token)), Err(Refusal::NoToken));
}

#[test]
fn a_token_that_was_seen_on_the_wire_is_of_no_use() {
    let mut guarded = Guarded::new();
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let network = guarded.crowd.simulation.network_mut();
    network.set_tap(move |sighting| {
        if let Some(Packet::Open { token, .. }) = Packet::parse(sighting.payload) {
            *log.lock().expect("nobody panics") = Some(token);
        }
    });
    let token = guarded.issue(None);
    assert_eq!(guarded.open(1, 1, Some(token)), Ok(()));
    let stolen: ShownToken = seen.lock().expect("nobody panics").expect("it was shown");
    // A thief with an address of their own asks for a cookie and shows the token.
    let thief = SocketAddr::from(([192, 0, 2, 66], 9));
    let answer = Arc::new(Mutex::new(None));
    let log = Arc::clone(&answer);
    let network = guarded.crowd.simulation.network_mut();
    network.add_node(thief);
    network.set_tap(move |sighting| {
        if sighting.to == thief {
            *log.lock().expect("nobody panics") = Packet::parse(sighting.payload);
        }
    });
    let mut ask = |packet: &Packet| {
        let mut buffer = [0; PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        let now = guarded.crowd.simulation.now();
        let network = guarded.crowd.simulation.network_mut();
        network.send(now, thief, RELAY, Ecn::NotCapable, &buffer[..len]);
        guarded.crowd.simulation.run_for(Duration::from_millis(50));
        answer.lock().expect("nobody panics").expect("an answer")
    };
    let random = [9; 8];
    let version = VERSION;
    let Packet::Cookie { cookie, .. } = ask(&Packet::Hello { version, random }) else {
        unreachable!("no cookie");
    };
    let refused = ask(&Packet::Open {
        direct: false,
        random,
        cookie,
        key: Crowd::key(2),
        local: Candidates::NONE,
        token: stolen,
        term: 0,
    });
    let reason = Refusal::NoToken;
    assert_eq!(refused, Packet::Refused { random, reason });
}
