//! A match over UDP for a game loop.

use muse_drivers::{ClientDriver, EndpointDriver};
use muse_lockstep::{DeterministicGame, Frame, MatchConfig, Orderer, Role, Seat, Session};
use muse_transport::Endpoint;
use muse_wire::{Duration, Instant};

use super::{Applicant, MATCH_CHANNEL, MatchEvent, Participant, transport_config};
use crate::place::Open;
use crate::{Join, Listen, Result, ServerAddress};

/// A machine of a deterministic match, in lockstep or with rollback. Call [`tick`](Self::tick) in a loop.
///
/// One machine [hosts](Self::host), or a server [serves](Self::serve); the others [join](Self::join). Everything is encrypted, and a
/// guest talks to the holder of the key in the host's address or to nobody. A guest that is cut off comes back to its seat by itself,
/// for half a minute.
///
/// ```
/// use muse::prelude::*;
///
/// #[derive(Clone, Default, Schema)]
/// struct Race {
///     metres: [u32; 2],
/// }
///
/// impl DeterministicGame for Race {
///     type Input = bool;
///     type Event = Seat;
///
///     fn step(&mut self, step: &mut Step<'_, Self>) {
///         for (seat, pedal) in step.players() {
///             self.metres[seat.index()] += u32::from(*pedal);
///             if self.metres[seat.index()] == 10 {
///                 step.emit(seat);
///             }
///         }
///     }
/// }
///
/// let config = MatchConfig::rollback(2);
/// let listen = Listen::at("127.0.0.1:0").key(muse::new_key()?); // or just "[::]:7000", with a key that is kept in a file
/// let mut host = DeterministicSession::host(listen, config.clone(), Race::default())?;
/// let address = host.address().expect("a host has one").to_string(); // muse://127.0.0.1:40000/KEY
/// let mut guest = DeterministicSession::join(&address, config, Race::default())?;
/// let mut winner = None;
/// while winner.is_none() {
///     host.tick(|_frame| false)?;
///     for event in guest.tick(|_frame| true)? {
///         if let MatchEvent::Confirmed(_frame, seat) = event {
///             winner = Some(seat);
///         }
///     }
/// }
/// assert_eq!(winner, guest.seat());
/// # Ok::<(), muse::Error>(())
/// ```
pub struct DeterministicSession<G: DeterministicGame> {
    participant: Participant<G>,
    side: Side,
    /// The longest wait of a tick.
    frame: Duration,
    buffer: Vec<u8>,
}

/// The connections of a machine.
enum Side {
    Host(Open),
    Guest(ClientDriver),
}

impl Side {
    fn driver(&self) -> &EndpointDriver {
        match self {
            Self::Host(open) => &open.link,
            Self::Guest(client) => client,
        }
    }

    fn driver_mut(&mut self) -> &mut EndpointDriver {
        match self {
            Self::Host(open) => &mut open.link,
            Self::Guest(client) => client,
        }
    }
}

impl<G: DeterministicGame> DeterministicSession<G> {
    /// Hosts a match that begins with this state: plays, and orders everybody's inputs. Listens at an address such as `"[::]:7000"`;
    /// [`Listen::room`] opens a room at a relay besides, for friends behind routers.
    pub fn host(listen: impl Into<Listen>, config: MatchConfig, game: G) -> Result<Self> {
        let listen = listen.into();
        let migrates = room::migrates(&listen);
        let open = listen.open(transport_config::<G>(&config))?;
        let frame = config.frame_duration();
        let participant = Participant::host(config, game, MATCH_CHANNEL, nonce()?)?;
        let participant = match migrates && open.room.is_some() {
            true => room::with_succession(participant, true)?,
            false => participant,
        };
        Ok(Self::new(participant, Side::Host(open), frame))
    }

