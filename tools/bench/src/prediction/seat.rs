//! One player: what the server's answers change of what it predicted, and what it sees.

use std::collections::BTreeMap;

use muse_biobot::player::{interpolation_of_balls, interpolation_of_robots};
use muse_biobot::{Ball, KindIds, Player, Robot};
use muse_netcode::{EntityId, PacketError, Tick};
use muse_wire::{Duration, Instant};

use super::sight::{Moved, Sight, Steps};
use super::truth::{gap, speed_change};

/// A player who looks on.
pub(super) struct Seat {
    kinds: KindIds,
    ball: Option<(EntityId, Sight<Ball>)>,
    robots: BTreeMap<EntityId, Sight<Robot>>,
    /// The ticks of the last snapshot, and of the last that told of the ball and of the own robot.
    heard: Option<Tick>,
    ball_heard: Option<Tick>,
    own_heard: Option<Tick>,
    pub(super) answers: Vec<Answer>,
    pub(super) steps: Steps,
}

/// A snapshot, and what it changed of the newest states that were predicted.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The ticks of this snapshot, and the newest that was predicted.
    pub(super) tick: Tick,
    pub(super) newest: Tick,
    /// The ticks of the last snapshots before that told of the ball, and of the own robot: where bytes are short, not each does.
    pub(super) ball_before: Tick,
    pub(super) own_before: Tick,
    /// The ball; `None` when it was not predicted, or was put back.
    pub(super) ball: Option<BallChange>,
    /// The own robot, if it was beside the ball and did not touch it in any of these ticks, as far as the player predicted before and after: metres.
    pub(super) own: Option<f32>,
}

/// The difference that an answer made to the ball.
#[derive(Clone, Debug)]
pub(super) struct BallChange {
    /// Metres by which the newest place changed.
    pub(super) metres: f32,
    /// Metres a second by which the velocity changed at most, in any of the ticks from this snapshot's on.
    pub(super) speed: f32,
    /// The ball as it had been predicted for ticks up to this snapshot's, the newest first.
    pub(super) until: Vec<(Tick, Ball)>,
}

impl Seat {
    pub(super) fn new(kinds: KindIds) -> Self {
        Self {
            kinds,
            ball: None,
            robots: BTreeMap::new(),
            heard: None,
            ball_heard: None,
            own_heard: None,
            answers: Vec::new(),
            steps: Steps::default(),
        }
    }

    /// Gives a packet to the player and notes what it changes.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        player: &mut Player,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let before = Prediction::of(self.kinds, player, self.ball_entity());
        player.handle_packet(now, bytes)?;
        let tick = player.client().receiver().tick();
        let after = Prediction::of(self.kinds, player, self.ball_entity());
        let newer = self.heard < tick;
        if let (Some(tick), Some(before), Some(after), true) = (tick, before, after, newer) {
            self.compare(now, tick, &before, &after);
        }
        self.heard = tick;
        self.take_states(player);
        Ok(())
    }

    /// A frame was drawn.
    pub(super) fn look(&mut self, now: Instant, player: &Player) {
        let frame = player.last_frame();
        let client = player.client();
        if let Some(shown) = &frame.ball
            && let Some((entity, sight)) = &mut self.ball
            && *entity == shown.entity
        {
            let step = sight.look(now, client, (self.kinds.ball, *entity), &shown.ball);
            self.steps.note(step, true);
        }
        for shown in &frame.robots {
            if let Some(sight) = self.robots.get_mut(&shown.entity) {
                let place = (self.kinds.robot, shown.entity);
                let step = sight.look(now, client, place, &shown.robot);
                self.steps.note(step, false);
            }
        }
    }

    fn ball_entity(&self) -> Option<EntityId> {
        self.ball.as_ref().map(|(entity, _)| *entity)
    }

    fn compare(&mut self, now: Instant, tick: Tick, before: &Prediction, after: &Prediction) {
        if before.newest != after.newest {
            return;
        }
        for (entity, sight) in &mut self.robots {
            let states = (before.robots.get(entity), after.robots.get(entity));
            if let (Some(one), Some(other)) = states
                && one.feet().distance(other.feet()) > SEEN_MIN
            {
                sight.corrected(now);
            }
        }
        let ball = ball_change(tick, before, after);
        if let Some((_, sight)) = &mut self.ball
            && let (Some(old), Some(new)) = (before.ball.first(), after.ball.first())
            // Also when it was put back, or was not.
            && old.apart(new) > SEEN_MIN
        {
            sight.corrected(now);
        }
        if let (Some(ball_before), Some(own_before)) = (self.ball_heard, self.own_heard) {
            self.answers.push(Answer {
                tick,
                newest: before.newest,
                ball_before,
                own_before,
                ball,
                own: own_change(before, after),
            });
        }
    }

    /// The states that the player interpolates between.
    fn take_states(&mut self, player: &Player) {
        let client = player.client();
        let Some(tick) = client.receiver().tick() else {
            return;
        };
        let receiver = client.receiver();
        // A packet may also tell of ticks before its own: that something rested, or it came late.
        let told = || (0..TICKS_MAX).rev().map(|back| tick.back(back));
        for entity in receiver.entities() {
            let kind = receiver.kind(entity);
            if kind == Some(self.kinds.robot.id()) {
                let sight = self.robots.entry(entity);
                let sight = sight.or_insert_with(|| Sight::new(interpolation_of_robots(client)));
                for tick in told() {
                    sight.take(tick, receiver.state_at(self.kinds.robot, entity, tick));
                }
                let row = receiver.row_at(self.kinds.robot.id(), entity, tick);
                if row.is_some() && client.player() == Some(entity) {
                    self.own_heard = Some(tick);
                }
            } else if kind == Some(self.kinds.ball.id()) {
                let (_, sight) = self
                    .ball
                    .get_or_insert_with(|| (entity, Sight::new(interpolation_of_balls(client))));
                for tick in told() {
                    sight.take(tick, receiver.state_at(self.kinds.ball, entity, tick));
                }
                let row = receiver.row_at(self.kinds.ball.id(), entity, tick);
                if row.is_some() {
                    self.ball_heard = Some(tick);
                }
            }
        }
    }
}

