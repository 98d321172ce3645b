//! A player whose hands were recorded.

use glam::Vec2;
use muse_netcode::Tick;
use muse_wire::{Duration, Instant};

use crate::arena::{Mind, Sight};
use crate::character::{Body, Keys};
use crate::recording::Recording;

/// Plays a recording: its keys as they were, its shots when they were, aimed at whom is nearest on the screen, half of them near
/// misses.
#[derive(Clone, Debug)]
pub struct Replay {
    recording: Recording,
    random: fastrand::Rng,
    trigger: bool,
    reloaded_at: Instant,
}

impl Replay {
    /// Near misses follow from the seed.
    pub fn new(recording: Recording, seed: u64) -> Self {
        Self {
            recording,
            random: fastrand::Rng::with_seed(seed),
            trigger: false,
            reloaded_at: Instant::ZERO,
        }
    }
}

impl Mind for Replay {
    fn keys(&mut self, tick: Tick, _: Option<&Body>) -> Keys {
        self.trigger = self.recording.fires(tick.0);
        self.recording.keys(tick.0)
    }

    fn look(&mut self, sight: &Sight<'_>) -> Option<Vec2> {
        if !self.trigger || sight.now < self.reloaded_at {
            return None;
        }
        self.reloaded_at = sight.now + RELOAD;
        // Half of the shots are near misses.
        let aside = (self.random.f32() - 0.5) * ASIDE_MAX;
        let own = sight.own.place();
        let away = |body: &Body| body.place().distance_squared(own);
        let nearest = sight
            .others
            .iter()
            .min_by(|a, b| away(&a.1).total_cmp(&away(&b.1)))?;
        let place = nearest.1.place();
        let across = (place - own).perp().normalize_or_zero();
        Some(place + across * aside)
    }
}

/// From one shot to the next.
const RELOAD: Duration = Duration::from_millis(150);
/// The widest spread of shots around the middle, both sides together: twice as wide as a player.
const ASIDE_MAX: f32 = 1.6;
