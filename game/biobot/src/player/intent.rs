//! The input of a player, less what their own robot cannot do now.
//!
//! The rules pass over a jump in the air, a shot of a weapon that cools down or a use of nothing. An honest client knows as much from its own
//! prediction, and does not send them: so they say something about who does, and they need no bytes.

use muse::netcode::Tick;
use muse::netcode::prediction::{StepContext, run_step};

use crate::command::Command;
use crate::movement::{Movement, place_of};
use crate::rules::{Rules, Surroundings};
use crate::states::Robot;

/// The memory from one tick to the next.
#[derive(Debug)]
pub(super) struct Intent {
    /// To see what a command leads to.
    scout: Rules,
    movement: Movement,
    everything: bool,
    jump_pressed: bool,
    /// This press of jump came in the air and counts for nothing.
    jump_void: bool,
}

impl Intent {
    pub(super) const fn new(scout: Rules) -> Self {
        Self {
            scout,
            movement: Movement::Server,
            everything: false,
            jump_pressed: false,
            jump_void: false,
        }
    }

    /// Sends what leads to nothing all the same, if true.
    pub(super) const fn set_everything(&mut self, everything: bool) {
        self.everything = everything;
    }

    pub(super) const fn set_movement(&mut self, movement: Movement) {
        self.movement = movement;
    }

    pub(super) const fn surroundings_mut(&mut self) -> &mut Surroundings {
        &mut self.scout.surroundings
    }

    /// The command of a tick for a robot that is like this before it; the robot goes on with it.
    pub(super) fn command(
        &mut self,
        tick: Tick,
        pressed: Command,
        robot: Option<&mut Robot>,
    ) -> Command {
        let Some(robot) = robot else {
            return pressed.snapped();
        };
        let mut command = match self.everything {
            true => pressed.snapped(),
            false => self.possible(tick, pressed, robot).snapped(),
        };
        let shots = robot.shots;
        let moves = self.movement == Movement::Validated;
        if moves || command.fire {
            self.foresee(tick, &command, robot);
        }
        let says = moves || robot.shots != shots;
        command.place = pressed.place.or_else(|| says.then(|| place_of(robot)));
        command.snapped()
    }

    /// Without what would lead to nothing.
    fn possible(&mut self, tick: Tick, mut command: Command, robot: &Robot) -> Command {
        let pressed = command.jump && !self.jump_pressed;
        self.jump_pressed = command.jump;
        self.jump_void = command.jump && (self.jump_void || (pressed && robot.standing == 0));
        command.jump &= !self.jump_void;
        if !robot.alive() {
            command.jump = false;
            command.fire = false;
            command.reload = false;
            command.use_ = false;
            command.weapon = 0;
            return command;
        }
        if command.weapon != 0 && !robot.owns(command.weapon) {
            command.weapon = 0;
        }
        // Where there is a ball, use is a kick; whether it meets the ball is seen when it does.
        let kicks = self.scout.level().kick_off.is_some();
        command.use_ = command.use_ && (kicks || self.scout.usable(robot, tick).is_some());
        command.fire &= can_fire(robot, tick, FIRE_AFTER);
        command
    }

    fn foresee(&mut self, tick: Tick, command: &Command, robot: &mut Robot) {
        let raise = &mut |_| ();
        let mut context = StepContext::new(tick, false, raise);
        run_step(&mut self.scout, robot, command, &mut context);
    }
}

/// True if a robot's weapon fires at a tick or one later, or has fired so many ticks before at most: where prediction was wrong by as
/// much, the shot is not lost.
pub(crate) fn can_fire(robot: &Robot, tick: Tick, after: u32) -> bool {
    let soon = tick.0 + 1;
    let fired = robot.shots > 0 && tick.0 <= robot.kicked.saturating_add(after);
    (fired || robot.ready <= soon) && robot.reload <= soon
}

/// Ticks after a shot in which the trigger is still sent.
const FIRE_AFTER: u32 = 3;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Level;

    #[test]
    fn what_leads_to_nothing_is_not_sent() {
        let level = Arc::new(Level::escape());
        let mut intent = Intent::new(Rules::new(Arc::clone(&level)));
        let mut robot = Robot::new(0, level.spawns[0].at, 0.0);
        let all = Command {
            jump: true,
            fire: true,
            use_: true,
            weapon: 4,
            ..Command::default()
        };
        robot.ready = 100;
        let sent = intent.command(Tick(50), all, Some(&mut robot));
        assert_eq!(
            sent,
            Command::default(),
            "in the air, cooling, far from all"
        );
        robot.standing = 1;
        let sent = intent.command(Tick(51), all, Some(&mut robot));
        assert!(!sent.jump, "pressed in the air, and held since");
        intent.command(Tick(52), Command::default(), Some(&mut robot));
        assert!(intent.command(Tick(99), all, Some(&mut robot)).jump);
        robot.standing = 1;
        let sent = intent.command(Tick(100), all, Some(&mut robot));
        assert!(sent.fire && sent.place.is_some(), "it fires from somewhere");
        robot.health = 0;
        let sent = intent.command(Tick(101), all, Some(&mut robot));
        assert_eq!(sent, Command::default());
    }
}
