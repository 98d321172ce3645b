//! Every kind of state arrives as it was sent, whatever it is and however it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use muse::netcode::{Client, ClientId, EntityId, PacketError, Refused, Server};
use muse::wire::{Duration, Instant};
use muse_biobot::{
    Ball, Bolt, Command, Device, Enemy, Level, Robot, Round, Rules, Species, Stance, kinds,
    session_config,
};

/// Something of a kind that changes at random: a little, much, or not at all.
struct Being {
    entity: EntityId,
    state: Any,
}

enum Any {
    Robot(Robot),
    Enemy(Enemy),
    Device(Device),
    Bolt(Bolt),
    Round(Round),
    Ball(Ball),
}

fn place(rng: &mut fastrand::Rng, from: [f32; 3], by: f32) -> [f32; 3] {
    from.map(|value| (value + (rng.f32() - 0.5) * by).clamp(-130.0, 130.0))
}

fn fresh(rng: &mut fastrand::Rng, tick: u32) -> Any {
    let at = place(rng, [0.0; 3], 250.0);
    match rng.u32(..6) {
        0 => Any::Robot(Robot::new(rng.u8(..16), at, rng.f32() * 6.0)),
        1 => Any::Enemy(Enemy {
            species: [Species::Tank, Species::Cat, Species::Wasp, Species::Boss]
                [rng.u8(..4) as usize],
            position: at,
            velocity: [0.0; 3],
            yaw: rng.f32() * 6.0,
            pitch: 0.0,
            health: 100,
            stance: Stance::Idle,
            shots: rng.u8(..),
        }),
        2 => Any::Device(Device {
            index: rng.u8(..),
            active: rng.bool(),
            start: tick,
            holders: rng.u16(..),
        }),
        3 => Any::Bolt(Bolt {
            owner: rng.u32(..),
            weapon: rng.u8(..16),
            position: at,
            velocity: place(rng, [0.0; 3], 100.0),
            born: tick,
        }),
        4 => Any::Ball(Ball::at(at)),
        _ => Any::Round(Round::new(muse_biobot::Mode::Versus)),
    }
}

fn change(rng: &mut fastrand::Rng, state: &mut Any, tick: u32) {
    let much = if rng.u32(..10) == 0 { 200.0 } else { 0.3 };
    match state {
        Any::Robot(robot) => {
            robot.position = place(rng, robot.position, much);
            robot.velocity = place(rng, robot.velocity, much);
            robot.yaw += rng.f32() * 0.2;
            robot.pitch = (robot.pitch + rng.f32() - 0.5).clamp(-2.0, 2.0);
            robot.health = robot.health.wrapping_add(rng.u8(..3));
            robot.ready = tick + rng.u32(..200);
            robot.kicked = rng.u32(..);
            robot.shots = robot.shots.wrapping_add(1);
            robot.standing = rng.u8(..);
        }
        Any::Enemy(enemy) => {
            enemy.position = place(rng, enemy.position, much);
            enemy.velocity = place(rng, enemy.velocity, much);
            enemy.yaw -= rng.f32() * 0.3;
            enemy.pitch = rng.f32() * 4.0 - 2.0;
            enemy.health = enemy.health.saturating_sub(rng.u8(..3));
            enemy.stance =
                [Stance::Chase, Stance::Fire, Stance::Jump, Stance::Dead][rng.u8(..4) as usize];
        }
        Any::Device(device) => {
            device.active = !device.active;
            device.start = tick + 20;
            device.holders = rng.u16(..);
        }
        Any::Bolt(bolt) => bolt.position = place(rng, bolt.position, much),
        Any::Ball(ball) => {
            ball.position = place(rng, ball.position, much);
            ball.velocity = place(rng, ball.velocity, much);
            ball.touched = rng.u8(..20);
            ball.restart = rng.u32(..);
        }
        Any::Round(round) => {
            let slot = rng.u8(..16) as usize;
            round.points[slot] = rng.i16(..);
            round.kills[slot] = rng.u16(..);
            round.weak_points = [tick, rng.u32(..)];
            round.goals = [rng.u8(..), rng.u8(..)];
        }
    }
}

