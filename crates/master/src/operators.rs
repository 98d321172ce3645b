//! The operators' part of the master: the bodies of the interface under `/admin/api`, and what the store keeps of it.

use muse_master_client::messages::ChatLine;
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An operator, as the store keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOperator {
    /// The hash of their password.
    pub password: String,
    /// Raised by a new password; older tokens are void.
    pub generation: u64,
}

/// A sanction that an operator imposes on an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
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
    /// The kind of sanction.
    pub sanction: Sanction,
    /// The end of the sanction; none lifts it.
    pub until: Option<Instant>,
    /// The reason.
    pub reason: String,
}

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLine {
    /// The time in milliseconds since 1970.
    pub at_ms: u64,
    /// The operator's name.
    pub operator: String,
    /// The action: `ban`, `unban`, `mute`, `unmute`, `kick`, `drain`, `announce` and so on.
    pub action: String,
    /// The account or thing that it was done to.
    pub subject: String,
    /// More about it, such as the reason.
    pub detail: String,
}

/// Signs an operator in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorSignIn {
    /// Their name.
    pub name: String,
    /// Their password.
    pub password: String,
}

/// The token of a signed-in operator.
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
    /// Hours for which it holds, at most 100 years.
    #[schema(minimum = 1, maximum = 876_000)]
    pub hours: u32,
    /// The reason, at most 200 characters; the player is told.
    #[schema(max_length = 200)]
    pub reason: String,
}

/// A reason.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason, at most 200 characters; the player is told.
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

/// A request to make no more matches, or to make them again.
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
    /// True if it leads the queue; otherwise another master does.
    pub leading: bool,
    /// True if it makes no more matches.
    pub draining: bool,
    /// Players that it has room for.
    pub players_max: u64,
    /// The figures of now.
    pub now: Sample,
    /// The figures of the last hour, oldest first, at most 720 samples.
    pub history: Vec<Sample>,
    /// Seconds between two samples.
    pub sample_every_s: u64,
}

/// Figures at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// The time in milliseconds since 1970.
    pub at_ms: u64,
    /// Players who are connected to this master.
    pub sessions: u64,
    /// Tickets that wait.
    pub queued: u64,
    /// The waiting time of the oldest of them in milliseconds.
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

/// A player as operators see them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlayerLine {
    /// Their account.
    pub account: AccountId,
    /// Their name, if they have one.
    pub name: Option<String>,
    /// Rating.
    pub rating: f64,
    /// Points of the season.
    pub points: i64,
    /// Since when there is the account, milliseconds since 1970.
    pub created_ms: u64,
    /// True if they are connected to this master.
    pub online: bool,
    /// Their ticket.
    pub ticket: Option<TicketId>,
    /// Their match.
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
    /// The ticket.
    pub ticket: TicketId,
    /// The players who wait.
    pub party: Vec<AccountId>,
    /// Their waiting time in milliseconds.
    pub waited_ms: u64,
    /// Their preferences.
    pub preferences: Preferences,
    /// Matches of this ticket that were called off.
    pub attempts: u8,
}

/// A match as operators see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchLine {
    /// The match.
    pub match_id: MatchId,
    /// The preferences by which it is played.
    pub preferences: Preferences,
    /// Bots that fill it.
    pub bots: u8,
    /// Its server, if it has been placed.
    pub server: Option<ServerId>,
    /// The server's address.
    pub address: Option<String>,
    /// The players; of one that is over, those with a result.
    pub players: Vec<AccountId>,
    /// True if it has begun.
    pub running: bool,
    /// The time when it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time when it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// `finished`, `cancelled` or `aborted`.
    pub outcome: Option<String>,
}

/// A game server as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLine {
    /// The server.
    pub server: ServerId,
    /// Its port.
    pub port: u16,
    /// `starting`, `ready` or `busy`.
    pub standing: String,
    /// True if its connection to this master is open.
    pub connected: bool,
    /// True if another master started it.
    pub adopted: bool,
}

/// A match that is over, with its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchLog {
    /// The match.
    pub line: MatchLine,
    /// The master's log of it, oldest first.
    pub master: Vec<LogLine>,
    /// The end of what its game server wrote, at most 64 kB; none if logs are not kept.
    pub server: Option<String>,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// The time in milliseconds since 1970.
    pub at_ms: u64,
    /// The event.
    pub text: String,
}

/// Lines of chat, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatLines {
    /// At most 100.
    pub lines: Vec<ChatLine>,
}
