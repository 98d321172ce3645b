//! Clients that send whatever they like: the server goes on, tells them nothing more, and judges nobody further back
//! than rewind allows.

use muse_lagcomp::{Claim, Rewind, RewindConfig};
use muse_netcode::inputs::InputSender;
use muse_netcode::{ClientId, EntityId, Tick, TickTime, Update};
use muse_netem::Conditions;
use muse_schema::BitWriter;
use muse_wire::{Duration, Instant};

use crate::arena::Arena;
use crate::game::{Client, Fire, Keys, Player, Rules, Server, TICK, config, distance, kinds};

/// A server with many bodies, an honest player, and one who is not.
struct Lair {
    now: Instant,
    server: Server,
    honest: Client,
    hostile: Client,
    bodies: Vec<EntityId>,
    rng: fastrand::Rng,
}

const HONEST: ClientId = ClientId(1);
const HOSTILE: ClientId = ClientId(2);
/// Bodies that the hostile client may see.
const VISIBLE: usize = 20;

impl Lair {
    fn new(seed: u64) -> Self {
        let (all, kind) = kinds();
        let now = Instant::from_secs(1);
        let mut server = Server::new(config(), all, kind, now);
        let mut bodies = Vec::new();
        for id in [HONEST, HOSTILE] {
            server.join(id, &Player::default()).expect("room");
        }
        for number in 0..100 {
            let body = Player::at(number as f32, 5.0);
            bodies.push(server.world_mut().spawn(kind, &body).expect("room"));
        }
        server.set_interest(HOSTILE, bodies[..VISIBLE].iter().map(|body| (*body, 1.0)));
        let client = || Client::new(config(), kinds().0, kind, distance, now);
        Self {
            now,
            server,
            honest: client(),
            hostile: client(),
            bodies,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// A tick, in which the hostile client's packets go through `twist` as often as it likes.
    fn tick(&mut self, mut twist: impl FnMut(&mut fastrand::Rng, &mut Vec<u8>)) {
        let mut buffer = [0; 1_200];
        self.now += TICK;
        let now = self.now;
        let keys = |_| Keys {
            x: 1,
            ..Keys::default()
        };
        while let Some(len) = self.honest.poll_packet(now, &mut Rules, keys, &mut buffer) {
            let taken = self.server.handle_packet(now, HONEST, &buffer[..len]);
            taken.expect("an honest packet");
        }
        let mut sent = Vec::new();
        while let Some(len) = self.hostile.poll_packet(now, &mut Rules, keys, &mut buffer) {
            sent.push(buffer[..len].to_vec());
        }
        for packet in &mut sent {
            twist(&mut self.rng, packet);
            // Refused or not: nothing may come of it.
            let _ = self.server.handle_packet(now, HOSTILE, packet);
        }
        let (_, kind) = kinds();
        while self.server.poll_tick(now, &mut Rules, |_, _| ()).is_some() {
            for body in &self.bodies {
                let x = self.rng.f32() * 100.0;
                let moved = self
                    .server
                    .world_mut()
                    .set(kind, *body, &Player::at(x, 0.0));
                moved.expect("it is there");
            }
            self.server.commit();
            while let Some((client, len)) = self.server.poll_packet(now, &mut buffer) {
                let game = match client {
                    HONEST => &mut self.honest,
                    _ => &mut self.hostile,
                };
                let _ = game.handle_packet(now, &mut Rules, &buffer[..len]);
            }
        }
        let own = self.server.player(HOSTILE);
        while let Some(update) = self.hostile.poll_update() {
            if let Update::State { entity, .. } = update {
                let allowed = self.bodies[..VISIBLE].contains(&entity) || Some(entity) == own;
                assert!(allowed, "{entity:?} is none of its business");
            }
        }
        while self.honest.poll_update().is_some() {}
    }

    /// The other player did not notice anything.
    fn assert_calm(&self) {
        let prediction = self.honest.prediction();
        assert_eq!(prediction.corrected, 0, "{prediction:?}");
        assert!(prediction.confirmed > 300, "{prediction:?}");
        assert_eq!(self.honest.receiver().entities().count(), 102);
        let counters = self.server.input_counters(HONEST).expect("it plays");
        assert!(counters.repeated + counters.missing < 3, "{counters:?}");
    }
}

#[test]
fn damaged_and_forged_packets_change_nothing_for_others() {
    for seed in 0..4 {
        let mut lair = Lair::new(seed);
        for number in 0..500_u32 {
            lair.tick(|rng, packet| match (number / 50, rng.u8(..4)) {
                (0..2, _) => {}
                (2..4, _) => packet.iter_mut().for_each(|byte| *byte = rng.u8(..)),
                // The header, the acknowledgement and the inputs, each alone.
                (4..6, _) => packet
                    .iter_mut()
                    .take(7)
                    .for_each(|byte| *byte = rng.u8(..)),
                (6..8, _) => {
                    let acknowledgement = packet.iter_mut().skip(7).take(24);
                    acknowledgement.for_each(|byte| *byte = rng.u8(..));
                }
                (_, 0) => packet.truncate(rng.u32(..packet.len() as u32) as usize),
                (_, 1) => packet.resize(1_200, 0xff),
                _ => {
                    let at = rng.u32(..packet.len() as u32) as usize;
                    packet[at] ^= 1 << rng.u8(..8);
                }
            });
        }
        lair.assert_calm();
    }
}

#[test]
fn a_flood_does_not_fill_memory() {
    let mut lair = Lair::new(9);
    for _ in 0..100 {
        lair.tick(|_, _| ());
    }
    let before = resident_bytes();
    let mut sent = 0;
    for round in 0..60_000_u32 {
        let mut packet = [0; 256];
        let len = 16 + lair.rng.u32(..240) as usize;
        packet.iter_mut().for_each(|byte| *byte = lair.rng.u8(..));
        // Half begin as honest packets do.
        if round % 2 == 0 {
            packet[..8].copy_from_slice(&[1, 0, 0, 0, 0, 0xff, 0xff, 0]);
        }
        let _ = lair.server.handle_packet(lair.now, HOSTILE, &packet[..len]);
        sent += len;
        if round % 200 == 0 {
            lair.tick(|_, _| ());
        }
    }
    lair.assert_calm();
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 4 << 20, "{grown} of {sent} bytes stayed");
    }
}

