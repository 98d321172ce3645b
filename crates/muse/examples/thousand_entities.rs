//! A thousand moving bodies, of which each client is told what is near, and of that what fits: the rest comes a moment later.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Instant;
use muse::netcode::interest::{
    Extent, Interest, InterestConfig, Medium, Observer, ObserverId, Presence,
};
use muse::netcode::{self, EntityId, Kind, LocalClient, SessionConfig, Update};
use muse::prelude::*;

const USAGE: &str = "usage: thousand_entities serve
       thousand_entities play ADDRESS
       thousand_entities offline
example: cargo run -p muse-net --example thousand_entities -- offline";

/// Players and bodies alike.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Body {
    #[field(range = -300.0..=300.0, step = 0.001, predict = linear, velocity = velocity)]
    pub(crate) position: [f32; 3],
    #[field(range = -20.0..=20.0, step = 0.01)]
    velocity: [f32; 3],
}

/// A heading in eighths of a turn; nobody stands still.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Heading(#[field(range = 0..=7)] pub(crate) u8);

pub(crate) struct Rules;

impl Game for Rules {
    type Player = Body;
    type Input = Heading;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 20;

    fn session() -> SessionConfig {
        SessionConfig::new(Duration::from_millis(50)).bytes_per_snapshot(BYTES_PER_SNAPSHOT)
    }

    fn step(&mut self, body: &mut Body, heading: &Heading, _: &mut StepContext<'_, ()>) {
        let (sin, cos) = (f32::from(heading.0) * std::f32::consts::FRAC_PI_4).sin_cos();
        body.velocity = [sin * 5.0, 0.0, cos * 5.0];
        for (place, speed) in body.position.iter_mut().zip(body.velocity) {
            *place = (*place + speed * 0.05).clamp(-299.0, 299.0);
        }
    }
}

pub(crate) type Match = netcode::Server<Rules>;
pub(crate) type Me = netcode::Client<Rules>;

pub(crate) fn protocol() -> Protocol {
    Protocol::new("field/1")
}

pub(crate) fn kind() -> Kind<Body> {
    let kind = protocol().for_game::<Rules>().player_kind::<Rules>();
    kind.expect("the only kind")
}

/// The server's knowledge of the field: who is where, and who sees how far.
pub(crate) struct Field {
    pub(crate) bodies: Vec<EntityId>,
    interest: Interest,
    /// Each client's number among those who look.
    observers: BTreeMap<ClientId, ObserverId>,
}

pub(crate) fn new_game(now: Instant, count: u32) -> Result<(Match, Field), Box<dyn Error>> {
    let mut game = protocol().for_game::<Rules>().game_server(now)?;
    let field = populate(&mut game, count)?;
    Ok((game, field))
}

pub(crate) fn populate(game: &mut Match, count: u32) -> Result<Field, Box<dyn Error>> {
    let mut field = Field {
        bodies: Vec::new(),
        interest: Interest::new(InterestConfig::default()),
        observers: BTreeMap::new(),
    };
    for number in 0..count {
        let (angle, far) = (number as f32 * 2.399_963, (number as f32).sqrt() * 6.0);
        let position = [angle.sin() * far, 0.0, angle.cos() * far];
        let entity = game.world_mut().spawn(
            kind(),
            &Body {
                position,
                ..Body::default()
            },
        )?;
        field
            .interest
            .place(entity, Presence::new(position.into()))?;
        field.bodies.push(entity);
    }
    Ok(field)
}

impl Field {
    /// A client has joined with this player.
    pub(crate) fn join(
        &mut self,
        client: ClientId,
        entity: EntityId,
    ) -> Result<(), Box<dyn Error>> {
        self.interest.place(entity, Presence::new(Vec3::ZERO))?;
        let free = |number: &u32| !self.observers.values().any(|taken| taken.0 == *number);
        let observer = ObserverId((0..).find(free).unwrap_or(u32::MAX));
        let sight = Observer::new(Vec3::ZERO).focus(Medium::SIGHT, Extent::sphere(SIGHT));
        self.interest.observe(observer, sight)?;
        self.observers.insert(client, observer);
        Ok(())
    }

    fn leave(&mut self, client: ClientId, player: Option<EntityId>) {
        if let Some(observer) = self.observers.remove(&client) {
            self.interest.forget(observer);
        }
        if let Some(player) = player {
            self.interest.remove(player);
        }
    }

