//! Addresses that people type.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::Context;

/// Looks up `HOST:PORT`. An IPv4 address is preferred, because servers that listen on one family alone mostly use it.
pub fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let hint = || format!("cannot look up {text}; it must be HOST:PORT, as in 192.0.2.7:7000");
    let found: Vec<SocketAddr> = text.to_socket_addrs().with_context(hint)?.collect();
    let preferred = found.iter().find(|address| address.is_ipv4());
    preferred.or(found.first()).copied().with_context(hint)
}
