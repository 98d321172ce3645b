//! Attackers: nothing is amplified, nobody is disturbed, nothing grows without bound.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use muse_netem::{NatKind, Stage};
use muse_relay::packet::{Candidates, PACKET_LEN_MAX, Packet, ShownToken, VERSION};
use muse_relay::{LegId, Limits, RoomKey};
use muse_wire::{Duration, Ecn};

use crate::world::{Place, RELAY, World, ordinary};

const SYMMETRIC: Place = Place::Behind(NatKind::Symmetric);

/// Packets that anybody can make up.
fn made_up(rng: &mut fastrand::Rng) -> Vec<u8> {
    let (random, cookie) = (rng.u64(..).to_le_bytes(), [rng.u8(..); 20]);
    let id = LegId::from_bits(rng.u64(..) & (0xFFFF_FFFF_0000_0000 | rng.u64(0..16)));
    let mut local = Candidates::NONE;
    local.push(SocketAddr::from(([10, 0, 0, 1], 5)));
    let key = RoomKey::new([rng.u8(..); 16]);
    let (token, nonce, direct) = ([rng.u8(..); 8], random, true);
    let packet = match rng.u8(0..15) {
        0 => Packet::Hello {
            version: VERSION,
            random,
        },
        1 => Packet::Hello { version: 9, random },
        2 => Packet::Open {
            random,
            cookie,
            key,
            direct,
            local,
            token: ShownToken::NONE,
            term: rng.u32(0..3),
        },
        3 => Packet::Join {
            random,
            cookie,
            code: key.code(),
            direct,
            local,
        },
        4 => Packet::Keep { id },
        5 => Packet::Response { id, proof: cookie },
        6 => Packet::Leave { id },
        7 => Packet::Acquaint { id },
        8 => Packet::Works { id, token },
        9 => Packet::Probe { token, nonce },
        10 => Packet::Ban {
            id,
            random,
            guest: id,
            addresses: local,
        },
        11 => Packet::Heir {
            id,
            term: 0,
            lock: [rng.u8(0..3); 16],
            sealed: [0; 16],
        },
        12 => Packet::Succeed {
            id,
            term: 0,
            secret: [rng.u8(0..3); 16],
        },
        13 => {
            let mut data = id.data_header().to_vec();
            data.resize(8 + rng.u8(..) as usize, 0xAB);
            return data;
        }
        _ => {
            let len = rng.u8(..);
            return (0..len).map(|_| rng.u8(..)).collect();
        }
    };
    let mut buffer = [0; PACKET_LEN_MAX];
    let len = packet.emit(&mut buffer);
    buffer[..len].to_vec()
}

#[test]
fn an_unproven_address_never_gets_more_than_it_sent() {
    for seed in 0..20 {
        let mut world = World::new(seed, ordinary(), Limits::default(), SYMMETRIC);
        let balance = Arc::new(Mutex::new(BTreeMap::<SocketAddr, i64>::new()));
        let log = Arc::clone(&balance);
        world.simulation.network_mut().set_tap(move |sighting| {
            let mut balance = log.lock().expect("nobody panics");
            let len = sighting.payload.len() as i64;
            if sighting.to == RELAY && sighting.stage == Stage::Delivered {
                *balance.entry(sighting.from).or_default() += len;
            } else if sighting.from == RELAY && sighting.stage == Stage::Sent {
                *balance.entry(sighting.to).or_default() -= len;
            }
        });
        world.simulation.run_for(Duration::from_millis(300));
        world.add_guest(SYMMETRIC);
        let mut rng = fastrand::Rng::with_seed(seed);
        let victims: Vec<SocketAddr> = (1..30)
            .map(|last| SocketAddr::from(([192, 0, 2, last], 9)))
            .collect();
        for _ in 0..100 {
            world.everybody_speaks();
            for _ in 0..30 {
                let victim = victims[rng.u8(..) as usize % victims.len()];
                let bytes = made_up(&mut rng);
                let now = world.simulation.now();
                let network = world.simulation.network_mut();
                network.send(now, victim, RELAY, Ecn::NotCapable, &bytes);
            }
            world.simulation.run_for(Duration::from_millis(50));
        }
        assert!(world.settle(Duration::from_secs(3)), "seed {seed}");
        let balance = balance.lock().expect("nobody panics");
        for victim in victims {
            let balance = balance.get(&victim).copied().unwrap_or(0);
            assert!(balance >= 0, "seed {seed}: {victim} got {balance} more");
        }
        let stats = world.relay().stats();
        assert_eq!(stats.rooms_opened, 1, "nobody else opened a room");
        assert_eq!(stats.guests_joined, 1, "nobody else joined");
        assert_eq!(stats.moves, 0, "nobody was moved");
    }
}

#[test]
fn who_knows_an_id_but_not_the_address_cannot_draw_traffic_to_a_victim() {
    let mut world = World::new(3, ordinary(), Limits::default(), SYMMETRIC);
    let ids = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&ids);
    world.simulation.network_mut().set_tap(move |sighting| {
        if let Some(id) = LegId::of_data(sighting.payload)
            && sighting.to == RELAY
        {
            log.lock().expect("nobody panics").push(id);
        }
    });
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(SYMMETRIC);
    world.talk(Duration::from_secs(2));
    let mut ids: Vec<LegId> = ids.lock().expect("nobody panics").clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2, "the guest's and the host's");
    let victim = SocketAddr::from(([192, 0, 2, 1], 9));
    let to_victim = Arc::new(Mutex::new((0, 0)));
    let log = Arc::clone(&to_victim);
    world.simulation.network_mut().set_tap(move |sighting| {
        let mut count = log.lock().expect("nobody panics");
        if sighting.from == victim && sighting.stage == Stage::Sent {
            count.0 += sighting.payload.len();
        }
        if sighting.to == victim && sighting.stage == Stage::Sent {
            count.1 += sighting.payload.len();
        }
    });
    for _ in 0..100 {
        world.everybody_speaks();
        for id in &ids {
            let mut data = id.data_header().to_vec();
            data.resize(60, 0xCD);
            let now = world.simulation.now();
            let network = world.simulation.network_mut();
            network.send(now, victim, RELAY, Ecn::NotCapable, &data);
        }
        world.simulation.run_for(Duration::from_millis(50));
    }
    assert!(world.settle(Duration::from_secs(3)));
    let (sent, got) = *to_victim.lock().expect("nobody panics");
    assert!(got > 0, "it is asked for proof");
    assert!(got <= sent, "{got} of {sent}");
    assert_eq!(world.relay().stats().moves, 0);
}

#[test]
fn a_flood_with_true_addresses_leaves_those_within_alone() {
    let limits = Limits::default().rooms(8).rooms_per_ip(2);
    let mut world = World::new(4, ordinary(), limits, SYMMETRIC);
    world.simulation.run_for(Duration::from_millis(300));
    world.add_guest(SYMMETRIC);
    world.talk(Duration::from_secs(1));
    // Forty who prove their addresses and all want a room.
    let now = world.simulation.now();
    for number in 0..40_u8 {
        let key = RoomKey::new([number; 16]);
        world.add_guest_with(Place::Public, |_| {
            muse_relay::Link::open(now, RELAY, key, [number; 32])
        });
    }
    world.talk(Duration::from_secs(5));
    assert!(world.relay().rooms() <= 8);
    assert!(world.relay().stats().refused >= 30);
    assert!(world.settle_guest(0, Duration::from_secs(3)));
}
