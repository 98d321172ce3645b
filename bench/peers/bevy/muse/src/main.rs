//! Muse's plugin on the scene: one component, at 1 mm, 1 cm/s and a rotation of 32 bits.

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use muse_bench_bevy::{Bodies, Options, Seen, serve, watch};
use muse_bevy::muse::{self, Connect, ServerKey, ServerOptions};
use muse_bevy::prelude::*;

#[derive(Component, State, Clone, Debug, Default)]
struct Body {
    #[field(range = -1000.0..=1000.0, step = 0.001, velocity = velocity)]
    position: [f32; 3],
    #[field(rotation = 10)]
    rotation: [f32; 4],
    #[field(range = -100.0..=100.0, step = 0.01)]
    velocity: [f32; 3],
}

/// Nobody plays.
#[derive(Component, State, Clone, Debug, Default)]
struct Nobody {
    #[field(range = 0..=1)]
    there: u8,
}

#[derive(Resource)]
struct Rules;

impl Game for Rules {
    type Player = Nobody;
    type Input = bool;
    type Event = ();
    fn step(&mut self, _: &mut Nobody, _: &bool, _: &mut StepContext<'_, ()>) {}
}

#[derive(Resource)]
struct Scene {
    bodies: Bodies,
    still: bool,
}

#[derive(Component)]
struct Number(usize);

fn main() {
    let options = Options::parse();
    if options.servers.is_empty() {
        run_server(&options);
    } else {
        run_clients(&options);
    }
}

fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(50));
    Protocol::<Rules>::new(session, KindOptions::new(1), |_, _| 0.0).replicate::<Body>(2)
}

fn run_server(options: &Options) {
    let config = protocol().transport(GAME);
    let link =
        muse::drivers::EndpointDriver::bind("127.0.0.1:0", config, ServerOptions::new(key()))
            .expect("a free port on the loopback interface");
    let port = link.local_addr().expect("it is bound").port();
    let scene = Scene {
        bodies: Bodies::new(options.entities),
        still: options.still,
    };
    let mut app = App::new();
    app.add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .add_systems(FixedUpdate, drift);
    for number in 0..options.entities {
        let body = state(&scene.bodies, number);
        app.world_mut().spawn((body, Number(number), Replicated));
    }
    app.insert_resource(scene);
    app.update();
    serve(port, || app.update());
}

fn drift(mut scene: ResMut<Scene>, mut bodies: Query<(&Number, &mut Body)>) {
    scene.bodies.step();
    if !scene.still {
        for (number, mut body) in &mut bodies {
            *body = state(&scene.bodies, number.0);
        }
    }
}

fn run_clients(options: &Options) {
    let connect = |server| {
        let how = Connect::pinned(key().public());
        let link = muse::drivers::ClientDriver::connect(server, protocol().transport(GAME), how)
            .expect("a socket on the loopback interface");
        let mut app = App::new();
        app.add_plugins(ClientPlugin::new(protocol()))
            .insert_resource(Rules)
            .insert_resource(ConnectTo::new(link));
        app
    };
    let mut apps: Vec<App> = options.servers.iter().map(connect).collect();
    watch(options, |client| {
        let world = apps[client].world_mut();
        let before = world.increment_change_tick();
        apps[client].update();
        let world = apps[client].world_mut();
        let now = world.change_tick();
        let mut query = world.query::<Ref<Body>>();
        let mut seen = Seen::default();
        for body in query.iter(world) {
            seen.bodies += 1;
            seen.changed += usize::from(body.last_changed().is_newer_than(before, now));
        }
        seen
    });
}

fn state(bodies: &Bodies, number: usize) -> Body {
    let body = bodies.get(number);
    Body {
        position: body.position,
        rotation: body.rotation,
        velocity: body.velocity,
    }
}

/// The same in both programs.
fn key() -> ServerKey {
    ServerKey::from_bytes([7; 32])
}

const GAME: u64 = 0x6e31;
