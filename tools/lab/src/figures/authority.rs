//! Claims of a client that runs by itself, then cheats.

use std::net::SocketAddr;

use glam::Vec3;
use muse_netcode::authority::{
    Authority, Judgement, Proposal, ProposalLimits, Referee, Subject, Value,
};
use muse_netcode::{ClientId, EntityId};
use muse_netem::{Jitter, Network};
use muse_wire::{Duration, Ecn, Instant};

use crate::plot::*;
use crate::stage::conditions;

pub(super) fn plot() -> Plot {
    let run = run();
    let report = run.referee.report(ClientId(1)).expect("it joined");
    Plot::new(
        "Authority: the client runs, the server checks",
        &format!(
            "20 claims a second over a network with 40 ms of jitter; 6 m/s are allowed. Until 4 s the player is honest, and nothing is refused although packets bunch. Then \
             it runs twice as fast, and at 8 s it jumps: {} of {} claims are refused and counted, and the others see what was accepted.",
            report.refused(),
            report.proposals(),
        ),
    )
    .panel(
        Panel::new(("time (s)", 0.0, 12.0), ("position (m)", 0.0, 150.0))
            .with("accepted", Green, Thick, run.accepted)
            .with("claimed", Blue, Line, run.claimed)
            .with("refused", Red, Specks, run.refused),
    )
}

struct Run {
    referee: Referee,
    claimed: Vec<(f64, f64)>,
    accepted: Vec<(f64, f64)>,
    refused: Vec<(f64, f64)>,
}

fn run() -> Run {
    const POSITION: Subject = Subject::Property(0);
    let limits = ProposalLimits::new().speed(6.0);
    let mut referee = Referee::new().with(POSITION, Authority::Validated(limits));
    let (player, body) = (ClientId(1), EntityId::from_bits(1));
    referee.join(player);
    referee.own(player, body);
    referee.correct(
        Instant::ZERO,
        player,
        POSITION,
        body,
        Value::Place(Vec3::ZERO),
    );
    let mut network = Network::new(9);
    let (server, client): (SocketAddr, SocketAddr) =
        (([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into());
    let (server_node, client_node) = (network.add_node(server), network.add_node(client));
    let jitter = Jitter::Uniform(Duration::from_millis(40));
    network.set_links(
        server_node,
        client_node,
        conditions(60).jitter(jitter).keep_order(true),
    );
    let mut run = Run {
        referee,
        claimed: Vec::new(),
        accepted: Vec::new(),
        refused: Vec::new(),
    };
    let mut x: f32 = 0.0;
    for millis in 0..12_000_u64 {
        let now = Instant::from_millis(millis);
        if millis % 50 == 0 {
            x += if millis < 4_000 { 6.0 } else { 12.0 } * 0.05;
            if millis == 8_000 {
                x += 20.0;
            }
            network.send(now, client, server, Ecn::NotCapable, &x.to_le_bytes());
            run.claimed.push((now.as_secs_f64(), f64::from(x)));
        }
        while let Some(delivery) = network.poll_deliver(now) {
            let bytes = delivery.payload.try_into().expect("four bytes");
            let place = Vec3::X * f32::from_le_bytes(bytes);
            let proposal = Proposal::new(POSITION, body).value(Value::Place(place));
            let judgement = run.referee.judge(now, player, &proposal);
            if let Judgement::Refuse(_) = judgement {
                run.refused.push((now.as_secs_f64(), f64::from(place.x)));
            }
        }
        if millis % 50 == 0
            && let Some(Value::Place(place)) = run.referee.value(player, POSITION, body)
        {
            run.accepted.push((now.as_secs_f64(), f64::from(place.x)));
        }
    }
    run
}
