//! The player's commands as a page sends them: the newest, and presses that ended before a tick saw them.

use muse_biobot::Command;

/// The player's hands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hands {
    now: Command,
    /// Pressed since the last tick.
    pressed: Command,
}

impl Hands {
    /// The newest of the page. `buttons` are jump, fire, aim, reload and use, from bit 0 on.
    pub fn set(&mut self, moves: (i8, i8), buttons: u8, weapon: u8, look: (f32, f32)) {
        let bit = |place: u8| buttons & (1 << place) != 0;
        self.now = Command {
            forward: moves.0.clamp(-1, 1),
            right: moves.1.clamp(-1, 1),
            jump: bit(0),
            fire: bit(1),
            aim: bit(2),
            reload: bit(3),
            use_: bit(4),
            weapon: if weapon <= 4 { weapon } else { 0 },
            yaw: finite(look.0),
            pitch: finite(look.1).clamp(-PITCH_MAX, PITCH_MAX),
            ..Command::default()
        };
        self.pressed.jump |= self.now.jump;
        self.pressed.fire |= self.now.fire;
        self.pressed.reload |= self.now.reload;
        self.pressed.use_ |= self.now.use_;
        if self.now.weapon != 0 {
            self.pressed.weapon = self.now.weapon;
        }
    }

    /// The command for the next tick.
    pub fn command(&self) -> Command {
        Command {
            jump: self.now.jump || self.pressed.jump,
            fire: self.now.fire || self.pressed.fire,
            reload: self.now.reload || self.pressed.reload,
            use_: self.now.use_ || self.pressed.use_,
            weapon: self.pressed.weapon,
            ..self.now
        }
    }

    /// A tick has taken it.
    pub fn taken(&mut self) {
        self.pressed = Command::default();
    }

    /// Lets go of everything: another match begins, or the page has gone.
    pub fn let_go(&mut self) {
        let (yaw, pitch) = (self.now.yaw, self.now.pitch);
        *self = Self::default();
        (self.now.yaw, self.now.pitch) = (yaw, pitch);
    }
}

fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

/// As far as a robot looks up and down.
const PITCH_MAX: f32 = 1.55;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_press_waits_for_its_tick_and_is_taken_once() {
        let mut hands = Hands::default();
        hands.set((1, 0), 0b1, 3, (0.5, 9.0));
        hands.set((1, 0), 0, 0, (0.6, 0.0));
        let command = hands.command();
        assert!(command.jump && command.weapon == 3 && command.forward == 1);
        assert_eq!(command.yaw, 0.6);
        hands.taken();
        assert!(!hands.command().jump && hands.command().weapon == 0);
        hands.set((9, -9), 0b10, 0, (f32::NAN, -9.0));
        hands.taken();
        let held = hands.command();
        assert!(held.fire, "what is held stays");
        assert_eq!(
            (held.forward, held.right, held.yaw, held.pitch),
            (1, -1, 0.0, -PITCH_MAX)
        );
    }
}
