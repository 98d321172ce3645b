//! One of ours or the original, in one world.

use std::net::SocketAddr;

use muse_rp::{Channel, Event, Host};
use muse_wire::Instant;

use super::original::Original;
use super::world::Peer;

/// A peer of either kind.
#[allow(clippy::large_enum_variant, reason = "there are two of them")]
pub(crate) enum Either {
    Ours(Host),
    Original(Original),
}

impl Either {
    pub(crate) fn ours(&mut self) -> &mut Host {
        match self {
            Self::Ours(host) => host,
            Self::Original(_) => panic!("it is the original"),
        }
    }

    pub(crate) fn original(&mut self) -> &mut Original {
        match self {
            Self::Original(original) => original,
            Self::Ours(_) => panic!("it is one of ours"),
        }
    }
}

impl Peer for Either {
    fn handle_datagram(&mut self, now: Instant, channel: Channel, from: SocketAddr, bytes: &[u8]) {
        match self {
            Self::Ours(host) => host.handle_datagram(now, channel, from, bytes),
            Self::Original(original) => original.handle_datagram(now, channel, from, bytes),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Ours(host) => host.handle_timeout(now),
            Self::Original(original) => original.handle_timeout(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Ours(host) => host.poll_timeout(),
            Self::Original(original) => original.poll_timeout(),
        }
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        match self {
            Self::Ours(host) => host.poll_transmit(now, channel, buffer),
            Self::Original(original) => {
                let (to, bytes) = original.poll_transmit(channel)?;
                buffer[..bytes.len()].copy_from_slice(&bytes);
                Some((to, bytes.len()))
            }
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Ours(host) => host.poll_event(),
            Self::Original(_) => None,
        }
    }
}
