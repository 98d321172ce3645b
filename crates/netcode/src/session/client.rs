//! The client of a game: predicts its own player, shows others, keeps its clock.

use std::collections::VecDeque;
use std::sync::Arc;

use muse_schema::{BitWriter, Blend, State};
use muse_wire::bytes::Reader;
use muse_wire::{Duration, Instant, log};

use super::format::{FromClient, ToClient};
use super::{PacketError, SessionConfig};
use crate::Claim;
use crate::clock::{ClientClock, Due};
use crate::inputs::{InputReport, InputSender};
use crate::interpolation::{InterpolationConfig, Playback, between};
use crate::prediction::{Budget, Change, Effect, Game, PredictionCounters, Predictor, Reconciled};
use crate::quality::Quality;
use crate::receiver::{Receiver, Update};
use crate::smoothing::Smoothing;
use crate::snapshot::Header;
use crate::world::{Kind, Kinds};
use crate::{EntityId, Event, Tick, TickTime};

/// The client's side of a session with a predicted player.
///
/// Call [`handle_packet`](Self::handle_packet) for what arrives, [`poll_packet`](Self::poll_packet) until it returns `None` once a frame
/// or when [`poll_timeout`](Self::poll_timeout) says, and draw [`shown_player`](Self::shown_player) and
/// [`Remotes`](super::Remotes).
///
/// ```
/// use muse_netcode::prediction::{Game, StepContext};
/// use muse_netcode::{Client, ClientId, KindOptions, Kinds, Server, SessionConfig};
/// use muse_schema::State;
/// use muse_wire::{Duration, Instant};
///
/// #[derive(State, Clone, Debug, PartialEq)]
/// struct Runner {
///     #[field(range = -100.0..=100.0, step = 0.001)]
///     x: f32,
/// }
///
/// struct Rules;
/// impl Game for Rules {
///     type Player = Runner;
///     type Input = bool;
///     type Event = ();
///     fn step(&mut self, runner: &mut Runner, run: &bool, _: &mut StepContext<'_, ()>) {
///         runner.x += if *run { 0.1 } else { 0.0 };
///     }
/// }
///
/// let kinds = || {
///     let mut kinds = Kinds::new();
///     let runner = kinds.register::<Runner>(KindOptions::new(1)).expect("a new id");
///     (kinds, runner)
/// };
/// let config = SessionConfig::new(Duration::from_millis(20));
/// let mut now = Instant::from_secs(1);
/// let (all, runner) = kinds();
/// let mut server = Server::<Rules>::new(config, all, runner, now);
/// server.join(ClientId(1), &Runner { x: 0.0 })?;
/// let (all, runner) = kinds();
/// let mut client = Client::<Rules>::new(config, all, runner, |a, b| (a.x - b.x).abs(), now);
/// let mut buffer = [0; 1_200];
/// for _ in 0..200 {
///     while let Some(len) = client.poll_packet(now, &mut Rules, |_| true, &mut buffer) {
///         server.handle_packet(now, ClientId(1), &buffer[..len])?;
///     }
///     while server.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
///     while let Some((_, len)) = server.poll_packet(now, &mut buffer) {
///         client.handle_packet(now, &mut Rules, &buffer[..len])?;
///     }
///     now += Duration::from_millis(10);
/// }
/// assert!(client.predicted().expect("it plays").x > 8.0);
/// assert_eq!(client.prediction().corrected, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client<G: Game> {
    config: SessionConfig,
    distance: fn(&G::Player, &G::Player) -> f32,
    clock: ClientClock,
    sender: InputSender<G::Input>,
    predictor: Predictor<G>,
    budget: Budget,
    smoothing: Smoothing<G::Player>,
    receiver: Receiver,
    playback: Playback,
    quality: Quality,
    player: Option<EntityId>,
    player_version: u8,
    advanced_at: Instant,
    /// The last snapshot that arrived, and when.
    heard: Option<(u16, Instant)>,
    /// The instant that was shown before time passed last: the picture that the next input reacts to.
    seen: Option<TickTime>,
    /// The mean time from that to the ticks of the inputs of the last packet, and the sum for those of the next with their number.
    picture_age: Option<Duration>,
    ages: (Duration, u64),
    /// Ticks of the last snapshots, in order.
    snapshots: VecDeque<Tick>,
    slipped: u16,
    slipped_in_all: u64,
}

