//! The examples do what they show, over loopback: prediction without corrections, interpolation, parts, visibility, events, judged shots, states of connections.

#![allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "each example is a program of its own, with what it shares"
)]

#[path = "../examples/fps_hitscan.rs"]
mod fps_hitscan;
#[path = "../examples/moving_boxes.rs"]
mod moving_boxes;
#[path = "../examples/predicted_puck.rs"]
mod predicted_puck;
#[path = "../examples/predicted_runner.rs"]
mod predicted_runner;
#[path = "../examples/common/run.rs"]
mod run;

use std::time::{Duration, Instant};

use bevy_app::App;
use bevy_ecs::prelude::*;
use muse_bevy::prelude::*;

type Outcome = std::io::Result<()>;

/// Runs the apps until `done`.
fn until(what: &str, apps: &mut [&mut App], mut done: impl FnMut(&mut [&mut App]) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done(apps) {
        assert!(Instant::now() < end, "{what} takes too long");
        for app in apps.iter_mut() {
            app.update();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn all<C: Component + Clone>(app: &mut App) -> Vec<C> {
    let mut query = app.world_mut().query::<&C>();
    query.iter(app.world()).cloned().collect()
}

#[test]
fn two_runners_are_predicted_and_see_each_other() -> Outcome {
    use predicted_runner::{Runner, client, protocol, server};
    let (link, connect) = run::listen(&protocol())?;
    let mut server = server(link);
    let (mut one, mut two) = (client(connect()?), client(connect()?));
    until("playing", &mut [&mut server, &mut one, &mut two], |apps| {
        apps[1..].iter_mut().all(|app| {
            let confirmed = app.world().resource::<Diagnostics>().confirmed;
            confirmed > 100 && all::<Runner>(app).len() == 2
        })
    });
    for app in [&mut one, &mut two] {
        let how = *app.world().resource::<Diagnostics>();
        assert_eq!(how.connections, 1);
        // Inputs of the first ticks may come too late while the clock finds its place.
        assert!(how.corrected * 10 < how.confirmed, "{how:?}");
        assert!(how.behind > muse_bevy::muse::Duration::ZERO, "{how:?}");
        let moved = all::<Runner>(app);
        assert!(
            moved.iter().all(|runner| runner.position != [0.0; 2]),
            "{moved:?}"
        );
        assert_eq!(all_with::<Predicted>(app), 1);
        assert_eq!(
            *app.world().resource::<ConnectionState>(),
            ConnectionState::Connected
        );
    }
    assert_eq!(server.world().resource::<Diagnostics>().connections, 2);
    // One leaves: its runner goes everywhere.
    drop(two);
    until("leaving", &mut [&mut server, &mut one], |apps| {
        all::<Runner>(apps[0]).len() == 1 && all::<Runner>(apps[1]).len() == 1
    });
    drop(server);
    until("closing", &mut [&mut one], |apps| {
        matches!(
            apps[0].world().resource::<ConnectionState>(),
            ConnectionState::Closed(_)
        )
    });
    Ok(())
}

#[test]
fn a_puck_is_predicted_where_a_player_pushes_it() -> Outcome {
    use predicted_puck::{Player, Puck, client, protocol, server};
    let (link, connect) = run::listen(&protocol())?;
    let (mut server, mut one) = (server(link), client(connect()?));
    // The puck is ahead of where a client would show it in the past: the player's push is not waited for.
    until("pushing", &mut [&mut server, &mut one], |apps| {
        let pucks = all::<Puck>(apps[1]);
        pucks.first().is_some_and(|puck| puck.x > 2.0)
    });
    let how = *one.world().resource::<Diagnostics>();
    assert_eq!(how.predicted_others, 1, "{how:?}");
    assert!(how.corrected * 10 < how.confirmed, "{how:?}");
    let (players, pucks) = (all::<Player>(&mut one), all::<Puck>(&mut one));
    assert!(
        pucks[0].x > players[0].x,
        "it is pushed, not passed: {players:?}, {pucks:?}"
    );
    // A system of the server puts it back, outside of any tick; the rules go on from there.
    let mut query = server.world_mut().query::<&mut Puck>();
    for mut puck in query.iter_mut(server.world_mut()) {
        *puck = Puck::at(-50.0);
    }
    until("putting back", &mut [&mut server, &mut one], |apps| {
        let is_back = |app: &mut App| all::<Puck>(app)[0].x < -40.0;
        is_back(apps[0]) && is_back(apps[1])
    });
    assert!(all::<Puck>(&mut server)[0].x < -40.0);
    Ok(())
}

fn all_with<C: Component>(app: &mut App) -> usize {
    let mut query = app.world_mut().query_filtered::<(), With<C>>();
    query.iter(app.world()).count()
}

#[test]
fn boxes_move_and_some_are_secret() -> Outcome {
    use moving_boxes::{Label, MovingBox, Paint, Painted, client, protocol, server};
    let (link, connect) = run::listen(&protocol())?;
    let mut server = server(link, 8);
    let mut first = client(connect()?);
    until("the first", &mut [&mut server, &mut first], |apps| {
        all::<MovingBox>(apps[1]).len() == 8
    });
    let mut second = client(connect()?);
    until(
        "the second",
        &mut [&mut server, &mut first, &mut second],
        |apps| all::<MovingBox>(apps[2]).len() == 7 && all::<Label>(apps[2]).len() == 2,
    );
    let mut labels: Vec<String> = all::<Label>(&mut second)
        .into_iter()
        .map(|l| l.text)
        .collect();
    labels.sort();
    assert_eq!(labels, ["box 0", "box 4"]);

    second.world_mut().write_message(ToServer(Paint {
        number: 3,
        colour: 9,
    }));
    let mut heard = 0;
    let mut cursor = second
        .world()
        .resource::<Messages<FromServer<Painted>>>()
        .get_cursor();
    until(
        "painting",
        &mut [&mut server, &mut first, &mut second],
        |apps| {
            let messages = apps[2].world().resource::<Messages<FromServer<Painted>>>();
            heard += cursor
                .read(messages)
                .filter(|told| told.event.colour == 9 && told.entity.is_some())
                .count();
            heard == 1
                && all::<MovingBox>(apps[2])
                    .iter()
                    .any(|painted| painted.colour == 9)
        },
    );

    // What is shown lies on the circle, or a little outside when a state is late, and moves on.
    let before = all::<MovingBox>(&mut first);
    until(
        "moving",
        &mut [&mut server, &mut first, &mut second],
        |apps| {
            all::<MovingBox>(apps[1])
                .iter()
                .zip(&before)
                .all(|(now, then)| {
                    let radius = now.position[0].hypot(now.position[1]);
                    assert!((40.0..=65.0).contains(&radius), "{radius}");
                    now.position != then.position
                })
        },
    );

    // A label that is taken away, and a box that goes, are gone everywhere.
    let mut labelled = server.world_mut().query_filtered::<Entity, With<Label>>();
    let [one, other] = labelled.iter(server.world()).collect::<Vec<_>>()[..] else {
        return Err(std::io::Error::other("two boxes have labels"));
    };
    server.world_mut().entity_mut(one).remove::<Label>();
    server.world_mut().despawn(other);
    until(
        "going",
        &mut [&mut server, &mut first, &mut second],
        |apps| {
            let of = |app: &mut App| (all::<MovingBox>(app).len(), all::<Label>(app).len());
            of(apps[1]) == (7, 0) && of(apps[2]) == (6, 0)
        },
    );
    Ok(())
}

#[test]
fn shots_hit_what_was_on_the_screen() -> Outcome {
    use fps_hitscan::{Score, client, protocol, server};
    let (link, connect) = run::listen(&protocol())?;
    let mut server = server(link);
    let (mut ada, mut bob) = (client(connect()?), client(connect()?));
    let score = |app: &App| *app.world().resource::<Score>();
    until("hitting", &mut [&mut server, &mut ada, &mut bob], |apps| {
        apps[1..]
            .iter()
            .all(|app| score(app).markers >= 3 && score(app).wounds >= 3)
    });
    for app in [&ada, &bob] {
        let Score {
            flashes, markers, ..
        } = score(app);
        assert!(markers <= flashes, "{markers} of {flashes}");
    }
    Ok(())
}

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
