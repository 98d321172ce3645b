//! What operators see and do: the bodies of the interface under `/admin/api`, and what the store keeps of it.

use muse_master_client::messages::ChatLine;
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An operator, as the store keeps him.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperator {
    /// The hash of his password.
    pub password: String,
    /// Raised by a new password; older tokens are void.
    pub generation: u64,
}

/// What an operator imposes on an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanction {
    /// Cannot sign in.
    Ban,
    /// Cannot write chat.
    Mute,
}

impl Sanction {
    /// Its name in the store and in the audit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ban => "ban",
            Self::Mute => "mute",
        }
    }
}

/// A sanction to impose, or to lift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// On whom.
    pub account: AccountId,
    /// Which.
    pub sanction: Sanction,
    /// Until when; none lifts it.
    pub until: Option<Instant>,
    /// Why.
    pub reason: String,
}

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLine {
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// Who.
    pub operator: String,
    /// What: `ban`, `unban`, `mute`, `unmute`, `kick`, `drain`, `announce` and so on.
    pub action: String,
    /// To whom or what.
    pub subject: String,
    /// More about it, such as the reason.
    pub detail: String,
}

/// Signs an operator in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorSignIn {
    /// His name.
    pub name: String,
    /// His password.
    pub password: String,
}

/// What a signed-in operator holds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OperatorToken {
    /// For the `Authorization: Bearer` header of every other call.
    pub token: String,
    /// Its life, in seconds.
    pub expires_s: u64,
}

/// A password for an operator, new or known.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorPassword {
    /// 12 to 128 characters.
    #[schema(min_length = 12, max_length = 128)]
    pub password: String,
}

/// A ban or a mute.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SanctionRequest {
    /// For so many hours, at most 100 years of them.
    #[schema(minimum = 1, maximum = 876_000)]
    pub hours: u32,
    /// Why, at most 200 characters; the player is told.
    #[schema(max_length = 200)]
    pub reason: String,
}

/// A reason.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why, at most 200 characters; the player is told.
    #[schema(max_length = 200)]
    pub reason: String,
}

/// Words for everybody.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnnounceRequest {
    /// 1 to 500 characters.
    #[schema(min_length = 1, max_length = 500)]
    pub text: String,
}

/// Whether matches are made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// True: no new matches, running ones finish.
    pub draining: bool,
}

/// The state of a master, and how it came to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// Version of the program.
    pub version: String,
    /// Seconds since it started.
    pub up_s: u64,
    /// Whether it leads the queue; another master does otherwise.
    pub leading: bool,
    /// Whether it makes no more matches.
    pub draining: bool,
    /// Players that it has room for.
    pub players_max: u64,
    /// How things are.
    pub now: Sample,
    /// How they were, oldest first, at most 720 samples.
    pub history: Vec<Sample>,
    /// Seconds between two samples.
    pub sample_every_s: u64,
}

/// Figures at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// Players who are connected to this master.
    pub sessions: u64,
    /// Tickets that wait.
    pub queued: u64,
    /// How long the oldest of them has waited, in milliseconds.
    pub waited_ms_max: u64,
    /// Matches that are not over.
    pub matches: u64,
    /// Game servers that are starting.
    pub servers_starting: u64,
    /// Game servers that wait for a match.
    pub servers_ready: u64,
    /// Game servers with a match.
    pub servers_busy: u64,
}

/// A player as operators see him.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlayerLine {
    /// Who.
    pub account: AccountId,
    /// His name, if he has one.
    pub name: Option<String>,
    /// Rating.
    pub rating: f64,
    /// Points of the season.
    pub points: i64,
    /// Since when there is the account, milliseconds since 1970.
    pub created_ms: u64,
    /// Whether he is connected to this master.
    pub online: bool,
    /// His ticket.
    pub ticket: Option<TicketId>,
    /// His match.
    pub match_id: Option<MatchId>,
    /// Banned until then, milliseconds since 1970.
    pub banned_until_ms: Option<u64>,
    /// Muted until then, milliseconds since 1970.
    pub muted_until_ms: Option<u64>,
    /// Reasons of what is imposed.
    pub reasons: Vec<String>,
}

/// A ticket as operators see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TicketLine {
    /// Which.
    pub ticket: TicketId,
    /// Who waits.
    pub party: Vec<AccountId>,
    /// How long, in milliseconds.
    pub waited_ms: u64,
    /// What is asked of the match.
    pub preferences: Preferences,
    /// Matches of this ticket that were called off.
    pub attempts: u8,
}

/// A match as operators see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchLine {
    /// Which.
    pub match_id: MatchId,
    /// What is played.
    pub preferences: Preferences,
    /// Bots that fill it.
    pub bots: u8,
    /// Its server, if it has been placed.
    pub server: Option<ServerId>,
    /// Where that is.
    pub address: Option<String>,
    /// Who plays; of one that is over, who has a result.
    pub players: Vec<AccountId>,
    /// Whether it has begun.
    pub running: bool,
    /// When it was made, milliseconds since 1970.
    pub created_ms: u64,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// `finished`, `cancelled` or `aborted`.
    pub outcome: Option<String>,
}

/// A game server as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLine {
    /// Which.
    pub server: ServerId,
    /// Its port.
    pub port: u16,
    /// `starting`, `ready` or `busy`.
    pub standing: String,
    /// Whether its connection to this master is open.
    pub connected: bool,
    /// Whether another master started it.
    pub adopted: bool,
}

/// What is known of a match that went by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchLog {
    /// The match.
    pub line: MatchLine,
    /// What the master did, oldest first.
    pub master: Vec<LogLine>,
    /// The end of what its game server wrote, at most 64 kB; none if logs are not kept.
    pub server: Option<String>,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When, milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub text: String,
}

/// Lines of chat, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatLines {
    /// At most 100.
    pub lines: Vec<ChatLine>,
}
