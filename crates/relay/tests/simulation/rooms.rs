//! Rooms: codes, changes of address, restarts, ends, limits.

use std::net::{IpAddr, SocketAddr};

use muse_netem::NatKind;
use muse_relay::{Limits, Link, LinkEvent, LinkState, Refusal, RoomKey};
use muse_wire::{Duration, Instant};

use crate::world::{Place, RELAY, World, ordinary};

const SYMMETRIC: Place = Place::Behind(NatKind::Symmetric);

/// A host and a guest that can only meet at the relay, in the middle of their talk.
fn talking(seed: u64) -> World {
    let mut world = World::new(seed, ordinary(), Limits::default(), SYMMETRIC);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(SYMMETRIC);
    world.talk(Duration::from_secs(3));
    assert!(!world.guest(0).received.is_empty());
    world
}

#[test]
fn each_side_learns_its_public_address() {
    let world = talking(1);
    let public = |world: &World, node| world.player(node).relayed.link().public_address();
    let host = public(&world, world.host).expect("the host was told");
    let guest = public(&world, world.guests[0]).expect("the guest was told");
    assert_eq!(host.ip(), IpAddr::from([198, 51, 100, 1]));
    assert_eq!(guest.ip(), IpAddr::from([198, 51, 100, 2]));
    let code = world.key.code();
    let opened = LinkEvent::Opened { code, public: host };
    assert!(world.host().events.contains(&opened));
}

#[test]
fn the_relay_follows_a_guest_and_a_host_to_new_addresses() {
    let mut world = talking(2);
    let nat = world.guest_nats[0].expect("it has a router");
    let elsewhere = IpAddr::from([198, 51, 100, 77]);
    world.simulation.network_mut().rebind_to(nat, elsewhere);
    world.talk(Duration::from_secs(5));
    assert!(world.settle(Duration::from_secs(3)), "the guest moved");
    assert_eq!(world.relay().stats().moves, 1);
    let nat = world.host_nat.expect("it has a router");
    let elsewhere = IpAddr::from([198, 51, 100, 78]);
    world.simulation.network_mut().rebind_to(nat, elsewhere);
    world.talk(Duration::from_secs(5));
    assert!(world.settle(Duration::from_secs(3)), "the host moved");
    assert_eq!(world.relay().stats().moves, 2);
    world.talk(Duration::from_secs(12));
    let seen = world.host().relayed.link().public_address();
    assert_eq!(seen.map(|seen| seen.ip()), Some(elsewhere));
    assert_eq!(
        world.relay().stats().guests_joined,
        1,
        "nobody joined again"
    );
}

#[test]
fn a_session_survives_a_restart_of_the_relay() {
    let mut world = talking(3);
    world.restart_relay(Limits::default());
    world.talk(Duration::from_secs(8));
    assert!(world.settle(Duration::from_secs(5)));
    let stats = world.relay().stats();
    assert_eq!((stats.rooms_opened, stats.guests_joined), (1, 1));
    assert!(!world.guest(0).closed && !world.host().closed);
}

#[test]
fn a_session_survives_a_relay_that_is_away_for_a_while() {
    let mut world = talking(4);
    let (relay, host, guest) = (world.relay, world.host, world.guests[0]);
    for node in [host, guest] {
        world.simulation.network_mut().partition(relay, node);
    }
    world.talk(Duration::from_secs(15));
    world.simulation.network_mut().heal_all();
    world.restart_relay(Limits::default());
    world.talk(Duration::from_secs(10));
    assert!(world.settle(Duration::from_secs(10)));
    assert!(world.guest(0).events.contains(&LinkEvent::Unanswered));
}

#[test]
fn a_wrong_code_is_refused() {
    let mut world = World::new(5, ordinary(), Limits::default(), Place::Public);
    let now = world.simulation.now();
    let code = RoomKey::new([99; 16]).code();
    world.add_guest_with(Place::Public, |seed| Link::join(now, RELAY, code, seed));
    world.simulation.run_for(Duration::from_secs(1));
    let refused = LinkEvent::Refused(Refusal::NoSuchRoom);
    assert_eq!(world.guest(0).events, [refused]);
    assert_eq!(world.guest(0).relayed.link().state(), LinkState::Over);
}

#[test]
fn a_relay_is_found_at_whichever_of_its_addresses_answers() {
    // Nothing is there; and further away than the time until the next address is asked.
    let nowhere = SocketAddr::from(([203, 0, 113, 77], 7_788));
    let far = ordinary().delay(Duration::from_millis(300));
    for (conditions, first, others) in [
        (ordinary(), nowhere, [RELAY]),
        (far.clone(), nowhere, [RELAY]),
        (far, RELAY, [nowhere]),
    ] {
        let key = RoomKey::new([99; 16]);
        let host = |_| Link::open(Instant::ZERO, first, key, [9; 32]).elsewhere(&others);
        let mut world = World::with_host(6, conditions, Limits::default(), Place::Public, host);
        world.simulation.run_for(Duration::from_secs(5));
        let opened = |event: &LinkEvent| matches!(event, LinkEvent::Opened { .. });
        assert!(world.host().events.iter().any(opened), "from {first}");
        assert_eq!(world.host().relayed.link().relay(), RELAY);
    }
}

