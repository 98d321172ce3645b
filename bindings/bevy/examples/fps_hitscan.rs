//! A shooter with lag compensation: the flash is predicted, the server judges a shot by what was on the shooter's screen, and the marker waits for its word.

#[path = "common/run.rs"]
mod run;
#[cfg(feature = "window")]
#[path = "common/window.rs"]
mod window;

use bevy_app::{App, FixedUpdate, Update};
use bevy_ecs::prelude::*;
use muse_bevy::muse::lagcomp::{Claim, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Volume};
use muse_bevy::muse::netcode::glam::Vec3;
use muse_bevy::muse::netcode::prediction::EffectChange;
use muse_bevy::prelude::*;

#[derive(Component, State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Soldier {
    #[field(range = -100.0..=100.0, step = 0.001, predict = linear, velocity = velocity)]
    position: [f32; 3],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 3],
    pub(crate) hits_taken: u16,
    #[field(range = 0..=10)]
    cooldown: u8,
}

impl Soldier {
    fn eye(&self) -> Vec3 {
        self.position.into()
    }
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    #[field(range = -1..=1)]
    z: i8,
    fire: Option<Fire>,
}

/// A pull of the trigger: where to, and what was on the screen.
#[derive(Schema, Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fire {
    yaw: f32,
    claim: Claim,
}

/// Somebody was hit, by whom.
#[derive(Schema, Clone, Debug, PartialEq)]
pub(crate) struct Hit {
    by: u32,
}

#[derive(Resource)]
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Soldier;
    type Input = Keys;
    type Event = Fire;

    fn step(&mut self, soldier: &mut Soldier, keys: &Keys, context: &mut StepContext<'_, Fire>) {
        for (axis, key) in [keys.x, 0, keys.z].into_iter().enumerate() {
            soldier.velocity[axis] += (f32::from(key) * 7.0 - soldier.velocity[axis]) * 0.2;
            soldier.position[axis] += soldier.velocity[axis] * 0.02;
        }
        soldier.cooldown = soldier.cooldown.saturating_sub(1);
        if let (Some(fire), 0) = (keys.fire, soldier.cooldown) {
            soldier.cooldown = 10;
            context.emit(fire); // the flash on the client, the shot on the server
        }
    }
}

pub(crate) fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(Duration::from_millis(20));
    Protocol::<Rules>::new(session, KindOptions::new(1), |a, b| {
        a.eye().distance(b.eye())
    })
    .server_event::<Hit>(1, EventClass::Guaranteed)
}

/// The places where everybody was lately.
#[derive(Resource)]
struct Past(Option<Hits<Soldier>>);

pub(crate) fn server(link: muse_bevy::muse::drivers::EndpointDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ServerPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link))
        .insert_resource(Past(None))
        .add_systems(Update, welcome)
        .add_systems(FixedUpdate, judge);
    app
}

fn welcome(mut came: MessageReader<ClientJoined>, mut commands: Commands) {
    for ClientJoined { client, .. } in came.read() {
        // Not all in one place.
        let position = [client.0 as f32 % 8.0 * 3.0, 0.0, 0.0];
        let soldier = Soldier {
            position,
            ..Soldier::default()
        };
        commands.spawn((soldier, Replicated, Owner(*client)));
    }
}

/// Remembers where everybody is, and judges the shots of the tick.
fn judge(
    tick: Res<NetTick>,
    net: Res<NetServer<Rules>>,
    mut past: ResMut<Past>,
    mut emitted: MessageReader<Emitted<Fire>>,
    mut soldiers: Query<(Entity, &NetId, &Owner, &mut Soldier)>,
    mut tell: MessageWriter<ToClients<Hit>>,
) {
    let past = past.0.get_or_insert_with(|| {
        let rig = Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })]).expect("a sound rig");
        Hits::new(RewindConfig::new(50), net.player_kind(), rig, |soldier| {
            Pose::at(soldier.eye())
        })
        .expect("a new past has room for a rig")
    });
    past.record(net.game.world(), tick.0)
        .expect("ticks only grow");
    for Emitted { client, event, .. } in emitted.read() {
        let shooter = soldiers
            .iter()
            .find(|(_, _, owner, _)| Some(owner.0) == *client);
        let Some((_, by, owner, soldier)) = shooter else {
            continue;
        };
        let ray = Shot::new(
            soldier.eye(),
            Vec3::new(event.yaw.sin(), 0.0, event.yaw.cos()),
        );
        let (by, owner) = (by.0.bits(), owner.0);
        // A repeated input moves a player on, but does not shoot.
        if !net
            .game
            .input(owner)
            .is_some_and(|taken| taken.is_received())
        {
            continue;
        }
        if let Some(hit) = past.hitscan(&net.game, owner, event.claim, &ray)
            && let Some((victim, _, _, mut hurt)) =
                soldiers.iter_mut().find(|(_, id, _, _)| id.0 == hit.entity)
        {
            hurt.hits_taken += 1;
            tell.write(ToClients {
                entity: Some(victim),
                event: Hit { by },
            });
        }
    }
}

