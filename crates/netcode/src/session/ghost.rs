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
        let (state, raw, source) = match now {
            Some(state) => {
                // From where it would be in this very frame: between two ticks a change of velocity is another difference than at either.
                if let Some(old) = self.expected(time, tick_seconds, |frame| &frame.state)
                    && was
                    && is_corrected
                {
                    let distance = distance(&old, &state);
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
                self.handover.correct(&old, &raw, distance(&old, &raw));
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

    /// How it moved by a prediction that was wrong says nothing about how it moves now: the frame before is kept as the new prediction has it.
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
