//! The rules: players walk and shoot, enemies appear, whoever hits one gets a point. The host decides; guests show what they hear.

use std::collections::BTreeMap;

/// A place or a direction on the field, in pixels.
pub(crate) type Spot = [f32; 2];

/// The input of a player for one tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Input {
    /// The direction to walk in, of any length.
    pub(crate) walk: Spot,
    /// The direction to shoot in.
    pub(crate) shoot: Option<Spot>,
}

/// Everything on the field.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub(crate) players: BTreeMap<u8, Player>,
    pub(crate) enemies: BTreeMap<u16, Spot>,
    pub(crate) shots: Vec<Shot>,
}

/// A player.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Player {
    pub(crate) at: Spot,
    pub(crate) points: u16,
    /// Ticks until the next shot.
    reload: u32,
}

/// A shot on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shot {
    pub(crate) by: u8,
    pub(crate) at: Spot,
    direction: Spot,
    ticks_left: u32,
}

/// A shot that has met an enemy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) enemy: u16,
    pub(crate) by: u8,
}

impl Field {
    /// Puts a player somewhere.
    pub(crate) fn place(&mut self, id: u8, at: Spot) {
        let new = Player {
            at,
            points: 0,
            reload: 0,
        };
        self.players.entry(id).or_insert(new).at = inside(at);
    }

    /// Moves a player by its input. Gives the direction of the shot that it fires, if it does.
    pub(crate) fn control(&mut self, id: u8, input: &Input) -> Option<Spot> {
        let player = self.players.get_mut(&id)?;
        let step = unit(input.walk).map_or([0.0; 2], |walk| walk.map(|part| part * WALK));
        player.at = inside([player.at[0] + step[0], player.at[1] + step[1]]);
        player.reload = player.reload.saturating_sub(1);
        let direction = input.shoot.and_then(unit).filter(|_| player.reload == 0)?;
        player.reload = RELOAD_TICKS;
        Some(direction)
    }

    /// A player fires.
    pub(crate) fn fire(&mut self, by: u8, direction: Spot) {
        if let Some(player) = self.players.get(&by)
            && let Some(direction) = unit(direction)
            && self.shots.len() < SHOTS_MAX
        {
            self.shots.push(Shot {
                by,
                at: player.at,
                direction,
                ticks_left: SHOT_TICKS,
            });
        }
    }

    /// Shots fly on. Gives those that hit; the enemies are still there.
    pub(crate) fn step(&mut self) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let enemies = &self.enemies;
        self.shots.retain_mut(|shot| {
            for (at, direction) in shot.at.iter_mut().zip(shot.direction) {
                *at += direction * SHOT_SPEED;
            }
            let met = enemies.iter().find(|(enemy, at)| {
                distance(**at, shot.at) < HIT && hits.iter().all(|hit| hit.enemy != **enemy)
            });
            hits.extend(met.map(|(enemy, _)| Hit {
                enemy: *enemy,
                by: shot.by,
            }));
            shot.ticks_left -= 1;
            met.is_none() && shot.ticks_left > 0 && inside(shot.at) == shot.at
        });
        hits
    }

    /// Plays for a player: walks up to the nearest enemy that nobody else is nearer to, and shoots at it.
    pub(crate) fn bot(&self, id: u8) -> Input {
        let Some(own) = self.players.get(&id) else {
            return Input::default();
        };
        let is_contested = |enemy: &Spot| {
            let others = self.players.iter().filter(|(other, _)| **other != id);
            let mine = distance(*enemy, own.at);
            others
                .map(|(_, other)| other.at)
                .any(|other| distance(*enemy, other) < mine)
        };
        let free = self.enemies.values().filter(|enemy| !is_contested(enemy));
        let nearest = free.min_by(|a, b| {
            let [left, right] = [a, b].map(|enemy| distance(**enemy, own.at));
            left.total_cmp(&right)
        });
        let Some(target) = nearest else {
            return Input::default();
        };
        let towards = [target[0] - own.at[0], target[1] - own.at[1]];
        let is_near = distance(*target, own.at) < BOT_RANGE;
        Input {
            walk: if is_near { [0.0; 2] } else { towards },
            shoot: is_near.then_some(towards),
        }
    }
}

pub(crate) fn distance(a: Spot, b: Spot) -> f32 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// A direction of length one; `None` if it has none.
fn unit(direction: Spot) -> Option<Spot> {
    let length = direction[0].hypot(direction[1]);
    (length.is_finite() && length > 0.0).then(|| direction.map(|part| part / length))
}

fn inside(at: Spot) -> Spot {
    [at[0].clamp(0.0, WIDTH), at[1].clamp(0.0, HEIGHT)]
}

/// The size of the field.
pub(crate) const WIDTH: f32 = 480.0;
pub(crate) const HEIGHT: f32 = 360.0;
/// Ticks of a round, and of a second.
pub(crate) const ROUND_TICKS: u32 = 60 * TICKS_A_SECOND;
pub(crate) const TICKS_A_SECOND: u32 = 20;
/// Enemies appear no nearer to the border.
pub(crate) const BORDER: f32 = 15.0;
/// Most enemies at once.
pub(crate) const ENEMIES_MAX: usize = 6;
/// Ticks between enemies.
pub(crate) const ENEMY_TICKS: u32 = 15;
const WALK: f32 = 7.0;
const SHOT_SPEED: f32 = 14.0;
const SHOT_TICKS: u32 = 25;
const SHOTS_MAX: usize = 256;
const RELOAD_TICKS: u32 = 6;
const HIT: f32 = 13.0;
const BOT_RANGE: f32 = 150.0;
