//! A player's connection to a master, with a socket and a clock.

use std::io;
use std::path::{Path, PathBuf};

use muse_drivers::master::{MasterAnswer, MasterMethod, MasterRequest, MasterSocketConfig};
use muse_drivers::{Clock, MasterAddress, MasterLink};
use muse_master_client::api::ChatRequest;
use muse_master_client::messages::{self, ChatLine, FromMaster, Outcome, QueueState};
use muse_master_client::{
    AccountId, LinkState, MatchId, PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig,
    Preferences, QueueStatus,
};
use muse_transport::token::ConnectToken;
use muse_transport::{Connect, Event};
use muse_wire::{Duration, Instant};

use super::{Account, RelayPass};
use crate::{Error, Join, Result};

/// A player's connection to a master: signs in, stays connected, queues, and says where to play.
///
/// Call [`poll`](Self::poll) each frame until it returns no event; nothing here waits. On [`MasterEvent::Seated`] connect to the game server and
/// give what becomes of it to [`handle_game_event`](Self::handle_game_event): a lost seat is asked for again. [`MatchClient`](super::MatchClient)
/// does all of this for a [`Game`](crate::Game).
///
/// ```no_run
/// use muse::master::{Account, Master, MasterEvent, Preferences};
///
/// let mut master = Master::connect("https://play.example.com", Account::guest("profile.key")?)?;
/// master.queue(Preferences::queue("tag").players(2))?;
/// loop {
///     while let Some(event) = master.poll() {
///         match event {
///             MasterEvent::Seated(seat) => println!("play at {}", seat.address),
///             MasterEvent::Lost { reason, .. } => println!("{reason}"),
///             _ => {}
///         }
///     }
/// #   break;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Master {
    link: MasterLink<PlayerLink>,
    clock: Clock,
    requests: u64,
    /// Calls for passes to relays that are under way.
    passes: Vec<u64>,
}

/// Options of a [`Master`].
#[derive(Clone, Debug, Default)]
pub struct MasterOptions {
    link: PlayerLinkConfig,
    ca_file: Option<PathBuf>,
    seed: Option<u64>,
}

impl MasterOptions {
    /// Sets the time between attempts to reach the master, 10 seconds by default.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.link = self.link.retry(retry);
        self
    }

    /// Trusts the certificates of a PEM file besides those of the system: for a master with a certificate of your own.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.ca_file = Some(path.as_ref().to_owned());
        self
    }

    /// Sets the random seed that spreads retries. By default the operating system gives one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

/// Something that happened at the master, or on the way to a game server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MasterEvent {
    /// Signed in and connected, as this account.
    Connected(AccountId),
    /// The master is out of reach, or refused to sign the player in. It is tried again by itself.
    Lost {
        /// The cause, in words.
        reason: String,
        /// Time until the next attempt.
        retry_in: Duration,
    },
    /// The master is full. It is tried again by itself.
    Full {
        /// Time until the next attempt.
        retry_in: Duration,
    },
    /// In the queue.
    Queued(QueueState),
    /// Not in the queue any more.
    LeftQueue,
    /// A match is found, its server is being started.
    MatchFound(MatchId),
    /// Connect to the game server.
    Seated(MatchSeat),
    /// Disconnect from the game server, if there still is a connection.
    Unseated,
    /// In the match.
    Playing(MatchId),
    /// The game server refused the seat, did not answer, or was lost. The seat is asked for again by itself, less and less often.
    SeatLost {
        /// The match.
        match_id: MatchId,
        /// The cause, in words.
        reason: String,
        /// Time until the next attempt.
        retry_in: Duration,
    },
    /// The match was called off before it began.
    Cancelled {
        /// The match.
        match_id: MatchId,
        /// True if the player is back in the queue, false if not; the master has confirmed it.
        waiting: bool,
    },
    /// The match is over; the outcome is unknown if the master has forgotten the match.
    MatchOver(MatchId, Option<Outcome>),
    /// The master refused a request.
    Refused {
        /// A short name of the reason.
        code: String,
        /// A sentence.
        message: String,
    },
    /// Somebody wrote.
    Chat(ChatLine),
    /// Words from the operators.
    Announcement(String),
    /// A friend came or went.
    Presence {
        /// The friend.
        account: AccountId,
        /// True if they came.
        is_online: bool,
    },
    /// Somebody asks to be a friend, or has accepted.
    Friend {
        /// The other.
        account: AccountId,
        /// True if they have accepted.
        is_accepted: bool,
    },
    /// A friend invites to a room.
    Invitation {
        /// The friend.
        from: AccountId,
        /// The room's code, for [`Master::join_room`].
        room: String,
    },
    /// The wait is long: bots fill the match if the preferences accept them.
    BotsOffered,
    /// The answer to a call such as [`Master::create_room`], with the number that it returned. The body is JSON.
    Answered(MasterAnswer),
    /// The right to open a room at a relay, after [`Master::relay_pass`].
    RelayPass(RelayPass),
    /// The account connected from somewhere else, and this connection is over for good.
    Stopped,
}

