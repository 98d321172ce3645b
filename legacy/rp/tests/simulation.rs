//! Thousands of virtual networks: what is promised holds under loss, duplication, reordering, restarts and cuts.
//!
//! `MUSE_SEEDS` runs more than 2,000 seeds, `MUSE_SEED` one alone.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod world;
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use muse_netem::{Conditions, Jitter};
use muse_rp::{Channel, ConnectionId, EndReason, Event, FailReason, Host, HostOptions, Message};
use muse_wire::Duration;
use muse_wire::partial::losses_allowed;
use support::world::{PORTS, World, addresses};

const SEEDS_DEFAULT: u64 = 2_000;
const PARTS: u64 = 4;
const SERVER: usize = 0;

/// The choices made from a seed.
struct Plan {
    window: u32,
    percent: u8,
    conditions: Conditions,
    clients: usize,
    messages: u32,
    restart: Option<usize>,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let chance = |random: &mut fastrand::Rng, max: f64| match random.bool() {
            true => random.f64() * max,
            false => 0.0,
        };
        let millis = |random: &mut fastrand::Rng, max| Duration::from_millis(random.u64(0..max));
        let clients = random.u64(1..=3) as usize;
        Self {
            window: random.u32(1..=40),
            percent: random.u8(0..=100),
            conditions: Conditions::default()
                .delay(Duration::from_micros(200) + millis(&mut random, 60))
                .jitter(Jitter::Uniform(millis(&mut random, 20)))
                .loss(chance(&mut random, 0.3))
                .duplicate(chance(&mut random, 0.2), millis(&mut random, 50))
                .reorder(chance(&mut random, 0.2), millis(&mut random, 50)),
            clients,
            messages: random.u32(1..=80),
            restart: random
                .bool()
                .then(|| random.u64(0..=clients as u64) as usize),
        }
    }

    fn options(&self) -> HostOptions {
        HostOptions::default()
            .ports(PORTS[0], PORTS[1])
            .window(self.window)
            .percent(self.percent)
            .time_out(Duration::from_secs(20))
            .connect_timeout(Duration::from_secs(2), 20)
    }
}

/// One side of one connection as its application saw it.
#[derive(Default)]
struct Seen {
    connected: u32,
    disconnected: Vec<EndReason>,
    reliable: Vec<u32>,
    partial: Vec<(u32, u32)>,
}

fn play(seed: u64) {
    let plan = Plan::new(seed);
    let mut world = World::new(seed, plan.conditions.clone());
    let mut server = Host::new(plan.options(), seed).expect("valid options");
    server.listen(true);
    world.add(server);
    for client in 1..=plan.clients {
        let host = Host::new(plan.options(), seed ^ (client as u64) << 32).expect("valid options");
        world.add(host);
        call(&mut world, client);
    }
    exchange(&mut world, &plan, seed, "first");
    let Some(restarted) = plan.restart else {
        return;
    };
    let mut host = Host::new(plan.options(), !seed).expect("valid options");
    host.listen(restarted == SERVER);
    world.restart(restarted, host);
    match restarted {
        SERVER => {
            // The clients notice by their pings and call again.
            world.run_for(Duration::from_secs(25));
            for client in 1..=plan.clients {
                let seen = look(&world.take_events(client));
                assert_eq!(seen.disconnected, [EndReason::TimedOut], "client {client}");
                call(&mut world, client);
            }
            exchange(&mut world, &plan, seed, "after the server's restart");
        }
        client => {
            call(&mut world, client);
            world.run_for(Duration::from_secs(45));
            let at_server = world.take_events(SERVER);
            assert_eq!(look(&at_server).disconnected, [EndReason::Replaced]);
            assert_eq!(look(&at_server).connected, 1);
            let new = at_server.iter().find_map(|event| match event {
                Event::Connected { connection } => Some(*connection),
                _ => None,
            });
            check_pair(&mut world, &plan, new.expect("connected again"), client);
        }
    }
}

fn call(world: &mut World, client: usize) {
    let now = world.now;
    let called = world.host(client).connect(now, addresses(SERVER)[0]);
    called.expect("no connection to the server yet");
}

/// Waits for all clients, has everybody send on both channels, and checks what arrived.
fn exchange(world: &mut World, plan: &Plan, seed: u64, when: &str) {
    world.run_for(Duration::from_secs(30));
    let connections: Vec<ConnectionId> = world.host(SERVER).connections().collect();
    assert_eq!(connections.len(), plan.clients, "{when}, seed {seed}");
    assert_eq!(
        look(&world.take_events(SERVER)).connected as usize,
        plan.clients
    );
    for connection in connections {
        let peer = world.host(SERVER).peer(connection).expect("it is open");
        let client = (1..=plan.clients).find(|client| addresses(*client)[0] == peer);
        check_pair(world, plan, connection, client.expect("a client's address"));
    }
}