/// The predictions of a player: the newest states, and those of the ticks before of its own robot and the ball.
struct Prediction {
    newest: Tick,
    robots: BTreeMap<EntityId, Robot>,
    /// The newest first.
    own: Vec<Robot>,
    ball: Vec<Ball>,
}

impl Prediction {
    fn of(kinds: KindIds, player: &Player, ball: Option<EntityId>) -> Option<Self> {
        let client = player.client();
        let newest = client.predicted_tick()?;
        let others = client.predicted_others();
        let robots = others.filter_map(|entity| {
            let state = client.predicted_other_at(kinds.robot, entity, newest)?;
            Some((entity, state))
        });
        let ticks = || (0..TICKS_MAX).map(|back| newest.back(back));
        let own = ticks().map_while(|tick| client.predicted_at(tick).cloned());
        let ball = ticks().map_while(|tick| client.predicted_other_at(kinds.ball, ball?, tick));
        Some(Self {
            newest,
            robots: robots.collect(),
            own: own.collect(),
            ball: ball.collect(),
        })
    }

    /// The least space between the own robot and the ball in any of the ticks.
    fn gap_min(&self) -> Option<f32> {
        let both = self.own.iter().zip(&self.ball);
        both.map(|(own, ball)| gap(own, ball)).reduce(f32::min)
    }
}

fn ball_change(tick: Tick, before: &Prediction, after: &Prediction) -> Option<BallChange> {
    let (old, new) = (before.ball.first()?, after.ball.first()?);
    if old.apart(new) >= f32::MAX {
        return None;
    }
    let both = before.ball.iter().zip(&after.ball);
    let speeds = both.map(|(old, new)| speed_change(old, new));
    let predicted = (0..).map(|back| before.newest.back(back));
    let until = predicted.zip(before.ball.iter().cloned());
    Some(BallChange {
        metres: old.apart(new),
        speed: speeds.fold(0.0, f32::max),
        until: until.filter(|(predicted, _)| *predicted <= tick).collect(),
    })
}

fn own_change(before: &Prediction, after: &Prediction) -> Option<f32> {
    let (old, new) = (before.own.first()?, after.own.first()?);
    let beside = gap(new, after.ball.first()?) < BESIDE_MAX;
    let least = before.gap_min()?.min(after.gap_min()?);
    let free = least > CONTACT_GAP && old.alive() && new.alive();
    let change = old.apart(new);
    (beside && free && change < f32::MAX).then_some(change)
}

/// A correction that can be seen, in metres.
const SEEN_MIN: f32 = 0.001;
/// Ticks that are predicted ahead at most.
const TICKS_MAX: u32 = 40;
/// Metres from the ball within which a robot is beside it.
const BESIDE_MAX: f32 = 4.0;
/// Metres between robot and ball beyond which neither moves the other in the next tick.
pub(super) const CONTACT_GAP: f32 = 0.3;

/// Returns how long after `at` it is; a long time if that never was.
pub(super) fn since(now: Instant, at: Option<Instant>) -> Duration {
    at.map_or(Duration::from_secs(1 << 20), |at| now.saturating_since(at))
}
