//! A small real-time strategy game: armies of up to hundreds of units that find their way around rocks and fight. The example game
//! for lockstep.
//!
//! Integers only: positions are in 256ths of a tile.

use muse_schema::Schema;

use crate::{DeterministicGame, Rng, Step};

/// The state.
#[derive(Debug, Default, PartialEq, Eq, Schema)]
pub struct Rts {
    /// Steps since the beginning.
    pub time: u32,
    /// Every unit, dead ones included, so that a unit keeps its number.
    #[field(max = 4096)]
    pub units: Vec<Unit>,
    /// Chance.
    pub rng: Rng,
}

impl Clone for Rts {
    fn clone(&self) -> Self {
        Self {
            time: self.time,
            units: self.units.clone(),
            rng: self.rng,
        }
    }

    // Into the memory that is there: states are saved every turn.
    fn clone_from(&mut self, source: &Self) {
        self.time = source.time;
        self.units.clone_from(&source.units);
        self.rng = source.rng;
    }
}

/// A unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Schema)]
pub struct Unit {
    /// The player that it belongs to.
    pub owner: u8,
    /// Health; dead at 0.
    pub health: u8,
    /// Steps until it can strike again.
    pub reload: u8,
    /// Position.
    pub at: [i32; 2],
    /// Destination.
    pub goal: [i32; 2],
}

/// An order of a player: units of a band, all within `radius` of a place, to go somewhere. Its size does not depend on how many follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Schema)]
pub struct Order {
    /// Tile around which units are picked.
    pub from: [u8; 2],
    /// Radius around it, in tiles.
    pub radius: u8,
    /// Tile to go to.
    pub to: [u8; 2],
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtsEvent {
    /// A unit of this player fell.
    Fell(u8),
}

impl Rts {
    /// Armies of `each` units for so many players, around the map's edge.
    pub fn new(players: u8, each: usize, seed: u64) -> Self {
        let mut game = Self {
            rng: Rng::new(seed),
            ..Self::default()
        };
        for owner in 0..players {
            let base = usize::from(owner) % BASES_X.len();
            let base = [BASES_X[base], BASES_Y[base]];
            for _ in 0..each {
                let at = base.map(|tile| tile * TILE + game.rng.range(-2 * TILE, 2 * TILE));
                let at = at.map(|place| place.clamp(0, SIZE * TILE - 1));
                game.units.push(Unit {
                    owner,
                    health: 100,
                    reload: 0,
                    at,
                    goal: at,
                });
            }
        }
        game
    }

    fn order(&mut self, owner: u8, order: &Order) {
        let from = order.from.map(|tile| i32::from(tile) * TILE);
        let reach = i32::from(order.radius) * TILE;
        let middle = |tile| i32::from(tile).min(SIZE - 1) * TILE + TILE / 2;
        let to = order.to.map(middle);
        let living = self.units.iter_mut().filter(|unit| unit.health > 0);
        for unit in living.filter(|unit| unit.owner == owner) {
            if (0..2).all(|axis| (unit.at[axis] - from[axis]).abs() <= reach) {
                let spread = [self.rng.range(-TILE, TILE), self.rng.range(-TILE, TILE)];
                unit.goal = [0, 1].map(|axis| (to[axis] + spread[axis]).clamp(0, SIZE * TILE - 1));
            }
        }
    }

    /// Everybody steps towards its goal, around rocks.
    fn walk(&mut self) {
        for unit in self.units.iter_mut().filter(|unit| unit.health > 0) {
            let toward = [0, 1].map(|axis| (unit.goal[axis] - unit.at[axis]).clamp(-SPEED, SPEED));
            if toward == [0, 0] {
                continue;
            }
            // Straight on, else along one axis, else to the side: enough to get around single rocks.
            let side = if unit.owner % 2 == 0 { SPEED } else { -SPEED };
            let ways = [toward, [toward[0], 0], [0, toward[1]], [side, 0], [0, side]];
            let free = ways.iter().find(|way| {
                **way != [0, 0] && !is_rock([unit.at[0] + way[0], unit.at[1] + way[1]])
            });
            if let Some(way) = free {
                unit.at = [0, 1].map(|axis| (unit.at[axis] + way[axis]).clamp(0, SIZE * TILE - 1));
            }
        }
    }

