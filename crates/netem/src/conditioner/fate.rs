//! The properties of a datagram that a link sees, and its fate.

use std::net::SocketAddr;

use fastrand::Rng;
use muse_wire::{Ecn, Instant};

use crate::Conditions;

/// A datagram as a link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes of UDP payload.
    pub payload_len: usize,
    /// Bytes of IP and UDP headers.
    pub headers_len: usize,
    /// Its congestion mark.
    pub ecn: Ecn,
}

impl Packet {
    /// IPv4 and UDP headers.
    pub const HEADERS_V4: usize = 28;
    /// IPv6 and UDP headers.
    pub const HEADERS_V6: usize = 48;

    /// A datagram with this much payload, with the headers that the kind of address asks for.
    pub fn new(to: SocketAddr, payload_len: usize, ecn: Ecn) -> Self {
        let headers_len = if to.is_ipv4() {
            Self::HEADERS_V4
        } else {
            Self::HEADERS_V6
        };
        Self {
            payload_len,
            headers_len,
            ecn,
        }
    }

    /// Bytes of the whole IP packet.
    pub fn ip_len(&self) -> usize {
        self.payload_len.saturating_add(self.headers_len)
    }
}

/// The fate of one offered datagram: it is lost, or arrives once or twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fates {
    pub(super) copies: [Option<Fate>; 2],
    pub(super) lost: Option<Cause>,
}

impl Fates {
    /// The arrivals: none, one, or two. They are not sorted by time.
    pub fn arrivals(&self) -> impl Iterator<Item = Fate> + use<> {
        self.copies.into_iter().flatten()
    }

    /// The reason for which nothing arrives.
    pub fn lost(&self) -> Option<Cause> {
        self.lost
    }
}

/// One arrival of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fate {
    /// The time of its arrival.
    pub at: Instant,
    /// The congestion mark it arrives with.
    pub ecn: Ecn,
    /// The damage to its bytes.
    pub damage: Damage,
}

/// The damage to a datagram's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Damage {
    pub(super) kept_len: Option<usize>,
    pub(super) flips: u8,
    pub(super) seed: u64,
}

impl Damage {
    /// True if the bytes arrive as they were sent.
    pub fn is_none(&self) -> bool {
        self.kept_len.is_none() && self.flips == 0
    }

    /// Flips the bits and returns the length to keep.
    pub fn apply(&self, payload: &mut [u8]) -> usize {
        let len = self.kept_len.unwrap_or(payload.len()).min(payload.len());
        let bits = len * 8;
        let flips = usize::from(self.flips)
            .min(bits)
            .min(usize::from(Conditions::CORRUPT_BITS_MAX));
        let mut rng = Rng::with_seed(self.seed);
        let mut chosen = [usize::MAX; Conditions::CORRUPT_BITS_MAX as usize];
        for index in 0..flips {
            // All different, or two flips would undo each other.
            let mut bit = rng.u64(..bits as u64) as usize;
            while chosen[..index].contains(&bit) {
                bit = (bit + 1) % bits;
            }
            chosen[index] = bit;
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        len
    }
}

/// The reason for which a datagram was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Independent or correlated loss.
    Random,
    /// The bad state of a burst.
    Burst,
    /// The queue before the link was full.
    QueueFull,
    /// Larger than the MTU.
    TooLarge,
    /// The link was down.
    Outage,
    /// Its sender and its receiver were cut off from each other.
    Partition,
    /// Nobody has the address it was sent to.
    NoSuchAddress,
    /// A NAT had no mapping for it, or did not let it in.
    Filtered,
}
