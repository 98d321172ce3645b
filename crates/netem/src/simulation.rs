//! Runs any number of machines over a virtual network, in virtual time.
//!
//! It is the driver's loop of [`Machine`] without sockets and clocks: time jumps to the next thing that happens, so
//! hours of traffic take seconds and every run replays from its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use muse_wire::{Datagram, Duration, Instant, Machine};

use crate::{Network, NodeId};

/// Machines over a virtual network.
///
/// [`add`](Self::add) machines, then [`step`](Self::step) or [`run_until`](Self::run_until). The application talks to a
/// machine through [`node_mut`](Self::node_mut), after which the machine is asked for what it wants to send before time
/// goes on. The crate's front page has an example.
#[derive(Debug)]
pub struct Simulation<M> {
    network: Network,
    now: Instant,
    /// By node; `None` where a node of the network has no machine.
    runners: Vec<Option<Runner<M>>>,
    /// Machines to be asked for transmits and their time-out, in the order in which something happened to them.
    awake: Vec<NodeId>,
    /// Time-outs, lazily: an entry counts only while it is its runner's `scheduled`.
    timers: BinaryHeap<Reverse<(Instant, NodeId)>>,
    buffer: Vec<u8>,
    steps_at_now: u32,
}

impl<M: Machine> Simulation<M> {
    /// A simulation over this network, at time zero or wherever the network is.
    pub fn new(network: Network) -> Self {
        Self {
            now: network.now(),
            network,
            runners: Vec::new(),
            awake: Vec::new(),
            timers: BinaryHeap::new(),
            buffer: vec![0; TRANSMIT_BUFFER_DEFAULT],
            steps_at_now: 0,
        }
    }

    /// Length of the buffer that machines write into. Default: 24,000 bytes, so that a machine may give several
    /// datagrams at once ([`Transmit::segment`](muse_wire::Transmit::segment)).
    pub fn transmit_buffer(mut self, len: usize) -> Self {
        self.buffer = vec![0; len];
        self
    }

