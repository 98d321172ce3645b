//! The store: whole transactions of the domain, not rows.
//!
//! Everything that a leader writes names its epoch, and is refused if another one leads by now. Each call is one transaction: it happens
//! as a whole or not at all, and it is answered when it is durable. Calls are begun in the order in which the methods are called,
//! not in the order in which the answers are awaited.

mod memory;
mod migrations;
#[cfg(feature = "postgres")]
mod postgres;
mod sql;
mod sqlite;
mod worker;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use muse_master_client::api::{AccountView, FriendView, Progress, RankingLine, RoomView};
use muse_master_client::messages::{ChatLine, MatchResult, Report};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use thiserror::Error;

use crate::director::{Ending, NewMatch, StoredMatch};
use crate::hosts::{Registration, ServerStanding};
use crate::lease::Lease;
use crate::operators::{AuditLine, MatchLine, PlayerLine, Sentence, StoredOperator, TicketLine};
use crate::secrets::{Access, SignInId};
use crate::ticket::{Play, Ticket};
pub use memory::MemoryStore;
pub use worker::SqlStore;

/// The future result of a transaction.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// The reason why a transaction did not happen. Nothing of it is written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller no longer leads the queue.
    #[error("another master leads this queue")]
    OldEpoch,
    /// The database is away, full or busy; try again later.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// There is no such thing.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// It contradicts what is stored.
    #[error("{0}")]
    Conflict(&'static str),
    /// Not for this account.
    #[error("{0}")]
    Forbidden(&'static str),
}

/// The tickets of a match that was not created, because these are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Empty if the match is created.
    pub gone: Vec<TicketId>,
}

/// The outcome of putting a ticket into a running match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// It did.
    Filled,
    /// The ticket is gone.
    TicketGone,
    /// The match is over.
    MatchOver,
}

/// The outcome of *play*.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Its meaning.
    pub play: Play,
    /// The ticket, or the one that was left.
    pub ticket: Ticket,
}

/// A player's standing: ticket, match and seat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Their ticket.
    pub ticket: Option<Ticket>,
    /// Their match.
    pub match_id: Option<MatchId>,
    /// Everything for a connect token, if the match has a server that is known.
    pub seat: Option<StoredSeat>,
}

/// The place of a match: its server and that server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSeat {
    /// The match.
    pub match_id: MatchId,
    /// Its server.
    pub server: ServerId,
    /// The server's address.
    pub address: String,
    /// The server's public key in hexadecimal.
    pub public_key: String,
    /// The preferences by which it is played.
    pub preferences: Preferences,
}

/// An account and its restrictions.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAccount {
    /// As its owner sees it.
    pub view: AccountView,
    /// Raised by signing out everywhere and by a new password.
    pub generation: u64,
    /// The sign-in that set the last password, whose older access tokens are valid.
    pub kept_sign_in: SignInId,
    /// The end of an operator's ban.
    pub banned_until: Option<Instant>,
}

impl StoredAccount {
    /// True if an access token of this account has not been revoked.
    pub fn honours(&self, access: &Access) -> bool {
        let kept = access.sign_in != SignInId::NONE && access.sign_in == self.kept_sign_in;
        self.view.account == access.account && (kept || access.generation == self.generation)
    }
}

/// The outcome of exchanging a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It is exchanged for the token that follows from it by this salt.
    Exchanged {
        /// The account.
        account: AccountId,
        /// The sign-in that both belong to.
        sign_in: SignInId,
        /// The salt that was offered, or that of the exchange which this one repeats.
        salt: String,
    },
    /// It was used before, so somebody has stolen it: every token of the account is void now.
    Stolen(AccountId),
}

/// A refresh token to be stored in exchange for another one, and how it follows from that.
#[derive(Clone, Debug)]
pub struct Successor {
    /// The salt.
    pub salt: String,
    /// The token's hash.
    pub token: String,
    /// The end of its life.
    pub expires: Instant,
}

/// The last report of a game server, for a leader that may have missed it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredReport {
    /// Of which match.
    pub match_id: MatchId,
    /// The server.
    pub server: ServerId,
    /// The time, by the clock of the master that it is connected to.
    pub at: Instant,
    /// The report.
    pub report: Report,
    /// The result, if it has one.
    pub result: Option<MatchResult>,
}

