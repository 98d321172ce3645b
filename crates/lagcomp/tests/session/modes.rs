//! Late join, spectators with a delay, a server that hitches, others predicted by their inputs, and round trips.

use std::collections::BTreeMap;

use muse_netcode::{ClientId, Tick};
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use crate::arena::Arena;
use crate::game::{Player, Server, config, kinds};

fn good() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(25))
        .jitter(Jitter::Uniform(Duration::from_millis(4)))
        .loss(0.01)
}

#[test]
fn who_joins_late_gets_everything_and_plays_exactly() {
    let mut arena = Arena::new(3, config().bytes_per_snapshot(400));
    arena.add_bots(200);
    arena
        .server
        .join(ClientId(1), &Player::default())
        .expect("room");
    arena.connect(ClientId(1), &good());
    arena.run(Duration::from_secs(5), |_, _| ());
    arena
        .server
        .join(ClientId(2), &Player::default())
        .expect("room");
    let late = arena.connect(ClientId(2), &good());
    arena.run(Duration::from_millis(200), |_, _| ());
    let known = arena.seats[late].game.receiver().entities().count();
    assert!(known < 202, "so much does not fit into a few packets");
    arena.run(Duration::from_secs(5), |_, _| ());
    let seat = &arena.seats[late];
    assert!(seat.game.receiver().is_complete());
    assert_eq!(seat.game.receiver().entities().count(), 202);
    assert_eq!(seat.screen.len(), 201);
    assert_eq!(seat.corrected_without_cause, 0);
    assert!(seat.game.prediction().confirmed > 150);
}

#[test]
fn spectators_see_the_past_and_nothing_newer() {
    let delay = Duration::from_secs(3);
    let mut arena = Arena::new(4, config().spectator_delay(delay));
    arena.add_bots(10);
    arena
        .server
        .join(ClientId(1), &Player::default())
        .expect("room");
    arena.connect(ClientId(1), &good());
    let (_, kind) = kinds();
    let (bot, mut extra) = (arena.bots[0], None);
    let mut past = BTreeMap::new();
    arena.run(Duration::from_secs(1), |server, tick| {
        past.insert(tick, server.world().state(kind, bot).expect("a bot"));
    });
    let watches = arena.server.watch_delayed(ClientId(9));
    watches.expect("there is a delay");
    let spectator = arena.connect(ClientId(9), &good());
    for _ in 0..400 {
        arena.run(
            Duration::from_millis(20),
            |server: &mut Server, tick: Tick| {
                past.insert(tick, server.world().state(kind, bot).expect("a bot"));
                if tick == Tick(200) {
                    let spawned = server.world_mut().spawn(kind, &Player::default());
                    extra = spawned.ok();
                }
            },
        );
        let receiver = arena.seats[spectator].game.receiver();
        let newest = past.keys().next_back().map_or(0, |tick| tick.0);
        if let Some(tick) = receiver.tick() {
            assert!(tick.0 + 150 <= newest, "{tick:?} at {newest}");
        }
        let knows = extra.is_some_and(|extra| receiver.entities().any(|other| other == extra));
        assert!(!knows || newest >= 350);
        if let Some((tick, state)) = receiver.state(kind, bot) {
            assert_eq!(Some(&state), past.get(&tick), "exactly what was");
        }
    }
    let seat = &arena.seats[spectator];
    assert!(seat.screen.iter().any(|(entity, _)| Some(*entity) == extra));
    assert_eq!(seat.screen.len(), 12, "ten bots, a player, and what came");
    let shown = seat.game.shown_time().expect("it runs").ticks();
    assert!(f64::from(past.len() as u32) - shown < 165.0, "{shown}");
}

#[test]
fn a_server_that_hitches_tells_and_goes_on() {
    let mut arena = Arena::new(5, config());
    arena.add_bots(3);
    arena
        .server
        .join(ClientId(1), &Player::default())
        .expect("room");
    let seat = arena.connect(ClientId(1), &good());
    arena.run(Duration::from_secs(5), |_, _| ());
    arena.hitch_until = arena.now + Duration::from_millis(700);
    arena.run(Duration::from_secs(3), |_, _| ());
    // 35 ticks went by, five are caught up with at once.
    let slipped = arena.server.slipped();
    assert!((29..=31).contains(&slipped), "{slipped}");
    assert_eq!(arena.seats[seat].game.slipped(), slipped);
    let counters = |arena: &Arena| {
        let counters = arena.server.input_counters(ClientId(1)).expect("it plays");
        (counters.received, counters.repeated + counters.missing)
    };
    let before = counters(&arena);
    arena.run(Duration::from_secs(4), |_, _| ());
    let after = counters(&arena);
    assert!(
        after.0 - before.0 >= 198 && after.1 - before.1 <= 2,
        "{before:?} {after:?}"
    );
    assert_eq!(arena.seats[seat].corrected_without_cause, 0);
}

#[test]
fn round_trips_are_measured_finer_than_ticks() {
    for (delay, jitter, tolerance) in [(10, 0, 1.5), (37, 0, 1.5), (80, 20, 8.0), (50, 60, 16.0)] {
        let mut arena = Arena::new(delay, config());
        arena
            .server
            .join(ClientId(1), &Player::default())
            .expect("room");
        let conditions = Conditions::default()
            .delay(Duration::from_millis(delay))
            .jitter(Jitter::Uniform(Duration::from_millis(jitter)))
            .loss(0.02);
        arena.connect(ClientId(1), &conditions);
        let (mut sum, mut count) = (0.0, 0.0);
        arena.run(
            Duration::from_secs(10),
            |server: &mut Server, tick: Tick| {
                if tick > Tick(150) {
                    let measured = server.round_trip(ClientId(1)).expect("it answers");
                    sum += measured.as_millis_f64();
                    count += 1.0;
                }
            },
        );
        let (mean, truth) = (sum / count, (2 * delay + jitter) as f64);
        assert!(
            (mean - truth).abs() < tolerance,
            "{mean} instead of {truth}"
        );
    }
}

/// Without a delay nobody watches live by mistake.
#[test]
fn a_late_spectator_without_a_delay_is_an_error() {
    let mut arena = Arena::new(1, config());
    let watches = arena.server.watch_delayed(ClientId(9));
    assert_eq!(watches, Err(muse_netcode::WorldError::NoDelay));
    assert_eq!(arena.server.clients().count(), 0);
}
