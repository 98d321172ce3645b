//! The player's life with the master.
//!
//! One machine owns the whole way: to the master, into the queue, to the game server, and back. Whatever is lost (the master's
//! connection, the game server, both), it finds its way back without the game doing anything.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::messages::{FromMaster, Outcome, QueueState, Seat, ToMaster};
use crate::{AccountId, MatchId, Preferences};

/// The machine.
///
/// Call [`start`](Self::start) once, then any `handle_*` when it happens, then drain [`poll_action`](Self::poll_action) and
/// [`poll_event`](Self::poll_event), and call [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has come.
#[derive(Debug)]
pub struct PlayerLink {
    config: PlayerLinkConfig,
    link: Link,
    game: Option<Game>,
    /// What the player last asked for and has neither got nor taken back.
    wanted: Option<Preferences>,
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

impl PlayerLinkConfig {
    /// Time between keep-alives, a second by default. Each costs some 60 bytes, and every third some 60 back.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Silence after which the connection counts as lost, 10 seconds by default.
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Time between attempts to connect, 10 seconds by default.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.retry = retry;
        self
    }
}

/// What the driver is to do.
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

/// What the game may want to show.
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
    Queue(QueueState),
    /// Not in the queue any more.
    LeftQueue,
    /// A match is found, its server is being started.
    MatchFound(MatchId),
    /// In the match.
    Playing(MatchId),
    /// The connection to the game server is lost; the seat is asked for again.
    GameLost(MatchId),
    /// Back at the master.
    Back(MatchId, Option<Outcome>),
    /// Anything else that the master says: chat, friends, offers, refusals.
    Message(FromMaster),
}

/// Where a [`PlayerLink`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Not started, stopped, or told never to come back.
    Stopped,
    /// Without the master.
    Offline,
    /// With the master.
    Online,
}

#[derive(Debug)]
enum Link {
    Stopped,
    Waiting { until: Instant },
    Connecting { until: Instant },
    Greeting { until: Instant },
    Online { heard: Instant, next: Instant },
}

#[derive(Debug)]
struct Game {
    match_id: MatchId,
    connected: bool,
    /// When to ask for the seat again.
    ask_at: Option<Instant>,
}