fn seeds() -> u64 {
    let asked = std::env::var("MUSE_SEEDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(12)
}

#[test]
fn every_state_arrives_as_it_was_sent() {
    for seed in 0..seeds() {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut now = Instant::from_secs(1);
        let (all, ids) = kinds();
        let level = Arc::new(Level::arena());
        let mut rules = Rules::new(level);
        let mut server = Server::<Rules>::new(session_config(), all, ids.robot, now);
        server
            .join(ClientId(1), &Robot::new(0, [0.0, 1.0, 0.0], 0.0))
            .expect("room");
        let (all, _) = kinds();
        let mut client = Client::<Rules>::new(session_config(), all, ids.robot, |_, _| 0.0, now);
        let mut beings: Vec<Being> = Vec::new();
        let mut buffer = [0; 1_400];
        let mut up: BTreeMap<(Instant, u32), Vec<u8>> = BTreeMap::new();
        let mut down: BTreeMap<(Instant, u32), Vec<u8>> = BTreeMap::new();
        let delay = Duration::from_millis(rng.u64(..80));
        for _ in 0..1_500 {
            while up.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
                let (_, bytes) = up.pop_first().expect("it was looked at");
                server
                    .handle_packet(now, ClientId(1), &bytes)
                    .expect("of ours");
            }
            while down
                .first_key_value()
                .is_some_and(|((at, _), _)| *at <= now)
            {
                let (_, bytes) = down.pop_first().expect("it was looked at");
                let taken = client.handle_packet(now, &mut rules, &bytes);
                // What overtook what it builds on is sent again; all else would be a mistake.
                let fine = matches!(
                    taken,
                    Ok(()) | Err(PacketError::Snapshot(Refused::NoBaseline))
                );
                assert!(fine, "seed {seed}, at {now:?}: {taken:?}");
            }
            while let Some(len) =
                client.poll_packet(now, &mut rules, |_| Command::default(), &mut buffer)
            {
                if rng.u32(..20) != 0 {
                    let at = now + delay + Duration::from_millis(rng.u64(..30));
                    up.insert((at, rng.u32(..)), buffer[..len].to_vec());
                }
            }
            while let Some(tick) = server.poll_tick(now, &mut rules, |_, _| ()) {
                let world = server.world_mut();
                if beings.len() < 30 && rng.u32(..3) == 0 {
                    let state = fresh(&mut rng, tick.0);
                    let entity = match &state {
                        Any::Robot(state) => world.spawn(ids.robot, state),
                        Any::Enemy(state) => world.spawn(ids.enemy, state),
                        Any::Device(state) => world.spawn(ids.device, state),
                        Any::Bolt(state) => world.spawn(ids.bolt, state),
                        Any::Round(state) => world.spawn(ids.round, state),
                        Any::Ball(state) => world.spawn(ids.ball, state),
                    };
                    let entity = entity.expect("room");
                    beings.push(Being { entity, state });
                }
                if !beings.is_empty() && rng.u32(..4) == 0 {
                    let gone = beings.swap_remove(rng.u32(..) as usize % beings.len());
                    world.despawn(gone.entity).expect("it was there");
                }
                for being in &mut beings {
                    if rng.bool() {
                        change(&mut rng, &mut being.state, tick.0);
                    }
                    let set = match &being.state {
                        Any::Robot(state) => world.set(ids.robot, being.entity, state),
                        Any::Enemy(state) => world.set(ids.enemy, being.entity, state),
                        Any::Device(state) => world.set(ids.device, being.entity, state),
                        Any::Bolt(state) => world.set(ids.bolt, being.entity, state),
                        Any::Round(state) => world.set(ids.round, being.entity, state),
                        Any::Ball(state) => world.set(ids.ball, being.entity, state),
                    };
                    set.expect("it is there");
                }
                server.commit();
                while let Some((_, len)) = server.poll_packet(now, &mut buffer) {
                    if rng.u32(..20) != 0 {
                        let at = now + delay + Duration::from_millis(rng.u64(..50));
                        down.insert((at, rng.u32(..)), buffer[..len].to_vec());
                    }
                }
            }
            while client.poll_update().is_some() {}
            now += Duration::from_millis(10);
        }
        let known = client.receiver();
        let there = beings
            .iter()
            .filter(|being| known.kind(being.entity).is_some());
        let (there, all) = (there.count(), beings.len());
        assert!(there + 6 >= all, "seed {seed}: {there} of {all}");
    }
}