/// The last line of a page of the ranking, after which the next page begins. Its place goes with it, so that nobody ahead has to be counted.
///
/// ```
/// use muse_master::store::RankingCursor;
/// let cursor = RankingCursor::parse("-3.17.100").expect("points, account, place");
/// assert_eq!((cursor.points, cursor.account.0, cursor.place), (-3, 17, 100));
/// assert_eq!(cursor.to_string(), "-3.17.100");
/// assert_eq!(RankingCursor::parse("100"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankingCursor {
    /// Points of that line.
    pub points: i64,
    /// The account.
    pub account: AccountId,
    /// Its place, from 1.
    pub place: u64,
}

impl RankingCursor {
    /// Reads what [`Display`](fmt::Display) wrote; none if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (points, rest) = text.split_once('.')?;
        let (account, place) = rest.split_once('.')?;
        let number = |text: &str| text.parse().ok().filter(|number| *number <= NUMBER_MAX);
        Some(Self {
            points: points.parse().ok()?,
            account: AccountId(number(account)?),
            place: number(place)?,
        })
    }
}

impl fmt::Display for RankingCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            points,
            account,
            place,
        } = self;
        write!(f, "{points}.{}.{place}", account.0)
    }
}

impl From<&RankingLine> for RankingCursor {
    fn from(line: &RankingLine) -> Self {
        Self {
            points: line.points,
            account: line.account,
            place: line.place,
        }
    }
}

/// A name and a password for an account.
#[derive(Clone, Debug)]
pub struct NewPassword {
    /// The name.
    pub name: String,
    /// The password's hash.
    pub hash: String,
    /// The hash of the password until now, which the caller has checked; none if there was none.
    pub replaces: Option<String>,
}

/// The times before which something is too old to be kept; none if it is kept for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cutoffs {
    /// The last use of a guest's account.
    pub guests: Option<Instant>,
    /// Lines of chat.
    pub chat: Option<Instant>,
    /// The end of a match, for it and its results.
    pub matches: Option<Instant>,
    /// Entries of what operators did.
    pub audit: Option<Instant>,
}

/// The outcome of one batch of deletions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows that it deleted or changed, at most [`PRUNE_ROWS_MAX`].
    pub rows: u64,
    /// True if there may be more to delete.
    pub more: bool,
}

/// A step of one player towards another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FriendStep {
    /// Asks, or accepts if the other one has asked.
    Ask,
    /// Ends the friendship, takes the request back or declines it.
    Remove,
    /// Blocks the other one; ends a friendship too.
    Block,
}

/// The readers of a line of chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatTarget {
    /// To one player.
    Direct(AccountId),
    /// To everyone in the writer's room.
    Room,
    /// To everyone in the writer's match.
    Match,
}

/// A line of chat that is stored, and who is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The line.
    pub line: ChatLine,
    /// Everybody who reads it, the writer too.
    pub readers: Vec<AccountId>,
}

