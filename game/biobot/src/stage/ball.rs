//! The ball of a match: goals and kick-offs. It moves with the robots, by [`Rules`](crate::Rules).

use muse::schema::State;

use super::{Audience, Stage};
use crate::messages::ToPlayer;
use crate::states::{Ball, team_of};

impl Stage {
    /// The ball, if there is one.
    pub fn ball(&self) -> Option<Ball> {
        self.server.world().state(self.kinds.ball, self.ball?)
    }

    /// When the ball has been put back after a goal, everybody is.
    pub(super) fn follow_kick_offs(&mut self) {
        let serves = self.ball().map_or(self.serves, |ball| ball.serves);
        if serves != self.serves {
            self.serves = serves;
            for there in self.robots() {
                let mut robot = there.robot;
                self.place(&mut robot);
                self.set_robot(there.entity, &robot);
            }
        }
    }

    /// Puts the ball back for the first kick-off.
    pub(super) fn serve(&mut self) {
        let (Some(old), Some(fresh)) = (self.ball(), self.rules.kick_off()) else {
            return;
        };
        self.serves = old.serves.wrapping_add(1);
        let serves = self.serves;
        self.set_ball(&Ball { serves, ..fresh });
    }

    /// Counts a goal once: the ball is out of play from then until it is put back.
    pub(super) fn check_goals(&mut self) {
        let Some(mut ball) = self.ball().filter(|ball| ball.restart == 0) else {
            return;
        };
        let middle = ball.middle();
        let mut goals = self.level.goals.iter();
        let Some(goal) = goals.find(|goal| goal.area.contains(middle)) else {
            return;
        };
        let team = 1 - goal.team;
        let round = &mut self.round;
        let count = &mut round.goals[usize::from(team)];
        *count = count.saturating_add(1);
        let scorer = ball.last_touch();
        if let Some(slot) = scorer.map(usize::from) {
            let own = team_of(slot as u8) != team;
            let (points, tally) = match own {
                false => (GOAL_POINTS, &mut round.kills[slot]),
                true => (-OWN_GOAL_POINTS, &mut round.deaths[slot]),
            };
            *tally = tally.saturating_add(1);
            round.points[slot] = round.points[slot].saturating_add(points);
        }
        let goals = round.goals;
        ball.restart = self.tick.0 + RESTART_TICKS;
        self.set_ball(&ball);
        let told = ToPlayer::Goal {
            team,
            scorer,
            goals,
        };
        self.tell(Audience::Everyone, told);
    }

    /// Every player of the team that won is before every player of the other.
    pub(super) fn award_team(&mut self) {
        let [first, second] = self.round.goals;
        if first == second {
            return;
        }
        let winner = u8::from(second > first);
        for seat in self.seats.iter().filter(|seat| seat.id.is_some()) {
            if team_of(seat.slot) == winner {
                let points = &mut self.round.points[usize::from(seat.slot)];
                *points = points.saturating_add(WON_POINTS);
            }
        }
    }

    fn set_ball(&mut self, ball: &Ball) {
        if let Some(entity) = self.ball {
            debug_assert_eq!(*ball, ball.snapped(), "the ball is on its grid");
            // It was spawned with the match, and stays.
            let _ = self.server.world_mut().set(self.kinds.ball, entity, ball);
        }
    }
}

/// Ticks from a goal to the next kick-off: 2 s.
const RESTART_TICKS: u32 = 2 * crate::TICKS_PER_SECOND;
const GOAL_POINTS: i16 = 100;
const OWN_GOAL_POINTS: i16 = 50;
const WON_POINTS: i16 = 1_000;
