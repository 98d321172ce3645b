//! The client is ahead of the server's answer, and corrects itself when that comes.
//!
//! Both sides run the same [`Game`], and both put the state onto its grid after each, so that the client's own state is exactly the
//! server's for every tick whose input came in time. Where it is not, the client takes the server's and simulates
//! again what came after. Effects of a tick happen once, however often it is simulated ([`Effect`]).
//!
//! One state is predicted: a player's, or that of everything near it; see [`Predicted`].

mod effects;

pub use effects::{Effect, EffectChange};

use std::collections::VecDeque;

use muse_schema::State;
use muse_wire::Duration;

use crate::Tick;
use crate::inputs::Input;
use crate::session::SessionConfig;
use effects::Effects;

/// The rules of a game: what an input does to a state in one tick. The same on both sides.
///
/// ```
/// use muse_netcode::Tick;
/// use muse_netcode::prediction::{Game, StepContext, run_step};
/// use muse_schema::State;
/// #[derive(State, Clone)]
/// struct Runner {
///     #[field(range = -100.0..=100.0, step = 0.001)]
///     x: f32,
/// }
/// struct Rules;
/// impl Game for Rules {
///     type Player = Runner;
///     type Input = bool;
///     type Event = &'static str;
///     fn step(&mut self, state: &mut Runner, run: &bool, context: &mut StepContext<'_, &'static str>) {
///         if *run {
///             state.x += 0.1;
///             context.emit("footstep");
///         }
///     }
/// }
/// let (mut runner, mut heard) = (Runner { x: 0.0 }, Vec::new());
/// for (tick, run) in [true, false, true].into_iter().enumerate() {
///     let emit = &mut |event| heard.push(event);
///     run_step(&mut Rules, &mut runner, &run, &mut StepContext::new(Tick(tick as u32), true, emit));
/// }
/// assert!((runner.x - 0.2).abs() < 1e-6);
/// assert_eq!(heard, ["footstep", "footstep"]);
/// ```
pub trait Game {
    /// The state that is predicted.
    type Player: Predicted;
    /// The input of a player for a tick.
    type Input: Input;
    /// An event in a step that is to be seen or heard once; `()` if there is nothing.
    type Event: Clone + PartialEq;

    /// Ticks of the simulation a second, the same on both sides.
    const TICKS_PER_SECOND: u32 = 60;

    /// One tick. It must depend on its arguments only, and on what both sides have in common.
    fn step(
        &mut self,
        state: &mut Self::Player,
        input: &Self::Input,
        context: &mut StepContext<'_, Self::Event>,
    );

    /// Returns the part of an input that is sent again with later packets, in case the first was lost: by default all of it. What a later input
    /// says again, such as where the player is, need not be sent twice. The server may then step with either.
    fn again(input: &Self::Input) -> Self::Input {
        input.clone()
    }

    /// Returns the settings of the game's sessions. By default those of [`SessionConfig::new`] for
    /// [`TICKS_PER_SECOND`](Self::TICKS_PER_SECOND).
    fn session() -> SessionConfig {
        SessionConfig::new(Duration::from_micros(
            1_000_000 / u64::from(Self::TICKS_PER_SECOND.max(1)),
        ))
    }

    /// Returns how far apart two players look, in metres or whatever unit the game has. By default
    /// [`State::distance`].
    fn distance(one: &Self::Player, other: &Self::Player) -> f32
    where
        Self::Player: State,
    {
        one.distance(other)
    }
}

/// The circumstances of a step, besides state and input.
pub struct StepContext<'a, E> {
    /// The tick.
    pub tick: Tick,
    /// True if the tick is simulated for the first time: a client simulates ticks again after a correction.
    pub first_run: bool,
    emit: &'a mut dyn FnMut(E),
}

impl<'a, E> StepContext<'a, E> {
    /// Makes the context of a step outside of a [`Predictor`], such as the server's; events go to `emit`.
    pub fn new(tick: Tick, first_run: bool, emit: &'a mut dyn FnMut(E)) -> Self {
        Self {
            tick,
            first_run,
            emit,
        }
    }

    /// Emits an event that is to be seen or heard. On the client it comes out as an [`Effect`], once.
    pub fn emit(&mut self, event: E) {
        (self.emit)(event);
    }
}

impl<E> std::fmt::Debug for StepContext<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepContext")
            .field("tick", &self.tick)
            .field("first_run", &self.first_run)
            .finish_non_exhaustive()
    }
}

/// A state that can be predicted. Every [`State`] can: that is prediction of the owner's player only. To predict a whole world, write it for a
/// type that holds all of it.
pub trait Predicted: Clone {
    /// True if the other differs beyond tolerance, so that a correction is due.
    fn differs(&self, other: &Self) -> bool;

