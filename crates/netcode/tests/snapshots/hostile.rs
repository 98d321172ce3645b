//! Bytes from anyone: packets at the client, answers at the server.

use muse_netcode::{
    Acknowledgement, ClientId, ClientView, KindOptions, Kinds, Receiver, Tick, World,
};

use crate::game;
use crate::lossy::Conditions;
use crate::seeds;
use crate::simulation::{Client, Simulation};

#[test]
fn damaged_packets_are_refused_or_harmless() {
    for seed in seeds(60) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut simulation = Simulation::new(seed, 1);
        simulation.clients[0].settles_at = 0;
        simulation.clients[0].conditions = Conditions::PERFECT;
        for _ in 0..10 {
            simulation.spawn_body();
        }
        let world = &mut simulation.world;
        let mut view = ClientView::new(world, ClientId(0));
        view.set_interest(
            world
                .entities()
                .map(|entity| (entity, 1.0))
                .collect::<Vec<_>>(),
        );
        let mut receiver = Receiver::new(game::kinds().0).with_entities_max(100);
        receiver.set_game(5);
        let mut buffer = [0; 1_200];
        for tick in 1..40 {
            world.commit(Tick(tick)).expect("in order");
            let mut answer = [0; Acknowledgement::LEN_MAX];
            let len = receiver
                .emit_acknowledgement(&mut answer)
                .expect("room for the longest");
            // Numbers may be damaged so that it answers packets never sent.
            let _ = view.handle_acknowledgement(&answer[..len]);
            view.begin(world, 10_000);
            while let Some(len) = view.poll_packet(world, &mut buffer) {
                let packet = &mut buffer[..len];
                for _ in 0..random.u32(0..3) {
                    let place = random.u32(0..len as u32) as usize;
                    packet[place] = random.u8(..);
                }
                // May be taken, since nothing protects the bytes here; but only whole and within limits.
                let _ = receiver.handle_packet(packet);
                let noise: Vec<u8> = (0..random.u32(0..80)).map(|_| random.u8(..)).collect();
                let _ = receiver.handle_packet(&noise);
                while receiver.poll_update().is_some() {}
                while receiver.poll_event().is_some() {}
                assert!(receiver.entities().count() <= 100);
            }
        }
    }
}

#[test]
fn forged_answers_harm_nobody_else() {
    for seed in seeds(40) {
        let mut simulation = Simulation::new(seed, 3);
        for _ in 0..20 {
            simulation.spawn_body();
        }
        for _ in 0..80 {
            simulation.disturb();
            simulation.step();
            // The last client answers whatever it likes.
            let random = &mut simulation.random;
            let forged = Acknowledgement {
                game: 5,
                newest: random.bool().then(|| random.u16(..)),
                received: std::array::from_fn(|_| random.u64(..)),
                restart: random.bool().then(|| random.u16(..)),
            };
            let mut bytes = [0; Acknowledgement::LEN_MAX];
            let mut len = forged.emit(&mut bytes).unwrap_or(0);
            if random.bool() {
                len = len.min(random.u32(0..20) as usize);
                bytes
                    .iter_mut()
                    .take(3)
                    .for_each(|byte| *byte = random.u8(..));
            }
            let liar = &mut simulation.clients[2];
            // It gets nonsense for it, but never what is none of its business: the simulation checks that.
            liar.forgetful = true;
            let _ = liar.view.handle_acknowledgement(&bytes[..len]);
        }
        simulation.clients.truncate(2);
        for client in &mut simulation.clients {
            client.conditions = Conditions::PERFECT;
            client.settles_at = simulation.tick;
        }
        simulation.bodies.clear();
        for _ in 0..80 {
            simulation.step();
        }
        simulation.assert_converged();
    }
}

#[test]
fn a_client_that_lost_its_memory_begins_anew() {
    let mut simulation = Simulation::new(8, 1);
    for _ in 0..20 {
        simulation.spawn_body();
    }
    simulation.clients[0].settles_at = 0;
    simulation.clients[0].conditions = Conditions {
        loss: 0.1,
        duplicates: 0.1,
        delay: 2,
        jitter: 2,
    };
    for _ in 0..50 {
        simulation.step();
    }
    let client: &mut Client = &mut simulation.clients[0];
    client.forgetful = true;
    client.receiver = Receiver::new(game::kinds().0);
    client.receiver.set_game(5);
    for _ in 0..60 {
        simulation.step();
    }
    simulation.bodies.clear();
    for _ in 0..40 {
        simulation.step();
    }
    simulation.assert_converged();
    assert!(simulation.clients[0].view.stats().restarts > 0);
}

#[test]
fn memory_is_bounded_however_far_a_packet_reaches() {
    let (kinds, _) = game::kinds();
    let mut receiver = Receiver::new(kinds).with_entities_max(64);
    receiver.set_game(0);
    let mut other = Kinds::new();
    let armor = other
        .register::<game::Armor>(KindOptions::new(7))
        .expect("new id");
    let mut world = World::new(other);
    for strength in 0..500 {
        world
            .spawn(armor, &game::Armor { strength })
            .expect("room for it");
    }
    let mut view = ClientView::new(&world, ClientId(0));
    view.set_interest(
        world
            .entities()
            .map(|entity| (entity, 1.0))
            .collect::<Vec<_>>(),
    );
    world.commit(Tick(1)).expect("in order");
    let mut answer = [0; Acknowledgement::LEN_MAX];
    let len = receiver.emit_acknowledgement(&mut answer).expect("room");
    view.handle_acknowledgement(&answer[..len]).expect("ours");
    view.begin(&world, 100_000);
    let mut buffer = [0; 1_200];
    let mut refused = 0;
    while let Some(len) = view.poll_packet(&world, &mut buffer) {
        refused += u32::from(receiver.handle_packet(&buffer[..len]).is_err());
    }
    assert!(refused > 0);
    assert!(receiver.entities().count() <= 64);
}
