//! The client is ahead of the server's answer, and corrects itself when that comes.
//!
//! Both sides run the same [`Game`], and both put the state onto its grid after each, so that the client's own state is exactly the
//! server's for every tick whose input came in time. Where it is not, the client takes the server's and simulates
//! again what came after. Effects of a tick happen once, however often it is simulated ([`Effect`]).
//!
//! A client predicts its own player, and with it whatever the game wants: the ball that it kicks, those whom it touches, everything in a radius. Such
//! a [`Scene`] is simulated together, saved each tick, and set to the server's states and simulated again where anything in it was wrong. What its own steps
//! spawn is there at once, and becomes the server's entity by a [key](SpawnKey) that both sides know.

mod budget;
mod effects;
mod group;
mod predictor;
mod scene;
mod spawns;

pub(crate) use budget::Budget;
pub use effects::{Effect, EffectChange};
pub(crate) use predictor::{Change, Predictor, Reconciled};
pub use scene::{Candidate, Scene};
pub(crate) use spawns::{Entry as SpawnEntry, NamedSpawn};
pub use spawns::{NewSpawn, SPAWNS_MAX, SPAWNS_PER_STEP_MAX, SpawnKey, SpawnShown};

use muse_schema::State;
use muse_wire::Duration;

use crate::Tick;
use crate::inputs::Input;
use crate::session::SessionConfig;

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
pub trait Game: Sized {
    /// The state of a player.
    type Player: State;
    /// The input of a player for a tick.
    type Input: Input;
    /// An event in a step that is to be seen or heard once; `()` if there is nothing.
    type Event: Clone + PartialEq;

    /// Ticks of the simulation a second, the same on both sides.
    const TICKS_PER_SECOND: u32 = 60;

    /// The number of entities that a client predicts at most besides its own player. Default: none. Each costs a step in every tick, and again for
    /// each tick since the server's state whenever one of them was predicted wrongly.
    const PREDICTED_MAX: usize = 0;

    /// One tick. It must depend on its arguments only, and on what both sides have in common.
    fn step(
        &mut self,
        state: &mut Self::Player,
        input: &Self::Input,
        context: &mut StepContext<'_, Self::Event>,
    );

    /// One tick of everything that is simulated together: by default each player by [`step`](Self::step). For games whose players move other things, or
    /// each other. The same on the server, where the scene is all players and all entities of
    /// [predicted](crate::KindOptions::predicted) kinds, and on a client, where it is what that client predicts of it. It must depend on the scene
    /// only, and on what both sides have in common.
    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        scene.step_players(self);
    }

    /// Returns whether the client whose player is `own` predicts another player, or an entity of a [predicted](crate::KindOptions::predicted) kind, and
    /// which first if there is not room for all: the one with the smallest number, such as the distance. `None` leaves it interpolated. By
    /// default everything is predicted, as far as [`PREDICTED_MAX`](Self::PREDICTED_MAX) allows. Asked with every snapshot, on both sides.
    fn predicts(&self, own: &Self::Player, other: &Candidate<'_>) -> Option<f32> {
        let _ = (own, other);
        Some(0.0)
    }

    /// Returns the part of an input that others may know, who predict this player by it; kinds are declared with
    /// [`inputs`](crate::KindOptions::inputs) for that. By default all of it. Bytes are sent whenever it changes.
    fn shared(input: &Self::Input) -> Self::Input {
        input.clone()
    }

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

    /// Returns where a player gets who is seen to move straight from one state to another: the game's geometry says where walls and floors are. So nobody is drawn
    /// inside of them while states are missing. By default nothing is in the way.
    fn stop(&self, from: &Self::Player, to: Self::Player) -> Self::Player {
        let _ = from;
        to
    }

    /// Returns how far apart two players look, in metres or whatever unit the game has. By default
    /// [`State::distance`].
    fn distance(one: &Self::Player, other: &Self::Player) -> f32 {
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
    spawn: Option<&'a mut dyn FnMut(NewSpawn)>,
}

