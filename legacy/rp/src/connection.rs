//! One connection: handshake, two channels, pings. The host keeps addresses and finds the connection.

mod joins;

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_wire::partial::Promise;
use muse_wire::{Duration, Instant};

use crate::effects::Effects;
use crate::event::{Channel, ConnectionId, EndReason, Event, FailReason, Message};
use crate::packet::{ChannelInfo, Flags, Packet};
use crate::ping::Ping;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::stats::{ChannelStats, ConnectionStats};
use crate::{HostOptions, SendError};
use joins::{Again, Join, Joins};

/// One connection, seen from either side.
#[derive(Debug)]
pub(crate) struct Connection {
    id: ConnectionId,
    pub(crate) side: Side,
    phase: Phase,
    /// End of the phase, if it is not the last.
    deadline: Instant,
    pub(crate) reliable_address: SocketAddr,
    pub(crate) partial_address: Option<SocketAddr>,
    /// For each channel, true if the host has it in its queue of those that may send.
    pub(crate) is_ready: [bool; 2],
    halves: [Option<ChannelState>; 2],
    /// Server: the INIT3s that arrived.
    joins: Option<Joins>,
    ping: Ping,
    /// Messages that arrived before the connection was open.
    early: VecDeque<Message>,
}

/// The side of the connection, and the numbers of its handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// It called; it drew all four numbers.
    Client(Numbers),
    /// It was called.
    Server {
        /// Sequence and ack of INIT1.
        init1: (u32, u32),
        /// The channel offered by INIT2.
        offer: ChannelInfo,
    },
}

/// The client's four random numbers, S, A, S2 and A2 of the standard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) reliable_sequence: u32,
    pub(crate) reliable_ack: u32,
    pub(crate) partial_sequence: u32,
    pub(crate) partial_ack: u32,
}

impl Numbers {
    /// Sequence and ack of INIT1.
    pub(crate) fn reliable(self) -> (u32, u32) {
        (self.reliable_sequence, self.reliable_ack)
    }

    /// True if it is the answer to INIT3.
    pub(crate) fn is_init4(self, packet: &Packet<'_>) -> bool {
        packet.sequence == self.partial_ack.wrapping_add(1)
            && packet.ack == self.partial_sequence.wrapping_add(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Client: INIT1 is out.
    Calling { tries_left: u32 },
    /// Client: INIT3 is out.
    Joining,
    /// Server: INIT2 is out.
    Offered,
    /// Messages travel.
    Open,
}

/// The reason that a connection is over. The host removes it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// An open one, or a half-open one of a server.
    End(EndReason),
    /// One that never opened at the client.
    Fail(FailReason),
}

#[derive(Debug)]
struct ChannelState {
    sender: Sender,
    receiver: Receiver<(u16, Vec<u8>)>,
}

impl Connection {
    /// The client's beginning: sends INIT1.
    pub(crate) fn call(
        now: Instant,
        id: ConnectionId,
        server: SocketAddr,
        numbers: Numbers,
        options: &HostOptions,
        effects: &mut Effects,
    ) -> Self {
        let connection = Self {
            id,
            side: Side::Client(numbers),
            phase: Phase::Calling {
                tries_left: options.connect_tries - 1,
            },
            deadline: now + options.connect_timeout,
            reliable_address: server,
            partial_address: None,
            is_ready: [false; 2],
            halves: [None, None],
            joins: None,
            ping: Ping::new(now, options),
            early: VecDeque::new(),
        };
        connection.send_init1(options, effects);
        connection
    }

    /// The server's beginning: answers INIT1 with INIT2.
    pub(crate) fn offer(
        now: Instant,
        id: ConnectionId,
        client: SocketAddr,
        init1: (u32, u32),
        offer: ChannelInfo,
        options: &HostOptions,
    ) -> Self {
        // Repeated late: the original takes a repetition for a second answer and stops.
        let mut sender = Sender::new(options.window, init1.1, OFFER_REPEAT);
        sender.queue(Flags::INIT, 0, offer.bytes().to_vec());
        let reliable = ChannelState {
            sender,
            receiver: Receiver::reliable(options.window, init1.0),
        };
        Self {
            id,
            side: Side::Server { init1, offer },
            phase: Phase::Offered,
            deadline: now + options.time_out,
            reliable_address: client,
            partial_address: None,
            is_ready: [false; 2],
            halves: [Some(reliable), None],
            joins: None,
            ping: Ping::new(now, options),
            early: VecDeque::new(),
        }
    }

