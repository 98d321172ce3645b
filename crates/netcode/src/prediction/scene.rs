//! Everything that is simulated together in a tick: players with their inputs, and what moves because of them.
//!
//! States are rows of integers here, as everywhere in this crate: what a step leaves behind is on its grid by itself, and comparing, saving and
//! restoring a tick is comparing and copying numbers.

use std::sync::Arc;

use muse_schema::{RowWriter, State};

use super::{Game, NamedSpawn, NewSpawn, SPAWNS_PER_STEP_MAX, SpawnKey, StepContext};
use crate::world::{Kind, KindId, Kinds, World};
use crate::{EntityId, Tick};

/// The entities that are simulated together: on the server all players and everything of kinds that are
/// [predicted](crate::KindOptions::predicted), on a client what it predicts of that. [`Game::step_scene`] advances it by a tick.
///
/// ```
/// use muse_netcode::prediction::{Game, Scene, StepContext};
/// use muse_schema::State;
/// #[derive(State, Clone)]
/// struct Cart {
///     #[field(range = -100.0..=100.0, step = 0.01)]
///     x: f32,
/// }
/// #[derive(State, Clone)]
/// struct Ball {
///     #[field(range = -100.0..=100.0, step = 0.01)]
///     x: f32,
/// }
/// struct Rules;
/// impl Game for Rules {
///     type Player = Cart;
///     type Input = bool;
///     type Event = ();
///     const PREDICTED_MAX: usize = 8;
///
///     fn step(&mut self, cart: &mut Cart, go: &bool, _: &mut StepContext<'_, ()>) {
///         cart.x += if *go { 0.1 } else { 0.0 };
///     }
///
///     fn step_scene(&mut self, scene: &mut Scene<Self>) {
///         scene.step_players(self);
///         for (entity, mut ball) in scene.all::<Ball>() {
///             for cart in scene.players().filter_map(|player| scene.player(player)) {
///                 // A cart pushes the ball along.
///                 if (cart.x - ball.x).abs() < 1.0 {
///                     ball.x = cart.x + 1.0;
///                 }
///             }
///             scene.set(entity, &ball);
///         }
///     }
/// }
/// ```
pub struct Scene<G: Game> {
    kinds: Arc<Kinds>,
    player_kind: KindId,
    tick: Tick,
    first_run: bool,
    /// In the order of entities, so that both sides simulate in the same order.
    members: Vec<Member>,
    rows: Vec<i32>,
    /// Inputs of the players among the members, in their order.
    inputs: Vec<G::Input>,
    events: Vec<(EntityId, G::Event)>,
    /// The entities that players spawned in the step, which are no members yet.
    spawns: Vec<(EntityId, NewSpawn)>,
}

/// An entity of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) entity: EntityId,
    pub(crate) kind: KindId,
    start: usize,
    /// The place of its input, for players.
    input: Option<usize>,
}

impl<G: Game> Scene<G> {
    pub(crate) fn new(kinds: Arc<Kinds>, player_kind: Kind<G::Player>) -> Self {
        Self {
            kinds,
            player_kind: player_kind.id(),
            tick: Tick(0),
            first_run: true,
            members: Vec::new(),
            rows: Vec::new(),
            inputs: Vec::new(),
            events: Vec::new(),
            spawns: Vec::new(),
        }
    }

    /// Returns the tick that is simulated.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// True if the tick is simulated for the first time: a client simulates ticks again after a correction.
    pub const fn first_run(&self) -> bool {
        self.first_run
    }

    /// Returns the players, in the order of their ids.
    pub fn players(&self) -> impl Iterator<Item = EntityId> + use<G> {
        let players = self.members.iter().filter(|member| member.input.is_some());
        // A copy, so that the scene can be changed meanwhile.
        let players: Vec<EntityId> = players.map(|member| member.entity).collect();
        players.into_iter()
    }

    /// Returns the state of a player.
    pub fn player(&self, entity: EntityId) -> Option<G::Player> {
        let member = self.member(entity)?;
        member.input?;
        G::Player::from_row(self.row_of(member)).ok()
    }

