//! A host: names its heir, pauses when it may have been succeeded, and puts the match together when it has succeeded another.

use std::collections::BTreeMap;

use muse_drivers::relay::Link;
use muse_lockstep::{DeterministicGame, Orderer, Seat, Status};
use muse_transport::{ConnectionId, Endpoint, ServerPublicKey};
use muse_wire::{Duration, Instant};

use super::message::{Heir, Ledger, Message, Secret, TICKETS_MAX, Ticket};
use super::{Phase, Succession};
use crate::deterministic::links::{Links, OWN_LINK};
use crate::deterministic::participant::Way;
use crate::deterministic::{MatchEvent, Participant};

/// A host's knowledge of its guests.
#[derive(Debug, Default)]
pub(super) struct Hosting {
    /// The number of hosts before.
    pub(super) term: u32,
    guests: BTreeMap<ConnectionId, Guest>,
    heir: Option<Named>,
    /// The last ledger that the heir was sent.
    ledger: Option<Ledger>,
    look_at: Option<Instant>,
    /// Since when nobody has said that this machine is the host.
    pub(super) paused_since: Option<Instant>,
    leaves: bool,
    /// The match is being put together after the host before.
    recovering: Option<Recovering>,
    /// The ledger of the host before, for guests that come back later.
    inherited: Ledger,
}

#[derive(Debug)]
struct Guest {
    since: Instant,
    /// Its key, if it would host.
    key: Option<ServerPublicKey>,
    /// The number in its ticket.
    secret: Secret,
}

/// The heir.
#[derive(Debug)]
struct Named {
    connection: ConnectionId,
    secret: Secret,
    heir: Heir,
    /// The guests were told.
    since: Instant,
    /// The relay was told, too.
    known: bool,
}

#[derive(Debug)]
pub(super) struct Recovering {
    /// Not before the host before has certainly stopped.
    pub(super) begins_at: Instant,
    pub(super) ends_at: Instant,
}

impl Hosting {
    /// A host that has succeeded another one.
    pub(super) fn inherit(term: u32, inherited: Ledger, recovering: Option<Recovering>) -> Self {
        Self {
            term,
            inherited,
            recovering,
            ..Self::default()
        }
    }

    pub(super) fn forget(&mut self, now: Instant, connection: ConnectionId) {
        self.guests.remove(&connection);
        if self
            .heir
            .as_ref()
            .is_some_and(|heir| heir.connection == connection)
        {
            self.look_at = Some(now);
        }
    }

    /// The key of the heir whose lock the relay may know.
    pub(super) fn heir(&self) -> Option<Heir> {
        self.heir.as_ref().map(|named| named.heir)
    }
}

impl<G: DeterministicGame> Participant<G> {
    /// A guest offers to be the heir, or comes back after a change of hosts.
    pub(super) fn hear_guest(&mut self, now: Instant, from: ConnectionId, message: Message) {
        let (Some(succession), Some(links)) = (&mut self.succession, &mut self.links) else {
            return;
        };
        let (Message::Offer { key, ticket }, Some(link)) = (message, links.link(from)) else {
            return;
        };
        let secret = succession.draw();
        let Some(hosting) = succession.hosting() else {
            return;
        };
        if hosting.guests.len() >= TICKETS_MAX && !hosting.guests.contains_key(&from) {
            return;
        }
        let known = ticket.filter(|ticket| hosting.inherited.tickets.contains(ticket));
        let guest = hosting.guests.entry(from).or_insert(Guest {
            since: now,
            key: None,
            secret,
        });
        guest.key = key;
        let heir = hosting.heir.as_ref().map(|named| named.heir);
        if let Some(Ticket { seat, .. }) = known {
            match &mut links.recovery {
                Some(recovery) => recovery.vouch(link, seat),
                None => links.orderer.vouch(link, seat),
            }
        }
        hosting.look_at = hosting.look_at.or(Some(now));
        if let Some(heir) = heir {
            succession.say(from, Message::Heir(heir));
        }
    }

    /// Looks after everything that a host has to do for its succession.
    pub(super) fn mind_hosting(&mut self, now: Instant, endpoint: &mut Endpoint, link: &mut Link) {
        let Some(hosting) = self.succession.as_mut().and_then(|it| it.hosting()) else {
            return;
        };
        if hosting.leaves {
            let connections: Vec<ConnectionId> = endpoint.connections().collect();
            for connection in connections {
                endpoint.close(now, connection, 0, "the host leaves");
            }
            return link.leave();
        }
        self.pause_or_go_on(now, link);
        self.finish_recovery(now);
        let Some(hosting) = self.succession.as_mut().and_then(|it| it.hosting()) else {
            return;
        };
        if hosting.look_at.is_some_and(|at| at <= now) && hosting.recovering.is_none() {
            hosting.look_at = Some(now + LOOK_EVERY);
            self.choose_heir(now, link);
            self.hand_on();
        }
        self.tell_relay(now, link);
    }

