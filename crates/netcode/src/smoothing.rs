//! A visible body that follows the simulated one without jumps.
//!
//! The simulated body, the *ghost*, is where the game is decided and moves in jumps when it is corrected. What is drawn starts from
//! where it was drawn before and loses the difference within a moment, while it follows the ghost's movement at once.

use muse_schema::{Blend, State};
use muse_wire::Duration;

/// Settings of how a visible body moves over to where it should be after a correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothingConfig {
    snap_above: f32,
    time_seconds: f32,
    speed: f32,
}

impl SmoothingConfig {
    /// Time after which a third of a small difference is left; after 3.3 times of it nothing is. Default: 100 ms; shorter is truer, longer is smoother.
    pub fn time(mut self, time: Duration) -> Self {
        self.time_seconds = (time.as_secs_f64() as f32).max(0.001);
        self
    }
}

muse_wire::setters! { SmoothingConfig:
    /// Differences larger than this are shown at once: a body that slides through half the map looks worse than one that
    /// appears. Default: 5.
    snap_above: f32,
    /// Speed at which a large difference shrinks at most, in the game's own measure a second. Default: 10; faster is
    /// truer, slower is smoother.
    speed: f32 = speed.max(0.001),
}

impl Default for SmoothingConfig {
    fn default() -> Self {
        Self {
            snap_above: 5.0,
            time_seconds: 0.1,
            speed: 10.0,
        }
    }
}

/// The treatment of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Correction {
    /// It is too small to be seen.
    Ignored,
    /// It goes away within a moment.
    Smoothed,
    /// It is too large to be hidden.
    Snapped,
}

/// The difference between a visible body and its ghost, on its way to nothing.
///
/// It is the difference of two whole states and goes through [`State::blend`], so everything that interpolates is smoothed: places,
/// rotations, angles.
#[derive(Clone, Debug)]
pub(crate) struct Smoothing<S> {
    config: SmoothingConfig,
    /// The state that was shown and the one that should have been, at one instant.
    difference: Option<(S, S)>,
    /// The size of the difference when all of it was left.
    distance: f32,
    /// Time until nothing is left of it.
    seconds: f32,
}

impl<S: State> Smoothing<S> {
    /// A visible body that is where its ghost is.
    pub(crate) fn new(config: SmoothingConfig) -> Self {
        Self {
            config,
            difference: None,
            distance: 0.0,
            seconds: 0.0,
        }
    }

    /// True if what is shown is not where its ghost is.
    pub(crate) const fn is_active(&self) -> bool {
        self.difference.is_some()
    }

    /// Shows the ghost as it is from now on.
    pub(crate) fn clear(&mut self) {
        self.difference = None;
    }

    /// The ghost is moved from `before` to `after`; `distance` is the game's own measure.
    pub(crate) fn correct(
        &mut self,
        before: &S,
        after: &S,
        distance: fn(&S, &S) -> f32,
    ) -> Correction {
        let moved = distance(before, after);
        if moved > self.config.snap_above {
            self.difference = None;
            return Correction::Snapped;
        }
        // Nobody sees it, and an earlier correction is not to take longer because of it.
        if moved < IGNORE_BELOW {
            return Correction::Ignored;
        }
        // From what is on the screen, not from where the ghost was: otherwise a second correction would make it jump.
        let shown = self.show(before);
        // What leads back to where it is shown leaves little to be done; but never nothing, for the distance need not see everything.
        let left = distance(&shown, after).min(moved + self.left());
        self.distance = left.max(IGNORE_BELOW);
        self.difference = Some((shown, after.clone()));
        self.seconds = self.ease_seconds() + self.steady_seconds();
        Correction::Smoothed
    }

    /// Advances by this time.
    pub(crate) fn advance(&mut self, seconds: f32) {
        self.seconds -= seconds.max(0.0);
        if self.seconds <= 0.0 {
            self.difference = None;
        }
    }

    /// The size of what is left of the difference.
    fn left(&self) -> f32 {
        match self.difference {
            Some(_) => self.distance * self.share(),
            None => 0.0,
        }
    }

    /// The share of the difference that is left: of a large one it shrinks at the speed that is allowed, then ever more slowly, and comes to its end.
    fn share(&self) -> f32 {
        let ease = self.ease_seconds();
        let steady = self.steady_seconds();
        let eased = self.distance - steady * self.config.speed;
        let left = match self.seconds - ease {
            still if still > 0.0 => eased + still * self.config.speed,
            _ => eased * (self.seconds / ease).max(0.0).powi(3),
        };
        (left / self.distance).min(1.0)
    }