    /// Orders a match without playing in it, for a server. With [tokens](Listen::tokens) only their holders are let in.
    pub fn serve(listen: impl Into<Listen>, config: MatchConfig) -> Result<Self> {
        let open = listen.into().open(transport_config::<G>(&config))?;
        let frame = config.frame_duration();
        let participant = Participant::server(config, MATCH_CHANNEL)?;
        Ok(Self::new(participant, Side::Host(open), frame))
    }

    /// Joins a match by the line that its host printed: an address, or an invitation to a room. An account that comes with a connect token
    /// ([`Join::token`]) gets its seat again when it comes back.
    pub fn join(join: impl Into<Join>, config: MatchConfig, game: G) -> Result<Self> {
        Self::join_as(Role::Player, join.into(), config, game)
    }

    /// Watches a match, by the line that its host printed.
    pub fn watch(join: impl Into<Join>, config: MatchConfig, game: G) -> Result<Self> {
        Self::join_as(Role::Spectator, join.into(), config, game)
    }

    fn join_as(role: Role, join: Join, config: MatchConfig, game: G) -> Result<Self> {
        let willing = room::may_host(&join);
        let client = join.open(transport_config::<G>(&config))?;
        let frame = config.frame_duration();
        let connection = client.connection();
        let participant =
            Participant::guest(config, game, role, MATCH_CHANNEL, nonce()?, connection)?;
        let participant = match room::is_in_room(&client) {
            true => room::with_succession(participant, willing)?,
            false => participant,
        };
        Ok(Self::new(participant, Side::Guest(client), frame))
    }

    fn new(participant: Participant<G>, side: Side, frame: Duration) -> Self {
        Self {
            participant,
            side,
            frame,
            buffer: Vec::new(),
        }
    }

    /// Returns a way into this match for a guest in the same program, without a socket; `None` at a guest.
    pub fn join_offline(&mut self) -> Option<Join> {
        match &mut self.side {
            Side::Host(open) => Some(Join::offline(&mut open.link, open.address.key())),
            Side::Guest(_) => None,
        }
    }

    /// Waits until the next frame has run, receives what arrived meanwhile, sends what is to be sent, and returns what happened. Never
    /// waits for longer than a frame takes. `input` is asked once for each frame (rollback) or turn (lockstep) and told its number.
    ///
    /// Errors are those of the socket, and an input that is too long to travel.
    pub fn tick(
        &mut self,
        input: impl FnMut(Frame) -> G::Input,
    ) -> Result<Vec<MatchEvent<G::Event>>> {
        self.tick_within(self.frame, input)
    }

    /// As [`tick`](Self::tick), and waits for `limit` at most: zero for a loop that waits elsewhere, for the screen for example.
    pub fn tick_within(
        &mut self,
        limit: impl Into<Duration>,
        mut input: impl FnMut(Frame) -> G::Input,
    ) -> Result<Vec<MatchEvent<G::Event>>> {
        let before = self.frame();
        let mut events = Vec::new();
        self.turn(&mut input)?;
        let until = self.now() + limit.into();
        loop {
            events.extend(std::iter::from_fn(|| self.participant.poll_event()));
            let left = until.saturating_since(self.now());
            if left == Duration::ZERO || !events.is_empty() || self.frame() > before {
                return Ok(events);
            }
            let due = self.participant.poll_timeout();
            let due = due.saturating_since(self.now());
            self.side.driver_mut().wait(due.min(left))?;
            self.turn(&mut input)?;
        }
    }

    /// Receives what arrived, runs what is due, sends what is to be sent.
    fn turn(&mut self, input: &mut impl FnMut(Frame) -> G::Input) -> Result<()> {
        let participant = &mut self.participant;
        let driver = self.side.driver_mut();
        driver.poll()?;
        while let Some(event) = driver.poll_event(&mut self.buffer) {
            participant.handle_event(driver.now(), &event);
        }
        if let Side::Guest(client) = &mut self.side
            && participant.wants_connection()
        {
            participant.set_connection(client.reconnect()?);
        }
        let driver = self.side.driver_mut();
        let given = room::advance(participant, driver, input);
        driver.flush()?;
        Ok(given?)
    }

