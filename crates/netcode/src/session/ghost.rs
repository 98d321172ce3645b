//! Leads an entity over from interpolated to predicted and back, and hides wrong predictions.

use muse_schema::{Blend, State};
use muse_wire::Duration;

use crate::TickTime;
use crate::interpolation::{Shown, Source};
use crate::smoothing::{IGNORE_BELOW, Smoothing, SmoothingConfig};

/// One entity as it is shown, between two sources.
#[derive(Debug)]
pub(super) struct Ghost<S> {
    /// The last correction that was taken.
    pub(super) corrections: u64,
    /// True if it was predicted in the last frame.
    pub(super) is_predicted: bool,
    /// True if its prediction has changed since.
    is_corrected: bool,
    last: Option<Frame<S>>,
    /// An earlier one, at another instant, so that both say how it moves. It is kept as the same prediction has it that the last was drawn by.
    before_last: Option<Frame<S>>,
    correction: Smoothing<S>,
    handover: Smoothing<S>,
}

/// A frame in which it was shown.
#[derive(Debug)]
struct Frame<S> {
    time: TickTime,
    /// As its source has it.
    state: S,
    /// As it would have been shown without the step from one source to the other.
    raw: S,
}

impl<S: State> Ghost<S> {
    pub(super) fn new(smoothing: SmoothingConfig) -> Self {
        let handover = SmoothingConfig::default()
            .time(HANDOVER_TIME)
            .speed(HANDOVER_SPEED)
            .snap_above(HANDOVER_DISTANCE_MAX);
        Self {
            corrections: 0,
            is_predicted: false,
            is_corrected: false,
            last: None,
            before_last: None,
            correction: Smoothing::new(smoothing),
            handover: Smoothing::new(handover),
        }
    }

    /// The prediction changed from one state to another.
    pub(super) fn handle_correction(
        &mut self,
        number: u64,
        change: Option<(S, S)>,
        distance: fn(&S, &S) -> f32,
    ) {
        self.corrections = number;
        let changed = |(before, after): (S, S)| distance(&before, &after) >= IGNORE_BELOW;
        self.is_corrected |= change.is_some_and(changed);
    }

    /// Returns what to draw at an instant of the client's own game, in which a tick lasts so many seconds; `predicted` says where the client's prediction
    /// has it at an instant, if it is predicted.
    pub(super) fn show(
        &mut self,
        (time, tick_seconds): (TickTime, f32),
        shown: Shown<S>,
        predicted: impl Fn(TickTime) -> Option<S>,
        distance: fn(&S, &S) -> f32,
    ) -> Shown<S> {
        let now = predicted(time);
        let was = std::mem::replace(&mut self.is_predicted, now.is_some());
        if !was && now.is_none() && !self.handover.is_active() {
            self.last = None;
            self.before_last = None;
            return shown;
        }
        let passed = self.last.as_ref().map(|last| ticks(last.time, time));
        let passed = passed.unwrap_or(0.0) as f32 * tick_seconds;
        self.correction.advance(passed);
        self.handover.advance(passed);
        let is_corrected = std::mem::take(&mut self.is_corrected);
        let shown_now = now.as_ref().unwrap_or(&shown.state);
        let is_elsewhere = |last: &Frame<S>| distance(&last.state, shown_now) >= f32::MAX;
        if self.last.as_ref().is_some_and(is_elsewhere) {
            // No way leads there, and nothing of the way before is left.
            self.correction.clear();
            self.handover.clear();
        }
        let (state, raw, source) = match now {
            Some(state) => {
                // From where it would be in this very frame: between two ticks a change of velocity is another difference than at either.
                if let Some(old) = self.expected(time, tick_seconds, |frame| &frame.state)
                    && was
                    && is_corrected
                {
                    self.correction.correct(&old, &state, distance);
                }
                let raw = self.correction.show(&state);
                (state, raw, Source::Predicted)
            }
            None => (shown.state.clone(), shown.state.clone(), shown.source),
        };
        let goes_over = was != self.is_predicted;
        if goes_over {
            // What it would have been in this frame without the change.
            let old = match was {
                false => Some(shown.state),
                true => self.expected(time, tick_seconds, |frame| &frame.raw),
            };
            if let Some(old) = old {
                self.handover.correct(&old, &raw, distance);
            }
            if !self.is_predicted {
                self.correction.clear();
            }
        }
        let frame = Frame {
            time,
            state,
            raw: raw.clone(),
        };
        self.note(frame, goes_over);
        if is_corrected || goes_over {
            self.rewrite(goes_over, predicted);
        }
        let both = self.before_last.as_ref().zip(self.last.as_ref());
        if both.is_some_and(|(before, last)| distance(&before.state, &last.state) >= f32::MAX) {
            self.before_last = None;
        }
        Shown {
            state: self.handover.show(&raw),
            source,
        }
    }

