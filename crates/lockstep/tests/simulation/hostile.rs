//! Eight players, loss, jitter, reordering, a cut of 3 s, joins, with and without inputs from player to player: every confirmed frame identical, no deadlock, bounded memory.
//!
//! `MUSE_SEEDS` runs more than 300 seeds, `MUSE_SEEDS_AFTER` only those after so many, `MUSE_SEED` one of them.

use muse_lockstep::{Late, MatchConfig, Notice, Rng, Role, Status};
use muse_netem::{Conditions, Jitter, NodeId};
use muse_wire::Duration;

use crate::brawl::{Brawl, Push};
use crate::support::{Ledger, Match};

const SEEDS_DEFAULT: u64 = 300;

#[test]
fn every_confirmed_frame_is_the_same_on_all_odd_seeds() {
    run_seeds(1);
}

#[test]
fn every_confirmed_frame_is_the_same_on_all_even_seeds() {
    run_seeds(2);
}

/// Every second seed, so that two cores share the work.
fn run_seeds(first: u64) {
    if let Some(seed) = number("MUSE_SEED") {
        run(seed);
        return;
    }
    let mut compared = 0;
    let first = first + number("MUSE_SEEDS_AFTER").unwrap_or(0);
    for seed in (first..=number("MUSE_SEEDS").unwrap_or(SEEDS_DEFAULT)).step_by(2) {
        if seed % 250 < 2 {
            eprintln!("seeds up to {seed}");
        }
        let result = std::panic::catch_unwind(|| run(seed));
        compared += result.unwrap_or_else(|cause| {
            eprintln!("seed {seed}: MUSE_SEED={seed} runs it alone");
            std::panic::resume_unwind(cause)
        });
    }
    assert!(compared > 10_000, "{compared}");
}

/// One match with everything in it; how many states were compared.
fn run(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let conditions = conditions(&mut rng);
    let lockstep = rng.below(2) == 0;
    let config = config(&mut rng, lockstep);
    let mut game = match rng.below(2) {
        0 => Match::with_server(seed, config, conditions.clone()),
        _ => Match::hosted(seed, config, conditions.clone(), Brawl::new(seed)),
    };
    // In a third of the matches players send each other their inputs directly as well.
    if seed.is_multiple_of(3) {
        game = game.with_directs();
    }
    while game.players.len() < 7 {
        game.join(Brawl::new(seed), Role::Player);
    }
    let mut ledger = Ledger::default();
    let seconds = |game: &mut Match<Brawl>, seconds, rng: &mut Rng, ledger: &mut Ledger| {
        game.run_secs(seconds, |game| {
            play(game, rng);
            ledger.enter(game);
        });
        let log = game.orderer().log_frames();
        assert!(log < 8 * 1_200, "seed {seed}: {log} inputs are kept");
    };
    seconds(&mut game, 4, &mut rng, &mut ledger);
    game.join(Brawl::new(seed), Role::Spectator);
    let victim = game.players[1 + rng.below(5) as usize];
    game.cut(victim, &conditions, 3);
    seconds(&mut game, 2, &mut rng, &mut ledger);
    game.join(Brawl::new(seed), Role::Player);
    seconds(&mut game, 8, &mut rng, &mut ledger);
    let gone = game.players[6];
    game.simulation.detach(gone);
    game.players.remove(6);
    seconds(&mut game, 12, &mut rng, &mut ledger);
    judge(seed, &mut game, &ledger, lockstep);
    ledger.compared
}

fn conditions(rng: &mut Rng) -> Conditions {
    let millis = |rng: &mut Rng, max: u32| Duration::from_millis(u64::from(rng.below(max + 1)));
    let share = |rng: &mut Rng, percent: u32| f64::from(rng.below(percent + 1)) / 100.0;
    Conditions::default()
        .delay(millis(rng, 80))
        .jitter(Jitter::Uniform(millis(rng, 100)))
        .loss(share(rng, 20))
        .reorder(share(rng, 10), millis(rng, 100))
        .duplicate(share(rng, 5), millis(rng, 50))
}

fn config(rng: &mut Rng, lockstep: bool) -> MatchConfig {
    let late = match rng.below(2) {
        0 => Late::Wait,
        _ => Late::Repeat {
            after: Duration::from_millis(400),
        },
    };
    let config = match lockstep {
        true => MatchConfig::lockstep(8),
        false => MatchConfig::rollback(8)
            .frame(Duration::from_micros(33_333))
            .delay(rng.below(4))
            .window([60, 150][rng.below(2) as usize])
            .save_every(1 + rng.below(3)),
    };
    config
        .begins_with(7)
        .late(late)
        .drop_after(Duration::from_secs(5))
}

/// Everybody changes its mind now and then.
fn play(game: &mut Match<Brawl>, rng: &mut Rng) {
    for index in 0..game.players.len() {
        if rng.below(20) == 0 {
            let node = game.players[index];
            let push = Push::random(rng);
            game.session_mut(node).set_input(push).expect("it is small");
        }
    }
}

/// Everybody who is left is in step, and the match has gone on.
fn judge(seed: u64, game: &mut Match<Brawl>, ledger: &Ledger, lockstep: bool) {
    let hub = game.hub;
    let orderer = game
        .simulation
        .node_mut(hub)
        .orderer_mut()
        .expect("it orders");
    while let Some(notice) = orderer.poll_notice() {
        let desync = matches!(notice, Notice::Desync(..) | Notice::Ended);
        assert!(!desync, "seed {seed}: {notice:?}");
    }
    let sealed = orderer.sealed();
    let least = if lockstep { 20 } else { 300 };
    assert!(
        sealed.0 > least,
        "seed {seed}: only {sealed} frames in 26 s"
    );
    assert!(ledger.frames() as u32 + 200 > sealed.0, "seed {seed}");
    for &node in &game.players {
        let node: NodeId = node;
        let session = game.session(node);
        let running = matches!(session.status(), Status::Running | Status::Waiting { .. });
        assert!(running, "seed {seed}: {node:?} {:?}", session.status());
        let behind = sealed.since(session.confirmed());
        assert!(
            behind < 60,
            "seed {seed}: {node:?} is {behind} frames behind {sealed}"
        );
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
