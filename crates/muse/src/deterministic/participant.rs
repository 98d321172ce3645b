//! One machine of a match, over a transport endpoint.

use std::collections::VecDeque;

use muse_lockstep::{
    DeterministicGame, Frame, InputError, MatchConfig, MatchConfigError, Notice, Orderer,
    OverReason, PACKET_BYTES_MAX, Role, Session, SessionEvent, Status, Target,
};
use muse_transport::{CloseReason, ConnectionId, Endpoint, Event};
use muse_wire::{Duration, Instant};

use super::MatchEvent;
use super::links::{Links, OWN_LINK};
use super::succession::Succession;
use crate::session::Applicant;

/// One machine of a match: a player who hosts, a server that only orders, or a guest.
///
/// Give it every event of the endpoint with [`handle_event`](Self::handle_event). Then, and whenever
/// [`poll_timeout`](Self::poll_timeout) has passed, call [`advance`](Self::advance), which runs the frames that are due and queues
/// packets at the endpoint; drive the endpoint after that. [`poll_event`](Self::poll_event) tells what happened. `now` is always
/// the endpoint's.
///
/// ```
/// use muse::deterministic::{Participant, match_channel};
/// use muse::drivers::{ClientDriver, EndpointDriver};
/// use muse::lockstep::{MatchConfig, Role};
/// use muse::{ChannelConfig, Config, Connect, Delivery, Duration, Event, ServerOptions};
/// # use muse::Schema;
/// # use muse::lockstep::{DeterministicGame, Seat, Step};
/// # #[derive(Clone, Default, Schema)]
/// # struct Race {
/// #     metres: [u32; 2],
/// # }
/// # impl DeterministicGame for Race {
/// #     type Input = bool;
/// #     type Event = Seat;
/// #     fn step(&mut self, step: &mut Step<'_, Self>) {
/// #         for (seat, pedal) in step.players() {
/// #             self.metres[seat.index()] += u32::from(*pedal);
/// #         }
/// #     }
/// # }
///
/// // The match on channel 0, the game's own chat on channel 1.
/// let transport = Config::new(7).channel(match_channel()).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let key = muse::new_key()?;
/// let how = Connect::pinned(key.public());
/// let mut server = EndpointDriver::bind("127.0.0.1:0", transport.clone(), ServerOptions::new(key))?;
/// let mut client = ClientDriver::connect(server.local_addr()?, transport, how)?;
/// let config = MatchConfig::rollback(2);
/// let mut host = Participant::host(config.clone(), Race::default(), 0, 1)?;
/// let mut guest = Participant::guest(config, Race::default(), Role::Player, 0, 2, client.connection())?;
/// let (mut buffer, mut chat) = (Vec::new(), Vec::new());
/// while chat.is_empty() || guest.state().is_none_or(|race| race.metres[1] < 10) {
///     server.poll()?;
///     while let Some(event) = server.poll_event(&mut buffer) {
///         let is_packet = host.handle_event(server.now(), &event);
///         if let (false, Event::Message { payload, .. }) = (is_packet, event) {
///             chat = payload.to_vec();
///         }
///     }
///     host.advance(server.now(), server.endpoint_mut(), |_frame| false)?;
///     server.flush()?;
///
///     client.poll()?;
///     while let Some(event) = client.poll_event(&mut buffer) {
///         guest.handle_event(client.now(), &event);
///         if matches!(event, Event::Connected { .. }) {
///             client.send(1, b"hello")?;
///         }
///     }
///     guest.advance(client.now(), client.endpoint_mut(), |_frame| true)?;
///     client.wait(Duration::from_millis(1))?;
/// }
/// assert_eq!(chat, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Participant<G: DeterministicGame> {
    pub(super) channel: u8,
    /// The orderer of the inputs, if it is here.
    pub(super) links: Option<Links>,
    /// The player or spectator, if there is one here.
    pub(super) player: Option<Player<G>>,
    due: Instant,
    advanced_at: Instant,
    events: VecDeque<MatchEvent<G::Event>>,
    packet: Vec<u8>,
    /// The succession of hosts, if the match may have another host.
    #[cfg_attr(
        not(all(feature = "relay", not(target_arch = "wasm32"))),
        expect(dead_code, reason = "there is never one in this build")
    )]
    pub(super) succession: Option<Box<Succession>>,
}

/// A session, and what it takes to begin another one.
#[derive(Debug)]
pub(super) struct Player<G: DeterministicGame> {
    pub(super) session: Session<G>,
    pub(super) config: MatchConfig,
    /// The state that the match begins with.
    first: G,
    /// The state when the player was cut off, to be shown until it is back.
    last: Option<G>,
    pub(super) role: Role,
    pub(super) nonce: u32,
    pub(super) way: Way,
    /// Deadline for replacing a session that was cut off.
    pub(super) back_until: Option<Instant>,
    /// Not before this another session is begun.
    retry_at: Instant,
    pub(super) is_over: bool,
}

