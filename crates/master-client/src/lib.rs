//! A game's life with the master server: what is said, and two machines without IO that say it.
//!
//! - [`Life`] is the player's side: connect, retry every 10 seconds, keep the connection alive, ask for a match, go to the
//!   game server, and come back after the match or after any loss, by itself.
//! - [`ServerLife`] is the game server's side: register, take a match, report roster and phase each second, send the results
//!   until the master has confirmed them.
//! - [`messages`] and [`api`] are the types of the WebSocket and of the HTTP interface; the master uses the same ones, and
//!   `docs/master.md` describes both.
//!
//! Nothing here owns a socket or a clock, so the same code runs in a game, in a bot, in a browser and in a simulation.
//!
//! ```
//! use muse_master_client::{Action, Life, LifeConfig};
//! use muse_wire::Instant;
//! let mut life = Life::new(LifeConfig::default(), 7);
//! life.start(Instant::ZERO);
//! life.handle_timeout(Instant::from_secs(1));
//! assert_eq!(life.poll_action(), Some(Action::Connect));
//! ```

pub mod api;
mod ids;
mod life;
pub mod messages;
mod preferences;
mod server_life;

pub use ids::{AccountId, MatchId, ServerId, TicketId};
pub use life::{Action, Event, Life, LifeConfig, Standing};
pub use preferences::{CHOICES_MAX, Preferences, PreferencesError, REGIONS_MAX, TEXT_LEN_MAX};
pub use server_life::{ServerAction, ServerEvent, ServerLife};
