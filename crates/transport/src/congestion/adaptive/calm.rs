//! Steps of the window while no queue-filling flow is near: Copa's default mode.

/// The direction and the speed in which the window changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calm {
    /// Multiplies the step; doubles while the direction holds.
    velocity: f64,
    rising: bool,
    /// Rounds in this direction.
    rounds: u32,
    window_before: f64,
}

impl Calm {
    pub(super) fn new(window: f64, rising: bool) -> Self {
        Self {
            velocity: 1.0,
            rising,
            rounds: 0,
            window_before: window,
        }
    }

    /// The size of the step for `bytes` acknowledged, upwards or downwards: `wanted` bytes per round trip, times the velocity.
    /// Windows below `small` rise by as much as that one may, and fall by a share of themselves: of two flows that rise and fall
    /// together, the larger then loses more than it gains.
    pub(super) fn step(
        &mut self,
        up: bool,
        window: f64,
        wanted: f64,
        bytes: f64,
        small: f64,
    ) -> f64 {
        if up != self.rising {
            // The direction turned: small steps again.
            (self.velocity, self.rising, self.rounds) = (1.0, up, 0);
        }
        let most = match up {
            true => STEP_MAX * (small / window).max(1.0),
            false => STEP_MAX,
        };
        (self.velocity * wanted / window).min(most) * bytes
    }

    pub(super) fn next_round(&mut self, window: f64) {
        let went_up = window > self.window_before;
        self.window_before = window;
        if went_up != self.rising {
            (self.velocity, self.rounds) = (1.0, 0);
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds >= ROUNDS_STEADY {
            self.velocity = (self.velocity * 2.0).min(VELOCITY_MAX);
        }
    }
}

/// Rounds in one direction before it is believed.
const ROUNDS_STEADY: u32 = 3;
const VELOCITY_MAX: f64 = 1e6;
/// Most that the window changes in a round trip, as a share of itself; more overshoots and oscillates.
const STEP_MAX: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_while_the_direction_holds_and_start_over_when_it_turns() {
        let mut calm = Calm::new(100_000.0, true);
        let mut window = 100_000.0;
        let first = calm.step(true, window, 2_400.0, 1_200.0, 0.0);
        for _ in 0..5 {
            window += calm.step(true, window, 2_400.0, 1_200.0, 0.0);
            calm.next_round(window);
        }
        assert!(calm.step(true, window, 2_400.0, 1_200.0, 0.0) > 3.0 * first);
        assert!(calm.step(false, window, 2_400.0, 1_200.0, 0.0) <= first);
    }

    #[test]
    fn a_round_changes_the_window_by_a_fifth_at_most() {
        let mut calm = Calm::new(10_000.0, true);
        for round in 1..100 {
            calm.next_round(10_000.0 + f64::from(round));
        }
        assert_eq!(calm.step(true, 10_000.0, 2_400.0, 10_000.0, 0.0), 2_000.0);
    }

    #[test]
    fn small_windows_rise_by_the_same_and_fall_by_a_share() {
        let mut calm = Calm::new(2_000.0, true);
        let rise = |calm: &mut Calm, window| calm.step(true, window, 2_400.0, window, 6_000.0);
        assert_eq!(rise(&mut calm, 2_000.0), rise(&mut calm, 4_000.0));
        let fall = |calm: &mut Calm, window| calm.step(false, window, 2_400.0, window, 6_000.0);
        assert_eq!(2.0 * fall(&mut calm, 2_000.0), fall(&mut calm, 4_000.0));
    }
}
