//! Leads an entity over from interpolated to predicted and back, and hides wrong predictions.

use muse_schema::{Blend, State};
use muse_wire::Duration;

use crate::interpolation::{Shown, Source};
use crate::smoothing::{Smoothing, SmoothingConfig};

/// One entity as it is shown, between two sources.
#[derive(Debug)]
pub(super) struct Ghost<S> {
    /// The last correction that was taken.
    pub(super) corrections: u64,
    /// True if it was predicted in the last frame.
    pub(super) is_predicted: bool,
    /// The states of the last two frames without smoothing, with their times in seconds.
    last: Option<(f64, S)>,
    before_last: Option<(f64, S)>,
    correction: Smoothing<S>,
    handover: Smoothing<S>,
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
        if let Some((before, after)) = change.filter(|_| self.is_predicted) {
            let distance = distance(&before, &after);
            self.correction.correct(&before, &after, distance);
        }
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
        let passed = self.last.as_ref().map_or(0.0, |(at, _)| seconds - at) as f32;
        self.correction.advance(passed);
        self.handover.advance(passed);
        let (raw, source) = match predicted {
            Some(state) => (self.correction.show(&state), Source::Predicted),
            None => (shown.state.clone(), shown.source),
        };
        if was != self.is_predicted {
            // What it would have been in this frame without the change.
            let old = match was {
                false => Some(shown.state),
                true => self.expected(seconds),
            };
            if let Some(old) = old {
                self.handover.correct(&old, &raw, distance(&old, &raw));
            }
            if !self.is_predicted {
                self.correction.clear();
            }
        }
        self.before_last = self.last.replace((seconds, raw.clone()));
        Shown {
            state: self.handover.show(&raw),
            source,
        }
    }

    /// The state at an instant, if it goes on as in the last two frames.
    fn expected(&self, seconds: f64) -> Option<S> {
        let (at, last) = self.last.as_ref()?;
        let Some((from, before)) = &self.before_last else {
            return Some(last.clone());
        };
        let span = at - from;
        if span <= 0.0 {
            return Some(last.clone());
        }
        let blend = Blend {
            share: ((seconds - from) / span) as f32,
            seconds: span as f32,
        };
        Some(before.blend(last, blend))
    }
}

/// Time after which a third of a small difference is left.
const HANDOVER_TIME: Duration = Duration::from_millis(100);
/// Metres a second by which what is shown moves besides its own motion while it goes over: 1.7 cm a frame at 60 a second.
const HANDOVER_SPEED: f32 = 1.0;
/// Distance beyond which an entity is shown at its new place at once.
const HANDOVER_DISTANCE_MAX: f32 = 20.0;
