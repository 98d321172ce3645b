//! The cheats that players try, seen from what they send: see [`cheats`](crate::cheats).

use super::Stage;
use crate::Command;
use crate::cheats::Offence;
use crate::level::REACH;
use crate::player::intent::can_fire;
use crate::states::Robot;

/// A robot as it was before the last tick's step, as far as conduct is judged by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    robot: Option<Robot>,
    /// Ticks in the air, and dead.
    airborne: u32,
    dead: u32,
}

impl Before {
    /// A tick has ended with the robot like this.
    fn remember(&mut self, robot: Option<Robot>) {
        let flies = robot
            .as_ref()
            .is_some_and(|robot| robot.alive() && robot.standing == 0);
        let dead = robot.as_ref().is_some_and(|robot| !robot.alive());
        let lives = |robot: &Option<Robot>| robot.as_ref().map(|robot| robot.lives);
        let same = lives(&self.robot) == lives(&robot);
        self.airborne = if flies && same { self.airborne + 1 } else { 0 };
        self.dead = if dead { self.dead + 1 } else { 0 };
        self.robot = robot;
    }
}

/// The time for which nobody is blamed: when the server itself falls behind, honest inputs come too early and clocks seem to hurry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excuse {
    slipped: u64,
    until: u32,
}

impl Excuse {
    /// True if it holds at a tick, by when the server has let so many ticks go.
    fn holds(&mut self, tick: u32, slipped: u64) -> bool {
        if slipped != self.slipped {
            self.slipped = slipped;
            self.until = tick + EXCUSED_TICKS;
        }
        tick < self.until
    }
}

impl Stage {
    /// Counts what clients have said in this tick that honest ones would not.
    pub(super) fn watch_conduct(&mut self) {
        for (slot, offence) in self.rules.take_refused() {
            if let Some(seat) = self.seats.get_mut(usize::from(slot)) {
                seat.conduct.note(offence);
            }
        }
        let excused = self.excuse.holds(self.tick.0, self.server.slipped());
        for slot in 0..self.seats.len() {
            self.watch_seat(slot, excused);
        }
    }

    /// Remembers what the next tick's commands are judged by.
    pub(super) fn remember_robots(&mut self) {
        for slot in 0..self.seats.len() {
            let entity = self.seats[slot].robot;
            let robot = entity.and_then(|it| self.server.world().state(self.kinds.robot, it));
            self.seats[slot].before.remember(robot);
        }
    }

    fn watch_seat(&mut self, slot: usize, excused: bool) {
        let config = self.config.cheats;
        let seat = &mut self.seats[slot];
        let Some(client) = seat.client else {
            return;
        };
        if let Some(counters) = self.server.input_counters(client) {
            seat.conduct.note_inputs(counters, excused);
        }
        if let Some(rate) = self.server.clock_rate(client) {
            seat.conduct.note_clock(&config, rate, excused);
        }
        if excused {
            return;
        }
        let taken = self.server.input(client);
        let Some(command) = taken
            .filter(|taken| taken.is_received())
            .map(|taken| taken.input())
        else {
            return;
        };
        let Some(offences) = self.tried(slot, &command) else {
            return;
        };
        let second = self.tick.0 / crate::TICKS_PER_SECOND;
        let conduct = &mut self.seats[slot].conduct;
        for offence in offences.into_iter().flatten() {
            conduct.note_unless_forgiven(&config, second, offence);
        }
    }

    /// Returns what the command of this tick wants that cannot be.
    fn tried(&mut self, slot: usize, command: &Command) -> Option<[Option<Offence>; 5]> {
        let seat = &self.seats[slot];
        let before = seat.before.robot.clone()?;
        let (airborne, dead) = (seat.before.airborne, seat.before.dead);
        let now = self.server.world().state(self.kinds.robot, seat.robot?)?;
        let when = |so: bool, offence: Offence| so.then_some(offence);
        if !before.alive() {
            let acts = command.fire || command.use_ || command.jump || command.reload;
            let late = dead > DEAD_TICKS;
            return Some([
                when(acts && late, Offence::ActsWhileDead),
                None,
                None,
                None,
                None,
            ]);
        }
        let jumps = command.jump && !before.jump_held;
        let uses = command.use_ && !before.use_held;
        let fires = command.fire && !can_fire(&before, self.tick, FIRE_AFTER);
        let unowned = command.weapon != 0 && !before.owns(command.weapon);
        Some([
            when(jumps && airborne > AIR_TICKS, Offence::JumpInAir),
            when(uses && self.is_far_from_all(&now), Offence::UseFromAfar),
            when(fires, Offence::FireTooFast),
            when(unowned, Offence::WeaponNotOwned),
            when(self.is_elsewhere(command, &now), Offence::ShotFromElsewhere),
        ])
    }

    /// True if nothing that the robot may use is anywhere near. Kicks at the air are allowed.
    fn is_far_from_all(&self, robot: &Robot) -> bool {
        if self.ball.is_some() {
            return false;
        }
        let reach = REACH + self.config.cheats.place_tolerance_metres();
        let chest = robot.middle();
        let mut usable = self.level.devices.iter().filter(|spec| spec.is_used());
        !usable.any(|spec| spec.allows(robot.slot) && spec.place().distance(chest) <= reach)
    }

    /// True if the command says that the robot is where it is not. If players move themselves that has been judged.
    fn is_elsewhere(&self, command: &Command, robot: &Robot) -> bool {
        let tolerance = self.config.cheats.place_tolerance_metres();
        let place = command.place.filter(|place| place.lives == robot.lives);
        command.fire
            && place.is_some_and(|place| {
                glam::Vec3::from(place.position).distance(robot.feet()) > tolerance
            })
    }
}

/// Ticks after the server has fallen behind in which everything settles: 5 s.
const EXCUSED_TICKS: u32 = 5 * crate::TICKS_PER_SECOND;
/// Ticks off the ground after which no client can still believe that it stands on it.
const AIR_TICKS: u32 = 4;
/// Ticks after which every client knows that its robot is dead.
const DEAD_TICKS: u32 = 50;
/// Ticks after a shot in which triggers are pulled still: one more than clients send.
const FIRE_AFTER: u32 = 4;
