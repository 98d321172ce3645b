//! Gunners on a line, over a virtual network in virtual time: bullets that fly by when they were fired, and grenades that the rules move. The server denies
//! some, and knows things that clients do not. Each client draws at 60 frames a second, and every frame is judged.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_netcode::prediction::{Candidate, Game, Scene, SpawnKey, StepContext};
use muse_netcode::{
    Client, ClientId, EntityId, Kind, KindOptions, Kinds, Remotes, Server, SessionConfig, Tick,
    Update,
};
use muse_netem::{Conditions, Network};
use muse_schema::{Schema, State};
use muse_wire::{Duration, Ecn, Instant};

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Gunner {
    #[field(range = -500.0..=500.0, step = 0.001)]
    pub(crate) x: f32,
    pub(crate) ready: u32,
}

/// As it was fired: where it is follows from that.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Bullet {
    #[field(range = -500.0..=500.0, step = 0.001, predict = hold)]
    from: f32,
    born: u32,
    owner: u32,
}

/// Moved by the rules, with a number that nothing changes.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Grenade {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = speed)]
    x: f32,
    #[field(range = -50.0..=50.0, step = 0.001)]
    speed: f32,
    born: u32,
    owner: u32,
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub(crate) walk: i8,
    pub(crate) fire: bool,
    pub(crate) throw: bool,
}

pub(crate) struct Rules {
    kinds: Ids,
}

#[derive(Clone, Copy)]
struct Ids {
    gunner: Kind<Gunner>,
    bullet: Kind<Bullet>,
    grenade: Kind<Grenade>,
}

impl Game for Rules {
    type Player = Gunner;
    type Input = Keys;
    type Event = ();
    const PREDICTED_MAX: usize = 16;

    fn step(&mut self, gunner: &mut Gunner, keys: &Keys, context: &mut StepContext<'_, ()>) {
        gunner.x += f32::from(keys.walk) * WALK / 60.0;
        let tick = context.tick.0;
        if gunner.ready > tick || !(keys.fire || keys.throw) {
            return;
        }
        gunner.ready = tick + PAUSE_TICKS;
        if keys.fire {
            let (from, born) = (gunner.x, tick);
            let bullet = Bullet {
                from,
                born,
                owner: 0,
            };
            // Two barrels.
            context.spawn(&bullet);
            context.spawn(&Bullet { owner: 1, ..bullet });
        }
        if keys.throw {
            let grenade = Grenade {
                x: gunner.x,
                speed: THROW,
                born: tick,
                owner: 0,
            };
            context.spawn(&grenade);
        }
    }

    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        scene.step_players(self);
        for (entity, mut grenade) in scene.all::<Grenade>() {
            grenade.x += grenade.speed / 60.0;
            grenade.speed *= 0.99;
            scene.set(entity, &grenade);
        }
    }

    fn predicts(&self, own: &Gunner, other: &Candidate<'_>) -> Option<f32> {
        let grenade = other.state::<Grenade>()?;
        Some((grenade.x - own.x).abs())
    }
}

fn kinds() -> (Kinds, Ids) {
    let mut kinds = Kinds::new();
    let gunner = kinds.register(KindOptions::new(1)).expect("new");
    let bullet = kinds.register(KindOptions::new(2)).expect("new");
    let grenade = KindOptions::new(3).predicted();
    let grenade = kinds.register(grenade).expect("new");
    let ids = Ids {
        gunner,
        bullet,
        grenade,
    };
    (kinds, ids)
}

/// A thing on the screen, named by what nothing changes about it: what, when and which barrel.
pub(crate) type Label = (u8, u32, u32);

/// A match.
pub(crate) struct Range {
    pub(crate) now: Instant,
    server: Server<Rules>,
    rules: Rules,
    pub(crate) seats: Vec<Seat>,
    network: Network,
    chance: fastrand::Rng,
    /// One of so many spawns is denied; none at 0.
    pub(crate) denies: u32,
    /// One of so many ticks jams a gun, which no client foresees; none at 0.
    pub(crate) jams: u32,
    /// Entities that fly on the server, with the ticks of their ends.
    flying: Vec<(EntityId, Tick)>,
    is_cut: bool,
    /// Spawns that the server did not deny.
    pub(crate) made: BTreeMap<Label, ClientId>,
    pub(crate) denied: BTreeMap<Label, ClientId>,
}

/// A client and what is on its screen.
pub(crate) struct Seat {
    id: ClientId,
    address: SocketAddr,
    pub(crate) game: Client<Rules>,
    rules: Rules,
    grenades: Remotes<Grenade>,
    bullets: BTreeMap<EntityId, Bullet>,
    next_frame: Instant,
    pub(crate) last: BTreeMap<Label, Drawn>,
    /// All that was ever drawn of one's own, with the smallest share at its end.
    pub(crate) seen: BTreeMap<Label, Drawn>,
    pub(crate) twice: u64,
    pub(crate) gaps: u64,
    pub(crate) step_most: f32,
    pub(crate) popped: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) x: f32,
    pub(crate) share: f32,
    /// Not the server's (yet).
    pub(crate) own: bool,
}

