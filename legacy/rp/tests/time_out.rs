//! The time-out is kept while messages are under way: a cut that is shorter is survived, a longer one ends the connection at its time.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod world;
}

use muse_netem::Conditions;
use muse_rp::{Channel, ConnectionId, EndReason, Event, Host, HostOptions};
use muse_wire::{Duration, Instant};
use support::world::{PORTS, World, addresses};

const SERVER: usize = 0;
const CLIENT: usize = 1;
const INTERVAL: Duration = Duration::from_millis(500);

/// Two hosts without the delays for the original, whose timers are then as short as any: 20 ms.
fn connected(seed: u64, time_out: Duration) -> (World, [ConnectionId; 2]) {
    let options = || {
        HostOptions::default()
            .ports(PORTS[0], PORTS[1])
            .ack_delay(Duration::ZERO)
            .ping_answer_delay(Duration::ZERO)
            .ping_interval(INTERVAL)
            .time_out(time_out)
    };
    let mut world = World::new(
        seed,
        Conditions::default().delay(Duration::from_millis(1 + seed % 30)),
    );
    let mut server = Host::new(options(), seed).expect("valid options");
    server.listen(true);
    world.add(server);
    world.add(Host::new(options(), !seed).expect("valid options"));
    let now = world.now;
    let called = world.host(CLIENT).connect(now, addresses(SERVER)[0]);
    world.run_for(Duration::from_secs(2));
    let accepted = world.host(SERVER).connections().next();
    (
        world,
        [accepted.expect("it is open"), called.expect("the first")],
    )
}

/// Cuts the path with messages under way on both channels in both directions, for so long.
fn cut(world: &mut World, ends: [ConnectionId; 2], span: Duration) {
    for (place, connection) in [SERVER, CLIENT].into_iter().zip(ends) {
        for channel in Channel::ALL {
            for _ in 0..5 {
                let sent = world.host(place).send(connection, channel, 1, b"under way");
                sent.expect("room in the queue");
            }
        }
    }
    let (a, b) = (world.node(SERVER), world.node(CLIENT));
    world.network.partition(a, b);
    world.run_for(span);
    world.network.heal(a, b);
}

fn ended(events: &[Event]) -> Option<EndReason> {
    events.iter().find_map(|event| match event {
        Event::Disconnected { reason, .. } => Some(*reason),
        _ => None,
    })
}

#[test]
fn a_cut_shorter_than_the_time_out_is_survived() {
    for seed in 0..200 {
        let time_out = Duration::from_secs(8 + seed % 53);
        let (mut world, ends) = connected(seed, time_out);
        cut(&mut world, ends, time_out - INTERVAL * 2);
        world.run_for(Duration::from_secs(5));
        for (place, connection) in [SERVER, CLIENT].into_iter().zip(ends) {
            let events = world.take_events(place);
            assert_eq!(ended(&events), None, "seed {seed}, host {place}");
            let reliable = |event: &&Event| matches!(event, Event::Message(message) if message.channel == Channel::Reliable);
            assert_eq!(events.iter().filter(reliable).count(), 5, "seed {seed}");
            for channel in Channel::ALL {
                assert_eq!(world.host(place).unacknowledged(connection, channel), 0);
            }
        }
    }
}

#[test]
fn a_longer_cut_ends_the_connection_at_the_time_out() {
    for seed in 0..200 {
        let time_out = Duration::from_secs(2 + seed % 59);
        let (mut world, ends) = connected(seed, time_out);
        cut(&mut world, ends, time_out - INTERVAL);
        for place in [SERVER, CLIENT] {
            assert_eq!(ended(&world.take_events(place)), None, "seed {seed}");
        }
        let (a, b) = (world.node(SERVER), world.node(CLIENT));
        world.network.partition(a, b);
        world.run_for(INTERVAL * 3);
        for place in [SERVER, CLIENT] {
            let reason = ended(&world.take_events(place));
            assert_eq!(reason, Some(EndReason::TimedOut), "seed {seed}");
        }
    }
}

/// A peer that answers pings and acknowledges nothing: given up after the time-out, neither before nor much later.
#[test]
fn a_peer_that_only_answers_pings_is_given_up_after_the_time_out() {
    let time_out = Duration::from_secs(12);
    let (mut world, [accepted, _]) = connected(1, time_out);
    let sent = world
        .host(SERVER)
        .send(accepted, Channel::Partial, 1, b"never arrives");
    sent.expect("room in the queue");
    let (start, mut pings) = (world.now, 0);
    let mut gone_at = None;
    // The server alone, its partial channel leading nowhere.
    while gone_at.is_none() && world.now - start < Duration::from_secs(60) {
        let now = world.now;
        answer_pings(world.host(SERVER), now, &mut pings);
        if let Some(Event::Disconnected { reason, .. }) = world.host(SERVER).poll_event() {
            assert_eq!(reason, EndReason::Unacknowledged);
            gone_at = Some(now - start);
        }
        world.now = now + Duration::from_millis(5);
    }
    let gone_at = gone_at.expect("it is given up");
    assert!(pings > 20, "{pings} pings were answered");
    let late = gone_at - time_out;
    assert!(late < Duration::from_millis(50), "given up after {gone_at}");
}

/// Lets the server's time pass and answers its pings, and nothing else, in the client's name.
fn answer_pings(server: &mut Host, now: Instant, pings: &mut u32) {
    let mut buffer = [0; 1_000];
    server.handle_timeout(now);
    while server
        .poll_transmit(now, Channel::Partial, &mut buffer)
        .is_some()
    {}
    while let Some((to, len)) = server.poll_transmit(now, Channel::Reliable, &mut buffer) {
        if buffer[8] == 8 && buffer[11] == 0 {
            buffer[11] = 1;
            *pings += 1;
            server.handle_datagram(now, Channel::Reliable, to, &buffer[..len]);
        }
    }
}
