//! Names of things the master knows, as numbers below 2^53 so that JavaScript reads them exactly.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A player's account; the same number is in connect tokens.
    AccountId
);
id!(
    /// A ticket in a queue.
    TicketId
);
id!(
    /// A match, from its row in the store to its result.
    MatchId
);
id!(
    /// A game server that the fleet has started.
    ServerId
);