impl Range {
    pub(crate) fn new(seed: u64, conditions: &Conditions, clients: u32) -> Self {
        let mut network = Network::new(seed);
        let node = network.add_node(SERVER.into());
        let (all, ids) = kinds();
        let mut server = Server::<Rules>::new(config(), all, ids.gunner, Instant::ZERO);
        let mut seats = Vec::new();
        for number in 1..=clients {
            let id = ClientId(number);
            let address = SocketAddr::from(([10, 0, 0, 10 + number as u8], 1));
            let other = network.add_node(address);
            network.set_links(node, other, conditions.clone());
            let x = number as f32 * 50.0 - 100.0;
            server.join(id, &Gunner { x, ready: 0 }).expect("room");
            let (all, ids) = kinds();
            let apart = |a: &Gunner, b: &Gunner| (a.x - b.x).abs();
            let game = Client::<Rules>::new(config(), all, ids.gunner, apart, Instant::ZERO);
            let apart = |a: &Grenade, b: &Grenade| (a.x - b.x).abs();
            seats.push(Seat {
                id,
                address,
                grenades: Remotes::new(ids.grenade, game.interpolation(), apart),
                game,
                rules: Rules { kinds: ids },
                bullets: BTreeMap::new(),
                next_frame: Instant::from_micros(seed * 1_237 % 16_000),
                last: BTreeMap::new(),
                seen: BTreeMap::new(),
                twice: 0,
                gaps: 0,
                step_most: 0.0,
                popped: 0,
            });
        }
        Self {
            now: Instant::ZERO,
            server,
            rules: Rules { kinds: ids },
            seats,
            network,
            chance: fastrand::Rng::with_seed(seed),
            denies: 0,
            jams: 0,
            flying: Vec::new(),
            is_cut: false,
            made: BTreeMap::new(),
            denied: BTreeMap::new(),
        }
    }

    pub(crate) fn run(&mut self, time: Duration, keys: impl Fn(ClientId, Tick) -> Keys) {
        let end = self.now + time;
        while self.now < end {
            self.deliver();
            self.tick();
            for index in 0..self.seats.len() {
                if self.now >= self.seats[index].next_frame {
                    self.frame(index, &keys);
                }
            }
            let frames = self.seats.iter().map(|seat| seat.next_frame);
            let next = frames.fold(self.server.poll_timeout(), Instant::min);
            let next = self.network.next_delivery().map_or(next, |at| at.min(next));
            self.now = next.max(self.now + Duration::from_micros(1));
        }
    }

    /// From now on nothing arrives.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            if self.is_cut {
                continue;
            }
            let at_client = |seat: &&mut Seat| seat.address == delivery.to;
            // Duplicates and late packets are refused.
            if let Some(seat) = self.seats.iter_mut().find(at_client) {
                let _ = seat
                    .game
                    .handle_packet(self.now, &mut seat.rules, delivery.payload);
            } else if let Some(seat) = self.seats.iter().find(|seat| seat.address == delivery.from)
            {
                let _ = self
                    .server
                    .handle_packet(self.now, seat.id, delivery.payload);
            }
        }
    }

    fn tick(&mut self) {
        let mut buffer = [0; 1_200];
        while let Some(tick) = self.server.poll_tick(self.now, &mut self.rules, |_, ()| ()) {
            self.judge(tick);
            self.flying.retain(|(entity, until)| {
                let over = *until <= tick;
                if over {
                    self.server.world_mut().despawn(*entity).expect("it flies");
                }
                !over
            });
            if self.jams > 0 && self.chance.u32(..self.jams) == 0 {
                self.jam(tick);
            }
            self.server.commit();
            while let Some((client, len)) = self.server.poll_packet(self.now, &mut buffer) {
                let seat = self.seats.iter().find(|seat| seat.id == client);
                let to = seat.expect("known").address;
                let from = SERVER.into();
                self.network
                    .send(self.now, from, to, Ecn::NotCapable, &buffer[..len]);
            }
        }
    }

    /// Denies some of what was spawned.
    fn judge(&mut self, tick: Tick) {
        for spawned in self.server.spawned().to_vec() {
            let ids = self.rules.kinds;
            assert_eq!(
                self.server.world().owner(spawned.entity),
                Some(spawned.client)
            );
            let world = self.server.world();
            let label = match world.state(ids.bullet, spawned.entity) {
                Some(bullet) => label_of_bullet(&bullet),
                None => label_of_grenade(
                    &world
                        .state(ids.grenade, spawned.entity)
                        .expect("one of both"),
                ),
            };
            if self.denies > 0 && self.chance.u32(..self.denies) == 0 {
                let world = self.server.world_mut();
                world.despawn(spawned.entity).expect("it was just spawned");
                self.denied.insert(label, spawned.client);
            } else {
                self.flying.push((spawned.entity, tick + FLIGHT_TICKS));
                self.made.insert(label, spawned.client);
            }
        }
    }

    fn jam(&mut self, tick: Tick) {
        let index = self.chance.u32(..self.seats.len() as u32) as usize;
        let entity = self.server.player(self.seats[index].id).expect("it plays");
        let kind = self.rules.kinds.gunner;
        let mut gunner = self
            .server
            .world()
            .state(kind, entity)
            .expect("it is there");
        gunner.ready = tick.0 + 4 * PAUSE_TICKS;
        gunner.x += 0.2;
        let world = self.server.world_mut();
        world.set(kind, entity, &gunner).expect("it is there");
    }

    fn frame(&mut self, index: usize, keys: &impl Fn(ClientId, Tick) -> Keys) {
        let (seat, now) = (&mut self.seats[index], self.now);
        seat.next_frame += FRAME;
        let (id, mut buffer) = (seat.id, [0; 1_200]);
        while let Some(len) =
            seat.game
                .poll_packet(now, &mut seat.rules, |tick| keys(id, tick), &mut buffer)
        {
            let (from, to) = (seat.address, SERVER.into());
            self.network
                .send(now, from, to, Ecn::NotCapable, &buffer[..len]);
        }
        seat.take_updates();
        seat.draw();
    }
}

