//! Settings of a match, the same on every machine.

use muse_schema::fnv1a;
use muse_wire::Duration;
use thiserror::Error;

use crate::diff::is_lossless;
use crate::frame::SEATS_MAX;
use crate::game::DeterministicGame;

/// The mode of a match: machines wait for each other's commands, or guess them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Commands run `delay` turns after they were given, when those of everybody are there.
    Lockstep,
    /// Nobody waits: missing inputs are guessed, and wrong guesses are rolled back.
    Rollback,
}

/// The orderer's rule for a player whose input is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Everybody waits, in rollback once the window is used up.
    Wait,
    /// The packet server's rule: this long after everybody else's input has arrived, [`DeterministicGame::predict`] stands in for the missing
    /// one. Only the late player suffers.
    Repeat {
        /// Time to wait for the missing input after everybody else's has arrived.
        after: Duration,
    },
}

/// Settings of a match. [`MatchConfig::lockstep`] and [`MatchConfig::rollback`] are where to begin.
///
/// All machines of a match and its server must have the same settings; a machine with others is refused.
///
/// ```
/// use muse_lockstep::MatchConfig;
/// let duel = MatchConfig::rollback(2).delay(1);
/// let strategy = MatchConfig::lockstep(8);
/// assert_eq!((duel.delay_frames(), strategy.delay_frames()), (1, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchConfig {
    pub(crate) mode: Mode,
    pub(crate) seats: u8,
    pub(crate) begins_with: u8,
    pub(crate) frame: Duration,
    pub(crate) delay: u32,
    pub(crate) window: u32,
    pub(crate) history: u32,
    pub(crate) save_every: u32,
    pub(crate) check_every: u32,
    pub(crate) late: Late,
    pub(crate) drop_after: Duration,
    pub(crate) turn_max: Duration,
    pub(crate) state_bytes_max: usize,
    pub(crate) spectators_max: usize,
}

/// Settings that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchConfigError {
    /// No seats, more than [`SEATS_MAX`], or more at the beginning than there are.
    #[error("a match has 1 to {SEATS_MAX} seats, and begins with at most all of them taken")]
    Seats,
    /// A frame that takes no time, or longer than a turn may.
    #[error("a frame takes between 1 ms and the longest turn")]
    Frame,
    /// More delay or window than there is history.
    #[error(
        "the history must be longer than the window and the delay, and at most {HISTORY_MAX} frames"
    )]
    History,
    /// The state's encoding rounds floats.
    #[error(
        "a field of the state is rounded to steps, so that no machine could be given the exact state"
    )]
    Lossy,
}

impl MatchConfig {
    /// Lockstep: steps of 50 ms, turns of four steps to begin with, a delay of 2 turns.
    pub fn lockstep(seats: u8) -> Self {
        Self {
            mode: Mode::Lockstep,
            frame: Duration::from_millis(50),
            delay: 2,
            window: 0,
            check_every: 1,
            ..Self::rollback(seats)
        }
    }

    /// Rollback: 60 frames a second, a delay of 2 frames, states of 5 s.
    pub fn rollback(seats: u8) -> Self {
        Self {
            mode: Mode::Rollback,
            seats,
            begins_with: seats,
            frame: Duration::from_micros(16_667),
            delay: 2,
            window: 300,
            history: 512,
            save_every: 1,
            check_every: 6,
            late: Late::Wait,
            drop_after: Duration::from_secs(10),
            turn_max: Duration::from_secs(1),
            state_bytes_max: 1024 * 1024,
            spectators_max: 16,
        }
    }

    /// Returns the delay.
    pub fn delay_frames(&self) -> u32 {
        self.delay
    }

    /// Returns the length of a step.
    pub fn frame_duration(&self) -> Duration {
        self.frame
    }

    /// Returns the mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the number of seats.
    pub fn seats(&self) -> usize {
        usize::from(self.seats)
    }

    /// Checks compare states that were saved.
    pub(crate) fn check_interval(&self) -> u32 {
        self.check_every.next_multiple_of(self.save_every)
    }

