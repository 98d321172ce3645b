//! Carts on a line that push a ball, over a virtual network in virtual time; each client draws at 60 frames a second.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_netcode::interpolation::Source;
use muse_netcode::prediction::{Candidate, Game, Scene, StepContext};
use muse_netcode::{
    Client, ClientId, EntityId, Kind, KindOptions, Kinds, Remotes, Server, SessionConfig, Tick,
    TickTime,
};
use muse_netem::{Conditions, Network, NodeId};
use muse_schema::{Schema, State};
use muse_wire::{Duration, Ecn, Instant};

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Cart {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = speed)]
    pub(crate) x: f32,
    #[field(range = -20.0..=20.0, step = 0.001)]
    pub(crate) speed: f32,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Ball {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = speed)]
    pub(crate) x: f32,
    #[field(range = -20.0..=20.0, step = 0.001)]
    pub(crate) speed: f32,
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub(crate) push: i8,
}

impl Keys {
    pub(crate) fn towards(right: bool) -> Self {
        let push = if right { 1 } else { -1 };
        Self { push }
    }
}

/// The rules; `held` is what the server alone knows.
#[derive(Default)]
pub(crate) struct Rules {
    held: bool,
}

impl Game for Rules {
    type Player = Cart;
    type Input = Keys;
    type Event = ();
    const PREDICTED_MAX: usize = 8;
    const TICKS_PER_SECOND: u32 = 60;

    fn step(&mut self, cart: &mut Cart, keys: &Keys, _: &mut StepContext<'_, ()>) {
        let wished = f32::from(keys.push) * SPEED;
        cart.speed += (wished - cart.speed).clamp(-0.5, 0.5);
        cart.x += cart.speed / 60.0;
    }

    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        if !self.held {
            scene.step_players(self);
        }
        for (entity, mut ball) in scene.all::<Ball>() {
            ball.x += ball.speed / 60.0;
            ball.speed *= 0.98;
            if ball.speed.abs() < 0.05 {
                ball.speed = 0.0;
            }
            for cart in scene.players().filter_map(|player| scene.player(player)) {
                let apart = ball.x - cart.x;
                if apart.abs() < REACH {
                    ball.x = cart.x + REACH.copysign(apart);
                    ball.speed = cart.speed;
                }
            }
            assert!(scene.set(entity, &ball));
        }
    }

    fn predicts(&self, own: &Cart, other: &Candidate<'_>) -> Option<f32> {
        let cart = other.state::<Cart>().map(|cart| cart.x);
        let x = cart.or_else(|| other.state::<Ball>().map(|ball| ball.x))?;
        Some((x - own.x).abs()).filter(|distance| *distance < 15.0)
    }
}

fn kinds() -> (Kinds, Kind<Cart>, Kind<Ball>) {
    let mut kinds = Kinds::new();
    let cart = kinds.register(KindOptions::new(1).inputs()).expect("new");
    let ball = KindOptions::new(2).predicted();
    let ball = kinds.register(ball).expect("new");
    (kinds, cart, ball)
}

/// A match.
pub(crate) struct Pitch {
    now: Instant,
    server: Server<Rules>,
    rules: Rules,
    /// True if the server lets no cart move.
    pub(crate) held: bool,
    pub(crate) seats: Vec<Seat>,
    truth: BTreeMap<(Tick, EntityId), f32>,
    ball: EntityId,
    network: Network,
    node: NodeId,
}

/// A client and what is on its screen.
pub(crate) struct Seat {
    id: ClientId,
    address: SocketAddr,
    pub(crate) game: Client<Rules>,
    rules: Rules,
    carts: Remotes<Cart>,
    balls: Remotes<Ball>,
    next_frame: Instant,
    /// Distance that the ball went on the screen.
    pub(crate) moved: f32,
    last: BTreeMap<EntityId, (f32, bool)>,
    pub(crate) switches: u32,
    /// The largest difference between how far another cart went on the screen in a frame and how far its full speed would have taken it.
    pub(crate) step_beyond_motion: f32,
    /// Places of the ball on the screen, with their times.
    shown: Vec<(Option<TickTime>, f32)>,
    /// Corrections of the own player although every input came in time.
    pub(crate) wrong_without_cause: u64,
    missed_before: u64,
    /// The furthest place of the ball on the screen.
    pub(crate) ball_most: f32,
    ball: EntityId,
}

impl Seat {
    /// The place of the ball after a tick as it is predicted now.
    pub(crate) fn predicted_ball(&self, tick: Tick) -> Option<f32> {
        let (_, carts, balls) = kinds();
        let other_kind: Option<Cart> = self.game.predicted_other_at(carts, self.ball, tick);
        assert_eq!(other_kind, None, "it is no cart");
        let ball = self.game.predicted_other_at(balls, self.ball, tick)?;
        Some(ball.x)
    }
}

