//! The rules of a robot, and of the ball beside it: one step for server and clients alike.
//!
//! Movement and weapons are predicted, so the step depends on the robot, its command, the level and its [`Surroundings`] only. What moves
//! begins to move a while after it was switched, so that a client has heard of it by the time it simulates that tick.

use std::sync::Arc;

use glam::{Vec2, Vec3};
use muse::netcode::Tick;
use muse::netcode::prediction::{Candidate, Game, Scene, StepContext, run_step};

use crate::Command;
use crate::ball::{BallRules, Pusher};
use crate::cheats::Offence;
use crate::collision::Body;
use crate::command::Place;
use crate::level::{Level, REACH};
use crate::movement::{Ground, Movement, Validator};
use crate::mover::{self, Around, Walker, Wish};
use crate::states::{AIM_TICKS, Ball, Bolt, Device, Robot};
use crate::weapons::{self, Sort, WEAPONS};

/// An event of a step that is to be seen or heard once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// A shot, with what it takes to know where it goes: see [`pellets`](crate::weapons::pellets).
    Fired {
        /// The weapon.
        weapon: u8,
        /// The place where it was fired.
        origin: [f32; 3],
        /// The direction, recoil included.
        yaw: f32,
        /// Up is positive.
        pitch: f32,
        /// The degree to which it aims down the sights.
        aiming: f32,
    },
    /// The trigger was pulled on an empty magazine.
    Empty,
    /// Reloading began.
    Reloading,
    /// Another weapon is in hand.
    Drawn {
        /// The weapon.
        weapon: u8,
    },
    /// It jumped.
    Jumped,
    /// It came down.
    Landed {
        /// The speed, in metres a second.
        speed: f32,
    },
    /// It used a device.
    Used {
        /// The device.
        device: usize,
    },
}

/// The surroundings of a robot: the state of every device of the level.
#[derive(Clone, Debug)]
pub struct Surroundings {
    devices: Vec<Device>,
    /// The bodies of a tick, and how far each has moved in it.
    bodies: Vec<Body>,
    moved: Vec<Vec3>,
    of: Option<Tick>,
}

impl Surroundings {
    /// Everything at rest.
    pub fn new(level: &Level) -> Self {
        let devices = (0..level.devices.len()).map(Device::new);
        Self {
            devices: devices.collect(),
            bodies: Vec::new(),
            moved: Vec::new(),
            of: None,
        }
    }

    /// A device's state has changed. What is no device of the level is passed over.
    pub fn set(&mut self, device: Device) {
        if let Some(known) = self.devices.get_mut(usize::from(device.index))
            && *known != device
        {
            *known = device;
            self.of = None;
        }
    }

    /// The devices' states.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the bodies that move, as they are at a tick.
    pub fn bodies(&mut self, level: &Level, tick: Tick) -> &[Body] {
        self.update(level, tick);
        &self.bodies
    }

    fn update(&mut self, level: &Level, tick: Tick) {
        if self.of == Some(tick) {
            return;
        }
        self.of = Some(tick);
        self.bodies.clear();
        self.moved.clear();
        for (index, (spec, state)) in level.devices.iter().zip(&self.devices).enumerate() {
            if let Some(body) = spec.body(index, state, tick) {
                let before = spec.offset(state, tick.back(1));
                self.moved.push(spec.offset(state, tick) - before);
                self.bodies.push(body);
            }
        }
    }
}

/// The rules of the game for one robot.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::{Command, Level, Robot, Rules};
/// use muse::netcode::Tick;
/// use muse::netcode::prediction::{StepContext, run_step};
/// let level = Arc::new(Level::escape());
/// let mut rules = Rules::new(level.clone());
/// let mut robot = Robot::new(0, level.spawns[0].at, level.spawns[0].yaw);
/// let command = Command { jump: true, ..Command::default() };
/// let mut effects = Vec::new();
/// for tick in 0..25 {
///     let emit = &mut |effect| effects.push(effect);
///     run_step(&mut rules, &mut robot, &command, &mut StepContext::new(Tick(tick), true, emit));
/// }
/// assert!(effects.iter().filter(|effect| **effect == muse_biobot::Effect::Jumped).count() <= 1);
/// ```
#[derive(Debug)]
pub struct Rules {
    level: Arc<Level>,
    /// The things that move.
    pub surroundings: Surroundings,
    /// The bodies that are in this robot's way.
    bodies: Vec<Body>,
    moved: Vec<Vec3>,
    movement: Movement,
    /// The rules of the ball, if there is one.
    ball: Option<Box<BallRules>>,
    /// The judge of where players say that they are: at the server.
    validator: Option<Box<Validator>>,
}

