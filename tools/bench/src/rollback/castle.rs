//! For Honor's case: a castle of 1,000 doors, crossbows and bots, of which those near four players are awake; half are bots that think every sixth
//! step. That saved 90 % of the CPU time there.

use std::hint::black_box;

use muse_lockstep::{Rng, Schedule};

use super::counted::ROUNDS;

/// The castle's bodies, the players who wake them, and the schedule of who is run when.
struct Castle {
    entities: Vec<Entity>,
    players: [[i64; 2]; 4],
    schedule: Schedule,
    rng: Rng,
    time: u32,
}

/// Turns to the nearest player, and shoots or steps when it can.
#[derive(Clone, Default)]
struct Entity {
    at: [i64; 2],
    aim: [i64; 2],
    reload: u32,
    shots: u32,
}

impl Castle {
    fn new() -> Self {
        let mut rng = Rng::new(1);
        let mut schedule = Schedule::new(ENTITIES);
        for entity in (0..ENTITIES).step_by(2) {
            schedule.set_period(entity, 6);
        }
        let mut place = || [0, 1].map(|_| i64::from(rng.below(SIZE)));
        let entity = |_| Entity {
            at: place(),
            ..Entity::default()
        };
        let entities = (0..ENTITIES).map(entity).collect();
        let players = [0, 1, 2, 3].map(|_| [0, 1].map(|_| i64::from(rng.below(SIZE))));
        Self {
            entities,
            players,
            schedule,
            rng,
            time: 0,
        }
    }

    fn walk(&mut self) {
        self.time += 1;
        for coordinate in self.players.as_flattened_mut() {
            let pace = i64::from(self.rng.range(-20, 20));
            *coordinate = (*coordinate + pace).clamp(0, i64::from(SIZE));
        }
    }

    /// Every entity, every step.
    fn step_all(&mut self) {
        self.walk();
        for entity in &mut self.entities {
            entity.step(&self.players);
        }
    }

    /// Those who are awake and whose turn it is; how many.
    fn step_due(&mut self) -> u64 {
        self.walk();
        let (entities, players) = (&mut self.entities, &self.players);
        // Squares compare as well as distances, and are cheaper.
        let distance = |entity: u32| nearest(entities[entity as usize].at, players).0;
        self.schedule
            .by_distance(self.time, LOOKED_AT, distance, NEAR * NEAR, FAR * FAR);
        let mut run = 0;
        for entity in self.schedule.due(self.time) {
            entities[entity as usize].step(players);
            run += 1;
        }
        run
    }
}

impl Entity {
    fn step(&mut self, players: &[[i64; 2]; 4]) {
        let (square, towards) = nearest(self.at, players);
        let distance = square.isqrt();
        for (aim, way) in self.aim.iter_mut().zip(towards) {
            // A direction in thousandths, approached by an eighth.
            let wanted = way * 1_000 / distance.max(1);
            *aim += (wanted - *aim) / 8;
        }
        self.reload = self.reload.saturating_sub(1);
        if self.reload == 0 && distance < NEAR {
            self.reload = 30;
            self.shots += 1;
        }
    }
}

/// The square of how far the nearest player is, and the way there.
fn nearest(at: [i64; 2], players: &[[i64; 2]; 4]) -> (i64, [i64; 2]) {
    let mut best = (i64::MAX, [0, 0]);
    for player in players {
        let way = [player[0] - at[0], player[1] - at[1]];
        let square = way[0] * way[0] + way[1] * way[1];
        if square < best.0 {
            best = (square, way);
        }
    }
    best
}

/// The share of entity steps that are saved over a match of 3,000 steps, in per cent.
pub(crate) fn steps_saved() -> f64 {
    let mut castle = Castle::new();
    let run: u64 = (0..STEPS).map(|_| castle.step_due()).sum();
    100.0 - run as f64 * 100.0 / (f64::from(ENTITIES) * f64::from(STEPS))
}

pub(crate) fn run_all() {
    let mut castle = Castle::new();
    for _ in 0..ROUNDS {
        counted_castle_all(black_box(&mut castle));
    }
}

pub(crate) fn run_due() {
    let mut castle = Castle::new();
    // Everything is awake at first; a match under way is what is counted.
    for _ in 0..2 * LOOKED_AT {
        castle.step_due();
    }
    for _ in 0..ROUNDS {
        counted_castle_due(black_box(&mut castle));
    }
}

#[inline(never)]
fn counted_castle_all(castle: &mut Castle) {
    castle.step_all();
}

#[inline(never)]
fn counted_castle_due(castle: &mut Castle) {
    castle.step_due();
}

const ENTITIES: u32 = 1_000;
const STEPS: u32 = 3_000;
/// The side of the castle; with four players a tenth of it is near somebody.
const SIZE: u32 = 10_000;
const NEAR: i64 = 800;
const FAR: i64 = 1_000;
/// One in so many entities is looked at in each step.
const LOOKED_AT: u32 = 60;
