//! One replicated component: from the server's entities to the session's world, and from a client's session to its entities.

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::change_detection::Tick as ChangeTick;
use bevy_ecs::prelude::*;
use muse::netcode::{self, EntityId, Kind, KindOptions, Kinds, Remotes, Update};

use crate::components::{NetId, Owner, Predicted, Replicated};
use crate::protocol::{BevyGame, Replicable};

/// Maps entities of the program to those of the session, and back.
#[derive(Default)]
pub(crate) struct EntityMap {
    pub(crate) there: BTreeMap<EntityId, Entity>,
    pub(crate) here: BTreeMap<Entity, EntityId>,
}

impl EntityMap {
    pub(crate) fn insert(&mut self, id: EntityId, entity: Entity) {
        self.there.insert(id, entity);
        self.here.insert(entity, id);
    }

    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.there.remove(&id)?;
        self.here.remove(&entity);
        Some(entity)
    }
}

/// A replicated component without its type.
pub(crate) trait Component<G: BevyGame>: Send + Sync {
    /// Adds its kind, as it was added when the protocol was made.
    fn declare(&self, kinds: &mut Kinds);

    /// On the server: puts what changed into the session's world. New entities get a name there by their main component.
    fn store(&mut self, world: &mut World, game: &mut netcode::Server<G>, map: &mut EntityMap);

    /// On the server: gives entities that the session itself simulates the state after the tick.
    fn load(&mut self, world: &mut World, game: &netcode::Server<G>);

    /// True if the session itself simulates it: players, and what clients predict.
    fn is_simulated(&self) -> bool;

    /// On the client: takes in an update of the session.
    fn update(
        &mut self,
        world: &mut World,
        game: &netcode::Client<G>,
        update: &Update,
        map: &EntityMap,
    );

    /// On the client: gives entities what is to be drawn. Those that are shown although they are gone are put into `lingering`.
    fn show(
        &mut self,
        world: &mut World,
        game: &netcode::Client<G>,
        map: &EntityMap,
        lingering: &mut BTreeSet<EntityId>,
    );

    /// On the client: another session begins.
    fn begin(&mut self, game: &netcode::Client<G>);
}

/// The query for entities of which a component is stored.
type Stored<C> = (Entity, Ref<'static, C>, Option<&'static NetId>);

pub(crate) struct Replicate<C: Replicable> {
    options: KindOptions,
    kind: Kind<C>,
    is_part: bool,
    is_simulated: bool,
    distance: Option<fn(&C, &C) -> f32>,
    /// Everything that changed before has been stored.
    stored: Option<ChangeTick>,
    /// On the server: what is replicated. Made once, because making it costs more than asking it.
    query: Option<QueryState<Stored<C>, With<Replicated>>>,
    remotes: Option<Remotes<C>>,
}

impl<C: Replicable> Replicate<C> {
    /// # Panics
    /// When the kind cannot be registered.
    pub(crate) fn new(
        kinds: &mut Kinds,
        options: KindOptions,
        is_part: bool,
        distance: Option<fn(&C, &C) -> f32>,
    ) -> Self {
        Self {
            kind: kinds
                .register(options.clone())
                .expect("the kind has a number of its own and a state that fits"),
            options,
            is_part,
            is_simulated: false,
            distance,
            stored: None,
            query: None,
            remotes: None,
        }
    }

    /// The session itself simulates it.
    pub(crate) fn simulated(mut self) -> Self {
        self.is_simulated = true;
        self
    }

    pub(crate) fn kind(&self) -> Kind<C> {
        self.kind
    }
}

impl<C: Replicable, G: BevyGame> Component<G> for Replicate<C> {
    fn declare(&self, kinds: &mut Kinds) {
        // It went well the first time, with the same kinds before it.
        let _ = kinds.register::<C>(self.options.clone());
    }

    fn store(&mut self, world: &mut World, game: &mut netcode::Server<G>, map: &mut EntityMap) {
        // Whatever changes from here on is newer.
        let now = world.increment_change_tick();
        let query = self.query.get_or_insert_with(|| world.query_filtered());
        let mut named = Vec::new();
        for (entity, state, known) in query.iter(world) {
            let known = known.map(|known| known.0);
            let changed = self
                .stored
                .is_none_or(|stored| state.last_changed().is_newer_than(stored, now));
            match known {
                Some(id) if changed || game.world().row(self.kind.id(), id).is_none() => {
                    // It is there, and the state is legal: nothing can be wrong with it.
                    let _ = game.world_mut().set(self.kind, id, &state);
                }
                // A part without its main component has to wait for that.
                None if !self.is_part => {
                    if let Ok(id) = game.world_mut().spawn(self.kind, &*state) {
                        map.insert(id, entity);
                        named.push((entity, id));
                    }
                }
                _ => {}
            }
        }
        for (entity, id) in named {
            world.entity_mut(entity).insert(NetId(id));
        }
        self.stored = Some(now);
        self.forget(world, game, map);
    }

    fn load(&mut self, world: &mut World, game: &netcode::Server<G>) {
        let query = self.query.get_or_insert_with(|| world.query_filtered());
        let mut moved = Vec::new();
        for (entity, shown, known) in query.iter(world) {
            let state = known.and_then(|known| game.world().state(self.kind, known.0));
            // What did not move is not marked as changed.
            if let Some(state) = state.filter(|state| state.differs(&shown)) {
                moved.push((entity, state));
            }
        }
        for (entity, state) in moved {
            if let Some(mut component) = world.get_mut::<C>(entity) {
                *component = state;
            }
        }
    }

    fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    fn update(
        &mut self,
        world: &mut World,
        game: &netcode::Client<G>,
        update: &Update,
        map: &EntityMap,
    ) {
        if let Some(remotes) = &mut self.remotes {
            remotes.handle_update(game, update);
        }
        match *update {
            Update::State { entity, kind, .. } if kind == self.kind.id() => {
                let (Some(local), Some((_, state))) = (
                    map.there.get(&entity),
                    game.receiver().state(self.kind, entity),
                ) else {
                    return;
                };
                let mut local = world.entity_mut(*local);
                // What is interpolated or predicted gets its value when it is shown.
                if self.remotes.is_none() || !local.contains::<C>() {
                    local.insert(state);
                }
            }
            Update::PartRemoved { entity, kind, .. } if kind == self.kind.id() => {
                if let Some(local) = map.there.get(&entity) {
                    world.entity_mut(*local).remove::<C>();
                }
            }
            _ => {}
        }
    }

    fn show(
        &mut self,
        world: &mut World,
        game: &netcode::Client<G>,
        map: &EntityMap,
        lingering: &mut BTreeSet<EntityId>,
    ) {
        let Some(remotes) = &mut self.remotes else {
            return;
        };
        for (id, shown) in remotes.show(game) {
            lingering.insert(id);
            if let Some(local) = map.there.get(&id)
                && let Some(mut state) = world.get_mut::<C>(*local)
            {
                *state = shown.state;
            }
        }
    }

    fn begin(&mut self, game: &netcode::Client<G>) {
        self.remotes = self
            .distance
            .map(|distance| Remotes::new(self.kind, game.interpolation(), distance));
    }
}

impl<C: Replicable> Replicate<C> {
    /// Takes away parts whose component was removed.
    fn forget<G: BevyGame>(&self, world: &World, game: &mut netcode::Server<G>, map: &EntityMap) {
        if !self.is_part {
            return;
        }
        for (entity, id) in &map.here {
            let here = world.get::<C>(*entity).is_some();
            if !here && game.world().row(self.kind.id(), *id).is_some() {
                // It is there, as was just seen.
                let _ = game.world_mut().remove(self.kind.id(), *id);
            }
        }
    }
}

/// The query for entities that [`follow`] looks at.
pub(crate) type Followed = (&'static NetId, Option<&'static Owner>);

/// On the server: entities that are gone leave the session's world, and owners are told.
pub(crate) fn follow<G: BevyGame>(
    world: &mut World,
    query: &mut QueryState<Followed, With<Replicated>>,
    game: &mut netcode::Server<G>,
    map: &mut EntityMap,
    player: Kind<G::Player>,
) {
    let mut count = 0;
    for (NetId(id), owner) in query.iter(world) {
        count += 1;
        let owner = owner.map(|owner| owner.0);
        if game.world().owner(*id) == owner {
            continue;
        }
        // It is there: the world is told below of what is gone.
        let _ = game.world_mut().set_owner(*id, owner);
        if let Some(client) = owner
            && game.world().row(player.id(), *id).is_some()
        {
            game.set_player(client, Some(*id));
        }
    }
    if count == map.here.len() {
        return;
    }
    let gone: Vec<(Entity, EntityId)> = map
        .here
        .iter()
        .filter(|(entity, _)| world.get::<Replicated>(**entity).is_none())
        .map(|(entity, id)| (*entity, *id))
        .collect();
    for (entity, id) in gone {
        map.remove(id);
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.remove::<NetId>();
        }
        // It is there until now.
        let _ = game.world_mut().despawn(id);
    }
}

/// On the client: entities come and go, and change owners.
pub(crate) fn mirror<G: BevyGame>(
    world: &mut World,
    game: &netcode::Client<G>,
    update: &Update,
    map: &mut EntityMap,
    gone: &mut BTreeSet<EntityId>,
) {
    match *update {
        Update::Spawned { entity, .. } => {
            gone.remove(&entity);
            if !map.there.contains_key(&entity) {
                let mut local = world.spawn((Replicated, NetId(entity)));
                if let Some(owner) = game.receiver().owner(entity) {
                    local.insert(Owner(owner));
                }
                map.insert(entity, local.id());
            }
        }
        Update::Related { entity, .. } => {
            let Some(local) = map.there.get(&entity) else {
                return;
            };
            let mut local = world.entity_mut(*local);
            match game.receiver().owner(entity) {
                Some(owner) => local.insert(Owner(owner)),
                None => local.remove::<Owner>(),
            };
        }
        Update::Despawned { entity, .. } => {
            gone.insert(entity);
        }
        _ => {}
    }
}

/// On the client: shows the own player where it is predicted to be.
pub(crate) fn show_player<G: BevyGame>(
    world: &mut World,
    game: &netcode::Client<G>,
    map: &EntityMap,
) {
    let (Some(id), Some(state)) = (game.player(), game.shown_player()) else {
        return;
    };
    let Some(local) = map.there.get(&id) else {
        return;
    };
    let mut local = world.entity_mut(*local);
    if !local.contains::<Predicted>() {
        local.insert(Predicted);
    }
    match local.get_mut::<G::Player>() {
        Some(mut shown) => *shown = state,
        None => {
            local.insert(state);
        }
    }
}
