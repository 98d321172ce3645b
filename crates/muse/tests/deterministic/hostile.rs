//! A connected client may send anything on the channel of the match; it changes nothing for the others.

use muse::deterministic::MATCH_CHANNEL;
use muse::lockstep::samples::duel::{Buttons, Duel};
use muse::lockstep::{Frame, MatchConfig, Rng, Status};
use muse::{Connect, Duration};
use muse_netem::Conditions;

use crate::support::{Ledger, Match};

fn buttons(rng: &mut Rng) -> Buttons {
    Buttons::from_bits(rng.next() as u8)
}

/// Noise, or the beginning of a packet of some kind and noise.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let len = rng.below(200) as usize;
    let mut bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
    if let Some(first) = bytes.first_mut().filter(|_| rng.below(4) > 0) {
        *first = 0x10 | (rng.next() & 15) as u8;
    }
    bytes
}

#[test]
fn a_stranger_who_sends_noise_disturbs_nobody() {
    let network = Conditions::default().delay(Duration::from_millis(20));
    let config = MatchConfig::rollback(2);
    let mut game = Match::new(
        31,
        config,
        network,
        Some(Duel::new(1)),
        buttons,
        |options| options,
    );
    game.join(Duel::new(1));
    game.run(2, &mut Ledger::default());
    let how = Connect::pinned(game.key.public());
    let stranger = game.join_with(Duel::new(1), how);
    game.run(1, &mut Ledger::default());
    let (mut rng, mut ledger, mut sent) = (Rng::new(5), Ledger::default(), 0);
    for _ in 0..200 {
        let now = game.simulation.now();
        let node = game.simulation.node_mut(stranger);
        let connection = node.endpoint.connections().next().expect("it is connected");
        for _ in 0..5 {
            let bytes = packet(&mut rng);
            sent += u32::from(
                node.endpoint
                    .send(now, connection, MATCH_CHANNEL, &bytes)
                    .is_ok(),
            );
        }
        game.simulation.wake(stranger);
        game.simulation.run_for(Duration::from_millis(20));
    }
    assert!(sent > 900, "{sent}");
    game.run(2, &mut ledger);
    assert!(ledger.compared > 1_000, "{}", ledger.compared);
    for node in &game.nodes[..2] {
        let session = game.session(*node);
        assert_eq!(session.status(), Status::Running);
        assert!(session.frame() > Frame(400), "{}", session.frame());
    }
}

#[test]
fn a_player_who_sends_noise_harms_only_its_own_stay() {
    let network = Conditions::default().delay(Duration::from_millis(20));
    let config = MatchConfig::rollback(3).begins_with(2);
    let mut game = Match::new(37, config, network, None, buttons, |options| options);
    let [honest, _, vandal] = [(); 3].map(|()| game.join(Duel::new(1)));
    game.run(3, &mut Ledger::default());
    let mut rng = Rng::new(6);
    for _ in 0..200 {
        let now = game.simulation.now();
        let node = game.simulation.node_mut(vandal);
        let connection = node.endpoint.connections().next();
        if let Some(connection) = connection {
            let bytes = packet(&mut rng);
            let _ = node.endpoint.send(now, connection, MATCH_CHANNEL, &bytes);
        }
        game.simulation.wake(vandal);
        game.simulation.run_for(Duration::from_millis(20));
    }
    game.simulation.detach(vandal);
    game.nodes.retain(|node| *node != vandal);
    let mut ledger = Ledger::default();
    game.run(15, &mut ledger);
    assert!(ledger.compared > 5_000, "{}", ledger.compared);
    assert_eq!(game.session(honest).status(), Status::Running);
}