    /// Client: INIT2 arrived. Gives the server's partial address if the connection now goes on there.
    pub(crate) fn handle_init2(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        options: &HostOptions,
        effects: &mut Effects,
    ) -> Result<Option<SocketAddr>, Over> {
        let Side::Client(numbers) = self.side else {
            return Ok(None);
        };
        if packet.sequence != numbers.reliable_ack.wrapping_add(1)
            || packet.ack != numbers.reliable_sequence
        {
            effects.stats.unexpected += 1;
            return Ok(None);
        }
        if !matches!(self.phase, Phase::Calling { .. }) {
            self.acknowledge(now, Channel::Reliable, effects);
            return Ok(None);
        }
        let Ok(offer) = ChannelInfo::parse(packet.payload) else {
            effects.stats.malformed += 1;
            return Ok(None);
        };
        let (Some(promise), Some(port)) = (promised(&offer), port(offer.partial_port)) else {
            return Err(Over::Fail(FailReason::BadOffer));
        };
        let mut partial = Sender::new(
            offer.window,
            numbers.partial_sequence,
            options.initial_timer,
        );
        partial.queue(Flags::INIT, 0, packet.payload.to_vec());
        self.halves = [
            Some(ChannelState {
                sender: Sender::new(
                    offer.window,
                    numbers.reliable_sequence,
                    options.initial_timer,
                ),
                receiver: Receiver::reliable(offer.window, packet.sequence),
            }),
            Some(ChannelState {
                sender: partial,
                receiver: Receiver::partial(promise, numbers.partial_ack),
            }),
        ];
        self.phase = Phase::Joining;
        self.deadline = now + options.connect_timeout * u64::from(options.connect_tries);
        let address = SocketAddr::new(self.reliable_address.ip(), port);
        self.partial_address = Some(address);
        self.acknowledge_after(now, HANDSHAKE_DELAYS, Channel::Reliable, effects);
        Ok(Some(address))
    }

    /// Server: INIT3 arrived, for the first time.
    pub(crate) fn handle_init3(
        &mut self,
        now: Instant,
        from: SocketAddr,
        packet: &Packet<'_>,
        promise: Promise,
        options: &HostOptions,
        effects: &mut Effects,
    ) {
        self.settle_offer(now);
        if let Some(reliable) = &mut self.halves[Channel::Reliable.index()] {
            reliable.sender.set_interval(options.initial_timer);
        }
        let join = Join::of(packet);
        let mut sender = Sender::new(options.window, join.ack, options.initial_timer);
        sender.queue(Flags::INIT, 0, Vec::new());
        // It acknowledges INIT3, so it waits like an acknowledgement.
        sender.hold(now + options.ack_delay * HANDSHAKE_DELAYS);
        self.halves[Channel::Partial.index()] = Some(ChannelState {
            sender,
            receiver: Receiver::partial(promise, join.sequence),
        });
        self.joins = Some(Joins::new(join));
        self.partial_address = Some(from);
        self.open(now, options, effects);
    }

    /// Server: INIT3 arrived again, perhaps with other numbers. False if it belongs to another connection.
    pub(crate) fn handle_init3_again(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        promise: Promise,
        effects: &mut Effects,
    ) -> bool {
        let (Side::Server { offer, .. }, Some(joins)) = (self.side, &mut self.joins) else {
            return false;
        };
        let Ok(info) = ChannelInfo::parse(packet.payload) else {
            return false;
        };
        if info.id != offer.id {
            return false;
        }
        let join = Join::of(packet);
        match joins.receive(join) {
            Again::Current => self.acknowledge(now, Channel::Partial, effects),
            Again::New => {
                if let Some(partial) = &mut self.halves[Channel::Partial.index()] {
                    partial.sender.renumber(join.ack);
                    partial.receiver = Receiver::partial(promise, join.sequence);
                }
            }
            Again::Other => {
                if let Some(to) = self.partial_address {
                    effects.send(Channel::Partial, to, &join.init4());
                }
            }
            Again::Ignored => effects.stats.unexpected += 1,
        }
        true
    }