/// The way to the orderer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is a part of this machine.
    Here,
    /// A connection that is being made.
    Connecting(ConnectionId),
    /// A connection.
    Connected(ConnectionId),
    /// There is none.
    Cut,
}

impl<G: DeterministicGame> Participant<G> {
    /// Hosts a match that begins with this state: plays, and orders everybody's inputs. `channel` is declared as
    /// [`match_channel`](super::match_channel) says; `nonce` is any number, a new one for each match.
    pub fn host(
        config: MatchConfig,
        game: G,
        channel: u8,
        nonce: u32,
    ) -> Result<Self, MatchConfigError> {
        let links = Links::new(Orderer::new::<G>(config.clone())?);
        let player = Player::new(config, game, Role::Player, nonce, Way::Here)?;
        Ok(Self::new(channel, Some(links), Some(player)))
    }

    /// Orders a match without playing in it. A server needs no state: it does not run the game.
    pub fn server(config: MatchConfig, channel: u8) -> Result<Self, MatchConfigError> {
        let links = Links::new(Orderer::new::<G>(config)?);
        Ok(Self::new(channel, Some(links), None))
    }

    /// Plays or watches a match over a connection that was begun with [`Endpoint::connect`].
    pub fn guest(
        config: MatchConfig,
        game: G,
        role: Role,
        channel: u8,
        nonce: u32,
        connection: ConnectionId,
    ) -> Result<Self, MatchConfigError> {
        let player = Player::new(config, game, role, nonce, Way::Connecting(connection))?;
        Ok(Self::new(channel, None, Some(player)))
    }

    fn new(channel: u8, links: Option<Links>, player: Option<Player<G>>) -> Self {
        Self {
            channel,
            links,
            player,
            due: Instant::ZERO,
            advanced_at: Instant::ZERO,
            events: VecDeque::new(),
            packet: vec![0; PACKET_BYTES_MAX],
            succession: None,
        }
    }

    /// Returns the session, unless this is a server that only orders.
    pub fn session(&self) -> Option<&Session<G>> {
        self.player.as_ref().map(|player| &player.session)
    }

    /// Returns the session, to change its delay.
    pub fn session_mut(&mut self) -> Option<&mut Session<G>> {
        self.player.as_mut().map(|player| &mut player.session)
    }

    /// Returns the state to be shown: with guesses in rollback, and the last one known while the host is out of reach.
    pub fn state(&self) -> Option<&G> {
        let player = self.player.as_ref()?;
        Some(player.last.as_ref().unwrap_or(player.session.state()))
    }

    /// Returns the orderer, if it is on this machine.
    pub fn orderer(&self) -> Option<&Orderer> {
        self.links.as_ref().map(|links| &links.orderer)
    }

    /// Returns the orderer, to end the match.
    pub fn orderer_mut(&mut self) -> Option<&mut Orderer> {
        self.links.as_mut().map(|links| &mut links.orderer)
    }

    /// Returns true if the match is over for this machine.
    pub fn is_over(&self) -> bool {
        match (&self.player, &self.links) {
            (Some(player), _) => player.is_over,
            (None, links) => links
                .as_ref()
                .is_some_and(|links| links.orderer.over().is_some()),
        }
    }

    /// Returns true if a guest has lost its connection and wants another: begin one and call
    /// [`set_connection`](Self::set_connection).
    pub fn wants_connection(&self) -> bool {
        let player = self.player.as_ref();
        player.is_some_and(|player| player.way == Way::Cut && !player.is_over)
            && !self.finds_its_host()
    }

    /// Leaves the match; the orderer is told with the next [`advance`](Self::advance). Where it is on this machine, the match ends
    /// for everybody.
    pub fn leave(&mut self) {
        if self.hand_over() {
            return;
        }
        if let Some(links) = &mut self.links {
            links.orderer.end();
        } else if let Some(player) = &mut self.player {
            player.session.leave();
            player.is_over = true;
        }
    }

    /// Gives a guest another connection, over which it comes back to its seat.
    pub fn set_connection(&mut self, connection: ConnectionId) {
        if let Some(player) = self
            .player
            .as_mut()
            .filter(|player| player.way != Way::Here)
        {
            player.way = Way::Connecting(connection);
        }
    }

