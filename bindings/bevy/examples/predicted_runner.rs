//! A player that the server simulates, its client predicts and others see: all that it takes with Bevy, server and client.

#[path = "common/run.rs"]
mod run;

use bevy_app::{App, FixedUpdate, Update};
use bevy_ecs::prelude::*;
use muse_bevy::prelude::*;

/// A player as everybody sees it, on a grid of a millimetre.
#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Runner {
    #[field(range = -100.0..=100.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    pub(crate) position: [f32; 2],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 2],
}

/// The keys of a player in a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    #[field(range = -1..=1)]
    y: i8,
}

/// The rules: the same on the server and on the client.
#[derive(Resource)]
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = Keys;
    type Event = ();

    fn step(&mut self, runner: &mut Runner, keys: &Keys, _: &mut StepContext<'_, ()>) {
        for (axis, key) in [keys.x, keys.y].into_iter().enumerate() {
            runner.velocity[axis] += (f32::from(key) * 8.0 - runner.velocity[axis]) * 0.2;
            runner.position[axis] += runner.velocity[axis] * 0.02;
        }
    }
}

pub(crate) fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(20));
    Protocol::<Rules>::new(session, KindOptions::new(1), |a, b| {
        (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
    })
}

pub(crate) fn server(link: muse_bevy::muse::drivers::EndpointDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .add_systems(Update, (welcome, farewell));
    app
}

/// Each client that joins gets a runner.
fn welcome(mut joined: MessageReader<ClientJoined>, mut commands: Commands) {
    for ClientJoined { client, .. } in joined.read() {
        commands.spawn((Runner::default(), Replicated, Owner(*client)));
    }
}

fn farewell(
    mut left: MessageReader<ClientLeft>,
    owned: Query<(Entity, &Owner)>,
    mut commands: Commands,
) {
    for ClientLeft { client, .. } in left.read() {
        for (entity, _) in owned.iter().filter(|(_, owner)| owner.0 == *client) {
            commands.entity(entity).despawn();
        }
    }
}

pub(crate) fn client(link: muse_bevy::muse::drivers::ClientDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ClientPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(link))
        .add_systems(FixedUpdate, keys);
    app
}

/// Runs in circles, as this example has no window to read keys from.
fn keys(tick: Res<NetTick>, mut input: ResMut<PlayerInput<Keys>>) {
    let [x, y] = [[1, 0], [0, 1], [-1, 0], [0, -1]][tick.0.0 as usize / 25 % 4];
    input.0 = Keys { x, y };
}

fn draw(
    me: Query<&Runner, With<Predicted>>,
    others: Query<&Runner, Without<Predicted>>,
    how: Res<Diagnostics>,
) {
    if let Some(me) = me.iter().next() {
        let (others, corrected) = (others.iter().count(), how.corrected);
        println!(
            "at {:.2?}, {others} others, {corrected} corrections",
            me.position
        );
    }
}

fn main() -> std::io::Result<()> {
    let (link, connect) = run::listen(&protocol())?;
    let (mut server, mut client) = (server(link), client(connect()?));
    client.add_systems(Update, draw);
    run::together(&mut [&mut server, &mut client], 3.0, || false);
    Ok(())
}
