//! The relay itself, without IO: clients and their addresses, the tick, and what leaves at it.

mod datagrams;
mod environment;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};

use super::limits::{CLIENTS_MAX, Limits};
use super::packet::{Address, BROADCAST, StreamHeader};
use super::stats::Stats;
use super::{StreamAction, StreamId, StreamMachine};
use datagrams::{Batch, Sending};
use environment::Environment;
use streams::Frames;

/// A relay server.
///
/// A driver gives it TCP streams ([`StreamMachine`]) and UDP datagrams ([`Machine`]) of one port. What arrives is held until the
/// tick: [`handle_timeout`](Machine::handle_timeout) at [`poll_timeout`](Machine::poll_timeout), after which
/// [`poll_stream`](StreamMachine::poll_stream) and [`poll_transmit`](Machine::poll_transmit) hand everything out.
///
/// ```
/// use muse_relay_v1::{Limits, Relay};
/// use muse_wire::{Instant, Machine};
/// use muse_relay_v1::{StreamId, StreamMachine};
///
/// let now = Instant::ZERO;
/// let mut relay = Relay::new(now, Limits::default());
/// for stream in [StreamId(0), StreamId(1)] {
///     relay.handle_open(now, stream, "192.0.2.1:50000".parse().expect("an address"));
///     relay.poll_stream(now);
///     relay.handle_written(now, stream, 6);
/// }
/// relay.handle_bytes(now, StreamId(0), &[2, 0, 0x70, 2, 0, b'h', b'i']);
/// let tick = relay.poll_timeout().expect("there is always a next tick");
/// relay.handle_timeout(tick);
/// while relay.poll_stream(tick).is_some() {}
/// assert_eq!(relay.outgoing(StreamId(0)), []);
/// assert_eq!(relay.outgoing(StreamId(1)), [2, 0, 0x70, 2, 0, b'h', b'i']);
/// ```
#[derive(Debug)]
pub struct Relay {
    limits: Limits,
    /// By address; the first is never used.
    environments: Vec<Environment>,
    active: usize,
    /// Addresses by stream.
    by_stream: Vec<Option<Address>>,
    /// Addresses by UDP endpoint.
    by_endpoint: BTreeMap<SocketAddr, Address>,
    /// TCP packets that wait for the tick.
    frames: Frames,
    /// TCP packets of the last tick, as long as they are being handed out.
    leaving: Frames,
    /// UDP packets that wait for the tick.
    held: Batch,
    /// UDP packets of the last tick.
    sending: Sending,
    actions: VecDeque<StreamAction>,
    /// Clients from this number on have not been asked for their share of the last tick; past the last one when all were.
    hand_out_from: usize,
    tick: u32,
    next_tick: Instant,
    next_keep_alive: Instant,
    closing: bool,
    stats: Stats,
}

impl Relay {
    /// A relay without clients, whose first tick comes one tick after `now`.
    pub fn new(now: Instant, limits: Limits) -> Self {
        let environments = (0..=CLIENTS_MAX)
            .map(|_| Environment::new(now, &limits))
            .collect();
        Self {
            environments,
            active: 0,
            by_stream: Vec::new(),
            by_endpoint: BTreeMap::new(),
            frames: Frames::default(),
            leaving: Frames::default(),
            held: Batch::default(),
            sending: Sending::default(),
            actions: VecDeque::new(),
            hand_out_from: PAST_LAST,
            tick: 0,
            next_tick: now + limits.tick,
            next_keep_alive: now + limits.keep_alive,
            closing: false,
            stats: Stats::default(),
            limits,
        }
    }

    /// Active clients.
    pub fn clients(&self) -> usize {
        self.active
    }

    /// Active clients whose UDP endpoint is known.
    pub fn endpoints(&self) -> usize {
        self.by_endpoint.len()
    }

    /// True if a client has this address now.
    pub fn is_active(&self, address: Address) -> bool {
        self.environments[address.index()].is_active()
    }

    /// The address of a stream's client.
    pub fn address_of(&self, stream: StreamId) -> Option<Address> {
        self.by_stream.get(usize::from(stream.0)).copied().flatten()
    }

    /// Returns the address to which UDP for this address goes, once it is known.
    pub fn endpoint_of(&self, address: Address) -> Option<SocketAddr> {
        self.environments[address.index()].endpoint
    }

    /// Returns the number of ticks so far, modulo 2^32: the `time` of grouped packets that leave now.
    pub fn tick(&self) -> u32 {
        self.tick
    }

    /// Bytes that wait for all clients because their connections do not take them.
    pub fn unsent_bytes(&self) -> usize {
        self.environments.iter().map(|env| env.unsent().len()).sum()
    }

    /// Bytes that are held for the next tick.
    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.frames.len()
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Takes no new clients from now on. Those that are here stay until they leave or [`close`](Self::close) is called.
    pub fn refuse_clients(&mut self) {
        self.closing = true;
    }

    /// Ends all connections in order. Call it after a tick, when everything is handed out.
    pub fn close(&mut self) {
        self.closing = true;
        for address in addresses() {
            self.drop_client(address, End::Close);
        }
    }

    /// The lowest free address, so that addresses stay small and a former one is used again soon.
    fn free_address(&self, ip: IpAddr) -> Option<Address> {
        let same_ip = |env: &&Environment| env.is_active() && env.ip == Some(ip);
        if self.closing
            || self.active >= self.limits.clients
            || self.environments.iter().filter(same_ip).count() >= self.limits.clients_per_ip
        {
            return None;
        }
        addresses().find(|&address| !self.is_active(address))
    }