    /// Takes in an event of the endpoint. Returns true if it was a packet of the match, which is of no interest to the game.
    pub fn handle_event(&mut self, now: Instant, event: &Event<'_>) -> bool {
        // The host sits down before anybody else can.
        self.exchange_own(now);
        let is_ours = self.take_event(now, event);
        self.note_connection(now, event);
        // A time that has passed stays: what is due must not wait for a quiet moment.
        self.due = self.due.min(self.next_timeout(now));
        is_ours
    }

    fn take_event(&mut self, now: Instant, event: &Event<'_>) -> bool {
        match event {
            Event::Message {
                connection,
                channel,
                payload,
            } if *channel == self.channel => {
                self.handle_packet(now, *connection, payload);
                return true;
            }
            Event::Message {
                connection,
                channel,
                payload,
            } if self.is_succession(*channel) => {
                self.handle_succession(now, *connection, payload);
                return true;
            }
            Event::Connected {
                connection,
                account,
                ..
            } => {
                if let Some(links) = &mut self.links {
                    links.connect(*connection, *account);
                } else if let Some(player) = self.player_of(*connection) {
                    player.way = Way::Connected(*connection);
                }
            }
            Event::Closed { connection, reason } => self.handle_closed(now, *connection, reason),
            Event::Refused { connection, reason } => {
                if let Some(player) = self.player_of(*connection) {
                    player.is_over = true;
                    self.tell(MatchEvent::Refused(reason.clone()));
                }
            }
            Event::Unanswered { connection } => {
                if let Some(player) = self.player_of(*connection) {
                    player.way = Way::Cut;
                    // A player who was in the match before keeps trying until the time is up.
                    if player.back_until.is_none() {
                        player.is_over = true;
                        self.tell(MatchEvent::Lost);
                    }
                }
            }
            Event::Asking { .. } if self.links.is_some() => {
                if let Some(applicant) = Applicant::from_event(event) {
                    self.tell(MatchEvent::Asking(applicant));
                }
            }
            _ => {}
        }
        false
    }

    fn handle_packet(&mut self, now: Instant, connection: ConnectionId, packet: &[u8]) {
        if self.is_paused() {
            return;
        }
        if let Some(links) = &mut self.links {
            let Some(link) = links.link(connection) else {
                return;
            };
            match (&mut links.recovery, &mut self.player) {
                (Some(recovery), Some(player)) => {
                    recovery.handle_packet(now, &mut player.session, link, packet);
                }
                _ => links.orderer.handle_packet(now, link, packet),
            }
        } else if let Some(player) = self.player_of(connection) {
            player.session.handle_packet(now, packet);
        }
    }

    fn handle_closed(&mut self, now: Instant, connection: ConnectionId, reason: &CloseReason) {
        if let Some(links) = &mut self.links {
            links.disconnect(now, connection);
        } else if let Some(player) = self.player_of(connection) {
            player.way = Way::Cut;
            let gone = matches!(reason, CloseReason::ByPeer { .. } | CloseReason::ByUs);
            if self.looks_for_heir(now, gone) {
                return;
            }
            let Some(player) = &mut self.player else {
                return;
            };
            if gone && !std::mem::replace(&mut player.is_over, true) {
                // The host's own word has come before, if it had one.
                let last = player.session.status();
                self.drain_session();
                if !matches!(last, Status::Over(_)) {
                    self.tell(MatchEvent::Over(OverReason::Over));
                }
            } else if !gone {
                self.interrupt(now);
            }
        }
    }

    /// Runs what is due and queues packets at the endpoint. `input` is asked for the player's input once for each frame (rollback) or
    /// turn (lockstep) that takes one, and told the frame in which it will run; one that cannot travel is replaced by the default.
    pub fn advance(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        input: impl FnMut(Frame) -> G::Input,
    ) -> Result<(), InputError> {
        let mut given = Ok(());
        // A host that was suspended hears of itself before it judges who was silent.
        if now.saturating_since(self.advanced_at) > SUSPENDED_AFTER {
            self.exchange_own(now);
            self.send(now, endpoint);
        }
        self.advanced_at = now;
        if self.due <= now {
            let orders = !self.is_paused();
            if let Some(links) = self
                .links
                .as_mut()
                .filter(|it| orders && it.recovery.is_none())
            {
                links.orderer.handle_timeout(now);
            }
            if let Some(player) = &mut self.player {
                given = player.session.handle_timeout_with(now, input);
            }
        }
        self.exchange_own(now);
        self.send(now, endpoint);
        self.drain_session();
        self.drain_notices();
        self.come_back(now);
        self.due = self.next_timeout(now);
        given
    }

