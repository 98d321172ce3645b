//! One connection: acknowledgements, loss, round trips, channels, path, closing.
//!
//! Order of calls: [`Connection::handle_packet`] for every packet, [`Connection::handle_timeout`] when
//! [`Connection::next_timeout`] has passed, then [`Connection::poll_transmit`] until it returns `None`. What happened
//! goes into the [`Inbox`] of the endpoint.

mod active;
mod builder;
mod closing;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod forge;
mod incoming;
mod outgoing;
mod path;
mod redundancy;

pub(crate) use self::closing::CODE_REPLACED;

use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::{Duration, Instant, log};

use self::active::ChannelSet;
use self::closing::State;
use self::path::{Candidate, Mtu};
use self::redundancy::Redundancy;
use crate::channel::receive::ReceiveChannel;
use crate::channel::send::{Options, SendChannel};
use crate::config::Config;
use crate::congestion::{Budget, Controller, Pacer};
use crate::crypto::{Entropy, Keys};
use crate::event::{CloseReason, ConnectionId, MessageId, SendError, SendOptions};
use crate::handshake::ClientRandom;
use crate::inbox::{Inbox, LEVEL_FIRST, LEVEL_LAST, Rare};
use crate::memory::Budgets;
use crate::packet::AckBlock;
use crate::received::ReceivedPackets;
use crate::rtt::Rtt;
use crate::sent::{SentFrame, SentPackets};
use crate::stats::{ChannelStats, ConnectionStats};
use crate::timer::{Timer, Timers};
use crate::traps;

/// Longest time between two probes.
const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Probe time-outs in a row before the time between them grows: a burst of losses is over sooner than a dead path.
const PROBES_EAGER: u32 = 3;
/// Probe time-outs in a row after which the path counts as dead: the window and the packet size start again.
const PROBES_PERSISTENT: u32 = 3;

/// Packets further apart than this are not worth waiting for.
const COMPANY_GAP_MAX: Duration = Duration::from_millis(20);
/// Longest time a retransmission waits for company.
const COMPANY_WAIT_MAX: Duration = Duration::from_millis(17);

/// Channels that are brought into the cache ahead of a packet.
const CHANNELS_TOUCHED: usize = 2;

/// One connection with one peer.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    config: Arc<Config>,
    keys: Keys,
    /// The id that the peer wants to receive.
    remote_id: u32,
    pub(crate) remote: SocketAddr,
    state: State,
    received: ReceivedPackets,
    sent: SentPackets,
    /// Packets until a number is left out.
    trap_in: u32,
    rtt: Rtt,
    timers: Timers,
    controller: Box<dyn Controller>,
    pacer: Pacer,
    send: Vec<Option<Box<SendChannel>>>,
    receive: Vec<Option<Box<ReceiveChannel>>>,
    /// The memory budgets of received messages.
    budgets: Budgets,
    /// The channel that takes from the reserve for what a channel waits for.
    reserve_holder: Option<u8>,
    /// Channels that may have something to send.
    active: ChannelSet,
    /// Some channel is partially reliable.
    has_partial: bool,
    acks: AckDuty,
    redundancy: Redundancy,
    candidate: Option<Box<Candidate>>,
    /// A challenge of the peer's that wants an answer.
    path_response: Option<[u8; 8]>,
    mtu: Mtu,
    probes: Probes,
    rhythm: Rhythm,
    interrupted: bool,
    ping: bool,
    /// The number of recent packets that were full, up to a limit, and the time at which that limit was last reached.
    pressure: u8,
    pressed_at: Instant,
    /// The time at which congestion control last held back messages, while any wait.
    held_at: Option<Instant>,
    /// Messages wait for an acknowledgement to open the window; the pacer would open by itself.
    window_blocks: bool,
    /// The last transmit took all there was to send.
    pub(crate) drained: bool,
    /// The channel whose turn it is among equals.
    turn: usize,
    /// Congestion marks that the peer has reported, modulo 256.
    marks: u8,
    stats: ConnectionStats,
    bandwidth: Bandwidth,
    /// A client that has not sent a packet yet.
    newcomer: Option<Box<Newcomer>>,
}