impl Rules {
    /// For a level in which everything is at rest.
    pub fn new(level: Arc<Level>) -> Self {
        Self {
            surroundings: Surroundings::new(&level),
            ball: level
                .kick_off
                .map(|_| Box::new(BallRules::new(Arc::clone(&level)))),
            level,
            bodies: Vec::new(),
            moved: Vec::new(),
            movement: Movement::Server,
            validator: None,
        }
    }

    /// With robots that are moved by whom this says; the server's by default.
    #[must_use]
    pub fn movement(mut self, movement: Movement) -> Self {
        self.movement = movement;
        self
    }

    /// Says who moves the robots from now on. Gives back who did.
    pub(crate) fn set_movement(&mut self, movement: Movement) -> Movement {
        std::mem::replace(&mut self.movement, movement)
    }

    /// The same for a server, which checks what players say.
    #[must_use]
    pub(crate) fn judging(mut self, movement: Movement) -> Self {
        let judges = movement == Movement::Validated;
        self.validator = judges.then(|| Box::new(Validator::new()));
        self.movement(movement)
    }

    /// Returns the claims of players that cannot be, since this was called last.
    pub(crate) fn take_refused(&mut self) -> Vec<(u8, Offence)> {
        let validator = self.validator.as_mut();
        validator
            .map(|validator| validator.take_refused())
            .unwrap_or_default()
    }

    /// The level.
    pub fn level(&self) -> &Arc<Level> {
        &self.level
    }

    /// Returns the ball as it is at the first kick-off; `None` where there is none.
    pub fn kick_off(&self) -> Option<Ball> {
        self.ball.as_ref().map(|rules| rules.kick_off())
    }

    /// The device that a robot would use: the nearest that it may use and that nothing hides.
    pub fn usable(&mut self, robot: &Robot, tick: Tick) -> Option<usize> {
        let chest = robot.middle();
        let mut best: Option<(f32, usize)> = None;
        for (index, spec) in self.level.devices.iter().enumerate() {
            if !spec.is_used() || !spec.allows(robot.slot) {
                continue;
            }
            let far = spec.place().distance(chest);
            if far <= REACH && best.is_none_or(|(least, _)| far < least) {
                best = Some((far, index));
            }
        }
        let (_, index) = best?;
        let place = self.level.devices[index].place();
        let level = Arc::clone(&self.level);
        let bodies = self.surroundings.bodies(&level, tick);
        let way = place - chest;
        // Levers stand out of walls; what is right before the wall counts as seen.
        let near = place - way * (0.3 / way.length().max(0.3));
        level.collision().sees(chest, near, bodies).then_some(index)
    }

    fn walk(
        &mut self,
        robot: &mut Robot,
        command: &Command,
        context: &mut StepContext<'_, Effect>,
    ) {
        let level = Arc::clone(&self.level);
        self.gather(robot.slot, context.tick);
        let around = Around {
            collision: level.collision(),
            bodies: &self.bodies,
            moved: &self.moved,
        };
        let mut walker = Walker {
            feet: robot.feet(),
            velocity: robot.velocity.into(),
            standing: robot.standing,
        };
        let slower = if robot.aim > 0 { AIM_SPEED } else { 1.0 };
        let wish = Wish {
            way: wished(command) * slower,
            jump: command.jump && !robot.jump_held,
        };
        let happened = mover::step(&mut walker, wish, &around);
        robot.position = walker.feet.into();
        robot.velocity = walker.velocity.into();
        robot.standing = walker.standing;
        robot.jump_held = command.jump;
        if happened.jumped {
            context.emit(Effect::Jumped);
        }
        if let Some(speed) = happened.landed.filter(|speed| *speed > LANDING_HEARD) {
            context.emit(Effect::Landed { speed });
        }
    }

    /// Goes where the player says that it is, if that is believed; else it stays. Where a command says nothing of it, which is one whose first
    /// packet was lost, it goes where the rules lead.
    fn go(&mut self, robot: &mut Robot, command: &Command, context: &mut StepContext<'_, Effect>) {
        if command.place.is_none() {
            self.follow(robot, context.tick);
            return self.walk(robot, command, context);
        }
        robot.jump_held = command.jump;
        let place = command.place.filter(|place| place.lives == robot.lives);
        let Some(place) = place else {
            robot.velocity = [0.0; 3];
            return;
        };
        if !self.admits(robot, &place, context.tick) {
            robot.velocity = [0.0; 3];
            robot.lives = robot.lives.wrapping_add(1);
            return;
        }
        let (stood, falling) = (robot.standing > 0, -robot.velocity[1]);
        robot.position = place.position;
        robot.velocity = place.velocity;
        robot.standing = place.standing;
        if stood && place.standing == 0 && place.velocity[1] > JUMPING {
            context.emit(Effect::Jumped);
        }
        if !stood && place.standing > 0 && falling > LANDING_HEARD {
            context.emit(Effect::Landed { speed: falling });
        }
    }

