//! A game's and a game server's connection to the master: the messages, and two machines without IO that exchange them.
//!
//! - [`PlayerLink`] is the player's side: connect, retry, keep the connection alive, enter and leave the queue, go to the
//!   game server, and come back after the match or after any loss, by itself.
//! - [`ServerLink`] is the game server's side: register, take a match, report roster and phase each second, send the results
//!   until the master has confirmed them.
//! - [`MasterMachine`] is what both have in common for a driver: texts in, texts out.
//! - [`messages`] and [`api`] are the types of the WebSocket and of the HTTP interface; the master uses the same ones, and
//!   `docs/master.md` describes both.
//!
//! Nothing here owns a socket or a clock, so the same code runs in a game, in a bot, in a browser and in a simulation.
//!
//! ```
//! use muse_master_client::{PlayerAction, PlayerLink, PlayerLinkConfig};
//! use muse_wire::Instant;
//! let mut link = PlayerLink::new(PlayerLinkConfig::default(), 7);
//! link.start(Instant::ZERO);
//! link.handle_timeout(Instant::from_secs(1));
//! assert_eq!(link.poll_action(), Some(PlayerAction::Connect));
//! ```

pub mod api;
mod backoff;
mod ids;
mod machine;
pub mod messages;
mod player_link;
mod preferences;
mod server_link;

pub use ids::{AccountId, MatchId, ServerId, TicketId};
pub use machine::{MasterMachine, MasterStep};
pub use player_link::{
    LinkState, PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig, QueueStatus,
};
pub use preferences::{CHOICES_MAX, Preferences, PreferencesError, REGIONS_MAX, TEXT_LEN_MAX};
pub use server_link::{ServerAction, ServerEvent, ServerLink};
