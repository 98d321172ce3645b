//! A duel of two swordsmen on one line who also throw knives: the example game for rollback.
//!
//! Everything is integers, so every machine computes the same. A position is in 256ths of a pace.

use muse_schema::Schema;

use crate::{Game, Rng, Step};

/// The state: two fighters and the knives in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Schema)]
pub struct Duel {
    /// Frames since the beginning.
    pub time: u32,
    /// The fighters, by seat.
    pub fighters: [Fighter; 2],
    /// Knives; those with no time left lie on the ground.
    pub knives: [Knife; KNIVES],
    /// Sparks and blood: drawn, and part of the state because knives bounce off them.
    pub sparks: [Spark; SPARKS],
    /// Chance.
    pub rng: Rng,
}

/// A fighter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Fighter {
    /// Where on the line.
    pub x: i32,
    /// How high above the ground.
    pub y: i32,
    /// Speed along the line and upwards.
    pub speed: [i32; 2],
    /// Health, from 100.
    pub health: i16,
    /// Frames until the blow that has begun is over.
    pub blow: u8,
    /// Frames until the next knife can be thrown.
    pub reload: u8,
    /// Rounds won.
    pub wins: u16,
}

/// A knife in the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Knife {
    /// Where.
    pub at: [i32; 2],
    /// Speed.
    pub speed: [i32; 2],
    /// Who threw it.
    pub owner: u8,
    /// Frames left.
    pub left: u8,
}

/// A spark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Spark {
    /// Where.
    pub at: [i32; 2],
    /// Speed.
    pub speed: [i32; 2],
    /// Frames left.
    pub left: u8,
}

/// Buttons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Buttons {
    /// Steps left.
    pub left: bool,
    /// Steps right.
    pub right: bool,
    /// Jumps.
    pub jump: bool,
    /// Strikes with the sword.
    pub strike: bool,
    /// Throws a knife.
    pub throw: bool,
    /// Parries.
    pub parry: bool,
}

impl Buttons {
    /// Buttons from the low six bits.
    pub fn from_bits(bits: u8) -> Self {
        let [left, right, jump, strike, throw, parry] =
            [0, 1, 2, 3, 4, 5].map(|bit| bits >> bit & 1 != 0);
        Self {
            left,
            right,
            jump,
            strike,
            throw,
            parry,
        }
    }
}

/// What is heard and seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuelEvent {
    /// A fighter was hit.
    Hit(usize),
    /// A blow or knife was parried.
    Parried(usize),
    /// A fighter won the round.
    Won(usize),
}

impl Duel {
    /// The beginning, with this seed of chance.
    pub fn new(seed: u64) -> Self {
        let mut duel = Self {
            time: 0,
            fighters: [Fighter::default(); 2],
            knives: [Knife::default(); KNIVES],
            sparks: [Spark::default(); SPARKS],
            rng: Rng::new(seed),
        };
        duel.place();
        duel
    }

    fn place(&mut self) {
        for (fighter, x) in self.fighters.iter_mut().zip([-1_500, 1_500]) {
            *fighter = Fighter {
                x,
                health: 100,
                wins: fighter.wins,
                ..Fighter::default()
            };
        }
        self.knives = [Knife::default(); KNIVES];
    }

    fn act(&mut self, who: usize, buttons: Buttons, step: &mut Step<'_, Self>) {
        let other = self.fighters[1 - who];
        let fighter = &mut self.fighters[who];
        let walk = i32::from(buttons.right) - i32::from(buttons.left);
        fighter.speed[0] =
            (fighter.speed[0] * 3 + walk * 24 * (1 - i32::from(buttons.parry) / 2)) / 4;
        if buttons.jump && fighter.y == 0 {
            fighter.speed[1] = 70;
        }
        fighter.speed[1] -= 4;
        fighter.x = (fighter.x + fighter.speed[0]).clamp(-EDGE, EDGE);
        fighter.y = (fighter.y + fighter.speed[1]).max(0);
        if fighter.y == 0 {
            fighter.speed[1] = 0;
        }
        fighter.blow = fighter.blow.saturating_sub(1);
        fighter.reload = fighter.reload.saturating_sub(1);
        let facing = (other.x - fighter.x).signum();
        if buttons.strike && fighter.blow == 0 && !buttons.parry {
            fighter.blow = 18;
        }
        if fighter.blow == 12
            && (other.x - fighter.x).abs() < 420
            && (other.y - fighter.y).abs() < 300
        {
            self.hit(1 - who, 12, step);
        }
        let fighter = &mut self.fighters[who];
        if buttons.throw && fighter.reload == 0 {
            fighter.reload = 20;
            let (at, lift) = ([fighter.x, fighter.y + 200], self.rng.range(0, 20));
            if let Some(knife) = self.knives.iter_mut().find(|knife| knife.left == 0) {
                *knife = Knife {
                    at,
                    speed: [facing * 60, lift],
                    owner: who as u8,
                    left: 120,
                };
            }
        }
    }

    fn hit(&mut self, whom: usize, damage: i16, step: &mut Step<'_, Self>) {
        let parries = step.input(whom).is_some_and(|buttons| buttons.parry);
        let fighter = &mut self.fighters[whom];
        step.emit(if parries {
            DuelEvent::Parried(whom)
        } else {
            DuelEvent::Hit(whom)
        });
        fighter.health -= if parries { 1 } else { damage };
        let at = [fighter.x, fighter.y + 150];
        for spark in self
            .sparks
            .iter_mut()
            .filter(|spark| spark.left == 0)
            .take(6)
        {
            let speed = [self.rng.range(-40, 40), self.rng.range(10, 60)];
            *spark = Spark {
                at,
                speed,
                left: 40,
            };
        }
        if fighter.health <= 0 {
            step.emit(DuelEvent::Won(1 - whom));
            self.fighters[1 - whom].wins += 1;
            self.place();
        }
    }

    fn fly(&mut self, step: &mut Step<'_, Self>) {
        for index in 0..KNIVES {
            let knife = &mut self.knives[index];
            if knife.left == 0 {
                continue;
            }
            knife.left -= 1;
            knife.speed[1] -= 1;
            knife.at = [
                knife.at[0] + knife.speed[0],
                (knife.at[1] + knife.speed[1]).max(0),
            ];
            let target = usize::from(1 - knife.owner.min(1));
            let fighter = &self.fighters[target];
            let near = |spark: &&Spark| {
                spark.left > 0
                    && (spark.at[0] - knife.at[0]).abs() < 20
                    && (spark.at[1] - knife.at[1]).abs() < 20
            };
            if self.sparks.iter().any(|spark| near(&spark)) {
                knife.speed[1] = 25;
            }
            if (fighter.x - knife.at[0]).abs() < 80 && (fighter.y + 200 - knife.at[1]).abs() < 220 {
                knife.left = 0;
                self.hit(target, 7, step);
            }
        }
        for spark in self.sparks.iter_mut().filter(|spark| spark.left > 0) {
            spark.left -= 1;
            spark.speed[1] -= 3;
            spark.at = [
                spark.at[0] + spark.speed[0],
                (spark.at[1] + spark.speed[1]).max(0),
            ];
        }
    }
}

impl Game for Duel {
    type Input = Buttons;
    type Event = DuelEvent;

    fn step(&mut self, step: &mut Step<'_, Self>) {
        self.time += 1;
        for who in 0..2 {
            self.act(who, step.input(who).copied().unwrap_or_default(), step);
        }
        self.fly(step);
    }
}

const EDGE: i32 = 4_000;
const KNIVES: usize = 16;
const SPARKS: usize = 24;