    /// Returns when to call [`advance`](Self::advance) next, if nothing arrives before.
    pub fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// Returns the next thing that happened in the match.
    pub fn poll_event(&mut self) -> Option<MatchEvent<G::Event>> {
        self.events.pop_front()
    }

    /// The player, if this is its connection.
    fn player_of(&mut self, connection: ConnectionId) -> Option<&mut Player<G>> {
        let ways = [Way::Connecting(connection), Way::Connected(connection)];
        self.player
            .as_mut()
            .filter(|player| ways.contains(&player.way))
    }

    /// Carries packets between the host's own session and its orderer.
    fn exchange_own(&mut self, now: Instant) {
        if self.is_paused() {
            return;
        }
        let (Some(links), Some(player)) = (&mut self.links, &mut self.player) else {
            return;
        };
        if links.recovery.is_some() {
            return;
        }
        for _ in 0..EXCHANGES_MAX {
            match player.session.poll_packet(now, &mut self.packet) {
                Some((Target::Orderer, len)) => {
                    let packet = &self.packet[..len];
                    links.orderer.handle_packet(now, OWN_LINK, packet);
                }
                // Nobody is connected directly.
                Some((Target::Seat(_), _)) => {}
                None => break,
            }
        }
    }

    fn send(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.is_paused() || self.is_muted() {
            return;
        }
        if let Some(links) = &mut self.links {
            for _ in 0..PACKETS_MAX {
                let next = match (&mut links.recovery, &self.player) {
                    (Some(recovery), Some(player)) => {
                        recovery.poll_packet(now, &player.session, &mut self.packet)
                    }
                    _ => links.orderer.poll_packet(now, &mut self.packet),
                };
                let Some((link, len)) = next else {
                    break;
                };
                let packet = &self.packet[..len];
                if link == OWN_LINK {
                    if let Some(player) = &mut self.player {
                        player.session.handle_packet(now, packet);
                    }
                } else if let Some(connection) = links.connection(link) {
                    // A packet that does not go is lost, as the network might have lost it.
                    let _ = endpoint.send(now, connection, self.channel, packet);
                }
            }
        } else if let Some(player) = &mut self.player
            && let Way::Connected(connection) = player.way
        {
            for _ in 0..PACKETS_MAX {
                let Some((target, len)) = player.session.poll_packet(now, &mut self.packet) else {
                    break;
                };
                if target == Target::Orderer {
                    let packet = &self.packet[..len];
                    let _ = endpoint.send(now, connection, self.channel, packet);
                }
            }
        }
    }

    /// Tells what the session has to say.
    fn drain_session(&mut self) {
        let Some(player) = &mut self.player else {
            return;
        };
        let mut told = Vec::new();
        while let Some(event) = player.session.poll_event() {
            told.extend(match event {
                SessionEvent::Begun(frame) => {
                    (player.back_until, player.last) = (None, None);
                    Some(MatchEvent::Begun(frame))
                }
                SessionEvent::Joined(seat, frame) => Some(MatchEvent::Joined(seat, frame)),
                SessionEvent::Left(seat, frame) => Some(MatchEvent::Left(seat, frame)),
                SessionEvent::Desynced(report) => Some(MatchEvent::Desynced(report)),
                SessionEvent::Mended(frame) => Some(MatchEvent::Mended(frame)),
                SessionEvent::Resumed => {
                    (player.back_until, player.last) = (None, None);
                    Some(MatchEvent::HostChanged)
                }
                SessionEvent::Over(reason) if !player.may_come_back(reason) => {
                    player.is_over = true;
                    Some(MatchEvent::Over(reason))
                }
                _ => None,
            });
        }
        while let Some(event) = player.session.poll_game_event() {
            told.push(event.into());
        }
        for event in told {
            self.tell(event);
        }
    }

    /// Tells what the orderer noticed, where no session tells it.
    fn drain_notices(&mut self) {
        let Some(links) = &mut self.links else { return };
        let mut told = Vec::new();
        while let Some(notice) = links.orderer.poll_notice() {
            told.extend(match notice {
                Notice::Begun => Some(MatchEvent::Begun(Frame(0))),
                Notice::Joined(seat, frame) => Some(MatchEvent::Joined(seat, frame)),
                Notice::Left(seat, frame, _) => Some(MatchEvent::Left(seat, frame)),
                Notice::Desync(seat, frame) => Some(MatchEvent::Differed(seat, frame)),
                Notice::Ended => links.orderer.over().map(MatchEvent::Over),
                _ => None,
            });
        }
        if self.player.is_none() {
            for event in told {
                self.tell(event);
            }
        }
    }

