//! A game's life with the master server: what is said, and two machines without IO that say it.
//!
//! - [`PlayerLink`] is the player's side: connect, retry every 10 seconds, keep the connection alive, ask for a match, go to the
//!   game server, and come back after the match or after any loss, by itself.
//! - [`ServerLink`] is the game server's side: register, take a match, report roster and phase each second, send the results
//!   until the master has confirmed them.
//! - [`messages`] and [`api`] are the types of the WebSocket and of the HTTP interface; the master uses the same ones, and
//!   `docs/master.md` describes both.
//!
//! Nothing here owns a socket or a clock, so the same code runs in a game, in a bot, in a browser and in a simulation.
//!
//! ```
//! use muse_master_client::{PlayerAction, PlayerLink, PlayerLinkConfig};
//! use muse_wire::Instant;
//! let mut life = PlayerLink::new(PlayerLinkConfig::default(), 7);
//! life.start(Instant::ZERO);
//! life.handle_timeout(Instant::from_secs(1));
//! assert_eq!(life.poll_action(), Some(PlayerAction::Connect));
//! ```

pub mod api;
mod ids;
pub mod messages;
mod player_link;
mod preferences;
mod server_link;

pub use ids::{AccountId, MatchId, ServerId, TicketId};
pub use player_link::{LinkState, PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig};
pub use preferences::{CHOICES_MAX, Preferences, PreferencesError, REGIONS_MAX, TEXT_LEN_MAX};
pub use server_link::{ServerAction, ServerEvent, ServerLink};
