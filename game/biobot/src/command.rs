//! The input of a player for one tick, as prediction takes it.

use muse::netcode::Claim;
use muse::schema::{BitReader, BitWriter, Options, Schema};

/// The input of a player for one tick. Jumping, firing, reloading and using are actions of their own; where to is said by the look.
///
/// ```
/// use muse_biobot::Command;
/// let run = Command { forward: 1, yaw: 0.5, ..Command::default() };
/// // What the server will read of it, and what must therefore be predicted with.
/// let travelled = run.snapped();
/// assert!((travelled.yaw - 0.5).abs() < 0.002);
/// assert_eq!(travelled.snapped(), travelled);
/// ```
#[derive(Schema, Clone, Copy, Debug, Default, PartialEq)]
pub struct Command {
    /// 1 ahead, -1 back.
    #[field(range = -1..=1)]
    pub forward: i8,
    /// 1 to the right, -1 to the left.
    #[field(range = -1..=1)]
    pub right: i8,
    /// Jump, once for each time that it is pressed.
    pub jump: bool,
    /// Fire, as fast as the weapon can.
    pub fire: bool,
    /// Aim down the sights.
    pub aim: bool,
    /// Reload.
    pub reload: bool,
    /// Use what is near: levers and buttons; hold it for what has to be held.
    pub use_: bool,
    /// The weapon to take, 1 to 4; 0 keeps the one in hand.
    #[field(range = 0..=4)]
    pub weapon: u8,
    /// The direction of the look: 0 along -z, growing to the left.
    #[field(angle = 12)]
    pub yaw: f32,
    /// Up is positive.
    #[field(range = -1.55..=1.55, step = 0.002)]
    pub pitch: f32,
    /// The picture that was on the screen, for shots to be judged by; when firing.
    pub claim: Option<Claim>,
    /// The place of the player's own robot after this tick. With a shot it says from where; where players move themselves
    /// ([`Movement::Validated`](crate::Movement)) it is in every command.
    pub place: Option<Place>,
}

/// The place where a robot says that it is, on the grid of [`Robot`](crate::Robot).
#[derive(Schema, Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Its feet.
    #[field(range = -128.0..=128.0, step = 0.001_953_125)]
    pub position: [f32; 3],
    /// Metres a second.
    #[field(range = -64.0..=64.0, step = 0.05)]
    pub velocity: [f32; 3],
    /// The thing that it stands on.
    pub standing: u8,
    /// The life in which it is there: who has been put elsewhere meanwhile is not there any more.
    pub lives: u8,
}

impl Command {
    /// The command as the other side reads it: within its ranges and on its grid. Both sides must simulate with this.
    #[must_use]
    pub fn snapped(mut self) -> Self {
        self.forward = self.forward.clamp(-1, 1);
        self.right = self.right.clamp(-1, 1);
        if self.weapon > 4 {
            self.weapon = 0;
        }
        let finite = |place: &Place| {
            let numbers = place.position.iter().chain(&place.velocity);
            numbers.copied().all(f32::is_finite)
        };
        self.place = self.place.filter(finite);
        for angle in [&mut self.yaw, &mut self.pitch] {
            if !angle.is_finite() {
                *angle = 0.0;
            }
        }
        if !self.fire {
            self.claim = None;
        }
        let mut bytes = [0; BYTES_MAX];
        let mut writer = BitWriter::new(&mut bytes);
        if self.write(&Options::NONE, &mut writer).is_err() {
            return Self::default();
        }
        writer.finish();
        Self::read(&Options::NONE, &mut BitReader::new(&bytes)).unwrap_or_default()
    }
}

/// Longest encoding of a command.
const BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_becomes_something_that_travels() {
        let wild = Command {
            forward: 100,
            right: -100,
            weapon: 200,
            yaw: f32::NAN,
            pitch: f32::INFINITY,
            ..Command::default()
        };
        let tame = wild.snapped();
        assert_eq!((tame.forward, tame.right, tame.weapon), (1, -1, 0));
        assert_eq!((tame.yaw, tame.pitch), (0.0, 0.0));
        assert_eq!(tame.snapped(), tame);
    }

    #[test]
    fn a_claim_travels_with_fire_only() {
        let claim = Some(Claim::at(muse::netcode::TickTime::from_ticks(7.5)));
        let idle = Command {
            claim,
            ..Command::default()
        };
        assert_eq!(idle.snapped().claim, None);
        let fire = Command { fire: true, ..idle };
        assert_eq!(fire.snapped().claim, claim);
    }
}
