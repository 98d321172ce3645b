//! Guests that have a short code and nothing else; and a room whose players do not learn each other's addresses, by one option of the host or of the guest.

use std::time::{Duration as Patience, Instant};

use muse::drivers::relay::{HostTokens, Limits, Relay};
use muse::drivers::{Clock, Driver};
use muse::prelude::*;
use muse::{UdpDriver, UdpOptions};

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Patience = Patience::from_secs(30);

#[derive(Message, Debug)]
#[message(id = 1)]
struct Number(u32);

fn protocol() -> Protocol {
    Protocol::new("relay-only/1").message::<Number>(Delivery::ReliableOrdered)
}

/// A guest and a host in a room, which it enters by its short code, exchange a hundred messages. Returns how often the relay introduced one to the other, and how many peers each looks
/// for a direct way to.
fn play(listen: impl Fn(Listen) -> Listen, join: impl Fn(Join) -> Join) -> (u64, usize, usize) {
    let clock = Clock::start();
    let at = "127.0.0.1:0".parse().expect("an address");
    let mut driver = UdpDriver::bind(at, &UdpOptions::default()).expect("a free port");
    let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
    let relay_at = driver.local_addr().expect("it is bound").to_string();
    let key = muse::new_key().expect("randomness");
    let room = listen(Listen::at("127.0.0.1:0").key(key).room(&relay_at));
    let mut server = Server::listen(room, protocol()).expect("a free port");
    let began = Instant::now();
    let mut turn = |server: &mut Server| {
        assert!(began.elapsed() < PATIENCE, "never done");
        let polled = driver.poll(clock.now(), &mut relay);
        polled.expect("the relay runs");
        let served = server.tick_within(Duration::from_millis(1), |server, event| {
            if let Received(from, message) = event
                && let Some(number) = message.read::<Number>()
            {
                server.send(from, &number)?;
            }
            Ok(())
        });
        served.expect("the server runs");
        *relay.stats()
    };
    while turn(&mut server).rooms_opened == 0 {}
    let code = server.short_code().expect("it has a room").to_string();
    let mut client =
        Client::connect(join(Join::room(&relay_at, &code)), protocol()).expect("a socket");
    for number in 0..100 {
        client
            .send_when_connected(&Number(number))
            .expect("it is declared");
    }
    let mut echoed = 0;
    let introductions = loop {
        let stats = turn(&mut server);
        let ticked = client.tick(|_, event| {
            if let ClientEvent::Received(message) = event {
                let number = message.read::<Number>();
                assert_eq!(number.map(|it| it.0), Some(echoed));
                echoed += 1;
            }
            Ok(())
        });
        ticked.expect("it is connected");
        if echoed == 100 {
            break stats.introductions;
        }
    };
    let peers = |link: Option<&muse::drivers::relay::Link>| link.map_or(0, |link| link.peers());
    let host = peers(server.connections().0.relay());
    (introductions, host, peers(client.connection().0.relay()))
}

#[test]
fn one_option_of_either_side_is_enough() {
    assert_eq!(play(Listen::relay_only, |join| join), (0, 0, 1));
    assert_eq!(play(|listen| listen, Join::relay_only), (0, 0, 0));
    assert_eq!(play(Listen::relay_only, Join::relay_only), (0, 0, 0));
    let (introductions, host, guest) = play(|listen| listen, |join| join);
    assert!(
        introductions > 0 && host == 1 && guest == 1,
        "by default they meet"
    );
}

/// Runs a server with a room at this relay until it has said so many things of the room. Returns them, and the server.
fn hear_of_room(mut relay: Relay, events: usize) -> (Vec<String>, Server) {
    let clock = Clock::start();
    let at = "127.0.0.1:0".parse().expect("an address");
    let mut driver = UdpDriver::bind(at, &UdpOptions::default()).expect("a free port");
    let relay_at = driver.local_addr().expect("it is bound").to_string();
    let key = muse::new_key().expect("randomness");
    let room = Listen::at("127.0.0.1:0").key(key).room(&relay_at);
    let mut server = Server::listen(room, protocol()).expect("a free port");
    let (mut heard, began) = (Vec::new(), Instant::now());
    while heard.len() < events {
        assert!(began.elapsed() < PATIENCE, "never told, only {heard:?}");
        let polled = driver.poll(clock.now(), &mut relay);
        polled.expect("the relay runs");
        let served = server.tick_within(Duration::from_millis(1), |_, event| {
            match event {
                RoomOpened(code) => heard.push(format!("opened {code}")),
                RoomLost(reason) => heard.push(format!("lost: {reason}")),
                _ => {}
            }
            Ok(())
        });
        served.expect("the server runs");
    }
    (heard, server)
}

#[test]
fn a_server_is_told_when_its_room_is_open_and_why_it_is_not() {
    let now = Clock::start().now();
    let open = Relay::danger_open(now, Limits::default(), [7; 32]);
    let (heard, server) = hear_of_room(open, 1);
    let code = server.short_code().expect("it has a room");
    assert_eq!(heard, [format!("opened {code}")]);

    let tokens = HostTokens::new(muse::new_key().expect("randomness"));
    let guarded = Relay::new(now, Limits::default(), tokens, [7; 32]);
    let (heard, _) = hear_of_room(guarded, 1);
    assert!(
        heard[0].starts_with("lost: ") && heard[0].contains("token"),
        "{heard:?}"
    );
}

#[test]
fn an_address_cannot_be_reached_through_a_relay_alone() {
    let key = muse::new_key().expect("randomness");
    let address = format!("muse://127.0.0.1:7000/{}", key.public());
    let error = Client::connect(Join::to(&address).relay_only(), protocol());
    let error = error.expect_err("there is no relay").to_string();
    assert!(error.contains("invitation"), "{error}");
}

#[test]
fn a_wrong_code_says_so_at_once() {
    let clock = Clock::start();
    let at = "127.0.0.1:0".parse().expect("an address");
    let mut driver = UdpDriver::bind(at, &UdpOptions::default()).expect("a free port");
    let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
    let relay_at = driver.local_addr().expect("it is bound").to_string();
    let key = muse::new_key().expect("randomness");
    let room = Listen::at("127.0.0.1:0").key(key).room(&relay_at);
    let mut server = Server::listen(room, protocol()).expect("a free port");
    let code = server.short_code().expect("it has a room").to_string();
    let last = if code.ends_with('7') { '8' } else { '7' };
    let wrong = format!("{}{last}", &code[..code.len() - 1]);
    let began = Instant::now();
    let mut client = None;
    let error = loop {
        assert!(began.elapsed() < PATIENCE, "never refused");
        let polled = driver.poll(clock.now(), &mut relay);
        polled.expect("the relay runs");
        let served = server.tick_within(Duration::from_millis(1), |_, _| Ok(()));
        served.expect("the server runs");
        if relay.stats().rooms_opened == 0 {
            continue;
        }
        let client = client.get_or_insert_with(|| {
            Client::connect(Join::room(&relay_at, &wrong), protocol()).expect("a socket")
        });
        if let Err(error) = client.tick(|_, _| Ok(())) {
            break error.to_string();
        }
    };
    assert!(error.contains("last four letters"), "{error}");
    let error = Client::connect(Join::room(&relay_at, "KWXPTR"), protocol());
    let error = error.expect_err("too short").to_string();
    assert!(error.contains("10 letters"), "{error}");
}
