//! Bots: players that are programs. They see what a client sees and press what a client presses.
//!
//! A [`Brain`] looks at a [`Player`]'s frame once a tick and says what the player does: it follows the level's objectives in order,
//! uses devices, rides what moves, waits for its partner, fights and reloads. Its hands are human: it takes time to react, turns at a
//! limited speed and aims not quite right, all from a seed.

mod aim;
mod legs;
mod plan;
mod striker;

use std::sync::Arc;

use glam::{Vec2, Vec3};
use muse::netcode::Tick;
use muse::wire::Instant;

use crate::collision::Body;
use crate::level::{Area, Level};
use crate::player::{Frame, Player};
use crate::states::{Mode, Phase, Robot, Species};
use crate::{Command, weapons};
use aim::Aim;
use legs::{Legs, Terrain};
use plan::{Errand, Plan};

/// The skill of a bot.
///
/// ```
/// use muse_biobot::bots::Skill;
/// let careful = Skill::default().reaction_ticks(20).error(0.04);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skill {
    reaction_ticks: u32,
    error: f32,
    turn: f32,
    pause_ticks: u32,
}

impl Default for Skill {
    fn default() -> Self {
        Self {
            reaction_ticks: 13,
            error: 0.022,
            turn: 0.12,
            pause_ticks: 450,
        }
    }
}

muse::wire::setters! { Skill:
    /// Ticks from seeing somebody to firing: 13 (260 ms) by default.
    reaction_ticks: u32,
    /// Sets how far it aims beside, in radians: 0.022 by default.
    error: f32,
    /// Longest time for which it looks around for what to do next, in ticks: 450 (9 s) by default. It takes half of it at
    /// least, and follows at once who seems to know.
    pause_ticks: u32,
    /// Sets how fast it turns, in radians a tick: 0.12 (6 a second) by default.
    turn: f32,
}

/// A player that is a program.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::bots::{Brain, Skill};
/// use muse_biobot::{Level, Practice};
/// use muse::wire::Instant;
/// let level = Arc::new(Level::escape());
/// let mut practice = Practice::new(Level::escape(), 2, 7, Instant::ZERO);
/// let rash = Skill::default().pause_ticks(0);
/// let mut brains = [1, 2].map(|seed| Brain::new(Arc::clone(&level), seed).skill(rash));
/// for milli in (0..4_000).step_by(10) {
///     let now = Instant::from_millis(milli);
///     practice.tick(now, |slot, player| brains[slot].act(now, player));
/// }
/// let robot = practice.player(0).and_then(|player| player.predicted()).expect("it plays");
/// assert!(robot.position[2] < 4.0, "it has set out");
/// ```
#[derive(Clone, Debug)]
pub struct Brain {
    level: Arc<Level>,
    skill: Skill,
    rng: fastrand::Rng,
    thought: Option<Tick>,
    command: Command,
    plan: Plan,
    legs: Legs,
    aim: Aim,
    bodies: Vec<Body>,
    strafe: Strafe,
    hunt_at: u32,
    roam: Option<Vec3>,
    roam_until: u32,
    wonders: Wonder,
    /// The distance from the middle of the goal at which it aims, -1 to 1, and until when.
    stray: (f32, u32),
}

/// Looks around for what to do.
#[derive(Clone, Copy, Debug)]
struct Wonder {
    of: usize,
    until: u32,
    /// The place of the partner when it began.
    partner: Option<Vec3>,
}

/// Steps aside while fighting.
#[derive(Clone, Copy, Debug, Default)]
struct Strafe {
    until: u32,
    side: f32,
}

impl Brain {
    /// A bot for a level.
    pub fn new(level: Arc<Level>, seed: u64) -> Self {
        Self {
            plan: Plan::default(),
            legs: Legs::default(),
            aim: Aim::default(),
            skill: Skill::default(),
            rng: fastrand::Rng::with_seed(seed ^ SALT),
            thought: None,
            command: Command::default(),
            bodies: Vec::new(),
            strafe: Strafe::default(),
            hunt_at: 0,
            roam: None,
            roam_until: 0,
            stray: (0.0, 0),
            wonders: Wonder {
                of: usize::MAX,
                until: 0,
                partner: None,
            },
            level,
        }
    }

