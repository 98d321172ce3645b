//! Client and server over real sockets: connecting, every delivery mode, large messages, broadcasts, endings.

#[path = "support/world.rs"]
mod world;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use muse_drivers::{ClientDriver, EndpointDriver, new_key};
use muse_transport::{
    AdmissionLimits, ChannelConfig, CloseReason, Config, Connect, Delivery, Event, Outcome,
    Refusal, SendError, SendOptions, ServerOptions,
};
use world::{Log, ORDERED, PATIENCE, World, every_mode, impatient};

#[test]
fn every_delivery_mode_carries_messages_both_ways() {
    let mut world = World::new(every_mode());
    let (client, connection) = world.join();
    for channel in 0..6 {
        world.clients[client]
            .0
            .send(channel, &[channel, 1])
            .expect("room");
        world
            .server()
            .send(connection, channel, &[channel, 2])
            .expect("room");
    }
    world.until("twelve messages", |world| {
        world.at_server.messages.len() == 6 && world.clients[client].1.messages.len() == 6
    });
    for (log, mark) in [(&world.at_server, 1), (&world.clients[client].1, 2)] {
        let mut got: Vec<(u8, Vec<u8>)> = log
            .messages
            .iter()
            .map(|(_, channel, bytes)| (*channel, bytes.clone()))
            .collect();
        got.sort();
        let expected: Vec<(u8, Vec<u8>)> = (0..6)
            .map(|channel| (channel, vec![channel, mark]))
            .collect();
        assert_eq!(got, expected);
    }
    let stats = world.clients[client].0.stats().expect("connected");
    assert!(stats.packets_sent > 0 && stats.packets_received > 0);
    assert!(world.server().budget(connection).is_some());
    assert_eq!(
        world.clients[client].0.send(6, b""),
        Err(SendError::NoChannel { channel: 6 })
    );
}

#[test]
fn a_megabyte_crosses_in_both_directions() {
    let mut world = World::new(every_mode());
    let (client, connection) = world.join();
    let up: Vec<u8> = (0..1_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let down: Vec<u8> = up.iter().map(|byte| !byte).collect();
    world.clients[client].0.send(4, &up).expect("room");
    world.server().send(connection, 2, &down).expect("room");
    world.until("both", |world| {
        !world.at_server.messages.is_empty() && !world.clients[client].1.messages.is_empty()
    });
    assert!(
        world.at_server.messages[0].2 == up,
        "the client's bytes arrived"
    );
    assert!(
        world.clients[client].1.messages[0].2 == down,
        "the server's bytes arrived"
    );
}

#[test]
fn order_and_receipts_hold() {
    let mut world = World::new(every_mode());
    let (client, _) = world.join();
    let options = SendOptions::default().receipt();
    let mut ids = Vec::new();
    for number in 0..500_u16 {
        ids.push(
            world.clients[client]
                .0
                .send_with(4, &number.to_le_bytes(), &options)
                .expect("room"),
        );
    }
    world.until("all receipts", |world| {
        world.clients[client].1.receipts.len() == 500
    });
    let expected: Vec<[u8; 2]> = (0..500_u16).map(u16::to_le_bytes).collect();
    assert_eq!(world.at_server.payloads(), expected);
    let log = &world.clients[client].1;
    assert!(
        log.receipts
            .iter()
            .all(|receipt| receipt.outcome == Outcome::Delivered)
    );
    assert!(
        ids.iter()
            .all(|id| log.receipts.iter().any(|receipt| receipt.id == *id))
    );
}

#[test]
fn a_wrong_key_is_refused_at_once_and_says_so() {
    let mut world = World::new(every_mode());
    world.key = new_key().expect("randomness").public();
    let start = Instant::now();
    let client = world.add();
    world.until("a refusal", |world| {
        !world.clients[client].1.refused.is_empty()
    });
    assert_eq!(world.clients[client].1.refused, [Refusal::WrongKey]);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "faster than a time-out"
    );
    assert!(!world.clients[client].0.is_connected());
    assert_eq!(
        world.clients[client].0.send(0, b"hello"),
        Err(SendError::NoConnection)
    );
    assert!(world.at_server.connected.is_empty());
}

