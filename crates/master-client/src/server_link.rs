//! The game server's life with the master.
//!
//! It registers, waits for a match, says each second how the match goes, and repeats the result until the master has stored it. If
//! the master is away, the game goes on and everything is told again when it is back.

use std::collections::{BTreeMap, VecDeque};

use muse_wire::{Duration, Instant};

use serde_json::Value;

use crate::messages::{
    Assignment, FromServer, MatchResult, Phase, PlayerProfile, Report, ToServer,
};
use crate::{AccountId, MatchId};

/// The machine. Call [`start`](Self::start), then `handle_*` as things happen, and drain [`poll_action`](Self::poll_action) and
/// [`poll_event`](Self::poll_event).
///
/// ```
/// use muse_master_client::{ServerAction, ServerLink};
/// use muse_wire::Instant;
/// let mut life = ServerLink::new("203.0.113.5:8888", "00ff");
/// life.start(Instant::ZERO);
/// life.handle_timeout(Instant::ZERO);
/// assert_eq!(life.poll_action(), Some(ServerAction::Connect));
/// ```
#[derive(Debug)]
pub struct ServerLink {
    address: String,
    public_key: String,
    link: Link,
    report: Report,
    result: Option<MatchResult>,
    /// What progress is called, and the profiles that have been asked for.
    game: String,
    asked: Vec<AccountId>,
    /// Progress that the master has not kept yet.
    progress: BTreeMap<AccountId, (u32, Value)>,
    number: u32,
    /// When the master was last heard, or when the wait for it began.
    heard: Instant,
    actions: VecDeque<ServerAction>,
    events: VecDeque<ServerEvent>,
}

/// What the driver is to do.
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

