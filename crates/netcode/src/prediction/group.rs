//! The entities that a client predicts besides its own player, chosen again with each snapshot.

use std::collections::BTreeMap;

use super::scene::{Candidate, Scene};
use super::{Game, SpawnKey};
use crate::receiver::Receiver;
use crate::world::KindId;
use crate::{EntityId, Tick};

/// The states that the server has told of.
pub(crate) trait Knowledge {
    /// All entities that are known.
    fn entities(&self) -> impl Iterator<Item = EntityId>;
    /// The main kind of an entity.
    fn kind(&self, entity: EntityId) -> Option<KindId>;
    /// The row of an entity at a tick, if it arrived.
    fn row_at(&self, kind: KindId, entity: EntityId, tick: Tick) -> Option<&[i32]>;
    /// The input of a player that was told last.
    fn input(&self, entity: EntityId) -> Option<&[u8]>;
    /// The key of an entity that the own player spawned.
    fn spawn_key(&self, entity: EntityId) -> Option<SpawnKey>;
}

impl Knowledge for Receiver {
    fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.entities()
    }

    fn kind(&self, entity: EntityId) -> Option<KindId> {
        self.kind(entity)
    }

    fn row_at(&self, kind: KindId, entity: EntityId, tick: Tick) -> Option<&[i32]> {
        self.row_at(kind, entity, tick)
    }

    fn input(&self, entity: EntityId) -> Option<&[u8]> {
        self.input(entity).map(|(_, input)| input)
    }

    fn spawn_key(&self, entity: EntityId) -> Option<SpawnKey> {
        self.spawn_key(entity)
    }
}

/// The group.
#[derive(Debug)]
pub(super) struct Group {
    limit: usize,
    members: BTreeMap<EntityId, Joined>,
    /// Candidates of the last choice, with their ranks.
    ranked: Vec<(f32, EntityId, KindId)>,
    left_out: u32,
}

#[derive(Clone, Copy, Debug)]
struct Joined {
    kind: KindId,
    /// The last tick in which the game wanted it.
    wanted: Tick,
}

impl Group {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            members: BTreeMap::new(),
            ranked: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (EntityId, KindId)> + '_ {
        let members = self.members.iter();
        members.map(|(entity, joined)| (*entity, joined.kind))
    }

    /// Entities that the game wanted predicted at the last choice, and for which there was no room.
    pub(super) const fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Something that is predicted already is this entity of the server.
    pub(super) fn adopt(&mut self, entity: EntityId, kind: KindId, wanted: Tick) {
        self.members.insert(entity, Joined { kind, wanted });
    }

    /// Chooses among what is known at `tick`. True if the group changed.
    ///
    /// A member stays for a moment after the game wants it no longer, so that none comes and goes with every step at the border.
    pub(super) fn choose<G: Game>(
        &mut self,
        game: &G,
        tick: Tick,
        (own, state): (EntityId, &G::Player),
        scene: &Scene<G>,
        known: &impl Knowledge,
    ) -> bool {
        if G::PREDICTED_MAX == 0 {
            return false;
        }
        let kinds = scene.kinds();
        self.ranked.clear();
        for entity in known.entities() {
            let Some(kind) = known.kind(entity) else {
                continue;
            };
            let is_player = kind == scene.player_kind();
            if entity == own || !(is_player || kinds.at(kind.place()).is_predicted()) {
                continue;
            }
            let member = self.members.get(&entity).filter(|known| known.kind == kind);
            let Some(row) = known.row_at(kind, entity, tick) else {
                // A member of which nothing was said stays; what is none could not be simulated from here.
                if member.is_some_and(|member| tick - member.wanted <= i64::from(LINGER_TICKS)) {
                    self.ranked.push((0.0, entity, kind));
                }
                continue;
            };
            let candidate = Candidate {
                kinds,
                entity,
                kind,
                row,
            };
            match (game.predicts(state, &candidate), member) {
                (Some(rank), _) => {
                    if let Some(member) = self.members.get_mut(&entity) {
                        member.wanted = tick;
                        // In front of those that are as near, or the two would take turns.
                        self.ranked.push((rank * STAYING_SHARE, entity, kind));
                    } else {
                        self.ranked.push((rank, entity, kind));
                    }
                }
                (None, Some(member)) if tick - member.wanted <= i64::from(LINGER_TICKS) => {
                    self.ranked.push((f32::MAX, entity, kind));
                }
                (None, _) => {}
            }
        }
        self.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let room = self.limit.min(self.ranked.len());
        let beyond = self.ranked[room..].iter();
        self.left_out = beyond.filter(|(rank, ..)| *rank < f32::MAX).count() as u32;
        self.ranked.truncate(room);
        self.replace(tick)
    }

    fn replace(&mut self, tick: Tick) -> bool {
        let is_same = self.ranked.len() == self.members.len()
            && self.ranked.iter().all(|(_, entity, kind)| {
                let member = self.members.get(entity);
                member.is_some_and(|member| member.kind == *kind)
            });
        if is_same {
            return false;
        }
        let chosen = self.ranked.iter().map(|(_, entity, kind)| {
            let wanted = self.members.get(entity).map_or(tick, |known| known.wanted);
            let kind = *kind;
            (*entity, Joined { kind, wanted })
        });
        self.members = chosen.collect();
        true
    }
}

/// Ticks for which an entity stays in the group after the game wanted it last.
const LINGER_TICKS: u32 = 30;
/// The factor by which a member counts as nearer than it is.
const STAYING_SHARE: f32 = 0.8;