impl Pitch {
    pub(crate) fn new(seed: u64, conditions: &Conditions, clients: u32) -> Self {
        let mut network = Network::new(seed);
        let node = network.add_node(SERVER.into());
        let (all, cart, ball) = kinds();
        let mut server = Server::<Rules>::new(config(), all, cart, Instant::ZERO);
        let place = Ball { x: 3.0, speed: 0.0 };
        let ball_entity = server.world_mut().spawn(ball, &place).expect("room");
        let seats = (1..=clients).map(|number| {
            let id = ClientId(number);
            let address = SocketAddr::from(([10, 0, 0, 10 + number as u8], 1));
            let other = network.add_node(address);
            network.set_links(node, other, conditions.clone());
            let x = (number / 2) as f32 * if number.is_multiple_of(2) { 4.0 } else { -4.0 };
            server.join(id, &Cart { x, speed: 0.0 }).expect("room");
            let (all, cart, ball) = kinds();
            let game = Client::<Rules>::new(config(), all, cart, carts_apart, Instant::ZERO);
            Seat {
                id,
                address,
                carts: Remotes::new(cart, game.interpolation(), carts_apart),
                balls: Remotes::new(ball, game.interpolation(), balls_apart),
                game,
                rules: Rules::default(),
                next_frame: Instant::from_micros(seed * 1_237 % 16_000),
                moved: 0.0,
                last: BTreeMap::new(),
                switches: 0,
                step_beyond_motion: 0.0,
                shown: Vec::new(),
                wrong_without_cause: 0,
                missed_before: 0,
                ball_most: f32::MIN,
                ball: ball_entity,
            }
        });
        let seats = seats.collect();
        Self {
            now: Instant::ZERO,
            server,
            rules: Rules::default(),
            held: false,
            seats,
            truth: BTreeMap::new(),
            ball: ball_entity,
            network,
            node,
        }
    }

    /// Puts the first cart here, and each other one so far behind the one before it.
    pub(crate) fn place_carts(&mut self, first: f32, distance: f32) {
        let (_, cart, _) = kinds();
        let clients: Vec<_> = self.server.clients().collect();
        for (index, client) in clients.into_iter().enumerate() {
            let x = first - index as f32 * distance;
            let entity = self.server.player(client).expect("it plays");
            let world = self.server.world_mut();
            world
                .set(cart, entity, &Cart { x, speed: 0.0 })
                .expect("there");
        }
    }

    pub(crate) fn ball(&self) -> f32 {
        let (_, _, ball) = kinds();
        let ball = self.server.world().state(ball, self.ball);
        ball.expect("it is there").x
    }

    /// Distances of the ball on a screen from the truth at the time shown, the smallest first.
    pub(crate) fn errors(&self, seat: usize) -> Vec<f32> {
        let errors = self.seats[seat].shown.iter().filter_map(|(time, x)| {
            let time = (*time)?;
            // What is shown at a tick is on the way there from the one before.
            let from = self.truth.get(&(time.tick.back(1), self.ball))?;
            let to = self.truth.get(&(time.tick, self.ball))?;
            Some((from + (to - from) * time.share() - x).abs())
        });
        let mut errors: Vec<f32> = errors.collect();
        errors.sort_by(f32::total_cmp);
        errors
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

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            let at_client = |seat: &&mut Seat| seat.address == delivery.to;
            // Duplicates and late packets are refused.
            if let Some(seat) = self.seats.iter_mut().find(at_client) {
                let before = seat.game.prediction().corrected;
                let _ = seat
                    .game
                    .handle_packet(self.now, &mut seat.rules, delivery.payload);
                let corrected = seat.game.prediction().corrected > before;
                let inputs = self.server.input_counters(seat.id).expect("joined");
                let missed = inputs.repeated + inputs.missing;
                if self.now < Instant::ZERO + WARM_UP {
                    seat.missed_before = missed;
                } else if corrected && missed == seat.missed_before {
                    seat.wrong_without_cause += 1;
                }
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
        self.rules.held = self.held;
        let (_, cart, ball) = kinds();
        while let Some(tick) = self.server.poll_tick(self.now, &mut self.rules, |_, ()| ()) {
            let world = self.server.world();
            for entity in world.entities() {
                let x = world.state(cart, entity).map(|cart| cart.x);
                let x = x.or(world.state(ball, entity).map(|ball| ball.x));
                self.truth.insert((tick, entity), x.expect("one of both"));
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
        let _ = self.node;
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
        while let Some(update) = seat.game.poll_update() {
            seat.carts.handle_update(&seat.game, &update);
            seat.balls.handle_update(&seat.game, &update);
        }
        seat.draw(now > Instant::ZERO + WARM_UP);
    }
}

impl Seat {
    /// The ball as predicted, which is what is shown when all smoothing is over.
    pub(crate) fn ball_predicted(&self) -> f32 {
        self.last[&self.ball].0
    }

    fn draw(&mut self, is_warm: bool) {
        let carts = self.carts.show(&self.game);
        let carts = carts.map(|(entity, shown)| (entity, shown.state.x, shown.source));
        let carts: Vec<_> = carts.collect();
        let balls = self.balls.show(&self.game);
        let balls = balls.map(|(entity, shown)| (entity, shown.state.x, shown.source));
        for (entity, x, source) in carts.into_iter().chain(balls.collect::<Vec<_>>()) {
            let predicted = source == Source::Predicted;
            let last = self.last.insert(entity, (x, predicted));
            let Some((before, was)) = last.filter(|_| is_warm) else {
                continue;
            };
            if entity == self.ball {
                self.moved += (x - before).abs();
                self.ball_most = self.ball_most.max(x);
                self.shown.push((self.game.clock().play_time(), x));
            } else {
                let step = x - before - SPEED * FRAME.as_secs_f64() as f32;
                self.step_beyond_motion = self.step_beyond_motion.max(step.abs());
            }
            self.switches += u32::from(was != predicted);
        }
    }
}

fn config() -> SessionConfig {
    SessionConfig::new(Duration::from_micros(16_667))
}

fn carts_apart(a: &Cart, b: &Cart) -> f32 {
    (a.x - b.x).abs()
}

fn balls_apart(a: &Ball, b: &Ball) -> f32 {
    (a.x - b.x).abs()
}

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 1);
const FRAME: Duration = Duration::from_micros(16_667);
const WARM_UP: Duration = Duration::from_secs(2);
const SPEED: f32 = 6.0;
const REACH: f32 = 0.8;
