//! Counts of a network of its own, beside the counters of its links and pipes.

use crate::{Cause, Packet};

/// Counts of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NodeStats {
    /// Handed to the network.
    pub sent: Traffic,
    /// Taken from the network, copies included.
    pub received: Traffic,
}

/// An amount of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub payload_bytes: u64,
    /// Bytes with IP and UDP headers.
    pub ip_bytes: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, packet: Packet) {
        self.datagrams += 1;
        self.payload_bytes += packet.payload_len as u64;
        self.ip_bytes += packet.ip_len() as u64;
    }
}

/// Datagrams that were lost outside of any link or pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unrouted {
    /// Lost to partitions.
    pub partition: u64,
    /// Sent to an address that nobody has.
    pub no_such_address: u64,
    /// Stopped by a NAT.
    pub filtered: u64,
}

impl Unrouted {
    pub(super) fn count(&mut self, cause: Cause) {
        match cause {
            Cause::Partition => self.partition += 1,
            Cause::Filtered => self.filtered += 1,
            _ => self.no_such_address += 1,
        }
    }
}
