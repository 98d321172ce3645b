//! Something that a player sees, from frame to frame: how far it moves beside its own motion.

use glam::Vec3;
use muse_biobot::{Ball, Robot, Rules};
use muse_netcode::interpolation::{Interpolated, InterpolationConfig};
use muse_netcode::{Client, EntityId, Kind, Tick, TickTime};
use muse_schema::{Blend, State};
use muse_wire::{Duration, Instant};

use super::seat::since;

/// A state that moves.
pub(super) trait Moved: State {
    /// Its place.
    fn place(&self) -> Vec3;
    /// Metres between two; no number is large enough for another life.
    fn apart(&self, other: &Self) -> f32;
}

impl Moved for Robot {
    fn place(&self) -> Vec3 {
        self.feet()
    }

    fn apart(&self, other: &Self) -> f32 {
        match self.lives == other.lives {
            true => self.feet().distance(other.feet()),
            false => f32::MAX,
        }
    }
}

impl Moved for Ball {
    fn place(&self) -> Vec3 {
        self.middle()
    }

    fn apart(&self, other: &Self) -> f32 {
        match self.serves == other.serves {
            true => self.middle().distance(other.middle()),
            false => f32::MAX,
        }
    }
}

/// An entity in the eyes of a player.
pub(super) struct Sight<S> {
    states: Interpolated<S>,
    last: Option<Look<S>>,
    switched: Option<Instant>,
    corrected: Option<Instant>,
}

/// A frame.
struct Look<S> {
    now: Instant,
    time: TickTime,
    shown: S,
    /// As it is interpolated, and whether its next state was there.
    interpolated: Option<(S, bool)>,
    is_predicted: bool,
    /// Metres a second that it moves by itself.
    velocity: Option<Vec3>,
}

/// A step from one frame to the next, beside the entity's own motion, in metres for a frame of a 60th of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    beside: f32,
    is_predicted: bool,
    /// True if it goes over from one to the other, or just went, and nothing of it was corrected meanwhile.
    goes_over: bool,
    /// True if this is the first frame of it.
    begins: bool,
}

/// The steps of all frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    pub(super) handovers: u64,
    pub(super) handover_frames: u64,
    pub(super) handover_worst: f32,
    pub(super) ball_worst: f32,
}

impl Steps {
    pub(super) fn note(&mut self, step: Option<Step>, is_ball: bool) {
        let Some(step) = step else {
            return;
        };
        if step.goes_over {
            self.handovers += u64::from(step.begins);
            self.handover_frames += 1;
            self.handover_worst = self.handover_worst.max(step.beside);
        }
        if is_ball && step.is_predicted {
            self.ball_worst = self.ball_worst.max(step.beside);
        }
    }
}

impl<S: Moved> Sight<S> {
    pub(super) fn new(config: InterpolationConfig) -> Self {
        Self {
            states: Interpolated::new(config, S::apart),
            last: None,
            switched: None,
            corrected: None,
        }
    }

    /// The server told of a state.
    pub(super) fn take(&mut self, tick: Tick, state: Option<S>) {
        if let Some(state) = state {
            self.states.handle_state(tick, state);
        }
    }

    /// A prediction of it was wrong.
    pub(super) const fn corrected(&mut self, now: Instant) {
        self.corrected = Some(now);
    }

    /// It was drawn. Returns the step since the frame before, if there was one to compare with.
    pub(super) fn look(
        &mut self,
        now: Instant,
        client: &Client<Rules>,
        place: (Kind<S>, EntityId),
        shown: &S,
    ) -> Option<Step> {
        let time = client.clock().play_time()?;
        // What was corrected before is unknown.
        self.corrected.get_or_insert(now);
        let states = self.states.show(client.shown_time()?);
        let interpolated = states.map(|shown| (shown.state, shown.source.is_underrun()));
        let predicted = raw(client, place, time);
        let look = Look {
            now,
            time,
            shown: shown.clone(),
            interpolated,
            is_predicted: predicted.is_some(),
            velocity: None,
        };
        let last = self.last.replace(look)?;
        let look = self.last.as_mut()?;
        let begins = last.is_predicted != look.is_predicted;
        if begins {
            self.switched = Some(now);
        }
        // By the client's own clock, which may be a little faster or slower.
        let seconds = (time.ticks() - last.time.ticks()) as f32 * muse_biobot::TICK_SECONDS;
        if seconds <= 0.0 {
            return None;
        }
        let own = match &predicted {
            Some(state) => raw(client, place, last.time).and_then(|from| motion(&from, state)),
            None => interpolated_motion(&last, look),
        };
        look.velocity = own.map(|own| own / seconds);
        // In the frame in which it goes over, or was corrected, it still moves as it did before.
        let is_corrected = self.corrected.is_some_and(|at| at > last.now);
        let own = match (begins, look.is_predicted) {
            (false, true) if is_corrected => last.velocity? * seconds,
            (false, _) => own?,
            (true, true) => interpolated_motion(&last, look)?,
            (true, false) => last.velocity? * seconds,
        };
        let beside = (motion(&last.shown, shown)? - own).length() * FRAME_SECONDS / seconds;
        let is_predicted = look.is_predicted;
        // Corrections are hidden at a speed of their own.
        let calm = since(now, self.corrected) > CALM + since(now, self.switched);
        let goes_over = calm && since(now, self.switched) < HANDOVER;
        Some(Step {
            beside,
            is_predicted,
            goes_over,
            begins,
        })
    }
}

/// The way between two frames as it is interpolated; `None` if a state was overdue.
fn interpolated_motion<S: Moved>(last: &Look<S>, look: &Look<S>) -> Option<Vec3> {
    match (&last.interpolated, &look.interpolated) {
        (Some((from, false)), Some((to, false))) => motion(from, to),
        _ => None,
    }
}

/// As it is predicted at an instant, without smoothing.
fn raw<S: Moved>(
    client: &Client<Rules>,
    (kind, entity): (Kind<S>, EntityId),
    time: TickTime,
) -> Option<S> {
    let newest = client.predicted_tick()?.min(time.tick);
    let after = client.predicted_other_at(kind, entity, newest)?;
    let before = client.predicted_other_at(kind, entity, time.tick.back(1));
    let blend = Blend {
        share: time.share(),
        seconds: muse_biobot::TICK_SECONDS,
    };
    Some(match before {
        Some(before) if before.apart(&after) < f32::MAX => before.blend(&after, blend),
        _ => after,
    })
}

/// The way from one to the other; `None` for another life.
fn motion<S: Moved>(from: &S, to: &S) -> Option<Vec3> {
    (from.apart(to) < f32::MAX).then(|| to.place() - from.place())
}

/// Steps are told for frames of this length.
const FRAME_SECONDS: f32 = 1.0 / 60.0;
/// The time for which what goes over is watched.
const HANDOVER: Duration = Duration::from_secs(3);
/// The time before in which nothing of it was corrected.
const CALM: Duration = Duration::from_millis(1_500);