    /// The client goes: its environment stays, inactive, and everything held for it is dropped.
    fn drop_client(&mut self, address: Address, end: End) -> bool {
        let env = &mut self.environments[address.index()];
        let Some(stream) = env.deactivate() else {
            return false;
        };
        if let Some(endpoint) = env.endpoint.take() {
            self.by_endpoint.remove(&endpoint);
        }
        if let Some(slot) = self.by_stream.get_mut(usize::from(stream.0)) {
            *slot = None;
        }
        self.held.forget_client(address, env);
        self.active -= 1;
        self.actions.push_back(match end {
            End::Close => StreamAction::Close(stream),
            End::Abort => StreamAction::Abort(stream),
        });
        true
    }

    /// Everything held becomes what is sent now, with this tick's number.
    fn begin_tick(&mut self, now: Instant) {
        // A driver that did not ask for everything after the last tick still gets it.
        while let Some(address) = self.next_to_hand_out() {
            self.hand_out(now, address);
        }
        std::mem::swap(&mut self.frames, &mut self.leaving);
        self.frames.clear();
        self.hand_out_from = 1;
        for address in addresses() {
            let env = &mut self.environments[address.index()];
            env.begin_tick();
            if env.is_stalled(now, self.limits.stall) && self.drop_client(address, End::Abort) {
                self.stats.cut_slow += 1;
            }
        }
        self.held.release_groups(&mut self.environments);
        self.stats.datagrams_unsent += self.sending.begin(&mut self.held, self.tick);
        if now >= self.next_keep_alive {
            self.sending.keep_alive();
            while self.next_keep_alive <= now {
                self.next_keep_alive += self.limits.keep_alive;
            }
        }
        // Packets that waited for a client's budget are held for the next tick.
        for address in addresses() {
            if self.environments[address.index()].waits_for_budget {
                self.take_packets(now, address);
            }
        }
    }

    /// Counts the tick that is due, and those that were missed.
    fn count_ticks(&mut self, now: Instant) {
        let late = now.saturating_since(self.next_tick);
        let missed = late.as_micros() / self.limits.tick.as_micros().max(1);
        self.stats.ticks += 1;
        self.stats.ticks_missed += missed;
        self.stats.tick_lateness_sum += late;
        self.stats.tick_lateness_max = self.stats.tick_lateness_max.max(late);
        // The count is of elapsed ticks, so that it keeps time even when the process was held up.
        self.tick = self.tick.wrapping_add((missed as u32).wrapping_add(1));
        let elapsed = Duration::from_micros(
            (missed.saturating_add(1)).saturating_mul(self.limits.tick.as_micros()),
        );
        self.next_tick += elapsed;
    }
}

impl Machine for Relay {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.take_datagram(now, datagram.from, datagram.payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now < self.next_tick {
            return;
        }
        self.count_ticks(now);
        self.begin_tick(now);
    }

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.sending
            .poll(self.tick, &self.environments, buffer, &mut self.stats)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.next_tick)
    }
}

impl StreamMachine for Relay {
    fn handle_open(&mut self, now: Instant, stream: StreamId, peer: SocketAddr) -> bool {
        let ip = peer.ip().to_canonical();
        let Some(address) = self.free_address(ip) else {
            self.stats.refused += 1;
            return false;
        };
        let index = usize::from(stream.0);
        if self.by_stream.len() <= index {
            self.by_stream.resize(index + 1, None);
        }
        self.by_stream[index] = Some(address);
        let env = &mut self.environments[address.index()];
        env.activate(stream, ip, self.frames.count(), self.leaving.count());
        // Told at once, not at the tick, and only once.
        let header = StreamHeader {
            length: 1,
            control: BROADCAST,
        };
        env.queue(now, &header.emit());
        env.queue(now, &[address.get()]);
        self.held.forget_client(address, env);
        self.active += 1;
        self.stats.accepted += 1;
        self.stats.packets_out += 1;
        self.actions.push_back(StreamAction::Write(stream));
        true
    }

    fn read_limit(&mut self, now: Instant, stream: StreamId) -> usize {
        self.stream_read_limit(now, stream)
    }

    fn handle_bytes(&mut self, now: Instant, stream: StreamId, bytes: &[u8]) {
        let Some(address) = self.address_of(stream) else {
            return;
        };
        self.stats.stream_bytes_in += bytes.len() as u64;
        let env = &mut self.environments[address.index()];
        env.take_input(bytes);
        self.take_packets(now, address);
    }

    fn handle_end(&mut self, now: Instant, stream: StreamId) {
        let Some(address) = self.address_of(stream) else {
            return;
        };
        self.environments[address.index()].ended = true;
        self.take_packets(now, address);
    }

    fn poll_stream(&mut self, now: Instant) -> Option<StreamAction> {
        while let Some(address) = self.next_to_hand_out() {
            if self.hand_out(now, address) {
                let stream = self.environments[address.index()].stream();
                return stream.map(StreamAction::Write);
            }
        }
        self.actions.pop_front()
    }

    fn outgoing(&self, stream: StreamId) -> &[u8] {
        self.address_of(stream)
            .map_or(&[], |address| self.environments[address.index()].unsent())
    }

    fn handle_written(&mut self, now: Instant, stream: StreamId, len: usize) {
        let Some(address) = self.address_of(stream) else {
            return;
        };
        self.stats.stream_bytes_out += len as u64;
        let env = &mut self.environments[address.index()];
        env.written(now, len);
        if env.unsent().len() > self.limits.unsent_bytes && self.drop_client(address, End::Abort) {
            self.stats.cut_slow += 1;
        }
    }
}

/// The way in which a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Abort,
}

/// Every address there is, in order.
fn addresses() -> impl Iterator<Item = Address> {
    (1..=u8::MAX).filter_map(Address::new)
}

/// Beyond the last address.
const PAST_LAST: usize = CLIENTS_MAX + 1;
