//! A game server's link to the master.
//!
//! It registers, waits for a match, says each second how the match goes, and repeats the result until the master has stored or refused it. If
//! the master is away, the game goes on and everything is told again when it is back.

use std::collections::{BTreeMap, VecDeque};

use muse_wire::{Duration, Instant};

use serde_json::Value;

use crate::messages::{
    Assignment, Claim, FromServer, MatchResult, Phase, PlayerProfile, Report, ServerMessage,
    ServerRefusal, ToServer,
};
use crate::{AccountId, MatchId};

/// The game server's side of the connection to a master, without IO. Call [`start`](Self::start), then `handle_*` as things happen, and drain [`poll_action`](Self::poll_action) and
/// [`poll_event`](Self::poll_event).
///
/// ```
/// use muse_master_client::{ServerAction, ServerLink};
/// use muse_wire::Instant;
/// let mut link = ServerLink::new("203.0.113.5:8888", "00ff");
/// link.start(Instant::ZERO);
/// link.handle_timeout(Instant::ZERO);
/// assert_eq!(link.poll_action(), Some(ServerAction::Connect));
/// ```
#[derive(Debug)]
pub struct ServerLink {
    address: String,
    public_key: String,
    link: Link,
    /// The match that was assigned, and the proof of it.
    claim: Option<Claim>,
    report: Report,
    result: Option<MatchResult>,
    /// The name of the progress, and the profiles that have been asked for.
    game: String,
    asked: Vec<AccountId>,
    /// Progress that the master has not kept yet.
    progress: BTreeMap<AccountId, (u32, Value)>,
    number: u32,
    registered: bool,
    /// Time at which the master was last heard, or the wait for it began.
    heard: Instant,
    /// Time of the last attempt to connect.
    attempted: Instant,
    actions: VecDeque<ServerAction>,
    events: VecDeque<ServerEvent>,
}

/// Something that the driver is to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerAction {
    /// Open the WebSocket with the server's credential.
    Connect,
    /// Close it.
    Disconnect,
    /// Send this.
    Send(FromServer),
}

/// Something that the game is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Host this match.
    Assigned(Assignment),
    /// Let one more player in.
    Admit(AccountId),
    /// A player's name, and what was kept of them.
    Profile(PlayerProfile),
    /// Disconnect a player, and keep their seat no longer.
    Remove(AccountId),
    /// The master refused something for good. After a [final](ServerMessage::is_final) message [`End`](Self::End) follows.
    Refused {
        /// The message.
        message: ServerMessage,
        /// The reason.
        refusal: ServerRefusal,
    },
    /// End the process: the result is stored, the match is called off, or the master has been away too long with nothing to play.
    End,
}

#[derive(Debug)]
enum Link {
    Stopped,
    Waiting { until: Instant },
    Connecting { until: Instant },
    Online { next: Instant },
}