    /// Stops when neither the relay nor the heir says that this machine is the host: the heir may have the room then.
    fn pause_or_go_on(&mut self, now: Instant, link: &Link) {
        let (Some(succession), Some(links)) = (&mut self.succession, &mut self.links) else {
            return;
        };
        let Some(hosting) = succession.hosting() else {
            return;
        };
        let heard = |named: &Named| {
            let seat = links
                .link(named.connection)
                .and_then(|it| links.orderer.seat_of(it));
            let lag = seat.and_then(|seat| links.orderer.lag(now, seat));
            lag.is_some_and(|(_, silence)| silence < HEIR_SILENCE_MAX)
        };
        let named = hosting.heir.as_ref().filter(|named| named.known);
        let sure = named.is_none() || link.is_host_for_sure(now) || named.is_some_and(heard);
        match (sure, hosting.paused_since) {
            (false, None) => hosting.paused_since = Some(now),
            (true, Some(_)) => {
                hosting.paused_since = None;
                links.orderer.excuse_silence(now);
                let status = self.player.as_ref().map(|it| it.session.status());
                if status == Some(Status::Lost) {
                    self.give_up_hosting();
                }
            }
            (false, Some(since)) if now.saturating_since(since) >= PAUSE_MAX => {
                self.give_up_hosting();
            }
            _ => {}
        }
    }

    /// Nobody has answered for too long.
    fn give_up_hosting(&mut self) {
        if let Some(player) = &mut self.player
            && !std::mem::replace(&mut player.is_over, true)
        {
            self.tell(MatchEvent::Lost);
        }
    }

    /// Goes on with the match when all who are left have come, or too much time has passed.
    fn finish_recovery(&mut self, now: Instant) {
        let (Some(succession), Some(links)) = (&mut self.succession, &mut self.links) else {
            return;
        };
        let (Some(hosting), Some(player)) = (succession.hosting(), &mut self.player) else {
            return;
        };
        let gone: Vec<Seat> = hosting.inherited.host.into_iter().collect();
        let complete = |it: &muse_lockstep::Recovery| it.is_complete(&player.session, &gone);
        let due = hosting.recovering.as_ref().is_some_and(|it| {
            let all = links.recovery.as_ref().is_none_or(complete);
            it.begins_at <= now && (it.ends_at <= now || all)
        });
        if !due {
            return;
        }
        hosting.recovering = None;
        hosting.look_at = Some(now);
        if let Some(recovery) = links.recovery.take() {
            links.orderer = recovery.finish(now, &player.session, OWN_LINK, &gone);
        }
        for (seat, account) in hosting.inherited.accounts.iter().enumerate() {
            links.orderer.set_owner(Seat(seat as u8), *account);
        }
    }

    /// Chooses the heir: of the players who would host, one of those near by, and of these the one who has been there longest. It stays the heir while it is there.
    fn choose_heir(&mut self, now: Instant, link: &mut Link) {
        let (Some(succession), Some(links)) = (&mut self.succession, &self.links) else {
            return;
        };
        let secret = succession.draw();
        let Some(hosting) = succession.hosting() else {
            return;
        };
        let near = |connection: &ConnectionId| {
            let player = links
                .link(*connection)
                .and_then(|it| links.orderer.seat_of(it));
            let rtt = links.orderer.lag(now, player?)?.0;
            Some(rtt.as_micros() / NEAR.as_micros())
        };
        if let Some(named) = &hosting.heir
            && hosting.guests.contains_key(&named.connection)
        {
            return;
        }
        if hosting.heir.take().is_some() {
            link.set_heir(now, None);
        }
        hosting.ledger = None;
        let candidates = hosting.guests.iter();
        let candidates = candidates.filter_map(|(connection, guest)| {
            Some((near(connection)?, guest.since, *connection, guest.key?))
        });
        let nearest =
            candidates.min_by_key(|(near, since, connection, _)| (*near, *since, *connection));
        let Some((_, _, connection, key)) = nearest else {
            return;
        };
        let heir = Heir {
            term: hosting.term,
            lock: Link::heir_lock(&secret),
            key,
        };
        hosting.heir = Some(Named {
            connection,
            secret,
            heir,
            since: now,
            known: false,
        });
        let guests: Vec<ConnectionId> = hosting.guests.keys().copied().collect();
        for guest in guests {
            succession.say(guest, Message::Heir(heir));
        }
        let code = link.short_code().map(|code| code.secret().to_bytes());
        let code = code.map_or(u32::MAX, u32::from_le_bytes);
        succession.say(connection, Message::Appointment { secret, code });
    }

