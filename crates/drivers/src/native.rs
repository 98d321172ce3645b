//! Everything that needs sockets, files, randomness or a clock of the operating system: all but what a page in a browser can use.

#[cfg(feature = "tokio")]
mod async_endpoint;
#[cfg(feature = "tokio")]
pub mod async_udp;
pub(crate) mod connect;
mod key_file;
mod key_log;
mod lan;
#[cfg(feature = "master")]
pub mod master;
mod private;
pub(crate) mod relay;
mod shards;
pub(crate) mod sockets;
mod survey;
pub mod udp;
#[cfg(feature = "web")]
pub mod web;

#[cfg(feature = "tokio")]
pub use async_endpoint::{AsyncClientDriver, AsyncEndpointDriver};
#[cfg(feature = "tokio")]
pub use async_udp::AsyncUdp;
pub use key_file::{load_or_create_key, new_key};
pub use key_log::{KeyLog, danger_key_log_file};
pub use lan::{LanAnnouncer, LanFinder};
#[cfg(feature = "master")]
pub use master::{MasterAddress, MasterCredentials, MasterLink, MasterSocket, MasterSocketConfig};
pub use shards::bind_shards;
pub use survey::survey_relays;
pub use udp::{UdpCounters, UdpDriver, UdpOptions};
#[cfg(feature = "web")]
pub use web::{
    UdpWebDriver, WebCounters, WebKind, WebListener, WebOptions, WebSession, is_web_address,
};
