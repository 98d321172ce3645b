//! The game server's life with the master: registers, takes a match, reports, hands in the result (OA-7 to OA-10).

use std::collections::BTreeSet;

use anyhow::{Context, anyhow};
use muse_biobot::Phase as RoundPhase;
use muse_drivers::Server;
use muse_master_client::messages::{
    Assignment, MatchResult, Outcome, Phase, PlayerResult, Report, decode, encode,
};
use muse_master_client::{AccountId, ServerAction, ServerEvent, ServerLife};
use muse_wire::Instant;

use crate::master::socket::{Arrival, Socket, Who};

/// What a master tells a server by the environment.
pub(crate) struct Posting {
    pub(crate) port: u16,
    address: String,
    credential: String,
    master: String,
}

impl Posting {
    /// None if no master has started this program.
    pub(crate) fn from_environment() -> anyhow::Result<Option<Self>> {
        let Ok(master) = std::env::var("MUSE_MASTER") else {
            return Ok(None);
        };
        let variable = |name: &str| {
            std::env::var(name).with_context(|| format!("a master sets {name} as well"))
        };
        let port = variable("MUSE_SERVER_PORT")?;
        Ok(Some(Self {
            port: port.parse().context("MUSE_SERVER_PORT is no port")?,
            address: variable("MUSE_SERVER_ADDRESS")?,
            credential: variable("MUSE_SERVER_CREDENTIAL")?,
            master: master.trim_start_matches("ws://").to_owned(),
        }))
    }
}

/// The master's side of a match.
pub(crate) struct Duty {
    socket: Socket,
    life: ServerLife,
    assignment: Option<Assignment>,
    /// Everybody who was given a seat, whatever became of it.
    invited: Vec<AccountId>,
    left: BTreeSet<AccountId>,
    finished: bool,
    ended: bool,
}

/// How a match stands, for the master.
pub(crate) struct Standing {
    pub(crate) phase: RoundPhase,
    pub(crate) present: Vec<AccountId>,
}

impl Duty {
    /// Begins to connect.
    pub(crate) fn new(posting: &Posting, public_key: &str) -> anyhow::Result<Self> {
        let who = Who::Server(posting.credential.clone());
        let mut life = ServerLife::new(&posting.address, public_key);
        life.start(Instant::ZERO);
        Ok(Self {
            socket: Socket::new(&posting.master, who)?,
            life,
            assignment: None,
            invited: Vec::new(),
            left: BTreeSet::new(),
            finished: false,
            ended: false,
        })
    }

    /// Does what is due, and says which match is to be hosted when the master has one.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        server: &mut Server,
    ) -> anyhow::Result<Option<Assignment>> {
        while let Some(arrival) = self.socket.poll() {
            match arrival {
                Arrival::Connected => self.life.handle_connected(now),
                Arrival::Lost(why) => {
                    tracing::warn!("the master is lost: {why}");
                    self.life.handle_lost(now);
                }
                Arrival::Text(text) => match decode(&text) {
                    Ok(message) => self.life.handle_message(now, message),
                    Err(error) => tracing::warn!("{error}"),
                },
            }
        }
        if self.life.poll_timeout().is_some_and(|at| at <= now) {
            self.life.handle_timeout(now);
        }
        while let Some(action) = self.life.poll_action() {
            match action {
                ServerAction::Connect => self.socket.connect(),
                ServerAction::Disconnect => self.socket.disconnect(),
                ServerAction::Send(message) => self.socket.send(encode(&message)),
                other => tracing::warn!(?other, "not known"),
            }
        }
        let mut assigned = None;
        while let Some(event) = self.life.poll_event() {
            match event {
                ServerEvent::Assigned(assignment) => {
                    learn_keys(&assignment, server)?;
                    self.invited.clone_from(&assignment.players);
                    self.assignment = Some(assignment.clone());
                    assigned = Some(assignment);
                }
                ServerEvent::Admit(account) => self.admit(account),
                ServerEvent::Remove(account) => {
                    self.left.insert(account);
                }
                ServerEvent::End => self.ended = true,
                other => tracing::warn!(?other, "not known"),
            }
        }
        Ok(assigned)
    }

    /// Whether this account has a seat in the match.
    pub(crate) fn has_seat(&self, account: AccountId) -> bool {
        self.invited.contains(&account) && !self.left.contains(&account)
    }

    /// A player's seat is given up.
    pub(crate) fn give_up(&mut self, account: AccountId) {
        self.left.insert(account);
    }

    /// Tells the master how the match stands, at once if that has changed.
    pub(crate) fn tell(&mut self, standing: Standing) {
        if self.finished || self.assignment.is_none() {
            return;
        }
        let phase = match standing.phase {
            RoundPhase::Waiting => Phase::Connecting,
            RoundPhase::Loading => Phase::Loading,
            _ => Phase::Running,
        };
        let seated = self.invited.iter().copied();
        self.life.set_state(Report {
            match_id: None,
            phase,
            seated: seated
                .filter(|account| !self.left.contains(account))
                .collect(),
            present: standing.present,
            left: self.left.iter().copied().collect(),
            open_seats: 0,
        });
    }

    /// Hands in the result: points by account; who is missing has none.
    pub(crate) fn finish(
        &mut self,
        outcome: Outcome,
        together: bool,
        points: impl Fn(AccountId) -> i64,
    ) {
        let Some(assignment) = &self.assignment else {
            self.ended = true;
            return;
        };
        if self.finished {
            return;
        }
        self.finished = true;
        let player = |account: &AccountId| PlayerResult {
            account: *account,
            points: points(*account),
            team: together.then_some(0),
        };
        self.life.finish(MatchResult {
            match_id: assignment.match_id,
            outcome,
            players: self.invited.iter().map(player).collect(),
        });
    }

    /// Whether the process may end.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// The match's number.
    pub(crate) fn match_number(&self) -> Option<u64> {
        self.assignment.as_ref().map(|it| it.match_id.0)
    }

    fn admit(&mut self, account: AccountId) {
        self.left.remove(&account);
        if !self.invited.contains(&account) {
            self.invited.push(account);
        }
    }
}

/// From now on the server accepts the tokens of this match.
fn learn_keys(assignment: &Assignment, server: &mut Server) -> anyhow::Result<()> {
    let verifier = server.endpoint_mut().token_verifier();
    let verifier = verifier.ok_or_else(|| anyhow!("the server takes no tokens"))?;
    for (id, key) in &assignment.token_keys {
        let key = muse_master::secrets::unhex(key).and_then(|key| key.try_into().ok());
        let key: [u8; 32] = key.ok_or_else(|| anyhow!("the master's key {id} is not a key"))?;
        verifier.add_key(*id, &key)?;
    }
    Ok(())
}