    /// Onto the grid that both sides share.
    fn snap(&mut self);
}

impl<S: State> Predicted for S {
    fn differs(&self, other: &Self) -> bool {
        State::differs(self, other)
    }

    fn snap(&mut self) {
        *self = self.snapped();
    }
}

/// Runs one step and puts the state onto its grid: what the server does in each tick, and a [`Predictor`], too.
pub fn run_step<G: Game>(
    game: &mut G,
    state: &mut G::Player,
    input: &G::Input,
    context: &mut StepContext<'_, G::Event>,
) {
    game.step(state, input, context);
    state.snap();
}

/// Predicts by simulating ahead, and reconciles with the server.
///
/// Call [`predict`](Self::predict) for each tick that the clock says, [`reconcile`](Self::reconcile) for each state that the server
/// sends, and [`poll_effect`](Self::poll_effect) until `None` after either.
///
/// ```
/// # use muse_netcode::prediction::{Game, StepContext};
/// # use muse_schema::State;
/// #[derive(State, Clone, Debug, PartialEq)]
/// struct Score(u16);
/// # struct Rules;
/// # impl Game for Rules {
/// #     type Player = Score;
/// #     type Input = u8;
/// #     type Event = ();
/// #     fn step(&mut self, state: &mut Score, input: &u8, _: &mut StepContext<'_, ()>) {
/// #         state.0 += u16::from(*input);
/// #     }
/// # }
/// use muse_netcode::Tick;
/// use muse_netcode::prediction::{Predictor, Reconciled};
/// let mut predictor = Predictor::<Rules>::new();
/// predictor.reconcile(&mut Rules, Tick(9), &Score(100));
/// for tick in 10..15 {
///     predictor.predict(&mut Rules, Tick(tick), 1);
/// }
/// assert_eq!(predictor.state(), Some(&Score(105)));
/// assert_eq!(predictor.reconcile(&mut Rules, Tick(11), &Score(102)), Reconciled::Confirmed);
/// // The server says otherwise for tick 12: it is believed, and ticks 13 and 14 are simulated again.
/// let corrected = Reconciled::Corrected { before: Score(105), again: 2 };
/// assert_eq!(predictor.reconcile(&mut Rules, Tick(12), &Score(150)), corrected);
/// assert_eq!(predictor.state(), Some(&Score(152)));
/// ```
#[derive(Debug)]
pub struct Predictor<G: Game> {
    /// The newest state from the server, or one that was confirmed by it, and what was predicted since.
    base: Option<(Tick, G::Player)>,
    /// Ticks after the base without gaps, with the state after each.
    predicted: VecDeque<(G::Input, G::Player)>,
    effects: Effects<G::Event>,
    counters: PredictionCounters,
}

/// The outcome of a state from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled<S> {
    /// The client had predicted it.
    Confirmed,
    /// The client had not: it took the server's and simulated the ticks after it again.
    Corrected {
        /// The state that was predicted for now before, which is where smoothing starts from.
        before: S,
        /// The number of ticks that were simulated again.
        again: u32,
    },
    /// There was nothing to compare it with, so prediction starts from it.
    Started,
    /// It is older than what the server has said before.
    Outdated,
}

/// Counts of right and wrong predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionCounters {
    /// States of the server that had been predicted.
    pub confirmed: u64,
    /// States of the server that had not.
    pub corrected: u64,
    /// Steps run again because of those.
    pub steps_again: u64,
}

impl<G: Game> Predictor<G> {
    /// Ticks that can be ahead of the server's answer: 2 s at 60 a second. Beyond, prediction pauses.
    pub const AHEAD_MAX: usize = 128;

    /// Makes a predictor that waits for the server's first state.
    pub fn new() -> Self {
        Self {
            base: None,
            predicted: VecDeque::with_capacity(Self::AHEAD_MAX),
            effects: Effects::new(),
            counters: PredictionCounters::default(),
        }
    }

    /// Simulates `tick` with the player's input. Does nothing before the server's first state, for a tick that is known already,
    /// and while the server's answer is too long overdue; ticks that were skipped are simulated with the input before them.
    pub fn predict(&mut self, game: &mut G, tick: Tick, input: G::Input) {
        let Some(next) = self.next_tick() else {
            return;
        };
        // The clock may leave out ticks after the program stood still, but states follow each other without gaps.
        let skipped = (tick - next).clamp(0, Self::AHEAD_MAX as i64) as u32;
        for step in 0..skipped {
            let held = self.predicted.back().map(|(input, _)| input.clone());
            self.predict_one(game, next + step, held.unwrap_or_default());
        }
        if tick - next >= 0 {
            self.predict_one(game, tick, input);
        }
    }

