//! A packet-level bottleneck in virtual time: drop-tail queue, fixed delay, jitter, random loss, seeds.
//!
//! Senders are as simple as a reliable one can be: full packets, an ack for each, loss by three newer packets, by time, or by
//! time-out. What was lost is replaced by new data, so goodput is what arrives.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use muse_transport::congestion::{Ack, Controller, Loss, Pacer};
use muse_wire::{Duration, Instant};

/// Bytes of a full packet.
pub(crate) const PACKET: usize = 1_200;

/// The path that all flows share.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Bits per second.
    pub(crate) rate: u64,
    pub(crate) rtt: Duration,
    /// Bytes that the queue holds, the packet on the wire not counted.
    pub(crate) buffer: usize,
    /// Uniform extra delay, in order unless `reorder`.
    pub(crate) jitter: Duration,
    pub(crate) reorder: bool,
    /// Acks are gathered and leave together at multiples of this; their delay is known to the sender.
    pub(crate) ack_interval: Duration,
    /// Share of packets lost at random.
    pub(crate) loss: f64,
    /// A later rate and when it holds from.
    pub(crate) change: Option<(Duration, u64)>,
}

impl Path {
    pub(crate) fn new(rate: u64, rtt_ms: u64) -> Self {
        Self {
            rate,
            rtt: Duration::from_millis(rtt_ms),
            buffer: 0,
            jitter: Duration::ZERO,
            reorder: false,
            ack_interval: Duration::ZERO,
            loss: 0.0,
            change: None,
        }
        .buffer_bdp(1.0)
    }

    /// A queue of so many bandwidth-delay products, of two packets at least.
    pub(crate) fn buffer_bdp(mut self, products: f64) -> Self {
        let bytes = self.rate as f64 / 8.0 * self.rtt.as_secs_f64() * products;
        self.buffer = (bytes as usize).max(2 * PACKET);
        self
    }

    /// A queue that takes so long to empty.
    pub(crate) fn buffer_ms(mut self, ms: u64) -> Self {
        self.buffer = (self.rate / 8 * ms / 1_000) as usize;
        self
    }
}

/// One sender: its controller, when it starts and what it wants.
pub(crate) struct Flow {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) start: Duration,
    /// Round-trip time that this flow has in addition to the path's.
    pub(crate) detour: Duration,
    /// Bytes per second that the application offers, in ticks of 16 ms with packets of at most 300 bytes; `None` for all it can.
    pub(crate) demand: Option<u64>,
}

/// Measurements of one run.
pub(crate) struct Outcome {
    /// Per flow, bytes delivered in each tenth of a second.
    pub(crate) delivered: Vec<Vec<u64>>,
    /// Queue delay that packets met, by millisecond; the last bin takes the rest.
    pub(crate) queue_ms: Vec<u64>,
    /// Longest queue delay met in each tenth of a second, in milliseconds.
    pub(crate) queue_peaks: Vec<u64>,
    /// Per flow, packets sent, and packets that the queue or the path dropped.
    pub(crate) sent: Vec<u64>,
    pub(crate) dropped: Vec<u64>,
    /// Per flow, bytes that the application offered and had to wait beyond their tick.
    pub(crate) delayed: Vec<u64>,
}

impl Outcome {
    /// Mean rate of a flow in bits per second over a part of the run.
    pub(crate) fn rate(&self, flow: usize, from_s: u64, to_s: u64) -> f64 {
        let bytes: u64 = self.delivered[flow][(from_s * 10) as usize..(to_s * 10) as usize]
            .iter()
            .sum();
        bytes as f64 * 8.0 / (to_s - from_s) as f64
    }

    /// Queue delay in milliseconds that a share of the packets did not exceed.
    pub(crate) fn queue_percentile(&self, share: f64) -> u64 {
        let total: u64 = self.queue_ms.iter().sum();
        let mut sum = 0;
        for (ms, count) in self.queue_ms.iter().enumerate() {
            sum += count;
            if sum as f64 >= share * total as f64 {
                return ms as u64 + 1;
            }
        }
        self.queue_ms.len() as u64
    }
}