#[test]
fn the_application_admits_and_denies_over_real_sockets() {
    let key = new_key().expect("randomness");
    let public = key.public();
    let options = ServerOptions::new(key).admission(AdmissionLimits::default());
    let mut server =
        EndpointDriver::bind("127.0.0.1:0", every_mode(), options).expect("loopback is there");
    let address = server.local_addr().expect("bound");
    let mut clients = [&b"friend"[..], b"stranger"].map(|hello| {
        let how = Connect::pinned(public).hello(hello);
        ClientDriver::connect(address, every_mode(), how).expect("a socket")
    });
    let (mut connected, mut refused, mut deferred) = ([false; 2], Vec::new(), Vec::new());
    let end = Instant::now() + PATIENCE;
    while !connected[0] || refused.is_empty() {
        assert!(Instant::now() < end, "{connected:?} {refused:?}");
        // A decision may come later than the question.
        for (connection, friend) in std::mem::take(&mut deferred) {
            let decided = match friend {
                true => server.admit(connection),
                false => server.deny(connection, 3, "friends only"),
            };
            assert_eq!(decided, Ok(()));
        }
        let tick = server.tick(|_, event| {
            if let Event::Asking {
                connection, hello, ..
            } = event
            {
                deferred.push((connection, hello == b"friend"));
            }
        });
        assert!(tick.is_ok(), "{tick:?}");
        for (index, client) in clients.iter_mut().enumerate() {
            let tick = client.tick(|_, event| match event {
                Event::Connected { .. } => connected[index] = true,
                Event::Refused { reason, .. } => refused.push((index, reason)),
                _ => {}
            });
            assert!(tick.is_ok(), "{tick:?}");
        }
        server.wait(Duration::from_millis(1)).expect("waits");
    }
    let (code, text) = (3, "friends only".to_owned());
    assert_eq!(refused, [(1, Refusal::Denied { code, text })]);
    assert_eq!(connected, [true, false]);
}

#[test]
fn the_address_of_a_name_that_answers_is_found_quickly() {
    for alive in ["127.0.0.1", "[::1]"] {
        let Ok(mut world) = World::at(&format!("{alive}:0"), every_mode()) else {
            assert_ne!(alive, "127.0.0.1", "loopback is there");
            continue; // no IPv6 on this machine
        };
        let port = world.server().local_addr().expect("bound").port();
        // As a name's lookup gives them: nobody is at two of them.
        let addresses = ["[::1]", "127.0.0.1", "127.0.0.2"].map(|host| {
            format!("{host}:{port}")
                .parse::<SocketAddr>()
                .expect("an address")
        });
        let start = Instant::now();
        let how = Connect::pinned(world.key);
        let client = ClientDriver::connect(&addresses[..], every_mode(), how).expect("a socket");
        world.clients.push((client, Log::default()));
        world.until("a connection", |world| {
            world.clients[0].1.connected.len() == 1 && world.at_server.connected.len() == 1
        });
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "no time-out was waited for"
        );
        let found = world.clients[0].0.server_addr();
        assert_eq!(found, world.server().local_addr().expect("bound"));
    }
}

#[test]
fn a_full_server_says_so_and_has_room_again_later() {
    let mut world = World::new(every_mode().connections_max(1));
    let (first, _) = world.join();
    let second = world.add();
    world.until("a refusal", |world| {
        !world.clients[second].1.refused.is_empty()
    });
    assert_eq!(world.clients[second].1.refused, [Refusal::Full]);
    world.clients[first].0.close(7, "making room");
    world.until("the first to be gone", |world| {
        world
            .server
            .as_ref()
            .is_some_and(|server| server.connections().count() == 0)
            && !world.clients[first].1.closed.is_empty()
    });
    let reason = CloseReason::ByPeer {
        code: 7,
        text: "making room".into(),
    };
    assert_eq!(world.at_server.closed, [reason]);
    // The place is kept for a moment, in case the goodbye has to be answered once more.
    let deadline = Instant::now() + world::PATIENCE;
    while world.at_server.connected.len() < 2 {
        assert!(Instant::now() < deadline, "the place stays taken");
        world.clients.truncate(2);
        let next = world.add();
        world.until("an answer", |world| {
            let log = &world.clients[next].1;
            !log.refused.is_empty()
                || !log.connected.is_empty() && world.at_server.connected.len() == 2
        });
    }
}