    /// Hands on to the heir what only the host knows, when that has changed, and to each guest its ticket.
    fn hand_on(&mut self) {
        let (Some(succession), Some(links)) = (&mut self.succession, &self.links) else {
            return;
        };
        let Phase::Hosting(hosting) = &succession.phase else {
            return;
        };
        let Some(named) = &hosting.heir else { return };
        let tickets = hosting.guests.iter().map(|(connection, guest)| {
            let seat = links
                .link(*connection)
                .and_then(|it| links.orderer.seat_of(it));
            let secret = guest.secret;
            (*connection, Ticket { seat, secret })
        });
        let tickets: Vec<(ConnectionId, Ticket)> = tickets.collect();
        let seats = self.player.as_ref().map_or(0, |it| it.config.seats());
        let accounts = (0..seats).map(|seat| links.orderer.owner(Seat(seat as u8)));
        let ledger = Ledger {
            host: links.orderer.seat_of(OWN_LINK),
            accounts: accounts.collect(),
            tickets: tickets.iter().map(|(_, ticket)| *ticket).collect(),
        };
        if hosting.ledger.as_ref() == Some(&ledger) {
            return;
        }
        let heir = named.connection;
        let known = hosting.ledger.as_ref().map_or(&[][..], |it| &it.tickets);
        let fresh: Vec<_> = tickets
            .iter()
            .filter(|(_, it)| !known.contains(it))
            .copied()
            .collect();
        succession.say(heir, Message::Ledger(ledger.clone()));
        for (guest, ticket) in fresh {
            succession.say(guest, Message::Ticket(ticket));
        }
        if let Some(hosting) = succession.hosting() {
            hosting.ledger = Some(ledger);
        }
    }

    /// Tells the relay the heir, once all guests know it.
    fn tell_relay(&mut self, now: Instant, link: &mut Link) {
        let Some(hosting) = self.succession.as_mut().and_then(|it| it.hosting()) else {
            return;
        };
        if let Some(named) = &mut hosting.heir
            && !named.known
            && now.saturating_since(named.since) >= TOLD_WITHIN
        {
            named.known = true;
            link.set_heir(now, Some(named.secret));
        }
    }

    /// Leaves the match to the heir. False if there is none.
    pub(crate) fn hand_over(&mut self) -> bool {
        let Some(hosting) = self.succession.as_mut().and_then(|it| it.hosting()) else {
            return false;
        };
        let known = hosting.heir.as_ref().is_some_and(|named| named.known);
        if let Some(player) = self.player.as_mut().filter(|_| known) {
            hosting.leaves = true;
            player.is_over = true;
        }
        known
    }

    /// Another host has succeeded this one, which comes back as its guest.
    pub(super) fn give_way(&mut self, now: Instant, endpoint: &mut Endpoint, link: &mut Link) {
        let Some(heir) = self.succession.as_mut().and_then(|it| it.hosting()?.heir()) else {
            return;
        };
        let connections: Vec<ConnectionId> = endpoint.connections().collect();
        for connection in connections {
            endpoint.close(now, connection, 0, "another machine hosts the match now");
        }
        self.links = None;
        link.follow(now);
        if let Some(player) = &mut self.player {
            player.way = Way::Cut;
        }
        self.begin_following(heir);
        self.interrupt(now);
    }
}

impl Succession {
    /// The orderer of a host that has just succeeded another one: the match may still be under way.
    pub(super) fn links<G: DeterministicGame>(
        config: muse_lockstep::MatchConfig,
        recovers: bool,
    ) -> Option<Links> {
        let mut links = Links::new(Orderer::new::<G>(config).ok()?);
        links.recovery = recovers.then(muse_lockstep::Recovery::default);
        Some(links)
    }
}

/// The interval at which the heir is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time in which the guests hear of an heir, before the relay does.
const TOLD_WITHIN: Duration = Duration::from_millis(750);
/// Round trips that differ by less count as the same.
const NEAR: Duration = Duration::from_millis(50);
/// Silence of the heir after which it may have asked for the room.
const HEIR_SILENCE_MAX: Duration = Duration::from_millis(400);
/// The time after which a host that is cut off gives up.
const PAUSE_MAX: Duration = Duration::from_secs(20);