/// The remains of a handshake that are kept until the client's first packet.
pub(crate) struct Newcomer {
    pub(crate) random: ClientRandom,
    pub(crate) accept: Vec<u8>,
    pub(crate) account: u64,
    pub(crate) user_data: Vec<u8>,
    pub(crate) hello: Vec<u8>,
    pub(crate) announced: bool,
    /// The application was asked, and so must hear of its end.
    pub(crate) asked: bool,
}

/// The acknowledgements that we owe the peer, and it us.
#[derive(Debug, Default)]
struct AckDuty {
    /// Packets with reliable content since our last acknowledgement.
    eliciting: u32,
    at_once: bool,
    /// Bytes sent since we last asked the peer for one of its own.
    unasked: usize,
}

/// Probe time-outs.
#[derive(Debug, Default)]
struct Probes {
    /// In a row.
    count: u32,
    /// Packets to send regardless of the window.
    pending: u32,
}

/// The rhythm of packets with new messages: a retransmission waits a moment for the next one to travel in.
#[derive(Debug, Default)]
struct Rhythm {
    last: Instant,
    gap: Duration,
}

impl Rhythm {
    /// A packet with new messages leaves.
    fn beat(&mut self, now: Instant) {
        let gap = now.saturating_since(self.last).min(COMPANY_GAP_MAX * 4);
        self.gap = (self.gap * 7 + gap) / 8;
        self.last = now;
    }

    /// Returns the time by which the next such packet should have left, if it is worth waiting for since `since`.
    fn company(&self, since: Instant) -> Option<Instant> {
        if self.gap > COMPANY_GAP_MAX || self.gap.is_zero() {
            return None;
        }
        Some((self.last + self.gap + self.gap / 8).min(since + COMPANY_WAIT_MAX))
    }
}

/// Bytes acknowledged per second.
#[derive(Debug, Default)]
struct Bandwidth {
    since: Instant,
    bytes: u64,
    rate: u64,
}

/// The parts that connections of an endpoint share: the inbox, randomness and scratch space.
pub(crate) struct Shared {
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) inbox: Inbox,
    /// Messages and fragments that the endpoint's memory budget refused.
    pub(crate) pieces_refused: u64,
    /// The time for which datagrams that are handled now may have waited.
    pub(crate) looked_away: Duration,
    ack_block: AckBlock,
    /// True if `ack_block` holds anything to tell.
    acks: bool,
    frames: Vec<SentFrame>,
    lost: Vec<u64>,
    section: Vec<u8>,
    recovered: Vec<u8>,
    parity: Vec<u8>,
    pool: Vec<Vec<u8>>,
}

