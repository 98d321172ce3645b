//! One connection of a game server: what it says, and what of it is refused.

use std::sync::Arc;

use muse_master_client::messages::{
    FromServer, MatchResult, Phase, Report, ServerMessage, ServerRefusal, ToServer, decode,
};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_wire::{Duration, Instant};

use super::{count_refusal, profiles};
use crate::bus::Note;
use crate::clock;
use crate::hosts::{HostRights, Registration, Seats};
use crate::shared::Shared;
use crate::store::StoreError;

/// A game server that has registered over this connection.
pub(super) struct Host {
    server: ServerId,
    address: String,
    rights: HostRights,
    /// True if its match is over, so that it gets no other.
    is_over: bool,
    /// True once the fleet knows of its match, false once it knows that it is there, none before.
    linked: Option<bool>,
    /// The time when the store last heard of it.
    seen: Instant,
    refusals: u32,
}

/// The answer to a game server.
pub(super) enum Said {
    /// Send this and go on.
    Answer(ToServer),
    /// Send this and close the connection.
    Last(ToServer),
    /// Close it: what was sent is no message.
    Nonsense,
}

/// The reason why a message has no effect.
enum Failed {
    Refused(ServerRefusal),
    /// The store is away; the message comes again.
    Later(StoreError),
}

impl From<ServerRefusal> for Failed {
    fn from(refusal: ServerRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Later(error)
    }
}

impl Host {
    /// Takes the first message; none if it is something else, or the store is away.
    pub(super) async fn register(
        shared: &Shared,
        server: ServerId,
        text: &str,
    ) -> Option<Result<Self, ServerRefusal>> {
        let FromServer::Register {
            address,
            public_key,
            claim,
        } = read(server, text)?
        else {
            tracing::warn!(%server, "a game server does not register");
            return None;
        };
        let mut rights = HostRights::default();
        if let Some(claim) = claim {
            if !shared.keys.check_claim(server, &claim) {
                let match_id = claim.match_id;
                return Some(Err(ServerRefusal::OtherMatch { match_id }));
            }
            rights.grant(claim.match_id);
        }
        let seen = clock::now();
        let place = address.clone();
        let registered = shared
            .store
            .register_server(server, place, public_key, seen)
            .await;
        let is_over = match registered.ok()? {
            Registration::Registered => false,
            Registration::Over => true,
            Registration::OtherKey => return Some(Err(ServerRefusal::OtherKey)),
        };
        Some(Ok(Self {
            server,
            address,
            rights,
            is_over,
            linked: None,
            seen,
            refusals: 0,
        }))
    }

    /// Notes what a master tells the server over this connection.
    pub(super) fn handle_told(&mut self, message: &ToServer) {
        if let ToServer::Assign(assignment) = message {
            self.rights.grant(assignment.match_id);
        }
    }

    /// Takes a message.
    pub(super) async fn handle(&mut self, shared: &Arc<Shared>, text: &str) -> Said {
        let Some(message) = read(self.server, text) else {
            return Said::Nonsense;
        };
        let (kind, done) = match message {
            FromServer::Register { .. } => return Said::Nonsense,
            FromServer::Report(report) => {
                (ServerMessage::Report, self.report(shared, report).await)
            }
            FromServer::Result(result) => {
                (ServerMessage::Result, self.result(shared, result).await)
            }
            FromServer::Profile { account, game } => {
                let answer = match self.check_player(shared, account).await {
                    Ok(()) => Ok(profiles::load(shared, account, &game).await),
                    Err(failed) => Err(failed),
                };
                (ServerMessage::Profile, answer)
            }
            FromServer::Progress {
                account,
                game,
                number,
                document,
            } => {
                let answer = match self.check_player(shared, account).await {
                    Ok(()) => Ok(profiles::save(shared, account, &game, number, &document).await),
                    Err(failed) => Err(failed),
                };
                (ServerMessage::Progress, answer)
            }
        };
        match done {
            Ok(answer) => Said::Answer(answer),
            Err(Failed::Later(error)) => {
                tracing::warn!(server = %self.server, %error, "a game server is heard again later");
                Said::Answer(ToServer::KeepAlive)
            }
            Err(Failed::Refused(refusal)) => self.refuse(kind, refusal),
        }
    }

