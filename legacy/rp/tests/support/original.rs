//! A peer that behaves as the original does, as far as tests need it: both of its ends, in virtual time, sharing no code with the library.
//!
//! Told apart from the library: a client draws new numbers for its partial channel whenever step 2 reaches it before step 4, while the channel
//! that it had before goes on repeating its step 3 without ever hearing an answer; any step 4 connects it, and counts as a message only by the
//! numbers of its newest channel; a full server says nothing; nothing is given up but the first call.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_rp::Channel;
use muse_wire::{Duration, Instant};

const ACK: u8 = 1;
const INIT: u8 = 2;
const END: u8 = 4;
const PING: u8 = 8;
const RELIABLE: usize = 0;
const PARTIAL: usize = 1;
const TIMER: Duration = Duration::from_millis(200);
const RETRY: Duration = Duration::from_secs(1);

/// Either end of the original, with one connection.
pub(crate) struct Original {
    random: fastrand::Rng,
    ports: [u16; 2],
    role: Role,
    peer: [Option<SocketAddr>; 2],
    channels: [Option<Line>; 2],
    /// Channels that were replaced: they send, and hear nothing.
    replaced: Vec<Line>,
    pub(crate) connected: bool,
    pub(crate) ended: bool,
    /// Numbers of partial channels drawn, one for each step 2 before step 4.
    pub(crate) drawn: u32,
    /// Messages that the application got: numbers on the wire and payloads.
    pub(crate) received: [Vec<(u32, Vec<u8>)>; 2],
    outgoing: [VecDeque<(SocketAddr, Vec<u8>)>; 2],
}

enum Role {
    Client {
        sequence: u32,
        ack: u32,
        call_at: Option<Instant>,
    },
    Server {
        window: u32,
        percent: u32,
    },
}

/// One of its channels.
struct Line {
    window: u32,
    /// The last number given to a message.
    sequence: u32,
    /// The last number that the peer has accepted.
    recognised: u32,
    /// The last number accepted.
    ack: u32,
    duplicates: u32,
    waiting: VecDeque<(u32, Vec<u8>)>,
    sent: VecDeque<(u32, Vec<u8>)>,
    due: Option<Instant>,
    /// Losses allowed, counted, and the place in the window, on the partial channel.
    partial: Option<[u32; 3]>,
    buffered: BTreeMap<u32, Vec<u8>>,
}

