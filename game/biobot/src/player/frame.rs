//! Everything that is to be drawn at an instant.

use glam::Vec3;
use muse::netcode::interpolation::Source;
use muse::netcode::prediction::Game;
use muse::netcode::{EntityId, Tick, TickTime};
use muse::wire::Instant;

use super::figures::WALKED_MAX;
use super::{NetStatistics, Player};
use crate::ball::SPEED_MAX;
use crate::messages::ToPlayer;
use crate::rules::Effect;
use crate::states::{Ball, Bolt, Device, Enemy, Robot, Round};

/// The content of a frame.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The instant of one's own robot and of what moves by itself.
    pub time: TickTime,
    /// The instant at which others are shown.
    pub shown_time: TickTime,
    /// One's own robot.
    pub own: Option<OwnShown>,
    /// The other robots.
    pub robots: Vec<RobotShown>,
    /// Enemies.
    pub enemies: Vec<EnemyShown>,
    /// Every device of the level, in its order.
    pub devices: Vec<DeviceShown>,
    /// The bolts that fly.
    pub bolts: Vec<BoltShown>,
    /// The ball, if there is one.
    pub ball: Option<BallShown>,
    /// The events since the last frame, each once.
    pub seen: Vec<Seen>,
    /// The match.
    pub round: Option<Round>,
    /// The statistics of the connection.
    pub statistics: NetStatistics,
}

/// One's own robot as it is to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnShown {
    /// Its entity.
    pub entity: EntityId,
    /// Its state.
    pub robot: Robot,
}

/// Another robot.
#[derive(Clone, Debug, PartialEq)]
pub struct RobotShown {
    /// Its entity.
    pub entity: EntityId,
    /// Its state.
    pub robot: Robot,
    /// True if the state that should have been there was not.
    pub overdue: bool,
}

/// An enemy.
#[derive(Clone, Debug, PartialEq)]
pub struct EnemyShown {
    /// Its entity.
    pub entity: EntityId,
    /// Its state.
    pub enemy: Enemy,
}

/// A device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceShown {
    /// Its state.
    pub state: Device,
    /// The distance that it has moved from where it rests.
    pub offset: [f32; 3],
    /// The share to which it is open, 0 to 1.
    pub progress: f32,
}

/// Something that flies.
#[derive(Clone, Debug, PartialEq)]
pub struct BoltShown {
    /// Its entity; `None` while only oneself knows of it.
    pub entity: Option<EntityId>,
    /// Its state.
    pub bolt: Bolt,
    /// Its position.
    pub position: [f32; 3],
    /// The share of it that is there: less than 1 while it fades because the server does not know of it.
    pub share: f32,
}

/// The ball.
#[derive(Clone, Debug, PartialEq)]
pub struct BallShown {
    /// Its entity.
    pub entity: EntityId,
    /// Its state.
    pub ball: Ball,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// One's own robot did something; shown at once.
    Own {
        /// The tick.
        tick: Tick,
        /// The effect.
        effect: Effect,
    },
    /// It did not after all.
    Cancelled {
        /// The tick in which it would have been.
        tick: Tick,
        /// The effect.
        effect: Effect,
    },
    /// Another robot fired.
    Fired {
        /// The entity.
        entity: EntityId,
        /// With what.
        weapon: u8,
        /// From where.
        origin: [f32; 3],
        /// The direction.
        yaw: f32,
        /// Up is positive.
        pitch: f32,
    },
    /// An enemy fired.
    EnemyFired {
        /// The entity.
        entity: EntityId,
    },
    /// Something that flew has ended.
    Burst {
        /// The weapon that fired it.
        weapon: u8,
        /// The position.
        at: [f32; 3],
    },
    /// The server said something.
    Message(ToPlayer),
}

impl Player {
    /// Returns what is to be drawn now.
    pub fn frame(&mut self, now: Instant) -> &Frame {
        let time = self.client.clock().play_time().unwrap_or_default();
        let shown_time = self.client.shown_time().unwrap_or_default();
        self.frame.time = time;
        self.frame.shown_time = shown_time;
        self.show_own();
        self.show_robots(now);
        self.show_enemies(now);
        self.show_ball(now);
        self.show_devices(time);
        self.show_bolts(time, shown_time);
        self.frame.round = self.round.as_ref().map(|(_, round)| round.clone());
        self.frame.seen = std::mem::take(&mut self.seen);
        self.frame.statistics = self.figures.statistics(now, &self.client);
        &self.frame
    }

    /// The frame that was made last.
    pub const fn last_frame(&self) -> &Frame {
        &self.frame
    }

    fn show_own(&mut self) {
        let Some(entity) = self.client.player() else {
            self.frame.own = None;
            return;
        };
        let robot = match self.switches.prediction {
            true => self.client.shown_player(),
            false => {
                let received = self.client.receiver().state(self.kinds.robot, entity);
                received.map(|(_, robot)| robot)
            }
        };
        self.frame.own = robot.map(|robot| OwnShown { entity, robot });
    }

