//! Showing what others do, between the states that have arrived.
//!
//! A client shows others a little in the past, so that there is a state on either side of the instant shown. How little is
//! measured, not assumed: [`Playback`] sees how snapshots arrive and follows the instant to show with a steered clock,
//! one for all entities. [`Interpolated`] holds the states of one entity and makes what is shown of them; when there is nothing to
//! interpolate to it goes on in the same direction for a while, and comes back without a jump.

mod playback;

pub use playback::Playback;

use std::collections::VecDeque;

use muse_schema::{Blend, State};
use muse_wire::Duration;

use crate::smoothing::{Correction, Smoothing, SmoothingConfig};
use crate::{Tick, TickTime};

/// Settings of an [`Interpolated`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterpolationConfig {
    tick_seconds: f32,
    beyond_max: f64,
    pub(crate) smoothing: SmoothingConfig,
}

impl InterpolationConfig {
    /// For ticks of this length.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick_seconds: tick.as_secs_f64() as f32,
            beyond_max: 0.25 / tick.as_secs_f64().max(1e-6),
            smoothing: SmoothingConfig::default()
                .time(SMOOTHING_TIME)
                .speed(SMOOTHING_SPEED),
        }
    }

    /// Sets how long an entity goes on after its last state before it stops. Default: 250 ms; longer hides longer gaps, and
    /// is further off when the entity turned.
    pub fn beyond_max(mut self, time: Duration) -> Self {
        self.beyond_max = time.as_secs_f64() / f64::from(self.tick_seconds.max(1e-6));
        self
    }

    /// Sets how it comes back afterwards, and how wrong predictions of it are hidden. What may go faster than a player, such as a ball, is
    /// further from where it was predicted, and wants a larger [`snap_above`](SmoothingConfig::snap_above) and a higher speed.
    pub fn smoothing(mut self, smoothing: SmoothingConfig) -> Self {
        self.smoothing = smoothing;
        self
    }
}

/// One entity as it is shown: its last states, in order, and the way between them.
///
/// `distance` says how far apart two states are, in the game's own measure, to decide how a gap is closed. Where it is [`f32::MAX`] there is no way from
/// the one to the other (a respawn, a teleport), and nothing is shown between them.
///
/// ```
/// use muse_netcode::{Tick, TickTime};
/// use muse_netcode::interpolation::{Interpolated, InterpolationConfig, Source};
/// use muse_schema::State;
/// use muse_wire::Duration;
/// #[derive(State, Clone)]
/// struct Body {
///     #[field(range = -100.0..=100.0, step = 0.01)]
///     x: f32,
/// }
/// let config = InterpolationConfig::new(Duration::from_millis(20));
/// let mut body = Interpolated::new(config, |a: &Body, b: &Body| (a.x - b.x).abs());
/// body.handle_state(Tick(10), Body { x: 1.0 });
/// body.handle_state(Tick(14), Body { x: 3.0 });
/// let shown = body.show(TickTime::from_ticks(11.0)).expect("there are states");
/// assert_eq!((shown.state.x, shown.source), (1.5, Source::Between));
/// ```
#[derive(Clone, Debug)]
pub struct Interpolated<S> {
    config: InterpolationConfig,
    distance: fn(&S, &S) -> f32,
    /// The oldest first.
    states: VecDeque<(Tick, S)>,
    smoothing: Smoothing<S>,
    shown_at: Option<f64>,
    /// The state before smoothing that was shown last, if something was in its way.
    stopped: Option<S>,
    /// The same between two states, until the way is free.
    held: Option<S>,
    snaps: u64,
}

/// A state to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown<S> {
    /// The state.
    pub state: S,
    /// The origin of the state.
    pub source: Source,
}

/// The origin of a shown state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the states on either side.
    Between,
    /// From the first state: it appeared later than the instant shown.
    First,
    /// From the last two states: the next is overdue.
    Beyond,
    /// From where it stopped: the next is overdue for too long.
    Stopped,
    /// From the client's own prediction: it is where it is by now.
    Predicted,
}

impl Source {
    /// True if the state that should have been there was not.
    pub fn is_underrun(self) -> bool {
        matches!(self, Self::Beyond | Self::Stopped)
    }
}

impl<S: State> Interpolated<S> {
    /// States remembered.
    pub const STATES_MAX: usize = 32;

    /// An entity of which nothing is known.
    pub fn new(config: InterpolationConfig, distance: fn(&S, &S) -> f32) -> Self {
        Self {
            config,
            distance,
            states: VecDeque::with_capacity(Self::STATES_MAX),
            smoothing: Smoothing::new(config.smoothing),
            shown_at: None,
            stopped: None,
            held: None,
            snaps: 0,
        }
    }

    /// A state arrived; in any order, and again does no harm. Says whether it is of use.
    pub fn handle_state(&mut self, tick: Tick, state: S) -> bool {
        let place = self.states.partition_point(|(other, _)| *other < tick);
        let known = self
            .states
            .get(place)
            .is_some_and(|(other, _)| *other == tick);
        // Older than what is being interpolated from.
        let outdated =
            place == 0 && !self.states.is_empty() && self.shown_at >= Some(f64::from(tick.0));
        if known || outdated {
            return false;
        }
        // A late state changes the curve under what is being shown; the difference is blended away.
        let before = self.shown_at.and_then(|at| self.curve(at));
        let before = before.map(|shown| self.stopped.take().unwrap_or(shown.state));
        if self.states.len() == Self::STATES_MAX {
            if place == 0 {
                return false;
            }
            self.states.pop_front();
            self.states.insert(place - 1, (tick, state));
        } else {
            self.states.insert(place, (tick, state));
        }
        // The state shown at this very instant now lies on another curve.
        let after = self.shown_at.and_then(|at| self.curve(at));
        if let (Some(before), Some(after)) = (before, after) {
            let distance = self.distance;
            let correction = self.smoothing.correct(&before, &after.state, distance);
            self.snaps += u64::from(correction == Correction::Snapped);
        }
        true
    }