    /// Lets a client in that [asks](MatchEvent::Asking), with the next tick.
    pub fn admit(&mut self, applicant: &Applicant) {
        let driver = self.side.driver_mut();
        let (now, connection) = (driver.now(), applicant.connection());
        // One that is gone, or waited too long, has been told so already.
        let _ = driver.endpoint_mut().admit(now, connection);
    }

    /// Refuses a client that [asks](MatchEvent::Asking); it reads `text` in [`MatchEvent::Refused`].
    pub fn deny(&mut self, applicant: &Applicant, text: &str) {
        let driver = self.side.driver_mut();
        let (now, connection) = (driver.now(), applicant.connection());
        let endpoint = driver.endpoint_mut();
        let _ = endpoint.deny(now, connection, CODE_DENIED, text);
    }

    /// Returns what guests join by, as seen from the local network. A host behind a router puts the router's name or address in its
    /// place and forwards the port, or uses a relay. A guest has none, and one that has become the host has its room alone.
    pub fn address(&self) -> Option<&ServerAddress> {
        match &self.side {
            Side::Host(open) => Some(&open.address).filter(|_| self.is_host()),
            Side::Guest(_) => None,
        }
    }

    /// Returns true if this machine hosts the match: it did from the beginning, or the host before is gone.
    pub fn is_host(&self) -> bool {
        self.participant.orderer().is_some()
    }

    /// Returns the state to be drawn: with guesses in rollback. A server has none.
    pub fn state(&self) -> Option<&G> {
        self.participant.state()
    }

    /// Returns the seat of this machine's player, once it has one.
    pub fn seat(&self) -> Option<Seat> {
        self.participant.session().and_then(Session::seat)
    }

    /// Returns the frame that is run next, for a server the first one whose inputs are not all there.
    pub fn frame(&self) -> Frame {
        match (self.participant.session(), self.participant.orderer()) {
            (Some(session), _) => session.frame(),
            (None, orderer) => orderer.map_or(Frame(0), Orderer::sealed),
        }
    }

    /// Returns true if the match is over for this machine.
    pub fn is_over(&self) -> bool {
        self.participant.is_over()
    }

    /// Leaves the match: the others are told with the next tick. Where a host leaves, another machine hosts the match from then on, if it is in a relay's
    /// [room](Listen::room) and somebody would; else it ends for everybody. [`end`](Self::end) always ends it.
    pub fn leave(&mut self) {
        self.participant.leave();
    }

    /// Ends the match for everybody, as its host; a guest only leaves.
    pub fn end(&mut self) {
        match self.participant.orderer_mut() {
            Some(orderer) => orderer.end(),
            None => self.participant.leave(),
        }
    }

    /// Returns the machine below: its session, statistics, delay and orderer.
    pub fn participant(&self) -> &Participant<G> {
        &self.participant
    }

    /// Returns the machine below, to change it.
    pub fn participant_mut(&mut self) -> &mut Participant<G> {
        &mut self.participant
    }

    /// Returns the connections below.
    pub fn endpoint(&self) -> &Endpoint {
        self.side.driver().endpoint()
    }

    fn now(&self) -> Instant {
        self.side.driver().now()
    }
}

#[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
impl<G: DeterministicGame> DeterministicSession<G> {
    /// Returns what friends join a [room](Listen::room) by: one word to be sent to them. It names the host by its key, so another host has
    /// another one. A guest has none.
    pub fn invitation(&self) -> Option<muse_drivers::relay::Invitation> {
        let link = self.side.driver().relay().filter(|_| self.is_host())?;
        let key = self.endpoint().public_key()?;
        Some(muse_drivers::relay::Invitation {
            relay: link.relay(),
            code: link.code(),
            host_key: *key.as_bytes(),
        })
    }

