//! The duel, with rollback.

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::{MatchConfig, Rng, Role, Status};
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use crate::support::{Ledger, Match};

#[test]
fn two_players_stay_together_over_a_bad_network() {
    let conditions = Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(20)))
        .loss(0.05);
    let mut game = Match::hosted(
        1,
        MatchConfig::rollback(2).delay(0),
        conditions,
        Duel::new(7),
    );
    game.join(Duel::new(7), Role::Player);
    let mut ledger = Ledger::default();
    let mut rng = Rng::new(3);
    game.run_secs(30, |game| {
        for index in 0..2 {
            if rng.below(10) == 0 {
                let node = game.players[index];
                let buttons = Buttons::from_bits(rng.next() as u8);
                game.session_mut(node).set_input(buttons).expect("six bits");
            }
        }
        ledger.enter(game);
    });
    for node in &game.players {
        let session = game.session(*node);
        assert_eq!(session.status(), Status::Running);
        println!(
            "{:?} rtt {:?} ahead {} frame {} confirmed {}",
            session.statistics(),
            session.rtt(),
            session.advantage(),
            session.frame(),
            session.confirmed()
        );
    }
    for node in &game.players {
        let sent = game.simulation.network().stats(*node).sent;
        println!("{sent:?}");
    }
    assert!(ledger.compared > 1_500, "{}", ledger.compared);
}
