//! A player's link to the master.
//!
//! One machine owns the whole way: to the master, into the queue, to the game server, and back. Whatever is lost (the master's
//! connection, the game server, both), it finds its way back without the game doing anything.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::backoff::Backoff;
use crate::messages::{FromMaster, Outcome, QueueState, Seat, ToMaster};
use crate::{AccountId, MatchId, Preferences};

/// The player's side of the connection to a master, without IO.
///
/// Call [`start`](Self::start) once, then any `handle_*` when it happens, then drain [`poll_action`](Self::poll_action) and
/// [`poll_event`](Self::poll_event), and call [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has come.
#[derive(Debug)]
pub struct PlayerLink {
    config: PlayerLinkConfig,
    connection: Connection,
    game: Option<Game>,
    queue: Queue,
    /// Time at which to repeat a request that the master was too busy for, and how often it was.
    queue_retry: Option<Instant>,
    queue_refusals: Backoff,
    /// A match that was called off, until the master has said whether the player is back in the queue.
    cancelled: Option<Cancelled>,
    actions: VecDeque<PlayerAction>,
    events: VecDeque<PlayerEvent>,
    rng: fastrand::Rng,
}

/// Times of a [`PlayerLink`].
#[derive(Clone, Debug)]
pub struct PlayerLinkConfig {
    keep_alive: Duration,
    silence: Duration,
    retry: Duration,
}

impl Default for PlayerLinkConfig {
    fn default() -> Self {
        Self {
            keep_alive: Duration::from_secs(1),
            silence: Duration::from_secs(10),
            retry: Duration::from_secs(10),
        }
    }
}

muse_wire::setters! { PlayerLinkConfig:
    /// Sets the time between keep-alives, a second by default. Each costs some 60 bytes, and every third some 60 back.
    keep_alive: Duration,

    /// Sets the silence after which the connection counts as lost, 10 seconds by default.
    silence: Duration,

    /// Sets the time between attempts to reach the master, 10 seconds by default.
    retry: Duration,
}

/// Something that the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlayerAction {
    /// Sign in if need be and open the WebSocket; then [`PlayerLink::handle_connected`] or [`PlayerLink::handle_lost`].
    Connect,
    /// Close the WebSocket.
    Disconnect,
    /// Send this.
    Send(ToMaster),
    /// Connect to the game server; then [`PlayerLink::handle_game_connected`] or [`PlayerLink::handle_game_lost`].
    JoinGame(Seat),
    /// Close the connection to the game server.
    LeaveGame,
}

/// Something that the game may want to show.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlayerEvent {
    /// The master knows us.
    Online(AccountId),
    /// The master is out of reach; the next attempt is at that time.
    Offline(Instant),
    /// The master is full; the next attempt is at that time.
    Full(Instant),
    /// In the queue.
    Queued(QueueState),
    /// Not in the queue any more.
    LeftQueue,
    /// A match is found, its server is being started.
    MatchFound(MatchId),
    /// In the match.
    Playing(MatchId),
    /// The game server refused the seat, did not answer, or was lost. The seat is asked for again at that time.
    GameLost {
        /// The match.
        match_id: MatchId,
        /// The cause, in words.
        reason: String,
        /// The time of the next attempt.
        retry_at: Instant,
    },
    /// The match was called off before it began.
    MatchCancelled {
        /// The match.
        match_id: MatchId,
        /// True if the player is back in the queue, false if not: the master has confirmed it.
        waiting: bool,
    },
    /// The match is over and the player back at the master; the outcome is unknown if the master has forgotten the match.
    MatchOver(MatchId, Option<Outcome>),
    /// The master refused a request.
    Refused {
        /// A short name of the reason, the same as in the HTTP interface.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The master closed the connection for good: the account connected from somewhere else. Nothing is retried.
    Stopped,
    /// Anything else that the master says: chat, friends, offers, announcements.
    Message(FromMaster),
}

/// The connection of a [`PlayerLink`] to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Not started, stopped, or told never to come back.
    Stopped,
    /// Without the master.
    Offline,
    /// With the master.
    Online,
}

