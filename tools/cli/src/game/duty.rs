//! The master's side of a match of Biobot: takes it, reports it, keeps what players unlock, hands in the result.

use muse::master::{HostEvent, MatchEnding, MatchOutcome, MatchPhase};
use muse_biobot::Phase as RoundPhase;
use muse_drivers::Server;
use muse_master_client::AccountId;
use muse_master_client::messages::Assignment;
use muse_transport::ServerPublicKey;
use muse_wire::Instant;

use super::profiles::{Known, Profiles};
use crate::master::enrolment::{EnrolledHost, Enrolment};

/// The master's side of a match.
pub(crate) struct Duty {
    host: EnrolledHost,
    profiles: Profiles,
}

/// The state of a match, for the master.
pub(crate) struct Standing {
    pub(crate) phase: RoundPhase,
    pub(crate) present: Vec<AccountId>,
}

impl Duty {
    /// Starts to connect.
    pub(crate) fn new(
        enrolment: Enrolment,
        now: Instant,
        public_key: &ServerPublicKey,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            host: enrolment.start(now, public_key)?,
            profiles: Profiles::default(),
        })
    }

    /// Does what is due, and says which match is to be hosted when the master has one.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        server: &mut Server,
    ) -> anyhow::Result<Option<Assignment>> {
        let mut assigned = None;
        while let Some(event) = self.host.turn(now, server.endpoint_mut())? {
            match event {
                HostEvent::Assigned(plan) => {
                    for account in &plan.players {
                        self.host.ask_profile(*account, GAME);
                    }
                    assigned = Some(plan);
                }
                HostEvent::SeatOpened(account) => self.host.ask_profile(account, GAME),
                HostEvent::Profile(profile) => self.profiles.handle_profile(&profile),
                // Whoever has no seat is disconnected each turn, and the end is asked for by name.
                _ => {}
            }
        }
        Ok(assigned)
    }

    /// True if this account has a seat in the match.
    pub(crate) fn has_seat(&self, account: AccountId) -> bool {
        self.host.has_seat(account)
    }

    /// Returns what is known of a player; none until the master has answered.
    pub(crate) fn profile(&self, account: AccountId) -> Option<&Known> {
        self.profiles.known(account)
    }

    /// A player has reached a checkpoint or found a weapon: the master keeps it.
    pub(crate) fn save(&mut self, account: AccountId, checkpoint: u8, owned: u8) {
        if let Some(document) = self.profiles.advance(account, checkpoint, owned) {
            self.host.save_progress(account, GAME, document);
        }
    }

    /// A player has escaped: the next time starts at the beginning, with the weapons that were found.
    pub(crate) fn begin_anew(&mut self, account: AccountId) {
        if let Some(document) = self.profiles.begin_anew(account) {
            self.host.save_progress(account, GAME, document);
        }
    }

    /// A player's seat is given up.
    pub(crate) fn give_up(&mut self, account: AccountId) {
        self.host.give_up_seat(account);
    }

    /// Tells the master how the match stands, at once if that has changed.
    pub(crate) fn tell(&mut self, standing: Standing) {
        let phase = match standing.phase {
            RoundPhase::Waiting => MatchPhase::Connecting,
            RoundPhase::Loading => MatchPhase::Loading,
            _ => MatchPhase::Running,
        };
        self.host.report(phase, standing.present, 0);
    }

    /// Hands in the result: points by account.
    pub(crate) fn finish(
        &mut self,
        ending: MatchEnding,
        together: bool,
        points: impl Fn(AccountId) -> i64,
    ) {
        let outcome = match ending {
            MatchEnding::Finished => {
                let invited = self.host.invited().iter();
                MatchOutcome::points(invited.map(|account| (*account, points(*account))))
            }
            MatchEnding::Cancelled => MatchOutcome::cancelled(),
            MatchEnding::Aborted => MatchOutcome::aborted(),
        };
        self.host.finish(&match together {
            true => outcome.together(),
            false => outcome,
        });
    }

    /// True if the process may end.
    pub(crate) fn has_ended(&self) -> bool {
        self.host.has_ended()
    }

    /// The match's number.
    pub(crate) fn match_number(&self) -> Option<u64> {
        self.host.plan().map(|plan| plan.match_id.0)
    }
}

/// The name under which the master keeps progress in this game.
const GAME: &str = "biobot";
