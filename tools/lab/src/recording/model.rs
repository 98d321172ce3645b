//! A player made of a seed, who plays as people do in one respect: legs and mouse go through stretches of a fraction of a second, and
//! nobody walks off the map. It stands in for recordings of the game.

use glam::Vec2;
use muse_netcode::Tick;
use muse_netcode::prediction::{StepContext, run_step};

use super::{Press, Recording, YAWS};
use crate::character::{Body, Keys, Rules};

/// A style of play.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The name of the recording.
    pub name: &'static str,
    /// The place that it stays near.
    pub home: [f32; 2],
    /// The farthest it goes from there.
    pub reach: f32,
    /// Ticks of a stretch, from and to.
    pub stretch: (u32, u32),
    /// Of ten stretches, how many are: curves run at a constant rate, steps from side to side, and standing still. The rest
    /// is running where the mouse points.
    pub curves: u32,
    /// See [`curves`](Self::curves).
    pub side_steps: u32,
    /// See [`curves`](Self::curves).
    pub stands: u32,
    /// Of ten stretches, in how many it fires.
    pub fires: u32,
    /// Random seed.
    pub seed: u64,
}

/// The players of the shipped recordings.
pub const STYLES: [Style; 4] = [
    Style {
        name: "duellist",
        home: [0.0, 0.0],
        reach: 6.0,
        stretch: (10, 32),
        curves: 1,
        side_steps: 6,
        stands: 1,
        fires: 6,
        seed: 11,
    },
    Style {
        name: "runner",
        home: [14.0, 4.0],
        reach: 14.0,
        stretch: (30, 80),
        curves: 6,
        side_steps: 1,
        stands: 0,
        fires: 2,
        seed: 12,
    },
    Style {
        name: "wanderer",
        home: [2.0, 16.0],
        reach: 10.0,
        stretch: (20, 60),
        curves: 3,
        side_steps: 2,
        stands: 2,
        fires: 3,
        seed: 13,
    },
    Style {
        name: "sentry",
        home: [-12.0, 6.0],
        reach: 4.0,
        stretch: (25, 75),
        curves: 1,
        side_steps: 3,
        stands: 5,
        fires: 7,
        seed: 14,
    },
];

/// Plays 64 seconds in a style, and records them.
pub fn record(style: &Style) -> Recording {
    let mut player = Player {
        style: *style,
        random: fastrand::Rng::with_seed(style.seed),
        body: Body::at(style.home[0], style.home[1]),
        yaw: 0.0,
        manner: Manner::default(),
    };
    let presses = (0..TICKS).map(|tick| player.press(Tick(tick))).collect();
    Recording::new(style.name, style.home, presses).expect("a minute is not too long")
}

struct Player {
    style: Style,
    random: fastrand::Rng,
    body: Body,
    /// In 1/4,096 of a turn.
    yaw: f32,
    manner: Manner,
}

/// An activity that lasts for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    ticks_left: u32,
    forward: i8,
    right: i8,
    /// Of the mouse, in each tick.
    turn: f32,
    trigger_ticks: u32,
}

impl Player {
    fn press(&mut self, tick: Tick) -> Press {
        if self.manner.ticks_left == 0 {
            self.manner = self.decide();
        }
        self.manner.ticks_left -= 1;
        self.yaw = (self.yaw + self.manner.turn).rem_euclid(YAWS as f32);
        let trigger = self.manner.trigger_ticks > 0;
        self.manner.trigger_ticks = self.manner.trigger_ticks.saturating_sub(1);
        let press = Press {
            forward: self.manner.forward,
            right: self.manner.right,
            yaw: self.yaw as u16 % YAWS as u16,
            trigger,
        };
        let keys = Keys {
            forward: press.forward,
            right: press.right,
            yaw: press.yaw,
            fire: None,
        };
        let raise = &mut |()| ();
        let mut context = StepContext::new(tick, true, raise);
        run_step(&mut Rules, &mut self.body, &keys, &mut context);
        press
    }

    fn decide(&mut self) -> Manner {
        let (least, most) = self.style.stretch;
        let mut manner = Manner {
            ticks_left: self.random.u32(least..=most),
            ..Manner::default()
        };
        if self.random.u32(..10) < self.style.fires {
            manner.trigger_ticks = self.random.u32(3..=manner.ticks_left.min(40));
        }
        let away = Vec2::from_array(self.style.home) - self.body.place();
        if away.length() > self.style.reach {
            // Back home: the mouse swings there, and the legs go on.
            let wanted =
                Vec2::new(away.y, away.x).to_angle() / core::f32::consts::TAU * YAWS as f32;
            let swing = short_way(wanted - self.yaw);
            manner.ticks_left = self.random.u32(12..=24);
            manner.turn = (swing / manner.ticks_left as f32).round();
            manner.forward = 1;
            return manner;
        }
        let Style {
            curves,
            side_steps,
            stands,
            ..
        } = self.style;
        match self.random.u32(..10) {
            dice if dice < curves => {
                manner.forward = 1;
                // One to three radians a second.
                let turn = 13.0 + self.random.f32() * 26.0;
                manner.turn = if self.random.bool() { turn } else { -turn }.round();
            }
            dice if dice < curves + side_steps => {
                manner.right = if self.random.bool() { 1 } else { -1 };
                manner.forward = self.random.i8(0..=1);
                manner.turn = f32::from(self.random.i8(-6..=6));
            }
            dice if dice < curves + side_steps + stands => {
                manner.turn = f32::from(self.random.i8(-30..=30));
            }
            _ => {
                manner.forward = 1;
                manner.turn = f32::from(self.random.i8(-8..=8));
            }
        }
        manner
    }
}

fn short_way(turn: f32) -> f32 {
    let turn = turn.rem_euclid(YAWS as f32);
    if turn < YAWS as f32 / 2.0 {
        turn
    } else {
        turn - YAWS as f32
    }
}

/// 64 seconds.
const TICKS: u32 = 3_200;