    /// Keeps a frame, and the last one at another instant: a frame that is drawn again says nothing of how it moves.
    fn note(&mut self, frame: Frame<S>, goes_over: bool) {
        let is_again = |last: &Frame<S>| last.time >= frame.time;
        let again = self.last.as_ref().is_some_and(is_again) && !goes_over;
        let last = self.last.replace(frame);
        if !again {
            self.before_last = last;
        }
    }

    /// Keeps the frame before as the new prediction has it: how it moved by one that was wrong says nothing about how it moves now.
    fn rewrite(&mut self, goes_over: bool, predicted: impl Fn(TickTime) -> Option<S>) {
        let Some(mut before) = self.before_last.take() else {
            return;
        };
        let Some(state) = predicted(before.time) else {
            return;
        };
        if goes_over {
            before.raw = state.clone();
        }
        before.state = state;
        self.before_last = Some(before);
    }

    /// The state at an instant, if it goes on as in the last two frames; if there was one alone, by its velocity.
    fn expected(&self, time: TickTime, tick_seconds: f32, of: fn(&Frame<S>) -> &S) -> Option<S> {
        let last = self.last.as_ref()?;
        let passed = ticks(last.time, time);
        let before = self.before_last.as_ref();
        Some(match before.filter(|before| before.time < last.time) {
            Some(before) => {
                let span = ticks(before.time, last.time);
                let share = (1.0 + passed / span) as f32;
                // No seconds: straight on, whatever its velocity is.
                of(before).blend(
                    of(last),
                    Blend {
                        share,
                        seconds: 0.0,
                    },
                )
            }
            None => {
                let (share, seconds) = (2.0, passed as f32 * tick_seconds);
                of(last).blend(of(last), Blend { share, seconds })
            }
        })
    }
}

/// Ticks from one instant to another.
fn ticks(from: TickTime, to: TickTime) -> f64 {
    to.ticks() - from.ticks()
}

