//! Decides what to do next: the level's objectives, and how far everybody is with them.

use glam::Vec3;

use super::is_in;
use crate::level::{Act, DeviceKind, Level, Task, Until};
use crate::player::Frame;
use crate::states::Robot;

/// The errand of a bot.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Errand {
    /// Nothing: somebody else has something to do.
    Wait,
    /// Be there.
    Go { at: Vec3 },
    /// Be there and stay, even if enemies come.
    Stay { at: Vec3 },
    /// Use what is there; `together` says that now is the moment.
    Use { at: Vec3, together: bool },
    /// Hold what is there.
    Hold { at: Vec3, together: bool },
    /// Fight around there.
    Fight { at: Vec3 },
}

impl Errand {
    /// True if there is time to look around before.
    pub(super) const fn is_leisurely(&self) -> bool {
        matches!(self, Self::Go { .. } | Self::Use { .. } | Self::Hold { .. })
    }
}

/// The progress of everybody.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    objective: usize,
    robots: Vec<Known>,
    /// The objective, life and task to which `point` belongs.
    way: (usize, u8, usize),
    /// The next of the points on the way.
    point: usize,
    /// Tick at which it came to the device that it shall use.
    waits_since: Option<u32>,
}

/// The progress of a robot.
#[derive(Clone, Copy, Debug)]
struct Known {
    slot: u8,
    lives: u8,
    /// The last objective in whose area it has been, plus one.
    reached: usize,
}

impl Plan {
    pub(super) const fn objective(&self) -> usize {
        self.objective
    }

    /// Sees where everybody is, and what is done.
    pub(super) fn update(&mut self, level: &Level, frame: &Frame, own: &Robot) {
        let others = frame.robots.iter().map(|shown| &shown.robot);
        let present: Vec<&Robot> = std::iter::once(own).chain(others).collect();
        self.robots
            .retain(|known| present.iter().any(|robot| robot.slot == known.slot));
        let checkpoint = frame.round.as_ref().map_or(0, |round| round.checkpoint);
        for robot in present {
            let place = self
                .robots
                .iter()
                .position(|known| known.slot == robot.slot);
            let fresh = Known {
                slot: robot.slot,
                lives: robot.lives,
                reached: behind(level, robot.slot, checkpoint),
            };
            let known = match place {
                Some(place) => &mut self.robots[place],
                None => {
                    self.robots.push(fresh);
                    continue;
                }
            };
            if known.lives != robot.lives {
                *known = fresh;
            }
            if robot.alive() {
                // Who goes back is back.
                let objectives = level.objectives.iter().enumerate();
                let mut inside = objectives.filter(|(_, objective)| match &objective.until {
                    Until::AllIn { area } | Until::AnyIn { area } => is_in(area, robot.feet()),
                    _ => false,
                });
                let last = inside.next_back();
                known.reached = last.map_or(known.reached, |(index, _)| index + 1);
            }
        }
        let open = |index: &usize| !self.is_done(level, frame, *index);
        self.objective = (0..level.objectives.len()).find(open).unwrap_or(0);
    }

    fn is_done(&self, level: &Level, frame: &Frame, index: usize) -> bool {
        let round = frame.round.as_ref();
        match &level.objectives[index].until {
            Until::Active { device } => is_active(level, frame, device),
            Until::AllIn { .. } => self.robots.iter().all(|known| known.reached > index),
            Until::AnyIn { .. } => self.robots.iter().any(|known| known.reached > index),
            Until::Checkpoint { number } => round.is_some_and(|round| round.checkpoint >= *number),
            Until::Over => false,
        }
    }

    /// Returns the errand of a robot for the objective.
    pub(super) fn errand(&mut self, level: &Level, frame: &Frame, robot: &Robot) -> Errand {
        let Some(objective) = level.objectives.get(self.objective) else {
            return Errand::Wait;
        };
        let reached = |slot: u8| {
            let known = self.robots.iter().find(|known| known.slot == slot);
            known.map_or(0, |known| known.reached)
        };
        let gathers = matches!(objective.until, Until::AllIn { .. });
        let (mine, index) = (reached(robot.slot), self.objective);
        if gathers && mine > index + 1 {
            return self.lend_a_hand(level, robot).unwrap_or(Errand::Wait);
        }
        let Some(number) = self.task_of(level, robot.slot, mine) else {
            return Errand::Wait;
        };
        let task = &level.objectives[index].tasks[number];
        // Who has ridden across makes room for the others.
        let rides = matches!(&task.act, Act::Stand { device } if moves(level, device));
        if gathers && mine == index + 1 && rides {
            let next = level.objectives.get(index + 1);
            let tasks = next.map_or(&[][..], |next| &next.tasks);
            if let Some(next) = tasks.iter().find(|task| is_for(task, robot.slot)) {
                let at = next.by.first().copied().or(place_of(next));
                return at.map_or(Errand::Wait, |at| Errand::Go { at: at.into() });
            }
        }
        self.follow(level, frame, robot, (index, number))
    }