#[test]
fn a_stalled_server_interrupts_and_nothing_reliable_is_lost() {
    let mut world = World::new(impatient());
    let (client, _) = world.join();
    world.clients_until("the silence to be noticed", |world| {
        world.clients[client].1.interrupted == 1
    });
    assert!(world.clients[client].0.is_interrupted());
    world.clients[client]
        .0
        .send(0, b"said into the silence")
        .expect("room");
    world.tick_clients();
    world.until("the connection to be back", |world| {
        world.clients[client].1.resumed == 1 && !world.at_server.messages.is_empty()
    });
    world.clients[client]
        .0
        .send(0, b"said afterwards")
        .expect("room");
    world.until("the rest", |world| world.at_server.messages.len() == 2);
    assert_eq!(
        world.at_server.payloads(),
        [&b"said into the silence"[..], b"said afterwards"]
    );
    assert!(world.clients[client].1.closed.is_empty());
}

#[test]
fn a_server_that_never_comes_back_is_lost() {
    let mut world = World::new(impatient().resume_within(muse_wire::Duration::from_millis(100)));
    let (client, _) = world.join();
    world.clients_until("the end", |world| {
        !world.clients[client].1.closed.is_empty()
    });
    assert_eq!(world.clients[client].1.interrupted, 1);
    assert_eq!(world.clients[client].1.closed, [CloseReason::Lost]);
}

#[test]
fn nobody_there_is_unanswered() {
    let address = World::new(every_mode())
        .server()
        .local_addr()
        .expect("bound");
    let how = Connect::pinned(new_key().expect("randomness").public());
    let how = how.timeout(muse_wire::Duration::from_millis(300));
    let mut world = World::new(every_mode());
    let client = ClientDriver::connect(address, every_mode(), how).expect("a socket");
    world.clients.push((client, world::Log::default()));
    world.clients_until("the attempt to end", |world| {
        world.clients[0].1.unanswered == 1
    });
}

#[test]
fn an_attempt_can_be_given_up() {
    let mut world = World::new(every_mode());
    let client = world.add();
    world.clients[client].0.close(0, "changed my mind");
    world.until("the end", |world| {
        !world.clients[client].1.closed.is_empty()
    });
    assert_eq!(world.clients[client].1.closed, [CloseReason::ByUs]);
    assert!(!world.clients[client].0.is_connected());
    let (_, connection) = world.join();
    assert!(world.server().stats(connection).is_some());
    assert_eq!(world.at_server.connected.len(), 1);
}

#[test]
fn two_clients_hear_a_broadcast_and_one_hears_what_is_for_it() {
    let mut world = World::new(every_mode());
    let (first, first_id) = world.join();
    let (second, second_id) = world.join();
    assert_ne!(first_id, second_id);
    let outcome = world.server().broadcast(4, b"all");
    assert_eq!((outcome.sent, outcome.refused.len()), (2, 0));
    assert_eq!(
        world
            .server()
            .broadcast_if(4, b"others", |id| id != first_id)
            .sent,
        1
    );
    let outcome = world.server().broadcast(99, b"no such channel");
    assert_eq!((outcome.sent, outcome.refused.len()), (0, 2));
    world.until("both to hear", |world| {
        world.clients[first].1.messages.len() == 1 && world.clients[second].1.messages.len() == 2
    });
    assert_eq!(world.clients[first].1.payloads(), [b"all"]);
    assert_eq!(world.clients[second].1.payloads(), [&b"all"[..], b"others"]);
}

#[test]
fn ipv6_works_and_a_dual_stack_server_takes_ipv4_too() {
    let mut world = match World::at("[::1]:0", every_mode()) {
        Ok(world) => world,
        Err(error)
            if error.kind() == ErrorKind::AddrNotAvailable
                || error.kind() == ErrorKind::Unsupported =>
        {
            eprintln!("no IPv6 here: {error}");
            return;
        }
        Err(error) => unreachable!("no other reason to fail: {error}"),
    };
    let (client, _) = world.join();
    assert!(world.clients[client].0.server_addr().is_ipv6());

    let mut world = World::at("[::]:0", every_mode()).expect("IPv6 is there");
    let port = world.server().local_addr().expect("bound").port();
    let client = ClientDriver::connect(
        ("127.0.0.1", port),
        every_mode(),
        Connect::pinned(world.key),
    )
    .expect("a socket");
    world.clients.push((client, world::Log::default()));
    world.until("an IPv4 client", |world| {
        world.clients[0].1.connected.len() == 1
    });
}