    /// Server: INIT3 arrived and there is no room. The client hears of it each time, for END is sent once and may be lost; the offer
    /// stays, in case that somebody leaves meanwhile.
    pub(crate) fn refuse(&mut self, now: Instant, effects: &mut Effects) {
        self.settle_offer(now);
        self.send_end(effects);
    }

    /// Server: the client has the offer, whether or not its acknowledgement came. A repetition could stop the original.
    fn settle_offer(&mut self, now: Instant) {
        let Side::Server { init1, .. } = self.side else {
            return;
        };
        let offer_sequence = init1.1.wrapping_add(1);
        if let Some(reliable) = &mut self.halves[Channel::Reliable.index()]
            && reliable.sender.acked() != offer_sequence
        {
            reliable.sender.handle_ack(now, offer_sequence);
        }
    }

    /// Client: INIT4 arrived. Says whether the connection has opened by it.
    pub(crate) fn handle_init4(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        options: &HostOptions,
        effects: &mut Effects,
    ) -> bool {
        let Side::Client(numbers) = self.side else {
            return false;
        };
        if !numbers.is_init4(packet) {
            effects.stats.unexpected += 1;
            return false;
        }
        let opens = self.phase == Phase::Joining;
        if opens && let Some(partial) = &mut self.halves[Channel::Partial.index()] {
            if partial.sender.acked() != packet.ack {
                partial.sender.handle_ack(now, packet.ack);
            }
            // It is the first slot of the window and nothing for the application.
            partial
                .receiver
                .handle(packet.sequence, 0, (0, Vec::new()), |_| ());
            self.open(now, options, effects);
        }
        self.acknowledge_after(now, HANDSHAKE_DELAYS, Channel::Partial, effects);
        opens
    }

