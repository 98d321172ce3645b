//! Everything that needs sockets, files, randomness or a clock of the operating system: all but what a page in a browser can use.

#[cfg(feature = "tokio")]
mod async_endpoint;
#[cfg(feature = "tokio")]
pub mod async_udp;
pub(crate) mod connect;
mod key_file;
mod lan;
#[cfg(feature = "master")]
pub mod master;
pub(crate) mod relay;
pub mod shards;
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