    /// The task of a robot; with a partner on the other side of what it would hold open, its partner's.
    fn task_of(&self, level: &Level, slot: u8, mine: usize) -> Option<usize> {
        let tasks = &level.objectives[self.objective].tasks;
        let own = tasks.iter().position(|task| is_for(task, slot))?;
        if !matches!(level.objectives[self.objective].until, Until::AllIn { .. }) {
            return Some(own);
        }
        let ahead = mine > self.objective;
        let others = self.robots.iter().filter(|known| known.slot != slot);
        let parted = |known: &Known| (known.reached > self.objective) != ahead;
        let Some(other) = others.copied().find(parted) else {
            return Some(own);
        };
        let theirs = tasks.iter().position(|task| is_for(task, other.slot));
        let lagging = if ahead { theirs } else { Some(own) };
        let holds = |number: usize| holds_open(level, &tasks[number]);
        match (lagging.is_some_and(holds), theirs) {
            (true, Some(theirs)) if level_allows(level, &tasks[theirs], slot) => Some(theirs),
            _ => Some(own),
        }
    }

    /// Far ahead of a partner who needs something held open.
    fn lend_a_hand(&self, level: &Level, robot: &Robot) -> Option<Errand> {
        let tasks = &level.objectives[self.objective].tasks;
        let held = tasks.iter().find(|task| holds_open(level, task))?;
        let at = Vec3::from(place_of(held).or_else(|| device_place(level, held))?);
        let near = at.distance(robot.feet()) < 30.0 && level_allows(level, held, robot.slot);
        near.then_some(Errand::Stay { at })
    }

    /// The points on the way, then what is to be done there.
    fn follow(
        &mut self,
        level: &Level,
        frame: &Frame,
        robot: &Robot,
        (index, number): (usize, usize),
    ) -> Errand {
        let task = &level.objectives[index].tasks[number];
        let way = (index, robot.lives, number);
        if self.way != way {
            (self.way, self.point, self.waits_since) = (way, 0, None);
        }
        while let Some(point) = task.by.get(self.point) {
            let off = Vec3::from(*point) - robot.feet();
            let near = off.with_y(0.0).length() < POINT_RADIUS && off.y.abs() < POINT_HEIGHT;
            if !near || robot.standing == 0 {
                return Errand::Go {
                    at: (*point).into(),
                };
            }
            self.point += 1;
        }
        match &task.act {
            Act::Go { at } => Errand::Go { at: (*at).into() },
            Act::Fight { at, .. } => Errand::Fight { at: (*at).into() },
            Act::Take { device } => self.take(level, frame, robot, device),
            Act::Use { device } => self.use_device(level, frame, robot, device, index),
            Act::Hold { device } => match level.device(device) {
                Some(place) => Errand::Hold {
                    at: level.devices[place].place(),
                    together: true,
                },
                None => Errand::Wait,
            },
            Act::Stand { device } => stand(level, frame, device),
        }
    }

    fn take(&self, level: &Level, frame: &Frame, robot: &Robot, device: &str) -> Errand {
        let Some(place) = level.device(device) else {
            return Errand::Wait;
        };
        let bit = 1_u16 << robot.slot;
        let taken = frame
            .devices
            .get(place)
            .is_some_and(|shown| shown.state.holders & bit != 0);
        match taken {
            true => Errand::Wait,
            false => Errand::Go {
                at: level.devices[place].place(),
            },
        }
    }

