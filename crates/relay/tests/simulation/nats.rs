//! Players that find a direct way and players that stay with the relay; the session is finished either way.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use muse_netem::{Jitter, NatKind};
use muse_relay::{Limits, Link, LinkEvent};
use muse_wire::Duration;

use crate::world::{Place, RELAY, World, ordinary, seeds};

/// A session between a host and a guest at these places; whether it became direct.
fn session(host: Place, guest: Place, seed: u64) -> bool {
    let mut world = World::new(seed, ordinary(), Limits::default(), host);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(guest);
    world.talk(Duration::from_secs(20));
    assert!(
        world.settle(Duration::from_secs(5)),
        "{host:?} and {guest:?}: {} of {}",
        world.guest(0).received.len(),
        world.guest(0).sent
    );
    assert!(world.guest(0).sent > 350, "{}", world.guest(0).sent);
    let direct = world.guest(0).is_direct();
    assert_eq!(world.host().is_direct(), direct, "both or neither");
    assert_eq!(world.relay().stats().directs, u64::from(direct));
    direct
}

#[test]
fn two_symmetric_nats_finish_their_session_through_the_relay() {
    let symmetric = Place::Behind(NatKind::Symmetric);
    assert!(!session(symmetric, symmetric, 1));
}

#[test]
fn a_symmetric_and_a_port_restricted_nat_stay_with_the_relay() {
    let (symmetric, restricted) = (
        Place::Behind(NatKind::Symmetric),
        Place::Behind(NatKind::PortRestricted),
    );
    assert!(!session(symmetric, restricted, 2));
    assert!(!session(restricted, symmetric, 3));
}

#[test]
fn the_next_ports_of_a_router_that_counts_up_are_guessed() {
    let restricted = Place::Behind(NatKind::PortRestricted);
    let counted = Place::Behind(NatKind::SymmetricCounted);
    for seed in 0..seeds(10) {
        assert!(session(counted, restricted, 30 + seed), "seed {seed}");
        assert!(session(restricted, counted, 30 + seed), "seed {seed}");
    }
    assert!(!session(counted, counted, 40), "two are not");
}

#[test]
fn an_introduction_that_overtakes_the_answer_counts() {
    let cone = Place::Behind(NatKind::PortRestricted);
    for seed in 0..seeds(50) {
        let jitter = Jitter::Uniform(Duration::from_millis(15));
        let conditions = ordinary().jitter(jitter);
        let mut world = World::new(seed, conditions, Limits::default(), cone);
        world.simulation.run_for(Duration::from_millis(500));
        world.add_guest(cone);
        world.talk(Duration::from_millis(600));
        assert!(world.guest(0).is_direct(), "seed {seed}");
    }
}

#[test]
fn everybody_else_finds_a_direct_way() {
    let cones = [
        Place::Public,
        Place::Behind(NatKind::FullCone),
        Place::Behind(NatKind::AddressRestricted),
        Place::Behind(NatKind::PortRestricted),
    ];
    for (number, host) in cones.into_iter().enumerate() {
        for guest in cones {
            assert!(
                session(host, guest, 10 + number as u64),
                "{host:?} {guest:?}"
            );
        }
    }
    let symmetric = Place::Behind(NatKind::Symmetric);
    for open in &cones[..3] {
        assert!(session(symmetric, *open, 20), "{open:?}");
        assert!(session(*open, symmetric, 21), "{open:?}");
    }
}

#[test]
fn neighbours_behind_one_router_take_the_short_way() {
    let symmetric = Place::Behind(NatKind::Symmetric);
    let mut world = World::new(8, ordinary(), Limits::default(), symmetric);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_neighbour();
    world.talk(Duration::from_secs(5));
    assert!(world.settle(Duration::from_secs(2)));
    let guest = world.guest(0);
    assert!(guest.is_direct() && world.host().is_direct());
    let remote = guest
        .connection
        .and_then(|it| guest.relayed.machine().remote(it));
    let inside = world.simulation.network().addresses(world.host)[0];
    assert_eq!(remote, Some(inside), "their own network, not the router");
}

#[test]
fn introductions_and_probes_that_are_lost_are_repeated() {
    let cone = Place::Behind(NatKind::PortRestricted);
    for seed in 0..20 {
        let lossy = ordinary().loss(0.25);
        let mut world = World::new(seed, lossy, Limits::default(), cone);
        while world.host().events.is_empty() {
            world.simulation.run_for(Duration::from_millis(100));
        }
        world.add_guest(cone);
        world.talk(Duration::from_secs(60));
        assert!(world.guest(0).is_direct(), "seed {seed}");
        assert!(world.settle(Duration::from_secs(20)), "seed {seed}");
    }
}

#[test]
fn once_direct_the_relay_carries_nothing_more() {
    let cone = Place::Behind(NatKind::PortRestricted);
    let mut world = World::new(4, ordinary(), Limits::default(), cone);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(cone);
    world.talk(Duration::from_secs(5));
    assert!(world.guest(0).is_direct() && world.host().is_direct());
    let carried = world.relay().stats().packets_in;
    assert!(carried > 0, "the handshake at least");
    world.talk(Duration::from_secs(60));
    assert_eq!(world.relay().stats().packets_in, carried);
    assert!(world.settle(Duration::from_secs(1)));
    assert_eq!(world.relay().guests(), 1, "the way back stays open");
}