    /// With another skill.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skill = skill;
        self
    }

    /// Returns what it is doing, for people who look at it: the number of the objective.
    pub const fn objective(&self) -> usize {
        self.plan.objective()
    }

    /// Returns the command of the player now. Looks at a frame once a tick, however often it is called.
    pub fn act(&mut self, now: Instant, player: &mut Player) -> Command {
        let tick = player.client().clock().play_time().map(|time| time.tick);
        if tick.is_some() && tick == self.thought {
            return self.command;
        }
        self.thought = tick;
        let command = self.decide(player.frame(now));
        self.command = command;
        command
    }

    /// Returns the command for this frame. To be called once a tick.
    pub fn decide(&mut self, frame: &Frame) -> Command {
        let playing = frame.round.as_ref().map(|round| round.phase) == Some(Phase::Playing);
        let Some(own) = frame.own.as_ref().filter(|_| playing) else {
            return Command::default();
        };
        let robot = &own.robot;
        let tick = frame.time.tick;
        self.look_around(frame);
        if !robot.alive() {
            self.legs.forget();
            self.aim.forget();
            return Command {
                yaw: robot.yaw,
                ..Command::default()
            };
        }
        if self.level.mode == Mode::Ball {
            return self.play_ball(robot, frame);
        }
        self.plan.update(&self.level, frame, robot);
        let errand = match self.level.mode {
            Mode::Cooperative => {
                let errand = self.plan.errand(&self.level, frame, robot);
                self.wonder(errand, robot, frame)
            }
            Mode::Versus | Mode::Ball => self.roam(robot, tick),
        };
        let fights = matches!(errand, Errand::Fight { .. }) || self.level.mode == Mode::Versus;
        let sight = aim::Sight {
            level: &self.level,
            frame,
            robot,
            bodies: &self.bodies,
            fights,
        };
        let sees = self.aim.update(&sight, &self.skill, &mut self.rng);
        self.press(robot, tick, errand, sees, frame)
    }

    /// Two teams and a ball.
    fn play_ball(&mut self, robot: &Robot, frame: &Frame) -> Command {
        let tick = frame.time.tick;
        if tick.0 >= self.stray.1 {
            self.stray = (self.rng.f32() * 2.0 - 1.0, tick.0 + self.rng.u32(50..200));
        }
        let play = striker::play(&self.level, frame, robot, self.stray.0);
        let Some(play) = play else {
            return Command::default();
        };
        self.aim.begin(robot);
        self.aim.turn(robot, play.look, false, tick, &self.skill);
        let (yaw, pitch) = self.aim.look();
        let mut command = Command {
            yaw,
            pitch,
            use_: play.kick,
            fire: play.fire && robot.reload == 0,
            reload: !play.fire && is_low(robot),
            ..Command::default()
        };
        press_way(&mut command, play.way);
        command
    }

    /// Looks around first where the next errand is not obvious, unless its partner seems to know.
    fn wonder(&mut self, errand: Errand, robot: &Robot, frame: &Frame) -> Errand {
        let tick = frame.time.tick.0;
        let partner = frame.robots.first().map(|shown| shown.robot.feet());
        if self.wonders.of != self.plan.objective() {
            let most = self.skill.pause_ticks;
            self.wonders = Wonder {
                of: self.plan.objective(),
                until: tick + most / 2 + self.rng.u32(0..most / 2 + 1),
                partner,
            };
        }
        let before = self.wonders.partner;
        let led = partner
            .zip(before)
            .is_some_and(|(now, then)| now.distance(then) > LED);
        // Who rides something or has just come back knows already.
        let sure = robot.standing != 1 || !errand.is_leisurely();
        if tick >= self.wonders.until || led || sure {
            self.wonders.until = self.wonders.until.min(tick);
            return errand;
        }
        Errand::Wait
    }

    /// From what it wants to what it presses.
    fn press(
        &mut self,
        robot: &Robot,
        tick: Tick,
        errand: Errand,
        sees: bool,
        frame: &Frame,
    ) -> Command {
        let busy = self.legs.is_jumping() || robot.standing == 0;
        let mut command = Command::default();
        let (goal, near_enough) = self.goal(robot, &errand, sees, tick, frame);
        let terrain = Terrain {
            level: &self.level,
            bodies: &self.bodies,
        };
        let mut way = Vec2::ZERO;
        if let Some(goal) = goal {
            let drive = self
                .legs
                .drive(robot, goal, near_enough, tick, &terrain, &mut self.rng);
            way = drive.way;
            command.jump = drive.jump;
        }
        let fixed = matches!(errand, Errand::Stay { .. } | Errand::Hold { .. });
        if sees && !busy && way == Vec2::ZERO && !fixed {
            way = self.sidestep(robot, tick);
        }
        if let Errand::Use { at, together, .. } | Errand::Hold { at, together } = &errand
            && at.distance(robot.middle()) < USE_REACH
        {
            let hold = matches!(errand, Errand::Hold { .. });
            command.use_ = hold || (*together && tick.0 % USE_TICKS < 4);
        }
        let aims = sees && !self.legs.is_jumping();
        let wanted = match aims {
            true => self.aim.wanted(),
            false => heading(robot, way, &errand),
        };
        self.aim.turn(robot, wanted, aims, tick, &self.skill);
        (command.yaw, command.pitch) = self.aim.look();
        command.fire = aims && self.aim.fires(robot, tick, &self.skill);
        command.aim = aims && self.aim.is_far() && way == Vec2::ZERO;
        command.weapon = self.aim.weapon(robot, aims);
        if !sees && self.aim.calm(tick) {
            command.weapon = Aim::spare_weapon(robot);
            command.reload = command.weapon == 0 && is_low(robot);
        }
        press_way(&mut command, way);
        command
    }

    /// Returns the place to go for an errand, and how near is near enough.
    fn goal(
        &mut self,
        robot: &Robot,
        errand: &Errand,
        sees: bool,
        tick: Tick,
        frame: &Frame,
    ) -> (Option<Vec3>, f32) {
        let vain = self.aim.in_vain(tick);
        let stops = sees && vain.is_none() && !self.legs.is_jumping() && robot.standing == 1;
        match errand {
            Errand::Wait => (None, 0.5),
            Errand::Stay { at } => (Some(*at), 0.6),
            Errand::Go { .. } | Errand::Use { .. } if stops => (None, 0.5),
            Errand::Go { at } => (Some(*at), 0.35),
            Errand::Use { at, .. } | Errand::Hold { at, .. } => {
                let there = at.distance(robot.middle()) < USE_REACH - 0.2;
                (Some(*at).filter(|_| !there), 0.3)
            }
            Errand::Fight { at } => {
                if let Some(there) = vain.filter(|_| sees) {
                    return (Some(there), 5.0);
                }
                if sees {
                    // It fights where it is; only the boss has a side for each.
                    self.hunt_at = tick.0 + HUNT_TICKS;
                    return (Some(*at).filter(|_| self.aim.is_at_boss()), FIGHT_RADIUS);
                }
                if tick.0 < self.hunt_at {
                    return (Some(*at), 1.5);
                }
                let prey = self.prey(robot, frame);
                (Some(prey.unwrap_or(*at)), 2.0)
            }
        }
    }

    /// Nobody comes: the nearest enemy that can be walked to.
    fn prey(&self, robot: &Robot, frame: &Frame) -> Option<Vec3> {
        let feet = robot.feet();
        let enemies = frame.enemies.iter().map(|shown| &shown.enemy);
        let awake = enemies.filter(|enemy| {
            enemy.health > 0 && enemy.species != Species::Boss && enemy.species != Species::Wasp
        });
        let robots = frame.robots.iter().map(|shown| &shown.robot);
        let others = robots.filter(|robot| self.level.mode == Mode::Versus && robot.alive());
        let places = awake
            .map(|enemy| Vec3::from(enemy.position))
            .chain(others.map(Robot::feet));
        let near = places.filter(|place| place.distance(feet) < HUNT_RADIUS);
        near.min_by(|a, b| a.distance(feet).total_cmp(&b.distance(feet)))
    }

    /// In versus one goes where somebody may be.
    fn roam(&mut self, robot: &Robot, tick: Tick) -> Errand {
        let reached = |place: Vec3| place.distance(robot.feet()) < 3.0;
        if self.roam.is_none_or(reached) || tick.0 >= self.roam_until {
            let spawns = &self.level.spawns;
            let place = spawns[self.rng.u32(0..spawns.len() as u32) as usize];
            self.roam = Some(place.at.into());
            self.roam_until = tick.0 + ROAM_TICKS;
        }
        let at = self.roam.unwrap_or(robot.feet());
        match self.aim.distance() {
            Some(far) if far < 16.0 => Errand::Fight { at: robot.feet() },
            _ => Errand::Go { at },
        }
    }

    /// A step aside where there is ground.
    fn sidestep(&mut self, robot: &Robot, tick: Tick) -> Vec2 {
        if tick.0 >= self.strafe.until {
            self.strafe.until = tick.0 + self.rng.u32(15..45);
            self.strafe.side = [-1.0, 0.0, 1.0][self.rng.u32(0..3) as usize];
        }
        let ahead = weapons::direction(robot.yaw, 0.0);
        let way = Vec2::new(-ahead.z, ahead.x) * self.strafe.side;
        let terrain = Terrain {
            level: &self.level,
            bodies: &self.bodies,
        };
        match robot.standing == 1 && terrain.is_safe(robot, way) {
            true => way,
            false => Vec2::ZERO,
        }
    }

    /// Updates what moves to where it is now.
    fn look_around(&mut self, frame: &Frame) {
        self.bodies.clear();
        let slot = frame.own.as_ref().map(|own| own.robot.slot);
        for (index, shown) in frame.devices.iter().enumerate() {
            let Some(spec) = self.level.devices.get(index) else {
                continue;
            };
            let body = spec.body(index, &shown.state, frame.time.tick);
            let passes = |body: &Body| !body.carries && body.only.is_some() && body.only == slot;
            self.bodies.extend(body.filter(|body| !passes(body)));
        }
    }
}