    /// Returns the input of a player in this tick. On a client those of others are what they did last, as far as it is known.
    pub fn input(&self, entity: EntityId) -> Option<&G::Input> {
        self.inputs.get(self.member(entity)?.input?)
    }

    /// Returns all entities of a type of state, in the order of their ids.
    pub fn all<S: State>(&self) -> impl Iterator<Item = (EntityId, S)> + use<G, S> {
        let of_type = |member: &&Member| self.kinds.is::<S>(member.kind);
        let states = self.members.iter().filter(of_type).filter_map(|member| {
            let state = S::from_row(self.row_of(member)).ok()?;
            Some((member.entity, state))
        });
        states.collect::<Vec<_>>().into_iter()
    }

    /// Returns the state of an entity, if it is in the scene and of this type.
    pub fn state<S: State>(&self, entity: EntityId) -> Option<S> {
        let member = self.member(entity)?;
        match self.kinds.is::<S>(member.kind) {
            true => S::from_row(self.row_of(member)).ok(),
            false => None,
        }
    }

    /// Gives an entity another state, which is put onto its grid. False if the entity is not in the scene, or of another type.
    pub fn set<S: State>(&mut self, entity: EntityId, state: &S) -> bool {
        let Some(member) = self.member(entity).copied() else {
            return false;
        };
        let is_its_type = self.kinds.is::<S>(member.kind);
        if is_its_type {
            self.store(&member, state);
        }
        is_its_type
    }

    /// Emits an event of a player that is to be seen or heard, as [`StepContext::emit`] does.
    pub fn emit(&mut self, player: EntityId, event: G::Event) {
        self.events.push((player, event));
    }

    /// Spawns an entity for a player, as [`StepContext::spawn`] does.
    pub fn spawn<S: State>(&mut self, player: EntityId, state: &S) {
        self.add_spawn(player, NewSpawn::new(state));
    }

    /// Spawns an entity that a player's step has spawned; see [`StepContext::with_spawns`].
    pub fn add_spawn(&mut self, player: EntityId, spawn: NewSpawn) {
        self.spawns.push((player, spawn));
    }

    /// Runs [`Game::step`] for each player, in the order of their ids.
    pub fn step_players(&mut self, game: &mut G) {
        for index in 0..self.members.len() {
            let member = self.members[index];
            let Some(input) = member.input else {
                continue;
            };
            let Ok(mut state) = G::Player::from_row(self.row_of(&member)) else {
                continue;
            };
            let (events, spawns) = (&mut self.events, &mut self.spawns);
            let emit = &mut |event| events.push((member.entity, event));
            let spawn = &mut |new| spawns.push((member.entity, new));
            let context = StepContext::new(self.tick, self.first_run, emit);
            let (mut context, inputs) = (context.with_spawns(spawn), &self.inputs);
            game.step(&mut state, &inputs[input], &mut context);
            self.store(&member, &state);
        }
    }

    /// Advances by one tick.
    pub(crate) fn step(&mut self, game: &mut G, tick: Tick, first_run: bool) {
        self.tick = tick;
        self.first_run = first_run;
        game.step_scene(self);
    }

    pub(crate) fn clear(&mut self) {
        self.members.clear();
        self.rows.clear();
        self.inputs.clear();
        self.events.clear();
        self.spawns.clear();
    }

    /// Adds an entity with its row; entities are added in their order. A player has an input.
    pub(crate) fn add(
        &mut self,
        entity: EntityId,
        kind: KindId,
        row: &[i32],
        input: Option<G::Input>,
    ) {
        debug_assert!(
            self.members.last().is_none_or(|last| last.entity < entity),
            "entities come in order"
        );
        debug_assert_eq!(row.len(), self.kinds.at(kind.place()).width);
        let place = input.is_some().then_some(self.inputs.len());
        self.inputs.extend(input);
        self.members.push(Member {
            entity,
            kind,
            start: self.rows.len(),
            input: place,
        });
        self.rows.extend_from_slice(row);
    }

    /// Adds an entity that was spawned. Its row is behind all others, so that rows saved before stay where they are and just end earlier.
    pub(crate) fn append(&mut self, entity: EntityId, kind: KindId, row: &[i32]) {
        let place = self
            .members
            .binary_search_by_key(&entity, |member| member.entity);
        if let Err(place) = place {
            let (start, input) = (self.rows.len(), None);
            self.rows.extend_from_slice(row);
            self.members.insert(
                place,
                Member {
                    entity,
                    kind,
                    start,
                    input,
                },
            );
        }
    }