/// Runs flows over a path for so many seconds.
pub(crate) fn run(path: &Path, flows: Vec<Flow>, seconds: u64, seed: u64) -> Outcome {
    let mut world = World::new(path, flows, seconds, seed);
    let end = seconds * NANOS;
    while let Some(Reverse((at, _, event))) = world.events.pop() {
        if at >= end {
            break;
        }
        world.now = at;
        world.handle(event);
    }
    world.outcome
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Depart,
    Acked { flow: u32, number: u64, held: u64 },
    Wake { flow: u32 },
    Timeout { flow: u32 },
    Tick { flow: u32 },
    Change,
}

struct World {
    path: Path,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    event_number: u64,
    random: fastrand::Rng,
    queue: VecDeque<(u32, u64, usize, u64)>,
    queue_bytes: usize,
    senders: Vec<Sender>,
    outcome: Outcome,
}

struct Sender {
    controller: Box<dyn Controller>,
    detour: Duration,
    pacer: Pacer,
    demand: Option<u64>,
    backlog: usize,
    /// Packets from `first` on; `None` when acknowledged or taken as lost.
    packets: VecDeque<Option<Packet>>,
    first: u64,
    largest_acked: Option<(u64, Instant)>,
    in_flight: usize,
    rtt_smoothed: Option<Duration>,
    rtt_variance: Duration,
    wake_at: u64,
    timeout_at: u64,
    timeout_armed: bool,
    timeouts: u32,
    arrives_after: u64,
}

#[derive(Clone, Copy)]
struct Packet {
    sent_at: Instant,
    bytes: usize,
    app_limited: bool,
}

impl World {
    fn new(path: &Path, flows: Vec<Flow>, seconds: u64, seed: u64) -> Self {
        let bins = (seconds * 10) as usize;
        let count = flows.len();
        let mut world = Self {
            path: path.clone(),
            now: 0,
            events: BinaryHeap::new(),
            event_number: 0,
            random: fastrand::Rng::with_seed(seed),
            queue: VecDeque::new(),
            queue_bytes: 0,
            senders: Vec::new(),
            outcome: Outcome {
                delivered: vec![vec![0; bins]; count],
                queue_ms: vec![0; 5_000],
                queue_peaks: vec![0; bins],
                sent: vec![0; count],
                dropped: vec![0; count],
                delayed: vec![0; count],
            },
        };
        if let Some((at, _)) = path.change {
            world.schedule(at.as_micros() * 1_000, Event::Change);
        }
        for (index, flow) in flows.into_iter().enumerate() {
            let start = flow.start.as_micros() * 1_000 + world.random.u64(0..20_000_000);
            let flow_index = index as u32;
            match flow.demand {
                Some(_) => world.schedule(start, Event::Tick { flow: flow_index }),
                None => world.schedule(start, Event::Wake { flow: flow_index }),
            }
            world.senders.push(Sender {
                controller: flow.controller,
                detour: flow.detour,
                pacer: Pacer::new(PACKET),
                demand: flow.demand,
                backlog: if flow.demand.is_some() { 0 } else { usize::MAX },
                packets: VecDeque::new(),
                first: 0,
                largest_acked: None,
                in_flight: 0,
                rtt_smoothed: None,
                rtt_variance: Duration::ZERO,
                wake_at: start,
                timeout_at: 0,
                timeout_armed: false,
                timeouts: 0,
                arrives_after: 0,
            });
        }
        world
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.event_number += 1;
        self.events.push(Reverse((at, self.event_number, event)));
    }