#[test]
fn a_direct_way_that_dies_gives_way_to_the_relay_and_comes_back() {
    let cone = Place::Behind(NatKind::PortRestricted);
    let mut world = World::new(5, ordinary(), Limits::default(), cone);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(cone);
    world.talk(Duration::from_secs(5));
    assert!(world.guest(0).is_direct());
    let (host, guest) = (world.host, world.guests[0]);
    world.simulation.network_mut().partition(host, guest);
    world.talk(Duration::from_secs(15));
    assert!(!world.guest(0).is_direct() && !world.host().is_direct());
    assert!(world.settle(Duration::from_secs(3)), "nothing was lost");
    world.simulation.network_mut().heal(host, guest);
    world.talk(Duration::from_secs(60));
    assert!(world.guest(0).is_direct() && world.host().is_direct());
    assert!(world.settle(Duration::from_secs(3)));
    let events = &world.guest(0).events;
    assert!(
        events
            .iter()
            .any(|event| matches!(event, LinkEvent::Relayed { .. }))
    );
    assert!(!world.guest(0).closed && !world.host().closed);
}

#[test]
fn the_relay_holds_no_key_and_sees_no_word() {
    let symmetric = Place::Behind(NatKind::Symmetric);
    let mut world = World::new(6, ordinary(), Limits::default(), symmetric);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    world.simulation.network_mut().set_tap(move |sighting| {
        if sighting.to == RELAY {
            log.lock()
                .expect("nobody panics")
                .extend_from_slice(sighting.payload);
        }
    });
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(symmetric);
    world.talk(Duration::from_secs(3));
    assert!(world.settle(Duration::from_secs(3)));
    let seen = seen.lock().expect("nobody panics");
    assert!(seen.len() > 1_000);
    // All that the relay ever gets is what it receives: none of the secrets is in it.
    let secrets = world.secrets.lock().expect("nobody panics");
    assert!(secrets.len() >= 4, "two directions, logged by both sides");
    for line in secrets.iter() {
        let hex = line.rsplit(' ').next().expect("the secret comes last");
        let secret: Vec<u8> = (0..hex.len() / 2)
            .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).expect("hex"))
            .collect();
        assert_eq!(secret.len(), 32);
        let found = seen.windows(16).any(|window| window == &secret[..16]);
        assert!(!found, "a secret passed the relay");
    }
}

/// A host and a guest talk, the relay restarts, and they talk again. Returns the number of datagrams that went past the relay, and of those in which
/// a player was told an address of the other.
fn leaks(seed: u64, place: Place, host_only: bool, guest_only: bool) -> (usize, usize) {
    let options = move |link: Link| link.direct(!host_only);
    let mut world = World::with_host(seed, ordinary(), Limits::default(), place, options);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    world.simulation.network_mut().set_tap(move |sighting| {
        let mut log = log.lock().expect("nobody panics");
        log.push((sighting.from, sighting.to, sighting.payload.to_vec()));
    });
    world.simulation.run_for(Duration::from_millis(300));
    let (now, code) = (world.simulation.now(), world.key.code());
    world.add_guest_with(place, |seed| {
        Link::join(now, RELAY, code, seed).direct(!guest_only)
    });
    world.talk(Duration::from_secs(30));
    world.restart_relay(Limits::default());
    world.talk(Duration::from_secs(30));
    assert!(world.settle(Duration::from_secs(5)));
    // Addresses of both, outside and inside of their routers.
    let host: [[u8; 4]; 3] = [[198, 51, 100, 101], [198, 51, 100, 1], [192, 168, 1, 2]];
    let guest: [[u8; 4]; 3] = [[198, 51, 100, 102], [198, 51, 100, 2], [192, 168, 2, 2]];
    let is = |of: &[[u8; 4]; 3], ip: IpAddr| of.iter().any(|it| IpAddr::from(*it) == ip);
    let seen = seen.lock().expect("nobody panics");
    assert!(seen.len() > 1_000);
    let past = seen
        .iter()
        .filter(|(from, to, _)| ![*from, *to].contains(&RELAY));
    let told = seen.iter().filter(|(_, to, payload)| {
        let names = |it: &[u8; 4]| payload.windows(4).any(|bytes| bytes == it);
        is(&host, to.ip()) && guest.iter().any(names)
            || is(&guest, to.ip()) && host.iter().any(names)
    });
    (past.count(), told.count())
}

#[test]
fn relay_only_on_either_side_keeps_both_addresses_secret() {
    let cone = Place::Behind(NatKind::FullCone);
    for (seed, place) in [(7, Place::Public), (8, cone)] {
        for (host_only, guest_only) in [(true, false), (false, true), (true, true)] {
            assert_eq!(leaks(seed, place, host_only, guest_only), (0, 0));
        }
        let (past, told) = leaks(seed, place, false, false);
        assert!(past > 100 && told > 0, "the test sees what there is to see");
    }
}