    fn admits(&mut self, robot: &Robot, place: &Place, tick: Tick) -> bool {
        self.judge(robot, tick, |validator, ground| {
            validator.admits(robot, place, ground)
        })
        .unwrap_or(true)
    }

    /// The validator knows of a step that the rules make.
    fn follow(&mut self, robot: &Robot, tick: Tick) {
        self.judge(robot, tick, |validator, ground| {
            validator.follow(robot, ground);
        });
    }

    /// Asks the validator; there is none where players believe themselves.
    fn judge<T>(
        &mut self,
        robot: &Robot,
        tick: Tick,
        ask: impl FnOnce(&mut Validator, &Ground<'_>) -> T,
    ) -> Option<T> {
        self.validator.as_ref()?;
        self.gather(robot.slot, tick);
        let ground = Ground {
            tick,
            collision: self.level.collision(),
            bodies: &self.bodies,
            moved: &self.moved,
        };
        let validator = self.validator.as_mut()?;
        Some(ask(validator, &ground))
    }

    /// Collects what is in the way of a robot at a tick.
    fn gather(&mut self, slot: u8, tick: Tick) {
        let level = Arc::clone(&self.level);
        self.surroundings.update(&level, tick);
        self.bodies.clear();
        self.moved.clear();
        let all = self
            .surroundings
            .bodies
            .iter()
            .zip(&self.surroundings.moved);
        // A gate that is for one robot only lets that one through.
        let passes = |body: &Body| !body.carries && body.only == Some(slot);
        for (body, moved) in all.filter(|(body, _)| !passes(body)) {
            self.bodies.push(*body);
            self.moved.push(*moved);
        }
    }
}

impl Game for Rules {
    type Player = Robot;
    type Input = Command;
    type Event = Effect;

    /// Everybody else of two teams of four, and the ball.
    const PREDICTED_MAX: usize = 8;

    fn step(
        &mut self,
        robot: &mut Robot,
        command: &Command,
        context: &mut StepContext<'_, Effect>,
    ) {
        if !robot.alive() {
            robot.velocity = [0.0; 3];
            robot.jump_held = command.jump;
            robot.use_held = command.use_;
            return;
        }
        robot.yaw = command.yaw;
        robot.pitch = command.pitch;
        match self.movement {
            Movement::Server => self.walk(robot, command, context),
            Movement::Validated => self.go(robot, command, context),
        }
        aim(robot, command);
        handle_weapon(robot, command, context);
        if command.use_
            && !robot.use_held
            && let Some(device) = self.usable(robot, context.tick)
        {
            context.emit(Effect::Used { device });
        }
        robot.use_held = command.use_;
    }

    /// Everybody makes their step, then the ball.
    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        let ball = scene.all::<Ball>().next();
        let Some((entity, mut ball)) = ball.filter(|_| self.ball.is_some()) else {
            return scene.step_players(self);
        };
        let mut pushers = Vec::new();
        let mut players = Vec::new();
        for player in scene.players() {
            let (Some(before), Some(command)) = (scene.player(player), scene.input(player)) else {
                continue;
            };
            let (command, mut after) = (*command, before.clone());
            let (mut effects, mut spawns) = (Vec::new(), Vec::new());
            let emit = &mut |effect| effects.push(effect);
            let spawn = &mut |new| spawns.push(new);
            let context = StepContext::new(scene.tick(), scene.first_run(), emit);
            let mut context = context.with_spawns(spawn);
            run_step(self, &mut after, &command, &mut context);
            for effect in &effects {
                scene.emit(player, *effect);
            }
            for new in spawns {
                scene.add_spawn(player, new);
            }
            players.push((after.slot, player));
            let mut pusher = Pusher::new(before, after);
            pusher.effects = effects;
            pushers.push(pusher);
        }
        if let Some(rules) = &mut self.ball {
            rules.step(scene.tick(), &mut ball, &mut pushers);
        }
        for pusher in &pushers {
            let mut found = players.iter();
            if let Some((_, player)) = found.find(|(slot, _)| *slot == pusher.after.slot) {
                scene.set(*player, &pusher.after);
            }
        }
        scene.set(entity, &ball);
    }

    /// The ball and whoever is near: they are where they are by now, and not where they were.
    fn predicts(&self, own: &Robot, other: &Candidate<'_>) -> Option<f32> {
        self.ball.as_ref()?;
        let ball = other.state::<Ball>().map(|ball| ball.middle());
        let place = match ball {
            Some(place) => place,
            None => other.state::<Robot>()?.middle(),
        };
        let far = place.distance(own.middle());
        // The ball before everybody.
        let rank = if ball.is_some() { 0.0 } else { far };
        (far < PREDICTED_RADIUS).then_some(rank)
    }

