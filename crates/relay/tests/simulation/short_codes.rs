//! Guests that have a short code and nothing else: they learn the host's key through the relay and play; who has a wrong one stays outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use muse_netem::NatKind;
use muse_relay::packet::PACKET_LEN_MAX;
use muse_relay::{CodeSecret, KeyGiver, Limits, Link, LinkEvent, Relay, RoomKey, ShortCode};
use muse_transport::Refusal;
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

use crate::world::{Place, RELAY, World, ordinary};

const SECRET: CodeSecret = CodeSecret::new([1, 2, 3, 4]);

/// A world whose host gives its key by a short code.
fn world(seed: u64, loss: f64) -> (World, ShortCode) {
    let key = World::host_key(seed);
    let give = |link: Link| link.give_key(Instant::ZERO, SECRET, key);
    let place = Place::Behind(NatKind::PortRestricted);
    let conditions = ordinary().loss(loss);
    let mut world = World::with_host(seed, conditions, Limits::default(), place, give);
    world.simulation.run_for(Duration::from_secs(3));
    let code = world.host().relayed.link().short_code();
    (world, code.expect("it gives its key"))
}

fn wrong(code: &ShortCode, number: u8) -> ShortCode {
    ShortCode::new(code.room(), CodeSecret::new([9, 9, number, 0]))
}

#[test]
fn the_code_is_all_that_a_friend_needs() {
    for seed in 0..10 {
        let (mut world, code) = world(seed, 0.05);
        let typed = code.to_string().parse().expect("as it was printed");
        let guest = world.add_guest_by_code(Place::Behind(NatKind::Symmetric), typed);
        world.talk(Duration::from_secs(5));
        assert!(world.settle(Duration::from_secs(5)), "seed {seed}");
        assert!(world.guest(guest).received.len() > 20);
    }
}

#[test]
fn from_the_code_to_the_first_packet_it_takes_less_than_a_second_at_50_ms() {
    let (mut world, code) = world(1, 0.0);
    let began = world.simulation.now();
    let guest = world.add_guest_by_code(Place::Public, code);
    while world.guest(guest).received.is_empty() {
        world.everybody_speaks();
        world.simulation.run_for(Duration::from_millis(5));
        assert!(world.simulation.now() - began < Duration::from_secs(1));
    }
}

#[test]
fn a_wrong_code_is_refused_with_words_and_the_host_is_told() {
    let (mut world, code) = world(2, 0.0);
    let guest = world.add_guest_by_code(Place::Public, wrong(&code, 0));
    world.simulation.run_for(Duration::from_secs(2));
    let Some(Refusal::NoWay(text)) = &world.guest(guest).refused else {
        unreachable!("it is refused: {:?}", world.guest(guest).refused);
    };
    assert!(text.contains("wrong"), "{text}");
    let tries_left = KeyGiver::TRIES_MAX - 1;
    let told = LinkEvent::WrongCode { tries_left };
    assert!(world.host().events.contains(&told));
    // A room that is not there.
    let code = ShortCode::new(RoomKey::new([0xEE; 16]).code(), SECRET);
    let guest = world.add_guest_by_code(Place::Public, code);
    world.simulation.run_for(Duration::from_secs(2));
    let Some(Refusal::NoWay(text)) = &world.guest(guest).refused else {
        unreachable!("it is refused: {:?}", world.guest(guest).refused);
    };
    assert!(text.contains("no room"), "{text}");
}

#[test]
fn tries_run_out_and_friends_with_the_code_come_in_a_minute_later() {
    let (mut world, code) = world(3, 0.0);
    for number in 0..KeyGiver::TRIES_MAX as u8 {
        world.add_guest_by_code(Place::Public, wrong(&code, number));
        world.simulation.run_for(Duration::from_secs(1));
    }
    let early = world.add_guest_by_code(Place::Public, code);
    world.simulation.run_for(Duration::from_secs(1));
    let Some(Refusal::NoWay(text)) = &world.guest(early).refused else {
        unreachable!("too early: {:?}", world.guest(early).refused);
    };
    assert!(text.contains("too many"), "{text}");
    world.simulation.run_for(KeyGiver::TRY_INTERVAL);
    let late = world.add_guest_by_code(Place::Public, code);
    world.simulation.run_for(Duration::from_secs(1));
    assert!(world.guest(late).connection.is_some());
}

#[test]
fn a_restart_of_the_relay_in_between_costs_no_more_than_time() {
    for millis in (0..400).step_by(20) {
        let (mut world, code) = world(4, 0.0);
        let guest = world.add_guest_by_code(Place::Public, code);
        world.simulation.run_for(Duration::from_millis(millis));
        world.restart_relay(Limits::default());
        // The host notices within five seconds. A guest that was never in the room gives up when there is none.
        world.simulation.run_for(Duration::from_secs(20));
        let player = world.guest(guest);
        let no_room =
            matches!(&player.refused, Some(Refusal::NoWay(text)) if text.contains("no room"));
        assert!(
            player.connection.is_some() || no_room,
            "{millis} ms: {:?}",
            player.refused
        );
    }
}

#[test]
fn the_relay_is_told_neither_the_secret_nor_the_host_s_key() {
    let (mut world, code) = world(5, 0.0);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    world.simulation.network_mut().set_tap(move |sighting| {
        let mut log = log.lock().expect("nobody panics");
        log.push(sighting.payload.to_vec());
    });
    world.add_guest_by_code(Place::Public, code);
    world.talk(Duration::from_secs(2));
    assert!(world.settle(Duration::from_secs(2)));
    let seen = seen.lock().expect("nobody panics");
    assert!(seen.len() > 100);
    let key = World::host_key(5);
    assert!(
        !seen
            .iter()
            .any(|it| it.windows(16).any(|part| part == &key[..16]))
    );
}

#[test]
fn another_key_with_the_same_code_does_not_get_the_room() {
    // Among some 40,000 keys there are two with the same 30 bits.
    let mut known = BTreeMap::new();
    let [one, other] = (0..1_000_000_u128)
        .find_map(|number| {
            let key = RoomKey::new(number.to_le_bytes());
            known.insert(key.code(), key).map(|before| [before, key])
        })
        .expect("chances are one in 2^900 that there are none");
    assert!(one.code() == other.code() && one != other);
    let now = Instant::from_secs(1);
    let mut relay = Relay::danger_open(now, Limits::default(), [1; 32]);
    let mut open = |key, number: u8| {
        let from = SocketAddr::from(([192, 0, 2, number], 5));
        let mut link = Link::open(now, RELAY, key, [number; 32]);
        let mut buffer = [0; PACKET_LEN_MAX];
        loop {
            link.handle_timeout(now);
            while let Some((_, packet)) = link.poll_packet() {
                let len = packet.emit(&mut buffer);
                let (ecn, payload) = (Ecn::NotCapable, &mut buffer[..len]);
                relay.handle_datagram(now, Datagram { from, ecn, payload });
            }
            while let Some(sent) = relay.poll_transmit(now, &mut buffer) {
                link.handle_packet(now, RELAY, &buffer[..sent.len]);
            }
            if let Some(event) = link.poll_event() {
                return event;
            }
        }
    };
    assert!(matches!(open(one, 1), LinkEvent::Opened { .. }));
    assert_eq!(
        open(other, 2),
        LinkEvent::Refused(muse_relay::Refusal::Taken)
    );
    assert!(
        matches!(open(one, 3), LinkEvent::Opened { .. }),
        "it moves with its key"
    );
}
