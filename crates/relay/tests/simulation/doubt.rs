//! A direct way in doubt: what goes there goes through the relay as well, long before anybody gives it up.

use muse_netem::NatKind;
use muse_relay::{Limits, LinkEvent};
use muse_wire::{Duration, Instant};

use crate::world::{Place, World, ordinary, seeds};

const CONE: Place = Place::Behind(NatKind::PortRestricted);

/// A host and a guest who talk directly, 80 ms there and back.
fn talking(seed: u64, loss: f64) -> World {
    let conditions = ordinary().delay(Duration::from_millis(40)).loss(loss);
    let mut world = World::new(seed, conditions, Limits::default(), CONE);
    while world.host().events.is_empty() {
        world.simulation.run_for(Duration::from_millis(100));
    }
    world.add_guest(CONE);
    for _ in 0..6 {
        world.talk(Duration::from_secs(5));
        if world.guest(0).is_direct() && world.host().is_direct() {
            return world;
        }
    }
    unreachable!("seed {seed}: no direct way");
}

/// Lets the guest talk, and returns the longest time in which it got no echo.
fn longest_silence(world: &mut World, span: Duration) -> Duration {
    let (began, mut longest) = (world.simulation.now(), Duration::ZERO);
    let (mut last, mut known) = (began, world.guest(0).received.len());
    let mut speaks_at = Instant::ZERO;
    while world.simulation.now() < began + span {
        let now = world.simulation.now();
        if now >= speaks_at {
            world.everybody_speaks();
            speaks_at = now + Duration::from_millis(50);
        }
        world.simulation.run_for(Duration::from_millis(5));
        let received = world.guest(0).received.len();
        if received > known {
            (last, known) = (world.simulation.now(), received);
        }
        longest = longest.max(world.simulation.now() - last);
    }
    longest
}

/// Judges silences by a limit for 95 of 100. What was lost is sent again and everything behind it waits, so with bad luck one takes longer, but none as long as it takes to give
/// a way up.
fn judge(mut silences: Vec<Duration>, limit_ms: u64) {
    silences.sort_unstable();
    let p95 = silences[silences.len() * 95 / 100];
    assert!(p95 < Duration::from_millis(limit_ms), "{p95:?}");
    let longest = silences[silences.len() - 1];
    assert!(longest < Duration::from_millis(2_500), "{longest:?}");
}

fn went_back(world: &World) -> bool {
    let back = |events: &[LinkEvent]| {
        let mut events = events.iter();
        events.any(|event| matches!(event, LinkEvent::Relayed { .. }))
    };
    back(&world.host().events) || back(&world.guest(0).events)
}

#[test]
fn a_way_that_is_cut_costs_a_moment() {
    let mut silences = Vec::new();
    for seed in 0..seeds(30) {
        let mut world = talking(seed, 0.02);
        let (host, guest) = (world.host, world.guests[0]);
        world.simulation.network_mut().partition(host, guest);
        // What was lost is sent again, and everything behind it waits for it.
        silences.push(longest_silence(&mut world, Duration::from_secs(6)));
        assert!(!world.guest(0).is_direct() && !world.host().is_direct());
        assert!(world.settle(Duration::from_secs(5)), "seed {seed}");
    }
    judge(silences, 800);
}

#[test]
fn a_router_that_forgets_costs_a_moment() {
    let mut silences = Vec::new();
    for seed in 0..seeds(30) {
        let mut world = talking(seed, 0.02);
        let nat = [world.host_nat, world.guest_nats[0]][seed as usize % 2];
        let nat = nat.expect("both have a router");
        world.simulation.network_mut().rebind(nat);
        silences.push(longest_silence(&mut world, Duration::from_secs(6)));
        assert!(world.settle(Duration::from_secs(5)), "seed {seed}");
    }
    judge(silences, 1_000);
}

#[test]
fn a_short_silence_is_bridged_by_the_relay_and_ends_nothing() {
    for seed in 0..seeds(10) {
        let mut world = talking(seed, 0.0);
        let before = world.relay().stats().packets_in;
        let (host, guest) = (world.host, world.guests[0]);
        world.simulation.network_mut().partition(host, guest);
        let silence = longest_silence(&mut world, Duration::from_millis(1_500));
        assert!(
            silence < Duration::from_millis(800),
            "seed {seed}: {silence:?}"
        );
        world.simulation.network_mut().heal_all();
        world.talk(Duration::from_secs(2));
        let bridged = world.relay().stats().packets_in;
        assert!(bridged > before);
        world.talk(Duration::from_secs(10));
        assert_eq!(world.relay().stats().packets_in, bridged, "seed {seed}");
        assert!(!went_back(&world) && world.guest(0).is_direct());
        assert!(world.settle(Duration::from_secs(1)));
    }
}

#[test]
fn both_leave_a_way_that_is_dead_in_one_direction() {
    let mut silences = Vec::new();
    for seed in 0..seeds(10) {
        let mut world = talking(seed, 0.01);
        let (host, guest) = (world.host, world.guests[0]);
        let (from, to) = [(host, guest), (guest, host)][seed as usize % 2];
        world.simulation.network_mut().partition_one_way(from, to);
        silences.push(longest_silence(&mut world, Duration::from_secs(15)));
        assert!(went_back(&world), "seed {seed}");
        assert!(!world.guest(0).is_direct() && !world.host().is_direct());
        assert!(world.settle(Duration::from_secs(5)), "seed {seed}");
    }
    judge(silences, 1_000);
}

#[test]
fn who_says_little_gives_no_cause_for_doubt() {
    let mut world = talking(1, 0.0);
    let before = world.relay().stats().packets_in;
    for pause in [300, 700, 1_500, 2_500, 4_000] {
        for _ in 0..10 {
            world.everybody_speaks();
            world.simulation.run_for(Duration::from_millis(pause));
        }
    }
    assert_eq!(world.relay().stats().packets_in, before);
    assert!(!went_back(&world) && world.guest(0).is_direct());
}