    /// Moves the bodies, and tells for each client what is near.
    pub(crate) fn tick(&mut self, game: &mut Match, tick: Tick) -> Result<(), Box<dyn Error>> {
        let kind = kind();
        for (number, entity) in (0..=255_u8).cycle().zip(&self.bodies) {
            let mut body = game.world().state(kind, *entity).unwrap_or_default();
            let turn = tick.0 as f32 * (0.1 + f32::from(number % 7) * 0.03) + f32::from(number);
            body.velocity = [turn.sin() * 5.0, (turn * 3.0).cos(), turn.cos() * 5.0];
            for (place, speed) in body.position.iter_mut().zip(body.velocity) {
                *place += speed * 0.05;
            }
            game.world_mut().set(kind, *entity, &body)?;
            let place = body.position.into();
            self.interest.move_to(*entity, place, Vec3::Z)?;
        }
        for (client, observer) in &self.observers {
            let Some(player) = game.player(*client) else {
                continue;
            };
            let body = game.world().state(kind, player).unwrap_or_default();
            self.interest
                .move_to(player, body.position.into(), Vec3::Z)?;
            self.interest
                .look(*observer, body.position.into(), Vec3::Z)?;
            let view = self.interest.update(*observer, |_, _, _| true)?;
            game.set_interest(
                *client,
                view.entries()
                    .iter()
                    .map(|entry| (entry.entity, entry.weight)),
            );
        }
        Ok(())
    }
}

/// The knowledge of a client, and its age.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) known: BTreeMap<EntityId, Tick>,
    /// The longest time that something in sight had no news, in ticks.
    pub(crate) longest_wait: u32,
    pub(crate) updates: u64,
}

impl Screen {
    /// A frame of a client that is run by hand.
    pub(crate) fn draw(&mut self, me: &mut Me) {
        while let Some(update) = me.poll_update() {
            self.note(&update);
        }
    }

    fn note(&mut self, update: &Update) {
        match update {
            Update::State { entity, tick, .. } => {
                self.updates += 1;
                let before = self.known.insert(*entity, *tick).unwrap_or(*tick);
                let wait = (*tick - before).max(0) as u32;
                self.longest_wait = self.longest_wait.max(wait);
            }
            Update::Despawned { entity, .. } => drop(self.known.remove(entity)),
            _ => {}
        }
    }
}

pub(crate) fn new_view(now: Instant) -> Me {
    let halves = protocol().for_game::<Rules>().game_client(now);
    halves.expect("the only kind").0
}

/// Goes around slowly.
pub(crate) fn keys(tick: Tick) -> Heading {
    Heading((tick.0 / 40 % 8) as u8)
}

pub(crate) fn serve(
    mut server: GameServer<Rules>,
    running: &AtomicBool,
) -> Result<(), Box<dyn Error>> {
    let mut field = populate(server.netcode(), 1_000)?;
    let failed = |error: Box<dyn Error>| muse::Error::Io(std::io::Error::other(error.to_string()));
    while running.load(Ordering::Relaxed) {
        server.tick(|game, event| match event {
            Joined(client) => {
                game.spawn(client, Body::default())?;
                let player = game.entity(client);
                player.map_or(Ok(()), |player| field.join(client, player).map_err(failed))
            }
            Left(client, _) => {
                field.leave(client, game.entity(client));
                game.despawn(client)
            }
            TickFinished(tick) => field.tick(game.netcode(), tick).map_err(failed),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

pub(crate) fn play(
    mut client: GameClient<Rules>,
    mut seen: impl FnMut(&Screen) -> bool,
) -> Result<(), Box<dyn Error>> {
    let mut screen = Screen::default();
    while seen(&screen) {
        client.tick_with(keys, |_, event| {
            if let ClientEvent::Updated(update) = event {
                screen.note(&update);
            }
            Ok(())
        })?;
        client.wait(Duration::from_millis(16))?;
    }
    Ok(())
}

/// So many seconds alone in the field, without a socket.
pub(crate) fn offline(seconds: u64) -> Result<(Screen, Field), Box<dyn Error>> {
    let (mut game, mut field) = new_game(Instant::ZERO, 1_000)?;
    let mut screen = Screen::default();
    let player = game.join(ClientId(0), &Body::default())?;
    field.join(ClientId(0), player)?;
    let mut host = LocalClient::new(&mut game, ClientId(0), new_view(Instant::ZERO));
    for now in (0..seconds * 1_000).step_by(5).map(Instant::from_millis) {
        while let Some(tick) = game.poll_tick(now, &mut Rules, |_, ()| ()) {
            field.tick(&mut game, tick)?;
        }
        game.commit();
        host.tick(now, &mut game, &mut Rules, keys)?;
        screen.draw(&mut host.game);
    }
    Ok((screen, field))
}

fn show(screen: &Screen) -> bool {
    let Screen {
        known,
        longest_wait,
        updates,
    } = screen;
    println!(
        "{} of a thousand in sight, {updates} updates, longest wait {longest_wait} ticks",
        known.len()
    );
    true
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let server = GameServer::listen_with("[::]:7000", protocol(), Rules)?;
            println!("join with {}", server.address());
            serve(server, &AtomicBool::new(true))
        }
        ["play", address] => play(GameClient::connect_with(address, protocol(), Rules)?, show),
        ["offline"] => {
            show(&offline(5)?.0);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// The range of a player's sight.
const SIGHT: f32 = 90.0;
/// Twenty times a second; all that is in sight would need about twice as much.
pub(crate) const BYTES_PER_SNAPSHOT: usize = 700;
