//! UDP: whose packet it is, what is held for the tick, and how it leaves.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_wire::{Duration, Ecn, Instant, Transmit};

use super::environment::Environment;
use super::{PAST_LAST, Relay};
use crate::packet::{
    Address, DATAGRAM_HEADER, DATAGRAM_UNICAST, DISCARD, DatagramHeader, GROUP, TIME_OFFSET,
};
use crate::stats::Stats;

impl Relay {
    pub(super) fn take_datagram(&mut self, now: Instant, source: SocketAddr, bytes: &[u8]) {
        self.stats.datagrams_in += 1;
        self.stats.datagram_bytes_in += bytes.len() as u64;
        let Ok((header, _)) = DatagramHeader::parse(bytes) else {
            self.stats.datagrams_malformed += 1;
            return;
        };
        let from = match header.has(DATAGRAM_UNICAST) {
            // Its address is the receiver's: only the endpoint says who sent it, and it teaches nothing.
            true => self.by_endpoint.get(&source).copied(),
            false => match self.learn_endpoint(now, source, header.address) {
                Ok(address) => Some(address),
                Err(Stranger::Unknown) => None,
                Err(Stranger::Spoofed) => {
                    self.stats.datagrams_spoofed += 1;
                    return;
                }
            },
        };
        let Some(from) = from else {
            self.stats.datagrams_unknown += 1;
            return;
        };
        if header.has(DISCARD) {
            return;
        }
        let limits = &self.limits;
        let env = &mut self.environments[from.index()];
        if !env.datagrams.has(now, limits.datagram_rate, 1)
            || env.held_bytes + bytes.len() > limits.held_datagram_bytes
        {
            self.stats.datagrams_limited += 1;
            return;
        }
        env.datagrams.take(1);
        let to = header.has(DATAGRAM_UNICAST).then_some(header.address);
        match header.has(GROUP) {
            true => self
                .held
                .group(env, from, to, header, bytes, &mut self.stats),
            false => {
                self.held.push(env, from, to, false, bytes);
            }
        }
    }

    /// Finds the client whose broadcast this is; its endpoint is where the client's UDP goes from now on.
    fn learn_endpoint(
        &mut self,
        now: Instant,
        source: SocketAddr,
        named: u8,
    ) -> Result<Address, Stranger> {
        let address = Address::new(named).ok_or(Stranger::Unknown)?;
        let env = &self.environments[address.index()];
        if !env.is_active() {
            return Err(Stranger::Unknown);
        }
        if !self.limits.any_source && env.ip != Some(source.ip().to_canonical()) {
            return Err(Stranger::Spoofed);
        }
        if env.endpoint != Some(source) {
            // An endpoint says who sends a unicast, so it belongs to one client. It changes hands when its owner has been
            // silent: who connects again before the old connection is found dead keeps its socket.
            if let Some(&owner) = self.by_endpoint.get(&source) {
                let owner = &mut self.environments[owner.index()];
                if now.saturating_since(owner.endpoint_heard) < ENDPOINT_SILENCE {
                    return Err(Stranger::Spoofed);
                }
                owner.endpoint = None;
            }
            let env = &mut self.environments[address.index()];
            if let Some(former) = env.endpoint.replace(source) {
                self.by_endpoint.remove(&former);
            }
            self.by_endpoint.insert(source, address);
        }
        self.environments[address.index()].endpoint_heard = now;
        Ok(address)
    }
}

/// The reason for which no client can have sent a broadcast.
enum Stranger {
    Unknown,
    Spoofed,
}

/// UDP packets that wait for the tick, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    packets: Vec<Packet>,
    /// The packet that is the unicast of a sender, type and destination.
    unicasts: BTreeMap<(Address, u8, u8), usize>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    start: usize,
    len: usize,
    /// Room for a longer one that replaces it.
    room: usize,
    from: Address,
    /// The destination of a unicast.
    to: Option<u8>,
    grouped: bool,
    dropped: bool,
    kind: u8,
}