/// A way into a running match.
#[derive(Clone, Debug)]
pub struct MatchSeat {
    /// The match.
    pub match_id: MatchId,
    /// Host and port of the game server.
    pub address: String,
    /// The connect token: single use, 60 seconds.
    pub token: ConnectToken,
    /// The preferences of the match, merged from those of its players.
    pub preferences: Preferences,
}

impl MatchSeat {
    /// Returns how to connect an endpoint.
    pub fn connect(&self) -> Connect {
        Connect::token(self.token.clone())
    }

    /// Returns where a [`Client`](crate::Client) or a [`GameClient`](crate::GameClient) goes.
    pub fn join(&self) -> Join {
        Join::token(&self.address, self.token.clone())
    }
}

impl Master {
    /// Starts to connect to the master at `url`, such as `https://play.example.com`, or one of several with commas between.
    pub fn connect(url: &str, account: Account) -> Result<Self> {
        Self::connect_with(url, account, MasterOptions::default())
    }

    /// As [`connect`](Self::connect), with options.
    pub fn connect_with(url: &str, account: Account, options: MasterOptions) -> Result<Self> {
        let seed = match options.seed {
            Some(seed) => seed,
            None => {
                let mut seed = [0; 8];
                muse_drivers::fill_random(&mut seed)?;
                u64::from_le_bytes(seed)
            }
        };
        let masters = MasterAddress::parse_list(url)?;
        let mut config = MasterSocketConfig::new(masters, account.into_credentials());
        if let Some(file) = options.ca_file {
            config = config.ca_file(file);
        }
        let clock = Clock::start();
        let machine = PlayerLink::new(options.link, seed);
        Ok(Self {
            link: MasterLink::new(config, machine, clock.now())?,
            clock,
            requests: 0,
            passes: Vec::new(),
        })
    }

    /// Enters the queue, or changes what is asked for and keeps the place. Without the master it is remembered. [`MasterEvent::Queued`] confirms
    /// it, [`MasterEvent::Refused`] ends it.
    ///
    /// # Errors
    /// The preferences go beyond their limits ([`Preferences::check`]).
    pub fn queue(&mut self, preferences: Preferences) -> Result<()> {
        let checked = preferences.check();
        checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.link.queue(preferences);
        Ok(())
    }

    /// Leaves the queue; [`MasterEvent::LeftQueue`] confirms it.
    pub fn leave_queue(&mut self) {
        self.link.leave_queue();
    }

    /// Leaves the match for good.
    pub fn leave_match(&mut self) {
        self.link.leave_match();
    }

    /// Returns the place in the queue, as far as the master has confirmed it.
    pub fn queue_status(&self) -> QueueStatus {
        self.link.queue_status()
    }

    /// Returns the match that the player is in or on the way to.
    pub fn current_match(&self) -> Option<MatchId> {
        self.link.game()
    }

    /// Returns true while the master is there.
    pub fn is_connected(&self) -> bool {
        self.link.state() == LinkState::Online
    }

