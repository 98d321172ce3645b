//! A puck that players push: clients predict it together with their player, so that a push does not wait for the server.

#[path = "common/run.rs"]
mod run;

use bevy_app::{App, FixedUpdate, Startup, Update};
use bevy_ecs::prelude::*;
use muse_bevy::prelude::*;

/// A player on a line, on a grid of a millimetre.
#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Player {
    #[field(range = -100.0..=100.0, step = 0.001)]
    pub(crate) x: f32,
}

/// The puck on the same line.
#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Puck {
    #[field(range = -100.0..=100.0, step = 0.001)]
    pub(crate) x: f32,
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: f32,
}

impl Puck {
    /// A puck that lies there.
    pub(crate) fn at(x: f32) -> Self {
        Self { x, velocity: 0.0 }
    }
}

/// The rules: the same on the server and on the client.
#[derive(Resource)]
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Player;
    type Input = bool;
    type Event = ();
    /// Entities that a client predicts besides its own player.
    const PREDICTED_MAX: usize = 4;

    fn step(&mut self, player: &mut Player, go: &bool, _: &mut StepContext<'_, ()>) {
        player.x += if *go { 0.08 } else { 0.0 };
    }

    /// Everything that moves together: on the server all of it, on a client what it predicts.
    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        scene.step_players(self);
        for (entity, mut puck) in scene.all::<Puck>() {
            puck.x += puck.velocity * 0.02;
            puck.velocity *= 0.98;
            for player in scene.players().filter_map(|player| scene.player(player)) {
                if (puck.x - player.x).abs() < 1.0 {
                    puck.x = player.x + 1.0;
                    puck.velocity = 6.0;
                }
            }
            scene.set(entity, &puck);
        }
    }

    /// Predicts what is near, the nearest first.
    fn predicts(&self, own: &Player, other: &Candidate<'_>) -> Option<f32> {
        let x = other.state::<Puck>()?.x;
        Some((x - own.x).abs()).filter(|distance| *distance < 20.0)
    }
}

pub(crate) fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(20));
    Protocol::<Rules>::new(session, KindOptions::new(1), |a, b| (a.x - b.x).abs())
        .predict::<Puck>(2, |a, b| (a.x - b.x).abs())
}

pub(crate) fn server(link: muse_bevy::muse::drivers::EndpointDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .add_systems(Startup, |mut commands: Commands| {
            commands.spawn((Puck::at(1.5), Replicated));
        })
        .add_systems(Update, welcome);
    app
}

/// Each client that joins gets a player.
fn welcome(mut joined: MessageReader<ClientJoined>, mut commands: Commands) {
    for ClientJoined { client, .. } in joined.read() {
        commands.spawn((Player::default(), Replicated, Owner(*client)));
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

/// Always onwards, as this example has no window to read keys from.
fn keys(mut input: ResMut<PlayerInput<bool>>) {
    input.0 = true;
}

fn draw(me: Query<&Player, With<Predicted>>, pucks: Query<&Puck>, how: Res<Diagnostics>) {
    if let (Some(me), Some(puck)) = (me.iter().next(), pucks.iter().next()) {
        let corrected = how.corrected;
        println!(
            "at {:.2}, the puck at {:.2}, {corrected} corrections",
            me.x, puck.x
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
