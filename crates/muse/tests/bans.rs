//! A host bans a player of its room: neither the relay nor the host itself lets them in again.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::{Duration as Patience, Instant};

use muse::drivers::relay::{Limits, LinkEvent, Refusal, Relay};
use muse::drivers::{ClientDriver, Clock, Driver, RoomOptions};
use muse::prelude::*;
use muse::transport::token::{TokenGrant, TokenIssuer, TokenVerifier};
use muse::transport::{Connect, SeededEntropy};
use muse::{UdpDriver, UdpOptions};

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Patience = Patience::from_secs(30);

/// A relay on a thread of its own.
fn relay() -> SocketAddr {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let clock = Clock::start();
        let at = "127.0.0.1:0".parse().expect("an address");
        let mut driver = UdpDriver::bind(at, &UdpOptions::default()).expect("a free port");
        let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
        tell.send(driver.local_addr().expect("it is bound"))
            .expect("the test waits");
        loop {
            let polled = driver.poll(clock.now(), &mut relay);
            polled.expect("the relay runs");
            let waited = driver.wait(Duration::from_millis(5));
            waited.expect("the relay runs");
        }
    });
    told.recv_timeout(PATIENCE).expect("a relay")
}

/// One turn of a server; says who joined and left.
fn turn(server: &mut Server) -> (Vec<ClientId>, Vec<ClientId>) {
    let (mut joined, mut left) = (Vec::new(), Vec::new());
    let ticked = server.tick(|_, event| {
        match event {
            Joined(client) => joined.push(client),
            Left(client, _) => left.push(client),
            _ => {}
        }
        Ok(())
    });
    ticked.expect("the server runs");
    (joined, left)
}

fn listen() -> Listen {
    Listen::at("127.0.0.1:0").key(muse::new_key().expect("randomness"))
}

#[test]
fn a_banned_guest_of_a_room_is_refused_by_the_relay() {
    let protocol = || Protocol::new("bans/1");
    let listen = listen().room(&relay().to_string());
    let mut server = Server::listen(listen, protocol()).expect("a free port");
    let invitation = server.invitation().expect("it has a room");
    let how = || {
        let key = muse::ServerPublicKey::from_bytes(invitation.host_key);
        Connect::pinned(key)
    };
    let join = || {
        let config = protocol().config();
        let (relay, code) = (invitation.relay, invitation.code);
        let options = RoomOptions::default();
        ClientDriver::join(relay, code, options, config, how()).expect("a socket")
    };
    let began = Instant::now();
    let mut guest = join();
    let client = loop {
        assert!(began.elapsed() < PATIENCE, "nobody joined");
        guest.tick(|_, _| {}).expect("a socket");
        // The relay may not have opened the room yet.
        if let Some(LinkEvent::Refused(_)) = guest.poll_relay_event() {
            guest = join();
        }
        if let Some(client) = turn(&mut server).0.pop() {
            break client;
        }
    };
    server.ban(client, "enough");
    let mut gone = false;
    let mut refused = |guest: &mut ClientDriver, server: &mut Server| loop {
        assert!(began.elapsed() < PATIENCE, "not refused");
        guest.tick(|_, _| {}).expect("a socket");
        gone |= turn(server).1.contains(&client);
        if let Some(LinkEvent::Refused(reason)) = guest.poll_relay_event() {
            break reason;
        }
    };
    assert_eq!(refused(&mut guest, &mut server), Refusal::Banned);
    assert_eq!(refused(&mut join(), &mut server), Refusal::Banned);
    assert!(gone, "the game was told");
    // The host's own machine is exempt where nothing but its address is known.
    let address = server.address();
    let mut own = Client::connect(&address, protocol()).expect("a socket");
    while turn(&mut server).0.is_empty() {
        assert!(began.elapsed() < PATIENCE, "the host's own player is out");
        own.tick(|_, _| Ok(())).expect("a socket");
    }
}

#[test]
fn a_banned_account_is_let_in_from_nowhere() {
    let mut entropy = SeededEntropy::danger_seeded(1);
    let protocol = || Protocol::new("bans/1");
    let issuer = TokenIssuer::generate(protocol().config().protocol_id(), 1, &mut entropy);
    let mut verifier = TokenVerifier::new();
    verifier
        .add_key(1, &issuer.public_key())
        .expect("a public key");
    let mut server = Server::listen(listen().tokens(verifier), protocol()).expect("a free port");
    let address = server.address();
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_s = now_s.expect("a clock").as_secs();
    let mut connect = |account| {
        let at = SocketAddr::from(([127, 0, 0, 1], address.port()));
        let grant = TokenGrant::new(account, address.key(), at);
        let token = issuer.issue(&grant, now_s, &mut entropy).expect("a token");
        Client::connect(Join::token(&at.to_string(), token), protocol()).expect("a socket")
    };
    let began = Instant::now();
    let mut first = connect(7);
    let client = loop {
        assert!(began.elapsed() < PATIENCE, "nobody joined");
        first.tick(|_, _| Ok(())).expect("it is let in");
        if let Some(client) = turn(&mut server).0.pop() {
            break client;
        }
    };
    server.ban(client, "enough");
    let mut again = connect(7);
    let error = loop {
        assert!(began.elapsed() < PATIENCE, "it is in");
        assert_eq!(turn(&mut server).0, [], "a banned account joined");
        if let Err(error) = again.tick(|_, _| Ok(())) {
            break error.to_string();
        }
    };
    assert!(error.contains("banned"), "{error}");
    let mut other = connect(8);
    while turn(&mut server).0.is_empty() {
        assert!(began.elapsed() < PATIENCE, "another account stays out");
        other.tick(|_, _| Ok(())).expect("it is let in");
    }
}