impl Seat {
    fn take_updates(&mut self) {
        let bullet = self.rules.kinds.bullet;
        while let Some(update) = self.game.poll_update() {
            self.grenades.handle_update(&self.game, &update);
            match update {
                Update::State { entity, kind, .. } if kind == bullet.id() => {
                    let (_, state) = self.game.receiver().state(bullet, entity).expect("told");
                    self.bullets.insert(entity, state);
                }
                Update::Despawned { entity, .. } => drop(self.bullets.remove(&entity)),
                _ => {}
            }
        }
    }

    /// Draws a frame and judges what is its own on it.
    fn draw(&mut self) {
        let Some(time) = self.game.clock().play_time() else {
            return;
        };
        let fly = |bullet: &Bullet| {
            let ticks = (time.ticks() - f64::from(bullet.born)).max(0.0) as f32;
            bullet.from + BULLET * ticks / 60.0
        };
        let mut drawn: Vec<(Label, Drawn)> = Vec::new();
        let mut push = |label, x, share, own| {
            let it = Drawn { x, share, own };
            drawn.push((label, it));
        };
        let bullet = self.rules.kinds.bullet;
        for shown in self.game.spawns(bullet) {
            push(
                label_of_bullet(&shown.state),
                fly(&shown.state),
                shown.share,
                true,
            );
        }
        for entity in self.bullets.keys() {
            let Some(state) = self.game.adopted(bullet, *entity) else {
                continue;
            };
            let owned = self.game.receiver().owner(*entity) == Some(self.id);
            let key = self.game.receiver().spawn_key(*entity);
            assert_eq!(key.is_some(), owned, "only the owner is told");
            if owned {
                push(label_of_bullet(&state), fly(&state), 1.0, false);
            }
        }
        let keys: Vec<SpawnKey> = self
            .game
            .spawns(self.rules.kinds.grenade)
            .map(|it| it.key)
            .collect();
        for shown in self.grenades.show_spawns(&self.game) {
            assert!(keys.contains(&shown.key));
            push(
                label_of_grenade(&shown.state),
                shown.state.x,
                shown.share,
                true,
            );
        }
        let receiver = self.game.receiver();
        for (entity, shown) in self.grenades.show(&self.game) {
            if receiver.owner(entity) == Some(self.id) {
                push(label_of_grenade(&shown.state), shown.state.x, 1.0, false);
            }
        }
        self.judge(&drawn);
    }

    fn judge(&mut self, drawn: &[(Label, Drawn)]) {
        let mut now: BTreeMap<Label, Drawn> = BTreeMap::new();
        for (label, it) in drawn {
            self.twice += u64::from(now.insert(*label, *it).is_some());
            if let Some(last) = self.last.get(label) {
                let way = if label.0 == 0 { BULLET } else { THROW };
                let way = way * FRAME.as_secs_f64() as f32;
                // Beyond what it flies in a frame, forwards.
                let step = (it.x - last.x - way / 2.0).abs() - way / 2.0;
                self.step_most = self.step_most.max(step);
            } else if self.seen.contains_key(label) {
                self.gaps += 1;
            }
            self.seen.insert(*label, *it);
        }
        for (label, last) in &self.last {
            // What ends and was never the server's has faded.
            if !now.contains_key(label) && last.own && last.share > 0.2 {
                self.popped += 1;
            }
        }
        self.last = now;
    }
}

fn label_of_bullet(bullet: &Bullet) -> Label {
    (0, bullet.born, bullet.owner)
}

fn label_of_grenade(grenade: &Grenade) -> Label {
    (1, grenade.born, grenade.owner)
}

fn config() -> SessionConfig {
    SessionConfig::new(Duration::from_micros(16_667))
}

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 1);
const FRAME: Duration = Duration::from_micros(16_667);
const WALK: f32 = 4.0;
const THROW: f32 = 12.0;
const BULLET: f32 = 30.0;
const PAUSE_TICKS: u32 = 9;
const FLIGHT_TICKS: u32 = 60;
