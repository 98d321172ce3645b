//! Handlers by message type, limits and statistics.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod world;
}

use std::sync::{Arc, Mutex};

use muse_netem::Conditions;
use muse_rp::{Channel, ConnectionId, Event, Handlers, Host, HostOptions, SendError};
use muse_wire::Duration;
use support::world::{PORTS, World, addresses};

/// A server at 0 and a client at 1, connected, and the client's connection.
fn connected(options: HostOptions) -> (World, ConnectionId) {
    let mut world = World::new(3, Conditions::default().delay(Duration::from_millis(5)));
    let mut server = Host::new(options.ports(PORTS[0], PORTS[1]), 1).expect("valid options");
    server.listen(true);
    world.add(server);
    let options = HostOptions::default().ports(PORTS[0], PORTS[1]);
    let client = world.add(Host::new(options, 2).expect("valid options"));
    let now = world.now;
    let connection = world.host(client).connect(now, addresses(0)[0]);
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.host(client).connections().count(), 1);
    (world, connection.expect("the first"))
}

/// Everything that one host has to say goes to another at once.
fn pass(from: &mut Host, source: usize, to: &mut Host) {
    let mut buffer = [0; 1_000];
    from.handle_timeout(Default::default());
    for channel in Channel::ALL {
        while let Some((_, len)) = from.poll_transmit(Default::default(), channel, &mut buffer) {
            let address = addresses(source)[channel as usize];
            to.handle_datagram(Default::default(), channel, address, &buffer[..len]);
        }
    }
}

#[test]
fn handlers_answer_and_are_replaced_and_removed() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut handlers = Handlers::default();
    let log = Arc::clone(&heard);
    handlers.set(1, move |host, message| {
        log.lock()
            .expect("not poisoned")
            .push(message.payload.clone());
        let answer = host.send(message.connection, message.channel, 2, b"answer");
        answer.expect("connected");
        // Only once: from now on another one hears this type.
        host.handlers().set(1, |host, _| {
            host.handlers().remove(1);
        });
    });
    let options = HostOptions::default()
        .ports(PORTS[0], PORTS[1])
        .ack_delay(Duration::ZERO);
    let mut server = Host::new(options.handlers(handlers), 1).expect("valid options");
    server.listen(true);
    let options = HostOptions::default()
        .ports(PORTS[0], PORTS[1])
        .ack_delay(Duration::ZERO);
    let mut client = Host::new(options, 2).expect("valid options");
    let connection = client
        .connect(Default::default(), addresses(0)[0])
        .expect("the first");
    for _ in 0..4 {
        pass(&mut client, 1, &mut server);
        pass(&mut server, 0, &mut client);
    }
    assert!(matches!(client.poll_event(), Some(Event::Connected { .. })));
    for payload in [b"a", b"b", b"c"] {
        client
            .send(connection, Channel::Reliable, 1, payload)
            .expect("connected");
    }
    pass(&mut client, 1, &mut server);
    assert!(matches!(server.dispatch(), Some(Event::Connected { .. })));
    let Some(Event::Message(left)) = server.dispatch() else {
        panic!("the third message has no handler any more");
    };
    assert_eq!((&left.payload[..], server.dispatch()), (&b"c"[..], None));
    assert_eq!(*heard.lock().expect("not poisoned"), [b"a"]);
    pass(&mut server, 0, &mut client);
    assert!(matches!(client.poll_event(), Some(Event::Message(message)) if message.kind == 2));
}

#[test]
fn limits_are_kept() {
    let (mut world, connection) = connected(HostOptions::default().connections_max(1));
    let host = world.host(1);
    let too_long = host.send(connection, Channel::Reliable, 1, &[0; 990]);
    assert_eq!(too_long, Err(SendError::TooLong(990)));
    let mut queued = 0;
    while host
        .send(connection, Channel::Reliable, 1, &[0; 989])
        .is_ok()
    {
        queued += 1;
    }
    assert_eq!(queued, 16_384);
    let options = HostOptions::default().ports(PORTS[0], PORTS[1]);
    let second = world.add(Host::new(options, 9).expect("valid options"));
    let now = world.now;
    world
        .host(second)
        .connect(now, addresses(0)[0])
        .expect("the first");
    world.run_for(Duration::from_secs(8));
    assert!(matches!(
        world.take_events(second)[..],
        [Event::ConnectFailed { .. }]
    ));
    assert!(world.host(0).stats().refused >= 5);
    assert_eq!(world.host(0).connections().count(), 1);
}

#[test]
fn two_hosts_that_answer_pings_at_once_measure_the_path_alone() {
    let options = || {
        let options = HostOptions::default().ports(PORTS[0], PORTS[1]);
        options.ping_answer_delay(Duration::ZERO)
    };
    let mut world = World::new(3, Conditions::default().delay(Duration::from_millis(15)));
    let mut server = Host::new(options(), 1).expect("valid options");
    server.listen(true);
    world.add(server);
    let client = world.add(Host::new(options(), 2).expect("valid options"));
    let now = world.now;
    let called = world.host(client).connect(now, addresses(0)[0]);
    world.run_for(Duration::from_secs(5));
    let at_server = world.host(0).connections().next().expect("it is open");
    for (place, connection) in [(client, called.expect("the first")), (0, at_server)] {
        let stats = world.host(place).connection_stats(connection);
        let stats = stats.expect("open");
        assert_eq!(stats.rtt, Some(Duration::from_millis(30)), "at {place}");
        assert_eq!(stats.pings_sent, stats.pings_answered);
    }
}

#[test]
fn statistics_count_what_happened() {
    let (mut world, connection) = connected(HostOptions::default());
    for _ in 0..10 {
        world
            .host(1)
            .send(connection, Channel::Reliable, 1, b"x")
            .expect("connected");
    }
    world.run_for(Duration::from_secs(5));
    let stats = world.host(1).connection_stats(connection).expect("open");
    // Two crossings of 5 ms, and the answer is kept for 25.
    assert_eq!(stats.rtt, Some(Duration::from_millis(35)));
    assert_eq!(stats.rtt_smoothed, stats.rtt);
    assert_eq!(stats.pings_sent, stats.pings_answered);
    assert_eq!(
        (stats.reliable.sender.sent, stats.reliable.sender.acks),
        (10, 10)
    );
    assert_eq!(stats.reliable.resent_percent(), 0.0);
    assert_eq!(stats.partial.receiver.delivered, 1, "INIT4");
    assert_eq!(stats.partial.skipped_percent(), 0.0);
}
