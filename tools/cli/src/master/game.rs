//! `muse master-game`: a game server without a game, which the master starts if it is given no other. It shows what a real one does: register,
//! wait for its players, let them in by their tokens, report, and send the result.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

use anyhow::{Context, anyhow};
use muse_drivers::{Server, new_key};
use muse_master_client::messages::{Assignment, MatchResult, Outcome, Phase, PlayerResult, Report};
use muse_master_client::{AccountId, ServerEvent};
use muse_transport::token::TokenVerifier;
use muse_transport::{ChannelConfig, Config, ConnectionId, Delivery, Event, ServerOptions};
use muse_wire::Instant;

use super::posting::{Post, Posting};

/// Hosts one match and ends.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let posting = Posting::from_environment(PROTOCOL)?;
    let posting = posting.context("the master sets MUSE_MASTER; start it with `muse master`")?;
    let port = posting.port;
    let seconds = std::env::var("MUSE_GAME_SECONDS").ok();
    let length = seconds.map_or(Ok(5.0), |text| text.parse::<f64>())?;
    let key = new_key()?;
    let public = key.public().to_string();
    let options = ServerOptions::new(key).tokens(TokenVerifier::new());
    let server = Server::bind(("0.0.0.0", port), config(), options)
        .with_context(|| format!("cannot listen at port {port}"))?;
    let mut game = Game {
        life: posting.take_up(&public)?,
        server,
        assignment: None,
        players: BTreeMap::new(),
        seated: Vec::new(),
        phase: Phase::Ready,
        until: Clock::now(),
        length: Duration::from_secs_f64(length.clamp(0.0, 86_400.0)),
        started: Clock::now(),
        finished: false,
        ended: false,
    };
    while !game.ended {
        game.step()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the game without rules and its players agree on.
pub(super) fn config() -> Config {
    Config::new(PROTOCOL).channel(ChannelConfig::new(Delivery::ReliableOrdered))
}

struct Game {
    life: Post,
    server: Server,
    assignment: Option<Assignment>,
    players: BTreeMap<AccountId, ConnectionId>,
    seated: Vec<AccountId>,
    phase: Phase,
    until: Clock,
    length: Duration,
    started: Clock,
    finished: bool,
    ended: bool,
}

impl Game {
    fn now(&self) -> Instant {
        let elapsed = self.started.elapsed().as_micros();
        Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    fn step(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        self.life.listen(now);
        self.tick()?;
        self.advance();
        self.life.act();
        while let Some(event) = self.life.poll_event() {
            self.handle(event)?;
        }
        self.server.wait(STEP)?;
        Ok(())
    }

    fn handle(&mut self, event: ServerEvent) -> anyhow::Result<()> {
        match event {
            ServerEvent::Assigned(assignment) => {
                let verifier = self.server.endpoint_mut().token_verifier();
                let verifier = verifier.ok_or_else(|| anyhow!("the server takes tokens"))?;
                for (id, key) in &assignment.token_keys {
                    let key = muse_master::secrets::unhex(key).and_then(|key| key.try_into().ok());
                    let key: [u8; 32] = key.ok_or_else(|| anyhow!("not a key"))?;
                    verifier.add_key(*id, &key)?;
                }
                self.seated.clone_from(&assignment.players);
                self.phase = Phase::Connecting;
                self.until = Clock::now() + Duration::from_millis(assignment.connect_ms);
                self.assignment = Some(assignment);
            }
            ServerEvent::Admit(account) => self.seated.push(account),
            ServerEvent::Remove(account) => {
                self.seated.retain(|seated| *seated != account);
                if let Some(connection) = self.players.remove(&account) {
                    self.server.close(connection, 2, "sent away");
                }
            }
            ServerEvent::End => {
                for connection in self.players.values() {
                    self.server.close(*connection, 0, "the match is over");
                }
                self.server.flush()?;
                self.ended = true;
            }
            other => tracing::warn!(?other, "not known"),
        }
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let (players, seated) = (&mut self.players, &self.seated);
        self.server.tick(|server, event| match event {
            Event::Connected {
                connection,
                account,
                ..
            } => {
                let account = AccountId(account);
                if seated.contains(&account) {
                    players.insert(account, connection);
                } else {
                    server.close(connection, 1, "no seat in this match");
                }
            }
            Event::Closed { connection, .. } => players.retain(|_, held| *held != connection),
            _ => {}
        })?;
        Ok(())
    }

    /// Connecting, loading (which takes no time here), playing.
    fn advance(&mut self) {
        let Some(assignment) = &self.assignment else {
            return;
        };
        if self.finished {
            return;
        }
        let everybody = self.players.len() == self.seated.len();
        let due = self.until <= Clock::now();
        match self.phase {
            Phase::Connecting if everybody => self.phase = Phase::Loading,
            Phase::Loading => {
                self.phase = Phase::Running;
                self.until = Clock::now() + self.length;
            }
            Phase::Connecting | Phase::Running if due => {
                let outcome = match self.phase {
                    Phase::Running => Outcome::Finished,
                    _ => Outcome::Cancelled,
                };
                let player = |(place, account): (usize, &AccountId)| PlayerResult {
                    account: *account,
                    points: i64::try_from(place).unwrap_or(0) + 1,
                    team: None,
                };
                self.life.finish(MatchResult {
                    match_id: assignment.match_id,
                    outcome,
                    players: self.seated.iter().enumerate().map(player).collect(),
                });
                self.finished = true;
                return;
            }
            _ => {}
        }
        self.life.set_state(Report {
            match_id: None,
            phase: self.phase,
            seated: self.seated.clone(),
            present: self.players.keys().copied().collect(),
            left: Vec::new(),
            open_seats: 0,
        });
    }
}

/// The protocol of the game without rules.
pub(super) const PROTOCOL: u64 = 0x4d55_5345_0000_0001;
const STEP: Duration = Duration::from_millis(5);
