//! Predicts a scene by simulating ahead, and reconciles it with the server.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use muse_schema::{BitReader, Options, Schema, State};
use muse_wire::Duration;

use super::effects::{Effect, Effects};
use super::group::{Group, Knowledge};
use super::scene::{Member, Scene};
use super::spawns::Spawns;
use super::{Game, PredictionCounters, SpawnEntry};
use crate::world::{Kind, Kinds};
use crate::{EntityId, Tick};

/// The client's prediction: its own player and whatever else the game wants, ahead of the server's answer.
///
/// Call [`predict`](Self::predict) for each tick that the clock says, [`reconcile`](Self::reconcile) for each packet of the server, and
/// [`poll_effect`](Self::poll_effect) until `None` after either.
pub(crate) struct Predictor<G: Game> {
    own: Option<EntityId>,
    /// After the newest tick.
    scene: Scene<G>,
    /// The next scene is made in it, when other entities are predicted or states are the server's.
    spare_scene: Scene<G>,
    group: Group,
    /// The newest state of the server, or one that was confirmed by it.
    base: Option<(Tick, Saved<G>)>,
    /// Ticks after the base without gaps, with the state after each.
    steps: VecDeque<(G::Input, Saved<G>)>,
    /// Rows to be used again.
    spare: Vec<Vec<i32>>,
    /// The last corrections, for those who show what is predicted.
    corrections: VecDeque<Change>,
    effects: Effects<G::Event>,
    spawns: Spawns,
    counters: PredictionCounters,
}

/// The scene after a tick.
struct Saved<G: Game> {
    own: G::Player,
    rows: Vec<i32>,
}

/// A correction: the newest states before and after it.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Corrections are counted from 1.
    pub(crate) number: u64,
    /// Entities with the places of their rows.
    members: Vec<(EntityId, Range<usize>, Range<usize>)>,
    before: Vec<i32>,
    after: Vec<i32>,
}

impl Change {
    /// The state of an entity before and after.
    pub(crate) fn of<S: State>(&self, entity: EntityId) -> Option<(S, S)> {
        let mut members = self.members.iter();
        let (_, before, after) = members.find(|(member, ..)| *member == entity)?;
        let before = S::from_row(&self.before[before.clone()]).ok()?;
        Some((before, S::from_row(&self.after[after.clone()]).ok()?))
    }
}

/// The outcome of what the server said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reconciled<S> {
    /// The client had predicted it.
    Confirmed,
    /// The client had not: it took the server's and simulated the ticks after it again.
    Corrected {
        /// The own player that was predicted for now before, which is where smoothing starts from.
        before: S,
        /// The number of ticks that were simulated again.
        again: u32,
    },
    /// There was nothing to compare it with, so prediction starts from it.
    Started,
    /// It is older than what the server has said before, or says nothing of the own player and there is no prediction of it to go on from.
    Outdated,
}

impl<G: Game> Predictor<G> {
    /// Ticks that can be ahead of the server's answer: 2 s at 60 a second. Beyond, prediction pauses.
    pub(crate) const AHEAD_MAX: usize = 128;

    /// Makes a predictor for the client that plays `own`. It waits for the server's first state.
    pub(crate) fn new(kinds: Arc<Kinds>, kind: Kind<G::Player>, own: Option<EntityId>) -> Self {
        Self {
            own,
            scene: Scene::new(Arc::clone(&kinds), kind),
            spare_scene: Scene::new(kinds, kind),
            group: Group::new(G::PREDICTED_MAX),
            base: None,
            steps: VecDeque::with_capacity(Self::AHEAD_MAX),
            spare: Vec::new(),
            corrections: VecDeque::new(),
            effects: Effects::new(),
            spawns: Spawns::new(),
            counters: PredictionCounters::default(),
        }
    }

    /// Sets after how many ticks a spawn that the server has not told of is denied, and how long it fades.
    pub(crate) fn set_spawn_times(&mut self, patience_ticks: u32, fade: Duration) {
        self.spawns.set_times(patience_ticks, fade);
    }