impl<'a, E> StepContext<'a, E> {
    /// Makes the context of a step outside of a session; events go to `emit`, and what it spawns nowhere.
    pub fn new(tick: Tick, first_run: bool, emit: &'a mut dyn FnMut(E)) -> Self {
        Self {
            tick,
            first_run,
            emit,
            spawn: None,
        }
    }

    /// Sets where entities go that the step spawns: to [`Scene::add_spawn`], in games that make steps in [`Game::step_scene`] by themselves.
    #[must_use]
    pub fn with_spawns(mut self, spawn: &'a mut dyn FnMut(NewSpawn)) -> Self {
        self.spawn = Some(spawn);
        self
    }

    /// Spawns an entity: a bullet, a grenade. The player who does it sees it at once
    /// ([`Remotes::show_spawns`](crate::Remotes::show_spawns), [`Client::spawns`](crate::Client::spawns)). On the server it becomes an
    /// entity that the player owns, which the game can still take away ([`Server::spawned`](crate::Server::spawned)), and by which the client's is
    /// replaced without a step. What the server does not spawn fades.
    ///
    /// A step can spawn [`SPAWNS_PER_STEP_MAX`] entities. The first main kind of their type of state is theirs. Those of kinds that are [predicted](crate::KindOptions::predicted)
    /// are in the scene from the next tick on.
    ///
    /// ```
    /// use muse_netcode::prediction::{Game, StepContext};
    /// use muse_schema::State;
    /// #[derive(State, Clone)]
    /// struct Gunner {
    ///     #[field(range = -100.0..=100.0, step = 0.001)]
    ///     x: f32,
    ///     ready: u32,
    /// }
    /// #[derive(State, Clone)]
    /// struct Bullet {
    ///     #[field(range = -100.0..=100.0, step = 0.001)]
    ///     from: f32,
    ///     born: u32,
    /// }
    /// struct Rules;
    /// impl Game for Rules {
    ///     type Player = Gunner;
    ///     type Input = bool;
    ///     type Event = ();
    ///     fn step(&mut self, gunner: &mut Gunner, fire: &bool, context: &mut StepContext<'_, ()>) {
    ///         let tick = context.tick.0;
    ///         if *fire && gunner.ready <= tick {
    ///             gunner.ready = tick + 10;
    ///             context.spawn(&Bullet { from: gunner.x, born: tick });
    ///         }
    ///     }
    /// }
    /// ```
    pub fn spawn<S: State>(&mut self, state: &S) {
        if let Some(spawn) = &mut self.spawn {
            spawn(NewSpawn::new(state));
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

/// Runs one step and puts the state onto its grid: what both sides do in each tick.
pub fn run_step<G: Game>(
    game: &mut G,
    state: &mut G::Player,
    input: &G::Input,
    context: &mut StepContext<'_, G::Event>,
) {
    game.step(state, input, context);
    *state = state.snapped();
}

/// Counts of right and wrong predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionCounters {
    /// States of the server that had been predicted.
    pub confirmed: u64,
    /// States of the own player that had not.
    pub corrected: u64,
    /// Snapshots in which the own player was as predicted, and something else was not.
    pub corrected_others: u64,
    /// Snapshots with which other entities were predicted than before.
    pub regrouped: u64,
    /// Ticks simulated again because of those.
    pub steps_again: u64,
    /// Own spawns that the server knows.
    pub spawns_adopted: u64,
    /// Own spawns that the server did not make, and that faded.
    pub spawns_denied: u64,
    /// Own spawns that were not shown until the server told of them, because there were [`SPAWNS_MAX`] others.
    pub spawns_left_out: u64,
    /// Entities that are predicted now, besides the own player.
    pub others: u32,
    /// Entities that the game wants predicted, and that are not because there are too many.
    pub left_out: u32,
}

#[cfg(test)]
mod tests;