#[test]
fn finishing_delivers_everything_first() {
    let mut world = World::new(every_mode());
    let (client, _) = world.join();
    for number in 0..200_u8 {
        world.clients[client]
            .0
            .send(4, &[number; 500])
            .expect("room");
    }
    world.clients[client].0.finish(3, "done");
    assert_eq!(
        world.clients[client].0.send(4, b"too late"),
        Err(SendError::Closing)
    );
    world.until("both to know", |world| {
        !world.at_server.closed.is_empty() && !world.clients[client].1.closed.is_empty()
    });
    assert_eq!(world.at_server.messages.len(), 200);
    assert_eq!(
        world.at_server.closed,
        [CloseReason::ByPeer {
            code: 3,
            text: "done".into()
        }]
    );
    assert_eq!(world.clients[client].1.closed, [CloseReason::ByUs]);
}

#[test]
fn letting_go_tells_the_other_side() {
    let mut world = World::new(every_mode());
    let (client, _) = world.join();
    world.join();
    drop(world.clients.remove(client));
    world.until("the server to know", |world| {
        !world.at_server.closed.is_empty()
    });
    world.server = None;
    world.until("the other client to know", |world| {
        !world.clients[0].1.closed.is_empty()
    });
    for reason in world
        .at_server
        .closed
        .iter()
        .chain(&world.clients[0].1.closed)
    {
        assert!(
            matches!(reason, CloseReason::ByPeer { code: 0, .. }),
            "{reason:?}"
        );
    }
}

#[test]
fn nonsense_in_the_config_is_an_error_not_a_surprise() {
    let options = || ServerOptions::new(new_key().expect("randomness"));
    let error =
        EndpointDriver::bind("127.0.0.1:0", Config::new(1), options()).expect_err("no channels");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("Config::channel"), "{error}");
    let server = EndpointDriver::bind("127.0.0.1:0", every_mode(), options()).expect("binds");
    let taken = server.local_addr().expect("bound");
    let error =
        EndpointDriver::bind(taken, every_mode(), options()).expect_err("the port is taken");
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}

#[test]
fn channels_that_differ_are_refused() {
    let mut world = World::new(every_mode());
    world.config = Config::new(0x7E57).channel(ChannelConfig::new(Delivery::Sequenced));
    let client = world.add();
    world.until("a refusal", |world| {
        !world.clients[client].1.refused.is_empty()
    });
    assert!(matches!(
        world.clients[client].1.refused[0],
        Refusal::Schema { .. }
    ));
}

#[test]
fn shards_serve_one_address_together() {
    let config = Config::new(5).channel(ChannelConfig::new(ORDERED));
    let key = new_key().expect("randomness");
    let mut shards = EndpointDriver::bind_shards("127.0.0.1:0", config.clone(), 2, |_| {
        ServerOptions::new(key.clone())
    })
    .expect("shards bind");
    let address = shards[0].local_addr().expect("bound");
    let how = || Connect::pinned(key.public());
    let mut clients: Vec<ClientDriver> = (0..16)
        .map(|_| ClientDriver::connect(address, config.clone(), how()).expect("a socket"))
        .collect();
    let (mut answers, mut served) = (0, vec![0; shards.len()]);
    let deadline = Instant::now() + world::PATIENCE;
    while answers < clients.len() {
        assert!(Instant::now() < deadline, "{answers} answers, {served:?}");
        for (server, served) in shards.iter_mut().zip(&mut served) {
            let echo = |server: &mut EndpointDriver, event: Event<'_>| {
                if let Event::Message {
                    connection,
                    channel,
                    payload,
                } = event
                {
                    *served += 1;
                    server.send(connection, channel, payload).expect("room");
                }
            };
            server.tick(echo).expect("the socket works");
        }
        for client in &mut clients {
            let answer = |client: &mut ClientDriver, event: Event<'_>| match event {
                Event::Connected { .. } => client.send(0, b"?").map(drop).expect("room"),
                Event::Message { .. } => answers += 1,
                other => unreachable!("nothing here leads to {other:?}"),
            };
            client.tick(answer).expect("the socket works");
        }
    }
    // Sixteen flows all hash to one of two shards once in 32,768 runs.
    assert!(served.iter().all(|served| *served > 0), "{served:?}");
}