    /// Gives a member another name. Returns whether it was one.
    pub(crate) fn rename(&mut self, from: EntityId, to: EntityId) -> bool {
        let Some(mut member) = self.member(from).copied() else {
            return false;
        };
        self.members.retain(|other| other.entity != from);
        let place = self
            .members
            .binary_search_by_key(&to, |member| member.entity);
        if let Err(place) = place {
            member.entity = to;
            self.members.insert(place, member);
        }
        true
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) const fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    pub(crate) const fn player_kind(&self) -> KindId {
        self.player_kind
    }

    pub(crate) fn member(&self, entity: EntityId) -> Option<&Member> {
        let place = self
            .members
            .binary_search_by_key(&entity, |member| member.entity);
        self.members.get(place.ok()?)
    }

    pub(crate) fn set_input(&mut self, entity: EntityId, input: G::Input) {
        if let Some(place) = self.member(entity).and_then(|member| member.input) {
            self.inputs[place] = input;
        }
    }

    /// All rows, one after the other.
    pub(crate) fn rows(&self) -> &[i32] {
        &self.rows
    }

    /// The row of a member among these; `None` if they are of a tick before it was spawned.
    pub(crate) fn row_in<'a>(&self, rows: &'a [i32], member: &Member) -> Option<&'a [i32]> {
        rows.get(self.range(member))
    }

    pub(crate) fn range(&self, member: &Member) -> std::ops::Range<usize> {
        member.start..member.start + self.kinds.at(member.kind.place()).width
    }

    pub(crate) fn drain_events(&mut self) -> impl Iterator<Item = (EntityId, G::Event)> + '_ {
        self.events.drain(..)
    }

    /// The spawns of the step, with numbers for each player; what has no main kind, or is too many, is left out.
    pub(crate) fn take_spawns(&mut self) -> Vec<NamedSpawn> {
        let mut spawns: Vec<NamedSpawn> = Vec::new();
        for (player, NewSpawn { state, mut row }) in self.spawns.drain(..) {
            let before = spawns.iter().filter(|other| other.player == player).count();
            let Some(kind) = self.kinds.main_of(state) else {
                continue;
            };
            if before < SPAWNS_PER_STEP_MAX {
                self.kinds.at(kind.place()).legalise(&mut row);
                let (tick, ordinal) = (self.tick, before as u8);
                spawns.push(NamedSpawn {
                    player,
                    key: SpawnKey { tick, ordinal },
                    kind,
                    row,
                });
            }
        }
        spawns
    }

    /// Writes all states back to the world that they were taken from.
    pub(crate) fn write_back(&self, world: &mut World) {
        for member in &self.members {
            // It was read from there, so it is there.
            let _ = world.set_row(member.kind, member.entity, self.row_of(member));
        }
    }

    fn store<S: State>(&mut self, member: &Member, state: &S) {
        let declared = self.kinds.at(member.kind.place());
        let row = &mut self.rows[member.start..member.start + declared.width];
        state.store(&mut RowWriter::new(row));
        // Derived states are legal by themselves; those by hand may not be.
        declared.legalise(row);
    }

    pub(crate) fn row_of(&self, member: &Member) -> &[i32] {
        &self.rows[self.range(member)]
    }
}

impl<G: Game> std::fmt::Debug for Scene<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("tick", &self.tick)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

/// An entity that a client may predict; see [`Game::predicts`].
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub(crate) kinds: &'a Kinds,
    pub(crate) entity: EntityId,
    pub(crate) kind: KindId,
    pub(crate) row: &'a [i32],
}

impl Candidate<'_> {
    /// Returns the entity.
    pub const fn entity(&self) -> EntityId {
        self.entity
    }

    /// Returns its state, if it is of this type.
    pub fn state<S: State>(&self) -> Option<S> {
        match self.kinds.is::<S>(self.kind) {
            true => S::from_row(self.row).ok(),
            false => None,
        }
    }
}
