//! A shooter with lag compensation: a shot carries what was on the screen, the server judges it by the past, the muzzle flashes at
//! once and the hit marker waits for the server's word.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Instant;
use muse::lagcomp::{Claim, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Volume};
use muse::netcode::prediction::EffectChange;
use muse::netcode::{self, EventClass, Kind, LocalClient, Remotes};
use muse::prelude::*;

const USAGE: &str = "usage: hitscan serve
       hitscan play ADDRESS
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

impl Game for Rules {
    type Player = Player;
    type Input = Keys;
    type Event = Fire;
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, player: &mut Player, keys: &Keys, context: &mut StepContext<'_, Fire>) {
        for (axis, key) in [keys.x, 0, keys.z].into_iter().enumerate() {
            player.velocity[axis] += (f32::from(key) * 7.0 - player.velocity[axis]) * 0.2;
            player.position[axis] += player.velocity[axis] * 0.02;
        }
        player.cooldown = player.cooldown.saturating_sub(1);
        if let (Some(fire), 0) = (keys.fire, player.cooldown) {
            player.cooldown = 10;
            context.emit(fire); // the flash on the client, the shot on the server
        }
    }
}

pub(crate) type Match = netcode::Server<Rules>;
pub(crate) type Me = netcode::Client<Rules>;

pub(crate) fn protocol() -> Protocol {
    Protocol::new("hitscan/1")
}

fn kind() -> Kind<Player> {
    let kind = protocol().for_game::<Rules>().player_kind::<Rules>();
    kind.expect("the only kind")
}

/// The server's judge of shots: the past, and the shots of the tick.
pub(crate) struct Judge {
    hits: Hits<Player>,
    pub(crate) shots: Vec<(ClientId, Fire)>,
}

pub(crate) fn new_game(now: Instant) -> Result<(Match, Judge), Box<dyn Error>> {
    let game = protocol().for_game::<Rules>().game_server(now)?;
    Ok((game, Judge::new()?))
}

impl Judge {
    fn new() -> Result<Self, Box<dyn Error>> {
        let rig = Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?;
        let past = RewindConfig::new(50);
        let hits = Hits::new(past, kind(), rig, |player| Pose::at(player.eye()))?;
        let shots = Vec::new();
        Ok(Self { hits, shots })
    }

    /// After the players have moved: remembers where they are, and judges the shots of the tick.
    pub(crate) fn tick(&mut self, game: &mut Match, tick: Tick) -> Result<(), Box<dyn Error>> {
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
    fn shoot(&mut self, game: &mut Match, client: ClientId, fire: &Fire) -> Option<()> {
        let kind = kind();
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

/// The screen of a player.
#[derive(Default)]
pub(crate) struct Screen {
    pub(crate) shown: Vec<Player>,
    aim: Option<Fire>,
    pub(crate) flashes: u16,
    pub(crate) markers: u16,
    pub(crate) wounds: u16,
}

pub(crate) fn new_view(now: Instant) -> (Me, Remotes<Player>) {
    let halves = protocol().for_game::<Rules>().game_client(now);
    halves.expect("the only kind")
}

impl Screen {
    /// A frame of a client that is run by hand.
    pub(crate) fn draw_all(&mut self, me: &mut Me, others: &mut Remotes<Player>) {
        while let Some(update) = me.poll_update() {
            others.handle_update(me, &update);
        }
        let shown = others.show(me).map(|(_, shown)| shown.state).collect();
        self.draw(me, shown);
    }

    fn draw(&mut self, me: &mut Me, others: Vec<Player>) {
        while let Some(effect) = me.poll_effect() {
            self.flashes += u16::from(effect.change == EffectChange::Emitted);
        }
        while let Some(event) = me.poll_event() {
            let by_me = me
                .player()
                .is_some_and(|own| *event.bytes == own.bits().to_le_bytes());
            self.markers += u16::from(by_me && event.id == DAMAGE);
            self.wounds += u16::from(event.id == DAMAGE && event.entity == me.player());
        }
        self.shown = others;
        self.aim = self.aim(me);
    }

    /// Shoots at the first player in the list, as this example has no mouse, with what is on the screen at this moment.
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

pub(crate) fn serve(
    mut server: GameServer<Rules>,
    running: &AtomicBool,
) -> Result<(), Box<dyn Error>> {
    let mut judge = Judge::new()?;
    while running.load(Ordering::Relaxed) {
        server.tick(|game, event| match event {
            Joined(client) => game.spawn(client, Player::default()),
            Left(client, _) => game.despawn(client),
            Emitted(client, fire) => {
                judge.shots.push((client, fire));
                Ok(())
            }
            TickFinished(tick) => {
                let judged = judge.tick(game.netcode(), tick);
                judged.map_err(|error| muse::Error::Io(std::io::Error::other(error.to_string())))
            }
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
        client.tick(|tick| screen.keys(tick))?;
        let others = client.other_players().collect();
        screen.draw(client.netcode(), others);
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

/// So many seconds of two players in one program, without a socket.
pub(crate) fn offline(seconds: u64) -> Result<[Screen; 2], Box<dyn Error>> {
    let (mut game, mut judge) = new_game(Instant::ZERO)?;
    let mut players = [ClientId(0), ClientId(1)].map(|id| {
        game.join(id, &Player::default()).expect("room for two");
        let (me, others) = new_view(Instant::ZERO);
        (
            LocalClient::new(&mut game, id, me),
            others,
            Screen::default(),
        )
    });
    for now in (0..seconds * 1_000).step_by(4).map(Instant::from_millis) {
        while let Some(tick) = {
            let emit = |client, fire| judge.shots.push((client, fire));
            game.poll_tick(now, &mut Rules, emit)
        } {
            judge.tick(&mut game, tick)?;
        }
        game.commit();
        for (host, others, screen) in &mut players {
            host.tick(now, &mut game, &mut Rules, |tick| screen.keys(tick))?;
            screen.draw_all(&mut host.game, others);
        }
    }
    Ok(players.map(|(_, _, screen)| screen))
}

fn show(screen: &Screen) -> bool {
    let (shots, hits, wounds) = (screen.flashes, screen.markers, screen.wounds);
    println!("{shots} shots, {hits} hits, {wounds} wounds");
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
            for screen in &offline(10)? {
                show(screen);
            }
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// Somebody was hit; the bytes say by whom.
const DAMAGE: u16 = 1;
