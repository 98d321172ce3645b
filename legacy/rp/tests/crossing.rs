//! Two hosts that call each other at once have one connection, whatever the network does.
//!
//! `MUSE_SEEDS` runs more than 2,000 seeds.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod world;
}

use muse_netem::{Conditions, Jitter};
use muse_rp::{Channel, ConnectionId, Event, Host, HostOptions};
use muse_wire::Duration;
use support::world::{PORTS, World, addresses};

const SEEDS_DEFAULT: u64 = 2_000;

fn options() -> HostOptions {
    HostOptions::default()
        .ports(PORTS[0], PORTS[1])
        .connect_timeout(Duration::from_secs(1), 40)
        .ping_interval(Duration::from_secs(2))
        .time_out(Duration::from_secs(40))
}

/// Both call, up to two seconds apart, and use what comes of it.
fn play(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let bad = if random.bool() { 0.3 } else { 0.0 };
    let millis = |random: &mut fastrand::Rng, max| Duration::from_millis(random.u64(1..max));
    let conditions = Conditions::default()
        .delay(millis(&mut random, 200))
        .jitter(Jitter::Uniform(millis(&mut random, 200)))
        .loss(random.f64() * bad)
        .duplicate(random.f64() * bad, millis(&mut random, 300))
        .reorder(random.f64() * bad, millis(&mut random, 300));
    let mut world = World::new(seed, conditions);
    let is_listening = random.bool();
    for host in 0..2 {
        // Those that only call need no place for clients.
        let places = if is_listening { 8 } else { 0 };
        let options = options().connections_max(places);
        let mut ours = Host::new(options, random.u64(..)).expect("valid options");
        ours.listen(is_listening);
        assert_eq!(world.add(ours), host);
    }
    let now = world.now;
    let called = world.host(0).connect(now, addresses(1)[0]);
    let mut own = [called.ok(), None];
    if random.bool() {
        world.run_for(millis(&mut random, if is_listening { 2_000 } else { 500 }));
    }
    let now = world.now;
    // It fails if the other's call has already been answered to the end.
    own[1] = world.host(1).connect(now, addresses(0)[0]).ok();
    world.run_for(Duration::from_secs(45));
    let ends: Vec<ConnectionId> = (0..2)
        .map(|host| {
            let open: Vec<ConnectionId> = world.host(host).connections().collect();
            assert_eq!(open.len(), 1, "host {host}");
            let expected = own[host].unwrap_or(open[0]);
            let events = world.take_events(host);
            let connected = Event::Connected {
                connection: expected,
            };
            assert_eq!(events, [connected], "host {host}");
            open[0]
        })
        .collect();
    for (host, connection) in ends.iter().enumerate() {
        for channel in Channel::ALL {
            for number in 0..20_u32 {
                let payload = number.to_le_bytes();
                let sent = world.host(host).send(*connection, channel, 1, &payload);
                sent.expect("room in the queue");
            }
        }
    }
    world.run_for(Duration::from_secs(60));
    for (host, connection) in ends.iter().enumerate() {
        for channel in Channel::ALL {
            assert_eq!(world.host(host).unacknowledged(*connection, channel), 0);
        }
        let events = world.take_events(host);
        let reliable = events.iter().map(|event| match event {
            Event::Message(message) => u32::from(message.channel == Channel::Reliable),
            other => panic!("{other:?}"),
        });
        assert_eq!(reliable.sum::<u32>(), 20, "host {host}");
    }
}

#[test]
fn two_that_call_each_other_have_one_connection() {
    let seeds = std::env::var("MUSE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok());
    let failed: Vec<u64> = (0..seeds.unwrap_or(SEEDS_DEFAULT))
        .filter(|seed| std::panic::catch_unwind(|| play(*seed)).is_err())
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// A forged call from the server's address, with the highest numbers there are, keeps no client from its server.
#[test]
fn a_forged_call_does_no_harm() {
    let mut world = World::new(1, Conditions::default().delay(Duration::from_millis(30)));
    let mut server = Host::new(options(), 1).expect("valid options");
    server.listen(true);
    world.add(server);
    world.add(Host::new(options(), 2).expect("valid options"));
    let now = world.now;
    let called = world.host(1).connect(now, addresses(0)[0]);
    let called = called.expect("the first");
    let mut call = [0xFF; 39];
    call[8] = 2;
    call[9..].fill(0);
    world
        .host(1)
        .handle_datagram(now, Channel::Reliable, addresses(0)[0], &call);
    world.run_for(Duration::from_secs(20));
    assert_eq!(
        world.take_events(1),
        [Event::Connected { connection: called }]
    );
    assert_eq!(world.host(1).connections().count(), 1);
    assert_eq!(world.host(0).connections().count(), 1);
}

/// A host is not its own peer.
#[test]
fn a_host_that_calls_itself_gives_up() {
    let mut world = World::new(1, Conditions::default().delay(Duration::from_millis(30)));
    let mut host = Host::new(options(), 1).expect("valid options");
    host.listen(true);
    world.add(host);
    let now = world.now;
    let called = world.host(0).connect(now, addresses(0)[0]);
    world.run_for(Duration::from_secs(60));
    let events = world.take_events(0);
    assert!(
        matches!(events[..], [Event::ConnectFailed { connection, .. }] if Ok(connection) == called),
        "{events:?}"
    );
    assert_eq!(world.host(0).poll_timeout(), None);
}
