//! Everything that needs sockets, files, randomness or a clock of the operating system: all but what a page in a browser can use.

#[cfg(feature = "tokio")]
mod async_endpoint;
#[cfg(feature = "tokio")]
pub mod async_udp;
pub(crate) mod connect;
mod key_file;
mod key_log;
#[cfg(feature = "relay")]
mod lan;
#[cfg(feature = "master")]
pub mod master;
mod private;
#[cfg_attr(not(feature = "relay"), path = "native/no_relay.rs")]
pub(crate) mod relay;
mod shards;
pub(crate) mod sockets;
#[cfg(feature = "relay")]
mod survey;
#[cfg(feature = "tls")]
mod tls;
pub mod udp;
#[cfg(feature = "web")]
pub mod web;

#[cfg(feature = "tokio")]
pub use async_endpoint::{AsyncClientDriver, AsyncEndpointDriver};
#[cfg(feature = "tokio")]
pub use async_udp::AsyncUdp;
pub use key_file::{load_or_create_key, new_key};
pub use key_log::{KeyLog, danger_key_log_file};
#[cfg(feature = "relay")]
pub use lan::{LanAnnouncer, LanFinder};
#[cfg(feature = "master")]
pub use master::{MasterAddress, MasterCredentials, MasterLink, MasterSocket, MasterSocketConfig};
#[cfg(feature = "relay")]
pub use relay::RoomOptions;
pub use shards::bind_shards;
#[cfg(feature = "relay")]
pub use survey::survey_relays;
#[cfg(feature = "tls")]
pub use tls::{CertificateError, TlsCertificate};
pub use udp::{UdpCounters, UdpDriver, UdpOptions};
#[cfg(feature = "web")]
pub use web::{
    UdpWebDriver, WebCounters, WebKind, WebListener, WebOptions, WebSession, is_web_address,
};
