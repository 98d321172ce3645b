//! Spawns of the client's own steps, as they are drawn until the server's entities take their places.

use muse_schema::State;

use super::ghost::Ghost;
use super::{Client, Remotes};
use crate::EntityId;
use crate::interpolation::{Shown, Source};
use crate::prediction::{Game, SpawnEntry, SpawnShown};
use crate::world::Kind;

impl<G: Game> Client<G>
where
    G::Player: State,
{
    /// Returns what the player's steps have spawned of a kind and the server has not told of, and what fades because the server did not spawn it. As soon as the
    /// server's entity is known it is no more among them, but among the [others](Remotes::show). For states that the game moves by itself, by when they were
    /// spawned; [`Remotes::show_spawns`] is smoother for those that the rules move.
    pub fn spawns<S: State>(&self, kind: Kind<S>) -> impl Iterator<Item = SpawnShown<S>> {
        let of_kind = self.own_spawns(kind);
        of_kind.map(|(_, shown)| shown)
    }

    /// Returns the newest state of an entity of the server. If the player's own step spawned it, and it is a little different from what was shown until the server
    /// told of it, it moves over to that within [`spawn_fade`](super::SessionConfig::spawn_fade).
    pub fn adopted<S: State>(&self, kind: Kind<S>, entity: EntityId) -> Option<S> {
        let (_, row) = self.receiver().row(kind.id(), entity)?;
        match self.predictor().spawn_of(entity) {
            Some(spawn) if spawn.kind() == kind.id() => spawn.blended(row),
            _ => S::from_row(row).ok(),
        }
    }

    /// The spawns of a kind with the names that they have in the scene.
    pub(super) fn own_spawns<S: State>(
        &self,
        kind: Kind<S>,
    ) -> impl Iterator<Item = (EntityId, SpawnShown<S>)> {
        let spawns = self.predictor().spawns();
        let of_kind = spawns.filter(move |spawn| spawn.kind() == kind.id());
        of_kind.filter_map(|spawn| {
            let state = match spawn.is_simulated() {
                true => self.predicted_between(
                    spawn.provisional(),
                    self.play_instant().0,
                    |_: &S, _: &S| 0.0,
                ),
                false => None,
            };
            let shown = SpawnShown {
                key: spawn.key(),
                state: state.or_else(|| spawn.state())?,
                share: spawn.share(),
            };
            Some((spawn.provisional(), shown))
        })
    }
}

impl<S: State> Remotes<S> {
    /// Returns what the client's own steps have spawned of this kind and the server has not told of, to be drawn beside what [`show`](Self::show) returns: each thing
    /// is in one of them. An entity of the server goes on where its spawn was.
    pub fn show_spawns<G: Game>(
        &mut self,
        client: &Client<G>,
    ) -> impl Iterator<Item = SpawnShown<S>> {
        let (now, distance) = (client.play_instant(), self.distance);
        let spawns: Vec<_> = client.own_spawns(self.kind).collect();
        self.spawned
            .retain(|entity, _| spawns.iter().any(|(other, _)| other == entity));
        let spawned = &mut self.spawned;
        let (smoothing, newest) = (self.config.smoothing, client.corrections_made());
        spawns.into_iter().map(move |(entity, mut shown)| {
            let ghost = spawned.entry(entity).or_insert_with(|| {
                let mut ghost = Ghost::new(smoothing);
                ghost.corrections = newest;
                ghost
            });
            for change in client.corrections_after(ghost.corrections) {
                ghost.handle_correction(change.number, change.of(entity), distance);
            }
            let source = Source::Predicted;
            let state = shown.state.clone();
            let predicted = |at| match at == now.0 {
                true => Some(state.clone()),
                false => client.predicted_between(entity, at, distance),
            };
            let as_is = Shown {
                state: state.clone(),
                source,
            };
            shown.state = ghost.show(now, as_is, predicted, distance).state;
            shown
        })
    }

    /// The way in which the entity was shown before the server told of it.
    pub(super) fn ghost_of<G: Game>(&mut self, client: &Client<G>, entity: EntityId) -> Ghost<S> {
        let spawn = client.predictor().spawn_of(entity);
        let spawned = spawn.map(SpawnEntry::provisional);
        let shown = spawned.and_then(|entity| self.spawned.remove(&entity));
        shown.unwrap_or_else(|| Ghost::new(self.config.smoothing))
    }
}