    /// A guest that was dropped, or has heard nothing for too long, begins another session and asks for its seat.
    fn come_back(&mut self, now: Instant) {
        let Some(player) = self.player.as_mut().filter(|player| !player.is_over) else {
            return;
        };
        if player.way != Way::Here && player.is_cut_off() && player.retry_at <= now {
            player.retry_at = now + RETRY_EVERY;
            self.interrupt(now);
        }
        let Some(player) = self.player.as_mut().filter(|player| !player.is_over) else {
            return;
        };
        if player.back_until.is_some_and(|until| until <= now) {
            player.is_over = true;
            self.tell(MatchEvent::Lost);
        }
    }

    /// Begins another session, for which the connection is there or will be.
    pub(super) fn interrupt(&mut self, now: Instant) {
        let Some(player) = &mut self.player else {
            return;
        };
        let was_in = player.session.seat().is_some() || player.role == Role::Spectator;
        let first = player.back_until.is_none();
        let until = *player.back_until.get_or_insert(now + BACK_WITHIN);
        player.begin_again();
        if first && was_in && until > now {
            self.tell(MatchEvent::Interrupted);
        }
    }

    fn next_timeout(&mut self, now: Instant) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        let quiet = self.is_paused() || self.is_muted();
        let recovers = self.links.as_ref().is_some_and(|it| it.recovery.is_some());
        if let Some(player) = &mut self.player {
            let reachable = !matches!(player.way, Way::Cut | Way::Connecting(_)) && !recovers;
            let session = match reachable && !quiet {
                true => player.session.poll_timeout(now),
                // What it has to say waits, but its frames do not.
                false if quiet || player.session.is_resuming() => {
                    Some(player.session.frame_timeout(now))
                }
                false => None,
            };
            let retry = (player.is_cut_off() && player.way != Way::Here).then_some(player.retry_at);
            let back = [retry, player.back_until].map(|at| at.filter(|_| !player.is_over));
            let times = [session, back[0], back[1]];
            next = times.into_iter().flatten().fold(next, Instant::min);
        }
        let orders = !self.is_paused();
        if let Some(links) = self
            .links
            .as_mut()
            .filter(|it| orders && it.recovery.is_none())
        {
            next = links
                .orderer
                .poll_timeout(now)
                .map_or(next, |at| at.min(next));
        }
        next = next.min(self.succession_due(now));
        next.max(now + Duration::from_micros(1))
    }

    pub(super) fn tell(&mut self, event: MatchEvent<G::Event>) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl<G: DeterministicGame> Player<G> {
    fn new(
        config: MatchConfig,
        game: G,
        role: Role,
        nonce: u32,
        way: Way,
    ) -> Result<Self, MatchConfigError> {
        Ok(Self {
            session: Session::new(config.clone(), game.clone(), role, nonce)?,
            config,
            first: game,
            last: None,
            role,
            nonce,
            way,
            back_until: None,
            retry_at: Instant::ZERO,
            is_over: false,
        })
    }

    /// True if the orderer's answer is one that another attempt may change: dropped after a silence, or no seat while the orderer
    /// still waits for the connection that was cut.
    fn may_come_back(&self, reason: OverReason) -> bool {
        let returning = self.back_until.is_some();
        let changes = match reason {
            OverReason::Dropped => true,
            OverReason::Full => returning,
            _ => false,
        };
        changes && self.way != Way::Here
    }

    /// True if the session has ended in a way that a new one may repair.
    fn is_cut_off(&self) -> bool {
        match self.session.status() {
            Status::Over(reason) => self.may_come_back(reason),
            Status::Lost => true,
            _ => false,
        }
    }

    /// Replaces the session by one that asks for the same seat.
    pub(super) fn begin_again(&mut self) {
        if let (Some(seat), false) = (self.session.seat(), self.role == Role::Spectator) {
            self.role = Role::PlayerAt(seat);
        }
        if self.last.is_none() && self.session.frame() > Frame(0) {
            self.last = Some(self.session.state().clone());
        }
        self.nonce = self.nonce.wrapping_add(1);
        let (config, first) = (self.config.clone(), self.first.clone());
        self.session = Session::new(config, first, self.role, self.nonce)
            .expect("a session by the same settings was made before");
    }
}

/// The time for which a guest that was cut off tries to come back.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(30);
/// Time between two attempts to come back.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// A machine that does nothing for this long was suspended.
const SUSPENDED_AFTER: Duration = Duration::from_secs(1);
/// Packets from a host's own session in one go.
const EXCHANGES_MAX: usize = 64;
/// Packets that one call queues at the endpoint.
const PACKETS_MAX: usize = 4_096;
/// Events that wait to be polled; then the oldest are lost.
const EVENTS_MAX: usize = 4_096;