    /// Everybody who can strikes the nearest foe in reach; a grid of tiles finds it.
    fn fight(&mut self, step: &mut Step<'_, Self>) {
        let mut heads = [NOBODY; (SIZE * SIZE) as usize];
        let mut next = vec![NOBODY; self.units.len()];
        let units = self.units.iter().enumerate();
        for (index, unit) in units.filter(|(_, unit)| unit.health > 0) {
            let tile = tile_of(unit.at);
            (next[index], heads[tile]) = (heads[tile], index as u16);
        }
        for index in 0..self.units.len() {
            let unit = self.units[index];
            if unit.health == 0 || unit.reload > 0 {
                self.units[index].reload = unit.reload.saturating_sub(1);
                continue;
            }
            let mut nearest = (REACH + 1, NOBODY);
            for neighbour in 0..9 {
                let (dx, dy) = (neighbour % 3 - 1, neighbour / 3 - 1);
                let place = [unit.at[0] + dx * TILE, unit.at[1] + dy * TILE];
                if place.iter().any(|axis| !(0..SIZE * TILE).contains(axis)) {
                    continue;
                }
                let mut at = heads[tile_of(place)];
                while at != NOBODY {
                    let other = &self.units[usize::from(at)];
                    let apart = [0, 1].map(|axis| (other.at[axis] - unit.at[axis]).abs());
                    if other.owner != unit.owner && other.health > 0 {
                        nearest = nearest.min((apart[0] + apart[1], at));
                    }
                    at = next[usize::from(at)];
                }
            }
            if let (..=REACH, foe) = nearest {
                let damage = 5 + self.rng.below(10) as u8;
                self.units[index].reload = 10;
                let foe = &mut self.units[usize::from(foe)];
                foe.health = foe.health.saturating_sub(damage);
                if foe.health == 0 {
                    step.emit(RtsEvent::Fell(foe.owner));
                }
            }
        }
    }
}

impl DeterministicGame for Rts {
    type Input = Vec<Order>;
    type Event = RtsEvent;

    fn step(&mut self, step: &mut Step<'_, Self>) {
        self.time += 1;
        for (seat, orders) in step.players() {
            let orders = orders.iter().take(ORDERS_MAX);
            orders.for_each(|order| self.order(seat.0, order));
        }
        self.walk();
        self.fight(step);
    }

    /// Nobody orders twice because a packet is late.
    fn predict(_: &Vec<Order>, _: u32) -> Vec<Order> {
        Vec::new()
    }

    fn carry_over(lost: &Vec<Order>, next: &mut Vec<Order>) {
        next.splice(0..0, lost.iter().copied());
        next.truncate(ORDERS_MAX);
    }
}

fn tile_of(at: [i32; 2]) -> usize {
    (at[1] / TILE * SIZE + at[0] / TILE) as usize
}

/// Rocks lie on a pattern that leaves ways between them.
fn is_rock(at: [i32; 2]) -> bool {
    let [x, y] = at.map(|axis| axis / TILE);
    (x * 7 + y * 13) % 11 == 0 && x % 3 == 1 && y % 3 == 1
}

/// Tiles on a side, and the size of a tile.
const SIZE: i32 = 64;
const TILE: i32 = 256;
const SPEED: i32 = 24;
const REACH: i32 = 200;
const NOBODY: u16 = u16::MAX;
/// Orders of one player in one turn.
const ORDERS_MAX: usize = 16;
/// Starting positions of the armies, in tiles.
const BASES_X: [i32; 8] = [4, 60, 60, 4, 32, 32, 4, 60];
const BASES_Y: [i32; 8] = [4, 60, 4, 60, 4, 60, 32, 32];
