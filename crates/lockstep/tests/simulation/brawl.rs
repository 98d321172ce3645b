//! A small game for up to eight: everything in it depends on everything, so that any difference spreads.

use muse_lockstep::{DeterministicGame, Rng, Step};
use muse_schema::Schema;

#[derive(Clone, Debug, PartialEq, Schema)]
pub(crate) struct Brawl {
    pub(crate) time: u32,
    pub(crate) players: [Brawler; 8],
    pub(crate) rng: Rng,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Schema)]
pub(crate) struct Brawler {
    pub(crate) at: [i32; 2],
    pub(crate) speed: [i32; 2],
    pub(crate) score: i32,
    pub(crate) here: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Schema)]
pub(crate) struct Push {
    #[field(range = -3..=3)]
    pub(crate) x: i8,
    #[field(range = -3..=3)]
    pub(crate) y: i8,
    pub(crate) shove: bool,
}

impl Push {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        Self {
            x: rng.range(-3, 3) as i8,
            y: rng.range(-3, 3) as i8,
            shove: rng.below(4) == 0,
        }
    }
}

impl Brawl {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            time: 0,
            players: [Brawler::default(); 8],
            rng: Rng::new(seed),
        }
    }
}

impl DeterministicGame for Brawl {
    type Input = Push;
    type Event = u8;

    fn step(&mut self, step: &mut Step<'_, Self>) {
        self.time += 1;
        for (index, player) in self.players.iter_mut().enumerate() {
            let push = step.input(index);
            if player.here != push.is_some() {
                player.here = push.is_some();
                player.at = [index as i32 * 100, self.rng.range(-50, 50)];
            }
            let push = push.copied().unwrap_or_default();
            player.speed = [
                player.speed[0] * 7 / 8 + i32::from(push.x),
                player.speed[1] * 7 / 8 + i32::from(push.y),
            ];
            for axis in 0..2 {
                player.at[axis] = (player.at[axis] + player.speed[axis]).clamp(-1_000, 1_000);
            }
        }
        for index in 0..self.players.len() {
            let shoves = step.input(index).is_some_and(|push| push.shove);
            let here = self.players[index].at;
            let near = |other: &[i32; 2]| (0..2).all(|axis| (other[axis] - here[axis]).abs() < 150);
            for other in 0..self.players.len() {
                if shoves && other != index && near(&self.players[other].at) {
                    self.players[other].speed[0] += self.rng.range(-5, 5);
                    self.players[index].score += 1;
                    step.emit(index as u8);
                }
            }
        }
    }
}