    /// Returns the short code of a [room](Listen::room): all that friends type whose game knows the relay ([`Join::room`]). Whoever hosts, it is the same; a
    /// guest is not told it.
    pub fn short_code(&self) -> Option<muse_drivers::relay::ShortCode> {
        self.side.driver().relay()?.short_code()
    }

    /// Returns what happened at the relay, for a match in a room: whether it is open, and which ways are direct.
    pub fn poll_relay_event(&mut self) -> Option<muse_drivers::relay::LinkEvent> {
        let taken = self.participant.poll_room_event();
        taken.or_else(|| self.side.driver_mut().poll_relay_event())
    }
}

#[cfg(all(feature = "relay", not(target_arch = "wasm32")))]
mod room {
    //! A match in a relay's room, which may have another host.

    use muse_drivers::{ClientDriver, EndpointDriver, SystemEntropy};
    use muse_lockstep::{DeterministicGame, Frame, InputError};

    use crate::deterministic::{Participant, SUCCESSION_CHANNEL};
    use crate::{Join, Listen, Result};

    impl Listen {
        /// Ends a deterministic match in a [room](Listen::room) when its host goes, rather than have a guest host it.
        pub fn ends_with_host(mut self) -> Self {
            self.ends_with_host = true;
            self
        }
    }

    impl Join {
        /// Never hosts the match in the place of a host that is gone; another guest may.
        pub fn never_host(mut self) -> Self {
            self.never_host = true;
            self
        }
    }

    pub(super) fn migrates(listen: &Listen) -> bool {
        !listen.ends_with_host
    }

    pub(super) fn may_host(join: &Join) -> bool {
        !join.never_host
    }

    pub(super) fn is_in_room(client: &ClientDriver) -> bool {
        client.relay().is_some()
    }

    pub(super) fn with_succession<G: DeterministicGame>(
        participant: Participant<G>,
        willing: bool,
    ) -> Result<Participant<G>> {
        let (key, entropy) = (muse_drivers::new_key()?, SystemEntropy::new()?);
        Ok(participant.with_succession(SUCCESSION_CHANNEL, key, willing, entropy))
    }

    pub(super) fn advance<G: DeterministicGame>(
        participant: &mut Participant<G>,
        driver: &mut EndpointDriver,
        input: impl FnMut(Frame) -> G::Input,
    ) -> std::result::Result<(), InputError> {
        let now = driver.now();
        match driver.endpoint_and_relay() {
            (endpoint, Some(link)) if participant.may_migrate() => {
                participant.advance_in_room(now, endpoint, link, input)
            }
            (endpoint, _) => participant.advance(now, endpoint, input),
        }
    }
}

#[cfg(not(all(feature = "relay", not(target_arch = "wasm32"))))]
mod room {
    //! The place of rooms in a build without them.

    use muse_drivers::{ClientDriver, EndpointDriver};
    use muse_lockstep::{DeterministicGame, Frame, InputError};

    use crate::deterministic::Participant;
    use crate::{Join, Listen, Result};

    pub(super) fn migrates(_: &Listen) -> bool {
        false
    }

    pub(super) fn may_host(_: &Join) -> bool {
        false
    }

    pub(super) fn is_in_room(_: &ClientDriver) -> bool {
        false
    }

    pub(super) fn with_succession<G: DeterministicGame>(
        participant: Participant<G>,
        _: bool,
    ) -> Result<Participant<G>> {
        Ok(participant)
    }

    pub(super) fn advance<G: DeterministicGame>(
        participant: &mut Participant<G>,
        driver: &mut EndpointDriver,
        input: impl FnMut(Frame) -> G::Input,
    ) -> std::result::Result<(), InputError> {
        participant.advance(driver.now(), driver.endpoint_mut(), input)
    }
}

/// The code of clients that the game denies.
const CODE_DENIED: u16 = 1;

/// A number that tells this life of a machine from others.
fn nonce() -> Result<u32> {
    let mut bytes = [0; 4];
    muse_drivers::fill_random(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
