//! The messages on the WebSockets of players (`/v1/push`) and of game servers (`/v1/server`): one JSON object per text message.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{AccountId, MatchId, Preferences, TicketId};

/// From a player to the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToMaster {
    /// Still here; sent each second.
    KeepAlive,
    /// *Play*: enters the queue, changes the preferences in place, or leaves it if they are unchanged.
    Play {
        /// The player's preferences.
        preferences: Preferences,
    },
    /// Like *play*, but never leaves: what a client sends that has come back and still wants a match.
    Queue {
        /// The player's preferences.
        preferences: Preferences,
    },
    /// Leaves the queue.
    LeaveQueue,
    /// Asks for a fresh token for the match in which a seat is kept.
    Rejoin,
    /// Gives the seat up.
    LeaveMatch,
}

/// From the master to a player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromMaster {
    /// The first message: who you are, and what was going on when you came (back).
    Welcome {
        /// The account that the session belongs to.
        account: AccountId,
        /// The player's place in the queue, if there is one.
        ticket: Option<QueueState>,
        /// The player's seat in a match, if there is one that is ready.
        seat: Option<Seat>,
    },
    /// The answer to a keep-alive of a client that was sent nothing for 2.5 seconds.
    KeepAlive,
    /// No room; the master closes the connection.
    Full {
        /// Seconds after which to try again.
        retry_after_s: u32,
    },
    /// Queue state: at entering, at a change, and from time to time.
    Queue(QueueState),
    /// No longer in the queue.
    LeftQueue,
    /// The wait has been long: bots may fill the match if the preferences accept them.
    BotsOffered,
    /// A match is made and a server is being started.
    MatchFound {
        /// The match.
        match_id: MatchId,
    },
    /// Go and play.
    Seat(Seat),
    /// The match is over, or was called off before it began; back to the master.
    MatchOver {
        /// The match.
        match_id: MatchId,
        /// The end of it.
        outcome: Outcome,
    },
    /// A friend came or went.
    Presence {
        /// The player's account.
        account: AccountId,
        /// True if they are online.
        online: bool,
    },
    /// A friend asks to play together.
    Invitation {
        /// The account that asks.
        from: AccountId,
        /// The room's code.
        room: String,
    },
    /// Someone asks to be a friend, or has accepted.
    Friend {
        /// The player's account.
        account: AccountId,
        /// True if it is accepted.
        accepted: bool,
    },
    /// Somebody wrote.
    Chat(ChatLine),
    /// Words from the operators.
    Announcement {
        /// The words.
        text: String,
    },
    /// The last message could not be done.
    Refused {
        /// A short name of the reason, the same as in the HTTP interface.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The master closes this connection: a newer one of the same account took over, or it drains. Come back at once or never.
    Closing {
        /// True if the client should come back.
        come_back: bool,
    },
}

/// A ticket as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueState {
    /// The ticket.
    pub ticket: TicketId,
    /// The time that it has waited, in milliseconds.
    pub waited_ms: u64,
    /// Its preferences.
    pub preferences: Preferences,
}

/// A way into a running match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Seat {
    /// The match.
    pub match_id: MatchId,
    /// Address and port of the game server.
    pub address: String,
    /// The connect token as text: single use, 60 seconds.
    pub token: String,
    /// The preferences of the match, merged from those of its players.
    pub preferences: Preferences,
}

/// One line of chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChatLine {
    /// Its number, growing.
    pub id: u64,
    /// The channel: `direct`, `room` or `match`.
    pub channel: String,
    /// The author.
    pub from: AccountId,
    /// The message.
    pub text: String,
    /// Time of writing, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Played to its end; the results count.
    Finished,
    /// Called off before it began: somebody did not connect or load in time, or no server could be had.
    Cancelled,
    /// The game server was lost; nothing counts.
    Aborted,
}

/// From the master to a game server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToServer {
    /// The answer to every report: still here.
    KeepAlive,
    /// Host this match.
    Assign(Assignment),
    /// One more player may come: backfill.
    Admit {
        /// The player's account.
        account: AccountId,
    },
    /// A player is out: they left for good, or an operator sent them away.
    Remove {
        /// The player's account.
        account: AccountId,
    },
    /// The results of this match are stored; the server may end.
    ResultStored {
        /// The match.
        match_id: MatchId,
    },
    /// The answer to [`FromServer::Profile`].
    Profile(PlayerProfile),
    /// A player's progress is kept.
    ProgressStored {
        /// The player's account.
        account: AccountId,
        /// The number it came with.
        number: u32,
    },
    /// Refused for good: saying it again changes nothing. After a refused register, report or result the server is to end.
    Refused {
        /// The message that is refused.
        message: ServerMessage,
        /// The reason.
        refusal: ServerRefusal,
    },
    /// End now: the match is called off, or belongs to nobody.
    End,
}

/// A kind of message of a game server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// [`FromServer::Register`].
    Register,
    /// [`FromServer::Report`].
    Report,
    /// [`FromServer::Result`].
    Result,
    /// [`FromServer::Profile`].
    Profile,
    /// [`FromServer::Progress`].
    Progress,
}

impl ServerMessage {
    /// Returns true if a server whose message was refused has nothing left to say.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Register | Self::Report | Self::Result)
    }
}