    /// Starts over with another entity as the own player.
    pub(crate) fn set_own(&mut self, own: Option<EntityId>) {
        self.note_spawns();
        self.spawns.deny_all();
        self.own = own;
        self.base = None;
        self.scene.clear();
        let saved = self.steps.drain(..);
        self.spare.extend(saved.map(|(_, saved)| saved.rows));
        self.effects = Effects::new();
    }

    /// Limits the entities that are predicted besides the own player.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.group.set_limit(limit.min(G::PREDICTED_MAX));
    }

    /// Simulates `tick` with the player's input. Does nothing before the server's first state, for a tick that is known already,
    /// and while the server's answer is too long overdue; ticks that were skipped are simulated with the input before them.
    pub(crate) fn predict(&mut self, game: &mut G, tick: Tick, input: G::Input) {
        let Some(next) = self.tick().map(|tick| tick + 1) else {
            return;
        };
        // The clock may leave out ticks after the program stood still, but states follow each other without gaps.
        let skipped = (tick - next).clamp(0, Self::AHEAD_MAX as i64) as u32;
        for step in 0..skipped {
            let held = self.steps.back().map(|(input, _)| input.clone());
            self.predict_one(game, next + step, held.unwrap_or_default());
        }
        if tick - next >= 0 {
            self.predict_one(game, tick, input);
        }
    }

    /// Makes what the player has spawned the server's entities as soon as those are known. Call it for each packet, so that nothing is shown twice.
    pub(crate) fn adopt(&mut self, known: &impl Knowledge) {
        if !self.spawns.is_waiting() {
            return;
        }
        for entity in known.entities() {
            if let Some(key) = known.spawn_key(entity)
                && let Some(kind) = known.kind(entity)
                && let Some(before) = self.spawns.adopt(key, kind, entity)
                && self.scene.rename(before, entity)
            {
                self.group.adopt(entity, kind, key.tick);
            }
        }
    }

    /// Lets what is denied fade.
    pub(crate) fn advance(&mut self, seconds: f32) {
        self.note_spawns();
        let base = self.base.as_ref().map(|(tick, _)| *tick);
        self.spawns.advance(seconds, base);
    }

    /// The spawns of the player that the server has not told of.
    pub(crate) fn spawns(&self) -> impl Iterator<Item = &SpawnEntry> {
        self.spawns.shown()
    }

    /// The spawn that an entity of the server was a moment ago.
    pub(crate) fn spawn_of(&self, entity: EntityId) -> Option<&SpawnEntry> {
        self.spawns.of(entity)
    }

    /// Compares what the server says the states were after `tick` with what was predicted for it. What it says nothing of contradicts nothing.
    pub(crate) fn reconcile(
        &mut self,
        game: &mut G,
        tick: Tick,
        known: &impl Knowledge,
    ) -> Reconciled<G::Player> {
        let kind = self.scene.player_kind();
        let Some(entity) = self.own else {
            return Reconciled::Outdated;
        };
        let row = known.row_at(kind, entity, tick);
        let told = row.and_then(|row| G::Player::from_row(row).ok());
        let steps = self.base.as_ref().map(|(base, _)| tick - *base);
        let then = match (steps, &told) {
            (Some(..0), _) => return Reconciled::Outdated,
            (Some(steps), _) if steps <= self.steps.len() as i64 => steps as usize,
            // Nothing to compare with: either nothing is predicted, or the server is ahead of what was.
            (_, Some(own)) => return self.start(game, tick, (entity, own), known),
            (_, None) => return Reconciled::Outdated,
        };
        let is_told = told.is_some();
        // Not everything fits into each snapshot. What it tells of others counts, and the own player is as predicted until the server says otherwise.
        let predicted = || match G::PREDICTED_MAX {
            0 => None,
            _ => self.saved(then).map(|saved| saved.own.clone()),
        };
        let Some(own) = told.or_else(predicted) else {
            return Reconciled::Outdated;
        };
        let regroups = self
            .group
            .choose(game, tick, (entity, &own), &self.scene, known);
        self.note_spawns();
        let ends = self.spawns.expire(tick);
        let (own_differs, others_differ) = self.compare(then, tick, &own, known);
        if !(own_differs || others_differ || regroups || ends) {
            // A second packet of a tick that says the same.
            if then == 0 {
                return Reconciled::Outdated;
            }
            self.forget_before(then);
            if is_told {
                self.effects.confirm(tick);
                self.counters.confirmed += 1;
            }
            self.take_inputs(known);
            return Reconciled::Confirmed;
        }
        let Some(before) = self.state().cloned() else {
            return Reconciled::Outdated;
        };
        match own_differs {
            true => self.counters.corrected += 1,
            false if others_differ => self.counters.corrected_others += 1,
            false => self.counters.regrouped += 1,
        }
        let mut change = self.begin_change();
        self.rebase(then, tick, known);
        match (is_told, own_differs) {
            (true, true) => self.effects.contradict(tick),
            (true, false) => self.effects.confirm(tick),
            (false, _) => {}
        }
        let again = self.simulate_again(game, tick);
        self.end_change(&mut change);
        self.corrections.push_back(change);
        Reconciled::Corrected { before, again }
    }

    /// The newest state of the own player: predicted, or the server's if nothing is.
    pub(crate) fn state(&self) -> Option<&G::Player> {
        let predicted = self.steps.back().map(|(_, saved)| &saved.own);
        predicted.or(self.base.as_ref().map(|(_, saved)| &saved.own))
    }

    /// The tick of [`state`](Self::state).
    pub(crate) fn tick(&self) -> Option<Tick> {
        let (base, _) = self.base.as_ref()?;
        Some(*base + self.steps.len() as u32)
    }

    /// The own player after `tick`, if that is not too long ago: for drawing between two ticks.
    pub(crate) fn state_at(&self, tick: Tick) -> Option<&G::Player> {
        Some(&self.saved_at(tick)?.own)
    }

    /// Another predicted entity after `tick`.
    pub(crate) fn other_at<S: State>(&self, entity: EntityId, tick: Tick) -> Option<S> {
        let member = self.scene.member(entity)?;
        let saved = self.saved_at(tick)?;
        S::from_row(self.scene.row_in(&saved.rows, member)?).ok()
    }

    /// The entities that are predicted besides the own player.
    pub(crate) fn others(&self) -> impl Iterator<Item = EntityId> + '_ {
        let entities = self.scene.members().iter().map(|member| member.entity);
        entities.filter(|entity| Some(*entity) != self.own && !self.spawns.is_provisional(*entity))
    }

    /// True if this entity is predicted, and is not the own player.
    pub(crate) fn predicts(&self, entity: EntityId) -> bool {
        Some(entity) != self.own && self.scene.member(entity).is_some()
    }

    /// The last corrections, the oldest first.
    pub(crate) const fn corrections(&self) -> &VecDeque<Change> {
        &self.corrections
    }

    /// The next thing to show, take back or forget about.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect<G::Event>> {
        self.effects.poll()
    }

    /// Returns the counts of right and wrong predictions so far.
    pub(crate) fn counters(&self) -> PredictionCounters {
        PredictionCounters {
            others: self.others().count() as u32,
            left_out: self.group.left_out(),
            spawns_adopted: self.spawns.adopted,
            spawns_denied: self.spawns.denied,
            spawns_left_out: self.spawns.left_out,
            ..self.counters
        }
    }

    fn saved_at(&self, tick: Tick) -> Option<&Saved<G>> {
        let (base, saved) = self.base.as_ref()?;
        match tick - *base {
            0 => Some(saved),
            steps => {
                let place = usize::try_from(steps - 1).ok()?;
                self.steps.get(place).map(|(_, saved)| saved)
            }
        }
    }

    /// Begins with the server's states.
    fn start(
        &mut self,
        game: &mut G,
        tick: Tick,
        own: (EntityId, &G::Player),
        known: &impl Knowledge,
    ) -> Reconciled<G::Player> {
        self.forget_before(self.steps.len());
        self.group.choose(game, tick, own, &self.scene, known);
        self.rebase(0, tick, known);
        // Nothing was compared, so nothing that happened until now is known to have happened.
        self.effects.contradict(tick);
        Reconciled::Started
    }

    /// Says whether the own player, and whether others, are not as predicted `then` steps after the base.
    fn compare(
        &self,
        then: usize,
        tick: Tick,
        own: &G::Player,
        known: &impl Knowledge,
    ) -> (bool, bool) {
        let Some(saved) = self.saved(then) else {
            return (true, true);
        };
        let differs = |member: &Member| {
            let expected = self.scene.row_in(&saved.rows, member);
            let row = known.row_at(member.kind, member.entity, tick);
            // What has not arrived contradicts nothing.
            row.is_some_and(|row| {
                expected
                    .is_none_or(|expected| self.scene.kinds().differ(member.kind, expected, row))
            })
        };
        let mut others = self.scene.members().iter();
        let others_differ = others.any(|member| Some(member.entity) != self.own && differs(member));
        (saved.own.differs(own), others_differ)
    }

    fn saved(&self, steps: usize) -> Option<&Saved<G>> {
        match steps.checked_sub(1) {
            None => self.base.as_ref().map(|(_, saved)| saved),
            Some(place) => self.steps.get(place).map(|(_, saved)| saved),
        }
    }

    /// Makes the state after so many steps the base.
    fn forget_before(&mut self, steps: usize) {
        let Some((tick, _)) = self.base else {
            return;
        };
        for step in 1..=steps as u32 {
            let Some((_, saved)) = self.steps.pop_front() else {
                return;
            };
            if let Some((_, old)) = self.base.replace((tick + step, saved)) {
                self.spare.push(old.rows);
            }
        }
    }

    /// Notes the newest states before a correction.
    fn begin_change(&mut self) -> Change {
        let number = self.corrections.back().map_or(1, |last| last.number + 1);
        let mut change = match self.corrections.len() {
            CORRECTIONS_MAX.. => self.corrections.pop_front().unwrap_or_default(),
            _ => Change::default(),
        };
        change.number = number;
        change.before.clear();
        change.before.extend_from_slice(self.scene.rows());
        change.members.clear();
        let members = self.scene.members().iter();
        change
            .members
            .extend(members.map(|member| (member.entity, self.scene.range(member), 0..0)));
        change
    }

    fn end_change(&self, change: &mut Change) {
        change.after.clear();
        change.after.extend_from_slice(self.scene.rows());
        change.members.retain_mut(|(entity, _, after)| {
            let member = self.scene.member(*entity);
            *after = member.map_or(0..0, |member| self.scene.range(member));
            member.is_some()
        });
    }

    /// Makes the server's states at `tick`, and what was predicted for it where the server says nothing, the base.
    fn rebase(&mut self, then: usize, tick: Tick, known: &impl Knowledge) {
        self.forget_before(then);
        let own = self.own;
        let mut rows = self.spare.pop().unwrap_or_default();
        let old = self.base.take();
        let mut members: Vec<_> = self.group.members().collect();
        members.extend(own.map(|own| (own, self.scene.player_kind())));
        members.extend(self.spawns.moving_at(tick));
        members.sort_unstable_by_key(|(entity, _)| *entity);
        self.spare_scene.clear();
        for (entity, kind) in members {
            let predicted = self.scene.member(entity).zip(old.as_ref());
            let predicted =
                predicted.and_then(|(member, (_, saved))| self.scene.row_in(&saved.rows, member));
            let Some(row) = known.row_at(kind, entity, tick).or(predicted) else {
                continue;
            };
            let input = (kind == self.scene.player_kind()).then(|| told_input::<G>(known, entity));
            self.spare_scene.add(entity, kind, row, input);
        }
        rows.clear();
        rows.extend_from_slice(self.spare_scene.rows());
        std::mem::swap(&mut self.scene, &mut self.spare_scene);
        self.spare.extend(old.map(|(_, saved)| saved.rows));
        let player = own.and_then(|own| self.scene.player(own));
        self.base = player.map(|own| (tick, Saved { own, rows }));
    }

    /// Notes where spawns are by now, in case that they are denied.
    fn note_spawns(&mut self) {
        let scene = &self.scene;
        self.spawns
            .note_rows(|entity| Some(scene.row_of(scene.member(entity)?)));
    }

    fn take_inputs(&mut self, known: &impl Knowledge) {
        for index in 0..self.scene.members().len() {
            let member = self.scene.members()[index];
            if member.kind == self.scene.player_kind() && Some(member.entity) != self.own {
                let input = told_input::<G>(known, member.entity);
                self.scene.set_input(member.entity, input);
            }
        }
    }

    fn predict_one(&mut self, game: &mut G, tick: Tick, input: G::Input) {
        // Memory and the cost of a correction are bounded; the player stands still until the server is heard again.
        if self.steps.len() == Self::AHEAD_MAX {
            return;
        }
        if let Some(saved) = self.step(game, tick, &input, true) {
            self.steps.push_back((input, saved));
        }
    }

    /// Simulates a tick from the scene as it is.
    fn step(
        &mut self,
        game: &mut G,
        tick: Tick,
        input: &G::Input,
        first_run: bool,
    ) -> Option<Saved<G>> {
        let own = self.own?;
        self.scene.set_input(own, input.clone());
        self.scene.step(game, tick, first_run);
        for (player, event) in self.scene.drain_events() {
            // The server tells what others did.
            if player == own {
                self.effects.emit(tick, event);
            }
        }
        let named = self.scene.take_spawns();
        for new in named.iter().filter(|new| new.player == own) {
            let declared = self.scene.kinds().at(new.kind.place());
            let moves = G::PREDICTED_MAX > 0 && declared.is_predicted();
            let entity = self.spawns.name(new, moves);
            if let Some(entity) = entity.filter(|_| moves) {
                self.scene.append(entity, new.kind, &new.row);
            }
        }
        let mut rows = self.spare.pop().unwrap_or_default();
        rows.clear();
        rows.extend_from_slice(self.scene.rows());
        let own = self.scene.player(own)?;
        Some(Saved { own, rows })
    }

    fn simulate_again(&mut self, game: &mut G, base: Tick) -> u32 {
        // Events of these ticks are compared with those of the first time: the same ones are not shown twice, others are
        // taken back.
        self.effects.begin_again(base);
        self.spawns.begin_again(base);
        let again = self.steps.len() as u32;
        for (place, tick) in (0..again as usize).map(|step| (step, base + step as u32 + 1)) {
            let input = self.steps[place].0.clone();
            if let Some(saved) = self.step(game, tick, &input, false) {
                let old = std::mem::replace(&mut self.steps[place].1, saved);
                self.spare.push(old.rows);
            }
        }
        self.effects.end_again();
        self.spawns.end_again();
        self.counters.steps_again += u64::from(again);
        again
    }
}

/// The last input of another player, as far as the server told; none otherwise.
fn told_input<G: Game>(known: &impl Knowledge, entity: EntityId) -> G::Input {
    let bytes = known.input(entity).unwrap_or_default();
    let mut reader = BitReader::new(bytes);
    G::Input::read(&Options::NONE, &mut reader).unwrap_or_default()
}

/// Corrections that are kept until they are shown; there are not more between two frames.
const CORRECTIONS_MAX: usize = 8;