    /// Adds a node with this public address and runs the machine on it.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn add(&mut self, address: SocketAddr, machine: M) -> NodeId {
        let node = self.network.add_node(address);
        self.attach(node, machine);
        node
    }

    /// Runs a machine on a node that the network has already (one behind a NAT, say), in place of the one it had.
    pub fn attach(&mut self, node: NodeId, machine: M) -> Option<M> {
        let old = self.detach(node);
        if self.runners.len() <= node.index() {
            self.runners.resize_with(node.index() + 1, || None);
        }
        self.runners[node.index()] = Some(Runner {
            machine,
            is_awake: false,
            deadline: None,
            scheduled: None,
            timeouts_at: (self.now, 0),
        });
        self.wake(node);
        old
    }

    /// Takes a machine away, as a process that is killed. Datagrams to its node are lost from then on.
    pub fn detach(&mut self, node: NodeId) -> Option<M> {
        self.awake.retain(|other| *other != node);
        self.runners
            .get_mut(node.index())?
            .take()
            .map(|runner| runner.machine)
    }

    /// A machine.
    ///
    /// # Panics
    /// When the node has none.
    pub fn node(&self, node: NodeId) -> &M {
        let runner = self.runners.get(node.index()).and_then(Option::as_ref);
        &runner.expect("the node has a machine").machine
    }

    /// A machine, to do something with. It is asked for what it wants to send before time goes on.
    ///
    /// # Panics
    /// When the node has none.
    pub fn node_mut(&mut self, node: NodeId) -> &mut M {
        self.wake(node);
        let runner = self.runners.get_mut(node.index()).and_then(Option::as_mut);
        &mut runner.expect("the node has a machine").machine
    }

    /// Has a machine asked for what it wants to send before time goes on.
    pub fn wake(&mut self, node: NodeId) {
        if let Some(Some(runner)) = self.runners.get_mut(node.index())
            && !std::mem::replace(&mut runner.is_awake, true)
        {
            self.awake.push(node);
        }
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network, to change it or to send something from outside of any machine.
    pub fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Returns the time at which something happens next: a datagram reaches something or a machine times out. Machines that the
    /// application has touched are asked first for what they want to send.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.serve_awake();
        let next = match (self.network.next_delivery(), self.next_timeout()) {
            (Some(delivery), Some(timeout)) => Some(delivery.min(timeout)),
            (delivery, timeout) => delivery.or(timeout),
        };
        next.map(|at| at.max(self.now))
    }

    /// Advances to the next thing that happens, lets the machines concerned deal with it and sends what they want to
    /// send. `false` when nothing will ever happen again.
    ///
    /// # Panics
    /// When a machine never lets time go on: one whose time-out stays in the past, that always has more to send, or that
    /// answers over links without delay for ever.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next_event() else {
            return false;
        };
        if at > self.now {
            self.now = at;
            self.steps_at_now = 0;
        }
        self.steps_at_now += 1;
        assert!(
            self.steps_at_now <= STEPS_PER_INSTANT_MAX,
            "time stands still at {}: {} steps, {} datagrams under way",
            self.now,
            self.steps_at_now,
            self.network.in_flight(),
        );
        self.deliver();
        self.fire_timeouts();
        self.serve_awake();
        true
    }

    /// Steps until nothing more happens by `until`, calls `after_step` after each step, and leaves the time at `until`.
    pub fn run_until(&mut self, until: Instant, mut after_step: impl FnMut(&mut Self)) {
        self.run_until_done(until, |simulation| {
            after_step(simulation);
            false
        });
    }

    /// Steps until `is_done`, asked before the first and after each step, says so; `false` when it has not by `until`,
    /// where the time is then left.
    pub fn run_until_done(
        &mut self,
        until: Instant,
        mut is_done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        if is_done(self) {
            return true;
        }
        while self.next_event().is_some_and(|at| at <= until) {
            self.step();
            if is_done(self) {
                return true;
            }
        }
        if until > self.now {
            self.now = until;
            self.steps_at_now = 0;
        }
        false
    }

    /// Steps for this long, without a look in between.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| ());
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            let node = delivery.node;
            let Some(Some(runner)) = self.runners.get_mut(node.index()) else {
                continue;
            };
            let datagram = Datagram {
                from: delivery.from,
                ecn: delivery.ecn,
                payload: delivery.payload,
            };
            runner.machine.handle_datagram(self.now, datagram);
            self.wake(node);
        }
    }

    fn fire_timeouts(&mut self) {
        while self.next_timeout().is_some_and(|at| at <= self.now) {
            let Some(Reverse((_, node))) = self.timers.pop() else {
                return;
            };
            let Some(Some(runner)) = self.runners.get_mut(node.index()) else {
                continue;
            };
            let deadline = runner.deadline.take();
            runner.scheduled = None;
            if runner.timeouts_at.0 != self.now {
                runner.timeouts_at = (self.now, 0);
            }
            runner.timeouts_at.1 += 1;
            assert!(
                runner.timeouts_at.1 <= TIMEOUTS_PER_INSTANT_MAX,
                "node {} ({:?}) never lets time go on: at {} its poll_timeout still says {:?} after {} calls of \
                 handle_timeout",
                node.0,
                self.network.addresses(node),
                self.now,
                deadline,
                TIMEOUTS_PER_INSTANT_MAX,
            );
            runner.machine.handle_timeout(self.now);
            self.wake(node);
        }
    }

    /// Asks the machines that something happened to. They cannot wake each other here, as nothing is delivered before
    /// the next step.
    fn serve_awake(&mut self) {
        let mut awake = std::mem::take(&mut self.awake);
        for node in awake.drain(..) {
            self.transmit(node);
            let Some(Some(runner)) = self.runners.get_mut(node.index()) else {
                continue;
            };
            runner.is_awake = false;
            runner.deadline = runner
                .machine
                .poll_timeout()
                .filter(|at| *at < Instant::FAR_FUTURE);
            let Some(deadline) = runner.deadline else {
                continue;
            };
            if runner
                .scheduled
                .is_none_or(|scheduled| deadline < scheduled)
            {
                runner.scheduled = Some(deadline);
                self.timers.push(Reverse((deadline, node)));
            }
        }
        self.awake = awake;
    }

    fn transmit(&mut self, node: NodeId) {
        let Some(Some(runner)) = self.runners.get_mut(node.index()) else {
            return;
        };
        let mut transmits = 0;
        while let Some(transmit) = runner.machine.poll_transmit(self.now, &mut self.buffer) {
            let addresses = self.network.addresses(node);
            transmits += 1;
            assert!(
                transmits <= TRANSMITS_PER_POLL_MAX,
                "node {} ({addresses:?}) never stops sending: {transmits} transmits at {}",
                node.0,
                self.now,
            );
            let same_kind = addresses
                .iter()
                .find(|from| from.is_ipv4() == transmit.to.is_ipv4());
            let Some(&from) = same_kind.or(addresses.first()) else {
                continue;
            };
            for datagram in transmit.datagrams(&self.buffer) {
                self.network
                    .send(self.now, from, transmit.to, transmit.ecn, datagram);
            }
        }
    }

    /// The earliest time-out that counts, with the entries before it brought up to date: a time-out that has moved
    /// later is put off, one that is gone is dropped.
    fn next_timeout(&mut self) -> Option<Instant> {
        loop {
            let &Reverse((at, node)) = self.timers.peek()?;
            let runner = self.runners.get_mut(node.index()).and_then(Option::as_mut);
            let runner = runner.filter(|runner| runner.scheduled == Some(at));
            match runner {
                Some(runner) if runner.deadline == Some(at) => return Some(at),
                Some(runner) => {
                    runner.scheduled = runner.deadline;
                    self.timers.pop();
                    self.timers
                        .extend(runner.deadline.map(|deadline| Reverse((deadline, node))));
                }
                None => drop(self.timers.pop()),
            }
        }
    }
}

#[derive(Debug)]
struct Runner<M> {
    machine: M,
    is_awake: bool,
    /// The last answer of the machine's `poll_timeout`.
    deadline: Option<Instant>,
    /// Its entry in the heap that counts; never later than the deadline.
    scheduled: Option<Instant>,
    /// The number of time-outs at the latest instant at which it timed out.
    timeouts_at: (Instant, u32),
}

/// Sixteen Ethernet frames.
const TRANSMIT_BUFFER_DEFAULT: usize = 24_000;
/// Time-outs of one machine at one instant; more means that it never lets time go on.
const TIMEOUTS_PER_INSTANT_MAX: u32 = 1_000;
/// Transmits of one machine in one go.
const TRANSMITS_PER_POLL_MAX: u32 = 1_000_000;
/// Steps at one instant.
const STEPS_PER_INSTANT_MAX: u32 = 100_000;
