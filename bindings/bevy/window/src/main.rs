//! Muse in a Bevy window, under `DefaultPlugins`: the green player is this window's and predicted, the orange one is another client's and
//! interpolated. Arrow keys steer; until one is pressed the player runs in circles. Dots are left where players were drawn.
//!
//! The server and the other client are apps of their own in this program. All three count how often `FixedUpdate` runs in a tick. With a
//! number of seconds as argument it ends after these, and fails if that was ever more than once.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use muse_bevy::muse::netcode::Tick;
use muse_bevy::muse::{self, Connect, ServerOptions};
use muse_bevy::prelude::*;

/// A player as everybody sees it, on a grid of a millimetre.
#[derive(Component, State, Clone, Debug, Default, PartialEq)]
struct Runner {
    #[field(range = -100.0..=100.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    position: [f32; 2],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 2],
}

/// The keys of a player in a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    #[field(range = -1..=1)]
    y: i8,
}

#[derive(Resource)]
struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = Keys;
    type Event = ();

    fn step(&mut self, runner: &mut Runner, keys: &Keys, _: &mut StepContext<'_, ()>) {
        for (axis, key) in [keys.x, keys.y].into_iter().enumerate() {
            runner.velocity[axis] += (f32::from(key) * 8.0 - runner.velocity[axis]) * 0.1;
            let moved = runner.position[axis] + runner.velocity[axis] * 0.02;
            runner.position[axis] = moved.clamp(-FIELD, FIELD);
        }
    }
}

fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(20));
    Protocol::new(session, KindOptions::new(1), |a: &Runner, b: &Runner| {
        (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
    })
}

/// The runs of `FixedUpdate`, and how many of them repeated a tick.
#[derive(Clone, Copy, Default)]
struct Count {
    last: Option<Tick>,
    runs: u64,
    repeated: u64,
    /// Time that passed in them by Bevy's clock.
    time: StdDuration,
}

#[derive(Resource, Clone, Default)]
struct Counter(Arc<Mutex<Count>>);

impl Counter {
    fn get(&self) -> Count {
        *self.0.lock().expect("no system panics while it counts")
    }
}

fn count(tick: Res<NetTick>, time: Res<Time>, counter: Res<Counter>) {
    let mut count = counter.0.lock().expect("no system panics while it counts");
    count.repeated += u64::from(count.last == Some(tick.0));
    count.last = Some(tick.0);
    count.runs += 1;
    count.time += time.delta();
}

/// A server without a window.
fn serve(link: muse::drivers::EndpointDriver, counter: Counter) {
    App::new()
        .add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(PAUSE)))
        .add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .insert_resource(counter)
        .add_systems(FixedUpdate, count)
        .add_systems(Update, welcome)
        .run();
}

fn welcome(mut joined: MessageReader<ClientJoined>, mut commands: Commands) {
    for ClientJoined { client, .. } in joined.read() {
        let position = [6.0 * client.0 as f32, 0.0];
        let runner = Runner {
            position: position.map(|axis| axis.min(FIELD)),
            ..Runner::default()
        };
        commands.spawn((runner, Replicated, Owner(*client)));
    }
}

/// The other client, whose player runs in circles.
fn bot(link: muse::drivers::ClientDriver, counter: Counter) {
    App::new()
        .add_plugins(ClientPlugin::new(protocol()))
        .add_plugins(MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(PAUSE)))
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(link))
        .insert_resource(counter)
        .add_systems(FixedUpdate, (count, run_in_circles))
        .run();
}

fn run_in_circles(tick: Res<NetTick>, mut input: ResMut<PlayerInput<Keys>>) {
    let corners = [[1, 0], [0, 1], [-1, 0], [0, -1]];
    let [x, y] = corners[tick.0.0 as usize / 40 % corners.len()];
    input.0 = Keys { x, y };
}

fn steer(
    keys: Res<ButtonInput<KeyCode>>,
    tick: Res<NetTick>,
    mut input: ResMut<PlayerInput<Keys>>,
    mut steered: Local<bool>,
) {
    let axis = |less, more| i8::from(keys.pressed(more)) - i8::from(keys.pressed(less));
    let pressed = Keys {
        x: axis(KeyCode::ArrowLeft, KeyCode::ArrowRight),
        y: axis(KeyCode::ArrowDown, KeyCode::ArrowUp),
    };
    *steered |= pressed != Keys::default();
    match *steered {
        true => input.0 = pressed,
        false => run_in_circles(tick, input),
    }
}