#[test]
fn claims_reach_no_further_back_than_the_server_believes() {
    let mut arena = Arena::new(12, config());
    arena.add_bots(1);
    arena.server.join(HONEST, &Player::default()).expect("room");
    let conditions = Conditions::default().delay(Duration::from_millis(30));
    arena.connect(HONEST, &conditions);
    arena.run(Duration::from_secs(5), |_, _| ());
    let shooter = arena.server.shooter(HONEST).expect("it plays");
    let honest = shooter.rtt + shooter.interpolation + shooter.buffered;
    assert!((80..150).contains(&honest.as_millis()), "{shooter:?}");
    let mut rewind = Rewind::new(RewindConfig::new(50));
    let mut rng = fastrand::Rng::with_seed(3);
    rewind.advance(Tick(250)).expect("the first");
    for _ in 0..100_000 {
        let mut ticks = || match rng.u8(..3) {
            0 => f64::from(rng.u32(..)),
            1 => f64::from(rng.u32(..500)),
            _ => 250.0 - f64::from(rng.f32()) * 20.0,
        };
        let at = TickTime::from_ticks(ticks());
        let (from, to) = (Tick(ticks() as u32), Tick(ticks() as u32));
        let claims = [Claim::at(at), Claim::between(from, to, at)];
        for claim in claims {
            let admission = rewind.admit(claim, &shooter);
            let age = admission.age();
            assert!(age <= Duration::from_millis(250), "{admission:?}");
            assert!(age <= honest + Duration::from_millis(26), "{admission:?}");
            assert!(admission.at() <= TickTime::from(Tick(250)), "{admission:?}");
        }
    }
}

#[test]
fn absurd_ticks_are_refused_and_counted() {
    let mut lair = Lair::new(15);
    for _ in 0..100 {
        lair.tick(|_, _| ());
    }
    let mut clock =
        muse_netcode::clock::ClientClock::new(muse_netcode::clock::ClockConfig::new(TICK));
    let absurd = [0, 1, 5_000, 40_000, 65_535, u32::MAX - 1, u32::MAX];
    for tick in absurd {
        let fire = Fire {
            claim: Claim::at(TickTime::from(Tick(tick))),
            yaw: f32::NAN,
        };
        let mut sender = InputSender::new();
        sender.push(
            Tick(tick),
            Keys {
                fire: Some(fire),
                ..Keys::default()
            },
        );
        // The header of a session's packet and an answer to nothing.
        let mut packet = vec![1, 0, 0, 0, 0, 0xff, 0xff];
        let mut answer = [0; 64];
        let (all, _) = kinds();
        let mut receiver = muse_netcode::Receiver::new(all.with_tick_rate(50.0));
        receiver.set_game(0);
        let len = receiver.emit_acknowledgement(&mut answer).expect("room");
        packet.extend_from_slice(&answer[..len]);
        let mut inputs = [0; 256];
        let mut writer = BitWriter::new(&mut inputs);
        let written = sender.write(clock.header(lair.now), &mut writer);
        written.expect("room");
        let len = writer.finish();
        packet.extend_from_slice(&inputs[..len]);
        let _ = lair.server.handle_packet(lair.now, HOSTILE, &packet);
    }
    for _ in 0..300 {
        lair.tick(|_, _| ());
    }
    lair.assert_calm();
    let counters = lair.server.input_counters(HOSTILE).expect("it plays");
    assert!(
        counters.too_early + counters.duplicates >= 5,
        "{counters:?}"
    );
}

/// Resident memory of this process, on systems that report it.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}
