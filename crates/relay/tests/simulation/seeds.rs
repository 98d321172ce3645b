//! Hundreds of sessions with everything at once: loss, reordering, routers that forget, moves, restarts of the relay.

use std::net::IpAddr;

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, NatKind};
use muse_relay::Limits;
use muse_wire::Duration;

use crate::world::{Place, World, seeds};

/// Runs one session with random events.
fn run(seed: u64) -> World {
    let mut rng = Rng::with_seed(seed);
    let place = |rng: &mut Rng| match rng.u8(0..5) {
        0 => Place::Public,
        1 => Place::Behind(NatKind::FullCone),
        2 => Place::Behind(NatKind::AddressRestricted),
        3 => Place::Behind(NatKind::PortRestricted),
        _ => Place::Behind(NatKind::Symmetric),
    };
    let conditions = Conditions::default()
        .delay(Duration::from_millis(rng.u64(1..80)))
        .jitter(Jitter::Uniform(Duration::from_millis(rng.u64(1..20))))
        .loss(f64::from(rng.u8(0..10)) / 100.0)
        .duplicate(0.01, Duration::from_millis(3));
    let host = place(&mut rng);
    let mut world = World::new(seed, conditions, Limits::default(), host);
    let opened = |world: &World| !world.host().events.is_empty();
    while !opened(&world) {
        world.simulation.run_for(Duration::from_millis(500));
    }
    for _ in 0..rng.u8(1..4) {
        let guest = place(&mut rng);
        world.add_guest(guest);
    }
    world.talk(Duration::from_secs(5));
    for happening in 0..rng.u8(1..4) {
        match rng.u8(0..4) {
            0 => world.restart_relay(Limits::default()),
            1 => {
                let elsewhere = IpAddr::from([203, 0, 114, happening]);
                if let Some(nat) = world.host_nat {
                    world.simulation.network_mut().rebind_to(nat, elsewhere);
                }
            }
            2 => {
                let elsewhere = IpAddr::from([203, 0, 115, happening]);
                if let Some(nat) = world.guest_nats[0] {
                    world.simulation.network_mut().rebind_to(nat, elsewhere);
                }
            }
            _ => {
                let (host, guest) = (world.host, world.guests[0]);
                world.simulation.network_mut().partition(host, guest);
            }
        }
        world.talk(Duration::from_secs(10));
        world.simulation.network_mut().heal_all();
    }
    world.talk(Duration::from_secs(5));
    world
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_happens_to_the_way() {
    let mut directs = 0;
    for seed in 0..seeds(150) {
        let mut world = run(seed);
        world.settle(Duration::from_secs(30));
        for guest in 0..world.guests.len() {
            let player = world.guest(guest);
            assert!(
                world.is_complete(guest) && !player.closed,
                "seed {seed}: guest {guest} has {} of {}, closed {}; {:?}",
                player.received.len(),
                player.sent,
                player.closed,
                player.events
            );
            assert!(player.sent > 100, "seed {seed}: {}", player.sent);
            directs += u32::from(player.is_direct());
        }
    }
    assert!(directs > 0);
}

#[test]
fn a_seed_replays() {
    let outcome = |seed| {
        let world = run(seed);
        let received: Vec<usize> = (0..world.guests.len())
            .map(|guest| world.guest(guest).received.len())
            .collect();
        (received, *world.relay().stats())
    };
    for seed in 0..5 {
        assert_eq!(outcome(seed), outcome(seed));
    }
}
