//! Bodies of the HTTP interface; `/openapi.json` of a running master describes every call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::messages::{ChatLine, QueueState, Seat};
use crate::{AccountId, MatchId, Preferences};

macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    };
}

body!(
    /// Signs a guest in, and makes the account the first time.
    GuestRequest {
        /// 16 to 256 random characters, kept on the device like a password.
        #[cfg_attr(feature = "openapi", schema(min_length = 16, max_length = 256))]
        device_key: String,
    }
);
body!(
    /// A name and a password for an account.
    NewPasswordRequest {
        /// 3 to 24 letters, digits, `-` or `_`.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_-]{3,24}$"))]
        name: String,
        /// 8 to 128 characters.
        #[cfg_attr(feature = "openapi", schema(min_length = 8, max_length = 128))]
        password: String,
        /// The password until now, if the account has one.
        old_password: Option<String>,
    }
);
body!(
    /// A name and a password, to sign in.
    PasswordRequest {
        /// 3 to 24 letters, digits, `-` or `_`.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_-]{3,24}$"))]
        name: String,
        /// 8 to 128 characters.
        #[cfg_attr(feature = "openapi", schema(min_length = 8, max_length = 128))]
        password: String,
    }
);
body!(
    /// Exchanges a refresh token, which can be used once, for a new pair.
    RefreshRequest {
        /// The token.
        refresh_token: String,
    }
);
body!(
    /// The tokens of a signed-in player.
    SignedIn {
        /// The player's account.
        account: AccountId,
        /// For the `Authorization: Bearer` header of every other call.
        access_token: String,
        /// For the next pair.
        refresh_token: String,
        /// Life of the access token, in seconds.
        expires_s: u64,
    }
);
body!(
    /// A game server that a cluster started asks for its credential; it shows the fleet's key as `Authorization: Bearer`.
    EnrolRequest {
        /// Its name in the cluster.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 253))]
        name: String,
        /// The unique id that the cluster gave to the object of this name.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
        uid: String,
    }
);
body!(
    /// A game server may connect.
    Enrolled {
        /// The secret that it shows at `/v1/server`.
        credential: String,
    }
);
body!(
    /// An account as its owner sees it.
    AccountView {
        /// Its number.
        account: AccountId,
        /// Its name, if it has one.
        name: Option<String>,
        /// Its rating.
        rating: f64,
        /// The deviation of the rating; smaller is surer.
        uncertainty: f64,
        /// Points of the season.
        points: i64,
    }
);
body!(
    /// *Play*: enters the queue, changes the preferences in place, or leaves it if they are unchanged.
    PlayRequest {
        /// The player's preferences.
        preferences: Preferences,
    }
);
body!(
    /// The outcome of *play*.
    PlayAnswer {
        /// The ticket, or none if *play* again has left the queue.
        ticket: Option<QueueState>,
    }
);
body!(
    /// The situation of a player.
    StateView {
        /// The player's place in the queue.
        ticket: Option<QueueState>,
        /// The player's match, ready or not.
        match_id: Option<MatchId>,
        /// The player's seat in the match, with a fresh token, if it is ready.
        seat: Option<Seat>,
        /// The code of their room.
        room: Option<String>,
    }
);
body!(
    /// Saved progress of one game.
    Progress {
        /// Grows by one with every write; a write names the version it is based on, 0 for the first.
        version: u64,
        /// Any JSON of at most 16 kB.
        document: serde_json::Value,
    }
);
body!(
    /// One friend, request or blocked account.
    FriendView {
        /// The player's account.
        account: AccountId,
        /// The name, if there is one.
        name: Option<String>,
        /// `friend`, `asked` (by us), `asks` (us) or `blocked`.
        state: String,
        /// True if they are online; known of friends only.
        online: bool,
    }
);
body!(
    /// A room: friends who want to play together.
    RoomView {
        /// Six letters to give to friends.
        code: String,
        /// The members; the first one leads and may *play*.
        members: Vec<AccountId>,
    }
);
body!(
    /// A relay.
    RelayPlace {
        /// The region it is in.
        region: String,
        /// Host and UDP port.
        address: String,
        /// The relay's public key, if it opens rooms for holders of a token alone.
        key: Option<String>,
    }
);
body!(
    /// The right to open a room at a relay.
    RelayToken {
        /// Host and UDP port of the relay.
        address: String,
        /// A connect token for that relay, as text.
        token: String,
    }
);
body!(
    /// The public key with which relays check tokens.
    RelayKey {
        /// 64 hexadecimal digits.
        key: String,
    }
);
body!(
    /// Every relay.
    RelayPage {
        /// In an order that stays.
        relays: Vec<RelayPlace>,
    }
);
body!(
    /// The latencies that a player measured.
    RoundTrips {
        /// Milliseconds to the relays of regions, at most 16; a missing one is out of reach.
        latency_ms: BTreeMap<String, u16>,
    }
);
body!(
    /// Something to say.
    ChatRequest {
        /// 1 to 500 characters.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
        text: String,
    }
);
body!(
    /// Lines of chat, oldest first.
    ChatHistory {
        /// At most 100.
        lines: Vec<ChatLine>,
    }
);
body!(
    /// One line of the season's ranking.
    RankingLine {
        /// Place, from 1.
        place: u64,
        /// The player's account.
        account: AccountId,
        /// The name, if there is one.
        name: Option<String>,
        /// Points of the season.
        points: i64,
        /// Rating.
        rating: f64,
    }
);
body!(
    /// A page of the season's ranking.
    RankingPage {
        /// At most 100 lines.
        lines: Vec<RankingLine>,
        /// Asks for the next page as `after`; none if there is no more.
        next: Option<String>,
    }
);
body!(
    /// Every answer that is no success.
    ErrorBody {
        /// A short name of the reason.
        code: String,
        /// A sentence.
        message: String,
    }
);