    /// Compares what the server says the state was after `tick` with what was predicted for it.
    pub fn reconcile(
        &mut self,
        game: &mut G,
        tick: Tick,
        state: &G::Player,
    ) -> Reconciled<G::Player> {
        let Some((base, _)) = &self.base else {
            self.base = Some((tick, state.clone()));
            return Reconciled::Started;
        };
        let steps = tick - *base;
        if steps <= 0 {
            return Reconciled::Outdated;
        }
        // The server is ahead of what was predicted, so there is nothing to compare: its state is the start of what
        // follows.
        if steps > self.predicted.len() as i64 {
            self.predicted.clear();
            self.effects.confirm(tick);
            self.base = Some((tick, state.clone()));
            return Reconciled::Started;
        }
        let place = steps as usize - 1;
        let differs = self.predicted[place].1.differs(state);
        if !differs {
            let confirmed = self.predicted.drain(..=place).next_back();
            // The predicted state stays, not the server's: within the tolerance they may differ, and what was simulated
            // since went on from this one.
            self.base = confirmed.map(|(_, state)| (tick, state));
            self.effects.confirm(tick);
            self.counters.confirmed += 1;
            return Reconciled::Confirmed;
        }
        // The state on the screen now, to be blended away from.
        let before = self.predicted[self.predicted.len() - 1].1.clone();
        self.predicted.drain(..=place);
        self.base = Some((tick, state.clone()));
        self.effects.confirm(tick);
        let again = self.simulate_again(game, tick, state.clone());
        self.counters.corrected += 1;
        Reconciled::Corrected { before, again }
    }

    /// The newest state: predicted, or the server's if nothing is.
    pub fn state(&self) -> Option<&G::Player> {
        let predicted = self.predicted.back().map(|(_, state)| state);
        predicted.or(self.base.as_ref().map(|(_, state)| state))
    }

    /// The tick of [`state`](Self::state).
    pub fn tick(&self) -> Option<Tick> {
        let (base, _) = self.base.as_ref()?;
        Some(*base + self.predicted.len() as u32)
    }

    /// The state after `tick`, if that is not too long ago: for drawing between two ticks.
    pub fn state_at(&self, tick: Tick) -> Option<&G::Player> {
        let (base, state) = self.base.as_ref()?;
        match tick - *base {
            0 => Some(state),
            steps => {
                let place = usize::try_from(steps - 1).ok()?;
                self.predicted.get(place).map(|(_, state)| state)
            }
        }
    }

    /// The newest tick that the server has spoken about, and the state after it.
    pub fn confirmed(&self) -> Option<(Tick, &G::Player)> {
        self.base.as_ref().map(|(tick, state)| (*tick, state))
    }

    /// The next thing to show, take back or forget about.
    pub fn poll_effect(&mut self) -> Option<Effect<G::Event>> {
        self.effects.poll()
    }

    /// Returns the counts of right and wrong predictions so far.
    pub fn counters(&self) -> &PredictionCounters {
        &self.counters
    }

    fn next_tick(&self) -> Option<Tick> {
        self.tick().map(|tick| tick + 1)
    }

    fn predict_one(&mut self, game: &mut G, tick: Tick, input: G::Input) {
        // Memory and the cost of a correction are bounded; the player stands still until the server is heard again.
        if self.predicted.len() == Self::AHEAD_MAX {
            return;
        }
        let Some(mut state) = self.state().cloned() else {
            return;
        };
        let effects = &mut self.effects;
        let emit = &mut |event| effects.emit(tick, event);
        let mut context = StepContext::new(tick, true, emit);
        run_step(game, &mut state, &input, &mut context);
        self.predicted.push_back((input, state));
    }

    fn simulate_again(&mut self, game: &mut G, base: Tick, mut state: G::Player) -> u32 {
        // Events of these ticks are compared with those of the first time: the same ones are not shown twice, others are
        // taken back.
        self.effects.begin_again();
        let mut tick = base;
        for (input, predicted) in &mut self.predicted {
            tick = tick + 1;
            let effects = &mut self.effects;
            let emit = &mut |event| effects.emit(tick, event);
            let mut context = StepContext::new(tick, false, emit);
            run_step(game, &mut state, input, &mut context);
            predicted.clone_from(&state);
        }
        self.effects.end_again();
        let again = self.predicted.len() as u32;
        self.counters.steps_again += u64::from(again);
        again
    }
}

impl<G: Game> Default for Predictor<G> {
    fn default() -> Self {
        Self::new()
    }
}
