//! Speed control: how long a turn is, from every machine's round trip and the time it takes for a step.
//!
//! A long round trip makes turns longer by more steps, which delays commands but not the game; a slow machine makes steps
//! longer, which slows the game down for all. It lengthens at once and shortens late: a steady delay is
//! better than a varying one, players get used to half a second but not to something between 80 and 500 ms.

use muse_wire::{Duration, Instant};

use crate::config::MatchConfig;

#[derive(Debug)]
pub(crate) struct Speed {
    base: Duration,
    turn_max: Duration,
    delay: u32,
    steps: u8,
    step: Duration,
    next_at: Instant,
    /// In a row: evaluations that wanted a longer turn, and that wanted a shorter one.
    longer: u32,
    shorter: u32,
    /// The longest turn wanted while shorter ones were.
    shorter_wants: (u8, Duration),
}

impl Speed {
    pub(crate) fn new(config: &MatchConfig) -> Self {
        let steps = match config.mode {
            crate::Mode::Lockstep => STEPS_START,
            crate::Mode::Rollback => 1,
        };
        Self {
            base: config.frame,
            turn_max: config.turn_max,
            delay: config.delay,
            steps,
            step: config.frame,
            next_at: Instant::FAR_FUTURE,
            longer: 0,
            shorter: 0,
            shorter_wants: (1, Duration::ZERO),
        }
    }

    pub(crate) fn plan(&self) -> (u8, Duration) {
        (self.steps, self.step)
    }

    pub(crate) fn begin(&mut self, now: Instant) -> (u8, Duration) {
        self.next_at = now + EVERY;
        self.plan()
    }

    /// Goes on with a plan that another orderer made.
    pub(crate) fn go_on(&mut self, now: Instant, plan: (u8, Duration)) {
        (self.steps, self.step) = plan;
        self.next_at = now + EVERY;
    }

    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Nothing to control.
    pub(crate) fn skip(&mut self, now: Instant) {
        if now >= self.next_at {
            self.next_at = now + EVERY;
        }
    }

    /// Once a second: the new plan, if it changes. `machines` are round trip (with its variation) and time for a step of each.
    pub(crate) fn evaluate(
        &mut self,
        now: Instant,
        machines: impl Iterator<Item = (Duration, Duration)>,
    ) -> Option<(u8, Duration)> {
        if now < self.next_at {
            return None;
        }
        self.next_at = now + EVERY;
        let wanted = self.wanted(machines);
        let turn = |(steps, step): (u8, Duration)| step * u64::from(steps);
        let (now_turn, wanted_turn) = (turn(self.plan()), turn(wanted));
        let slower = wanted.1 > self.step * 21 / 20;
        if wanted_turn > now_turn || slower {
            self.longer += 1;
            self.shorter = 0;
            if self.longer >= LONGER_AFTER {
                return self.adopt(wanted);
            }
        } else if wanted_turn * 4 < now_turn * 3 || wanted.1 * 4 < self.step * 3 {
            self.longer = 0;
            if self.shorter == 0 || turn(self.shorter_wants) < wanted_turn {
                self.shorter_wants = wanted;
            }
            self.shorter += 1;
            if self.shorter >= SHORTER_AFTER {
                return self.adopt(self.shorter_wants);
            }
        } else {
            self.longer = 0;
            self.shorter = 0;
        }
        None
    }

    /// The shortest turn with which commands arrive in time everywhere: out to the orderer and from there to the furthest,
    /// within the delay, with a step to spare.
    fn wanted(&self, machines: impl Iterator<Item = (Duration, Duration)>) -> (u8, Duration) {
        let (mut furthest, mut second, mut cost) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for (rtt, machine_cost) in machines {
            cost = cost.max(machine_cost);
            (furthest, second) = (furthest.max(rtt), second.max(furthest.min(rtt)));
        }
        let step = self.base.max(cost * 6 / 5).min(self.turn_max);
        let trip = (furthest + second) / 2 + step;
        let turn = trip / u64::from(self.delay.max(1));
        let steps = turn.as_micros().div_ceil(step.as_micros().max(1));
        let steps_max = (self.turn_max.as_micros() / step.as_micros().max(1)).clamp(1, STEPS_MAX);
        (steps.clamp(1, steps_max) as u8, step)
    }

    fn adopt(&mut self, wanted: (u8, Duration)) -> Option<(u8, Duration)> {
        (self.longer, self.shorter) = (0, 0);
        let changed = wanted != self.plan();
        (self.steps, self.step) = wanted;
        changed.then_some(wanted)
    }
}

const EVERY: Duration = Duration::from_secs(1);
/// Evaluations in a row that want longer turns before they come.
const LONGER_AFTER: u32 = 2;
/// And shorter ones: twenty seconds.
const SHORTER_AFTER: u32 = 20;
/// Age of Empires' 200 ms, with steps of 50.
const STEPS_START: u8 = 4;
const STEPS_MAX: u64 = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Runs for so many seconds with round trips drawn around `rtt` and returns how often the plan changed.
    fn run(speed: &mut Speed, from: u64, seconds: u64, rtt: u64, spread: u32, cost: u64) -> u32 {
        let mut rng = Rng::new(from + 1);
        let mut changes = 0;
        for second in from..from + seconds {
            let mut drawn = || Duration::from_millis(rtt + u64::from(rng.below(spread + 1)));
            let machines = [
                (drawn(), Duration::from_millis(cost)),
                (drawn(), Duration::ZERO),
            ];
            let now = Instant::from_secs(second);
            changes += u32::from(speed.evaluate(now, machines.into_iter()).is_some());
        }
        changes
    }

    fn speed() -> Speed {
        let mut speed = Speed::new(&MatchConfig::lockstep(2));
        speed.begin(Instant::ZERO);
        speed
    }

    #[test]
    fn it_follows_a_change_and_does_not_swing() {
        let mut speed = speed();
        assert!(
            run(&mut speed, 1, 600, 300, 100, 1) <= 2,
            "a noisy link is no reason to change often"
        );
        let far = speed.plan().0;
        assert!(
            (4..=5).contains(&far),
            "{far}: 400 ms and a step within two turns of 50 ms steps"
        );
        assert!(run(&mut speed, 601, 600, 30, 10, 1) <= 2);
        assert_eq!(speed.plan().0, 1, "close together");
        assert!(run(&mut speed, 1_201, 10, 700, 0, 1) <= 2);
        assert_eq!(
            speed.plan(),
            (8, Duration::from_millis(50)),
            "longer within seconds"
        );
    }

    #[test]
    fn a_round_trip_that_comes_and_goes_leaves_the_longer_turn() {
        let mut speed = speed();
        let mut changes = 0;
        for round in 0..30 {
            let rtt = if round % 2 == 0 { 600 } else { 50 };
            changes += run(&mut speed, 1 + round * 10, 10, rtt, 20, 1);
        }
        assert_eq!(changes, 1, "ten good seconds are no reason to shorten");
    }

    #[test]
    fn a_slow_machine_slows_the_game() {
        let mut speed = speed();
        run(&mut speed, 1, 10, 50, 0, 100);
        assert_eq!(speed.plan().1, Duration::from_millis(120));
    }
}
