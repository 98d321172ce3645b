//! A shooter with lag compensation: a shot carries what was on the screen, the server judges it by the past, the muzzle flashes at
//! once and the hit marker waits for the server's word.

#[path = "common/place.rs"]
mod place;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Instant;
use muse::game::{GameClient, GameServer, Happening};
use muse::lagcomp::{Claim, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Volume};
use muse::netcode::glam::Vec3;
use muse::netcode::prediction::{EffectChange, Step, StepContext};
use muse::netcode::{self, ClientId, EventClass, Host, Kind, KindOptions, Kinds};
use muse::netcode::{Remotes, SessionConfig, Tick};
use muse::prelude::*;

const USAGE: &str = "usage: hitscan server [ADDRESS]
       hitscan client [ADDRESS [KEY]]
       hitscan offline
example: cargo run -p muse-net --example hitscan -- offline";

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Player {
    #[field(range = -100.0..=100.0, step = 0.001, predict = linear, velocity = velocity)]
    pub(crate) position: [f32; 3],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 3],
    pub(crate) hits_taken: u16,
    /// Ticks until the weapon is ready again.
    #[field(range = 0..=10)]
    cooldown: u8,
}

impl Player {
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

pub(crate) struct Rules;

impl Step for Rules {
    type State = Player;
    type Input = Keys;
    type Event = Fire;

    fn step(&mut self, player: &mut Player, keys: &Keys, context: &mut StepContext<'_, Fire>) {
        for (axis, key) in [keys.x, 0, keys.z].into_iter().enumerate() {
            player.velocity[axis] += (f32::from(key) * 7.0 - player.velocity[axis]) * 0.2;
            player.position[axis] += player.velocity[axis] * 0.02;
        }
        player.cooldown = player.cooldown.saturating_sub(1);
        if let (Some(fire), 0) = (keys.fire, player.cooldown) {
            player.cooldown = 10;
            context.raise(fire); // the flash on the client, the shot on the server
        }
    }
}

pub(crate) type Game = netcode::Server<Rules>;
pub(crate) type Me = netcode::Client<Rules>;

fn session() -> (SessionConfig, Kinds, Kind<Player>) {
    let mut kinds = Kinds::new();
    let player = kinds.register(KindOptions::new(1)).expect("the first kind");
    (SessionConfig::new(Duration::from_millis(20)), kinds, player)
}

/// What the server has besides the session: the past, and the shots of the tick.
pub(crate) struct Judge {
    hits: Hits<Player>,
    pub(crate) shots: Vec<(ClientId, Fire)>,
}

pub(crate) fn new_game(now: Instant) -> Result<(Game, Judge), Box<dyn Error>> {
    let (config, kinds, player) = session();
    let rig = Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?;
    let past = RewindConfig::new(50);
    let hits = Hits::new(past, player, rig, |player| Pose::at(player.eye()))?;
    let shots = Vec::new();
    Ok((Game::new(config, kinds, player, now), Judge { hits, shots }))
}

impl Judge {
    /// After the players have moved: remembers where they are, and judges the shots of the tick.
    pub(crate) fn tick(&mut self, game: &mut Game, tick: Tick) -> Result<(), Box<dyn Error>> {
        self.hits.record(game.world(), tick)?;
        for (client, fire) in std::mem::take(&mut self.shots) {
            // A repeated input moves a player on, but does not shoot.
            if game.input(client).is_some_and(|taken| taken.is_received()) {
                self.shoot(game, client, &fire);
            }
        }
        Ok(())
    }

    /// Tells of the hit, if it is one, everyone who sees the victim.
    fn shoot(&mut self, game: &mut Game, client: ClientId, fire: &Fire) -> Option<()> {
        let (_, _, kind) = session();
        let own = game.player(client)?;
        let eye = game.world().state(kind, own)?.eye();
        let ray = Shot::new(eye, Vec3::new(fire.yaw.sin(), 0.0, fire.yaw.cos()));
        let victim = self.hits.hitscan(game, client, fire.claim, &ray)?.entity;
        let mut hurt = game.world().state(kind, victim)?;
        hurt.hits_taken += 1;
        let (world, by) = (game.world_mut(), own.bits().to_le_bytes());
        world.set(kind, victim, &hurt).ok()?;
        let class = EventClass::Guaranteed;
        world.emit(Some(victim), class, DAMAGE, &by).ok()
    }
}

/// What a player sees.
pub(crate) struct Screen {
    others: Remotes<Player>,
    pub(crate) shown: Vec<Player>,
    aim: Option<Fire>,
    pub(crate) flashes: u16,
    pub(crate) markers: u16,
    pub(crate) wounds: u16,
}

pub(crate) fn new_view(now: Instant) -> (Me, Screen) {
    let (config, kinds, player) = session();
    let apart = |a: &Player, b: &Player| a.eye().distance(b.eye());
    let me = Me::new(config, kinds, player, apart, now);
    let screen = Screen {
        others: Remotes::new(player, me.interpolation(), apart),
        shown: Vec::new(),
        aim: None,
        flashes: 0,
        markers: 0,
        wounds: 0,
    };
    (me, screen)
}

impl Screen {
    pub(crate) fn draw(&mut self, me: &mut Me) {
        while let Some(update) = me.poll_update() {
            self.others.handle_update(me, &update);
        }
        while let Some(effect) = me.poll_effect() {
            self.flashes += u16::from(effect.change == EffectChange::Raised);
        }
        while let Some(event) = me.poll_event() {
            let by_me = me
                .player()
                .is_some_and(|own| *event.bytes == own.bits().to_le_bytes());
            self.markers += u16::from(by_me && event.id == DAMAGE);
            self.wounds += u16::from(event.id == DAMAGE && event.entity == me.player());
        }
        self.shown = self.others.show(me).map(|(_, shown)| shown.state).collect();
        self.aim = self.aim(me);
    }

