//! lightyear on the scene: one component of 40 bytes, its netcode with encryption, over UDP.

use std::net::{Ipv4Addr, SocketAddr};

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use lightyear::prelude::client::{ClientPlugins, NetcodeClient};
use lightyear::prelude::server::{NetcodeServer, ServerPlugins, ServerUdpIo, Start};
use lightyear::prelude::*;
use muse_bench_bevy::{Bodies, Options, Seen, TICK, serve, watch};
use serde::{Deserialize, Serialize};

#[derive(Component, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Body {
    position: [f32; 3],
    rotation: [f32; 4],
    velocity: [f32; 3],
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

fn run_server(options: &Options) {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        ServerPlugins {
            tick_duration: TICK,
        },
    ))
    .insert_resource(TimeUpdateStrategy::ManualDuration(TICK))
    .add_systems(FixedUpdate, drift)
    .add_observer(|link: On<Add, LinkOf>, mut commands: Commands| {
        commands.entity(link.entity).insert(ReplicationSender);
    });
    app.component::<Body>().replicate();
    app.finish();
    let config = server::NetcodeConfig {
        server_addr_check: false,
        ..server::NetcodeConfig::default()
            .with_protocol_id(PROTOCOL)
            .with_key(KEY)
    };
    let listening = (
        NetcodeServer::new(config),
        ServerUdpIo::default(),
        LocalAddr(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
    );
    let entity = app.world_mut().spawn(listening).id();
    app.world_mut().trigger(Start { entity });
    let scene = Scene {
        bodies: Bodies::new(options.entities),
        still: options.still,
    };
    for number in 0..options.entities {
        let body = state(&scene.bodies, number);
        let replicate = Replicate::to_clients(NetworkTarget::All);
        app.world_mut().spawn((body, Number(number), replicate));
    }
    app.insert_resource(scene);
    app.update();
    let port = app.world().get::<LocalAddr>(entity).map(|at| at.0.port());
    serve(port.expect("it listens"), || app.update());
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
    let connect = |(number, server): (usize, &SocketAddr)| {
        let mut app = App::new();
        app.add_plugins((
            MinimalPlugins,
            StatesPlugin,
            ClientPlugins {
                tick_duration: TICK,
            },
        ));
        app.component::<Body>().replicate();
        app.finish();
        let authentication = Authentication::Manual {
            server_addr: *server,
            client_id: number as u64 + 1,
            private_key: KEY,
            protocol_id: PROTOCOL,
        };
        let netcode = NetcodeClient::new(authentication, client::NetcodeConfig::default());
        let connecting = (
            netcode.expect("a connect token"),
            UdpIo::default(),
            LocalAddr(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            PeerAddr(*server),
            ReplicationReceiver,
        );
        let entity = app.world_mut().spawn(connecting).id();
        app.world_mut().trigger(Connect { entity });
        app
    };
    let mut apps: Vec<App> = options.servers.iter().enumerate().map(connect).collect();
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

const PROTOCOL: u64 = 0x6e31;
const KEY: [u8; 32] = [7; 32];
