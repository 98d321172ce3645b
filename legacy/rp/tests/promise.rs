//! The promise of the partially reliable channel at our client's receiver: at most the promised share of each counted window is lost, in
//! order, from a server of the original as from one of ours.
//!
//! `MUSE_SEEDS` runs more than 4,000 seeds.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod either;
    pub(crate) mod original;
    pub(crate) mod world;
}

use muse_netem::{Conditions, Jitter};
use muse_rp::{Channel, Event, Host, HostOptions};
use muse_wire::Duration;
use support::either::Either;
use support::original::Original;
use support::world::{PORTS, World, addresses};

const SEEDS_DEFAULT: u64 = 4_000;
const SERVER: usize = 0;
const CLIENT: usize = 1;

/// The choices made from a seed.
struct Plan {
    window: u32,
    percent: u32,
    messages: u32,
    is_original: bool,
    conditions: Conditions,
}

/// Losses on the way to one client.
#[derive(Default)]
struct Losses {
    all: u32,
    /// Windows that lost as much as they may, where that is something.
    full: u32,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let millis = |random: &mut fastrand::Rng, max| Duration::from_millis(random.u64(1..max));
        Self {
            window: random.u32(1..=50),
            percent: random.u32(0..=100),
            messages: random.u32(1..=300),
            is_original: random.bool(),
            conditions: Conditions::default()
                .delay(millis(&mut random, 60))
                .jitter(Jitter::Uniform(millis(&mut random, 30)))
                .loss(random.f64() * 0.4)
                .duplicate(random.f64() * 0.2, millis(&mut random, 80))
                .reorder(random.f64() * 0.3, millis(&mut random, 80)),
        }
    }

    fn options(&self) -> HostOptions {
        HostOptions::default()
            .ports(PORTS[0], PORTS[1])
            .time_out(Duration::from_secs(60))
            .connect_timeout(Duration::from_secs(2), 30)
    }

    fn server(&self, seed: u64) -> Either {
        if self.is_original {
            let server = Original::server(seed, PORTS, self.window, self.percent);
            return Either::Original(server);
        }
        let options = self.options().window(self.window);
        let options = options.percent(self.percent as u8);
        let mut server = Host::new(options, seed).expect("valid options");
        server.listen(true);
        Either::Ours(server)
    }
}

fn play(seed: u64) -> Losses {
    let plan = Plan::new(seed);
    let mut world = World::new(seed, plan.conditions.clone());
    world.add(plan.server(seed));
    let client = Host::new(plan.options(), !seed).expect("valid options");
    world.add(Either::Ours(client));
    let now = world.now;
    let called = world.host(CLIENT).ours().connect(now, addresses(SERVER)[0]);
    called.expect("the first");
    world.run_for(Duration::from_secs(20));
    let events = world.take_events(CLIENT);
    assert!(
        matches!(events[..], [Event::Connected { .. }]),
        "{events:?}"
    );
    for number in 0..plan.messages {
        send(&mut world, number);
        if number % 8 == 0 {
            world.run_for(Duration::from_millis(10));
        }
    }
    let mut seconds = 0;
    while unacknowledged(&mut world) > 0 {
        world.run_for(Duration::from_secs(1));
        seconds += 1;
        assert!(seconds < 600, "not everything is acknowledged");
    }
    check(&plan, &world.take_events(CLIENT))
}

fn send(world: &mut World<Either>, number: u32) {
    let (now, payload) = (world.now, number.to_le_bytes());
    match world.host(SERVER) {
        Either::Original(server) => server.send(now, Channel::Partial, &payload),
        Either::Ours(server) => {
            let connection = server.connections().next().expect("it is open");
            let sent = server.send(connection, Channel::Partial, 1, &payload);
            sent.expect("room in the queue");
        }
    }
}

fn unacknowledged(world: &mut World<Either>) -> usize {
    match world.host(SERVER) {
        Either::Original(server) => server.unacknowledged(Channel::Partial),
        Either::Ours(server) => {
            let connection = server.connections().next().expect("it is open");
            server.unacknowledged(connection, Channel::Partial)
        }
    }
}

/// Counts what is missing in each window from the numbers alone. Step 4 is the first slot of the first window, so message `n` has slot `n + 1`.
fn check(plan: &Plan, events: &[Event]) -> Losses {
    let mut present = vec![false; plan.messages as usize + 1];
    present[0] = true;
    let mut next = 0;
    for event in events {
        let Event::Message(message) = event else {
            panic!("{event:?}");
        };
        let payload = message.payload[..].try_into().expect("four bytes");
        let number = u32::from_le_bytes(payload);
        assert!(number >= next, "{number} after {next}: out of order");
        assert_eq!(message.skipped, number - next, "what it says is missing");
        next = number + 1;
        present[number as usize + 1] = true;
    }
    assert_eq!(next, plan.messages, "the last is settled, so it arrived");
    // In whole numbers, as the standard has it.
    let allowed = plan.window * (100 - plan.percent) / 100;
    let mut losses = Losses::default();
    for (index, window) in present.chunks(plan.window as usize).enumerate() {
        let lost = window.iter().filter(|present| !**present).count() as u32;
        assert!(
            lost <= allowed,
            "window {index} of {} at {} %: {lost} lost, {allowed} allowed",
            plan.window,
            plan.percent
        );
        losses.all += lost;
        losses.full += u32::from(lost > 0 && lost == allowed);
    }
    losses
}

#[test]
fn no_counted_window_loses_more_than_promised() {
    let seeds = std::env::var("MUSE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok());
    let seeds = seeds.unwrap_or(SEEDS_DEFAULT);
    let (mut all, mut full, mut failed) = (0, 0, Vec::new());
    for seed in 0..seeds {
        match std::panic::catch_unwind(|| play(seed)) {
            Ok(losses) => {
                all += losses.all;
                full += losses.full;
            }
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    // Otherwise nothing was tried.
    assert!(u64::from(all) > seeds, "only {all} lost");
    assert!(u64::from(full) > seeds / 10, "only {full} windows used up");
}
