//! Boxes that the server moves and clients interpolate; some are a secret of one client's, some have a label besides, and each client may paint one.

#[path = "common/run.rs"]
mod run;
#[cfg(feature = "window")]
#[path = "common/window.rs"]
mod window;

use bevy_app::{App, FixedUpdate, Update};
use bevy_ecs::prelude::*;
use muse_bevy::prelude::*;

#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct MovingBox {
    #[field(range = -100.0..=100.0, step = 0.01, interpolate = linear)]
    pub(crate) position: [f32; 2],
    pub(crate) colour: u8,
}

/// A part that boxes may have besides.
#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Label {
    #[field(max = 16)]
    pub(crate) text: String,
}

/// The player of a client that only watches.
#[derive(Component, State, Clone, Debug, Default)]
pub(crate) struct Watcher {
    #[field(range = 0..=1)]
    there: u8,
}

#[derive(Resource)]
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Watcher;
    type Input = bool;
    type Event = ();
    fn step(&mut self, _: &mut Watcher, _: &bool, _: &mut StepContext<'_, ()>) {}
}

/// A client asks for another colour of the box with this number.
#[derive(Schema, Clone, Debug, PartialEq)]
pub(crate) struct Paint {
    pub(crate) number: u8,
    pub(crate) colour: u8,
}

/// The server tells everyone who sees a box that it was painted.
#[derive(Schema, Clone, Debug, PartialEq)]
pub(crate) struct Painted {
    pub(crate) colour: u8,
}

#[derive(Component)]
pub(crate) struct Number(u8);

pub(crate) fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(20)).snapshot_interval(2);
    Protocol::<Rules>::new(session, KindOptions::new(1), |_, _| 0.0)
        .interpolate::<MovingBox>(2, |a, b| {
            (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
        })
        .part::<Label>(3, Audience::All)
        .client_event::<Paint>(1)
        .server_event::<Painted>(2, EventClass::Guaranteed)
}

pub(crate) fn server(link: muse_bevy::muse::drivers::EndpointDriver, count: u8) -> App {
    let mut app = App::new();
    app.add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .add_systems(FixedUpdate, (paint, go_round).chain())
        .add_systems(Update, share_secret);
    for number in 0..count {
        let mut entity = app
            .world_mut()
            .spawn((MovingBox::default(), Number(number), Replicated));
        if number % 4 == 0 {
            let text = format!("box {number}");
            entity.insert(Label { text });
        }
        // Nobody's yet.
        if number == SECRET {
            entity.insert(VisibleTo(Vec::new()));
        }
    }
    app
}

fn go_round(tick: Res<NetTick>, mut boxes: Query<(&Number, &mut MovingBox)>) {
    for (number, mut moving) in &mut boxes {
        let turn = tick.0.0 as f32 * 0.02 + f32::from(number.0);
        moving.position = [turn.cos() * 50.0, turn.sin() * 50.0];
    }
}

fn paint(
    mut wishes: MessageReader<FromClient<Paint>>,
    mut boxes: Query<(Entity, &Number, &mut MovingBox)>,
    mut tell: MessageWriter<ToClients<Painted>>,
) {
    for FromClient { event, .. } in wishes.read() {
        for (entity, _, mut painted) in boxes.iter_mut().filter(|(_, n, _)| n.0 == event.number) {
            painted.colour = event.colour;
            let (entity, colour) = (Some(entity), event.colour);
            tell.write(ToClients {
                entity,
                event: Painted { colour },
            });
        }
    }
}

/// The first who comes may see the secret box.
fn share_secret(mut came: MessageReader<ClientJoined>, mut secrets: Query<&mut VisibleTo>) {
    for ClientJoined { client, .. } in came.read() {
        for mut secret in secrets.iter_mut().filter(|secret| secret.0.is_empty()) {
            secret.0.push(*client);
        }
    }
}

pub(crate) fn client(link: muse_bevy::muse::drivers::ClientDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ClientPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(link));
    app
}

#[cfg(not(feature = "window"))]
fn draw(boxes: Query<(&MovingBox, Option<&Label>)>, how: Res<Diagnostics>) {
    if let Some((first, label)) = boxes.iter().next() {
        let (count, late) = (boxes.iter().count(), how.behind.as_millis());
        let label = label.map_or("", |label| &label.text);
        println!(
            "{count} boxes, {label:?} at {:.1?}, {late} ms late",
            first.position
        );
    }
}

/// The number of the box that not everybody sees.
pub(crate) const SECRET: u8 = 5;

#[cfg(not(feature = "window"))]
fn main() -> std::io::Result<()> {
    let (link, connect) = run::listen(&protocol())?;
    let (mut server, mut client) = (server(link, 50), client(connect()?));
    client.add_systems(Update, draw);
    run::together(&mut [&mut server, &mut client], 3.0, || false);
    Ok(())
}

/// The client's boxes in a window, until it is closed.
#[cfg(feature = "window")]
fn main() -> std::io::Result<()> {
    let (link, connect) = run::listen(&protocol())?;
    let (mut server, mut client) = (server(link, 50), client(connect()?));
    let mut picture = window::Picture::open("Moving boxes")?;
    let mut boxes = client.world_mut().query::<(&MovingBox, Option<&Label>)>();
    while picture.show() {
        server.update();
        client.update();
        for (moving, label) in boxes.iter(client.world()) {
            let colour = if label.is_some() {
                0xF0_C040
            } else {
                0x40_A0F0
            };
            picture.square(moving.position, 2.0, colour);
        }
    }
    Ok(())
}