/// Time after which a third of a small difference is left.
const HANDOVER_TIME: Duration = Duration::from_millis(100);
/// Metres a second by which what is shown moves besides its own motion while it goes over: 1.7 cm a frame at 60 a second.
const HANDOVER_SPEED: f32 = 1.0;
/// Distance beyond which an entity is shown at its new place at once.
const HANDOVER_DISTANCE_MAX: f32 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(State, Clone, Debug, PartialEq)]
    struct Ball {
        #[field(range = -100.0..=100.0, step = 0.001, velocity = speed)]
        x: f32,
        #[field(range = -20.0..=20.0, step = 0.001)]
        speed: f32,
    }

    fn distance(a: &Ball, b: &Ball) -> f32 {
        (a.x - b.x).abs()
    }

    /// A ball that flies against a wall and back: its velocity after a tick says nothing of the way there.
    fn bounced(time: TickTime, from: f32) -> Ball {
        let x = from + SPEED * time.ticks() as f32 * TICK;
        let speed = match time.ticks() > WALL {
            true => -SPEED,
            false => SPEED,
        };
        Ball { x, speed }
    }

    fn ghost() -> Ghost<Ball> {
        Ghost::new(SmoothingConfig::default().snap_above(100.0))
    }

    /// Draws a frame `draws` times, in which the ball is predicted there. Returns its place.
    fn show(
        ghost: &mut Ghost<Ball>,
        ticks: f64,
        draws: u32,
        predicted: impl Fn(TickTime) -> Option<Ball>,
    ) -> f32 {
        let time = TickTime::from_ticks(ticks);
        let mut x = f32::NAN;
        for _ in 0..draws {
            let source = Source::Between;
            let state = bounced(time, -3.0);
            let interpolated = Shown { state, source };
            let shown = ghost.show((time, TICK), interpolated, &predicted, distance);
            x = shown.state.x;
        }
        x
    }

    fn correct(ghost: &mut Ghost<Ball>, number: u64) {
        let (before, after) = (Ball { x: 0.0, speed: 0.0 }, Ball { x: 1.0, speed: 0.0 });
        ghost.handle_correction(number, Some((before, after)), distance);
    }

    #[test]
    fn what_goes_over_moves_on_though_frames_are_drawn_twice() {
        for draws in 1..=3 {
            let mut ghost = ghost();
            let mut last = 0.0;
            for frame in 0..=9 {
                let at = |time| Some(bounced(time, 0.0));
                last = show(&mut ghost, f64::from(frame), draws, at);
            }
            let next = show(&mut ghost, 10.0, draws, |_| None);
            let step = next - last - SPEED * TICK;
            assert!(step.abs() < GOES_OVER, "{draws}: {step} m");
        }
    }

    #[test]
    fn corrections_of_which_one_follows_the_other_are_blended_from_what_is_shown() {
        for draws in 1..=3 {
            let mut ghost = ghost();
            let mut last = 0.0;
            for frame in 0..=8 {
                let at = |time| Some(bounced(time, 0.0));
                last = show(&mut ghost, f64::from(frame), draws, at);
            }
            for (number, from) in [(1, 2.0), (2, 5.0), (3, 4.0)] {
                correct(&mut ghost, number);
                let at = |time| Some(bounced(time, from));
                let shown = show(&mut ghost, 8.0 + number as f64, draws, at);
                // It moves as before, and loses what earlier corrections have left at the speed that is allowed.
                let step = (shown - last - SPEED * TICK).abs();
                assert!(
                    step < 10.0 * TICK + GOES_OVER,
                    "{draws}, {number}: {step} m"
                );
                last = shown;
            }
        }
    }

    /// A ball that is put back while it goes over is there at once, not as far beside as it still had to go.
    #[test]
    fn what_is_put_elsewhere_is_there_at_once() {
        fn lives(a: &Ball, b: &Ball) -> f32 {
            if (a.x < 40.0) == (b.x < 40.0) {
                return distance(a, b);
            }
            f32::MAX
        }
        let mut ghost = ghost();
        for ticks in 0..=10 {
            let time = TickTime::from_ticks(f64::from(ticks));
            let shown = Shown {
                state: bounced(time, -3.0),
                source: Source::Between,
            };
            let predicted = |at: TickTime| match at.ticks() {
                ..2.0 => None,
                ..10.0 => Some(bounced(at, 0.0)),
                _ => Some(Ball {
                    x: 60.0,
                    speed: 0.0,
                }),
            };
            let shown = ghost.show((time, TICK), shown, predicted, lives);
            assert_eq!(shown.state.x == 60.0, ticks == 10, "{}", shown.state.x);
        }
    }

    const TICK: f32 = 0.02;
    const SPEED: f32 = 15.0;
    /// Metres in a frame, while it goes over from interpolated.
    const GOES_OVER: f32 = HANDOVER_SPEED * TICK + 0.001;
    /// Ticks until the ball turns round, as far as its velocity tells.
    const WALL: f64 = 7.5;
}