macro_rules! store {
    (@call $store:expr, $module:ident, $name:ident, $($argument:ident),*) => {
        $store.call(move |sql| sql::$module::$name(sql, $($argument),*))
    };
    (@look $store:expr, $module:ident, $name:ident, $($argument:ident),*) => {
        $store.look(move |sql| sql::$module::$name(sql, $($argument),*))
    };
    (@$together:ident $store:expr, $module:ident, $name:ident, $($argument:ident),*) => {
        $store.$together(worker::Job::$name, ($($argument),*))
    };
    // First the way they are called (`call`, or `look` for those that only read; batched with neighbours of the same kind `together` and `read`), then the
    // module that has them.
    ($($way:ident $module:ident { $($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $answer:ty;)* })*) => {
        /// The store.
        pub trait Store: Send + Sync {
            $($($(#[$doc])* fn $name(&self, $($argument: $kind),*) -> Answer<$answer>;)*)*
        }

        impl Store for SqlStore {
            $($(fn $name(&self, $($argument: $kind),*) -> Answer<$answer> {
                store!(@$way self, $module, $name, $($argument),*)
            })*)*
        }
    };
}

store! {
    call leading {
        /// A secret that all masters share, made by the first one that asks with `fresh`.
        fn secret(name: &'static str, fresh: String) -> String;
        /// Replaces a secret, unless somebody else did. What it is now.
        fn exchange_secret(name: &'static str, old: String, fresh: String) -> String;
        /// Asks for the lease of a queue, or renews it; none if another one holds it.
        fn lease(queue: String, holder: u64, now: Instant) -> Option<Lease>;
        /// Gives the lease back before it runs out, so that another master has it at once.
        fn release_lease(queue: String, holder: u64) -> ();
        /// Everything that a new leader takes over.
        fn restore(epoch: u64) -> (Vec<Ticket>, Vec<StoredMatch>);
        /// Every ticket, oldest first, for a leader that may have missed something.
        fn tickets(epoch: u64) -> Vec<Ticket>;
        /// Tickets become a match, if all are there.
        fn create_match(epoch: u64, new: NewMatch, now: Instant) -> Created;
        /// A ticket becomes seats of a running match.
        fn fill_seats(epoch: u64, match_id: MatchId, ticket: TicketId) -> Fill;
        /// A match is on this server.
        fn record_server(epoch: u64, match_id: MatchId, server: ServerId) -> ();
        /// A match has begun.
        fn record_running(epoch: u64, match_id: MatchId) -> ();
        /// A seat is given up.
        fn free_seat(epoch: u64, match_id: MatchId, account: AccountId) -> ();
        /// A match is over: results and ratings once, seats freed, tickets back in the queue. Those, or none if it was over already.
        fn end_match(epoch: u64, ending: Ending, now: Instant) -> Option<Vec<Ticket>>;
        /// The ticket of a player who stayed away.
        fn end_ticket(epoch: u64, ticket: TicketId) -> ();
    }
    together queue {
        /// *Play*: for the player alone, or for their whole room if they lead it.
        fn play(account: AccountId, preferences: Preferences, insists: bool, now: Instant) -> Played;
    }
    call queue {
        /// Takes a ticket back; the whole party leaves.
        fn leave_queue(account: AccountId) -> Option<Ticket>;
        /// A player's standing: ticket, match and seat.
        fn standing(account: AccountId) -> Standing;
        /// Everybody who has a seat in a match with a server, and which match.
        fn seated() -> Vec<(AccountId, MatchId)>;
        /// Everybody who waits with a ticket.
        fn queued() -> Vec<AccountId>;
        /// Returns the place of a match, for everyone in it.
        fn match_seat(match_id: MatchId) -> Option<StoredSeat>;
    }
    call servers {
        /// Returns the standing of a game server: whether it has registered, and whether it is gone.
        fn server_standing(server: ServerId) -> ServerStanding;
        /// A game server says where it is. The first key that it names is its own; one that was gone starts over.
        fn register_server(server: ServerId, address: String, public_key: String, now: Instant) -> Registration;
        /// A game server that has registered is still there.
        fn server_seen(server: ServerId, now: Instant) -> ();
        /// A game server's process or pod has ended.
        fn end_server(server: ServerId, now: Instant) -> ();
        /// A match that is not over and is this server's, or nobody's yet.
        fn held(server: ServerId, match_id: MatchId) -> Option<StoredMatch>;
    }
    read accounts {
        /// An account and its restrictions.
        fn account(account: AccountId) -> StoredAccount;
    }
    call accounts {
        /// The account of a device, made the first time.
        fn guest(device: String, now: Instant) -> AccountId;
        /// Gives an account a name and a password hash, or new ones instead of the hash that it `replaces`. Everything but one sign-in ends.
        fn set_password(account: AccountId, named: NewPassword, keeps: SignInId) -> ();
        /// A refresh token, as a hash.
        fn add_refresh(account: AccountId, sign_in: SignInId, token: String, expires: Instant, now: Instant) -> ();
        /// Exchanges a refresh token. One that was used within the last minute yields the same once more, because the answer may have been lost; any other
        /// second use signs the account out everywhere.
        fn rotate_refresh(old: String, fresh: Successor, now: Instant) -> Refreshed;
        /// Voids every token of an account.
        fn sign_out_everywhere(account: AccountId) -> ();
        /// Everything that is kept about an account.
        fn export(account: AccountId) -> serde_json::Value;
        /// Deletes it all. What it played stays in others' results, without a name.
        fn delete(account: AccountId) -> ();
        /// Saved progress of a game; version 0 if there is none.
        fn progress(account: AccountId, game: String) -> Progress;
        /// Writes it, if it is based on the version that is stored. The new version.
        fn save_progress(account: AccountId, game: String, based_on: u64, document: String) -> u64;
    }
    look accounts {
        /// The account of a name, and its password hash.
        fn password(name: String) -> Option<(AccountId, String)>;
        /// The name of an account and its password hash, if it has them.
        fn password_of(account: AccountId) -> Option<(String, String)>;
        /// Checks that the store answers. It costs the same no matter how much is stored.
        fn ready() -> ();
        /// Lines of the season's ranking, from the first place or after a cursor on, at most [`RANKING_PAGE`]. A page costs the same wherever it is.
        fn ranking(after: Option<RankingCursor>) -> Vec<RankingLine>;
    }
    call social {
        /// A step between two players. True if they are friends now.
        fn befriend(account: AccountId, other: AccountId, step: FriendStep) -> bool;
        /// Friends, requests both ways and blocked accounts; friends with whether they are connected to any of several masters.
        fn friends(account: AccountId, now: Instant) -> Vec<FriendView>;
        /// Opens a room with this code, unless it exists.
        fn open_room(account: AccountId, code: String, now: Instant) -> RoomView;
        /// Enters a room.
        fn join_room(account: AccountId, code: String, now: Instant) -> RoomView;
        /// Leaves it. Who stays.
        fn leave_room(account: AccountId) -> Vec<AccountId>;
        /// The player's room.
        fn room(account: AccountId) -> Option<RoomView>;
        /// Writes a line of chat.
        fn say(from: AccountId, target: ChatTarget, text: String, now: Instant) -> Said;
        /// The last hundred lines, oldest first, without those of writers whom the reader has blocked.
        fn history(account: AccountId, target: ChatTarget) -> Vec<ChatLine>;
    }
    call several {
        /// A master is there. False if it was not known: then its players are to be named again.
        fn master_seen(master: u64, now: Instant) -> bool;
        /// A player is connected to this master, and to no other.
        fn arrived(master: u64, account: AccountId) -> ();
        /// Returns the master that a player connected to last, while they are connected.
        fn whereabouts(account: AccountId) -> Option<u64>;
        /// A player is no longer connected to this master. False if they are connected to another one.
        fn departed(master: u64, account: AccountId) -> bool;
        /// Nobody is connected to this master.
        fn all_departed(master: u64) -> ();
        /// Players with a ticket who are connected to any master.
        fn queued_here(epoch: u64, now: Instant) -> Vec<AccountId>;
        /// Records a game server's report of its match. False if the match is over or not on this server.
        fn record_report(server: ServerId, report: Report, now: Instant) -> bool;
        /// A result, for the leader to apply. False if the match is over already.
        fn record_result(server: ServerId, result: MatchResult, now: Instant) -> bool;
        /// Returns the last reports of all matches.
        fn reports(epoch: u64) -> Vec<StoredReport>;
        /// The match of a game server, if it has one.
        fn hosted(server: ServerId) -> Option<StoredMatch>;
    }
    call retention {
        /// Deletes what is from before these times and what has run out, as much as one batch may touch.
        fn prune(before: Cutoffs, now: Instant) -> Pruned;
    }
    call operators {
        /// An operator with a password hash, new or with a new one.
        fn set_operator(name: String, password: String, now: Instant) -> ();
        /// Returns an operator.
        fn operator(name: String) -> Option<StoredOperator>;
        /// Everyone who is one.
        fn operators() -> Vec<String>;
        /// Is none any more; the last one stays.
        fn remove_operator(name: String) -> ();
        /// Writes down what an operator did.
        fn audit(line: AuditLine) -> ();
        /// The last 200 things that operators did, newest first.
        fn audits() -> Vec<AuditLine>;
        /// Bans, mutes or lifts it, and writes it down.
        fn sanction(operator: String, sentence: Sentence, now: Instant) -> ();
        /// Deletes a line of chat, and writes it down. The line.
        fn delete_line(operator: String, line: u64, now: Instant) -> ChatLine;
        /// The last hundred lines of chat, of everybody or of one, newest first.
        fn chat_lines(account: Option<AccountId>) -> Vec<ChatLine>;
        /// Players by the beginning of their name or by number, or these if nothing is searched for; at most 100.
        fn player_lines(search: String, online: Vec<AccountId>, now: Instant) -> Vec<PlayerLine>;
        /// Tickets that wait, oldest first.
        fn ticket_lines(now: Instant) -> Vec<TicketLine>;
        /// Returns how many tickets wait, and since when the oldest does.
        fn waiting() -> (u64, Option<Instant>);
        /// Matches that are not over, and the last fifty that are.
        fn match_lines() -> Vec<MatchLine>;
        /// One match.
        fn match_line(match_id: MatchId) -> MatchLine;
    }
}

/// Rows that one batch of deletions touches: some milliseconds of the database.
pub const PRUNE_ROWS_MAX: u64 = 500;
/// Lines of one page of the ranking.
pub const RANKING_PAGE: usize = 100;
/// Largest id and place: what JavaScript still reads exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;