impl<G: Game> Client<G>
where
    G::Player: State,
{
    /// A client that has heard nothing yet. `kind` is what players are; `distance` says how far apart two states look, in
    /// the unit of [`SmoothingConfig`](crate::smoothing::SmoothingConfig).
    pub fn new(
        config: SessionConfig,
        kinds: Kinds,
        kind: Kind<G::Player>,
        distance: fn(&G::Player, &G::Player) -> f32,
        now: Instant,
    ) -> Self {
        let mut receiver = Receiver::new(kinds.with_tick_rate(config.tick_rate()));
        receiver.set_game(0);
        let mut predictor = Predictor::new(Arc::clone(receiver.kinds()), kind, None);
        let patience = config.spawn_patience.as_secs_f64() * config.tick_rate();
        predictor.set_spawn_times(patience.ceil() as u32, config.spawn_fade);
        Self {
            distance,
            clock: ClientClock::new(config.clock),
            sender: InputSender::new().with_packet_ticks(config.packet_interval),
            budget: Budget::new(G::PREDICTED_MAX),
            predictor,
            smoothing: Smoothing::new(config.smoothing),
            receiver,
            playback: Playback::new(config.tick),
            quality: Quality::new(config.quality, now),
            player: None,
            player_version: 0,
            advanced_at: now,
            heard: None,
            seen: None,
            picture_age: None,
            ages: (Duration::ZERO, 0),
            snapshots: VecDeque::with_capacity(SNAPSHOTS_MAX),
            slipped: 0,
            slipped_in_all: 0,
            config,
        }
    }

    /// Says which game is loaded, if it is not number 0; see [`Receiver::set_game`].
    pub fn set_game(&mut self, game: u32) {
        self.receiver.set_game(game);
    }

    /// Handles a packet of the server.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        rules: &mut G,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let (header, snapshot) = ToClient::parse(bytes)?;
        let tick = Header::parse(&mut Reader::new(snapshot))?.tick;
        // First what may fail: a packet that is refused must not move clocks or say which entity is played.
        self.receiver.handle_packet(snapshot)?;
        self.note_snapshot(tick);
        if let Some((number, report)) = &header.report {
            self.handle_report(now, tick, *number, report);
        }
        if let Some((version, player)) = header.player
            // Packets may be late: only a newer version counts. It wraps around.
            && (version.wrapping_sub(self.player_version) as i8) > 0
        {
            self.player_version = version;
            if player != self.player {
                log!(debug, ?player, "another entity is ours");
                self.player = player;
                // The predictions were of another entity; prediction begins with the server's next state of this one.
                self.predictor.set_own(player);
            }
        }
        self.predictor.adopt(&self.receiver);
        self.reconcile(rules, tick);
        Ok(())
    }

    /// Advances to `now`, simulates the ticks that are due with the inputs that `input` gives for each, and writes the packet with them.
    /// Returns its length; `None` when there is nothing more to do now.
    pub fn poll_packet(
        &mut self,
        now: Instant,
        rules: &mut G,
        mut input: impl FnMut(Tick) -> G::Input,
        buffer: &mut [u8],
    ) -> Option<usize> {
        self.advance(now);
        while let Due::Tick(tick) = self.clock.poll()? {
            let input = input(tick);
            self.sender.push(tick, input.clone());
            self.note_age(tick);
            self.predictor.predict(rules, tick, input);
            // Both sides know the interval, and the ticks that end a packet by their number alone.
            if (tick.0 + 1).is_multiple_of(self.config.packet_interval) {
                break;
            }
        }
        if let (sum, count @ 1..) = std::mem::take(&mut self.ages) {
            self.picture_age = Some(sum / count);
        }
        let held = |(number, at): (u16, Instant)| (number, now.saturating_since(at));
        let header = FromClient::new(self.player_version, self.picture_age, self.heard.map(held));
        let mut len = header.emit(buffer).ok()?;
        len += self
            .receiver
            .emit_acknowledgement(buffer.get_mut(len..)?)
            .ok()?;
        let mut writer = BitWriter::new(buffer.get_mut(len..)?);
        let header = self.clock.header(now);
        self.sender.write(header, &mut writer).ok()?;
        // Only now: in its first packet an input travels whole, in those after it without what need not be repeated.
        self.sender.handle_sent(G::again);
        Some(len + writer.finish())
    }

    /// Returns the time at which [`poll_packet`](Self::poll_packet) has something next; `None` until the server has been heard.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.clock.poll_timeout()
    }

    /// Returns the next change of the world as the client knows it.
    pub fn poll_update(&mut self) -> Option<Update> {
        self.receiver.poll_update()
    }

    /// Returns the next event that the server emitted.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.receiver.poll_event()
    }

    /// Returns the next event that the client's own steps emitted, or news about an earlier one.
    pub fn poll_effect(&mut self) -> Option<Effect<G::Event>> {
        self.predictor.poll_effect()
    }

    /// The entity that the client plays.
    pub const fn player(&self) -> Option<EntityId> {
        self.player
    }

    /// Returns the client's own state after the last tick: the ghost, which the rules work with.
    pub fn predicted(&self) -> Option<&G::Player> {
        self.predictor.state()
    }

    /// Returns the tick after which [`predicted`](Self::predicted) is the state; `None` until prediction has begun.
    pub fn predicted_tick(&self) -> Option<Tick> {
        self.predictor.tick()
    }

    /// Returns the client's own state after a tick as it is predicted now, without smoothing; `None` if that tick is not simulated yet, or is older than what
    /// the server has confirmed.
    pub fn predicted_at(&self, tick: Tick) -> Option<&G::Player> {
        self.predictor.state_at(tick)
    }

    /// Returns another entity after a tick, as [`predicted_at`](Self::predicted_at) does for the own player; `None` also for one that is not predicted.
    pub fn predicted_other_at<S: State>(
        &self,
        kind: Kind<S>,
        entity: EntityId,
        tick: Tick,
    ) -> Option<S> {
        let is_predicted = self.predictor.predicts(entity);
        if !is_predicted || self.receiver.kind(entity) != Some(kind.id()) {
            return None;
        }
        self.predictor.other_at(entity, tick)
    }

    /// Returns the client's own player as it is to be drawn: between two ticks, and not jumping when the server corrects it.
    pub fn shown_player(&self) -> Option<G::Player> {
        let newest = self.predictor.state()?;
        let Some(time) = self.clock.play_time() else {
            return Some(newest.clone());
        };
        let before = self.predictor.state_at(time.tick.back(1));
        // A frame is drawn between the last two ticks; the newest state alone would make the player jump from tick to
        // tick.
        let after = self.predictor.state_at(time.tick).unwrap_or(newest);
        let ghost = before.map_or_else(
            || after.clone(),
            |before| between(before, after, self.blend(time), self.distance),
        );
        Some(self.smoothing.show(&ghost))
    }

    /// Returns the instant of the server's world that is being shown; a shot carries it, so that the server can judge by it.
    pub fn shown_time(&self) -> Option<TickTime> {
        self.playback.time()
    }

    /// Returns the claim that a shot fired now carries: the instant that is being shown, and between the states of which ticks. For states that are
    /// interpolated along lines the server then looks at exactly what was shown; where they follow curves,
    /// [`Claim::at`] with [`shown_time`](Self::shown_time) is closer. Take it when drawing, not when the input is asked for: what the
    /// player saw counts. It should not be older than the last frame, because the server knows how old pictures are.
    pub fn claim(&self) -> Option<Claim> {
        let at = self.shown_time()?;
        let next = self.snapshots.partition_point(|tick| *tick <= at.tick);
        let from = next
            .checked_sub(1)
            .and_then(|index| self.snapshots.get(index));
        let between = from.zip(self.snapshots.get(next));
        Some(between.map_or(Claim::at(at), |(from, to)| Claim::between(*from, *to, at)))
    }

    /// Returns the ticks of time that the server let go because it could not keep up: the match stood still for so long.
    pub const fn slipped(&self) -> u64 {
        self.slipped_in_all
    }

    /// Returns how far in the past others are shown.
    pub fn interpolation_delay(&self) -> Option<Duration> {
        self.playback.delay()
    }

    /// Returns the client's copy of the world.
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The clock.
    pub const fn clock(&self) -> &ClientClock {
        &self.clock
    }

    /// Returns the quality of the connection.
    pub const fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Returns the counts of right and wrong predictions.
    pub fn prediction(&self) -> PredictionCounters {
        self.predictor.counters()
    }

    /// Returns the entities that are predicted besides the own player. [`Remotes`](super::Remotes) shows them where they are now.
    pub fn predicted_others(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.predictor.others()
    }

    /// Limits the entities that are predicted besides the own player, below [`Game::PREDICTED_MAX`]: for machines that are too slow for all of them. Those that
    /// the rules rank last are interpolated.
    pub fn set_predicted_max(&mut self, count: usize) {
        self.predictor.set_limit(count);
    }

    /// Takes note of the time that [`handle_packet`](Self::handle_packet) and [`poll_packet`](Self::poll_packet) took, measured by the caller, so that a slow
    /// machine predicts fewer entities instead of falling behind: with three tenths of the time spent there, a quarter fewer.
    pub fn handle_cost(&mut self, now: Instant, spent: Duration) {
        if let Some(limit) = self.budget.handle_cost(now, spent) {
            log!(
                debug,
                limit,
                "the machine's speed allows so many predicted entities"
            );
            self.predictor.set_limit(limit);
        }
    }

    /// Returns the settings for [`Remotes`](super::Remotes).
    pub const fn interpolation(&self) -> InterpolationConfig {
        self.config.interpolation
    }

    /// Another entity that is predicted, at an instant between two ticks; `None` if it is not, or that is too long ago.
    pub(super) fn predicted_between<S: State>(
        &self,
        entity: EntityId,
        time: TickTime,
        distance: fn(&S, &S) -> f32,
    ) -> Option<S> {
        if !self.predictor.predicts(entity) {
            return None;
        }
        let newest = self.predictor.tick()?.min(time.tick);
        let after: S = self.predictor.other_at(entity, newest)?;
        let before: Option<S> = self.predictor.other_at(entity, time.tick.back(1));
        Some(match before {
            Some(before) => between(&before, &after, self.blend(time), distance),
            None => after,
        })
    }

    /// The corrections that are newer than the one with this number.
    pub(super) fn corrections_after(&self, number: u64) -> impl Iterator<Item = &Change> {
        let corrections = self.predictor.corrections().iter();
        corrections.filter(move |change| change.number > number)
    }

    /// The number of the last correction.
    pub(super) fn corrections_made(&self) -> u64 {
        let last = self.predictor.corrections().back();
        last.map_or(0, |change| change.number)
    }

    pub(super) const fn predictor(&self) -> &Predictor<G> {
        &self.predictor
    }

    /// The instant of the client's own game, and the seconds that a tick lasts.
    pub(super) fn play_instant(&self) -> (TickTime, f32) {
        let time = self.clock.play_time().unwrap_or_default();
        (time, self.tick_seconds())
    }

    fn blend(&self, time: TickTime) -> Blend {
        Blend {
            share: time.share(),
            seconds: self.tick_seconds(),
        }
    }

    pub(super) fn tick_seconds(&self) -> f32 {
        self.config.tick.as_secs_f64() as f32
    }

    /// Notes how old the picture is at a tick for which the player has been asked.
    fn note_age(&mut self, tick: Tick) {
        if let Some(seen) = self.seen {
            let ticks = (f64::from(tick.0) - seen.ticks()).max(0.0);
            self.ages.0 += Duration::from_secs_f64(ticks * self.config.tick.as_secs_f64());
            self.ages.1 += 1;
        }
    }

    fn advance(&mut self, now: Instant) {
        // Before time goes on: the player reacts to the picture that is on the screen, not to the next one.
        if now > self.advanced_at {
            self.seen = self.playback.time();
        }
        let seconds = now.saturating_since(self.advanced_at).as_secs_f64() as f32;
        self.advanced_at = self.advanced_at.max(now);
        self.clock.advance(now);
        self.playback.advance(now);
        self.smoothing.advance(seconds);
        self.predictor.advance(seconds);
        self.quality
            .update(now, self.clock.round_trip(), self.playback.loss());
    }

    fn handle_report(&mut self, now: Instant, tick: Tick, number: u16, report: &InputReport) {
        self.clock.handle_snapshot(now, tick, Some(report));
        // Before the snapshot, whose delay would otherwise be too long by the time that the server let go.
        self.playback.handle_slipped(report.slipped);
        self.playback.handle_snapshot(now, tick, number);
        self.sender.handle_report(report);
        // The counter wraps, and a late report says less than is known: then nothing is added.
        let slip = report.slipped.wrapping_sub(self.slipped) as i16;
        if slip > 0 {
            log!(
                debug,
                ticks = slip,
                "the server let time go: the clock jumps"
            );
            self.slipped = report.slipped;
            self.slipped_in_all += slip as u64;
        }
        self.heard = Some((number, now));
        // Only changes of the delay count, so its origin does not matter.
        let sent = self.config.tick * u64::from(tick.0);
        let delay = now.as_micros().wrapping_sub(sent.as_micros());
        self.quality
            .handle_packet(now, Some(Duration::from_micros(delay)));
    }

    /// Keeps the ticks of the last snapshots in order.
    fn note_snapshot(&mut self, tick: Tick) {
        let place = self.snapshots.partition_point(|other| *other < tick);
        if self.snapshots.get(place) == Some(&tick) {
            return;
        }
        self.snapshots.insert(place, tick);
        if self.snapshots.len() > SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
    }

    fn reconcile(&mut self, rules: &mut G, tick: Tick) {
        let reconciled = self.predictor.reconcile(rules, tick, &self.receiver);
        if let Reconciled::Corrected { before, .. } = reconciled
            && let Some(after) = self.predictor.state()
        {
            let distance = (self.distance)(&before, after);
            // Something else was wrong.
            if distance == 0.0 {
                return;
            }
            log!(trace, tick = tick.0, distance, "mispredicted");
            self.smoothing.correct(&before, after, self.distance);
        }
    }
}

/// Snapshots among which the two around the instant shown are looked for.
const SNAPSHOTS_MAX: usize = 32;
