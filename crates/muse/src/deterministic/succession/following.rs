//! A guest: notices that the host is gone, becomes the host if it is the heir, and else follows the heir.

use std::collections::VecDeque;

use muse_drivers::relay::{CodeSecret, Link};
use muse_lockstep::{DeterministicGame, Role, Status};
use muse_transport::{Connect, ConnectionId, Endpoint, ServerOptions, ServerPublicKey};
use muse_wire::{Duration, Instant};

use super::hosting::{Hosting, Recovering};
use super::message::{Heir, Ledger, Message, Secret, Ticket};
use super::{Phase, Succession};
use crate::deterministic::participant::{BACK_WITHIN, Way};
use crate::deterministic::{MatchEvent, Participant};

/// A guest's knowledge of its host and the next one.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// The number of hosts before the present one.
    pub(super) term: u32,
    /// Heirs that the host has named, the newest last. Which one it is, the relay says by its lock.
    heirs: VecDeque<Heir>,
    /// The secrets by which this machine is the heir: the relay's and the code's.
    appointment: Option<(Secret, u32)>,
    ledger: Ledger,
    ticket: Option<Ticket>,
    /// The key of the host, if it has succeeded another.
    host: Option<ServerPublicKey>,
    /// Since when the host has been out of reach.
    lost_since: Option<Instant>,
    /// The host has closed the connection: it will not be heard again.
    closed: bool,
    /// Since when this machine has claimed the room.
    muted_since: Option<Instant>,
}

impl Following {
    pub(super) fn is_heir(&self) -> bool {
        let lock = self.appointment.map(|(secret, _)| Link::heir_lock(&secret));
        lock.is_some() && self.heirs.back().map(|heir| heir.lock) == lock
    }

    pub(super) fn is_muted(&self) -> bool {
        self.muted_since.is_some()
    }
}

impl<G: DeterministicGame> Participant<G> {
    /// Tells a host by which key this machine would host, and shows it the ticket of the last one.
    pub(super) fn offer(&mut self, connection: ConnectionId) {
        let here = self.player.as_ref().map(|it| it.way) == Some(Way::Connected(connection));
        let plays = self
            .player
            .as_ref()
            .is_some_and(|it| it.role != Role::Spectator);
        let Some(succession) = self.succession.as_mut().filter(|_| here) else {
            return;
        };
        let key = succession.key.public();
        let key = (succession.willing && plays).then_some(key);
        let ticket = succession.following().and_then(|it| it.ticket);
        succession.say(connection, Message::Offer { key, ticket });
    }

    /// The host says something about its succession.
    pub(super) fn hear_host(&mut self, from: ConnectionId, message: Message) {
        if self.player.as_ref().map(|it| it.way) != Some(Way::Connected(from)) {
            return;
        }
        let following = self.succession.as_mut().and_then(|it| it.following());
        let Some(following) = following else { return };
        match message {
            Message::Ticket(ticket) => following.ticket = Some(ticket),
            Message::Heir(heir) => {
                following.term = heir.term;
                if following.heirs.len() >= HEIRS_MAX {
                    following.heirs.pop_front();
                }
                following.heirs.push_back(heir);
            }
            Message::Appointment { secret, code } => following.appointment = Some((secret, code)),
            Message::Ledger(ledger) => following.ledger = ledger,
            Message::Offer { .. } => {}
        }
    }

    /// The connection to the host has ended; true if somebody else may host the match now. `closed` if the host said so itself.
    pub(crate) fn looks_for_heir(&mut self, now: Instant, closed: bool) -> bool {
        let Some(player) = self.player.as_ref() else {
            return false;
        };
        let over = player.is_over || matches!(player.session.status(), Status::Over(_));
        let following = self.succession.as_mut().and_then(|it| it.following());
        let Some(following) = following.filter(|it| !over && !it.heirs.is_empty()) else {
            return false;
        };
        following.lost_since.get_or_insert(now);
        following.closed |= closed;
        closed
    }

    /// Returns true if this machine itself looks for its host.
    pub(crate) fn finds_its_host(&self) -> bool {
        match self.succession.as_deref().map(|it| &it.phase) {
            Some(Phase::Following(it)) => it.host.is_some() || it.closed,
            _ => false,
        }
    }