impl Shared {
    pub(crate) fn new(entropy: impl Entropy + 'static) -> Self {
        Self {
            entropy: Box::new(entropy),
            inbox: Inbox::default(),
            pieces_refused: 0,
            looked_away: Duration::ZERO,
            ack_block: AckBlock::default(),
            acks: false,
            frames: Vec::new(),
            lost: Vec::new(),
            section: Vec::new(),
            recovered: Vec::new(),
            parity: Vec::new(),
            pool: Vec::new(),
        }
    }
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        config: Arc<Config>,
        mut keys: Keys,
        remote_id: u32,
        remote: SocketAddr,
        now: Instant,
        entropy: &mut dyn Entropy,
    ) -> Self {
        keys.send.set_rekey_after(config.rekey_after);
        let mtu = Mtu::new(config.link.datagram_min, config.link.datagram_max);
        let mut timers = Timers::new();
        timers.set(Timer::Silence, now + config.silence);
        timers.set(Timer::KeepAlive, now + config.keep_alive);
        let channels = config.channels.len();
        let controller = config.congestion.build(mtu.current(), now);
        Self {
            id,
            keys,
            remote_id,
            remote,
            state: State::Open,
            received: ReceivedPackets::new(),
            sent: SentPackets::new(),
            trap_in: traps::draw_first(entropy),
            rtt: Rtt::new(),
            timers,
            pacer: controller.pacer(mtu.current()),
            controller,
            send: std::iter::repeat_with(|| None).take(channels).collect(),
            receive: std::iter::repeat_with(|| None).take(channels).collect(),
            budgets: config.budgets(),
            reserve_holder: None,
            active: ChannelSet::default(),
            has_partial: config
                .channels
                .iter()
                .any(|channel| channel.delivery.is_partial()),
            acks: AckDuty::default(),
            redundancy: Redundancy::new(config.link.reliable),
            candidate: None,
            path_response: None,
            mtu,
            probes: Probes::default(),
            rhythm: Rhythm::default(),
            interrupted: false,
            ping: false,
            pressure: 0,
            pressed_at: Instant::ZERO,
            held_at: None,
            window_blocks: false,
            drained: false,
            turn: 0,
            marks: 0,
            stats: ConnectionStats::default(),
            bandwidth: Bandwidth::default(),
            newcomer: None,
            config,
        }
    }

    /// A server's connection: it begins when the client's first packet comes, before `until`.
    pub(crate) fn await_confirmation(&mut self, until: Instant, newcomer: Newcomer) {
        self.newcomer = Some(Box::new(newcomer));
        self.timers.set(Timer::Silence, until);
        // Nothing is sent to a client that has not shown that it has the keys.
        self.timers.stop(Timer::KeepAlive);
    }

    /// A client's connection: the server waits for a first packet.
    pub(crate) fn greet(&mut self) {
        self.ping = true;
    }

    /// True if the application knows of it.
    pub(crate) fn is_announced(&self) -> bool {
        self.newcomer
            .as_ref()
            .is_none_or(|newcomer| newcomer.announced)
    }

    /// A client that never showed up is given up: says so if the application admitted it.
    pub(crate) fn abandon(&self, shared: &mut Shared, reason: CloseReason) {
        let admitted = |newcomer: &Newcomer| newcomer.asked && !newcomer.announced;
        if self.newcomer.as_deref().is_some_and(admitted) {
            shared.inbox.rare(self.id, LEVEL_LAST, Rare::Closed(reason));
        }
    }

    /// The answer to the handshake, while the client may not have it.
    pub(crate) fn accept_bytes(&self) -> Option<&[u8]> {
        self.newcomer.as_ref().map(|newcomer| &newcomer.accept[..])
    }

    /// The handshake is over; returns the name of the attempt.
    pub(crate) fn take_attempt(&mut self) -> Option<ClientRandom> {
        self.newcomer.take().map(|newcomer| newcomer.random)
    }

    /// Reads a little of everything that a packet needs, so that it is in the cache when the packet is handled.
    pub(crate) fn touch(&self) {
        let mut sum = self.received.highest() ^ self.sent.touch() ^ self.stats.packets_received;
        sum ^= self.timers.next().as_micros() ^ self.rtt.smoothed().as_micros();
        sum ^= self.keys.receive.rejected() ^ self.controller.window() as u64;
        for half in self.receive.iter().take(CHANNELS_TOUCHED).flatten() {
            sum ^= half.stats.messages_received;
        }
        for half in self.send.iter().take(CHANNELS_TOUCHED).flatten() {
            sum ^= half.queued().1 as u64;
        }
        std::hint::black_box(sum);
    }

    /// Takes a message to send.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        channel: u8,
        payload: &[u8],
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        if !self.state.is_open() {
            return Err(SendError::Closing);
        }
        let limit = self.config.message_max;
        if payload.len() > limit {
            return Err(SendError::TooLong {
                len: payload.len(),
                limit,
            });
        }
        let Some(slot) = self.send.get_mut(usize::from(channel)) else {
            return Err(SendError::NoChannel { channel });
        };
        let config = &self.config.channels[usize::from(channel)];
        // A channel that is never used costs a pointer.
        let half = slot.get_or_insert_with(|| Box::new(SendChannel::new(channel, config)));
        let options = Options {
            level: options.priority.map(|priority| priority.level()),
            deadline: options.deadline,
            receipt: options.receipt,
        };
        let (id, inbox) = (self.id, &mut shared.inbox);
        let message = half.push(now, payload, options, &mut |receipt| {
            inbox.receipt(id, receipt)
        })?;
        self.active.insert(usize::from(channel));
        if half.deadline() < Instant::FAR_FUTURE {
            self.timers.set_earlier(Timer::Deadline, half.deadline());
        }
        Ok(message)
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) is due.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Does what has become due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared) {
        // Over for good, so nothing else matters.
        if self.timers.expired(Timer::Close, now) {
            self.die(shared);
            return;
        }
        if self.timers.expired(Timer::Silence, now) {
            self.on_silence(now, shared);
        }
        if self.timers.expired(Timer::Loss, now) {
            self.detect_losses(now, shared);
        }
        if self.timers.expired(Timer::Probe, now) {
            self.on_probe_timeout(now);
        }
        if self.timers.expired(Timer::Ack, now) {
            self.acks.at_once = true;
        }
        if self.timers.expired(Timer::KeepAlive, now) {
            self.ping = true;
            // Nothing was sent for a whole interval: a good moment to give memory back.
            self.shrink();
        }
        if self.timers.expired(Timer::Deadline, now) {
            self.expire_messages(now, shared);
            self.close_if_finished(now);
        }
        if self.timers.expired(Timer::Path, now) {
            self.on_path_timeout(now);
        }
        // Pace and Redundancy only wake the sender up: poll_transmit looks at the time itself.
        self.timers.expired(Timer::Pace, now);
        self.redundancy.due |= self.timers.expired(Timer::Redundancy, now);
    }

    /// Memory that waits in its channels.
    pub(crate) fn held(&self) -> usize {
        self.receive.iter().flatten().map(|half| half.held()).sum()
    }

    /// State and counters.
    pub(crate) fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            rtt: self.rtt.smoothed(),
            rtt_min: self.rtt.min(),
            rtt_variance: self.rtt.variance(),
            jitter: self.rtt.jitter(),
            loss: self.redundancy.loss_seen(),
            bandwidth: self.bandwidth.rate,
            in_flight: self.sent.in_flight(),
            window: self.controller.window(),
            mtu: self.mtu.current(),
            packets_forged: self.keys.receive.rejected(),
            parities_rejected: self.redundancy.rejected(),
            ..self.stats
        }
    }

    /// Counters of one channel.
    pub(crate) fn channel_stats(&self, channel: u8) -> Option<ChannelStats> {
        let send = self.send.get(usize::from(channel))?;
        let receive = self.receive.get(usize::from(channel))?;
        let mut stats = send
            .as_ref()
            .map_or_else(ChannelStats::default, |half| half.stats);
        if let Some(half) = receive {
            let received = half.stats;
            stats.messages_received = received.messages_received;
            stats.bytes_received = received.bytes_received;
            stats.messages_duplicate = received.messages_duplicate;
            stats.messages_late = received.messages_late;
            stats.messages_skipped = received.messages_skipped;
            stats.messages_incomplete = received.messages_incomplete;
        }
        Some(stats)
    }

    /// Bytes and messages of a channel that wait to be sent or acknowledged.
    pub(crate) fn queued(&self, channel: u8) -> (usize, usize) {
        let half = self.send.get(usize::from(channel)).and_then(Option::as_ref);
        half.map_or((0, 0), |half| half.queued())
    }

    /// Returns the budget of what may be sent now.
    pub(crate) fn budget(&mut self, now: Instant) -> Budget {
        let rate = self.controller.pacing_rate();
        let available = self.pacer.available(now, rate);
        Budget::new(
            self.controller.window(),
            self.sent.in_flight(),
            available,
            rate,
        )
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    fn expire_messages(&mut self, now: Instant, shared: &mut Shared) {
        let (id, inbox) = (self.id, &mut shared.inbox);
        let mut next = Instant::FAR_FUTURE;
        for (channel, half) in self.send.iter_mut().enumerate() {
            let Some(half) = half else { continue };
            self.active.insert(channel);
            half.expire(now, &mut |receipt| inbox.receipt(id, receipt));
            next = next.min(half.deadline());
        }
        self.timers.set(Timer::Deadline, next);
    }

    /// Drops what congestion has held back for too long.
    #[cold]
    #[inline(never)]
    fn drop_stale(&mut self, now: Instant, shared: &mut Shared, held_at: Instant) {
        let (id, inbox) = (self.id, &mut shared.inbox);
        let mut next = Instant::FAR_FUTURE;
        let mut from = 0;
        while let Some(channel) = self.active.next(from) {
            from = channel + 1;
            let Some(half) = self.send[channel].as_mut() else {
                continue;
            };
            let (dropped, at) =
                half.drop_stale(now, held_at, &mut |receipt| inbox.receipt(id, receipt));
            self.stats.messages_stale += dropped;
            next = next.min(at);
            // It may have been the last that a connection waited for which is to be closed.
            if dropped > 0 && !self.state.is_open() {
                next = now;
            }
        }
        // Wakes the sender up, which looks again.
        self.timers.set_earlier(Timer::Deadline, next);
    }

    fn on_silence(&mut self, now: Instant, shared: &mut Shared) {
        // The application never heard of it, so it is not told of its end either.
        if !self.is_announced() {
            self.abandon(shared, CloseReason::Lost);
            self.state = State::Dead;
            return;
        }
        if !self.state.carries_data() {
            // It was over before.
            self.die(shared);
            return;
        }
        if self.interrupted {
            shared
                .inbox
                .rare(self.id, LEVEL_LAST, Rare::Closed(CloseReason::Lost));
            self.state = State::Dead;
            return;
        }
        self.interrupted = true;
        self.stats.interruptions += 1;
        // At the level of its end, so that an application that looks rarely still sees the two in order.
        shared.inbox.rare(self.id, LEVEL_FIRST, Rare::Interrupted);
        self.timers
            .set(Timer::Silence, now + self.config.resume_within);
        self.ping = true;
    }

    fn on_probe_timeout(&mut self, now: Instant) {
        self.probes.count += 1;
        // Two from the second time on: losses that took a packet and its probe may take a single one as well.
        self.probes.pending = if self.probes.count > 1 { 2 } else { 1 };
        // Perhaps the path passes only small packets now, which looks the same as losing all of them.
        log!(debug, connection = ?self.id, probes = self.probes.count, "no acknowledgement: probing");
        if self.probes.count == PROBES_PERSISTENT {
            log!(debug, connection = ?self.id, "the path looks dead: small packets from now on");
            self.mtu.on_black_hole();
            self.controller.on_packet_size(self.mtu.current());
        }
        // A probe carries what the peer most likely waits for, rather than an empty ping.
        if let Some(number) = self.sent.oldest_reliable()
            && let Some(packet) = self.sent.get(number).copied()
        {
            let mut index = 0;
            while let Some(frame) = self.sent.frame(&packet, index) {
                index += 1;
                match frame {
                    SentFrame::Message {
                        channel,
                        piece,
                        number,
                        ..
                    } => {
                        self.active.insert(usize::from(channel));
                        if let Some(half) = self.send[usize::from(channel)].as_mut() {
                            half.probe(number, piece);
                        }
                    }
                    SentFrame::Skip { channel, number } => {
                        self.active.insert(usize::from(channel));
                        if let Some(half) = self.send[usize::from(channel)].as_mut() {
                            half.skip_lost(number);
                        }
                    }
                }
            }
        }
        if self.has_partial {
            for (channel, half) in self.send.iter_mut().enumerate() {
                let Some(half) = half else { continue };
                self.active.insert(channel);
                half.probe_given_up();
            }
        }
        self.set_probe_timer(now);
    }

    /// Sets the probe timer from what is in flight and what waits for it to be acknowledged.
    fn set_probe_timer(&mut self, now: Instant) {
        let must_arrive = self.sent.has_reliable_outstanding()
            || (self.has_partial
                && self
                    .send
                    .iter()
                    .flatten()
                    .any(|half| half.awaits_progress()));
        let backed_off = |ack_delay| {
            let timeout = self.rtt.probe_timeout(ack_delay);
            let doublings = self.probes.count.saturating_sub(PROBES_EAGER).min(6);
            (timeout * (1 << doublings)).min(PROBE_INTERVAL_MAX.max(timeout))
        };
        let mut at = Instant::FAR_FUTURE;
        if must_arrive {
            at = self.sent.last_reliable_at() + backed_off(self.config.ack_delay);
        }
        // Nobody sends lost unreliable messages again, but as long as they count as in flight nothing new may leave. The
        // peer takes its time to acknowledge them.
        if self.window_blocks {
            let lazy = self.config.ack_delay * incoming::ACK_LAZINESS;
            at = at.min(self.sent.last_eliciting_at() + backed_off(lazy));
        }
        if at == Instant::FAR_FUTURE || !self.state.carries_data() {
            self.timers.stop(Timer::Probe);
            return;
        }
        self.timers
            .set(Timer::Probe, at.max(now + Duration::from_millis(1)));
    }

    /// Gives back memory while nothing goes on.
    fn shrink(&mut self) {
        self.sent.shrink();
        for half in self.send.iter_mut().flatten() {
            half.shrink();
        }
        for half in self.receive.iter_mut().flatten() {
            half.shrink();
        }
    }
}