impl PlayerLink {
    /// A life that has not begun; `seed` spreads the retries of many clients.
    pub fn new(config: PlayerLinkConfig, seed: u64) -> Self {
        Self {
            config,
            link: Link::Stopped,
            game: None,
            wanted: None,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Where it stands with the master.
    pub fn state(&self) -> LinkState {
        match self.link {
            Link::Stopped => LinkState::Stopped,
            Link::Online { .. } => LinkState::Online,
            _ => LinkState::Offline,
        }
    }

    /// The match whose server we are at or on the way to.
    pub fn game(&self) -> Option<MatchId> {
        self.game.as_ref().map(|game| game.match_id)
    }

    /// Whether a match was asked for and is neither found nor given up.
    pub fn wants_match(&self) -> bool {
        self.wanted.is_some()
    }

    /// Begins to connect.
    pub fn start(&mut self, now: Instant) {
        if matches!(self.link, Link::Stopped) {
            self.link = Link::Waiting { until: now };
        }
    }

    /// Leaves everything.
    pub fn stop(&mut self) {
        if !matches!(self.link, Link::Stopped | Link::Waiting { .. }) {
            self.actions.push_back(PlayerAction::Disconnect);
        }
        if self.game.take().is_some() {
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        self.link = Link::Stopped;
        self.wanted = None;
    }

    /// The player pressed *play*: enters the queue, changes what he asks for, or leaves if nothing changed. Without the master
    /// it is remembered and sent as soon as it answers.
    pub fn play(&mut self, preferences: Preferences) {
        let unchanged = self.wanted.as_ref() == Some(&preferences);
        self.wanted = (!unchanged).then(|| preferences.clone());
        self.send(ToMaster::Play { preferences });
    }

    /// Leaves the queue.
    pub fn leave_queue(&mut self) {
        self.wanted = None;
        self.send(ToMaster::LeaveQueue);
    }

    /// Leaves the match for good.
    pub fn leave_match(&mut self) {
        if let Some(game) = self.game.take() {
            self.actions.push_back(PlayerAction::LeaveGame);
            self.send(ToMaster::LeaveMatch);
            self.events
                .push_back(PlayerEvent::Back(game.match_id, None));
        }
    }

    /// The WebSocket is open.
    pub fn handle_connected(&mut self, now: Instant) {
        if matches!(self.link, Link::Connecting { .. }) {
            let until = now + self.config.silence;
            self.link = Link::Greeting { until };
        }
    }

    /// The WebSocket closed or could not be opened.
    pub fn handle_lost(&mut self, now: Instant) {
        let wait = match self.link {
            Link::Stopped | Link::Waiting { .. } => return,
            // The first attempt after a loss is soon, but not everybody's at the same time.
            Link::Online { .. } => Duration::ZERO,
            Link::Connecting { .. } | Link::Greeting { .. } => self.config.retry,
        };
        let until = self.wait(now, wait);
        self.events.push_back(PlayerEvent::Offline(until));
    }

    /// The master said this.
    pub fn handle_message(&mut self, now: Instant, message: FromMaster) {
        if let Link::Online { heard, .. } = &mut self.link {
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
                    self.link = Link::Stopped;
                    let closing = FromMaster::Closing { come_back };
                    self.events.push_back(PlayerEvent::Message(closing));
                }
            }
            FromMaster::Queue(state) => {
                self.wanted = Some(state.preferences.clone());
                self.events.push_back(PlayerEvent::Queue(state));
            }
            FromMaster::LeftQueue => {
                self.wanted = None;
                self.events.push_back(PlayerEvent::LeftQueue);
            }
            FromMaster::MatchFound { match_id } => {
                self.wanted = None;
                self.events.push_back(PlayerEvent::MatchFound(match_id));
            }
            FromMaster::Seat(seat) => self.take_seat(seat),
            FromMaster::MatchOver { match_id, outcome } => self.match_over(match_id, outcome),
            other => self.events.push_back(PlayerEvent::Message(other)),
        }
    }

    /// The game server let us in.
    pub fn handle_game_connected(&mut self) {
        if let Some(game) = &mut self.game {
            game.connected = true;
            game.ask_at = None;
            self.events.push_back(PlayerEvent::Playing(game.match_id));
        }
    }

    /// The connection to the game server failed, was closed or fell silent. The master knows whether the match goes on.
    pub fn handle_game_lost(&mut self, now: Instant) {
        if let Some(game) = &mut self.game {
            game.connected = false;
            game.ask_at = Some(now);
            self.events.push_back(PlayerEvent::GameLost(game.match_id));
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.link {
            Link::Waiting { until } if until <= now => {
                let until = now + self.config.silence;
                self.link = Link::Connecting { until };
                self.actions.push_back(PlayerAction::Connect);
            }
            Link::Connecting { until } | Link::Greeting { until } if until <= now => {
                self.actions.push_back(PlayerAction::Disconnect);
                self.handle_lost(now);
            }
            Link::Online { heard, .. } if now - heard >= self.config.silence => {
                self.actions.push_back(PlayerAction::Disconnect);
                self.handle_lost(now);
            }
            Link::Online { heard, next } if next <= now => {
                let next = now + self.config.keep_alive;
                self.link = Link::Online { heard, next };
                self.actions
                    .push_back(PlayerAction::Send(ToMaster::KeepAlive));
            }
            _ => {}
        }
        self.ask_for_seat(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let online = matches!(self.link, Link::Online { .. });
        let ask = self.game.as_ref().and_then(|game| game.ask_at);
        let link = match self.link {
            Link::Stopped => None,
            Link::Waiting { until } | Link::Connecting { until } | Link::Greeting { until } => {
                Some(until)
            }
            Link::Online { heard, next } => Some(next.min(heard + self.config.silence)),
        };
        [link, ask.filter(|_| online)].into_iter().flatten().min()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<PlayerAction> {
        self.actions.pop_front()
    }

    /// The next thing that happened.
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
        let next = now + self.config.keep_alive;
        self.link = Link::Online { heard: now, next };
        self.events.push_back(PlayerEvent::Online(account));
        match (ticket, seat) {
            (_, Some(seat)) => {
                self.wanted = None;
                if !self.connected_to(seat.match_id) {
                    self.take_seat(seat);
                }
            }
            (Some(state), None) => {
                self.end_lost_game();
                self.wanted = Some(state.preferences.clone());
                self.events.push_back(PlayerEvent::Queue(state));
            }
            (None, None) => {
                self.end_lost_game();
                // The ticket is gone and the player still waits: queue again, whatever happened to it.
                if let Some(preferences) = self.wanted.clone() {
                    self.send(ToMaster::Queue { preferences });
                }
            }
        }
    }

    /// The master knows of no seat: what was lost is over, but a game that is still connected goes on.
    fn end_lost_game(&mut self) {
        if let Some(game) = self.game.take_if(|game| !game.connected) {
            self.actions.push_back(PlayerAction::LeaveGame);
            self.events
                .push_back(PlayerEvent::Back(game.match_id, None));
        }
    }

    fn take_seat(&mut self, seat: Seat) {
        if self.connected_to(seat.match_id) {
            return;
        }
        if self.game.is_some() {
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        self.wanted = None;
        self.game = Some(Game {
            match_id: seat.match_id,
            connected: false,
            ask_at: None,
        });
        self.actions.push_back(PlayerAction::JoinGame(seat));
    }

    fn match_over(&mut self, match_id: MatchId, outcome: Outcome) {
        if self
            .game
            .take_if(|game| game.match_id == match_id)
            .is_some()
        {
            self.actions.push_back(PlayerAction::LeaveGame);
        }
        self.events
            .push_back(PlayerEvent::Back(match_id, Some(outcome)));
    }

    fn ask_for_seat(&mut self, now: Instant) {
        let online = matches!(self.link, Link::Online { .. });
        let Some(game) = &mut self.game else { return };
        if online && game.ask_at.is_some_and(|at| at <= now) {
            game.ask_at = Some(now + REJOIN_EVERY);
            self.actions.push_back(PlayerAction::Send(ToMaster::Rejoin));
        }
    }

    fn connected_to(&self, match_id: MatchId) -> bool {
        self.game
            .as_ref()
            .is_some_and(|game| game.connected && game.match_id == match_id)
    }

    fn send(&mut self, message: ToMaster) {
        if matches!(self.link, Link::Online { .. }) {
            self.actions.push_back(PlayerAction::Send(message));
        }
    }

    fn wait(&mut self, now: Instant, wait: Duration) -> Instant {
        let spread = Duration::from_micros(self.rng.u64(0..=SPREAD.as_micros()));
        let until = now + wait + spread;
        self.link = Link::Waiting { until };
        until
    }
}

/// Retries are spread over this much, so that thousands of clients do not come back in the same instant.
const SPREAD: Duration = Duration::from_secs(1);
/// A lost seat is asked for this often.
const REJOIN_EVERY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TicketId;

    fn seconds(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn online() -> PlayerLink {
        let mut life = PlayerLink::new(PlayerLinkConfig::default(), 1);
        life.start(Instant::ZERO);
        life.handle_timeout(Instant::ZERO);
        assert_eq!(life.poll_action(), Some(PlayerAction::Connect));
        life.handle_connected(Instant::ZERO);
        life.handle_message(Instant::ZERO, welcome(None, None));
        assert_eq!(life.poll_event(), Some(PlayerEvent::Online(AccountId(1))));
        life
    }

    fn welcome(ticket: Option<QueueState>, seat: Option<Seat>) -> FromMaster {
        FromMaster::Welcome {
            account: AccountId(1),
            ticket,
            seat,
        }
    }

    fn seat(match_id: u64) -> Seat {
        Seat {
            match_id: MatchId(match_id),
            address: "203.0.113.5:8888".to_owned(),
            token: "token".to_owned(),
            preferences: Preferences::default(),
        }
    }

    fn actions(life: &mut PlayerLink) -> Vec<PlayerAction> {
        std::iter::from_fn(|| life.poll_action()).collect()
    }

    /// Lets time pass until `end` and returns when the machine tried to connect.
    fn attempts(life: &mut PlayerLink, end: Instant) -> Vec<Instant> {
        let mut attempts = Vec::new();
        while let Some(at) = life.poll_timeout().filter(|at| *at <= end) {
            life.handle_timeout(at);
            for action in actions(life) {
                if action == PlayerAction::Connect {
                    attempts.push(at);
                    life.handle_lost(at);
                }
            }
        }
        attempts
    }

    #[test]
    fn attempts_come_every_ten_seconds_spread_over_one() {
        let mut life = PlayerLink::new(PlayerLinkConfig::default(), 3);
        life.start(Instant::ZERO);
        let attempts = attempts(&mut life, seconds(100));
        assert!((9..=11).contains(&attempts.len()), "{attempts:?}");
        for pair in attempts.windows(2) {
            let between = pair[1] - pair[0];
            assert!(between >= Duration::from_secs(10) && between <= Duration::from_secs(11));
        }
    }

    #[test]
    fn keep_alives_go_each_second_and_ten_seconds_of_silence_are_a_loss() {
        let mut life = online();
        let mut sent = 0;
        while life.state() == LinkState::Online {
            let at = life.poll_timeout().expect("online");
            life.handle_timeout(at);
            let done = actions(&mut life);
            sent += done
                .iter()
                .filter(|a| matches!(a, PlayerAction::Send(ToMaster::KeepAlive)))
                .count();
            if life.state() != LinkState::Online {
                assert_eq!(at, seconds(10));
                assert_eq!(done, [PlayerAction::Disconnect]);
            }
        }
        assert_eq!(sent, 9);
        // Back soon.
        assert!(life.poll_timeout().is_some_and(|at| at <= seconds(11)));
    }

    #[test]
    fn a_full_master_is_tried_again_when_it_said() {
        let mut life = PlayerLink::new(PlayerLinkConfig::default(), 5);
        life.start(Instant::ZERO);
        life.handle_timeout(Instant::ZERO);
        life.handle_connected(Instant::ZERO);
        life.handle_message(Instant::ZERO, FromMaster::Full { retry_after_s: 10 });
        assert_eq!(
            actions(&mut life),
            [PlayerAction::Connect, PlayerAction::Disconnect]
        );
        let at = life.poll_timeout().expect("a retry");
        assert!(at >= seconds(10) && at <= seconds(11));
    }

    #[test]
    fn a_player_who_still_waits_is_queued_again_after_a_loss() {
        let mut life = online();
        let preferences = Preferences::default().players(2);
        life.play(preferences.clone());
        assert_eq!(
            actions(&mut life),
            [PlayerAction::Send(ToMaster::Play {
                preferences: preferences.clone()
            })]
        );
        life.handle_lost(seconds(1));
        life.handle_timeout(seconds(3));
        life.handle_connected(seconds(3));
        life.handle_message(seconds(3), welcome(None, None));
        assert_eq!(
            actions(&mut life),
            [
                PlayerAction::Connect,
                PlayerAction::Send(ToMaster::Queue {
                    preferences: preferences.clone()
                })
            ]
        );
        // With the ticket still there nothing is sent.
        life.handle_lost(seconds(4));
        life.handle_timeout(seconds(6));
        life.handle_connected(seconds(6));
        let ticket = QueueState {
            ticket: TicketId(1),
            waited_ms: 5_000,
            preferences,
        };
        life.handle_message(seconds(6), welcome(Some(ticket), None));
        assert_eq!(actions(&mut life), [PlayerAction::Connect]);
    }

    #[test]
    fn play_again_unchanged_leaves_and_is_not_sent_again_later() {
        let mut life = online();
        life.play(Preferences::default());
        life.play(Preferences::default());
        actions(&mut life);
        life.handle_lost(seconds(1));
        life.handle_timeout(seconds(3));
        life.handle_connected(seconds(3));
        life.handle_message(seconds(3), welcome(None, None));
        assert_eq!(actions(&mut life), [PlayerAction::Connect]);
    }

    #[test]
    fn it_goes_to_the_match_and_comes_back() {
        let mut life = online();
        life.handle_message(seconds(1), FromMaster::Seat(seat(4)));
        assert_eq!(actions(&mut life), [PlayerAction::JoinGame(seat(4))]);
        life.handle_game_connected();
        assert_eq!(life.game(), Some(MatchId(4)));
        life.handle_message(
            seconds(2),
            FromMaster::MatchOver {
                match_id: MatchId(4),
                outcome: Outcome::Finished,
            },
        );
        assert_eq!(actions(&mut life), [PlayerAction::LeaveGame]);
        assert_eq!(life.game(), None);
    }

    #[test]
    fn a_lost_game_asks_for_its_seat_until_the_master_answers() {
        let mut life = online();
        life.handle_message(seconds(1), FromMaster::Seat(seat(4)));
        life.handle_game_connected();
        life.handle_game_lost(seconds(2));
        actions(&mut life);
        life.handle_timeout(seconds(2));
        assert!(actions(&mut life).contains(&PlayerAction::Send(ToMaster::Rejoin)));
        life.handle_timeout(seconds(4));
        assert!(actions(&mut life).contains(&PlayerAction::Send(ToMaster::Rejoin)));
        life.handle_message(seconds(4), FromMaster::Seat(seat(4)));
        assert!(actions(&mut life).contains(&PlayerAction::JoinGame(seat(4))));
        // And when both are lost, the welcome decides.
        life.handle_game_lost(seconds(5));
        life.handle_lost(seconds(5));
        life.handle_timeout(seconds(7));
        life.handle_connected(seconds(7));
        life.handle_message(seconds(7), welcome(None, None));
        assert_eq!(life.game(), None);
    }

    #[test]
    fn a_game_that_goes_on_survives_a_master_that_forgot_it() {
        let mut life = online();
        life.handle_message(seconds(1), FromMaster::Seat(seat(4)));
        life.handle_game_connected();
        life.handle_lost(seconds(2));
        life.handle_timeout(seconds(4));
        life.handle_connected(seconds(4));
        actions(&mut life);
        life.handle_message(seconds(4), welcome(None, None));
        assert_eq!(actions(&mut life), []);
        assert_eq!(life.game(), Some(MatchId(4)));
    }
}
