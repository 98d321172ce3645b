//! Machines over a virtual network: time, wake-ups, segments, guards and scale.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_netem::{Conditions, NatKind, Network, Simulation};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

#[test]
fn time_jumps_from_event_to_event() {
    let mut simulation = Simulation::new(network(25));
    let ticker = simulation.add(
        address(1),
        Probe::ticking(Duration::from_millis(100), address(2)),
    );
    let listener = simulation.add(address(2), Probe::default());
    simulation.run_until(Instant::from_millis(350), |_| ());
    assert_eq!(simulation.node(ticker).timeouts_ms, [100, 200, 300]);
    assert_eq!(simulation.node(listener).arrivals_ms, [125, 225, 325]);
    assert_eq!(simulation.now(), Instant::from_millis(350));
    assert_eq!(simulation.next_event(), Some(Instant::from_millis(400)));
}

#[test]
fn nothing_to_do_ends_the_stepping() {
    let mut simulation = Simulation::new(network(25));
    let idle = simulation.add(address(1), Probe::default());
    assert!(!simulation.step());
    simulation.node_mut(idle).deadline = Some(Instant::FAR_FUTURE);
    assert!(!simulation.step(), "the far future never comes");
    simulation.node_mut(idle).deadline = Some(Instant::from_secs(7));
    assert!(simulation.step());
    assert_eq!(simulation.now(), Instant::from_secs(7));
}

#[test]
fn what_the_application_does_is_sent_at_once() {
    let mut simulation = Simulation::new(network(10));
    let sender = simulation.add(address(1), Probe::default());
    let receiver = simulation.add(address(2), Probe::default());
    simulation.run_for(Duration::from_secs(1));
    simulation
        .node_mut(sender)
        .outbox
        .push_back((address(2), 5));
    let done = simulation.run_until_done(Instant::from_secs(9), |simulation| {
        !simulation.node(receiver).arrivals_ms.is_empty()
    });
    assert!(done);
    assert_eq!(simulation.node(receiver).arrivals_ms, [1_010]);
    assert_eq!(simulation.now(), Instant::from_millis(1_010));
}

#[test]
fn the_callback_may_act_after_each_step() {
    let mut simulation = Simulation::new(network(10));
    let a = simulation.add(address(1), Probe::default());
    let b = simulation.add(address(2), Probe::default());
    simulation.node_mut(a).outbox.push_back((address(2), 1));
    simulation.run_until(Instant::from_millis(95), |simulation| {
        for (node, other) in [(a, address(2)), (b, address(1))] {
            if std::mem::take(&mut simulation.node_mut(node).has_news) {
                simulation.node_mut(node).outbox.push_back((other, 1));
            }
        }
    });
    assert_eq!(simulation.node(b).arrivals_ms, [10, 30, 50, 70, 90]);
    assert_eq!(simulation.node(a).arrivals_ms, [20, 40, 60, 80]);
}

#[test]
fn segments_travel_as_datagrams_of_their_own() {
    let mut simulation = Simulation::new(network(1));
    let sender = simulation.add(address(1), Probe::default());
    let receiver = simulation.add(address(2), Probe::default());
    simulation.node_mut(sender).segment = Some(1_000);
    simulation
        .node_mut(sender)
        .outbox
        .push_back((address(2), 2_500));
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.node(receiver).lengths, [1_000, 1_000, 500]);
    let sent = simulation.network().stats(sender).sent;
    assert_eq!((sent.datagrams, sent.ip_bytes), (3, 2_500 + 3 * 28));
}

#[test]
fn a_timeout_that_moves_fires_when_it_last_said() {
    let mut simulation = Simulation::new(network(1));
    let node = simulation.add(address(1), Probe::default());
    // Another one, whose time-out stands before the one that is brought forward.
    let other = simulation.add(address(2), Probe::default());
    simulation.node_mut(other).deadline = Some(Instant::from_millis(290));
    let ms = Instant::from_millis;
    simulation.node_mut(node).deadline = Some(ms(100));
    simulation.run_until(ms(50), |_| ());
    simulation.node_mut(node).deadline = Some(ms(300));
    simulation.run_until(ms(200), |_| ());
    assert!(
        simulation.node(node).timeouts_ms.is_empty(),
        "it was put off"
    );
    simulation.node_mut(node).deadline = Some(ms(220));
    simulation.run_until(ms(400), |_| ());
    assert_eq!(
        simulation.node(node).timeouts_ms,
        [220],
        "it was brought forward, and came once"
    );
    simulation.node_mut(node).deadline = Some(ms(500));
    simulation.run_until(ms(450), |_| ());
    simulation.node_mut(node).deadline = None;
    simulation.run_until(ms(600), |_| ());
    assert_eq!(
        simulation.node(node).timeouts_ms,
        [220],
        "it was called off"
    );
    simulation.node_mut(node).deadline = Some(ms(10));
    simulation.run_until(ms(700), |_| ());
    assert_eq!(
        simulation.node(node).timeouts_ms,
        [220, 600],
        "what is past fires now"
    );
    simulation.node_mut(node).deadline = Some(ms(800));
    simulation.run_until(ms(750), |_| ());
    simulation.node_mut(node).deadline = Some(ms(900));
    simulation.run_until(ms(1_000), |_| ());
    assert_eq!(
        simulation.node(node).timeouts_ms,
        [220, 600, 900],
        "what was put off still comes"
    );
}

#[test]
#[should_panic(expected = "192.0.2.1:1000]) never lets time go on")]
fn a_machine_stuck_in_the_past_is_named() {
    let mut simulation = Simulation::new(network(1));
    let stuck = simulation.add(address(1), Probe::default());
    simulation.node_mut(stuck).deadline = Some(Instant::from_millis(5));
    simulation.node_mut(stuck).keeps_deadline = true;
    simulation.run_for(Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "192.0.2.1:1000]) never stops sending")]
