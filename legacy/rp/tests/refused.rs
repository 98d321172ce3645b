//! A client that is refused when it joins is told.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod world;
}

use muse_netem::Conditions;
use muse_rp::packet::{Flags, Packet};
use muse_rp::{Channel, Event, FailReason, Host, HostOptions};
use muse_wire::{Duration, Instant};
use support::world::{PORTS, World, addresses};

const SERVER: usize = 0;

fn options() -> HostOptions {
    let options = HostOptions::default().ports(PORTS[0], PORTS[1]);
    options.connections_max(1)
}

/// A server with one place and two clients that call in the same moment: both calls are answered before either joins.
fn race(seed: u64, loss: f64) -> World {
    let conditions = Conditions::default().delay(Duration::from_millis(20));
    let mut world = World::new(seed, conditions.loss(loss));
    let mut server = Host::new(options(), seed).expect("valid options");
    server.listen(true);
    world.add(server);
    for client in [1, 2] {
        let host = Host::new(options(), seed ^ (client << 32)).expect("valid options");
        let client = world.add(host);
        let now = world.now;
        let called = world.host(client).connect(now, addresses(SERVER)[0]);
        called.expect("the first");
    }
    world
}

#[test]
fn the_second_of_two_is_told_at_once() {
    let mut world = race(1, 0.0);
    world.run_for(Duration::from_millis(500));
    assert!(matches!(
        world.take_events(1)[..],
        [Event::Connected { .. }]
    ));
    let [Event::ConnectFailed { reason, .. }] = world.take_events(2)[..] else {
        panic!("the second client was told nothing");
    };
    assert_eq!(reason, FailReason::ByPeer);
    assert_eq!(
        reason.to_string(),
        "the server refused: it is full or closing"
    );
    assert_eq!(world.host(SERVER).stats().refused, 1);
    // Nothing is repeated to a client that is gone: its pings and the other's are all that is left.
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.host(2).stats().unexpected, 0);
    assert_eq!(world.host(SERVER).connections().count(), 1);
}

#[test]
fn each_client_hears_how_it_went_however_much_is_lost() {
    let (mut connected, mut refused) = (0, 0);
    for seed in 0..500 {
        let mut world = race(seed, 0.3);
        world.run_for(Duration::from_secs(12));
        for client in [1, 2] {
            let events = world.take_events(client);
            match events.first() {
                Some(Event::Connected { .. }) => connected += 1,
                Some(Event::ConnectFailed { reason, .. }) => {
                    refused += u32::from(*reason == FailReason::ByPeer);
                }
                other => panic!("seed {seed}, client {client}: {other:?}"),
            }
        }
    }
    assert!(connected >= 490 && refused > 200, "{connected}, {refused}");
}

/// The original ignores step 3 when it is full.
#[test]
fn a_server_that_says_nothing_is_given_up_with_its_reason() {
    let mut client = Host::new(options(), 1).expect("valid options");
    let server = addresses(SERVER);
    let mut buffer = [0; 1_000];
    let mut now = Instant::ZERO;
    client.connect(now, server[0]).expect("the first");
    let (_, len) = client
        .poll_transmit(now, Channel::Reliable, &mut buffer)
        .expect("step 1");
    let call = Packet::parse(&buffer[..len]).expect("a datagram");
    let offer = muse_rp::packet::ChannelInfo {
        reliable_port: PORTS[0].into(),
        partial_port: PORTS[1].into(),
        window: 10,
        percent: 80,
        ..Default::default()
    };
    let answer = Packet {
        sequence: call.ack.wrapping_add(1),
        ack: call.sequence,
        flags: Flags::INIT,
        kind: 0,
        payload: &offer.bytes(),
    };
    let mut datagram = [0; 64];
    let len = answer.emit(&mut datagram).expect("39 bytes");
    client.handle_datagram(now, Channel::Reliable, server[0], &datagram[..len]);
    while let Some(due) = client.poll_timeout() {
        now = due;
        client.handle_timeout(now);
        for channel in Channel::ALL {
            while client.poll_transmit(now, channel, &mut buffer).is_some() {}
        }
    }
    let Some(Event::ConnectFailed { reason, .. }) = client.poll_event() else {
        panic!("it never ends");
    };
    assert_eq!(
        (reason, now),
        (FailReason::NotAdmitted, Instant::from_secs(5))
    );
}
