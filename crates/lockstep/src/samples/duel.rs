//! A duel of two swordsmen on one line who also throw knives: the example game for rollback.
//!
//! Everything is integers, so every machine computes the same. A position is in 256ths of a pace.

use muse_schema::Schema;

use crate::{DeterministicGame, Rng, Step};

/// The state: two fighters and what flies through the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Duel {
    /// Frames since the beginning.
    pub time: u32,
    /// The fighters, by seat.
    pub fighters: [Fighter; 2],
    /// Knives.
    pub knives: [Flying; 16],
    /// Sparks, part of the state because knives bounce off them.
    pub sparks: [Flying; 24],
    /// Chance.
    pub rng: Rng,
}

/// A fighter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Fighter {
    /// Position on the line, and height above it.
    pub at: [i16; 2],
    /// Speed along the line and upwards.
    pub speed: [i16; 2],
    /// Health, from 100.
    pub health: i16,
    /// Frames until the blow that has begun is over.
    pub blow: u8,
    /// Frames until the next knife can be thrown.
    pub reload: u8,
    /// Rounds won.
    pub wins: u16,
}

/// A knife or a spark; with no frames left it is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Flying {
    /// Position.
    pub at: [i16; 2],
    /// Speed.
    pub speed: [i16; 2],
    /// Frames left.
    pub left: u8,
    /// The player who threw it.
    pub owner: u8,
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
            std::array::from_fn(|bit| bits >> bit & 1 != 0);
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

/// Something to be heard and seen.
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
            rng: Rng::new(seed),
            ..Self::default()
        };
        duel.place();
        duel
    }

    fn place(&mut self) {
        for (fighter, x) in self.fighters.iter_mut().zip([-1_500, 1_500]) {
            (fighter.at, fighter.speed, fighter.health) = ([x, 0], [0, 0], 100);
            (fighter.blow, fighter.reload) = (0, 0);
        }
        self.knives = [Flying::default(); 16];
    }

    fn act(&mut self, who: usize, buttons: Buttons, step: &mut Step<'_, Self>) {
        let other = self.fighters[1 - who];
        let fighter = &mut self.fighters[who];
        let walk = i16::from(buttons.right) - i16::from(buttons.left);
        fighter.speed[0] = (fighter.speed[0] * 3 + walk * 24) / 4;
        if buttons.jump && fighter.at[1] == 0 {
            fighter.speed[1] = 70;
        }
        fighter.speed[1] -= 4;
        fighter.at = moved(fighter.at, fighter.speed);
        if fighter.at[1] == 0 {
            fighter.speed[1] = 0;
        }
        fighter.blow = fighter.blow.saturating_sub(1);
        fighter.reload = fighter.reload.saturating_sub(1);
        if buttons.strike && fighter.blow == 0 && !buttons.parry {
            fighter.blow = 18;
        }
        if buttons.throw && fighter.reload == 0 {
            fighter.reload = 20;
            let at = [fighter.at[0], fighter.at[1] + 200];
            let facing = (other.at[0] - fighter.at[0]).signum();
            let speed = [facing * 60, self.rng.range(0, 20) as i16];
            if let Some(knife) = self.knives.iter_mut().find(|knife| knife.left == 0) {
                *knife = Flying::new(at, speed, 120, who as u8);
            }
        }
        if fighter.blow == 12 && near(other.at, fighter.at, [420, 300]) {
            self.hit(1 - who, 12, step);
        }
    }

    fn hit(&mut self, whom: usize, damage: i16, step: &mut Step<'_, Self>) {
        let parries = step.input(whom).is_some_and(|buttons| buttons.parry);
        let told = [DuelEvent::Hit(whom), DuelEvent::Parried(whom)];
        step.emit(told[usize::from(parries)]);
        let fighter = &mut self.fighters[whom];
        fighter.health -= if parries { 1 } else { damage };
        let at = [fighter.at[0], fighter.at[1] + 150];
        let free = self.sparks.iter_mut().filter(|spark| spark.left == 0);
        for spark in free.take(6) {
            let speed = [(-40, 40), (10, 60)].map(|(min, max)| self.rng.range(min, max) as i16);
            *spark = Flying::new(at, speed, 40, 0);
        }
        if fighter.health <= 0 {
            step.emit(DuelEvent::Won(1 - whom));
            self.fighters[1 - whom].wins += 1;
            self.place();
        }
    }

    fn fly(&mut self, step: &mut Step<'_, Self>) {
        for index in 0..self.knives.len() {
            let knife = &mut self.knives[index];
            if !knife.fly(1) {
                continue;
            }
            let mut sparks = self.sparks.iter().filter(|spark| spark.left > 0);
            if sparks.any(|spark| near(spark.at, knife.at, [20, 20])) {
                knife.speed[1] = 25;
            }
            let target = usize::from(1 - knife.owner.min(1));
            let [x, y] = self.fighters[target].at;
            if near([x, y + 200], knife.at, [80, 220]) {
                knife.left = 0;
                self.hit(target, 7, step);
            }
        }
        for spark in &mut self.sparks {
            spark.fly(3);
        }
    }
}

impl Flying {
    fn new(at: [i16; 2], speed: [i16; 2], left: u8, owner: u8) -> Self {
        Self {
            at,
            speed,
            left,
            owner,
        }
    }

    /// Flies on and falls; whether there is anything that does.
    fn fly(&mut self, weight: i16) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.speed[1] -= weight;
        self.at = moved(self.at, self.speed);
        true
    }
}

impl DeterministicGame for Duel {
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

/// Nobody leaves the place, and nothing falls through the ground.
fn moved(at: [i16; 2], speed: [i16; 2]) -> [i16; 2] {
    let [x, y] = [at[0] + speed[0], at[1] + speed[1]];
    [x.clamp(-4_000, 4_000), y.max(0)]
}

fn near(one: [i16; 2], other: [i16; 2], reach: [i16; 2]) -> bool {
    (one[0] - other[0]).abs() < reach[0] && (one[1] - other[1]).abs() < reach[1]
}