impl ServerLink {
    /// Creates the link of a server that players reach at `address`, with its public key in hexadecimal.
    pub fn new(address: &str, public_key: &str) -> Self {
        Self {
            address: address.to_owned(),
            public_key: public_key.to_owned(),
            link: Link::Stopped,
            claim: None,
            report: Report::default(),
            result: None,
            game: String::new(),
            asked: Vec::new(),
            progress: BTreeMap::new(),
            number: 0,
            registered: false,
            heard: Instant::ZERO,
            attempted: Instant::ZERO,
            actions: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Starts to connect.
    pub fn start(&mut self, now: Instant) {
        self.heard = now;
        self.link = Link::Waiting { until: now };
    }

    /// Returns the match that is hosted.
    pub fn match_id(&self) -> Option<MatchId> {
        self.report.match_id
    }

    /// Returns true from the first message of the master on: it knows where this server is.
    pub fn is_registered(&self) -> bool {
        self.registered
    }

    /// Takes no match any more. A server without one ends at once; one with a match plays it and ends after its result, as always.
    pub fn drain(&mut self) {
        if self.report.match_id.is_none() && !matches!(self.link, Link::Stopped) {
            self.end();
        }
    }

    /// Tells the master at once how the match goes on. The report's match is filled in.
    pub fn set_state(&mut self, report: Report) {
        let match_id = self.report.match_id;
        let changed = Report { match_id, ..report };
        if self.report != changed {
            self.report = changed;
            self.send(FromServer::Report(self.report.clone()));
        }
    }

    /// Hands in the result, and repeats it until the master has stored or refused it.
    pub fn finish(&mut self, result: MatchResult) {
        self.send(FromServer::Result(result.clone()));
        self.result = Some(result);
    }

    /// Asks who a player is and what was kept of them in this game; [`ServerEvent::Profile`] is the answer. Asked again each second until
    /// there is one.
    pub fn ask_profile(&mut self, account: AccountId, game: &str) {
        game.clone_into(&mut self.game);
        if !self.asked.contains(&account) && self.asked.len() < PROFILES_MAX {
            self.asked.push(account);
            self.send(FromServer::Profile {
                account,
                game: self.game.clone(),
            });
        }
    }

    /// Has the master keep a player's progress, and repeats it until it has.
    pub fn save_progress(&mut self, account: AccountId, game: &str, document: Value) {
        game.clone_into(&mut self.game);
        self.number = self.number.wrapping_add(1);
        if self.progress.len() < PROFILES_MAX || self.progress.contains_key(&account) {
            self.progress.insert(account, (self.number, document));
            self.tell_progress();
        }
    }

    /// Handles an open WebSocket.
    pub fn handle_connected(&mut self, now: Instant) {
        self.heard = now;
        self.link = Link::Online {
            next: now + REPORT_EVERY,
        };
        self.send(FromServer::Register {
            address: self.address.clone(),
            public_key: self.public_key.clone(),
            claim: self.claim.clone(),
        });
        self.tell();
    }

    /// Handles a WebSocket that closed or could not be opened. If it has been open for a while, another master is tried at once: the leader gives up on a
    /// server that is away for long.
    pub fn handle_lost(&mut self, now: Instant) {
        if !matches!(self.link, Link::Stopped) {
            let until = now.max(self.attempted + RETRY);
            self.link = Link::Waiting { until };
        }
    }

    /// Handles a message of the master.
    pub fn handle_message(&mut self, now: Instant, message: ToServer) {
        self.heard = now;
        self.registered = true;
        match message {
            ToServer::KeepAlive => {}
            ToServer::Assign(assignment) => {
                if self.report.match_id.is_none() {
                    self.report.match_id = Some(assignment.match_id);
                    self.claim = Some(Claim {
                        match_id: assignment.match_id,
                        proof: assignment.proof.clone(),
                    });
                    self.report.phase = Phase::Connecting;
                    self.events.push_back(ServerEvent::Assigned(assignment));
                }
                self.tell();
            }
            ToServer::Admit { account } => self.events.push_back(ServerEvent::Admit(account)),
            ToServer::Remove { account } => self.events.push_back(ServerEvent::Remove(account)),
            ToServer::ResultStored { match_id } => {
                if self.report.match_id == Some(match_id) {
                    self.end();
                }
            }
            ToServer::Profile(profile) => {
                if self.asked.contains(&profile.account) {
                    self.asked.retain(|account| *account != profile.account);
                    self.events.push_back(ServerEvent::Profile(profile));
                }
            }
            ToServer::ProgressStored { account, number } => {
                let known = self.progress.get(&account);
                if known.is_some_and(|(newest, _)| *newest == number) {
                    self.progress.remove(&account);
                }
            }
            ToServer::Refused { message, refusal } => self.handle_refused(message, refusal),
            ToServer::End => self.end(),
        }
    }

    /// Stops repeating what the master refused, and ends if there is nothing left to say.
    fn handle_refused(&mut self, message: ServerMessage, refusal: ServerRefusal) {
        let named = |account: AccountId| match refusal {
            ServerRefusal::NoSeat { account: refused } => account == refused,
            _ => true,
        };
        match message {
            ServerMessage::Profile => self.asked.retain(|account| !named(*account)),
            ServerMessage::Progress => self.progress.retain(|account, _| !named(*account)),
            ServerMessage::Register | ServerMessage::Report | ServerMessage::Result => {}
        }
        self.events
            .push_back(ServerEvent::Refused { message, refusal });
        if message.is_final() {
            self.end();
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let idle = self.report.match_id.is_none() || self.result.is_some();
        let limit = if self.result.is_some() {
            RESULT_KEPT
        } else {
            SILENCE
        };
        match self.link {
            Link::Stopped => {}
            _ if idle && now - self.heard >= limit => self.end(),
            Link::Waiting { until } if until <= now => {
                self.attempted = now;
                self.link = Link::Connecting {
                    until: now + LINK_SILENCE,
                };
                self.actions.push_back(ServerAction::Connect);
            }
            Link::Connecting { until } if until <= now => {
                self.actions.push_back(ServerAction::Disconnect);
                self.handle_lost(now);
            }
            Link::Online { .. } if now - self.heard >= LINK_SILENCE => {
                self.actions.push_back(ServerAction::Disconnect);
                self.handle_lost(now);
            }
            Link::Online { next } if next <= now => {
                self.link = Link::Online {
                    next: now + REPORT_EVERY,
                };
                self.tell();
            }
            _ => {}
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.link {
            Link::Stopped => None,
            Link::Waiting { until } | Link::Connecting { until } => Some(until),
            Link::Online { next } => Some(next.min(self.heard + LINK_SILENCE)),
        }
    }

    /// Returns the next thing to do.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        self.actions.pop_front()
    }

    /// Returns the next thing for the game.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    fn tell(&mut self) {
        for account in self.asked.clone() {
            self.send(FromServer::Profile {
                account,
                game: self.game.clone(),
            });
        }
        // Before the result, after which this server is not needed any more.
        self.tell_progress();
        match self.result.clone() {
            Some(result) => self.send(FromServer::Result(result)),
            None => self.send(FromServer::Report(self.report.clone())),
        }
    }

    fn tell_progress(&mut self) {
        for (account, (number, document)) in self.progress.clone() {
            self.send(FromServer::Progress {
                account,
                game: self.game.clone(),
                number,
                document,
            });
        }
    }

    fn send(&mut self, message: FromServer) {
        if matches!(self.link, Link::Online { .. }) {
            self.actions.push_back(ServerAction::Send(message));
        }
    }

    fn end(&mut self) {
        if matches!(self.link, Link::Connecting { .. } | Link::Online { .. }) {
            self.actions.push_back(ServerAction::Disconnect);
        }
        self.link = Link::Stopped;
        self.events.push_back(ServerEvent::End);
    }
}

/// Players whose profiles or progress are under way.
const PROFILES_MAX: usize = 256;
/// Time between reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Silence after which a server without a match ends.
const SILENCE: Duration = Duration::from_secs(10);
/// Silence after which another master is tried. A master answers each report, and the one that leads gives up on a server that it has not heard for 10 seconds:
/// there must be time left to find another one.
const LINK_SILENCE: Duration = Duration::from_secs(5);
/// Time from one attempt to the next; shorter than a player's, because a master that was restarted waits for its servers.
const RETRY: Duration = Duration::from_secs(1);
/// The time for which a server with a result waits for a master that is away.
const RESULT_KEPT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Outcome;

    fn seconds(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn sent(link: &mut ServerLink) -> Vec<FromServer> {
        let actions = std::iter::from_fn(|| link.poll_action());
        let sent = actions.filter_map(|action| match action {
            ServerAction::Send(message) => Some(message),
            _ => None,
        });
        sent.collect()
    }

    fn playing() -> ServerLink {
        let mut link = ServerLink::new("203.0.113.5:8888", "00");
        link.start(Instant::ZERO);
        link.handle_timeout(Instant::ZERO);
        link.handle_connected(Instant::ZERO);
        let assignment = Assignment {
            match_id: MatchId(9),
            proof: "proof".to_owned(),
            ..Assignment::default()
        };
        link.handle_message(Instant::ZERO, ToServer::Assign(assignment.clone()));
        assert_eq!(link.poll_event(), Some(ServerEvent::Assigned(assignment)));
        let messages = sent(&mut link);
        assert!(matches!(messages[0], FromServer::Register { .. }));
        assert!(matches!(&messages[2], FromServer::Report(report)
            if report.phase == Phase::Connecting && report.match_id == Some(MatchId(9))));
        link
    }

    fn result() -> MatchResult {
        MatchResult {
            match_id: MatchId(9),
            outcome: Outcome::Finished,
            players: Vec::new(),
        }
    }

    #[test]
    fn the_result_is_repeated_over_a_loss_until_it_is_stored() {
        let mut link = playing();
        link.finish(result());
        assert_eq!(sent(&mut link), [FromServer::Result(result())]);
        link.handle_lost(seconds(1));
        link.handle_timeout(seconds(2));
        link.handle_connected(seconds(2));
        assert!(sent(&mut link).contains(&FromServer::Result(result())));
        link.handle_message(
            seconds(3),
            ToServer::ResultStored {
                match_id: MatchId(9),
            },
        );
        assert_eq!(link.poll_event(), Some(ServerEvent::End));
        assert_eq!(link.poll_timeout(), None);
    }

    #[test]
    fn a_refused_result_is_told_once_and_not_repeated() {
        let mut link = playing();
        link.finish(result());
        sent(&mut link);
        let refusal = ServerRefusal::NamedTwice {
            account: AccountId(4),
        };
        let message = ServerMessage::Result;
        link.handle_message(seconds(1), ToServer::Refused { message, refusal });
        let refused = ServerEvent::Refused { message, refusal };
        assert_eq!(link.poll_event(), Some(refused));
        assert_eq!(link.poll_event(), Some(ServerEvent::End));
        assert_eq!((link.poll_event(), link.poll_timeout()), (None, None));
        link.handle_timeout(seconds(2));
        assert_eq!(sent(&mut link), []);
    }

    #[test]
    fn refused_progress_is_dropped_for_the_account_that_has_no_seat_alone() {
        let mut link = playing();
        let (seated, stranger) = (AccountId(4), AccountId(5));
        for account in [seated, stranger] {
            link.ask_profile(account, "tag");
            link.save_progress(account, "tag", Value::from(1));
        }
        for message in [ServerMessage::Profile, ServerMessage::Progress] {
            let refusal = ServerRefusal::NoSeat { account: stranger };
            link.handle_message(seconds(1), ToServer::Refused { message, refusal });
            let refused = ServerEvent::Refused { message, refusal };
            assert_eq!(link.poll_event(), Some(refused));
        }
        assert_eq!(link.poll_event(), None);
        sent(&mut link);
        link.handle_timeout(seconds(2));
        let named = |message: &FromServer| match message {
            FromServer::Profile { account, .. } | FromServer::Progress { account, .. } => {
                Some(*account)
            }
            _ => None,
        };
        let named: Vec<AccountId> = sent(&mut link).iter().filter_map(named).collect();
        assert_eq!(named, [seated, seated]);
    }

    #[test]
    fn a_server_with_a_match_claims_it_at_its_next_connection() {
        let mut link = playing();
        link.handle_lost(seconds(1));
        link.handle_timeout(seconds(2));
        link.handle_connected(seconds(2));
        let messages = sent(&mut link);
        assert!(
            matches!(&messages[0], FromServer::Register { claim: Some(claim), .. }
            if claim.match_id == MatchId(9) && claim.proof == "proof")
        );
    }

    #[test]
    fn another_master_is_tried_at_once_but_never_more_than_one_a_second() {
        let mut link = playing();
        let connects = |link: &mut ServerLink| {
            let actions = std::iter::from_fn(|| link.poll_action());
            actions
                .filter(|action| *action == ServerAction::Connect)
                .count()
        };
        // Silent since the beginning.
        link.handle_timeout(seconds(5));
        assert_eq!(link.poll_timeout(), Some(seconds(5)));
        link.handle_timeout(seconds(5));
        assert_eq!(connects(&mut link), 1);
        // This one refuses, or closes the connection as soon as it is open.
        for lost_after_ms in [0, 1, 999] {
            let attempted = link.attempted;
            link.handle_lost(attempted + Duration::from_millis(lost_after_ms));
            assert_eq!(link.poll_timeout(), Some(attempted + RETRY));
            link.handle_timeout(attempted + RETRY);
            assert_eq!(connects(&mut link), 1);
            link.handle_connected(attempted + RETRY);
        }
    }

    #[test]
    fn a_drained_server_without_a_match_ends_and_one_with_a_match_plays_on() {
        let mut idle = ServerLink::new("203.0.113.5:8888", "00");
        idle.start(Instant::ZERO);
        idle.drain();
        assert_eq!(idle.poll_event(), Some(ServerEvent::End));
        let mut busy = playing();
        assert!(busy.is_registered());
        busy.drain();
        assert_eq!(busy.poll_event(), None);
        busy.finish(result());
        let match_id = MatchId(9);
        busy.handle_message(seconds(1), ToServer::ResultStored { match_id });
        assert_eq!(busy.poll_event(), Some(ServerEvent::End));
    }

    #[test]
    fn profiles_are_asked_for_and_progress_is_repeated_until_it_is_kept() {
        let mut link = playing();
        let account = AccountId(4);
        let asks = FromServer::Profile {
            account,
            game: "tag".to_owned(),
        };
        link.ask_profile(account, "tag");
        link.ask_profile(account, "tag");
        assert_eq!(sent(&mut link), std::slice::from_ref(&asks));
        link.handle_timeout(seconds(1));
        assert!(sent(&mut link).contains(&asks));
        let profile = PlayerProfile {
            account,
            ..PlayerProfile::default()
        };
        for _ in 0..2 {
            link.handle_message(seconds(1), ToServer::Profile(profile.clone()));
        }
        assert_eq!(link.poll_event(), Some(ServerEvent::Profile(profile)));
        assert_eq!(link.poll_event(), None);
        link.save_progress(account, "tag", Value::from(1));
        link.save_progress(account, "tag", Value::from(2));
        sent(&mut link);
        let stored = |number| ToServer::ProgressStored { account, number };
        link.handle_message(seconds(1), stored(1));
        link.handle_timeout(seconds(2));
        let newest = |message: &FromServer| matches!(message, FromServer::Progress { document, .. } if *document == 2);
        assert!(
            sent(&mut link).iter().any(newest),
            "the newest is not kept yet"
        );
        link.handle_message(seconds(2), stored(2));
        link.handle_timeout(seconds(3));
        assert!(!sent(&mut link).iter().any(newest));
    }

    #[test]
    fn a_server_leaves_a_silent_master_while_there_is_time_to_find_another_one() {
        let mut link = playing();
        let mut connects = Vec::new();
        for second in 1..10 {
            link.handle_timeout(seconds(second));
            let actions = std::iter::from_fn(|| link.poll_action());
            if actions.into_iter().any(|it| it == ServerAction::Connect) {
                connects.push(second);
            }
        }
        // The leader gives up on it after 10 seconds; whoever is asked first may be silent, too.
        assert_eq!(connects, [6]);
        link.handle_timeout(seconds(11));
        link.handle_timeout(seconds(12));
        let actions = std::iter::from_fn(|| link.poll_action());
        assert!(actions.into_iter().any(|it| it == ServerAction::Connect));
    }

    #[test]
    fn without_a_match_a_master_that_stays_away_ends_the_process_but_a_match_goes_on() {
        let mut idle = ServerLink::new("203.0.113.5:8888", "00");
        let mut busy = playing();
        idle.start(Instant::ZERO);
        busy.handle_lost(Instant::ZERO);
        for second in 0..60 {
            for link in [&mut idle, &mut busy] {
                link.handle_timeout(seconds(second));
                if link.poll_action() == Some(ServerAction::Connect) {
                    link.handle_lost(seconds(second));
                }
            }
        }
        assert_eq!(idle.poll_event(), Some(ServerEvent::End));
        assert_eq!(busy.poll_event(), None);
        assert!(busy.poll_timeout().is_some());
    }
}