    /// Does what is due and returns the next event.
    pub fn poll(&mut self) -> Option<MasterEvent> {
        let now = self.clock.now();
        self.link.receive(now);
        loop {
            if let Some(event) = self.link.poll_event() {
                return Some(self.translate(now, event));
            }
            match self.link.poll_command(now) {
                Some(PlayerAction::JoinGame(seat)) => match read(seat) {
                    Ok(seat) => return Some(MasterEvent::Seated(seat)),
                    Err(reason) => self.link.handle_game_lost(now, &reason),
                },
                Some(PlayerAction::LeaveGame) => return Some(MasterEvent::Unseated),
                Some(_) => {}
                None => {
                    let answer = self.link.poll_answer()?;
                    return Some(self.translate_answer(answer));
                }
            }
        }
    }

    /// Tells the master's side what became of the connection to the game server.
    pub fn handle_game_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Connected { .. } => self.handle_game_connected(),
            Event::Refused { reason, .. } => self.handle_game_lost(&reason.to_string()),
            Event::Unanswered { .. } => self.handle_game_lost(UNANSWERED),
            Event::Closed { reason, .. } => self.handle_game_lost(&reason.to_string()),
            _ => {}
        }
    }

    /// Tells the master's side that the game server admitted the player.
    pub fn handle_game_connected(&mut self) {
        self.link.handle_game_connected(self.clock.now());
    }

    /// Tells the master's side that the game server refused the seat, did not answer, or is lost.
    pub fn handle_game_lost(&mut self, reason: &str) {
        self.link.handle_game_lost(self.clock.now(), reason);
    }

    /// Writes to a friend. As with all calls below, [`MasterEvent::Answered`] follows with the number that is returned.
    pub fn say_to(&mut self, friend: AccountId, text: &str) -> Result<u64> {
        self.say(format!("/v1/chat/direct/{friend}"), text)
    }

    /// Writes to everybody in the room.
    pub fn say_in_room(&mut self, text: &str) -> Result<u64> {
        self.say("/v1/chat/room".to_owned(), text)
    }

    /// Writes to everybody in the match.
    pub fn say_in_match(&mut self, text: &str) -> Result<u64> {
        self.say("/v1/chat/match".to_owned(), text)
    }

    /// Opens a room, in which friends queue together; the answer has its code.
    pub fn create_room(&mut self) -> Result<u64> {
        self.request(MasterMethod::Post, "/v1/room".to_owned(), None)
    }

    /// Enters a room by its code.
    pub fn join_room(&mut self, code: &str) -> Result<u64> {
        if code.is_empty() || !code.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(invalid(format!("{code:?} is not the code of a room")));
        }
        self.request(MasterMethod::Post, format!("/v1/room/{code}"), None)
    }

    /// Leaves the room.
    pub fn leave_room(&mut self) -> Result<u64> {
        self.request(MasterMethod::Delete, "/v1/room".to_owned(), None)
    }

    /// Asks for the list of friends and requests.
    pub fn friends(&mut self) -> Result<u64> {
        self.request(MasterMethod::Get, "/v1/friends".to_owned(), None)
    }

    /// Asks an account to be a friend, or accepts.
    pub fn befriend(&mut self, account: AccountId) -> Result<u64> {
        self.request(MasterMethod::Put, format!("/v1/friends/{account}"), None)
    }

    /// Ends a friendship, or declines.
    pub fn unfriend(&mut self, account: AccountId) -> Result<u64> {
        self.request(MasterMethod::Delete, format!("/v1/friends/{account}"), None)
    }

    /// Invites a friend into the room.
    pub fn invite(&mut self, friend: AccountId) -> Result<u64> {
        let path = format!("/v1/friends/{friend}/invite");
        self.request(MasterMethod::Post, path, None)
    }

    /// Asks for the relays of this master, each with its region.
    pub fn relays(&mut self) -> Result<u64> {
        self.request(MasterMethod::Get, "/v1/relays".to_owned(), None)
    }

    /// Asks for the right to open a room at the relay of a region; [`MasterEvent::RelayPass`] brings it. If there is no such relay, or it is open
    /// to everybody, [`MasterEvent::Answered`] says so.
    pub fn relay_pass(&mut self, region: &str) -> Result<u64> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if region.is_empty() || !region.chars().all(is_plain) {
            return Err(invalid(format!("{region:?} is not the name of a region")));
        }
        let path = format!("/v1/relays/{region}/token");
        let number = self.request(MasterMethod::Post, path, None)?;
        self.passes.push(number);
        Ok(number)
    }

    fn say(&mut self, path: String, text: &str) -> Result<u64> {
        let text = text.to_owned();
        let body = messages::encode(&ChatRequest { text });
        self.request(MasterMethod::Post, path, Some(body))
    }

    fn request(&mut self, method: MasterMethod, path: String, body: Option<String>) -> Result<u64> {
        self.requests += 1;
        let request = MasterRequest { method, path, body };
        match self.link.request(self.requests, request) {
            true => Ok(self.requests),
            false => {
                let message = "too many calls to the master are under way";
                Err(Error::Io(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    message,
                )))
            }
        }
    }

    fn translate_answer(&mut self, mut answer: MasterAnswer) -> MasterEvent {
        let number = answer.number;
        let Some(index) = self.passes.iter().position(|&pass| pass == number) else {
            return MasterEvent::Answered(answer);
        };
        self.passes.swap_remove(index);
        match answer.result.and_then(|body| RelayPass::read(&body)) {
            Ok(pass) => MasterEvent::RelayPass(pass),
            Err(refusal) => {
                answer.result = Err(refusal);
                MasterEvent::Answered(answer)
            }
        }
    }

    fn translate(&self, now: Instant, event: PlayerEvent) -> MasterEvent {
        let until = |at: Instant| at.saturating_since(now);
        match event {
            PlayerEvent::Online(account) => MasterEvent::Connected(account),
            PlayerEvent::Offline(at) => MasterEvent::Lost {
                reason: self
                    .link
                    .loss()
                    .unwrap_or("the master is silent")
                    .to_owned(),
                retry_in: until(at),
            },
            PlayerEvent::Full(at) => MasterEvent::Full {
                retry_in: until(at),
            },
            PlayerEvent::Queued(state) => MasterEvent::Queued(state),
            PlayerEvent::LeftQueue => MasterEvent::LeftQueue,
            PlayerEvent::MatchFound(match_id) => MasterEvent::MatchFound(match_id),
            PlayerEvent::Playing(match_id) => MasterEvent::Playing(match_id),
            PlayerEvent::GameLost {
                match_id,
                reason,
                retry_at,
            } => MasterEvent::SeatLost {
                match_id,
                reason,
                retry_in: until(retry_at),
            },
            PlayerEvent::MatchCancelled { match_id, waiting } => {
                MasterEvent::Cancelled { match_id, waiting }
            }
            PlayerEvent::MatchOver(match_id, outcome) => MasterEvent::MatchOver(match_id, outcome),
            PlayerEvent::Refused { code, message } => MasterEvent::Refused { code, message },
            PlayerEvent::Message(message) => said(message),
            _ => MasterEvent::Stopped,
        }
    }
}

/// Other news from a master.
fn said(message: FromMaster) -> MasterEvent {
    match message {
        FromMaster::Chat(line) => MasterEvent::Chat(line),
        FromMaster::Announcement { text } => MasterEvent::Announcement(text),
        FromMaster::Presence { account, online } => MasterEvent::Presence {
            account,
            is_online: online,
        },
        FromMaster::Friend { account, accepted } => MasterEvent::Friend {
            account,
            is_accepted: accepted,
        },
        FromMaster::Invitation { from, room } => MasterEvent::Invitation { from, room },
        _ => MasterEvent::BotsOffered,
    }
}

fn read(seat: messages::Seat) -> std::result::Result<MatchSeat, String> {
    let token = ConnectToken::from_text(&seat.token);
    Ok(MatchSeat {
        match_id: seat.match_id,
        address: seat.address,
        token: token.map_err(|error| format!("the master's token: {error}"))?,
        preferences: seat.preferences,
    })
}

fn invalid(message: String) -> Error {
    io::Error::new(io::ErrorKind::InvalidInput, message).into()
}

/// An attempt that nobody answered, in words.
pub(super) const UNANSWERED: &str =
    "the game server does not answer: it is gone, out of reach, or speaks another protocol";