impl Packet {
    fn is_for(&self, to: Address) -> bool {
        !self.dropped
            && match self.to {
                Some(one) => one == to.get(),
                None => self.from != to,
            }
    }
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn push(
        &mut self,
        env: &mut Environment,
        from: Address,
        to: Option<u8>,
        grouped: bool,
        bytes: &[u8],
    ) -> usize {
        env.held_bytes += bytes.len();
        self.packets.push(Packet {
            start: self.bytes.len(),
            len: bytes.len(),
            room: bytes.len(),
            from,
            to,
            grouped,
            dropped: false,
            kind: bytes.get(KIND_OFFSET).copied().unwrap_or(0),
        });
        self.bytes.extend_from_slice(bytes);
        self.packets.len() - 1
    }

    /// A grouped packet: one of each type is held, and what is left over from before a reset is dropped.
    fn group(
        &mut self,
        env: &mut Environment,
        from: Address,
        to: Option<u8>,
        header: DatagramHeader,
        bytes: &[u8],
        stats: &mut Stats,
    ) {
        let kind = header.kind;
        if let Some(counter) = env.counter
            && header.time.saturating_sub(counter) >= COUNTER_LEAP
        {
            stats.datagrams_stale += 1;
            return;
        }
        let held = match to {
            None => (env.groups[usize::from(kind)] as usize).checked_sub(1),
            Some(to) => self.unicasts.get(&(from, kind, to)).copied(),
        };
        match held {
            Some(index) => {
                stats.datagrams_superseded += 1;
                if env.counter.is_some_and(|counter| header.time <= counter) {
                    return;
                }
                self.replace(env, index, bytes);
            }
            None => {
                let index = self.push(env, from, to, true, bytes);
                match to {
                    None => {
                        env.groups[usize::from(kind)] =
                            u32::try_from(index + 1).unwrap_or_default();
                    }
                    Some(to) => {
                        self.unicasts.insert((from, kind, to), index);
                    }
                }
            }
        }
        env.counter = Some(header.time);
    }

    /// The new packet takes the place of the one held.
    fn replace(&mut self, env: &mut Environment, index: usize, bytes: &[u8]) {
        let packet = &mut self.packets[index];
        if bytes.len() > packet.room {
            env.held_bytes += bytes.len();
            packet.start = self.bytes.len();
            packet.room = bytes.len();
            self.bytes.extend_from_slice(bytes);
        } else {
            self.bytes[packet.start..packet.start + bytes.len()].copy_from_slice(bytes);
        }
        packet.len = bytes.len();
    }

    /// The client of an address changes: what is held for it is dropped, and what it sent is no longer replaced.
    pub(super) fn forget_client(&mut self, address: Address, env: &mut Environment) {
        for packet in &mut self.packets {
            packet.dropped |= packet.to == Some(address.get());
        }
        self.unicasts
            .retain(|&(from, _, to), _| from != address && to != address.get());
        env.groups.fill(0);
    }

    /// No packet is held for any type any more.
    pub(super) fn release_groups(&mut self, environments: &mut [Environment]) {
        for packet in &self.packets {
            let env = &mut environments[packet.from.index()];
            if let Some(group) = env.groups.get_mut(usize::from(packet.kind)) {
                *group = 0;
            }
        }
        self.unicasts.clear();
    }

    /// Grouped packets carry the tick instead of their sender's counter.
    fn stamp(&mut self, tick: u32) {
        for packet in self.packets.iter().filter(|packet| packet.grouped) {
            let time = packet.start + TIME_OFFSET;
            self.bytes[time..time + 4].copy_from_slice(&tick.to_le_bytes());
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BATCH_KEPT_MAX);
        self.packets.clear();
    }
}

/// The UDP packets of the last tick on their way out, client by client.
#[derive(Debug)]
pub(super) struct Sending {
    batch: Batch,
    /// The client whose packets are being sent, and the next of them.
    to: usize,
    next: usize,
    keep_alive_to: usize,
}

impl Default for Sending {
    fn default() -> Self {
        Self {
            batch: Batch::default(),
            to: PAST_LAST,
            next: 0,
            keep_alive_to: PAST_LAST,
        }
    }
}

