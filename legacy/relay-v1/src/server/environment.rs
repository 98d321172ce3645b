//! The relay's state of an address, whether or not a client has it now.

use std::net::{IpAddr, SocketAddr};

use muse_wire::rate::TokenBucket;
use muse_wire::{Duration, Instant};

use crate::StreamId;
use crate::limits::Limits;

/// One address and its present client.
///
/// Budgets stay when a client goes, so that nobody gets a new one by connecting again.
#[derive(Debug)]
pub(super) struct Environment {
    stream: Option<StreamId>,
    /// Of the TCP connection.
    pub(super) ip: Option<IpAddr>,
    /// The address to which UDP goes, once it is known.
    pub(super) endpoint: Option<SocketAddr>,
    /// The time at which the client was last heard from its endpoint.
    pub(super) endpoint_heard: Instant,
    /// The counter of the last grouped packet taken; none before the first.
    pub(super) counter: Option<u32>,
    /// The held packet that is the broadcast of a type: one more than its number, zero for none.
    pub(super) groups: Vec<u32>,
    /// Bytes of UDP that are held for the tick.
    pub(super) held_bytes: usize,
    pub(super) datagrams: TokenBucket,
    pub(super) packets: TokenBucket,
    pub(super) bytes: TokenBucket,
    /// Bytes that have arrived on the stream and are not a whole packet yet, or are beyond the budget.
    pub(super) input: Vec<u8>,
    pub(super) waits_for_budget: bool,
    /// Nothing more will arrive on the stream.
    pub(super) ended: bool,
    /// The first packet held for the tick, and of those that leave, that is younger than the client.
    pub(super) first_frame: usize,
    pub(super) first_leaving: usize,
    output: Vec<u8>,
    /// The number of bytes of `output` that are written.
    output_start: usize,
    /// The time at which output last went, or began to wait.
    output_moved: Instant,
}

impl Environment {
    pub(super) fn new(now: Instant, limits: &Limits) -> Self {
        Self {
            stream: None,
            ip: None,
            endpoint: None,
            endpoint_heard: now,
            counter: None,
            groups: Vec::new(),
            held_bytes: 0,
            datagrams: TokenBucket::full(now, limits.datagram_rate),
            packets: TokenBucket::full(now, limits.packet_rate),
            bytes: TokenBucket::full(now, limits.byte_rate),
            input: Vec::new(),
            waits_for_budget: false,
            ended: false,
            first_frame: 0,
            first_leaving: 0,
            output: Vec::new(),
            output_start: 0,
            output_moved: now,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// A new client gets the address.
    pub(super) fn activate(
        &mut self,
        stream: StreamId,
        ip: IpAddr,
        first_frame: usize,
        first_leaving: usize,
    ) {
        self.stream = Some(stream);
        self.ip = Some(ip);
        self.counter = None;
        self.ended = false;
        self.first_frame = first_frame;
        self.first_leaving = first_leaving;
        self.groups.resize(TYPES, 0);
    }

    /// The client goes and leaves its stream to be closed.
    pub(super) fn deactivate(&mut self) -> Option<StreamId> {
        let stream = self.stream.take()?;
        self.ip = None;
        self.input = Vec::new();
        self.output = Vec::new();
        self.output_start = 0;
        self.waits_for_budget = false;
        Some(stream)
    }

    /// Begins a tick: what was held leaves; what is held from now on comes after.
    pub(super) fn begin_tick(&mut self) {
        self.first_leaving = self.first_frame;
        self.first_frame = 0;
        self.held_bytes = 0;
    }

    pub(super) fn take_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Bytes for the client's stream.
    pub(super) fn queue(&mut self, now: Instant, bytes: &[u8]) {
        if self.unsent().is_empty() {
            self.output_moved = now;
        }
        self.output.extend_from_slice(bytes);
    }

    pub(super) fn unsent(&self) -> &[u8] {
        &self.output[self.output_start..]
    }

    pub(super) fn written(&mut self, now: Instant, len: usize) {
        if len > 0 {
            self.output_moved = now;
        }
        self.output_start = (self.output_start + len).min(self.output.len());
        if self.output_start == self.output.len() {
            self.output.clear();
            self.output.shrink_to(OUTPUT_KEPT_MAX);
            self.output_start = 0;
        } else if self.output_start > OUTPUT_KEPT_MAX {
            // Written bytes need not stay in memory while the rest waits.
            self.output.drain(..self.output_start);
            self.output_start = 0;
        }
    }

    /// True if output waits for longer than `limit` and none of it goes.
    pub(super) fn is_stalled(&self, now: Instant, limit: Duration) -> bool {
        self.is_active()
            && !self.unsent().is_empty()
            && now.saturating_since(self.output_moved) > limit
    }
}

/// Types of UDP packets.
const TYPES: usize = 256;
/// Largest buffer that an idle client keeps.
const OUTPUT_KEPT_MAX: usize = 64 << 10;