    fn refuse(&mut self, message: ServerMessage, refusal: ServerRefusal) -> Said {
        count_refusal(self.server, message, &refusal);
        self.refusals += 1;
        let refused = ToServer::Refused { message, refusal };
        match message.is_final() || self.refusals >= REFUSALS_MAX {
            true => Said::Last(refused),
            false => Said::Answer(refused),
        }
    }

    async fn report(&mut self, shared: &Arc<Shared>, report: Report) -> Result<ToServer, Failed> {
        match report.match_id {
            Some(match_id) => self.check_match(shared, match_id).await?,
            None if self.is_over => return Err(ServerRefusal::NoMatch.into()),
            None => {}
        }
        // It counts as there when it has said both where it is and whether it is free.
        self.link(
            shared,
            report.match_id.is_some() || report.phase != Phase::Ready,
        );
        self.stay_known(shared).await;
        shared.bus.publish(Note::Report(self.server, report));
        Ok(ToServer::KeepAlive)
    }

    async fn result(
        &mut self,
        shared: &Arc<Shared>,
        result: MatchResult,
    ) -> Result<ToServer, Failed> {
        let match_id = result.match_id;
        self.check_match(shared, match_id).await?;
        // A match that is over is confirmed and not applied again.
        if let Some(found) = shared.store.held(self.server, match_id).await? {
            let seats = Seats {
                players: &found.players,
                left: &found.left,
            };
            if let Err(refusal) = seats.check_result(match_id, &result) {
                let refused = Note::ResultRefused(self.server, match_id);
                shared.bus.publish(refused);
                return Err(refusal.into());
            }
        }
        self.link(shared, true);
        shared.bus.publish(Note::Result(self.server, result));
        Ok(ToServer::KeepAlive)
    }

    /// Refuses what is said of any match but the one that a master gave to this server.
    async fn check_match(&mut self, shared: &Shared, match_id: MatchId) -> Result<(), Failed> {
        if self.rights.check_match(match_id).is_err() {
            let stored = shared.store.held(self.server, match_id).await?;
            self.rights.handle_stored(stored.as_ref());
        }
        Ok(self.rights.check_match(match_id)?)
    }

    /// Refuses what is asked or said of anybody but the players of this server's match, while it lasts.
    async fn check_player(&mut self, shared: &Shared, account: AccountId) -> Result<(), Failed> {
        let match_id = self.rights.match_id().ok_or(ServerRefusal::NoMatch)?;
        let found = shared.store.held(self.server, match_id).await?;
        let found = found.ok_or(ServerRefusal::NoMatch)?;
        let seats = Seats {
            players: &found.players,
            left: &found.left,
        };
        let seated_in = match found.left.contains(&account) {
            true => shared.store.standing(account).await?.match_id,
            false => None,
        };
        Ok(seats.check_player(account, seated_in)?)
    }

    fn link(&mut self, shared: &Shared, busy: bool) {
        if self.linked < Some(busy) {
            self.linked = Some(busy);
            let fleet = &shared.fleet;
            fleet.handle_linked(self.server, &self.address, busy);
        }
    }

    /// Tells the store from time to time that the server is there: one that was not seen for a day is forgotten.
    async fn stay_known(&mut self, shared: &Shared) {
        let now = clock::now();
        if now < self.seen + SEEN_EVERY {
            return;
        }
        self.seen = now;
        if let Err(error) = shared.store.server_seen(self.server, now).await {
            tracing::warn!(server = %self.server, %error, "a game server is not seen");
        }
    }
}

fn read(server: ServerId, text: &str) -> Option<FromServer> {
    decode(text)
        .inspect_err(|error| tracing::warn!(%server, %error, "a game server speaks nonsense"))
        .ok()
}

/// Refusals after which a connection is closed.
const REFUSALS_MAX: u32 = 16;
/// Time between two notes in the store that a server is there.
const SEEN_EVERY: Duration = Duration::from_secs(3_600);