impl Original {
    pub(crate) fn client(seed: u64, ports: [u16; 2], server: SocketAddr) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let role = Role::Client {
            sequence: random.u32(..),
            ack: random.u32(..),
            call_at: Some(Instant::ZERO),
        };
        let mut client = Self::new(random, ports, role);
        client.peer[RELIABLE] = Some(server);
        client
    }

    pub(crate) fn server(seed: u64, ports: [u16; 2], window: u32, percent: u32) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self::new(random, ports, Role::Server { window, percent })
    }

    fn new(random: fastrand::Rng, ports: [u16; 2], role: Role) -> Self {
        Self {
            random,
            ports,
            role,
            peer: [None; 2],
            channels: [None, None],
            replaced: Vec::new(),
            connected: false,
            ended: false,
            drawn: 0,
            received: [Vec::new(), Vec::new()],
            outgoing: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Sends a message, once it is connected.
    pub(crate) fn send(&mut self, now: Instant, channel: Channel, payload: &[u8]) {
        self.say(now, channel as usize, 0, payload);
    }

    /// Messages of a channel that are not acknowledged.
    pub(crate) fn unacknowledged(&self, channel: Channel) -> usize {
        let line = self.channels[channel as usize].as_ref();
        line.map_or(0, |line| line.sent.len() + line.waiting.len())
    }

    pub(crate) fn poll_transmit(&mut self, channel: Channel) -> Option<(SocketAddr, Vec<u8>)> {
        self.outgoing[channel as usize].pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let lines = self.channels.iter().flatten().chain(&self.replaced);
        let call = match self.role {
            Role::Client { call_at, .. } => call_at,
            Role::Server { .. } => None,
        };
        lines.filter_map(|line| line.due).chain(call).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Role::Client {
            sequence,
            ack,
            call_at,
        } = &mut self.role
            && call_at.is_some_and(|at| at <= now)
        {
            *call_at = Some(now + RETRY);
            let info = info([self.ports[0].into(), self.ports[1].into(), 0, 0, 0, 0, 0]);
            let call = datagram(*sequence, *ack, INIT, 0, &info);
            self.put(RELIABLE, call);
        }
        for index in [RELIABLE, PARTIAL] {
            if let Some(line) = &mut self.channels[index]
                && let Some(again) = line.time_out(now)
            {
                self.put(index, again);
            }
        }
        for at in 0..self.replaced.len() {
            if let Some(again) = self.replaced[at].time_out(now) {
                self.put(PARTIAL, again);
            }
        }
    }

    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        channel: Channel,
        from: SocketAddr,
        bytes: &[u8],
    ) {
        let index = channel as usize;
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let (sequence, ack, flags, payload) = (number(0), number(4), bytes[8], &bytes[11..]);
        if flags & INIT != 0 {
            return match self.role {
                Role::Client { .. } => self.client_init(now, index, from, [sequence, ack], payload),
                Role::Server { .. } => self.server_init(now, index, from, [sequence, ack], payload),
            };
        }
        let Some(line) = &mut self.channels[index] else {
            return;
        };
        if self.peer[index] != Some(from) {
            return;
        }
        if flags & END != 0 {
            self.ended = true;
            self.connected = false;
            self.channels = [None, None];
            self.replaced.clear();
        } else if flags & PING != 0 {
            if payload[0] == 0 && self.connected {
                self.put(RELIABLE, datagram(sequence, ack, PING, 0, &[1]));
            }
        } else if flags & ACK != 0 {
            for bytes in line.acknowledge(now, ack) {
                self.put(index, bytes);
            }
        } else {
            line.receive(sequence, payload.to_vec(), &mut self.received[index]);
            self.put_ack(index);
        }
    }

    fn client_init(
        &mut self,
        now: Instant,
        index: usize,
        from: SocketAddr,
        [sequence, ack]: [u32; 2],
        payload: &[u8],
    ) {
        if self.connected {
            return self.put_ack(index);
        }
        if index == PARTIAL {
            let Some(line) = &mut self.channels[PARTIAL] else {
                return;
            };
            self.connected = true;
            line.acknowledge(now, ack);
            // By other numbers than its own it is as far away as any.
            line.receive(sequence, Vec::new(), &mut self.received[PARTIAL]);
            return self.put_ack(PARTIAL);
        }
        if let Role::Client { call_at, .. } = &mut self.role {
            *call_at = None;
        }
        let word = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four"));
        let (window, percent) = (word(8), word(12));
        self.peer[PARTIAL] = Some(SocketAddr::new(from.ip(), word(4) as u16));
        self.channels[RELIABLE] = Some(Line::new(window, ack, sequence, None));
        self.put_ack(RELIABLE);
        let partial = Line::new(
            window,
            self.random.u32(..),
            self.random.u32(..),
            Some(percent),
        );
        self.drawn += 1;
        self.replaced
            .extend(self.channels[PARTIAL].replace(partial));
        self.say(now, PARTIAL, INIT, payload);
    }

    fn server_init(
        &mut self,
        now: Instant,
        index: usize,
        from: SocketAddr,
        [sequence, ack]: [u32; 2],
        payload: &[u8],
    ) {
        let Role::Server { window, percent } = self.role else {
            return;
        };
        if self.channels[index].is_some() {
            if index == PARTIAL {
                self.put_ack(PARTIAL);
            }
            return;
        }
        self.peer[index] = Some(from);
        let is_partial = index == PARTIAL;
        let line = Line::new(window, ack, sequence, is_partial.then_some(percent));
        self.channels[index] = Some(line);
        if is_partial {
            self.connected = true;
            return self.say(now, PARTIAL, INIT, &[]);
        }
        let port = |at: usize| u32::from_le_bytes(payload[at..at + 4].try_into().expect("four"));
        let [reliable, partial] = self.ports.map(u32::from);
        let offer = info([reliable, partial, window, percent, port(0), port(4), 0]);
        self.say(now, RELIABLE, INIT, &offer);
    }

    fn say(&mut self, now: Instant, index: usize, flags: u8, payload: &[u8]) {
        let line = self.channels[index].as_mut();
        if let Some(bytes) = line.and_then(|line| line.say(now, flags, payload)) {
            self.put(index, bytes);
        }
    }

    fn put_ack(&mut self, index: usize) {
        if let Some(line) = &self.channels[index] {
            let bytes = datagram(line.sequence, line.ack, ACK, 0, &[]);
            self.put(index, bytes);
        }
    }

    fn put(&mut self, index: usize, bytes: Vec<u8>) {
        if let Some(to) = self.peer[index] {
            self.outgoing[index].push_back((to, bytes));
        }
    }
}

