//! One host after another: the heir has the room when the host is gone, and nobody has it before.

use muse_relay::{Limits, Link, LinkEvent, LinkState};
use muse_wire::Duration;

use crate::world::{Place, World, ordinary};

const SECRET: [u8; 16] = [7; 16];

/// A room with an heir, guest 0, and another guest.
fn room(seed: u64) -> World {
    let mut world = World::new(seed, ordinary(), Limits::default(), Place::Public);
    world.simulation.run_for(Duration::from_millis(500));
    for _ in 0..2 {
        world.add_guest(Place::Public);
    }
    world.talk(Duration::from_secs(2));
    let now = world.simulation.now();
    world.link_mut(world.host).set_heir(now, Some(SECRET));
    world.simulation.wake(world.host);
    world.simulation.run_for(Duration::from_millis(500));
    world
}

fn claim(world: &mut World, guest: usize, secret: [u8; 16]) {
    let (now, node) = (world.simulation.now(), world.guests[guest]);
    world.link_mut(node).claim(now, 0, secret);
    world.simulation.wake(node);
}

fn succeeded(world: &World, guest: usize) -> bool {
    let events = &world.guest(guest).events;
    events.contains(&LinkEvent::Succeeded { term: 1 })
}

#[test]
fn the_heir_has_nothing_while_the_host_is_well() {
    let mut world = room(1);
    claim(&mut world, 0, SECRET);
    world.talk(Duration::from_secs(20));
    assert!(!succeeded(&world, 0));
    let first = LinkEvent::Host {
        term: 0,
        lock: [0; 16],
    };
    assert!(world.guest(0).events.contains(&first), "it is told");
    assert!(
        world.settle(Duration::from_secs(5)),
        "all talk with the host"
    );
    assert_eq!(world.relay().stats().successions, 0);
}

#[test]
fn without_the_secret_nobody_has_the_room() {
    let mut world = room(2);
    world.simulation.detach(world.host);
    claim(&mut world, 1, [8; 16]);
    world.simulation.run_for(Duration::from_secs(10));
    assert!(!succeeded(&world, 1));
    assert_eq!(world.relay().stats().successions, 0);
}

#[test]
fn the_heir_has_the_room_when_the_host_is_dead_and_everybody_is_told() {
    let mut world = room(3);
    let dead = world.simulation.detach(world.host).expect("it was there");
    let died = world.simulation.now();
    claim(&mut world, 0, SECRET);
    while !succeeded(&world, 0) {
        world.simulation.run_for(Duration::from_millis(10));
        assert!(world.simulation.now() < died + Duration::from_millis(900));
    }
    world.simulation.run_for(Duration::from_millis(100));
    let lock = Link::heir_lock(&SECRET);
    let told = LinkEvent::Host { term: 1, lock };
    assert!(
        world.guest(1).events.contains(&told),
        "{:?}",
        world.guest(1).events
    );
    let heir = world.guest(0).relayed.link();
    assert_eq!(
        (heir.state(), heir.code()),
        (LinkState::Ready, world.key.code())
    );
    assert_eq!(world.relay().guests(), 1, "the heir is no guest any more");
    // The host was only asleep: it has the room's key, but its term is over.
    world.simulation.attach(world.host, dead);
    world.simulation.wake(world.host);
    world.simulation.run_for(Duration::from_secs(10));
    assert!(world.host().events.contains(&LinkEvent::Replaced));
    assert_eq!(world.relay().stats().successions, 1);
    let heir = world.guest(0).relayed.link();
    assert_eq!(heir.state(), LinkState::Ready);
}

#[test]
fn a_host_that_leaves_leaves_its_room_to_the_heir() {
    let mut world = room(4);
    world.link_mut(world.host).leave();
    world.simulation.wake(world.host);
    claim(&mut world, 0, SECRET);
    world.simulation.run_for(Duration::from_millis(300));
    assert!(succeeded(&world, 0));
}

#[test]
fn a_new_host_has_its_room_again_after_a_restart_of_the_relay() {
    let mut world = room(5);
    let dead = world.simulation.detach(world.host).expect("it was there");
    claim(&mut world, 0, SECRET);
    world.simulation.run_for(Duration::from_secs(2));
    assert!(succeeded(&world, 0));
    world.restart_relay(Limits::default());
    world.simulation.run_for(Duration::from_secs(3));
    assert_eq!(world.relay().rooms(), 1);
    world.simulation.attach(world.host, dead);
    world.simulation.wake(world.host);
    world.simulation.run_for(Duration::from_secs(10));
    assert!(world.host().events.contains(&LinkEvent::Replaced));
    assert_eq!(world.guest(0).relayed.link().state(), LinkState::Ready);
}