    pub(crate) fn check(&self) -> Result<(), MatchConfigError> {
        let seats = usize::from(self.seats);
        if seats == 0 || seats > SEATS_MAX || self.begins_with > self.seats || self.begins_with == 0
        {
            return Err(MatchConfigError::Seats);
        }
        if self.frame < Duration::from_millis(1) || self.frame > self.turn_max {
            return Err(MatchConfigError::Frame);
        }
        let needed = self.window.max(self.delay).max(self.check_interval());
        if needed >= self.history || self.history > HISTORY_MAX || self.delay > DELAY_MAX {
            return Err(MatchConfigError::History);
        }
        Ok(())
    }

    /// [`check`](Self::check) for this game.
    pub(crate) fn check_for<G: DeterministicGame>(&self) -> Result<(), MatchConfigError> {
        if !is_lossless(&G::TYPE) {
            return Err(MatchConfigError::Lossy);
        }
        self.check()
    }

    /// A number that tells whether two sides play the same game by the same rules.
    pub fn contract<G: DeterministicGame>(&self) -> u64 {
        fnv1a(self.describe::<G>().as_bytes())
    }

    /// Returns everything that all machines of a match must share, a line each.
    pub fn describe<G: DeterministicGame>(&self) -> String {
        format!(
            "lockstep version {PROTOCOL_VERSION}\nstate type {}\ninput type {}\nmatch mode {:?}\nmatch seats {}\nframe length {} us\n\
             input delay {}\ncheck interval {}\n",
            G::TYPE,
            <G::Input as muse_schema::Schema>::TYPE,
            self.mode,
            self.seats,
            self.frame.as_micros(),
            self.delay,
            self.check_interval(),
        )
    }
}

muse_wire::setters! { MatchConfig:
    /// Sets the number of players with whom the match begins. Default: all seats. The other seats are for those who join later.
    begins_with: u8,

    /// Sets the length of a step. Default: 16.667 ms in rollback, 50 ms in lockstep, where speed control makes it longer for machines
    /// that cannot keep up.
    frame: Duration,

    /// Frames (rollback) or turns (lockstep) between giving a command and its running. Default: 2. In rollback it is where each
    /// machine starts; [`Session::set_delay`](crate::Session::set_delay) changes it for one player. More delay, fewer rollbacks.
    delay: u32,

    /// Frames that rollback may guess ahead before it waits. Default: 300, 5 s. Each costs a step when it was wrong.
    window: u32,

    /// Saved frames: what rollback returns to, and the trace of a desynchronisation. Default: 512. Costs that many states of memory.
    history: u32,

    /// Saves only every n-th frame. Default: 1. For states that are expensive to save: costs up to n - 1 steps more in a rollback.
    save_every: u32 = save_every.max(1),

    /// Compares checksums every n-th frame, rounded up to saved ones. Default: 6 in rollback (100 ms), 1 in lockstep. Costs an encoding
    /// of the state and some 20 bytes.
    check_every: u32 = check_every.max(1),

    /// Sets the rule for late players. Default: wait.
    late: Late,

    /// Sets the silence after which a player is dropped. Default: 10 s.
    drop_after: Duration,

    /// The longest turn that speed control may choose. Default: 1 s.
    turn_max: Duration,

    /// Largest encoding of a state that travels. Default: 1 MiB.
    state_bytes_max: usize = state_bytes_max.min(crate::game::STATE_BYTES_LIMIT),

    /// Sets the number of spectators at once. Default: 16.
    spectators_max: usize = spectators_max.min(256),
}

/// Raised when packets change.
pub(crate) const PROTOCOL_VERSION: u8 = 1;
/// Frames of history that a match can have.
pub const HISTORY_MAX: u32 = 4_096;
/// Longest delay, in frames or turns.
pub const DELAY_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        assert_eq!(MatchConfig::rollback(2).check(), Ok(()));
        assert_eq!(MatchConfig::lockstep(8).check(), Ok(()));
        assert_eq!(
            MatchConfig::lockstep(0).check(),
            Err(MatchConfigError::Seats)
        );
        assert_eq!(
            MatchConfig::lockstep(17).check(),
            Err(MatchConfigError::Seats)
        );
        assert_eq!(
            MatchConfig::rollback(2).history(100).check(),
            Err(MatchConfigError::History)
        );
        let still = MatchConfig::rollback(2).frame(Duration::ZERO);
        assert_eq!(still.check(), Err(MatchConfigError::Frame));
    }
}
