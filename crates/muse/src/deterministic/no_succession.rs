//! The place of succession in a build without the feature `relay`: a match ends with its host.

use muse_lockstep::DeterministicGame;
use muse_transport::{ConnectionId, Event};
use muse_wire::Instant;

use super::Participant;

/// A succession that cannot exist.
#[derive(Debug)]
pub(super) enum Succession {}

impl<G: DeterministicGame> Participant<G> {
    pub(super) fn is_succession(&self, _: u8) -> bool {
        false
    }

    pub(super) fn handle_succession(&mut self, _: Instant, _: ConnectionId, _: &[u8]) {}

    pub(super) fn note_connection(&mut self, _: Instant, _: &Event<'_>) {}

    pub(super) fn is_paused(&self) -> bool {
        false
    }

    pub(super) fn is_muted(&self) -> bool {
        false
    }

    pub(super) fn finds_its_host(&self) -> bool {
        false
    }

    pub(super) fn looks_for_heir(&mut self, _: Instant, _: bool) -> bool {
        false
    }

    pub(super) fn hand_over(&mut self) -> bool {
        false
    }

    pub(super) fn succession_due(&self, _: Instant) -> Instant {
        Instant::FAR_FUTURE
    }
}
