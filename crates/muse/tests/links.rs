//! One game server and clients over every kind of link at once, and an account that comes back to its player.

use std::time::{Duration as Patience, Instant as Clock};

use muse::prelude::*;
use muse::token::{TokenGrant, TokenIssuer, TokenVerifier};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Runner {
    #[field(range = -1000.0..=1000.0, step = 0.001)]
    x: f32,
}

struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = bool;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 100;

    fn step(&mut self, runner: &mut Runner, run: &bool, _: &mut StepContext<'_, ()>) {
        runner.x += if *run { 0.1 } else { 0.0 };
    }
}

/// Serves a turn: everybody plays. Returns who joined, came back and left.
fn serve(server: &mut GameServer<Rules>) -> Vec<(&'static str, ClientId)> {
    let mut events = Vec::new();
    let served = server.tick_within(Duration::from_millis(1), |game, event| match event {
        Joined(client) => {
            events.push(("joined", client));
            game.spawn(client, Runner::default())
        }
        Returned(client) => {
            events.push(("returned", client));
            Ok(())
        }
        Left(client, _) => {
            events.push(("left", client));
            Ok(())
        }
        _ => Ok(()),
    });
    served.expect("the server goes on");
    events
}

/// Turns until `done`, which does what the clients do.
fn until(server: &mut GameServer<Rules>, mut done: impl FnMut() -> bool) {
    let began = Clock::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "never done");
        serve(server);
    }
}

fn listen() -> Listen {
    Listen::at("127.0.0.1:0").key(muse::new_key().expect("randomness"))
}

#[test]
fn players_by_socket_in_memory_and_carried_by_a_page_are_in_one_game() {
    let mut server = GameServer::listen(listen(), Rules).expect("a free port");
    let by_socket = GameClient::connect(&server.address(), Rules).expect("a socket");
    let in_memory = GameClient::connect(server.join_offline(), Rules).expect("no socket");
    // The page's session with the server is played by another link within the process, by hand.
    let (join, mut page) = Join::to(&server.address().to_string()).carried();
    let carried = GameClient::connect(join, Rules).expect("no socket");
    let mut session = server.connections().0.add_memory_link();
    let mut clients = [by_socket, in_memory, carried];
    let (mut datagram, mut largest) = (Vec::new(), 0);
    until(&mut server, || {
        for client in &mut clients {
            client.tick(|_| true).expect("connected");
        }
        while page.receive_into(&mut datagram) {
            largest = largest.max(datagram.len());
            session.send(&datagram);
        }
        while session.receive_into(&mut datagram) {
            page.send(&datagram);
        }
        clients.iter_mut().all(|client| {
            let runs = client.own_player().is_some_and(|own| own.x > 3.0);
            runs && client.others().len() == 2
        })
    });
    assert!((1..=1_200).contains(&largest), "{largest} bytes");
    for client in &mut clients {
        let prediction = client.netcode().prediction();
        assert!(prediction.confirmed > 10, "{prediction:?}");
    }
}

#[test]
fn a_server_without_a_socket_serves_its_own_program_and_nobody_else() {
    let mut server = GameServer::listen(Listen::offline(), Rules).expect("no socket");
    let address = server.address();
    let mut client = GameClient::connect(server.join_offline(), Rules).expect("no socket");
    until(&mut server, || {
        client.tick(|_| true).expect("connected");
        client.own_player().is_some_and(|own| own.x > 1.0)
    });
    assert_eq!(address.host(), "offline");
    drop(client);
    let began = Clock::now();
    while !serve(&mut server).iter().any(|(what, _)| *what == "left") {
        assert!(began.elapsed() < PATIENCE, "its goodbye was not heard");
    }
}

#[test]
fn an_account_that_comes_back_plays_its_player_on() {
    let key = muse::new_key().expect("randomness");
    let server_key = key.public();
    let mut entropy = muse::SystemEntropy::new().expect("randomness");
    let protocol_id = Protocol::default().config().protocol_id();
    let issuer = TokenIssuer::generate(protocol_id, 1, &mut entropy);
    let mut verifier = TokenVerifier::new();
    let added = verifier.add_key(issuer.key_id(), &issuer.public_key());
    added.expect("a public key");
    let listen = Listen::at("127.0.0.1:0").key(key).tokens(verifier);
    let mut server = GameServer::listen(listen, Rules).expect("a free port");
    let address = server.address();
    let place = format!("{}:{}", address.host(), address.port());
    let mut connect = || {
        let address = place.parse().expect("an address of loopback");
        let grant = TokenGrant::new(70, server_key, address).lifetime_s(600);
        let token = issuer.issue(&grant, unix_time(), &mut entropy);
        let token = token.expect("a sensible grant");
        GameClient::connect(Join::token(&place, token), Rules).expect("a socket")
    };

    let mut first = connect();
    until(&mut server, || {
        first.tick(|_| true).expect("connected");
        first.own_player().is_some_and(|own| own.x > 2.0)
    });
    let player = server.clients().next().expect("one is connected");
    let x = server.player(player).expect("it has a player").x;

    let mut second = connect();
    let (mut events, began) = (Vec::new(), Clock::now());
    while second.own_player().is_none() {
        assert!(began.elapsed() < PATIENCE, "{events:?}");
        events.extend(serve(&mut server));
        second.tick(|_| false).expect("connected");
    }
    assert_eq!(events, [("returned", player)]);
    assert_eq!(server.clients().count(), 1, "its ghost is gone");
    assert!(second.own_player().is_some_and(|own| own.x >= x));
}

fn unix_time() -> u64 {
    muse::drivers::clock::unix_time().as_micros() / 1_000_000
}

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Patience = Patience::from_secs(30);