/// Returns the direction to look while nobody is to be shot at.
fn heading(robot: &Robot, way: Vec2, errand: &Errand) -> (f32, f32) {
    if way != Vec2::ZERO {
        return (weapons::angles(Vec3::new(way.x, 0.0, way.y)).0, 0.0);
    }
    if let Errand::Use { at, .. } | Errand::Hold { at, .. } = errand {
        return weapons::angles(*at - robot.eye());
    }
    (robot.yaw, 0.0)
}

/// The keys that go most nearly that way, as one looks.
fn press_way(command: &mut Command, way: Vec2) {
    if way == Vec2::ZERO {
        return;
    }
    let ahead = weapons::direction(command.yaw, 0.0);
    let forward = way.dot(Vec2::new(ahead.x, ahead.z));
    let right = way.dot(Vec2::new(-ahead.z, ahead.x));
    let key = |share: f32| match share {
        share if share > KEY => 1,
        share if share < -KEY => -1,
        _ => 0,
    };
    command.forward = key(forward);
    command.right = key(right);
}

fn is_low(robot: &Robot) -> bool {
    let magazine = weapons::weapon(robot.weapon).magazine;
    robot.rounds() * 2 <= magazine && robot.reload == 0
}

fn is_in(area: &Area, feet: Vec3) -> bool {
    area.contains(feet + Vec3::Y * 0.1)
}

/// The salt that makes a bot's random numbers differ from others of the same seed.
const SALT: u64 = 0x626f_7473_6272_6169;
/// The sine of half of an eighth of a turn.
const KEY: f32 = 0.382_7;
/// The distance from which a bot uses something.
const USE_REACH: f32 = 1.8;
/// Ticks between two presses of a button.
const USE_TICKS: u32 = 22;
/// Ticks without anybody to be seen until it goes to look for them: 4 s.
const HUNT_TICKS: u32 = 200;
const HUNT_RADIUS: f32 = 60.0;
/// The distance from its place at which it fights.
const FIGHT_RADIUS: f32 = 7.0;
/// The distance that a partner goes who seems to know the way.
const LED: f32 = 4.0;
/// Ticks until it wants to be somewhere else.
const ROAM_TICKS: u32 = 900;
