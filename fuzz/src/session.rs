//! Packets of a session, both ways: a server hears whatever a client may send, a client whatever a server may, and both go on.

use muse_lagcomp::{Claim, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Volume};
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{Client, ClientId, Kind, KindOptions, Kinds, Server, SessionConfig, glam};
use muse_schema::{Schema, State};
use muse_wire::{Duration, Instant};

use crate::{Bound, Target, no_setup};

/// Packets of a session.
pub const TARGET: Target = Target {
    name: "session",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 1_000_000,
        per_byte: 1_000,
    },
    steps: Bound {
        base: 500_000,
        per_byte: 5_000,
    },
};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Body {
    #[field(range = -100.0..=100.0, step = 0.001)]
    position: [f32; 3],
}

#[derive(Schema, Clone, Default, PartialEq)]
struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    fire: Option<Claim>,
}

struct Rules;

impl Game for Rules {
    type Player = Body;
    type Input = Keys;
    type Event = Claim;

    fn step(&mut self, body: &mut Body, keys: &Keys, context: &mut StepContext<'_, Claim>) {
        body.position[0] += f32::from(keys.x) * 0.1;
        if let Some(claim) = keys.fire {
            context.emit(claim);
        }
    }
}

fn kinds() -> (Kinds, Kind<Body>) {
    let mut kinds = Kinds::new();
    let options = KindOptions::new(1).inputs();
    let body = kinds.register(options).expect("the first kind");
    (kinds, body)
}

/// Runs the bytes: packets with a length in front, of which the lowest bit says to whom. In place of every other one the honest packet
/// goes through with some of the bytes exclusive-or'ed into it.
fn run(data: &[u8]) {
    let tick = Duration::from_millis(20);
    let config = SessionConfig::new(tick);
    let (all, kind) = kinds();
    let mut now = Instant::from_secs(1);
    let mut server = Server::<Rules>::new(config, all, kind, now);
    let client_id = ClientId(1);
    server
        .join(client_id, &Body::default())
        .expect("an empty world has room");
    let hidden = server.world_mut().spawn(kind, &Body::default());
    let hidden = hidden.expect("an empty world has room");
    server.set_interest(client_id, []);
    let (all, kind) = kinds();
    let apart = |a: &Body, b: &Body| (a.position[0] - b.position[0]).abs();
    let mut client = Client::<Rules>::new(config, all, kind, apart, now);
    let rig = Rig::new([HitVolume::new(Volume::Sphere { radius: 1.0 })]).expect("a sphere");
    let pose = |body: &Body| Pose::at(body.position.into());
    let mut hits = Hits::new(RewindConfig::new(50), kind, rig, pose).expect("one rig");
    let mut rest = data;
    let mut forged = false;
    while let Some((&first, after)) = rest.split_first() {
        let len = usize::from(first >> 1).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        now += tick;
        let mut buffer = [0; 1_200];
        let keys = |_| Keys::default();
        while let Some(len) = client.poll_packet(now, &mut Rules, keys, &mut buffer) {
            if first & 1 == 0 {
                twist(&mut buffer[..len], bytes);
            }
            // It may accept or refuse it; it must not panic.
            let _ = server.handle_packet(now, client_id, &buffer[..len]);
        }
        if first & 1 == 0 {
            let _ = server.handle_packet(now, client_id, bytes);
        } else {
            // From then on the client may believe anything.
            forged = true;
            let _ = client.handle_packet(now, &mut Rules, bytes);
        }
        let mut shots = Vec::new();
        while let Some(tick) = server.poll_tick(now, &mut Rules, |_, claim| shots.push(claim)) {
            hits.record(server.world(), tick).expect("sane poses");
            for claim in shots.drain(..) {
                let admission = hits.admit(&server, client_id, claim);
                let admission = admission.expect("it has joined");
                assert!(admission.age() <= Duration::from_millis(250));
                let ray = Shot::new(glam::Vec3::ZERO, glam::Vec3::Z);
                let _ = hits.hitscan(&server, client_id, claim, &ray);
            }
        }
        server.commit();
        while let Some((_, len)) = server.poll_packet(now, &mut buffer) {
            if first & 1 == 1 {
                twist(&mut buffer[..len], bytes);
            }
            let _ = client.handle_packet(now, &mut Rules, &buffer[..len]);
        }
        while client.poll_update().is_some() {}
        while client.poll_event().is_some() {}
        while client.poll_effect().is_some() {}
        assert!(forged || !client.receiver().entities().any(|entity| entity == hidden));
    }
}

/// Changes some of the bytes.
fn twist(packet: &mut [u8], bytes: &[u8]) {
    for pair in bytes.chunks_exact(2) {
        let at = usize::from(pair[0]);
        if let Some(byte) = packet.get_mut(at) {
            *byte ^= pair[1];
        }
    }
}