    /// A message arrived: exactly one acknowledgement, whatever becomes of it.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        channel: Channel,
        packet: &Packet<'_>,
        effects: &mut Effects,
    ) {
        let Some(half) = &mut self.halves[channel.index()] else {
            effects.stats.unexpected += 1;
            return;
        };
        let is_open = self.phase == Phase::Open;
        // Before INIT4 a partially reliable message could make the receiver skip it.
        let too_early = !is_open && (channel == Channel::Partial || self.early.len() >= EARLY_MAX);
        if too_early || effects.is_backlogged() {
            effects.stats.backlogged += 1;
        } else {
            let item = (packet.kind, packet.payload.to_vec());
            let (connection, early) = (self.id, &mut self.early);
            half.receiver
                .handle(packet.sequence, packet.payload.len(), item, |arrived| {
                    let (kind, payload) = arrived.item;
                    let message = Message {
                        connection,
                        channel,
                        kind,
                        sequence: arrived.sequence,
                        skipped: arrived.skipped,
                        payload,
                    };
                    match is_open {
                        true => effects.events.push_back(Event::Message(message)),
                        false => early.push_back(message),
                    }
                });
        }
        self.acknowledge(now, channel, effects);
    }

    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        channel: Channel,
        ack: u32,
        promise: Promise,
        effects: &mut Effects,
    ) {
        let Some(half) = &mut self.halves[channel.index()] else {
            effects.stats.unexpected += 1;
            return;
        };
        let joins = self.joins.as_mut();
        let joins = joins.filter(|_| channel == Channel::Partial);
        match joins.and_then(|joins| joins.handle_ack(ack)) {
            None => half.sender.handle_ack(now, ack),
            Some(settled) => {
                half.sender.drop_init();
                half.sender.renumber(settled.acked);
                if !settled.is_current {
                    half.receiver = Receiver::partial(promise, settled.join.sequence);
                }
            }
        }
    }

    pub(crate) fn handle_ping(&mut self, now: Instant, packet: &Packet<'_>, effects: &mut Effects) {
        // The original stops when an answer comes before it knows both channels.
        if self.phase != Phase::Open {
            effects.stats.unexpected += 1;
            return;
        }
        if let Some(rtt) = self.ping.handle(now, packet) {
            let interval = (rtt * 2).max(TIMER_MIN);
            for half in self.halves.iter_mut().flatten() {
                half.sender.set_interval(interval);
            }
        }
    }

    /// An END arrived. A numbered one is acknowledged once.
    pub(crate) fn handle_end(
        &mut self,
        packet: &Packet<'_>,
        effects: &mut Effects,
    ) -> Option<Over> {
        if matches!(self.phase, Phase::Calling { .. }) {
            // It ends an older connection.
            effects.stats.unexpected += 1;
            return None;
        }
        if (packet.sequence, packet.ack) != (0, 0) {
            // At once: it may be the last thing this program does.
            if let Some((to, ack)) = self.ack_packet(Channel::Reliable, packet.sequence) {
                effects.send(Channel::Reliable, to, &ack);
            }
        }
        Some(match self.phase {
            Phase::Joining => Over::Fail(FailReason::ByPeer),
            _ => Over::End(EndReason::ByPeer),
        })
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub(crate) fn timeout(&self) -> Instant {
        let phase = match self.phase {
            Phase::Open => self.ping.timeout(),
            _ => self.deadline,
        };
        let timers = self.halves.iter().flatten();
        timers
            .filter_map(|half| half.sender.timeout())
            .fold(phase, Instant::min)
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        options: &HostOptions,
        effects: &mut Effects,
    ) -> Option<Over> {
        let mut is_stalled = false;
        for half in self.halves.iter_mut().flatten() {
            half.sender.handle_timeout(now);
            let since = half.sender.stalled_since();
            // Short timers use up their repetitions long before the time that a path may be cut.
            is_stalled |= half.sender.timeouts_in_a_row() > options.resends_max
                && since.is_some_and(|since| now - since >= options.time_out);
        }
        if self.phase == Phase::Open {
            // A peer that is silent altogether is left to the pings.
            if is_stalled && self.ping.is_answered() {
                return Some(Over::End(EndReason::Unacknowledged));
            }
            return self.handle_ping_timeout(now, effects);
        }
        if now < self.deadline {
            return None;
        }
        match &mut self.phase {
            Phase::Calling { tries_left } if *tries_left > 0 => {
                *tries_left -= 1;
                self.deadline = now + options.connect_timeout;
                self.send_init1(options, effects);
                None
            }
            Phase::Offered => Some(Over::End(EndReason::TimedOut)),
            Phase::Joining => Some(Over::Fail(FailReason::NotAdmitted)),
            _ => Some(Over::Fail(FailReason::Unanswered)),
        }
    }

    pub(crate) fn send(
        &mut self,
        channel: Channel,
        kind: u16,
        payload: &[u8],
        options: &HostOptions,
    ) -> Result<(), SendError> {
        if self.phase != Phase::Open {
            return Err(SendError::NotConnected);
        }
        let half = self.halves[channel.index()]
            .as_mut()
            .ok_or(SendError::NotConnected)?;
        if half.sender.unacknowledged() >= options.queue_max {
            return Err(SendError::QueueFull(options.queue_max));
        }
        half.sender.queue(Flags::DATA, kind, payload.to_vec());
        Ok(())
    }

    /// Writes the next message of a channel into `buffer` and says to whom. What does not fit counts as lost on the way.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        let to = self.address(channel)?;
        let half = self.halves[channel.index()].as_mut()?;
        let ack = half.receiver.ack();
        while let Some(packet) = half.sender.poll(now, ack) {
            if let Ok(len) = packet.emit(buffer) {
                return Some((to, len));
            }
        }
        None
    }

    pub(crate) fn has_something(&self, channel: Channel) -> bool {
        let half = self.halves[channel.index()].as_ref();
        half.is_some_and(|half| half.sender.has_something())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Gives it the id by which the application knows it.
    pub(crate) fn rename(&mut self, id: ConnectionId) {
        self.id = id;
        // The queues know it by the other one.
        self.is_ready = [false; 2];
    }

    pub(crate) fn is_calling(&self) -> bool {
        matches!(self.phase, Phase::Calling { .. })
    }

    /// The END of this side: sent once, all numbers zero.
    pub(crate) fn send_end(&self, effects: &mut Effects) {
        let packet = Packet {
            sequence: 0,
            ack: 0,
            flags: Flags::END,
            kind: 0,
            payload: &[],
        };
        effects.send(Channel::Reliable, self.reliable_address, &packet);
    }

    /// A bare ACK of the last number accepted.
    pub(crate) fn acknowledge(&self, now: Instant, channel: Channel, effects: &mut Effects) {
        self.acknowledge_after(now, 1, channel, effects);
    }

    fn acknowledge_after(
        &self,
        now: Instant,
        delays: u64,
        channel: Channel,
        effects: &mut Effects,
    ) {
        if let Some(half) = &self.halves[channel.index()]
            && let Some((to, packet)) = self.ack_packet(channel, half.receiver.ack())
        {
            effects.send_ack(now, delays, channel, to, &packet);
        }
    }

    pub(crate) fn unacknowledged(&self, channel: Channel) -> usize {
        let half = self.halves[channel.index()].as_ref();
        half.map_or(0, |half| half.sender.unacknowledged())
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        let channel = |channel: Channel| match &self.halves[channel.index()] {
            Some(half) => ChannelStats {
                sender: *half.sender.counters(),
                receiver: *half.receiver.counters(),
                unacknowledged: half.sender.unacknowledged(),
            },
            None => ChannelStats::default(),
        };
        ConnectionStats {
            rtt: self.ping.rtt(),
            rtt_smoothed: self.ping.rtt_smoothed(),
            pings_sent: self.ping.sent,
            pings_answered: self.ping.answered_in_all,
            reliable: channel(Channel::Reliable),
            partial: channel(Channel::Partial),
        }
    }

    fn open(&mut self, now: Instant, options: &HostOptions, effects: &mut Effects) {
        self.phase = Phase::Open;
        self.ping = Ping::new(now, options);
        let connection = self.id;
        effects.events.push_back(Event::Connected { connection });
        effects
            .events
            .extend(self.early.drain(..).map(Event::Message));
    }

    fn handle_ping_timeout(&mut self, now: Instant, effects: &mut Effects) -> Option<Over> {
        while let Some(answer) = self.ping.poll_answer(now) {
            effects.send(Channel::Reliable, self.reliable_address, &answer);
        }
        match self.ping.poll_request(now) {
            Ok(Some(request)) => effects.send(Channel::Reliable, self.reliable_address, &request),
            Ok(None) => (),
            Err(_) => return Some(Over::End(EndReason::TimedOut)),
        }
        None
    }

    fn send_init1(&self, options: &HostOptions, effects: &mut Effects) {
        let Side::Client(numbers) = self.side else {
            return;
        };
        let ports = ChannelInfo {
            reliable_port: options.reliable_port.into(),
            partial_port: options.partial_port.into(),
            ..ChannelInfo::default()
        };
        let packet = Packet {
            sequence: numbers.reliable_sequence,
            ack: numbers.reliable_ack,
            flags: Flags::INIT,
            kind: 0,
            payload: &ports.bytes(),
        };
        effects.send(Channel::Reliable, self.reliable_address, &packet);
    }

    fn ack_packet(&self, channel: Channel, ack: u32) -> Option<(SocketAddr, Packet<'static>)> {
        let half = self.halves[channel.index()].as_ref()?;
        let packet = Packet {
            sequence: half.sender.last_sent(),
            ack,
            flags: Flags::ACK,
            kind: 0,
            payload: &[],
        };
        Some((self.address(channel)?, packet))
    }

    fn address(&self, channel: Channel) -> Option<SocketAddr> {
        match channel {
            Channel::Reliable => Some(self.reliable_address),
            Channel::Partial => self.partial_address,
        }
    }
}

/// The promise in a server's offer, if it makes sense.
fn promised(offer: &ChannelInfo) -> Option<Promise> {
    let percent = u8::try_from(offer.percent).ok()?;
    Promise::new(offer.window, percent).ok()
}

fn port(number: u32) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port != 0)
}

/// Time until INIT2 is repeated.
const OFFER_REPEAT: Duration = Duration::from_secs(1);
/// The timer is never shorter.
const TIMER_MIN: Duration = Duration::from_millis(20);
/// An answer to a step of the handshake waits this many acknowledgement delays: it is the first message that the original notes, with
/// code that is compiled at that moment, and if it is not noted in time the connection stops at the first loss.
const HANDSHAKE_DELAYS: u64 = 10;
/// Most messages kept that arrive before the connection is open.
const EARLY_MAX: usize = 1_024;
