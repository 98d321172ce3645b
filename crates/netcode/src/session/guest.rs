//! The server's state of one client.

use muse_schema::BitReader;
use muse_wire::{Duration, Instant};

use super::format::{FromClient, ToClient};
use super::round_trips::RoundTrips;
use super::{PacketError, SessionConfig};
use crate::Shooter;
use crate::inputs::{Input, InputBuffer, InputForTick};
use crate::replication::ClientView;
use crate::world::{ClientId, World};
use crate::{EntityId, Tick};

/// The server's state of one client.
#[derive(Debug)]
pub(super) struct Guest<I> {
    pub inputs: InputBuffer<I>,
    pub taken: InputForTick<I>,
    pub view: ClientView,
    /// The client's entity, and how often that has changed; the client is told until it says that it knows.
    pub player: Option<EntityId>,
    player_version: u8,
    player_known: bool,
    /// True if the game decides what the client sees; otherwise it sees everything.
    pub interest_set: bool,
    /// The structure of the world when it was last said that everything is seen.
    structure_seen: Option<u64>,
    /// True if it sees the world of a while ago.
    pub is_delayed: bool,
    /// True if it is in the same program, and polls its packets itself.
    pub is_local: bool,
    pub budget: usize,
    /// The mean age of the picture that the player acts on.
    picture_age: Option<Duration>,
    round: Round,
    round_trips: RoundTrips,
    /// The mean time that inputs wait in the buffer.
    waited: Option<Duration>,
}

/// The packets of one tick to one client.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    due: Instant,
    started: bool,
    number: u16,
}

impl<I: Input> Guest<I> {
    pub(super) fn new(config: &SessionConfig, world: &World, client: ClientId, next: Tick) -> Self {
        Self {
            inputs: InputBuffer::new(config.inputs.packet_ticks(config.packet_interval), next),
            taken: InputForTick::Missing,
            view: ClientView::new(world, client),
            player: None,
            player_version: 0,
            player_known: false,
            interest_set: false,
            structure_seen: None,
            is_delayed: false,
            is_local: false,
            budget: config.bytes_per_snapshot,
            picture_age: None,
            round: Round::default(),
            round_trips: RoundTrips::new(),
            waited: None,
        }
    }

    pub(super) fn set_player(&mut self, entity: Option<EntityId>) {
        self.player = entity;
        // A version and not the entity alone, because the client may be given the same one again.
        self.player_version = self.player_version.wrapping_add(1);
        self.player_known = false;
        // The weights of the interest depend on it.
        self.structure_seen = None;
        self.view.set_player(entity);
    }

    pub(super) fn handle_packet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PacketError> {
        let (header, rest) = FromClient::parse(bytes)?;
        let len = self.view.handle_acknowledgement(rest)?;
        self.player_known |= header.player_version == self.player_version;
        if let Some(age) = header.picture_age() {
            self.picture_age = Some(mean(self.picture_age, age, AGE_WEIGHT));
        }
        if let Some((number, held)) = header.heard() {
            self.round_trips.handle_answer(now, number, held);
        }
        let rest = rest.get(len..).unwrap_or_default();
        self.inputs.handle_packet(now, &mut BitReader::new(rest))?;
        Ok(())
    }

    /// Takes the input of a tick, and notes how long it has waited.
    pub(super) fn take(&mut self, tick: Tick, due: Instant) {
        let before = self.inputs.counters().waited_micros;
        self.taken = self.inputs.take(tick, due);
        if self.taken.is_received() {
            let micros = self.inputs.counters().waited_micros - before;
            let waited = Duration::from_micros(micros).min(WAIT_MAX);
            self.waited = Some(mean(self.waited, waited, WAIT_WEIGHT));
        }
    }

    /// Returns what is known of it when it fires. An input that came early waited longer, so that the mean of the wait belongs to the mean of
    /// the round trip.
    ///
    /// The client reports how old its picture is all the time, not only when it fires, and both its clocks run evenly: so jitter has no part in what
    /// is expected, and nobody chooses another past for a single shot.
    pub(super) fn shooter(&self, tick: Duration) -> Shooter {
        let coarse = tick.as_secs_f64() * f64::from(self.view.delay_ticks());
        let rtt = self.round_trips.mean();
        let rtt = rtt.unwrap_or(Duration::from_secs_f64(coarse));
        let buffered = self.waited.unwrap_or(tick);
        let age = self.picture_age.unwrap_or(rtt + buffered);
        let rest = age.as_micros().saturating_sub((rtt + buffered).as_micros());
        Shooter {
            rtt,
            interpolation: Duration::from_micros(rest),
            buffered,
            acknowledged: self.view.acknowledged(),
        }
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trips.mean()
    }

    /// Begins the packets of a committed tick.
    pub(super) fn begin(&mut self, world: &World, due: Instant) {
        // Only when entities came or went: otherwise the interest of the last tick still holds.
        if !self.interest_set && self.structure_seen != Some(world.structure()) {
            self.structure_seen = Some(world.structure());
            let player = self.player;
            let weight = |entity| match Some(entity) == player {
                true => PLAYER_WEIGHT,
                false => 1.0,
            };
            let everything = world.entities().map(|entity| (entity, weight(entity)));
            self.view.set_interest(everything);
        }
        self.view.begin(world, self.budget);
        self.round.due = due;
        self.round.started = false;
        self.round.number = self.round.number.wrapping_add(1);
    }

    pub(super) fn poll_packet(
        &mut self,
        world: &World,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<usize> {
        // Once a tick is enough: what its first packet says, the others need not repeat.
        let first = !self.round.started;
        let header = ToClient {
            report: first.then(|| (self.round.number, self.inputs.report(now, self.round.due))),
            player: (first && !self.player_known).then_some((self.player_version, self.player)),
        };
        let start = header.emit(buffer).ok()?;
        let len = self.view.poll_packet(world, buffer.get_mut(start..)?)?;
        if first {
            self.round_trips.handle_sent(now, self.round.number);
        }
        self.round.started = true;
        Some(start + len)
    }
}

/// Moves a mean towards a new value, by one part in `weight`.
fn mean(mean: Option<Duration>, value: Duration, weight: u64) -> Duration {
    mean.map_or(value, |mean| (mean * (weight - 1) + value) / weight)
}

/// The urgency of a client's own player in relation to others.
pub(super) const PLAYER_WEIGHT: f32 = 16.0;
/// Each input counts one part in so many towards the mean of the wait.
const WAIT_WEIGHT: u64 = 16;
/// Each packet counts one part in so many towards the mean age of pictures, which moves quickly while the client's clocks settle.
const AGE_WEIGHT: u64 = 4;
/// Longest wait counted.
const WAIT_MAX: Duration = Duration::from_secs(1);
