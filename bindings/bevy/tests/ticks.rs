//! Each tick of a session runs once, with and without Bevy's own clock, in whichever order the plugins are added.

#[path = "../examples/predicted_runner.rs"]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "a program of its own, of which only the rules are needed"
)]
mod predicted_runner;
#[path = "../examples/common/run.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "shared by the examples")]
mod run;

use std::time::{Duration, Instant};

use bevy_app::{App, FixedUpdate, Plugin, RunFixedMainLoop, RunFixedMainLoopSystems, Update};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy, Virtual, run_fixed_main_schedule};
use muse_bevy::muse::netcode::Tick;
use muse_bevy::prelude::*;
use predicted_runner::{Rules, protocol};

/// The length of a tick of the protocol.
const TICK: Duration = Duration::from_millis(20);
/// Time that passes in a frame by Bevy's clock: a fixed loop of its own would run in each.
const FRAME: Duration = Duration::from_millis(50);
/// Ticks that each side runs before it is judged.
const TICKS: usize = 100;

type Outcome = std::io::Result<()>;

/// The ticks that systems have seen, and the delta of `Time` in each, if there is such a clock.
#[derive(Resource, Default)]
struct Seen(Vec<(Tick, Option<Duration>)>);

/// Frames, counted where Bevy has its fixed steps.
#[derive(Resource, Default)]
struct Frames {
    before: usize,
    after: usize,
}

fn see(tick: Res<NetTick>, time: Option<Res<Time>>, mut seen: ResMut<Seen>) {
    seen.0.push((tick.0, time.map(|time| time.delta())));
}

/// Sees ticks, which run between the systems that Bevy has before and after them.
fn watch(app: &mut App) {
    let before = |mut frames: ResMut<Frames>| frames.before += 1;
    let after = |mut frames: ResMut<Frames>| frames.after += 1;
    let during = |frames: Res<Frames>| assert_eq!(frames.before, frames.after + 1);
    app.init_resource::<Frames>()
        .add_systems(
            RunFixedMainLoop,
            (
                before.in_set(RunFixedMainLoopSystems::BeforeFixedMainLoop),
                after.in_set(RunFixedMainLoopSystems::AfterFixedMainLoop),
            ),
        )
        .add_systems(FixedUpdate, (during, see));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    None,
    First,
    Last,
}

fn app(clock: Clock, plugin: impl Plugin) -> App {
    let mut app = App::new();
    let with_clock = |app: &mut App| {
        app.add_plugins(TimePlugin)
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
    };
    if clock == Clock::First {
        with_clock(&mut app);
    }
    app.add_plugins(plugin);
    if clock == Clock::Last {
        with_clock(&mut app);
    }
    app.insert_resource(Rules).init_resource::<Seen>();
    watch(&mut app);
    app
}

/// A server with a client, which have run until both have seen enough ticks.
fn play(clock: Clock) -> std::io::Result<[App; 2]> {
    let (link, connect) = run::listen(&protocol())?;
    let mut apps = [
        app(clock, ServerPlugin::new(protocol())),
        app(clock, ClientPlugin::new(protocol())),
    ];
    apps[0].insert_resource(ServeOn::new(link));
    apps[1].insert_resource(ConnectTo::new(connect()?));
    run_all(&mut apps);
    Ok(apps)
}

fn run_all(apps: &mut [App]) {
    let end = Instant::now() + Duration::from_secs(60);
    while apps.iter().any(|app| seen(app).len() < TICKS) {
        assert!(Instant::now() < end, "it takes too long");
        apps.iter_mut().for_each(App::update);
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn seen(app: &App) -> &[(Tick, Option<Duration>)] {
    &app.world().resource::<Seen>().0
}

fn assert_once(app: &App, delta: Option<Duration>) {
    let ticks = seen(app);
    for pair in ticks.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{ticks:?}");
    }
    assert!(ticks.iter().all(|(_, seen)| *seen == delta), "{ticks:?}");
}

#[test]
fn without_bevys_clock() -> Outcome {
    for app in &play(Clock::None)? {
        assert_once(app, None);
        assert_eq!(app.world().resource::<Time<Fixed>>().delta(), TICK);
    }
    Ok(())
}

#[test]
fn beside_bevys_clock() -> Outcome {
    for clock in [Clock::First, Clock::Last] {
        for app in &play(clock)? {
            assert_once(app, Some(TICK));
            let world = app.world();
            let (fixed, frame) = (world.resource::<Time<Fixed>>(), world.resource::<Time>());
            assert_eq!((fixed.timestep(), fixed.delta()), (TICK, TICK));
            assert_eq!(fixed.elapsed(), TICK * seen(app).len() as u32);
            // What is drawn between two ticks goes by it.
            assert!(fixed.overstep() <= TICK, "{fixed:?}");
            // Outside of ticks it is the frame's.
            assert_eq!(frame.delta(), FRAME);
            assert_eq!(frame.elapsed(), world.resource::<Time<Virtual>>().elapsed());
        }
    }
    Ok(())
}

/// A menu that wants fixed steps, before there is a session, adds Bevy's loop under a condition.
#[test]
fn fixed_steps_in_a_menu_end_when_the_session_begins() -> Outcome {
    let (link, connect) = run::listen(&protocol())?;
    let mut server = app(Clock::First, ServerPlugin::new(protocol()));
    server.insert_resource(ServeOn::new(link));
    let mut client = app(Clock::Last, ClientPlugin::new(protocol()));
    client.add_systems(
        RunFixedMainLoop,
        run_fixed_main_schedule
            .run_if(resource_equals(ConnectionState::Idle))
            .after(RunFixedMainLoopSystems::BeforeFixedMainLoop)
            .before(RunFixedMainLoopSystems::AfterFixedMainLoop),
    );
    // Time stands still in the first frame.
    client.update();
    for frame in 1..=4 {
        client.update();
        // The fixed step is as long as a tick.
        assert_eq!(seen(&client).len(), frame * 5 / 2);
    }
    client.world_mut().resource_mut::<Seen>().0.clear();
    client.insert_resource(ConnectTo::new(connect()?));
    let mut apps = [server, client];
    run_all(&mut apps);
    assert_once(&apps[1], Some(TICK));
    Ok(())
}

#[derive(Message)]
struct Click;

#[derive(Resource, Default)]
struct Clicks {
    heard: usize,
    held: usize,
}

/// Messages wait for ticks, so they would pile up in a menu, where there are none.
#[test]
fn messages_do_not_pile_up_without_a_session() {
    let count = |clicks: Res<Messages<Click>>,
                 mut reader: MessageReader<Click>,
                 mut counted: ResMut<Clicks>| {
        counted.heard += reader.read().count();
        counted.held = counted.held.max(clicks.len());
    };
    for clock in [Clock::None, Clock::First, Clock::Last] {
        for mut app in [
            app(clock, ServerPlugin::new(protocol())),
            app(clock, ClientPlugin::new(protocol())),
        ] {
            app.add_message::<Click>()
                .init_resource::<Clicks>()
                .add_systems(Update, count);
            for _ in 0..TICKS {
                app.world_mut().write_message(Click);
                app.update();
            }
            assert!(seen(&app).is_empty(), "there is no session");
            let clicks = app.world().resource::<Clicks>();
            assert_eq!(clicks.heard, TICKS);
            assert!(clicks.held <= 3, "{clock:?}: {} are held", clicks.held);
        }
    }
}
