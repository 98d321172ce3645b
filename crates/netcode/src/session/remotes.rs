//! Everything of one kind but the own player, as it is shown: interpolated, or predicted.

use std::collections::BTreeMap;

use muse_schema::State;

use super::Client;
use super::ghost::Ghost;
use crate::interpolation::{Interpolated, InterpolationConfig, Shown};
use crate::prediction::Game;
use crate::receiver::Update;
use crate::world::Kind;
use crate::{EntityId, Tick};

/// The entities of one kind, interpolated. Give it every update that the client polls, then draw what [`show`](Self::show) gives.
///
/// ```
/// use muse_netcode::Remotes;
/// use muse_netcode::interpolation::InterpolationConfig;
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/runner.in"));
///
/// /// Once a frame: the others, as they are to be drawn.
/// fn frame(client: &mut Client<Rules>, others: &mut Remotes<Runner>) -> Vec<Runner> {
///     while let Some(update) = client.poll_update() {
///         others.handle_update(client, &update);
///     }
///     others.show(client).map(|(_, shown)| shown.state).collect()
/// }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut now = Instant::from_secs(1);
/// # let (mut server, mut client, runner) = (server(now), client(now), kinds().1);
/// server.join(ClientId(1), &Runner { x: 0.0 })?;
/// server.join(ClientId(2), &Runner { x: 5.0 })?;
/// let mut others = Remotes::new(runner, InterpolationConfig::new(Duration::from_millis(20)), distance);
/// # let (mut buffer, mut drawn) = ([0; 1_200], Vec::new());
/// # for _ in 0..100 {
/// #     while let Some(len) = client.poll_packet(now, &mut Rules, |_| true, &mut buffer) {
/// #         server.handle_packet(now, ClientId(1), &buffer[..len])?;
/// #     }
/// #     while server.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
/// #     while let Some((to, len)) = server.poll_packet(now, &mut buffer) {
/// #         if to == ClientId(1) {
/// #             client.handle_packet(now, &mut Rules, &buffer[..len])?;
/// #         }
/// #     }
/// #     drawn = frame(&mut client, &mut others);
/// #     now += Duration::from_millis(10);
/// # }
/// // A second later the first client draws the second one's player; its own is predicted.
/// assert_eq!(drawn.len(), 1);
/// assert!((drawn[0].x - 5.0).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Remotes<S> {
    pub(super) kind: Kind<S>,
    pub(super) config: InterpolationConfig,
    pub(super) distance: fn(&S, &S) -> f32,
    entities: BTreeMap<EntityId, Remote<S>>,
    /// Spawns of the client's own steps, by the names in the scene.
    pub(super) spawned: BTreeMap<EntityId, Ghost<S>>,
}

#[derive(Debug)]
struct Remote<S> {
    states: Interpolated<S>,
    /// It is shown until then, for what is shown is in the past.
    gone_at: Option<Tick>,
    ghost: Ghost<S>,
}

impl<S: State> Remotes<S> {
    /// Shows entities of this kind, of which `distance` says how far apart two states look.
    pub fn new(kind: Kind<S>, config: InterpolationConfig, distance: fn(&S, &S) -> f32) -> Self {
        Self {
            kind,
            config,
            distance,
            entities: BTreeMap::new(),
            spawned: BTreeMap::new(),
        }
    }

    /// Handles an update of the client.
    pub fn handle_update<G: Game>(&mut self, client: &Client<G>, update: &Update) {
        match *update {
            Update::State { entity, kind, tick } if kind == self.kind.id() => {
                let Some(state) = client.receiver().state_at(self.kind, entity, tick) else {
                    return;
                };
                if !self.entities.contains_key(&entity) {
                    let remote = Remote {
                        states: Interpolated::new(self.config, self.distance),
                        gone_at: None,
                        ghost: self.ghost_of(client, entity),
                    };
                    self.entities.insert(entity, remote);
                }
                let Some(remote) = self.entities.get_mut(&entity) else {
                    return;
                };
                remote.gone_at = None;
                remote.states.handle_state(tick, state);
            }
            Update::Despawned { entity, tick } => self.retire(entity, tick),
            Update::PartRemoved { entity, kind, tick } if kind == self.kind.id() => {
                self.retire(entity, tick);
            }
            Update::KindChanged { entity, kind, tick } if kind != self.kind.id() => {
                self.retire(entity, tick);
            }
            _ => {}
        }
    }

    /// Returns what to draw now: all but the client's own player. What the client predicts is where it is by now, everything else where it was a moment
    /// ago, and what goes over from one to the other moves there within a second or so.
    pub fn show<G: Game>(
        &mut self,
        client: &Client<G>,
    ) -> impl Iterator<Item = (EntityId, Shown<S>)> {
        self.show_within(client, |_, ahead| ahead)
    }

    /// As [`show`](Self::show), in a world with obstacles: `stop` gets a state of an entity and the one that it would be shown in if nothing were in between, and
    /// returns how far it gets. So nobody runs through a wall because a packet was lost, and nothing that bounces is drawn below the floor.
    pub fn show_within<G: Game>(
        &mut self,
        client: &Client<G>,
        mut stop: impl FnMut(&S, S) -> S,
    ) -> impl Iterator<Item = (EntityId, Shown<S>)> {
        let (time, own) = (client.shown_time(), client.player());
        if let Some(time) = time {
            self.entities
                .retain(|_, remote| remote.gone_at.is_none_or(|gone| gone > time.tick));
        }
        let (distance, now) = (self.distance, client.play_instant());
        self.entities
            .iter_mut()
            .filter(move |(entity, _)| Some(**entity) != own)
            .filter_map(move |(entity, remote)| {
                let shown = remote.states.show_within(time?, &mut stop)?;
                let predicted = |at| client.predicted_between(*entity, at, distance);
                for change in client.corrections_after(remote.ghost.corrections) {
                    remote
                        .ghost
                        .handle_correction(change.number, change.of(*entity), distance);
                }
                Some((*entity, remote.ghost.show(now, shown, predicted, distance)))
            })
    }

    fn retire(&mut self, entity: EntityId, tick: Tick) {
        if let Some(remote) = self.entities.get_mut(&entity) {
            remote.gone_at = Some(tick);
            // It was shown where it would be by now, and by now it is gone.
            if remote.ghost.is_predicted {
                self.entities.remove(&entity);
            }
        }
    }
}
