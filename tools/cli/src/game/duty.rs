//! The game server's life with the master: registers, takes a match, reports, hands in the result.

use std::collections::BTreeSet;

use anyhow::anyhow;
use muse_biobot::Phase as RoundPhase;
use muse_drivers::Server;
use muse_master_client::messages::{Assignment, MatchResult, Outcome, Phase, PlayerResult, Report};
use muse_master_client::{AccountId, ServerEvent};
use muse_wire::Instant;

use super::profiles::{Known, Profiles};
use crate::master::posting::{Post, Posting};

/// The master's side of a match.
pub(crate) struct Duty {
    life: Post,
    assignment: Option<Assignment>,
    /// Everybody who was given a seat, whatever became of it.
    invited: Vec<AccountId>,
    left: BTreeSet<AccountId>,
    finished: bool,
    ended: bool,
    profiles: Profiles,
}

/// How a match stands, for the master.
pub(crate) struct Standing {
    pub(crate) phase: RoundPhase,
    pub(crate) present: Vec<AccountId>,
}

impl Duty {
    /// Begins to connect.
    pub(crate) fn new(posting: Posting, public_key: &str) -> anyhow::Result<Self> {
        Ok(Self {
            life: posting.take_up(public_key)?,
            assignment: None,
            invited: Vec::new(),
            left: BTreeSet::new(),
            finished: false,
            ended: false,
            profiles: Profiles::default(),
        })
    }

    /// Does what is due, and says which match is to be hosted when the master has one.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        server: &mut Server,
    ) -> anyhow::Result<Option<Assignment>> {
        self.life.listen(now);
        self.life.act();
        let mut assigned = None;
        while let Some(event) = self.life.poll_event() {
            match event {
                ServerEvent::Assigned(assignment) => {
                    learn_keys(&assignment, server)?;
                    self.invited.clone_from(&assignment.players);
                    for account in &assignment.players {
                        self.life.ask_profile(*account, GAME);
                    }
                    self.assignment = Some(assignment.clone());
                    assigned = Some(assignment);
                }
                ServerEvent::Admit(account) => {
                    self.admit(account);
                    self.life.ask_profile(account, GAME);
                }
                ServerEvent::Profile(profile) => self.profiles.handle_profile(&profile),
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

    /// What is known of a player; none until the master has told.
    pub(crate) fn profile(&self, account: AccountId) -> Option<&Known> {
        self.profiles.known(account)
    }

    /// A player has reached a checkpoint or found a weapon: the master keeps it.
    pub(crate) fn save(&mut self, account: AccountId, checkpoint: u8, owned: u8) {
        if let Some(document) = self.profiles.advance(account, checkpoint, owned) {
            self.life.save_progress(account, GAME, document);
        }
    }

    /// A player has escaped: the next time begins at the beginning, with the weapons that were found.
    pub(crate) fn begin_anew(&mut self, account: AccountId) {
        if let Some(document) = self.profiles.begin_anew(account) {
            self.life.save_progress(account, GAME, document);
        }
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

/// What progress in this game is called.
const GAME: &str = "biobot";