impl Line {
    fn new(window: u32, sequence: u32, ack: u32, percent: Option<u32>) -> Self {
        Self {
            window,
            sequence,
            recognised: sequence,
            ack,
            duplicates: 0,
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            due: None,
            partial: percent.map(|percent| [window * (100 - percent) / 100, 0, 0]),
            buffered: BTreeMap::new(),
        }
    }

    fn say(&mut self, now: Instant, flags: u8, payload: &[u8]) -> Option<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = datagram(self.sequence, self.ack, flags, 7, payload);
        if self.sequence.wrapping_sub(self.recognised) > self.window {
            self.waiting.push_back((self.sequence, bytes));
            return None;
        }
        self.sent.push_back((self.sequence, bytes.clone()));
        self.due.get_or_insert(now + TIMER);
        Some(bytes)
    }

    fn time_out(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.due? > now {
            return None;
        }
        let oldest = self.sent.front().map(|(_, bytes)| bytes.clone());
        self.due = oldest.is_some().then(|| now + TIMER);
        oldest
    }

    /// Takes an acknowledgement, and gives the datagrams that it releases.
    fn acknowledge(&mut self, now: Instant, ack: u32) -> Vec<Vec<u8>> {
        let ahead = ack.wrapping_sub(self.recognised);
        let mut out = Vec::new();
        if ahead == 0 {
            self.duplicates += 1;
            if self.duplicates == 3 {
                self.duplicates = 0;
                out.extend(self.sent.front().map(|(_, bytes)| bytes.clone()));
            }
        } else if ahead <= self.window && ahead as usize <= self.sent.len() {
            self.sent.drain(..ahead as usize);
            self.recognised = ack;
            self.duplicates = 0;
            while self.sent.len() < self.window as usize
                && let Some((sequence, bytes)) = self.waiting.pop_front()
            {
                out.push(bytes.clone());
                self.sent.push_back((sequence, bytes));
            }
            self.due = (!self.sent.is_empty()).then(|| now + TIMER);
        }
        out
    }

    fn receive(&mut self, sequence: u32, payload: Vec<u8>, received: &mut Vec<(u32, Vec<u8>)>) {
        if !self.accept(sequence) {
            return self.keep(sequence, payload);
        }
        received.push((sequence, payload));
        while let Some((&lowest, _)) = self
            .buffered
            .iter()
            .min_by_key(|(number, _)| number.wrapping_sub(self.ack))
        {
            let Some(payload) = self.buffered.remove(&lowest) else {
                return;
            };
            if !self.accept(lowest) {
                self.buffered.insert(lowest, payload);
                return;
            }
            received.push((lowest, payload));
        }
    }

    /// True if a message is delivered now.
    fn accept(&mut self, sequence: u32) -> bool {
        let distance = sequence.wrapping_sub(self.ack.wrapping_add(1));
        if distance >= self.window {
            return false;
        }
        let Some([allowed, lost, place]) = &mut self.partial else {
            if distance == 0 {
                self.ack = sequence;
            }
            return distance == 0;
        };
        if distance + *place + 1 > self.window {
            let here = self.window - *place;
            let there = distance - here;
            if *lost + here > *allowed || there > *allowed {
                return false;
            }
            (*lost, *place) = (there, there + 1);
        } else {
            if *lost + distance > *allowed {
                return false;
            }
            (*lost, *place) = (*lost + distance, *place + distance + 1);
        }
        if *place == self.window {
            (*lost, *place) = (0, 0);
        }
        self.ack = sequence;
        true
    }

    /// Keeps a message that is not accepted yet.
    fn keep(&mut self, sequence: u32, payload: Vec<u8>) {
        if sequence.wrapping_sub(self.ack.wrapping_add(1)) < self.window {
            self.buffered.entry(sequence).or_insert(payload);
        }
    }
}

fn datagram(sequence: u32, ack: u32, flags: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(11 + payload.len());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(ack.to_le_bytes());
    bytes.push(flags);
    bytes.extend(kind.to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn info(words: [u32; 7]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