    /// Time in which the end of a difference goes away, or all of a small one.
    fn ease_seconds(&self) -> f32 {
        self.config.time_seconds * EASE_TIMES
    }

    /// Time before that in which it goes away at the speed that is allowed.
    fn steady_seconds(&self) -> f32 {
        // At the beginning of its end it is as fast.
        let eased_max = self.config.speed * self.ease_seconds() / 3.0;
        (self.distance - eased_max).max(0.0) / self.config.speed
    }

    /// Returns the state to draw while the ghost is at `ghost`.
    pub(crate) fn show(&self, ghost: &S) -> S {
        let Some((shown, should)) = &self.difference else {
            return ghost.clone();
        };
        // ghost + (shown - should) * share, by two blends.
        let blend = |share| Blend {
            share,
            seconds: 0.0,
        };
        let share = self.share();
        let between = ghost.blend(shown, blend(share / (1.0 + share)));
        between.blend(should, blend(-share))
    }
}

/// Differences smaller than this are not worth smoothing.
pub(crate) const IGNORE_BELOW: f32 = 0.001;
/// The time in which a small difference goes away, in times after which a third of it is left: 1 / (1 - 1/3^(1/3)).
const EASE_TIMES: f32 = 3.261;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    struct Body {
        #[field(range = -100.0..=100.0, step = 0.001)]
        x: f32,
        #[field(interpolate = none)]
        ammo: u8,
    }

    fn apart(a: &Body, b: &Body) -> f32 {
        (a.x - b.x).abs()
    }

    #[test]
    fn the_visible_body_moves_on_without_a_jump() {
        let mut smoothing = Smoothing::new(SmoothingConfig::default());
        let mut ghost = Body { x: 0.0, ammo: 9 };
        let mut last = 0.0;
        for frame in 0..300 {
            ghost.x += 0.05;
            if frame == 100 || frame == 103 {
                let before = ghost.clone();
                ghost = Body {
                    x: before.x - 1.0,
                    ammo: 8,
                };
                assert_eq!(
                    smoothing.correct(&before, &ghost, apart),
                    Correction::Smoothed
                );
            }
            let shown = smoothing.show(&ghost);
            assert_eq!(shown.ammo, ghost.ammo, "what does not blend is the ghost's");
            assert!(
                (shown.x - last).abs() < 0.3,
                "jump at {frame}: {last} to {}",
                shown.x
            );
            last = shown.x;
            smoothing.advance(1.0 / 60.0);
        }
        assert_eq!(smoothing.difference, None);
        assert_eq!(last, ghost.x);
    }

    #[test]
    fn small_differences_are_ignored_and_large_ones_shown() {
        let mut smoothing = Smoothing::new(SmoothingConfig::default());
        let at = |x| Body { x, ammo: 0 };
        assert_eq!(
            smoothing.correct(&at(0.0), &at(0.0005), apart),
            Correction::Ignored
        );
        assert_eq!(
            smoothing.correct(&at(0.0), &at(10.0), apart),
            Correction::Snapped
        );
        assert_eq!(smoothing.show(&at(10.0)), at(10.0));
    }

    #[test]
    fn a_difference_goes_at_the_speed_that_is_allowed_and_comes_to_its_end() {
        let at = |x| Body { x, ammo: 0 };
        for distance in [0.01, 0.5, 1.0, 4.0] {
            let mut smoothing = Smoothing::new(SmoothingConfig::default());
            smoothing.correct(&at(distance), &at(0.0), apart);
            let (mut last, mut seconds) = (distance, 0.0);
            while smoothing.is_active() {
                smoothing.advance(0.01);
                seconds += 0.01;
                let left = smoothing.show(&at(0.0)).x;
                let speed = (last - left) / 0.01;
                assert!((-0.001..10.01).contains(&speed), "{distance}: {speed} m/s");
                last = left;
                // What changes nothing to be seen does not make it take longer.
                let ignored = smoothing.correct(&at(0.0), &at(0.0), apart);
                assert_eq!(ignored, Correction::Ignored);
            }
            assert_eq!(last, 0.0);
            let longest = 0.33 + (distance - 1.08).max(0.0) / 10.0;
            assert!(
                (longest - 0.03..longest + 0.02).contains(&seconds),
                "{distance}: {seconds} s"
            );
        }
        let mut smoothing = Smoothing::new(SmoothingConfig::default());
        smoothing.correct(&at(0.3), &at(0.0), apart);
        smoothing.advance(0.1);
        let left = smoothing.show(&at(0.0)).x;
        assert!((left - 0.1).abs() < 0.005, "a third is left: {left}");
    }
}