/// A player's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStatus {
    /// Not in the queue.
    Out,
    /// Asked for a match; the master has not confirmed it yet.
    Requested,
    /// In the queue.
    Waiting,
    /// Asked to leave; the master has not confirmed it yet.
    Leaving,
}

#[derive(Debug)]
enum Connection {
    Stopped,
    Waiting { until: Instant },
    Connecting { until: Instant },
    Greeting { until: Instant },
    Online { heard: Instant, next: Instant },
}

#[derive(Debug)]
enum Queue {
    Out,
    Requested(Preferences),
    Waiting(Preferences),
    Leaving,
}

#[derive(Debug)]
struct Game {
    match_id: MatchId,
    /// Since when the game server has us.
    connected: Option<Instant>,
    /// Attempts in a row that led to nothing.
    failures: Backoff,
    /// Time at which to ask for the seat again.
    ask_at: Option<Instant>,
}

#[derive(Debug)]
struct Cancelled {
    match_id: MatchId,
    /// Time at which to ask the master again.
    ask_at: Instant,
}

impl PlayerLink {
    /// Creates a link that does nothing before [`start`](Self::start); `seed` spreads the retries of many clients.
    pub fn new(config: PlayerLinkConfig, seed: u64) -> Self {
        Self {
            config,
            connection: Connection::Stopped,
            game: None,
            queue: Queue::Out,
            queue_retry: None,
            queue_refusals: Backoff::default(),
            cancelled: None,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns the state of the connection to the master.
    pub fn state(&self) -> LinkState {
        match self.connection {
            Connection::Stopped => LinkState::Stopped,
            Connection::Online { .. } => LinkState::Online,
            _ => LinkState::Offline,
        }
    }

    /// Returns the match whose server we are at or on the way to.
    pub fn game(&self) -> Option<MatchId> {
        self.game.as_ref().map(|game| game.match_id)
    }

    /// Returns the place in the queue, as far as the master has confirmed it.
    pub fn queue_status(&self) -> QueueStatus {
        match self.queue {
            Queue::Out => QueueStatus::Out,
            Queue::Requested(_) => QueueStatus::Requested,
            Queue::Waiting(_) => QueueStatus::Waiting,
            Queue::Leaving => QueueStatus::Leaving,
        }
    }

    /// Returns true if a match was asked for and is neither found nor given up.
    pub fn wants_match(&self) -> bool {
        matches!(self.queue, Queue::Requested(_) | Queue::Waiting(_))
    }

    /// Starts to connect.
    pub fn start(&mut self, now: Instant) {
        if matches!(self.connection, Connection::Stopped) {
            self.connection = Connection::Waiting { until: now };
        }
    }

    /// Leaves everything.
    pub fn stop(&mut self) {
        if !matches!(
            self.connection,
            Connection::Stopped | Connection::Waiting { .. }
        ) {
            self.actions.push_back(PlayerAction::Disconnect);
        }
        if self.game.take().is_some() {
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        self.connection = Connection::Stopped;
        self.queue = Queue::Out;
        self.cancelled = None;
    }

    /// Enters the queue, or changes what is asked for and keeps the place. Without the master it is remembered and sent as soon as the
    /// master answers. [`PlayerEvent::Queued`] confirms it, [`PlayerEvent::Refused`] ends it.
    pub fn queue(&mut self, preferences: Preferences) {
        self.queue = Queue::Requested(preferences.clone());
        self.queue_retry = None;
        self.queue_refusals = Backoff::default();
        self.send(ToMaster::Queue { preferences });
    }

    /// Leaves the queue; [`PlayerEvent::LeftQueue`] confirms it. A match that was found at the same moment still comes.
    pub fn leave_queue(&mut self) {
        if self.wants_match() {
            self.queue = Queue::Leaving;
        }
        self.queue_retry = None;
        self.send(ToMaster::LeaveQueue);
    }

    /// Leaves the match for good.
    pub fn leave_match(&mut self) {
        if let Some(game) = self.game.take() {
            self.actions.push_back(PlayerAction::LeaveGame);
            self.send(ToMaster::LeaveMatch);
            self.events
                .push_back(PlayerEvent::MatchOver(game.match_id, None));
        }
    }

    /// Handles an open WebSocket.
    pub fn handle_connected(&mut self, now: Instant) {
        if matches!(self.connection, Connection::Connecting { .. }) {
            let until = now + self.config.silence;
            self.connection = Connection::Greeting { until };
        }
    }

    /// Handles a WebSocket that closed or could not be opened.
    pub fn handle_lost(&mut self, now: Instant) {
        let wait = match self.connection {
            Connection::Stopped | Connection::Waiting { .. } => return,
            // The first attempt after a loss is soon, but not everybody's at the same time.
            Connection::Online { .. } => Duration::ZERO,
            Connection::Connecting { .. } | Connection::Greeting { .. } => self.config.retry,
        };
        let until = self.wait(now, wait);
        self.events.push_back(PlayerEvent::Offline(until));
    }

    /// Handles a message of the master.
    pub fn handle_message(&mut self, now: Instant, message: FromMaster) {
        if let Connection::Online { heard, .. } = &mut self.connection {
            *heard = now;
        }
        match message {
            FromMaster::Welcome {
                account,
                ticket,
                seat,
            } => self.welcome(now, account, ticket, seat),
            FromMaster::KeepAlive => {}
            FromMaster::Full { retry_after_s } => {
                let retry = Duration::from_secs(u64::from(retry_after_s));
                self.actions.push_back(PlayerAction::Disconnect);
                let until = self.wait(now, retry);
                self.events.push_back(PlayerEvent::Full(until));
            }
            FromMaster::Closing { come_back } => {
                self.actions.push_back(PlayerAction::Disconnect);
                if come_back {
                    let until = self.wait(now, Duration::ZERO);
                    self.events.push_back(PlayerEvent::Offline(until));
                } else {
                    self.connection = Connection::Stopped;
                    self.events.push_back(PlayerEvent::Stopped);
                }
            }
            FromMaster::Queue(state) => self.queued(state),
            // A master that is not sure whether it was heard says it again.
            FromMaster::LeftQueue if matches!(self.queue, Queue::Out) => {}
            FromMaster::LeftQueue => {
                self.queue = Queue::Out;
                self.events.push_back(PlayerEvent::LeftQueue);
            }
            FromMaster::MatchFound { match_id } => {
                self.settle_cancelled(true);
                self.queue = Queue::Out;
                self.events.push_back(PlayerEvent::MatchFound(match_id));
            }
            FromMaster::Seat(seat) => self.take_seat(seat),
            FromMaster::MatchOver { match_id, outcome } => self.match_over(now, match_id, outcome),
            FromMaster::Refused { code, message } => self.refused(now, code, message),
            other => self.events.push_back(PlayerEvent::Message(other)),
        }
    }

    /// Handles a game server that let us in.
    pub fn handle_game_connected(&mut self, now: Instant) {
        if let Some(game) = &mut self.game {
            game.connected = Some(now);
            game.ask_at = None;
            self.events.push_back(PlayerEvent::Playing(game.match_id));
        }
    }

    /// Handles a game server that refused the seat, did not answer, closed the connection or fell silent. The master knows whether the match
    /// goes on, and is asked for a fresh seat: at once if the connection had lasted, and less and less often if no attempt succeeds.
    pub fn handle_game_lost(&mut self, now: Instant, reason: &str) {
        let Some(game) = &mut self.game else {
            return;
        };
        let since = game.connected.take();
        if since.is_some_and(|since| now.saturating_since(since) >= SETTLED) {
            game.failures = Backoff::default();
            game.ask_at = Some(now);
        } else {
            let wait = game
                .failures
                .next(GAME_RETRY_FIRST, GAME_RETRY_MAX, &mut self.rng);
            game.ask_at = Some(now + wait);
        }
        self.events.push_back(PlayerEvent::GameLost {
            match_id: game.match_id,
            reason: reason.to_owned(),
            retry_at: game.ask_at.unwrap_or(now),
        });
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.connection {
            Connection::Waiting { until } if until <= now => {
                let until = now + self.config.silence;
                self.connection = Connection::Connecting { until };
                self.actions.push_back(PlayerAction::Connect);
            }
            Connection::Connecting { until } | Connection::Greeting { until } if until <= now => {
                self.actions.push_back(PlayerAction::Disconnect);
                self.handle_lost(now);
            }
            Connection::Online { heard, .. } if now - heard >= self.config.silence => {
                self.actions.push_back(PlayerAction::Disconnect);
                self.handle_lost(now);
            }
            Connection::Online { heard, next } if next <= now => {
                let next = now + self.config.keep_alive;
                self.connection = Connection::Online { heard, next };
                self.actions
                    .push_back(PlayerAction::Send(ToMaster::KeepAlive));
            }
            _ => {}
        }
        if self.state() == LinkState::Online {
            self.ask_again(now);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (next, heard) = match self.connection {
            Connection::Stopped => return None,
            Connection::Waiting { until }
            | Connection::Connecting { until }
            | Connection::Greeting { until } => return Some(until),
            Connection::Online { heard, next } => (next, heard),
        };
        let seat = self.game.as_ref().and_then(|game| game.ask_at);
        let cancelled = self.cancelled.as_ref().map(|cancelled| cancelled.ask_at);
        let silent = Some(heard + self.config.silence);
        [Some(next), silent, seat, cancelled, self.queue_retry]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the next thing to do.
    pub fn poll_action(&mut self) -> Option<PlayerAction> {
        self.actions.pop_front()
    }

    /// Returns the next thing that happened.
    pub fn poll_event(&mut self) -> Option<PlayerEvent> {
        self.events.pop_front()
    }

    fn welcome(
        &mut self,
        now: Instant,
        account: AccountId,
        ticket: Option<QueueState>,
        seat: Option<Seat>,
    ) {
        // It is also the answer to a question about the seat, on a connection that is there already.
        let is_new = self.state() != LinkState::Online;
        if is_new {
            let next = now + self.config.keep_alive;
            self.connection = Connection::Online { heard: now, next };
            self.events.push_back(PlayerEvent::Online(account));
        }
        match (ticket, seat) {
            (_, Some(seat)) => self.take_seat(seat),
            (Some(state), None) => {
                self.end_lost_game();
                if is_new && matches!(self.queue, Queue::Leaving) {
                    self.send(ToMaster::LeaveQueue);
                } else {
                    self.queued(state);
                }
            }
            (None, None) => {
                self.end_lost_game();
                match &self.queue {
                    // The ticket is gone and the player still waits: queue again, whatever happened to it.
                    Queue::Requested(preferences) | Queue::Waiting(preferences) if is_new => {
                        let preferences = preferences.clone();
                        self.queue(preferences);
                    }
                    // A request that is under way is answered by itself.
                    Queue::Requested(_) => {}
                    Queue::Leaving => {
                        self.queue = Queue::Out;
                        self.events.push_back(PlayerEvent::LeftQueue);
                    }
                    Queue::Waiting(_) | Queue::Out => self.queue = Queue::Out,
                }
                self.settle_cancelled(self.wants_match());
            }
        }
    }

    fn queued(&mut self, state: QueueState) {
        self.settle_cancelled(true);
        // Messages that were on their way when the player left are ignored.
        if !matches!(self.queue, Queue::Leaving) {
            self.queue = Queue::Waiting(state.preferences.clone());
            self.queue_retry = None;
            self.events.push_back(PlayerEvent::Queued(state));
        }
    }

    /// A request was refused. One that the master has no time for is repeated; any other ends the wish.
    fn refused(&mut self, now: Instant, code: String, message: String) {
        if let Queue::Requested(_) = self.queue {
            if TRANSIENT.contains(&code.as_str()) {
                let wait =
                    self.queue_refusals
                        .next(GAME_RETRY_FIRST, GAME_RETRY_MAX, &mut self.rng);
                self.queue_retry = Some(now + wait);
            } else {
                self.queue = Queue::Out;
            }
        }
        self.events
            .push_back(PlayerEvent::Refused { code, message });
    }

    /// The master knows of no seat: what was lost is over, but a game that is still connected goes on.
    fn end_lost_game(&mut self) {
        if let Some(game) = self.game.take_if(|game| game.connected.is_none()) {
            self.actions.push_back(PlayerAction::LeaveGame);
            self.events
                .push_back(PlayerEvent::MatchOver(game.match_id, None));
        }
    }

    fn take_seat(&mut self, seat: Seat) {
        self.settle_cancelled(true);
        self.queue = Queue::Out;
        let mut failures = Backoff::default();
        if let Some(game) = &self.game {
            let is_same = game.match_id == seat.match_id;
            if is_same && game.connected.is_some() {
                return;
            }
            if is_same {
                failures = game.failures;
            }
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        self.game = Some(Game {
            match_id: seat.match_id,
            connected: None,
            failures,
            ask_at: None,
        });
        self.actions.push_back(PlayerAction::JoinGame(seat));
    }

    fn match_over(&mut self, now: Instant, match_id: MatchId, outcome: Outcome) {
        let game = self.game.take_if(|game| game.match_id == match_id);
        if game.is_some() {
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        if outcome == Outcome::Cancelled {
            // Players who were there are back in the queue, and nobody else: only the master knows who they are.
            let ask_at = now + ASK_EVERY;
            self.cancelled = Some(Cancelled { match_id, ask_at });
            self.send(ToMaster::Rejoin);
        } else {
            self.events
                .push_back(PlayerEvent::MatchOver(match_id, Some(outcome)));
        }
    }

    fn settle_cancelled(&mut self, waiting: bool) {
        if let Some(Cancelled { match_id, .. }) = self.cancelled.take() {
            self.events
                .push_back(PlayerEvent::MatchCancelled { match_id, waiting });
        }
    }

    /// Repeats what the master has not answered.
    fn ask_again(&mut self, now: Instant) {
        let mut asks = false;
        if let Some(game) = &mut self.game
            && game.ask_at.is_some_and(|at| at <= now)
        {
            game.ask_at = Some(now + ASK_EVERY);
            asks = true;
        }
        if let Some(cancelled) = &mut self.cancelled
            && cancelled.ask_at <= now
        {
            cancelled.ask_at = now + ASK_EVERY;
            asks = true;
        }
        if asks {
            self.send(ToMaster::Rejoin);
        }
        if self.queue_retry.is_some_and(|at| at <= now) {
            self.queue_retry = None;
            if let Queue::Requested(preferences) = &self.queue {
                let preferences = preferences.clone();
                self.send(ToMaster::Queue { preferences });
            }
        }
    }

    fn send(&mut self, message: ToMaster) {
        if self.state() == LinkState::Online {
            self.actions.push_back(PlayerAction::Send(message));
        }
    }

    fn wait(&mut self, now: Instant, wait: Duration) -> Instant {
        let spread = Duration::from_micros(self.rng.u64(0..=SPREAD.as_micros()));
        let until = now + wait + spread;
        self.connection = Connection::Waiting { until };
        until
    }
}

/// Retries are spread over this much, so that thousands of clients do not come back in the same instant.
const SPREAD: Duration = Duration::from_secs(1);
/// A question about a seat or a cancelled match is repeated this often until the master answers.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// A game server that held a connection for this long is asked again at once.
const SETTLED: Duration = Duration::from_secs(10);
/// Wait after the first failed attempt to join a game server.
const GAME_RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest wait between attempts to join a game server.
const GAME_RETRY_MAX: Duration = Duration::from_secs(30);
/// Refusals that say nothing about the request itself.
const TRANSIENT: [&str; 3] = ["busy", "too_many_requests", "unavailable"];

#[cfg(test)]
mod tests;
