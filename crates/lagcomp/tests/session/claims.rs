//! Honest players' claims of what they saw are believed, on every network and however their programs draw and poll.
//!
//! `cargo test -p muse-lagcomp --test session claims -- --nocapture` prints every cell.

use muse_lagcomp::{Claim, Rewind, RewindConfig, Verdict};
use muse_netcode::{ClientId, SessionConfig};
use muse_netem::{Conditions, Jitter, Network};
use muse_wire::{Duration, Ecn, Instant};

use crate::game::{Client, Fire, Keys, Player, Rules, Server, TICK, distance, kinds};

/// The way a client's program runs.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Wakes up when an input is due, and fires at what it knew before.
    Bot,
    /// Draws so often, and polls before each frame.
    Frames(u64),
    /// Polls every millisecond, and draws so often.
    Busy(u64),
}

fn network(delay_ms: u64, jitter_ms: u64, loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(delay_ms))
        .jitter(Jitter::Around(Duration::from_millis(jitter_ms)))
        .loss(loss)
}

/// Fires in every tick of 20 seconds; gives the claims that were judged, and those of them that were not believed.
fn fire(seed: u64, manner: Manner, packet_interval: u32, conditions: &Conditions) -> (u64, u64) {
    let config = SessionConfig::new(TICK).packet_interval(packet_interval);
    let mut network = Network::new(seed);
    let (server_at, client_at) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 1).into());
    let (server_node, client_node) = (network.add_node(server_at), network.add_node(client_at));
    network.set_links(server_node, client_node, conditions.clone());
    let (all, kind) = kinds();
    let mut server = Server::new(config, all, kind, Instant::ZERO);
    server.join(PLAYER, &Player::default()).expect("room");
    let (all, kind) = kinds();
    let mut client = Client::new(config, all, kind, distance, Instant::ZERO);
    // Long delays are judged too: this is about what is believed, not about what is fair.
    let limits = RewindConfig::new(50)
        .limit(Duration::from_secs(1))
        .interpolation_max(Duration::from_millis(250));
    let mut rewind = Rewind::new(limits);

    let (mut judged, mut refused) = (0, 0);
    let mut buffer = [0; 1_200];
    let mut now = Instant::ZERO;
    let mut next_frame = Instant::from_micros(seed * 1_237 % 16_000);
    let mut on_screen: Option<Claim> = None;
    while now < Instant::ZERO + LENGTH {
        while let Some(delivery) = network.poll_deliver(now) {
            // Duplicates and late packets are refused.
            if delivery.to == server_at {
                let _ = server.handle_packet(now, PLAYER, delivery.payload);
            } else {
                let _ = client.handle_packet(now, &mut Rules, delivery.payload);
            }
        }
        while let Some(tick) = server.poll_tick(now, &mut Rules, |_, _| ()) {
            rewind.advance(tick).expect("the next");
            let taken = server.input(PLAYER).expect("it plays").clone();
            if let Some(fire) = taken.input().fire.filter(|_| taken.is_received()) {
                let shooter = server.shooter(PLAYER).expect("it plays");
                let verdict = rewind.admit(fire.claim, &shooter).verdict();
                if now > Instant::ZERO + WARM_UP {
                    judged += 1;
                    refused += u64::from(verdict == Verdict::Clamped);
                }
            }
            server.commit();
            while let Some((_, len)) = server.poll_packet(now, &mut buffer) {
                network.send(now, server_at, client_at, Ecn::NotCapable, &buffer[..len]);
            }
        }
        let is_frame = now >= next_frame;
        let due = client.poll_timeout().is_some_and(|due| due <= now);
        let polls = match manner {
            Manner::Bot => due,
            Manner::Frames(_) => is_frame,
            Manner::Busy(_) => true,
        };
        if polls {
            if matches!(manner, Manner::Bot) {
                on_screen = client.claim();
            }
            let input = |_| Keys {
                fire: on_screen.map(|claim| Fire { claim, yaw: 0.0 }),
                ..Keys::default()
            };
            while let Some(len) = client.poll_packet(now, &mut Rules, input, &mut buffer) {
                network.send(now, client_at, server_at, Ecn::NotCapable, &buffer[..len]);
            }
        }
        if is_frame {
            next_frame += match manner {
                Manner::Bot => Duration::from_millis(100),
                Manner::Frames(rate) | Manner::Busy(rate) => {
                    Duration::from_micros(1_000_000 / rate)
                }
            };
            on_screen = client.claim();
        }
        let mut next = server.poll_timeout().min(next_frame);
        match (manner, client.poll_timeout()) {
            (Manner::Bot, Some(due)) => next = next.min(due),
            (Manner::Busy(_), _) => next = next.min(now + Duration::from_millis(1)),
            _ => {}
        }
        let next = network.next_delivery().map_or(next, |at| at.min(next));
        now = next.max(now + Duration::from_micros(1));
    }
    (judged, refused)
}

#[test]
fn honest_claims_are_believed() {
    let networks = [
        ("this machine", network(1, 0, 0.0)),
        ("50 +- 10 ms", network(50, 10, 0.0)),
        ("50 +- 30 ms that reorders", network(50, 30, 0.0)),
        ("50 +- 10 ms, 5 % loss", network(50, 10, 0.05)),
        ("50 +- 10 ms, 20 % loss", network(50, 10, 0.2)),
        (
            "50 ms, bursts of 4",
            network(50, 5, 0.0).burst_loss(0.05, 4.0),
        ),
        ("150 +- 20 ms, 2 % loss", network(150, 20, 0.02)),
    ];
    let manners = [
        Manner::Bot,
        Manner::Frames(30),
        Manner::Frames(60),
        Manner::Frames(144),
        Manner::Busy(60),
    ];
    let mut broken = Vec::new();
    for (name, conditions) in &networks {
        let (mut judged, mut refused) = (0, 0);
        for manner in manners {
            for packet_interval in [1, 2, 3] {
                let cell = fire(3, manner, packet_interval, conditions);
                println!(
                    "{name}, {manner:?}, {packet_interval} ticks a packet: {} of {} refused",
                    cell.1, cell.0
                );
                judged += cell.0;
                refused += cell.1;
            }
        }
        println!("{name}: {refused} of {judged} refused");
        assert!(judged > 5_000, "{name}: {judged}");
        if refused * 1_000 > judged {
            broken.push(format!("{name}: {refused} of {judged}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

const PLAYER: ClientId = ClientId(1);
const WARM_UP: Duration = Duration::from_secs(3);
const LENGTH: Duration = Duration::from_secs(20);