/// What the game is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Host this match.
    Assigned(Assignment),
    /// Let one more player in.
    Admit(AccountId),
    /// Who a player is, and what was kept of him.
    Profile(PlayerProfile),
    /// Send a player away, and keep his seat no longer.
    Remove(AccountId),
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
    /// A server that players reach at `address`, with its public key in hexadecimal.
    pub fn new(address: &str, public_key: &str) -> Self {
        Self {
            address: address.to_owned(),
            public_key: public_key.to_owned(),
            link: Link::Stopped,
            report: Report::default(),
            result: None,
            game: String::new(),
            asked: Vec::new(),
            progress: BTreeMap::new(),
            number: 0,
            heard: Instant::ZERO,
            actions: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Begins to connect.
    pub fn start(&mut self, now: Instant) {
        self.heard = now;
        self.link = Link::Waiting { until: now };
    }

    /// The match that is hosted.
    pub fn match_id(&self) -> Option<MatchId> {
        self.report.match_id
    }

    /// The match went on: tells the master at once. The report's match is filled in.
    pub fn set_state(&mut self, report: Report) {
        let match_id = self.report.match_id;
        let changed = Report { match_id, ..report };
        if self.report != changed {
            self.report = changed;
            self.send(FromServer::Report(self.report.clone()));
        }
    }

    /// The match is over. The result is repeated until the master has stored it.
    pub fn finish(&mut self, result: MatchResult) {
        self.send(FromServer::Result(result.clone()));
        self.result = Some(result);
    }

    /// Asks who a player is and what was kept of him in this game; [`ServerEvent::Profile`] is the answer. Asked again each second until
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

    /// Has the master keep a player's progress; repeated until it has.
    pub fn save_progress(&mut self, account: AccountId, game: &str, document: Value) {
        game.clone_into(&mut self.game);
        self.number = self.number.wrapping_add(1);
        if self.progress.len() < PROFILES_MAX || self.progress.contains_key(&account) {
            self.progress.insert(account, (self.number, document));
            self.tell_progress();
        }
    }

    /// The WebSocket is open.
    pub fn handle_connected(&mut self, now: Instant) {
        self.heard = now;
        self.link = Link::Online {
            next: now + REPORT_EVERY,
        };
        self.send(FromServer::Register {
            address: self.address.clone(),
            public_key: self.public_key.clone(),
        });
        self.tell();
    }

    /// The WebSocket closed or could not be opened.
    pub fn handle_lost(&mut self, now: Instant) {
        if !matches!(self.link, Link::Stopped) {
            self.link = Link::Waiting { until: now + RETRY };
        }
    }

    /// The master said this.
    pub fn handle_message(&mut self, now: Instant, message: ToServer) {
        self.heard = now;
        match message {
            ToServer::KeepAlive => {}
            ToServer::Assign(assignment) => {
                if self.report.match_id.is_none() {
                    self.report.match_id = Some(assignment.match_id);
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
            ToServer::End => self.end(),
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
                self.link = Link::Connecting {
                    until: now + SILENCE,
                };
                self.actions.push_back(ServerAction::Connect);
            }
            Link::Connecting { until } if until <= now => {
                self.actions.push_back(ServerAction::Disconnect);
                self.handle_lost(now);
            }
            Link::Online { .. } if now - self.heard >= SILENCE => {
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

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.link {
            Link::Stopped => None,
            Link::Waiting { until } | Link::Connecting { until } => Some(until),
            Link::Online { next } => Some(next.min(self.heard + SILENCE)),
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<ServerAction> {
        self.actions.pop_front()
    }

    /// The next thing for the game.
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
/// Silence after which the master counts as lost, and after which a server without a match ends.
const SILENCE: Duration = Duration::from_secs(10);
/// Time between attempts; shorter than a player's, because a master that was restarted waits for its servers.
const RETRY: Duration = Duration::from_secs(1);
/// How long a server with a result waits for a master that is away.
const RESULT_KEPT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Outcome;

    fn seconds(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn sent(life: &mut ServerLink) -> Vec<FromServer> {
        let actions = std::iter::from_fn(|| life.poll_action());
        let sent = actions.filter_map(|action| match action {
            ServerAction::Send(message) => Some(message),
            _ => None,
        });
        sent.collect()
    }

    fn playing() -> ServerLink {
        let mut life = ServerLink::new("203.0.113.5:8888", "00");
        life.start(Instant::ZERO);
        life.handle_timeout(Instant::ZERO);
        life.handle_connected(Instant::ZERO);
        let assignment = Assignment {
            match_id: MatchId(9),
            ..Assignment::default()
        };
        life.handle_message(Instant::ZERO, ToServer::Assign(assignment.clone()));
        assert_eq!(life.poll_event(), Some(ServerEvent::Assigned(assignment)));
        let messages = sent(&mut life);
        assert!(matches!(messages[0], FromServer::Register { .. }));
        assert!(matches!(&messages[2], FromServer::Report(report)
            if report.phase == Phase::Connecting && report.match_id == Some(MatchId(9))));
        life
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
        let mut life = playing();
        life.finish(result());
        assert_eq!(sent(&mut life), [FromServer::Result(result())]);
        life.handle_lost(seconds(1));
        life.handle_timeout(seconds(2));
        life.handle_connected(seconds(2));
        assert!(sent(&mut life).contains(&FromServer::Result(result())));
        life.handle_message(
            seconds(3),
            ToServer::ResultStored {
                match_id: MatchId(9),
            },
        );
        assert_eq!(life.poll_event(), Some(ServerEvent::End));
        assert_eq!(life.poll_timeout(), None);
    }

    #[test]
    fn profiles_are_asked_for_and_progress_is_repeated_until_it_is_kept() {
        let mut life = playing();
        let account = AccountId(4);
        let asks = FromServer::Profile {
            account,
            game: "tag".to_owned(),
        };
        life.ask_profile(account, "tag");
        life.ask_profile(account, "tag");
        assert_eq!(sent(&mut life), std::slice::from_ref(&asks));
        life.handle_timeout(seconds(1));
        assert!(sent(&mut life).contains(&asks));
        let profile = PlayerProfile {
            account,
            ..PlayerProfile::default()
        };
        for _ in 0..2 {
            life.handle_message(seconds(1), ToServer::Profile(profile.clone()));
        }
        assert_eq!(life.poll_event(), Some(ServerEvent::Profile(profile)));
        assert_eq!(life.poll_event(), None);
        life.save_progress(account, "tag", Value::from(1));
        life.save_progress(account, "tag", Value::from(2));
        sent(&mut life);
        let stored = |number| ToServer::ProgressStored { account, number };
        life.handle_message(seconds(1), stored(1));
        life.handle_timeout(seconds(2));
        let newest = |message: &FromServer| matches!(message, FromServer::Progress { document, .. } if *document == 2);
        assert!(
            sent(&mut life).iter().any(newest),
            "the newest is not kept yet"
        );
        life.handle_message(seconds(2), stored(2));
        life.handle_timeout(seconds(3));
        assert!(!sent(&mut life).iter().any(newest));
    }

    #[test]
    fn without_a_match_a_master_that_stays_away_ends_the_process_but_a_match_goes_on() {
        let mut idle = ServerLink::new("203.0.113.5:8888", "00");
        let mut busy = playing();
        idle.start(Instant::ZERO);
        busy.handle_lost(Instant::ZERO);
        for second in 0..60 {
            for life in [&mut idle, &mut busy] {
                life.handle_timeout(seconds(second));
                if life.poll_action() == Some(ServerAction::Connect) {
                    life.handle_lost(seconds(second));
                }
            }
        }
        assert_eq!(idle.poll_event(), Some(ServerEvent::End));
        assert_eq!(busy.poll_event(), None);
        assert!(busy.poll_timeout().is_some());
    }
}
