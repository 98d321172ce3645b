//! The recent past of a session's players, for shots.

use muse_netcode::prediction::Game;
use muse_netcode::{ClientId, EntityId, Kind, Server, Tick, World};
use muse_schema::State;

use crate::{
    Admission, Claim, Except, Hit, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, RigId,
    Shot,
};

/// Every entity of one kind, as far back as shots may be judged.
///
/// After each tick [`record`](Self::record) where everybody is, then judge the shots that came in with the inputs of the tick. For
/// other kinds, platforms and bones use a [`Rewind`].
///
/// ```
/// use glam::Vec3;
/// use muse_netcode::inputs::InputForTick;
/// use muse_netcode::prediction::{Game, StepContext};
/// use muse_lagcomp::{Claim, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Volume};
/// use muse_netcode::{ClientId, KindOptions, Kinds, Server, SessionConfig, TickTime};
/// use muse_schema::{Schema, State};
/// use muse_wire::{Duration, Instant};
///
/// #[derive(State, Clone)]
/// struct Player {
///     #[field(range = -100.0..=100.0, step = 0.001)]
///     at: [f32; 3],
/// }
/// #[derive(Schema, Clone, Default, PartialEq)]
/// struct Keys {
///     // What was on the screen when the trigger was pulled.
///     fire: Option<Claim>,
/// }
/// # struct Rules;
/// # impl Game for Rules {
/// #     type Player = Player;
/// #     type Input = Keys;
/// #     type Event = ();
/// #     fn step(&mut self, _: &mut Player, _: &Keys, _: &mut StepContext<'_, ()>) {}
/// # }
/// let mut kinds = Kinds::new();
/// let player = kinds.register::<Player>(KindOptions::new(1))?;
/// let (tick, now) = (Duration::from_millis(20), Instant::ZERO);
/// let mut server = Server::<Rules>::new(SessionConfig::new(tick), kinds, player, now);
/// server.join(ClientId(1), &Player { at: [0.0; 3] })?;
/// let target = server.join(ClientId(2), &Player { at: [0.0, 0.0, 9.0] })?;
/// let rig = Rig::new([HitVolume::new(Volume::Capsule { half_length: 0.6, radius: 0.3 })])?;
/// let mut hits = Hits::new(RewindConfig::new(50), player, rig, |player| Pose::at(player.at.into()))?;
///
/// while let Some(tick) = server.poll_tick(now, &mut Rules, |_, ()| ()) {
///     hits.record(server.world(), tick)?;
///     for client in server.clients() {
///         if let Some(InputForTick::Received(Keys { fire: Some(claim) })) = server.input(client) {
///             let hit = hits.hitscan(&server, client, *claim, &Shot::new(Vec3::ZERO, Vec3::Z));
///             println!("{client:?} fired: {hit:?}");
///         }
///     }
/// }
/// // As if the first client had fired in this tick.
/// let claim = Claim::at(TickTime::from_ticks(0.0));
/// let hit = hits.hitscan(&server, ClientId(1), claim, &Shot::new(Vec3::ZERO, Vec3::Z));
/// assert_eq!(hit.map(|hit| hit.entity), Some(target));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Hits<S> {
    rewind: Rewind,
    kind: Kind<S>,
    rig: RigId,
    pose: fn(&S) -> Pose,
    /// In the order of the world.
    known: Vec<EntityId>,
    there: Vec<EntityId>,
}

impl<S: State> Hits<S> {
    /// For entities of this kind with these volumes; `pose` says where one is.
    pub fn new(
        config: RewindConfig,
        kind: Kind<S>,
        rig: Rig,
        pose: fn(&S) -> Pose,
    ) -> Result<Self, RewindError> {
        let mut rewind = Rewind::new(config);
        let rig = rewind.add_rig(rig)?;
        Ok(Self {
            rewind,
            kind,
            rig,
            pose,
            known: Vec::new(),
            there: Vec::new(),
        })
    }

    /// Remembers where everybody is at the end of a tick. An entity that is gone from the world can still be hit by those who saw it.
    pub fn record(&mut self, world: &World, tick: Tick) -> Result<(), RewindError> {
        self.rewind.advance(tick)?;
        self.there.clear();
        for entity in world.entities() {
            let Some(state) = world.state(self.kind, entity) else {
                continue;
            };
            if self.known.binary_search(&entity).is_err() {
                self.rewind.add(entity, self.rig)?;
            }
            self.there.push(entity);
            let placement = Placement::new((self.pose)(&state));
            self.rewind.record(entity, placement)?;
        }
        self.there.sort_unstable();
        for gone in &self.known {
            if self.there.binary_search(gone).is_err() {
                self.rewind.retire(*gone);
            }
        }
        std::mem::swap(&mut self.known, &mut self.there);
        Ok(())
    }

    /// The instant at which a shot of the client is judged: what its input claims, as far as that is plausible. `None` if the client has not
    /// joined.
    pub fn admit<G: Game>(
        &self,
        server: &Server<G>,
        client: ClientId,
        claim: Claim,
    ) -> Option<Admission>
    where
        G::Player: State,
    {
        Some(self.rewind.admit(claim, &server.shooter(client)?))
    }

    /// Judges a shot along a line as the client saw it: by the instant that its input claims, as far as that is plausible. It hits
    /// everyone but the client's own player.
    pub fn hitscan<G: Game>(
        &self,
        server: &Server<G>,
        client: ClientId,
        claim: Claim,
        shot: &Shot,
    ) -> Option<Hit>
    where
        G::Player: State,
    {
        let admission = self.admit(server, client, claim)?;
        let own = server.player(client)?;
        self.rewind.hitscan(&admission, shot, &mut Except(own))
    }

    /// The past, for other sorts of shots.
    pub const fn rewind(&self) -> &Rewind {
        &self.rewind
    }
}