    /// At whoever is first, as this example has no mouse; with what is on the screen at this moment.
    fn aim(&self, me: &Me) -> Option<Fire> {
        let way = self.shown.first()?.eye() - me.predicted()?.eye();
        let (yaw, claim) = (way.x.atan2(way.z), me.claim()?);
        Some(Fire { yaw, claim })
    }

    /// Runs in circles, and shoots twice a second.
    pub(crate) fn keys(&self, tick: Tick) -> Keys {
        let [x, z] = [[1, 0], [0, 1], [-1, 0], [0, -1]][tick.0 as usize / 20 % 4];
        let fire = self.aim.filter(|_| tick.0.is_multiple_of(25));
        Keys { x, z, fire }
    }
}

pub(crate) fn config() -> Config {
    Config::new(0x7368_6f6f).channel(ChannelConfig::new(Delivery::Unreliable))
}

pub(crate) fn serve(link: Server, running: &AtomicBool) -> Result<(), Box<dyn Error>> {
    let (game, mut judge) = new_game(link.now())?;
    let mut server = GameServer::new(link, 0, game);
    while running.load(Ordering::Relaxed) {
        server.tick(&mut Rules, |server, happening| match happening {
            Happening::Came { client, .. } => {
                place::complain(server.game.join(client, &Player::default()));
            }
            Happening::Went {
                player: Some(player),
                ..
            } => place::complain(server.game.world_mut().despawn(player)),
            Happening::Raised(client, fire) => judge.shots.push((client, fire)),
            Happening::Ticked(tick) => place::complain(judge.tick(&mut server.game, tick)),
            _ => {}
        })?;
    }
    Ok(())
}

pub(crate) fn play(
    link: Client,
    mut seen: impl FnMut(&Me, &Screen) -> bool,
) -> Result<(), Box<dyn Error>> {
    let (me, mut screen) = new_view(link.now());
    let mut client = GameClient::new(link, 0, me);
    let mut end = None;
    while seen(&client.game, &screen) {
        let keys = |tick| screen.keys(tick);
        client.tick(&mut Rules, keys, |_, event| end = place::ended(&event))?;
        if let Some(end) = end.take() {
            return Ok(end?);
        }
        screen.draw(&mut client.game);
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

/// So many seconds of two players in one program, without a socket.
pub(crate) fn offline(seconds: u64) -> Result<[Screen; 2], Box<dyn Error>> {
    let (mut game, mut judge) = new_game(Instant::ZERO)?;
    let mut players = [ClientId(0), ClientId(1)].map(|id| {
        place::complain(game.join(id, &Player::default()));
        let (me, screen) = new_view(Instant::ZERO);
        (Host::new(&mut game, id, me), screen)
    });
    for now in (0..seconds * 1_000).step_by(4).map(Instant::from_millis) {
        while let Some(tick) = {
            let raise = |client, fire| judge.shots.push((client, fire));
            game.poll_tick(now, &mut Rules, raise)
        } {
            judge.tick(&mut game, tick)?;
        }
        game.commit();
        for (host, screen) in &mut players {
            host.tick(now, &mut game, &mut Rules, |tick| screen.keys(tick))?;
            screen.draw(&mut host.game);
        }
    }
    Ok(players.map(|(_, screen)| screen))
}

fn show(screen: &Screen) -> bool {
    let (shots, hits, wounds) = (screen.flashes, screen.markers, screen.wounds);
    println!("{shots} shots, {hits} hits, {wounds} wounds");
    true
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match words.next().as_deref() {
        Some("server") => serve(place::open(words.next(), config())?, &AtomicBool::new(true))?,
        Some("client") => play(place::connect(&mut words, config())?, |_, screen| {
            show(screen)
        })?,
        Some("offline") => {
            for screen in &offline(10)? {
                show(screen);
            }
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}

/// Somebody was hit; the bytes say by whom.
const DAMAGE: u16 = 1;