/// A dot where a player was drawn, and when.
#[derive(Component)]
struct Dot(StdDuration);

fn leave_dots(
    time: Res<Time>,
    runners: Query<(&Runner, Has<Predicted>)>,
    dots: Query<(Entity, &Dot)>,
    mut commands: Commands,
) {
    let now = time.elapsed();
    for (entity, dot) in &dots {
        if now - dot.0 > DOTS_FOR {
            commands.entity(entity).despawn();
        }
    }
    for (runner, own) in &runners {
        let sprite = Sprite::from_color(color(own), Vec2::splat(4.0));
        commands.spawn((sprite, place(runner), Dot(now)));
    }
}

fn draw(
    mut runners: Query<(Entity, &Runner, Has<Predicted>, Option<&mut Sprite>)>,
    mut commands: Commands,
) {
    for (entity, runner, own, sprite) in &mut runners {
        commands.entity(entity).insert(place(runner));
        match sprite {
            Some(mut sprite) => sprite.color = color(own),
            None => {
                let sprite = Sprite::from_color(color(own), Vec2::splat(28.0));
                commands.entity(entity).insert(sprite);
            }
        }
    }
}

fn place(runner: &Runner) -> Transform {
    let [x, y] = runner.position.map(|axis| axis * PIXELS_PER_METRE);
    Transform::from_xyz(x, y, 0.0)
}

fn color(own: bool) -> Color {
    match own {
        true => Color::srgb_u8(0x40, 0xc0, 0x60),
        false => Color::srgb_u8(0xf0, 0x90, 0x30),
    }
}

/// Prints how it goes, once a second of ticks, and ends in time.
fn report(
    counter: Res<Counter>,
    runners: Query<&Runner>,
    seconds: Res<Seconds>,
    mut exit: MessageWriter<AppExit>,
) {
    let Count { runs, repeated, .. } = counter.get();
    if runs.is_multiple_of(50) {
        let players = runners.iter().count();
        println!("window: {runs} ticks, {repeated} repeated, {players} players");
    }
    if seconds.0.is_some_and(|seconds| runs >= 50 * seconds) {
        exit.write(AppExit::Success);
    }
}

/// Seconds of ticks after which the program ends; by default, when the window is closed.
#[derive(Resource)]
struct Seconds(Option<u64>);

fn main() -> std::io::Result<ExitCode> {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map(|argument| argument.parse().expect("a number of seconds"));
    let (config, key) = (
        protocol().transport(0x0077_696e_646f_7721),
        muse::new_key()?,
    );
    let public = key.public();
    let link = muse::drivers::EndpointDriver::bind(
        "127.0.0.1:0",
        config.clone(),
        ServerOptions::new(key),
    )?;
    let address = link.local_addr()?;
    let connect =
        || muse::drivers::ClientDriver::connect(address, config.clone(), Connect::pinned(public));
    let (window, other) = (connect()?, connect()?);
    let counters = [(); 3].map(|()| Counter::default());
    let [mine, servers, bots] = counters.clone();
    std::thread::spawn(move || serve(link, servers));
    std::thread::spawn(move || bot(other, bots));
    App::new()
        .add_plugins(DefaultPlugins)
        .add_plugins(ClientPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(window))
        .insert_resource(Seconds(seconds))
        .insert_resource(mine)
        .add_systems(Startup, |mut commands: Commands| {
            commands.spawn(Camera2d);
        })
        .add_systems(FixedUpdate, (count, steer, report).chain())
        .add_systems(Update, (draw, leave_dots))
        .run();

    let counts = counters.map(|counter| counter.get());
    for (name, count) in ["window", "server", "bot"].iter().zip(&counts) {
        let (runs, time, repeated) = (count.runs, count.time, count.repeated);
        println!(
            "{name}: FixedUpdate ran {runs} times, {time:?} by its clock, {repeated} ticks repeated"
        );
    }
    let good = |count: &Count| count.repeated == 0 && count.runs > 0;
    Ok(ExitCode::from(u8::from(!counts.iter().all(good))))
}

/// Half the length of the field, in metres.
const FIELD: f32 = 14.0;
const PIXELS_PER_METRE: f32 = 20.0;
/// Time for which a dot stays.
const DOTS_FOR: StdDuration = StdDuration::from_secs(4);
/// Pause between frames of the apps without a window.
const PAUSE: StdDuration = StdDuration::from_millis(4);
