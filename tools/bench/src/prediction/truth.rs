//! The match as the server played it, tick by tick, and who touched the ball.

use std::ops::RangeInclusive;

use glam::Vec3;
use muse_biobot::ball::KICK_REACH;
use muse_biobot::{BALL_RADIUS, Ball, ROBOT_HEIGHT, ROBOT_RADIUS, Robot, Stage};
use muse_netcode::inputs::InputForTick;
use muse_netcode::{ClientId, Tick};

/// Everything that the server said, from a tick on.
#[derive(Default)]
pub(super) struct Truth {
    first: Option<Tick>,
    moments: Vec<Moment>,
}

/// The ball and the robots after a tick.
struct Moment {
    ball: Ball,
    robots: Vec<Robot>,
    /// Slots of players whose input for the tick had not come in time.
    late: Vec<u8>,
}

/// Ticks in which a player touched the ball, one soon after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) slot: u8,
    pub(super) ticks: RangeInclusive<u32>,
}

impl Truth {
    /// The stage has made a tick.
    pub(super) fn note(&mut self, stage: &Stage, clients: &[ClientId]) {
        let Some(ball) = stage.ball() else {
            return;
        };
        let world = stage.server().world();
        let kind = stage.kinds().robot;
        let robots = world
            .entities()
            .filter_map(|entity| world.state(kind, entity));
        let is_late = |(_, client): &(u8, &ClientId)| {
            let input = stage.server().input(**client);
            !matches!(input, Some(InputForTick::Received(_)))
        };
        self.first.get_or_insert(stage.tick());
        self.moments.push(Moment {
            ball,
            robots: robots.collect(),
            late: (0..)
                .zip(clients)
                .filter(is_late)
                .map(|(slot, _)| slot)
                .collect(),
        });
    }

    /// True if the robot of a slot was close enough to the ball to touch it after one of these ticks.
    pub(super) fn in_contact(&self, slot: u8, ticks: RangeInclusive<u32>, within: f32) -> bool {
        ticks.filter_map(|tick| self.at(tick)).any(|moment| {
            let own = moment.robots.iter().find(|robot| robot.slot == slot);
            own.is_none_or(|own| gap(own, &moment.ball) <= within)
        })
    }

    /// True if an input of a player had not come in time for one of these ticks.
    pub(super) fn was_late(&self, slot: u8, ticks: RangeInclusive<u32>) -> bool {
        let mut moments = ticks.filter_map(|tick| self.at(tick));
        moments.any(|moment| moment.late.contains(&slot))
    }

    /// True if anybody but the player of a slot was within so many metres of the ball after one of these ticks.
    pub(super) fn others_near(&self, slot: u8, ticks: RangeInclusive<u32>, within: f32) -> bool {
        ticks.filter_map(|tick| self.at(tick)).any(|moment| {
            let mut others = moment.robots.iter().filter(|robot| robot.slot != slot);
            others.any(|robot| robot.middle().distance(moment.ball.middle()) < within)
        })
    }

    /// True if anybody but the player of a slot touched the ball in one of these ticks.
    pub(super) fn others_touch(&self, slot: u8, mut ticks: RangeInclusive<u32>) -> bool {
        ticks.any(|tick| self.toucher(tick).is_some_and(|toucher| toucher != slot))
    }

    /// Metres a second by which the ball's velocity after a tick was another than this ball's; `None` if the server put it elsewhere.
    pub(super) fn speed_change(&self, tick: Tick, ball: &Ball) -> Option<f32> {
        let truth = &self.at(tick.0)?.ball;
        (truth.serves == ball.serves).then(|| speed_change(ball, truth))
    }

    /// Returns the touches of everybody, in the order of time for each.
    pub(super) fn touches(&self) -> Vec<Touch> {
        let Some(first) = self.first else {
            return Vec::new();
        };
        let mut touches: Vec<Touch> = Vec::new();
        for tick in (first.0 + 1)..(first.0 + self.moments.len() as u32) {
            let Some(slot) = self.toucher(tick) else {
                continue;
            };
            let mut known = touches.iter_mut().rev();
            match known.find(|touch| touch.slot == slot) {
                Some(touch) if tick - touch.ticks.end() <= TOUCH_PAUSE_MAX => {
                    touch.ticks = *touch.ticks.start()..=tick;
                }
                _ => touches.push(Touch {
                    slot,
                    ticks: tick..=tick,
                }),
            }
        }
        touches
    }

    /// The player who touched the ball in a tick: with their body, a kick or a shot.
    fn toucher(&self, tick: u32) -> Option<u8> {
        let (before, after) = (self.at(tick.checked_sub(1)?)?, self.at(tick)?);
        let slot = after.ball.last_touch()?;
        if before.ball.serves != after.ball.serves {
            return None;
        }
        let of = |moment: &Moment| {
            moment
                .robots
                .iter()
                .find(|robot| robot.slot == slot)
                .cloned()
        };
        let (was, is) = (of(before)?, of(after)?);
        let pushed = speed_change(&before.ball, &after.ball) > TOUCH_SPEED_MIN;
        let is_new = before.ball.last_touch() != Some(slot);
        let reaches = gap(&is, &after.ball).min(gap(&was, &before.ball)) <= KICK_REACH
            || is.shots != was.shots;
        ((pushed || is_new) && reaches).then_some(slot)
    }

    fn at(&self, tick: u32) -> Option<&Moment> {
        let place = tick.checked_sub(self.first?.0)?;
        self.moments.get(place as usize)
    }
}

/// Metres a second by which the ball's velocity changed.
pub(super) fn speed_change(before: &Ball, after: &Ball) -> f32 {
    Vec3::from(after.velocity).distance(before.velocity.into())
}

/// Returns the space between a robot and the ball, in metres.
pub(super) fn gap(robot: &Robot, ball: &Ball) -> f32 {
    let (feet, middle) = (robot.feet(), ball.middle());
    let height = (middle.y - feet.y).clamp(ROBOT_RADIUS, ROBOT_HEIGHT - ROBOT_RADIUS);
    middle.distance(feet + Vec3::Y * height) - BALL_RADIUS - ROBOT_RADIUS
}

/// Ticks without a touch after which the next touch is another one.
const TOUCH_PAUSE_MAX: u32 = 10;
/// Metres a second that a touch changes the ball's velocity by; rolling and falling change it by less in a tick.
const TOUCH_SPEED_MIN: f32 = 0.5;