impl Sending {
    /// Starts with everything that was held. Says how many packets of the tick before never left.
    pub(super) fn begin(&mut self, held: &mut Batch, tick: u32) -> u64 {
        let unsent = match self.to < PAST_LAST {
            true => self.batch.packets.len().saturating_sub(self.next) as u64,
            false => 0,
        };
        self.batch.clear();
        std::mem::swap(&mut self.batch, held);
        self.batch.stamp(tick);
        self.next = 0;
        self.to = match self.batch.packets.is_empty() {
            true => PAST_LAST,
            false => 1,
        };
        unsent
    }

    /// Every known endpoint gets a keep-alive in this tick.
    pub(super) fn keep_alive(&mut self) {
        self.keep_alive_to = 1;
    }

    /// The next packets for one client: as many of the same size in a row as fit, so that the kernel gets them as one.
    pub(super) fn poll(
        &mut self,
        tick: u32,
        environments: &[Environment],
        buffer: &mut [u8],
        stats: &mut Stats,
    ) -> Option<Transmit> {
        while self.to < PAST_LAST {
            let address = u8::try_from(self.to).ok().and_then(Address::new);
            let endpoint = environments[self.to].endpoint;
            if let (Some(address), Some(to)) = (address, endpoint) {
                let (len, segment, count) = self.fill(address, buffer);
                if count > 0 {
                    stats.datagrams_out += count;
                    stats.datagram_bytes_out += len as u64;
                    let segment = (count > 1).then_some(segment);
                    return Some(transmit(to, len, segment));
                }
            }
            self.to += 1;
            self.next = 0;
        }
        self.poll_keep_alive(tick, environments, buffer, stats)
    }

    /// Copies packets for `address` to `buffer`: bytes, size of each, and how many. The last may be shorter.
    fn fill(&mut self, address: Address, buffer: &mut [u8]) -> (usize, usize, u64) {
        let (mut len, mut segment, mut count) = (0, 0, 0);
        while let Some(packet) = self.batch.packets.get(self.next) {
            if !packet.is_for(address) {
                self.next += 1;
                continue;
            }
            let fits = count == 0 || packet.len <= segment;
            let bytes = &self.batch.bytes[packet.start..packet.start + packet.len];
            let room = buffer.get_mut(len..len + packet.len);
            let (true, Some(room)) = (fits, room) else {
                break;
            };
            room.copy_from_slice(bytes);
            self.next += 1;
            len += packet.len;
            count += 1;
            match count {
                1 => segment = packet.len,
                _ if packet.len < segment => break,
                _ => (),
            }
        }
        (len, segment, count)
    }

    fn poll_keep_alive(
        &mut self,
        tick: u32,
        environments: &[Environment],
        buffer: &mut [u8],
        stats: &mut Stats,
    ) -> Option<Transmit> {
        while self.keep_alive_to < PAST_LAST {
            let address = self.keep_alive_to;
            self.keep_alive_to += 1;
            let Some(to) = environments[address].endpoint else {
                continue;
            };
            let header = DatagramHeader {
                kind: 0,
                control: DISCARD,
                time: tick,
                address: u8::try_from(address).unwrap_or_default(),
            };
            let room = buffer.first_chunk_mut::<DATAGRAM_HEADER>()?;
            *room = header.emit(0);
            stats.datagrams_out += 1;
            stats.datagram_bytes_out += DATAGRAM_HEADER as u64;
            return Some(transmit(to, DATAGRAM_HEADER, None));
        }
        None
    }
}

fn transmit(to: SocketAddr, len: usize, segment: Option<usize>) -> Transmit {
    Transmit {
        to,
        len,
        segment,
        ecn: Ecn::NotCapable,
    }
}

/// A counter that is so much greater than the last is from before the last one started again.
const COUNTER_LEAP: u32 = 2_147_483_647;
/// After such a silence an endpoint may speak for another client.
const ENDPOINT_SILENCE: Duration = Duration::from_secs(5);
/// The offset of the type in a UDP header.
const KIND_OFFSET: usize = 2;
/// Largest buffer that is kept for the next tick.
const BATCH_KEPT_MAX: usize = 1 << 20;
