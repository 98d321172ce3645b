//! A player who aims and reacts as people do, within limits that are stated here.

use std::collections::VecDeque;

use glam::Vec2;
use muse_netcode::{EntityId, Tick};
use muse_wire::{Duration, Instant};

use crate::arena::{Mind, RADIUS, Sight};
use crate::character::{Body, Keys};

/// A player who steps from side to side and shoots at whom is nearest.
///
/// - It acts on what it saw [`reaction`](Self::new) ago, 180 to 240 ms, and goes on with the movement that it saw then: who runs evenly is
///   followed well, who turns back is missed until that is noticed. It knows nothing of networks.
/// - Its hand turns by at most 12 radians a second, closes a third of what is missing in a frame, and trembles by half a degree.
/// - It fires when what it follows is in its sights, at most five times a second.
#[derive(Clone, Debug)]
pub struct Marksman {
    home: Vec2,
    random: fastrand::Rng,
    reaction: Duration,
    /// Its sightings, the oldest first.
    memory: VecDeque<(Instant, Vec<(EntityId, Vec2)>)>,
    /// The direction it points in, in radians.
    aim: Option<f32>,
    reloaded_at: Instant,
    legs: (i8, i8),
    legs_until: Tick,
}

impl Marksman {
    /// A player that stays near a home. All randomness follows from the seed.
    pub fn new(home: [f32; 2], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            home: Vec2::from_array(home),
            reaction: Duration::from_millis(u64::from(random.u32(180..=240))),
            random,
            memory: VecDeque::new(),
            aim: None,
            reloaded_at: Instant::ZERO,
            legs: (0, 0),
            legs_until: Tick(0),
        }
    }

    /// Returns where its target should be by now, from what it saw when it could last react.
    fn follow(&self, now: Instant, own: Vec2) -> Option<Vec2> {
        let seen_until = now - self.reaction;
        let index = self.memory.partition_point(|(at, _)| *at <= seen_until);
        let (then, seen) = self.memory.get(index.checked_sub(1)?)?;
        let away = |place: &Vec2| place.distance_squared(own);
        let nearest = seen
            .iter()
            .min_by(|a, b| away(&a.1).total_cmp(&away(&b.1)))?;
        let (entity, place) = *nearest;
        // The movement over the tenth of a second before.
        let before = self.memory.iter().rev().find_map(|(at, seen)| {
            let past = *at + MOVEMENT <= *then;
            let place = seen.iter().find(|(other, _)| *other == entity);
            past.then_some((*at, place?.1))
        });
        let Some((earlier, from)) = before else {
            return Some(place);
        };
        let seconds = (*then - earlier).as_secs_f64() as f32;
        let velocity = (place - from) / seconds.max(0.01);
        Some(place + velocity * (now - *then).as_secs_f64() as f32)
    }

    /// Turns the hand towards a direction, as fast as a hand does.
    fn turn(&mut self, wanted: f32) -> f32 {
        let aim = self.aim.unwrap_or(wanted);
        let missing = short_way(wanted - aim);
        let step = (missing * HAND_SHARE).clamp(-HAND_MAX, HAND_MAX);
        // The sum of three even draws is nearly normal, with a deviation of 1 when each is in -1..1.
        let draw = |random: &mut fastrand::Rng| random.f32() * 2.0 - 1.0;
        let tremble = (0..3).map(|_| draw(&mut self.random)).sum::<f32>() * TREMBLE;
        let aim = aim + step;
        self.aim = Some(aim);
        aim + tremble
    }
}

impl Mind for Marksman {
    fn keys(&mut self, tick: Tick, own: Option<&Body>) -> Keys {
        let away = self.home - own.map_or(self.home, Body::place);
        if tick >= self.legs_until {
            self.legs_until = tick + self.random.u32(15..=50);
            let side = if self.random.bool() { 1 } else { -1 };
            self.legs = match self.random.u32(..6) {
                0 => (0, 0),
                1 => (side, side),
                _ => (0, side),
            };
        }
        // Who is far from home goes back, whatever the legs would.
        let axis = |away: f32, leg: i8| match away {
            away if away > REACH => 1,
            away if away < -REACH => -1,
            _ => leg,
        };
        Keys {
            forward: axis(away.y, self.legs.0),
            right: axis(away.x, self.legs.1),
            yaw: 0,
            fire: None,
        }
    }

    fn look(&mut self, sight: &Sight<'_>) -> Option<Vec2> {
        let now = sight.now;
        let seen = sight
            .others
            .iter()
            .map(|(entity, body)| (*entity, body.place()));
        self.memory.push_back((now, seen.collect()));
        while self
            .memory
            .front()
            .is_some_and(|(at, _)| *at + MEMORY < now)
        {
            self.memory.pop_front();
        }
        let own = sight.own.place();
        let target = self.follow(now, own)?;
        let way = target - own;
        let wanted = way.to_angle();
        let aim = self.turn(wanted);
        let width = RADIUS / way.length().max(1.0);
        let is_in_sights = short_way(self.aim.unwrap_or(aim) - wanted).abs() < width;
        if !is_in_sights || now < self.reloaded_at {
            return None;
        }
        self.reloaded_at = now + Duration::from_millis(200 + u64::from(self.random.u32(..120)));
        Some(own + Vec2::from_angle(aim) * way.length())
    }
}

fn short_way(turn: f32) -> f32 {
    let turn = turn.rem_euclid(core::f32::consts::TAU);
    if turn < core::f32::consts::PI {
        turn
    } else {
        turn - core::f32::consts::TAU
    }
}

/// The time for which sightings are remembered.
const MEMORY: Duration = Duration::from_millis(500);
/// Time over which a movement is seen.
const MOVEMENT: Duration = Duration::from_millis(100);
/// Of what is missing, in a frame.
const HAND_SHARE: f32 = 0.33;
/// Most radians in a frame: 12 a second.
const HAND_MAX: f32 = 0.2;
/// Half a degree, in radians.
const TREMBLE: f32 = 0.0087;
/// The farthest it goes from home.
const REACH: f32 = 3.0;
