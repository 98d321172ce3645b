//! A server of a game that a master starts: one match, from the assignment to the result.

use std::collections::BTreeMap;
use std::io;

use muse_master_client::AccountId;
use muse_master_client::messages::Phase;
use muse_netcode::ClientId;
use muse_netcode::prediction::Game;
use muse_schema::State;
use muse_wire::{Duration, Instant};

use super::{HostEvent, HostedMatch, MatchHost, MatchHostConfig, MatchOutcome, MatchPlan};
use crate::session::ServerEvent;
use crate::{Error, GameServer, Protocol, Result};

/// The master's side of a [`GameServer`].
pub(crate) struct Hosting {
    host: MatchHost,
    phase: Phase,
    /// When the players must be there.
    until: Option<Instant>,
    /// Seats of players who are gone and may come back.
    kept: BTreeMap<AccountId, Instant>,
    /// The clients with a seat that are connected.
    accounts: BTreeMap<ClientId, AccountId>,
    /// The clients that had a seat and are gone, whose players may still be in the world.
    gone: BTreeMap<ClientId, AccountId>,
}

impl<G: Game> GameServer<G>
where
    G::Player: State,
{
    /// Serves the match that a master gives to this program. Master, credentials and port come from the environment that the master sets (see
    /// [`MatchHostConfig::from_environment`]).
    ///
    /// [`ServerEvent::MatchAssigned`] says what is to be played, [`ServerEvent::MatchStarted`] that everybody is there. Players without a seat are
    /// disconnected, a lost player's seat is kept for ten seconds, and a match whose players do not come is cancelled. Hand in the result by
    /// [`finish`](Self::finish), and end the program when [`has_ended`](Self::has_ended).
    pub fn hosted(rules: G) -> Result<Self> {
        Self::hosted_with(Protocol::default(), rules)
    }

    /// As [`hosted`](Self::hosted), with messages and kinds of entities besides.
    pub fn hosted_with(protocol: Protocol, rules: G) -> Result<Self> {
        let Some(config) = MatchHostConfig::from_environment()? else {
            let id = protocol.config().protocol_id();
            let message = format!(
                "no master has started this program: run `muse master --protocol-id {id} --game PROGRAM`"
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, message).into());
        };
        let (listen, public) = config.listen()?;
        let mut server = Self::listen_with(listen, protocol, rules)?;
        let host = config.start(server.now(), &public)?;
        server.hosting = Some(Box::new(Hosting {
            host,
            phase: Phase::Ready,
            until: None,
            kept: BTreeMap::new(),
            accounts: BTreeMap::new(),
            gone: BTreeMap::new(),
        }));
        Ok(server)
    }

    /// Returns the match that the master gave to this server; none without one.
    pub fn plan(&self) -> Option<&MatchPlan> {
        self.hosting.as_ref().and_then(|it| it.host.plan())
    }

    /// Returns the match itself: to ask for a player's saved progress by [`ask_profile`](HostedMatch::ask_profile), which
    /// [`ServerEvent::Profile`] answers, and to keep it by [`save_progress`](HostedMatch::save_progress), before the result is handed in. `None` without a
    /// master.
    pub fn hosted_match(&mut self) -> Option<&mut HostedMatch> {
        Some(&mut self.hosting.as_mut()?.host)
    }

    /// Returns the account of a client, also of one that had a seat in the match and is gone: its player may still be in the world, and its points
    /// count. `None` if it never had one.
    pub fn account(&self, client: ClientId) -> Option<AccountId> {
        let connected = self.info(client).map(|info| AccountId(info.account));
        let gone = || self.hosting.as_ref()?.gone.get(&client).copied();
        connected.or_else(gone)
    }

    /// Hands in the result of the match, once; it is repeated until the master has stored it. If the master refuses it, [`tick`](Self::tick) returns
    /// [`Error::MatchRefused`] with the reason.
    pub fn finish(&mut self, outcome: &MatchOutcome) {
        if let Some(hosting) = &mut self.hosting {
            hosting.host.finish(outcome);
        }
    }

    /// From now on a seat that was given up while the match runs is given to a player from the queue, who joins late; or no longer. It is not
    /// at first, because not every match can be joined late.
    pub fn refill_seats(&mut self, refills: bool) {
        if let Some(hosting) = &mut self.hosting {
            hosting.host.refill_seats(refills);
        }
    }

    /// Takes no match any more: a server without one ends, one with a match plays it to its end.
    pub fn drain(&mut self) {
        if let Some(hosting) = &mut self.hosting {
            hosting.host.drain();
        }
    }

    /// Returns true when the program may end: the result is stored, or there is nothing to play.
    pub fn has_ended(&self) -> bool {
        self.hosting.as_ref().is_some_and(|it| it.host.has_ended())
    }

    /// Does what the master wants and tells it how the match goes.
    pub(crate) fn turn_host(
        &mut self,
        handle: &mut impl FnMut(&mut Self, ServerEvent<'_, G::Event>) -> Result<()>,
    ) -> Result<()> {
        let now = self.now();
        loop {
            let (link, _) = self.server.connections();
            let Some(hosting) = &mut self.hosting else {
                return Ok(());
            };
            match hosting.host.turn(now, link.endpoint_mut())? {
                None => break,
                Some(HostEvent::Assigned(plan)) => {
                    hosting.phase = Phase::Connecting;
                    hosting.until = Some(now + Duration::from_millis(plan.connect_ms));
                    handle(self, ServerEvent::MatchAssigned(plan))?;
                }
                Some(HostEvent::SeatClosed(account)) => self.disconnect_account(account),
                Some(HostEvent::Refused { message, refusal }) if message.is_final() => {
                    return Err(Error::MatchRefused(refusal));
                }
                Some(HostEvent::Refused { message, refusal }) => {
                    handle(self, ServerEvent::MasterRefused(message, refusal))?;
                }
                Some(HostEvent::Profile(profile)) => handle(self, ServerEvent::Profile(profile))?,
                // A player without a seat is disconnected on arrival, and `has_ended` says the other.
                Some(HostEvent::SeatOpened(_) | HostEvent::Ended) => {}
            }
        }
        if self.advance_match(now) {
            handle(self, ServerEvent::MatchStarted)?;
        }
        Ok(())
    }

    /// Returns true if the game is to hear of an event: it may not be of a client without a seat.
    pub(crate) fn is_for_game(&mut self, event: &ServerEvent<'_, G::Event>) -> bool {
        match event {
            ServerEvent::Joined(client) => self.has_seat_for(*client),
            ServerEvent::Left(client, _) => self.keep_seat(*client),
            _ => true,
        }
    }

    /// Returns true if the game is to hear of a client that connected: it has a seat, or there is no master to say otherwise.
    fn has_seat_for(&mut self, client: ClientId) -> bool {
        let account = self.account(client).unwrap_or_default();
        let Some(hosting) = &mut self.hosting else {
            return true;
        };
        if hosting.host.has_seat(account) {
            hosting.kept.remove(&account);
            hosting.gone.remove(&client);
            hosting.accounts.insert(client, account);
            return true;
        }
        self.disconnect(client, "no seat in this match");
        false
    }

    /// Returns true if the game has heard of a client that left, and keeps its seat for a while.
    fn keep_seat(&mut self, client: ClientId) -> bool {
        let now = self.now();
        let Some(hosting) = &mut self.hosting else {
            return true;
        };
        let Some(account) = hosting.accounts.remove(&client) else {
            return false;
        };
        hosting.kept.insert(account, now + SEAT_KEPT);
        hosting.gone.insert(client, account);
        true
    }

    /// Moves the match on and reports it. Returns true when it starts.
    fn advance_match(&mut self, now: Instant) -> bool {
        let Some(hosting) = &mut self.hosting else {
            return false;
        };
        let present: Vec<AccountId> = hosting.accounts.values().copied().collect();
        let host = &mut hosting.host;
        if hosting.phase == Phase::Running {
            hosting.kept.retain(|account, until| {
                let is_over = *until <= now;
                if is_over {
                    host.give_up_seat(*account);
                }
                !is_over
            });
        }
        let is_complete = host.seated().all(|account| present.contains(&account));
        let starts = hosting.phase == Phase::Connecting && is_complete;
        if starts {
            // Nothing is to be loaded that the master would have to wait for.
            host.report(Phase::Loading, present.clone());
            hosting.phase = Phase::Running;
        } else if hosting.phase == Phase::Connecting && hosting.until.is_some_and(|at| at <= now) {
            host.finish(&MatchOutcome::cancelled());
        }
        host.report(hosting.phase, present);
        starts
    }

    fn disconnect_account(&mut self, account: AccountId) {
        let clients: Vec<ClientId> = self.clients().collect();
        for client in clients {
            if self.account(client) == Some(account) {
                self.disconnect(client, "the seat was given up");
            }
        }
    }
}

/// The time for which a seat is kept for a player whose connection ended.
const SEAT_KEPT: Duration = Duration::from_secs(10);