    /// Looks after everything that a guest has to do for the succession.
    pub(super) fn mind_following(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        link: &mut Link,
    ) {
        let (Some(succession), Some(player)) = (&mut self.succession, &mut self.player) else {
            return;
        };
        let Some(following) = succession.following().filter(|_| !player.is_over) else {
            return;
        };
        if let (Way::Cut, Some(key)) = (player.way, following.host)
            && !following.closed
        {
            // The handshake goes to whoever has the room; only the holder of the key can answer it.
            let how = Connect::pinned(key);
            if let Ok(connection) = endpoint.connect(now, Link::host_address(), how) {
                player.way = Way::Connecting(connection);
            }
        }
        let running = matches!(
            player.session.status(),
            Status::Running | Status::Waiting { .. }
        );
        let heard = player.session.heard_at().filter(|_| running);
        let silent = heard.is_some_and(|at| now.saturating_since(at) >= HOST_SILENCE_MAX);
        let connected = matches!(player.way, Way::Connected(_));
        if !following.closed && connected && !silent {
            if following.lost_since.take().is_some() {
                following.muted_since = None;
                link.withdraw();
            }
            return;
        }
        if following.heirs.is_empty() || following.host.is_some() && !connected && !following.closed
        {
            return;
        }
        let since = *following.lost_since.get_or_insert(now);
        if following.closed && now.saturating_since(since) >= LOST_AFTER {
            player.is_over = true;
            link.withdraw();
            return self.tell(MatchEvent::Lost);
        }
        match following.appointment.filter(|_| following.is_heir()) {
            Some((secret, _)) if following.muted_since.is_none() => {
                following.muted_since = Some(now);
                link.claim(now, following.term, secret);
            }
            Some(_) => {}
            None => link.ask_who_hosts(now),
        }
    }

    /// The relay says who the host is.
    pub(super) fn hear_of_host(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        link: &mut Link,
        term: u32,
        lock: Secret,
    ) {
        let following = self.succession.as_mut().and_then(|it| it.following());
        let Some(following) = following.filter(|it| term > it.term) else {
            return;
        };
        let heir = following.heirs.iter().rev().find(|heir| heir.lock == lock);
        let Some(mut heir) = heir.copied() else {
            // A host that this machine was never told of: whoever it is cannot be known from the relay's word.
            return;
        };
        link.withdraw();
        heir.term = term - 1;
        let Some(player) = self.player.as_mut().filter(|it| !it.is_over) else {
            return;
        };
        if let Way::Connected(old) | Way::Connecting(old) = player.way {
            endpoint.close(now, old, 0, "another machine hosts the match now");
        }
        player.way = Way::Cut;
        player.nonce = player.nonce.wrapping_add(1);
        let resumes = player.session.resume(now, player.nonce);
        self.begin_following(heir);
        if let Some(player) = self.player.as_mut().filter(|_| resumes) {
            player.back_until = Some(now + BACK_WITHIN);
        } else {
            self.interrupt(now);
        }
    }

    /// Follows the heir of the host that there was.
    pub(super) fn begin_following(&mut self, heir: Heir) {
        let Some(succession) = &mut self.succession else {
            return;
        };
        let ticket = succession.following().and_then(|it| it.ticket);
        succession.phase = Phase::Following(Box::new(Following {
            term: heir.term + 1,
            host: Some(heir.key),
            ticket,
            ..Following::default()
        }));
    }

    /// The room is ours.
    pub(super) fn take_over(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        link: &mut Link,
        term: u32,
    ) {
        let (Some(succession), Some(player)) = (&mut self.succession, &mut self.player) else {
            return;
        };
        let key = succession.key.clone();
        let Some(following) = succession.following().filter(|_| !player.is_over) else {
            return link.leave();
        };
        if let Way::Connected(old) | Way::Connecting(old) = player.way {
            endpoint.close(now, old, 0, "another machine hosts the match now");
        }
        let muted_since = following.muted_since.unwrap_or(now);
        let begins_at = match following.closed {
            true => now,
            false => (muted_since + MUTED_FOR).max(now),
        };
        let code = following
            .appointment
            .map(|(_, code)| code)
            .filter(|code| *code != u32::MAX);
        let ledger = std::mem::take(&mut following.ledger);
        if let Some(code) = code {
            let secret = CodeSecret::new(code.to_le_bytes());
            link.give_key_from_now(now, secret, *key.public().as_bytes());
        }
        endpoint.listen(ServerOptions::new(key));
        player.way = Way::Here;
        player.nonce = player.nonce.wrapping_add(1);
        let resumes = player.session.resume(now, player.nonce);
        player.back_until = None;
        let recovering = Recovering {
            begins_at,
            ends_at: begins_at.max(now + RECOVERY_MAX),
        };
        let hosting = Hosting::inherit(term, ledger, Some(recovering));
        succession.phase = Phase::Hosting(Box::new(hosting));
        if !resumes {
            player.begin_again();
        }
        self.links = Succession::links::<G>(player.config.clone(), resumes);
    }
}

/// Heirs that are remembered: the relay may know one that the host has replaced since.
const HEIRS_MAX: usize = 4;
/// Silence of the host after which others ask the relay about it: two heartbeats of an idle match.
const HOST_SILENCE_MAX: Duration = Duration::from_millis(400);
/// The time that a new host leaves to the one before to notice that nobody hears it: more than `HEIR_SILENCE_MAX`.
const MUTED_FOR: Duration = Duration::from_millis(550);
/// The time that a new host waits for what the others know.
const RECOVERY_MAX: Duration = Duration::from_millis(1_000);
/// The time in which somebody has to host the match after the host has left.
const LOST_AFTER: Duration = Duration::from_secs(10);