fn a_machine_that_never_stops_sending_is_named() {
    let mut simulation = Simulation::new(network(1));
    let chatty = simulation.add(address(1), Probe::default());
    // To nobody, so that nothing piles up.
    simulation
        .node_mut(chatty)
        .outbox
        .push_back((address(9), 1));
    simulation.node_mut(chatty).keeps_outbox = true;
    simulation.run_for(Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "time stands still")]
fn endless_answers_without_delay_are_noticed() {
    let mut simulation = Simulation::new(network(0));
    for (own, other) in [(1, 2), (2, 1)] {
        let node = simulation.add(address(own), Probe::default());
        simulation.node_mut(node).echo_to = Some(address(other));
        simulation
            .node_mut(node)
            .outbox
            .push_back((address(other), 1));
    }
    simulation.run_for(Duration::from_secs(1));
}

#[test]
fn a_killed_machine_hears_nothing_and_its_successor_does() {
    let mut simulation = Simulation::new(network(10));
    simulation.add(
        address(1),
        Probe::ticking(Duration::from_millis(100), address(2)),
    );
    let server = simulation.add(
        address(2),
        Probe::ticking(Duration::from_millis(70), address(1)),
    );
    simulation.run_until(Instant::from_millis(250), |_| ());
    let killed = simulation.detach(server).expect("it ran");
    assert_eq!(killed.arrivals_ms, [110, 210]);
    simulation.run_until(Instant::from_millis(450), |_| ());
    assert!(simulation.attach(server, Probe::default()).is_none());
    simulation.run_until(Instant::from_millis(650), |_| ());
    assert_eq!(simulation.node(server).arrivals_ms, [510, 610]);
    assert!(
        simulation.node(server).timeouts_ms.is_empty(),
        "the old timer died with the old machine"
    );
}

#[test]
fn a_machine_behind_a_nat_is_answered_at_its_mapping() {
    let mut network = network(10);
    let nat = network.add_nat(
        NatKind::Symmetric,
        [203, 0, 113, 1].into(),
        Duration::from_secs(30),
    );
    let client = network.add_node_behind(nat, SocketAddr::from(([10, 0, 0, 2], 5_000)));
    let mut simulation = Simulation::new(network);
    simulation.attach(
        client,
        Probe::ticking(Duration::from_millis(100), address(1)),
    );
    let server = simulation.add(address(1), Probe::default());
    simulation.node_mut(server).answers_sender = true;
    simulation.run_until(Instant::from_millis(350), |_| ());
    assert_eq!(simulation.node(client).arrivals_ms, [120, 220, 320]);
    let before = simulation.node(server).last_from.expect("it heard");
    simulation.network_mut().rebind(nat);
    simulation.run_until(Instant::from_millis(550), |_| ());
    assert_eq!(simulation.node(client).arrivals_ms.len(), 5);
    assert_ne!(simulation.node(server).last_from, Some(before));
}

#[test]
fn ten_thousand_nodes_run() {
    let mut simulation = Simulation::new(network(30));
    let hub = simulation.add(address(1), Probe::default());
    simulation.node_mut(hub).answers_sender = true;
    let nodes: Vec<_> = (0..10_000u32)
        .map(|index| {
            let address = SocketAddr::from(([10, 0, (index >> 8) as u8, index as u8], 1));
            simulation.add(
                address,
                Probe::ticking(Duration::from_millis(100), self::address(1)),
            )
        })
        .collect();
    simulation.run_until(Instant::from_millis(1_070), |_| ());
    assert_eq!(simulation.network().stats(hub).received.datagrams, 100_000);
    assert!(
        nodes
            .iter()
            .all(|&node| simulation.node(node).arrivals_ms.len() == 10)
    );
}

/// Does what its fields say and notes what happens to it.
#[derive(Default)]
struct Probe {
    outbox: VecDeque<(SocketAddr, usize)>,
    keeps_outbox: bool,
    segment: Option<usize>,
    deadline: Option<Instant>,
    keeps_deadline: bool,
    tick: Option<(Duration, SocketAddr)>,
    echo_to: Option<SocketAddr>,
    answers_sender: bool,
    has_news: bool,
    last_from: Option<SocketAddr>,
    arrivals_ms: Vec<u64>,
    lengths: Vec<usize>,
    timeouts_ms: Vec<u64>,
}

impl Probe {
    /// Sends one byte to `to` each `interval`.
    fn ticking(interval: Duration, to: SocketAddr) -> Self {
        Self {
            deadline: Some(Instant::ZERO + interval),
            tick: Some((interval, to)),
            ..Self::default()
        }
    }
}

impl Machine for Probe {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.arrivals_ms.push(now.as_millis());
        self.lengths.push(datagram.payload.len());
        self.has_news = true;
        self.last_from = Some(datagram.from);
        self.outbox.extend(self.echo_to.map(|to| (to, 1)));
        self.outbox
            .extend(self.answers_sender.then_some((datagram.from, 1)));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts_ms.push(now.as_millis());
        if !self.keeps_deadline {
            self.deadline = self.tick.map(|(interval, _)| now + interval);
        }
        self.outbox.extend(self.tick.map(|(_, to)| (to, 1)));
    }

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let &(to, len) = self.outbox.front()?;
        if !self.keeps_outbox {
            self.outbox.pop_front();
        }
        buffer[..len].fill(7);
        Some(Transmit {
            to,
            len,
            segment: self.segment,
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.deadline
    }
}

fn network(delay_ms: u64) -> Network {
    let mut network = Network::new(1);
    network.set_default(Conditions::default().delay(Duration::from_millis(delay_ms)));
    network
}

fn address(index: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, index], 1_000))
}