    fn instant(&self) -> Instant {
        Instant::from_micros(self.now / 1_000)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Depart => self.depart(),
            Event::Acked { flow, number, held } => self.acked(flow, number, held),
            Event::Wake { flow } => {
                if self.senders[flow as usize].wake_at == self.now {
                    self.senders[flow as usize].wake_at = 0;
                    self.send(flow);
                }
            }
            Event::Timeout { flow } => self.timed_out(flow),
            Event::Tick { flow } => self.tick(flow),
            Event::Change => {
                self.path.rate = self.path.change.map_or(self.path.rate, |change| change.1);
            }
        }
    }

    fn tick(&mut self, flow: u32) {
        let sender = &mut self.senders[flow as usize];
        self.outcome.delayed[flow as usize] += sender.backlog as u64;
        sender.backlog += sender.demand.unwrap_or(0) as usize * 16 / 1_000;
        self.schedule(self.now + 16_000_000, Event::Tick { flow });
        self.send(flow);
    }

    fn send(&mut self, flow: u32) {
        let now = self.instant();
        loop {
            let sender = &mut self.senders[flow as usize];
            let bytes = if sender.demand.is_some() {
                sender.backlog.min(300)
            } else {
                PACKET
            };
            if bytes == 0 || sender.in_flight + bytes > sender.controller.window().max(bytes) {
                return;
            }
            if sender.pacer.available(now, sender.controller.pacing_rate()) < bytes {
                let at =
                    (sender.pacer.next_release(now, bytes).as_micros() * 1_000).max(self.now + 1);
                if sender.wake_at <= self.now || at < sender.wake_at {
                    sender.wake_at = at;
                    self.schedule(at, Event::Wake { flow });
                }
                return;
            }
            sender.pacer.consume(bytes);
            if sender.demand.is_some() {
                sender.backlog -= bytes;
            }
            let app_limited = sender.demand.is_some() && sender.backlog == 0;
            sender.in_flight += bytes;
            sender
                .controller
                .on_sent(now, bytes, sender.in_flight, app_limited);
            sender.packets.push_back(Some(Packet {
                sent_at: now,
                bytes,
                app_limited,
            }));
            let number = sender.first + sender.packets.len() as u64 - 1;
            self.arm(flow);
            self.enqueue(flow, number, bytes);
        }
    }

    fn enqueue(&mut self, flow: u32, number: u64, bytes: usize) {
        self.outcome.sent[flow as usize] += 1;
        let bin = (self.now / (NANOS / 10)) as usize;
        let waiting = self.queue.len() > 1;
        let queued = if waiting {
            self.queue_bytes - self.queue[0].2
        } else {
            0
        };
        if !self.queue.is_empty() && queued + bytes > self.path.buffer {
            self.outcome.dropped[flow as usize] += 1;
            return;
        }
        let delay_ms = (self.queue_bytes as u64 * 8_000 / self.path.rate) as usize;
        let last = self.outcome.queue_ms.len() - 1;
        self.outcome.queue_ms[delay_ms.min(last)] += 1;
        self.outcome.queue_peaks[bin] = self.outcome.queue_peaks[bin].max(delay_ms as u64);
        self.queue.push_back((flow, number, bytes, self.now));
        self.queue_bytes += bytes;
        if self.queue.len() == 1 {
            let at = self.now + bytes as u64 * 8 * NANOS / self.path.rate;
            self.schedule(at, Event::Depart);
        }
    }

    fn depart(&mut self) {
        let Some((flow, number, bytes, _)) = self.queue.pop_front() else {
            return;
        };
        self.queue_bytes -= bytes;
        if let Some(next) = self.queue.front() {
            let at = self.now + next.2 as u64 * 8 * NANOS / self.path.rate;
            self.schedule(at, Event::Depart);
        }
        if self.random.f64() < self.path.loss {
            self.outcome.dropped[flow as usize] += 1;
            return;
        }
        // A random time of up to one packet's keeps flows from marching in step with a drop-tail queue, which they do in
        // simulations only (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways").
        let noise = self
            .random
            .u64(0..=bytes as u64 * 8 * NANOS / self.path.rate);
        let jitter = self.random.u64(0..=self.path.jitter.as_micros() * 1_000);
        let sender = &mut self.senders[flow as usize];
        let rtt = self.path.rtt + sender.detour;
        let mut at = self.now + rtt.as_micros() * 1_000 + noise + jitter;
        if !self.path.reorder {
            at = at.max(sender.arrives_after + 1);
            sender.arrives_after = at;
        }
        // Packets that the sender wrongly takes for lost have been delivered nevertheless.
        self.outcome.delivered[flow as usize][(self.now / (NANOS / 10)) as usize] += bytes as u64;
        let held = match self.path.ack_interval.as_micros() * 1_000 {
            0 => 0,
            interval => interval - at % interval,
        };
        self.schedule(at + held, Event::Acked { flow, number, held });
    }

    fn acked(&mut self, flow: u32, number: u64, held: u64) {
        let now = self.instant();
        let sender = &mut self.senders[flow as usize];
        let Some(index) = number.checked_sub(sender.first) else {
            return;
        };
        let Some(packet) = sender.packets[index as usize].take() else {
            return;
        };
        let rtt = now - packet.sent_at - Duration::from_micros(held / 1_000);
        sender.sample(rtt);
        sender.in_flight -= packet.bytes;
        sender.timeouts = 0;
        if sender
            .largest_acked
            .is_none_or(|(largest, _)| number > largest)
        {
            sender.largest_acked = Some((number, packet.sent_at));
        }
        sender.controller.on_ack(&Ack {
            now,
            sent_at: packet.sent_at,
            bytes: packet.bytes,
            rtt: Some(rtt),
            rtt_slack: Duration::ZERO,
            rtt_smoothed: sender.rtt_smoothed.unwrap_or(rtt),
            in_flight: sender.in_flight,
            app_limited: packet.app_limited,
        });
        sender.detect_losses(now);
        self.arm(flow);
        self.send(flow);
    }

    /// Moves the time-out; the event in the heap is replaced only when it fires too early.
    fn arm(&mut self, flow: u32) {
        let now = self.now;
        let sender = &mut self.senders[flow as usize];
        let span =
            sender.rtt_smoothed.unwrap_or(Duration::from_millis(300)) + sender.rtt_variance * 4;
        let nanos = (span + Duration::from_millis(25)).as_micros() * 1_000;
        // As the connection does: probes never come further apart than a second, or than one time-out.
        let backed_off = (nanos << sender.timeouts.min(5)).min(NANOS).max(nanos);
        sender.timeout_at = now + backed_off;
        if !sender.timeout_armed {
            sender.timeout_armed = true;
            let at = sender.timeout_at;
            self.schedule(at, Event::Timeout { flow });
        }
    }

    fn timed_out(&mut self, flow: u32) {
        let now = self.instant();
        let at = self.now;
        let sender = &mut self.senders[flow as usize];
        sender.timeout_armed = false;
        if sender.in_flight == 0 {
            return;
        }
        if sender.timeout_at > at {
            sender.timeout_armed = true;
            let at = sender.timeout_at;
            self.schedule(at, Event::Timeout { flow });
            return;
        }
        sender.timeouts += 1;
        let persistent = sender.timeouts > 1;
        sender.lose(now, sender.packets.len(), persistent, |_, _| true);
        self.arm(flow);
        self.send(flow);
    }
}