/// The reason why a master refuses what a game server says: a server speaks only for its match and the seats of that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerRefusal {
    /// The match is not this server's.
    #[error("match {match_id} is not this server's")]
    OtherMatch {
        /// The match that was named.
        match_id: MatchId,
    },
    /// The server has no match, or its match is over.
    #[error("this server has no match, or its match is over")]
    NoMatch,
    /// The account has no seat in the match.
    #[error("account {account} has no seat in the match")]
    NoSeat {
        /// The account that was named.
        account: AccountId,
    },
    /// A result names an account more than once.
    #[error("account {account} is named more than once")]
    NamedTwice {
        /// The account.
        account: AccountId,
    },
    /// The server of this credential has registered with another public key.
    #[error("this credential belongs to a server with another key")]
    OtherKey,
}

/// The facts that a game server is told about a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerProfile {
    /// The player's account.
    pub account: AccountId,
    /// The player's name; guests have none.
    pub name: Option<String>,
    /// The progress that game servers kept the last time; null if there is none.
    pub document: Value,
}

/// A match for a game server to host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The match.
    pub match_id: MatchId,
    /// The preferences of the match.
    pub preferences: Preferences,
    /// The players.
    pub players: Vec<AccountId>,
    /// The number of bots that fill the match.
    pub bots: u8,
    /// Ed25519 public keys of the master's connect tokens as pairs of number and hexadecimal text.
    pub token_keys: Vec<(u32, String)>,
    /// Protocol that the tokens name.
    pub protocol_id: u64,
    /// Time for all players to connect, and again for all to load, in milliseconds.
    pub connect_ms: u64,
    /// The master's proof that it gave this match to this server, for the [`Claim`] of a later connection.
    #[serde(default)]
    pub proof: String,
}

/// A server's claim to the match that a master has given it, shown to the next master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The match.
    pub match_id: MatchId,
    /// The [`proof`](Assignment::proof) of its assignment.
    pub proof: String,
}

/// From a game server to the master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromServer {
    /// The first message: where players reach it, and the key to which tokens are sealed, in hexadecimal.
    Register {
        /// Address and port.
        address: String,
        /// The server's public key. A credential belongs to the first key that registers with it.
        public_key: String,
        /// The match that it hosts, if it has one already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<Claim>,
    },
    /// Each second and at every change.
    Report(Report),
    /// The end of a match; repeated until [`ToServer::ResultStored`] or [`ToServer::Refused`].
    Result(MatchResult),
    /// Asks for a player's name and progress.
    Profile {
        /// The player's account.
        account: AccountId,
        /// The game whose progress is asked for.
        game: String,
    },
    /// A player's progress, to be kept; repeated until [`ToServer::ProgressStored`] or [`ToServer::Refused`].
    Progress {
        /// The player's account.
        account: AccountId,
        /// The game.
        game: String,
        /// Grows with each change, so that an answer can name one.
        number: u32,
        /// The progress to keep.
        document: Value,
    },
}

/// The state of a match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The match; none while waiting for one.
    pub match_id: Option<MatchId>,
    /// Its phase.
    pub phase: Phase,
    /// Players for whom the server keeps a seat, connected or not.
    pub seated: Vec<AccountId>,
    /// Players who are connected.
    pub present: Vec<AccountId>,
    /// Players whose seats are given up: they left for good, or the others went on without them.
    pub left: Vec<AccountId>,
    /// Seats that others may take.
    pub open_seats: u8,
}

/// The phase of a game server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for a match.
    #[default]
    Ready,
    /// Waits for its players to connect.
    Connecting,
    /// Waits for its players to load.
    Loading,
    /// Plays.
    Running,
}

/// The end of a match, from the game server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchResult {
    /// The match.
    pub match_id: MatchId,
    /// The end of it; `cancelled` before it began.
    pub outcome: Outcome,
    /// Every player, absent ones too.
    pub players: Vec<PlayerResult>,
}

/// One player's part in the end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerResult {
    /// The player's account.
    pub account: AccountId,
    /// The points.
    pub points: i64,
    /// The team; a player without one plays alone. One team for all is a co-operative match, which gives points but no rating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<u8>,
}

/// These bytes are no message.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Too long.
    #[error("a message has at most {MESSAGE_LEN_MAX} bytes")]
    Long,
    /// Not what this end expects.
    #[error("not a message: {0}")]
    Json(#[from] serde_json::Error),
}

/// Reads one message.
pub fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, MessageError> {
    if text.len() > MESSAGE_LEN_MAX {
        return Err(MessageError::Long);
    }
    Ok(serde_json::from_str(text)?)
}

/// Writes one message.
pub fn encode<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("messages have text keys and finite numbers")
}

/// Longest message either way.
pub const MESSAGE_LEN_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_flat_json_with_a_type() {
        let play = ToMaster::Play {
            preferences: Preferences::default().players(2),
        };
        let text = encode(&play);
        assert!(
            text.starts_with(r#"{"type":"play","preferences":{"players":2"#),
            "{text}"
        );
        assert_eq!(decode::<ToMaster>(&text).expect("just written"), play);
        let result = FromServer::Result(MatchResult {
            match_id: MatchId(3),
            outcome: Outcome::Finished,
            players: vec![PlayerResult {
                account: AccountId(7),
                points: 100,
                team: None,
            }],
        });
        assert_eq!(
            decode::<FromServer>(&encode(&result)).expect("just written"),
            result
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(matches!(
            decode::<ToMaster>("{}"),
            Err(MessageError::Json(_))
        ));
        let long = " ".repeat(MESSAGE_LEN_MAX + 1);
        assert!(matches!(decode::<ToMaster>(&long), Err(MessageError::Long)));
    }
}