/// Both sides send on both channels, in bursts, until everything is acknowledged.
fn check_pair(world: &mut World, plan: &Plan, at_server: ConnectionId, client: usize) {
    let seen = look(&world.take_events(client));
    assert_eq!((seen.connected, seen.disconnected.len()), (1, 0));
    let at_client = world.host(client).connections().next().expect("it is open");
    let ends = [(SERVER, at_server), (client, at_client)];
    for number in 0..plan.messages {
        for (place, connection) in ends {
            for channel in Channel::ALL {
                let sent = world
                    .host(place)
                    .send(connection, channel, 7, &number.to_le_bytes());
                sent.expect("room in the queue");
            }
        }
        if number % 8 == 0 {
            world.run_for(Duration::from_millis(10));
        }
    }
    let mut seconds = 0;
    let left = |world: &mut World| -> usize {
        let both = ends.map(|(place, connection)| {
            Channel::ALL.map(|channel| world.host(place).unacknowledged(connection, channel))
        });
        both.as_flattened().iter().sum()
    };
    while left(world) > 0 {
        world.run_for(Duration::from_secs(1));
        seconds += 1;
        assert!(seconds < 300, "not everything is acknowledged");
    }
    for (place, connection) in ends {
        let events = world.take_events(place);
        let events: Vec<Event> = events
            .into_iter()
            .filter(|event| !matches!(event, Event::Message(message) if message.connection != connection))
            .collect();
        let seen = look(&events);
        assert_eq!(seen.disconnected, []);
        assert!(
            seen.reliable.iter().copied().eq(0..plan.messages),
            "{:?}",
            seen.reliable
        );
        check_partial(&seen.partial, plan, u32::from(place != SERVER));
    }
}

/// Order, and at most the promised losses in each aligned window. At the client INIT4 is the first slot.
fn check_partial(seen: &[(u32, u32)], plan: &Plan, slots_before: u32) {
    let mut lost = vec![0; (plan.messages + slots_before).div_ceil(plan.window) as usize];
    let mut next = 0;
    for &(number, skipped) in seen {
        assert_eq!(number, next + skipped, "order and count of skipped");
        for number in next..number {
            lost[((number + slots_before) / plan.window) as usize] += 1;
        }
        next = number + 1;
    }
    assert_eq!(
        next, plan.messages,
        "the last is acknowledged, so it arrived"
    );
    let allowed = losses_allowed(plan.window, plan.percent);
    assert!(
        lost.iter().all(|lost| *lost <= allowed),
        "{lost:?}, allowed {allowed}"
    );
}

fn look(events: &[Event]) -> Seen {
    let mut seen = Seen::default();
    for event in events {
        match event {
            Event::Connected { .. } => seen.connected += 1,
            Event::Disconnected { reason, .. } => seen.disconnected.push(*reason),
            Event::Message(message) => match message.channel {
                Channel::Reliable => seen.reliable.push(number(message)),
                Channel::Partial => seen.partial.push((number(message), message.skipped)),
            },
            other => panic!("{other:?}"),
        }
    }
    seen
}

fn number(message: &Message) -> u32 {
    assert_eq!(message.kind, 7);
    let bytes = message.payload[..].try_into().expect("four bytes");
    u32::from_le_bytes(bytes)
}

fn run_part(part: u64) {
    let variable = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    if let Some(seed) = variable("MUSE_SEED") {
        if seed % PARTS == part {
            play(seed);
        }
        return;
    }
    let seeds = variable("MUSE_SEEDS").unwrap_or(SEEDS_DEFAULT);
    let failed: Vec<u64> = (part..seeds)
        .step_by(PARTS as usize)
        .filter(|seed| catch_unwind(AssertUnwindSafe(|| play(*seed))).is_err())
        .collect();
    assert!(
        failed.is_empty(),
        "again with MUSE_SEED=... cargo test -p muse-rp --test simulation: {failed:?}"
    );
}

#[test]
fn promises_hold_part_0() {
    run_part(0);
}

#[test]
fn promises_hold_part_1() {
    run_part(1);
}

#[test]
fn promises_hold_part_2() {
    run_part(2);
}

#[test]
fn promises_hold_part_3() {
    run_part(3);
}

#[test]
fn a_cut_expels_both_sides_and_a_server_that_is_not_there_is_given_up() {
    let mut world = World::new(1, Conditions::default().delay(Duration::from_millis(10)));
    let options = || HostOptions::default().ports(PORTS[0], PORTS[1]);
    let mut server = Host::new(options(), 1).expect("valid options");
    server.listen(true);
    world.add(server);
    let client = world.add(Host::new(options(), 2).expect("valid options"));
    call(&mut world, client);
    world.run_for(Duration::from_secs(1));
    let (a, b) = (world.node(SERVER), world.node(client));
    world.network.partition(a, b);
    world.run_for(Duration::from_secs(15));
    for place in [SERVER, client] {
        let seen = look(&world.take_events(place));
        assert_eq!(
            (seen.connected, &seen.disconnected[..]),
            (1, &[EndReason::TimedOut][..])
        );
    }
    call(&mut world, client);
    world.run_for(Duration::from_secs(15));
    let failed = world.take_events(client);
    let [Event::ConnectFailed { reason, .. }] = failed[..] else {
        panic!("{failed:?}");
    };
    assert_eq!(reason, FailReason::Unanswered);
    let sent = world.host(client).stats().datagrams_sent;
    world.run_for(Duration::from_secs(3_600));
    assert_eq!(
        world.host(client).stats().datagrams_sent,
        sent,
        "nothing for ever"
    );
    assert_eq!(world.host(client).poll_timeout(), None);
}
