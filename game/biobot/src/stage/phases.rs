//! The phases of a match: it waits, loads, is played, ends.

use glam::Vec3;

use super::{Audience, Outcome, Stage};
use crate::messages::{Line, ToPlayer};
use crate::states::{Mode, Phase};

impl Stage {
    pub(super) fn enter(&mut self, phase: Phase, ticks: u32) {
        self.round.phase = phase;
        self.round.since = self.tick.0;
        self.round.ends = match ticks {
            0 => 0,
            ticks => self.tick.0 + ticks,
        };
    }

    pub(super) fn tick_phase(&mut self) {
        let all = self.seats.len();
        let (present, loaded) = self.present();
        let late = self.round.ends != 0 && self.tick.0 >= self.round.ends;
        match self.round.phase {
            Phase::Waiting if present == all => self.enter(Phase::Loading, WAIT_TICKS),
            Phase::Waiting if late && (self.config.cancels || present == 0) => self.cancel(),
            Phase::Waiting if late => self.enter(Phase::Loading, WAIT_TICKS),
            Phase::Loading if present == 0 => self.cancel(),
            Phase::Loading if loaded == present && (present == all || !self.config.cancels) => {
                self.begin();
            }
            Phase::Loading if late && self.config.cancels => self.cancel(),
            Phase::Loading if late => self.begin(),
            Phase::Playing => self.tick_playing(late),
            _ => {}
        }
    }

    /// The match begins: from the checkpoint that all players have unlocked, or at the spawns.
    fn begin(&mut self) {
        let ticks = match self.round.mode {
            Mode::Cooperative => 0,
            Mode::Versus | Mode::Ball => self.config.play_ticks,
        };
        self.enter(Phase::Playing, ticks);
        let taken = self.seats.iter().filter(|seat| seat.id.is_some());
        let unlocked = taken.map(|seat| seat.checkpoint).min().unwrap_or(0);
        self.round.checkpoint = unlocked;
        self.open_until(unlocked);
        for there in self.robots() {
            let mut robot = there.robot;
            robot.checkpoint = unlocked;
            self.place(&mut robot);
            self.set_robot(there.entity, &robot);
        }
        self.serve();
    }

    fn tick_playing(&mut self, late: bool) {
        self.tick_seats();
        if self.round.phase != Phase::Playing {
            return;
        }
        match self.round.mode {
            Mode::Cooperative => {
                self.check_checkpoints();
                if self.has_escaped() {
                    self.finish(Phase::Won);
                }
            }
            Mode::Versus => {
                let most = self.round.kills.iter().max().copied().unwrap_or(0);
                if late || most >= self.config.kills_to_win {
                    self.finish(Phase::Over);
                }
            }
            Mode::Ball => {
                self.check_goals();
                let most = self.round.goals.into_iter().max().unwrap_or(0);
                if late || most >= self.config.goals_to_win {
                    self.finish(Phase::Over);
                }
            }
        }
    }

    /// The farthest checkpoint that anybody has reached counts for all.
    fn check_checkpoints(&mut self) {
        let robots = self.robots();
        let reached = self
            .level
            .checkpoints
            .iter()
            .enumerate()
            .skip(usize::from(self.round.checkpoint) + 1)
            .filter(|(_, checkpoint)| {
                let inside = |feet: Vec3| checkpoint.area.contains(feet + Vec3::Y * 0.1);
                robots
                    .iter()
                    .any(|there| there.robot.alive() && inside(there.robot.feet()))
            })
            .map(|(index, _)| index as u8)
            .next_back();
        let Some(reached) = reached else {
            return;
        };
        self.round.checkpoint = reached;
        for there in robots {
            let mut robot = there.robot;
            robot.checkpoint = reached;
            let slot = usize::from(robot.slot);
            self.round.points[slot] = self.round.points[slot].saturating_add(CHECKPOINT_POINTS);
            self.set_robot(there.entity, &robot);
            self.tell_progress(slot);
        }
    }

    /// Tells a player what to save.
    pub(super) fn tell_progress(&mut self, slot: usize) {
        let seat = &self.seats[slot];
        let (Some(client), Some(entity)) = (seat.client, seat.robot) else {
            return;
        };
        let robot = self.server.world().state(self.kinds.robot, entity);
        let progress = ToPlayer::Progress {
            checkpoint: self.round.checkpoint,
            owned: robot.map_or(0, |robot| robot.owned),
        };
        self.tell(Audience::One(client), progress);
    }

    /// Everyone who still plays is alive and at the exit.
    fn has_escaped(&self) -> bool {
        let Some(exit) = &self.level.exit else {
            return false;
        };
        let robots = self.robots();
        let out = |feet: Vec3| exit.contains(feet + Vec3::Y * 0.1);
        !robots.is_empty()
            && robots
                .iter()
                .all(|there| there.robot.alive() && out(there.robot.feet()))
    }

    fn cancel(&mut self) {
        self.conclude(Phase::Over, true);
    }

    pub(super) fn finish(&mut self, phase: Phase) {
        self.conclude(phase, false);
    }

    fn conclude(&mut self, phase: Phase, cancelled: bool) {
        if self.outcome.is_some() {
            return;
        }
        let ticks = match cancelled {
            true => 0,
            false => self.tick.0 - self.round.since,
        };
        if phase == Phase::Won {
            self.award_speed(ticks);
        }
        if self.round.mode == Mode::Ball && !cancelled {
            self.award_team();
        }
        self.enter(phase, 0);
        let line = |slot: usize| Line {
            slot: slot as u8,
            points: self.round.points[slot],
            kills: self.round.kills[slot],
            deaths: self.round.deaths[slot],
        };
        let taken = self.seats.iter().filter(|seat| seat.id.is_some());
        let mut table: Vec<Line> = taken.map(|seat| line(usize::from(seat.slot))).collect();
        table.sort_by_key(|line| (-line.points, line.deaths, line.slot));
        let message = ToPlayer::Result {
            phase,
            table: table.clone(),
        };
        self.tell(Audience::Everyone, message);
        self.outcome = Some(Outcome {
            phase,
            cancelled,
            ticks,
            table,
        });
    }

    /// Awards more to those who are out sooner.
    fn award_speed(&mut self, ticks: u32) {
        let minutes_left = 20_i32 - (ticks / (60 * crate::TICKS_PER_SECOND)) as i32;
        let bonus = (WON_POINTS + minutes_left.max(0) * 50) as i16;
        for slot in 0..self.seats.len() {
            if self.seats[slot].id.is_some() {
                self.round.points[slot] = self.round.points[slot].saturating_add(bonus);
            }
        }
    }
}

/// Ticks that a match waits for players to come, and for them to load: 10 s each.
pub(super) const WAIT_TICKS: u32 = 10 * crate::TICKS_PER_SECOND;
const CHECKPOINT_POINTS: i16 = 100;
const WON_POINTS: i32 = 1_000;