#[test]
fn rooms_and_guests_that_fall_silent_are_forgotten() {
    let mut world = talking(6);
    assert_eq!((world.relay().rooms(), world.relay().guests()), (1, 1));
    world.simulation.detach(world.guests[0]);
    world.simulation.run_for(Duration::from_secs(90));
    assert_eq!((world.relay().rooms(), world.relay().guests()), (1, 0));
    assert_eq!(world.relay().stats().guests_expired, 1);
    world.simulation.detach(world.host);
    world.simulation.run_for(Duration::from_secs(90));
    assert_eq!((world.relay().rooms(), world.relay().guests()), (0, 0));
    assert_eq!(world.relay().stats().rooms_expired, 1);
}

#[test]
fn a_host_that_leaves_takes_its_room_along() {
    let mut world = talking(7);
    let host = world.host;
    world.link_mut(host).leave();
    world.simulation.run_for(Duration::from_secs(1));
    assert_eq!((world.relay().rooms(), world.relay().guests()), (0, 0));
    assert_eq!(world.relay().stats().rooms_closed, 1);
    world.simulation.run_for(Duration::from_secs(90));
    let refused = LinkEvent::Refused(Refusal::NoSuchRoom);
    assert!(
        world.guest(0).events.contains(&refused),
        "{:?}",
        world.guest(0).events
    );
}

#[test]
fn a_guest_that_leaves_makes_room_for_another() {
    let limits = Limits::default().guests_per_room(1);
    let mut world = World::new(8, ordinary(), limits, Place::Public);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(SYMMETRIC);
    world.simulation.run_for(Duration::from_secs(1));
    world.add_guest(SYMMETRIC);
    world.simulation.run_for(Duration::from_secs(1));
    let refused = LinkEvent::Refused(Refusal::RoomFull);
    assert!(world.guest(1).events.contains(&refused));
    let first = world.guests[0];
    world.link_mut(first).leave();
    world.simulation.run_for(Duration::from_secs(1));
    world.add_guest(SYMMETRIC);
    world.simulation.run_for(Duration::from_secs(1));
    let link = world.guest(2).relayed.link();
    assert_eq!(link.state(), LinkState::Ready);
}

#[test]
fn a_draining_relay_says_so_and_lets_those_within_finish() {
    let mut world = talking(9);
    world.relay_mut().drain();
    world.talk(Duration::from_secs(5));
    assert!(world.settle(Duration::from_secs(2)));
    assert!(world.host().events.contains(&LinkEvent::Draining));
    assert!(world.guest(0).events.contains(&LinkEvent::Draining));
    world.add_guest(SYMMETRIC);
    world.simulation.run_for(Duration::from_secs(1));
    let refused = LinkEvent::Refused(Refusal::Draining);
    assert_eq!(world.guest(1).events, [refused]);
}

#[test]
fn one_address_cannot_take_all_rooms() {
    let limits = Limits::default().rooms_per_ip(0);
    let mut world = World::new(10, ordinary(), limits, Place::Public);
    world.simulation.run_for(Duration::from_secs(1));
    let refused = LinkEvent::Refused(Refusal::NoPlace);
    assert_eq!(world.host().events, [refused]);
}

#[test]
fn one_address_cannot_fill_a_room() {
    let limits = Limits::default().guests_per_ip(2);
    let mut world = World::new(12, ordinary(), limits, SYMMETRIC);
    world.simulation.run_for(Duration::from_millis(300));
    // Three programs on the host's own router, which has one address, and one from elsewhere.
    for _ in 0..3 {
        world.add_neighbour();
    }
    world.add_guest(SYMMETRIC);
    world.simulation.run_for(Duration::from_secs(2));
    let ready: Vec<bool> = (0..4)
        .map(|guest| world.guest(guest).relayed.link().state() == LinkState::Ready)
        .collect();
    assert_eq!(ready.iter().filter(|ready| **ready).count(), 3, "{ready:?}");
    assert!(ready[3], "others are not touched");
}

#[test]
fn a_room_has_its_rate_and_others_are_not_touched() {
    let limits = Limits::default().packets_per_second(30);
    let mut world = World::new(11, ordinary(), limits, SYMMETRIC);
    world.simulation.run_for(Duration::from_millis(300));
    for _ in 0..4 {
        world.add_guest(SYMMETRIC);
    }
    world.talk(Duration::from_secs(10));
    let stats = *world.relay().stats();
    assert!(stats.limited > 0);
    // The initial content of a bucket, and what 11 seconds add.
    assert!(stats.packets_in <= 8 + 30 * 11, "{}", stats.packets_in);
}
