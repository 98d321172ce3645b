//! `muse master-game`: a game server without a game, which the master starts if it is given no other. It shows what a real one does: register,
//! wait for its players, let them in by their tokens, report, and send the result.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

use anyhow::Context;
use muse::master::{AccountId, HostEvent, MatchOutcome, MatchPhase};
use muse_drivers::{EndpointDriver, new_key};
use muse_transport::token::TokenVerifier;
use muse_transport::{ChannelConfig, Config, ConnectionId, Delivery, Event, ServerOptions};

use super::enrolment::{EnrolledHost, Enrolment};

/// Hosts one match and ends.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let enrolment = Enrolment::from_environment(PROTOCOL)?;
    let enrolment =
        enrolment.context("the master sets MUSE_MASTER; start it with `muse master`")?;
    let seconds = std::env::var("MUSE_GAME_SECONDS").ok();
    let length = seconds.map_or(Ok(5.0), |text| text.parse::<f64>())?;
    let key = new_key()?;
    let public = key.public();
    let options = ServerOptions::new(key).tokens(TokenVerifier::new());
    let listen = enrolment.listen_address();
    let server = EndpointDriver::bind(listen, config(), options)
        .with_context(|| format!("cannot listen at {listen}"))?;
    let mut game = Game {
        host: enrolment.start(server.now(), &public)?,
        server,
        players: BTreeMap::new(),
        phase: MatchPhase::Ready,
        until: Clock::now(),
        length: Duration::from_secs_f64(length.clamp(0.0, 86_400.0)),
    };
    while !game.host.has_ended() {
        game.step()?;
    }
    for connection in game.players.values() {
        game.server.close(*connection, 0, "the match is over");
    }
    game.server.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration that the game without rules and its players share.
pub(super) fn config() -> Config {
    Config::new(PROTOCOL).channel(ChannelConfig::new(Delivery::ReliableOrdered))
}

struct Game {
    host: EnrolledHost,
    server: EndpointDriver,
    players: BTreeMap<AccountId, ConnectionId>,
    phase: MatchPhase,
    until: Clock,
    length: Duration,
}

impl Game {
    fn step(&mut self) -> anyhow::Result<()> {
        self.tick()?;
        let now = self.server.now();
        while let Some(event) = self.host.turn(now, self.server.endpoint_mut())? {
            match event {
                HostEvent::Assigned(plan) => {
                    self.phase = MatchPhase::Connecting;
                    self.until = Clock::now() + Duration::from_millis(plan.connect_ms);
                }
                HostEvent::SeatClosed(account) => {
                    if let Some(connection) = self.players.remove(&account) {
                        self.server.close(connection, 2, "the seat was given up");
                    }
                }
                HostEvent::Refused { message, refusal } => {
                    anyhow::bail!("the master refused this server's {message:?}: {refusal}");
                }
                _ => {}
            }
        }
        self.advance();
        self.server.wait(STEP)?;
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let (players, host) = (&mut self.players, &self.host);
        self.server.tick(|server, event| match event {
            Event::Connected {
                connection,
                account,
                ..
            } => {
                let account = AccountId(account);
                if host.has_seat(account) {
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
        let is_complete = self.players.len() == self.host.seated().count();
        let is_due = self.until <= Clock::now();
        match self.phase {
            MatchPhase::Connecting if is_complete => self.phase = MatchPhase::Loading,
            MatchPhase::Loading => {
                self.phase = MatchPhase::Running;
                self.until = Clock::now() + self.length;
            }
            MatchPhase::Connecting if is_due => self.host.finish(&MatchOutcome::cancelled()),
            MatchPhase::Running if is_due => {
                let points = self.host.seated().zip(1..);
                let outcome = MatchOutcome::points(points);
                self.host.finish(&outcome);
            }
            _ => {}
        }
        let present = self.players.keys().copied().collect();
        self.host.report(self.phase, present);
    }
}

/// The protocol of the game without rules.
pub(super) const PROTOCOL: u64 = 0x4d55_5345_0000_0001;
const STEP: Duration = Duration::from_millis(5);