impl Sender {
    fn sample(&mut self, rtt: Duration) {
        match self.rtt_smoothed {
            None => {
                self.rtt_smoothed = Some(rtt);
                self.rtt_variance = rtt / 2;
            }
            Some(smoothed) => {
                self.rtt_variance = (self.rtt_variance * 3 + smoothed.abs_diff(rtt)) / 4;
                self.rtt_smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    fn detect_losses(&mut self, now: Instant) {
        let Some((largest, sent_at)) = self.largest_acked else {
            return;
        };
        let span = self.rtt_smoothed.unwrap_or_default() * 9 / 8;
        let before = largest.saturating_sub(self.first) as usize;
        let first = self.first;
        self.lose(now, before, false, |number, packet| {
            first + number as u64 + 3 <= largest || packet.sent_at + span < now.min(sent_at + span)
        });
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    fn lose(
        &mut self,
        now: Instant,
        before: usize,
        persistent: bool,
        is_lost: impl Fn(usize, &Packet) -> bool,
    ) {
        for index in 0..before.min(self.packets.len()) {
            let Some(packet) = self.packets[index] else {
                continue;
            };
            if !is_lost(index, &packet) {
                continue;
            }
            self.packets[index] = None;
            self.in_flight -= packet.bytes;
            self.controller.on_loss(&Loss {
                now,
                sent_at: packet.sent_at,
                bytes: packet.bytes,
                in_flight: self.in_flight,
                persistent,
            });
        }
    }
}

const NANOS: u64 = 1_000_000_000;
