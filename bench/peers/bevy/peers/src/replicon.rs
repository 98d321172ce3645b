//! bevy_replicon over renet on the scene: one component of 40 bytes, renet's netcode with its encryption.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};

use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use bevy_replicon::prelude::*;
use bevy_replicon_renet::netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication,
    ServerConfig,
};
use bevy_replicon_renet::renet::ConnectionConfig;
use bevy_replicon_renet::{RenetChannelsExt, RenetClient, RenetServer, RepliconRenetPlugins};
use muse_bench_bevy::{Bodies, Options, Seen, TICK, serve, watch};
use serde::{Deserialize, Serialize};

#[derive(Component, Clone, Copy, Serialize, Deserialize)]
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

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        RepliconPlugins.set(ServerPlugin::new(PostUpdate)),
        RepliconRenetPlugins,
    ))
    .replicate::<Body>();
    app
}

fn connection(app: &App) -> ConnectionConfig {
    let channels = app.world().resource::<RepliconChannels>();
    ConnectionConfig {
        server_channels_config: channels.server_configs(),
        client_channels_config: channels.client_configs(),
        ..Default::default()
    }
}

fn run_server(options: &Options) {
    let mut app = app();
    app.insert_resource(TimeUpdateStrategy::ManualDuration(TICK))
        .add_systems(Update, drift)
        .finish();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    let config = ServerConfig {
        current_time: since_epoch(),
        max_clients: 64,
        protocol_id: PROTOCOL,
        public_addresses: vec![address],
        authentication: ServerAuthentication::Unsecure,
    };
    let transport = NetcodeServerTransport::new(config, socket).expect("a transport");
    let server = RenetServer::new(connection(&app));
    let scene = Scene {
        bodies: Bodies::new(options.entities),
        still: options.still,
    };
    for number in 0..options.entities {
        let body = state(&scene.bodies, number);
        app.world_mut().spawn((body, Number(number), Replicated));
    }
    app.insert_resource(server)
        .insert_resource(transport)
        .insert_resource(scene);
    serve(address.port(), || app.update());
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
        let mut app = app();
        app.finish();
        let authentication = ClientAuthentication::Unsecure {
            client_id: number as u64 + 1,
            protocol_id: PROTOCOL,
            server_addr: *server,
            user_data: None,
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let transport = NetcodeClientTransport::new(since_epoch(), authentication, socket)
            .expect("a transport");
        let client = RenetClient::new(connection(&app));
        app.insert_resource(client).insert_resource(transport);
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

fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("the clock is past 1970")
}

const PROTOCOL: u64 = 0x6e31;