    /// Returns the state to draw at `time`, which never goes back; `None` before the first state.
    pub fn show(&mut self, time: TickTime) -> Option<Shown<S>> {
        self.show_within(time, |_, ahead| ahead)
    }

    /// As [`show`](Self::show), in a world with obstacles: `stop` gets a state and the one that would be shown if nothing were in between, and returns how far the
    /// entity gets. It is asked about the way from the last state that arrived, and again while an error is smoothed away.
    pub fn show_within(
        &mut self,
        time: TickTime,
        mut stop: impl FnMut(&S, S) -> S,
    ) -> Option<Shown<S>> {
        let at = time.ticks();
        if let Some(last) = self.shown_at.replace(at) {
            let seconds = (at - last) as f32 * self.config.tick_seconds;
            self.smoothing.advance(seconds);
        }
        // The last two stay, to go on from; of the others what is behind has done its work.
        while self.states.len() > 2 && f64::from(self.states[1].0.0) <= at {
            self.states.pop_front();
        }
        let mut shown = self.curve(at)?;
        self.stopped = None;
        let held = self.held.take();
        let before = self
            .states
            .partition_point(|(tick, _)| f64::from(tick.0) <= at);
        if let Some((_, from)) = before
            .checked_sub(1)
            .and_then(|place| self.states.get(place))
            && from.differs(&shown.state)
        {
            let free = shown.state.clone();
            let state = stop(from, shown.state);
            match shown.source.is_underrun() {
                true => self.stopped = Some(state.clone()),
                false => self.held = free.differs(&state).then(|| state.clone()),
            }
            shown.state = state;
        }
        if let Some(held) = held
            && self.held.is_none()
        {
            // It went round what it was held by, and is led to where it is by now.
            self.smoothing.correct(&held, &shown.state, self.distance);
        }
        if self.smoothing.is_active() {
            let smoothed = self.smoothing.show(&shown.state);
            shown.state = stop(&shown.state, smoothed);
        }
        Some(shown)
    }

    /// The newest state.
    pub fn newest(&self) -> Option<(Tick, &S)> {
        self.states.back().map(|(tick, state)| (*tick, state))
    }

    /// Returns how often a gap was too large to be hidden.
    pub fn snaps(&self) -> u64 {
        self.snaps
    }

    /// The state at an instant, without smoothing.
    fn curve(&self, at: f64) -> Option<Shown<S>> {
        let next = self
            .states
            .partition_point(|(tick, _)| f64::from(tick.0) <= at);
        let (last_tick, last) = self.states.back()?;
        if next == 0 {
            let state = self.states[0].1.clone();
            return Some(Shown {
                state,
                source: Source::First,
            });
        }
        if next < self.states.len() {
            let state = self.between(next - 1, next, at);
            return Some(Shown {
                state,
                source: Source::Between,
            });
        }
        let beyond = at - f64::from(last_tick.0);
        let rests = self.rests();
        let source = match beyond {
            // On the spot is not overdue, nor is what rests: of that nothing more is sent.
            beyond if beyond <= 0.0 || rests => Source::Between,
            beyond if beyond <= self.config.beyond_max => Source::Beyond,
            _ => Source::Stopped,
        };
        let state = match self.states.len() {
            1 => last.clone(),
            _ if rests => last.clone(),
            len => {
                let reached = f64::from(last_tick.0) + beyond.min(self.config.beyond_max);
                self.between(len - 2, len - 1, reached)
            }
        };
        Some(Shown { state, source })
    }

    fn between(&self, from: usize, to: usize, at: f64) -> S {
        let ((start, from), (end, to)) = (&self.states[from], &self.states[to]);
        let ticks = (*end - *start).max(1) as f64;
        let share = ((at - f64::from(start.0)) / ticks) as f32;
        let seconds = ticks as f32 * self.config.tick_seconds;
        between(from, to, Blend { share, seconds }, self.distance)
    }

    /// True if the last two states are the same.
    fn rests(&self) -> bool {
        match self.states.len() {
            0 | 1 => false,
            len => !self.states[len - 2].1.differs(&self.states[len - 1].1),
        }
    }
}

/// The state on the way from one to the other, or the first one until it is over if the game says that there is no way: a teleport.
pub(crate) fn between<S: State>(from: &S, to: &S, blend: Blend, distance: fn(&S, &S) -> f32) -> S {
    match distance(from, to) >= f32::MAX {
        true if blend.share < 1.0 => from.clone(),
        true => to.clone(),
        false => from.blend(to, blend),
    }
}

/// Shorter than for a player's own body: others are looked at from further away, and what has landed should soon stand where it is.
const SMOOTHING_TIME: Duration = Duration::from_millis(60);
const SMOOTHING_SPEED: f32 = 20.0;
