//! Leads an entity over from interpolated to predicted and back, and hides wrong predictions.

use muse_schema::{Blend, State};
use muse_wire::Duration;

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
    before_last: Option<Frame<S>>,
    correction: Smoothing<S>,
    handover: Smoothing<S>,
}

/// A frame in which it was shown.
#[derive(Debug)]
struct Frame<S> {
    seconds: f64,
    /// As its source had it.
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
            handover: Smoothing::steady(handover),
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

    /// Returns what to draw at an instant of the client's own game.
    pub(super) fn show(
        &mut self,
        seconds: f64,
        shown: Shown<S>,
        predicted: Option<S>,
        distance: fn(&S, &S) -> f32,
    ) -> Shown<S> {
        let was = std::mem::replace(&mut self.is_predicted, predicted.is_some());
        if !was && predicted.is_none() && !self.handover.is_active() {
            self.last = None;
            return shown;
        }
        let last = self.last.as_ref();
        let passed = last.map_or(0.0, |last| seconds - last.seconds) as f32;
        self.correction.advance(passed);
        self.handover.advance(passed);
        let is_corrected = std::mem::take(&mut self.is_corrected);
        let (state, raw, source) = match predicted {
            Some(state) => {
                // From where it would be in this very frame: between two ticks a change of velocity is another difference than at either.
                if let Some(old) = self.expected(seconds, |frame| &frame.state)
                    && was
                    && is_corrected
                {
                    let distance = distance(&old, &state);
                    self.correction.correct(&old, &state, distance);
                    // How it moved before says nothing about how it moves now.
                    self.last = None;
                }
                let raw = self.correction.show(&state);
                (state, raw, Source::Predicted)
            }
            None => (shown.state.clone(), shown.state.clone(), shown.source),
        };
        if was != self.is_predicted {
            // What it would have been in this frame without the change.
            let old = match was {
                false => Some(shown.state),
                true => self.expected(seconds, |frame| &frame.raw),
            };
            if let Some(old) = old {
                self.handover.correct(&old, &raw, distance(&old, &raw));
            }
            if !self.is_predicted {
                self.correction.clear();
            }
        }
        let frame = Frame {
            seconds,
            state,
            raw: raw.clone(),
        };
        self.before_last = self.last.replace(frame);
        Shown {
            state: self.handover.show(&raw),
            source,
        }
    }

    /// The state at an instant, if it goes on as in the last two frames; if there was one alone, by its velocity.
    fn expected(&self, seconds: f64, of: fn(&Frame<S>) -> &S) -> Option<S> {
        let last = self.last.as_ref()?;
        let passed = seconds - last.seconds;
        let before = self.before_last.as_ref();
        Some(
            match before.filter(|before| before.seconds < last.seconds) {
                Some(before) => {
                    let span = last.seconds - before.seconds;
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
                    let (share, seconds) = (2.0, passed as f32);
                    of(last).blend(of(last), Blend { share, seconds })
                }
            },
        )
    }
}

/// Time after which a third of a small difference is left.
const HANDOVER_TIME: Duration = Duration::from_millis(100);
/// Metres a second by which what is shown moves besides its own motion while it goes over: 1.7 cm a frame at 60 a second.
const HANDOVER_SPEED: f32 = 1.0;
/// Distance beyond which an entity is shown at its new place at once.
const HANDOVER_DISTANCE_MAX: f32 = 20.0;
