//! Everything that needs sockets, files, randomness or a clock of the operating system: all but what a page in a browser can use.

#[cfg(feature = "tokio")]
mod async_host;
#[cfg(feature = "tokio")]
pub mod async_udp;
mod client;
pub mod clock;
pub mod entropy;
mod host;
mod key_file;
mod lan;
#[cfg(feature = "master")]
pub mod master;
mod relay;
mod server;
pub mod shards;
mod survey;
pub mod udp;
#[cfg(feature = "web")]
pub mod web;

#[cfg(feature = "tokio")]
pub use async_host::{AsyncClient, AsyncServer};
#[cfg(feature = "tokio")]
pub use async_udp::AsyncUdp;
pub use client::Client;
pub use clock::Clock;
pub use entropy::{SystemEntropy, fill_random};
pub use key_file::{load_or_create_key, new_key};
pub use lan::{LanAnnouncer, LanFinder};
#[cfg(feature = "master")]
pub use master::{MasterAddress, MasterCredentials, MasterLink, MasterSocket, MasterSocketConfig};
pub use server::Server;
pub use shards::bind_shards;
pub use survey::survey_relays;
pub use udp::{UdpCounters, UdpDriver, UdpOptions};
#[cfg(feature = "web")]
pub use web::{
    UdpWebDriver, WebCounters, WebKind, WebListener, WebOptions, WebSession, is_web_address,
};
