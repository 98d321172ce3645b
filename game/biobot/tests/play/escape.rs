//! The co-operative level can be walked from its beginning to its end, by doing what its objectives say. Without enemies; with
//! them bots do it.

use glam::{Vec2, Vec3};
use muse_biobot::level::{Act, DeviceKind, Objective, Until};
use muse_biobot::player::Frame;
use muse_biobot::{Command, Level, Phase, Player, Robot};

use crate::table::{Table, towards};

/// One who does what the objectives say, and nothing else.
#[derive(Default)]
struct Walker {
    objective: usize,
    /// The next of the points on the way.
    point: usize,
    stuck: u32,
    last: Vec3,
}

impl Walker {
    fn act(&mut self, level: &Level, slot: usize, objective: usize, frame: &Frame) -> Command {
        let Some(own) = &frame.own else {
            return Command::default();
        };
        let robot = &own.robot;
        if self.objective != objective {
            (self.objective, self.point) = (objective, 0);
        }
        let mine =
            |task: &&muse_biobot::level::Task| task.slot.is_none_or(|who| usize::from(who) == slot);
        let Some(task) = level
            .objectives
            .get(objective)
            .and_then(|goal| goal.tasks.iter().find(mine))
        else {
            return Command::default();
        };
        if let Some(place) = task.by.get(self.point) {
            let (command, near) = towards(robot, *place);
            let level_with = (place[1] - robot.position[1]).abs() < 1.0;
            self.point += usize::from(near && level_with);
            return self.jumping(level, robot, command, frame);
        }
        let device = |name: &str| level.device(name).expect("objectives were checked");
        let command = match &task.act {
            Act::Go { at } | Act::Fight { at, .. } => towards(robot, *at).0,
            Act::Use { device: name } => {
                let place = level.devices[device(name)].place();
                let (walk, _) = towards(robot, place.into());
                let near = place.distance(robot.middle()) < 1.6;
                // Once a second, for both at the same time.
                Command {
                    forward: i8::from(!near),
                    use_: near && frame.time.tick.0 % 50 < 10,
                    ..walk
                }
            }
            Act::Hold { device: name } => {
                let place = level.devices[device(name)].place();
                let near = place.distance(robot.middle()) < 1.6;
                Command {
                    forward: i8::from(!near),
                    use_: near,
                    ..towards(robot, place.into()).0
                }
            }
            Act::Take { device: name } => {
                towards(robot, level.devices[device(name)].place().into()).0
            }
            Act::Stand { device: name } => {
                return self.board(level, robot, device(name), slot, frame);
            }
        };
        self.jumping(level, robot, command, frame)
    }

    /// Onto a plate, or onto something that moves once it is there.
    fn board(
        &mut self,
        level: &Level,
        robot: &Robot,
        device: usize,
        slot: usize,
        frame: &Frame,
    ) -> Command {
        let spec = &level.devices[device];
        let offset = Vec3::from(frame.devices[device].offset);
        let middle = spec.place() + offset;
        let (min, max) = match &spec.what {
            DeviceKind::Platform { min, max, .. } | DeviceKind::Lift { min, max, .. } => (min, max),
            _ => return towards(robot, middle.into()).0,
        };
        let aboard = robot.carrier() == Some(device);
        let (low, high) = (Vec3::from(*min) + offset, Vec3::from(*max) + offset);
        let feet = robot.feet();
        let gap = Vec2::new(
            (low.x - feet.x).max(feet.x - high.x).max(0.0),
            (low.z - feet.z).max(feet.z - high.z).max(0.0),
        );
        let flush = (high.y - feet.y).abs() < 0.2 && gap.length() < 1.4;
        if !aboard && !flush {
            return Command::default();
        }
        // Side by side on it.
        let side = if slot == 0 { -0.7 } else { 0.7 };
        let place = Vec3::new(middle.x + side, high.y, middle.z);
        let (command, near) = towards(robot, place.into());
        if near { Command::default() } else { command }
    }

    /// Jumps where a link of the level says so.
    fn jumping(
        &mut self,
        level: &Level,
        robot: &Robot,
        command: Command,
        frame: &Frame,
    ) -> Command {
        let way = muse_biobot::weapons::direction(command.yaw, 0.0);
        let before = |link: &&muse_biobot::level::JumpLink| {
            let from = Vec3::from(link.from);
            let to = Vec3::from(link.to) - from;
            let flat = Vec3::new(robot.feet().x - from.x, 0.0, robot.feet().z - from.z);
            (robot.feet().y - from.y).abs() < 0.5
                && flat.length() < 0.8
                && to.normalize().dot(way) > 0.4
        };
        let moved = robot.feet().distance(self.last);
        self.stuck = if moved < 0.005 && command.forward != 0 {
            self.stuck + 1
        } else {
            0
        };
        self.last = robot.feet();
        let links = level.jump_links.iter().find(before).is_some();
        let wants = command.forward != 0 && (links || self.stuck > 40);
        Command {
            jump: wants && frame.time.tick.0 % 4 < 2,
            ..command
        }
    }
}

fn is_done(table: &Table, objective: &Objective) -> bool {
    let robots = [table.robot(0), table.robot(1)];
    match &objective.until {
        Until::Active { device } => table.active(device),
        Until::AllIn { area } => robots
            .iter()
            .all(|robot| area.contains(robot.feet() + Vec3::Y * 0.1)),
        Until::AnyIn { area } => robots
            .iter()
            .any(|robot| area.contains(robot.feet() + Vec3::Y * 0.1)),
        Until::Checkpoint { number } => table.stage.round().checkpoint >= *number,
        Until::Over => table.stage.outcome().is_some(),
    }
}

#[test]
fn the_level_can_be_walked_to_its_end() {
    let mut level = Level::escape();
    level.enemies.clear();
    level.swarms.clear();
    level.boss = None;
    let copy = level.clone();
    let mut table = Table::near(level, 2);
    table.begin();
    let mut walkers = [Walker::default(), Walker::default()];
    let mut objective = 0;
    let mut since = table.stage.tick().0;
    let start = since;
    while table.stage.outcome().is_none() {
        let now = table.now;
        for guest in &mut table.guests {
            guest.player.frame(now);
        }
        table.step(&mut |slot, player: &mut Player| {
            walkers[slot].act(&copy, slot, objective, player.last_frame())
        });
        let tick = table.stage.tick().0;
        if copy
            .objectives
            .get(objective)
            .is_some_and(|goal| is_done(&table, goal))
        {
            println!(
                "FIGURE {:5.1} s: {}",
                f64::from(tick - start) / 50.0,
                copy.objectives[objective].name
            );
            (objective, since) = (objective + 1, tick);
        }
        let stuck = tick - since > 3_000;
        assert!(
            !stuck,
            "stuck at {:?}: {:?} and {:?}, deaths {:?}",
            copy.objectives.get(objective).map(|goal| &goal.name),
            table.robot(0),
            table.robot(1),
            &table.stage.round().deaths[..2]
        );
    }
    assert_eq!(table.stage.round().phase, Phase::Won);
    assert_eq!(objective + 1, copy.objectives.len().max(objective + 1));
    let seconds = f64::from(table.stage.tick().0 - start) / 50.0;
    println!("FIGURE walked in {seconds:.0} s");
}