    /// A lever at once; one of two buttons when the partner is at the other, or after a while.
    fn use_device(
        &mut self,
        level: &Level,
        frame: &Frame,
        robot: &Robot,
        device: &str,
        index: usize,
    ) -> Errand {
        let Some(place) = level.device(device) else {
            return Errand::Wait;
        };
        let spec = &level.devices[place];
        let pulled = matches!(spec.what, DeviceKind::Lever { .. })
            && frame
                .devices
                .get(place)
                .is_some_and(|shown| shown.state.active);
        if pulled {
            return Errand::Wait;
        }
        let at = spec.place();
        if at.distance(robot.middle()) > super::USE_REACH {
            return Errand::Use {
                at,
                together: false,
            };
        }
        let tick = frame.time.tick.0;
        let since = *self.waits_since.get_or_insert(tick);
        let ready = frame.robots.iter().all(|shown| {
            let mut tasks = level.objectives[index].tasks.iter();
            let theirs = tasks.find(|task| is_for(task, shown.robot.slot));
            let place = theirs.and_then(|task| device_place(level, task));
            place.is_none_or(|place| Vec3::from(place).distance(shown.robot.middle()) < 2.6)
        });
        let button = matches!(spec.what, DeviceKind::Button { .. });
        Errand::Use {
            at,
            together: !button || ready || tick > since + PATIENCE_TICKS,
        }
    }
}

/// On a plate, or on something that moves, wherever it is by now.
fn stand(level: &Level, frame: &Frame, device: &str) -> Errand {
    let Some(place) = level.device(device) else {
        return Errand::Wait;
    };
    let spec = &level.devices[place];
    let offset = frame
        .devices
        .get(place)
        .map_or(Vec3::ZERO, |shown| Vec3::from(shown.offset));
    let at = match &spec.what {
        DeviceKind::Lift { max, .. } | DeviceKind::Platform { max, .. } => {
            spec.place().with_y(max[1]) + offset
        }
        DeviceKind::Plate { area } => area.middle().with_y(area.min[1].max(0.0)),
        _ => spec.place(),
    };
    Errand::Stay { at }
}

/// Returns the number of objectives behind a player who begins at a checkpoint.
fn behind(level: &Level, slot: u8, checkpoint: u8) -> usize {
    let feet = Vec3::from(level.spawn(slot, checkpoint).at);
    let passed = |until: &Until| match until {
        Until::AllIn { area } => checkpoint > 0 && is_in(area, feet),
        Until::Checkpoint { number } => *number <= checkpoint,
        _ => false,
    };
    let mut objectives = level.objectives.iter();
    let last = objectives.rposition(|objective| passed(&objective.until));
    last.map_or(0, |index| index + 1)
}

fn is_for(task: &Task, slot: u8) -> bool {
    task.slot.is_none_or(|who| who == slot)
}

fn is_active(level: &Level, frame: &Frame, device: &str) -> bool {
    let place = level.device(device);
    let shown = place.and_then(|place| frame.devices.get(place));
    shown.is_some_and(|shown| shown.state.active)
}

fn moves(level: &Level, device: &str) -> bool {
    let place = level.device(device);
    place.is_some_and(|place| {
        let what = &level.devices[place].what;
        matches!(what, DeviceKind::Lift { .. } | DeviceKind::Platform { .. })
    })
}

/// True if a task keeps something open for somebody else.
fn holds_open(level: &Level, task: &Task) -> bool {
    match &task.act {
        Act::Hold { .. } => true,
        Act::Stand { device } => !moves(level, device),
        _ => false,
    }
}

fn level_allows(level: &Level, task: &Task, slot: u8) -> bool {
    match &task.act {
        Act::Use { device } | Act::Hold { device } | Act::Stand { device } => level
            .device(device)
            .is_none_or(|place| level.devices[place].allows(slot)),
        _ => true,
    }
}

fn place_of(task: &Task) -> Option<[f32; 3]> {
    match &task.act {
        Act::Go { at } | Act::Fight { at, .. } => Some(*at),
        _ => None,
    }
}

fn device_place(level: &Level, task: &Task) -> Option<[f32; 3]> {
    match &task.act {
        Act::Use { device } | Act::Hold { device } | Act::Stand { device } => {
            let place = level.device(device)?;
            Some(level.devices[place].place().into())
        }
        _ => None,
    }
}

/// The distance from which a point on the way counts as reached.
const POINT_RADIUS: f32 = 0.8;
const POINT_HEIGHT: f32 = 1.0;
/// Ticks after which a button is pressed though the partner is not there: 6 s.
const PATIENCE_TICKS: u32 = 300;