    /// Over steps, and through nothing else.
    fn stop(&self, from: &Robot, mut to: Robot) -> Robot {
        let reached = self.level.collision().reach(from.feet(), to.feet());
        to.position = reached.into();
        to
    }

    /// Leaves out what is for the server alone.
    fn shared(command: &Command) -> Command {
        Command {
            claim: None,
            place: None,
            ..*command
        }
    }

    /// Leaves out where a player is: the next command says it again; only a shot must be judged by where it was fired.
    fn again(command: &Command) -> Command {
        Command {
            place: command.place.filter(|_| command.fire),
            ..*command
        }
    }
}

/// Returns the direction of the command, in the world.
fn wished(command: &Command) -> Vec2 {
    let ahead = weapons::direction(command.yaw, 0.0);
    let right = Vec2::new(-ahead.z, ahead.x);
    let forward = Vec2::new(ahead.x, ahead.z);
    let way = forward * f32::from(command.forward) + right * f32::from(command.right);
    if way.length_squared() > 1.0 {
        way.normalize()
    } else {
        way
    }
}

fn aim(robot: &mut Robot, command: &Command) {
    let wants = command.aim && robot.reload == 0;
    robot.aim = match wants {
        true => (robot.aim + 1).min(AIM_TICKS),
        false => robot.aim.saturating_sub(1),
    };
}

fn handle_weapon(robot: &mut Robot, command: &Command, context: &mut StepContext<'_, Effect>) {
    let tick = context.tick;
    if command.weapon != 0 && command.weapon != robot.weapon && robot.owns(command.weapon) {
        robot.weapon = command.weapon;
        robot.reload = 0;
        robot.ready = robot.ready.max(tick.0 + DRAW_TICKS);
        context.emit(Effect::Drawn {
            weapon: robot.weapon,
        });
    }
    let weapon = weapons::weapon(robot.weapon);
    let index = usize::from(robot.weapon.clamp(1, WEAPONS as u8) - 1);
    if robot.reload != 0 && robot.reload <= tick.0 {
        robot.reload = 0;
        robot.magazines[index] = weapon.magazine;
    }
    let full = robot.magazines[index] == weapon.magazine;
    let idle = robot.reload == 0 && robot.ready <= tick.0;
    let empty = robot.magazines[index] == 0;
    if idle && !full && (command.reload || (empty && command.fire)) {
        robot.reload = tick.0 + u32::from(weapon.reload_ticks);
        context.emit(if empty && !command.reload {
            Effect::Empty
        } else {
            Effect::Reloading
        });
        return;
    }
    if command.fire && idle && !empty {
        fire(robot, index, context);
    }
}

fn fire(robot: &mut Robot, index: usize, context: &mut StepContext<'_, Effect>) {
    let tick = context.tick;
    let weapon = weapons::weapon(robot.weapon);
    let recoil = robot.recoil(tick);
    let (origin, pitch) = (robot.eye(), (robot.pitch + recoil).clamp(-1.55, 1.55));
    context.emit(Effect::Fired {
        weapon: robot.weapon,
        origin: origin.into(),
        yaw: robot.yaw,
        pitch,
        aiming: robot.aiming(),
    });
    if weapon.sort == Sort::Projectile {
        let (look, whose) = ((robot.yaw, pitch), (tick, robot.slot));
        for way in weapons::pellets(robot.weapon, look, robot.aiming(), whose) {
            context.spawn(&Bolt {
                owner: u32::from(robot.slot),
                weapon: robot.weapon,
                position: (origin + way * MUZZLE).into(),
                velocity: (way * weapon.speed).into(),
                born: tick.0,
            });
        }
    }
    robot.magazines[index] -= 1;
    robot.shots = robot.shots.wrapping_add(1);
    robot.ready = tick.0 + u32::from(weapon.interval_ticks);
    let steadier = 1.0 - robot.aiming() * 0.5;
    let kick = recoil * 1_000.0 + f32::from(weapon.kick) * steadier;
    robot.kick = kick.min(250.0) as u8;
    robot.kicked = tick.0;
}

/// Metres within which a player predicts the ball, and others beside it.
const PREDICTED_RADIUS: f32 = 20.0;
/// The distance before the eye at which a bolt appears.
const MUZZLE: f32 = 0.5;
/// Ticks that drawing another weapon takes.
const DRAW_TICKS: u32 = 15;
/// Share of the speed that is left when aiming down the sights.
const AIM_SPEED: f32 = 0.55;
/// A robot that rises so fast has jumped.
const JUMPING: f32 = 3.0;
/// Metres a second from which on a landing is heard.
const LANDING_HEARD: f32 = 2.0;
