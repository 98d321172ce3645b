//! The connection of a match of Biobot to the master: accepts the match, reports on it, saves what players unlock, submits the result.

use muse::master::{HostEvent, MatchEnding, MatchOutcome, MatchPhase};
use muse_biobot::Phase as RoundPhase;
use muse_drivers::EndpointDriver;
use muse_master_client::AccountId;
use muse_master_client::messages::Assignment;
use muse_transport::ServerPublicKey;
use muse_wire::Instant;

use super::profiles::{Known, Profiles};
use crate::master::enrolment::{EnrolledHost, Enrolment};

/// A match's connection to the master.
pub(crate) struct MasterLink {
    /// The shipped machine.
    pub(crate) host: EnrolledHost,
    profiles: Profiles,
}

/// The state of a match, for the master.
pub(crate) struct Standing {
    pub(crate) phase: RoundPhase,
    pub(crate) present: Vec<AccountId>,
}

impl MasterLink {
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

    /// Does what is due; returns the match to host when the master has assigned one.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        server: &mut EndpointDriver,
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
                HostEvent::Refused { message, refusal } if message.is_final() => {
                    anyhow::bail!("the master refused this server's {message:?}: {refusal}");
                }
                HostEvent::Refused { message, refusal } => {
                    tracing::warn!(?message, %refusal, "the master refused");
                }
                // Players without a seat are disconnected in each turn of the host, which also asks `has_ended`.
                _ => {}
            }
        }
        Ok(assigned)
    }

    /// Returns what is known of a player; none until the master has answered.
    pub(crate) fn profile(&self, account: AccountId) -> Option<&Known> {
        self.profiles.known(account)
    }

    /// Has the master save that a player reached a checkpoint or found a weapon.
    pub(crate) fn save(&mut self, account: AccountId, checkpoint: u8, owned: u8) {
        if let Some(document) = self.profiles.advance(account, checkpoint, owned) {
            self.host.save_progress(account, GAME, document);
        }
    }

    /// Notes that a player has escaped: the next match starts at the beginning, with the weapons that were found.
    pub(crate) fn start_over(&mut self, account: AccountId) {
        if let Some(document) = self.profiles.start_over(account) {
            self.host.save_progress(account, GAME, document);
        }
    }

    /// Reports the state of the match to the master, at once if it has changed.
    pub(crate) fn tell(&mut self, standing: Standing) {
        let phase = match standing.phase {
            RoundPhase::Waiting => MatchPhase::Connecting,
            RoundPhase::Loading => MatchPhase::Loading,
            _ => MatchPhase::Running,
        };
        self.host
            .refill_seats(standing.phase == RoundPhase::Playing);
        self.host.report(phase, standing.present);
    }

    /// Submits the result: points by account.
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

    /// The match's number.
    pub(crate) fn match_number(&self) -> Option<u64> {
        self.host.plan().map(|plan| plan.match_id.0)
    }
}

/// The name under which the master keeps progress in this game.
const GAME: &str = "biobot";
