//! The cost of being wrong: eight robots crowd around the ball and change their minds all the time, so that every snapshot contradicts what one of
//! them had predicted.

use muse::netcode::PacketError;
use muse::wire::{Duration, Instant};
use muse_netem::Conditions;

use super::{Seats, Table, ball_match};
use crate::weapons::angles;
use crate::{Command, Phase, Player};

/// A correction that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RollbackCost {
    /// Ticks that were simulated again.
    pub ticks: u32,
    /// Entities that were predicted besides the player's own robot.
    pub others: u32,
    /// The time that [`Player::handle_packet`] took, in the clock's own unit.
    pub time: f64,
}

impl RollbackCost {
    /// True if everybody and the ball were simulated again, for [`Rollback::TICKS`].
    pub const fn is_whole(&self) -> bool {
        self.ticks == Rollback::TICKS && self.others == 8
    }
}

/// A match of eight around the ball, of which one player's corrections are timed.
///
/// ```
/// use muse_biobot::table::Rollback;
/// let mut calls = 0.0;
/// let clock = &mut || { calls += 1.0; calls };
/// let costs = Rollback::new(1).measure(2, clock);
/// assert!(costs.iter().all(|cost| cost.time == 1.0));
/// assert!(costs.iter().any(|cost| cost.is_whole()));
/// ```
#[derive(Debug)]
pub struct Rollback {
    table: Table,
    rng: fastrand::Rng,
}

impl Rollback {
    /// Ticks of the rollbacks that count: the way there and back that the match is played over takes as many.
    pub const TICKS: u32 = 12;

    /// A match that has begun, from a seed.
    pub fn new(seed: u64) -> Self {
        let network = Conditions::default().delay(DELAY);
        let mut game = Self {
            table: Table::new(ball_match(seed), 8, network, seed),
            rng: fastrand::Rng::with_seed(seed),
        };
        let playing = |table: &Table| table.stage.round().phase == Phase::Playing;
        for _ in 0..BEGIN_STEPS_MAX {
            if playing(&game.table) {
                break;
            }
            game.table.step(&mut |_, _| Command::default());
        }
        // Until everybody has reached the ball.
        game.measure(4, &mut || 0.0);
        game
    }

    /// Lets so many seconds pass, and returns what the corrections of the first player cost by this clock.
    pub fn measure(&mut self, seconds: u32, clock: &mut dyn FnMut() -> f64) -> Vec<RollbackCost> {
        let mut crowd = Crowd {
            clock,
            rng: &mut self.rng,
            commands: [Command::default(); 8],
            costs: Vec::new(),
        };
        for _ in 0..seconds * 200 {
            self.table.step_with(&mut crowd);
        }
        crowd.costs
    }
}

struct Crowd<'a> {
    clock: &'a mut dyn FnMut() -> f64,
    rng: &'a mut fastrand::Rng,
    commands: [Command; 8],
    costs: Vec<RollbackCost>,
}

impl Seats for Crowd<'_> {
    /// Towards the ball and past it, another way every few ticks.
    fn command(&mut self, now: Instant, index: usize, player: &mut Player) -> Command {
        if !self.rng.u32(..).is_multiple_of(MIND_STEPS) {
            return self.commands[index];
        }
        let frame = player.frame(now);
        let (Some(own), Some(ball)) = (&frame.own, &frame.ball) else {
            return Command::default();
        };
        let (yaw, pitch) = angles(ball.ball.middle() - own.robot.eye());
        let command = Command {
            forward: 1,
            right: self.rng.i8(-1..=1),
            jump: self.rng.u32(..).is_multiple_of(8),
            use_: self.rng.u32(..).is_multiple_of(8),
            yaw: yaw + self.rng.f32() - 0.5,
            pitch,
            ..Command::default()
        };
        self.commands[index] = command;
        command
    }

    fn deliver(
        &mut self,
        now: Instant,
        index: usize,
        player: &mut Player,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        if index != 0 {
            return player.handle_packet(now, bytes);
        }
        let before = player.client().prediction();
        let began = (self.clock)();
        let result = player.handle_packet(now, bytes);
        let time = (self.clock)() - began;
        let after = player.client().prediction();
        let ticks = (after.steps_again - before.steps_again) as u32;
        if ticks > 0 {
            self.costs.push(RollbackCost {
                ticks,
                others: after.others,
                time,
            });
        }
        result
    }
}

/// The way there, as long as the way back: together with the wait in the server's buffer, what is predicted is twelve ticks ahead.
const DELAY: Duration = Duration::from_millis(115);
/// The steps after which a player changes their mind, on average: every other tick.
const MIND_STEPS: u32 = 8;
/// Steps that a match takes to begin at most.
const BEGIN_STEPS_MAX: u32 = 4_000;