    fn show_robots(&mut self, now: Instant) {
        self.frame.robots.clear();
        // Nobody runs through a wall because a packet was lost.
        let rules = &self.rules;
        let stop = |from: &Robot, to| rules.stop(from, to);
        for (entity, shown) in self.robots.show_within(&self.client, stop) {
            let received = || self.client.receiver().state(self.kinds.robot, entity);
            let robot = match self.switches.interpolation {
                true => shown.state,
                false => received().map_or(shown.state, |(_, robot)| robot),
            };
            let overdue = matches!(shown.source, Source::Beyond | Source::Stopped);
            self.frame.robots.push(RobotShown {
                entity,
                robot,
                overdue,
            });
        }
        for index in 0..self.frame.robots.len() {
            let entity = self.frame.robots[index].entity;
            let robot = self.frame.robots[index].robot.clone();
            let fired = Seen::Fired {
                entity,
                weapon: robot.weapon,
                origin: robot.eye().into(),
                yaw: robot.yaw,
                pitch: robot.pitch,
            };
            self.note_shots(entity, robot.shots, fired);
            // Who is dead lies in pieces; where the next life begins is no step of it.
            if robot.alive() {
                let (feet, life) = (robot.feet(), u16::from(robot.lives));
                self.figures
                    .handle_shown(now, entity, feet, (life, WALKED_MAX));
            }
            self.ride(index);
        }
    }

    /// Draws a robot that rides something on it, which is drawn where it is by now.
    fn ride(&mut self, index: usize) {
        let robot = &self.frame.robots[index].robot;
        let Some(carrier) = robot.carrier() else {
            return;
        };
        let (time, shown) = (self.frame.time, self.frame.shown_time);
        let now = self.offset(carrier, time);
        let then = self.offset(carrier, shown);
        let moved = robot.feet() + now - then;
        self.frame.robots[index].robot.position = moved.into();
    }

    fn show_enemies(&mut self, now: Instant) {
        self.frame.enemies.clear();
        for (entity, shown) in self.enemies.show(&self.client) {
            let received = || self.client.receiver().state(self.kinds.enemy, entity);
            let enemy = match self.switches.interpolation {
                true => shown.state,
                false => received().map_or(shown.state, |(_, enemy)| enemy),
            };
            self.frame.enemies.push(EnemyShown { entity, enemy });
        }
        for index in 0..self.frame.enemies.len() {
            let EnemyShown { entity, enemy } = &self.frame.enemies[index];
            let (entity, shots) = (*entity, enemy.shots);
            let at = Vec3::from(enemy.position);
            self.note_shots(entity, shots, Seen::EnemyFired { entity });
            self.figures.handle_shown(now, entity, at, (0, WALKED_MAX));
        }
    }

    fn show_ball(&mut self, now: Instant) {
        self.frame.ball = None;
        let collision = self.level.collision();
        let stop = |from: &Ball, mut to: Ball| {
            to.position = collision.roll(from.middle(), to.middle()).into();
            to
        };
        if let Some((entity, shown)) = self.balls.show_within(&self.client, stop).next() {
            let received = || self.client.receiver().state(self.kinds.ball, entity);
            let ball = match self.switches.interpolation {
                true => shown.state,
                false => received().map_or(shown.state, |(_, ball)| ball),
            };
            self.frame.ball = Some(BallShown { entity, ball });
        }
        if let Some(BallShown { entity, ball }) = &self.frame.ball {
            let (at, serve) = (ball.middle(), u16::from(ball.serves));
            self.figures
                .handle_shown(now, *entity, at, (serve, SPEED_MAX));
        }
    }

    fn note_shots(&mut self, entity: EntityId, shots: u8, seen: Seen) {
        let known = self.shots.insert(entity, shots);
        if known.is_some_and(|known| known != shots) && self.seen.len() < super::SEEN_MAX {
            self.seen.push(seen);
        }
    }

    fn show_devices(&mut self, time: TickTime) {
        self.frame.devices.clear();
        for index in 0..self.level.devices.len() {
            let state = self.device_states[index].clone();
            let ticks = self.level.devices[index].ticks();
            let (before, after) = (time.tick.back(1), time.tick);
            let (from, to) = (state.progress(before, ticks), state.progress(after, ticks));
            self.frame.devices.push(DeviceShown {
                offset: self.offset(index, time).into(),
                progress: from + (to - from) * time.share(),
                state,
            });
        }
    }

    /// Returns the distance that a device has moved at an instant between two ticks.
    fn offset(&self, index: usize, time: TickTime) -> Vec3 {
        let (Some(spec), Some(state)) =
            (self.level.devices.get(index), self.device_states.get(index))
        else {
            return Vec3::ZERO;
        };
        let before = spec.offset(state, time.tick.back(1));
        before.lerp(spec.offset(state, time.tick), time.share())
    }

    /// One's own at the instant of oneself, others' at the instant of others.
    fn show_bolts(&mut self, time: TickTime, shown: TickTime) {
        self.frame.bolts.clear();
        let (client, own, kind) = (&self.client, self.slot, self.kinds.bolt);
        let seen = &mut self.seen;
        let bolts = &mut self.frame.bolts;
        self.bolts.retain(|entity, known| {
            let is_own = own.is_some() && known.state.slot() == own;
            let ticks = match is_own {
                true => time.ticks(),
                false => shown.ticks(),
            };
            let over = known.gone.is_some_and(|gone| f64::from(gone.0) <= ticks);
            let adopted = client.adopted(kind, *entity).filter(|_| is_own);
            let bolt = adopted.unwrap_or_else(|| known.state.clone());
            let position = bolt.at(ticks).into();
            if over {
                seen.push(Seen::Burst {
                    weapon: known.state.weapon,
                    at: position,
                });
            } else if ticks >= f64::from(known.state.born) {
                bolts.push(BoltShown {
                    entity: Some(*entity),
                    bolt,
                    position,
                    share: 1.0,
                });
            }
            !over
        });
        for spawn in client.spawns(kind) {
            bolts.push(BoltShown {
                entity: None,
                position: spawn.state.at(time.ticks()).into(),
                bolt: spawn.state,
                share: spawn.share,
            });
        }
    }
}