/// The effects that a player saw.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    pub(crate) flashes: u32,
    pub(crate) markers: u32,
    pub(crate) wounds: u32,
}

pub(crate) fn client(link: muse_bevy::muse::drivers::ClientDriver) -> App {
    let mut app = App::new();
    app.add_plugins(ClientPlugin::new(protocol()))
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(link))
        .init_resource::<Score>()
        .init_resource::<Aim>()
        .add_systems(FixedUpdate, keys)
        .add_systems(Update, (count, aim));
    app
}

#[derive(Resource, Default)]
struct Aim(Option<Fire>);

/// At whoever is first, as this example has no mouse; with what is on the screen at this moment.
fn aim(
    screen: Res<OnScreen>,
    me: Query<&Soldier, With<Predicted>>,
    others: Query<&Soldier, Without<Predicted>>,
    mut aim: ResMut<Aim>,
) {
    let found = (me.iter().next(), others.iter().next(), screen.0);
    aim.0 = match found {
        (Some(me), Some(other), Some(claim)) => {
            let way = other.eye() - me.eye();
            let yaw = way.x.atan2(way.z);
            Some(Fire { yaw, claim })
        }
        _ => None,
    };
}

/// Walks in circles, and shoots twice a second.
fn keys(tick: Res<NetTick>, aim: Res<Aim>, mut input: ResMut<PlayerInput<Keys>>) {
    let [x, z] = [[1, 0], [0, 1], [-1, 0], [0, -1]][tick.0.0 as usize / 20 % 4];
    let fire = aim.0.filter(|_| tick.0.0.is_multiple_of(25));
    input.0 = Keys { x, z, fire };
}

fn count(
    mut emitted: MessageReader<Emitted<Fire>>,
    mut hits: MessageReader<FromServer<Hit>>,
    me: Query<(Entity, &NetId), With<Predicted>>,
    mut score: ResMut<Score>,
) {
    let flashes = emitted
        .read()
        .filter(|emitted| emitted.change == EffectChange::Emitted);
    score.flashes += flashes.count() as u32;
    let Some((own, id)) = me.iter().next() else {
        return;
    };
    for hit in hits.read() {
        score.markers += u32::from(hit.event.by == id.0.bits());
        score.wounds += u32::from(hit.entity == Some(own));
    }
}

#[cfg(not(feature = "window"))]
fn main() -> std::io::Result<()> {
    let (server_link, connect) = run::listen(&protocol())?;
    let mut server = server(server_link);
    let (mut ada, mut bob) = (client(connect()?), client(connect()?));
    run::together(&mut [&mut server, &mut ada, &mut bob], 6.0, || false);
    for (name, app) in [("Ada", &ada), ("Bob", &bob)] {
        println!("{name}: {:?}", app.world().resource::<Score>());
    }
    Ok(())
}

/// Ada's screen in a window, from above: herself, who else is there, and a flash when she hits. Until it is closed.
#[cfg(feature = "window")]
fn main() -> std::io::Result<()> {
    let (server_link, connect) = run::listen(&protocol())?;
    let mut server = server(server_link);
    let (mut ada, mut bob) = (client(connect()?), client(connect()?));
    let mut picture = window::Picture::open("Ada's screen")?;
    let mut soldiers = ada.world_mut().query::<(&Soldier, Has<Predicted>)>();
    let mut markers = 0;
    while picture.show() {
        for app in [&mut server, &mut ada, &mut bob] {
            app.update();
        }
        let score = *ada.world().resource::<Score>();
        let hit = score.markers > std::mem::replace(&mut markers, score.markers);
        for (soldier, own) in soldiers.iter(ada.world()) {
            let [x, _, z] = soldier.position;
            let colour = match (own, hit) {
                (true, _) => 0x60_E060,
                (false, true) => 0xFF_FFFF,
                (false, false) => 0xE0_6060,
            };
            picture.square([x, z], 2.0, colour);
        }
    }
    Ok(())
}
