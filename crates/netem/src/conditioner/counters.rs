//! Counts of what has passed through a conditioner.

use muse_wire::Duration;

use super::Cause;

/// Counts of what has passed through a conditioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams offered.
    pub offered: u64,
    /// Arrivals, copies included.
    pub delivered: u64,
    /// Lost by independent or correlated loss.
    pub lost_random: u64,
    /// Lost in bursts.
    pub lost_burst: u64,
    /// Lost because the queue was full.
    pub lost_queue: u64,
    /// Lost because they were larger than the MTU.
    pub lost_mtu: u64,
    /// Lost in outages.
    pub lost_outage: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Datagrams with flipped bits.
    pub corrupted: u64,
    /// Datagrams cut short.
    pub truncated: u64,
    /// Datagrams held back by explicit reordering.
    pub held_back: u64,
    /// Datagrams marked as congested.
    pub marked: u64,
    /// Bytes offered, headers included.
    pub offered_ip_bytes: u64,
    /// Bytes that arrive, headers and copies included.
    pub delivered_ip_bytes: u64,
    /// Longest time that an accepted datagram waited before it was sent.
    pub queue_delay_max: Duration,
}

impl Counters {
    /// Datagrams lost, whatever the cause.
    pub fn lost(&self) -> u64 {
        self.lost_random + self.lost_burst + self.lost_queue + self.lost_mtu + self.lost_outage
    }

    /// The sum of both, and the longer of the longest waits: what several links have done together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            delivered: self.delivered + other.delivered,
            lost_random: self.lost_random + other.lost_random,
            lost_burst: self.lost_burst + other.lost_burst,
            lost_queue: self.lost_queue + other.lost_queue,
            lost_mtu: self.lost_mtu + other.lost_mtu,
            lost_outage: self.lost_outage + other.lost_outage,
            duplicated: self.duplicated + other.duplicated,
            corrupted: self.corrupted + other.corrupted,
            truncated: self.truncated + other.truncated,
            held_back: self.held_back + other.held_back,
            marked: self.marked + other.marked,
            offered_ip_bytes: self.offered_ip_bytes + other.offered_ip_bytes,
            delivered_ip_bytes: self.delivered_ip_bytes + other.delivered_ip_bytes,
            queue_delay_max: self.queue_delay_max.max(other.queue_delay_max),
        }
    }

    pub(super) fn lost_mut(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Burst => &mut self.lost_burst,
            Cause::QueueFull => &mut self.lost_queue,
            Cause::TooLarge => &mut self.lost_mtu,
            Cause::Outage => &mut self.lost_outage,
            _ => &mut self.lost_random,
        }
    }
}
